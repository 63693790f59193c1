"""A run of a compiled sequence: rows in, matches out.

Where it stands: plan → events → rows → **run** → matches. It calls the kernel, gives it room when it asks,
and makes the decisions that need exact arithmetic or string functions.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from pyoxigraph import Variable

from oxiseq.engine.expressions.exact import holds
from oxiseq.engine.kernels import records as k
from oxiseq.engine.kernels.sequence import advance, measure
from oxiseq.engine.kernels.views import Pointers, call
from oxiseq.engine.sequence.memory import (
    Capacities,
    allocate,
    forget_answers,
    grow,
    held_ids,
    keep_answers,
    make_nodes,
)
from oxiseq.engine.sequence.tables import CompiledFilter, SequenceTables
from oxiseq.engine.terms.dictionary import AnyIds, TermColumns, TermDictionary

_TRUE, _FALSE = 1, 0
_BEFORE_ALL = -(1 << 62)


@dataclass(frozen=True, slots=True)
class LetterRows:
    """A batch of rows for the kernel, sorted by instant.

    `letter` i32[n]; `values` i64[n, columns] term ids; per instant that has rows: `instant`, `clock`, `tau`
    i64[k] and `first` i64[k + 1], where its rows begin. `base`: the id of the first row.
    """

    letter: NDArray[np.int32]
    values: NDArray[np.int64]
    instant: NDArray[np.int64]
    clock: NDArray[np.int64]
    tau: NDArray[np.int64]
    first: NDArray[np.int64]
    base: int


@dataclass(frozen=True, slots=True)
class Found:
    """Matches as row ids: match i is `rows[ends[i]:ends[i + 1]]`, in order of time."""

    rows: NDArray[np.int64]
    ends: NDArray[np.int64]

    def __len__(self) -> int:
        return len(self.ends) - 1


class SequenceRun:
    """The running state of one sequence. `oldest_row`: no node refers to an earlier row."""

    def __init__(
        self, compiled: SequenceTables, terms: TermDictionary, capacities: Capacities | None = None
    ) -> None:
        self._compiled = compiled
        self._terms = terms
        self._memory = allocate(compiled, capacities or Capacities())
        self._tau = _BEFORE_ALL
        self._pointers: dict[str, tuple[object, Pointers]] = {}
        self._generation = terms.generation
        self.oldest_row = 0

    def feed(self, rows: LetterRows, until: int) -> Found:
        """Work through `rows`; then let the clock reach `until`, the smallest that may still come."""
        tables, memory = self._compiled.tables, self._memory
        forget_answers(memory, changed=self._generation != self._terms.generation)
        self._generation = self._terms.generation
        memory.scalars[k.INSTANT] = 0
        batch = k.Rows(
            rows.letter, rows.values, np.zeros((len(rows.letter), max(self._compiled.measure_count, 1))),
            np.zeros((len(rows.letter), max(self._compiled.measure_count, 1)), np.uint8),
            rows.instant, rows.clock, rows.tau, rows.first, np.array([rows.base]),
        )
        T, R = self._point(tables), Pointers(batch)
        for m in self._compiled.measures:
            call(measure, T, self._point(memory), R, self._point(self._terms.columns), m.code0, m.code1,
                 m.letter, m.column)
        parts: list[Found] = []
        failed = -1
        while True:
            need = int(call(advance, T, self._point(self._memory), R, self._point(self._terms.columns), until))
            if need == k.DONE:
                break
            at = int(self._memory.scalars[k.INSTANT])
            if at < len(rows.tau):
                self._tau = int(rows.tau[at])
            if need == k.NEED_NODES:
                self._memory, self.oldest_row = make_nodes(self._memory, self._tau, again=failed == at)
                failed = at
            elif need == k.NEED_DECISIONS:
                self._decide()
            elif need == k.OUT_FULL:
                self._drain(parts)
            else:
                self._memory = grow(self._memory, need, self._compiled, self._tau)
        if len(rows.tau):
            self._tau = int(rows.tau[-1])
        self._drain(parts)
        return _joined(parts)

    def _point(self, arrays: k.Tables | k.Memory | TermColumns) -> Pointers:
        """The pointer table of a group of arrays, made anew only when the group has been replaced."""
        group = type(arrays).__name__
        known = self._pointers.get(group)
        if known is None or known[0] is not arrays:
            known = self._pointers[group] = arrays, Pointers(arrays)
        return known[1]

    def collect(self) -> None:
        """Free what is dead now, to learn `oldest_row`; for windows that never end."""
        self._memory, self.oldest_row = make_nodes(self._memory, self._tau, again=False)

    def held_ids(self) -> tuple[AnyIds, ...]:
        """The live keys, some of which may be dead by now; other values stand among the terms."""
        return held_ids(self._memory)

    @property
    def live(self) -> dict[str, int]:
        """Numbers of live records, for tests of leaks and for explanations."""
        s = self._memory.scalars
        return {"nodes": int(s[k.NODE_TOP]), "groups": int(s[k.GROUP_COUNT]),
                "buckets": int(s[k.BUCKET_COUNT]), "touched": int(s[k.TOUCHED]),
                "bytes": sum(int(a.nbytes) for a in self._memory)}

    def _drain(self, parts: list[Found]) -> None:
        s = self._memory.scalars
        rows, matches = int(s[k.OUT_ROWS]), int(s[k.OUT_MATCHES])
        room = self._memory
        if matches == 0:  # one match is longer than the buffer
            if rows == 0 and int(s[k.STACK]):
                self._memory = room._replace(out_rows=np.zeros(2 * len(room.out_rows), np.int64),
                                             out_ends=np.zeros(2 * len(room.out_ends), np.int64))
            return
        parts.append(Found(room.out_rows[:rows].copy(), room.out_ends[: matches + 1].copy()))
        s[k.OUT_ROWS] = s[k.OUT_MATCHES] = 0
        if int(s[k.STACK]) and len(room.out_ends) < (1 << 20):
            self._memory = room._replace(out_rows=np.zeros(2 * len(room.out_rows), np.int64),
                                         out_ends=np.zeros(2 * len(room.out_ends), np.int64))

    def _decide(self) -> None:
        memory = self._memory
        questions = memory.asked[: int(memory.scalars[k.ASKED])]
        answers = [self._answer(self._compiled.filters[int(q[0])], q[1:]) for q in questions]
        self._memory = keep_answers(memory, self._compiled, np.array(answers, np.int64))

    def _answer(self, asked: CompiledFilter, vector: NDArray[np.int64]) -> int:
        ids: dict[Variable, int] = {v: int(vector[place]) for v, place in asked.places}
        mapping = {v: self._terms.term(i) for v, i in ids.items() if i}
        return _TRUE if holds(asked.check.condition, mapping) else _FALSE


def _joined(parts: list[Found]) -> Found:
    if not parts:
        return Found(np.zeros(0, np.int64), np.zeros(1, np.int64))
    if len(parts) == 1:
        return parts[0]
    offsets = np.cumsum([0] + [len(p.rows) for p in parts])
    ends = [np.zeros(1, np.int64)] + [p.ends[1:] + o for p, o in zip(parts, offsets, strict=False)]
    return Found(np.concatenate([p.rows for p in parts]), np.concatenate(ends))
