"""Negated groups and bounds: the engine and the reference give the same matches of random sequences that have both."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st
from profiles import drawn
from strategies import Situation
from test_differential import difference, disorder, fail_small

from oxiseq.grammar.checks import load
from oxiseq.grammar.errors import QueryError

_S = "http://e/s"
_LEFT = ["A", "A+", "A{2}", "(A & X)", "A: X?", "(A: X)", "A? ; X", "A; Y!", "A; X WITHIN 4u", "A;+ WITHIN 2u"]
_GROUP = ["(B; C)", "(B: C)", "(B; (C | D))", "((B | D); C)", "(B; C; D)", "(B; (C & D))"]
_RIGHT = ["N", "N+", "N{1,2}", "N?; M", "(N | M)", "M!; N", "N; M WITHIN 3u", "(N; M AFTER 2u)"]
_WINDOWS = ["", "", "WITHIN PT0.000006S SLIDING", "WITHIN PT0.000007S", "WITHIN 5 EVENTS SLIDING"]
_WHOLE = ["{}", "{}", "({})+", "({});+ LASTING 6u", "Z; {}", "Z:+; ({}):{{1,2}}"]


@st.composite
def grouped(draw: st.DrawFn) -> Situation:
    """A sequence with a negated group, and readings of few kinds, keys and values."""
    ops = [draw(st.sampled_from([";", ":", ","])) for _ in range(2)]
    bound = draw(st.sampled_from(["", *(f" WITHIN {n}u" for n in (1, 2, 3, 5))]))
    group = f"{draw(st.sampled_from(_GROUP))}!{bound}"
    inner = f"{draw(st.sampled_from(_LEFT))}{ops[0]} {group}{ops[1]} {draw(st.sampled_from(_RIGHT))}"
    sequence = draw(st.sampled_from(_WHOLE)).format(inner)
    sequence = " ".join(f"PT0.00000{w[0]}S{w[2:]}" if w[1:2] == "u" else w for w in sequence.split())
    window = draw(st.sampled_from(_WINDOWS))
    keyed = draw(st.sets(st.sampled_from("ABCDMNXYZ")))
    gpms = [_gpm(name, name in keyed) for name in "ABCDMNXYZ" if name in sequence]
    text = f"PREFIX : <http://e/>\nSELECT * {window}\nFROM STREAM S1 <{_S}>\nWHERE {{\n  SEQ({sequence})\n"
    reading = st.tuples(st.integers(0, 14), st.sampled_from("aabbbccdmnnxyz"), st.integers(1, 2))
    readings = sorted(draw(st.lists(reading, min_size=3, max_size=14)))
    events = [(time, _reading(kind, key, i)) for i, (time, kind, key) in enumerate(readings)]
    pauses = frozenset(draw(st.sets(st.integers(0, len(events) - 1))))
    return Situation(text + "\n".join(gpms) + "\n}", {_S: events}, "", 0, (_S,) * len(events), pauses)


def _gpm(name: str, keyed: bool) -> str:
    low = name.lower()
    return f"  DEFINE GPM {name} ON S1 {{ ?{low} :kind :{low} ; :k {'?k' if keyed else f'?{low}k'} . }}"


def _reading(kind: str, key: int, number: int) -> str:
    it = f"<http://e/{kind}{number}>"
    return f'{it} <http://e/kind> <http://e/{kind}> .\n{it} <http://e/k> "{key}" .\n'


@drawn(25)
@given(grouped())
def test_run_agrees_with_the_reference(situation: Situation) -> None:
    try:
        load(situation.text)
    except QueryError:
        return
    fail_small(situation, difference)
    fail_small(situation, disorder)
