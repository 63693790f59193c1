"""`/bridges`: where streams come from by themselves."""

from __future__ import annotations

from typing import Final

from oxiseq.live.api.table import Answer, Call, Need, Route, json_response
from oxiseq.sparql.messages import Response


def all_bridges(call: Call) -> Response:
    """GET /bridges."""
    may, found = call.request.rights.may, call.service.bridges
    told = [] if found is None else found.values()
    return json_response({"bridges": [each for each in told if may("read", "stream", each["into"])]})


ROUTES: Final = (
    Route(
        "GET",
        "/bridges",
        all_bridges,
        "listBridges",
        "The bridges in the server's settings into streams that may be read: how much they have pushed, since when "
        "they fail, and why.",
        Need("read", "stream", "list"),
        answers={200: Answer("The bridges.", schema="Bridges")},
    ),
)
