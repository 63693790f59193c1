"""The best matches of an instant, samples and the i-th one: on the compact set, without listing (semantics.md 2.6b)."""

from __future__ import annotations

import heapq
import sys
from collections import Counter
from pathlib import Path

import numpy as np
import pytest

sys.path.insert(0, str(Path(__file__).parent))
from engine_runs import STREAM, Driven, Reading, Row, query, random_readings, readings_batch
from loaded import load
from pyoxigraph import Store

from oxiseq.engine.bounds import InstantBounds
from oxiseq.engine.errors import LimitError
from oxiseq.engine.kb import StoreKb
from oxiseq.engine.kernels.matches.records import PLACE_BITS
from oxiseq.engine.kernels.sequence.records import Memory
from oxiseq.engine.matches.frozen import FrozenMatches
from oxiseq.engine.matches.memory import put_matches
from oxiseq.engine.matches.sampling import sample
from oxiseq.engine.plan.correlation import correlation
from oxiseq.engine.plan.query import compile_query
from oxiseq.engine.run.query import QueryRun
from oxiseq.engine.snapshot.saving import restore, save
from oxiseq.engine.terms import dictionary
from oxiseq.engine.terms.dictionary import TermDictionary
from oxiseq.languages.sequences.explain import explain


def loop(count: int) -> list[Reading]:
    """One A, so many B's with values, one C: 2^count - 1 matches of A : B:+ : C."""
    values = [Reading(2 + i, "b", value=(i * 37) % 100) for i in range(count)]
    return [Reading(1, "a"), *values, Reading(count + 2, "c")]


def answers(text: str, readings: list[Reading]) -> list[tuple[str, ...]]:
    return [tuple(column.strip('"').split('"')[0] for column in row[1]) for row in Driven(text).answer(readings)]


# --- the best -------------------------------------------------------------------------------------


def sums(count: int, wanted: int) -> list[int]:
    """The largest sums of values of a subset that has at least one."""
    dear = sorted((i * 37) % 100 for i in range(count))
    less = [0]  # what leaving some out costs; the cheapest first
    for value in dear:
        less = heapq.nsmallest(wanted, [*less, *(each + value for each in less)])
    return [sum(dear) - each for each in less]


@pytest.mark.parametrize("count", [3, 30, 200])
def test_the_best_of_very_many(count: int) -> None:
    text = query("A : B:+ : C", select="SELECT (SUM(?bv) AS ?s)") + " ORDER BY DESC(SUM(?bv)) LIMIT 10"
    wanted = sums(count, 10)[: 2**count - 1]
    assert [int(row[0]) for row in answers(text, loop(count))] == wanted


def test_more_than_can_be_counted_still_have_a_best_one() -> None:
    text = query("A : B:+ : C", select="SELECT (COUNT(B) AS ?n)") + " ORDER BY DESC(COUNT(B)) LIMIT 1"
    assert answers(text, loop(4_500)) == [("4500",)]


def test_offset_leaves_the_first_ones_out() -> None:
    text = query("A : B:+ : C", select="SELECT (SUM(?bv) AS ?s)") + " ORDER BY DESC(SUM(?bv)) LIMIT "
    whole = answers(text + "10", loop(30))
    assert answers(text + "4 OFFSET 3", loop(30)) == whole[3:7]


def test_ties_go_to_what_happened_first() -> None:
    text = query("A : B : C", select="SELECT (TIMEOF(A) AS ?x) (TIMEOF(B) AS ?y)") + " ORDER BY ENDTIME() LIMIT 3"
    readings = [Reading(t, kind) for t, kind in enumerate("aabbab")] + [Reading(9, "c")]
    found = [tuple(t for _, t in row[2]) for row in Driven(text).answer(readings)]
    assert found == [(0, 2, 9), (0, 3, 9), (0, 5, 9)]


def test_the_latest_first_in_a_sliding_window() -> None:
    text = query("A : B : C", "WITHIN PT0.00003S SLIDING") + " ORDER BY DESC(STARTTIME()) LIMIT 4"
    every = query("A : B : C", "WITHIN PT0.00003S SLIDING")
    readings = random_readings(11, 120, "abc")
    ends: dict[int, list[tuple[int, ...]]] = {}
    for end, _, events in Driven(every).answer(readings):
        ends.setdefault(end, []).append(tuple(t for _, t in events))
    found: dict[int, list[int]] = {}
    for end, _, events in Driven(text).answer(readings):
        found.setdefault(end, []).append(events[0][1])
    assert found == {end: sorted((m[0] for m in all_), reverse=True)[:4] for end, all_ in ends.items()}


def test_what_has_to_be_listed_has_a_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(dictionary, "BOUNDS", InstantBounds(matches=1_000))
    text = query("A : B:+ : C") + " ORDER BY MAX(?bv) LIMIT 1"
    assert len(answers(text, loop(9))) == 1
    with pytest.raises(LimitError, match="matches that end at one instant"):
        answers(text, loop(12))


def test_what_a_filter_drops_of_too_many_is_no_answer(monkeypatch: pytest.MonkeyPatch) -> None:
    """The kernel stops behind so many matches: the best may be among those that it did not find."""
    monkeypatch.setattr(dictionary, "BOUNDS", InstantBounds(matches=1_000))
    text = query("A : B:+ : C").replace("C)", "C) FILTER(MAX(?bv) > 10)", 1) + " ORDER BY MAX(?bv) LIMIT 1"
    assert len(answers(text, loop(9))) == 1
    with pytest.raises(LimitError, match="matches that end at one instant"):
        answers(text, loop(12))


def test_numbers_that_cannot_be_added_are_compared_by_listing() -> None:
    readings = [Reading(1, "a"), *(Reading(2 + i, "b", value=(1 << 60) + i) for i in range(6)), Reading(9, "c")]
    text = query("A : B:+ : C", select="SELECT (SUM(?bv) AS ?s)") + " ORDER BY DESC(SUM(?bv)) LIMIT 2"
    assert [int(row[0]) for row in answers(text, readings)] == [(6 << 60) + 15, (5 << 60) + 15]


def test_decimals_are_added_exactly() -> None:
    gpms = ("A ON S { ?a :a ?x }", "B ON S { ?b :b ?y }", "C ON S { ?c :c ?z }")
    text = (
        "PREFIX : <http://e/> SELECT ?y ?z FROM STREAM S <http://e/s1> WHERE { SEQ(A : B : C) "
        + " ".join(f"DEFINE GPM {gpm}" for gpm in gpms)
        + " } ORDER BY DESC(?y + 0.5 * ?z) LIMIT 1"
    )
    driven = Driven(text)
    events = [(1, "<http://e/1> <http://e/a> 1 .")]
    events += [(2 + i, f"<http://e/1> <http://e/b> {value} .") for i, value in enumerate(("0.3", "0.30000001", "0.1"))]
    driven.push_text([*events, (9, "<http://e/1> <http://e/c> 0.2 .")])
    assert [row[1][0].split('"')[1] for row in driven.advance() + driven.finish()] == ["0.30000001"]


# --- samples and the i-th -------------------------------------------------------------------------


class Sets:
    """Takes the sets of all instants with matches; those are listed too, or none."""

    def __init__(self, listing: bool) -> None:
        self.found: list[FrozenMatches] = []
        self._listing = listing

    def pick(self, S: Memory, rows: object) -> Memory:
        self.found.append(FrozenMatches(S._replace(nodes=S.nodes.copy(), finals=S.finals.copy())))
        return S if self._listing else put_matches(S, [])


def sets_of(
    sequence: str, readings: list[Reading], window: str = "", *, listing: bool = True
) -> tuple[list[FrozenMatches], list[list[int]]]:
    """The sets, and the matches that the run lists."""
    driven, sets = Driven(query(sequence, window) + " SAMPLE 1000000"), Sets(listing)
    driven.run.finder.sequence._choice = sets
    rows = driven.answer(readings)
    return sets.found, [[time for _, time in events] for _, _, events in rows]


@pytest.mark.parametrize(
    ("sequence", "window"),
    [
        ("A : B:+ : C", "WITHIN 16 EVENTS"),
        ("A; B;+; C", "WITHIN 20 EVENTS SLIDING"),
        ("A : B? : C", "WITHIN 30 EVENTS"),
        ("A : (B : C)+", "WITHIN 12 EVENTS SLIDING"),
        ("A:+", "WITHIN 9 EVENTS SLIDING"),
        ("A : (B | C); N", ""),
    ],
)
def test_the_ith_match_is_the_ith_that_is_listed(sequence: str, window: str) -> None:
    dice = np.random.default_rng(3)
    readings = [Reading(t, "abcn"[dice.integers(4)]) for t in range(60)]
    sets, listed = sets_of(sequence, readings, window)
    found = [set_.at(i) for set_ in sets for i in range(set_.count)]
    assert len(found) == len(listed) > 20
    assert [len(rows) for rows in found] == [len(times) for times in listed]
    # row ids and times name the same events in the same order
    rows = [row >> PLACE_BITS for match in found for row in match.tolist()]
    times = [time for match in listed for time in match]
    assert len(set(zip(rows, times, strict=True))) == len(set(rows)) == len(set(times))
    with pytest.raises(IndexError):
        sets[0].at(sets[0].count)


def test_numbers_of_matches_are_exact() -> None:
    sets, _ = sets_of("A : B:+ : C", loop(18), listing=False)
    assert [each.count for each in sets] == [2**18 - 1]
    assert sets[0].exceeds(2**18 - 2)
    assert not sets[0].exceeds(2**18 - 1)


def test_a_sample_has_every_set_of_matches_alike() -> None:
    """Chi-square over 10^5 draws of one of 127 matches, and of pairs; the seeds are fixed."""
    counts = Counter(sample(127, 1, f"{seed} one")[0] for seed in range(100_000))
    expected = 100_000 / 127
    assert sum((counts[i] - expected) ** 2 / expected for i in range(127)) < 166.99  # 99 % of 126 degrees
    pairs = Counter(tuple(sample(9, 2, f"{seed} two")) for seed in range(20_000))
    assert len(pairs) == 36
    assert sum((n - 20_000 / 36) ** 2 / (20_000 / 36) for n in pairs.values()) < 57.34  # 99 % of 35


def test_samples_of_a_stream_are_uniform() -> None:
    """A loop of 2^3 - 1 matches, 2,000 times: each is drawn as often as any other."""
    text = query("A : B:+ : C", "WITHIN 5 EVENTS") + " SAMPLE 1 SEED 5"
    readings = [Reading(10 * i + each.time, each.kind) for i in range(2_000) for each in loop(3)]
    counts = Counter(tuple(t % 10 for _, t in events) for _, _, events in Driven(text).answer(readings))
    expected = 2_000 / 7
    assert len(counts) == 7
    assert sum((n - expected) ** 2 / expected for n in counts.values()) < 16.81  # 99 % of 6 degrees


def test_a_sample_of_very_many_is_drawn_again_by_a_replay() -> None:
    text = query("A : B:+ : C") + " SAMPLE 5 SEED "
    first = Driven(text + "1").answer(loop(200))
    assert len(set(first)) == 5
    assert Driven(text + "1").answer(loop(200)) == first
    assert Driven(text + "2").answer(loop(200)) != first


def test_a_sample_of_more_than_can_be_counted_is_refused() -> None:
    with pytest.raises(LimitError, match="binary digits"):
        Driven(query("A : B:+ : C") + " SAMPLE 5").answer(loop(4_500))


# --- of a window, when it closes --------------------------------------------------------------------

CLOSES = " REPORT ON WINDOW CLOSE"


@pytest.mark.parametrize("window", ["WITHIN PT0.00002S", "WITHIN 16 EVENTS"])
@pytest.mark.parametrize("tail", ["DESC(?av) ?bv LIMIT 3", "DESC(?av) ?bv LIMIT 2 OFFSET 1", "DESC(?av) ?bv"])
def test_the_best_of_each_window(window: str, tail: str) -> None:
    readings, size = random_readings(3, 150, "abc"), 20
    select = "SELECT ?av ?bv"
    numbers = {time: i for i, time in enumerate(sorted({reading.time for reading in readings}))}
    begin, times = readings[0].time, sorted(numbers)
    windows: dict[int, list[tuple[int, int, tuple[tuple[str, int], ...]]]] = {}
    for end, (a, b), events in Driven(query("A : B : C", window, select)).answer(readings):
        if "EVENTS" in window:
            close = times[min(numbers[end] // 16 * 16 + 16, len(times)) - 1]
        else:
            close = begin + ((end - begin) // size + 1) * size - 1
        windows.setdefault(close, []).append((-int(a.split('"')[1]), int(b.split('"')[1]), events))
    low = 1 if "OFFSET" in tail else 0
    high = 3 if "LIMIT" in tail else None
    best = {close: [each[:2] for each in sorted(all_)[low:high]] for close, all_ in windows.items()}
    found: dict[int, list[tuple[int, int]]] = {}
    for at, (a, b), _ in Driven(query("A : B : C", window, select) + " ORDER BY " + tail + CLOSES).answer(readings):
        found.setdefault(at, []).append((-int(a.split('"')[1]), int(b.split('"')[1])))
    assert found == {close: each for close, each in best.items() if each}
    assert list(found) == sorted(found)


def test_the_best_of_a_window_of_very_many() -> None:
    """Three loops of 30 B's, each of 2^30 - 1 matches."""
    text = query("A : B:+ : C", "WITHIN 100 EVENTS", select="SELECT (SUM(?bv) AS ?s)") + " ORDER BY DESC(SUM(?bv))"
    readings = [*loop(30), Reading(40, "c"), Reading(41, "c")]
    best = sums(30, 10)
    assert [int(row[0]) for row in answers(text + " LIMIT 12" + CLOSES, readings)] == [
        s for s in best for _ in range(3)
    ][:12]


def test_a_sample_of_a_window_has_all_its_matches_alike() -> None:
    """Windows of 6 events with 1 + 3 + 3 matches that end at three instants: chi-square over 700 windows."""
    kinds = "abcbcc"
    readings = [Reading(6 * i + place, kind) for i in range(700) for place, kind in enumerate(kinds)]
    each = {tuple(t for _, t in row[2]) for row in Driven(query("A : B:+ : C")).answer(readings[:6])}
    assert len(each) == 1 + 3 + 3
    text = query("A : B:+ : C", "WITHIN 6 EVENTS")
    rows = Driven(f"{text} SAMPLE 1 SEED 3{CLOSES}").answer(readings)
    counts = Counter(tuple(t % 6 for _, t in events) for _, _, events in rows)
    expected = 700 / 7
    assert set(counts) == each
    assert sum((n - expected) ** 2 / expected for n in counts.values()) < 16.81  # 99 % of 6 degrees
    pairs = Counter(
        frozenset(tuple(t % 6 for _, t in events) for _, _, events in two)
        for two in by_window(Driven(f"{text} SAMPLE 2 SEED 3{CLOSES}").answer(readings)).values()
    )
    expected = 700 / 21
    assert len(pairs) == 21
    assert sum((n - expected) ** 2 / expected for n in pairs.values()) < 37.57  # 99 % of 20 degrees
    assert len(Driven(f"{text} SAMPLE 9{CLOSES}").answer(readings)) == 7 * 700


def by_window(rows: list[Row]) -> dict[int, list[Row]]:
    found: dict[int, list[Row]] = {}
    for row in rows:
        found.setdefault(row[0], []).append(row)
    return found


def test_a_window_has_the_best_of_all_partitions() -> None:
    select = "SELECT ?k ?av"
    text = query("A : B", "WITHIN PT0.00002S PARTITION BY ?k", A="KEYED", B="KEYED", select=select)
    readings = random_readings(5, 80, "ab")
    begin = readings[0].time
    best: dict[int, list[int]] = {}
    for end, (_, value), _ in Driven(text).answer(readings):
        best.setdefault(begin + ((end - begin) // 20 + 1) * 20 - 1, []).append(int(value.split('"')[1]))
    rows = Driven(text + " ORDER BY DESC(?av) LIMIT 2" + CLOSES).answer(readings)
    found = {at: [int(row[1][1].split('"')[1]) for row in each] for at, each in by_window(rows).items()}
    assert found == {at: sorted(each, reverse=True)[:2] for at, each in best.items()}
    assert len({row[1][0] for row in rows}) > 1


def test_a_window_closes_without_a_later_match() -> None:
    driven = Driven(query("A : B", "WITHIN PT0.00001S") + " ORDER BY ?av LIMIT 1" + CLOSES)
    driven.push([Reading(5, "a"), Reading(6, "b"), Reading(7, "n")])
    assert driven.advance() == []
    assert driven.run.waits
    assert driven.run.deadline == 14
    driven.run.punctuate(STREAM, 15)
    assert [row[0] for row in driven.advance()] == [14]
    assert not driven.run.waits
    assert driven.run.deadline is None


def test_all_matches_of_a_window_have_a_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(dictionary, "BOUNDS", InstantBounds(matches=10))
    readings = [Reading(t, "ab"[t % 2]) for t in range(12)]
    for tail in ("", " LIMIT 11", " LIMIT 2 OFFSET 99999999999999999999"):
        with pytest.raises(LimitError, match="kept until it closes"):
            Driven(query("A : B", "WITHIN 20 EVENTS") + f" ORDER BY ?av{tail}{CLOSES}").answer(readings)
    limited = Driven(query("A : B", "WITHIN 20 EVENTS") + " ORDER BY ?av LIMIT 9" + CLOSES)
    assert len(limited.answer(readings)) == 9


# --- with the rest --------------------------------------------------------------------------------


def test_each_partition_has_its_best() -> None:
    text = query("A : B", "PARTITION BY ?k", A="KEYED", B="KEYED", select="SELECT ?k ?bv ?av")
    readings = random_readings(5, 80, "ab")
    best: dict[tuple[int, str], list[tuple[int, ...]]] = {}
    for end, (key, b, a), _ in Driven(text).answer(readings):
        best.setdefault((end, key), []).append((-int(b.split('"')[1]), int(a.split('"')[1])))
    found: dict[tuple[int, str], list[tuple[int, ...]]] = {}
    for end, (key, b, a), _ in Driven(text + " ORDER BY DESC(?bv) ?av LIMIT 2").answer(readings):
        found.setdefault((end, key), []).append((-int(b.split('"')[1]), int(a.split('"')[1])))
    assert found == {group: sorted(all_)[:2] for group, all_ in best.items()}


@pytest.mark.parametrize(
    "tail",
    [
        "ORDER BY DESC(?bv) LIMIT 2",
        "SAMPLE 2",
        "ORDER BY MAX(?bv) LIMIT 2",
        "ORDER BY DESC(?bv) LIMIT 2 OFFSET 1 REPORT ON WINDOW CLOSE",
        "SAMPLE 2 REPORT ON WINDOW CLOSE",
    ],
)
def test_a_run_goes_on_from_its_snapshot(tail: str) -> None:
    window = "WITHIN 25 EVENTS" if "CLOSE" in tail else "WITHIN 25 EVENTS SLIDING"
    text = query("A : B;+ : C" if "MAX" in tail else "A : B : C", window) + " " + tail
    readings, kb = random_readings(8, 120, "abc"), StoreKb(Store())
    whole = Driven(text).answer(readings)
    terms = TermDictionary()
    plan = compile_query(load(text), terms)
    run = QueryRun(plan, terms, kb)
    found: list[tuple[int, tuple[int, ...]]] = []
    for low in range(0, len(readings), 10):
        run.push(STREAM, readings_batch(terms, readings[low : low + 10]))
        found += ends_and_events(run)
        data, terms = save(run, terms), TermDictionary()
        run = restore(data, compile_query(load(text), terms), terms, kb)
    run.close()
    assert found + ends_and_events(run) == [(row[0], tuple(t for _, t in row[2])) for row in whole]


def ends_and_events(run: QueryRun) -> list[tuple[int, tuple[int, ...]]]:
    return [
        (int(batch.time[m]), tuple(batch.event_time[batch.ends[m] : batch.ends[m + 1]].tolist()))
        for batch in run.advance()
        for m in range(len(batch))
    ]


@pytest.mark.parametrize(
    ("tail", "says"),
    [
        ("ORDER BY DESC(SUM(?bv)) LIMIT 3", "without listing the others"),
        ("SAMPLE 3", "without listing the others"),
        ("ORDER BY ?bv LIMIT 3", "?bv is that of the last iteration"),
        ("ORDER BY AVG(?bv) LIMIT 3", "AVG(?bv) is no sum over the events of a match"),
        ("ORDER BY ?av", "there is no LIMIT"),
        ("ORDER BY ?av LIMIT 2000000", "LIMIT and OFFSET are more than 1048576"),
        ("ORDER BY ?av LIMIT 3 REPORT ON WINDOW CLOSE", "the best so far of each window kept until it closes"),
        ("ORDER BY ?av REPORT ON WINDOW CLOSE", "all matches, 1048576 at most, of each window kept"),
        ("SAMPLE 3 REPORT ON WINDOW CLOSE", "a sample of 3 of each window kept until it closes"),
    ],
)
def test_explain_says_how(tail: str, says: str) -> None:
    window = "WITHIN 1 MINUTE" if "CLOSE" in tail else ""
    plan = compile_query(load(query("A : B:+ : C", window) + " " + tail), TermDictionary())
    assert any(says in clause for clause in explain(plan).clauses)


@pytest.mark.parametrize("tail", ["ORDER BY ?av", "SAMPLE 2"])
def test_a_ranking_over_all_values_is_not_dealt_out(tail: str) -> None:
    text = query("A : B", "WITHIN 1 MINUTE {}", A="KEYED", B="KEYED")
    whole = compile_query(load(text.replace("{}", "", 1) + " " + tail), TermDictionary())
    assert correlation(whole).reason == "ORDER BY and SAMPLE choose among the matches of all values"
    parted = compile_query(load(text.replace("{}", "PARTITION BY ?k", 1) + " " + tail), TermDictionary())
    assert correlation(parted).reason == ""
    closing = compile_query(load(text.replace("{}", "PARTITION BY ?k", 1) + f" {tail}" + CLOSES), TermDictionary())
    assert "in all partitions" in correlation(closing).reason
