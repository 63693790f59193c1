"""Columns of rows → event batches, with what is wrong with single rows.

The plan makes all rows at once; rows of which it is unsure, and all where there is no plan, are answered by Oxigraph
one by one, as `oxiseq load` does it. Both agree (tests/mappings). A row of which nothing comes is left out like a bad
one, and said.

A first mapping for a table: each column a predicate, with the type that all of its texts have.

In the flow: rows → **a mapping, to be read and corrected** → `oxiseq mapping suggest`, POST /mappings/suggest.

A stored mapping says by itself what its columns are: nothing is guessed when rows are pushed. So the types are written
into it here, once, from whole columns. Texts with zeros before their digits (`007`) stay texts.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from difflib import get_close_matches
from itertools import islice
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray
from pyoxigraph import Literal, Triple

from oxiseq.engine.errors import EventError, KbError, LimitError
from oxiseq.engine.events.batch import EventBatch, offsets
from oxiseq.engine.events.encode import decode_events, encode_events
from oxiseq.engine.events.units import TimeUnit, check_unit
from oxiseq.engine.terms.dictionary import TermDictionary
from oxiseq.grammar.checking.comparisons import looks_like_number
from oxiseq.grammar.records import dataclass
from oxiseq.kb_loader.rows import Rows
from oxiseq.mappings.declared import StreamMapping
from oxiseq.mappings.plan import IRI, Blank, Cells, Constant, Part, Plan, Work, check_text, longest
from oxiseq.mappings.rows import BadRow, Table
from oxiseq.mappings.times import whole_numbers

# --- events ----------------------------------------------------------------------------------------------

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


# --- trying ----------------------------------------------------------------------------------------------

_GUESSES: Final = 20
"""Missing columns for which one of a like name is sought, among the first `_NAMES`: each is compared with each."""
_NAMES: Final = 1_000
_TEXT: Final = 16 << 20
"""Characters of the terms: half a second of work."""


@dataclass(frozen=True, slots=True)
class Missing:
    """A column that the mapping reads and the table does not have; `near`: the column of it that has such a name."""

    column: str
    near: str | None


@dataclass(frozen=True, slots=True)
class Tried:
    """`events`: time (µs; 0 where the mapping states none) and triples; `bad`: the rows that are left out;
    `missing`: columns that the table lacks; `unread`: columns of it that the mapping does not read."""

    events: tuple[tuple[int, tuple[Triple, ...]], ...]
    bad: tuple[BadRow, ...]
    missing: tuple[Missing, ...]
    unread: tuple[str, ...]


def tried(table: Table, names: tuple[str, ...], mapping: StreamMapping, first: int) -> Tried:
    """The first `first` events of a table that has columns of these names. Raises EventError, LimitError."""
    terms, events, bad = TermDictionary(), list[tuple[int, tuple[Triple, ...]]](), list(table.bad)
    table.bad = []
    table.names = None  # a missing column has its own message
    for part in mapped(table, mapping, terms, None if mapping.time else 0, most=_TEXT):
        events += [(at, tuple(graph)) for at, graph in islice(decode_events(part.batch, terms), first - len(events))]
        bad += part.bad
        if len(events) >= first:
            break
    missing = tuple(Missing(c, _near(c, names) if n < _GUESSES else None) for n, c in enumerate(mapping.missing(names)))
    return Tried(tuple(events), tuple(bad), missing, tuple(name for name in names if mapping.key(name) is None))


def _near(column: str, names: tuple[str, ...]) -> str | None:
    return next(iter(get_close_matches(column, names[:_NAMES], 1)), None)


# --- suggesting ------------------------------------------------------------------------------------------

_TIMES: Final = re.compile("time|timestamp|ts|at|date|datetime", re.IGNORECASE)
_SUBJECTS: Final = re.compile("id|sensor|device|name|key", re.IGNORECASE)
_NAME: Final = re.compile(r"[^\w-]")
_CLOCK: Final = r"[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}(?:\.[0-9]+)?(?:Z|[+-][0-9]{2}:[0-9]{2})?"
_TYPES: Final[Mapping[str, re.Pattern[str]]] = {
    "xsd:integer": re.compile(r"[+-]?[0-9]+"),
    "xsd:decimal": re.compile(r"[+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)"),
    "xsd:double": re.compile(r"[+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?"),
    "xsd:boolean": re.compile("true|false"),
    "xsd:date": re.compile("[0-9]{4}-[0-9]{2}-[0-9]{2}"),
    "xsd:dateTime": re.compile(_CLOCK),
}
_NUMBERS: Final = frozenset(["xsd:integer", "xsd:decimal", "xsd:double"])
_UNITS: Final[tuple[tuple[float, TimeUnit], ...]] = ((1e17, "ns"), (1e14, "us"), (1e11, "ms"), (0, "s"))


def suggested(table: Table, names: Sequence[str]) -> dict[str, Any]:
    """A mapping for a table of these columns."""
    time = next((name for name in names if _TIMES.fullmatch(name)), None)
    subject = next((name for name in names if _SUBJECTS.fullmatch(name)), None)
    predicates = {
        f"ex:{_NAME.sub('_', name)}": _object(name, table.column(name)) for name in names if name not in (time, subject)
    }
    first = next((value for value in table.column(time) if value is not None), "") if time is not None else ""
    return {
        "prefixes": {"ex": "http://example.org/"},
        **({} if subject is None else {"subject": f"ex:{{{subject}}}"}),
        "predicates": predicates,
        "time": time,
        **_unit(str(first)),
    }


def _object(name: str, values: Sequence[Any]) -> Any:
    """The column alone where its values have types of their own, or are texts."""
    found = text_type([value for value in values if value is not None])
    return name if found is None else {"column": name, "datatype": found}


def text_type(values: Sequence[Any]) -> str | None:
    """The type that all of these texts can have; None for other values, and for texts that have none."""
    if not values or not all(isinstance(value, str) for value in values):
        return None
    for name, pattern in _TYPES.items():
        if all(map(pattern.fullmatch, values)) and (name not in _NUMBERS or all(map(looks_like_number, values))):
            return name
    return None


def _unit(first: str) -> dict[str, TimeUnit]:
    if not looks_like_number(first):
        return {}
    return {"unit": next(unit for least, unit in _UNITS if abs(float(first)) >= least)}
