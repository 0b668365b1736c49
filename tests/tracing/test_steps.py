"""What a step is in somebody else's loop, from hand-made orders of events."""

import torch

from anomprof.tracing.steps import Moment, Steps


def optimizer():
    return torch.optim.SGD([torch.zeros(1, requires_grad=True)], lr=0.1)


def moment(counts=(), backwards=0, gradients=0, gap="", pattern=()):
    return Moment(counts, backwards, gradients, 0, gap, pattern)


def step_after(*runs, then_forward=False, accumulates=True):
    """The step in which a loop without optimizer is, once these lines have run the engine."""
    steps = Steps()
    for line in runs:
        steps.begin_forward()
        steps.end_backward(line, accumulates=accumulates)
    if then_forward:
        steps.begin_forward()
    return steps.now().step(0)


def test_without_an_optimizer_steps_are_backwards():
    assert step_after() == 0
    assert step_after("a", "a", "a", then_forward=True) == 3
    assert step_after("a", "a", "a") == 2  # what follows a backward belongs to its step


def test_without_any_backward_steps_are_calls_of_grad():
    assert step_after("a", "a", then_forward=True, accumulates=False) == 2


def test_without_an_optimizer_several_lines_that_run_the_engine_are_one_step():
    assert step_after("a", "b", "a", "b", then_forward=True) == 2
    assert step_after("a", "b", "a", "b", "a", then_forward=True) == 2  # b is still to come
    assert step_after("a", "b", "b", "a", "b", "b") == 1


def test_before_the_first_step_of_an_optimizer_all_backwards_belong_to_step_0():
    assert moment(backwards=3).step(1) == 0


def test_one_optimizer_counts_its_steps():
    assert moment((2,), backwards=4).step(1) == 2
    assert moment((2,), gap="step").step(1) == 1  # the schedule, an average: still the step that has ended


def test_a_gan_counts_iterations_not_optimizer_steps():
    # d g d g | d: in the third iteration, the critic has stepped, the generator has not.
    assert moment((3, 2), pattern=(0, 1, 0, 1, 0)).step(2) == 2
    # d g d g |: the third iteration begins with the critic.
    assert moment((2, 2), pattern=(0, 1, 0, 1)).step(2) == 2


def test_a_generator_that_steps_every_third_iteration_does_not_hold_the_count_back():
    # d g d d d g d d: eighth... the critic has stepped 6 times, the generator at 1 and 4; next at 7.
    pattern = (0, 1, 0, 0, 0, 1, 0, 0)
    assert moment((6, 2), pattern=pattern).step(2) == 6


def test_an_inner_loop_of_critic_steps_counts_as_one_iteration():
    # for: (for: d d d) g -- the critic's line lies in two loops, the generator's in one.
    assert moment((7, 2), pattern=(0, 0, 0, 1, 0, 0, 0, 1, 0)).step(2, levels=(2, 1)) == 2


def test_gradients_that_are_dropped_unused_count_as_a_step_left_out():
    steps, own = Steps(), optimizer()
    steps.add_optimizer(own)
    steps.end_backward("line", accumulates=True)
    steps.end_step(own)
    steps.clear_gradients()
    assert steps.now().counts == (1,)
    steps.end_backward("line", accumulates=True)
    steps.clear_gradients()
    assert steps.now().counts == (2,)
    other = optimizer()  # with two, the gradients may have been a by-product of the other's
    steps.add_optimizer(other)
    steps.end_backward("line", accumulates=True)
    steps.clear_gradients()
    assert steps.now().counts == (2,)


def test_accumulation_does_not_count_as_steps_left_out():
    steps, own = Steps(), optimizer()
    for _ in range(4):
        steps.end_backward("line", accumulates=True)
    steps.end_step(own)
    steps.clear_gradients()
    assert steps.now().counts == (1,)


def test_each_optimizer_is_counted_by_itself():
    steps, a, b = Steps(), optimizer(), optimizer()
    for which in (a, b, a):
        steps.end_step(which)
    assert steps.now().counts == (2, 1)
    assert (steps.taken_by(a), steps.taken_by(b), steps.count()) == (2, 1, 2)


def test_older_optimizers_that_never_step_do_not_hold_the_count_back():
    steps, old, unused, own = Steps(), optimizer(), optimizer(), optimizer()
    steps.add_optimizer(old, is_older=True)
    steps.add_optimizer(unused, is_older=True)
    assert steps.optimizers_made() == 1
    steps.add_optimizer(own)
    steps.end_step(own)
    steps.begin_forward()
    assert steps.now().step(steps.optimizers_made()) == 1
