"""`/queries` and their sinks: register, list, pause, replace, delete."""

from __future__ import annotations

import json
from collections.abc import Iterable
from functools import lru_cache
from typing import Annotated, Any, Final, Literal
from urllib.parse import quote

import msgspec
from msgspec import Meta

from oxiseq.engine.errors import KbError, OxiseqError
from oxiseq.engine.events.time import to_text
from oxiseq.grammar import QueryError, load
from oxiseq.grammar.errors import as_values
from oxiseq.grammar.languages import STANDING, USUAL, media_types
from oxiseq.grammar.records import dataclass
from oxiseq.languages.lints import lints_of, unmapped
from oxiseq.languages.registry import language_for
from oxiseq.live.api.table import (
    JSON,
    Call,
    as_problem,
    findings,
    in_address,
    json_response,
    listed,
    query_problem,
    unsupported,
)
from oxiseq.live.queries import QueryStatus, random_name
from oxiseq.live.remote import RemoteKnowledge
from oxiseq.live.settings import DOORS, options_of
from oxiseq.live.sinks import SinkStatus
from oxiseq.mappings.declared import StreamMapping
from oxiseq.options import OPTIONS, Option, options_for
from oxiseq.options.query_text import known_text
from oxiseq.sinks import KINDS
from oxiseq.sinks import NAME as SINK_ID
from oxiseq.sinks.settings import after_of
from oxiseq.sources.knowledge import knowledge_of
from oxiseq.sparql.messages import Problem, Response

# --- queries ---------------------------------------------------------------------------------------------

LANGUAGE: Final = {"$ref": "#/components/schemas/Language"}


def described(option: Option) -> dict[str, Any]:
    """The JSON Schema of an option's value, with what it is for."""
    return option.kind.schema | {"description": f"{option.titles}: {option.help}" if option.special else option.help}


NewQuery = msgspec.defstruct(
    "NewQuery",
    [
        ("text", str),
        ("name", str | None, None),
        ("language", Annotated[str, Meta(extra_json_schema=LANGUAGE)], USUAL),
        *((o.name, Annotated[Any, Meta(extra_json_schema=described(o))], None) for o in options_for(doors=DOORS)),
    ],
    forbid_unknown_fields=True,
)
"""A query as it is sent: its text, and options."""


class QueryState(msgspec.Struct, forbid_unknown_fields=True):
    """What a query is to do."""

    state: Literal["running", "paused"]


@dataclass(frozen=True, slots=True)
class _Given:
    """A query as it was sent."""

    name: str | None
    text: str
    language: str
    options: dict[str, Any]


def register(call: Call, name: str | None, body: Any) -> Response:
    """POST /queries."""
    given = _given(call, name, body)
    name = random_name() if given.name is None else given.name
    call.request.rights.demand("register", "query", name)
    status = _registered(call, given, name, replace=False)
    value = {**query_value(status), "lints": _lints(call, given, status.reads)}
    return json_response(value, 201, (("location", f"/queries/{quote(status.record.name)}"),))


def replace(call: Call, query: str, body: Any) -> Response:
    """PUT /queries/{query}."""
    given = _given(call, None, body)
    if given.name not in (None, query):
        raise Problem(400, "two names", f"{given.name} in the body, {query} in the path")
    status = _registered(call, given, query, replace=True)
    return json_response({**query_value(status), "lints": _lints(call, given, status.reads)})


def all_queries(call: Call, limit: int | None, after: str | None) -> Response:
    """GET /queries."""
    may = call.request.rights.may
    seen = [status for status in call.service.queries.all() if may("read", "query", status.record.name)]
    return listed(call.request.path, "queries", seen, lambda status: status.record.name, query_value, limit, after)


def get(call: Call, query: str) -> Response:
    """GET /queries/{query}."""
    return json_response(query_value(call.service.queries.get(query)))


def change(call: Call, query: str, body: QueryState) -> Response:
    """PATCH /queries/{query}."""
    queries = call.service.queries
    return json_response(query_value((queries.pause if body.state == "paused" else queries.resume)(query)))


def delete(call: Call, query: str) -> Response:
    """DELETE /queries/{query}."""
    call.service.queries.delete(query)
    return Response(204)


def explanation(call: Call, query: str) -> Response:
    """GET /queries/{query}/explanation."""
    record = call.service.queries.get(query).record
    elsewhere = isinstance(call.service.store, RemoteKnowledge)
    sends = list(call.service.queries.sends(query)) if elsewhere else None
    if record.language == STANDING:
        told = call.service.standing.explain(query)
        return json_response(
            {
                "language": STANDING,
                "waiting": None,
                "sends": sends,
                "explanation": told.json(),
                "text": str(told),
                "picture": told.svg(),
            }
        )
    waiting = call.service.queries.waiting(query)
    rules = tuple(record.options.get("rules", ()))
    return json_response(
        {
            "language": record.language,
            "waiting": None if waiting is None else list(waiting),
            "sends": sends,
            **_explained(record.text, record.language, rules),
        }
    )


def late_events(call: Call, query: str, after: int | None) -> Response:
    """GET /queries/{query}/late-events."""
    found = call.service.queries.late(query, after or 0)
    told = [{"stream": each.stream, "time": to_text(each.time), "graph": each.graph} for each in found]
    return json_response({"late_events": told, "last": found[-1].number if found else after or 0})


@lru_cache(64)
def _explained(text: str, language: str, rules: tuple[str, ...]) -> dict[str, Any]:
    """What `oxiseq explain` says, without a knowledge base: a page calls it again and again."""
    query = load(text, language)
    told = language_for(query).explain(query, None, rules)
    return {"explanation": told.json(), "text": str(told), "picture": told.svg()}


def taken() -> dict[str, str]:
    """Media types of texts that can be registered, and their languages."""
    return {**media_types(), "application/sparql-query": STANDING}


def query_value(status: QueryStatus) -> dict[str, Any]:
    """A query as JSON values."""
    record = status.record
    resets = status.resets
    last = {"at": to_text(resets.at), "time": to_text(resets.time), "records": resets.records}
    skipped = status.quarantined.last
    passed = (
        None
        if skipped is None
        else {
            "stream": skipped.stream,
            "first": skipped.first,
            "events": skipped.count,
            "entry": skipped.position,
            "reason": skipped.reason,
            "at": to_text(skipped.at),
        }
    )
    return {
        "name": record.name,
        "state": status.doing,
        "language": record.language,
        "text": record.text,
        **_options_value(status),
        "variables": list(status.variables),
        "reads": list(status.reads),
        "feeds": status.feeds,
        "events": status.events,
        "late": status.late,
        "ignored": {"count": status.faults.count, "first": list(status.faults.first)},
        "omitted": {"count": status.omitted.count, "last": list(status.omitted.last)},
        "lag": status.lag,
        "matches": {"first": record.first, "next": record.next},
        "records": dict(status.state or {}),
        "state_drops": {"count": resets.count, "last": last if resets.count else None},
        "quarantined": {"entries": status.quarantined.entries, "events": status.quarantined.events, "last": passed},
        "rebuilt": record.rebuilt or None,
        "error": status.stalled or status.error or None,
        "created": to_text(record.created),
        "changed": to_text(record.changed),
        **(_of_answer(status) if record.language == STANDING else {}),
    }


def _options_value(status: QueryStatus) -> dict[str, Any]:
    """All options that it has, those that it was given and those that hold; of its state the bounds that hold."""
    record, budget = status.record, status.budget
    if record.language == STANDING:
        return {}
    options = status.options
    held = {
        "max_state_records": budget.records or 0,
        "max_state_bytes": budget.bytes or 0,
        "on_state_limit": budget.policy,
    }
    values = {o.name: getattr(options, o.name) for o in options_for(record.language, DOORS)} | held
    return {name: None if value is None else OPTIONS[name].kind.write(value) for name, value in values.items()}


def _of_answer(status: QueryStatus) -> dict[str, Any]:
    """Of a query over the store: its form, rows, and how its answer is kept."""
    standing = status.standing
    return {
        "form": status.record.options["form"],
        "rows": status.rows,
        "evaluation": None if standing is None else standing.state,
        "reason": (None if standing is None else standing.reason) or None,
        "unnamed": bool(status.record.options.get("unnamed")),
    }


def _registered(call: Call, given: _Given, name: str, *, replace: bool) -> QueryStatus:
    rights = call.request.rights
    try:
        return call.service.queries.register(
            name, given.text, given.language, given.options, replace=replace, rights=rights
        )
    except QueryError as error:
        raise query_problem(error, given.text, given.language) from None


def _lints(call: Call, given: _Given, reads: Iterable[str]) -> list[dict[str, Any]]:
    """Of a query that has been registered: what the checks find, and graphs that the knowledge base does not have."""
    if given.language == STANDING:
        return findings(given.text, given.language)
    text, rules = known_text(given.text, given.language), given.options.get("rules", ())
    kb = knowledge_of(call.service.kb_of_now) if language_for(text.algebra).asks_kb else None
    try:
        found = lints_of(text, kb, rules)
    except KbError:  # one elsewhere may be away by now
        found = lints_of(text, None)
    records = map(call.service.streams.get, reads)
    mappings = {each.iri: StreamMapping(json.loads(each.mapping)) for each in records if each.mapping}
    found = (*found, *unmapped(text.algebra, mappings))
    return [as_values(lint, lint.text) for lint in found]


def _given(call: Call, name: str | None, body: Any) -> _Given:
    """From JSON, or (None) the text itself; with options in the query string. Raises Problem."""
    known, media_type = taken(), call.request.media_type or ""
    if body is None:
        if media_type not in known:
            raise unsupported(call.request, (*known, JSON))
        options = {"text": call.request.text(), "language": known[media_type]}
    else:
        options = {member: value for member, value in msgspec.structs.asdict(body).items() if value is not None}
    text, language = options.pop("text"), options.pop("language")
    for key, value in {**in_address(call.request, DOORS), **({} if name is None else {"name": name})}.items():
        if options.setdefault(key, value) != value:
            told = f"{value!r} in the address, {options[key]!r} in the body"
            raise Problem(400, f"two values of {key}", told[:300])
    name = options.pop("name", None)
    if language not in known.values():
        raise Problem(400, "unknown language", f"known: {', '.join(known.values())}")
    if language == STANDING and options:
        raise Problem(400, "not accepted", f"{', '.join(options)}: a query over the store reads no stream")
    if language != STANDING:
        try:
            options_of(language, options)
        except OxiseqError as error:
            raise as_problem(error) from None
    return _Given(name, text, language, options)


# --- sinks -----------------------------------------------------------------------------------------------

SINK_SCHEMA: Final = {
    "type": "object",
    "required": ["kind"],
    "properties": {
        "after": {
            "type": "integer",
            "minimum": 0,
            "description": "Begin after the match with this id. Default: from now on; 0: all that are kept.",
        }
    },
    "oneOf": [kind.schema() for kind in KINDS.values()],
}
NewSink = Annotated[dict[str, Any], Meta(extra_json_schema={"$ref": "#/components/schemas/NewSink"})]
"""The settings of a sink: those of its kind check them."""


def all_sinks(call: Call, query: str) -> Response:
    """GET /queries/{query}/sinks."""
    return json_response({"sinks": [sink_value(each) for each in call.service.sinks.all(query)]})


def get_sink(call: Call, query: str, sink: str) -> Response:
    """GET /queries/{query}/sinks/{sink}."""
    return json_response(sink_value(call.service.sinks.get(query, sink)))


def put_sink(call: Call, query: str, sink: str, body: dict[str, Any]) -> Response:
    """PUT /queries/{query}/sinks/{sink}."""
    call.request.rights.demand("read", "query", query)  # what it finds is sent elsewhere
    if not SINK_ID.fullmatch(sink):
        raise Problem(400, "no id of a sink", f"{sink[:100]!r}: letters, digits and . _ ~ -, at most 100")
    after = after_of(body.pop("after", None))
    variables = call.service.queries.get(query).variables
    return json_response(sink_value(call.service.sinks.put(query, sink, body, variables, after)))


def delete_sink(call: Call, query: str, sink: str) -> Response:
    """DELETE /queries/{query}/sinks/{sink}."""
    call.service.sinks.delete(query, sink)
    return Response(204)


def sink_value(status: SinkStatus) -> dict[str, Any]:
    """A sink as JSON values, without its secrets."""
    row = status.row
    return {
        "id": row.name,
        "query": row.query,
        **status.settings,
        "declared": status.declared,
        "state": "delivering" if row.failing is None else "failing",
        "position": row.position,
        "waiting": status.waiting,
        "delivered": row.delivered,
        "lost": row.lost,
        "failing_since": None if row.failing is None else to_text(row.failing),
        "error": row.error or None,
        "next_try": None if status.next_try is None else to_text(status.next_try),
        "created": to_text(row.created),
        "changed": to_text(row.changed),
    }
