"""A plan's operators stepped one after the other, as a table says (operators.md, 8): Python is asked for what it must
do itself, and for room.

An operator's kernel takes the addresses of its memory, of the deltas that it reads and of the one that it writes. So a
step is a line of a table: the kernel's own address, and those.
"""

from __future__ import annotations

from typing import Any, Final, NamedTuple

import numpy as np

from oxiseq.engine.kernels.compiling.calling import caller
from oxiseq.engine.kernels.compiling.options import inner, kernel
from oxiseq.engine.kernels.flow import buffers
from oxiseq.engine.kernels.flow.buffers import DONE
from oxiseq.engine.kernels.memory.pointers import Array, view_of

ALL_DONE: Final = -1
"""`drive` is through."""
ASKED: Final = -1
"""In place of a kernel's answer: there is none, Python does the step."""

STEP = np.dtype([
    ("out", "i8"),  # address of the delta that it writes; 0: it is a source, which is filled before
    ("kernel", "i8"),  # its address; 0: Python does the step
    ("arguments", "i4"),  # how many it takes
    ("first", "i4"),  # its inputs in `inputs`
    ("last", "i4"),
    ("a", "i8"),
    ("b", "i8"),
    ("c", "i8"),
    ("d", "i8"),
    ("e", "i8"),
    ("f", "i8"),
], align=True)  # fmt: skip
"""An operator."""

PLACE, ANSWER, LARGEST, SCALARS = range(4)
"""The operator that comes next; what the kernel has answered of the one that Python is asked about; of how many rows
the largest delta has had room since somebody looked."""


class Steps(NamedTuple):
    """A plan."""

    scalars: Array
    steps: Array
    """Inputs before those that read them."""
    inputs: Array
    """i64: addresses of deltas."""


_scalars: Any = view_of(Steps, "scalars", np.int64)
_steps: Any = view_of(Steps, "steps", STEP)
_inputs: Any = view_of(Steps, "inputs", np.int64)
_call1, _call2, _call3, _call4, _call5, _call6 = map(caller, range(1, 7))


@kernel
def drive(P: int) -> int:
    """Step the operators from where the scalars say, each that one of its inputs has rows for. ALL_DONE, or the
    operator that Python is to step, or to go on with, before this is called again."""
    scalars, steps, inputs = _scalars(P), _steps(P), _inputs(P)
    for place in range(scalars[PLACE], steps.shape[0]):
        step = steps[place]
        if step.out == 0:
            continue
        buffers.count(step.out)[0] = 0
        scalars[LARGEST] = max(scalars[LARGEST], buffers.at(step.out).shape[0])
        for i in range(step.first, step.last):
            if buffers.count(inputs[i])[0] > 0:
                answer = np.int64(ASKED) if step.kernel == 0 else _called(step)
                if answer != DONE:
                    scalars[PLACE], scalars[ANSWER] = place + 1, answer
                    return place
                break
    scalars[PLACE] = 0
    return ALL_DONE


@inner
def _called(step: Any) -> int:
    """What the kernel of a step answers."""
    if step.arguments == 2:
        return _call2(step.kernel, step.a, step.b)
    if step.arguments == 3:
        return _call3(step.kernel, step.a, step.b, step.c)
    if step.arguments == 4:
        return _call4(step.kernel, step.a, step.b, step.c, step.d)
    if step.arguments == 5:
        return _call5(step.kernel, step.a, step.b, step.c, step.d, step.e)
    if step.arguments == 6:
        return _call6(step.kernel, step.a, step.b, step.c, step.d, step.e, step.f)
    return _call1(step.kernel, step.a)
