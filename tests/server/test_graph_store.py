"""The graph store protocol beyond the W3C's tests."""

from __future__ import annotations

import pytest
from asking import endpoint, get, problem, send
from pyoxigraph import Dataset, RdfFormat, parse

from oxiseq.sparql import Response, SparqlEndpoint

G = [("graph", "http://e/new")]
TURTLE = "text/turtle"


def triples(to: SparqlEndpoint, parameters: list[tuple[str, str]]) -> int:
    """How many triples a graph has."""
    response = get(to, "/store", parameters, accept="application/n-triples")
    assert response.status == 200
    return len(response.content().splitlines())


def test_a_graph_is_made_replaced_merged_and_deleted() -> None:
    to = endpoint()
    statuses = [
        send(to, "/store", "<a> <b> 1 .", TURTLE, G, "PUT").status,
        send(to, "/store", "<a> <b> [ <c> 2 ] .", TURTLE, G, "PUT").status,
        send(to, "/store", "<a> <b> 3 .", TURTLE, G).status,
    ]
    assert statuses == [201, 204, 204]
    assert triples(to, G) == 3
    assert [get(to, "/store", G, method="DELETE").status for _ in range(2)] == [204, 404]
    assert get(to, "/store", G).status == 404
    assert get(to, "/store", G, method="HEAD").status == 404


def test_an_empty_graph_exists() -> None:
    to = endpoint()
    assert send(to, "/store", "", TURTLE, G, "PUT").status == 201
    assert triples(to, G) == 0
    assert send(to, "/store", "", TURTLE, G, "PUT").status == 204


def test_a_malformed_document_changes_nothing() -> None:
    to = endpoint()
    send(to, "/store", "<a> <b> 1 .", TURTLE, G, "PUT")
    for method in ("PUT", "POST"):
        details = problem(send(to, "/store", "<a> <b> 5 .\n<a> <b> nonsense .", TURTLE, G, method))
        assert (details["status"], details["line"]) == (400, 2)
    assert triples(to, G) == 1
    assert send(to, "/store", "<a> <b> ", TURTLE, [("graph", "http://e/other")], "PUT").status == 400
    assert get(to, "/store", [("graph", "http://e/other")]).status == 404


def test_a_document_of_several_graphs_is_no_graph() -> None:
    to = endpoint()
    quads = "<http://e/a> <http://e/p> 1 <http://e/g> ."
    for method in ("PUT", "POST"):
        assert send(to, "/store", quads, "application/n-quads", G, method).status == 400


def test_the_default_graph() -> None:
    to = endpoint()
    assert triples(to, [("default", "")]) == 2
    assert send(to, "/store", "<a> <b> 1 .", TURTLE, [("default", "")], "PUT").status == 204
    assert triples(to, [("default", "")]) == 1
    assert get(to, "/store", [("default", "")], method="DELETE").status == 204
    assert triples(to, [("default", "")]) == 0
    assert triples(to, [("graph", "http://e/g")]) == 1


def test_the_whole_dataset_comes_back_as_it_was() -> None:
    to = endpoint()
    for media_type, format_ in [
        ("application/n-quads", RdfFormat.N_QUADS),
        ("application/trig", RdfFormat.TRIG),
        ("application/ld+json", RdfFormat.JSON_LD),
    ]:
        content = get(to, "/store", accept=media_type).content()
        before = Dataset(parse(content, format_))
        assert send(to, "/store", content, media_type, method="PUT").status == 204
        assert Dataset(parse(get(to, "/store", accept=media_type).content(), format_)) == before
    assert get(to, "/store", method="DELETE").status == 204
    assert get(to, "/store").content() == b""


def test_blank_nodes_that_graphs_share_stay_one() -> None:
    to = endpoint(data="CLEAR ALL")
    quads = "_:x <http://e/p> 1 .\n_:x <http://e/p> 2 <http://e/g> .\n".replace(" 1 ", ' "1" ').replace(" 2 ", ' "2" ')
    assert send(to, "/store", quads, "application/n-quads").status == 204
    subjects = {quad.subject for quad in parse(get(to, "/store").content(), RdfFormat.N_QUADS)}
    assert len(subjects) == 1


def test_triples_posted_to_the_store_get_a_graph_of_their_own() -> None:
    to = endpoint()
    response = send(to, "/store", "<a> <b> 1 .", TURTLE)
    assert response.status == 201
    assert triples(to, [("graph", response.header("location") or "")]) == 1
    assert send(to, "/store", "<a> <b> 1 .", TURTLE, method="PUT").status == 415


def test_the_address_names_a_graph() -> None:
    to = endpoint()
    assert send(to, "/store/some/graph%2F1", "<a> <b> 1 .", TURTLE, method="PUT").status == 201
    assert triples(to, [("graph", "http://localhost/store/some/graph%2F1")]) == 1
    assert get(to, "/store/some/graph/1").status == 404


@pytest.mark.parametrize(
    "parameters", [[("graph", "http://e/g"), ("default", "")], [("graph", "http://e/g")] * 2, [("graph", "http://[")]]
)
def test_a_graph_that_is_not_one(parameters: list[tuple[str, str]]) -> None:
    assert get(endpoint(), "/store", parameters).status == 400


def multipart(*parts: str, boundary: str = "cut") -> bytes:
    """Files of a form."""
    head = 'Content-Disposition: form-data; name="f"; filename="f.ttl"\r\nContent-Type: text/turtle\r\n\r\n'
    return "".join([f"--{boundary}\r\n{head}{part}\r\n" for part in parts] + [f"--{boundary}--\r\n"]).encode()


def test_files_of_a_form_are_merged_or_none_is() -> None:
    to = endpoint()
    media_type = "multipart/form-data; boundary=cut"

    def posted(content: bytes) -> Response:
        return send(to, "/store", content, media_type, G)

    assert posted(multipart("<a> <b> 1 .", "<a> <b> 2 .")).status == 201
    assert triples(to, G) == 2
    assert posted(multipart("<a> <b> 3 .", "<a> <b>")).status == 400
    assert posted(b"no form").status == 400
    assert posted(multipart()).status == 400
    assert triples(to, G) == 2


def test_no_context_is_fetched_for_json_ld() -> None:
    content = '{"@context": "http://127.0.0.1:9/c.jsonld", "@id": "http://e/x", "http://e/p": 1}'
    assert send(endpoint(), "/store", content, "application/ld+json", G).status == 400
