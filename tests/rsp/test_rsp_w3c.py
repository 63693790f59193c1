"""All of SPARQL 1.1 over windows: the W3C's query tests, a test's data being what a window holds.

Each is asked three ways where it can be: of the window as default graph and its data one event; of `WINDOW :w {...}`
and its data several events that share triples, others having left the window; and, where it is about named graphs, of
windows with their names in place of the knowledge base's graphs.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from typing import Any

import pytest
from loaded import load
from pyoxigraph import BlankNode, NamedNode, Quad, QueryBoolean, QuerySolutions, Store, Triple
from w3c_suites import (
    Evaluation,
    Syntax,
    Table,
    absent,
    canonical,
    evaluations,
    expected,
    ordered_by,
    same_order,
    same_rows,
    suite,
    syntax_tests,
    triples,
)
from w3c_windows import SUITES, asked_of, knowledge, named

import oxiseq

CSV = "CSV does not tell terms; its query is that of the test of TSV"
LEFT_OUT = {"csv01": CSV, "csv02": CSV, "csv03": CSV}
OXIGRAPH = frozenset(
    [
        "agg-groupconcat-04",
        "agg-groupconcat-06",
        "zero_or_more_set_start",
        "zero_or_more_set_end",
        "zero_or_one_set_start",
        "zero_or_one_set_end",
    ]
)
"""What Oxigraph itself answers otherwise: language tags in GROUP_CONCAT, paths of no length from what is not there."""
UNKNOWN = {"test_4": "functions that are not known are refused ahead"}
EVALUATIONS, SYNTAX = 127, 99
NOW = 30
S = "urn:s"


# --- data as events ----------------------------------------------------------------------------------


def pieces(graph: list[Triple]) -> list[tuple[int, list[Triple]]]:
    """A graph as three events, the last of them now: what has blank nodes comes together, the rest twice. An event
    before that has left the window by then."""
    parts: list[list[Triple]] = [[], [], []]
    for number, triple in enumerate(graph):
        blank = isinstance(triple.subject, BlankNode) or isinstance(triple.object, BlankNode)
        for part in (0,) if blank else (number % 3, (number + 1) % 3):
            parts[part].append(triple)
    gone = [Triple(NamedNode("urn:gone"), t.predicate, t.object) for t in graph]
    return [(NOW - 25, gone), *((NOW - 2 + i, part) for i, part in enumerate(parts))]


# --- evaluation --------------------------------------------------------------------------------------


def collected(tests: Callable[[str, Any], Iterable[Any]], names: Iterable[str]) -> list[Any]:
    """The tests of suites; one skipped entry for a suite that is not there."""
    found: list[Any] = []
    for name in names:
        folder = suite(name)
        if folder is None:
            found.append(pytest.param(None, id=f"{name}-absent", marks=pytest.mark.skip(reason=absent(name))))
        else:
            found += [pytest.param(case, id=f"{name}-{case.name}") for case in tests(name, folder)]
    return found


EVALUATED = collected(evaluations, SUITES)
READ = collected(syntax_tests, ("aggregates", "syntax-query"))


def test_none_is_lost() -> None:
    for found, count in ((EVALUATED, EVALUATIONS), (READ, SYNTAX)):
        if any(each.values[0] is None for each in found):
            pytest.skip("a suite is not here")
        assert len(found) == count
    assert {case.values[0].name for case in EVALUATED} >= {*LEFT_OUT, *OXIGRAPH}


@pytest.mark.parametrize("case", [each for each in EVALUATED if each.values[0] and each.values[0].name in OXIGRAPH])
def test_oxigraph_itself_fails(case: Evaluation) -> None:
    store = Store()
    store.extend(Quad(t.subject, t.predicate, t.object) for t in (triples(case.data) if case.data else []))
    found, wanted = store.query(case.query), expected(case.result)
    if isinstance(found, QueryBoolean):
        assert bool(found) is not wanted
    else:
        assert isinstance(found, QuerySolutions) and isinstance(wanted, Table)
        assert not same_rows(Table(wanted.names, tuple(tuple(row[n] for n in wanted.names) for row in found)), wanted)


def skip_some(case: Evaluation) -> None:
    """Those that are left out, with the reason."""
    if case.name in LEFT_OUT:
        pytest.skip(LEFT_OUT[case.name])
    if case.name in OXIGRAPH:
        pytest.skip("Oxigraph itself fails")


def check(case: Evaluation, answers: Iterable[Any]) -> None:
    """Compare the answers of now with what the suite says."""
    now = [answer for answer in answers if answer.at_us == NOW]
    wanted = expected(case.result)
    if isinstance(wanted, bool):
        assert bool(now) is wanted
    elif isinstance(wanted, Table):
        found = Table(wanted.names, tuple(tuple(a.get(name) for name in wanted.names) for a in now))
        assert same_rows(found, wanted)
        columns = ordered_by(case.query, wanted.names)
        assert columns is None or same_order(found, wanted, columns)
    else:
        assert wanted is not None
        assert canonical(t for a in now for t in a.graph) == canonical(wanted)


@pytest.mark.parametrize("case", EVALUATED)
def test_all_are_incremental(case: Evaluation) -> None:
    """What touches a window is never asked of a store; what is about the knowledge base's graphs alone may be."""
    for clauses, window in (
        (f"FROM STREAM <{S}> [RANGE 10]", None),
        (f"FROM NAMED WINDOW <urn:w> ON <{S}> [RANGE 10]", "urn:w"),
    ):
        text = f"BASE <{case.base}>\n" + asked_of(case.query, clauses, window)
        explained = str(oxiseq.Query(text, "rspql").explain())
        assert "evaluation: incremental" in explained
        assert case.graphs or "no query is repeated\n" in explained


@pytest.mark.parametrize("case", EVALUATED)
def test_a_window_as_default_graph(case: Evaluation) -> None:
    skip_some(case)
    event = [] if case.data is None else triples(case.data)
    text = f"BASE <{case.base}>\n" + asked_of(case.query, f"FROM STREAM <{S}> [RANGE 10]")
    kb = knowledge(named(case))
    check(case, oxiseq.run(text, {S: [(NOW, event)]}, kb=kb, language="spectra", stream_operator="RSTREAM"))


@pytest.mark.parametrize("case", EVALUATED)
def test_a_window_by_its_name(case: Evaluation) -> None:
    skip_some(case)
    events = pieces([] if case.data is None else triples(case.data))
    clauses = f"FROM NAMED WINDOW <urn:w> ON <{S}> [RANGE 10]"
    text = f"BASE <{case.base}>\n" + asked_of(case.query, clauses, "urn:w")
    kb = knowledge(named(case))
    check(case, oxiseq.run(text, {S: events}, kb=kb, language="rspql", stream_operator="RSTREAM"))


@pytest.mark.parametrize("case", [case for case in EVALUATED if case.values[0] is None or case.values[0].graphs])
def test_windows_as_named_graphs(case: Evaluation) -> None:
    graphs = named(case)
    streams = {f"urn:s{i}": pieces(graph) for i, (_, graph) in enumerate(graphs)}
    streams[S] = pieces([] if case.data is None else triples(case.data))
    clauses = [f"FROM NAMED WINDOW <{iri}> ON <urn:s{i}> [RANGE 10]" for i, (iri, _) in enumerate(graphs)]
    query = re.sub(r"(?i)\bGRAPH(?=\s*[?<:])", "WINDOW", case.query)
    text = f"BASE <{case.base}>\n" + asked_of(query, "\n".join([f"FROM STREAM <{S}> [RANGE 10]", *clauses]))
    check(case, oxiseq.run(text, streams, language="rspql", stream_operator="RSTREAM"))


# --- syntax ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("case", READ)
def test_queries_are_read_or_refused(case: Syntax) -> None:
    if case.name in UNKNOWN:
        pytest.skip(UNKNOWN[case.name])
    text = "BASE <http://example.org/>\n" + asked_of(case.query, f"FROM STREAM <{S}> [RANGE 10]")
    if case.good:
        load(text, "spectra")
    else:
        with pytest.raises(oxiseq.OxiseqError):
            load(text, "spectra")
