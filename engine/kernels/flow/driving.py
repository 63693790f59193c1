"""A plan's operators stepped one after the other, as a table says (operators.md, 8): Python is asked for what it must
do itself, and for room.

An operator's kernel takes the addresses of its memory, of the deltas that it reads and of the one that it writes. So a
step is a line of a table: the kernel's own address, and those. Only operators to which something has come are looked
at: of a plan for many queries those are few.
"""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from oxiseq.engine.arrays.declared import Arrays, array
from oxiseq.engine.kernels.compiling.calling import caller
from oxiseq.engine.kernels.compiling.options import inner, kernel
from oxiseq.engine.kernels.flow import buffers
from oxiseq.engine.kernels.flow.buffers import DONE
from oxiseq.engine.kernels.memory.numbers import i64
from oxiseq.engine.kernels.memory.pointers import Ptr

ALL_DONE: Final = -1
"""`drive` is through."""
ASKED: Final = -1
"""In place of a kernel's answer: there is none, Python does the step."""

STEP = np.dtype(
    [
        ("out", "i8"),  # address of the delta that it writes
        ("kernel", "i8"),  # its address; 0: Python does the step
        ("arguments", "i4"),  # how many it takes
        ("first", "i4"),  # those that read it, in `readers`
        ("last", "i4"),
        ("a", "i8"),
        ("b", "i8"),
        ("c", "i8"),
        ("d", "i8"),
        ("e", "i8"),
        ("f", "i8"),
    ],
    align=True,
)
"""An operator."""

PLACE, ANSWER, LARGEST, FILLED, SCALARS = range(5)
"""The operator that comes next, 0: a batch begins; what the kernel has answered of the one that Python is asked about;
the most rows that any delta has had room for since this was read; how many operators have written in the last
batch, ALL: any may have."""
ALL: Final = -1


class Steps(Arrays):
    """A plan."""


_scalars = array(Steps, "scalars", np.int64)
_steps = array(Steps, "steps", STEP)  # Inputs before those that read them
_readers = array(Steps, "readers", np.int64)  # places
_sources = array(Steps, "sources", np.int64)  # places of those that are filled before; they have no step
_due = array(Steps, "due", np.uint8)  # u8 by place: whether something has come to it
_filled = array(Steps, "filled", np.int64)  # places of those that have written something


_call1, _call2, _call3, _call4, _call5, _call6 = map(caller, range(1, 7))


@kernel
def drive(P: Ptr[Steps]) -> int:
    """`driven`, for Python."""
    return driven(P)


@inner
def driven(P: Ptr[Steps]) -> int:
    """Step the operators from where the scalars say, each that one of its inputs has rows for. ALL_DONE, or the
    operator that Python is to step, or to go on with, before this is called again."""
    scalars, steps, due = _scalars(P), _steps(P), _due(P)
    if scalars[PLACE] == 0:
        _begin(P)
    else:  # Python has answered
        _written(P, scalars[PLACE] - 1)
    for place in range(scalars[PLACE], steps.shape[0]):
        if due[place] == 0:
            continue
        due[place] = 0
        step = steps[place]
        answer = i64(ASKED) if step.kernel == 0 else _called(step)
        if answer != DONE:
            scalars[PLACE], scalars[ANSWER] = place + 1, answer
            return place
        _written(P, place)
    scalars[PLACE] = 0
    return ALL_DONE


@inner
def largest(P: Ptr[Steps]) -> int:
    """The most rows that any delta has had room for of late."""
    return _scalars(P)[LARGEST]


@inner
def _begin(P: Ptr[Steps]) -> None:
    """Clear what was written of the last batch; what sources hold has come."""
    scalars, steps, sources, filled = _scalars(P), _steps(P), _sources(P), _filled(P)
    if scalars[FILLED] == ALL:
        source = 0
        for place in range(steps.shape[0]):
            if source < sources.shape[0] and sources[source] == place:
                source += 1
            else:
                buffers.count(steps[place].out)[0] = 0
    else:
        for i in range(scalars[FILLED]):
            buffers.count(steps[filled[i]].out)[0] = 0
    scalars[FILLED] = 0
    for i in range(sources.shape[0]):
        _hand_on(P, sources[i])


@inner
def _written(P: Ptr[Steps], place: int) -> None:
    """An operator is through."""
    scalars, out = _scalars(P), _steps(P)[place].out
    scalars[LARGEST] = max(scalars[LARGEST], buffers.at(out).shape[0])
    if buffers.count(out)[0] > 0:
        _filled(P)[scalars[FILLED]] = place
        scalars[FILLED] += 1
        _hand_on(P, place)


@inner
def _hand_on(P: Ptr[Steps], place: int) -> None:
    """Those that read what an operator has written are due, if it has."""
    step, readers, due = _steps(P)[place], _readers(P), _due(P)
    if buffers.count(step.out)[0] > 0:
        for i in range(step.first, step.last):
            due[readers[i]] = 1


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
