"""A mapping as it is declared: of a stream's settings, of `oxiseq events`, of `stream.push`.

{"subject": ..., "predicates": ..., "time": "ts", "unit": "s"}          the shorthand: flat.py
{"construct": "CONSTRUCT { ... } WHERE { ... }", "time": ["day", "clock"], "zone": "Europe/Berlin"}
{"ready": "senml"}                                                      of ready.py; what stands beside it counts
"CONSTRUCT ...", "senml"                                                the same as texts
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, Final, TypeAlias, cast, get_args

from oxiseq.engine.events.units import TimeUnit
from oxiseq.grammar.algebra import Bind
from oxiseq.grammar.arguments import public
from oxiseq.kb_loader.tables import Mapping as Query
from oxiseq.kb_loader.tables import variable_name
from oxiseq.mappings.construct import NotCompiled, checked_query, compiled, variables
from oxiseq.mappings.errors import MappingError
from oxiseq.mappings.flat import MEMBERS as FLAT
from oxiseq.mappings.flat import Flat
from oxiseq.mappings.plan import Plan
from oxiseq.mappings.ready import READY
from oxiseq.mappings.times import Clock, zone_of

Declared: TypeAlias = "StreamMapping | Mapping[str, Any] | str"
_ABOUT_TIME: Final = ("time", "unit", "zone")
_LONGEST: Final = 256 << 10
"""Characters of a mapping as JSON."""
_UTC: Final = "UTC"
_MOST_TIMES: Final = 4


@public
class StreamMapping:
    """What the rows that are pushed to a stream mean: a CONSTRUCT query over their columns, the shorthand for flat
    rows, or the name of a ready one. Raises MappingError (a ValueError).

    >>> import oxiseq
    >>> mapping = oxiseq.StreamMapping(
    ...     {"subject": "http://ex/{id}", "predicates": {"http://ex/celsius": "temp"}, "time": "ts", "unit": "s"}
    ... )
    >>> mapping.columns
    ('id', 'temp', 'ts')
    >>> store = oxiseq.Store()
    >>> stream = store.stream("http://ex/readings", mapping=mapping)
    >>> stream.push({"id": 7, "temp": 21.5, "ts": 1714557600})
    >>> stream.events
    1
    """

    def __init__(self, given: Declared) -> None:
        self._value = value = _value(given)
        self.time = _time(value.get("time", "time"))
        """The columns with the time, joined if there are several; none: the caller gives the time."""
        self.clock = Clock(_unit(value.get("unit")), zone_of(value.get("zone", _UTC)))
        self.why_slow: str | None = None
        """Why Oxigraph answers, row by row; None: the mapping is compiled to columns."""
        self._bound: frozenset[str] = frozenset()
        self._flat = "construct" not in value
        self.plan: Plan | None
        if self._flat:
            flat = Flat(value)
            self.plan, self.text = flat.plan, flat.construct()
            needs = tuple(flat.columns)
        else:
            self.text = _text(value["construct"])
            query = checked_query(self.text)
            try:
                self.plan = None if query.base is not None else compiled(query)
                self.why_slow = None if query.base is None else "BASE"
            except NotCompiled as why:
                self.plan, self.why_slow = None, str(why)
            self._bound = frozenset(e.variable.value for e in query.body.where.elements if isinstance(e, Bind))
            needs = tuple(variables(query))
        self.columns = tuple(dict.fromkeys((*needs, *self.time)))
        """Those that it reads, in the order of the mapping; of a CONSTRUCT query as variables."""
        self._needs = frozenset(needs)
        self._query: Query | None = None

    @property
    def query(self) -> Query:
        """What Oxigraph answers for a row."""
        if self._query is None:
            self._query = Query(self.text)
        return self._query

    def key(self, column: str) -> str | None:
        """What `Table` calls a column of this name; None for one that is not read. Raises MappingError."""
        if self._flat:
            return column if column in self._needs or column in self.time else None
        variable = variable_name(column)
        if variable in self._bound:
            raise MappingError(f"the column {column!r} is ?{variable}, which the mapping binds itself")
        return variable if variable in self._needs or column in self.time or variable in self.time else None

    def time_keys(self) -> tuple[str, ...]:
        """What `Table` calls the columns of the time."""
        return self.time if self._flat else tuple(map(variable_name, self.time))

    def as_data(self) -> dict[str, Any]:
        """As JSON values, from which it can be made again."""
        return dict(self._value)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, StreamMapping) and self._value == other._value

    def __hash__(self) -> int:
        return hash(json.dumps(self._value, sort_keys=True))

    def __reduce__(self) -> tuple[Any, ...]:
        return StreamMapping, (self._value,)

    def __repr__(self) -> str:
        return f"StreamMapping({self._value!r})"


def _value(given: object) -> dict[str, Any]:
    """As JSON values, with what a ready mapping says. Raises MappingError."""
    if isinstance(given, StreamMapping):
        return given.as_data()
    if isinstance(given, str):
        given = {"ready": given} if given in READY else {"construct": given}
    if not isinstance(given, Mapping):
        ready = ", ".join(READY)
        raise MappingError(f"a mapping is an object, a CONSTRUCT query or one of {ready}, not {given!r}"[:200])
    try:
        text = json.dumps(dict(given), allow_nan=False)
        value: dict[str, Any] = json.loads(text)
        json.dumps(value, ensure_ascii=False).encode()  # half a character is in no term
    except (TypeError, ValueError, RecursionError) as error:
        raise MappingError(f"a mapping is of JSON values: {error}") from None
    if len(text) > _LONGEST:
        raise MappingError(f"a mapping has at most {_LONGEST:,} characters, not {len(text):,}")
    if "ready" in value:
        name = value.pop("ready")
        if not isinstance(name, str) or name not in READY:
            raise MappingError(f"ready: one of {', '.join(READY)} is expected, not {name!r}"[:200])
        value = {**READY[name], **value}
    known = (*_ABOUT_TIME, *(("construct",) if "construct" in value else FLAT))
    if unknown := [name for name in value if name not in known]:
        raise MappingError(f"unknown members: {', '.join(unknown)[:200]}; known: {', '.join(known)}")
    return value


def _time(given: object) -> tuple[str, ...]:
    columns = [] if given is None else given if isinstance(given, list) else [given]
    if not all(isinstance(c, str) and c for c in columns) or len(columns) > _MOST_TIMES:
        raise MappingError(f"time: a column, or up to {_MOST_TIMES} that are joined, is expected, not {given!r}"[:200])
    return tuple(cast(list[str], columns))


def _unit(given: object) -> TimeUnit | None:
    if given is not None and given not in get_args(TimeUnit):
        raise MappingError(f"unit: {', '.join(get_args(TimeUnit))} or null is expected, not {given!r}"[:200])
    return cast("TimeUnit | None", given)


def _text(given: object) -> str:
    if not isinstance(given, str):
        raise MappingError(f"construct: the text of a CONSTRUCT query is expected, not {given!r}"[:200])
    return given
