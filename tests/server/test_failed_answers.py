"""Nothing of an answer that failed is in another one, whoever asks."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import closing
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from urllib.parse import quote

import pytest
from http_client import Answer, ask
from servers import served

from oxiseq.api.store import Store
from oxiseq.sparql import Limits, SparqlEndpoint, SparqlSettings
from oxiseq.sparql.processes import Processes, Workers
from oxiseq.sparql.snapshots import in_memory

_SECRET = "INSERT DATA {" + " ".join(f"<http://e/{i}> <http://e/p> 'secret {i}' ." for i in range(40)) + "}"
_TERM = "INSERT DATA { <http://e/t> <http://e/q> <<( <http://e/secret> <http://e/p> 1 )>> }"
_COUNT = "SELECT (COUNT(*) AS ?n) { ?s ?p ?o . ?s ?p ?o FILTER(?o != 0) }"
"""No plain query: those are answered in the server itself."""


class _OneByOne(Workers):
    """None is started before it is needed: who asks next is answered by the process that answered last."""

    def _start_one(self) -> None:
        pass


@pytest.fixture(scope="module")
def workers() -> Workers:
    return _OneByOne(256 << 20)


@pytest.fixture(scope="module")
def address(workers: Workers) -> Iterator[str]:
    """A server that evaluates in processes; at most 20 rows, other endpoints may be called."""
    store = Store()
    store.update(_SECRET)
    store.update(_TERM)
    settings = SparqlSettings(limits=Limits(rows=20), allow_service=True)
    with (
        closing(Processes(workers, in_memory(store))) as processes,
        served(SparqlEndpoint(store, settings, processes)) as found,
    ):
        yield found


@pytest.fixture(scope="module")
def breaking() -> Iterator[str]:
    """An endpoint whose answers break off: some solutions, then no JSON."""

    class Breaking(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            rows = ",".join(f'{{"x":{{"type":"literal","value":"secret {i}"}}}}' for i in range(5))
            self.send_response(200)
            self.send_header("Content-Type", "application/sparql-results+json")
            self.end_headers()
            self.wfile.write(f'{{"head":{{"vars":["x"]}},"results":{{"bindings":[{rows},oh'.encode())

        def log_message(self, format: str, *args: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Breaking)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    yield f"http://127.0.0.1:{server.server_port}/"
    server.shutdown()
    thread.join()


def _asked(address: str, query: str, accept: str) -> Answer:
    return ask(address, "GET", f"/query?query={quote(query, safe='')}", [("Accept", accept)])


def _next_is_clean(address: str) -> None:
    for _ in range(3):
        found = _asked(address, _COUNT, "text/csv")
        assert (found.status, found.body) == (200, b"n\r\n41\r\n")


def test_of_a_graph_of_too_many_triples(address: str) -> None:
    found = _asked(address, "CONSTRUCT { ?s ?p ?o } WHERE { ?s ?p ?o . ?s ?p ?o }", "application/n-triples")
    assert found.status == 403
    _next_is_clean(address)


def test_of_a_graph_that_its_format_cannot_say(address: str) -> None:
    last = "SELECT * { ?s ?p ?o FILTER(?o = 'secret 1' || isTRIPLE(?o)) } ORDER BY ?o"
    found = _asked(address, f"CONSTRUCT {{ ?s ?p ?o }} WHERE {{ {{ {last} }} }}", "application/ld+json")
    assert found.status == 406
    _next_is_clean(address)


def test_of_a_query_whose_service_breaks_off(address: str, breaking: str) -> None:
    found = _asked(address, f"SELECT * {{ SERVICE <{breaking}> {{ ?s ?p ?x }} }}", "text/csv")
    assert found.status != 200
    _next_is_clean(address)


def test_a_process_that_failed_in_an_unforeseen_way_is_not_asked_again(address: str, workers: Workers) -> None:
    _next_is_clean(address)
    before = {worker._process.pid for worker in workers._ready}
    _asked(address, "CONSTRUCT { ?s ?p ?o } WHERE { <http://e/t> ?p ?o . ?s ?p ?o }", "application/ld+json")
    gone = [pid for pid in before if not Path(f"/proc/{pid}").exists()]
    assert len(gone) == 1
