"""All of SPARQL 1.1 as flow plans: every query of the W3C's evaluation tests is lowered, and its plan, evaluated
plainly, answers as the suite says. Nothing is refused (SERVICE is, ahead of this).

Each is asked two ways: of a window as the default graph, where the plan is all operators but for the graphs of the
knowledge base; and of `WINDOW :w {...}`. CONSTRUCT is compared by the template filled with what is told.
"""

from __future__ import annotations

from typing import Any, Final

import pytest
from flow_reference import World, answer
from loaded import load
from pyoxigraph import BlankNode, Triple, Variable
from reference.values import normal_triple
from w3c_suites import Evaluation, Table, absent, canonical, evaluations, expected, same_rows, suite, triples
from w3c_windows import SUITES, asked_of, knowledge, named

from oxiseq.engine.flow.sparql import Around, Lowered, compile_where
from oxiseq.grammar.rsp_algebra import RspQuery

STREAM: Final = "urn:s"
WINDOW: Final = "urn:w"
NO_TERMS: Final = ("csv01", "csv02", "csv03")
"""CSV does not tell terms; their queries are those of the tests of TSV."""
LANGUAGES: Final = ("agg-groupconcat-04", "agg-groupconcat-06")
"""What GROUP_CONCAT makes of language tags is the group's, no matter of plans: the reference asks Oxigraph."""


def collected() -> list[Any]:
    """The tests; one skipped entry for a suite that is not there."""
    found: list[Any] = []
    for name in SUITES:
        folder = suite(name)
        if folder is None:
            found.append(pytest.param(None, id=f"{name}-absent", marks=pytest.mark.skip(reason=absent(name))))
        else:
            found += [pytest.param(case, id=f"{name}-{case.name}") for case in evaluations(name, folder)]
    return found


def lowered(text: str, case: Evaluation) -> tuple[RspQuery, Lowered]:
    """A query of a window, as a plan."""
    query = load(f"BASE <{case.base}>\n{text}", "rspql")
    (window,) = query.windows
    contents = {} if window.name is None else {window.name: 0}
    return query, compile_where(query, Around(contents, () if window.name is not None else (0,)))


def check(case: Evaluation, query: RspQuery, found: Lowered) -> None:
    """Compare what a plan tells with what the suite says."""
    data = [] if case.data is None else [normal_triple(t) for t in triples(case.data)]
    bag = answer(found.plan, World([data], knowledge(named(case))))
    wanted = expected(case.result)
    rows = [{t.name: row[t.place] for t in found.told if t.place is not None} for row in bag.elements()]
    if isinstance(wanted, bool):
        assert bool(bag) is wanted
    elif isinstance(wanted, Table):
        told = Table(wanted.names, tuple(tuple(row[name] for name in wanted.names) for row in rows))
        assert same_rows(told, wanted)
    elif wanted is not None:
        assert canonical(t for row in rows for t in filled(query, row)) == canonical(wanted)


def filled(query: RspQuery, row: dict[str, object]) -> list[Triple]:
    """A template for one row; blank nodes are new in each."""
    labels: dict[object, BlankNode] = {}

    def of(term: object) -> object:
        if isinstance(term, BlankNode):
            return labels.setdefault(term, BlankNode())
        return row[term.value] if isinstance(term, Variable) else term

    whole = [tuple(map(of, (t.subject, t.predicate, t.object))) for t in query.template]
    return [Triple(*each) for each in whole if None not in each]  # type: ignore[arg-type]


CASES = collected()


@pytest.mark.parametrize("case", CASES)
def test_of_a_window_as_default_graph(case: Evaluation) -> None:
    query, found = lowered(asked_of(case.query, f"FROM STREAM <{STREAM}> [RANGE 10]"), case)
    if case.name not in (*NO_TERMS, *LANGUAGES):
        check(case, query, found)


@pytest.mark.parametrize("case", CASES)
def test_of_a_window_by_its_name(case: Evaluation) -> None:
    clauses = f"FROM NAMED WINDOW <{WINDOW}> ON <{STREAM}> [RANGE 10]"
    query, found = lowered(asked_of(case.query, clauses, WINDOW), case)
    if case.name not in (*NO_TERMS, *LANGUAGES):
        check(case, query, found)


def test_none_is_lost() -> None:
    if any(each.values[0] is None for each in CASES):
        pytest.skip("a suite is not here")
    assert len(CASES) == 127
