"""LLVM's code is in memory while kernels are loaded or compiled, and not afterwards.

In the flow: `KernelCache` has a kernel loaded or compiled → **`give_back`**. LLVM runs at no other time, and yet 50 to
80 MB of its code would stay resident: it is touched in many places, and Linux maps large pages of a file as a whole.
"""

from __future__ import annotations

import ctypes
import mmap
import sys
from contextlib import suppress
from functools import cache
from typing import Any, Final

_LIBRARY: Final = "/libllvmlite.so"


def give_back() -> None:
    """Unmap LLVM's code, on Linux; what runs of it later, or at this moment, is mapped again from the file's cache.

    That takes a third of a millisecond for a kernel. Refused where the process has locked its memory: it stays so.
    """
    if sys.platform == "linux":
        for start, size in code():
            _madvise()(ctypes.c_void_p(start), ctypes.c_size_t(size), mmap.MADV_DONTNEED)


@cache
def code() -> tuple[tuple[int, int], ...]:
    """Where the library's code is in memory, and its size. Never its data: some were written when it was loaded, and
    would be lost; code is as it is in the file, but for breakpoints that a debugger sets in it."""
    found = []
    with suppress(OSError), open("/proc/self/maps") as lines:
        for line in lines:
            where, rights, *_ = line.split()
            if rights == "r-xp" and line.endswith(f"{_LIBRARY}\n"):
                start, end = (int(each, 16) for each in where.split("-"))
                found.append((start, end - start))
    return tuple(found)


@cache
def _madvise() -> Any:
    return ctypes.CDLL(None).madvise
