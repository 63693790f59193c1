"""The live example: a query's matches are another query's events."""

from __future__ import annotations

from example_loading import load


def test_surges_and_their_streets() -> None:
    surges, streets = load("08-live").main()
    assert [f"{match.at:%H:%M}" for match in surges] == ["08:02", "08:04", "08:05", "08:14", "08:16", "08:30"]
    watts = [t.object.value for match in surges for t in match.graph if t.predicate.value.endswith("#watts")]
    assert watts == ["4100", "3900", "5000", "3800", "3500", "4200"]
    names = ("street", "first", "second")
    found = [(f"{m.at:%H:%M}", *(m[name].value.rsplit("#")[-1] for name in names)) for m in streets]
    # h3 and h4 are of one street but surge 25 minutes apart; h5 is of h1's street since its own surge
    assert found == [("08:04", "Mill Lane", "h1", "h2"), ("08:16", "Mill Lane", "h5", "h1")]
