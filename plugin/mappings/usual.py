"""The mapping of flat rows that come without one: each column is a predicate in the query's own prefix.

In the flow: dicts, or a CSV file where pyarrow is missing → **a mapping** → events. What a row means is what
`engine/events/row_events` makes of a row of a table, so answers are the same; it is slower.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Mapping, Sequence
from datetime import date
from pathlib import Path
from typing import Any, Final

from oxiseq.engine.errors import EventError
from oxiseq.engine.events.row_graphs import RDF_TYPE
from oxiseq.engine.events.tuples import TIME_NAMES, Naming, find_time
from oxiseq.mappings.declared import StreamMapping
from oxiseq.mappings.events import text_type
from oxiseq.mappings.rows import object_table, row_tables

_AS_TABLES: Final = {"xsd:decimal": "xsd:double"}
"""A table has no decimals: its fractions are doubles."""
_TIMES: Final = ("xsd:date", "xsd:dateTime")


def plain_columns(events: Sequence[Mapping[str, Any]] | str | Path) -> Mapping[str, Sequence[Any]] | None:
    """The columns of a list of dicts, or of a CSV file that only the standard library can read here; None: it is
    another source. Raises EventError."""
    if not isinstance(events, str | Path):
        return object_table(events, str).columns
    if not str(events).lower().endswith((".csv", ".csv.gz")) or (tables := row_tables(events, str)) is None:
        return None
    columns = defaultdict[str, list[Any]](list)
    for table in tables:
        for name, values in table.columns.items():
            columns[name] += values
    return columns


def usual_mapping(
    columns: Mapping[str, Sequence[Any]], naming: Naming, vocab: str, asked: Collection[str] | None
) -> StreamMapping:
    """The mapping of rows with these columns. `vocab`: the query's empty prefix; `asked`: the predicates that it reads,
    None: all. Raises EventError where no column holds the time."""
    types = {name: text_type([v for v in values if v is not None]) for name, values in columns.items()}

    def holds_times(name: str) -> bool:
        values = columns[name]
        return types[name] in _TIMES or (bool(values) and all(isinstance(value, date) for value in values))

    time = naming.time or find_time(columns, holds_times)
    if time is None or time not in columns:
        wanted = TIME_NAMES[0] if time is None else time
        raise EventError("the rows", None, f"no column {wanted!r} for the time; they have {', '.join(columns)}")
    predicates: dict[str, Any] = {}
    for name in columns:
        iri = RDF_TYPE.value if name == naming.type else vocab + name
        if name == time or not (name.isidentifier() if asked is None else iri in asked):
            continue
        found = types[name]
        if name == naming.type:
            predicates[iri] = f"<{vocab}{{+{name}}}>"
        else:
            datatype = {} if found is None else {"datatype": _AS_TABLES.get(found, found)}
            predicates[iri] = {"column": name, **datatype}
    shown = predicates or {vocab + name: name for name in columns if name != time and name.isidentifier()}
    return StreamMapping({"predicates": shown, "time": time, "unit": naming.unit or "us"})
