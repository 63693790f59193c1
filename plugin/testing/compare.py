"""Found rows beside expected ones, as multisets, over the columns that the test names."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from pyoxigraph import BlankNode, Literal, NamedNode

from oxiseq.engine.events.time import to_literal
from oxiseq.engine.terms.normal import XSD
from oxiseq.grammar.records import dataclass
from oxiseq.matches.rows import EVENTS, Cell, Kind, Row, Times, surplus
from oxiseq.testing.cases import Case, Expected
from oxiseq.testing.errors import TestFileError
from oxiseq.testing.times import reader

_NOTHING = ("", "-", "UNDEF")
_DURATION = re.compile(r"-?P[\dTDHMS.]+")


@dataclass(frozen=True, slots=True)
class Difference:
    """What was expected and not found, and the other way round; `columns` are those compared. For a mere number
    `count` is what was expected, and `extra` all that was found."""

    columns: tuple[str, ...]
    missing: tuple[Row, ...]
    extra: tuple[Row, ...]
    count: int | None = None


def difference(case: Case, known: Mapping[str, Kind], expected: Expected, found: Sequence[Row]) -> Difference | None:
    """None if all is as expected; `known`: the columns that there are. Raises TestFileError for a cell that cannot
    be read, a column that is unknown."""
    if expected.table is None:
        if expected.count == len(found):
            return None
        columns = tuple(dict.fromkeys(name for row in found for name in row if not name.startswith(EVENTS)))
        return Difference(columns, (), tuple(found), expected.count)
    columns = expected.table.header
    if unknown := [c for c in columns if c not in known]:
        raise TestFileError(f"no column {', '.join(unknown)}; a match has {', '.join(known)}")
    wanted = [
        {name: _cell(case, known[name], text) for name, text in zip(columns, row, strict=True)}
        for row in expected.table.rows
    ]
    missing, extra = surplus(wanted, found, columns), surplus(found, wanted, columns)
    return Difference(columns, missing, extra) if missing or extra else None


def _cell(case: Case, kind: Kind, text: str) -> Cell:
    """What a cell of an expected row means, by its column's kind."""
    time = reader(case.zero)
    if kind == "times":
        return Times(tuple(time(each) for each in text.split()))
    if kind == "number":
        return int(text)
    if text in _NOTHING:
        return None
    if text.startswith("_:"):
        return BlankNode()
    found = case.words.term(text)
    if isinstance(found, BlankNode | Literal | NamedNode):
        return found
    if _DURATION.fullmatch(text):
        return Literal(text, datatype=NamedNode(XSD + "dayTimeDuration"))
    return _time_term(text, time)


def _time_term(text: str, time: Callable[[Any], int]) -> Cell:
    try:
        return to_literal(time(text))
    except TestFileError:
        raise TestFileError(f"{text!r} is neither a term of Turtle nor a time") from None
