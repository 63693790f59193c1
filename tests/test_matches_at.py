"""`matches_at`: pages of the matches that end at one instant are those that a run lists, in its order; none before them
is listed."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest
from ceql_strategies import CeqlOptions, CeqlSituation, ceql_situations
from hypothesis import given
from hypothesis import strategies as st
from loaded import load
from profiles import drawn
from strategies import Situation, situations
from test_differential import WITHOUT_SHRINKING, fail_small

import oxiseq
from oxiseq.engine.bounds import InstantBounds
from oxiseq.engine.errors import LimitError, OxiseqError
from oxiseq.engine.matches import paging
from oxiseq.engine.terms import dictionary
from oxiseq.grammar import render
from oxiseq.grammar.ceql.texts import render_ceql
from oxiseq.languages.ceql.language import Ceql
from oxiseq.languages.spaseq.evidence import every_match
from oxiseq.matches.match import Match

E = "http://e/"
S = f"{E}s"
LOOP = f"""PREFIX : <{E}> SELECT ?a (SUM(?b) AS ?sum) FROM STREAM S <{S}> WHERE {{ SEQ(A : B:+ : C)
DEFINE GPM A ON S {{ ?x :a ?a }} DEFINE GPM B ON S {{ ?x :b ?b }} DEFINE GPM C ON S {{ ?x :c ?c }} }}"""


def loop(count: int) -> list[tuple[int, str]]:
    """2^count - 1 matches of LOOP, which end at count + 1."""
    return [(at, f"<{E}x> <{E}{'a' if not at else 'b' if at <= count else 'c'}> {at} .") for at in range(count + 2)]


def shown(match: Match) -> object:
    """What tells a match from others, but for its blank nodes."""
    bound = tuple((name, "_:" if str(term).startswith("_:") else str(term)) for name, term in match.items())
    return match.end_us, match.at_us, bound, tuple(sorted((name, tuple(of)) for name, of in match.events.items()))


def by_end(matches: Sequence[Match], *, projected: bool = False) -> dict[int, list[object]]:
    """Of complex events that are `projected` the last event may not be shown: they end when they are decided."""
    found: dict[int, list[object]] = {}
    for match in matches:
        found.setdefault(match.at_us if projected else match.end_us, []).append(shown(match))
    return found


def disagreement(situation: Situation) -> str | None:
    asked = {"streams": situation.streams, "kb": situation.kb or None, "lateness": f"{situation.lateness}us"}
    query = oxiseq.Query(situation.text)
    every = by_end(oxiseq.run(render(every_match(load(situation.text))), **asked))
    for end, matches in every.items():
        for offset, size in ((0, 2), (1, 1), (len(matches) - 1, 5), (len(matches), 1)):
            page = query.matches_at(time=end, offset=offset, limit=size, **asked)
            found = [shown(match) for match in page]
            if page.total != len(matches) or found != matches[offset : offset + size]:
                return f"at {end}, {offset}: {page.total} {found}, not {len(matches)} {matches}"
    missing = query.matches_at(time=max(every, default=0) + 1_000, **asked)
    return None if missing.total == len(missing) == 0 else f"{missing.total} where nothing ends"


@drawn(100, phases=WITHOUT_SHRINKING)
@given(situations() | situations(clauses=True))
def test_pages_of_sequences_are_what_is_listed(situation: Situation) -> None:
    fail_small(situation, disagreement)


@drawn(100)
@given(ceql_situations(CeqlOptions(limits=False, falling_clocks=False, most=10)), st.integers(0, 2))
def test_pages_of_complex_events_are_what_is_listed(situation: CeqlSituation, offset: int) -> None:
    query = oxiseq.Query(situation.text, "ceql")
    bare = render_ceql(Ceql().every_match(load(situation.text, "ceql")))
    streams = {name: [(e.time, e.graph) for e in situation.events if e.stream == name] for name in situation.streams}
    every = by_end(oxiseq.run(bare, streams, language="ceql"), projected=True)
    for end, matches in every.items():
        page = query.matches_at(streams, end, offset, 2)
        assert (page.total, [shown(match) for match in page]) == (len(matches), matches[offset : offset + 2])


def test_pages_of_complex_events_with_joins() -> None:
    text = f"VOCAB <{E}> SELECT * FROM S WHERE A AS x; B+ AS y FILTER y[v > x.v]"
    graph = "_:e a <{0}{1}> ; <{0}v> {2} ."
    events = [(t, graph.format(E, kind, t)) for t, kind in enumerate("AABBABB")]
    every = by_end(oxiseq.run(text, {"S": events}, language="ceql"))
    assert len(every[6]) > 10
    for end, matches in every.items():
        page = oxiseq.Query(text, "ceql").matches_at({"S": events}, end, 1, 3)
        assert (page.total, [shown(match) for match in page]) == (len(matches), matches[1:4])


def test_pages_are_in_the_order_of_a_run_where_windows_of_events_and_bounds_decide() -> None:
    """Both matches end at 2 and are decided by what comes behind their bound, which is not their window's end."""
    text = f"""PREFIX : <{E}> SELECT ?a WITHIN 5 EVENTS SLIDING FROM STREAM S <{S}> WHERE {{
    SEQ(A; B; C! WITHIN PT0.000002S)
    DEFINE GPM A ON S {{ ?x :a ?a }} DEFINE GPM B ON S {{ ?x :b ?b }} DEFINE GPM C ON S {{ ?x :c ?c }} }}"""
    events = [(at, f"<{E}x> <{E}{kind}> {at} .") for at, kind in ((0, "a"), (1, "a"), (2, "b"), (4, "d"), (5, "d"))]
    matches = by_end(oxiseq.run(text, {S: events}))[2]
    page = oxiseq.Query(text).matches_at({S: events}, 2)
    assert len(matches) == 2
    assert [shown(match) for match in page] == matches


# --- very many --------------------------------------------------------------------------------------


@pytest.mark.parametrize("count", [30, 200])
def test_the_ith_of_very_many(count: int) -> None:
    query, streams = oxiseq.Query(LOOP), {S: loop(count)}
    end, total = count + 1, 2**count - 1
    page = query.matches_at(streams, end, total - 2, 5)
    assert (page.total, len(page)) == (total, 2)
    assert page[1:].total == total
    middle = query.matches_at(streams, end, total // 2, 3)
    again = query.matches_at(streams, end, total // 2 + 1, 1)
    assert shown(middle[1]) == shown(again[0])
    assert len({str(shown(match)) for match in (*page, *middle)}) == 5


def test_more_than_can_be_counted_is_refused() -> None:
    with pytest.raises(LimitError, match="binary digits"):
        oxiseq.Query(LOOP).matches_at({S: loop(4_200)}, 4_201)


def test_the_matches_behind_a_count() -> None:
    """A query of groups has pages of the matches that it counts; ORDER BY, LIMIT and DISTINCT do not count."""
    counted = LOOP.replace("?a (SUM(?b) AS ?sum)", "(COUNT(*) AS ?n)") + " HAVING (COUNT(*) > 1000)"
    page = oxiseq.Query(counted).matches_at({S: loop(30)}, 31, 2**29, 1)
    assert (page.total, page.variables) == (2**30 - 1, ("x", "a", "b", "c"))
    best = oxiseq.Query(LOOP + " ORDER BY SUM(?b) LIMIT 1").matches_at({S: loop(3)}, 4)
    assert best.total == len(best) == 7
    distinct = oxiseq.Query(LOOP.replace("SELECT ?a (SUM(?b) AS ?sum)", "SELECT DISTINCT ?a"))
    assert distinct.matches_at({S: loop(3)}, 4).total == 7


def test_what_has_to_be_listed_has_a_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(dictionary, "BOUNDS", InstantBounds(matches=100))
    filtered = oxiseq.Query(LOOP.replace("B:+ : C)", "B:+ : C) FILTER(SUM(?b) > 3)"))
    assert filtered.matches_at({S: loop(3)}, 4, 1, 1).total == 3
    with pytest.raises(LimitError, match="matches that end at one instant"):
        filtered.matches_at({S: loop(12)}, 13)


def test_the_events_of_a_page_have_a_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(paging, "MOST_ROWS", 100)
    assert len(oxiseq.Query(LOOP).matches_at({S: loop(12)}, 13, 2_000, 8)) == 8
    with pytest.raises(LimitError, match="a smaller limit has fewer"):
        oxiseq.Query(LOOP).matches_at({S: loop(12)}, 13, 2_000, 50)


@pytest.mark.parametrize(
    ("given", "says"),
    [
        ({"offset": -1}, "offset"),
        ({"offset": 1 << 5_000}, "2\\^4096"),
        ({"offset": True}, "offset"),
        ({"offset": 1.5}, "offset"),
        ({"limit": -1}, "limit"),
        ({"limit": 10_001}, "10,000 matches at most"),
        ({"limit": None}, "limit"),
        ({"time": float("nan")}, "time"),
        ({"time": "yesterday"}, "time|yesterday"),
    ],
)
def test_arguments_that_mean_nothing_are_refused(given: dict[str, object], says: str) -> None:
    with pytest.raises(OxiseqError, match=says):
        oxiseq.Query(LOOP).matches_at(**{"streams": {S: loop(3)}, "time": 4} | given)


def test_other_languages_say_that_they_have_none() -> None:
    text = f"PREFIX : <{E}> SELECT ?a WHERE {{ {{ ?x :a ?a }} SEQ {{ ?y :b ?a }} }}"
    with pytest.raises(OxiseqError, match="SPAseq and CEQL do"):
        oxiseq.Query(text, "epsparql").matches_at({S: loop(3)}, 4)


# --- of stores --------------------------------------------------------------------------------------


@pytest.mark.parametrize("tail", ["", " HAVING (COUNT(*) > 3)"])
def test_registered_queries_page_over_what_streams_keep(tmp_path: Path, tail: str) -> None:
    text = LOOP.replace("?a (SUM(?b) AS ?sum)", "(COUNT(*) AS ?n)") + tail if tail else LOOP
    text = text.replace("FROM STREAM", "WITHIN 50 SECONDS FROM STREAM")
    events = [(at * 1_000_000, graph) for at, graph in [*loop(20), (22, f"<{E}x> <{E}c> 22 .")]]
    expected = oxiseq.Query(text).matches_at({S: events}, 22_000_000, 1_000_000, 3)
    assert (expected.total, len(expected)) == (2**20 - 1, 3)
    for store in (oxiseq.Store(), oxiseq.open(tmp_path / "folder")):
        with store:
            stream = store.stream(S)
            if isinstance(store, oxiseq.Store):
                stream.retain(100)
            query = store.register(text + ("" if tail else " LIMIT 1"))
            stream.extend(events)
            page = query.matches_at(22_000_000, 1_000_000, 3)
            assert [shown(match) for match in page] == [shown(match) for match in expected]
            assert (page.total, page.variables) == (expected.total, expected.variables)


def test_a_stream_that_keeps_nothing_has_no_pages() -> None:
    store = oxiseq.Store()
    query = store.register(LOOP + " LIMIT 1")
    store.stream(S).extend(loop(3))
    with pytest.raises(OxiseqError, match="no events are kept"):
        query.matches_at(4)
