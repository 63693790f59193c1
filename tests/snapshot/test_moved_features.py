"""Every part of a run's state, in queries that need it: long streams in which the run moves again and again, and the
KB's answers of before."""

from __future__ import annotations

import random
import sys
from pathlib import Path

import pytest
from profiles import EXAMPLES, in_the_gate
from pyoxigraph import BlankNode, NamedNode, Quad, RdfFormat, Store

sys.path.insert(0, str(Path(__file__).parent.parent / "engine"))
from engine_runs import STREAM, E, Row, query, random_readings, readings_batch
from saved_runs import Life, crowded, unlabelled

from oxiseq.engine.sequence.memory import Capacities
from oxiseq.engine.terms.dictionary import TermDictionary

SLIDING, TUMBLING = "WITHIN PT0.00002S SLIDING", "WITHIN PT0.00004S"
KEYED = dict.fromkeys("ABCN", "KEYED")
RISING = {**KEYED, "B": "KEYED FILTER(?bv > ?av)"}
QUERIES = {
    "chain": query("A, B, C"),
    "keyed chain": query("A, B, C", SLIDING, **KEYED),
    "loop": query("A; B+; C", TUMBLING, **RISING),
    "leading negation": query("N!; A; B", SLIDING, **KEYED),
    "leading negation, no window": query("N!; A; B", **KEYED),
    "leading negation in partitions": query("N!; A; B", f"PARTITION BY ?k {SLIDING}", **KEYED),
    "negation between": query("A; N!; B", SLIDING, **RISING),
    "trailing negation": query("A; B; N!", SLIDING, **KEYED),
    "trailing negation, tumbling": query("A; B; N!", TUMBLING, **KEYED),
    "deferred next": query("A : B : N!", SLIDING, "SELECT NEXT ?av ?bv", **KEYED),
    "deferred max": query("A : B : N!", TUMBLING, "SELECT MAX *", **KEYED),
    "deferred in partitions": query("A : B : N!", "PARTITION BY ?k WITHIN 5 EVENTS SLIDING", "SELECT NEXT *", **KEYED),
    "deferred limit": query("A : B : N!", SLIDING, "SELECT DISTINCT ?k", **KEYED) + "\nLIMIT 2",
    "distinct": query("A : B : N!", SLIDING, "SELECT DISTINCT ?k", **KEYED),
    "partitions": query("A; B, C", f"PARTITION BY ?k {SLIDING}", **KEYED),
    "partitions by two": query("A: B", f"PARTITION BY ?k ?v {SLIDING}", A="KEYED ?a :v ?v .", B="KEYED ?b :v ?v ."),
    "partitions that count": query("A: B; C", "PARTITION BY ?k WITHIN 4 EVENTS SLIDING", **KEYED),
    "partitions that count, tumbling": query("A: B; C", "PARTITION BY ?k WITHIN 4 EVENTS", **KEYED),
    "consume partition": query("A: B", f"PARTITION BY ?k CONSUME BY PARTITION {SLIDING}", **KEYED),
    "consume any": query("A: B", f"PARTITION BY ?k CONSUME BY ANY {SLIDING}", **KEYED),
    "consume any, no partitions": query("A: B", f"CONSUME BY ANY {SLIDING}", **KEYED),
    "events": query("A: B; C", "WITHIN 6 EVENTS SLIDING", **RISING),
    "events, tumbling": query("A: B; C", "WITHIN 6 EVENTS", **RISING),
    "exists": query("A: B", SLIDING, A="KEYED", B="KEYED FILTER EXISTS { ?o :v ?av }"),
    "exists in partitions": query(
        "A; N!; B+",
        f"PARTITION BY ?k {SLIDING}",
        **KEYED
        | {"B": "KEYED FILTER NOT EXISTS { ?o :v ?m FILTER(?m > ?av) }", "N": "KEYED FILTER EXISTS { ?o :v ?av }"},
    ),
    "groups": query("A; B", "", "SELECT ?k (COUNT(*) AS ?n) (SUM(?av) AS ?s) (MAX(?bv) AS ?m)", **KEYED)
    + " GROUP BY ?k",
    "groups, sliding": query("A: B", SLIDING, "SELECT (COUNT(*) AS ?n) (MIN(?av) AS ?m)", **KEYED),
    "groups, tumbling": query("A: B", TUMBLING, "SELECT (AVG(?av) AS ?n) (COUNT(DISTINCT ?k) AS ?d)", **KEYED),
    "groups, every": query("A: B", SLIDING, "SELECT ?k (COUNT(*) AS ?n)", **KEYED)
    + " GROUP BY ?k REPORT EVERY PT0.000007S",
    "groups, events": query("A: B", "WITHIN 6 EVENTS SLIDING", "SELECT (SUM(?av) AS ?s)", **KEYED),
    "groups, undecided": query("A: B: N!", SLIDING, "SELECT (COUNT(*) AS ?s)", **KEYED),
    "exact": query("A: B", SLIDING, A="KEYED", B="KEYED FILTER(CONTAINS(STR(?bv), STR(?av)))"),
}

MORE = {
    *("chain", "leading negation", "leading negation, no window", "trailing negation, tumbling", "deferred next"),
    *("distinct", "partitions", "partitions that count, tumbling", "consume any, no partitions", "events, tumbling"),
    *("exists", "groups", "groups, tumbling", "groups, events"),
}
"""What has a sister of the same parts: the gate has one of each."""


@pytest.mark.parametrize(
    "room", [pytest.param(None, marks=pytest.mark.full), Capacities.smallest()], ids=["ample", "smallest"]
)
@pytest.mark.parametrize("name", in_the_gate(QUERIES.keys() - MORE, QUERIES))
def test_long_streams(name: str, room: Capacities | None) -> None:
    dice = random.Random(name)
    readings = random_readings(len(name), 400, "aabbcn", 6 if "partitions" in name else 2, 9)
    still, moving = (Life(QUERIES[name], lateness=3, capacities=room) for _ in range(2))
    while readings:
        count = dice.choice([1, 1, 2, 5, 9])
        some, readings = readings[:count], readings[count:]
        if dice.random() < 0.3:
            some.reverse()
        for life in (still, moving):
            late = life.run.push(STREAM, readings_batch(life.terms, some))
            life.late += [] if late is None else late.time.tolist()
            life.advance()
        if dice.random() < 0.5:
            moving.move(crowded(dice))
        assert moving.found == still.found
        assert (moving.late, moving.counters) == (still.late, still.counters)
    for life in (still, moving):
        life.finish()
    assert moving.found == still.found
    assert len(still.found) > 2 and still.late


# --- the KB -----------------------------------------------------------------------------------------

TAG, TAGS, THING = NamedNode(E + "tag"), NamedNode(E + "tags"), NamedNode(E + "thing")


class Tagged(Life):
    """A query whose KB tags the only thing."""

    @property
    def store(self) -> Store:
        return self.kb._store

    def tag(self, tag: NamedNode | BlankNode, instead: bool = False) -> None:
        """The KB changes."""
        self.run.keep_answers()
        if instead:
            self.store.clear()
        self.store.add(Quad(THING, TAG, tag, TAGS))
        self.kb.touch()

    def move(self, terms: TermDictionary) -> None:
        self.kb_text = self.store.dump(format=RdfFormat.N_QUADS).decode()
        super().move(terms)

    def reading(self, time: int, kind: str) -> None:
        self.push(STREAM, (time, f'<{E}x> <{E}kind> <{E}{kind}> . <{E}x> <{E}k> <{E}thing> . <{E}x> <{E}v> "1" .'))
        self.advance()


IRIS = [NamedNode(f"urn:{n}") for n in range(4)]
BLANKS = [BlankNode(f"tag{n}") for n in range(4)]
JOINED = "GRAPH :tags { ?k :tag ?tag }"
KB_QUERIES = {
    "late": query("A: B", "", "SELECT ?tag", A=f"KEYED {JOINED}", B="KEYED"),
    "late, windowed": query("A: B", SLIDING, "SELECT DISTINCT ?tag", A=f"KEYED {JOINED}", B="KEYED"),
    "compared": query("A: B", "", "SELECT ?tag", A=f"KEYED {JOINED}", B=f"KEYED {JOINED}"),
    "previous": query("B: A+", "", "SELECT ?tag", A=f"KEYED {JOINED} FILTER(sameTerm(?tag, PREV(?tag)))", B="KEYED"),
    "in place": query("A: B", "", "SELECT ?tag", A="KEYED OPTIONAL { GRAPH :tags { ?k :tag ?tag } }", B="KEYED"),
    "joined exists": query("A: B", "", "SELECT ?tag", A=f"KEYED {JOINED}", B=f"KEYED FILTER EXISTS {{ {JOINED} }}"),
    "in place, previous": query(
        "B: A+",
        "",
        "SELECT ?tag",
        A="KEYED OPTIONAL { GRAPH :tags { ?k :tag ?tag } } FILTER(sameTerm(?tag, PREV(?tag)))",
        B="KEYED",
    ),
    "iterations": query(
        "A;{1,2}: B",
        SLIDING,
        "SELECT ?tag",
        A=f"KEYED {JOINED}",
        B="KEYED FILTER(isLiteral(MAX(?av)) && COUNT(A) > 1 && TIMEOF(A) < EVENTTIME() && !isNumeric(MIN(?tag)))",
    ),
    "distinct": query("A: B: N!", SLIDING, "SELECT DISTINCT ?tag", A=f"KEYED {JOINED}", B="KEYED", N="KEYED"),
}


@pytest.mark.parametrize("blank", [pytest.param(False, marks=pytest.mark.full), True], ids=["IRIs", "blank nodes"])
@pytest.mark.parametrize("name", in_the_gate(KB_QUERIES.keys() - {"late", "in place"}, KB_QUERIES))
def test_answers_of_the_kb(name: str, blank: bool) -> None:
    dice, tags = random.Random(f"{name}{blank}"), BLANKS if blank else IRIS
    for _ in range(max(1, EXAMPLES // 10)):
        lives = [Tagged(KB_QUERIES[name]) for _ in range(2)]
        for life in lives:
            life.tag(tags[0])
        for time in range(1, 25):
            kind, other, instead = dice.choice("aab"), dice.choice(tags), dice.random() < 0.5
            changes, moves = dice.random() < 0.3, dice.random() < 0.4
            for number, life in enumerate(lives):
                life.reading(time, kind)
                if changes:
                    life.tag(other, instead)
                if moves and number:
                    life.move(crowded(dice))
            assert alike(lives[1].found) == alike(lives[0].found)
        for life in lives:
            life.finish()
        assert alike(lives[1].found) == alike(lives[0].found)
        assert lives[0].found


def alike(rows: list[Row]) -> list[Row]:
    """A blank node of the KB that nothing names while the run moves has another label afterwards."""
    return [row for each in rows for row in unlabelled([each])]
