"""Forward ops behind autograd nodes, by number."""

from types import SimpleNamespace

from anomprof.tracing.backward import ForwardSites


def node(number):
    return SimpleNamespace(_sequence_nr=lambda: number)


def test_the_first_op_under_a_number_is_the_node_s():
    sites = ForwardSites()
    sites.add(5, ("mul", (), None))
    sites.add(5, ("neighbour", (), None))
    assert sites.of_node(node(5))[0] == "mul"
    assert sites.of_node(node(6)) is None


def test_nodes_of_the_engine_s_own_thread_are_told_from_older_ones_of_the_same_number():
    sites = ForwardSites()
    sites.add(7, ("of step 0", (), None))
    sites.begin_step(100)
    sites.add(107, ("of step 1", (), None))
    sites.add(7, ("recomputed", (), None), on_engine_thread=True)
    sites.add(107, ("recomputed later", (), None), on_engine_thread=True)
    assert sites.of_node(node(7))[0] == "recomputed"
    assert sites.of_node(node(107))[0] == "of step 1"


def test_nodes_that_accumulate_gradients_have_no_number():
    sites = ForwardSites()
    sites.add(2**64 - 1, ("nothing", (), None))
    assert sites.of_node(node(2**64 - 1)) is None
