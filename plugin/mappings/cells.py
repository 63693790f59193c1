"""A column of values on its way to terms: lexical forms, and what they are forms of.

In the flow: columns of rows → **cells** → texts in N-Triples form → term ids. One list per column, no object per
cell but its text.
"""

from __future__ import annotations

import json
import re
from base64 import b64encode
from collections.abc import Callable, Sequence
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from typing import Any, Final, TypeAlias

from pyoxigraph import Literal

from oxiseq.engine.terms.normal import XSD
from oxiseq.grammar.records import dataclass

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
        plain: Any = next(kind(value) for kind in (str, bool, int, float) if isinstance(value, kind))
        return _written(plain)
    if isinstance(value, datetime):
        return value.isoformat(), f"^^<{XSD}dateTime>"
    for kind, name in ((date, "date"), (time, "time")):
        if isinstance(value, kind):
            return value.isoformat(), f"^^<{XSD}{name}>"
    if isinstance(value, timedelta):
        return _duration(value), f"^^<{XSD}dayTimeDuration>"
    if isinstance(value, Decimal):
        return f"{value:f}", f"^^<{XSD}decimal>"
    if isinstance(value, bytes):
        return b64encode(value).decode(), f"^^<{XSD}base64Binary>"
    if hasattr(value, "item") and type(value.item()) is not type(value):  # a scalar of NumPy's
        return _written(value.item())
    return json.dumps(value, ensure_ascii=False, default=lambda inner: _written(inner)[0]), STRING


def _duration(value: timedelta) -> str:
    length = abs(value)
    seconds = Decimal(length.seconds) + Decimal(length.microseconds) / 1_000_000
    return f"{'-' * (value < timedelta())}P{length.days}DT{seconds:f}S"


def _double(value: float) -> str:
    return Literal(value).value  # as SPARQL's STR() has it: 0, not 0.0


_FORMS: Final[dict[type, tuple[Callable[[Any], str], Form | None]]] = {
    str: (str, STRING),
    bool: (lambda value: "true" if value else "false", BOOLEAN),
    int: (str, INTEGER),
    float: (_double, DOUBLE),
}
_OTHER: Final[tuple[Callable[[Any], str], Form | None]] = (str, None)
