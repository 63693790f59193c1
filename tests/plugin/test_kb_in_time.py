"""A change of the KB has one place in stream time, in every language that reads it (semantics.md 2.2).

Pushes, punctuations, changes and snapshots in any order, against a plain model: an instant sees the KB as it was after
all changes that were made when no event of that instant or a later one had been accepted.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any, Final, TypeAlias

import pytest
from hypothesis import given
from hypothesis import strategies as st
from loaded import load
from profiles import drawn
from pyoxigraph import DefaultGraph, Literal, NamedNode, Quad, Store

from oxiseq.engine.events.encode import encode_events
from oxiseq.engine.kb import StoreKb
from oxiseq.engine.run.run import Run
from oxiseq.engine.snapshot.saving import save
from oxiseq.engine.terms.dictionary import TermDictionary
from oxiseq.languages.registry import language_for
from oxiseq.options import Options

E: Final = "http://e/"
S, T = f"{E}S", f"{E}T"
P: Final = f"PREFIX : <{E}>"
RANGE: Final = 3
Row: TypeAlias = tuple[int, str, str | None]
Step: TypeAlias = tuple[Any, ...]


# --- the plain model ------------------------------------------------------------------------------------


@dataclass(slots=True)
class Model:
    """What has been accepted, and what the KB was after each change."""

    lateness: int
    pushed: dict[str, list[int]] = field(default_factory=lambda: {S: [], T: []})
    punctuation: dict[str, int] = field(default_factory=lambda: dict.fromkeys((S, T), -100))
    accepted: list[tuple[int, str, str]] = field(default_factory=list)
    changes: list[tuple[int | None, dict[str, set[int]]]] = field(default_factory=list)
    """The newest instant accepted before a change, the KB after it."""
    now: dict[str, set[int]] = field(default_factory=lambda: {"a": {1}, "b": set()})

    def __post_init__(self) -> None:
        self.changes.append((None, self.now))

    def push(self, stream: str, time: int, key: str) -> None:
        newest = max(self.pushed[stream], default=None)
        late = time < self.punctuation[stream] or (newest is not None and time < newest - self.lateness)
        self.pushed[stream].append(time)
        if not late:
            self.accepted.append((time, stream, key))

    def change(self, key: str, values: set[int]) -> None:
        self.now = {**self.now, key: values}
        self.changes.append((max((time for time, _, _ in self.accepted), default=None), self.now))

    def kb(self, at: int) -> dict[str, set[int]]:
        return [held for until, held in self.changes if until is None or until < at][-1]

    def answers(self, at: int, key: str) -> list[str | None]:
        return [str(value) for value in sorted(self.kb(at)[key])]

    @property
    def instants(self) -> list[int]:
        return sorted({time for time, _, _ in self.accepted})

    def items(self, low: int, high: int) -> set[tuple[int, str]]:
        """(time, key) of S's events after `low`, up to `high`."""
        return {(time, key) for time, stream, key in self.accepted if stream == S and low < time <= high}


def each(model: Model) -> Iterable[Row]:
    """Each event with the KB of its instant."""
    return [(t, k, v) for t in model.instants for _, k in model.items(t - 1, t) for v in model.answers(t, k)]


def or_nothing(model: Model) -> Iterable[Row]:
    return [(t, k, v) for t in model.instants for _, k in model.items(t - 1, t) for v in model.answers(t, k) or [None]]


def window(model: Model) -> Iterable[Row]:
    """At each instant what the window holds, with the KB of the instant."""
    return [
        (t, k, v)
        for t in model.instants
        for k in {k for _, k in model.items(t - RANGE, t)}
        for v in model.answers(t, k)
    ]


def window_or_nothing(model: Model) -> Iterable[Row]:
    return [
        (t, k, v)
        for t in model.instants
        for k in {k for _, k in model.items(t - RANGE, t)}
        for v in model.answers(t, k) or [None]
    ]


def new(model: Model) -> Iterable[Row]:
    """What the instant before did not have: a change of the KB is told at the next instant."""
    before = Counter[tuple[str, str | None]]()
    for at in model.instants:
        here = Counter((k, v) for t, k, v in window(model) if t == at)
        yield from ((at, k, v) for k, v in (here - before).elements())
        before = here


def of_items(model: Model) -> Iterable[Row]:
    """At each instant the window's items, each with the KB of its own instant."""
    return [
        (at, k, v) for at in model.instants for time, k in model.items(at - RANGE, at) for v in model.answers(time, k)
    ]


def matches_now(model: Model) -> Iterable[Row]:
    """At each instant the window's items, each with the KB of the present instant."""
    return [(at, k, v) for at in model.instants for _, k in model.items(at - RANGE, at) for v in model.answers(at, k)]


TELLS: Final = "GRAPH :g { ?k :v ?v }"
SPASEQ = (
    f"{P} SELECT ?k ?v FROM STREAM S <{S}> FROM STREAM T <{T}> WHERE {{ SEQ(A) DEFINE GPM A ON S {{ ?k :p ?x %s }} }}"
)
WINDOWS = (
    f"{P} REGISTER %s <{E}out> AS SELECT ?k ?v FROM NAMED WINDOW :w ON <{S}> [RANGE {RANGE}]"
    f" FROM NAMED WINDOW :t ON <{T}> [RANGE {RANGE}] WHERE {{ WINDOW :w {{ ?k :p ?x }} %s }}"
)
ITEMS = (
    f"{P} SELECT ?k ?v FROM NAMED <{S}> WIN [RANGE {RANGE} SLIDE 1] AS :w FROM NAMED <{T}> WIN [RANGE 3 SLIDE 1] AS :t"
    f" EVENT ON :w {{ ?k :p ?x %s }} AS E WHERE {{ MATCH {{ E }} %s }}"
)
EP = f"{P} SELECT ?k ?v FROM STREAM <{S}> FROM STREAM <{T}> WHERE {{ ?k :p ?x . %s }}"
QUERIES: Final[dict[str, tuple[str, str, Callable[[Model], Iterable[Row]]]]] = {
    "SPAseq": ("spaseq", SPASEQ % TELLS, each),
    "SPAseq in place": ("spaseq", SPASEQ % f"OPTIONAL {{ {TELLS} }}", or_nothing),
    "EP-SPARQL": ("epsparql", EP % TELLS, each),
    "EP-SPARQL, default graph": ("epsparql", EP % "?k :v ?v", each),
    "EP-SPARQL, OPTIONAL": ("epsparql", EP % f"OPTIONAL {{ {TELLS} }}", or_nothing),
    "RSP-QL": ("rspql", WINDOWS % ("RSTREAM", TELLS), window),
    "RSP-QL, a table": ("rspql", WINDOWS % ("RSTREAM", "GRAPH ?g { ?k :v ?v }"), window),
    "RSP-QL, the default graph": ("rspql", WINDOWS % ("RSTREAM", "?k :v ?v"), window),
    "RSP-QL, new": ("rspql", WINDOWS % ("ISTREAM", TELLS), new),
    "RSP-QL, asked": ("rspql", WINDOWS % ("RSTREAM", f"OPTIONAL {{ {TELLS} }}"), window_or_nothing),
    "SPECTRA": ("spectra", WINDOWS % ("ISTREAM", TELLS), new),
    "RSEP-QL": ("rsepql", ITEMS % ("", TELLS), matches_now),
    "RSEP-QL, in events": ("rsepql", ITEMS % (TELLS, ""), of_items),
}


# --- the engine -----------------------------------------------------------------------------------------


class Life:
    """A query at work, which may move to another process."""

    def __init__(self, language: str, text: str, lateness: int) -> None:
        self.query = load(text, language)
        self.front = language_for(self.query)
        self.options = Options(lateness=lateness)
        self.store = Store()
        self.set("a", {1})
        self.begin()
        self.found: list[Row] = []

    def begin(self) -> None:
        self.terms, self.kb = TermDictionary(), StoreKb(self.store)
        self.run: Run
        self.run, self.shape = self.front.compile(self.query, self.terms, self.kb, self.options)

    def set(self, key: str, values: set[int]) -> None:
        subject, predicate = NamedNode(E + key), NamedNode(f"{E}v")
        for quad in list(self.store.quads_for_pattern(subject, None, None)):
            self.store.remove(quad)
        for graph in (NamedNode(f"{E}g"), DefaultGraph()):
            self.store.extend([Quad(subject, predicate, Literal(value), graph) for value in values])

    def change(self, key: str, values: set[int]) -> None:
        self.run.keep_answers()
        self.set(key, values)
        self.kb.touch()

    def push(self, stream: str, time: int, key: str) -> None:
        text = f"<{E}{key}> <{E}{'p' if stream == S else 'q'}> <{E}x> ."
        self.run.push(stream, encode_events([(time, text)], self.terms))
        self.advance()

    def punctuate(self, stream: str, time: int) -> None:
        self.run.punctuate(stream, time)
        self.advance()

    def move(self) -> None:
        """To another process, over what the store holds now."""
        state = save(self.run, self.terms)
        self.begin()
        self.run = self.front.resume(state, self.run, self.terms, self.kb)
        assert save(self.run, self.terms) == save(self.run, self.terms)

    def advance(self) -> None:
        for batch in self.run.advance():
            for i in range(len(batch)):
                match = self.shape.block([batch]).match(i)
                key, value = match["k"].value.removeprefix(E), match.get("v")
                self.found.append((match.at_us, key, None if value is None else value.value))

    def end(self) -> None:
        self.run.close()
        self.advance()


KEYS: Final = st.sampled_from("ab")
STREAMS: Final = st.sampled_from([S, S, T])
STEPS: Final = st.lists(
    st.one_of(
        st.tuples(st.just("push"), STREAMS, st.integers(-4, 3), KEYS),
        st.tuples(st.just("push"), STREAMS, st.integers(0, 2), KEYS),
        st.tuples(st.just("punctuate"), STREAMS, st.integers(-2, 3)),
        st.tuples(st.just("change"), KEYS, st.sets(st.integers(1, 3), max_size=2)),
        st.tuples(st.just("move")),
    ),
    min_size=3,
    max_size=16,
)


def check(name: str, lateness: int, steps: Iterable[Step]) -> None:
    """Both take the same steps; times are told from the newest one pushed so far."""
    language, text, expected = QUERIES[name]
    life, model, now = Life(language, text, lateness), Model(lateness), 5
    for step in steps:
        match step:
            case ("push", stream, after, key):
                life.push(stream, now + after, key)
                model.push(stream, now + after, key)
                now = max(now, now + after)
            case ("punctuate", stream, after):
                life.punctuate(stream, now + after)
                model.punctuation[stream] = max(model.punctuation[stream], now + after)
            case ("change", key, values):
                life.change(key, values)
                model.change(key, values)
            case _:
                life.move()
    life.end()
    assert Counter(life.found) == Counter(expected(model))


@pytest.mark.parametrize("name", QUERIES)
@drawn(50)
@given(lateness=st.sampled_from([0, 2, 5]), steps=STEPS)
def test_an_instant_has_one_kb(name: str, lateness: int, steps: list[Step]) -> None:
    check(name, lateness, steps)


@pytest.mark.parametrize("name", QUERIES)
def test_two_changes_wait_at_once(name: str) -> None:
    """The event at 6 comes last, and sees the KB of before both changes."""
    check(
        name,
        5,
        [
            ("push", S, 2, "a"),
            ("change", "a", {2}),
            ("push", S, 1, "b"),
            ("move",),
            ("change", "a", {3}),
            ("push", S, 2, "a"),
            ("push", S, -4, "a"),
            ("push", S, -2, "a"),
            ("push", S, -3, "b"),
            ("move",),
        ],
    )


@pytest.mark.parametrize("name", QUERIES)
def test_an_event_that_waits_sees_the_kb_of_before(name: str) -> None:
    check(name, 0, [("push", S, 1, "a"), ("push", T, 1, "a"), ("change", "a", {2}), ("push", S, 1, "a")])
