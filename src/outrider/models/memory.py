"""Memory that was freed and is still ours: giving it back to the system after weights are packed."""

import ctypes
import sys


def give_back_freed_memory() -> None:
    """Ask glibc to return free pages; packing leaves holes between tensors as large as the weights themselves."""
    if sys.platform == "linux":
        trim = getattr(ctypes.CDLL(None), "malloc_trim", None)  # absent from musl
        if trim is not None:
            trim(0)
