"""UNTIL (semantics.md 2.5c): the engine and the reference give the same matches of random sequences whose runs it ends,
however events are pushed, in buckets, and when a run is saved in between."""

from __future__ import annotations

import random
import sys
from itertools import accumulate
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from profiles import drawn
from strategies import Situation
from test_differential import WITHOUT_SHRINKING, difference, disorder, fail_small

sys.path.insert(0, str(Path(__file__).parent / "snapshot"))
sys.path.insert(0, str(Path(__file__).parent / "buckets"))
from loaded import load
from saved_runs import assert_same, both
from test_buckets import compare

import oxiseq
from oxiseq.grammar.errors import QueryError

_S, _T = "http://e/s", "http://e/t"
_FIRST = ["A", "A", "A", "(A & W)", "(A | W)", "Z!: A", "A:+", "A;+", "A{2}", "(A; W):+", "A?", "(A; W?)"]
_MIDDLE = ["B", "B", "(B & X)", "(B | X)", "(B | (X; Y))", "B?", "B*", "B;+", "B:+", "B,+", "B{1,3}", "B:{2}"]
_MIDDLE += ["(B; X):+", "(B: X?):+", "((B:+; X):+)?", "(B: Y!; X)?", "Y!; B", "Y! WITHIN 2u: B", "(B; X)!: Y"]
_MIDDLE += ["(B; X)! WITHIN 3u: Y", "B WITHIN 4u", "B AFTER 2u", "B:+ LASTING 4u"]
_LAST = ["C", "C", "C:+", "C;+", "C,+", "C?", "(C; D)", "(C | D)", "(C: D):+", "C WITHIN 5u", "C: N! WITHIN 3u"]
_WINDOWS = ["", "", "WITHIN PT0.000009S SLIDING", "WITHIN PT0.000012S", "WITHIN 7 EVENTS SLIDING", "WITHIN 6 EVENTS"]
_FORMS = [("SELECT *", "")] * 4 + [("SELECT LAST *", ""), ("SELECT NEXT *", ""), ("SELECT MAX *", "")]
_FORMS += [("SELECT (COUNT(*) AS ?n)", ""), ("SELECT ?va (COUNT(*) AS ?n)", "GROUP BY ?va")]
_FORMS += [("SELECT (ENDTIME() AS ?t) (MAX(?va) AS ?most)", "GROUP BY (ENDTIME())")]
_FILTERS = [
    "",
    "",
    "",
    "?vu > ?va",
    "?vu > ?vb",
    "?vu >= ?vc",
    "EVENTTIME() > TIMEOF(B)",
    "COUNT(B) > 1",
    "SUM(?vb) > ?vu",
]
_FILTERS += ["COUNT(C) < 3", "?vu > FIRST(?vc)", "LAST(?vb) < ?vu", "!BOUND(?vb)", "AVG(?vb) < 3 || ?vu > 3"]
"""Of U, where the sequence has what they read; it may be bound in some of the gaps."""
_NAMES = "ABCDNWXYZ"
_ROUNDS = ["abc", "abxc", "aubc", "abuc", "abbuc", "abxbxc", "awbyc", "abcuc"]


@st.composite
def ended(draw: st.DrawFn) -> Situation:
    """A sequence with UNTIL, and readings of few kinds, keys and values."""
    parts = [draw(st.sampled_from(_FIRST)), *draw(st.lists(st.sampled_from(_MIDDLE), max_size=1))]
    parts += draw(st.lists(st.sampled_from(_LAST), min_size=2 - len(parts), max_size=1))
    sequence = parts[0] + "".join(f"{draw(st.sampled_from(';;::,'))} {part}" for part in parts[1:])
    until = draw(st.sampled_from(["U", "U", "U", "U | V", "U & V"]))
    form, tail = draw(st.sampled_from(_FORMS))
    by = draw(st.sampled_from(["", "", "", "PARTITION BY ?k"]))
    keyed = f"{_NAMES}UV" if by else draw(st.sampled_from(["", "AU", "ABU", "BU", "CU", "ABCUX", f"{_NAMES}U"]))
    names = [name for name in _NAMES if name in sequence]
    stops = [name for name in "UV" if name in until]
    apart = draw(st.sampled_from([False, False, True]))
    condition = draw(st.sampled_from(_FILTERS))
    stream = "T" if apart else "S"
    gpms = [_gpm(name, name in keyed) for name in names]
    gpms += [_gpm(name, name in keyed, condition if name == "U" else "", stream) for name in stops]
    head = f"PREFIX : <http://e/>\n{form} {draw(st.sampled_from(_WINDOWS))} {by}\n"
    head += f"FROM STREAM S <{_S}> FROM STREAM T <{_T}>\nWHERE {{\n  SEQ({_timed(sequence)}) UNTIL {until}\n"
    kinds = draw(st.lists(st.sampled_from([name.lower() for name in (*names, "U", "V")]), min_size=2, max_size=7))
    rounds = draw(st.lists(st.sampled_from(_ROUNDS), min_size=1, max_size=2))
    kinds += [kind for each in rounds for kind in each]
    count = len(kinds)
    steps = draw(st.lists(st.sampled_from([0, 1, 1, 1, 2]), min_size=count, max_size=count))
    keys = draw(st.lists(st.sampled_from([1, 1, 1, 2]), min_size=count, max_size=count))
    values = draw(st.lists(st.integers(0, 5), min_size=count, max_size=count))
    order = tuple(_T if apart and kind in "uv" else _S for kind in kinds)
    streams: dict[str, list[tuple[int, str]]] = {_S: [], _T: []}
    for number, time in enumerate(accumulate(steps)):
        streams[order[number]].append((time, _reading(kinds[number], keys[number], values[number], number)))
    pauses = frozenset(draw(st.sets(st.integers(0, count - 1))))
    text = "\n".join([head, *gpms, f"}} {tail}"])
    plain = text.replace(f"FILTER({condition})", "")
    return Situation(text if _accepted(text) else plain, streams, "", 0, order, pauses)


def _timed(sequence: str) -> str:
    return " ".join(f"PT0.00000{w[0]}S{w[2:]}" if w[1:2] == "u" else w for w in sequence.split())


def _gpm(name: str, keyed: bool, condition: str = "", stream: str = "S") -> str:
    low = name.lower()
    key, also = ("?k" if keyed else f"?{low}k"), (f"FILTER({condition})" if condition else "")
    return f"  DEFINE GPM {name} ON {stream} {{ ?{low} :kind :{low} ; :k {key} ; :v ?v{low} . {also} }}"


def _reading(kind: str, key: int, value: int, number: int) -> str:
    it = f"<http://e/{kind}{number}>"
    typed = f'"{value}"^^<http://www.w3.org/2001/XMLSchema#integer>'
    triples = [("kind", f"<http://e/{kind}>"), ("k", f'"{key}"'), ("v", typed)]
    return "".join(f"{it} <http://e/{name}> {value} .\n" for name, value in triples)


def _accepted(text: str) -> bool:
    try:
        load(text)
    except QueryError:
        return False
    return True


@drawn(200, phases=WITHOUT_SHRINKING)
@given(ended())
def test_run_agrees_with_the_reference(situation: Situation) -> None:
    if _accepted(situation.text):
        fail_small(situation, difference)


@drawn(15, phases=WITHOUT_SHRINKING)
@given(ended())
def test_order_does_not_depend_on_how_events_are_pushed(situation: Situation) -> None:
    if _accepted(situation.text):
        fail_small(situation, disorder)


@drawn(15)
@given(ended(), st.integers(0, 1 << 30))
def test_a_run_that_is_saved_and_restored_continues(situation: Situation, seed: int) -> None:
    if _accepted(situation.text):
        moving, still = both(situation, random.Random(seed), crowd=True)
        assert_same(moving, still)


@drawn(15)
@given(ended(), st.integers(0, 1 << 30), st.sampled_from([1, 3]), st.booleans())
def test_buckets_find_what_one_run_finds(situation: Situation, seed: int, buckets: int, fresh: bool) -> None:
    if _accepted(situation.text):
        compare(situation, seed, buckets, fresh)


# --- what a FILTER of UNTIL reads -----------------------------------------------------------------


_UNTILS = [("", ()), ("UNTIL U", ("",)), ("UNTIL V", ("", "")), ("UNTIL U | V", ("", "")), ("UNTIL U", ("?vu > 9",))]


def _text(sequence: str, until: str, *conditions: str, by: str = "", least: int = 0) -> str:
    keyed = bool(by)
    gpms = [_gpm(name, keyed, f"?va >= {least}" if name == "A" else "") for name in "ABC" if name in sequence]
    gpms += [_gpm(name, keyed, condition) for name, condition in zip("UV", conditions, strict=False)]
    head = f"PREFIX : <http://e/>\nSELECT ?a ?c WITHIN PT1S SLIDING {by}\nFROM STREAM S <{_S}>\n"
    return f"{head}WHERE {{\n  SEQ({sequence}) {until}\n" + "\n".join(gpms) + "\n}"


def _stream(kinds: str) -> list[tuple[int, str]]:
    return [(time, _reading(kind, 1, time, time)) for time, kind in enumerate(kinds)]


@pytest.mark.parametrize(
    "condition",
    [
        "?vb < ?vu",
        "COUNT(B) < 9",
        "SUM(?vb) < 99",
        "!BOUND(?vb) || ?vb < 9",
        "COALESCE(?vb, 0) < 9",
        "TIMEOF(B) != TIMEOF(C)",
    ],
)
@pytest.mark.parametrize("kinds", ["aubc", "abuc", "acbuc"])
def test_it_ends_nothing_before_what_it_reads_is_bound(condition: str, kinds: str) -> None:
    """Neither does a FILTER that would be true without: it is an error there."""
    ended = "bu" in kinds and "TIMEOF" not in condition
    found = list(oxiseq.run(_text("A; B;+; C", "UNTIL U", condition), streams={_S: _stream(kinds)}))
    assert len(found) == (0 if ended else 1)


@pytest.mark.parametrize(
    "condition", ["!BOUND(?vb)", "COALESCE(?vb, 9) = 9", "COUNT(B) < 9", "EVENTTIME() > TIMEOF(B)"]
)
@pytest.mark.parametrize("kinds", ["bbccubbcc", "bccubc", "bcubc", "cubc", "ubc"])
def test_what_an_iteration_has_left_out_is_unbound_and_no_error(condition: str, kinds: str) -> None:
    """Neither where an earlier one had it; where no one had it, it is not bound yet in front of its place."""
    text = _text("(B?: C):+", "UNTIL U", condition).replace("?a ?c", "*")
    events = _stream(kinds)
    assert difference(Situation(text, {_S: events}, "", 0, (_S,) * len(events), frozenset())) is None


def test_queries_that_differ_in_it_alone_are_not_one() -> None:
    shown = ["SELECT ?a ?c", "SELECT (COUNT(*) AS ?n)"]
    each = [_text("A; B; C", until, *conditions, least=least) for least in (0, 1) for until, conditions in _UNTILS]
    texts = [text.replace(shown[0], form) for text in each for form in shown]

    def found_by(*texts: str) -> list[list[str]]:
        with oxiseq.open() as store:
            lives = [store.register(text) for text in texts]
            store.stream(_S).extend(_stream("abcabucabvcabvuc"))
            store.stream(_S).advance(99)
            return [[str(match) for match in live.poll("0s", idle=None)] for live in lives]

    together = found_by(*texts)
    assert together == [found for text in texts for found in found_by(text)]
    assert [len(found) for found in together[::2]] == [4, 2, 2, 1, 3, 3, 1, 1, 0, 2]


def test_its_events_are_events_of_their_partitions() -> None:
    """So they stand between two others joined by `,`; they are dealt out with the others of their key."""
    for kinds, expected in (("ac", 1), ("auc", 0)):
        text = _text("A, C", "UNTIL U", "?vu > 9", by="PARTITION BY ?k")
        assert len(list(oxiseq.run(text, streams={_S: _stream(kinds)}))) == expected
    readings = [(time, _reading(kind, time % 2, time, time)) for time, kind in enumerate("aabuccaabucc")]
    text = _text("A; C", "UNTIL U", "", by="PARTITION BY ?k")
    for seed, buckets in enumerate((1, 3, 3)):
        compare(Situation(text, {_S: readings}, "", 0, (_S,) * len(readings), frozenset()), seed, buckets, seed == 1)
