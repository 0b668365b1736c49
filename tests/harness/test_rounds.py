"""The method: same work, interleaved, one instrument per pass, raw times kept."""

import json

import pytest
import torch

from anomprof import modes
from anomprof.errors import UserError
from anomprof.harness.plan import Plan
from anomprof.harness.rounds import Harness, State
from anomprof.record import RecordWriter, load
from anomprof.results import derive, is_complete
from tests import tiny


class Log:
    """A listener that remembers what it was shown."""

    def __init__(self):
        self.shown = []

    def show(self, state: State) -> None:
        self.shown.append((state.doing, state.mode, state.round))


def measure(folder, names, workload=None, budget=3.0, steps=2, **plan):
    writer = RecordWriter.create(folder, force=True)
    workload = workload or tiny.make()
    log = Log()
    made = Plan("tiny", tuple(names), steps=steps, budget_seconds=budget, **plan)
    for name in names:
        writer.mode(name, {"available": True})
    try:
        reason = Harness(made, workload, writer, log, names, names, budget).run()
    finally:
        writer.close()
    return load(folder), reason, log


HERE = tuple(name for name in modes.ALL if name != "compile")


@pytest.fixture(scope="module")
def record(tmp_path_factory):
    return measure(tmp_path_factory.mktemp("run"), HERE, budget=8.0)[0]


def test_every_mode_is_applied_with_proof_interval_and_verdict(record):
    results = derive(record)
    for mode in results.modes:
        assert mode.available, mode.reason
        assert mode.applied, (mode.name, mode.proof)
        if mode.name != "baseline":
            assert mode.slowdown.n >= 2
            assert mode.slowdown.low <= mode.slowdown.estimate <= mode.slowdown.high
            assert mode.verdict


def test_modes_that_keep_the_numbers_end_bitwise_where_the_baseline_ends(record):
    results = derive(record)
    same = {mode.name: mode.same_parameters for mode in results.modes if mode.keeps_numbers}
    assert set(same) >= {
        "baseline",
        "anomaly",
        "anomaly-stacks",
        "profiler",
        "profiler+anomaly",
        "checkpoint",
    }
    assert set(same.values()) == {True}


def test_modes_that_change_the_numbers_are_seen_to_do_so(record):
    # A weight decay or a step in bfloat16 cannot end bitwise where float32 ends.
    assert derive(record).mode("amp-bf16").same_parameters is False


def test_every_turn_takes_the_same_steps_on_the_same_batches(record):
    digests = {turn.facts["parameters_digest"] for turn in record.turns if turn.mode == "baseline"}
    assert len(digests) == 1
    assert {len(turn.steps) for turn in record.turns} == {2}


def test_rounds_are_reshuffled_and_every_mode_has_at_most_one_turn_in_each(record):
    orders = {}
    for turn in record.turns:
        if turn.mode != "baseline":
            orders.setdefault(turn.round, []).append(turn.mode)
    assert all(len(order) == len(set(order)) for order in orders.values())
    first = [order for order in orders.values() if len(order) == len(HERE) - 1]
    assert len({tuple(order) for order in first}) == len(first) > 1


def test_the_order_that_was_written_is_the_order_in_time(record):
    started = [turn.started for turn in record.turns]
    assert started == sorted(started)
    assert all(turn.started < step.started for turn in record.turns for step in turn.steps)


def test_memory_and_ops_come_from_passes_of_their_own(record):
    results = derive(record)
    assert results.mode("baseline").peak_memory_bytes > 0
    assert results.mode("profiler").memory_from == "baseline"
    assert results.mode("profiler+anomaly").memory_from == "anomaly"
    assert any(row.op == "aten::isnan" for row in results.ops["anomaly"])
    assert not any(row.op == "aten::isnan" for row in results.ops["baseline"])


def test_the_peak_is_state_batch_and_activations(record):
    # 482 parameters, two moments each, buffers of 32 floats and one int64, 8 step counters of AdamW;
    # a batch of 4 x 8 floats and 4 int64.
    base = 3 * 482 * 4 + 32 * 4 + 8 + 8 * 4 + 4 * 8 * 4 + 4 * 8
    bases = {r.value for r in record.readings if r.mode == "baseline" and r.quantity == "base_bytes"}
    assert bases == {base}
    peak = derive(record).mode("baseline").peak_memory_bytes
    # At the least all gradients (482 floats) live beside it at the end of backward.
    assert peak >= base + 482 * 4
    assert peak < base + 40_000


def test_anomaly_mode_s_cost_is_split(record):
    cost = derive(record).anomaly_cost
    assert cost.stacks is not None
    assert cost.checks is not None
    assert cost.host_syncs_per_step >= 8  # one for each checked gradient
    assert "aten::isnan" in cost.check_ops


def test_the_workload_is_left_as_it_was_after_the_warm_up(tmp_path):
    workload = tiny.make()
    measure(tmp_path, ("baseline", "anomaly"), workload)
    assert not torch.is_anomaly_enabled()
    assert workload.model.training
    assert all(parameter.grad is None for parameter in workload.model.parameters())


def test_the_progress_names_each_mode_between_turns(tmp_path):
    _, _, log = measure(tmp_path, ("baseline", "anomaly"), budget=1.0)
    assert log.shown[0][0] == "warming up"
    assert ("proof and memory", "anomaly", 0) in log.shown
    assert ("measuring", "baseline", 1) in log.shown


def test_measuring_ends_within_its_budget(tmp_path):
    record, reason, _ = measure(tmp_path, ("baseline", "baseline-again"), budget=1.5)
    assert reason in ("the budget of 1.5 s was spent", "every interval is narrower than ±2%")
    assert max(turn.started for turn in record.turns) - record.turns[0].started < 3


def failing(workload, condition):
    plain = workload.loss

    def loss(model, batch):
        if condition():
            raise ValueError("negative dimension")
        return plain(model, batch)

    workload.loss = loss
    return workload


def test_a_mode_that_fails_is_not_available_with_the_reason_and_the_others_go_on(tmp_path):
    workload = failing(tiny.make(), lambda: torch.is_autocast_enabled("cpu"))
    record, _, _ = measure(tmp_path, ("baseline", "amp-bf16", "anomaly"), workload)
    results = derive(record)
    assert results.mode("amp-bf16").available is False
    assert "ValueError: negative dimension (test_rounds.py:" in results.mode("amp-bf16").reason
    assert results.mode("anomaly").slowdown is not None


def test_a_failing_baseline_is_one_sentence_with_the_line(tmp_path):
    with pytest.raises(
        UserError, match=r"training step failed: ValueError: negative dimension \(test_rounds"
    ) as e:
        measure(tmp_path, ("baseline", "anomaly"), failing(tiny.make(), lambda: True))
    assert e.value.exit_code == 3


@pytest.mark.filterwarnings("ignore:Error detected in SqrtBackward0")
def test_anomaly_mode_that_stops_on_a_nan_is_reported_as_such(tmp_path):
    workload = tiny.make()
    # sqrt(0) has an infinite slope, and 0 * inf is NaN in the backward pass; the loss stays finite.
    plain = workload.loss
    workload.loss = lambda model, batch: plain(model, batch) + 0 * model.first.weight.mul(0).sqrt().sum()
    record, _, _ = measure(tmp_path, ("baseline", "anomaly", "anomaly-stacks"), workload)
    results = derive(record)
    assert "returned nan values" in results.mode("anomaly").reason
    assert results.mode("anomaly-stacks").slowdown is not None


@pytest.mark.parametrize(
    ("loss", "said"),
    [
        (lambda model, batch: 1.0, "returned float; return a scalar tensor"),
        (lambda model, batch: model(batch[0]), r"shape \(4, 2\); reduce it"),
        (lambda model, batch: model(batch[0]).sum().detach(), "does not depend on any parameter"),
    ],
)
def test_a_loss_of_no_use_is_one_sentence(tmp_path, loss, said):
    workload = tiny.make()
    workload.loss = loss
    with pytest.raises(UserError, match=said):
        measure(tmp_path, ("baseline",), workload)


def test_a_switched_on_anomaly_mode_leaves_the_baseline_without_proof(tmp_path):
    workload = tiny.make()
    plain = workload.loss

    def loss(model, batch):
        torch.autograd.set_detect_anomaly(True)
        return plain(model, batch)

    workload.loss = loss
    try:
        record, _, _ = measure(tmp_path, ("baseline", "clip-norm"), workload)
    finally:
        torch.autograd.set_detect_anomaly(False)
    assert derive(record).mode("baseline").applied is False


def test_a_nondeterministic_workload_is_found_out(tmp_path):
    workload = tiny.make()
    plain = workload.loss
    calls = iter(range(10**9))
    workload.loss = lambda model, batch: plain(model, batch) * (1 + 1e-3 * next(calls))
    record, _, _ = measure(tmp_path, ("baseline", "anomaly"), workload)
    assert derive(record).mode("baseline").same_parameters is False
    assert derive(record).mode("anomaly").same_parameters is None


def test_every_raw_time_is_kept(record, tmp_path):
    assert all(is_complete(turn) for turn in record.turns)
    assert all(step.step_seconds > 0 and step.wait_seconds >= 0 for t in record.turns for step in t.steps)
    assert all(0 <= step.edge_seconds < step.step_seconds for t in record.turns for step in t.steps)
    json.dumps(record.facts)


def test_the_profiler_spends_its_time_at_the_edges_and_the_baseline_does_not(record):
    results = derive(record)
    assert results.mode("profiler").edge_share > 10 * results.mode("baseline").edge_share


def test_data_that_are_slow_to_come_count_as_waiting_and_not_as_step(tmp_path):
    import time

    workload = tiny.make()
    batches = workload.batches

    class Slow:
        def __iter__(self):
            for batch in batches:
                time.sleep(0.05)
                yield batch

    workload.batches = Slow()
    record, _, _ = measure(tmp_path, ("baseline",), workload, budget=1.0)
    baseline = derive(record).mode("baseline")
    assert baseline.wait_seconds >= 0.05
    assert baseline.step.estimate < 0.05


def test_a_buffer_that_the_model_replaces_is_put_back(tmp_path):
    workload = tiny.make()
    workload.model.register_buffer("running", torch.zeros(1))
    plain = workload.loss

    def loss(model, batch):
        model.running = 0.9 * model.running + 0.1  # a new tensor in the old one's place
        return plain(model, batch) * (1 + model.running.sum())

    workload.loss = loss
    record, _, _ = measure(tmp_path, ("baseline", "anomaly"), workload)
    assert derive(record).mode("baseline").same_parameters is True
    assert derive(record).mode("anomaly").same_parameters is True


def test_a_loader_with_a_generator_of_its_own_repeats_its_order(tmp_path):
    workload = tiny.make()
    data = torch.utils.data.TensorDataset(torch.randn(40, 8), torch.randint(0, 2, (40,)))
    generator = torch.Generator().manual_seed(3)
    workload.batches = torch.utils.data.DataLoader(data, batch_size=4, shuffle=True, generator=generator)
    record, _, _ = measure(tmp_path, ("baseline", "anomaly"), workload)
    assert derive(record).mode("baseline").same_parameters is True


LEAKS = """
import torch
from anomprof import Mode, Proof

class Leaky(Mode):
    name = "leaky"
    def gradients(self, parameters):
        torch.autograd.set_detect_anomaly(True)
    def proof(self, seen, baseline):
        return Proof(True, "on")

class Freezing(Leaky):
    def gradients(self, parameters):
        parameters[0].requires_grad_(False)

class Exits(Leaky):
    def gradients(self, parameters):
        raise SystemExit(4)

class NoProof(Leaky):
    def gradients(self, parameters):
        pass
    def proof(self, seen, baseline):
        return None

class Raises(NoProof):
    def unavailable(self, device):
        raise ValueError("who knows")
"""


def test_a_mode_that_leaves_a_switch_on_is_taken_out_and_the_switch_put_back(tmp_path):
    path = tmp_path / "leaks_of_modes.py"
    path.write_text(LEAKS)
    record, _, _ = measure(tmp_path / "run", ("baseline", f"{path}:Leaky", "anomaly"))
    results = derive(record)
    assert "anomaly mode" in results.modes[1].reason
    assert not torch.is_anomaly_enabled()
    assert results.mode("anomaly").slowdown is not None


def test_a_mode_that_freezes_a_parameter_does_not_freeze_it_for_others(tmp_path):
    path = tmp_path / "leaks_of_modes.py"
    path.write_text(LEAKS)
    record, _, _ = measure(tmp_path / "run", ("baseline", f"{path}:Freezing", "clip-norm"))
    assert "norm of 8 gradients" in derive(record).mode("clip-norm").proof


@pytest.mark.parametrize(
    ("kind", "said"),
    [("Exits", "SystemExit: 4"), ("NoProof", "returned NoneType"), ("Raises", "ValueError: who knows")],
)
def test_whatever_a_users_mode_does_is_its_reason_and_the_run_goes_on(tmp_path, kind, said):
    path = tmp_path / "leaks_of_modes.py"
    path.write_text(LEAKS)
    record, _, _ = measure(tmp_path / "run", ("baseline", f"{path}:{kind}", "anomaly"))
    assert said in derive(record).modes[1].reason
    assert derive(record).mode("anomaly").slowdown is not None


def test_float16_is_timed_at_a_scale_that_skips_no_step(tmp_path):
    workload = tiny.make()
    plain = workload.loss
    workload.loss = lambda model, batch: plain(model, batch) * 1e4  # overflows at 65536 and long after
    record, _, _ = measure(tmp_path, ("baseline", "amp-fp16"), workload, steps=4)
    mode = derive(record).mode("amp-fp16")
    assert mode.applied, mode.proof
    assert mode.figures["skipped_steps"] >= 1
    assert mode.figures["timed_skipped_steps"] == 0


def test_a_workload_that_compiles_itself_stays_compiled(tmp_path):
    runs = []

    def backend(graph, inputs):
        def run(*values):
            runs.append(1)
            return graph.forward(*values)

        return run

    workload = tiny.make()
    compiled = torch.compile(torch.nn.Sequential(torch.nn.Linear(8, 2), torch.nn.Tanh()), backend=backend)
    model = torch.nn.Sequential(compiled)
    workload.model, workload.optimizer = model, torch.optim.SGD(model.parameters(), lr=0.1)
    workload.checkpoint_blocks = ()
    record, _, _ = measure(tmp_path, ("baseline", "anomaly"), workload, budget=2.0)
    before = len(runs)
    workload.loss(model, workload.batches[0])
    assert len(runs) == before + 1
    assert derive(record).mode("anomaly").applied


def test_short_steps_settle_for_longer_and_every_mode_alike(record):
    assert record.facts["settling_steps"] >= 2
    assert len({turn.facts["parameters_digest"] for turn in record.turns if turn.mode == "anomaly"}) == 1
