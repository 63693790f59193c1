"""From events to symbols: facts about each event as bits, then the atoms that it satisfies (engine/cea/facts.py).

Facts are u64[n, words]. Each kernel here sets the bits of some facts; `symbols` comes last.
"""

from __future__ import annotations

from typing import Final

import numpy as np

from oxiseq.engine import kinds
from oxiseq.engine.kernels.compiling.options import allocating, inner, kernel
from oxiseq.engine.kernels.expressions.machine import (
    CONSTANT,
    EQUAL,
    FALSE,
    TRUE,
    UNDECIDED,
    UNEQUAL,
    VARIABLE,
    truth,
)
from oxiseq.engine.kernels.memory.hashing import SPREAD
from oxiseq.engine.kernels.memory.numbers import i64, u64
from oxiseq.engine.kernels.memory.pointers import Array

MANY_SUBJECTS: Final = 1
MANY_VALUES: Final = 2
"""What is wrong with an event; MANY_VALUES + i: it has two values of the i-th predicate in `asked`."""

_RECENT: Final = 256
_MOST_TRIPLES: Final = 64
_FEW: Final = 16
"""For so many rows a table of recent ones is not worth it."""
_HIGH: Final = np.uint64(56)


@inner
def _mark(bits: Array, row: int, bit: int) -> None:
    bits[row, bit >> 6] |= u64(1) << u64(bit & 63)


@kernel
def pivot(
    offset: Array,
    subject: Array,
    predicate: Array,
    object: Array,
    asked: Array,
    types: Array,
    values: Array,
    type_of: Array,
    fault: Array,
) -> int:
    """The graphs of events (see EventBatch) → a row per event.

    asked: i64[k] ids of predicates, the first is rdf:type. values: i64[n, 1 + k], zeros; what predicate i has goes to
    column 1 + i. types: i64[t] ids, type_of: i64[n], for the number of the event's type, -1 for none of them.
    fault: i64[n], zeros, for what is wrong: two subjects, or two values of a predicate in `asked`. Such an event has
    no type, and nothing in its row. Returns how many there are.
    """
    faulty = 0
    for event in range(len(type_of)):
        low, high = offset[event], offset[event + 1]
        for i in range(low, high):
            if subject[i] != subject[low]:
                fault[event] = MANY_SUBJECTS
                break
            for slot in range(len(asked)):
                if predicate[i] == asked[slot]:
                    before, now = values[event, 1 + slot], i64(object[i])
                    if before != 0 and before != now:
                        fault[event] = MANY_VALUES + slot
                    values[event, 1 + slot] = now
                    break
            if fault[event] != 0:
                break
        type_of[event] = -1
        if fault[event] != 0:
            faulty += 1
            for slot in range(values.shape[1]):
                values[event, slot] = 0
            continue
        for number in range(len(types)):
            if values[event, 1] == types[number]:
                type_of[event] = number
    return faulty


@kernel
def last_untupled(offset: Array, first: int, subject: Array, predicate: Array, object: Array) -> int:
    """Of events from number `first` on (offset: i64[n + 1]) the last one that has two subjects, two values of some
    predicate, or too many triples to see that soon; -1 if there is none."""
    for event in range(len(offset) - 2, first - 1, -1):
        low, high = offset[event], offset[event + 1]
        if high - low > _MOST_TRIPLES:
            return event
        for i in range(low + 1, high):
            if subject[i] != subject[low]:
                return event
            for j in range(low, i):
                if predicate[i] == predicate[j] and object[i] != object[j]:
                    return event
    return i64(-1)


@inner
def _text_relation(code: Array, start: int, end: int, vals: Array, kind: Array) -> int:
    """The outcome of `attribute = text` and `attribute != text` on a text, the most frequent leaves; else -1."""
    if end != start + 7 or code[start + 2] != VARIABLE or code[start + 4] != CONSTANT:
        return -1
    op = code[start + 6]
    term, text = vals[code[start + 3]], i64(code[start + 5])
    if (op != EQUAL and op != UNEQUAL) or kind[term] != kinds.STRING or kind[text] != kinds.STRING:
        return -1
    return TRUE if (term == text) == (op == EQUAL) else FALSE


@kernel
def leaf_facts(
    values: Array,
    type_of: Array,
    first_leaf: Array,
    leaf_of: Array,
    code: Array,
    starts: Array,
    kind: Array,
    number: Array,
    exact: Array,
    quality: Array,
    facts: Array,
    undecided: Array,
) -> int:
    """Leaf l, compiled to code[starts[l] : starts[l + 1]], of the rows of `values` (i64[n, slots] of term ids).

    Only the leaves that an event's type needs are looked at. What the machine cannot decide is marked in `undecided`
    (u64[n, words], zeros); returns how often.
    """
    depth = 1
    for leaf in range(len(starts) - 1):
        if starts[leaf + 1] > starts[leaf]:
            depth = max(depth, i64(code[starts[leaf] + 1]))
    numbers = np.empty((depth, 2), np.float64)
    entries = np.empty((depth, 4), np.int64)
    memo = np.empty((1, 1), np.uint8)
    left = 0
    for row in range(len(type_of)):
        kind_of = type_of[row]
        if kind_of < 0:
            continue
        vals = values[row]
        for i in range(first_leaf[kind_of], first_leaf[kind_of + 1]):
            leaf = leaf_of[i]
            start, end = starts[leaf], starts[leaf + 1]
            outcome = _text_relation(code, start, end, vals, kind)
            if outcome < 0:
                outcome = truth(code, start, end, vals, kind, number, exact, quality, memo, numbers, entries)
            if outcome == TRUE:
                _mark(facts, row, leaf)
            elif outcome == UNDECIDED:
                _mark(undecided, row, leaf)
                left += 1
    return left


@kernel
def symbols(
    facts: Array,
    type_of: Array,
    leaves: int,
    gates: Array,
    any_of: Array,
    first_atom: Array,
    atom_of: Array,
    masks: Array,
    out: Array,
) -> None:
    """The atoms that each event satisfies: out u64[n, words of atoms], zeros. See FactPlan for the others."""
    symbols_of_rows(facts, type_of, len(type_of), leaves, gates, any_of, first_atom, atom_of, masks, out)


@allocating
def symbols_of_rows(
    facts: Array,
    type_of: Array,
    count: int,
    leaves: int,
    gates: Array,
    any_of: Array,
    first_atom: Array,
    atom_of: Array,
    masks: Array,
    out: Array,
) -> None:
    """`symbols` of the first rows.

    Events differ little: where facts are one word, the facts of rows that came lately are not computed again.
    """
    recalls = facts.shape[1] == 1 and count > _FEW
    size = _RECENT if recalls else 0
    recent = np.full(size, -1, np.int64)
    known = np.empty(size, np.uint64)
    for row in range(count):
        number = type_of[row]
        if number < 0:
            continue
        if recalls:
            place = i64((facts[row, 0] ^ u64(number)) * SPREAD >> _HIGH)
            before = recent[place]
            if before >= 0 and known[place] == facts[row, 0] and type_of[before] == number:
                for word in range(out.shape[1]):
                    out[row, word] = out[before, word]
                continue
            recent[place] = row
            known[place] = facts[row, 0]
        _open_gates(facts, row, leaves, gates, any_of)
        for i in range(first_atom[number], first_atom[number + 1]):
            met = True
            for word in range(facts.shape[1]):
                met = met and facts[row, word] & masks[i, word] == masks[i, word]
            if met:
                _mark(out, row, atom_of[i])


@inner
def _open_gates(facts: Array, row: int, leaves: int, gates: Array, any_of: Array) -> None:
    """The facts that others make, of one row."""
    words = facts.shape[1]
    for gate in range(any_of.shape[0]):
        met = any_of[gate] == 0
        for word in range(words):
            found = facts[row, word] & gates[gate, word]
            if any_of[gate] != 0:
                met = met or found != 0
            else:
                met = met and found == gates[gate, word]
        if met:
            _mark(facts, row, leaves + gate)
