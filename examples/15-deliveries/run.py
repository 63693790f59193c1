"""EP-SPARQL's delivery of goods: recursive rules over interval events, places of a map."""

from __future__ import annotations

from pathlib import Path

from make_events import streams

import oxiseq

HERE = Path(__file__).parent


def main() -> oxiseq.Matches:
    """What has been delivered."""
    query, first, following = (
        (HERE / f"{name}.epsparql").read_text(encoding="utf-8") for name in ("query", "first", "next")
    )
    kb, rules = HERE / "kb.trig", [first, following]
    return oxiseq.run(query, streams=streams(), kb=kb, language="epsparql", rules=rules)


if __name__ == "__main__":
    for match in main():
        row = (term.value.rpartition("#")[2] for term in match.values() if term is not None)
        print(f"{match.end_us / 3_600_000_000:4.1f} h", *row)
