"""SPAseq's Query 6: which vessels went fishing."""

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
        minutes = len(match.events["B"])
        print(f"{match.at:%H:%M}  {match['n'].value} of {match['cname'].value}, {minutes} min at sea")
