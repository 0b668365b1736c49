import pytest
import torch

from anomprof.tracing.contents import contents, is_finite, of_number, tensors_in

NAN, INF = float("nan"), float("inf")


def test_contents_are_counted():
    held = contents(torch.tensor([[1.0, NAN, INF], [-INF, -2.0, INF]]))
    assert (held.nan, held.plus_inf, held.minus_inf, held.numel) == (1, 2, 1, 6)
    assert (held.low, held.high) == (-INF, INF)  # NaN apart
    assert held.is_bad
    assert held.summary().inf == 3


def test_an_empty_tensor_holds_nothing_bad():
    held = contents(torch.zeros(0, 3))
    assert (held.is_bad, held.low, held.high) == (False, None, None)


@pytest.mark.parametrize(
    "dtype", [torch.float32, torch.float64, torch.float16, torch.bfloat16, torch.complex64]
)
@pytest.mark.parametrize(("value", "finite"), [(1.5, True), (NAN, False), (INF, False), (-INF, False)])
def test_one_look_tells_finite_from_bad(dtype, value, finite):
    tensor = torch.ones(100, dtype=dtype)
    tensor[57] = value
    assert is_finite(tensor) is finite
    assert contents(tensor).is_bad is not finite


def test_a_half_precision_sum_does_not_overflow():
    assert is_finite(torch.full((1000,), 60000.0, dtype=torch.float16))


def test_a_sum_that_overflows_asks_for_a_thorough_look():
    large = torch.full((10,), 3e38)
    assert not is_finite(large)
    assert not contents(large).is_bad


@pytest.mark.parametrize("layout", ["coo", "csr", "float8"])
def test_unusual_tensors_are_counted_too(layout):
    dense = torch.tensor([[0.0, NAN], [1.0, 0.0]])
    tensor = {
        "coo": dense.to_sparse,
        "csr": dense.to_sparse_csr,
        "float8": lambda: dense.to(torch.float8_e5m2),
    }[layout]()
    assert contents(tensor).nan == 1


def test_looking_at_a_tensor_does_not_count_as_a_call_of_the_users_function_mode():
    from torch.overrides import TorchFunctionMode

    calls = []

    class Log(TorchFunctionMode):
        def __torch_function__(self, func, types, args=(), kwargs=None):
            calls.append(func)
            return func(*args, **(kwargs or {}))

    tensor = torch.tensor([1.0, NAN])
    with Log():
        is_finite(tensor)
        contents(tensor)
    assert calls == []


def test_tensors_are_found_in_nested_containers():
    a, b = torch.ones(1), torch.zeros(1)
    assert [t is a or t is b for t in tensors_in({"x": [a, (b, 3)], "y": None})] == [True, True]


@pytest.mark.parametrize(
    ("value", "counts"), [(0.0, (0, 0, 0)), (NAN, (1, 0, 0)), (INF, (0, 1, 0)), (-INF, (0, 0, 1))]
)
def test_a_plain_number_is_told_as_a_tensor_is(value, counts):
    held = of_number(value)
    assert (held.nan, held.plus_inf, held.minus_inf) == counts
    assert (held.shape, held.dtype) == ((), "number")
