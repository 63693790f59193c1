"""How long a new process takes to its first answer: `python -m benchmarks.start`.

CPU time of processes, kernels and tables in their caches, in turns: what others' packages take to be imported, `import
oxiseq`, one match of each language.
"""

from __future__ import annotations

import os
import resource
import subprocess
import sys
from statistics import median
from typing import Final

ROUNDS: Final = 7
_EVENTS: Final = [(t, f"<urn:a> <urn:v> {t} .") for t in (1, 2, 3)]


def _run(text: str, language: str) -> str:
    streams = {"S" if language == "spaseq" else "urn:S": _EVENTS}
    return f"import oxiseq; assert list(oxiseq.run({text!r}, {streams!r}, language={language!r}))"


_TEXTS: Final = {
    "spaseq": "SELECT * FROM STREAM S <urn:S> WHERE { SEQ(A; B) DEFINE GPM A ON S { ?s <urn:v> ?a } "
    "DEFINE GPM B ON S { ?s <urn:v> ?b FILTER(?b > ?a) } }",
    "rspql": "SELECT ?a FROM STREAM <urn:S> [RANGE 1 MINUTES SLIDE 1 SECONDS] WHERE { ?s <urn:v> ?a }",
    "epsparql": "SELECT * FROM STREAM <urn:S> WHERE { { ?s <urn:v> ?a } SEQ { ?s <urn:v> ?b } }",
}
PACKAGES: Final = "import numpy, numba, pyarrow.parquet, pyarrow.compute, pyarrow.csv, rdflib, pyoxigraph, lark"
WAYS: Final = {
    "their packages alone": PACKAGES,
    "import oxiseq": "import oxiseq",
    **{f"first match, {name}": _run(text, name) for name, text in _TEXTS.items()},
}


def seconds(code: str) -> float:
    """CPU time of a process that runs the code."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    kept = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    subprocess.run([sys.executable, "-c", code], check=True, env=kept)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def main() -> None:
    """Print the medians, each as seconds and over that of the packages alone."""
    for code in WAYS.values():
        seconds(code)
    taken: dict[str, list[float]] = {name: [] for name in WAYS}
    for _ in range(ROUNDS):
        for name, code in WAYS.items():
            taken[name].append(seconds(code))
    base = median(taken["their packages alone"])
    for name, each in taken.items():
        print(f"{name:22} {median(each):6.2f} s {median(each) / base:6.2f} times")


if __name__ == "__main__":
    main()
