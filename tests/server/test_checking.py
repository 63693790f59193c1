"""`POST /check` and `GET /queries/NAME/explanation`: what the page underlines and draws."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any
from urllib.parse import quote

import pytest
from http_client import Answer, ask
from test_live_http import JSON, RISES, SPASEQ, STREAM, TURTLE, server

from oxiseq.server import ServerSettings, Tokens

SPARQL = "application/sparql-query"
UPDATE = "application/sparql-update"


@pytest.fixture(scope="module")
def address(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with server(tmp_path_factory.mktemp("checks")) as given:
        yield given


def checked(address: str, media_type: str, text: str) -> list[dict[str, Any]]:
    answer = ask(address, "POST", "/check", [("Content-Type", media_type)], text.encode())
    assert answer.status == 200, answer.body
    found: list[dict[str, Any]] = json.loads(answer.body)["findings"]
    return found


def test_a_sequence_query_is_checked_as_on_the_command_line(address: str) -> None:
    assert checked(address, SPASEQ[1], RISES) == []
    found = checked(address, SPASEQ[1], RISES.replace("(A; B)", "(A; Q)"))
    places = [(f["line"], f["column"], f["end_line"], f["end_column"]) for f in found if f["severity"] == "error"]
    assert (5, 10, 5, 11) in places


@pytest.mark.parametrize(
    ("media_type", "text", "place"),
    [
        (SPARQL, "SELECT * { ?s ?p ?o }", None),
        (SPARQL, "SELECT *\n{ ?s ?p }", (2, 9)),
        (SPARQL, "SELECT * { SERVICE <http://127.0.0.1:9/> { ?s ?p ?o } }", None),
        (UPDATE, "INSERT DATA { <urn:a> <urn:b> 1 }", None),
        (UPDATE, "INSERT DATA { <urn:a> <urn:b> }", (1, 31)),
        (UPDATE, "LOAD <http://127.0.0.1:9/>", None),
    ],
)
def test_sparql_is_checked_and_nothing_is_done(
    address: str, media_type: str, text: str, place: tuple[int, int] | None
) -> None:
    found = checked(address, media_type, text)
    assert [(f["line"], f["column"]) for f in found] == ([] if place is None else [place])
    rows = ask(address, "GET", f"/query?query={quote('ASK { ?s ?p ?o }')}", [("Accept", "text/csv")])
    assert rows.body.strip() == b"false"


def test_a_read_token_is_enough_to_check(tmp_path: Any) -> None:
    settings = ServerSettings(port=0, threads=6, tokens=Tokens(read="r", write="w"))
    with server(tmp_path, settings) as guarded:

        def check(*headers: tuple[str, str]) -> Answer:
            return ask(guarded, "POST", "/check", [SPASEQ, *headers], RISES.encode())

        assert check().status == 401
        assert check(("Authorization", "Bearer r")).status == 200


def test_an_explanation_tells_what_waits_where(address: str) -> None:
    assert ask(address, "PUT", "/queries/rises", [SPASEQ], RISES.encode()).status == 200
    path = f"/streams/{quote(STREAM, safe='')}"
    for time, house in [(1, "a"), (2, "b"), (3, "c")]:
        body = f"<urn:{house}> <http://example.org/watts> 5 .".encode()
        assert ask(address, "POST", f"{path}?time={time}000000&watermark={time}500000", [TURTLE], body).status == 200
    found = explained(address, 3)
    assert [edge["source"] for edge in found["explanation"]["edges"]] == [-1, 0]
    assert found["waiting"] == [0, 3]
    assert ask(address, "PATCH", "/queries/rises", [JSON], b'{"state": "paused"}').status == 200
    assert explained(address, None)["waiting"] is None
    assert ask(address, "GET", "/queries/none/explanation").status == 404


def explained(address: str, seen: int | None) -> dict[str, Any]:
    """When the query has seen so many events."""
    while seen is not None and json.loads(ask(address, "GET", "/queries/rises").body)["events"] < seen:
        pass
    found: dict[str, Any] = json.loads(ask(address, "GET", "/queries/rises/explanation").body)
    return found


def test_every_language_has_a_picture(address: str) -> None:
    ceql = b"VOCAB <http://example.org/> SELECT * FROM S WHERE SELL ; BUY"
    headers = [("Content-Type", "application/ceql-query")]
    assert ask(address, "PUT", "/queries/trades", headers, ceql).status == 200
    found = json.loads(ask(address, "GET", "/queries/trades/explanation").body)
    assert found["picture"].startswith("<svg ") and ">SELL<" in found["picture"]
    assert "state 1, after BUY" in found["text"] and len(found["explanation"]["states"]) == 2


MAPPING = {
    "subject": "http://e/{id}",
    "predicates": {"http://e/t": {"column": "t", "datatype": "xsd:decimal"}},
    "unit": "s",
}


def tried(address: str, status: int = 200, **given: Any) -> Any:
    answer = ask(address, "POST", "/mappings/try", [JSON], json.dumps(given).encode())
    assert answer.status == status, answer.body
    return json.loads(answer.body)


def test_a_mapping_is_tried_and_nothing_is_stored(address: str) -> None:
    streams = ask(address, "GET", "/streams", []).body
    found = tried(address, mapping=MAPPING, rows="id,t,time,x\n7,1,5,a\n8,warm,6,b\n9,2,7,c", type="text/csv")
    assert [event["time"] for event in found["events"]] == ["1970-01-01T00:00:05Z", "1970-01-01T00:00:07Z"]
    subject, predicate, value = found["events"][0]["triples"][0]
    assert (subject["value"], predicate["value"], value["value"]) == ("http://e/7", "http://e/t", "1")
    assert found["reasons"] == [{"reason": "'warm' is no xsd:decimal", "line": 3, "column": "t"}]
    assert (found["rejected"], found["missing"], found["unread"]) == (1, [], ["x"])
    lacking = tried(address, mapping=MAPPING, rows='[{"idd": 7, "time": 5}]')
    assert lacking["missing"] == [{"column": "id", "near": "idd"}, {"column": "t", "near": None}]
    assert lacking["events"] == [] and lacking["rejected"] == 1
    untimed = tried(address, mapping=MAPPING | {"time": None}, rows='{"id": 7, "t": 1}')
    assert untimed["events"][0]["time"] is None
    assert ask(address, "GET", "/streams", []).body == streams


def test_what_a_tried_mapping_makes_is_bounded(address: str) -> None:
    body = "BIND(IRI(CONCAT('http://e/', STR(?id))) AS ?s) BIND({} AS ?o)"
    query = "CONSTRUCT {{ ?s <http://e/p> ?o }} WHERE {{ {} }}"
    long = "CONCAT(" + ", ".join(["?x"] * 900) + ")"
    rows = json.dumps([{"id": 1, "x": "x" * 6_000}])
    for expression in (long, f"UCASE({long})"):  # compiled, and answered by Oxigraph
        mapping = {"construct": query.format(body.format(expression)), "time": None}
        assert "characters of the events" in tried(address, 400, mapping=mapping, rows=rows)["detail"]
    wide = json.dumps([{"id": 1, "x": "x" * 200_000}])
    mapping = {"construct": query.format(body.format(f"UCASE({long})")), "time": None}
    assert "characters of the terms" in tried(address, 400, mapping=mapping, rows=wide)["detail"]
    columns = json.dumps([{f"temperature_{n}": 1 for n in range(10_000)}])
    wanted = {f"http://e/{n}": f"temperature{n}" for n in range(900)}
    many = {"subject": "http://e/s", "predicates": wanted, "time": None}
    missing = tried(address, mapping=many, rows=columns)["missing"]
    assert len(missing) == 900 and missing[0]["near"] and not missing[-1]["near"]


def test_what_is_no_mapping_or_no_rows_is_refused(address: str) -> None:
    many = "id,t,time\n" + "7,1,5\n" * 5_000
    assert len(tried(address, mapping=MAPPING, rows=many, type="text/csv")["events"]) == 20
    assert tried(address, mapping=MAPPING, rows="")["events"] == []
    for given in (
        {},
        {"mapping": MAPPING},
        {"mapping": MAPPING, "rows": 5},
        {"mapping": MAPPING, "rows": "x" * (1 << 20) + "x"},
        {"mapping": MAPPING, "rows": "nothing"},
        {"mapping": MAPPING, "rows": "\ud800"},
        {"mapping": MAPPING, "rows": "[1]", "type": "text/turtle"},
        {"mapping": None, "rows": "[]"},
        {"mapping": {"file": "/etc/passwd"}, "rows": "[]"},
        {"mapping": "CONSTRUCT { ?a ?b ?c } WHERE { SERVICE <urn:x> { ?a ?b ?c } }", "rows": "[]"},
        {"mapping": 7, "rows": "[]"},
        {"mapping": MAPPING, "rows": "[]", "more": 1},
    ):
        tried(address, 400, **given)
