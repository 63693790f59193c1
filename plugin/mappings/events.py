"""Columns of rows → event batches, with what is wrong with single rows.

The plan makes all rows at once; rows of which it is unsure, and all where there is no plan, are answered by Oxigraph
one by one, as `oxiseq load` does it. Both agree (tests/mappings). A row of which nothing comes is left out like a bad
one, and said.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray
from pyoxigraph import Literal, Triple

from oxiseq.engine.errors import EventError, KbError, LimitError
from oxiseq.engine.events.batch import EventBatch, offsets
from oxiseq.engine.events.encode import encode_events
from oxiseq.engine.events.units import check_unit
from oxiseq.engine.terms.dictionary import TermDictionary
from oxiseq.grammar.records import dataclass
from oxiseq.kb_loader.rows import Rows
from oxiseq.mappings.cells import IRI, Cells
from oxiseq.mappings.declared import StreamMapping
from oxiseq.mappings.plan import Blank, Constant, Part, Plan, Work, check_text, longest
from oxiseq.mappings.rows import BadRow, Table
from oxiseq.mappings.times import whole_numbers

TOGETHER: Final = 4096
"""Rows that are made into terms at a time."""
MOST_SLOWLY: Final = 20_000
"""Rows of one body that Oxigraph answers: some seconds."""
NOTHING: Final = "the mapping makes no triple from it"
U32 = NDArray[np.uint32]


@dataclass(frozen=True, slots=True, eq=False)
class Mapped:
    """The events of some rows, in their order, and the rows that are left out."""

    batch: EventBatch
    bad: tuple[BadRow, ...]


def mapped(
    table: Table,
    mapping: StreamMapping,
    terms: TermDictionary,
    time: int | None = None,
    *,
    empty: bool = False,
    most: int | None = None,
) -> Iterator[Mapped]:
    """Some thousand rows at a time. `time` (µs): of rows of a mapping that has no time; `empty`: a row of which no
    statement comes is an event without any, and not bad; `most`: characters of the terms of such a part, if fewer than
    usual. Raises EventError for a table without a column that the mapping reads, and where all numbers of the time seem
    to be of another unit; LimitError.
    """
    if not mapping.takes_rows:
        raise EventError(
            None, None, "the stream's mapping has contexts for JSON-LD only: it does not say what rows mean"
        )
    _check_columns(table, mapping)
    told = mapping.time_cells(table)
    _check_unit(told, mapping)
    slowly = 0
    yield Mapped(EventBatch.empty(), tuple(table.bad))
    for start in range(0, len(table), TOGETHER):
        stop = min(start + TOGETHER, len(table))
        made = _Made(table.slice(start, stop), [cells[start:stop] for cells in told], mapping, time, most)
        slowly += len(made.slow)
        if slowly > MOST_SLOWLY:
            raise LimitError(slowly, MOST_SLOWLY, "rows at once of a mapping that is not compiled")
        yield made.events(terms, empty=empty)


def _check_columns(table: Table, mapping: StreamMapping) -> None:
    """Raise EventError where a table that names its columns has none that the mapping reads."""
    if table.names is not None and (missing := mapping.missing(table.names)):
        told = ", ".join(map(repr, sorted(missing)))
        there = ", ".join(table.names)[:500]
        raise EventError(None, None, f"no column {told}, which the mapping reads; there are {there}")


def _check_unit(told: Sequence[Sequence[Any]], mapping: StreamMapping) -> None:
    if mapping.clock.unit is not None or len(told) != 1:
        return
    if numbers := whole_numbers(told[0]):
        try:
            check_unit(min(numbers), max(numbers), " and ".join(mapping.time))
        except EventError as error:
            reason = error.reason.partition(": give --time-unit ")
            raise EventError(None, None, f"{reason[0]}: say the mapping's unit") from None


class _Made:
    """Rows being mapped. `slow`: those that Oxigraph answers."""

    def __init__(
        self, table: Table, told: Sequence[Sequence[Any]], mapping: StreamMapping, time: int | None, most: int | None
    ) -> None:
        self._table, self._mapping = table, mapping
        self._work = work = Work(len(table), table.column, most)
        self._columns: list[tuple[Cells | int, ...]] = []
        if mapping.plan is not None:
            self._columns = [
                tuple(_of(part, work) for part in (s.subject, s.predicate, s.object)) for s in mapping.plan.statements
            ]
        if mapping.time:
            self._time, untimed = mapping.clock.read(told)
            for row, why in untimed.items():
                work.fail(row, " and ".join(mapping.time), why)
        elif time is None:
            raise EventError(None, None, "the mapping has no time, and none is given")
        else:
            self._time = np.full(len(table), time, np.int64)
        unsure = range(len(table)) if mapping.plan is None else sorted(work.unsure)
        self.slow = [row for row in unsure if row not in work.wrong]

    def events(self, terms: TermDictionary, *, empty: bool) -> Mapped:
        """All that are right, in order."""
        count, wrong = len(self._table), self._work.wrong
        fast = np.ones(count, np.bool_)
        fast[[*wrong, *self.slow]] = False
        if self._mapping.plan is None:
            fast[:] = False
        batch = self._fast(self._mapping.plan, fast, terms) if fast.any() else EventBatch.empty()
        order = np.flatnonzero(fast)
        if self.slow:
            slow, answered = self._slowly(terms)
            order = np.concatenate([order, np.array(answered, np.int64)])
            batch = EventBatch.concat([batch, slow]).take(np.argsort(order, kind="stable"))
            order = np.sort(order)
        nothing = np.diff(batch.offset) == 0
        if nothing.any() and not empty:
            for row in order[nothing].tolist():
                wrong.setdefault(row, (None, NOTHING))
            batch = batch.take(np.flatnonzero(~nothing))
        places = self._table.places
        bad = tuple(BadRow(why, places[row], column) for row, (column, why) in sorted(wrong.items()))
        return Mapped(batch, bad)

    def _fast(self, plan: Plan | None, rows: NDArray[np.bool_], terms: TermDictionary) -> EventBatch:
        assert plan is not None
        kept = np.flatnonzero(rows)
        blanks = terms.blanks(len(kept) * plan.blanks).reshape(plan.blanks, len(kept)) if plan.blanks else None
        known: dict[int, U32] = {}
        ids = np.zeros((3, len(plan.statements), len(kept)), np.uint32)
        for number, (statement, parts) in enumerate(zip(plan.statements, self._columns, strict=True)):
            named = (statement.subject, statement.predicate, statement.object)
            for place, (part, cells) in enumerate(zip(named, parts, strict=True)):
                if isinstance(cells, int):
                    assert blanks is not None
                    ids[place, number] = 0 if place == 1 else blanks[cells]
                    continue
                key = id(part) if place == 2 else -id(part)
                if key not in known:
                    known[key] = _ids(part, cells, kept, terms, self._work, iri=place != 2)
                ids[place, number] = known[key]
        there = (ids != 0).all(0).T  # by row and statement
        flat = [np.ascontiguousarray(ids[place].T[there]) for place in range(3)]
        return EventBatch(self._time[kept], offsets(there.sum(1)), *flat)

    def _slowly(self, terms: TermDictionary) -> tuple[EventBatch, list[int]]:
        """Row by row; and which."""
        answered: list[int] = []

        def pairs() -> Iterator[tuple[int, Sequence[Triple]]]:
            for row in self.slow:
                try:
                    graph = self._asked(row)
                except (KbError, ValueError) as error:
                    self._work.fail(row, None, str(error))
                    continue
                answered.append(row)
                yield int(self._time[row]), graph

        return encode_events(pairs(), terms), answered

    def _asked(self, row: int) -> list[Triple]:
        values: list[Any] = []
        names: list[str] = []
        for name, column in self._table.columns.items():
            if (value := column[row]) is not None:
                names.append(name)
                values.append(value)
        check_text(self._mapping.growth * longest(values), self._work.most)
        triples = list(self._mapping.query.triples(Rows(tuple(names), [tuple(values)], [None])))
        self._work.count_text(sum(len(each.object.value) for each in triples if isinstance(each.object, Literal)))
        return triples


def _of(part: Part, work: Work) -> Cells | int:
    return part.number if isinstance(part, Blank) else work.cells(part)


def _ids(part: Part, cells: Cells, rows: NDArray[np.int64], terms: TermDictionary, work: Work, *, iri: bool) -> U32:
    """The ids of a column's cells at these rows, 0 where there is none, or, with `iri`, one that is no IRI."""
    if isinstance(part, Constant):
        if iri and part.form != IRI:
            return np.zeros(len(rows), np.uint32)
        text = cells.texts()[0]
        assert text is not None
        return np.full(len(rows), terms.intern_written(text.encode()), np.uint32)
    texts = cells.texts()
    if iri and not (isinstance(cells.form, str) and cells.form == IRI):
        forms = cells.forms()
        texts = [text if form == IRI else None for text, form in zip(texts, forms, strict=True)]
    if len(rows) < len(texts):
        texts = [texts[row] for row in rows.tolist()]
    codes: dict[str | None, int] = {None: 0}
    places = [codes.setdefault(text, len(codes)) for text in texts]
    distinct = [text for text in codes if text is not None]
    work.spend(distinct)
    return interned(distinct, terms)[np.array(places, np.int64)]


def interned(texts: Sequence[str], terms: TermDictionary) -> U32:
    """0, and the ids of terms in N-Triples form."""
    written = [text.encode() for text in texts]
    ends = np.zeros(len(written) + 1, np.int64)
    np.cumsum([len(text) for text in written], out=ends[1:])
    ids = np.zeros(len(written) + 1, np.uint32)
    if written:
        ids[1:] = terms.intern_texts(np.frombuffer(b"".join(written), np.uint8), ends)
    return ids
