"""The only file that touches private names of torch.

Everything that torch offers without a promise passes through here, so that a new version of torch
breaks one file.
"""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from types import CodeType, FunctionType, ModuleType
from typing import Any

import torch
import torch.autograd.graph
from torch import nn
from torch.multiprocessing.reductions import StorageWeakRef
from torch.utils._python_dispatch import TorchDispatchMode, _disable_current_modes
from torch.utils.data._utils.fetch import _MapDatasetFetcher
from torch.utils.data.dataloader import _BaseDataLoaderIter

#: Base class of modes that see every op below autograd. (torch gives it no types.)
DispatchMode: Any = TorchDispatchMode


def op_name(function: object) -> str:
    """Returns ``aten::add`` for the overload object that a dispatch mode is given."""
    schema = getattr(function, "_schema", None)
    return schema.name if schema is not None else str(function)


def compiled_graph_counts() -> Mapping[str, int]:
    """Returns how many graphs torch.compile has captured in this process, and the ops in them."""
    if "torch._dynamo" not in sys.modules:  # nothing was compiled; importing it takes seconds
        return {"unique_graphs": 0, "calls_captured": 0}
    import torch._dynamo.utils

    stats = torch._dynamo.utils.counters["stats"]
    return {"unique_graphs": int(stats["unique_graphs"]), "calls_captured": int(stats["calls_captured"])}


_autograd: Any = torch.autograd


def current_node() -> Any:
    """Returns the autograd node that is running on this thread, or None."""
    return torch._C._current_autograd_node()


#: Number that the next autograd node made on this thread will get. An op that makes a node finds it already
#: counted when it is dispatched: what this returns there, minus one, is the node's own number.
next_sequence_number: Callable[[], int] = _autograd._get_sequence_nr


#: Under what names nodes save what their forward op returned.
_SAVED_RESULTS = ("_saved_result", "_saved_result0", "_saved_output", "_saved_inverse", "_saved_solution")


def keeps_result(node: Any) -> bool:
    """Returns whether an autograd node saves what its forward op returned, to compute with it in backward."""
    kind = type(node)  # asking the node itself would unpack it, and run the user's hooks for saved tensors
    return any(hasattr(kind, name) for name in _SAVED_RESULTS)


def sequence_number(node: Any) -> int:
    """Returns the number that an autograd node was given when it was made, counted per thread."""
    return int(node._sequence_nr())


#: torch gives it no types.
_WeakReference: Any = StorageWeakRef


class StorageReference:
    """Knows whether a tensor's memory is still in use, and keeps its address from being given out again.

    Attributes:
        key: As :func:`storage_key` gives it.
    """

    def __init__(self, tensor: torch.Tensor) -> None:
        storage = tensor.untyped_storage()
        self.key = int(storage._cdata)
        self._reference: Any = _WeakReference(storage)

    @property
    def is_freed(self) -> bool:
        """Whether nobody uses the memory any more."""
        return bool(self._reference.expired())


def storage_key(tensor: torch.Tensor) -> int:
    """Returns the address that tensors sharing memory have in common (not of the memory itself)."""
    return int(tensor.untyped_storage()._cdata)


def is_accelerator(tensor: torch.Tensor) -> bool:
    """Whether the host has to wait for a device to read a tensor."""
    return tensor.device.type not in ("cpu", "meta")


def memory_is_filled_by(tensor: torch.Tensor) -> bool:
    """Whether a tensor takes up all of its memory."""
    return tensor.nbytes >= tensor.untyped_storage().nbytes()


def without_transforms(tensor: torch.Tensor) -> torch.Tensor:
    """Returns the plain tensor inside those that vmap and grad of torch.func hand to user code."""
    while torch._C._functorch.is_functorch_wrapped_tensor(tensor):
        tensor = torch._C._functorch.get_unwrapped(tensor)
    return tensor


def inside_transforms() -> bool:
    """Whether a transform of torch.func (vmap, grad) is running on this thread."""
    return torch._C._functorch.peek_interpreter_stack() is not None


def functions_are_overridden() -> bool:
    """Whether a torch function mode (the user's, or a default device) is on."""
    return bool(torch._C._is_torch_function_mode_enabled())


def without_overrides() -> Any:
    """Returns a context in which calls of torch do not pass through function modes."""
    return torch._C.DisableTorchFunction()


def innermost_function_mode() -> Any:
    """Returns the torch function mode that was entered last on this thread, or None."""
    size = torch._C._len_torch_function_stack()
    return torch._C._get_function_stack_at(size - 1) if size else None


def push_function_mode(mode: Any) -> None:
    """Puts a torch function mode on, as ``with`` would, in a third of the time."""
    torch._C._push_on_torch_function_stack(mode)


def pop_function_mode() -> Any:
    """Takes the innermost torch function mode off and returns it."""
    return torch._C._pop_torch_function_stack()


def is_capturing() -> bool:
    """Whether torch is capturing a graph on this thread: nothing has a value there."""
    keys = torch._C._TorchDispatchModeKey
    return any(
        torch._C._get_dispatch_mode(key) is not None for key in (keys.FAKE, keys.PROXY, keys.FUNCTIONAL)
    )


def without_user_modes() -> Any:
    """Returns a context without the dispatch modes that are on; others may be entered in it."""
    return _disable_current_modes()


@contextlib.contextmanager
def without_user_functions() -> Iterator[None]:
    """A context without the function modes that are on, except torch's own (a default device)."""
    popped = []
    while (mode := innermost_function_mode()) is not None:
        popped.append(pop_function_mode())
    for mode in reversed(popped):
        if type(mode).__module__.startswith("torch."):
            push_function_mode(mode)
    try:
        yield
    finally:
        while innermost_function_mode() is not None:
            pop_function_mode()
        for mode in reversed(popped):
            push_function_mode(mode)


def norms_of_all(tensors: list[torch.Tensor], dtype: torch.dtype | None) -> list[torch.Tensor]:
    """Returns the 2-norms of tensors of one device and type, from one fused call where the device has it."""
    return list(torch._foreach_norm(tensors, 2, dtype=dtype))


def copy_all(targets: list[torch.Tensor], sources: list[torch.Tensor]) -> None:
    """Copies each source into its target."""
    torch._foreach_copy_(targets, sources)


def set_versions(versions: list[tuple[torch.Tensor, int]]) -> None:
    """Sets how often each of several tensors counts as written."""
    torch._C._autograd._unsafe_set_version_counter(
        tuple(tensor for tensor, _ in versions), tuple(version for _, version in versions)
    )


def without_compiled_code() -> Any:
    """Returns a context in which compiled functions run as they were written, and stay compiled."""
    if "torch._dynamo" not in sys.modules:
        return contextlib.nullcontext()
    return torch.compiler.set_stance("force_eager")


def let_compiler_pass(call: Any) -> Any:
    """Makes torch.compile take a replacement of ``Module.__call__`` for torch's own, and returns what it was.

    The compiler goes straight to ``forward`` where a module's call is the one it knows: so nothing of ours
    becomes part of a graph. Where the compiler is not loaded yet it will know the replacement by itself.
    """
    known = None
    for name in ("torch._dynamo.utils", "torch._dynamo.variables.nn_module"):
        module = sys.modules.get(name)
        if module is not None and hasattr(module, "unpatched_nn_module_call"):
            known = getattr(module, "unpatched_nn_module_call")  # noqa: B009  (torch gives it no type)
            setattr(module, "unpatched_nn_module_call", call)  # noqa: B010
    return known


#: Functions of torch.func that run a function of the user's on tensors of their own kind: where they are
#: looked up, and under which name.
_TRANSFORMS = (
    ("torch._functorch.apis", "vmap_impl"),
    ("torch._functorch.vmap", "vmap_impl"),
    ("torch._functorch.eager_transforms", "grad_impl"),
    ("torch._functorch.apis", "grad_impl"),
    ("torch._functorch.eager_transforms", "grad_and_value_impl"),
    ("torch._functorch.apis", "grad_and_value_impl"),
)


def transforms() -> Iterator[tuple[Any, str]]:
    """Yields the modules and names of torch.func's transforms, as far as this version of torch has them."""
    for home, name in _TRANSFORMS:
        module = sys.modules.get(home)
        if module is not None and hasattr(module, name):
            yield module, name


def modes_entered() -> int:
    """Returns how many dispatch modes are on, on this thread."""
    return int(torch._C._len_torch_dispatch_stack())


#: Where the call that runs the autograd engine is looked up by ``backward`` and ``grad``.
ENGINE_CALL = (torch.autograd, "_engine_run_backward")
ENGINE_CODE = torch.autograd.graph._engine_run_backward.__code__

#: The iterator behind every data loader: what it fetches comes from outside.
LOADER_ITERATOR: Any = _BaseDataLoaderIter

#: Makes the samples of a batch by their indices.
LOADER_FETCHER: Any = _MapDatasetFetcher


def call_of(module: nn.Module) -> Callable[..., Any]:
    """Returns what torch's own ``Module.__call__`` would go on with: our frame can stand in for its frame."""
    compiled: Callable[..., Any] | None = module._compiled_call_impl
    return module._call_impl if compiled is None else compiled


#: Whether that is known of this version of torch.
CALL_IS_KNOWN = nn.Module.__call__ is nn.Module._wrapped_call_impl and hasattr(
    nn.Module, "_compiled_call_impl"
)


def without_modes() -> Any:
    """Returns a context in which ops do not pass through dispatch modes."""
    return torch._C._DisableTorchDispatch()


def keep_compiler_away(modules: Iterable[ModuleType]) -> None:
    """Tells torch.compile never to compile functions of these modules, at no cost when they are called.

    A dispatch mode keeps the compiler away from what runs below it, but not from its own handler.
    """
    frames = torch._C._dynamo.eval_frame
    skip, ordinary = frames._FrameAction.SKIP, frames._FrameAction.DEFAULT
    for module in modules:
        for code in _codes(vars(module).values(), module.__name__):
            # What a handler calls is not to be compiled either; what a wrapped call calls may be.
            below = skip if code.co_name == "__torch_dispatch__" else ordinary
            frames.set_code_exec_strategy(code, frames._FrameExecStrategy(skip, below))


def _codes(values: Iterable[object], module: str) -> Iterator[CodeType]:
    for value in values:
        if isinstance(value, (staticmethod, classmethod)):
            value = value.__func__
        if isinstance(value, property):
            value = value.fget
        if isinstance(value, type) and value.__module__ == module:
            yield from _codes(vars(value).values(), module)
        elif isinstance(value, FunctionType) and value.__module__ == module:
            todo = [value.__code__]
            while todo:
                code = todo.pop()
                yield code
                todo.extend(inner for inner in code.co_consts if isinstance(inner, CodeType))


def consists_of_others(kind: type) -> bool:
    """Whether a class of tensors has a handler that turns each op into ops on the tensors inside.

    torch's own stand-ins for tensors without values are left to their modes.
    """
    handler = getattr(kind, "__torch_dispatch__", None)
    is_disabled = handler is torch._C._disabled_torch_dispatch_impl
    return handler is not None and not is_disabled and not kind.__module__.startswith("torch._subclasses")


def is_innermost(mode: Any) -> bool:
    """Whether a dispatch mode is the one entered last, so that leaving takes off this one and no other."""
    size = modes_entered()
    return size > 0 and torch._C._get_dispatch_stack_at(size - 1) is mode
