"""What can be measured: built-in models, models of torchvision and timm, and the user's own."""

from __future__ import annotations

from typing import NamedTuple

from anomprof.errors import COULD_NOT_MEASURE, UserError
from anomprof.names import closest
from anomprof.workload import Workload
from anomprof.workloads.builtin import BUILT_IN
from anomprof.workloads.external import PACKAGES, build_external, unavailable_reason
from anomprof.workloads.factory import build_from_file
from anomprof.workloads.options import WorkloadOptions

__all__ = ["Listing", "WorkloadOptions", "available", "build", "takes_any_image_size"]

# How torch's allocators begin what they say when a size is out of reach; on a CPU it is a plain RuntimeError.
_OUT_OF_MEMORY = (
    "not enough memory",
    "can't allocate memory",
    "out of memory",
    "Storage size calculation overflowed",
    "numel: integer multiplication overflow",
    "invalid tensor size",
)


class Listing(NamedTuple):
    """One line of ``anomprof list``."""

    name: str
    description: str
    unavailable_reason: str | None = None


def available() -> list[Listing]:
    """Lists what :func:`build` understands."""
    listings = [
        Listing(name, f"{entry.description} ({entry.parameters:,} parameters)")
        for name, entry in BUILT_IN.items()
    ]
    for package in PACKAGES:
        listings.append(Listing(f"{package}:NAME", f"a classifier of {package}", unavailable_reason(package)))
    listings.append(Listing("file.py:factory", "your own: a function that returns an anomprof.Workload"))
    return listings


def takes_any_image_size(spec: str) -> bool:
    """Whether ``spec`` is a built-in workload for pictures of any size."""
    return spec in BUILT_IN and BUILT_IN[spec].any_image_size


def build(spec: str, options: WorkloadOptions) -> Workload:
    """Builds a workload.

    The same spec and options give the same weights and batches every time. Torch's global random
    state is seeded on the way.

    Args:
        spec: A built-in name, ``torchvision:NAME``, ``timm:NAME`` or ``file.py:factory``.
        options: What the user chose.

    Raises:
        UserError: The workload is unknown, an option does not suit it, or it does not fit into memory.
    """
    try:
        return _build(spec, options)
    except (RuntimeError, MemoryError) as error:
        if not isinstance(error, MemoryError) and not any(words in str(error) for words in _OUT_OF_MEMORY):
            raise
        raise UserError(
            f"{spec} does not fit into the memory of {options.device}; choose a smaller --batch-size, "
            "or smaller pictures or sequences",
            COULD_NOT_MEASURE,
        ) from error


def _build(spec: str, options: WorkloadOptions) -> Workload:
    entry = BUILT_IN.get(spec)
    if entry is not None:
        return entry.make(options)
    package, separator, name = spec.partition(":")
    if separator and package in PACKAGES:
        return build_external(package, name, options)
    if ".py" in spec:
        return build_from_file(spec, options)
    known = [listing.name for listing in available()]
    raise UserError(f"no workload is called {spec!r}{closest(spec, BUILT_IN)}; known are {', '.join(known)}")
