"""Resident memory of a window query, in a process of its own: `python -m benchmarks.papers.resident WINDOW`.

Prints the bytes before the window is filled, and the most while it slides once over as many triples again.
"""

from __future__ import annotations

import json
import subprocess
import sys

from benchmarks.papers.lubm import made
from benchmarks.soak.watch import resident
from benchmarks.spectra.queries import WindowQuery
from benchmarks.spectra.streams import batch
from benchmarks.spectra.ways import STRETCH, Coded, Setting, filled
from oxiseq.grammar.rsp_algebra import Report


def apart(query: WindowQuery, triples: int) -> tuple[int, int]:
    """Bytes before and at most, of a query over a sliding window of so many triples. Raises CalledProcessError."""
    command = [sys.executable, "-m", "benchmarks.papers.resident", query.body, str(triples)]
    before, most = json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)
    return before, most


def sampled(query: WindowQuery, triples: int) -> tuple[int, int]:
    """Run it here."""
    coded = Coded(made("seas", 2 * triples + STRETCH))
    filled(query, coded, Setting(100, 1, False), Report.ISTREAM)  # kernels are loaded before
    before = resident()
    run, most = filled(query, coded, Setting(triples, 1, False), Report.ISTREAM), 0
    for first in range(triples, 2 * triples, STRETCH):
        run.push(batch(coded.ids, first, first + STRETCH, 1))
        most = max(most, resident())
    return before, most


if __name__ == "__main__":
    print(json.dumps(sampled(WindowQuery("", "seas", "", sys.argv[1]), int(sys.argv[2]))))
