"""Whatever is sent, there is a response: the protocol layer never raises."""

from __future__ import annotations

import json

from asking import DATA, limited
from hypothesis import given
from hypothesis import strategies as st

from oxiseq.api.store import Store
from oxiseq.sparql import Interrupted, Request, Response, SparqlEndpoint

PIECES = st.sampled_from(
    [
        "SELECT",
        "*",
        "{",
        "}",
        "?s",
        "?p",
        "?o",
        "ASK",
        "CONSTRUCT",
        "WHERE",
        "INSERT",
        "DELETE",
        "DATA",
        "GRAPH",
        "<http://e/a>",
        "<",
        ">",
        "'",
        '"',
        "'''",
        "\\",
        "\\u0041",
        "#",
        "\n",
        ";",
        ".",
        "SERVICE",
        "LOAD",
        "USING",
        "WITH",
        "CLEAR",
        "ALL",
        "1e999999",
        "9" * 60,
        "(",
        ")",
        "<<(",
        ")>>",
        "\x00",
        "\ud83d",
        "é",
        "PREFIX :",
        "BASE",
        "VALUES",
        "UNDEF",
        "@en--ltr",
        "_:b",
        "^^",
        "BIND(1/0 AS ?x)",
        "COUNT(*)",
        "LIMIT",
        "GROUP BY",
        "%00",
        "DESCRIBE",
    ]
)
SPARQL = st.lists(PIECES, max_size=25).map(" ".join)
NAMES = st.sampled_from(
    [
        "query",
        "update",
        "default-graph-uri",
        "named-graph-uri",
        "using-graph-uri",
        "using-named-graph-uri",
        "graph",
        "default",
        "union-default-graph",
        "using-union-graph",
        "x",
    ]
)
VALUES = st.one_of(
    SPARQL, st.text(max_size=10), st.sampled_from(["http://e/g", "http://[", "", "ASK {}", "CLEAR ALL", "a b", "//"])
)
ENCODED = st.one_of(
    st.text(max_size=20),
    st.lists(st.tuples(NAMES, VALUES), max_size=4).map(
        lambda pairs: "&".join(f"{n}={''.join(f'%{b:02X}' for b in v.encode(errors='replace'))}" for n, v in pairs)
    ),
    st.sampled_from(["query=%FF", "query=%", "=&=", ";", "graph=%00", "query=ASK%20%7B%7D"]),
)
TYPES = st.sampled_from(
    [
        "application/sparql-query",
        "application/sparql-update",
        "application/x-www-form-urlencoded",
        "text/turtle",
        "application/n-quads",
        "application/trig",
        "application/ld+json",
        "application/rdf+xml",
        "text/n3",
        "text/plain",
        "multipart/form-data; boundary=x",
        "multipart/form-data",
        "application/sparql-query; charset=nonsense",
        ";",
        "/",
        "é",
    ]
)
ACCEPTS = st.one_of(
    st.text(max_size=20),
    st.sampled_from(
        ["*/*", "text/*;q=0.1", "*", "text/csv;q=nan", "text/csv;q=-1", ",,,", "a/b;c", "*/x", "text/turtle"]
    ),
)
HEADERS = st.lists(
    st.one_of(
        st.tuples(st.just("content-type"), TYPES),
        st.tuples(st.just("accept"), ACCEPTS),
        st.tuples(st.text(max_size=5), st.text(max_size=5)),
    ),
    max_size=4,
).map(tuple)
BODIES = st.one_of(
    st.binary(max_size=40),
    st.one_of(SPARQL, ENCODED).map(lambda text: text.encode(errors="replace")),
    st.sampled_from(
        [
            b'{"@context": {"@base": 7}}',
            b"<rdf:RDF>",
            b"@prefix : <x> . :a :b [ :c (1 2) ] .",
            b"\xff\xfe",
            b"_:a <http://e/p> 'x' _:g .",
            b"<a> <b> '\\ud800' .",
            b"--x\r\n\r\n\r\n--x--",
        ]
    ),
)
REQUESTS = st.builds(
    Request,
    method=st.sampled_from(["GET", "HEAD", "POST", "PUT", "DELETE", "PATCH", "OPTIONS", "", "get"]),
    path=st.one_of(
        st.sampled_from(["/query", "/update", "/store", "/store/x", "/store//", "/", "", "/storex"]),
        st.text(max_size=8),
    ),
    query_string=ENCODED,
    headers=HEADERS,
    body=BODIES,
    origin=st.sampled_from(["http://localhost", "http://", "", "http://[", "https://h:99999"]),
)
ENDPOINT = SparqlEndpoint(Store(), limited(seconds=20))


@given(REQUESTS)
def test_there_is_always_a_response(request: Request) -> None:
    ENDPOINT.answer(Request("POST", "/update", "", (("content-type", "application/sparql-update"),), DATA.encode()))
    check(ENDPOINT.answer(request), request)


def check(response: Response, request: Request) -> None:
    """It is well formed, complete or broken off; a failure is told as one."""
    assert 200 <= response.status < 600
    try:
        content = response.content()
    except Interrupted:
        return
    if request.method == "HEAD" or response.status in (204,):
        assert content == b""
    if response.header("content-type") == "application/problem+json" and request.method != "HEAD":
        assert json.loads(content)["status"] == response.status
    assert response.status != 500 or b"cannot answer" in content or request.method == "HEAD"


@given(SPARQL)
def test_any_query_text_is_answered(text: str) -> None:
    headers = (("content-type", "application/sparql-query"),)
    request = Request("POST", "/query", "", headers, text.encode(errors="replace"))
    check(ENDPOINT.answer(request), request)


@given(SPARQL, st.booleans())
def test_any_update_text_is_answered(text: str, using: bool) -> None:
    headers = (("content-type", "application/sparql-update"),)
    parameters = "using-graph-uri=http://e/g" if using else ""
    request = Request("POST", "/update", parameters, headers, text.encode(errors="replace"))
    check(ENDPOINT.answer(request), request)
