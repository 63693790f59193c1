"""Many GPMs in one pass: thresholds on one variable (ladders), constant objects, masks beyond one word."""

from __future__ import annotations

import random

import pytest
from graph_patterns import (
    ODD,
    PLAIN,
    as_mappings,
    batch_of,
    expected_mappings,
    parsed,
    random_event,
    request,
)
from hypothesis import given
from hypothesis import strategies as st
from pyoxigraph import Literal, NamedNode, Triple

from oxiseq.engine.kernels.expressions import machine
from oxiseq.engine.matching.tables import LADDER_FROM, MAX_SHARING, build_tables
from oxiseq.engine.patterns.matcher import StreamMatcher
from oxiseq.engine.patterns.plan import combine, compile_stream
from oxiseq.engine.terms.dictionary import TermDictionary
from oxiseq.grammar.algebra import Gpm

NUMBERS = [
    "1",
    "2",
    "2.5",
    "2e0",
    "0.1",
    "1e-1",
    "16777217",
    "9007199254740992",
    "9007199254740993",
    "1e400",
    "-0e0",
    '"NaN"^^xsd:double',
    '"0.1"^^xsd:float',
    "9007199254740992e0",
    "1" * 20,
]
OPERATORS = ["=", "!=", "<", ">", "<=", ">="]


def thresholds(dice: random.Random, body: str, number: int) -> list[Gpm]:
    """GPMs that share their BGP; each compares with numbers of its own."""
    gpms = []
    for i in range(number):
        filters = "".join(
            f" FILTER({v} {dice.choice(OPERATORS)} {dice.choice(NUMBERS)})" for v in dice.choice([["?y"], ["?y", "?z"]])
        )
        gpms.append(parsed(body + filters, f"G{i}"))
    return gpms


def check(gpms: list[Gpm], events: list[list[Triple]]) -> None:
    terms = TermDictionary()
    wanted = [request(gpm) for gpm in gpms]
    batch, labels = batch_of(events, terms)
    matcher = StreamMatcher(compile_stream(wanted, terms), terms)
    for gpm, one, found in zip(gpms, wanted, matcher.match(batch), strict=True):
        for event, got in zip(events, as_mappings(found, one, labels, terms), strict=True):
            assert len(set(got)) == len(got)
            assert set(got) == expected_mappings(gpm, event), str(gpm)


@given(st.integers(0, 2**62))
def test_thresholds_of_many_patterns(seed: int) -> None:
    dice = random.Random(seed)
    body = dice.choice(["?x :p ?y . ?x :q ?z .", "?x :p ?y , ?z .", "?y ?x ?z .", "?x :p ?y . ?z :q ?y ."])
    gpms = thresholds(dice, body, dice.choice([2, 2 * LADDER_FROM, 30]))
    check(gpms, [random_event(dice, 10, odd=True) for _ in range(2)])


def test_ladders_are_made() -> None:
    terms = TermDictionary()
    requests = [request(parsed(f"?x :p ?y FILTER(?y > {i})", f"G{i}")) for i in range(LADDER_FROM)]
    few, many = (build_tables(compile_stream(some, terms).native, terms) for some in (requests[1:], requests))
    assert (len(few.ladders), len(many.ladders)) == (0, 1)
    assert many.filters[:, 1].min() >= 0, "each of them is decided by doubles too"
    assert machine.ABOVE in many.code


def test_more_patterns_than_a_mask_has_bits() -> None:
    number = 2 * MAX_SHARING + 3
    gpms = [parsed(f"?x :p ?y FILTER(?y >= {i})", f"G{i}") for i in range(number)]
    values = [Literal(str(i), datatype=PLAIN[0].datatype) for i in (0, MAX_SHARING, number - 1)]
    event = [Triple(NamedNode("http://e/a"), NamedNode("http://e/p"), value) for value in values]
    terms = TermDictionary()
    batch, _ = batch_of([event], terms)
    found = StreamMatcher(compile_stream([request(gpm) for gpm in gpms], terms), terms).match(batch)
    assert [len(each) for each in found] == [3] + [2] * MAX_SHARING + [1] * (number - 1 - MAX_SHARING)


@given(st.integers(0, 2**62))
def test_constant_objects_of_many_patterns(seed: int) -> None:
    dice = random.Random(seed)
    constants = [":a", ":b", ":c", "1", "2.5", "2e0", '"a"', '"a"@en', "true", "16777217", '"x"^^xsd:integer']
    bodies = [
        dice.choice(["?x :p {} .", "?x :p {} . ?x :q ?y .", "?x ?y {} .", ":a :p {} . ?x :q {} ."]).replace("{}", c)
        for c in constants
    ]
    events = [
        [
            Triple(NamedNode(f"http://e/{dice.choice('ab')}"), NamedNode(f"http://e/{dice.choice('pqr')}"), value)
            for value in dice.choices([*PLAIN, *ODD, NamedNode("http://e/a"), NamedNode("http://e/c")], k=12)
        ]
        for _ in range(2)
    ]
    check([parsed(body, f"G{i}") for i, body in enumerate(bodies)], events)


@pytest.mark.parametrize("memo", [False, True])
@given(st.integers(0, 2**62))
def test_plans_are_combined(memo: bool, seed: int) -> None:
    """Two plans in one pass find what each finds alone; memo tables get new numbers."""
    dice = random.Random(seed)
    texts = ["STRLEN(STR(?y)) > 1", "isLiteral(?y)", "STR(?y) < 'b'", "REGEX(STR(?z), 'a')"]
    terms = TermDictionary()
    requests = []
    for _ in range(2):
        gpms = thresholds(dice, "?x :p ?y . ?x :q ?z .", dice.randint(1, 6))
        if memo:
            gpms = [parsed(f"?x :p ?y . ?x :q ?z . FILTER({dice.choice(texts)})", g.name) for g in gpms]
        requests.append([request(gpm) for gpm in gpms])
    plans = [compile_stream(each, terms) for each in requests]
    plan, owners = combine(plans)
    batch, _ = batch_of([random_event(dice, 20, odd=True) for _ in range(3)], terms)
    rows = StreamMatcher(plan, terms).rows(batch)
    together = [each.copied(width) for each, width in zip(rows, plan.widths, strict=True)]
    alone = [StreamMatcher(each, terms).match(batch) for each in plans]
    for found, (number, own) in zip(together, owners, strict=True):
        assert found.event.tolist() == alone[number][own].event.tolist()
        assert found.values.tolist() == alone[number][own].values.tolist()
    assert sorted(owners) == [(n, i) for n, each in enumerate(requests) for i in range(len(each))]
