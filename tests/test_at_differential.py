"""The time of a match (semantics.md 2.6a): the engine against the reference on the corpus, on random queries that end
in negations, and on chains of queries that read each other's results. Compared are start, end, at, bindings and order,
at every batching, and that a match is reported when the watermark has passed its `at`, neither before nor later.

Among equal `at` and `end` the order is free here."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Sequence
from itertools import groupby
from pathlib import Path
from typing import Any, TypeAlias

import pytest
from chain_strategies import Chain, chains
from corpus_cases import Case, load_at_cases, load_clause_cases
from hypothesis import given
from hypothesis import strategies as st
from loaded import load
from profiles import crossed, drawn, thorough
from pyoxigraph import RdfFormat, Store
from reference.choose import is_choice
from reference.evaluate import ReferenceResult, evaluate
from reference.output import Row
from reference.ranking import Ranked, objection
from reference.streams import Arrival
from reference.summaries import is_summary
from strategies import PUNCTUATION, Arrivals, E, Situation, situations
from test_differential import WITHOUT_SHRINKING, answer, fail_small, triples_of, with_repetitions
from test_ranking_differential import ranked
from test_summaries_differential import _rounded, summarised

import oxiseq
from oxiseq.grammar.algebra import Construct, OnClose, Query, Select

Told: TypeAlias = tuple[int, int, int | None, tuple[tuple[str, str], ...], tuple[tuple[str, Any], ...]]
"""(at, end, start, columns, events per GPM name), blank nodes numbered within the row. Groups have no start."""
FAR = 1_000_000_000
"""Behind all deadlines."""


# --- the two sides --------------------------------------------------------------------------------


def of_row(query: Query, row: Row) -> Told:
    _, columns, events = answer(row.end, ((v.value, t) for v, t in row.bindings.items()), row.events.items(), row.graph)
    return int(row.at), row.end, row.start, columns, events


def of_match(query: Query, match: oxiseq.Match) -> Told:
    assert match.end_us is not None
    graph = match.graph if isinstance(query.form, Construct) else ()
    shown = () if isinstance(query.form, Construct) else match.items()
    _, columns, events = answer(match.end_us, shown, match.events.items(), graph)
    return match.at_us, match.end_us, None if is_summary(query) else match.start_us, columns, events


def arrivals_of(events: Iterable[tuple[int, str]]) -> list[Arrival]:
    return [(time, None if text == PUNCTUATION else triples_of(text)) for time, text in events]


def by_reference(
    query: Query, streams: Arrivals, kb: str = "", lateness: int = 0, open_end: bool = False
) -> ReferenceResult:
    known = Store()
    known.load(kb.encode(), format=RdfFormat.N_QUADS)
    arrivals = {iri: arrivals_of(events) for iri, events in streams.items()}
    return evaluate(query, arrivals, known, lateness=lateness, open_end=open_end)


def without_punctuation(streams: Arrivals) -> Arrivals:
    return {iri: [each for each in events if each[1] != PUNCTUATION] for iri, events in streams.items()}


def push(store: oxiseq.Store, iri: str, arrivals: Sequence[tuple[int, str]]) -> None:
    """Events at once, as far as no punctuation stands between them."""
    for punctuations, some in groupby(arrivals, key=lambda each: each[1] == PUNCTUATION):
        if not punctuations:
            store.stream(iri).extend(list(some))
            continue
        for time, _ in some:
            store.stream(iri).advance(time)


def reported(query: Query, live: oxiseq.ContinuousQuery) -> list[Told]:
    """What has come since this was last asked, time standing still."""
    return [of_match(query, match) for match in live.poll("0s", idle=None)]


def prefix(situation: Situation, count: int) -> Arrivals:
    """What has arrived after so many arrivals."""
    taken = Counter(situation.order[:count])
    return {iri: events[: taken[iri]] for iri, events in situation.streams.items()}


# --- comparing ------------------------------------------------------------------------------------


def objects(query: Query, expected: ReferenceResult, found: list[Told]) -> str | None:
    """Why `found`, in its order, is not what the reference answers."""
    times = [told[:2] for told in found]
    if times != sorted(times):
        return f"not in order of at and end: {times}"
    wanted = [of_row(query, row) for row in expected.rows]
    distinct = isinstance(query.form, Select) and query.form.distinct
    if query.limit is None or query.suppression is not None or is_summary(query):
        given = _comparable(found, distinct)
        asked = _comparable(wanted, distinct)
        return None if given == asked else f"missing {dict(asked - given)}, too much {dict(given - asked)}"
    groups: dict[Hashable, list[Told]] = {}
    for row, told in zip(expected.rows, wanted, strict=True):
        groups.setdefault((row.partition, row.end), []).append(told)
    choices = [Counter(group) for group in groups.values()]
    if is_choice(Counter(found), choices, query.limit):
        return None
    return f"{found} is not a choice from {choices}"


def _comparable(told: list[Told], distinct: bool) -> Counter[Told]:
    """As a bag; which match stands for equal DISTINCT rows is free; sums of doubles may differ in their last digits."""
    rows = [(*each[:3], tuple((name, _rounded(text)) for name, text in each[3]), each[4]) for each in told]
    return Counter(
        (at, end, None, shown, ()) if distinct else (at, end, start, shown, events)
        for at, end, start, shown, events in rows
    )


def comparable_limit(situation: Situation) -> bool:
    """LIMIT comes before DISTINCT: which rows DISTINCT leaves then is checked in test_differential.py. With SUPPRESS
    LIMIT leaves nothing open."""
    query = load(situation.text)
    sure = query.limit is None or query.suppression is not None or is_summary(query)
    return sure or with_repetitions(query) == query


# --- the corpus -----------------------------------------------------------------------------------

CASES = [*load_at_cases(), *load_clause_cases("until", "suppress")]


def shown(match: oxiseq.Match) -> tuple[int, int | None, tuple[tuple[str, str], ...]]:
    return match.at_us, match.end_us, tuple(sorted((v, str(t)) for v, t in match.items() if t is not None))


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_run_decides_the_case_in_time(case: Case) -> None:
    found = list(oxiseq.run(case.query, streams=case.streams, kb=case.kb, origin=case.start))
    assert [shown(match) for match in found] == case.results
    events = [tuple(sorted((name, tuple(of)) for name, of in m.events.items() if of)) for m in found]
    assert Counter(events) == case.matches


@pytest.mark.parametrize(("case", "size"), crossed(CASES, [1, 2, 100]), ids=lambda each: getattr(each, "name", each))
def test_a_store_decides_the_case_in_time(case: Case, size: int) -> None:
    """By the clock; a window of n instants that are not all there stays open until the streams end."""
    with oxiseq.open() as store:
        live = store.register(case.query, origin=case.start)
        events = sorted(((iri, *event) for iri, of in case.streams.items() for event in of), key=lambda event: event[1])
        for begin in range(0, len(events), size):
            for iri in case.streams:
                store.stream(iri).extend([(time, text) for at, time, text in events[begin : begin + size] if at == iri])
        if "EVENTS" in case.query:
            live.close()
        else:
            for iri in case.streams:
                store.stream(iri).advance(FAR)
        assert [shown(match) for match in live.poll("0s", idle=None)] == case.results


# --- random queries -------------------------------------------------------------------------------


def difference(situation: Situation) -> str | None:
    """`run` on finite inputs, which are sorted, and on iterators, which are read as they come."""
    query, streams = load(situation.text), without_punctuation(situation.streams)
    ordered = {iri: sorted(events, key=lambda event: event[0]) for iri, events in streams.items()}
    options: dict[str, Any] = {"kb": situation.kb or None, "lateness": f"{situation.lateness}us"}
    for end, sorted_first in (("closed", True), ("open", True), ("closed", False)):
        expected = by_reference(
            query, ordered if sorted_first else streams, situation.kb, situation.lateness, end == "open"
        )
        if expected.ambiguous:
            return None
        given_ = streams if sorted_first else {iri: iter(events) for iri, events in streams.items()}
        more = {"end": "open"} if end == "open" else {} if sorted_first else {"late": "ignore"}
        found = oxiseq.run(situation.text, streams=given_, **options, **more)
        if found.late != expected.late:
            return f"{found.late} events were late, not {expected.late}"
        fault = objects(query, expected, [of_match(query, match) for match in found])
        if fault is not None:
            return f"{end}, {'lists' if sorted_first else 'iterators'}: {fault}"
    return None


def live_difference(situation: Situation) -> str | None:
    """A store, in every pause and at the end: what the watermark has passed has been reported, and nothing else."""
    query = load(situation.text)
    wanted = {
        number: by_reference(query, prefix(situation, number), situation.kb, situation.lateness, True)
        for number in (*situation.pauses, len(situation.order))
    }
    answers: list[list[Told]] = []
    ended = by_reference(query, situation.streams, situation.kb, situation.lateness)
    for together in (False, True):
        with oxiseq.open() as store:
            store.load(situation.kb.encode(), format=RdfFormat.N_QUADS)
            live = store.register(situation.text, lateness=f"{situation.lateness}us")
            left = {iri: list(events) for iri, events in situation.streams.items()}
            waiting: Arrivals = {iri: [] for iri in left}
            found: list[Told] = []
            for number, iri in enumerate(situation.order, start=1):
                waiting[iri].append(left[iri].pop(0))
                if together and number not in wanted:
                    continue
                for each, some in waiting.items():
                    push(store, each, some)
                    some.clear()
                if number in wanted:
                    found += reported(query, live)
                    fault = None if wanted[number].ambiguous else objects(query, wanted[number], found)
                    if fault is not None:
                        return f"after {number} arrivals: {fault}"
            live.close()
            found += reported(query, live)
            if ended.ambiguous:
                return None
            if live.late_count != ended.late:
                return f"{live.late_count} events were late, not {ended.late}"
            fault = objects(query, ended, found)
            if fault is not None:
                return f"at the end: {fault}"
            answers.append(found)
    return None if answers[0] == answers[1] else "several events at once give another order"


@thorough(phases=WITHOUT_SHRINKING)
@given((situations(until=True) | situations(clauses=True, until=True)).filter(comparable_limit))
def test_run_ends_runs(situation: Situation) -> None:
    fail_small(situation, difference)


@drawn(60, phases=WITHOUT_SHRINKING)
@given((situations(until=True) | situations(clauses=True, trailing=True, until=True)).filter(comparable_limit))
def test_a_store_ends_runs(situation: Situation) -> None:
    fail_small(situation, live_difference)


@drawn(60, phases=WITHOUT_SHRINKING)
@given(situations(clauses=True, trailing=True, until=True, suppress=True).filter(comparable_limit))
def test_a_store_ends_runs_and_suppresses_rows(situation: Situation) -> None:
    fail_small(situation, live_difference)


TRAILING = situations(trailing=True) | situations(clauses=True, trailing=True)


@thorough(phases=WITHOUT_SHRINKING)
@given(TRAILING.filter(comparable_limit))
def test_run_decides_matches_in_time(situation: Situation) -> None:
    fail_small(situation, difference)


@thorough(phases=WITHOUT_SHRINKING)
@given(TRAILING.filter(comparable_limit))
def test_a_store_reports_matches_when_they_are_decided(situation: Situation) -> None:
    fail_small(situation, live_difference)


@thorough(phases=WITHOUT_SHRINKING)
@given(TRAILING, st.integers(0, 1 << 30))
def test_groups_are_reported_when_their_matches_are_decided(situation: Situation, seed: int) -> None:
    made = summarised(situation, seed)
    if made is not None:
        fail_small(made, difference)
        fail_small(made, live_difference)


def ranking_difference(situation: Situation) -> str | None:
    """ORDER BY and SAMPLE: of each end of a partition, or of each close, an answer that is allowed, when it is
    decided."""
    query, streams = load(situation.text), without_punctuation(situation.streams)
    closes = isinstance(query.summary.report, OnClose)
    bare = by_reference(query, streams, situation.kb, situation.lateness)
    if bare.ambiguous:
        return None
    names = [f"key{i}" for i in range(len(query.summary.order_by))]
    parted = [v.value for v in (query.partition.by if query.partition is not None and not closes else ())]

    def group(at: int, end: int, bound: dict[str, Any]) -> Hashable:
        return at, None if closes else end, tuple(str(bound.get(name)) for name in parted)

    known: dict[Hashable, list[Ranked]] = {}
    for row in bare.rows:
        bound = {v.value: t for v, t in row.bindings.items()}
        events = tuple(sorted((time, name) for name, of in row.events.items() for _, time in of))
        one = Ranked(tuple(bound.get(name) for name in names), events, of_row(query, row))
        known.setdefault(group(int(row.at), row.end, bound), []).append(one)
    told: dict[Hashable, list[tuple[Any, Hashable]]] = {}
    iterators = {iri: iter(events) for iri, events in streams.items()}
    options: dict[str, Any] = {"kb": situation.kb or None, "lateness": f"{situation.lateness}us", "late": "ignore"}
    for match in oxiseq.run(situation.text, streams=iterators, **options):
        row = of_match(query, match)
        key = group(row[0], row[1], dict(match))
        told.setdefault(key, []).append((tuple(match.get(name) for name in names), row))
    for key in {**known, **told}:
        fault = objection(query, known.get(key, []), told.get(key, []))
        if fault is not None:
            return f"{key}: {fault}; told {told.get(key)} of {known.get(key)}"
    return None


@thorough(phases=WITHOUT_SHRINKING)
@given(TRAILING, st.integers(0, 1 << 30))
def test_rankings_are_decided_with_the_last_of_what_they_compare(situation: Situation, seed: int) -> None:
    made = ranked(situation, seed)
    if made is not None:
        fail_small(made, ranking_difference)


# --- chains of queries ----------------------------------------------------------------------------


def chain_by_reference(each: Chain) -> list[ReferenceResult]:
    """Each query on streams that stay open and of which all before FAR is complete."""
    arrivals: dict[str, list[Arrival]] = {
        iri: [*arrivals_of(events), (FAR, None)] for iri, events in each.streams.items()
    }
    results = []
    for text in each.texts:
        query = load(text)
        found = evaluate(query, arrivals, open_end=True)
        results.append(found)
        if isinstance(query.form, Construct) and query.form.into is not None:
            arrivals[query.form.into.value] = found.written()
    return results


def chain_by_pushes(store: oxiseq.Store, each: Chain, cuts: Iterable[int]) -> list[list[Told]]:
    """What each query of a store reports; batches end where `cuts` says."""
    queries = [load(text) for text in each.texts]
    lives = [store.register(text) for text in each.texts]
    left = {iri: list(events) for iri, events in each.streams.items()}
    waiting: Arrivals = {iri: [] for iri in left}
    ends = {*cuts, len(each.order)}
    for number, iri in enumerate(each.order, start=1):
        waiting[iri].append(left[iri].pop(0))
        if number in ends:
            for stream, some in waiting.items():
                push(store, stream, some)
                some.clear()
    for iri in left:
        store.stream(iri).advance(FAR)
    found = [[of_match(query, match) for match in live.matches()] for query, live in zip(queries, lives, strict=True)]
    assert [live.late_count for live in lives] == [0] * len(lives), "an event was late"
    return found


def chain_difference(each: Chain, opened: Callable[[], oxiseq.Store]) -> str | None:
    expected = chain_by_reference(each)
    if any(result.ambiguous for result in expected):
        return None
    answers = []
    for name, cuts in each.batchings().items():
        with opened() as store:
            found = chain_by_pushes(store, each, cuts)
        for number, (text, result, told) in enumerate(zip(each.texts, expected, found, strict=True), start=1):
            fault = objects(load(text), result, told)
            if fault is not None:
                return f"{name}, query {number}: {fault}"
        answers.append(found)
    return None if all(found == answers[0] for found in answers) else "the order depends on how events are batched"


@thorough()
@given(chains())
def test_chains_of_queries_agree_with_the_reference(each: Chain) -> None:
    fault = chain_difference(each, oxiseq.open)
    if fault is not None:
        pytest.fail("\n".join([*each.texts, str(each.streams), str(each.order), fault]))


def the_issue() -> Chain:
    """A(k1)@0, A(k2)@5, B(k2)@6, B(k1)@9, then only time: k1 is decided at 10, k2 at 15 s."""
    second = 1_000_000
    head = "CONSTRUCT { ?a :kind :x ; :k ?k } INTO STREAM <http://e/r1>"
    pattern = "DEFINE GPM {0} ON S {{ ?{1} :kind :{1} ; :k ?k }}"
    defines = " ".join(pattern.format(name, name.lower()) for name in "ABN")
    first = f"PREFIX : <{E}> {head} WITHIN 10 SECONDS SLIDING FROM STREAM S <{E}s1> WHERE {{ SEQ(A; B; N!) {defines} }}"
    reader = f"PREFIX : <{E}> SELECT ?k FROM STREAM S <{E}r1> WHERE {{ SEQ(X) {pattern.format('X', 'x')} }}"
    facts = [(0, "a", 1), (5, "a", 2), (6, "b", 2), (9, "b", 1), *((time, "tick", 0) for time in range(11, 20))]
    events = [
        (time * second, f'<{E}t{time}> <{E}kind> <{E}{kind}> .\n<{E}t{time}> <{E}k> "{key}" .\n')
        for time, kind, key in facts
    ]
    return Chain((first, reader), {f"{E}s1": events}, (f"{E}s1",) * len(events), (2, 5))


@pytest.mark.parametrize("kind", ["memory", "folder"])
def test_a_reader_of_alerts_loses_none(kind: str, tmp_path: Path) -> None:
    folders = (tmp_path / str(number) for number in range(10))
    opened = oxiseq.open if kind == "memory" else lambda: oxiseq.open(next(folders))
    assert [len(result.rows) for result in chain_by_reference(the_issue())] == [2, 2]
    assert chain_difference(the_issue(), opened) is None


@pytest.mark.parametrize("negation", [True, False])
def test_ticks_go_as_far_as_punctuation_has_come_when_streams_end(negation: bool) -> None:
    """REPORT EVERY of streams of which one has been complete before 4 and none had an event behind 0."""
    define = f"DEFINE GPM {{0}} ON {{1}} {{{{ ?{{0}} <{E}{{0}}> ?v{{0}} }}}}".format
    sequence = "SEQ(A; N! WITHIN PT0.000006S)" if negation else "SEQ(A)"
    defines = define("A", "S1") + (define("N", "S3") if negation else "")
    text = f"""SELECT (COUNT(*) AS ?n) FROM STREAM S1 <{E}s1> FROM STREAM S3 <{E}s3> WHERE {{ {sequence} {defines} }}
    REPORT EVERY PT0.000001S"""
    with oxiseq.open() as store:
        live = store.register(text, lateness="1us")
        store.stream(f"{E}s3").extend([(0, "")])
        store.stream(f"{E}s3").advance(4)
        live.close()
        assert [match.at_us for match in live.matches()] == [1, 2, 3, 4]
