"""A mapping as it is declared: of a stream's settings, of `oxiseq import`, of `stream.push`.

{"subject": ..., "predicates": ..., "time": "ts", "unit": "s"}          the shorthand: flat.py
{"construct": "CONSTRUCT { ... } WHERE { ... }", "time": ["day", "clock"], "zone": "Europe/Berlin"}
{"ready": "senml"}                                                      of ready.py; members beside it count
"CONSTRUCT ...", "senml"                                                the same as texts
{"contexts": {IRI: context}}                                            alone or beside these: what JSON-LD may name
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any, Final, TypeAlias, cast, get_args

from oxiseq.engine.errors import KbError, syntax_reason
from oxiseq.engine.events.contexts import NO_CONTEXTS, Contexts
from oxiseq.engine.events.units import TimeUnit
from oxiseq.grammar.algebra import Bind
from oxiseq.grammar.arguments import public
from oxiseq.kb_loader.tables import Mapping as Query
from oxiseq.kb_loader.tables import variable_name
from oxiseq.mappings.construct import NotCompiled, checked_query, compiled, text_growth, variables
from oxiseq.mappings.errors import MappingError
from oxiseq.mappings.fetching import fetched
from oxiseq.mappings.flat import MEMBERS as FLAT
from oxiseq.mappings.flat import PREFIXES, Flat
from oxiseq.mappings.moment import Moment
from oxiseq.mappings.plan import Constant, Plan
from oxiseq.mappings.ready import READY
from oxiseq.mappings.rows import Table
from oxiseq.mappings.times import Clock, zone_of

Declared: TypeAlias = "StreamMapping | Mapping[str, Any] | str"
_BESIDE: Final = ("time", "unit", "zone", "contexts")
_LONGEST: Final = 256 << 10
"""Characters of a mapping as JSON."""
_UTC: Final = "UTC"
_MOST_TIMES: Final = 4
_ENCODED: Final = 3.0
"""How many times as long a text may be in an IRI."""


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
        time = value.get("time", "time")
        self._moment = Moment(time, _prefixes(value)) if isinstance(time, dict) else None
        self.time = _time(time) if self._moment is None else self._moment.columns
        """The columns with the time, joined if there are several, or the variables of its expression; none: the caller
        gives the time."""
        self.clock = Clock(_unit(value.get("unit")), zone_of(value.get("zone", _UTC)))
        self.growth = 1.0
        """How many times as long as its longest cell the text may be that Oxigraph makes of a row."""
        self.why_slow: str | None = None
        """Why Oxigraph answers, row by row; None: the mapping is compiled to columns."""
        self.contexts = _contexts(value.get("contexts"))
        """Those that JSON-LD for the stream may name."""
        self.takes_rows = [*value] != ["contexts"]
        """Whether the mapping says what rows mean."""
        self._bound: frozenset[str] = frozenset()
        self._flat = "construct" not in value
        self.plan: Plan | None
        needs: tuple[str, ...]
        if not self.takes_rows:
            self.plan, self.text, needs, self.time = None, "", (), ()
        elif self._flat:
            flat = Flat(value)
            self.plan, self.text = flat.plan, flat.construct()
            self.growth = _ENCODED * self.text.count("?")
            needs = tuple(flat.columns)
        else:
            self.text = _text(value["construct"])
            query = checked_query(self.text)
            self.growth = text_growth(query)
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
        self._query = None if self.plan is not None or not self.takes_rows else _query(self.text)

    @classmethod
    def fetching(cls, given: Declared) -> StreamMapping:
        """The same with contexts that are null, which are fetched now, and are then part of the mapping: what uses it
        fetches nothing. Needs the extra `client`. Raises MappingError, ExtraError.

        >>> import oxiseq
        >>> oxiseq.StreamMapping.fetching({"contexts": {"https://example.org/c.jsonld": {"@context": {"id": "@id"}}}})
        StreamMapping({'contexts': {'https://example.org/c.jsonld': {'@context': {'id': '@id'}}}})
        """
        return cls(fetched(given) if isinstance(given, Mapping) else given)

    @property
    def query(self) -> Query:
        """What Oxigraph answers for a row."""
        if self._query is None:
            self._query = Query(self.text)
        return self._query

    def key(self, column: str) -> str | None:
        """What `Table` calls a column of this name; None for one that is not read. Raises MappingError."""
        if self._flat:
            timed = (column if self._moment is None else variable_name(column)) in self.time
            return column if timed or column in self._needs else None
        variable = variable_name(column)
        if variable in self._bound:
            raise MappingError(f"the column {column!r} is ?{variable}, which the mapping binds itself")
        return variable if variable in self._needs or column in self.time or variable in self.time else None

    def missing(self, names: Sequence[str]) -> list[str]:
        """What the mapping reads of a table and is none of its columns. Raises MappingError."""
        there = {self.key(name) for name in names}
        needed = [name for name in self.columns if name in self._needs and name not in there]
        return list(dict.fromkeys((*self._untimed(names), *needed)))

    def timeless(self, names: Sequence[str]) -> list[str]:
        """The columns whose absence leaves every row without a time; of an expression all that it reads, since it may
        do with some of them (COALESCE, BOUND)."""
        lacking = self._untimed(names)
        return lacking if self._moment is None or len(lacking) == len(self.time) else []

    def _untimed(self, names: Sequence[str]) -> list[str]:
        known = set(map(variable_name, names)) if self._moment is not None else {self.key(name) for name in names}
        return [key for key in self._time_keys() if key not in known]

    def time_cells(self, table: Table) -> list[Sequence[Any]]:
        """The cells that hold the times of a table's rows, a list for each column; none: the time comes beside the
        rows. Raises EventError, LimitError."""
        if self._moment is not None:
            return [self._moment.cells(table)]
        return [table.column(key) for key in self._time_keys()]

    def _time_keys(self) -> tuple[str, ...]:
        return self.time if self._flat else tuple(map(variable_name, self.time))

    @property
    def properties(self) -> frozenset[str] | None:
        """The properties that events of its rows can have; None where that cannot be seen."""
        if self.plan is None:
            return None
        named = [statement.predicate for statement in self.plan.statements]
        if not all(isinstance(each, Constant) for each in named):
            return None
        return frozenset(each.lexical for each in named if isinstance(each, Constant))

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
    known = (*_BESIDE, *(("construct",) if "construct" in value else FLAT))
    if unknown := [name for name in value if name not in known]:
        raise MappingError(f"unknown members: {', '.join(unknown)[:200]}; known: {', '.join(known)}")
    return value


def _query(text: str) -> Query:
    try:
        return Query(text)
    except KbError as error:
        raise MappingError(str(error)) from error


def _contexts(given: object) -> Contexts:
    if given is None:
        return NO_CONTEXTS
    if isinstance(given, dict) and (missing := [iri for iri, each in given.items() if each is None]):
        raise MappingError(
            f"contexts: {str(missing[0])[:200]} is null: `oxiseq mapping fetch`, or StreamMapping.fetching, fetches it"
        )
    if not isinstance(given, dict) or not all(isinstance(each, dict | list | str) for each in given.values()):
        raise MappingError("contexts: an object of IRIs and their JSON-LD contexts is expected")
    try:
        return Contexts(given)
    except SyntaxError as error:
        raise MappingError(f"contexts: {syntax_reason(error)}") from None
    except RecursionError:
        raise MappingError("contexts: one is nested too deeply") from None


def _prefixes(value: Mapping[str, Any]) -> dict[str, str]:
    own = value.get("prefixes", {})
    return {**PREFIXES, **own} if isinstance(own, dict) else dict(PREFIXES)


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
