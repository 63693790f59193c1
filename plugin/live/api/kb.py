"""`/kb`: the knowledge base elsewhere, as its answers are kept."""

from __future__ import annotations

from typing import Any, Final

from oxiseq.engine.events.time import to_text
from oxiseq.live.api.table import Answer, Call, Need, Route, json_response
from oxiseq.live.remote import RemoteKnowledge
from oxiseq.sparql.messages import Response
from oxiseq.sparql.problems import Problem


def get(call: Call) -> Response:
    """GET /kb."""
    return json_response(_value(_remote(call)))


def refresh(call: Call) -> Response:
    """POST /kb/refresh."""
    knowledge = _remote(call)
    call.service.refresh()
    return json_response(_value(knowledge))


def _remote(call: Call) -> RemoteKnowledge:
    knowledge = call.service.store
    if not isinstance(knowledge, RemoteKnowledge):
        raise Problem(404, "the knowledge base is here", "with --upstream it is elsewhere, and its answers are kept")
    return knowledge


def _value(knowledge: RemoteKnowledge) -> dict[str, Any]:
    told = knowledge.told
    return {
        "answers": told.answers,
        "asked": to_text(told.asked) if told.asked else None,
        "changes": told.changes,
        "failures": told.failures,
        "error": told.error or None,
    }


ROUTES: Final = (
    Route(
        "GET",
        "/kb",
        get,
        "getKb",
        "With --upstream: for how many patterns answers are kept, when they were requested, and whether that "
        "succeeded.",
        Need("read", "kb"),
        answers={200: Answer("Its state.", schema="Kb"), 404: Answer("The knowledge base is a store here.", ())},
    ),
    Route(
        "POST",
        "/kb/refresh",
        refresh,
        "refreshKb",
        "With --upstream: ask all patterns of all queries again. New answers hold for events from now on.",
        Need("update", "kb"),
        answers={
            200: Answer("Done.", schema="Kb"),
            404: Answer("The knowledge base is a store here.", ()),
            502: Answer("The endpoint fails; all old answers stay.", ()),
            504: Answer("The endpoint takes too long; all old answers stay.", ()),
        },
    ),
)
