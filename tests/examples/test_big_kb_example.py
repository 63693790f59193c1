"""The example of a loaded knowledge base: what was planted is found."""

from __future__ import annotations

from example_loading import load


def test_only_the_machine_that_is_hot_twice_matches() -> None:
    report, matches = load("10-big-kb").main()
    assert [(m["device"].value[-2:], m["first"].value, m["second"].value, m["hall"].value) for m in matches] == [
        ("m1", "85", "88", "North")
    ]
    assert (report.quarantined, report.stored) == (1, 9)
    assert report.faults[0].split("/")[-1].startswith("halls.nt:2: ")
