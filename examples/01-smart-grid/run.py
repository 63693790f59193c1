"""SPAseq's Query 1: where stored solar power would be cheaper."""

from __future__ import annotations

from pathlib import Path

from make_events import streams

import oxiseq

HERE = Path(__file__).parent


def main() -> oxiseq.Matches:
    """Run the query."""
    text = (HERE / "query.spaseq").read_text(encoding="utf-8")
    return oxiseq.run(text, streams=streams(), kb=HERE / "kb.nq")


if __name__ == "__main__":
    for match in main():
        house, owner, fare, offered = match["house"], match["oname"], match["fr1"], match["fr2"]
        print(
            f"{match.at:%H:%M}  {house} of {owner}: {fare.value} → {offered.value}, "
            f"{len(match.events['B'])} good weather readings"
        )
