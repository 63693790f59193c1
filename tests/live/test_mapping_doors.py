"""Mappings at the doors of a server: who may set them, and JSON-LD by the contexts that stand beside them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, Final
from urllib.parse import quote

from hot_service import Doors, hot

from oxiseq.live.api import LiveRoutes
from oxiseq.rights import Rights, grant_of
from oxiseq.sparql.evaluation import Evaluations
from oxiseq.sparql.messages import Request
from oxiseq.sparql.settings import Limits

S: Final = "http://example.org/rows"
PATH: Final = f"/streams/{quote(S, safe='')}"
FLAT: Final[dict[str, Any]] = {
    "subject": "http://e/{id}",
    "predicates": {"http://e/p": "temp"},
    "time": {"expression": "?ts + ?ms / 1000"},
    "unit": "s",
}
IRI: Final = "https://example.org/context.jsonld"
CONTEXTS: Final = {IRI: {"@context": {"id": "@id", "temp": "http://e/p"}}}
GRAPH: Final = {"@context": IRI, "id": "http://e/1", "temp": 20}


def send(
    doors: Doors, body: object, kind: str, *, query: str = "", path: str = PATH, rights: Rights | None = None
) -> tuple[int, dict[str, Any]]:
    routes = LiveRoutes(doors.service, Evaluations(Limits()))
    text = body if isinstance(body, bytes) else json.dumps(body).encode()
    given = {} if rights is None else {"rights": rights}
    answer = routes.answer(Request("POST", path, query, (("content-type", kind),), text, **given))
    assert isinstance(answer.body, bytes)
    return answer.status, json.loads(answer.body.splitlines()[-1])


def stored(doors: Doors) -> list[str]:
    """The triples of the stream's events."""
    text, _ = doors.service.streams.text(S, 0, 100, "messages-ntriples")
    return [line for line in text.decode().splitlines() if "http://e/p" in line]


def test_who_may_push_may_not_say_what_rows_mean(tmp_path: Path) -> None:
    pushing = Rights((grant_of(f"push:stream:{S}"),), "plant")
    row = [{"id": 1, "temp": 20, "ts": 1714557600, "ms": 250}]
    with hot(tmp_path) as doors:
        for method, path, value in (
            ("PUT", PATH, {"mapping": FLAT}),
            ("PATCH", PATH, {"mapping": FLAT}),
            ("POST", "/streams", {"iri": S, "mapping": FLAT}),
        ):
            assert doors.ask(method, path, value, pushing)[0] == 403
        assert doors.ask("PUT", PATH, rights=pushing)[0] == 200
        assert send(doors, row, "application/json", rights=pushing)[0] == 415
        assert doors.ask("PUT", PATH, {"mapping": FLAT})[0] == 200
        status, told = send(doors, row, "application/json", rights=pushing)
        assert (status, told["accepted"]) == (200, 1)
        assert send(doors, row, "application/json", rights=Rights((), "nobody"))[0] == 403


def test_json_ld_names_contexts_that_stand_beside_the_mapping(tmp_path: Path) -> None:
    with hot(tmp_path) as doors:
        assert doors.ask("PUT", PATH, {"mapping": {"contexts": CONTEXTS}})[0] == 200
        assert send(doors, GRAPH, "application/ld+json", query="time=1")[1]["accepted"] == 1
        assert send(doors, GRAPH, "application/x-ld+ndjson", query="time=2")[1]["accepted"] == 1
        item = {"seq": 1, "time": 3, "graph": GRAPH}
        assert "error" not in send(doors, item, "application/x-ndjson", path=f"{PATH}/events", query="session=s")[1]
        assert len(stored(doors)) == 3 and len(set(stored(doors))) == 1
        status, told = send(doors, [{"id": 1}], "application/json")
        assert (status, told["title"]) == (415, "the stream has no mapping")
    with hot(tmp_path) as doors:  # after a restart, too
        assert send(doors, GRAPH, "application/ld+json", query="time=4")[1]["accepted"] == 1
        doors.ask("PATCH", PATH, {"mapping": {**FLAT, "contexts": CONTEXTS}})
        assert send(doors, GRAPH, "application/ld+json", query="time=5")[1]["accepted"] == 1
        assert len(stored(doors)) == 5


def test_what_is_no_known_context_is_refused(tmp_path: Path) -> None:
    other = {**GRAPH, "@context": "http://127.0.0.1:9/c.jsonld"}
    with hot(tmp_path) as doors:
        for mapping in ({"contexts": 5}, {"contexts": {IRI: 5}}, {"contexts": {IRI: IRI}}, {"contexts": {}, "x": 1}):
            status, told = doors.ask("PUT", PATH, {"mapping": mapping})
            assert (status, told["title"]) == (400, "malformed mapping"), mapping
        for mapping in (None, {"contexts": CONTEXTS}):
            doors.ask("PUT", PATH, {"mapping": mapping})
            for kind in ("application/ld+json", "application/x-ld+ndjson"):
                status, told = send(doors, other, kind, query="time=1")
                assert status == 400 and "nothing is fetched" in told["reasons"][0]["reason"], told
            deep = b'{"http://e/p":' * 50_000
            assert send(doors, deep + b'{"@context":5}', "application/ld+json", query="time=1")[0] == 400
        assert stored(doors) == []
