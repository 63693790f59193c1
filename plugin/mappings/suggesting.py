"""A first mapping for a table: each column a predicate, with the type that all of its texts have.

In the flow: rows → **a mapping, to be read and corrected** → `oxiseq mapping suggest`, POST /mappings/suggest.

A stored mapping says by itself what its columns are: nothing is guessed when rows are pushed. So the types are written
into it here, once, from whole columns. Texts with zeros before their digits (`007`) stay texts.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any, Final

from oxiseq.engine.events.units import TimeUnit
from oxiseq.grammar.checking.comparisons import looks_like_number
from oxiseq.mappings.rows import Table

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
