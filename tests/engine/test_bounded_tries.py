"""What comes at an instant tries so many partial matches at most; else it is as if nothing had come there, for that
query: alone, among others, in whatever batches, and after a restart."""

from __future__ import annotations

import random
import re
from collections.abc import Iterable, Sequence
from contextlib import suppress
from datetime import datetime
from typing import Any, NamedTuple

import numpy as np
import pytest
from loaded import load
from pyoxigraph import Store
from restarted import lasted

import oxiseq
from oxiseq.engine.automaton.automaton import SharedAutomaton
from oxiseq.engine.automaton.run import CommonRun
from oxiseq.engine.bounds import SERVED, InstantBounds
from oxiseq.engine.errors import LimitError
from oxiseq.engine.kb import StoreKb
from oxiseq.engine.kernels.sequence import records as k
from oxiseq.engine.sequence.run import SequenceRun
from oxiseq.engine.terms import dictionary

pytestmark = pytest.mark.filterwarnings("ignore::oxiseq.LintWarning")
E = "http://e/"
SLIDING = "WITHIN 20 SECONDS SLIDING"
GPMS = {
    "A": "?x :v ?a",
    "B": "?y :w ?b",
    "C": "?z :c ?c",
    "K": "?x :v ?a ; :k ?k",
    "L": "?y :w ?b ; :k ?k",
    "M": "?x :w ?n",
    "N": "?x :c ?n",
    "P": "?x :c ?c ; :k ?k",
}


def query(pattern: str, select: str = "?b", within: str = SLIDING, tail: str = "", **filters: str) -> str:
    """A SEQ of some of these GPMs, with FILTERs."""
    defined = " ".join(
        f"DEFINE GPM {name} ON S {{ {GPMS[name]} {f'FILTER({filters[name]})' if name in filters else ''} }}"
        for name in dict.fromkeys(re.findall(r"\b[A-Z]\b", pattern))
    )
    return f"PREFIX : <{E}> SELECT {select} {within} FROM STREAM S :s WHERE {{ SEQ({pattern}) {defined} }} {tail}"


TEXTS = {
    "plain": query("A ; B", B="?a + ?b = 7"),
    "another": query("A ; B", B="?a + ?b = 9"),
    "the very next": query("A , B", B="?a + ?b = 8"),
    "repeated": query("A ; B+", B="?a + ?b > 6"),
    "counted": query("A ; B", "(COUNT(*) AS ?n)", tail="GROUP BY (ENDTIME())", B="?a + ?b = 7"),
    "a loose threshold": query("A ; B", A="?a > 0", B="?a + ?b = 7"),
    "a threshold": query("A ; B", A="?a > 2", B="?a + ?b = 7"),
    "a strict threshold": query("A ; B", A="?a > 4", B="?a + ?b = 7"),
    "decided by Python": query("A ; B", B="CONTAINS(STR(?a), STR(?b))"),
    "LIMIT": query("A ; B", tail="LIMIT 2", B="?a + ?b = 7"),
    "MAX": query("A ; B", "MAX ?a ?b", B="?a + ?b = 7"),
    "a negation": query("A ; B! ; C", "?a ?c", B="?a + ?b = 7"),
    "a negation by a variable": query("A ; M! ; C", "?a ?c", C="?a + ?c > 4"),
    "a leading negation": query("N! ; A ; B", "?a ?b", B="?a + ?b > 4"),
    "a trailing negation": query("A ; B ; N! WITHIN 3 SECONDS", "?a ?b", B="?a + ?b > 4"),
    "events": query("A ; B", within="WITHIN 9 EVENTS SLIDING", B="?a + ?b = 7"),
    "partitions": query("K ; L", "?a ?b", L="?a + ?b = 7").replace(" WHERE", " PARTITION BY ?k WHERE"),
    "other partitions": query("K ; L", "?a ?b", L="?a + ?b > 7").replace(" WHERE", " PARTITION BY ?k WHERE"),
}
AMONG = (
    [*TEXTS],
    ["a loose threshold", "a threshold", "a strict threshold", "a negation"],
    ["plain", "a negation by a variable"],
    ["partitions", "other partitions"],
)
Events = Sequence[tuple[int, str]]


def stream(seed: int) -> list[tuple[int, str]]:
    """Events of several triples each, which have several mappings, of one partition or of several."""
    dice, time, found = random.Random(seed), 0, []
    for _ in range(40):
        time += dice.choice([1, 1, 1, 2, 3, 8])
        predicate, triples = dice.choice("vwvwc"), []
        for _ in range(dice.choice([1, 2, 2, 4, 7])):
            key = dice.randrange(2) if dice.random() < 0.8 else 2
            triples.append(f"<{E}x{dice.randrange(5)}> <{E}{predicate}> {dice.randrange(9)} ; <{E}k> {key} .")
        found.append((time * 1_000_000, " ".join(triples)))
    return [*found, (time * 1_000_000 + 10**9, f"<{E}a> <{E}other> 1 .")]


class Told(NamedTuple):
    omitted: int
    failed: bool
    instants: tuple[str, ...]
    matches: list[tuple[int, str]]


def told(texts: Iterable[str], events: Events, size: int, language: str = "spaseq") -> list[Told]:
    """What queries find in one store to which so many events are pushed at a time."""
    store = oxiseq.Store()
    queries = [store.register(text, language=language) for text in texts]
    for low in range(0, len(events), size):
        with suppress(LimitError):
            store.stream(E + "s").extend(events[low : low + size])
    return [
        Told(q.omitted, q.failed, q.omitted_instants, [(match.at_us, str(match)) for match in q.matches()])
        for q in queries
    ]


def instants_of(told: Told) -> set[int]:
    """Those left out (µs)."""
    texts = [re.search("the instant ([^ ]*)Z", line) for line in told.instants]
    return {round(datetime.fromisoformat(f"{text[1]}+00:00").timestamp() * 1e6) for text in texts if text}


@pytest.mark.parametrize(("seed", "reads"), [(0, 200), (1, 300), (2, 400)])
def test_each_finds_among_others_and_in_any_batches_what_it_finds_alone(
    monkeypatch: pytest.MonkeyPatch, seed: int, reads: int
) -> None:
    monkeypatch.setattr(dictionary, "BOUNDS", InstantBounds(reads=reads))
    events, stops = stream(seed), list[int]()

    def stopped(self: CommonRun, at: int, usual: object = CommonRun._leave_out) -> None:
        stops.append(at)
        usual(self, at)  # type: ignore[operator]

    monkeypatch.setattr(CommonRun, "_leave_out", stopped)
    alone = {name: told([text], events, 1000)[0] for name, text in TEXTS.items()}
    assert sum(each.omitted > 0 for each in alone.values()) > 5 and not stops
    for name, text in TEXTS.items():
        assert told([text], events, 1) == [alone[name]], name
    for names in AMONG:
        for size in (1, 3, 1000):
            assert told([TEXTS[name] for name in names], events, size) == [alone[name] for name in names], names
    assert any(stops)


PARTED = [
    query(pattern, "?a ?b", L=f"?a + ?b {compared}").replace(" WHERE", " PARTITION BY ?k WHERE")
    for pattern in ("K ; L", "K , L", "K ; P! ; L")
    for compared in ("= 7", "> 6", "> 11")
]


@pytest.mark.parametrize("seed", range(3))
def test_an_instant_of_one_partition_is_left_out(monkeypatch: pytest.MonkeyPatch, seed: int) -> None:
    """Others at the same time have been worked through, or are worked through then."""
    monkeypatch.setattr(dictionary, "BOUNDS", InstantBounds(reads=200))
    dice, events, placed = random.Random(seed), list[tuple[int, str]](), list[int]()
    for time in range(60):
        keys, predicate = dice.sample(range(4), 3), dice.choice("vvwwc")
        graph = " ".join(
            f"<{E}x{key}{n}> <{E}{predicate}> {dice.randrange(9)} ; <{E}k> {key} ."
            for key in keys
            for n in range(dice.choice([1, 1, 2, 5]))
        )
        events.append((time * 1_000_000, graph))
    usual = SharedAutomaton._stop

    def stopped(self: SharedAutomaton, *given: Any) -> int:
        done = usual(self, *given)
        placed.append(self._placed)
        return done

    monkeypatch.setattr(SharedAutomaton, "_stop", stopped)
    alone = [told([text], events, 1000)[0] for text in PARTED]
    assert sum(each.omitted for each in alone) > 5 and sum(len(each.matches) for each in alone) > 50
    for size in (1, 4, 1000):
        assert told(PARTED, events, size) == alone
    assert {0, 1, 2} <= {*placed}


@pytest.mark.parametrize("seed", range(3))
def test_nothing_comes_at_an_instant_that_is_left_out(monkeypatch: pytest.MonkeyPatch, seed: int) -> None:
    """What is found is what is found where something else comes there, up to the instant that stops the query."""
    events, left = stream(seed), 0
    for name, text in TEXTS.items():
        if "partitions" in name:
            continue  # an instant of one is left out, not those of others at the same time
        monkeypatch.setattr(dictionary, "BOUNDS", InstantBounds(reads=600))
        bounded = told([text], events, 1000)[0]
        instants = instants_of(bounded)
        assert len(instants) == bounded.omitted
        left += len(instants)
        until = max(instants) if bounded.failed else 1 << 62
        others = [(at, f"<{E}a> <{E}other> 1 ." if at in instants else graph) for at, graph in events]
        monkeypatch.setattr(dictionary, "BOUNDS", InstantBounds())
        whole = told([text], others, 1000)[0]
        assert [row for row in bounded.matches if row[0] < until] == [row for row in whole.matches if row[0] < until]
        assert bounded.failed or bounded.matches == whole.matches
    assert left > 10


@pytest.mark.parametrize("extra", [0, 1])
def test_tries_are_counted(monkeypatch: pytest.MonkeyPatch, extra: int) -> None:
    """Each mapping is tried against each partial match that lives; those of other queries are not counted."""
    events = [(1_000_000, 20, "v"), (30_000_000, 30, "v"), (31_000_000, 40, "w")]
    graphs = [(at, " ".join(f"<{E}{n}> <{E}{name}> {n} ." for n in range(count))) for at, count, name in events]
    graphs.append((40_000_000, f"<{E}a> <{E}other> 1 ."))
    filtered = {
        "short": ("?a + ?b = -1", 1200),
        "long": (" + ".join(["?a", "?b"] * 20) + " = -1", 1200 * (1 + (124 >> k.WORDS_BITS))),
        "Python's": ("CONTAINS(STR(?a), STR(?b + 100))", 1200 * (1 + k.FOR_QUESTION)),
        "made": ("?a + ?b >= 0", 1200 * (1 + k.FOR_MADE) + 40 * k.FOR_MADE),
    }
    for condition, reads in filtered.values():
        monkeypatch.setattr(dictionary, "BOUNDS", InstantBounds(reads=reads - extra))
        for texts in ([query("A ; B", B=condition)], [query("A ; B", B=condition), query("A ; C", "?c")]):
            found = told(texts, graphs, 1)
            assert [each.omitted for each in found] == [extra, 0][: len(texts)], condition
            assert not extra or f"{reads - extra + 1} given, at most {reads - extra} allowed" in found[0].instants[0]


@pytest.mark.parametrize("name", TEXTS)
def test_a_run_that_is_saved_continues_alike(monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    monkeypatch.setattr(dictionary, "BOUNDS", InstantBounds(reads=500))
    text, kb = load(TEXTS[name]), StoreKb(Store())
    once, again = (lasted(text, E + "s", stream(1), kb, restarts=restarts)[:2] for restarts in (False, True))
    assert once == again


@pytest.mark.parametrize("size", [1, 1000])
def test_joins_of_ceql_are_bounded(monkeypatch: pytest.MonkeyPatch, size: int) -> None:
    """A B that comes after 105 A's is tried against too many; three running stop the query."""
    monkeypatch.setattr(dictionary, "BOUNDS", InstantBounds(reads=40 + 2 * k.FOR_MADE))
    text = f"VOCAB <{E}> SELECT * FROM s WHERE (A AS a ; B AS b) FILTER b[x + 7 = a.y] WITHIN 500 SECONDS"
    events = list[tuple[int, str]]()
    for first, count, ends in ((0, 40, 2), (1000, 105, 1), (2000, 40, 1), (3000, 105, 4)):
        graphs = [f"a <{E}A> ; <{E}y> {y}" for y in range(count)] + [f"a <{E}B> ; <{E}x> {x}" for x in range(ends)]
        events += [((first + at) * 1_000_000, f"<{E}e> {graph} .") for at, graph in enumerate(graphs)]
    (found,) = told([text], events, size, "ceql")
    assert found.failed and found.omitted == 4
    assert max(instants_of(found)) == 3_107_000_000
    assert [at // 1_000_000 for at, _ in found.matches] == [40, 41, 2040]


def test_large_instants_end_soon(monkeypatch: pytest.MonkeyPatch) -> None:
    """14,500 mappings of each GPM: 210 million tries, which is what made a server wait for minutes. They end where a
    server's bound is, and memory for what they would make is given back."""
    monkeypatch.setattr(dictionary, "BOUNDS", SERVED)
    sequences = list[SequenceRun]()

    def left(self: SequenceRun, at: int, usual: object = SequenceRun._leave_out) -> None:
        sequences.append(self)
        usual(self, at)  # type: ignore[operator]

    monkeypatch.setattr(SequenceRun, "_leave_out", left)
    graphs = [" ".join(f"<{E}{n}> <{E}{name}> {n} ." for n in range(14_500)) for name in "vw"]
    events = [(1_000_000, graphs[0]), (2_000_000, graphs[1]), (3_000_000, f"<{E}a> <{E}other> 1 .")]
    for condition in ("?a + ?b = -1", "?a + ?b >= 0", "CONTAINS(STR(?a), CONCAT(STR(?b), 'x'))"):
        (found,) = told([query("A ; B", B=condition)], events, 1000)
        assert found.omitted == 1 and not found.failed and not found.matches
        memory = sequences[-1].memory_there
        assert memory is not None and memory.bytes < 30 << 20
        assert np.count_nonzero(memory.groups["edge"][: memory.scalars[k.GROUP_TOP]] >= 0) == 14_500
