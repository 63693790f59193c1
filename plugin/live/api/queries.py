"""`/queries`: register, list, pause, replace, delete."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Final, Literal
from urllib.parse import quote

from oxiseq.durations import duration_text
from oxiseq.engine.errors import KbError
from oxiseq.engine.events.time import to_text
from oxiseq.grammar import QueryError, load
from oxiseq.grammar.languages import Language
from oxiseq.knowledge import knowledge_of
from oxiseq.languages.graphs import missing_graphs
from oxiseq.languages.registry import MEDIA_TYPES, front_of
from oxiseq.live.answers import STANDING
from oxiseq.live.api.problems import as_values, findings, query_problem
from oxiseq.live.api.streams import duration_of, time_of
from oxiseq.live.api.table import DURATION, JSON, Answer, Call, Parameter, Route, json_response, unsupported
from oxiseq.live.budgets import POLICIES
from oxiseq.live.queries import QueryStatus
from oxiseq.sparql.messages import Response
from oxiseq.sparql.problems import Problem

NAME: Final = Parameter("query", "The query's name.", where="path", example="rises")
_OF_WINDOWS: Final = ("report", "consumption", "instants")
"""Options of queries over windows."""
_OPTIONS: Final = (
    "name", "text", "language", "lateness", "start", "streamNames", "rules", "stateBudget", "onBudget",
    *_OF_WINDOWS,
)  # fmt: skip
_BOUNDS: Final = {"records": "stateRecords", "bytes": "stateBytes"}
"""Members of a state budget → parameters of the query string."""
_STATES: Final = ("running", "paused")
_TAKEN: Final[Mapping[str, Language | Literal["sparql"]]] = {**MEDIA_TYPES, "application/sparql-query": "sparql"}
"""Media types of texts that can be registered."""


@dataclass(frozen=True, slots=True)
class _Given:
    """A query as it was sent."""

    name: str | None
    text: str
    language: Language | Literal["sparql"]
    options: dict[str, Any]


def register(call: Call) -> Response:
    """POST /queries."""
    given = _given(call)
    status = _registered(call, given, given.name, replace=False)
    value = {**query_value(status), "lints": _lints(call, given)}
    return json_response(value, 201, (("location", f"/queries/{quote(status.record.name)}"),))


def replace(call: Call) -> Response:
    """PUT /queries/{query}."""
    name, given = call.parts["query"], _given(call)
    if given.name not in (None, name):
        raise Problem(400, "two names", f"{given.name} in the body, {name} in the path")
    status = _registered(call, given, name, replace=True)
    return json_response({**query_value(status), "lints": _lints(call, given)})


def all_queries(call: Call) -> Response:
    """GET /queries."""
    return json_response({"queries": [query_value(status) for status in call.service.queries.all()]})


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
    if record.language == STANDING:
        told = call.service.standing.explain(name)
        return json_response({
            "language": STANDING, "waiting": None, "explanation": told.to_json(), "text": told.to_text(),
            "picture": told.to_svg(),
        })  # fmt: skip
    waiting = call.service.queries.waiting(name)
    rules = tuple(record.options.get("rules", ()))
    return json_response({
        "language": record.language, "waiting": None if waiting is None else list(waiting),
        **_explained(record.text, record.language, rules),
    })  # fmt: skip


@lru_cache(64)
def _explained(text: str, language: Language, rules: tuple[str, ...]) -> dict[str, Any]:
    """What `oxiseq explain` says, without a knowledge base: a page asks again and again."""
    query = load(text, language)
    told = front_of(query).explain(query, None, rules)
    return {"explanation": told.to_json(), "text": told.to_text(), "picture": told.to_svg()}


def query_value(status: QueryStatus) -> dict[str, Any]:
    """A query as JSON values."""
    record = status.record
    lateness = duration_text(record.options.get("lateness", 0))
    start = record.options.get("start")
    budget, resets = status.budget, status.resets
    last = {"at": to_text(resets.at), "time": to_text(resets.time), "records": resets.records}
    aside = status.set_aside.last
    passed = None if aside is None else {
        "stream": aside.stream, "first": aside.first, "events": aside.count, "entry": aside.position,
        "reason": aside.reason, "at": to_text(aside.at),
    }  # fmt: skip
    return {
        "name": record.name, "state": status.doing, "language": record.language, "text": record.text,
        "lateness": lateness, "start": None if start is None else to_text(start),
        "streamNames": record.options.get("streamNames", {}), "rules": record.options.get("rules", []),
        "variables": list(status.variables),
        "reads": list(status.reads), "feeds": status.feeds, "events": status.events, "late": status.late,
        "leftOut": {"count": status.faults.count, "first": list(status.faults.first)}, "lag": status.lag,
        "matches": {"first": record.first, "next": record.next}, "records": dict(status.state or {}),
        **{name: record.options[name] for name in _OF_WINDOWS if name in record.options},
        "stateBudget": {"records": budget.records, "bytes": budget.bytes}, "onBudget": budget.policy,
        "resets": {"count": resets.count, "last": last if resets.count else None},
        "setAside": {"entries": status.set_aside.entries, "events": status.set_aside.events, "last": passed},
        "rebuilt": record.rebuilt or None,
        "error": status.stalled or status.error or None,
        "created": to_text(record.created), "changed": to_text(record.changed),
        **(_of_answer(status) if record.language == STANDING else {}),
    }  # fmt: skip


def _of_answer(status: QueryStatus) -> dict[str, Any]:
    """Of a query over the store: its form, rows, and how its answer is kept."""
    standing = status.standing
    return {
        "form": status.record.options["form"], "rows": status.rows,
        "evaluation": None if standing is None else standing.state,
        "reason": (None if standing is None else standing.reason) or None,
        "unnamed": bool(status.record.options.get("unnamed")),
    }  # fmt: skip


def _registered(call: Call, given: _Given, name: str | None, *, replace: bool) -> QueryStatus:
    try:
        return call.service.queries.register(name, given.text, given.language, given.options, replace=replace)
    except QueryError as error:
        raise query_problem(error, given.text, given.language) from None


def _lints(call: Call, given: _Given) -> list[dict[str, Any]]:
    """Of a query that has been registered: what the checks find, and graphs that the knowledge base does not have."""
    found = findings(given.text, given.language)
    if given.language == STANDING:
        return found
    query, rules = load(given.text, given.language), given.options.get("rules", ())
    if front_of(query).asks_kb:
        with suppress(KbError):  # one elsewhere may be away by now
            missing = missing_graphs(query, given.text, knowledge_of(call.service.kb_of_now), rules)
            found += [as_values(lint, lint.text) for lint in missing]
    return found


def _given(call: Call) -> _Given:
    """From JSON, or the text itself with the rest in the query string. Raises Problem."""
    media_type = call.request.media_type or ""
    if media_type in _TAKEN:
        names = ("name", "lateness", "start", "onBudget", "report", "consumption")
        values: dict[str, Any] = {name: call.one(name) for name in names}
        values["text"], values["language"] = call.request.text(), _TAKEN[media_type]
        bounds = {bound: call.number(name) for bound, name in _BOUNDS.items()}
        if any(most is not None for most in bounds.values()):
            values["stateBudget"] = bounds
    elif media_type == JSON:
        values = call.json()
        if unknown := set(values) - set(_OPTIONS):
            raise Problem(400, "unknown members", f"{', '.join(sorted(unknown))}; known: {', '.join(_OPTIONS)}")
    else:
        raise unsupported(call.request, (*_TAKEN, JSON))
    name, text, language = values.get("name"), values.get("text"), values.get("language", "spaseq")
    if not isinstance(text, str) or not (name is None or isinstance(name, str)):
        raise Problem(400, "no text", "the member text holds the query, name its name")
    if language not in _TAKEN.values():
        raise Problem(400, "unknown language", f"known: {', '.join(_TAKEN.values())}")
    options = _options(values)
    if language == STANDING and options:
        raise Problem(400, "not accepted", f"{', '.join(options)}: a query over the store reads no stream")
    return _Given(name, text, language, options)


def _options(values: dict[str, Any]) -> dict[str, Any]:
    options: dict[str, Any] = {}
    if values.get("lateness") is not None:
        options["lateness"] = duration_of(values["lateness"], "lateness")
    if values.get("start") is not None:
        if not isinstance(values["start"], str | int):
            raise Problem(400, "start is no time", "xsd:dateTime or microseconds")
        options["start"] = time_of(values["start"], "start")
    if values.get("stateBudget") is not None:
        options["stateBudget"] = _bounds(values["stateBudget"])
    if values.get("onBudget") is not None:
        if values["onBudget"] not in POLICIES:
            raise Problem(400, "no such policy", f"onBudget is one of {', '.join(POLICIES)}")
        options["onBudget"] = values["onBudget"]
    names = values.get("streamNames")
    if names is not None:
        if not isinstance(names, dict) or not all(isinstance(iri, str) for iri in names.values()):
            raise Problem(400, "malformed streamNames", "an object from names in FROM to IRIs is expected")
        options["streamNames"] = names
    rules = values.get("rules")
    if rules is not None:
        if not isinstance(rules, list) or not all(isinstance(text, str) for text in rules):
            raise Problem(400, "malformed rules", "a list of CONSTRUCT queries is expected")
        options["rules"] = rules
    for name in ("report", "consumption"):
        if values.get(name) is not None:
            if not isinstance(values[name], str):
                raise Problem(400, f"{name} is no text", f"see the query language: {name} is a word")
            options[name] = values[name]
    instants = values.get("instants")
    if instants is not None:
        if not isinstance(instants, list) or not all(isinstance(t, str | int) for t in instants):
            raise Problem(400, "malformed instants", "an array of xsd:dateTime or microseconds is expected")
        options["instants"] = [time_of(t, "instants") for t in instants]
    return options


def _bounds(given: object) -> dict[str, int]:
    """A state budget; what it does not bound is left out. Raises Problem 400."""
    if not isinstance(given, dict) or not set(given) <= set(_BOUNDS):
        raise Problem(400, "malformed stateBudget", f"an object with {' and '.join(_BOUNDS)} is expected")
    bounds = {name: most for name, most in given.items() if most is not None}
    if not all(isinstance(most, int) and not isinstance(most, bool) and most > 0 for most in bounds.values()):
        raise Problem(400, "malformed stateBudget", "whole numbers from 1 on are expected")
    return bounds


_IN_URL: Final = (
    Parameter("lateness", "With a text as body: how much a stream may be out of order: 5s, 250ms, PT5S.", DURATION),
    Parameter("start", "With a text as body: the t of tumbling windows, xsd:dateTime or microseconds."),
    Parameter("report", "With a query over windows as body: RSTREAM, ISTREAM or DSTREAM, where its text has none."),
    Parameter("consumption", "With RSEP-QL or EP-SPARQL as body: UNRESTRICTED, CHRONOLOGICAL or RECENT, where its "
              "text has none."),
    Parameter("stateRecords", "With a text as body: how many records its running state may have.",
              {"type": "integer", "minimum": 1}),
    Parameter("stateBytes", "With a text as body: how large its running state may become.",
              {"type": "integer", "minimum": 1}),
    Parameter("onBudget", "With a text as body: what happens when its state is larger. fail: it stops; reset: it "
              "forgets its partial matches and goes on.", {"type": "string", "enum": list(POLICIES)}),
)  # fmt: skip

ROUTES: Final = (
    Route(
        "GET", "/queries", all_queries, "listQueries", "All continuous queries.",
        answers={200: Answer("Them.", schema="Queries")},
    ),
    Route(
        "POST", "/queries", register, "registerQuery",
        "Register a continuous query: it sees the events that are pushed from now on. Streams that it reads are made "
        "where they are missing. Or, as application/sparql-query, a SELECT, ASK or CONSTRUCT over the store: its "
        "answer is followed from now on, see /queries/{query}/changes.",
        (Parameter("name", "With a text as body: its name. Default: a random one."), *_IN_URL),
        (*_TAKEN, JSON), "NewQuery",
        {201: Answer("The query.", schema="Query"), 400: Answer("Not accepted: message, line and column as by "
         "`oxiseq check`.", ()), 409: Answer("The name is taken.", ())},
    ),
    Route(
        "GET", "/queries/{query}", get, "getQuery", "One query, and how it is doing.", (NAME,),
        answers={200: Answer("It.", schema="Query")},
    ),
    Route(
        "PUT", "/queries/{query}", replace, "replaceQuery",
        "Register a query under this name, in place of what was there; ids of matches go on. The same text over the "
        "store again changes nothing; with another one readers of its changes begin anew.", (NAME, *_IN_URL),
        (*_TAKEN, JSON), "NewQuery", {200: Answer("The query.", schema="Query")},
    ),
    Route(
        "PATCH", "/queries/{query}", change, "changeQuery",
        "Pause or resume: a query that is resumed sees what has come meanwhile.", (NAME,), (JSON,), "QueryState",
        {200: Answer("The query.", schema="Query")},
    ),
    Route(
        "GET", "/queries/{query}/explanation", explanation, "explainQuery",
        "What the query is compiled to, as `oxiseq explain` says it. `waiting`: of each edge of a SPAseq query's "
        "automaton, how many groups of partial matches wait there now (some may be dead); null where it does not run. "
        "`picture`: an SVG.",
        (NAME,), answers={200: Answer("It.", schema="Explained")},
    ),
    Route(
        "DELETE", "/queries/{query}", delete, "deleteQuery", "Forget a query and its matches.", (NAME,),
        answers={204: Answer("Done.", ())},
    ),
)  # fmt: skip
