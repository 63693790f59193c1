"""Aggregates from weights of nodes: the same rows as from listed matches, for all kinds of values, however events are
batched, with a snapshot in the midst."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st
from loaded import load
from pyoxigraph import Store

from oxiseq.engine.events.encode import encode_events
from oxiseq.engine.kb import StoreKb
from oxiseq.engine.output import counted_rows
from oxiseq.engine.plan.query import QueryPlan, compile_query
from oxiseq.engine.run.query import QueryRun
from oxiseq.engine.sequence.memory import Capacities
from oxiseq.engine.snapshot.saving import restore, save
from oxiseq.engine.terms import order
from oxiseq.engine.terms.dictionary import TermDictionary
from oxiseq.engine.terms.texts import Term

E = "http://e/"
XSD = "http://www.w3.org/2001/XMLSchema#"
VALUES = (
    *('"1"^^<{0}integer>', '"-2"^^<{0}integer>', '"7"^^<{0}integer>', f'"{10**30}"^^<{{0}}integer>'),
    *('"1.5"^^<{0}decimal>', '"1.0"^^<{0}decimal>', '"1.0E-300"^^<{0}double>', '"0.1"^^<{0}double>'),
    *('"NaN"^^<{0}double>', '"INF"^^<{0}double>', '"-INF"^^<{0}double>', '"1.5"^^<{0}float>', '"text"', "<{0}iri>"),
)
PATTERNS = {
    "A; B+; C": "SUM(?bv)",
    "A : B:+ : C": "SUM(?bv)",
    "A; B{1,2}; C": "COUNT(B)",
    "A; B; C": "?bv",
    "A : B : C": "?av",
    "A; N!; B": "?bv",
    "A, B": "?av",
    "A; B?; C": "?bv",
    "A; (B | C)": "?bv",
}
SLIDING = "WITHIN PT5S SLIDING"
"""In which weights do not stand; what a run carries is counted all the same."""
WINDOWS = ("", "WITHIN PT5S", "WITHIN 6 EVENTS", "WITHIN PT20S", "WITHIN PT5S REPORT ON CONTENT CHANGE", SLIDING)
GROUPS = ("", "(ENDTIME())", "?k (ENDTIME())")
HAVINGS = ("", "HAVING (COUNT(*) > 1)", "HAVING ({} > 3)", "HAVING (COUNT(*) > 1 && {} != 1)")
OUTER = ("SUM", "AVG", "MIN", "MAX", "COUNT")
CLAUSES = ("", "PARTITION BY ?k", "CONSUME BY ANY")
Told = list[tuple[int, tuple[Term | None, ...]]]


def text_of(pattern: str, measured: Sequence[str], window: str, clause: str, group: str, having: str) -> str:
    window, _, report = window.partition(" REPORT")
    gpms = " ".join(
        f"DEFINE GPM {n} ON S {{ ?{n.lower()} :is :{n} ; :k ?k . OPTIONAL {{ ?{n.lower()} :v ?{n.lower()}v }} }}"
        for n in "ABCN"
        if n in pattern
    )
    select = " ".join(["?k"] * ("?k" in group) + [f"({each} AS ?x{i})" for i, each in enumerate(measured)])
    tail = "" if group or not report else f"REPORT{report}"
    tail = f"{'GROUP BY' if group else ''} {group} {having.format(measured[0])} {tail}"
    where = f"WHERE {{ SEQ({pattern}) {gpms} }}"
    return f"PREFIX : <{E}> SELECT {select} {window} {clause} FROM STREAM S <{E}s> {where} {tail}"


def told(
    text: str, events: Sequence[tuple[int, str]], size: int, capacities: Capacities, *, listing: bool, at: int
) -> Told:
    """The rows of a run, which is saved and restored before event `at`."""
    terms, rows, kb = TermDictionary(), [], StoreKb(Store())
    plan: QueryPlan = compile_query(load(text), terms, listing=listing, composing=False)
    assert listing or (plan.runner.folding is not None and plan.runner.folding.weighed) or plan.runner.listed is None
    run = QueryRun(plan, terms, kb, capacities=capacities)
    for low in range(0, len(events), size):
        if low <= at < low + size:
            run = restore(save(run, terms), plan, terms, kb)
        run.push(f"{E}s", encode_events(events[low : low + size], terms))
        rows += read(run, terms)
        terms.collect()
    run.close()
    return rows + read(run, terms)


def read(run: QueryRun, terms: TermDictionary) -> Told:
    return [
        (time, tuple(terms.term(i) if i else None for i in row))
        for batch in run.advance()
        for time, row in zip(batch.time.tolist(), batch.values.tolist(), strict=True)
    ]


@given(
    st.sampled_from(sorted(PATTERNS)),
    st.lists(st.sampled_from(OUTER), min_size=1, max_size=3, unique=True),
    st.sampled_from(WINDOWS),
    st.sampled_from(CLAUSES),
    st.sampled_from(GROUPS),
    st.sampled_from(HAVINGS),
    st.lists(
        st.tuples(
            st.integers(0, 2),
            st.sampled_from("AABBBCN"),
            st.integers(0, 1),
            st.one_of(st.none(), st.sampled_from(VALUES), st.sampled_from(VALUES[:3])),
        ),
        max_size=16,
    ),
    st.sampled_from([1, 3, 100]),
    st.booleans(),
    st.integers(0, 16),
)
def test_the_rows_are_those_of_listed_matches(
    pattern: str,
    outer: list[str],
    window: str,
    clause: str,
    group: str,
    having: str,
    drawn: list[tuple[int, str, int, str | None]],
    size: int,
    small: bool,
    at: int,
) -> None:
    inner = PATTERNS[pattern]
    measured = [f"{name}({inner})" for name in outer] if inner[0] == "?" else [f"SUM({inner})", "COUNT(*)"]
    if inner[0] != "?" or "CONSUME" in clause:  # neither are counted
        window, group = window.removesuffix(" SLIDING"), group.removeprefix("?k ")
    if "EVENTS" in window:  # which would count in each partition, and the end of a match is no number of an instant
        group = group.removeprefix("?k ")
        clause = clause.removeprefix("PARTITION BY ?k")
    text = text_of(pattern, measured, window, clause, group, having)
    second, events = 0, []
    for number, (gap, kind, k, value) in enumerate(drawn):
        second += gap
        has = "" if value is None else f"<{E}e{number}> <{E}v> {value.format(XSD)} . "
        key = f'<{E}e{number}> <{E}k> "{k}"^^<{XSD}integer> .'
        events.append((second * 1_000_000, f"<{E}e{number}> <{E}is> <{E}{kind}> . {has}{key}"))
    capacities = Capacities.smallest() if small else Capacities()
    expected = told(text, events, size, capacities, listing=True, at=at)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(counted_rows, "FEW", 1)  # a single count is made a row as columns, too
        if small:
            patch.setattr(order, "_MOST", 64)  # labels of least values have no room and are given anew
        assert told(text, events, size, capacities, listing=False, at=at) == expected
