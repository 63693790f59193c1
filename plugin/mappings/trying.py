"""What a mapping makes of the first rows of a table: nothing is stored."""

from __future__ import annotations

from difflib import get_close_matches
from itertools import islice
from typing import Final

from pyoxigraph import Triple

from oxiseq.engine.events.encode import decode_events
from oxiseq.engine.terms.dictionary import TermDictionary
from oxiseq.grammar.records import dataclass
from oxiseq.mappings.declared import StreamMapping
from oxiseq.mappings.events import mapped
from oxiseq.mappings.rows import BadRow, Table

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
