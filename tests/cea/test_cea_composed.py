"""Composed windows and weights of nodes against the sets of what ends at each event: the same rows, for all kinds of
values, however events are batched, with a snapshot in the midst."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from loaded import load

from oxiseq.engine.cea.composed import ComposedRun
from oxiseq.engine.cea.memory import Capacities
from oxiseq.engine.cea.plan import CeaPlan, compile_ceql
from oxiseq.engine.cea.run import CeaRun
from oxiseq.engine.events.encode import encode_events
from oxiseq.engine.matches import composed, weighing
from oxiseq.engine.run import tuples
from oxiseq.engine.run.tuples import TupleRun
from oxiseq.engine.terms import order
from oxiseq.engine.terms.dictionary import TermDictionary
from oxiseq.engine.terms.saved import SameTerms, SavedTerms
from oxiseq.engine.terms.texts import Term
from oxiseq.languages.sequences.explain import explain

E = "http://e/"
XSD = "http://www.w3.org/2001/XMLSchema#"
VALUES = (
    *("1", "-2", "7", f"{2**62}", f"{-(2**63)}", f"{10**30}", "1.5", "-0.25", "0.000000000000000001", "1.50e3"),
    *("1e-300", "-5e-324", "1.7e308", "0.1e0", '"1"^^xsd:float', '"NaN"^^xsd:double', '"INF"^^xsd:double'),
    *('"-INF"^^xsd:double', '"text"', '"2024-01-01T00:00:00Z"^^xsd:dateTime', "true", "1.0", "1e0", "<http://e/iri>"),
)
PATTERNS = (
    "A AS x; B AS y",
    "A+ AS x; B AS y",
    "A AS x; B+ AS y; C",
    "A AS x; (B OR C) AS y",
    "A:B+ AS y : C",
    "(A AS x; B)+ AS y",
)
WINDOWS = ("", "WITHIN 3 EVENTS", "WITHIN 12 EVENTS", "WITHIN 4 SECONDS", "WITHIN 20 SECONDS")
CLAUSES = ("{}", "PARTITION BY [k] {}", "{} CONSUME BY ANY", "PARTITION BY [k] {} CONSUME BY PARTITION")
COLUMNS = (
    "COUNT(*) AS n",
    "SUM(y[v]) AS s",
    "AVG(y[v]) AS a",
    "MIN(y[v]) AS low",
    "MAX(y[v]) AS high",
    "COUNT(y) AS c",
)
MORE = ("COUNT(y[v]) AS d", "SUM(y[w]) AS t", "SUM(y[v]) + COUNT(*) AS e", "MAX(y[w]) AS m")
HAVINGS = ("", "HAVING COUNT(*) > 2", "HAVING SUM(y[w]) > 3", "HAVING COUNT(*) > 1 AND MIN(y[v]) < 3")

Told = list[tuple[int, tuple[Term | None, ...]]]


def event(second: int, kind: str, k: int, v: str | None, w: int) -> tuple[int, str]:
    v = "" if v is None else f"_:e <{E}v> {written(v)} . "
    return (
        second * 1_000_000,
        f"_:e a <{E}{kind}> . {v}_:e <{E}k> {written(str(k))} . _:e <{E}w> {written(str(w))} .".replace(
            " a ", " <http://www.w3.org/1999/02/22-rdf-syntax-ns#type> "
        ),
    )


def written(value: str) -> str:
    """In N-Triples."""
    if value[0] in '"<':
        return (
            value.replace("xsd:dateTime", f"<{XSD}dateTime>")
            .replace("xsd:double", f"<{XSD}double>")
            .replace("xsd:float", f"<{XSD}float>")
        )
    kind = "boolean" if value == "true" else "double" if "e" in value else "decimal" if "." in value else "integer"
    return f'"{value}"^^<{XSD}{kind}>'


def run_of(plan: CeaPlan, terms: TermDictionary, capacities: Capacities, way: str) -> TupleRun:
    """A run that counts in a way."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(tuples, "not_composed", lambda _plan: None if way == "composed" else "the test says so")
        if way == "sets":
            patch.setattr(tuples, "not_weighed", lambda _plan: "the test says so")
        run = TupleRun(plan, terms, capacities=capacities)
    assert isinstance(run._cea, ComposedRun if way == "composed" else CeaRun)
    assert (run._weigher is not None) == (way == "weighed")
    return run


def told(
    plan: CeaPlan,
    events: Sequence[tuple[int, str]],
    size: int,
    capacities: Capacities,
    *,
    at: int,
    way: str = "composed",
) -> Told:
    """The rows of a run. It is saved and restored before event `at`."""
    terms, rows = TermDictionary(), []
    run = run_of(plan, terms, capacities, way)
    for low in range(0, len(events), size):
        if low <= at < low + size:
            saved = run.save(SavedTerms(terms))
            run = run_of(plan, terms, capacities, way)
            run.restore(saved, SameTerms(terms))
        run.push(f"{E}S", encode_events(events[low : low + size], terms))
        for batch in run.advance():
            for time, row in zip(batch.time.tolist(), batch.values.tolist(), strict=True):
                rows.append((time, tuple(terms.term(i) if i else None for i in row)))
        terms.collect()
    return rows


@given(
    st.sampled_from(PATTERNS),
    st.sampled_from(WINDOWS),
    st.sampled_from(CLAUSES),
    st.lists(st.sampled_from(COLUMNS + MORE), min_size=1, max_size=4, unique=True),
    st.sampled_from(HAVINGS),
    st.lists(
        st.tuples(
            st.integers(0, 2),
            st.sampled_from("AABBBC"),
            st.integers(0, 1),
            st.one_of(st.none(), st.sampled_from(VALUES), st.sampled_from(VALUES[:6])),
            st.integers(-3, 3),
        ),
        max_size=24,
    ),
    st.sampled_from([1, 3, 100]),
    st.booleans(),
    st.integers(0, 24),
)
def test_the_rows_are_those_of_the_sets(
    pattern: str,
    window: str,
    clauses: str,
    columns: list[str],
    having: str,
    drawn: list[tuple[int, str, int, str | None, int]],
    size: int,
    small: bool,
    at: int,
) -> None:
    text = f"VOCAB <{E}> SELECT {', '.join(columns)} FROM S WHERE {pattern} {clauses.format(window)} {having}"
    plan = compile_ceql(load(text, "ceql"))
    second, events = 0, []
    for gap, *rest in drawn:
        second += gap
        events.append(event(second, *rest))
    capacities = Capacities.smallest() if small else Capacities()
    expected = told(plan, events, size, capacities, way="sets", at=at)
    with pytest.MonkeyPatch.context() as patch:
        if small:
            patch.setattr(order, "_MOST", 64)  # labels of least values have no room and are given anew
            patch.setattr(composed, "COLLECT_EVERY", 4)
            patch.setattr(weighing, "_MANY", 2)
        for way in ("composed", "weighed"):
            assert told(plan, events, size, capacities, way=way, at=at) == expected


def test_least_values_are_read_before_they_are_forgotten(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(composed, "COLLECT_EVERY", 8)
    text = f"VOCAB <{E}> SELECT MIN(x[v]) AS low, MAX(x[v]) AS high FROM S WHERE A AS x WITHIN 1 EVENTS"
    events = [event(second, "A", 0, str(second), 0) for second in range(24)]
    rows = told(compile_ceql(load(text, "ceql")), events, 12, Capacities(), at=99)
    assert [tuple(int(value.value) for value in row) for _, row in rows] == [(n, n) for n in range(24)]


@pytest.mark.parametrize("size", [1, 7, 400])
def test_sums_of_all_scales_do_not_depend_on_batches(size: int) -> None:
    plan = compile_ceql(load(f"VOCAB <{E}> SELECT SUM(x[v]) AS s FROM S WHERE A AS x; B WITHIN 999 EVENTS", "ceql"))
    values = [f"{'-' * (n % 2)}{n % 3 * 10**n}.{'0' * n}{1 + n % 9}" for n in range(300)]
    events = [event(second, "A", 0, value, 0) for second, value in enumerate([*values, "1e300"])]
    exact = sum((Fraction(value) for value in values), Fraction(0))
    for last, number, expected in ((300, Fraction, exact), (301, float, float(exact + Fraction(1e300)))):
        rows = told(plan, [*events[:last], event(999, "B", 0, "1", 0)], size, Capacities(), at=9999)
        assert [number(row.value) for _, (row,) in rows if row is not None] == [expected]


def test_what_is_too_long_makes_its_sums_unbound() -> None:
    plan = compile_ceql(load(f"VOCAB <{E}> SELECT SUM(x[v]) AS s FROM S WHERE A AS x WITHIN 2 EVENTS", "ceql"))
    values = ("1.5", f"0.{'0' * 1007}1", f"0.{'0' * 1008}1", str(2**4154 - 1), str(2**4154), "-2")
    events = [event(second, "A", 0, value, 0) for second, value in enumerate(values)]
    rows = told(plan, events, 6, Capacities(), at=9)
    assert [row is not None for _, (row,) in rows] == [True, True, False, False, False, True]


def test_the_sum_of_more_matches_than_numbers_say_is_unbound() -> None:
    """Also where all that they add is 0."""
    text = f"VOCAB <{E}> SELECT COUNT(*) AS n, SUM(x[v]) AS s FROM S WHERE A+ AS x"
    events = [event(second, "A", 0, "0", 0) for second in range(4_098)]
    rows = told(compile_ceql(load(text, "ceql")), events, 999, Capacities(), at=9999)
    assert [row[1] is None for _, row in rows[-3:]] == [False, True, True]


def test_what_has_left_makes_nothing_slow_or_unbound(monkeypatch: pytest.MonkeyPatch) -> None:
    """Columns that only values of before need make room for others, and numbers have as many limbs as they need."""
    monkeypatch.setattr(composed, "COLLECT_EVERY", 8)
    text = f"VOCAB <{E}> SELECT SUM(x[v]) AS s, MAX(x[v]) AS m FROM S WHERE A+ AS x; B WITHIN 8 EVENTS"
    run = TupleRun(compile_ceql(load(text, "ceql")), terms := TermDictionary())
    shown, limbs, sizes = [], [], []
    for second in range(40):
        kind = "B" if second % 8 == 7 else "A"
        value = f"{2**61}" if second < 8 else f"1.{'0' * (second // 8)}1"
        run.push(f"{E}S", encode_events([event(second, kind, 0, value, 0)], terms))
        run.settle()
        for batch in run.advance():
            shown += [terms.term(i).value if i else None for i in batch.values[:, 0].tolist()]
        limbs.append(run.state["limbs"])
        run.collect()
        sizes.append(run.state["limbs"])
    assert shown == [f"{2**61 * 7 * 64}", "452.48", "448.448", "448.0448", "448.00448"]
    assert max(limbs) == 2 and sizes[-1] == 1


def test_a_state_of_another_layout_is_refused() -> None:
    """Kernels read records where they lie."""
    plan = compile_ceql(load(f"VOCAB <{E}> SELECT COUNT(*) AS n FROM S WHERE A; B WITHIN 3 EVENTS", "ceql"))
    run = TupleRun(plan, terms := TermDictionary())
    saved = run.save(SavedTerms(terms))
    saved["automaton"]["entries"] = np.zeros(1, [("clock", "i8"), ("symbol", "i4"), ("next", "i4"), ("more", "i8")])
    with pytest.raises(ValueError, match="another layout"):
        TupleRun(plan, terms).restore(saved, SameTerms(terms))


@pytest.mark.parametrize(
    ("select", "where", "way"),
    [
        ("COUNT(*) AS n", "A AS x; B", "composed windows"),
        ("COUNT(*) AS n", "A AS x; B HAVING COUNT(*) > 1", "one group for each event at which matches end\nHAVING"),
        ("COUNT(*) AS n", "A AS x; B PARTITION BY [k] GROUP BY [k]", "GROUP BY [k]\nmatches are counted"),
        ("NEXT COUNT(*) AS n", "A AS x; B", "none is listed: NEXT chooses among those of an event"),
        ("COUNT(*) AS n", "A AS x; B WITHIN 5 [v]", "none is listed: a window of an attribute may reach back"),
        ("SUM(x[v]) AS n", "A+ AS x; A+ AS y", "where several variables may hold an event"),
        (
            "COUNT(*) AS n",
            " OR ".join(f"(A{i}; B{i})" for i in range(9)),
            "none is listed: the automaton has more than 12 states",
        ),
        ("COUNT(*) AS n", "; ".join(f"A{i}" for i in range(12)), "composed windows"),
        ("COUNT(*) AS n", "; ".join(f"A{i}" for i in range(13)), "none is listed: the automaton has more than 12"),
        ("COUNT(*) AS n", "A AS x : B", "none is listed: few are live, since each event of a match directly follows"),
        ("COUNT(*) AS n", "A AS x : B+ : C", "composed windows"),
        ("COUNT(*) AS n", "A AS x", "none is listed: few are live, since each event of a match directly follows"),
    ],
)
def test_explain_says_which_are_composed(select: str, where: str, way: str) -> None:
    assert way in str(explain(compile_ceql(load(f"VOCAB <{E}> SELECT {select} FROM S WHERE {where}", "ceql"))))
