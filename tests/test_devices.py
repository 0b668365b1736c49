import pytest
import torch

from anomprof.devices import check_dtype, resolve
from anomprof.errors import UserError


def test_auto_takes_a_gpu_only_where_there_is_one(monkeypatch):
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    assert resolve("auto") == torch.device("cpu")
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    assert resolve("auto") == torch.device("cuda")


@pytest.mark.parametrize(
    ("text", "code", "said"),
    [("gpu", 2, "unknown device"), ("meta", 2, "not supported"), ("cuda:7", 3, "CUDA device")],
)
def test_a_device_that_cannot_be_used_is_one_sentence(text, code, said):
    with pytest.raises(UserError, match=said) as caught:
        resolve(text)
    assert caught.value.exit_code == code


def test_only_dtypes_that_can_be_trained_are_taken():
    assert check_dtype("bfloat16") == "bfloat16"
    with pytest.raises(UserError, match="give one of float32"):
        check_dtype("int8")
