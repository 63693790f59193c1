"""SPAseq's Query 3: head and shoulders, on real quotes.

`run.py` runs query.spaseq, the paper's own filters and operators; `run.py runs` runs the demonstration's
head-and-shoulders.spaseq, which lets each rise and fall take several days.
"""

from __future__ import annotations

import sys
from pathlib import Path

from make_events import streams

import oxiseq
from oxiseq.demo.show import HERE as DEMO
from oxiseq.demo.show import KB

QUERIES = {
    "query": Path(__file__).parent / "query.spaseq",
    "runs": DEMO / "head-and-shoulders.spaseq",
}


def main(query: str = "query") -> oxiseq.Matches:
    """Run one of the two queries."""
    return oxiseq.run(QUERIES[query].read_text(encoding="utf-8"), streams=streams(), kb=KB)


if __name__ == "__main__":
    matches = main(*sys.argv[1:2])
    print(matches)
    for match in list(matches)[:20]:
        print(f"{match.at:%Y-%m-%d} ", *(f"{v}={t.value}" for v, t in match.items()))
