"""Continuous SPARQL and RSEP-QL as text: round trips, what is checked, what is said of slips."""

from __future__ import annotations

import tomllib
from pathlib import Path

import pytest
from hypothesis import given
from rsp_algebra_strategies import rsp_queries

from oxiseq.grammar import QueryError, check, language_of, load, parse, render
from oxiseq.grammar.algebra import Choice, EventName, Every, FirstOf, Following, LastOf, MatchPattern, OnChange, OnClose
from oxiseq.grammar.rsp_algebra import IdentityWindow, IntervalWindow, LandmarkWindow, RangeWindow, Report, RspQuery

WRONG = tomllib.loads(Path(__file__).with_name("wrong_rsp.toml").read_text(encoding="utf-8"))["case"]
HEAD = "PREFIX : <http://e/>\nSELECT * "
BODY = " WHERE { WINDOW :w { ?s ?p ?o } }"


@given(rsp_queries())
def test_rendered_query_parses_to_itself(query: RspQuery) -> None:
    assert parse(render(query), query.language) == query


@pytest.mark.parametrize(
    ("text", "operator"),
    [
        ("RANGE 10 SLIDE 2", RangeWindow(10, 2)),
        ("RANGE 10", RangeWindow(10, 1)),
        ("RANGE 10 SECONDS STEP 2 SECONDS", RangeWindow(10_000_000, 2_000_000)),
        ("RANGE PT1M STEP PT0.5S", RangeWindow(60_000_000, 500_000)),
        ('RANGE "PT1M"^^<http://www.w3.org/2001/XMLSchema#duration> TUMBLING', RangeWindow(60_000_000, 60_000_000)),
        ("range 5m slide 10s", RangeWindow(300_000_000, 10_000_000)),
        ("RANGE 100 EVENTS SLIDE 10", RangeWindow(100, 10, True)),
        ("LND 7", LandmarkWindow(7)),
        ("LND -7", LandmarkWindow(-7)),
        ('LND "1970-01-01T00:00:01Z"', LandmarkWindow(1_000_000)),
        ("INTERVAL 1 2", IntervalWindow(1, 2)),
        ("ID", IdentityWindow()),
    ],
)
def test_window(text: str, operator: object) -> None:
    query = parse(f"{HEAD}FROM NAMED WINDOW :w ON <http://e/s> [{text}]{BODY}", "rspql")
    assert query.windows[0].operators == (operator,)


def test_the_papers_form_and_rsp_ql_are_one() -> None:
    papers = parse(f"{HEAD}FROM NAMED <http://e/s> WIN [LND 1][INTERVAL 0 5] AS :w{BODY}", "rsepql")
    assert papers == parse(f"{HEAD}FROM NAMED WINDOW :w ON STREAM <http://e/s> [LND 1][INTERVAL 0 5]{BODY}", "rsepql")


def test_sequences_group_to_the_left() -> None:
    text = f"{HEAD}FROM STREAM <http://e/s> [ID] WHERE {{ MATCH {{ FIRST A SEQ^c LAST(B) SEQ (C SEQ^ N D) }} }}"
    (match,) = parse(text, "rsepql").body.where.elements
    assert isinstance(match, MatchPattern)
    left = Following(FirstOf(EventName("A")), LastOf(EventName("B")), Choice.CHRONOLOGICAL)
    assert match.events == Following(left, Following(EventName("C"), EventName("D"), Choice.NAIVE))


@pytest.mark.parametrize(
    ("text", "when"),
    [("ON CONTENT CHANGE", OnChange()), ("ON WINDOW CLOSE", OnClose()), ("EVERY PT5S", Every(5_000_000))],
)
def test_report_policies(text: str, when: object) -> None:
    query = parse(f"{HEAD}FROM NAMED WINDOW :w ON <http://e/s> [RANGE 10]{BODY} REPORT {text}", "rsepql")
    assert query.when == when


def test_register() -> None:
    query = parse(f"PREFIX : <http://e/> REGISTER istream :out AS ASK FROM STREAM :s [ID]{BODY}", "spectra")
    assert (query.report, query.form, query.language) == (Report.ISTREAM, "ASK", "spectra")
    assert query.into is not None and query.into.value == "http://e/out"


def test_endings_tell_the_language() -> None:
    names = ("a.rspql", "b.RSEPQL", "c.spectra", "d.ceql", "e.rq")
    assert [language_of(n) for n in names] == ["rspql", "rsepql", "spectra", "ceql", "spaseq"]


@pytest.mark.parametrize("case", WRONG, ids=[c["name"] for c in WRONG])
def test_wrong_query(case: dict[str, str]) -> None:
    with pytest.raises(QueryError) as caught:
        load(case["query"], case.get("language", "rsepql"))
    assert str(caught.value) == case["shown"]


@pytest.mark.parametrize(
    ("text", "language", "codes"),
    [
        ("FROM NAMED WINDOW :w ON <http://e/s> [LND 1] WHERE { WINDOW :w { ?s ?p ?o } }", "rspql", ["unbounded"]),
        (
            "FROM NAMED WINDOW :w ON <http://e/s> [RANGE 1 SLIDE 2] WHERE { WINDOW :w { ?s ?p ?o } }",
            "rspql",
            ["window"],
        ),
        ("FROM NAMED WINDOW :w ON <http://e/s> [RANGE 1] WHERE { }", "rspql", ["unused"]),
        ("FROM STREAM <http://e/s> [RANGE 1] WHERE { ?a :p ?b . ?c :p ?d }", "rspql", ["cross-product"]),
        (
            "FROM NAMED WINDOW :w ON <http://e/s> [RANGE 1] EVENT ON :w { ?a :p ?b } AS E "
            "WHERE { WINDOW :w { ?a :q ?b } }",
            "rsepql",
            ["unused"],
        ),
        (
            "FROM NAMED WINDOW :w ON <http://e/s> [RANGE 1] EVENT ON :w { ?a :p ?b } AS E WHERE { MATCH { E SEQ E } }",
            "rsepql",
            ["event"],
        ),
    ],
)
def test_lints(text: str, language: str, codes: list[str]) -> None:
    whole = HEAD + text
    found = check(parse(whole, language), whole)
    assert [(f.severity, f.code) for f in found] == [("lint", code) for code in codes]
