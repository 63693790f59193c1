"""Basic graph patterns with filters: the kernel against the reference, triple pattern by triple pattern."""

from __future__ import annotations

import random

import pytest
from graph_patterns import (
    VARIABLES,
    as_mappings,
    assert_as_expected,
    batch_of,
    expected_mappings,
    parsed,
    random_bgp,
    random_condition,
    random_event,
    request,
)
from hypothesis import given
from hypothesis import strategies as st
from pyoxigraph import RdfFormat, Triple, parse

from oxiseq.engine.patterns.matcher import DEFAULT_LIMITS, MatchLimits, StreamMatcher
from oxiseq.engine.patterns.plan import GpmRequest, compile_stream
from oxiseq.engine.terms.dictionary import TermDictionary
from oxiseq.grammar.algebra import Gpm

TINY = MatchLimits(buffer=1, heads=2, hash_from=1, grow_heads=False)
LIMITS = [DEFAULT_LIMITS, TINY, MatchLimits(buffer=7, heads=8, hash_from=3, grow_heads=False)]


def random_gpms(dice: random.Random) -> list[Gpm]:
    """One to four GPMs that may share their BGP and differ by filters."""
    shared = random_bgp(dice)
    gpms = []
    for number in range(dice.randint(1, 4)):
        bgp = shared if dice.random() < 0.7 else random_bgp(dice)
        used = [f"?{v}" for v in VARIABLES if f"?{v} " in bgp]
        filters = [random_condition(dice, used) for _ in range(dice.choice([0, 0, 1, 1, 2]) if used else 0)]
        gpms.append(parsed(f"{bgp} {' '.join(f'FILTER({f})' for f in filters)}", f"G{number}"))
    return gpms


@given(st.integers(0, 2**62))
def test_rows_are_those_of_the_reference(seed: int) -> None:
    dice = random.Random(seed)
    gpms = random_gpms(dice)
    wanted = [request(gpm) for gpm in gpms]
    terms = TermDictionary()
    matcher = StreamMatcher(compile_stream(wanted, terms), terms, limits=dice.choice(LIMITS))
    for _ in range(2):  # the second batch finds the memo tables filled
        events = [random_event(dice, dice.choice([6, 16, 30]), odd=True) for _ in range(3)]
        assert_as_expected(gpms, matcher, wanted, events, terms)


@given(st.integers(0, 2**62))
def test_order_within_an_event_does_not_depend_on_the_batch(seed: int) -> None:
    dice = random.Random(seed)
    wanted = [request(gpm) for gpm in random_gpms(dice)]
    events = [random_event(dice, 16, odd=True) for _ in range(4)]
    terms = TermDictionary()
    plan = compile_stream(wanted, terms)
    batch, labels = batch_of(events, terms)
    together = [
        as_mappings(found, one, labels, terms)
        for one, found in zip(wanted, StreamMatcher(plan, terms).match(batch), strict=True)
    ]
    alone = StreamMatcher(plan, terms, limits=MatchLimits(buffer=1))
    for i in range(len(events)):
        for k, (one, found) in enumerate(zip(wanted, alone.match(batch.slice(i, i + 1)), strict=True)):
            assert as_mappings(found, one, [labels[i]], terms)[0] == together[k][i]


@pytest.mark.parametrize("limits", LIMITS, ids=["default", "tiny", "small"])
def test_large_views(limits: MatchLimits) -> None:
    """Stars, chains and triangles over views of a hundred triples, with duplicates."""
    dice = random.Random(3)
    bodies = ["?x :p ?y . ?y :q ?z", "?x :p ?y . ?x :q ?z", "?x :p ?y . ?y :q ?z . ?z :r ?x", "?x ?y ?x"]
    text = "\n".join(
        f"<http://e/n{dice.randrange(12)}> <http://e/{dice.choice('pqr')}> <http://e/n{dice.randrange(12)}> ."
        for _ in range(200)
    )
    event = _triples(text)
    gpms = [parsed(body, f"G{i}") for i, body in enumerate(bodies)]
    terms = TermDictionary()
    wanted = [request(gpm) for gpm in gpms]
    batch, labels = batch_of([event], terms)
    for gpm, one, found in zip(
        gpms,
        wanted,
        StreamMatcher(compile_stream(wanted, terms), terms, limits=limits).match(batch),
        strict=True,
    ):
        got = as_mappings(found, one, labels, terms)[0]
        assert len(set(got)) == len(got)
        assert set(got) == expected_mappings(gpm, event)


def test_projection_repeats_mappings() -> None:
    gpm = parsed("?x :p ?y")
    terms = TermDictionary()
    one = request(gpm, ["x"])
    batch, _ = batch_of([_triples("<http://e/a> <http://e/p> 1, 2 .")], terms)
    assert len(StreamMatcher(compile_stream([one], terms), terms).match(batch)[0]) == 2


def test_blank_node_variables_do_not_multiply() -> None:
    assert _count("?x :p [] ", "<http://e/a> <http://e/p> 1, 2 .") == 1
    assert _count("?x :p [ :q ?y ]", "<http://e/a> <http://e/p> [ <http://e/q> 1 ], [ <http://e/q> 1.0, 01 ] .") == 2


def test_normalised_duplicates_are_one_triple() -> None:
    assert _count("?x :p ?y", '<http://e/a> <http://e/p> 1, 01, "1"^^<http://www.w3.org/2001/XMLSchema#byte> .') == 1


def test_empty_pattern_matches_every_event_once() -> None:
    terms = TermDictionary()
    one: GpmRequest = request(parsed("FILTER(1 < 2)"))
    batch, _ = batch_of([[], _triples("<http://e/a> <http://e/p> 1 .")], terms)
    found = StreamMatcher(compile_stream([one], terms), terms).match(batch)[0]
    assert found.event.tolist() == [0, 1]
    assert found.values.shape == (2, 0)


def _count(body: str, event: str) -> int:
    terms = TermDictionary()
    batch, _ = batch_of([_triples(event)], terms)
    return len(StreamMatcher(compile_stream([request(parsed(body))], terms), terms).match(batch)[0])


def _triples(text: str) -> list[Triple]:
    return [quad.triple for quad in parse(text, RdfFormat.TURTLE)]


def test_unknown_function_is_an_error_hence_false() -> None:
    event = "<http://e/a> <http://e/p> 1 ."
    assert _count("?x :p ?y FILTER(<http://e/f>(?y))", event) == 0
    assert _count("?x :p ?y FILTER(<http://e/f>(?x, ?y))", event) == 0
    assert _count("?x :p ?y FILTER(COALESCE(<http://e/f>(?y), true))", event) == 1
