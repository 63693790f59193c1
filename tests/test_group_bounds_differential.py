"""Negated groups and bounds: the engine and the reference give the same matches of random sequences that have both,
between GPMs and at the end, where a bound completes matches by itself."""

from __future__ import annotations

import random
import sys
from itertools import accumulate
from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st
from profiles import drawn
from strategies import Situation
from test_differential import difference, disorder, fail_small

sys.path.insert(0, str(Path(__file__).parent / "snapshot"))
sys.path.insert(0, str(Path(__file__).parent / "buckets"))
from loaded import load
from saved_runs import assert_same, both
from test_buckets import compare

from oxiseq.grammar.errors import QueryError

_S = "http://e/s"
_LEFT = ["A", "A", "A", "A:+", "A{2}", "(A & X)", "A: X?", "(A: X)", "A: Y!", "A: X WITHIN 4u"]
_LEFT += ["A: Y! WITHIN 2u", "A: Y! WITHIN 3u: X!", "(A | X)"]
_GROUP = ["(B; C)", "(B: C)", "(B; (C | D))", "((B | D); C)", "(B; C; D)", "(B; (C & D))"]
_RIGHT = ["N", "N", "N", "N:+", "N{1,2}", "N?: M", "(N | M)", "M!: N", "N: M WITHIN 3u", "(N; M AFTER 2u)"]
_RIGHT += ["N WITHIN 4u", "(N WITHIN 3u):+", "N? WITHIN 2u: M", "N WITHIN 3u: (X | Y)"]
_RIGHT += ["N AFTER 2u", "N AFTER 2u WITHIN 4u", "Y! WITHIN 3u: N", "Y! WITHIN 1u: N AFTER 3u", "(N AFTER 2u):+"]
_ENDS = ["", "", "{}: Y! WITHIN 4u", "{}: Y! WITHIN 2u: M!", "{}: M!"]
_WINDOWS = ["", "", "WITHIN PT0.000009S SLIDING", "WITHIN PT0.000012S", "WITHIN 7 EVENTS SLIDING", "WITHIN 6 EVENTS"]
_WHOLE = ["{}", "{}", "{}", "({}):+", "({});+ LASTING 9u", "Z: {}"]


@st.composite
def grouped(draw: st.DrawFn) -> Situation:
    """A sequence with a negated group, and readings of few kinds, keys and values."""
    ops = [draw(st.sampled_from(";;::,")) for _ in range(2)]
    bound = draw(st.sampled_from(["", *(f" WITHIN {n}u" for n in (1, 2, 2, 3, 4))]))
    group = f"{draw(st.sampled_from(_GROUP))}!{bound}"
    right = f"{ops[1]} {draw(st.sampled_from(_RIGHT))}" if draw(st.integers(0, 2)) else draw(st.sampled_from(_ENDS))
    inner = f"{draw(st.sampled_from(_LEFT))}{ops[0]} {group}{right.removeprefix('{}')}"
    sequence = draw(st.sampled_from(_WHOLE)).format(inner)
    sequence = " ".join(f"PT0.00000{w[0]}S{w[2:]}" if w[1:2] == "u" else w for w in sequence.split())
    window = draw(st.sampled_from(_WINDOWS))
    keyed = draw(st.sampled_from(["", "", "AN", "ABC", "ACN", "ABCDMNXYZ"]))
    gpms = [_gpm(name, name in keyed) for name in "ABCDMNXYZ" if name in sequence]
    text = f"PREFIX : <http://e/>\nSELECT * {window}\nFROM STREAM S1 <{_S}>\nWHERE {{\n  SEQ({sequence})\n"
    used = [name.lower() for name in "ABCDMNXYZ" if name in sequence]
    kinds = draw(st.lists(st.sampled_from(used), min_size=10, max_size=16))
    rounds = draw(st.lists(st.sampled_from(["abcn", "abbcn", "axbcn", "abcnm", "abcdn"]), max_size=2))
    kinds += [kind for each in rounds for kind in each]
    steps = draw(st.lists(st.sampled_from([0, 1, 1, 1, 2]), min_size=len(kinds), max_size=len(kinds)))
    keys = draw(st.lists(st.sampled_from([1, 1, 1, 2]), min_size=len(kinds), max_size=len(kinds)))
    readings = zip(accumulate(steps), kinds, keys, strict=True)
    events = [(time, _reading(kind, key, i)) for i, (time, kind, key) in enumerate(readings)]
    pauses = frozenset(draw(st.sets(st.integers(0, len(events) - 1))))
    return Situation(text + "\n".join(gpms) + "\n}", {_S: events}, "", 0, (_S,) * len(events), pauses)


def _gpm(name: str, keyed: bool) -> str:
    low = name.lower()
    return f"  DEFINE GPM {name} ON S1 {{ ?{low} :kind :{low} ; :k {'?k' if keyed else f'?{low}k'} . }}"


def _reading(kind: str, key: int, number: int) -> str:
    it = f"<http://e/{kind}{number}>"
    return f'{it} <http://e/kind> <http://e/{kind}> .\n{it} <http://e/k> "{key}" .\n'


@drawn(15)
@given(grouped())
def test_run_agrees_with_the_reference(situation: Situation) -> None:
    try:
        load(situation.text)
    except QueryError:
        return
    fail_small(situation, difference)
    fail_small(situation, disorder)


@drawn(15)
@given(grouped(), st.integers(0, 1 << 30))
def test_a_run_that_is_saved_and_restored_continues(situation: Situation, seed: int) -> None:
    try:
        load(situation.text)
    except QueryError:
        return
    moving, still = both(situation, random.Random(seed), crowd=True)
    assert_same(moving, still)


@drawn(15)
@given(grouped(), st.integers(0, 1 << 30), st.sampled_from([1, 3]), st.booleans())
def test_buckets_find_what_one_run_finds(situation: Situation, seed: int, buckets: int, fresh: bool) -> None:
    try:
        load(situation.text)
    except QueryError:
        return
    compare(situation, seed, buckets, fresh)
