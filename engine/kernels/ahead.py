"""`python -m oxiseq.engine.kernels.ahead`: kernels compiled into Numba's cache, by a process of its own.

In the flow: a first run compiles what reads and matches events while this compiles what comes after
(oxiseq.warmup.first_run starts it and waits for what it needs).
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable
from typing import Any, Final

from numba.core.sigutils import normalize_signature

from oxiseq.engine.kernels.output import paths
from oxiseq.engine.kernels.sequence import advance, collect

KERNELS: Final[dict[Callable[..., Any], str]] = {
    advance.advance: "(i8, i8, i8, i8, i8, i8)",
    advance.measure: "(i8, i8, i8, i8, i8, i8, i8, i8)",
    collect.collect: "(i8, i8, i4[::1], i8[::1])",
    paths.visible: "(i4[::1], i8[::1], i4[::1], b1[:, ::1], b1[::1])",
    paths.resolve: "(u4[:, ::1], b1[::1], i8[::1], u4[:, ::1])",
    paths.count_products: "(i8[:, ::1], i8[::1], i8[::1])",
    paths.choose: "(i8[:, ::1], i8[::1], i8[::1], i8[::1], i8[:, ::1], i8[::1])",
}
"""The types of their parameters, in the order in which they are compiled. First come those that take longest and that
nobody waits for before reading and matching are compiled too."""


def compile_all() -> None:
    """Compile what is not in the cache."""
    for kernel, parameters in KERNELS.items():
        dispatcher: Any = kernel
        dispatcher.compile(normalize_signature(parameters)[0])  # what the cache goes by: types, not their text


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
