import torch

from anomprof.instruments.observer import Observer


def test_ops_are_counted_by_phase_and_precision():
    weight = torch.ones(2, 2, requires_grad=True)
    with Observer() as observer:
        with torch.autocast("cpu", dtype=torch.bfloat16):
            loss = (weight @ weight).sum()
        observer.graph(loss)
        loss.backward()
        observer.backward_done()
        with torch.no_grad():
            weight.add_(1)
    assert observer.of_phase("forward")["aten::mm"] == 1
    assert observer.of_phase("backward")["aten::mm"] == 2  # one for each factor
    assert observer.of_phase("optimizer")["aten::add_"] == 1
    assert "aten::add_" not in observer.of_phase("forward")
    assert observer.float_outputs["torch.bfloat16"] > 0


def test_nodes_are_counted_once_and_stacks_only_under_anomaly_mode():
    x = torch.ones(1, requires_grad=True)
    # Nodes: AccumulateGrad, Mul, Add (which reaches Mul twice).
    observer = Observer()
    y = x * 2
    observer.graph(y + y)
    assert (observer.nodes, observer.nodes_with_stack) == (3, 0)
    with torch.autograd.set_detect_anomaly(True):
        y = x * 2
        z = y + y
    observer = Observer()
    observer.graph(z)
    # AccumulateGrad was made before anomaly mode was on or carries no stack of its own.
    assert observer.nodes_with_stack >= 2
