"""What a run remembers is held when terms are freed (the differential test does so after every push)."""

from __future__ import annotations

from engine_runs import STREAM, Driven, Reading, query
from pyoxigraph import Literal


def test_what_distinct_remembers_is_held_between_two_windows_that_close() -> None:
    """Two matches of one end and one computed value; terms are freed between them and their numbers given again."""
    text = query("A : B : N!", "WITHIN PT0.00001S SLIDING", "SELECT DISTINCT (?bv * 1000 AS ?thousands)")
    driven = Driven(text)
    driven.push([Reading(1, "a"), Reading(3, "a"), Reading(5, "b", value=7)])
    assert driven.advance() == []
    driven.push([Reading(12, "c")])
    driven.run.punctuate(STREAM, 12)
    first = driven.advance()
    assert [columns for _, columns, _ in first] == [('"7000"^^<http://www.w3.org/2001/XMLSchema#integer>',)]
    driven.terms.collect()
    driven.terms.intern_all(Literal(f"takes a free number {n}") for n in range(50))
    assert driven.finish() == []
