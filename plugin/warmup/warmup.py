"""Compiling the kernels ahead of the first query.

Numba compiles a kernel when it is first called and keeps the result on disk. `warm_up` compiles each of them for the
types that it is called with, in two processes; what the package brings compiled is not compiled again.
"""

from __future__ import annotations

from collections.abc import Callable
from time import perf_counter

from oxiseq.engine.kernels.ahead import compile_all
from oxiseq.engine.kernels.signatures import names
from oxiseq.warmup.first_run import end, note_warm, start


def warm_up(tell: Callable[[int, int], object] = lambda done, count: None) -> float:
    """Compile every kernel that is not compiled yet; returns the seconds that it took.

    `tell` is called before each kernel: how many are done, and how many there are. Another process begins with the last
    one; each finds what the other has compiled.
    """
    begun = perf_counter()
    every = names()
    other = start(reversed(every))
    compile_all(every, lambda name: tell(every.index(name), len(every)))
    if other is not None:
        end(other)
    note_warm()
    return perf_counter() - begun
