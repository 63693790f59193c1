"""The same knowledge base loaded on Spark, here or on a cluster.

    python examples/10-big-kb/on_spark.py [MASTER]
    spark-submit --master spark://HOST:7077 examples/10-big-kb/on_spark.py

On a cluster the sources and the parts must be in a folder that all workers see: set OXISEQ_SHARED to one.
"""

from __future__ import annotations

import os
import shutil
import sys
from pathlib import Path
from tempfile import TemporaryDirectory

import oxiseq
from oxiseq.kb_loader import LoadReport, load

HERE = Path(__file__).parent
FACTORY = "http://example.org/factory"
SOURCES = ("classes.ttl", "halls.nt", "machines.csv")
HOT = [(0, "m1"), (8, "m1"), (9, "m3"), (10, "m3")]  # minutes; m3 is a lamp, no machine


def main(master: str | None = None) -> tuple[LoadReport, list[str], list[oxiseq.Match]]:
    """Load the store on Spark and ask it; the report, the first of the sorted parts' lines, the matches."""
    with TemporaryDirectory(dir=os.environ.get("OXISEQ_SHARED")) as folder:
        shared = Path(folder)
        for name in SOURCES:
            shutil.copy(HERE / name, shared)
        kb = shared / "kb"
        report = load(
            [shared / name for name in SOURCES],
            kb,
            engine="spark",
            master=master,
            parts=shared / "parts",
            reasoning="rdfs",
            mapping=HERE / "machines.rq",
            graph=FACTORY,
            watch=lambda at: print(at.note, end="\n" * bool(at.note)),
        )
        part = next(file for file in sorted((shared / "parts" / "data").iterdir()) if file.stat().st_size)
        lines = part.read_text(encoding="utf-8").splitlines()
        text = (HERE / "query.spaseq").read_text(encoding="utf-8")
        heat = [(minute * 60_000_000, f"<{FACTORY}#{device}> <{FACTORY}#heat> 90 .") for minute, device in HOT]
        return report, lines[:3], list(oxiseq.run(text, streams={"S": heat}, kb=kb))


if __name__ == "__main__":
    report, lines, matches = main(*sys.argv[1:2])
    print(f"{report.stored} statements, {report.inferred} inferred, {report.quarantined} quarantined: {report.faults}")
    print(*lines, sep="\n")
    for match in matches:
        print(match.at.time(), match["device"].value, match["hall"].value)
