"""LOAD in an update where it is allowed: what other servers send is bounded, guarded, and read by us alone."""

from __future__ import annotations

import http.server
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from test_bodies_of_rdf_xml import BOMB, PLAIN, SAYS

sys.path.insert(0, str(Path(__file__).parent.parent / "server"))
from asking import ask, column, endpoint, problem, update

from oxiseq.options.addresses import networks_of
from oxiseq.sparql import Limits, SparqlEndpoint, SparqlSettings

HERE = networks_of(["127.0.0.1/32"])
XML, TURTLE = "application/rdf+xml", "text/turtle"
MISLED = "?a<?b#>'''\n)"
"""Of a FILTER: for tokens an IRI and the beginning of a string; for the parser less-than and a comment."""


class Web:
    """A server: `pages` by path, with type and content; `asked` in order."""

    def __init__(self) -> None:
        self.pages: dict[str, tuple[str, bytes]] = {}
        self.headers: dict[str, dict[str, str]] = {}
        self.asked: list[str] = []
        self.address = ""


@contextmanager
def served() -> Iterator[Web]:
    web = Web()

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            web.asked.append(self.path)
            kind, content = web.pages.get(self.path, ("", b""))
            more = web.headers.get(self.path, {})
            self.send_response(302 if "Location" in more else 200 if kind else 404)
            for name, value in {"Content-Type": kind, **more}.items():
                self.send_header(name, value)
            self.end_headers()
            self.wfile.write(content)

        def log_message(self, format: str, *args: object) -> None:
            pass

    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05})
    thread.start()
    web.address = f"http://127.0.0.1:{server.server_port}/"
    try:
        yield web
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


@pytest.fixture
def web() -> Iterator[Web]:
    begun = time.monotonic()
    with served() as found:
        found.pages = {
            "/bomb": (XML, BOMB),
            "/plain": (XML, PLAIN),
            "/a.ttl": (TURTLE, b"<#x> <http://e/p> [ <http://e/q> 'load' ]."),
            "/b.ttl": (TURTLE, b"<http://e/y> <http://e/p> 'b \\'\\'\\' \\\" } ; CLEAR ALL #'@en ."),
            "/bad.ttl": (TURTLE, b"<http://e/y> <http://e/p>"),
            "/big.ttl": (TURTLE, b"#" * 200_000),
            "/page": ("text/html", b"<html>"),
            "/g.nq": ("application/n-quads", b"<a:b> <a:b> <a:b> <a:g> ."),
            "/wide.ttl": (TURTLE, f"@prefix p: <http://{'e' * 5_000}/> . p:a p:b p:c{',p:d' * 5_000} .".encode()),
        }
        found.headers = {
            "/to-a": {"Location": "/a.ttl"},
            "/to-file": {"Location": "file:///etc/hostname"},
            "/round": {"Location": "/round"},
        }
        yield found
    assert time.monotonic() - begun < 10


def allowing(**limits: int) -> SparqlEndpoint:
    settings = SparqlSettings(allow_load=True, limits=Limits(**limits), load_networks=HERE)
    return endpoint(settings, "INSERT DATA { <http://e/a> <http://e/p> 1 }")


def subjects(to: SparqlEndpoint, graph: str = "") -> list[str]:
    pattern = "?s <http://e/p> ?o"
    return column(ask(to, f"SELECT ?s {{ {f'GRAPH <{graph}> {{ {pattern} }}' if graph else pattern} }}"))


def test_a_bomb_is_refused_and_nothing_of_the_update_is_done(web: Web) -> None:
    to = allowing()
    for text in ("LOAD <U>", "CLEAR ALL ; LOAD <U> INTO GRAPH <http://e/g> ; INSERT DATA { <a:b> <a:b> 1 }"):
        refused = problem(update(to, text.replace("U", web.address + "bomb")))
        assert (refused["status"], refused["title"]) == (502, "LOAD cannot be carried out")
        assert SAYS in refused["detail"] and "bomb" in refused["detail"]
    assert subjects(to) == ["http://e/a"]
    assert update(to, f"LOAD SILENT <{web.address}bomb> ; LOAD <{web.address}plain>").status == 204
    assert subjects(to) == ["http://e/a", "http://e/a"]


def test_load_reaches_no_address_that_is_not_public(web: Web) -> None:
    """Of no spelling, not by a redirect, and of an allowed network nothing beside it; SILENT does not ask either."""
    plain = web.address + "plain"
    closed = endpoint(SparqlSettings(allow_load=True))
    before = subjects(closed)
    port = plain.split(":")[2].split("/")[0]
    for host in ("127.0.0.1", "localhost", "127.1", "[::ffff:127.0.0.1]", "169.254.169.254", "[::1]"):
        refused = problem(update(closed, f"LOAD <http://{host}:{port}/plain>"))
        assert (
            refused["status"] == 403 and "is not public" in refused["detail"] and "--load-network" in refused["detail"]
        )
    assert update(closed, f"LOAD SILENT <{plain}>").status == 204
    assert web.asked == [] and subjects(closed) == before
    web.headers["/inside"] = {"Location": f"http://127.0.0.2:{port}/plain"}
    refused = problem(update(allowing(), f"LOAD <{web.address}inside>"))
    assert refused["status"] == 403 and "127.0.0.2" in refused["detail"]
    assert web.asked == ["/inside"]
    assert update(allowing(), f"LOAD <{web.address}to-a>").status == 204


@pytest.mark.parametrize(
    "text",
    [
        # the parser sees a LOAD where tokens see a string, and the other way round
        f"INSERT {{ <a:b> <a:b> 1 }} WHERE {{ FILTER({MISLED} }} ; LOAD <U> #'''",
        f"INSERT {{ <a:b> <a:b> 1 }} WHERE {{ FILTER({MISLED} }} ; LOAD SILENT <U> ; LOAD <U> #'''\n",
        "INSERT { <a:b> <a:b> 1 } WHERE { FILTER(1<2#>\n) } ; LOAD <U> ; LOAD SILENT <U>",
        "INSERT { <a:b> <a:b> 1 } WHERE { FILTER(?a<?b#>{\n) } ; LOAD <U>",
        "INSERT DATA { <a:b> <a:b> 'x } ; LOAD <U> ; y' } ; LOAD <U> #",
        "LOAD <U> ; LOAD <U> INTO GRAPH <a:g> } ; LOAD <U>",
        "PREFIX : <U> LOAD : ; load\nsilent#\n:x INTO\nGRAPH : ; LoAd :",
    ],
)
def test_the_store_never_fetches_itself(text: str, web: Web, monkeypatch: pytest.MonkeyPatch) -> None:
    ours: list[str] = []
    monkeypatch.setattr("oxiseq.sparql.guards._fetched", lambda source, *_: ours.append(source) or (b"", None))
    monkeypatch.setattr("oxiseq.sparql.guards.parse", lambda *_, **__: iter(()))
    answer = update(allowing(), text.replace("U", web.address + "bomb"))
    assert web.asked == []
    assert answer.status in (204, 400)
    assert ours or answer.status == 400


@pytest.mark.parametrize(
    "text",
    [
        "INSERT { <a:b> <a:b> 1 } WHERE { FILTER(1<'''b>) } ; LOAD <U> ; CLEAR ALL #''') }",
        "INSERT { <a:b> <a:b> 1 } WHERE { FILTER(1<'''b>) } ; LOAD <U> ; #''') } ; LOAD <U>",
    ],
)
def test_a_string_that_tokens_take_for_a_load_is_not_written_into(text: str, web: Web) -> None:
    refused = problem(update(allowing(), text.replace("U", web.address + "a.ttl")))
    assert (refused["title"], web.asked) == ("the place of LOAD cannot be determined", [])
    assert refused["detail"].startswith("send each LOAD as an update of its own")


def test_what_stands_in_strings_and_comments_is_not_loaded(web: Web) -> None:
    to = allowing()
    text = f"""# LOAD <{web.address}a.ttl>
    PREFIX load: <http://load/> INSERT DATA {{ load:load <http://e/p> 'LOAD <{web.address}a.ttl>' }} ; # ; LOAD <x:y>"""
    assert update(to, text).status == 204
    assert (web.asked, subjects(to)) == ([], ["http://e/a", "http://load/load"])


def test_a_load_among_other_operations(web: Web) -> None:
    to = allowing()
    text = f"""BASE <{web.address}> PREFIX w: <{web.address}> prefix w2: <{web.address}b.>
    CLEAR ALL ; LOAD <a.ttl> ; load silent w:none into graph w:none ;
    LOAD w2:ttl INTO GRAPH w:g ; LOAD <to-a> INTO GRAPH <other> ;
    INSERT {{ ?s <http://e/p> "seen" }} WHERE {{ GRAPH w:g {{ ?s ?p ?o FILTER(?o < 1 || true) }} }}"""
    assert update(to, text).status == 204
    assert web.asked == ["/a.ttl", "/none", "/b.ttl", "/to-a", "/a.ttl"]
    assert subjects(to) == [f"{web.address}a.ttl#x", "http://e/y"]
    assert subjects(to, web.address + "g") == ["http://e/y"]
    assert subjects(to, web.address + "other") == [f"{web.address}to-a#x"]
    blanks = column(ask(to, "SELECT ?b { { ?b <http://e/q> 'load' } UNION { GRAPH ?g { ?b <http://e/q> 'load' } } }"))
    assert len(set(blanks)) == 2
    said = column(ask(to, f"SELECT ?o {{ GRAPH <{web.address}g> {{ ?s ?p ?o }} }}"))
    assert said == ["b ''' \" } ; CLEAR ALL #"]


@pytest.mark.parametrize(
    ("path", "status", "told"),
    [
        ("none", 502, "answers 404"),
        ("bad.ttl", 502, "malformed RDF"),
        ("page", 502, "text/html"),
        ("big.ttl", 502, "send it in pieces to /store"),
        ("wide.ttl", 502, "send it in pieces to /store"),
        ("g.nq", 502, "malformed RDF"),
        ("round", 502, "redirect"),
        ("to-file", 502, "file"),
    ],
)
def test_what_cannot_be_loaded_is_told(path: str, status: int, told: str, web: Web) -> None:
    to = allowing(body=100_000)
    refused = problem(update(to, f"CLEAR ALL ; LOAD <{web.address}{path}>"))
    assert refused["status"] == status
    assert told in refused["detail"].lower() or told in refused["detail"]
    assert subjects(to) == ["http://e/a"]
    assert update(to, f"LOAD SILENT <{web.address}{path}>").status == 204
    assert subjects(to) == ["http://e/a"]


def test_what_is_packed_is_not_unpacked(web: Web) -> None:
    web.headers["/a.ttl"] = {"Content-Encoding": "gzip"}
    assert "packed by gzip" in problem(update(allowing(), f"LOAD <{web.address}a.ttl>"))["detail"]


def test_many_loads_are_refused(web: Web) -> None:
    refused = problem(update(allowing(), ";".join([f"LOAD <{web.address}a.ttl>"] * 11)))
    assert (refused["title"], web.asked) == ("too many LOADs", [])
