"""`python -m oxiseq.engine.kernels.ahead NAME ...`: kernels compiled into Numba's cache, by a process of its own.

In the flow: a first run compiles what reads and matches events while this compiles what comes after
(oxiseq.warmup.first_run starts it and waits for what it needs).
"""

from __future__ import annotations

import os
import sys
import threading
from collections.abc import Callable, Iterable
from typing import Any

from oxiseq.engine.kernels.compiling.as_python import AS_PYTHON
from oxiseq.engine.kernels.compiling.later import ready
from oxiseq.engine.kernels.signatures import kernel_of, signature_of


def is_compiled(kernel: Any) -> bool:
    """Whether a kernel has come compiled, or is on disk; as Python it need not be."""
    return AS_PYTHON or bool(ready(kernel)._cache.has(signature_of(kernel), kernel.targetctx))


def compile_all(names: Iterable[str], tell: Callable[[str], object] = lambda name: None) -> None:
    """Compile what is not compiled yet, and is not by another process until its turn comes."""
    for name in names:
        tell(name)
        kernel, signature = kernel_of(name)
        if not is_compiled(kernel):
            kernel.compile(signature)


def main() -> None:
    """Compile, unless the process that has started this one ends before: it holds the other end of stdin."""
    threading.Thread(target=_end_with_starter, daemon=True).start()
    compile_all(sys.argv[1:])


def _end_with_starter() -> None:
    while os.read(0, 1):
        pass
    os._exit(1)


if __name__ == "__main__":
    main()
