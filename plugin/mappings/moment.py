"""The time of rows as a SPARQL expression over their columns → cells, which times.py reads.

    "time": {"expression": "STRDT(CONCAT(?day, 'T', ?clock, ':00Z'), xsd:dateTime)"}
    "time": {"expression": "?started + ?offset / 1000"}, "unit": "s"

Oxigraph evaluates it for some thousand rows at a time. The bounds of a CONSTRUCT mapping are its bounds: it reads
nothing but the columns, and makes no text that is much longer than they are.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from decimal import Decimal, InvalidOperation
from typing import Any, Final

from pyoxigraph import Literal, NamedNode

from oxiseq.engine.errors import EventError, KbError
from oxiseq.engine.terms.normal import XSD
from oxiseq.grammar.algebra import Bind
from oxiseq.grammar.errors import QueryError, span_at
from oxiseq.kb_loader.rows import Rows
from oxiseq.kb_loader.tables import Mapping as Query
from oxiseq.kb_loader.tables import variable_name
from oxiseq.mappings.construct import checked_query, text_growth, variables
from oxiseq.mappings.errors import MappingError
from oxiseq.mappings.plan import check_text, is_iri, longest
from oxiseq.mappings.rows import Table

_TOGETHER: Final = 4096
_LONGEST: Final = 8192
"""Characters of an expression."""
_TIME: Final = "urn:oxiseq:time"
_ROW: Final = "urn:oxiseq:row:"
_PYTHON: Final[dict[str, type]] = {
    XSD + "integer": int,
    XSD + "decimal": Decimal,
    XSD + "double": float,
    XSD + "float": float,
}


class Moment:
    """An expression. `columns`: the variables that it reads. Raises MappingError, with the place in the text."""

    def __init__(self, given: object, prefixes: Mapping[str, str]) -> None:
        text = given.get("expression") if isinstance(given, Mapping) and len(given) == 1 else None
        if not isinstance(text, str):
            raise MappingError(f'time: a column, several, or {{"expression": "..."}} is expected, not {given!r}'[:200])
        if len(text) > _LONGEST:
            raise MappingError(f"time: an expression has at most {_LONGEST:,} characters, not {len(text):,}")
        number, row, time = (_free(name, text) for name in ("number", "row", "time"))
        declared = "".join(f"PREFIX {p}: <{iri}> " for p, iri in prefixes.items() if f"{p}:" in text and is_iri(iri))
        head = (
            f"{declared}CONSTRUCT {{ ?{row} <{_TIME}> ?{time} }} WHERE {{ "
            f'BIND(IRI(CONCAT("{_ROW}", STR(?{number}))) AS ?{row}) BIND('
        )
        try:
            query = checked_query(f"{head}{text}\n AS ?{time}) }}")
            self._query = Query(f"{head}{text}\n AS ?{time}) }}", "the time's expression")
        except (MappingError, KbError) as error:
            raise MappingError(_in_expression(error, text, len(head))) from error
        if [type(each) for each in query.body.where.elements] != [Bind, Bind] or len(query.template) != 1:
            raise MappingError("time: one expression is expected, as ?started + ?offset")
        self._number, self._growth = number, text_growth(query)
        self.columns = tuple(name for name in variables(query) if name != number)
        if not self.columns:
            raise MappingError("time: the expression reads no column")

    def cells(self, table: Table) -> list[Any]:
        """Its value for each row of a table; None where it has none. Raises EventError, LimitError."""
        columns = [_column(table, name) for name in self.columns]
        found: list[Any] = [None] * len(table)
        check_text(self._growth * sum(longest(row) for row in zip(*columns, strict=True)))
        for start in range(0, len(table), _TOGETHER):
            numbers = range(start, min(start + _TOGETHER, len(table)))
            parts = [column[start : start + _TOGETHER] for column in columns]
            rows = Rows((self._number, *self.columns), list(zip(numbers, *parts, strict=True)), [None] * len(numbers))
            try:
                for triple in self._query.triples(rows):
                    assert isinstance(triple.subject, NamedNode)
                    found[int(triple.subject.value.removeprefix(_ROW))] = _value(triple.object)
            except (KbError, ValueError) as error:
                raise EventError(None, None, str(error)) from error
        return found


def _free(name: str, text: str) -> str:
    """A variable's name that the text does not have."""
    while name in text:
        name += "_"
    return name


def _in_expression(error: MappingError | KbError, text: str, before: int) -> str:
    """An error of the whole query as one of the expression, which begins `before` characters into it."""
    found = error.__cause__
    if not isinstance(found, QueryError):
        return f"time: {error}"
    start, end = (min(max(0, at - before), len(text)) for at in (found.span.start, found.span.end))
    ended = start == len(text)  # what is met there is ours
    own = QueryError(
        "the expression ends too early" if ended else found.message,
        span_at(text, start, end),
        text,
        hint="" if ended else found.hint,
        expected=found.expected,
    )
    return f"the time's expression: {own}"


def _column(table: Table, variable: str) -> Sequence[Any]:
    """The values of the column that is this variable. Raises EventError where two are."""
    named = [name for name in table.columns if variable_name(name) == variable]
    if len(named) > 1:
        raise EventError(None, None, f"the columns {named[0]!r} and {named[1]!r} are the same variable ?{variable}")
    return table.column(named[0] if named else variable)


def _value(term: object) -> Any:
    """As times.py takes it: a number, or the text of anything else, also of what STRDT calls a number."""
    if not isinstance(term, Literal):
        return str(term)
    kind = _PYTHON.get(term.datatype.value, str)
    try:
        return kind(term.value)
    except (ValueError, InvalidOperation):
        return term.value
