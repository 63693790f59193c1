"""SUPPRESS against its definition, over the rows of the same query without it (semantics.md 2.6a, 2.6c)."""

from __future__ import annotations

import sys
from collections import Counter
from pathlib import Path
from random import Random
from typing import Any

import pytest

sys.path.insert(0, str(Path(__file__).parent))
from engine_runs import STREAM, Driven, E, Reading, query
from loaded import load
from test_at_differential import FAR

import oxiseq
from oxiseq.engine.plan.correlation import correlation
from oxiseq.engine.snapshot.saving import restore, save

pytestmark = pytest.mark.filterwarnings("ignore")
KEYED = "KEYED"
LENGTHS = (1, 4, 30, 400)
"""µs."""


def event(reading: Reading) -> tuple[int, str]:
    thing, integer = f"<{E}{reading.kind}{reading.time}>", "http://www.w3.org/2001/XMLSchema#integer"
    values = f'{thing} <{E}k> "{reading.key}"^^<{integer}> .\n{thing} <{E}v> "{reading.value}"^^<{integer}> .'
    return reading.time, f"{thing} <{E}kind> <{E}{reading.kind}> .\n{values}"


def drawn(seed: int, count: int = 60) -> list[tuple[int, str]]:
    """One reading at each time: the order of matches is that of their events."""
    dice, clock, made = Random(seed), 0, []
    for _ in range(count):
        clock += dice.choice([1, 1, 1, 2, 5])
        made.append(event(Reading(clock, dice.choice("aabbcn"), dice.randint(1, 3), dice.randint(1, 9))))
    return made


def covered(rows: list[Any], length: int, keys: tuple[str, ...], limit: int | None, part: tuple[str, ...]) -> list[Any]:
    """By the definition: the emitted rows, each with how many of its key were dropped before it."""
    emitted: list[Any] = []
    last: dict[Any, int] = {}
    dropped: Counter[Any] = Counter()
    had: Counter[Any] = Counter()
    for row in rows:
        key = tuple(row.get(name) for name in keys)
        share = (row.end_us, *(row.get(name) for name in part))
        if key in last and row.at_us - last[key] < length:
            dropped[key] += 1
        elif limit is None or had[share] < limit:
            had[share] += 1
            emitted.append((row, dropped[key]))
            last[key], dropped[key] = row.at_us, 0
    return emitted


def in_order(match: Any) -> Any:
    """As semantics.md 2.6a puts matches in order, whose events have each a time of their own."""
    events = match.events
    return (
        match.at_us,
        match.end_us,
        sorted(p for of in events.values() for p in of),
        [events[n] for n in sorted(events)],
    )


SHAPES = {
    "one": ("A", "", (), ""),
    "two": ("A : B", "WITHIN PT0.00001S SLIDING", (), ""),
    "next": ("A; B", "WITHIN PT0.00002S", (), ""),
    "last": ("A : B", "WITHIN PT0.00001S SLIDING", (), "LAST "),
    "until time": ("A; N! WITHIN PT0.000004S", "", (), ""),
    "until the window closes": ("A : B; N!", "WITHIN PT0.000008S SLIDING", (), ""),
    "partitions": ("A : B", "WITHIN PT0.00001S SLIDING PARTITION BY ?k", ("k",), ""),
    "repeated": ("A : B:+ : C", "WITHIN PT0.000006S SLIDING", (), ""),
    "consumed": ("A : B", "WITHIN PT0.00001S SLIDING CONSUME BY ANY", (), ""),
    "perhaps": ("A : (B : C)?", "WITHIN PT0.000006S SLIDING", (), ""),
}
BY = {"": (), "BY ?k": ("k",), "BY ?av": ("av",), "BY ?k ?av": ("k", "av")}


def texts(shape: str, by: str, length: int, limit: int | None) -> tuple[str, str]:
    """With SUPPRESS and without it; LIMIT decides the matches of one end together."""
    sequence, window, _, strategy = SHAPES[shape]
    gpms = {name: KEYED for name in "ABCN" if name in sequence}
    plain = query(sequence, window, f"SELECT {strategy}*", **gpms)
    clause = f"SUPPRESS PT{length / 1_000_000:.6f}S {by}"
    shown = query(sequence, f"{window} {clause}", f"SELECT {strategy}?k ?a (SUPPRESSED() AS ?dropped)", **gpms)
    return (f"{shown} LIMIT {limit}", f"{plain} LIMIT 1000000") if limit else (shown, plain)


@pytest.mark.parametrize("limit", [None, 1, 2])
@pytest.mark.parametrize("by", BY)
@pytest.mark.parametrize("shape", SHAPES)
def test_what_is_emitted_is_what_the_definition_says(shape: str, by: str, limit: int | None) -> None:
    some = 0
    for seed, length in enumerate(LENGTHS):
        events = drawn(seed)
        text, plain = texts(shape, by, length, limit)
        part = SHAPES[shape][2]
        rows = sorted(oxiseq.run(plain, streams={STREAM: events}), key=in_order)
        wanted = covered(rows, length, BY[by] or part, limit, part)
        found = list(oxiseq.run(text, streams={STREAM: events}))
        told = [(m.at_us, m.end_us, m.events, m["k"], m["a"], int(m["dropped"].value)) for m in found]
        assert told == [(m.at_us, m.end_us, m.events, m["k"], m["a"], n) for m, n in wanted], (seed, length)
        some += len(rows) - len(found)
        with oxiseq.open() as store:  # event by event
            live = store.register(text)
            for each in events:
                store.stream(STREAM).extend([each])
            store.stream(STREAM).advance(FAR)
            polled = live.poll("0s", idle=None)
            again = [(m.at_us, m.end_us, m["k"], m["a"], int(m["dropped"].value)) for m in polled]
        if "until" not in shape:  # there an open stream leaves the last ones undecided, or time decides them
            assert again == [(*m[:2], *m[3:]) for m in told], (seed, length)
    assert some


GROUPED = f"PREFIX : <{E}> SELECT ?k ?w (COUNT(*) AS ?n) %s FROM STREAM S1 <{STREAM}> WHERE {{ SEQ(A) %s"
GPM = "DEFINE GPM A ON S1 { ?a :kind :a ; :k ?k ; :v ?v BIND(?v > 4 AS ?w) } } GROUP BY ?k ?w HAVING (COUNT(*) > 1)"
REPORTS = ("REPORT ON CONTENT CHANGE", "REPORT EVERY PT0.000003S")


@pytest.mark.parametrize("limit", [None, 1])
@pytest.mark.parametrize(("by", "keys"), [("", ("k", "w")), ("BY ?k", ("k",)), ("BY ?w", ("w",))])
@pytest.mark.parametrize("report", REPORTS)
def test_rows_of_groups_are_dropped_behind_having(
    report: str, by: str, keys: tuple[str, ...], limit: int | None
) -> None:
    for seed, length in enumerate(LENGTHS):
        events = {STREAM: drawn(seed)}
        plain = GROUPED % ("", f"{GPM} {report}")
        rows = sorted(oxiseq.run(plain, streams=events), key=lambda m: (m.at_us, m.end_us, str(m["k"]), str(m["w"])))
        wanted = [(m.at_us, m["k"], m["w"], m["n"], n) for m, n in covered(rows, length, keys, limit, ())]
        ending = f" LIMIT {limit} " if limit else " "
        text = GROUPED % (
            f"(SUPPRESSED() AS ?dropped) SUPPRESS PT{length / 1_000_000:.6f}S {by}",
            GPM + ending + report,
        )
        found = oxiseq.run(text, streams=events)
        assert [(m.at_us, m["k"], m["w"], m["n"], int(m["dropped"].value)) for m in found] == wanted, (seed, length)


@pytest.mark.parametrize("by", ["BY ?k", ""])
@pytest.mark.parametrize("shape", SHAPES)
def test_a_run_that_is_saved_and_restored_after_each_event_emits_the_same(shape: str, by: str) -> None:
    text, _ = texts(shape, by, 9, None)
    events = drawn(1, 300)
    whole = Driven(text)
    whole.push_text(events)
    wanted = whole.advance()
    driven, found = Driven(text), []
    for each in events:
        driven.push_text([each])
        found += driven.advance()
        again = Driven(text)
        again.run = restore(save(driven.run, driven.terms), again.plan, again.terms, again.kb)
        driven = again
    assert wanted and found == wanted


def test_the_best_of_an_instant_is_taken_where_its_key_is_not_covered() -> None:
    text = query("A : B", "SUPPRESS PT0.000002S BY ?k", "SELECT ?av", A=KEYED, B="")
    readings = [Reading(1, "a", 1, 5), Reading(2, "a", 2, 3), Reading(3, "b", 7, 7), Reading(4, "b", 7, 7)]
    found = Driven(f"{text} ORDER BY ?av LIMIT 1").answer(readings)
    assert [(time, int(values[0].split('"')[1])) for time, values, _ in found] == [(3, 3), (4, 5)]


def test_keys_that_cover_nothing_are_forgotten() -> None:
    text = query("A", "SUPPRESS PT0.00001S BY ?ak", "SELECT ?a")
    driven = Driven(text)
    driven.answer([Reading(20 * n, "a", n) for n in range(1, 5_000)])
    assert driven.run.records < 2_000


def test_a_cluster_deals_events_out_by_a_key_that_suppress_tells_apart() -> None:
    apart = query("A; B", "PARTITION BY ?k SUPPRESS PT1S BY ?k ?a WITHIN PT1S", "SELECT ?k", A=KEYED, B=KEYED)
    together = apart.replace("BY ?k ?a", "BY ?a")
    plans = [Driven(text).plan for text in (apart, together)]
    assert [v.value for v in correlation(plans[0]).by] == ["k"]
    assert correlation(plans[1]).reason == "SUPPRESS compares the matches of all values"


def test_the_text_comes_back() -> None:
    text = query("A", "SUPPRESS PT10M BY ?ak", "SELECT ?a")
    assert load(oxiseq.grammar.render(load(text))) == load(text)
