"""The choice that Python calls."""

from __future__ import annotations

from oxiseq.engine.kernels.compiling.options import kernel
from oxiseq.engine.kernels.matches.choice import memory as m
from oxiseq.engine.kernels.matches.choice.best import choose_best
from oxiseq.engine.kernels.matches.choice.maximal import choose_maximal
from oxiseq.engine.kernels.matches.records import NODE_TOP
from oxiseq.engine.kernels.memory.pointers import Ptr


@kernel
def choose(M: Ptr[m.ChoiceMemory]) -> int:
    """Pick what the strategy keeps of the finals; `M` is the address of a ChoiceMemory. Returns an outcome."""
    state, classes = m.state(M), m.classes(M)
    state[m.CLASSES] = 1
    state[m.DONE_NODES] = 0
    state[m.SETS] = 0
    state[m.PICKED] = 0
    state[m.STEPS] = 0
    state[m.STAMP] = 0
    classes[0].depth = 0
    classes[0].parent = 0
    classes[0].jump = 0
    classes[0].slot = -1
    classes[0].stamp = 0
    base = m.scalars(M)[NODE_TOP]
    if state[m.STRATEGY] == m.NONE_CONTAINED:
        outcome = choose_maximal(M)
    else:
        outcome = choose_best(M)
    for i in range(state[m.DONE_NODES]):
        m.best(M)[m.done(M)[i]] = -1
    for c in range(1, state[m.CLASSES]):
        m.table(M)[classes[c].slot] = -1
    if outcome != m.CHOSEN:
        m.scalars(M)[NODE_TOP] = base
    return outcome
