"""Paths of files: whether two of them mean the same place."""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path


def overlap(one: Path, other: Path) -> bool:
    """Whether a path is the other one, or lies below or above it, wherever links, `..` and the working folder lead. Two
    names of one file (hard links, upper and lower case where the disk does not tell them apart) are one."""
    first, second = one.resolve(), other.resolve()
    return _within(first, second) or _within(second, first)


def _within(inner: Path, outer: Path) -> bool:
    if outer == inner or outer in inner.parents:
        return True
    for each in (inner, *inner.parents):
        with suppress(OSError):  # it does not exist
            if os.path.samefile(each, outer):
                return True
    return False
