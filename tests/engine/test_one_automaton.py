"""The automaton of the queries of a clock: who is in it, what of it grows and what goes, and whom a fault concerns.

That each query finds what it finds alone: test_shared_runs.py, test_among_others.py.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

import pytest
from engine_runs import STREAM, E, Reading, query, readings_batch
from loaded import load
from pyoxigraph import QuerySolutions, RdfFormat, Store, parse

from oxiseq.engine.automaton.automaton import SharedAutomaton
from oxiseq.engine.bounds import InstantBounds
from oxiseq.engine.errors import KbError
from oxiseq.engine.events.encode import encode_events
from oxiseq.engine.kb import StoreKb
from oxiseq.engine.omissions import InstantError
from oxiseq.engine.patterns.matcher import MatchLimits, StreamMatcher
from oxiseq.engine.plan.own_run import why_own_run
from oxiseq.engine.plan.query import compile_query
from oxiseq.engine.run.query import QueryRun
from oxiseq.engine.sequence.run import SequenceRun
from oxiseq.engine.sharing.shared import SharedRuns
from oxiseq.engine.terms.dictionary import TermDictionary

SLIDING = "WITHIN PT0.00001S SLIDING"
SEVERAL = [query("A; B", SLIDING, A="KEYED", B=f"KEYED FILTER(?bv > ?av + {n})") for n in range(5)]


class Queries:
    """The queries of a store."""

    def __init__(self, *texts: str) -> None:
        self.terms, self.kb = TermDictionary(), StoreKb(Store())
        self.runs = SharedRuns(self.terms)
        self.all = [self.add(text) for text in texts]

    def add(self, text: str) -> QueryRun:
        run = QueryRun(compile_query(load(text), self.terms), self.terms, self.kb)
        self.runs.add(run)
        return run

    def push(self, *readings: tuple[int, str, int, int]) -> dict[QueryRun, int]:
        """How many matches each query has found."""
        outcomes = self.runs.push(STREAM, readings_batch(self.terms, [Reading(*each) for each in readings]))
        return {outcome.run: sum(map(len, outcome.matches)) for outcome in outcomes}

    @property
    def automata(self) -> list[SharedAutomaton]:
        return [joined.automaton for group in self.runs._all() for joined in group.joined.values()]

    @property
    def automaton(self) -> SharedAutomaton:
        (automaton,) = self.automata
        return automaton


def stream(count: int, kinds: str = "ab") -> Iterable[tuple[int, str, int, int]]:
    return ((time, kinds[time % len(kinds)], time // 2 % 3, time % 7) for time in range(1, count))


def test_queries_over_the_same_streams_are_in_one_and_equal_patterns_are_one_letter() -> None:
    queries = Queries(*SEVERAL, query("A; B", "WITHIN PT0.00002S"))
    queries.push((1, "a", 1, 1), (2, "b", 1, 9), (3, "x", 1, 1))
    assert len(queries.automaton.members) == 6
    assert len(queries.automaton._letters.all) == 2
    assert all(run.finder.away is not None for run in queries.all)


def test_a_query_by_itself_is_in_none() -> None:
    queries = Queries(SEVERAL[0])
    queries.push((1, "a", 1, 1), (2, "b", 1, 9), (3, "x", 1, 1))
    assert not queries.automata


@pytest.mark.parametrize(
    ("text", "because"),
    [
        (query("A, B", f"{SLIDING} PARTITION BY ?k", A="KEYED", B="KEYED"), "partitions"),
        (query("A; B", "WITHIN 5 EVENTS PARTITION BY ?k", A="KEYED", B="KEYED"), "partitions"),
        (query("A; N!; B", f"{SLIDING} PARTITION BY ?k", A="KEYED", B="KEYED"), "partitions"),
        (query("A; B", f"{SLIDING} PARTITION BY ?k", "SELECT NEXT *", A="KEYED", B="KEYED"), "partitions"),
        (query("A; B", SLIDING, "SELECT (COUNT(*) AS ?n)"), "composed"),
    ],
)
def test_others_have_runs_of_their_own_and_say_why(text: str, because: str) -> None:
    why = why_own_run(compile_query(load(text), TermDictionary()))
    assert why is not None and because in why


@pytest.mark.parametrize(
    ("text", "times"),
    [
        (query("A; B", SLIDING), {1: "a", 30: "c", 40: "x"}),
        (query("A, B"), {1: "a", 3: "c", 5: "x"}),
        (query("A: B, C", SLIDING), {1: "a", 9: "a", 13: "b", 15: "x"}),
    ],
)
def test_live_records_do_not_depend_on_what_others_have_met(text: str, times: dict[int, str]) -> None:
    counts = []
    for queries in (Queries(text), Queries(text, query("C; D"))):
        queries.push(*((time, kind, 1, 1) for time, kind in times.items()))
        queries.all[0].collect()
        counts.append(queries.all[0].records)
    assert counts[0] == counts[1]


def test_windows_that_count_instants_are_in_another_one_and_count_from_a_query_s_own_first() -> None:
    queries = Queries(*SEVERAL, *(query("A; B", f"WITHIN {size} EVENTS") for size in (3, 4)))
    queries.push((1, "x", 1, 1), (2, "x", 1, 1))
    late = queries.add(query("A; B", "WITHIN 3 EVENTS"))
    queries.push((3, "x", 1, 1))
    found = queries.push(*((time, "xabxabx"[time - 4], 1, 1) for time in range(4, 11)), (11, "x", 1, 1))
    assert sorted(len(automaton.members) for automaton in queries.automata) == [3, 5]
    # windows end behind 3, 6, 9; behind 4, 8; of the late one behind 5, 8
    assert [found.get(run, 0) for run in (*queries.all[5:7], late)] == [2, 1, 0]


def test_partition_by_that_only_compares_is_a_comparison() -> None:
    """Also of iterations, and of what negates a match: then there are no partitions."""
    by = f"{SLIDING} PARTITION BY ?k"
    queries = Queries(*SEVERAL, query("A+; N!; B", by, A="KEYED", N="KEYED", B="KEYED"))
    run = queries.all[-1]
    found = queries.push(
        *((time, kind, key, 1) for time, (kind, key) in enumerate(zip("aaanbb", (1, 2, 1, 2, 1, 2), strict=True), 1)),
        (7, "x", 1, 1),
    )
    assert len(queries.automaton.members) == 6
    assert found[run] == 3
    assert "partitions" not in run.state


def test_strategies_choose_by_query() -> None:
    """Of the two events before a third one keeps the first, the last, or what no other contains; others keep all."""
    several = [query("A+; B", SLIDING, f"SELECT {which} *") for which in ("NEXT", "LAST", "MAX")]
    queries = Queries(*several, query("A+; B", SLIDING))
    found = queries.push((1, "a", 1, 1), (2, "a", 1, 1), (3, "b", 1, 1), (4, "x", 1, 1))
    assert len(queries.automaton.members) == 4
    assert [found[run] for run in queries.all] == [1, 1, 1, 3]


def test_each_query_has_its_own_limit_and_forgets_what_it_has_consumed() -> None:
    """Three matches end at each of two events, then four: one query emits two of them, one forgets after each."""
    texts = [query("A: B", SLIDING), query("A: B", SLIDING) + " LIMIT 2", query("A: B", f"{SLIDING} CONSUME BY ANY")]
    queries = Queries(*texts)
    found = [queries.push((time, kind, 1, 1)) for time, kind in enumerate("aaabbabx")]
    assert len(queries.automaton.members) == 3
    found = [each for each in found if each]
    assert [[each.get(run, 0) for each in found] for run in queries.all] == [[3, 3, 4], [2, 2, 2], [3, 0, 1]]


def test_tables_of_queries_that_have_gone_go() -> None:
    queries = Queries(*SEVERAL)
    for number in range(200):
        run = queries.add(query("A; B", SLIDING, A="KEYED", B=f"KEYED FILTER(?bv > ?av * {number + 2})"))
        queries.push((3 * number + 1, "a", 1, 1), (3 * number + 2, "b", 1, 9))
        queries.runs.remove(run)
    queries.push((1_000, "a", 1, 1), (1_001, "x", 1, 1))
    assert len(queries.automaton.members) == 5
    assert len(queries.automaton._builder.windows) < 50


def test_a_window_without_an_end_does_not_keep_what_others_have_left() -> None:
    """Groups expire in one queue: one that stays is no reason for the others to."""
    queries = Queries(query("A; B", "", A="FILTER(?av = 3)", B="FILTER(?bv = 99)"), *SEVERAL)
    queries.push((1, "a", 1, 3), (2, "x", 1, 1))
    for begin in range(10, 30_000, 1_000):
        queries.push(*((begin + n, "a", n, 1) for n in range(1_000)))
    run = queries.automaton._run
    assert run is not None and len(run.memory.groups) < 4_096


def test_kept_rows_do_not_grow_with_the_stream() -> None:
    queries = Queries(*SEVERAL)
    for begin in range(10, 60_000, 2_000):
        queries.push(*((begin + n, "ab"[n % 2], n % 5, n % 7) for n in range(2_000)))
    assert queries.automaton.rows.held < 5_000


def test_an_instant_with_too_many_matches_is_left_out_for_that_query_alone() -> None:
    terms = TermDictionary()
    terms.bounds = InstantBounds(matches=20)
    queries = Queries()
    queries.terms, queries.runs = terms, SharedRuns(terms)
    many, few = (queries.add(query(f"A: B{op}: C", SLIDING, A="KEYED", C="KEYED")) for op in ("+", ""))
    outcomes = queries.runs.push(
        STREAM,
        readings_batch(
            terms, [Reading(1, "a"), *(Reading(time, "b") for time in range(2, 9)), Reading(9, "c"), Reading(10, "x")]
        ),
    )
    found = {outcome.run: outcome for outcome in outcomes}
    assert queries.automaton.members
    assert isinstance(found[many].error, InstantError) and not found[many].matches
    assert found[few].error is None and sum(map(len, found[few].matches)) == 7


def test_a_decision_that_fails_is_an_error_of_that_query_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    regular = query("A; B", SLIDING, B="FILTER(REGEX(STR(?av), STR(?bv)))")
    queries = Queries(*SEVERAL, regular)
    usual = SequenceRun._answer

    def broken(self: SequenceRun, asked: object, vector: object) -> int:
        if "REGEX" in repr(asked):
            raise RuntimeError("broken")
        return usual(self, asked, vector)  # type: ignore[arg-type]

    monkeypatch.setattr(SequenceRun, "_answer", broken)
    batch = readings_batch(queries.terms, [Reading(1, "a", 1, 1), Reading(2, "b", 1, 9), Reading(3, "x")])
    found = {outcome.run: outcome for outcome in queries.runs.push(STREAM, batch)}
    assert isinstance(found[queries.all[-1]].error, RuntimeError)
    assert all(found[run].error is None and found[run].matches for run in queries.all[:5])


def test_state_and_records_are_read_without_leaving() -> None:
    queries = Queries(*SEVERAL)
    alone = QueryRun(compile_query(load(SEVERAL[0]), queries.terms), queries.terms, queries.kb)
    readings = [*stream(30)]
    queries.push(*readings)
    alone.push(STREAM, readings_batch(queries.terms, [Reading(*each) for each in readings]))
    alone.advance()
    first = queries.all[0]
    for run in (first, alone):
        run.collect()
    assert first.records == alone.records
    assert first.state["groups"] == alone.state["groups"] > 0
    assert first.waiting == alone.waiting
    assert first.finder.away is not None


def test_equal_queries_have_one_teller_which_drops_repeated_rows_once() -> None:
    distinct = query("A; B?", SLIDING, "SELECT DISTINCT ?a")
    queries = Queries(distinct, SEVERAL[0], distinct)
    found = queries.push((1, "a", 1, 1), (2, "x", 1, 1), (3, "x", 1, 1))
    assert [found.get(queries.all[n], 0) for n in (0, 2)] == [1, 1]


# --- letters whose rows are made -------------------------------------------------------------------


class CountedKb(StoreKb):
    """Knows what it has been asked; what names a refused word it does not answer."""

    def __init__(self, *lines: str, refused: str = "") -> None:
        self.store, self.refused = Store(), refused
        self.asked: list[str] = []
        super().__init__(self.store)
        self.add(*lines)

    def add(self, *lines: str) -> None:
        self.store.extend(parse("".join(lines).encode(), format=RdfFormat.N_QUADS))
        self.touch()

    def solutions(self, query_text: str) -> QuerySolutions:
        self.asked.append(query_text)
        if self.refused and self.refused in query_text:
            raise KbError("refused")
        return super().solutions(query_text)


def tagged(number: int, tag: str) -> str:
    return f'<{E}a{number}> <{E}tag> "{tag}" <{E}tags> .\n'


def with_kb(kb: CountedKb, *texts: str) -> Queries:
    queries = Queries()
    queries.kb = kb
    queries.all = [queries.add(text) for text in texts]
    return queries


TAGGED = "GRAPH :tags {{ ?{0} :tag ?{1} }}"


def things(queries: Queries, *readings: tuple[int, str, int]) -> dict[QueryRun, list[tuple[str, ...]]]:
    """What queries find in readings (time, kind, number of the thing)."""
    events = [
        (time, f"<{E}{kind}{number}> <{E}kind> <{E}{kind}> ; <{E}k> 1 ; <{E}v> 1 .") for time, kind, number in readings
    ]
    found: dict[QueryRun, list[tuple[str, ...]]] = {}
    for outcome in queries.runs.push(STREAM, encode_events(events, queries.terms)):
        if outcome.error is not None:
            raise outcome.error
        rows = [row for batch in outcome.matches for row in batch.values.tolist()]
        found[outcome.run] = [tuple(queries.terms.text(i) for i in row) for row in rows]
    return found


def test_queries_that_ask_the_same_ask_once_whatever_their_names_are() -> None:
    texts = [query("A; B", SLIDING, f"SELECT ?{v}", A=TAGGED.format("a", v)) for v in ("t", "t", "x", "y")]
    kb = CountedKb(tagged(1, "one"))
    queries = with_kb(kb, *texts)
    found = things(queries, (1, "a", 1), (2, "a", 2), (3, "b", 1), (4, "x", 1))
    assert [found[run] for run in queries.all] == [[('"one"',)]] * 4
    assert all(run.finder.away is not None for run in queries.all)
    assert len(queries.automaton._letters.all) == 2 and len(kb.asked) == 1
    kb.add(tagged(2, "two"))
    found = things(queries, (5, "a", 2), (6, "b", 1), (7, "x", 1))
    assert [found[run] for run in queries.all] == [[('"two"',)]] * 4
    assert len(kb.asked) == 2


def test_what_is_asked_is_what_a_query_has_announced() -> None:
    """As a knowledge base elsewhere needs it, whose answers are kept by questions."""
    texts = [query("A; B", SLIDING, f"SELECT ?{v}", A=TAGGED.format("a", v)) for v in ("t", "x", "x")]
    texts += [query("A; B", SLIDING, A=f"OPTIONAL {{ {TAGGED.format('a', v)} }}") for v in ("t", "x")]
    kb = CountedKb(tagged(1, "one"))
    queries = with_kb(kb, *texts)
    things(queries, (1, "a", 1), (2, "b", 1), (3, "x", 1))
    queries.runs.remove(queries.all.pop(0))
    kb.add(tagged(2, "two"))
    before = len(kb.asked)
    things(queries, (4, "a", 2), (5, "b", 1), (6, "x", 1))
    announced = {text for run in queries.all for text in run.kb_texts}
    assert len(kb.asked) == before + 3 and announced == {*kb.asked[before:]}


def test_instants_that_wait_see_the_kb_of_before_and_nobody_leaves_for_it() -> None:
    texts = [query("A; B", SLIDING, f"SELECT ?{v}", A=TAGGED.format("a", v)) for v in ("t", "x")]
    kb = CountedKb(tagged(1, "before"))
    queries = with_kb(kb, *texts, query("A; B", SLIDING, "SELECT ?b"))
    things(queries, (1, "a", 2), (2, "a", 1))
    assert [queries.runs.keep_answers(run) for run in queries.all] == [True, True, False]
    assert [queries.runs.keep_answers(run) for run in queries.all] == [False, False, False]
    kb.add(tagged(2, "after"), tagged(1, "after"))
    found = things(queries, (3, "a", 2), (4, "b", 1), (5, "x", 1))
    tags = ['"after"', '"before"']
    assert [sorted(tag for (tag,) in found[run]) for run in queries.all[:2]] == [tags, tags]
    assert len(found[queries.all[2]]) == 3
    assert all(run.finder.away is not None for run in queries.all)


def test_a_question_that_fails_is_an_error_of_those_alone_that_ask_it() -> None:
    asks = query("A; B", SLIDING, A="GRAPH :refused { ?a :tag ?t }")
    queries = with_kb(CountedKb(refused="refused"), *SEVERAL, asks)
    batch = readings_batch(queries.terms, [Reading(1, "a", 1, 1), Reading(2, "b", 1, 9), Reading(3, "x")])
    found = {outcome.run: outcome for outcome in queries.runs.push(STREAM, batch)}
    assert isinstance(found[queries.all[-1]].error, KbError)
    assert all(found[run].error is None and found[run].matches for run in queries.all[:5])


@pytest.mark.parametrize(
    "gpm",
    [
        "GRAPH :tags { ?x :tag ?t } FILTER(STR(?t) != STR(?av))",
        "OPTIONAL { ?x ?p ?y . ?z ?q ?w }",
        "OPTIONAL { ?x ?p ?y } OPTIONAL { ?z ?q ?w }",
    ],
)
def test_too_many_mappings_are_left_out_for_that_query_alone(gpm: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(StreamMatcher.__init__, "__defaults__", (None, replace(MatchLimits(), rows=5), None))
    queries = with_kb(CountedKb(*(tagged(number, "t") for number in range(30))))
    queries.terms.bounds = InstantBounds(made=20)
    queries.all = [queries.add(text) for text in [*SEVERAL, query("A; B", SLIDING, A=gpm)]]
    batch = readings_batch(queries.terms, [Reading(1, "a", 1, 1), Reading(2, "b", 1, 9), Reading(3, "x")])
    found = {outcome.run: outcome for outcome in queries.runs.push(STREAM, batch)}
    assert isinstance(found[queries.all[-1]].error, InstantError)
    assert all(found[run].error is None and found[run].matches for run in queries.all[:5])


def test_events_that_are_joined_and_know_their_times_find_what_they_find_alone() -> None:
    texts = [
        query("(A & B); C", SLIDING, B="FILTER(?bv >= ?av)", C="FILTER(EVENTTIME() != TIMEOF(A))"),
        query("(P & B); C", SLIDING, B="FILTER(?bv >= ?pv)", C="FILTER(EVENTTIME() != TIMEOF(P))").replace(
            ":p ;", ":a ;"
        ),
    ]
    queries = Queries(*texts)
    found = queries.push((1, "a", 1, 1), (1, "b", 1, 2), (2, "c", 1, 1), (3, "c", 1, 1), (4, "x", 1, 1))
    assert [found[run] for run in queries.all] == [1, 1]
    assert len(queries.automaton._letters.all) == 2


@pytest.mark.parametrize("others", [0, 1])
def test_what_time_decides_is_bounded_moment_by_moment(others: int) -> None:
    """However many moments an event passes at once."""
    queries = Queries()
    queries.terms.bounds = InstantBounds(matches=1)
    absent, *_ = [queries.add(text) for text in (query("A; N!", SLIDING), query("C; D"))[: 1 + others]]
    batch = readings_batch(queries.terms, [Reading(1, "a"), Reading(2, "a"), Reading(100, "x")])
    (outcome,) = queries.runs.push(STREAM, batch)
    assert outcome.run is absent and outcome.error is None
    assert sum(map(len, outcome.matches)) == 2
