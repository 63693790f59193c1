"""What a choice works on: its arrays, each by the address of a `ChoiceMemory`, and what may come of it."""

from __future__ import annotations

from typing import Final

import numpy as np

from oxiseq.engine.arrays.declared import Arrays, array
from oxiseq.engine.kernels.compiling.options import inner
from oxiseq.engine.kernels.matches.records import NODE, NODE_TOP, PLACE_BITS, SPINE
from oxiseq.engine.kernels.memory.pointers import Ptr

CLASS: Final = np.dtype(
    [
        ("position", "i8"),
        ("parent", "i4"),
        ("depth", "i4"),  # how many positions it holds
        ("jump", "i4"),  # an ancestor far away, for NEXT
        ("slot", "i4"),  # where the hash table has it
        ("listed", "i4"),  # its place in the list that is being merged, if its stamp is that list's
        ("stamp", "i4"),
    ],
    align=True,
)
PLACE: Final = (1 << PLACE_BITS) - 1
FIRST_WINS, LAST_WINS, NONE_CONTAINED = range(3)
"""NEXT, LAST, MAX."""

(
    STRATEGY,
    CUT,
    FINAL_COUNT,
    OFFSET,
    MOST_STEPS,
    SILENT,
    CLASSES,
    DONE_NODES,
    SETS,
    PICKED,
    STEPS,
    STAMP,
    CHOICE_STATES,
) = range(13)
"""Places in `state`: the first six are given; PICKED is how many nodes were picked, STEPS the comparisons made."""

CHOSEN, MORE_NODES, MORE_CLASSES, MORE_SETS, MORE_STACK, TOO_MANY_STEPS = range(6)
"""Outcomes: picked; too little room for something, to be called again; more comparisons than MOST_STEPS."""


def table_size(classes: int) -> int:
    """Slots of the hash table."""
    return 1 << (2 * classes).bit_length()


class ChoiceMemory(Arrays):
    """What `choose` works on. All but the first four is scratch, which it leaves as it was."""


nodes = array(ChoiceMemory, "nodes", NODE)
scalars = array(ChoiceMemory, "scalars", np.int64)  # NODE_TOP
finals = array(ChoiceMemory, "finals", np.int64, 2)  # i64[*, 2]: node
positions = array(ChoiceMemory, "positions", np.int64)
state = array(ChoiceMemory, "state", np.int64, rows=CHOICE_STATES)
best = array(ChoiceMemory, "best", np.int32, rows="nodes", fill=-1)
"""i32[nodes]: class of the best prefixes, or place of a node's sets; -1: not looked at."""
kept = array(ChoiceMemory, "kept", np.int32, rows="nodes")  # node of these prefixes, or their number
done = array(ChoiceMemory, "done", np.int32, rows="nodes")  # nodes that have been looked at
stack = array(ChoiceMemory, "stack", np.int64, rows="stack")
leaves = array(ChoiceMemory, "leaves", np.int64, rows="leaves")  # walk of a heap
classes = array(ChoiceMemory, "classes", CLASS, rows="classes")
table = array(ChoiceMemory, "table", np.int32, rows="classes", slots=table_size, fill=-1)  # classes by hash, -1: free
sets = array(ChoiceMemory, "sets", np.int64, 2, rows="sets", columns=2)  # class, node
picked = array(ChoiceMemory, "picked", np.int64, rows="picked")
spine = array(ChoiceMemory, "spine", np.int64, rows=SPINE)


@inner
def position_of(M: Ptr[ChoiceMemory], node: int) -> int:
    """The position of an output's row."""
    row = nodes(M)[node].pos >> PLACE_BITS
    return row if positions(M).shape[0] == 0 else positions(M)[row + state(M)[OFFSET]]


@inner
def finish(M: Ptr[ChoiceMemory], node: int, found: int, held: int) -> None:
    """Note `best` and `kept` of a node that has been looked at."""
    at = state(M)[DONE_NODES]
    best(M)[node] = found
    kept(M)[node] = held
    done(M)[at] = node
    state(M)[DONE_NODES] = at + 1


@inner
def has_room(M: Ptr[ChoiceMemory]) -> bool:
    """Whether an output and a meld will find room."""
    return scalars(M)[NODE_TOP] + 2 * SPINE < nodes(M).shape[0]
