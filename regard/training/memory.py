"""Freed memory is kept for the next tensor instead of being given back to the system.

A training or decoding step allocates and frees the same few hundred tensors again and again. glibc returns the large
ones to the kernel each time, and every page of the next one is a fault: a sixth of a small model's training step.
"""

import ctypes
import sys

_TRIM_THRESHOLD, _MMAP_THRESHOLD = -1, -3  # names of glibc's mallopt
_KEEP, _LARGEST = 2**31 - 1, 32 * 2**20


def keep_freed_memory() -> None:
    """Where the C library is glibc; elsewhere this does nothing."""
    if not sys.platform.startswith("linux"):
        return
    try:
        mallopt = ctypes.CDLL("libc.so.6").mallopt
    except (OSError, AttributeError):
        return
    mallopt(_MMAP_THRESHOLD, _LARGEST)
    mallopt(_TRIM_THRESHOLD, _KEEP)
