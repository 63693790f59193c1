"""A mapping as it is declared: of a stream's settings, of `oxiseq import`, of `stream.push`.

{"subject": ..., "predicates": ..., "time": "ts", "unit": "s"}          the shorthand: construct.py
{"construct": "CONSTRUCT { ... } WHERE { ... }", "time": ["day", "clock"], "zone": "Europe/Berlin"}
{"ready": "senml"}                                                      of `READY`; members beside it count
"CONSTRUCT ...", "senml"                                                the same as texts
{"contexts": {IRI: context}}                                            alone or beside these: what JSON-LD may name

Contexts of JSON-LD fetched once, when a mapping is written: what uses the mapping then fetches nothing.

In the flow: {"contexts": {IRI: null}} → **the context at IRI** → a mapping to store with a stream. The caller
allows it: no server does.
"""

from __future__ import annotations

import json
import time
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final, TypeAlias, cast, get_args
from urllib.parse import urljoin

from oxiseq.engine.bodies import whole_body
from oxiseq.engine.errors import KbError, LimitError, syntax_reason
from oxiseq.engine.events.contexts import MOST, NO_CONTEXTS, Contexts
from oxiseq.engine.events.units import TimeUnit
from oxiseq.engine.extras import needed
from oxiseq.grammar.algebra import Bind
from oxiseq.grammar.arguments import public
from oxiseq.kb_loader.tables import Mapping as Query
from oxiseq.kb_loader.tables import variable_name
from oxiseq.mappings.construct import MEMBERS as FLAT
from oxiseq.mappings.construct import PREFIXES, Flat, NotCompiled, checked_query, compiled, text_growth, variables
from oxiseq.mappings.plan import Constant, MappingError, Plan
from oxiseq.mappings.rows import Table
from oxiseq.mappings.times import Clock, Moment, zone_of

if TYPE_CHECKING:
    import httpx
else:
    httpx = needed("httpx")


# --- ready -----------------------------------------------------------------------------------------------

_SENML: Final = "urn:ietf:params:senml#"
_ECS: Final = "https://www.elastic.co/guide/en/ecs/current/"
_HASS: Final = "https://www.home-assistant.io/ns#"
READY: Final[Mapping[str, Mapping[str, Any]]] = {
    "sosa": {  # SOSA/SSN observations: {"sensor": "t1", "property": "temperature", "feature": "room1", "result": 21.5}
        "prefixes": {"sosa": "http://www.w3.org/ns/sosa/"},
        "type": "sosa:Observation",
        "predicates": {
            "sosa:madeBySensor": "<urn:sensor:{sensor}>",
            "sosa:observedProperty": "<urn:property:{property}>",
            "sosa:hasFeatureOfInterest": "<urn:feature:{feature}>",
            "sosa:hasSimpleResult": "result",
        },
        "time": "time",
    },
    "senml": {  # RFC 8428; as application/senml+json the base values are resolved
        "prefixes": {"senml": _SENML},
        "type": "senml:Record",
        "predicates": {
            "senml:name": "n",
            "senml:unit": "u",
            "senml:value": "value",
            "senml:sum": "s",
        },
        "time": "t",
        "unit": "s",
    },
    "ecs": {  # Elastic Common Schema: log lines of Beats, Fluent Bit, Vector
        "prefixes": {"ecs": _ECS},
        "type": "ecs:Event",
        "predicates": {
            f"ecs:{name}": name
            for name in (
                "message",
                "log.level",
                "log.logger",
                "service.name",
                "host.name",
                "process.name",
                "process.pid",
                "event.action",
                "event.category",
                "event.outcome",
                "event.code",
                "event.dataset",
                "user.name",
                "source.ip",
                "source.port",
                "destination.ip",
                "destination.port",
                "client.ip",
                "url.path",
                "http.request.method",
                "http.response.status_code",
                "trace.id",
                "error.message",
            )
        },
        "time": "@timestamp",
    },
    "home-assistant": {  # state_changed events, as its WebSocket and event stream send them
        "prefixes": {"hass": _HASS},
        "type": "hass:StateChanged",
        "predicates": {
            "hass:entity": "<urn:home-assistant:{data.entity_id}>",
            "hass:from": "data.old_state.state",
            "hass:state": "data.new_state.state",
            "hass:unit": "data.new_state.attributes.unit_of_measurement",
            "hass:name": "data.new_state.attributes.friendly_name",
        },
        "time": "time_fired",
    },
}
"""By name; each is written as in declared.py."""


# --- fetching --------------------------------------------------------------------------------------------

_ACCEPT: Final = "application/ld+json, application/json;q=0.9"
_LARGEST: Final = 4 * MOST
"""Bytes of a context, which has `MOST` characters at most."""
_MOST: Final = 100
"""Contexts of a mapping that are fetched."""
_TIMEOUT: Final = 10.0
_DEADLINE: Final = 60.0
"""Seconds that a context may take in all."""
_REDIRECTS: Final = 5
_NAMES: Final = ("@context", "@import")


def fetched(given: Mapping[str, Any], transport: httpx.BaseTransport | None = None) -> dict[str, Any]:
    """A mapping whose contexts that are null are there now. `transport`: what sends the requests, where it is not the
    network. Raises MappingError."""
    contexts = given.get("contexts")
    if not isinstance(contexts, Mapping) or None not in contexts.values():
        return dict(given)
    missing = [iri for iri, context in contexts.items() if context is None]
    if len(missing) > _MOST:
        raise MappingError(f"contexts: at most {_MOST} are fetched, not {len(missing)}")
    client = httpx.Client(
        transport=transport,
        timeout=_TIMEOUT,
        follow_redirects=True,
        max_redirects=_REDIRECTS,
        headers={"accept": _ACCEPT, "accept-encoding": "identity", "user-agent": "oxiseq"},
    )
    found = dict(contexts)
    with client:
        while missing:  # what is fetched may name further ones
            if len(found) > _MOST + len(contexts):
                raise MappingError(f"contexts: at most {_MOST} are fetched, and they name more")
            named: dict[str, None] = {}
            for iri in missing:
                found[iri] = _named_in_full(_context(client, iri), iri, named)
            missing = [iri for iri in named if iri not in found]
    return {**given, "contexts": found}


def _named_in_full(value: Any, base: str, named: dict[str, None], key: str = "") -> Any:
    """A context with the names of other ones (in `@context`, also of a term, and `@import`) as absolute IRIs, which
    `named` gets."""
    if isinstance(value, dict):
        return {name: _named_in_full(each, base, named, name) for name, each in value.items()}
    if isinstance(value, list):
        return [_named_in_full(each, base, named, key) for each in value]
    if isinstance(value, str) and key in _NAMES:
        value = urljoin(base, value)
        named[value] = None
    return value


def _context(client: httpx.Client, iri: str) -> Any:
    """The content at an IRI. Raises MappingError."""
    try:
        if httpx.URL(iri).scheme not in ("http", "https"):
            raise MappingError(f"contexts: {iri[:200]!r} is no http address: write the context out")
        with client.stream("GET", iri) as answer:
            if answer.status_code != httpx.codes.OK:
                raise MappingError(f"contexts: {iri[:200]}: status {answer.status_code}")
            found = json.loads(_body(answer, iri))
    except (httpx.HTTPError, httpx.InvalidURL) as error:
        raise MappingError(f"contexts: {iri[:200]}: {error or type(error).__name__}") from None
    except (ValueError, RecursionError) as error:
        if isinstance(error, MappingError):
            raise
        raise MappingError(f"contexts: {iri[:200]} is no JSON: {error}") from None
    if not isinstance(found, dict) or "@context" not in found:
        raise MappingError(f'contexts: {iri[:200]} has no "@context"')
    return {"@context": found["@context"]}


def _body(answer: httpx.Response, iri: str) -> bytes:
    if (packed := answer.headers.get("content-encoding", "identity").lower()) != "identity":
        raise MappingError(f"contexts: {iri[:200]} is packed by {packed[:40]}, unasked")  # what it holds has no bound
    try:
        return whole_body(answer.iter_raw(), _LARGEST, time.monotonic() + _DEADLINE)
    except LimitError:
        raise MappingError(f"contexts: {iri[:200]} has more than {_LARGEST:,} bytes") from None
    except TimeoutError:
        raise MappingError(f"contexts: {iri[:200]} took more than {_DEADLINE:.0f} s") from None


# --- declared --------------------------------------------------------------------------------------------

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
