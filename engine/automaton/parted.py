"""Instants of partitions, for queries that partition alike: their members are equal graph patterns.

In the flow: rows of common letters → **instants of partitions** → one run. There is one table of partitions; a query's
own numbers of them are others (memory.py).
"""

from __future__ import annotations

from typing import Final

import numpy as np
from numpy.typing import NDArray
from pyoxigraph import Variable

from oxiseq.engine.automaton.letters import CommonLetters, PlainLetter
from oxiseq.engine.automaton.matching import FoundLetters
from oxiseq.engine.kernels.memory.pointers import address_of
from oxiseq.engine.kernels.sequence import letter_rows as lr
from oxiseq.engine.matches.partitions import Partitioned
from oxiseq.engine.order.clock import Instants
from oxiseq.engine.patterns.matcher import Rows
from oxiseq.engine.plan.query import QueryPlan
from oxiseq.engine.run.letters import Frame, Source
from oxiseq.engine.run.partitions import Partitions, Putting, Split
from oxiseq.engine.terms.dictionary import TermDictionary

_ROW: Final = Variable("__row")
_CAPACITY: Final = 32

Placed = tuple[list[Source], tuple[NDArray[np.int64], ...]]
"""Sources whose instants are those of partitions, and what is known of these, as `RowWriter.write` wants it."""


class CommonPartitions:
    """Of some queries; `plan`: one of them."""

    def __init__(self, plan: QueryPlan, letters: CommonLetters, run: Partitioned, terms: TermDictionary) -> None:
        self._partitions = Partitions(plan, run, _CAPACITY, terms)
        self._by, self._letters = plan.by, letters
        self.table = self._partitions.table
        self._kept: list[object] = []
        """Those whose addresses the kernel gets."""

    def place(self, found: FoundLetters, instants: Instants) -> Placed:
        """The rows of letters, in instants of partitions."""
        self._kept.clear()
        rows = {each: mine for each, mine in found.rows if isinstance(each, PlainLetter)}
        members = [each for each in self._letters.members if each in rows]
        putting = [Putting(m.stream, rows[m], tuple(map(m.columns.index, m.known))) for m in members]
        split = self._partitions.split(putting, instants.where, instants.time)
        if split is None:
            return [], ()
        sources: list[Source] = []
        for source in found.sources:
            letter = self._letters.all[source[lr.LETTER]]
            assert isinstance(letter, PlainLetter)
            sources += self._source(source, letter, rows[letter], split, instants)
        return sources, (split.clock, split.instant, split.number, split.partition)

    def _source(
        self, source: Source, letter: PlainLetter, rows: Rows, split: Split, instants: Instants
    ) -> list[Source]:
        where = instants.where[letter.stream]
        owned = split.owned_by(letter.stream, where if len(instants.where) > 1 else None) if letter.parted else None
        if owned is not None:
            self._kept.append(owned)
            number, event, table, width, _, low, high, scratch = source
            return [(number, event, table, width, address_of(owned), low, high, scratch)]
        mine = slice(rows.low, rows.high)
        values = rows.values[mine]
        known = {v: column for v, column in zip(self._by, letter.known, strict=True) if column >= 0}
        columns = {v: values[:, letter.columns.index(column)] for v, column in known.items()}
        columns[_ROW] = np.arange(len(values), dtype=np.uint32)
        frame = split.seen(letter.stream, [*known], Frame(where[rows.event[mine]], columns))
        if not len(frame):
            return []
        at, held = np.ascontiguousarray(frame.where), np.ascontiguousarray(values[frame.columns[_ROW]])
        self._kept += [at, held]
        return [(source[lr.LETTER], address_of(at), address_of(held), held.shape[1], 0, 0, len(frame), 0)]
