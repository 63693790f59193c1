"""Settings of the C library's allocator for many threads that each need memory for a moment.

glibc gives each thread an arena, and keeps there what is freed: with 80 threads that each once read a large body, all
these bodies stay resident.
"""

from __future__ import annotations

import ctypes
from typing import Final

_ARENA_MAX: Final = -8
_MMAP_THRESHOLD: Final = -3
_TRIM_THRESHOLD: Final = -1
_ARENAS: Final = 4
_LARGE: Final = 1 << 20
"""Bytes from which memory goes back to the system when it is freed; fixed, else glibc raises it up to 32 MiB."""


def share_arenas() -> None:
    """Let all threads share a few arenas, and return what is large. To be called before threads begin; nothing where
    the C library is another."""
    try:
        mallopt = ctypes.CDLL(None).mallopt
    except (OSError, AttributeError, TypeError):  # musl, macOS, Windows
        return
    for parameter, value in ((_ARENA_MAX, _ARENAS), (_MMAP_THRESHOLD, _LARGE), (_TRIM_THRESHOLD, 4 * _LARGE)):
        mallopt(parameter, value)
