from dataclasses import replace

from anomprof.findings import Findings, Note
from anomprof.watching.ranks import Ranks, merge
from tests.report.sample_findings import softmax

SAMPLE = softmax()


def test_one_process_has_no_ranks(tmp_path):
    assert Ranks.of(tmp_path, {}) is None
    assert Ranks.of(tmp_path, {"WORLD_SIZE": "1", "RANK": "0"}) is None


def test_findings_of_all_ranks_are_merged_by_step_and_rank():
    late, early = replace(SAMPLE, step=4, rank=0), replace(SAMPLE, step=2, rank=1)
    together = merge([Findings(5, (late,)), Findings(5, (early,))])
    assert [(finding.step, finding.rank) for finding in together.findings] == [(2, 1), (4, 0)]
    assert together.facts["ranks"] == 2


def test_what_a_rank_received_is_a_note_beside_the_rank_that_knows():
    received = replace(SAMPLE, rank=0, confidence="unknown", symptom="gradient of w")
    known = replace(SAMPLE, rank=1)
    together = merge([Findings(3, (received,)), Findings(3, (known,))])
    assert [finding.rank for finding in together.findings] == [1]
    assert "rank 0 received bad values" in together.notes[0].what


def test_equal_notes_of_several_ranks_are_one():
    note = Note("GradScaler skipped the update", 0, 2)
    assert merge([Findings(3, (), (note,)), Findings(3, (), (note,))]).notes == (note,)


def test_each_rank_reads_what_the_others_wrote(tmp_path):
    first = Ranks.of(tmp_path, {"WORLD_SIZE": "2", "RANK": "0"})
    second = Ranks.of(tmp_path / "rank-1", {"WORLD_SIZE": "2", "RANK": "1"})
    first.write(Findings(2, (replace(SAMPLE, rank=0),)))
    together = second.write(Findings(3, (replace(SAMPLE, rank=1),)))
    assert (together.steps, len(together.findings)) == (3, 2)
    assert Findings.load(tmp_path) == together
    assert (first.speaks, second.speaks) == (True, False)


def test_what_an_earlier_run_of_more_ranks_left_is_not_merged(tmp_path):
    Ranks(tmp_path, 3, 4).write(Findings(9, (replace(SAMPLE, rank=3),)))
    assert Ranks(tmp_path, 0, 2).write(Findings(2)) == Findings(2, facts={"ranks": 1})
