"""Limits: what is too much is reported, never cut silently."""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence

import numpy as np
import pytest
from graph_patterns import batch_of, parsed, random_bgp, random_condition, random_event, request
from hypothesis import given
from hypothesis import strategies as st
from pyoxigraph import NamedNode, RdfFormat, Triple, parse

from oxiseq.engine.bounds import InstantBounds
from oxiseq.engine.errors import LimitError, MappingsError
from oxiseq.engine.events.batch import EventBatch
from oxiseq.engine.patterns.matcher import MatchLimits, StreamMatcher
from oxiseq.engine.patterns.plan import combine, compile_stream
from oxiseq.engine.terms.dictionary import TermDictionary

EVENT = "<http://e/a> <http://e/p> " + ", ".join(str(i) for i in range(20)) + " ."
CROSS = "?x :p ?y . ?z :p ?u"


@pytest.mark.parametrize("body", [CROSS, CROSS + " OPTIONAL { ?x :q ?w }"], ids=["kernel", "store"])
def test_too_many_mappings_name_the_gpm_and_the_event(body: str) -> None:
    terms = TermDictionary()
    triples = [quad.triple for quad in parse(EVENT, RdfFormat.TURTLE)]
    batch, _ = batch_of([[], triples], terms)
    plan = compile_stream([request(parsed(body, "Big"))], terms)
    assert len(StreamMatcher(plan, terms, limits=MatchLimits(rows=400)).match(batch)[0]) == 400
    with pytest.raises(LimitError, match=r"mappings of GPM Big on the event at 1970-01-01T00:00:00.000001Z") as raised:
        StreamMatcher(plan, terms, limits=MatchLimits(rows=399)).match(batch)
    assert (raised.value.given, raised.value.limit) == (400, 399)


def test_too_many_steps_of_a_join() -> None:
    terms = TermDictionary()
    triples = [quad.triple for quad in parse(EVENT, RdfFormat.TURTLE)]
    batch, _ = batch_of([triples], terms)
    plan = compile_stream([request(parsed(CROSS + " FILTER(?y + ?u > 1000)"))], terms)
    with pytest.raises(LimitError, match="steps of the join of GPM A"):
        StreamMatcher(plan, terms, limits=MatchLimits(visits=100)).match(batch)
    assert len(StreamMatcher(plan, terms).match(batch)[0]) == 0
    terms.bounds = InstantBounds(reads=100)
    with pytest.raises(LimitError, match="steps of the join of GPM A"):
        StreamMatcher(plan, terms).match(batch)


def test_too_many_rows_that_a_pattern_drops_again() -> None:
    terms = TermDictionary()
    triples = [quad.triple for quad in parse(EVENT, RdfFormat.TURTLE)]
    batch, _ = batch_of([triples], terms)
    plan = compile_stream([request(parsed("?x :p ?y OPTIONAL { ?z :p ?u FILTER(?y + ?u > 1000) }"))], terms)
    rows = len(StreamMatcher(plan, terms).match(batch)[0])
    assert 10 < rows < 100
    terms.bounds = InstantBounds(made=100)
    with pytest.raises(LimitError, match="mappings of GPM A on the event"):
        StreamMatcher(plan, terms).match(batch)


Found = tuple[list[int], list[list[int]], list[tuple[int, str]]]
"""Of a GPM: the event of each row, its values, the events without rows and why."""


def found_by(matcher: StreamMatcher, batch: EventBatch) -> list[Found]:
    """What each of the kernel's GPMs has on a batch."""
    rows = matcher.rows_of(matcher.find(batch).tolist())
    found = []
    for number, gpm in enumerate(matcher.plan.kernel):
        width, errors = matcher.plan.widths[gpm.request], matcher.beyond.get(number, {})
        mine = rows.get(gpm.request, matcher.nothing[gpm.request]).copied(width)
        found.append((mine.event.tolist(), mine.values.tolist(), reasons(errors)))
    return found


def reasons(errors: Mapping[int, MappingsError]) -> list[tuple[int, str]]:
    assert all(error.event == event for event, error in errors.items())
    return [(event, str(error)) for event, error in sorted(errors.items())]


def hub(triples: int) -> list[Triple]:
    """A graph of one subject, which can be joined with itself so often."""
    (quad,) = parse("<http://e/hub> <http://e/p> 1 .", RdfFormat.TURTLE)
    one = quad.triple
    return [Triple(one.subject, one.predicate, NamedNode(f"http://e/{i}")) for i in range(triples)]


THRICE = "?x :p ?y , ?z , ?u ."
OTHERS = [THRICE + " FILTER(?y = :a)", "?x :p ?y", "?x :p ?y . FILTER(?y = :b)", "?x :p ?y . ?x :q ?z"]


def test_one_of_many_patterns_explodes_on_one_event() -> None:
    """2,000 triples joined thrice are more than can be made: the others and the other events have all their rows, those
    of the same graph pattern with a filter, too."""
    terms = TermDictionary()
    small = [quad.triple for quad in parse("<http://e/a> <http://e/p> 1, 2 ; <http://e/q> 3 .", RdfFormat.TURTLE)]
    batch, _ = batch_of([small, hub(2_000), small, hub(20)], terms)
    plans = [compile_stream([request(parsed(body, f"G{i}"))], terms) for i, body in enumerate([THRICE, *OTHERS])]
    plan, _ = combine(plans)
    matcher = StreamMatcher(plan, terms)
    exploded, *others = found_by(matcher, batch)
    assert np.bincount(exploded[0]).tolist() == [8, 0, 8, 8_000]
    assert [event for event, _ in exploded[2]] == [1] and "mappings of GPM G0" in exploded[2][0][1]
    unbound = MatchLimits(rows=1 << 40, visits=1 << 40)
    for each, one in zip(others, plans[1:], strict=True):
        assert each == found_by(StreamMatcher(one, terms, limits=unbound), batch)[0]
    assert len(others[1][0]) == 2 + 2_000 + 2 + 20


def random_bodies(dice: random.Random) -> list[str]:
    """Of GPMs, many of which have a graph pattern in common; some are equal."""
    bodies = []
    patterns = [random_bgp(dice) for _ in range(2)]
    for _ in range(dice.randint(2, 8)):
        pattern = dice.choice(patterns)
        used = [f"?{v}" for v in "xyzuv" if f"?{v} " in pattern]
        filters = (
            [random_condition(dice, used, functions=dice.random() < 0.5) for _ in range(dice.choice([0, 0, 1, 2]))]
            if used
            else []
        )
        bodies.append(dice.choice([*bodies, pattern + "".join(f" FILTER({each})" for each in filters)]))
    return bodies


@given(st.integers(0, 2**62))
def test_a_limit_is_of_one_pattern_on_one_event(seed: int) -> None:
    """Rows and errors are those of each GPM alone, and its other events are not touched."""
    dice = random.Random(seed)
    terms = TermDictionary()
    plans = [compile_stream([request(parsed(body, f"G{i}"))], terms) for i, body in enumerate(random_bodies(dice))]
    batch, _ = batch_of([random_event(dice, dice.choice([2, 8, 20]), odd=False) for _ in range(6)], terms)
    limits = MatchLimits(
        rows=dice.choice([0, 3, 12, 10**6]), visits=dice.choice([8, 30, 10**6]), buffer=dice.choice([1, 64])
    )
    wanted = np.array([dice.random() < 0.8 for _ in plans])

    matchers = [StreamMatcher(one, terms, limits=limits) for one in plans]
    together = StreamMatcher(combine(plans)[0], terms, limits=limits)
    together.want(wanted)
    for part in (batch.slice(2, 4), batch, batch):  # conditions are known of the terms of events before, or are not
        for number, (found, alone) in enumerate(zip(found_by(together, part), matchers, strict=True)):
            if not wanted[number]:
                assert found == ([], [], [])
                continue
            if dice.random() < 0.5:
                assert found == found_by(alone, part)[0]
            (rows,), beyond = alone.match_within(part)
            assert found == (rows.event.tolist(), rows.values.tolist(), reasons(beyond))
            events, values, _ = found_by(StreamMatcher(alone.plan, terms), part)[0]
            assert found[:2] == tuple(
                [value for event, value in zip(events, column, strict=True) if event not in beyond]
                for column in (events, values)
            )


def test_rows_that_a_condition_refuses_do_not_count() -> None:
    """Not even where nobody has evaluated it before."""
    terms = TermDictionary()
    triples = [quad.triple for quad in parse(EVENT, RdfFormat.TURTLE)]
    batch, _ = batch_of([triples], terms)
    for least, rows in ((2, 200), (3, 0)):
        body = f"{CROSS} FILTER(STRLEN(STR(?y)) >= {least})"
        plan = compile_stream([request(parsed(body))], terms)
        matcher = StreamMatcher(plan, terms, limits=MatchLimits(rows=200))
        assert [len(matcher.match(batch)[0]) for _ in range(2)] == [rows, rows]


@pytest.mark.parametrize(
    "bodies", [[CROSS, "?x :p ?y"], ["?x :p ?y", CROSS], [CROSS, CROSS + " OPTIONAL { ?x :q ?w }"]]
)
def test_an_event_beyond_a_limit_has_no_rows_of_the_whole_plan(bodies: Sequence[str]) -> None:
    """Where one query asks: its other patterns have none there either, and the error is of the first of them."""
    terms = TermDictionary()
    triples = [quad.triple for quad in parse(EVENT, RdfFormat.TURTLE)]
    batch, _ = batch_of([triples[:2], triples, [], triples[:3]], terms)
    plan = compile_stream([request(parsed(body, f"G{i}")) for i, body in enumerate(bodies)], terms)
    found, beyond = StreamMatcher(plan, terms, limits=MatchLimits(rows=399)).match_within(batch)
    assert [set(each.event.tolist()) for each in found] == [{0, 3}] * 2
    first = bodies.index(CROSS)
    assert [(event, error.what.split()[:4]) for event, error in beyond.items()] == [
        (1, ["mappings", "of", "GPM", f"G{first}"])
    ]
