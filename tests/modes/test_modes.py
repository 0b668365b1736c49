"""Every mode: it is on, it proves it, and it leaves everything as it found it."""

import contextlib

import pytest
import torch

from anomprof import modes
from anomprof.errors import UserError
from anomprof.harness.bench import Bench
from anomprof.harness.evidence import gather
from anomprof.modes.mode import Mode, ModeOptions, Proof, Seen
from tests import tiny

HERE = [name for name in modes.ALL if name != "compile"]


@pytest.fixture(scope="module")
def bench():
    return Bench(tiny.make(), modes.make("baseline", ModeOptions()))


@pytest.fixture(scope="module")
def baseline(bench):
    return gather(bench, "baseline", modes.make("baseline", ModeOptions()), ("baseline",), 3)


PLAIN = ModeOptions()


def evidence(bench, name, options=PLAIN, steps=3):
    return gather(bench, name, modes.make(name, options), ("baseline", name), steps)


def end_of_turn(bench, mode, steps=3):
    with bench.turn(mode) as batches:
        for _ in range(steps):
            bench.step(mode, next(batches))
    return bench.digests()


@pytest.mark.parametrize("name", HERE)
def test_every_mode_proves_that_it_was_on(bench, baseline, name):
    mode = modes.make(name, ModeOptions())
    proof = mode.proof(evidence(bench, name).seen, baseline.seen)
    assert proof.applied, proof.text


@pytest.mark.parametrize("name", [name for name in HERE if not name.startswith("baseline")])
def test_a_mode_that_was_off_gets_no_proof(baseline, name):
    # What the baseline's passes showed is what would be seen of a mode that did nothing.
    assert not modes.make(name, ModeOptions()).proof(baseline.seen, baseline.seen).applied


@pytest.mark.parametrize("name", HERE)
def test_modes_that_promise_to_keep_the_numbers_end_bitwise_where_the_baseline_ends(bench, name):
    mode = modes.make(name, ModeOptions())
    plain = end_of_turn(bench, modes.make("baseline", ModeOptions()))
    same = end_of_turn(bench, mode)["parameters_digest"] == plain["parameters_digest"]
    assert same or not mode.keeps_numbers


@pytest.mark.parametrize("name", HERE)
def test_a_mode_leaves_everything_as_it_found_it(bench, name):
    model = bench.workload.model
    forwards = [vars(module).get("forward") for module in model.modules()]
    plain = end_of_turn(bench, modes.make("baseline", ModeOptions()))
    end_of_turn(bench, modes.make(name, ModeOptions()))
    assert not torch.is_anomaly_enabled()
    assert not torch.is_autocast_enabled("cpu")
    assert [vars(module).get("forward") for module in model.modules()] == forwards
    assert not any(module._forward_hooks or module._forward_pre_hooks for module in model.modules())
    assert end_of_turn(bench, modes.make("baseline", ModeOptions())) == plain


@pytest.mark.parametrize("name", HERE)
def test_a_failing_step_leaves_everything_as_it_was(bench, name):
    mode = modes.make(name, ModeOptions())
    plain_loss = bench.workload.loss

    def failing(model, batch):
        plain_loss(model, batch)
        raise ZeroDivisionError

    bench.workload.loss = failing
    try:
        with contextlib.suppress(ZeroDivisionError), bench.turn(mode) as batches:
            bench.step(mode, next(batches))
    finally:
        bench.workload.loss = plain_loss
    assert not torch.is_anomaly_enabled()
    assert not torch.is_autocast_enabled("cpu")
    assert "forward" not in vars(bench.workload.model.block)


def test_anomaly_counts_one_check_for_every_gradient_and_a_stack_for_every_node(bench, baseline):
    seen = evidence(bench, "anomaly").seen
    assert seen.nodes_with_stack == seen.nodes == baseline.seen.nodes
    # One check for each result of each node but the accumulators; at least one for each parameter.
    assert seen.backward_ops["aten::isnan"] >= len(bench.parameters)


def test_anomaly_stacks_checks_nothing(bench):
    seen = evidence(bench, "anomaly-stacks").seen
    assert seen.nodes_with_stack == seen.nodes
    assert seen.backward_ops.get("aten::isnan", 0) == 0


def test_clip_norm_counts_the_clipped_share(bench):
    every = evidence(bench, "clip-norm", ModeOptions(clip_norm=1e-6)).seen.figures
    none = evidence(bench, "clip-norm", ModeOptions(clip_norm=1e6)).seen.figures
    assert (every["clipped_share"], none["clipped_share"]) == (1.0, 0.0)
    assert every["norms_computed"] == 3


def test_clip_value_counts_steps_and_elements(bench):
    every = evidence(bench, "clip-value", ModeOptions(clip_value=1e-9)).seen.figures
    none = evidence(bench, "clip-value", ModeOptions(clip_value=1e6)).seen.figures
    assert every["clipped_share"] == 1.0
    assert 0.2 < every["clipped_element_share"] <= 1  # dropout and relu make some gradients exactly 0
    assert (none["clipped_share"], none["clipped_element_share"]) == (0.0, 0.0)


@pytest.mark.parametrize("typed", ["amp-fp16+clip-norm", "clip-norm+amp-fp16"])
def test_clipping_sees_unscaled_gradients_whatever_order_was_typed(bench, typed):
    norm = evidence(bench, "clip-norm").seen.figures["median_norm"]
    scaled = evidence(bench, typed).seen.figures
    # Were it to see scaled gradients, the norm would be larger by the scale, 65536.
    assert scaled["median_norm"] == pytest.approx(norm, rel=0.05)


def test_both_orders_of_a_combination_train_the_same_numbers(bench):
    one, two = (
        end_of_turn(bench, modes.make(name, ModeOptions(clip_norm=0.01, clip_value=0.001)))
        for name in ("clip-norm+clip-value", "clip-value+clip-norm")
    )
    assert one == two


def test_fp16_reports_skipped_steps_and_starts_timed_turns_from_the_scale_it_found(bench):
    mode = modes.make("amp-fp16", ModeOptions())
    plain_loss = bench.workload.loss
    # Gradients that overflow at a scale of 65536.
    bench.workload.loss = lambda model, batch: plain_loss(model, batch) * 1e3
    try:
        found = gather(bench, "amp-fp16", mode, ("baseline", "amp-fp16"), 3).seen.figures
    finally:
        bench.workload.loss = plain_loss
    assert found["scale_at_start"] == 65536
    assert found["skipped_steps"] >= 1
    assert found["scale"] == 65536 / 32 ** found["skipped_steps"]  # searched in strides of 32
    assert not found["last_step_skipped"]
    with bench.turn(mode):
        assert mode.scaler.get_scale() == found["scale"]


def test_checkpoint_recomputes_the_ops_of_its_blocks(bench, baseline):
    mode = modes.make("checkpoint", ModeOptions())
    proof = mode.proof(evidence(bench, "checkpoint").seen, baseline.seen)
    # The block is Linear, ReLU, Dropout: t, addmm and relu run again, and dropout's own ops.
    assert proof.applied
    assert int(proof.text.split()[0]) >= 3


def test_checkpoint_without_blocks_is_not_available():
    workload = tiny.make()
    workload.checkpoint_blocks = ()
    assert "checkpoint_blocks" in modes.make("checkpoint", ModeOptions()).unfit(workload)


def test_autocast_says_that_it_does_nothing_for_a_bfloat16_model():
    workload = tiny.make()
    workload.model.to(torch.bfloat16)
    assert "float32 only" in modes.make("amp-bf16", ModeOptions()).unfit(workload)


@pytest.mark.parametrize(
    "name",
    ["amp-bf16+amp-fp16", "checkpoint+checkpoint-reentrant", "anomaly+anomaly-stacks", "anomaly+anomaly"],
)
def test_two_of_a_kind_cannot_be_combined(name):
    with pytest.raises(UserError, match="cannot be combined"):
        modes.make(name, ModeOptions())


def test_an_unknown_mode_suggests_the_closest():
    with pytest.raises(UserError, match="did you mean 'anomaly'"):
        modes.make("anomally", ModeOptions())


@pytest.mark.parametrize(
    ("typed", "expected"),
    [
        ("anomaly", ("baseline", "anomaly")),
        ("anomaly, baseline ,anomaly", ("baseline", "anomaly")),
        ("default,compile", (*modes.DEFAULT, "compile")),
        ("all", modes.ALL),
    ],
)
def test_a_list_of_modes_always_begins_with_the_baseline(typed, expected):
    assert modes.parse(typed) == expected


def test_an_empty_list_of_modes_is_refused():
    with pytest.raises(UserError, match="--modes is empty"):
        modes.parse(" , ")


USER_MODE = """
import contextlib
from anomprof import Mode, Proof

class Halved(Mode):
    name = "halved"
    summary = "gradients halved"
    def gradients(self, parameters):
        for parameter in parameters:
            parameter.grad.mul_(0.5)
    def proof(self, seen, baseline):
        return Proof(seen.op_calls.get("aten::mul_", 0) > baseline.op_calls.get("aten::mul_", 0), "halved")

class Silent(Mode):
    name = "silent"
"""


def test_a_user_adds_a_mode_from_a_file(bench, baseline, tmp_path):
    path = tmp_path / "my_modes.py"
    path.write_text(USER_MODE)
    name = f"{path}:Halved"
    mode = modes.make(name, ModeOptions())
    assert mode.proof(evidence(bench, name).seen, baseline.seen) == Proof(True, "halved")


def test_a_users_mode_without_a_proof_is_never_applied(tmp_path):
    path = tmp_path / "silent_modes.py"
    path.write_text(USER_MODE)
    proof = modes.make(f"{path}:Silent", ModeOptions()).proof(Seen(), Seen())
    assert not proof.applied
    assert "override Mode.proof" in proof.text


@pytest.mark.parametrize(
    ("spec", "said"),
    [
        ("{}:Missing", "has no mode 'Missing'; there are Halved"),
        ("{}:contextlib", "not a subclass"),
        ("no.py:X", "no file"),
    ],
)
def test_a_users_mode_that_cannot_be_loaded_is_one_sentence(tmp_path, spec, said):
    path = tmp_path / "some_modes.py"
    path.write_text(USER_MODE)
    with pytest.raises(UserError, match=said):
        modes.make(spec.format(path), ModeOptions())


def test_an_installed_package_adds_a_mode_through_its_entry_point(monkeypatch):
    class Extra(Mode):
        name = "extra"

    class Entry:
        name = "extra"

        @staticmethod
        def load():
            return Extra

    monkeypatch.setattr(
        "importlib.metadata.entry_points", lambda group: [Entry] if group == "anomprof.modes" else []
    )
    assert isinstance(modes.make("extra", ModeOptions()), Extra)


def test_the_profiler_s_chatter_does_not_reach_the_terminal(bench, capfd):
    end_of_turn(bench, modes.make("profiler", ModeOptions()))
    evidence(bench, "baseline")
    assert capfd.readouterr().err == ""


def test_what_a_profiling_mode_does_besides_is_profiled_without_its_profiler(bench):
    alone = modes.make("profiler", ModeOptions())
    both = modes.make("profiler+anomaly", ModeOptions())
    assert gather(bench, "profiler", alone, ("baseline", "profiler"), 2).profiled_as == "baseline"
    planned = ("baseline", "anomaly", "profiler+anomaly")
    assert gather(bench, "profiler+anomaly", both, planned, 2).profiled_as == "anomaly"
    found = gather(bench, "profiler+anomaly", both, ("baseline", "profiler+anomaly"), 2)
    assert found.profiled_as is None
    assert any(reading.quantity == "peak_bytes" for reading in found.readings)
