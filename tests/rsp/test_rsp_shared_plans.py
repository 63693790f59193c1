"""What several queries are as one plan, and which queries share a state."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any
from unittest.mock import patch

import pytest
from failing_kb import FailingKb
from loaded import load
from pyoxigraph import RdfFormat, Store
from rsp_strategies import triples

import oxiseq
from oxiseq.engine.errors import KbError, LimitError
from oxiseq.engine.events.encode import encode_events
from oxiseq.engine.flow.plan import Filter, Group, Join, Look, Lookup, Patterns
from oxiseq.engine.flow.sharing.joining import Joint, joined
from oxiseq.engine.rsp.event_mappings import CommonEvents
from oxiseq.engine.rsp.joint import JointAnswers, JointGeneral, Part
from oxiseq.engine.rsp.plan import RspPlan, compile_rsp
from oxiseq.engine.run.rsp import RspRun
from oxiseq.engine.sharing.dispatching import Outcome
from oxiseq.engine.sharing.runs import Runs
from oxiseq.engine.terms.dictionary import TermDictionary
from oxiseq.grammar.rsp_algebra import RspQuery

S = "http://e/S"
QUERY = "PREFIX : <http://e/> SELECT {} FROM NAMED WINDOW :w ON :S [RANGE {} SLIDE 1] WHERE {{ WINDOW :w {{ {} }} }} {}"


def text(where: str, head: str = "*", tail: str = "", size: int = 10) -> str:
    return QUERY.format(head, size, where, tail)


def plans(texts: Sequence[str]) -> list[RspPlan]:
    terms = TermDictionary()
    return [compile_rsp(load(each, "rspql"), terms) for each in texts]


def joint(texts: Sequence[str]) -> Joint:
    return joined([plan.flow.plan for plan in plans(texts)])


def count(whole: Joint, form: type) -> int:
    return sum(isinstance(each, form) for each in whole.plan.forms)


def test_equal_queries_are_one_root() -> None:
    whole = joint([text("?x :p ?y")] * 3 + [text("?a :p ?b")])
    assert [output.queries for output in whole.outputs] == [((0, 1, 2, 3),)]
    assert len(whole.plan.forms) == 1


@pytest.mark.parametrize(
    "where",
    [
        "?x :p :c{} ; :q ?y",
        "?x :p ?y FILTER(?y > {})",
        ":c{} :p ?y",
        "?x :p ?y BIND(?y + {} AS ?z)",
        "?x :p ?y FILTER NOT EXISTS {{ ?y :q :c{} }}",
        "?x :p ?y OPTIONAL {{ ?y :q :c{} BIND(1 AS ?n) }}",
    ],
)
def test_queries_that_differ_in_constants_are_one_root_with_a_table(where: str) -> None:
    whole = joint([text(where.format(n)) for n in (1, 2, 3, 2)])
    (output,) = whole.outputs
    assert output.queries == ((0,), (1, 3), (2,))
    assert len(output.constants) == 3
    assert count(whole, Look) + count(whole, Lookup) >= 1
    assert count(whole, Patterns) == count(joint([text(where.format(1))]), Patterns)


def test_two_queries_are_no_table() -> None:
    whole = joint([text("?x :p :c1 ; :q ?y"), text("?x :p :c2 ; :q ?y")])
    assert len(whole.outputs) == 2
    assert count(whole, Look) == count(whole, Lookup) == 0


@pytest.mark.parametrize(
    "where",
    [
        ":c{} :near ?x . ?y :on ?x . ?z :at ?y",
        "?x :p :c{} . ?y :q ?z",
        "?x :p :c{} . ?y :on ?x ; :on ?z",
    ],
)
def test_constants_of_a_longer_join_stay(where: str) -> None:
    """Without them it would find more than all queries do together."""
    whole = joint([text(where.format(n)) for n in range(4)])
    assert len(whole.outputs) == 4


@pytest.mark.parametrize(
    "where",
    [
        ":c{} :near ?x . ?y :on ?x",
        "?x :p :c{} ; :q ?z . ?y :on ?x ; :at ?w FILTER(?w > ?z && ?z > 2)",
        "?x :p :c{0} ; :q ?z . ?y :on ?x ; :at :c{0}",
    ],
)
def test_two_stars_are_joined_behind_the_table(where: str) -> None:
    whole = joint([text(where.format(n)) for n in range(4)])
    assert len(whole.outputs) == 1
    assert count(whole, Patterns) == 2
    assert count(whole, Join) == 1


def test_aggregates_share_what_they_are_of_and_their_groups() -> None:
    heads = [f"?x ({name}(?y) AS ?n)" for name in ("COUNT", "SUM", "AVG", "MIN", "MAX")]
    whole = joint([text("?x :p ?y ; :q ?z", head, "GROUP BY ?x HAVING(COUNT(*) > 2)") for head in heads])
    assert count(whole, Patterns) == 1
    assert count(whole, Group) == 1
    assert count(whole, Filter) == 1  # before MIN and MAX are joined
    assert len(whole.outputs) == 5


def test_ranks_that_are_listed_otherwise_are_joined_once() -> None:
    heads = ["(MIN(?y) AS ?a) (SUM(?y) AS ?b) (MAX(?y) AS ?c)", "(MAX(?y) AS ?a) (MIN(?y) AS ?b) (COUNT(?y) AS ?c)"]
    whole = joint([text("?x :p ?y ; :q ?z", f"?x {head}", "GROUP BY ?x") for head in heads])
    assert count(whole, Join) == 2
    assert len(whole.outputs) == 2


def test_groups_by_other_keys_are_apart() -> None:
    tails = ["GROUP BY ?x", "GROUP BY ?z", ""]
    whole = joint([text("?x :p ?y ; :q ?z", "(SUM(?y) AS ?n)", tail) for tail in tails])
    assert count(whole, Group) == 3


def test_filters_stand_behind_a_join_that_is_one() -> None:
    wheres = ["?x :p ?y ; :q ?z FILTER(?y > ?z)", "?x :p ?y ; :q ?z FILTER(?y = ?z)", "?x :p ?y ; :q ?z"]
    whole = joint([text(where) for where in wheres])
    assert count(whole, Patterns) == 1
    assert count(whole, Filter) == 2


# --- which queries share ----------------------------------------------------------------------------


class Side:
    """Queries at work, and their events."""

    def __init__(self, texts: Sequence[str], kb: str = "") -> None:
        self.terms = TermDictionary()
        self.store = Store()
        self.store.load(f"@prefix : <http://e/> . {kb}", RdfFormat.TRIG)
        self.kb = FailingKb(self.store)
        self.runs = Runs(self.terms)
        self.queries = [self.add(each) for each in texts]

    def add(self, query: str, *, shares: bool = True, language: str = "rspql") -> RspRun:
        loaded = load(query, language)
        assert isinstance(loaded, RspQuery)
        run = RspRun(compile_rsp(loaded, self.terms), self.terms, self.kb)
        self.runs.add(run, shares=shares)
        return run

    def push(self, times: Sequence[int]) -> list[Outcome]:
        graphs = [(time, triples(f"<http://e/x{time}> <http://e/p> <http://e/y> .")) for time in times]
        return self.runs.push(S, encode_events(graphs, self.terms))

    def whole(self, time: int) -> list[Outcome]:
        """An event whose instant is complete."""
        self.push([time])
        return self.runs.punctuate(S, time + 1)

    def change_kb(self, update: str) -> None:
        for run in self.queries:
            self.runs.keep_answers(run)
        self.store.update(f"PREFIX : <http://e/> {update}")
        self.kb.touch()

    def shares(self) -> Iterator[int]:
        return (run.shares_with for run in self.queries)


def test_those_of_one_moment_share() -> None:
    side = Side([text("?x :p ?y"), text("?x :p :y"), text("?x :q ?y", size=20)])
    assert [*side.shares()] == [1, 1, 0]


def test_a_later_one_shares_once_its_windows_hold_the_same() -> None:
    side = Side([text("?x :p ?y")] * 2)
    side.push([1, 2, 3])
    side.queries.append(side.add(text("?x :p ?y")))
    side.push([4, 9])
    assert [*side.shares()] == [1, 1, 0]
    side.push([14])
    side.push([15])
    assert [*side.shares()] == [2, 2, 2]
    assert [run.events for run in side.queries] == [7, 7, 4]


def match_text(constant: str, match: str = "A SEQ B", more: str = "") -> str:
    """A query that looks for event patterns."""
    return (
        f"PREFIX : <http://e/> REGISTER ISTREAM <http://e/I> AS SELECT * "
        f"FROM NAMED <{S}> WIN [RANGE 10 SLIDE 1] AS :w EVENT ON :w {{ ?x :p {constant} }} AS A "
        f"EVENT ON :w {{ ?z :p {constant} }} AS B WHERE {{ MATCH {{ {match} }} }} {more}"
    )


@pytest.mark.parametrize("when", ["REPORT EVERY 2", "REPORT ON WINDOW CLOSE"])
def test_those_of_instants_of_their_own_share(when: str) -> None:
    side = Side([f"{text(f'?x :p {each}')} {when}" for each in (":y", ":z", "?y", ":y")])
    side.push([1, 2])
    side.queries.append(side.add(f"{text('?x :p :y')} {when}"))
    assert [*side.shares()] == [3, 3, 3, 3, 0]
    side.push([14])
    side.push([15, 18])
    side.push([30])
    assert [*side.shares()] == [4, 4, 4, 4, 4]
    found = [run.matches for run in side.queries]
    assert found[0] == found[2] == found[3] > 0 == found[1]
    assert side.queries[4].matches < found[0]  # it has not seen the first ones


def test_those_of_other_instants_do_not() -> None:
    side = Side([f"{text('?x :p ?y')} {when}" for when in ("REPORT EVERY 2", "REPORT EVERY 3", "")])
    side.push([1, 2, 3])
    assert [*side.shares()] == [0, 0, 0]


def test_event_patterns_that_differ_in_constants_are_one_source() -> None:
    terms = TermDictionary()
    plans = [compile_rsp(load(match_text(f":y{n}"), "rsepql"), terms) for n in range(3)]
    common = CommonEvents(1)
    whole = joined([common.flow(plan) for plan in plans])
    assert len(common.sources) == 2  # of ?x, of ?z
    assert [len(output.constants) for output in whole.outputs] == [3]


@pytest.mark.parametrize("match", ["A SEQ B", "FIRST(A) SEQ B", "A SEQ^r B", "LAST(A SEQ B)"])
def test_event_patterns_are_found_for_each_by_itself(match: str) -> None:
    side = Side([])
    side.queries = [side.add(match_text(each, match), language="rsepql") for each in (":y", ":y0", ":y1")]
    side.queries.append(side.add(match_text(":y", match), language="rsepql", shares=False))
    side.push([1, 2, 3, 4])
    assert [*side.shares()] == [2, 2, 2, 0]
    found = [run.matches for run in side.queries]
    assert found[0] == found[3] > 0 == found[1] == found[2]


def test_an_error_has_those_of_event_patterns_go_on_alone() -> None:
    side = Side([])
    side.queries = [side.add(match_text(each), language="rsepql") for each in (":y", ":y", ":z")]
    side.push([1, 2, 3])
    with patch.object(JointGeneral, "_answered", side_effect=LimitError(1, 0, "rows")):
        outcomes = side.push([4, 5])
    assert [outcome.error for outcome in outcomes] == [None] * len(outcomes)
    assert [*side.shares()] == [0, 0, 0]
    side.push([6])
    assert [run.matches for run in side.queries] == [10, 10, 0]  # of five events those that lie before another


def test_one_that_is_not_to_share_does_not() -> None:
    side = Side([text("?x :p ?y")])
    side.queries.append(side.add(text("?x :p ?y"), shares=False))
    assert [*side.shares()] == [0, 0]


def test_who_leaves_leaves_the_others_together() -> None:
    side = Side([text("?x :p ?y")] * 3)
    side.push([1, 2])
    side.runs.settle(side.queries[0])
    assert [*side.shares()] == [0, 1, 1]
    side.runs.remove(side.queries[1])
    assert side.queries[2].shares_with == 0
    side.push([9])
    assert [run.matches for run in (side.queries[0], side.queries[2])] == [2, 2]


OF_KB = (
    "?x :p ?y } GRAPH :kb { ?y :is ?z",
    "?x :p ?y } GRAPH :kb { ?y :is :c",
    "?x :p ?y } OPTIONAL { GRAPH :kb { ?y :in+ ?z }",
)


def test_those_that_read_the_knowledge_base_share_with_each_other() -> None:
    side = Side([*map(text, OF_KB), text("?x :p ?y")], ":kb { :y :is :a }")
    side.whole(1)
    assert [*side.shares()] == [2, 2, 2, 0]
    side.change_kb("INSERT DATA { GRAPH :kb { :y :is :c } }")
    side.whole(2)
    assert [*side.shares()] == [2, 2, 2, 0]
    assert [run.matches for run in side.queries] == [1 + 3, 2, 2, 2]


@pytest.mark.parametrize("where", OF_KB)
def test_with_instants_of_their_own_they_emit_what_one_alone_emits(where: str) -> None:
    """While the knowledge base changes, fails when an instant is due, and has a blank node."""
    query = f"{text(where)} REPORT EVERY 2"
    side = Side([query, query], ":kb { :y :is :a }")
    side.queries.append(side.add(query, shares=False))
    side.push([1, 2])
    side.push([5])
    assert [*side.shares()] == [1, 1, 0]
    side.change_kb("INSERT DATA { GRAPH :kb { :y :is :c ; :in :place } }")
    side.push([6, 9])
    assert [*side.shares()] == [1, 1, 0]
    side.kb.failing = True
    side.change_kb("DELETE DATA { GRAPH :kb { :y :is :a } }")
    assert [type(outcome.error) for outcome in side.push([13])] == [KbError] * 3
    side.kb.failing = False
    side.push([14])
    side.push([17])
    assert [*side.shares()] == [1, 1, 0]
    side.change_kb("INSERT DATA { GRAPH :kb { :y :is [] ; :in [] } }")
    side.push([18, 30])
    found = [run.matches for run in side.queries]
    assert found[0] == found[1] == found[2] > 4


@pytest.mark.parametrize(
    ("answers", "method", "tail"), [(JointAnswers, "advance", ""), (JointGeneral, "_answered", "REPORT EVERY 2")]
)
def test_a_change_of_the_knowledge_base_that_meets_an_error_is_emitted_all_the_same(
    answers: Any, method: str, tail: str
) -> None:
    query, whole = f"{text(OF_KB[0])} {tail}", getattr(answers, method)
    side = Side([query, query], ":kb { :y :is :a }")
    side.queries.append(side.add(query, shares=False))
    side.push([1, 3])
    side.push([5])
    side.change_kb("INSERT DATA { GRAPH :kb { :y :is :c } }")

    def failing(*given: Any) -> Iterator[Part]:
        yield from whole(*given)
        raise LimitError(1, 0, "rows")

    side.push([6])
    assert [*side.shares()] == [1, 1, 0]
    with patch.object(answers, method, failing):
        side.push([9])
    assert [*side.shares()] == [0, 0, 0]
    found = [run.matches for run in side.queries]
    assert found[0] == found[1] == found[2] > 4


def test_one_of_another_knowledge_base_does_not() -> None:
    side = Side([text(OF_KB[0])], ":kb { :y :is :a }")
    side.kb = FailingKb(Store())
    side.queries.append(side.add(text(OF_KB[0])))
    side.whole(1)
    assert [*side.shares()] == [0, 0]
    assert [run.matches for run in side.queries] == [1, 0]


def test_each_asks_the_knowledge_base_again_after_an_error_and_then_they_share_again() -> None:
    side = Side([*map(text, OF_KB)], ":kb { :y :is :a }")
    side.whole(1)
    side.kb.failing = True
    side.kb.touch()
    outcomes = side.whole(2)
    assert [type(outcome.error) for outcome in outcomes] == [KbError] * 3
    assert [*side.shares()] == [0, 0, 0]
    side.kb.failing = False
    side.whole(3)
    assert [*side.shares()] == [2, 2, 2]
    assert [run.matches for run in side.queries] == [3, 0, 3]


def test_those_that_meet_blank_nodes_of_the_knowledge_base_go_alone() -> None:
    side = Side([*map(text, OF_KB)], ":kb { :y :is :a }")
    side.whole(1)
    side.change_kb("INSERT DATA { GRAPH :kb { :y :is [] } }")
    side.whole(2)
    assert [*side.shares()] == [0, 1, 1]  # the others ask about none
    assert [run.matches for run in side.queries] == [1 + 3, 0, 2]


def test_who_leaves_after_a_change_of_the_knowledge_base_tells_what_has_changed() -> None:
    """It goes on from what all had been told."""
    side = Side([*map(text, OF_KB)], ":kb { :y :is :a }")
    side.whole(1)
    side.change_kb("INSERT DATA { GRAPH :kb { :y :is :c } }")
    side.runs.settle(side.queries[0])
    assert [*side.shares()] == [0, 1, 1]
    side.whole(2)
    assert [run.matches for run in side.queries] == [1 + 3, 2, 2]


def test_who_leaves_time_and_again_stays_alone() -> None:
    """To make its state anew costs more than is won."""
    side = Side([text("?x :p ?y")] * 3)
    shared = []
    for time in range(0, 100, 20):
        side.push([time, time + 1])
        side.runs.settle(side.queries[0])
        side.push([time + 15])
        side.push([time + 16])
        shared.append(side.queries[0].shares_with)
    assert shared == [2, 2, 0, 0, 0]
    assert [run.shares_with for run in side.queries[1:]] == [1, 1]


@pytest.mark.parametrize(
    ("query", "why"),
    [
        (text("?x :p ?y"), "shares: events, windows and equal operators"),
        (text("?x :p ?y BIND(RAND() AS ?r)"), "shares: nothing: it draws values by chance"),
        (text("?x :p ?y") + " REPORT EVERY 2s", "shares: events, windows and equal operators"),
        (
            text("?x :p ?y } GRAPH :g { ?y :q ?z") + " REPORT EVERY 2s",
            "once its windows hold the same; as long as the knowledge base has no blank nodes",
        ),
        (text("?x :p ?y } GRAPH :g { ?y :q ?z"), "the same windows; as long as the knowledge base has no blank nodes"),
    ],
)
def test_it_is_told(query: str, why: str) -> None:
    assert why in str(oxiseq.Query(query, "rspql").explain())


def test_it_is_told_of_event_patterns() -> None:
    event = "EVENT ON :w { ?x :p ?y GRAPH :g { ?y :q ?z } } AS A WHERE { MATCH { A } }"
    query = f"PREFIX : <http://e/> SELECT * FROM NAMED <http://e/S> WIN [RANGE 3 SLIDE 1] AS :w {event}"
    assert "its event patterns ask the knowledge base" in str(oxiseq.Query(query, "rsepql").explain())


def test_it_is_told_of_ep_sparql() -> None:
    query = "PREFIX : <http://e/> SELECT ?x { { ?x :p ?y } SEQ { ?y :q ?z } }"
    assert "shares: all, with equal queries" in str(oxiseq.Query(query, "epsparql").explain())
    drawn = "PREFIX : <http://e/> SELECT ?x { { ?x :p ?y } SEQ { ?y :q ?z } BIND(UUID() AS ?u) }"
    assert "shares: nothing: it draws" in str(oxiseq.Query(drawn, "epsparql").explain())
