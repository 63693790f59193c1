"""The OpenAPI document, made of the routes."""

from __future__ import annotations

from collections.abc import Iterable
from importlib.metadata import PackageNotFoundError, version
from typing import Any, Final

import msgspec

from oxiseq.grammar.languages import STANDING, syntaxes
from oxiseq.live.api.operations import OPERATIONS
from oxiseq.live.api.queries import SINK_SCHEMA, described
from oxiseq.live.api.streams import MAPPING
from oxiseq.live.api.table import JSON, PROBLEM, Answer, Operation, Parameter
from oxiseq.live.settings import DOORS
from oxiseq.options import options_for
from oxiseq.sinks import KINDS

_TEXT: Final = {"type": "string"}
_COUNT: Final = {"type": "integer", "minimum": 0}
_LANGUAGE: Final = {"$ref": "#/components/schemas/Language"}


def _object(required: tuple[str, ...] = (), **properties: Any) -> dict[str, Any]:
    made: dict[str, Any] = {"type": "object", "properties": properties}
    return made | ({"required": list(required)} if required else {})


def _or_null(schema: dict[str, Any]) -> dict[str, Any]:
    return {"anyOf": [schema, {"type": "null"}]}


_TEXTS: Final = {"type": "array", "items": _TEXT}
_LIST: Final = {"type": "array", "items": {"type": "object"}}
_ARRAY: Final = {"type": "array"}

_FOUND: Final = {
    "type": "array",
    "items": _object(
        ("severity", "message", "line", "column"),
        severity=_TEXT,
        code=_TEXT,
        message=_TEXT,
        hint=_TEXT,
        line=_COUNT,
        column=_COUNT,
        end_line=_COUNT,
        end_column=_COUNT,
    ),
}
_OPTIONS: Final = {option.name: described(option) for option in options_for(doors=DOORS)}
_OMITTED: Final = {
    **_object(count=_COUNT, last=_TEXTS),
    "description": "Instants left out since the query was beyond a bound there; the last ones, and which bound.",
}

_STATE_DROPS: Final = _object(
    count=_COUNT,
    last={
        "type": ["object", "null"],
        "properties": {"at": _TEXT, "time": _TEXT, "records": _COUNT},
        "description": "at: when it was; time: how far the streams had come; records: of the state then.",
    },
)

_QUARANTINED: Final = _object(
    ("entries", "events"),
    entries=_COUNT,
    events=_COUNT,
    last={
        "type": ["object", "null"],
        "properties": {
            "stream": _TEXT,
            "first": _COUNT,
            "events": _COUNT,
            "entry": _COUNT,
            "reason": _TEXT,
            "at": _TEXT,
        },
        "description": "first: the offset of its first event; entry: its place in the log; at: when it was noted.",
    },
) | {"description": "Entries of the log that it could not process and skips."}

_ANSWERS: Final[dict[str, Any]] = {
    "Language": {"type": "string"},
    "Stream": _object(
        ("iri", "first", "next", "retention"),
        iri=_TEXT,
        first=_COUNT,
        next=_COUNT,
        retention={"$ref": "#/components/schemas/StreamRetention"},
        mapping=MAPPING,
        restored=_object(("next", "last"), next=_COUNT, last={"type": ["string", "null"]})
        | {
            "description": "Of a journal that was restored from a backup: push again the events from offset next on, "
            "which came after the last event of the backup."
        },
    ),
    "Streams": _object(("streams",), streams={"type": "array", "items": {"$ref": "#/components/schemas/Stream"}}),
    "Pushed": _object(
        offsets=_object(("first", "next"), first=_COUNT, next=_COUNT),
        accepted=_COUNT,
        late={"type": ["integer", "null"]},
        ignored={"type": ["integer", "null"]},
        rejected=_COUNT,
        duplicates=_COUNT,
        advanced={"type": "boolean"},
        time=_TEXT,
        reasons={
            "type": "array",
            "items": _object(("reason",), reason=_TEXT, line={"type": ["integer", "null"]}, column=_TEXT),
        },
    ),
    "Sink": _object(
        ("id", "query", "kind", "state"),
        id=_TEXT,
        query=_TEXT,
        kind={"enum": list(KINDS)},
        declared={"type": "boolean", "description": "It is declared in the server's settings, and is changed there."},
        state={"enum": ["delivering", "failing"]},
        position=_COUNT | {"description": "The id of the last match that is delivered, or lost."},
        waiting=_COUNT,
        delivered=_COUNT,
        lost=_COUNT | {"description": "Matches that were given up, or deleted before they were delivered."},
        failing_since=_or_null(_TEXT),
        error=_or_null(_TEXT),
        next_try=_or_null(_TEXT),
        created=_TEXT,
        changed=_TEXT,
    ),
    "Sinks": _object(("sinks",), sinks={"type": "array", "items": {"$ref": "#/components/schemas/Sink"}}),
    "Bridges": _object(
        ("bridges",),
        bridges={
            "type": "array",
            "items": _object(
                ("name", "url", "into", "state"),
                name=_TEXT,
                url=_TEXT,
                topic=_or_null(_TEXT),
                into=_TEXT,
                state={"enum": ["reading", "failing"]},
                messages=_COUNT,
                events=_COUNT,
                duplicates=_COUNT,
                refused=_COUNT,
                failures=_COUNT,
                failing_since=_or_null(_TEXT),
                error=_or_null(_TEXT),
            ),
        },
    ),
    "Query": _object(
        ("name", "state", "language", "text"),
        name=_TEXT,
        state={
            "type": "string",
            "description": "running, paused, failed; stalled: it will run again without your help.",
        },
        language=_LANGUAGE,
        text=_TEXT,
        **{name: _or_null(schema) for name, schema in _OPTIONS.items()},
        variables=_TEXTS,
        reads=_TEXTS,
        feeds={"type": ["string", "null"]},
        events=_COUNT,
        late=_COUNT,
        ignored=_object(count=_COUNT, first=_TEXTS),
        lag={"type": ["integer", "null"], "description": "Events that wait for it; null: it does not run."},
        omitted=_OMITTED,
        state_drops=_STATE_DROPS,
        matches=_object(first=_COUNT, next=_COUNT),
        records={"type": "object", "additionalProperties": _COUNT},
        quarantined=_QUARANTINED,
        lints=_FOUND,
        rebuilt={"type": ["string", "null"], "description": "Whether its state had to be rebuilt, and from what."},
        error={"type": ["string", "null"]},
        created=_TEXT,
        changed=_TEXT,
        form={"type": "string", "description": "With the next four: of a query over the store."},
        rows=_COUNT,
        evaluation={
            "type": ["string", "null"],
            "description": "followed: updated quad by quad; asked: evaluated on the store again.",
        },
        reason={"type": ["string", "null"], "description": "Why it is not followed."},
        unnamed={"type": "boolean"},
    ),
    "LateEvents": _object(
        late_events={"type": "array", "items": _object(stream=_TEXT, time=_TEXT, graph=_TEXT)}, last=_COUNT
    ),
    "Queries": _object(("queries",), queries={"type": "array", "items": {"$ref": "#/components/schemas/Query"}}),
    "Kb": _object(
        ("answers",),
        answers=_COUNT,
        asked={"type": ["string", "null"]},
        changes=_COUNT,
        failures=_COUNT,
        error={"type": ["string", "null"]},
    ),
    "Explained": _object(
        ("language", "explanation", "text", "picture"),
        language=_LANGUAGE,
        explanation={"type": "object"},
        text=_TEXT,
        picture=_TEXT,
        waiting={"type": ["array", "null"], "items": _COUNT},
        sends={"type": ["array", "null"], "items": _TEXT},
    ),
    "Why": _object(
        (
            "gpms",
            "stages",
            "stopped",
            "reasons",
            "found",
            "more",
            "late",
            "matches",
            "language",
            "at",
            "notes",
            "looked",
        ),
        gpms=_LIST,
        stages=_LIST,
        stopped={"type": ["string", "null"]},
        reasons=_LIST,
        found=_COUNT,
        more={"type": "boolean"},
        late=_COUNT,
        matches=_LIST,
        language=_LANGUAGE,
        at={"type": ["integer", "null"]},
        notes=_TEXTS,
        looked=_object(
            ("events", "first", "last"),
            events=_COUNT,
            first={"type": ["integer", "null"]},
            last={"type": ["integer", "null"]},
        ),
    ),
    "Comparison": _object(
        ("columns", "kept", "gained", "lost", "notes"),
        columns=_TEXTS,
        kept=_COUNT,
        gained=_LIST,
        lost=_LIST,
        notes=_TEXTS,
    ),
    "TriedMapping": _object(
        ("events", "rejected", "reasons", "missing", "unread"),
        events={
            "type": "array",
            "items": _object(("time", "triples"), time=_or_null(_TEXT), triples=_ARRAY),
        },
        rejected=_COUNT,
        reasons=_LIST,
        missing={"type": "array", "items": _object(("column", "near"), column=_TEXT, near=_or_null(_TEXT))},
        unread=_TEXTS,
    ),
    "PastStates": _object(
        ("points",),
        points={
            "type": "array",
            "items": _object(
                ("at", "waiting", "matches"),
                at={"type": "integer"},
                waiting={"type": "array", "items": _COUNT},
                matches=_COUNT,
            ),
        },
    ),
    "MatchesAt": _object(
        ("total", "offset", "matches"),
        total=_TEXT,
        offset=_TEXT,
        matches={
            "type": "array",
            "items": _object(
                ("at", "bindings", "events"), at=_TEXT, bindings={"type": "object"}, events={"type": "object"}
            ),
        },
    ),
    "MadeOf": _object(
        ("id", "query", "at", "end", "bindings", "events", "facts"),
        id=_COUNT,
        query=_TEXT,
        at=_TEXT,
        end=_TEXT,
        bindings={"type": "object"},
        events={
            "type": "array",
            "items": _object(("gpm", "stream", "time", "triples"), gpm=_TEXT, stream=_TEXT, time=_TEXT, triples=_ARRAY),
        },
        facts={
            "type": ["array", "null"],
            "description": "Triples or quads; null: this language does not report them.",
        },
    ),
    "Findings": _object(("findings",), findings=_FOUND),
    "Problem": _object(
        ("title", "status"),
        type=_TEXT,
        title=_TEXT,
        status={"type": "integer"},
        detail=_TEXT,
        line=_COUNT,
        column=_COUNT,
    ),
}


_TYPES: Final = tuple(each.body for each in OPERATIONS if each.body is not None)
_BODIES, _STRUCTS = msgspec.json.schema_components(_TYPES, ref_template="#/components/schemas/{name}")
SCHEMAS: Final = {**_ANSWERS, "NewSink": SINK_SCHEMA, **_STRUCTS}
"""Of all bodies, of requests and of answers."""
_BODY_OF: Final = dict(zip((each.name for each in OPERATIONS if each.body is not None), _BODIES, strict=True))


def _languages() -> dict[str, Any]:
    """Those that there are by now, and what editors need of them."""
    known = [
        {"name": each.name, "title": each.title, "media_type": each.media_type, "words": list(each.words)}
        for each in syntaxes()
    ]
    return {**SCHEMAS["Language"], "enum": [*(each["name"] for each in known), STANDING], "x-languages": known}


def document(operations: Iterable[Operation]) -> dict[str, Any]:
    """OpenAPI 3.1."""
    paths: dict[str, dict[str, Any]] = {}
    for each in operations:
        paths.setdefault(each.path, {})[each.method.lower()] = _operation(each)
    about = "Streams and continuous queries beside SPARQL."
    return {
        "openapi": "3.1.0",
        "info": {"title": "Oxiseq", "version": _version(), "description": about},
        "paths": paths,
        "components": {
            "schemas": {**SCHEMAS, "Language": _languages()},
            "securitySchemes": {"token": {"type": "http", "scheme": "bearer"}},
        },
    }


def _operation(operation: Operation) -> dict[str, Any]:
    made: dict[str, Any] = {
        "operationId": operation.name,
        "summary": operation.text,
        "responses": _answers(operation),
        "security": [{}, {"token": [str(operation.needs)]}],  # 3.1: names of roles; {}: a server may ask for no token
    }
    if operation.documented:
        made["parameters"] = [_parameter(parameter) for parameter in operation.documented]
    if operation.bodies:
        made["requestBody"] = {"content": {media: _body(media, operation) for media in operation.bodies}}
    return made


def _answers(operation: Operation) -> dict[str, Any]:
    found = {str(status): _answer(status, answer) for status, answer in sorted(operation.answers.items())}
    found["default"] = {"description": "Refused.", "content": {PROBLEM: _ref("Problem")}}
    return found


def _answer(status: int, answer: Answer) -> dict[str, Any]:
    made: dict[str, Any] = {"description": answer.text}
    if status >= 400:
        made["content"] = {PROBLEM: _ref("Problem")}
    elif answer.media_types:
        made["content"] = {
            media: _ref(answer.schema) if answer.schema and media == JSON else {} for media in answer.media_types
        }
    return made


def _body(media_type: str, operation: Operation) -> dict[str, Any]:
    typed = media_type == JSON and operation.body is not None
    return {"schema": _BODY_OF[operation.name] if typed else {"type": "string"}}


def _ref(schema: str) -> dict[str, Any]:
    return {"schema": {"$ref": f"#/components/schemas/{schema}"}}


def _parameter(parameter: Parameter) -> dict[str, Any]:
    made: dict[str, Any] = {
        "name": parameter.name,
        "in": parameter.where,
        "description": parameter.text,
        "schema": dict(parameter.schema),
        "required": parameter.where == "path",
    }
    return made if parameter.example is None else made | {"example": parameter.example}


def _version() -> str:
    try:
        return version("oxiseq")
    except PackageNotFoundError:
        return "0"
