import random

import numpy as np
import pytest
import torch

from anomprof.replay import RandomState, Snapshot, digest, state_tensors
from tests import tiny


def step(workload):
    workload.optimizer.zero_grad()
    loss = workload.loss(workload.model, workload.batches[0])
    loss.backward()
    workload.optimizer.step()
    return loss.detach().clone()


OPTIMIZERS = {
    "sgd": lambda parameters: torch.optim.SGD(parameters, lr=0.1),
    "momentum": lambda parameters: torch.optim.SGD(parameters, lr=0.1, momentum=0.9),
    "adamw": lambda parameters: torch.optim.AdamW(parameters),
    "adamw fused": lambda parameters: torch.optim.AdamW(parameters, fused=True),
    "adam capturable lr": lambda parameters: torch.optim.Adam(parameters, lr=torch.tensor(0.01)),
    "rmsprop": lambda parameters: torch.optim.RMSprop(parameters),
    "adagrad": lambda parameters: torch.optim.Adagrad(parameters),
    "lbfgs-like state": lambda parameters: torch.optim.Rprop(parameters),
}


@pytest.mark.parametrize("name", OPTIMIZERS)
@pytest.mark.parametrize("taken_before", [0, 2])
def test_restored_training_repeats_bitwise(name, taken_before):
    workload = tiny.make()
    workload.optimizer = OPTIMIZERS[name](workload.model.parameters())
    for _ in range(taken_before):
        step(workload)
    snapshot = Snapshot(workload.model, workload.optimizer)

    def turn():
        losses = [step(workload) for _ in range(3)]
        return losses, digest(state_tensors(workload.model))

    first_losses, first_digest = turn()
    snapshot.restore()
    again_losses, again_digest = turn()
    assert again_digest == first_digest
    assert all(torch.equal(a, b) for a, b in zip(first_losses, again_losses, strict=True))


def test_restoring_keeps_every_tensor_where_it_is():
    workload = tiny.make()
    step(workload)
    snapshot = Snapshot(workload.model, workload.optimizer)
    moments = [state["exp_avg"] for state in workload.optimizer.state.values()]
    before = [tensor.data_ptr() for tensor in [*state_tensors(workload.model), *moments]]
    step(workload)
    snapshot.restore()
    moments = [state["exp_avg"] for state in workload.optimizer.state.values()]
    assert [tensor.data_ptr() for tensor in [*state_tensors(workload.model), *moments]] == before


def test_restoring_drops_gradients_and_resets_train_switches():
    workload = tiny.make()
    snapshot = Snapshot(workload.model, workload.optimizer)
    step(workload)
    workload.model.norm.eval()
    snapshot.restore()
    assert all(parameter.grad is None for parameter in workload.model.parameters())
    assert workload.model.norm.training


def test_random_generators_of_python_numpy_and_torch_come_back():
    state = RandomState.take()
    first = (random.random(), np.random.rand(), torch.rand(1).item())
    state.restore()
    assert (random.random(), np.random.rand(), torch.rand(1).item()) == first


def test_a_digest_sees_one_flipped_bit():
    values = torch.ones(1000)
    before = digest([values])
    values.view(torch.int32)[500] ^= 1
    assert digest([values]) != before


def test_a_digest_tells_minus_zero_dtype_and_shape_apart():
    digests = {
        digest([torch.zeros(4)]),
        digest([-torch.zeros(4)]),
        digest([torch.zeros(4, dtype=torch.bfloat16)]),
        digest([torch.zeros(2, 2)]),
    }
    assert len(digests) == 4


def test_a_digest_reads_scalars_complex_and_noncontiguous_tensors():
    plain = torch.arange(6.0).reshape(2, 3)
    assert digest([plain.t()]) == digest([plain.t().contiguous()])
    assert digest([torch.tensor(1.0), torch.ones(2, dtype=torch.complex64)])


def test_the_size_counts_parameters_buffers_and_moments():
    workload = tiny.make()
    step(workload)
    # Parameters: 8*16+16 + 16+16 + 16*16+16 + 16*2+2 = 482 floats. Buffers: 16 + 16 floats and one
    # int64. AdamW: two moments for each parameter and one float32 step for each of 8 tensors.
    expected = 482 * 4 + 32 * 4 + 8 + 2 * 482 * 4 + 8 * 4
    assert Snapshot(workload.model, workload.optimizer).nbytes == expected
