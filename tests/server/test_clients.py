"""Clients that people use: SPARQLWrapper, rdflib's store, curl."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Iterator

import pytest
from rdflib import Dataset, Graph, Literal, URIRef
from rdflib.plugins.stores.sparqlstore import SPARQLStore, SPARQLUpdateStore
from servers import ours

pytest.importorskip("SPARQLWrapper", reason="SPARQLWrapper is not installed: pip install 'oxiseq[test]'")
from SPARQLWrapper import CSV, JSON, POST, POSTDIRECTLY, RDFXML, TURTLE, XML, SPARQLWrapper

E = "http://example.org/"


@pytest.fixture
def address() -> Iterator[str]:
    """A server of the test's own."""
    with ours() as found:
        yield found


def insert(address: str, data: str) -> None:
    """By SPARQLWrapper."""
    client = SPARQLWrapper(f"{address}/update")
    client.setMethod(POST)
    client.setQuery(f"PREFIX : <{E}> INSERT DATA {{ {data} }}")
    client.query()


def test_sparql_wrapper_reads_and_writes(address: str) -> None:
    insert(address, ":a :p 1 , 'é' . GRAPH :g { :a :p 2 }")
    client = SPARQLWrapper(f"{address}/query")
    client.setQuery(f"SELECT ?o {{ <{E}a> ?p ?o }} ORDER BY ?o")
    client.setReturnFormat(JSON)
    rows = client.queryAndConvert()["results"]["bindings"]
    assert [row["o"]["value"] for row in rows] == ["1", "é"]
    client.setReturnFormat(XML)
    assert len(client.queryAndConvert().getElementsByTagName("result")) == 2
    client.setReturnFormat(CSV)
    assert client.queryAndConvert().decode().split() == ["o", "1", "é"]
    client.addDefaultGraph(f"{E}g")
    client.setReturnFormat(JSON)
    assert [row["o"]["value"] for row in client.queryAndConvert()["results"]["bindings"]] == ["2"]


@pytest.mark.parametrize("how", ["urlencoded", POSTDIRECTLY])
def test_sparql_wrapper_posts_and_constructs(address: str, how: str) -> None:
    insert(address, ":a :p 1")
    client = SPARQLWrapper(f"{address}/query")
    client.setMethod(POST)
    client.setRequestMethod(how)
    client.setQuery("CONSTRUCT WHERE { ?s ?p ?o }")
    for format_, media in [(RDFXML, None), (TURTLE, "turtle")]:
        client.setReturnFormat(format_)
        found = client.queryAndConvert()
        graph = found if media is None else Graph().parse(data=found, format=media)
        assert len(graph) == 1


def test_rdflibs_store_reads(address: str) -> None:
    insert(address, ":a :p 1 . GRAPH :g { :b :p 2 }")
    graph = Graph(SPARQLStore(f"{address}/query"))
    assert list(graph.objects(URIRef(f"{E}a"))) == [Literal(1)]
    named = Graph(SPARQLStore(f"{address}/query"), URIRef(f"{E}g"))
    assert list(named.subjects()) == [URIRef(f"{E}b")]


def test_rdflibs_store_writes(address: str) -> None:
    dataset = Dataset(SPARQLUpdateStore(f"{address}/query", f"{address}/update"))
    graph = dataset.graph(URIRef(f"{E}g"))
    triple = (URIRef(f"{E}a"), URIRef(f"{E}p"), Literal('x\n"y"'))
    graph.add(triple)
    assert list(graph) == [triple]
    graph.remove(triple)
    assert len(graph) == 0


@pytest.mark.skipif(shutil.which("curl") is None, reason="curl is not installed")
def test_curl(address: str) -> None:
    def curl(*arguments: str, stdin: str = "") -> str:
        command = ["curl", "-sS", "--fail-with-body", *arguments]
        return subprocess.run(command, input=stdin, capture_output=True, text=True, timeout=60, check=True).stdout

    curl(
        "-X",
        "PUT",
        f"{address}/store?default",
        "-H",
        "Content-Type: text/turtle",
        "--data-binary",
        "@-",
        stdin="<http://example.org/a> <http://example.org/p> 1 .",
    )
    curl(f"{address}/update", "--data-urlencode", f"update=INSERT DATA {{ <{E}a> <{E}p> 2 }}")
    select = ("--data-urlencode", "query=SELECT ?o { ?s ?p ?o } ORDER BY ?o")
    assert curl(f"{address}/query", *select, "-H", "Accept: text/csv").split() == ["o", "1", "2"]
    assert curl("-G", "--compressed", f"{address}/query", *select, "-H", "Accept: text/csv").split() == ["o", "1", "2"]
    assert len(curl(f"{address}/store", "-H", "Accept: application/n-quads").splitlines()) == 2
