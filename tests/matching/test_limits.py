"""Limits: what is too much is reported, never cut silently."""

from __future__ import annotations

import pytest
from graph_patterns import batch_of, parsed, request
from pyoxigraph import RdfFormat, parse

from oxiseq.engine.errors import LimitError
from oxiseq.engine.patterns.matcher import MatchLimits, StreamMatcher
from oxiseq.engine.patterns.plan import compile_stream
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
