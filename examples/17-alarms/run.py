"""Alarms that nobody has acknowledged in time: bounds per gap, decided without a later event."""

from __future__ import annotations

from pathlib import Path

from make_events import streams

import oxiseq

HERE = Path(__file__).parent


def main() -> oxiseq.Matches:
    """Run the query."""
    return oxiseq.run((HERE / "query.spaseq").read_text(encoding="utf-8"), streams=streams())


if __name__ == "__main__":
    for match in main():
        machine, since, third, hottest = (match[v].value for v in ("machine", "since", "third", "hottest"))
        print(f"{machine.rsplit('/', 1)[-1]}: hot since {since}, third reading {third}, {hottest} degrees")
