"""NEXT and LAST: one set of positions is the best; one pass over the nodes that the finals reach."""

from __future__ import annotations

from oxiseq.engine.kernels.compiling.options import inner
from oxiseq.engine.kernels.matches.choice import memory as m
from oxiseq.engine.kernels.matches.choice.classes import wins, with_row
from oxiseq.engine.kernels.matches.nodes import meld, output
from oxiseq.engine.kernels.memory.numbers import i64
from oxiseq.engine.kernels.memory.pointers import Ptr


@inner
def choose_best(M: Ptr[m.ChoiceMemory]) -> int:
    state, finals = m.state(M), m.finals(M)
    wanted = i64(-1)
    for f in range(state[m.FINAL_COUNT]):
        outcome = _look_below(M, finals[f, 0])
        if outcome != m.CHOSEN:
            return outcome
        best = i64(m.best(M)[finals[f, 0]])
        if wanted < 0 or (best != wanted and wins(M, best, wanted)):
            wanted = best
            state[m.PICKED] = 0
        if best == wanted:
            m.picked(M)[state[m.PICKED]] = m.kept(M)[finals[f, 0]]
            state[m.PICKED] += 1
    return m.CHOSEN


@inner
def _look_below(M: Ptr[m.ChoiceMemory], final: int) -> int:
    """The best prefixes of every live node that `final` reaches, its children first."""
    stack, nodes, best, cut = m.stack(M), m.nodes(M), m.best(M), m.state(M)[m.CUT]
    stack[0] = final
    top = 1
    while top > 0:
        n = stack[top - 1]
        if best[n] >= 0:
            top -= 1
            continue
        if top + 3 > stack.shape[0]:
            return m.MORE_STACK
        before = top
        left, right, leaf = i64(nodes[n].left), i64(nodes[n].right), i64(nodes[n].leaf)
        if leaf >= 0 and best[leaf] < 0:
            stack[top] = leaf
            top += 1
        if left >= 0 and nodes[left].maxs >= cut and best[left] < 0:
            stack[top] = left
            top += 1
        if right >= 0 and nodes[right].maxs >= cut and best[right] < 0:
            stack[top] = right
            top += 1
        if top > before:
            continue
        if not m.has_room(M):
            return m.MORE_NODES
        if leaf < 0:
            if not _keep_output(M, n, left):
                return m.MORE_CLASSES
        else:
            _keep_heap(M, n)
        top -= 1
    return m.CHOSEN


@inner
def _keep_output(M: Ptr[m.ChoiceMemory], n: int, left: int) -> bool:
    nodes = m.nodes(M)
    made = with_row(M, i64(m.best(M)[left]) if left >= 0 else i64(0), n)
    if made < 0:
        return False
    kept = n
    if left >= 0 and m.kept(M)[left] != left:
        below = i64(m.kept(M)[left])
        kept = output(nodes, m.scalars(M), below, nodes[n].pos, nodes[below].maxs)
    m.finish(M, n, made, kept)
    return True


@inner
def _keep_heap(M: Ptr[m.ChoiceMemory], n: int) -> None:
    """The union of those of its parts whose best prefixes are the best."""
    nodes, best, cut = m.nodes(M), m.best(M), m.state(M)[m.CUT]
    leaf, left, right = i64(nodes[n].leaf), i64(nodes[n].left), i64(nodes[n].right)
    left = left if left >= 0 and nodes[left].maxs >= cut else i64(-1)
    right = right if right >= 0 and nodes[right].maxs >= cut else i64(-1)
    wanted = i64(best[leaf])
    if left >= 0 and best[left] != wanted and wins(M, best[left], wanted):
        wanted = i64(best[left])
    if right >= 0 and best[right] != wanted and wins(M, best[right], wanted):
        wanted = i64(best[right])
    kept, whole = i64(-1), True
    if best[leaf] == wanted:
        kept = i64(m.kept(M)[leaf])
    whole = kept == leaf
    for part in (left, right):
        if part < 0:
            continue
        if best[part] != wanted:
            whole = False
            continue
        whole = whole and m.kept(M)[part] == part
    if whole:
        m.finish(M, n, wanted, n)
        return
    for part in (left, right):
        if part >= 0 and best[part] == wanted:
            kept = meld(nodes, m.scalars(M), m.spine(M), kept, i64(m.kept(M)[part]), cut)
    m.finish(M, n, wanted, kept)
