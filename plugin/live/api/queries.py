"""`/queries`: register, list, pause, replace, delete."""

from __future__ import annotations

import json
from collections.abc import Iterable
from functools import lru_cache
from typing import Any, Final
from urllib.parse import quote

from oxiseq.engine.errors import KbError, OxiseqError
from oxiseq.engine.events.time import to_text
from oxiseq.grammar import QueryError, load
from oxiseq.grammar.finding_tools import as_values
from oxiseq.grammar.languages import STANDING, USUAL, media_types
from oxiseq.grammar.records import dataclass
from oxiseq.languages.lints import lints_of, unmapped
from oxiseq.languages.registry import language_for
from oxiseq.live.api.in_address import in_address, parameters_of
from oxiseq.live.api.problems import as_problem, findings, query_problem
from oxiseq.live.api.table import JSON, PAGED, Answer, Call, Need, Parameter, Route, json_response, listed, unsupported
from oxiseq.live.options import DOORS, options_of
from oxiseq.live.queries import QueryStatus, random_name
from oxiseq.live.remote import RemoteKnowledge
from oxiseq.mappings.declared import StreamMapping
from oxiseq.options import OPTIONS, options_for
from oxiseq.options.query_text import known_text
from oxiseq.sources.knowledge import knowledge_of
from oxiseq.sparql.messages import Response
from oxiseq.sparql.problems import Problem

NAME: Final = Parameter("query", "The query's name.", where="path", example="rises")
_OPTIONS: Final = options_for(doors=DOORS)
_KNOWN: Final = ("name", "text", "language", *(option.name for option in _OPTIONS))
_STATES: Final = ("running", "paused")


@dataclass(frozen=True, slots=True)
class _Given:
    """A query as it was sent."""

    name: str | None
    text: str
    language: str
    options: dict[str, Any]


def register(call: Call) -> Response:
    """POST /queries."""
    given = _given(call)
    name = random_name() if given.name is None else given.name
    call.request.rights.demand("register", "query", name)
    status = _registered(call, given, name, replace=False)
    value = {**query_value(status), "lints": _lints(call, given, status.reads)}
    return json_response(value, 201, (("location", f"/queries/{quote(status.record.name)}"),))


def replace(call: Call) -> Response:
    """PUT /queries/{query}."""
    name, given = call.parts["query"], _given(call)
    if given.name not in (None, name):
        raise Problem(400, "two names", f"{given.name} in the body, {name} in the path")
    status = _registered(call, given, name, replace=True)
    return json_response({**query_value(status), "lints": _lints(call, given, status.reads)})


def all_queries(call: Call) -> Response:
    """GET /queries."""
    may = call.request.rights.may
    seen = [status for status in call.service.queries.all() if may("read", "query", status.record.name)]
    return listed(call, "queries", seen, lambda status: status.record.name, query_value)


def get(call: Call) -> Response:
    """GET /queries/{query}."""
    return json_response(query_value(call.service.queries.get(call.parts["query"])))


def change(call: Call) -> Response:
    """PATCH /queries/{query}."""
    state = call.json().get("state")
    if state not in _STATES:
        raise Problem(400, "no such state", f"state is one of {', '.join(_STATES)}")
    queries = call.service.queries
    status = queries.pause(call.parts["query"]) if state == "paused" else queries.resume(call.parts["query"])
    return json_response(query_value(status))


def delete(call: Call) -> Response:
    """DELETE /queries/{query}."""
    call.service.queries.delete(call.parts["query"])
    return Response(204)


def explanation(call: Call) -> Response:
    """GET /queries/{query}/explanation."""
    name = call.parts["query"]
    record = call.service.queries.get(name).record
    elsewhere = isinstance(call.service.store, RemoteKnowledge)
    sends = list(call.service.queries.sends(name)) if elsewhere else None
    if record.language == STANDING:
        told = call.service.standing.explain(name)
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
    waiting = call.service.queries.waiting(name)
    rules = tuple(record.options.get("rules", ()))
    return json_response(
        {
            "language": record.language,
            "waiting": None if waiting is None else list(waiting),
            "sends": sends,
            **_explained(record.text, record.language, rules),
        }
    )


def late_events(call: Call) -> Response:
    """GET /queries/{query}/late-events."""
    after = call.number("after") or 0
    found = call.service.queries.late(call.parts["query"], after)
    told = [{"stream": each.stream, "time": to_text(each.time), "graph": each.graph} for each in found]
    return json_response({"late_events": told, "last": found[-1].number if found else after})


@lru_cache(64)
def _explained(text: str, language: str, rules: tuple[str, ...]) -> dict[str, Any]:
    """What `oxiseq explain` says, without a knowledge base: a page calls it again and again."""
    query = load(text, language)
    told = language_for(query).explain(query, None, rules)
    return {"explanation": told.json(), "text": str(told), "picture": told.svg()}


def _taken() -> dict[str, str]:
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


def _given(call: Call) -> _Given:
    """From JSON, or the text itself with the rest in the query string. Raises Problem."""
    media_type = call.request.media_type or ""
    taken = _taken()
    if media_type in taken:
        values = {**in_address(call, DOORS, ("name",)), "text": call.request.text(), "language": taken[media_type]}
    elif media_type == JSON:
        values = call.json()
        for name, value in in_address(call, DOORS, ("name",)).items():
            if values.setdefault(name, value) != value:
                told = f"{value!r} in the address, {values[name]!r} in the body"
                raise Problem(400, f"two values of {name}", told[:300])
    else:
        raise unsupported(call.request, (*taken, JSON))
    if unknown := set(values) - set(_KNOWN):
        raise Problem(400, "unknown members", f"{', '.join(sorted(unknown))}; known: {', '.join(_KNOWN)}")
    name, text, language = values.pop("name", None), values.pop("text", None), values.pop("language", USUAL)
    options = {option: value for option, value in values.items() if value is not None}
    if not isinstance(text, str) or not (name is None or isinstance(name, str)):
        raise Problem(400, "no text", "the member text holds the query, name its name")
    if language not in taken.values():
        raise Problem(400, "unknown language", f"known: {', '.join(taken.values())}")
    if language == STANDING and options:
        raise Problem(400, "not accepted", f"{', '.join(options)}: a query over the store reads no stream")
    if language != STANDING:
        try:
            options_of(language, options)
        except OxiseqError as error:
            raise as_problem(error) from None
    return _Given(name, text, language, options)


ROUTES: Final = (
    Route(
        "GET",
        "/queries",
        all_queries,
        "listQueries",
        "All continuous queries.",
        Need("read", "query", "list"),
        PAGED,
        answers={200: Answer("The queries.", schema="Queries")},
    ),
    Route(
        "POST",
        "/queries",
        register,
        "registerQuery",
        "Register a continuous query: it sees the events that are pushed from now on. Missing streams are created. "
        "Or, as application/sparql-query, a SELECT, ASK or CONSTRUCT over the store: its answer is updated from now "
        "on, see /queries/{query}/changes.",
        Need("register", "query", "body"),
        (Parameter("name", "With a text as body: its name. Default: a random one."), *parameters_of(*DOORS)),
        (*_taken(), JSON),
        "NewQuery",
        {
            201: Answer("The query.", schema="Query"),
            400: Answer("Not accepted: message, line and column as by `oxiseq check`.", ()),
            409: Answer("The name is taken.", ()),
        },
    ),
    Route(
        "GET",
        "/queries/{query}",
        get,
        "getQuery",
        "One query and its state.",
        Need("read", "query"),
        (NAME,),
        answers={200: Answer("The query.", schema="Query")},
    ),
    Route(
        "PUT",
        "/queries/{query}",
        replace,
        "replaceQuery",
        "Register a query under this name; it replaces the old one, and ids of matches continue. The same text over "
        "the store changes nothing; with another text readers of its changes start again.",
        Need("register", "query"),
        (NAME, *parameters_of(*DOORS)),
        (*_taken(), JSON),
        "NewQuery",
        {200: Answer("The query.", schema="Query")},
    ),
    Route(
        "PATCH",
        "/queries/{query}",
        change,
        "changeQuery",
        "Pause or resume: a resumed query sees the events that came in the meantime.",
        Need("register", "query"),
        (NAME,),
        (JSON,),
        "QueryState",
        {200: Answer("The query.", schema="Query")},
    ),
    Route(
        "GET",
        "/queries/{query}/explanation",
        explanation,
        "explainQuery",
        "What the query is compiled to, as `oxiseq explain` prints it. `waiting`: of each edge of a SPAseq query's "
        "automaton, how many groups of partial matches wait there now (some may have expired); null where it does not "
        "run. `picture`: an SVG. `sends`: with --upstream, the queries that are sent to the endpoint at each "
        "refresh; else null.",
        Need("read", "query"),
        (NAME,),
        answers={200: Answer("The explanation.", schema="Explained")},
    ),
    Route(
        "GET",
        "/queries/{query}/late-events",
        late_events,
        "listLateEvents",
        "The newest events that came behind the watermark of their stream, so that no match has them: at most 1,000, "
        "since the server began. `last`: the number of the last one, for ?after=.",
        Need("read", "query"),
        (NAME, Parameter("after", "Only those behind this number.", {"type": "integer", "minimum": 0})),
        answers={200: Answer("The events, their graphs as N-Triples.", schema="LateEvents")},
    ),
    Route(
        "DELETE",
        "/queries/{query}",
        delete,
        "deleteQuery",
        "Delete a query and its matches.",
        Need("register", "query"),
        (NAME,),
        answers={204: Answer("Done.", ())},
    ),
)
