"""`/queries/{query}/sinks`: where matches of a query are delivered."""

from __future__ import annotations

from typing import Any, Final

from oxiseq.engine.events.time import to_text
from oxiseq.live.api.queries import NAME
from oxiseq.live.api.table import JSON, Answer, Call, Need, Parameter, Route, json_response
from oxiseq.live.sinks import SinkStatus
from oxiseq.sinks import NAME as SINK_ID
from oxiseq.sinks.settings import after_of
from oxiseq.sparql.messages import Response
from oxiseq.sparql.problems import Problem

SINK: Final = Parameter("sink", "The sink's id.", where="path", example="chat")


def all_sinks(call: Call) -> Response:
    """GET /queries/{query}/sinks."""
    return json_response({"sinks": [sink_value(each) for each in call.service.sinks.all(call.parts["query"])]})


def get(call: Call) -> Response:
    """GET /queries/{query}/sinks/{sink}."""
    return json_response(sink_value(call.service.sinks.get(call.parts["query"], call.parts["sink"])))


def put(call: Call) -> Response:
    """PUT /queries/{query}/sinks/{sink}."""
    query, sink = call.parts["query"], call.parts["sink"]
    call.request.rights.demand("read", "query", query)  # what it finds is sent elsewhere
    if not SINK_ID.fullmatch(sink):
        raise Problem(400, "no id of a sink", f"{sink[:100]!r}: letters, digits and . _ ~ -, at most 100")
    given = call.json()
    after = after_of(given.pop("after", None))
    variables = call.service.queries.get(query).variables
    return json_response(sink_value(call.service.sinks.put(query, sink, given, variables, after)))


def delete(call: Call) -> Response:
    """DELETE /queries/{query}/sinks/{sink}."""
    call.service.sinks.delete(call.parts["query"], call.parts["sink"])
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


ROUTES: Final = (
    Route(
        "GET",
        "/queries/{query}/sinks",
        all_sinks,
        "listSinks",
        "Where matches of the query are delivered.",
        Need("read", "query"),
        (NAME,),
        answers={200: Answer("Them, without secrets.", schema="Sinks")},
    ),
    Route(
        "GET",
        "/queries/{query}/sinks/{sink}",
        get,
        "getSink",
        "One sink: its settings without secrets, how many matches are delivered and how many wait, since when it fails "
        "and why, and when it tries again.",
        Need("read", "query"),
        (NAME, SINK),
        answers={200: Answer("The sink.", schema="Sink")},
    ),
    Route(
        "PUT",
        "/queries/{query}/sinks/{sink}",
        put,
        "putSink",
        "Deliver matches of the query from now on, or after the match `after`: each at least once, under an "
        "idempotency key, and tried again until the receiver confirms. An existing sink with this id continues at its "
        "position with these settings. The server's operator decides which hosts and files are allowed. Needs the "
        "right to read the query as well.",
        Need("register", "query"),
        (NAME, SINK),
        (JSON,),
        "NewSink",
        {
            200: Answer("The sink.", schema="Sink"),
            403: Answer("There are too many.", ()),
            409: Answer("Another sink writes to this file, or the sink is declared in the server's settings.", ()),
        },
    ),
    Route(
        "DELETE",
        "/queries/{query}/sinks/{sink}",
        delete,
        "deleteSink",
        "Stop delivering: a delivery that has begun may still arrive.",
        Need("register", "query"),
        (NAME, SINK),
        answers={204: Answer("Done.", ()), 409: Answer("The sink is declared in the server's settings.", ())},
    ),
)
