"""CRC-32C, computed with the CPU's instruction: the checksum of record batches and snapshots."""

from collections.abc import Callable
from importlib.machinery import PathFinder
from importlib.util import find_spec, module_from_spec

from ottla.base.ports import Buffer


def _load() -> Callable[[Buffer], int]:
    """Load the `crc32c` package without its `__init__`, whose imports would add 45 ms to the start of a node."""
    package = find_spec("crc32c")
    inner = package and PathFinder.find_spec("crc32c._crc32c", package.submodule_search_locations)
    if inner is not None and inner.loader is not None:
        module = module_from_spec(inner)
        inner.loader.exec_module(module)
        function: Callable[[Buffer], int] = module.crc32c
        return function
    from crc32c import crc32c as from_package

    fallback: Callable[[Buffer], int] = from_package
    return fallback


crc32c = _load()
"""`crc32c(buffer) -> int`: 0.12 µs for 149 bytes, 46 µs for 1 MB. It releases the GIL for buffers of 32 KiB and
more."""
