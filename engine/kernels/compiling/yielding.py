"""A kernel that may be at work for long yields Python's lock to other threads from time to time.

A kernel holds that lock, so nothing else answers meanwhile. `yield_lock` gives it away and takes it back at
once; who waits for it is let in, as CPython does it between two instructions. Whoever calls a kernel keeps its arrays
alive, and nobody else uses them while it is at work: neither changes by this. It is not for an `unlocked` kernel, which
does not hold the lock.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from llvmlite import ir
from numba import types
from numba.core import cgutils

from oxiseq.engine.kernels.compiling.as_python import intrinsic_or
from oxiseq.engine.kernels.compiling.options import inner

STEPS: Final = 1 << 16
"""Of a kernel, after which it yields: a few milliseconds."""
_STATE: Final = ir.IntType(8).as_pointer()


@intrinsic_or(lambda: None)
def yield_lock(context: Any) -> tuple[Any, Callable[..., Any]]:
    """Other threads that wait for Python's lock run first. It takes a tenth of a microsecond where none does."""

    def generate(context: Any, builder: Any, whole: Any, args: Any) -> Any:
        save = cgutils.get_or_insert_function(builder.module, ir.FunctionType(_STATE, ()), "PyEval_SaveThread")
        restore = cgutils.get_or_insert_function(
            builder.module, ir.FunctionType(ir.VoidType(), (_STATE,)), "PyEval_RestoreThread"
        )
        builder.call(restore, (builder.call(save, ()),))
        return context.get_dummy_value()

    return types.none(), generate


@inner
def yield_after(steps: int) -> None:
    """So many steps have been made, one more than before: others that wait run first, each `STEPS` of them."""
    if steps & (STEPS - 1) == 0:
        yield_lock()
