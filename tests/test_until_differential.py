"""UNTIL (semantics.md 2.5c): `SEQ(...) UNTIL U` finds what the sequence finds with `U!` written into every gap, in any
batching, in buckets and when it is saved in between.

What cannot be written so, a repeat at the end, stands in the worked cases and in the reference's own tests.
"""

from __future__ import annotations

import random
import sys
from dataclasses import dataclass
from itertools import accumulate
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from profiles import drawn
from strategies import Situation
from test_differential import by_reference, by_run, comparable, disorder, fail_small

sys.path.insert(0, str(Path(__file__).parent / "snapshot"))
sys.path.insert(0, str(Path(__file__).parent / "buckets"))
from loaded import load
from saved_runs import assert_same, both
from test_buckets import compare

import oxiseq
from oxiseq.grammar.errors import QueryError

_S, _T = "http://e/s", "http://e/t"
_FIRST = ["A", "A", "A", "(A & W)", "(A | W)", "Z!: A", "(A_):+", "(A_){2}"]
"""`_`: where UNTIL has its negation, before the operator, or at the end of an iteration."""
_MIDDLES = ["B", "B", "(B & X)", "(B | X)", "B?", "(B_; X)", "(B: Y!_; X)?", "(B_);+", "(B_):+", "(B_),+", "(B_);{1,3}"]
_MIDDLES += [
    "(B_; X_):{2}",
    "((B_);+; X_):+",
    "Y!; B",
    "Y! WITHIN 2u: B",
    "(B; X)!",
    "(B; X)! WITHIN 3u",
    "B WITHIN 4u",
]
_MIDDLES += ["B AFTER 2u", "(B_: X) LASTING 3u"]
_LAST = ["C", "C", "C", "(C | D)", "(C & D)", "C_: D", "C WITHIN 5u", "C: N! WITHIN 3u"]
_WINDOWS = ["", "", "WITHIN PT0.000009S SLIDING", "WITHIN PT0.000012S", "WITHIN 7 EVENTS SLIDING", "WITHIN 6 EVENTS"]
_FORMS = [("SELECT *", "")] * 4 + [("SELECT LAST *", ""), ("SELECT NEXT *", ""), ("SELECT MAX *", "")]
_FORMS += [("SELECT (COUNT(*) AS ?n) (SUM(?vc) AS ?sum)", ""), ("SELECT ?va (COUNT(*) AS ?n)", "GROUP BY ?va")]
_FORMS += [("SELECT (ENDTIME() AS ?t) (MAX(?va) AS ?most)", "GROUP BY (ENDTIME())")]
_FILTERS = ["?vu > ?va", "?vu = ?va || ?vu > 3", "EVENTTIME() > TIMEOF(A)", "?vu > 1"]
"""Of U: they read what is bound in every gap."""
_NAMES = "ABCDNXYWZ"


@dataclass(frozen=True)
class Twofold(Situation):
    """A situation, with its query once more without UNTIL."""

    plain: str = ""


@st.composite
def ended(draw: st.DrawFn) -> Twofold:
    ops = [draw(st.sampled_from(";;::,")) for _ in range(3)]
    parts = [draw(st.sampled_from(_FIRST)), *draw(st.lists(st.sampled_from(_MIDDLES), max_size=1))]
    parts.append(draw(st.sampled_from(_LAST)))
    if draw(st.integers(0, 3)) == 0:
        parts.insert(-1, "E")
    until = draw(st.sampled_from(["U", "U", "U", "U | V", "U & V"]))
    filled = f"{parts[0]}" + "".join(f"_{op} {part}" for op, part in zip(ops, parts[1:], strict=False))
    window = draw(st.sampled_from(_WINDOWS))
    form, tail = draw(st.sampled_from(_FORMS))
    by = draw(st.sampled_from(["", "", "", "PARTITION BY ?k"]))
    keyed = _NAMES + "EUV" if by else draw(st.sampled_from(["", "AU", "ABU", "ACU", "ABCDEUX", "ABCDENUXYWZ"]))
    condition = draw(st.sampled_from(["", "", "", *_FILTERS])) if "|" not in parts[0] and "+" not in parts[0] else ""
    head = f"PREFIX : <http://e/>\n{form} {window} {by}\nFROM STREAM S <{_S}> FROM STREAM T <{_T}>\nWHERE {{\n"
    names = [name for name in (*_NAMES, "E") if name in filled]
    gpms = [_gpm(name, "S", name in keyed) for name in names]
    stream = draw(st.sampled_from("SST"))
    stops = [_gpm(name, stream, name in keyed, condition if name == "U" else "") for name in "UV" if name in until]
    places = filled.count("_")
    named = filled
    for number in range(places):
        copy = "".join(f"{c}{number}" if c in "UV" else c for c in until)
        place = named.index("_")
        named = f"{named[:place]}: ({copy})!{named[place + 1 :]}"
    copies = [f"  DEFINE GPM {name}{number} AS {name}" for number in range(places) for name in "UV" if name in until]
    body = "\n".join([*gpms, *stops]) + "\n"
    text = f"{head}  SEQ({_timed(filled.replace('_', ''))}) UNTIL {until}\n{body}}} {tail}"
    plain = f"{head}  SEQ({_timed(named)})\n{body}" + "\n".join(copies) + f"\n}} {tail}"
    kinds = draw(st.lists(st.sampled_from([*(n.lower() for n in names), "u", "v"]), min_size=2, max_size=8))
    kinds += [
        kind
        for each in draw(
            st.lists(st.sampled_from(["abec", "abxec", "aubec", "abuc", "abbuec", "abxbxc"]), min_size=1, max_size=3)
        )
        for kind in each
    ]
    count = len(kinds)
    steps = draw(st.lists(st.sampled_from([0, 1, 1, 1, 2]), min_size=count, max_size=count))
    keys = draw(st.lists(st.sampled_from([1, 1, 1, 2]), min_size=count, max_size=count))
    values = draw(st.lists(st.integers(0, 5), min_size=count, max_size=count))
    streams: dict[str, list[tuple[int, str]]] = {_S: [], _T: []}
    order: list[str] = []
    for number, (time, kind, key, value) in enumerate(zip(accumulate(steps), kinds, keys, values, strict=True)):
        iri = _T if kind in "uv" and stream == "T" else _S
        streams[iri].append((time, _reading(kind, key, value, number)))
        order.append(iri)
    pauses = frozenset(draw(st.sets(st.integers(0, count - 1))))
    return Twofold(text, streams, "", 0, tuple(order), pauses, plain)


def _timed(sequence: str) -> str:
    return " ".join(f"PT0.00000{w[0]}S{w[2:]}" if w[1:2] == "u" else w for w in sequence.split())


def _gpm(name: str, stream: str, keyed: bool, condition: str = "") -> str:
    low = name.lower()
    key, also = ("?k" if keyed else f"?{low}k"), (f"FILTER({condition})" if condition else "")
    return f"  DEFINE GPM {name} ON {stream} {{ ?{low} :kind :{low} ; :k {key} ; :v ?v{low} . {also} }}"


def _reading(kind: str, key: int, value: int, number: int) -> str:
    it = f"<http://e/{kind}{number}>"
    triples = [
        ("kind", f"<http://e/{kind}>"),
        ("k", f'"{key}"'),
        ("v", f'"{value}"^^<http://www.w3.org/2001/XMLSchema#integer>'),
    ]
    return "".join(f"{it} <http://e/{name}> {value} .\n" for name, value in triples)


def accepted(situation: Twofold) -> bool:
    try:
        load(situation.text)
        load(situation.plain)
    except QueryError:
        return False
    return True


def unlike(situation: Situation) -> str | None:
    """How UNTIL differs from negations in all gaps: those of the reference."""
    assert isinstance(situation, Twofold)
    query = load(situation.plain)
    expected, answers = by_reference(query, situation)
    if expected.ambiguous:
        return None
    _, found = by_run(load(situation.text), situation)
    wanted, given = comparable(query, answers), comparable(query, found)
    return None if wanted == given else f"missing {dict(wanted - given)}, too much {dict(given - wanted)}"


@drawn(100)
@given(ended())
def test_it_is_a_negation_in_every_gap(situation: Twofold) -> None:
    if accepted(situation):
        fault = unlike(situation)
        assert fault is None, f"{situation.text}\n{situation.plain}\n{situation.streams}\n{fault}"
        fail_small(situation, disorder)


@drawn(15)
@given(ended(), st.integers(0, 1 << 30))
def test_a_run_that_is_saved_and_restored_continues(situation: Twofold, seed: int) -> None:
    if accepted(situation):
        moving, still = both(situation, random.Random(seed), crowd=True)
        assert_same(moving, still)


@drawn(15)
@given(ended(), st.integers(0, 1 << 30), st.sampled_from([1, 3]), st.booleans())
def test_buckets_find_what_one_run_finds(situation: Twofold, seed: int, buckets: int, fresh: bool) -> None:
    if accepted(situation):
        compare(situation, seed, buckets, fresh)


# --- what a FILTER of UNTIL reads -----------------------------------------------------------------


_UNTILS = [("", ()), ("UNTIL U", ("",)), ("UNTIL V", ("", "")), ("UNTIL U | V", ("", "")), ("UNTIL U", ("?vu > 9",))]


def _text(sequence: str, until: str, *conditions: str, window: str = "WITHIN PT1S SLIDING") -> str:
    gpms = [_gpm(name, "S", False, "?va >= 0" if name == "A" else "") for name in "ABC" if name in sequence]
    gpms += [_gpm(name, "S", False, condition) for name, condition in zip("UV", conditions, strict=False)]
    head = f"PREFIX : <http://e/>\nSELECT ?a ?c {window}\nFROM STREAM S <{_S}>\nWHERE {{\n  SEQ({sequence}) {until}\n"
    return head + "\n".join(gpms) + "\n}"


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


def test_queries_that_differ_in_it_alone_are_not_one() -> None:
    shown = ["SELECT ?a ?c", "SELECT (COUNT(*) AS ?n)"]
    each = [_text("A; B; C", until, *conditions) for until, conditions in _UNTILS]
    texts = [text.replace(shown[0], form) for text in each for form in shown]

    def found_by(*texts: str) -> list[list[str]]:
        with oxiseq.open() as store:
            lives = [store.register(text) for text in texts]
            store.stream(_S).extend(_stream("abcabucabvcabvuc"))
            store.stream(_S).advance(99)
            return [[str(match) for match in live.poll("0s", idle=None)] for live in lives]

    together = found_by(*texts)
    assert together == [found for text in texts for found in found_by(text)]
    assert [len(found) for found in together[::2]] == [4, 2, 2, 1, 3]
