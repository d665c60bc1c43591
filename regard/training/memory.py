"""Freed memory is kept for the next tensor instead of being given back to the system.

A training or decoding step allocates and frees the same few hundred tensors again and again. glibc returns the large
ones to the kernel each time, and every page of the next one is a fault: a sixth of a small model's training step.

But no two batches are of the same shape, and what is kept falls into pieces that fit none: the memory of an hour's
training would grow threefold. So the loop gives back what is free once in a while.
"""

import ctypes
import sys
from functools import cache
from typing import Any

_TRIM_THRESHOLD, _MMAP_THRESHOLD = -1, -3  # names of glibc's mallopt
_KEEP, _LARGEST = 2**31 - 1, 32 * 2**20


def keep_freed_memory() -> None:
    """Where the C library is glibc; elsewhere this does nothing."""
    if library := _glibc():
        library.mallopt(_MMAP_THRESHOLD, _LARGEST)
        library.mallopt(_TRIM_THRESHOLD, _KEEP)


def give_back_freed_memory() -> None:
    """All that is free now, to the system; likewise."""
    if library := _glibc():
        library.malloc_trim(0)


@cache
def _glibc() -> Any:
    if not sys.platform.startswith("linux"):
        return None
    try:
        library = ctypes.CDLL("libc.so.6")
    except OSError:
        return None
    return library if hasattr(library, "mallopt") and hasattr(library, "malloc_trim") else None
