"""Expressions over columns, computed column by column: what mappings are compiled to.

Each expression gives the `Cells` of all rows. A row is *wrong* where the mapping says that it must be (with the column
and why), *unsure* where only SPARQL itself can decide (Oxigraph evaluates that row), and a cell is unbound where
SPARQL's expression has an error: the statements with it are left out.

A column of values on its way to terms: lexical forms, and what they are forms of.

In the flow: columns of rows → **cells** → texts in N-Triples form → term ids. One list per column, no object per
cell but its text.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import field
from typing import Any, Final, Protocol, TypeAlias
from urllib.parse import quote

from pyoxigraph import Literal, NamedNode

from oxiseq.engine.errors import ArgumentValueError, LimitError
from oxiseq.engine.terms.normal import XSD
from oxiseq.grammar.records import dataclass
from oxiseq.kb_loader.tables import lexical_form, refused_by_cast, unwrapped

# --- errors ----------------------------------------------------------------------------------------------


class MappingError(ArgumentValueError):
    """A mapping that is invalid or not supported."""


# --- cells -----------------------------------------------------------------------------------------------

IRI: Final = "<"
STRING: Final = ""
Form: TypeAlias = str
"""What a lexical form is one of: IRI, STRING (a simple literal), `@en`, or `^^<datatype>`."""
INTEGER: Final = f"^^<{XSD}integer>"
DOUBLE: Final = f"^^<{XSD}double>"
BOOLEAN: Final = f"^^<{XSD}boolean>"
_ESCAPED: Final = re.compile(r'["\\\n\r]')
_ESCAPES: Final = {'"': '\\"', "\\": "\\\\", "\n": "\\n", "\r": "\\r"}


@dataclass(frozen=True, slots=True)
class Cells:
    """n cells: lexical forms (None: unbound), and the form of all of them or of each."""

    lexical: Sequence[str | None]
    form: Form | Sequence[Form]

    def forms(self) -> Sequence[Form]:
        """Of each."""
        return [self.form] * len(self.lexical) if isinstance(self.form, str) else self.form

    def texts(self) -> list[str | None]:
        """In N-Triples form."""
        form = self.form
        if not isinstance(form, str):
            return [None if v is None else _text(v, f) for v, f in zip(self.lexical, form, strict=True)]
        if form == IRI:
            return [None if v is None else f"<{v}>" for v in self.lexical]
        if any(_ESCAPED.search(v) for v in self.lexical if v is not None):
            return [None if v is None else f'"{escaped(v)}"{form}' for v in self.lexical]
        return [None if v is None else f'"{v}"{form}' for v in self.lexical]


def _text(lexical: str, form: Form) -> str:
    return f"<{lexical}>" if form == IRI else f'"{escaped(lexical)}"{form}'


def escaped(text: str) -> str:
    """The text between the quotes of a literal."""
    return _ESCAPED.sub(lambda found: _ESCAPES[found[0]], text)


def cells_of(values: Sequence[Any]) -> Cells:
    """Values of rows as the literals that they are; None, and an empty text of a table, is unbound."""
    kinds = set(map(type, values))
    kinds.discard(type(None))
    if kinds <= {str}:
        return Cells(values, STRING)
    if len(kinds) == 1:
        (kind,) = kinds
        write, form = _FORMS.get(kind, _OTHER)
        if form is not None:
            return Cells([None if v is None else write(v) for v in values], form)
    pairs = [(None, STRING) if v is None else _written(v) for v in values]
    return Cells([lexical for lexical, _ in pairs], [form for _, form in pairs])


def lexical_of(value: Any) -> str:
    """A value's lexical form."""
    return value if isinstance(value, str) else _written(value)[0]


def _written(value: Any) -> tuple[str, Form]:
    write, form = _FORMS.get(type(value), _OTHER)
    if form is not None:
        return write(value), form
    if isinstance(value, str | bool | int | float):  # a subclass, as NumPy's float64 is
        return _written(next(kind(value) for kind in (str, bool, int, float) if isinstance(value, kind)))
    if (plain := unwrapped(value)) is not value:
        return _written(plain)
    text, datatype = lexical_form(value)
    return text, STRING if datatype == "string" else f"^^<{XSD}{datatype}>"


def _double(value: float) -> str:
    return Literal(value).value  # as SPARQL's STR() has it: 0, not 0.0


_FORMS: Final[dict[type, tuple[Callable[[Any], str], Form | None]]] = {
    str: (str, STRING),
    bool: (lambda value: "true" if value else "false", BOOLEAN),
    int: (str, INTEGER),
    float: (_double, DOUBLE),
}
_OTHER: Final[tuple[Callable[[Any], str], Form | None]] = (str, None)


# --- plan ------------------------------------------------------------------------------------------------

MOST_TEXT: Final = 256 << 20
"""Characters that the terms of some rows may take together."""
_SAFE: Final = re.compile(r"[A-Za-z0-9\-._~]*")
_PLAIN: Final = r"[A-Za-z0-9\-._~/?@!$&'()*+,;=:]*"
_PLAIN_IRI: Final = re.compile(
    rf"[a-z][a-z0-9+.\-]*:(?://[A-Za-z0-9\-._~]+(?::[0-9]{{1,5}})?(?![^/?#])|(?!//)){_PLAIN}(?:#{_PLAIN})?"
)
"""Surely an IRI; for other texts `is_iri` decides."""
_SHOWN: Final = 60


@dataclass(slots=True)
class Work:
    """Rows being mapped: `column` gives the values of a column by its name, n of them; `most`: characters of text
    (see `check_text`)."""

    count: int
    column: Callable[[str], Sequence[Any]]
    most: int | None = None
    wrong: dict[int, tuple[str | None, str]] = field(default_factory=dict)
    """By row: the column (None: no single one) and why."""
    unsure: set[int] = field(default_factory=set)
    _cells: dict[int, Cells] = field(default_factory=dict)
    _spent: int = 0

    def cells(self, expression: Expr) -> Cells:
        """For an expression, computed once."""
        known = self._cells.get(id(expression))
        if known is None:
            known = self._cells[id(expression)] = expression.cells(self)
        return known

    def fail(self, row: int, column: str | None, why: str) -> None:
        """The row is wrong; the first reason counts."""
        self.wrong.setdefault(row, (column, why))

    def spend(self, *columns: Sequence[str | None]) -> None:
        """Count text that is about to be made. Raises LimitError."""
        self.count_text(sum(len(v) for column in columns for v in column if v is not None))

    def count_text(self, length: int) -> None:
        """Raises LimitError."""
        self._spent += length
        check_text(self._spent, self.most)


def longest(cells: Iterable[Any]) -> int:
    """Characters of the longest of these values; numbers and times are short."""
    texts = (cell if isinstance(cell, str) else str(cell) for cell in cells if isinstance(cell, str | list | dict))
    return max(map(len, texts), default=0)


def check_text(length: float, most: int | None = None) -> None:
    """Raise LimitError for more than the terms of some rows may have: `most`, or MOST_TEXT."""
    most = MOST_TEXT if most is None else most
    if length > most:
        raise LimitError(int(length), most, "characters of the terms that the mapping makes of one batch")


class Expr(Protocol):
    """What gives a term for each row."""

    def cells(self, work: Work) -> Cells:
        """For all rows; read through `Work.cells`."""


@dataclass(frozen=True, slots=True, eq=False)
class Column:
    """A column's values, typed as they are. `required`: a row without it is wrong."""

    name: str
    required: bool = False

    def cells(self, work: Work) -> Cells:
        values = work.column(self.name)
        if self.required:
            for row, value in enumerate(values):
                if value is None or value == "":
                    work.fail(row, self.name, "it is empty or not there")
        return cells_of(values)


@dataclass(frozen=True, slots=True, eq=False)
class Constant:
    """The same term for all rows."""

    lexical: str
    form: str

    def cells(self, work: Work) -> Cells:
        return Cells([self.lexical] * work.count, self.form)


@dataclass(frozen=True, slots=True, eq=False)
class Str:
    """STR()."""

    of: Expr

    def cells(self, work: Work) -> Cells:
        return Cells(work.cells(self.of).lexical, STRING)


@dataclass(frozen=True, slots=True, eq=False)
class Encoded:
    """ENCODE_FOR_URI()."""

    of: Expr

    def cells(self, work: Work) -> Cells:
        given = _simple(work, self.of)
        if _SAFE.fullmatch("".join([v for v in given if v is not None])):
            return Cells(given, STRING)
        work.spend(given)
        return Cells([_encoded(v) for v in given], STRING)


def _encoded(text: str | None) -> str | None:
    if text is None or _SAFE.fullmatch(text):
        return text
    return quote(text, safe="-._~", errors="strict")


@dataclass(frozen=True, slots=True, eq=False)
class Concat:
    """CONCAT() of simple literals."""

    parts: tuple[Expr, ...]

    def cells(self, work: Work) -> Cells:
        columns = [
            [part.lexical] * work.count if isinstance(part, Constant) and part.form == STRING else _simple(work, part)
            for part in self.parts
        ]
        work.spend(*columns)
        return Cells(
            [None if None in row else "".join(row) for row in zip(*columns, strict=True)]
            if columns
            else [""] * work.count,
            STRING,
        )


@dataclass(frozen=True, slots=True, eq=False)
class Iri:
    """IRI(), of texts. `column`: whose row is wrong where the text is no IRI; None: it is unbound there, as SPARQL says
    (or resolved against a base, so that Oxigraph decides)."""

    of: Expr
    column: str | None = None

    def cells(self, work: Work) -> Cells:
        given = work.cells(self.of)
        lexical: list[str | None] = list(given.lexical)
        if given.form == IRI:
            return given
        known: dict[str, bool] = {}
        unusual = {text for text in set(lexical) if text is not None and not _PLAIN_IRI.fullmatch(text)}
        for row, text in enumerate(lexical) if unusual else ():
            if text is None or text not in unusual:
                continue
            if self.column is None:
                work.unsure.add(row)
                lexical[row] = None
            elif not (known[text] if text in known else known.setdefault(text, is_iri(text))):
                work.fail(row, self.column, f"{shown(text)} is no IRI")
                lexical[row] = None
        forms = given.form
        if not (isinstance(forms, str) and forms == STRING):
            for row, form in enumerate(given.forms()):
                if form not in (STRING, IRI):
                    work.unsure.add(row)
                    lexical[row] = None
        return Cells(lexical, IRI)


_NOT_IN_IRI: Final = re.compile(r'[\x00-\x20<>"{}|\\^`]')


def is_iri(text: str) -> bool:
    """Whether it is an absolute IRI."""
    if _NOT_IN_IRI.search(text):
        return False
    try:
        NamedNode(text)
    except ValueError:
        return False
    return True


@dataclass(frozen=True, slots=True, eq=False)
class Typed:
    """STRDT() of simple literals with a datatype: whatever they hold, as SPARQL says."""

    of: Expr
    datatype: str

    def cells(self, work: Work) -> Cells:
        return Cells(_simple(work, self.of), STRING if self.datatype == XSD + "string" else f"^^<{self.datatype}>")


@dataclass(frozen=True, slots=True, eq=False)
class Tagged:
    """STRLANG() of simple literals with a language in lower case."""

    of: Expr
    language: str

    def cells(self, work: Work) -> Cells:
        return Cells(_simple(work, self.of), f"@{self.language}")


@dataclass(frozen=True, slots=True, eq=False)
class Cast:
    """xsd:double() and the like of simple literals in plain forms; other rows are unsure. One whose text the cast does
    not take is wrong: its statement would be missing in an event that has the others."""

    of: Expr
    datatype: str

    def cells(self, work: Work) -> Cells:
        plain, given = PLAIN_FORMS[self.datatype], list(_simple(work, self.of))
        unusual = {text for text in set(given) if text is not None and not plain.fullmatch(text)}
        refused = refused_by_cast({text for text in unusual if text.strip()}, self.datatype)
        for row, text in enumerate(given) if unusual else ():
            if text is not None and text in unusual:
                if text not in refused:  # nor is anything missing where there was nothing
                    work.unsure.add(row)
                else:
                    work.fail(row, None, f"{shown(text)} is no {_short(self.datatype)}")
                given[row] = None
        return Cells(given, STRING if self.datatype == XSD + "string" else f"^^<{self.datatype}>")


@dataclass(frozen=True, slots=True, eq=False)
class Valid:
    """A column's cells as literals of a datatype, without blanks around; a row with another text is wrong."""

    of: Expr
    datatype: str
    column: str

    def cells(self, work: Work) -> Cells:
        valid, given = _VALID.get(self.datatype), list(work.cells(self.of).lexical)
        if self.datatype == XSD + "string":
            return Cells(given, STRING)
        unusual = set() if valid is None else {t for t in set(given) if t is not None and not valid.fullmatch(t)}
        for row, text in enumerate(given) if unusual else ():
            if text is None or valid is None or text not in unusual:
                continue
            stripped = given[row] = text.strip(" \t\r\n")
            if not stripped:
                given[row] = None
            elif not valid.fullmatch(stripped):
                work.fail(row, self.column, f"{shown(text)} is no {_short(self.datatype)}")
                given[row] = None
        return Cells(given, f"^^<{self.datatype}>")


def shown(text: str) -> str:
    """As an error shows it."""
    return repr(text if len(text) <= _SHOWN else text[:_SHOWN] + "…")


def _short(datatype: str) -> str:
    return "xsd:" + datatype.removeprefix(XSD) if datatype.startswith(XSD) else f"<{datatype}>"


def _simple(work: Work, of: Expr) -> Sequence[str | None]:
    """Of simple literals; rows with anything else are unsure."""
    given = work.cells(of)
    if isinstance(given.form, str) and given.form == STRING:
        return given.lexical
    lexical = list(given.lexical)
    for row, form in enumerate(given.forms()):
        if form != STRING and lexical[row] is not None:
            work.unsure.add(row)
            lexical[row] = None
    return lexical


PLAIN_FORMS: Final = {
    XSD + "string": re.compile(r"[\s\S]*"),
    XSD + "boolean": re.compile(r"true|false"),
    XSD + "integer": re.compile(r"-?[0-9]{1,15}", re.ASCII),
    XSD + "decimal": re.compile(r"-?[0-9]{1,9}(\.[0-9]{1,8})?", re.ASCII),
    XSD + "double": re.compile(r"-?[0-9]{1,15}(\.[0-9]{1,15})?", re.ASCII),
}
"""Lexical forms that a cast takes as they are, whatever the engine."""
_DATE: Final = r"-?[0-9]{4,9}-(0[1-9]|1[0-2])-(0[1-9]|[12][0-9]|3[01])"
_CLOCK: Final = r"([01][0-9]|2[0-3]):[0-5][0-9]:[0-5][0-9](\.[0-9]{1,30})?"
_ZONE: Final = r"(Z|[+-](0[0-9]|1[0-3]):[0-5][0-9]|[+-]14:00)?"
_WHOLE: Final = re.compile(r"[+-]?[0-9]{1,400}", re.ASCII)
_FLOAT: Final = re.compile(
    r"[+-]?([0-9]{1,400}(\.[0-9]{0,400})?|\.[0-9]{1,400})([eE][+-]?[0-9]{1,9})?|[+-]?INF|NaN", re.ASCII
)
_VALID: Final = {
    XSD + "boolean": re.compile(r"true|false|0|1"),
    **{XSD + name: _WHOLE for name in ("integer", "long", "int", "short", "byte")},
    XSD + "nonNegativeInteger": re.compile(r"\+?[0-9]{1,400}", re.ASCII),
    XSD + "decimal": re.compile(r"[+-]?([0-9]{1,400}(\.[0-9]{0,400})?|\.[0-9]{1,400})", re.ASCII),
    XSD + "double": _FLOAT,
    XSD + "float": _FLOAT,
    XSD + "date": re.compile(_DATE + _ZONE, re.ASCII),
    XSD + "time": re.compile(_CLOCK + _ZONE, re.ASCII),
    XSD + "dateTime": re.compile(f"{_DATE}T{_CLOCK}{_ZONE}", re.ASCII),
}
"""What the shorthand takes for literals of these datatypes; of others, anything."""


@dataclass(frozen=True, slots=True)
class Blank:
    """A blank node of each row's own, by its number."""

    number: int


Part: TypeAlias = "Expr | Blank"


@dataclass(frozen=True, slots=True)
class Statement:
    """A statement of each row, left out where one of its parts is unbound."""

    subject: Part
    predicate: Part
    object: Part


@dataclass(frozen=True, slots=True)
class Plan:
    """What a mapping makes of each row."""

    statements: tuple[Statement, ...]
    blanks: int
