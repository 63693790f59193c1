"""Queries with a key, over many random streams whose events often show several keys; and what the key is."""

from __future__ import annotations

import random
from collections import Counter
from functools import cache

import numpy as np
import pytest
from bucketed import Buckets, Event, alone
from hypothesis import given
from hypothesis import strategies as st
from loaded import load
from profiles import drawn

from oxiseq.engine.plan.correlation import Correlation, correlation
from oxiseq.engine.plan.query import compile_query
from oxiseq.engine.terms.dictionary import TermDictionary
from oxiseq.spark.balance import even_keys, spark_hash
from oxiseq.spark.order import Order
from oxiseq.spark.work import Work

BODIES = {
    "A": "A ON S { ?k :a ?a }",
    "B": "B ON S { ?k :b ?b FILTER(?b >= ?a) }",
    "C": "C ON T { ?k :a ?c }",
    "N": "N ON S { ?k :n ?n }",
    "G": "G ON T { :all :g ?g }",
    "P": "P ON S { ?k :b ?p FILTER(?p > PREV(?p)) }",
    "Q": "Q ON S { ?j :a ?q }",
    "O": "O ON S { ?z :b ?o OPTIONAL { ?z :a ?k } }",
}
KEYED = [
    ("A; B", ""),
    ("A, B", ""),
    ("A : B", "WITHIN PT0.000006S SLIDING"),
    ("A; N!; C", "WITHIN PT0.00001S SLIDING"),
    ("A; G!; B", ""),
    ("A; G; C", "WITHIN PT0.00002S"),
    ("N!; A; C", "WITHIN PT0.00002S"),
    ("G!; A : B", "WITHIN PT0.000012S SLIDING"),
    ("A; C; N!", "WITHIN PT0.000008S SLIDING"),
    ("A; B; G!", "WITHIN PT0.000015S"),
    ("A; P+", ""),
    ("A; P:+; C", "WITHIN 8 EVENTS"),
    ("A, B?, C", "WITHIN 9 EVENTS SLIDING"),
    ("A & C", ""),
    ("A & G; B", ""),
    ("(A | C); N", ""),
    ("A; C", "WITHIN PT0.000025S"),
    ("A, B, C", "PARTITION BY ?k"),
    ("A; B", "WITHIN 3 EVENTS PARTITION BY ?k CONSUME BY PARTITION"),
    ("A : C", "WITHIN PT0.00002S PARTITION BY ?k"),
    ("A; G!; C", "PARTITION BY ?k"),
]
NOT_KEYED = [
    ("A; Q", ""),
    ("A+; B", ""),
    ("G; A", ""),
    ("A; O", ""),
    ("A; B", "CONSUME BY ANY"),
    ("A; B", "LIMIT 1"),
    ("A; B", "NEXT"),
    ("A; B", "DISTINCT"),
    ("A, B", "PARTITION BY ?k CONSUME BY ANY"),
    ("Q; A", ""),
]


def query(sequence: str, clauses: str) -> str:
    names = [n for n in BODIES if n in sequence]
    limit = clauses if clauses.startswith("LIMIT") else ""
    chosen = clauses if clauses in ("NEXT", "DISTINCT") else ""
    clauses = "" if limit or chosen else clauses
    certain = "?" not in sequence and "|" not in sequence
    shown = [v for v, n in (("?a", "A"), ("?c", "C"), ("?b", "B")) if n in names and certain]
    return (
        f"PREFIX : <http://e/>\nSELECT {chosen} {' '.join(shown) or '*'} {clauses}\n"
        "FROM STREAM S <http://e/s> FROM STREAM T <http://e/t>\n"
        f"WHERE {{ SEQ({sequence})\n" + "\n".join(f"DEFINE GPM {BODIES[n]}" for n in names) + f"\n}} {limit}"
    )


def key_of(sequence: str, clauses: str) -> Correlation:
    return correlation(compile_query(load(query(sequence, clauses)), TermDictionary()))


@pytest.mark.parametrize(("sequence", "clauses"), KEYED)
def test_these_have_a_key(sequence: str, clauses: str) -> None:
    found = key_of(sequence, clauses)
    assert [v.value for v in found.by] == ["k"]
    assert found.everywhere == tuple("G" * ("G" in sequence and "PARTITION" not in clauses))


@pytest.mark.parametrize(("sequence", "clauses"), NOT_KEYED)
def test_these_have_none(sequence: str, clauses: str) -> None:
    found = key_of(sequence, clauses)
    assert not found.by
    assert found.reason


@cache
def work(text: str, buckets: int, start: int | None) -> Work:
    return Work(Order(text, None, start, ("http://e/s", "http://e/t"), buckets))


def random_events(dice: random.Random) -> list[Event]:
    """Each has its time in its stream to itself; half of them show several keys, one in eight nothing that is asked."""
    out: list[Event] = []
    for time in sorted(dice.sample(range(40), dice.randint(5, 30))):
        for iri in dice.choice([("http://e/s",), ("http://e/t",), ("http://e/s", "http://e/t")]):
            triples = [f"<http://e/other> <http://e/other> {time} ."] * (dice.random() < 0.125)
            for _ in range(0 if triples else dice.choice([1, 1, 2, 4])):
                name = dice.choice("aaabbbng")
                subject = "all" if name == "g" else f"k{dice.randint(0, 4)}"
                triples.append(f"<http://e/{subject}> <http://e/{name}> {dice.randint(0, 3)} .")
            out.append((iri, time, "\n".join(triples)))
    return out


@drawn(100)
@given(st.sampled_from(KEYED), st.integers(0, 1 << 40), st.sampled_from([2, 3]))
@pytest.mark.slow
def test_buckets_find_what_one_engine_finds(kind: tuple[str, str], seed: int, buckets: int) -> None:
    dice = random.Random(seed)
    text = query(*kind)
    start = 0 if key_of_text(text).needs_start else None
    at_work = work(text, buckets, start)
    bucketed = Buckets(at_work.order, dice, at_work)
    events, taken = random_events(dice), []
    size = dice.randint(1, len(events))
    while events:
        batch, events = events[:size], events[size:]
        bucketed.micro_batch(batch, bucketed.watermark)
        taken += [e for e in batch if e[1] >= bucketed.watermark]
        bucketed.watermark = max(bucketed.watermark, max(e[1] for e in batch) - dice.choice([-3, 0, 0, 5]))
    bucketed.micro_batch([], bucketed.watermark, close=True)
    assert Counter(bucketed.rows) == alone(text, taken, None, start)


def test_what_is_decided_first_may_end_last_and_comes_first() -> None:
    """A match of `A; C; N!` is decided when its window closes, which began with its A."""
    text = query("A; C; N!", "WITHIN PT0.000008S SLIDING")
    bucketed = Buckets(work(text, 1, None).order, random.Random(1))
    line = "<http://e/{}> <http://e/a> 1 ."
    for iri, time, who in (("s", 14, "k1"), ("s", 15, "k2"), ("t", 17, "k2"), ("t", 20, "k1")):
        bucketed.micro_batch([(f"http://e/{iri}", time, line.format(who))], time)
    bucketed.micro_batch([], bucketed.watermark, close=True)
    decided = [(row[0], dict(row[2])["C"]) for row in bucketed.rows]
    assert decided == [(22, (20,)), (23, (17,))]


@cache
def key_of_text(text: str) -> Correlation:
    return correlation(compile_query(load(text), TermDictionary()))


def test_keys_lie_evenly_in_whatever_partitions() -> None:
    assert spark_hash(np.array([0, 1])).tolist() == [933211791, -559580957]  # as Spark says: SELECT hash(0), hash(1)
    for buckets in (1, 8, 64):
        keys = np.array(even_keys(buckets))
        assert len(set(keys.tolist())) == buckets
        for partitions in (1, 2, 4, 7, 8, 64):
            assert (spark_hash(keys) % partitions == np.arange(buckets) % partitions).all()
