"""What complex events have in common, and blocks of them."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from oxiseq.engine.cea.plan import words_of
from oxiseq.engine.output.batch import MatchBatch
from oxiseq.engine.output.complex_events import ComplexEvents
from oxiseq.engine.plan.joined import CeqlPlan
from oxiseq.engine.terms.dictionary import TermDictionary
from oxiseq.matches.shape import Block, Letters, PositionColumns, Shape

_FEW_BITS = 16
"""Bits of a set of variables and a stream that a table can be made for."""


def ceql_shape(plan: CeqlPlan, terms: TermDictionary) -> Shape:
    """Events by variable, or rows of totals. Who holds an event is a set of variables, numbered in each block again."""
    if plan.query.totals is not None:
        names = tuple(column.name for column in plan.query.totals.columns)
        return Shape(terms, "SELECT", names, plan.streams, spans=False, vocab=plan.query.vocab or "")

    def gather(shape: Shape, batches: Sequence[ComplexEvents]) -> Block:
        found = ComplexEvents.concat(batches, words_of(len(plan.runner.variables)))
        letter, letters = _letters(found, plan)
        rows = MatchBatch(found.time, np.zeros((len(found), 0), np.uint32), found.ends, letter, found.event_time)
        return Block(shape, rows, letters, PositionColumns(found.start, found.end, found.positions))

    return Shape(
        terms,
        "EVENTS",
        plan.runner.variables,
        plan.streams,
        lanes=plan.runner.variables,
        letters=(),
        vocab=plan.query.vocab or "",
        gather=gather,
    )


def _letters(found: ComplexEvents, plan: CeqlPlan) -> tuple[NDArray[np.int32], Letters]:
    """The number of each event's letter (i32[f]), and the letters: (variable, stream) of all that hold it."""
    streams, names = len(plan.streams), plan.runner.variables
    if found.held.shape[1] == 1 and len(names) + streams.bit_length() <= _FEW_BITS:
        key = found.held[:, 0].astype(np.int64) * streams + found.event_stream
        distinct = np.flatnonzero(np.bincount(key))
        number = np.zeros(int(distinct[-1]) + 1 if len(distinct) else 0, np.int32)
        number[distinct] = np.arange(len(distinct), dtype=np.int32)
        held, letter = [[key // streams] for key in distinct.tolist()], number[key]
        of = (distinct % streams).tolist()
    else:
        keys = np.column_stack([found.held, found.event_stream.astype(np.uint64)])
        rows, inverse = np.unique(keys, axis=0, return_inverse=True)
        held, of, letter = rows[:, :-1].tolist(), rows[:, -1].tolist(), inverse.reshape(-1).astype(np.int32)
    letters = tuple(
        tuple((name, plan.streams[stream]) for n, name in enumerate(names) if words[n >> 6] >> (n & 63) & 1)
        for words, stream in zip(held, of, strict=True)
    )
    return letter, letters
