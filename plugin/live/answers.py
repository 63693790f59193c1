"""Answers of queries over the store, and what changes of them, as the journal has them.

In the flow: `oxiseq.api.standing` → **blobs** → journal, topics; and back: what has been emitted of an answer so far.

A row is a tuple of N-Triples texts (None: unbound), a row of CONSTRUCT a triple. A change is stored row by row, each as
often as it comes or goes and under an id of its own, those that go first; a last column says which. A change of many
rows is several batches; all but the last say that it continues.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Final, TypeAlias

import numpy as np
from pyoxigraph import Triple

from oxiseq.api.standing.query import Form
from oxiseq.api.standing.query import Row as Told
from oxiseq.engine.output.batch import MatchBatch
from oxiseq.grammar.records import dataclass
from oxiseq.journal import DamagedError, Found, Heading, Journal, StoredMatches, unpack_matches
from oxiseq.journal.rows import pack_rows

Row: TypeAlias = tuple[str | None, ...]
Rows: TypeAlias = Mapping[Row, int]
"""How often each is there; of a change below 0 how often it goes."""
OF_ANSWER: Final = "{!r} is a query over the store: it has an answer and its changes, but no matches"
PART: Final = 1000
"""Rows of a batch: a reader of live changes gets one at a time."""
TRIPLE: Final = ("subject", "predicate", "object")
_SIGN: Final = ""
"""The column that says whether a row came: no variable is called so."""
_CAME: Final = '"+"'
_WENT: Final = '"-"'


@dataclass(frozen=True, slots=True)
class Answer:
    """An answer: `number` is the id of the last change in it; `at`: µs, when it was read."""

    form: Form
    columns: tuple[str, ...]
    number: int
    at: int
    rows: Rows

    @property
    def size(self) -> int:
        """Its rows, each as often as it is there."""
        return sum(self.rows.values())


def columns_of(form: Form, variables: Sequence[str]) -> tuple[str, ...]:
    """Of the rows of a query: of ASK none."""
    return TRIPLE if form == "CONSTRUCT" else tuple(variables)


def rows_of(weighed: Iterable[tuple[Told, int]]) -> Counter[Row]:
    """Rows as a standing query has them."""
    found: Counter[Row] = Counter()
    for row, weight in weighed:
        terms = (row.subject, row.predicate, row.object) if isinstance(row, Triple) else row.values()
        found[tuple(None if term is None else str(term) for term in terms)] += weight
    return found


def difference(before: Rows, now: Rows) -> Counter[Row]:
    """What changes the one into the other."""
    changed = Counter({row: count - before.get(row, 0) for row, count in now.items() if count != before.get(row, 0)})
    changed.update({row: -count for row, count in before.items() if row not in now})
    return changed


def size_of(change: Rows) -> int:
    """How many ids it takes."""
    return sum(map(abs, change.values()))


def packed(query: str, first: int, columns: Sequence[str], at: int, change: Rows) -> Iterator[Found]:
    """A change made at a time (µs), from the id `first` on."""
    rows = [(*row, _WENT) for row, weight in change.items() for _ in range(-weight)]
    rows += [(*row, _CAME) for row, weight in change.items() for _ in range(weight)]
    for start in range(0, len(rows), PART):
        heading = Heading((*columns, _SIGN), more=start + PART < len(rows))
        yield Found(query, first + start, _blob(rows[start : start + PART], heading, at))


def saved(answer: Answer) -> bytes:
    """For a checkpoint."""
    rows = [(*row, _CAME) for row, count in answer.rows.items() for _ in range(count)]
    return _blob(rows, Heading((*answer.columns, _SIGN)), answer.at) if rows else b""


def told_rows(journal: Journal, query: str) -> Counter[Row]:
    """What readers have got of an answer: that of the last checkpoint, and the changes since. Raises JournalError
    where either cannot be read."""
    found: Counter[Row] = Counter()
    checkpoint = journal.checkpoints.latest(query)
    if checkpoint is None:
        raise DamagedError(f"the answer of {query!r} is lost")
    cursor = checkpoint.matches.get(query, 0)
    if checkpoint.state:
        _add(found, unpack_matches(checkpoint.state, 1))
    while parts := journal.matches.read(query, cursor):
        for part in parts:
            _add(found, part)
        cursor = parts[-1].last
    return Counter({row: count for row, count in found.items() if count})


def signed_rows(stored: StoredMatches) -> list[tuple[Row, bool]]:
    """The rows of a change, and whether each came."""
    return [(row[:-1], row[-1] == _CAME) for row in stored.rows()]


def stored_columns(stored: StoredMatches) -> tuple[str, ...]:
    """Those of the answer."""
    return stored.heading.variables[:-1]


def _add(found: Counter[Row], stored: StoredMatches) -> None:
    for row, came in signed_rows(stored):
        found[row] += 1 if came else -1


def _blob(rows: Sequence[Row], heading: Heading, at: int) -> bytes:
    numbers: dict[str | None, int] = {None: 0}
    codes = [[numbers.setdefault(text, len(numbers)) for text in row] for row in rows]
    count = len(rows)
    batch = MatchBatch(
        np.full(count, at, np.int64),
        np.zeros((count, 0), np.uint32),
        np.zeros(count + 1, np.int64),
        np.zeros(0, np.int32),
        np.zeros(0, np.int64),
    )
    texts = [text.encode() for text in numbers if text is not None]
    return pack_rows(batch, heading, np.array(codes, np.int32), texts)
