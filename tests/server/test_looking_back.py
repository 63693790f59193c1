"""Looking back over HTTP: why and why not, comparisons, what a match was made of; bounds and tokens."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from http_client import Answer, ask
from pyoxigraph import NamedNode, Quad, RdfFormat, parse
from servers import served
from test_live_http import EX, JSON, PATH, SPASEQ, STREAM, TURTLE, server, told

import oxiseq
from oxiseq.api.store import Store
from oxiseq.engine.matches.paging import Page
from oxiseq.languages.reasons.read import Span
from oxiseq.live import LiveService, LiveSettings
from oxiseq.live.api import LiveRoutes
from oxiseq.live.past import Past
from oxiseq.server import ServerSettings, Tokens
from oxiseq.sparql import SparqlEndpoint, SparqlSettings
from oxiseq.sparql.settings import Limits

HOMES = f"{EX}homes"
RISES = f"""PREFIX : <{EX}>
SELECT ?house ?after WITHIN 10 SECONDS
FROM STREAM S <{STREAM}>
WHERE {{
  SEQ(A; B)
  DEFINE GPM A ON S {{ ?house :watts ?before GRAPH :homes {{ ?house :in ?town }} }}
  DEFINE GPM B ON S {{ ?house :watts ?after FILTER(?after > 2 * ?before) }}
}}"""
KB = f'<{EX}h> <{EX}in> "Ulm" . <{EX}h> <{EX}in> "Bonn" . <{EX}g> <{EX}in> "Ulm" .'
WATTS = ((3, "h", 100), (4, "h", 150), (5, "h", 400), (6, "x", 1), (7, "x", 9), (12, "h", 10), (14, "h", 90))
"""Second, house, watts. Windows begin at 3 and 13, so the last two are no match."""


@pytest.fixture(scope="module")
def address(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    tokens = Tokens(read="r", write="w")
    with server(tmp_path_factory.mktemp("past"), ServerSettings(port=0, threads=6, tokens=tokens)) as given:
        fill(given)
        yield given


def fill(address: str, name: str = "rises") -> None:
    """The knowledge base, a query, its events; its matches have been found."""
    graph = f"/store?graph={HOMES.replace(':', '%3A').replace('/', '%2F')}"
    assert sent(address, "PUT", graph, KB, TURTLE).status in (201, 204)
    assert sent(address, "PUT", f"/queries/{name}", RISES, SPASEQ).status == 200
    for second, house, watts in WATTS:
        text = f"<{EX}{house}> <{EX}watts> {watts} ."
        assert sent(address, "POST", f"{PATH}?time={second * 1_000_000}", text, TURTLE).status == 200
    while told(got(address, f"/queries/{name}"))["matches"]["next"] < 5:
        pass


def sent(address: str, method: str, path: str, text: str, *headers: tuple[str, str], token: str = "w") -> Answer:
    return ask(address, method, path, [*headers, ("Authorization", f"Bearer {token}")], text.encode())


def got(address: str, path: str, accept: str = "application/json") -> Answer:
    return ask(address, "GET", path, [("Accept", accept), ("Authorization", "Bearer r")])


def test_why_is_what_the_library_tells_of_the_same_events(address: str) -> None:
    events = [(second * 1_000_000, f"<{EX}{house}> <{EX}watts> {watts} .") for second, house, watts in WATTS]
    same = oxiseq.Query(RISES).why(
        {"S": events}, "".join(f'<{EX}h> <{EX}in> "{town}" <{HOMES}> .\n' for town in ("Bonn", "Ulm"))
    )
    found = told(got(address, "/queries/rises/why"))
    looked = found.pop("looked")
    assert looked == {"events": 7, "first": 3_000_000, "last": 14_000_000}
    expected = json.loads(json.dumps(same.to_json()))
    for each in (found, expected):  # facts come in any order
        for match in each["matches"]:
            match["facts"].sort()
        each["matches"].sort(key=lambda match: json.dumps(match))
    assert {k: v for k, v in found.items() if k != "matches"} == {k: v for k, v in expected.items() if k != "matches"}
    assert found["found"] == 4 and len(found["matches"]) == 3
    text = got(address, "/queries/rises/why", "text/plain")
    assert text.body.decode() == str(same)
    assert told(got(address, "/queries/rises/why?limit=0"))["matches"] == []
    assert list(parse(got(address, "/queries/rises/why", "application/trig").body, RdfFormat.TRIG))


def test_a_range_keeps_to_the_windows_of_the_query_at_work(address: str) -> None:
    late = told(got(address, "/queries/rises/why?since=1970-01-01T00:00:12Z"))
    assert (late["looked"]["events"], late["found"], late["stopped"]) == (2, 0, "A; B")
    (window,) = [reason for reason in late["reasons"] if reason["kind"] == "window"]
    assert window["nearest"][0]["events"] == {"A": [12_000_000], "B": [14_000_000]}
    early = told(got(address, "/queries/rises/why?since=3000000&until=4500000"))
    assert (early["looked"]["events"], early["found"]) == (2, 0)
    assert early["reasons"][0]["nearest"][0]["values"]["after"].startswith('"150"')
    none = told(got(address, "/queries/rises/why?since=2024-05-01T00:00:00Z"))
    assert none["looked"] == {"events": 0, "first": None, "last": None}


def test_what_a_draft_gains_and_loses(address: str) -> None:
    path = "/queries/rises/compare"
    same = told(sent(address, "POST", path, RISES, SPASEQ, token="r"))
    assert (same["kept"], same["gained"], same["lost"]) == (4, [], [])
    looser = told(sent(address, "POST", path, RISES.replace("> 2 *", ">"), SPASEQ, token="r"))
    assert looser["columns"] == ["at", "house", "after"]
    values = [[row["after"].split('"')[1] for row in looser[side]] for side in ("gained", "lost")]
    assert values == [["150"] * 2, ["400"] * 2]  # `;` takes the next one that fits
    stricter = told(sent(address, "POST", path, RISES.replace("> 2 *", "> 3 *"), SPASEQ, token="r"))
    assert len(stricter["lost"]) == 2 and stricter["gained"] == []
    later = told(sent(address, "POST", f"{path}?until=4500000", RISES.replace("> 2 *", ">"), SPASEQ, token="r"))
    assert (later["kept"], len(later["gained"])) == (0, 2)
    other = told(sent(address, "POST", path, RISES.replace("?house ?after", "?town"), SPASEQ, token="r"), 400)
    assert "no variable in common" in other["detail"]
    wrong = told(sent(address, "POST", path, RISES.replace("SEQ(A", "SEQ(Q"), SPASEQ, token="r"), 400)
    assert (wrong["line"], bool(wrong["findings"])) == (5, True)
    assert told(got(address, "/queries/rises"))["text"] == RISES  # nothing has changed
    told(sent(address, "POST", path, "{}", JSON, token="r"), 415)


def test_the_states_that_an_automaton_was_in(address: str) -> None:
    points = told(got(address, "/queries/rises/states"))["points"]
    assert [point["at"] // 1_000_000 for point in points] == [second for second, _, _ in WATTS]
    assert [point["matches"] for point in points] == [0, 0, 4, 4, 4, 4, 4]
    assert [point["waiting"][1] for point in points] == [1, 2, 1, 1, 1, 2, 1]  # 400 takes both, then waits itself
    thinned = told(got(address, "/queries/rises/states?points=3"))["points"]
    assert thinned == [points[2], points[5], points[6]]
    assert told(got(address, "/queries/rises/states?since=12000000"))["points"][-1]["matches"] == 0
    assert told(got(address, "/queries/rises/states?since=2024-05-01T00:00:00Z")) == {"points": []}
    for bad in ("points=0", "points=501", "points=-1", "points=x", "since=x"):
        told(got(address, f"/queries/rises/states?{bad}"), 400)
    told(got(address, "/queries/none/states"), 404)


def test_pages_of_the_matches_of_an_instant(address: str) -> None:
    path = "/queries/rises/matches-at?at="
    page = told(got(address, f"{path}1970-01-01T00:00:05Z"))
    assert (page["total"], page["offset"], len(page["matches"])) == ("4", "0", 4)
    first = page["matches"][0]
    assert (first["at"], first["bindings"]["after"]["value"]) == ("1970-01-01T00:00:05Z", "400")
    assert [event["time"] for event in first["events"]["B"]] == ["1970-01-01T00:00:05Z"]
    some = told(got(address, f"{path}5000000&offset=1&limit=2"))
    assert (some["total"], some["matches"]) == ("4", page["matches"][1:3])
    assert told(got(address, f"{path}5000000&offset={10**1000}"))["matches"] == []
    assert told(got(address, f"{path}5000000&since=4500000"))["total"] == "0"
    assert told(got(address, f"{path}14000000"))["total"] == "0"  # the window has not both events
    for bad in ("at=x", "", "at=1&at=2", "at=1&limit=1001", "at=1&offset=-1", f"at=1&offset={10**1300}"):
        told(got(address, f"/queries/rises/matches-at?{bad}"), 400)
    told(got(address, "/queries/none/matches-at?at=1"), 404)


def test_what_a_match_was_made_of(address: str) -> None:
    rows = [told(got(address, f"/queries/rises/matches/{number}/provenance")) for number in range(1, 5)]
    assert all(row["bindings"]["after"]["value"] == "400" for row in rows)
    starts = {"1970-01-01T00:00:03Z": "100", "1970-01-01T00:00:04Z": "150"}
    for row in rows:
        first, last = row["events"]
        assert (first["gpm"], last["gpm"], last["time"]) == ("A", "B", "1970-01-01T00:00:05Z")
        assert [each["value"] for each in first["triples"][0]] == [f"{EX}h", f"{EX}watts", starts[first["time"]]]
        assert [first["matched"], last["matched"]] == [[0], [0]]
        facts = {tuple(part["value"] for part in fact) for fact in row["facts"]}
        assert facts <= {(f"{EX}h", f"{EX}in", town, HOMES) for town in ("Ulm", "Bonn")} and facts
    quads = list(parse(got(address, "/queries/rises/matches/1/provenance", "application/trig").body, RdfFormat.TRIG))
    prov = "http://www.w3.org/ns/prov#"
    derived = [q for q in quads if q.predicate.value == f"{prov}wasDerivedFrom"]
    assert {q.subject for q in derived} == {NamedNode("urn:oxiseq:match:rises:1")} and len(derived) == 3
    assert all(isinstance(q, Quad) for q in quads)
    told(got(address, "/queries/rises/matches/99/provenance"), 404)
    told(got(address, "/queries/none/matches/1/provenance"), 404)
    told(got(address, "/queries/rises/matches/x/provenance"), 400)


def test_events_that_are_gone_have_no_triples_but_the_match_is_told(tmp_path: Path) -> None:
    with server(tmp_path, live=LiveSettings(idle=0.05, upkeep=0.05, checkpoint=0.05)) as address:
        fill(address)
        body = json.dumps({"retention": {"count": 0}}).encode()
        assert ask(address, "PUT", PATH, [JSON], body).status == 200
        while told(got(address, "/queries/rises/why"))["looked"]["events"]:  # they go in slices
            time.sleep(0.05)
        row = told(got(address, "/queries/rises/matches/1/provenance"))
        assert [event["gpm"] for event in row["events"]] == ["A", "B"]
        assert not any(event["triples"] for event in row["events"])
        assert {fact[2]["value"] for fact in row["facts"]} == {"Ulm", "Bonn"}  # its row does not say which


def test_looking_back_needs_the_token_for_reading_only(address: str) -> None:
    assert ask(address, "GET", "/queries/rises/why").status == 401
    assert ask(address, "POST", "/queries/rises/compare", [SPASEQ], RISES.encode()).status == 401
    assert sent(address, "POST", "/queries", RISES, SPASEQ, token="r").status == 403
    assert sent(address, "POST", "/queries/compare", RISES, SPASEQ, token="r").status in (403, 405)


def test_what_is_looked_at_is_bounded(tmp_path: Path) -> None:
    store = Store()
    endpoint = SparqlEndpoint(store, SparqlSettings(limits=Limits(seconds=30)))
    with LiveService(store, tmp_path, LiveSettings(idle=0.05, past=5, past_matches=3), "normal") as service:
        routes = LiveRoutes(service, endpoint.evaluations)
        with served(endpoint, ServerSettings(port=0, threads=6, live=8), routes) as address:
            fill(address)
            refused = told(got(address, "/queries/rises/why"), 403)
            assert "choose a shorter time" in refused["detail"]
            told(sent(address, "POST", "/queries/rises/compare", RISES, SPASEQ), 403)
            fits = told(got(address, "/queries/rises/why?until=1970-01-01T00:00:06Z"))
            assert (fits["found"], fits["more"]) == (3, True)
            text = got(address, "/queries/rises/why?until=1970-01-01T00:00:06Z", "text/plain").body.decode()
            assert text.startswith("at least 3 matches")
            told(sent(address, "POST", "/queries/rises/compare?until=6000000", RISES, SPASEQ), 400)
        service.journal.queries.register("other", "VOCAB <http://e/> SELECT * FROM T WHERE BUY AS x", "ceql")
        with pytest.raises(Until.Reached):
            Past(service, Span(), Until(0)).why("other", 3)
        assert Past(service, Span(), Until(99)).why("other", 3).why.language == "ceql"
        free = RISES.replace("?house :watts ?before GRAPH :homes { ?house :in ?town }", "?x :watts ?y")
        service.journal.queries.register("free", free.replace("FILTER(?after > 2 * ?before)", ""), "spaseq")
        calls = []
        for size in (0, 2):
            found = Past(service, Span(), until := Until(99)).matches_at("free", Page(5_000_000, 0, size))
            assert len(found) == min(size, 1)
            calls.append(99 - until.left)
        assert calls[1] == calls[0] + 1
        for after in range(3):
            past = Past(service, Span(None, 6_000_000), Until(after))
            with pytest.raises(Until.Reached):
                past.why("rises", 3)


class Until:
    """A check that raises after so many calls, as at a time limit."""

    class Reached(Exception):
        pass

    def __init__(self, calls: int) -> None:
        self.left = calls

    def __call__(self) -> None:
        self.left -= 1
        if self.left < 0:
            raise self.Reached
