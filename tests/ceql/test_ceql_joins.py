"""CEQL with joins, `y[price > x.price]`, by live keys, against the reference; and what is refused."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from ceql_answers import answer, as_pairs, check
from ceql_strategies import VOCAB, CeqlOptions, CeqlSituation, ceql_events
from ceql_tables import as_table
from hypothesis import given
from hypothesis import strategies as st
from loaded import load
from strategies import Dice

import oxiseq
from oxiseq.engine.errors import OxiseqError
from oxiseq.engine.events.encode import encode_events
from oxiseq.engine.events.tuples import read_rows
from oxiseq.engine.output.complex_events import ComplexEvents
from oxiseq.engine.plan.joined import compile_joined
from oxiseq.engine.run.joined import JoinedRun
from oxiseq.engine.snapshot.saving import restore, save
from oxiseq.engine.terms.dictionary import TermDictionary
from oxiseq.grammar.ceql_algebra import first_join
from oxiseq.grammar.errors import QueryError
from oxiseq.grammar.render import render
from oxiseq.sources.knowledge import knowledge_of
from oxiseq.sources.warned import IgnoredWarning

JOINS = [
    "v > {0}.v",
    "v > {0}.v",
    "v = {0}.v",
    "v < {0}.v + 1",
    "v != {0}.v",
    "v >= {0}.w + 1",
    "v * 2 > {0}.v",
    "v > {0}.v AND w < 3",
    "NOT v > {0}.v",
    "v > {0}.v OR w = 1",
    "k = {0}.k",
    "{0}.v = 2",
    "v < {0}.v + {1}.v",
    "v > {0}.v AND v > {1}.w",
    "-v < {0}.w",
    "k = {0}.k AND v > {0}.v",
    "{0}.v + {0}.w > v",
]
STEPS = [
    "A AS x",
    "B AS y",
    "C AS z",
    "A AS y",
    "B AS x",
    "(A OR B) AS x",
    "B+ AS y",
    "C:+ AS z",
    "(A AS x OR B AS y)",
    "(A AS x; B AS y FILTER y[{0}])+",
    "(A AS x : C AS z FILTER z[{0}])",
    "A",
    "B",
    "(B; C) AS y",
]
NAMES = ["x", "y", "z", "A", "B", "C"]


def joined_text(dice: Dice, streams: tuple[str, ...]) -> str:
    """A query, which may be refused."""
    steps = [dice.pick(STEPS) for _ in range(dice.pick([2, 2, 2, 3]))]
    formula = steps[0] + "".join(f"{dice.pick(['; ', '; ', ' : '])}{step}" for step in steps[1:])
    formula = formula.replace("{0}]", f"{dice.pick(JOINS)}]").format("x", "x")
    names = [name for name in NAMES if re.search(rf"\b{name}\b", formula)]
    tests = [
        f"{dice.pick(names)}[{dice.pick(JOINS).format(dice.pick(names), dice.pick(names))}]"
        for _ in range(dice.pick([0, 1, 1, 1, 2]))
    ]
    if tests and dice.chance(30):
        tests.append(f"{dice.pick(names)}[{dice.pick(['v > 1', 'k = $x$', 'w != 2'])}]".replace("$", "'"))
    formula += f" FILTER {' AND '.join(tests)}" if tests else ""
    lines = [f"VOCAB <{VOCAB}>", f"SELECT {dice.pick(['', '', 'ALL ', 'NEXT ', 'LAST ', 'MAX ', 'STRICT '])}*"]
    lines += [f"FROM {', '.join(streams)}", f"WHERE {formula}"]
    if dice.chance(30):
        lines.append("PARTITION BY " + ", ".join(f"[{a}]" for a in dice.some(["k", "v"], 2)))
    if dice.chance(50):
        n = dice.pick([1, 2, 3, 4, 5, 6, 7])
        lines.append(f"WITHIN {dice.pick([f'{n} EVENTS', f'0.00000{n} SECONDS'])}")
    if dice.chance(35):
        lines.append(f"CONSUME BY {dice.pick(['ANY', 'PARTITION', 'NONE'])}")
    if dice.chance(15):
        lines.append(f"LIMIT {dice.pick([1, 1, 2, 3])}")
    return "\n".join(lines)


def joined_situation(seed: int) -> CeqlSituation:
    """The first of many throws that has a join and is not refused."""
    dice = Dice(seed)
    streams = dice.pick([("S",), ("S",), ("S", "T")])
    for _ in range(200):
        text = joined_text(dice, streams)
        try:
            if first_join(load(text, "ceql").formula) is not None:
                return CeqlSituation(text, streams, ceql_events(dice, streams, CeqlOptions(most=18)))
        except QueryError:
            pass
    raise AssertionError("all are refused")


@given(st.integers(0, 2**62))
def test_random_joins_over_graphs(seed: int) -> None:
    situation = joined_situation(seed)
    check(situation, answer(situation, as_pairs))


@given(st.integers(0, 2**62))
@pytest.mark.slow
def test_random_joins_over_tables(seed: int) -> None:
    situation = joined_situation(seed)
    check(situation, answer(situation, as_table))


@given(st.integers(0, 2**62))
def test_rendering(seed: int) -> None:
    query = load(joined_situation(seed).text, "ceql")
    assert load(render(query), "ceql") == query


# --- among others: live, saved, equal ones ------------------------------------------------------------

RISE = f"VOCAB <{VOCAB}> SELECT * FROM S WHERE A AS x; B AS y FILTER y[v > x.v AND k = x.k] WITHIN 10 SECONDS"


def event(kind: str, **values: object) -> str:
    more = "".join(f"; <{VOCAB}{name}> {value}" for name, value in values.items())
    return f"_:e a <{VOCAB}{kind}> {more} ."


def spans(matches: Iterable[oxiseq.Match]) -> list[tuple[int, int]]:
    return [(m.positions.first, m.positions.last) for m in matches]


def test_a_match_comes_with_the_push_that_completes_it() -> None:
    store = oxiseq.Store()
    query, equal = (store.register(RISE, language="ceql") for _ in range(2))
    stream = store.stream(f"{VOCAB}S")
    stream.push(event("A", v=1, k="'x'"), 1)
    stream.push(event("B", v=2, k="'x'"), 2)
    assert spans(query.poll("0s")) == spans(equal.poll("0s")) == [(0, 1)]
    stream.push(event("B", v=2, k="'x'"), 2)
    stream.push(event("B", v=2, k="'y'"), 2)
    assert spans(query.poll("0s")) == [(0, 2)]
    assert not query.open and query.events == 4 and query.variables == ("A", "x", "B", "y")
    store.close()


def test_events_that_are_no_tuples_are_left_out() -> None:
    store = oxiseq.Store()
    query = store.register(RISE, language="ceql")
    stream = store.stream(f"{VOCAB}S")
    stream.push(event("A", v=1, k="'x'"), 1)
    with pytest.warns(IgnoredWarning, match="two values of v"):
        stream.push(event("B", v="2, 3", k="'x'"), 2)
    stream.push(event("B", v=2, k="'x'"), 3)
    assert spans(query.poll("0s")) == [(0, 1)]
    store.close()


def test_memory_is_flat() -> None:
    """Of 60,000 events, all of other prices, those stay that a window of 100 events holds."""
    terms = TermDictionary()
    plan = compile_joined(load(RISE.replace("10 SECONDS", "100 EVENTS"), "ceql"), terms)
    run = JoinedRun(plan, terms, knowledge_of(None))
    iri, numbers = f"{VOCAB}S", np.arange(60_000)
    rows = {"time": numbers, "type": ["A"] * len(numbers), "v": numbers, "k": [f"k{n}" for n in numbers]}
    for batch in pa.table(rows).to_batches(max_chunksize=5_000):
        for part in read_rows(batch):
            run.push(iri, part)
            assert not run.advance()
    run.collect()
    terms.collect()
    assert run.records < 2_000 and terms.live < 20_000


@given(st.integers(0, 2**62))
@pytest.mark.slow
def test_a_run_that_is_saved_goes_on(seed: int) -> None:
    """It finds what one finds that stays, with an equal run that parts from it."""
    situation, dice = joined_situation(seed), Dice(seed + 1)
    query, kb = load(situation.text, "ceql"), knowledge_of(None)

    def told(found: list[ComplexEvents]) -> list[Any]:
        return [
            (
                b.start.tolist(),
                b.end.tolist(),
                b.time.tolist(),
                b.positions.tolist(),
                b.held.tolist(),
                b.event_time.tolist(),
                b.event_stream.tolist(),
            )
            for b in found
        ]

    terms = TermDictionary()
    stays = JoinedRun(compile_joined(query, terms), terms, kb, lateness=2)
    moves_in, moves = terms, JoinedRun(compile_joined(query, terms), terms, kb, lateness=2)
    for each in situation.events:
        for run, of in ((stays, terms), (moves, moves_in)):
            run.push(VOCAB + each.stream, encode_events([(each.time, each.graph)], of))
        assert told(stays.advance()) == told(moves.advance())
        if dice.chance(40):
            data = save(moves, moves_in)
            moves_in = TermDictionary()
            moves = restore(data, compile_joined(query, moves_in), moves_in, kb)
        if dice.chance(20):
            moves.part(moves_in)
        if dice.chance(20):
            for run in (stays, moves):
                run.collect()
    stays.close()
    moves.close()
    assert told(stays.advance()) == told(moves.advance())
    assert (stays.events, stays.late, stays.matches) == (moves.events, moves.late, moves.matches)


# --- what it says of itself, and refuses ---------------------------------------------------------------

PAIR = "SELECT * FROM S WHERE A AS x; B AS y FILTER y[v > x.v]"


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        (PAIR.replace("A AS x", "A+ AS x"), "x may hold several events, so x.v is not one value"),
        (PAIR.replace("A AS x", "(A AS x OR C)"), "x holds no event in some matches"),
        (PAIR.replace("x.v", "z.v"), "the formula before FILTER has no variable z"),
        (PAIR.replace("x.v", "y.v"), "y.v is an attribute of the event itself"),
        (PAIR.replace("x.v", "A.v").replace("y[", "x["), "no event of x, A comes after the others"),
        (PAIR.replace("y[v > x.v]", "x[v < y.v]").replace("B AS y", "B+ AS y"), "y may hold several events"),
        (
            PAIR.replace("y[v > x.v]", "x[v < y.v]").replace("A AS x", "A+ AS x"),
            "x may hold several events and comes before y",
        ),
        (PAIR + " OR x[v = 1]", "a join cannot be one side of this OR"),
        (PAIR + " WITHIN 3 [t]", "has no window over an attribute"),
        (PAIR + " WITHIN 0 EVENTS", "a window of size 0"),
        (PAIR + " ORDER BY START", "returns all complex events"),
        (PAIR + " SAMPLE 1", "returns all complex events"),
        (PAIR.replace("*", "COUNT(*) AS n"), "returns single complex events"),
        (PAIR.replace("*", "x"), "SELECT has to show every event, and does not show this B"),
        (PAIR.replace("A AS x", "A AS x; B+; B+"), "an event B can match here and at another B"),
    ],
)
def test_what_is_refused(text: str, reason: str) -> None:
    with pytest.raises(QueryError) as refused:
        load(f"VOCAB <{VOCAB}> {text}", "ceql")
    assert reason in str(refused.value) and "^" in str(refused.value)


def test_explain_says_which_runner_and_why() -> None:
    by_keys = oxiseq.Query(f"VOCAB <{VOCAB}> {PAIR}", language="ceql").explain()
    assert "runner: live keys, since y[v > x.v] compares events of two variables" in str(by_keys)
    assert "ordered index" in str(by_keys) and by_keys.json()["runner"].startswith("live keys") and by_keys.dot()
    by_sets = oxiseq.Query(f"VOCAB <{VOCAB}> {PAIR.replace('x.v', '1')}", language="ceql").explain()
    assert "runner: determinised sets, since no condition compares events" in str(by_sets)


def test_why_tells_which_comparison_fails() -> None:
    query = oxiseq.Query(f"VOCAB <{VOCAB}> {PAIR}", language="ceql")
    reasons = query.why({"S": [(1, event("A", v=3)), (2, event("B", v=2))]})
    assert reasons.found == 0 and "?y_v > ?x_v" in str(reasons) and reasons.language == "ceql"
    with pytest.raises(OxiseqError, match="events at different times"):
        query.why({"S": [(1, event("A", v=3)), (1, event("B", v=2))]})


def test_translation_to_spaseq_keeps_joins() -> None:
    translated = oxiseq.Query(f"VOCAB <{VOCAB}> {PAIR}", language="ceql").translate("spaseq")
    assert "FILTER(?y_v > ?x_v)" in translated.text
