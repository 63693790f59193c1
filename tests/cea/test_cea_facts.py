"""Complex event automata, one fact at a time."""

from __future__ import annotations

import numpy as np
import pytest
from cea_runs import Driven, answers, holdings
from hypothesis import given
from hypothesis import strategies as st
from loaded import load
from reference.ceql_facts import VOCAB, tuples

from oxiseq.engine.cea.events import MarkedEvents, attribute_clocks, room_for_few
from oxiseq.engine.cea.memory import Capacities
from oxiseq.engine.cea.plan import CeaPlan, compile_ceql
from oxiseq.engine.cea.positions import MOST_LETTERS
from oxiseq.engine.cea.run import CeaRun
from oxiseq.engine.errors import LimitError, QueryError
from oxiseq.engine.kernels.cea import records as k
from oxiseq.engine.kernels.memory.pointers import Pointers
from oxiseq.grammar.parser import parse


def text(formula: str, select: str = "*") -> str:
    return f"VOCAB <{VOCAB}> SELECT {select} FROM S WHERE {formula}"


def plan(formula: str, select: str = "*") -> CeaPlan:
    return compile_ceql(load(text(formula, select), "ceql"))


def found(formula: str, events: str, select: str = "*") -> list[tuple[int, int, list[int]]]:
    driven = Driven(text(formula, select))
    return sorted((start, end, sorted(d)) for start, end, d in answers(driven.feed(tuples(events))))


# --- compiling ------------------------------------------------------------------------------------


def test_equal_conditions_are_one_atom() -> None:
    compiled = plan("A AS x; A AS y; A FILTER x[v > 1] AND x[v < 5] AND y[v < 5] AND y[v > 1]")
    assert len(compiled.letters) == 2
    assert sorted(len(atom.predicates) for atom in compiled.letters) == [0, 2]
    assert {atom.type for atom in compiled.letters} == {VOCAB + "A"}


def test_or_between_conditions_copies_the_formula() -> None:
    assert len(plan("A; B FILTER A[v > 1] OR B[v > 2] OR B[v = 0]").runner.positions.letters) == 6
    assert len(plan("A; B FILTER A[v > 1] AND B[v > 2]").runner.positions.letters) == 2


def test_too_many_copies_are_refused() -> None:
    either = " AND ".join(f"(A[v = {i}] OR A[v = {i + 1}])" for i in range(20))
    with pytest.raises(LimitError) as caught:
        plan(f"A FILTER {either}")
    assert (caught.value.given, caught.value.limit) == (2**20, MOST_LETTERS)


def test_streams_are_named_by_the_caller_or_by_vocab() -> None:
    query = load(f"VOCAB <{VOCAB}> SELECT * FROM S, T WHERE A", "ceql")
    assert compile_ceql(query).streams == (VOCAB + "S", VOCAB + "T")
    assert compile_ceql(query, {"T": "http://other/"}).streams == (VOCAB + "S", "http://other/")


def test_a_query_without_vocab_is_refused() -> None:
    with pytest.raises(QueryError, match="VOCAB"):
        compile_ceql(parse("SELECT * FROM S WHERE A", "ceql"))


def test_variables_are_those_that_select_keeps() -> None:
    assert plan("A AS x; B", "B, x").runner.variables == ("B", "x")
    assert plan("A AS x; B").runner.variables == ("A", "x", "B")


# --- running --------------------------------------------------------------------------------------


def test_an_empty_d_is_reported_with_its_interval() -> None:
    assert found("A; (B OR C AS x)", "a b", select="x") == [(0, 1, [])]


def test_equal_d_with_another_start_is_another_complex_event() -> None:
    assert found("A; B; C", "a a b c", select="B") == [(0, 3, [2]), (1, 3, [2])]


def test_equal_d_with_equal_interval_is_found_once() -> None:
    assert found("A; B; C", "a b b b c", select="A, C") == [(0, 4, [0, 4])]
    assert found("(A OR A AS x) OR A AS y", "a") == [(0, 0, [0])]


def test_variables_may_depend_on_what_comes_after() -> None:
    driven = Driven(text("(A AS x; B) OR (A AS y; C)", "x, y"))
    some = driven.feed(tuples("a b a c"))
    held = [holdings(driven.plan, some, i) for i in range(len(some))]
    assert sorted(map(sorted, held)) == [[("x", 0)], [("y", 0)], [("y", 2)]]


def test_variables_may_depend_on_a_silent_neighbour() -> None:
    driven = Driven(text("(A AS x : B; D) OR (A AS y : C; D)", "x, y"), Capacities.smallest())
    events = tuples("a b d a c d")
    held = [holdings(driven.plan, some, i) for e in events for some in [driven.feed([e])] for i in range(len(some))]
    assert sorted(map(sorted, held)) == [[("x", 0)], [("x", 0)], [("y", 3)]]


def test_more_atoms_than_a_word_has_bits() -> None:
    tests = " AND ".join(f"x{i}[v = {i}]" for i in range(70))
    driven = Driven(text("; ".join(f"A AS x{i}" for i in range(70)) + f" FILTER {tests}"))
    assert driven.plan.runner.words == 2
    events = tuples(" ".join(f"a{i}" for i in range(70)))
    some = driven.feed(events)
    assert answers(some) == [(0, 69, frozenset(range(70)))]
    assert holdings(driven.plan, some, 0) == {(f"x{i}", i) for i in range(70)} | {("A", i) for i in range(70)}


def test_limit_stops_a_walk_that_would_not_end() -> None:
    assert len(found("A+; B LIMIT 3", " ".join(["a"] * 200) + " b")) == 3


@pytest.mark.parametrize("strategy", ["NEXT", "LAST", "MAX"])
def test_a_strategy_chooses_among_more_than_could_be_enumerated(strategy: str) -> None:
    driven = Driven(text("A+; B", f"{strategy} *"))
    some = driven.feed(tuples(" ".join(["a"] * 100) + " b"))
    assert answers(some) == [(0, 100, frozenset(range(101)))]


def test_events_of_no_partition_are_not_counted() -> None:
    formula = "A : B PARTITION BY [k] WITHIN 1 EVENTS"
    assert found(formula, "a/x c b/x a/y a/x b/y") == [(0, 2, [0, 2]), (3, 5, [3, 5])]


def test_what_waits_for_the_next_event_ends_with_it() -> None:
    driven = Driven(text("A : B"))
    driven.feed(tuples("a"))
    assert driven.run.state["live"] == 1
    driven.feed(tuples("d"))
    assert driven.run.state["live"] == 0


def test_arrays_of_any_layout_and_type() -> None:
    run = CeaRun(plan("A; B WITHIN 9 SECONDS"))
    symbol = np.array([[1, 0], [2, 0]], np.uint32)[:, :1]
    time = np.arange(4, dtype=np.int32)[::2]
    partition = np.zeros(2, np.int64)
    partition.flags.writeable = False
    assert answers(run.feed(MarkedEvents(symbol, time, partition))) == [(0, 1, frozenset({0, 1}))]


def test_an_empty_batch() -> None:
    driven = Driven(text("A; B WITHIN 1 [t]"))
    assert len(driven.feed([])) == 0
    assert driven.run.oldest == 0


# --- windows over an attribute --------------------------------------------------------------------


def near(first: float, last: float, size: float) -> bool:
    clocks, cuts = attribute_clocks(Pointers(room_for_few(1, k.BY_ATTRIBUTE, size)), np.array([first, last]))
    return bool(clocks[0] >= cuts[1])


VALUES = st.floats() | st.integers(-5, 5).map(float) | st.sampled_from([0.1, 0.3, 1e16, 2.0**53, 5e-324, -1e300])


@given(VALUES, VALUES, st.floats(0, allow_infinity=False) | st.integers(0, 9).map(float) | st.sampled_from([0.2, 1e16]))
def test_clocks_are_differences_of_doubles(first: float, last: float, size: float) -> None:
    with np.errstate(all="ignore"):
        assert near(first, last, size) == bool(np.float64(last) - np.float64(first) <= size)
