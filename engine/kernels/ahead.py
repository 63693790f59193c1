"""`python -m oxiseq.engine.kernels.ahead`: the sequence kernels compiled into Numba's cache, by a process of its own.

Where it stands: a first run compiles the match kernel while this goes on (oxiseq.warmup starts it and waits for what
it needs). All that these kernels take are addresses and numbers, so they can be compiled before they are called.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable
from typing import Any, Final

from numba import types

from oxiseq.engine.kernels import sequence

KERNELS: Final[tuple[Callable[..., Any], ...]] = (sequence.advance, sequence.measure)
"""In the order in which they are compiled; all parameters are int64."""


def compile_all() -> None:
    """Compile what is not in the cache."""
    for kernel in KERNELS:
        dispatcher: Any = kernel
        dispatcher.compile((types.int64,) * dispatcher.py_func.__code__.co_argcount)


def main() -> None:
    """Compile, unless the process that has started this one ends before: it holds the other end of stdin."""
    threading.Thread(target=_end_with_starter, daemon=True).start()
    compile_all()


def _end_with_starter() -> None:
    while os.read(0, 1):
        pass
    os._exit(1)


if __name__ == "__main__":
    main()
