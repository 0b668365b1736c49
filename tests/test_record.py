import contextlib
import random
import signal
import sqlite3
import subprocess
import sys
import textwrap

import pytest

from anomprof.errors import UserError
from anomprof.record import FILE_NAME, Reading, RecordWriter, Sample, Site, Step, Turn, load


def test_what_is_written_is_read_back(tmp_path):
    writer = RecordWriter.create(tmp_path)
    writer.fact("plan", {"workload": "tiny", "modes": ["baseline", "anomaly"]})
    writer.mode("baseline", {"available": True})
    writer.mode("anomaly", {"available": False, "reason": "no"})
    turn = Turn(0, 3, 1, "baseline", 12.5)
    turn_id = writer.begin_turn(turn)
    step = Step(0, 13.0, 0.25, 1.5, 0.125)
    writer.step(turn_id, step)
    writer.end_turn(turn_id, {"final_loss": 2.5})
    reading = Reading("baseline", "self_seconds", 0.5, Site(op="aten::mm"))
    writer.readings([reading])
    sample = Sample(14.0, "host", "load_average", 1.5)
    writer.samples([sample])
    writer.close()

    record = load(tmp_path)
    assert record.facts["plan"]["workload"] == "tiny"
    assert dict(record.modes) == {
        "baseline": {"available": True},
        "anomaly": {"available": False, "reason": "no"},
    }
    assert record.turns == (Turn(0, 3, 1, "baseline", 12.5, (step,), {"final_loss": 2.5}),)
    assert record.readings == (reading,)
    assert record.samples == (sample,)


def test_a_mode_that_is_written_again_keeps_its_place(tmp_path):
    writer = RecordWriter.create(tmp_path)
    for name in ("baseline", "b", "a"):
        writer.mode(name, {})
    writer.mode("baseline", {"applied": True})
    writer.close()
    assert list(load(tmp_path).modes) == ["baseline", "b", "a"]


def test_an_existing_record_is_not_overwritten_unless_forced(tmp_path):
    RecordWriter.create(tmp_path).close()
    with pytest.raises(UserError, match="already holds a record.*--force") as caught:
        RecordWriter.create(tmp_path)
    assert caught.value.exit_code == 2
    RecordWriter.create(tmp_path, force=True).close()


def test_a_folder_that_cannot_be_made_is_one_sentence(tmp_path):
    (tmp_path / "file").write_text("in the way")
    with pytest.raises(UserError, match="cannot write to .*--out") as caught:
        RecordWriter.create(tmp_path / "file" / "folder")
    assert caught.value.exit_code == 3


def test_an_unknown_quantity_is_our_own_mistake(tmp_path):
    writer = RecordWriter.create(tmp_path)
    with pytest.raises(KeyError, match="unknown quantity"):
        writer.readings([Reading("baseline", "step_minutes", 1.0)])
    writer.close()


@pytest.mark.parametrize(
    ("content", "said"),
    [(None, "no record in"), (b"", "killed while it started|damaged"), (b"not a database" * 99, "damaged")],
)
def test_a_folder_without_a_good_record_is_one_sentence(tmp_path, content, said):
    if content is not None:
        (tmp_path / FILE_NAME).write_bytes(content)
    with pytest.raises(UserError, match=said):
        load(tmp_path)


def test_a_newer_format_is_refused_with_advice(tmp_path):
    writer = RecordWriter.create(tmp_path)
    writer.fact("schema", 99)
    writer.close()
    with pytest.raises(UserError, match="format 99.*install a newer anomprof"):
        load(tmp_path)


def test_a_killed_writer_leaves_all_that_it_had_committed(tmp_path):
    script = """
        import os, signal, sys
        from pathlib import Path
        from anomprof.record import RecordWriter, Step, Turn
        writer = RecordWriter.create(Path(sys.argv[1]))
        for number in range(5):
            turn_id = writer.begin_turn(Turn(0, number, 0, "baseline", 0.0))
            writer.step(turn_id, Step(0, 0.0, 0.0, 1.0, 0.0))
            writer.end_turn(turn_id, {"final_loss": 0.0})
        writer.begin_turn(Turn(0, 5, 0, "baseline", 0.0))  # not committed
        os.kill(os.getpid(), signal.SIGKILL)
    """
    ended = subprocess.run([sys.executable, "-c", textwrap.dedent(script), str(tmp_path)], check=False)
    assert ended.returncode == -signal.SIGKILL
    assert len(load(tmp_path).turns) == 5


def test_two_processes_write_into_one_record(tmp_path):
    writer = RecordWriter.create(tmp_path)
    writer.commit()
    other = RecordWriter.join(tmp_path, 1)
    other.end_turn(other.begin_turn(Turn(1, 0, 0, "baseline", 0.0)), {})
    other.close()
    writer.end_turn(writer.begin_turn(Turn(0, 0, 0, "baseline", 0.0)), {})
    writer.close()
    assert sorted(turn.process for turn in load(tmp_path).turns) == [0, 1]


def test_a_full_disk_is_one_sentence_and_loses_nothing(tmp_path):
    writer = RecordWriter.create(tmp_path)
    writer.fact("kept", 1)
    # SQLite's own limit stands in for the disk's: the error is the same one.
    pages = writer._connection.execute("PRAGMA page_count").fetchone()[0]
    writer._connection.execute(f"PRAGMA max_page_count = {pages}")
    with pytest.raises(UserError, match="full.*is kept") as caught:
        writer.fact("large", "x" * 100_000)
    assert caught.value.exit_code == 3
    writer.close()
    assert load(tmp_path).facts["kept"] == 1


def test_reading_a_record_does_not_change_it(tmp_path):
    RecordWriter.create(tmp_path).close()
    before = (tmp_path / FILE_NAME).read_bytes()
    load(tmp_path)
    assert (tmp_path / FILE_NAME).read_bytes() == before
    assert [path.name for path in tmp_path.iterdir()] == [FILE_NAME]


def test_a_record_is_plain_sqlite(tmp_path):
    RecordWriter.create(tmp_path).close()
    tables = sqlite3.connect(tmp_path / FILE_NAME).execute(
        "SELECT name FROM sqlite_master WHERE type='table'"
    )
    assert {name for (name,) in tables} == {"fact", "mode", "turn", "step", "reading", "sample"}


def test_text_that_is_no_unicode_and_values_that_are_no_json_are_written_as_text(tmp_path):
    writer = RecordWriter.create(tmp_path)
    writer.fact("command", "bench --out \udcff")
    writer.fact("figures", {"set": {1}, "numbers": [1, 2.5, None, True]})
    writer.close()
    facts = load(tmp_path).facts
    assert facts["command"] == "bench --out \\udcff"
    assert facts["figures"] == {"set": "{1}", "numbers": [1, 2.5, None, True]}


def test_a_damaged_record_is_one_sentence_whatever_the_damage(tmp_path):
    writer = RecordWriter.create(tmp_path)
    for number in range(50):
        writer.fact(f"fact {number}", "x" * 200)
    writer.close()
    path = tmp_path / FILE_NAME
    whole = path.read_bytes()
    generator = random.Random(0)
    for _ in range(60):
        damaged = bytearray(whole)
        for _ in range(40):
            damaged[generator.randrange(100, len(damaged))] = generator.randrange(256)
        path.write_bytes(bytes(damaged))
        with contextlib.suppress(UserError):
            load(tmp_path)
