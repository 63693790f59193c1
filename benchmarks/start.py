"""How long a new process takes to its first answer: `python -m benchmarks.start [--cold]`.

CPU time of processes, kernels and tables in their caches, in turns: what others' packages take to be imported, `import
oxiseq`, one match of each language. With `--cold` the demo and the warm-up, with nothing in any cache: kernels as the
package brings them, where it does, and compiled here (OXISEQ_NATIVE), which takes minutes.
"""

from __future__ import annotations

import os
import resource
import subprocess
import sys
from statistics import median
from tempfile import TemporaryDirectory
from time import perf_counter
from typing import Final

from oxiseq.engine.kernels import archive

ROUNDS: Final = 7
COLD_ROUNDS: Final = 5
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


def seconds(code: str) -> tuple[float, float]:
    """CPU time of a process until it has run the code, and until it has ended."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    kept = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    code += "\nimport time; print(time.process_time())"
    told = subprocess.run([sys.executable, "-c", code], check=True, env=kept, stdout=subprocess.PIPE).stdout
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return float(told), after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def cold(command: str, **environment: str) -> tuple[float, float]:
    """CPU time of a command of ours and all its processes, with an empty home and empty caches, and the time that it
    takes."""
    with TemporaryDirectory() as home:
        kept = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
        kept |= {"HOME": home, "NUMBA_CACHE_DIR": f"{home}/kernels", **environment}
        before, begun = resource.getrusage(resource.RUSAGE_CHILDREN), perf_counter()
        subprocess.run([sys.executable, "-m", "oxiseq", command], check=True, env=kept, capture_output=True)
        after, ended = resource.getrusage(resource.RUSAGE_CHILDREN), perf_counter()
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime, ended - begun


def compare_cold() -> None:
    """Print the medians of a first run."""
    print("an archive is there" if archive.shipped() is not None else "NO ARCHIVE HERE: both are compiled")
    ways = {
        (command, name): (command, environment)
        for command in ("demo", "warmup")
        for name, environment in (("brought", {}), ("compiled here", {archive.NATIVE: "1"}))
    }
    taken: dict[tuple[str, str], list[tuple[float, float]]] = {way: [] for way in ways}
    for _ in range(COLD_ROUNDS):
        for way, (command, environment) in ways.items():
            taken[way].append(cold(command, **environment))
    for (command, name), each in taken.items():
        cpu, clock = median(c for c, _ in each), median(t for _, t in each)
        print(f"{command:8} {name:14} {cpu:6.2f} s of CPU, {clock:6.2f} s")


def main() -> None:
    """Print the medians, each as seconds and over that of the packages alone, and with the process's end."""
    if "--cold" in sys.argv:
        compare_cold()
        return
    for code in WAYS.values():
        seconds(code)
    taken: dict[str, list[tuple[float, float]]] = {name: [] for name in WAYS}
    for _ in range(ROUNDS):
        for name, code in WAYS.items():
            taken[name].append(seconds(code))
    base = median(result for result, _ in taken["their packages alone"])
    for name, each in taken.items():
        result, ended = median(r for r, _ in each), median(e for _, e in each)
        print(f"{name:22} {result:6.2f} s {result / base:6.2f} times; {ended:6.2f} s with its end")


if __name__ == "__main__":
    main()
