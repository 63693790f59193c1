"""What a run remembers is held when terms are freed (the differential test does so after every push)."""

from __future__ import annotations

from engine_runs import STREAM, Driven, Reading, query
from pyoxigraph import Literal


def test_rows_that_are_equal_are_distinct_where_their_windows_close_apart() -> None:
    """Two matches of one end and one computed value, one decided at 11 and one at 13; terms are freed between them and
    their numbers given again."""
    text = query("A : B : N!", "WITHIN PT0.00001S SLIDING", "SELECT DISTINCT (?bv * 1000 AS ?thousands)")
    driven = Driven(text)
    driven.push([Reading(1, "a"), Reading(3, "a"), Reading(5, "b", value=7)])
    assert driven.advance() == []
    driven.push([Reading(12, "c")])
    driven.run.punctuate(STREAM, 12)
    value = ('"7000"^^<http://www.w3.org/2001/XMLSchema#integer>',)
    assert driven.advance() == [(5, value, (("A", 1), ("B", 5)))]
    driven.terms.collect()
    driven.terms.intern_all(Literal(f"takes a free number {n}") for n in range(50))
    assert driven.finish() == [(5, value, (("A", 3), ("B", 5)))]
