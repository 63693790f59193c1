"""The example of process conformance: its rules find what plain loops over the log find."""

from __future__ import annotations

from click.testing import CliRunner
from example_loading import EXAMPLES, load

from oxiseq.cli import main

HOME = EXAMPLES / "18-process"
DAY = 86_400_000_000


def test_violations_are_those_of_plain_loops() -> None:
    cases: dict[str, list[tuple[str, int]]] = {}
    for case, activity, time in load("18-process", "make_events").rows():
        cases.setdefault(case, []).append((activity, time))
    at = {case: dict(events) for case, events in cases.items()}
    expected = {
        "response pay ship, within 2 days": {
            c for c, t in at.items() if "pay" in t and not t["pay"] < t.get("ship", 0) <= t["pay"] + 2 * DAY
        },
        "response pay ship": {c for c, t in at.items() if "pay" in t and t.get("ship", 0) < t["pay"]},
        "precedence pay ship": {c for c, t in at.items() if "ship" in t and t.get("pay", t["ship"]) >= t["ship"]},
        "not-co-existence cancel pay": {c for c, t in at.items() if "cancel" in t and "pay" in t},
        "init order": {c for c, events in cases.items() if events[0][0] != "order"},
        "existence ship": {c for c, t in at.items() if "ship" not in t},
    }
    found = {
        rule: {match["case"].value.rpartition("/")[2] for match in matches}
        for rule, matches in load("18-process").main().items()
    }
    assert found == expected
    assert all(found.values())


def test_the_query_is_what_the_command_writes() -> None:
    shop = "http://shop.example/"
    written = CliRunner().invoke(
        main,
        [
            "declare",
            "response",
            "pay",
            "ship",
            "--within",
            "2d",
            "--stream",
            f"{shop}log",
            "--case",
            f"{shop}case",
            "--activity",
            f"{shop}activity",
        ],
    )
    assert written.exit_code == 0
    assert written.stdout == (HOME / "query.spaseq").read_text(encoding="utf-8")
