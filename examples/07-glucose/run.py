"""Glucose spikes; `run.py rebound` and `run.py stays-low` run the other two queries."""

from __future__ import annotations

import sys
from pathlib import Path

from make_events import streams

import oxiseq

HERE = Path(__file__).parent


def main(query: str = "query") -> oxiseq.Matches:
    """Run one of the three queries."""
    text = (HERE / f"{query}.spaseq").read_text(encoding="utf-8")
    return oxiseq.run(text, streams=streams(), kb=HERE / "kb.nq")


if __name__ == "__main__":
    matches = main(*sys.argv[1:2])
    print(matches)
    for match in list(matches)[:20]:
        print(f"{match.at:%Y-%m-%d %H:%M} ", *(f"{v}={t.value}" for v, t in match.items()))
