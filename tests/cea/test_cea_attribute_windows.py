"""`WITHIN d [attr]` where it forgets: exact while the attribute does not fall, and counted where it might not be."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

from cea_runs import Driven, answers, as_answers
from ceql_strategies import CeqlOptions, CeqlSituation, as_tuples, ceql_situations
from hypothesis import assume, given
from hypothesis import strategies as st
from loaded import load
from pyoxigraph import Literal, NamedNode
from reference.ceql import evaluate_ceql
from reference.tuples import TupleEvent

from oxiseq.engine.cea.memory import Capacities

VOCAB = "http://e/"
INTEGER = NamedNode("http://www.w3.org/2001/XMLSchema#integer")
FORGETFUL = Capacities(disorder=1)
OPTIONS = CeqlOptions(strategies=False, limits=False, consumption=False, most=12)


def ab(*attribute: int) -> list[TupleEvent]:
    """A's and, as the last of every four, a B, with these values of t."""
    return [
        TupleEvent(n, n, VOCAB + ("B" if n % 4 == 3 else "A"), {VOCAB + "t": Literal(str(t), datatype=INTEGER)})
        for n, t in enumerate(attribute)
    ]


def driven(capacities: Capacities) -> Driven:
    return Driven(f"VOCAB <{VOCAB}> SELECT * FROM S WHERE A; B WITHIN 4 [t]", capacities)


@given(ceql_situations(OPTIONS))
def test_what_is_missing_is_counted(situation: CeqlSituation) -> None:
    assume("[t]" in situation.text)
    run, events = Driven(situation.text, FORGETFUL), as_tuples(situation.events)
    found = Counter(answers(run.feed(events)))
    expected = as_answers(evaluate_ceql(load(situation.text, "ceql"), events))
    assert not found - expected
    assert not expected - found or run.run.behind


@given(ceql_situations(replace(OPTIONS, falling_clocks=False, strategies=True, consumption=True)))
def test_nothing_is_missing_while_the_attribute_does_not_fall(situation: CeqlSituation) -> None:
    assume("[t]" in situation.text)
    run, events = Driven(situation.text, FORGETFUL), as_tuples(situation.events)
    found = Counter(answers(run.feed(events)))
    assert found == as_answers(evaluate_ceql(load(situation.text, "ceql"), events))
    assert run.run.behind == 0


def test_a_fall_is_exact_as_far_as_the_memory_reaches() -> None:
    events = ab(0, 1, 2, 3, 50, 51, 52, 53, 1, 2, 3, 4)
    known, forgetful = driven(Capacities()), driven(FORGETFUL)
    found, fewer = answers(known.feed(events)), answers(forgetful.feed(events))
    assert Counter(found) == as_answers(evaluate_ceql(known.plan.query, events))
    assert (0, 11, frozenset({0, 11})) in found
    assert (0, 11, frozenset({0, 11})) not in fewer
    assert (known.run.behind, forgetful.run.behind) == (0, 4)


def test_one_value_too_large_forgets_nothing() -> None:
    """A clock that leaps once must not put all that comes after it out of the window."""
    run = driven(Capacities(disorder=2))
    rising = list(range(40))
    rising[20] = 1_000_000
    events = ab(*rising)
    assert Counter(answers(run.feed(events))) == Counter(answers(driven(Capacities()).feed(events)))
    assert run.run.behind == 0


def test_memory_is_flat_while_the_attribute_rises() -> None:
    run = driven(Capacities())
    sizes = []
    for low in range(0, 120_000, 20_000):
        run.feed([replace(e, position=n + low) for n, e in enumerate(ab(*range(low, low + 20_000)))])
        sizes.append(run.run.state["bytes"])
    assert sizes[-1] == sizes[1]
    assert run.run.oldest > 120_000 - (1 << 15)


def test_events_that_no_letter_reads_let_forget_too() -> None:
    run = driven(Capacities())
    rare = [replace(e, type=VOCAB + "C") if n % 100 else e for n, e in enumerate(ab(*range(60_000)))]
    run.feed(rare)
    run.run.collect()
    assert run.run.oldest > 60_000 - (1 << 14)


def test_after_a_clock_has_been_set_back_matches_are_found() -> None:
    run = driven(Capacities(disorder=10))
    events = ab(*range(1000, 1100), *range(100))
    found = Counter(answers(run.feed(events)))
    expected = as_answers(evaluate_ceql(run.plan.query, events))
    new = {answer for answer in expected if answer[0] >= 100}
    assert len(new) == 75
    assert new <= set(found)
    assert set(found) < set(expected)
    assert run.run.behind == 100


def test_what_is_forgotten_stays_so_after_an_event_that_no_letter_reads() -> None:
    """The last B's window holds the first A, which the second A's has forgotten. The C between them must not bring it
    back: whether it is still there would depend on when memory was freed."""
    kinds = [("A", 0), ("A", 9), ("C", 0), ("B", 1)]
    events = [
        TupleEvent(n, n, VOCAB + kind, {VOCAB + "t": Literal(str(t), datatype=INTEGER)})
        for n, (kind, t) in enumerate(kinds)
    ]
    whole, pieces = driven(FORGETFUL), driven(FORGETFUL)
    assert answers(whole.feed(events)) == [(1, 3, frozenset({1, 3}))]
    found = []
    for event in events:
        found += answers(pieces.feed([event]))
        pieces.run.collect()
    assert found == [(1, 3, frozenset({1, 3}))]
    assert (whole.run.behind, pieces.run.behind) == (1, 1)


@given(ceql_situations(OPTIONS), st.integers(1, 3), st.integers(1, 4))
def test_neither_answer_nor_order_depends_on_batches(situation: CeqlSituation, disorder: int, size: int) -> None:
    assume("[t]" in situation.text)
    whole, pieces = (Driven(situation.text, Capacities(disorder=disorder)) for _ in range(2))
    events = as_tuples(situation.events)
    found = []
    for low in range(0, len(events), size):
        found += answers(pieces.feed(events[low : low + size]))
        pieces.run.collect()
    assert found == answers(whole.feed(events))
    assert pieces.run.behind == whole.run.behind
