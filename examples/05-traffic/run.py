"""SPAseq's Query 5: traffic that moves on to two roads. aarhus.py runs it on real readings."""

from __future__ import annotations

from pathlib import Path

from make_events import streams

import oxiseq

HERE = Path(__file__).parent


def main() -> oxiseq.Matches:
    """Run the query."""
    text = (HERE / "query.spaseq").read_text(encoding="utf-8")
    return oxiseq.run(text, streams=streams())


if __name__ == "__main__":
    for match in main():
        ((_, began),) = match.events["A"]
        levels = ", ".join(match[v].value for v in ("v1", "v2", "v3"))
        print(f"minute {began // 60_000_000} → {match.at_us // 60_000_000}: levels {levels}")
