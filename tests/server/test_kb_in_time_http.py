"""Changes of the KB over HTTP while an event waits for its instant: every way to write, every language that reads."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Final

import pytest
from http_client import ask
from servers import served

from oxiseq.api.store import Store
from oxiseq.live import LiveService, LiveSettings
from oxiseq.live.api import LiveRoutes
from oxiseq.server import ServerSettings
from oxiseq.sparql import SparqlEndpoint

sys.path.insert(0, str(Path(__file__).parent.parent / "live"))
from live_services import rest, rows

E: Final = "http://e/"
P: Final = f"PREFIX : <{E}>"
S: Final = f"{E}S"
PATH: Final = "/streams/http%3A%2F%2Fe%2FS"
TURTLE: Final = [("Content-Type", "text/turtle")]
UPDATE: Final = [("Content-Type", "application/sparql-update")]
TELLS: Final = "GRAPH :g { ?k :v ?v }"
QUERIES: Final = {
    "spaseq": f"{P} SELECT ?v FROM STREAM S <{S}> WHERE {{ SEQ(A) DEFINE GPM A ON S {{ ?k :p ?x {TELLS} }} }}",
    "rspql": f"{P} REGISTER RSTREAM :o AS SELECT ?v FROM NAMED WINDOW :w ON <{S}> [RANGE PT1S]"
    f" WHERE {{ WINDOW :w {{ ?k :p ?x }} {TELLS} }}",
    "spectra": f"{P} REGISTER RSTREAM :o AS SELECT ?v FROM STREAM <{S}> [RANGE 1 SECONDS SLIDE 1 SECONDS]"
    f" WHERE {{ ?k :p ?x {TELLS} }}",
    "rsepql": f"{P} SELECT ?v FROM NAMED <{S}> WIN [RANGE 1 SECONDS SLIDE 1 SECONDS] AS :w"
    f" EVENT ON :w {{ ?k :p ?x {TELLS} }} AS E WHERE {{ MATCH {{ E }} }}",
    "epsparql": f"{P} SELECT ?v FROM STREAM <{S}> WHERE {{ ?k :p ?x . {TELLS} }}",
}
CHANGES: Final = {
    "update": ("POST", "/update", UPDATE, f"{P} CLEAR ALL ; INSERT DATA {{ GRAPH :g {{ :a :v 2 }} }}"),
    "put of a graph": ("PUT", f"/store?graph={E}g", TURTLE, f"<{E}a> <{E}v> 2 ."),
    "put of all": ("PUT", "/store", [("Content-Type", "application/trig")], f"<{E}g> {{ <{E}a> <{E}v> 2 }}"),
    "delete": ("DELETE", f"/store?graph={E}g", [], ""),
    "delete of all": ("DELETE", "/store", [], ""),
    "two changes": ("POST", "/update", UPDATE, f"{P} INSERT DATA {{ GRAPH :g {{ :a :v 9 }} }}"),
}
"""What is in the graph afterwards is 2, or nothing; after two changes 2."""


@pytest.fixture
def service(tmp_path: Path) -> Iterator[LiveService]:
    with LiveService(Store(), tmp_path, LiveSettings(idle=None), "normal") as service:
        yield service


@pytest.mark.parametrize("change", CHANGES)
def test_an_event_that_waits_sees_the_kb_of_before(service: LiveService, change: str) -> None:
    assert isinstance(service.store, Store)
    endpoint = SparqlEndpoint(service.store)
    settings = replace(ServerSettings(port=0, threads=4), live=2)
    with served(endpoint, settings, LiveRoutes(service, endpoint.evaluations)) as address:

        def done(method: str, target: str, headers: list[tuple[str, str]], body: str) -> None:
            answer = ask(address, method, target, headers, body.encode())
            assert answer.status < 300, answer.body

        done("PUT", f"/store?graph={E}g", TURTLE, f"<{E}a> <{E}v> 1 .")
        for language, text in QUERIES.items():
            for name, lateness in ((language, 0), (f"{language}-late", 5)):
                body = {"text": text, "language": language, "lateness": f"{lateness}s"}
                done("PUT", f"/queries/{name}", [("Content-Type", "application/json")], json.dumps(body))
        event = f"<{E}a> <{E}p> <{E}x> ."
        done("POST", f"{PATH}?time=2026-01-01T00:00:02Z", TURTLE, event)
        done(*CHANGES[change])
        if change == "two changes":
            done(*CHANGES["update"])
        done("POST", f"{PATH}?time=2026-01-01T00:00:04Z", TURTLE, event)
        done("POST", f"{PATH}?time=2026-01-01T00:00:01Z", TURTLE, event)  # late, but where that is allowed
    service.streams.advance(S, 253_402_300_799_999_999)
    rest(service)
    after = [] if change.startswith("delete") else ["2"]
    for language in QUERIES:
        for name, before in ((language, ["1"]), (f"{language}-late", ["1", "1"])):
            told = [str(row[-1]).split('"')[1] for _, row in rows(service, name)]
            assert (name, told) == (name, before + after)
