"""How fast a knowledge base loads, in one process and on Spark: `python -m benchmarks.loading [--triples N] [WAY...]`.
`--unusual fault` and `--unusual blank` make one line of a thousand a fault or a statement with a blank node; `--unusual
none,fault,blank` measures each in turn.

A way is `plain`, or a Spark master such as `local[2]`. Each is a run of its own: its seconds by step, and of the
process with all that it started CPU seconds and the most memory at a time, from /proc (Linux), read twice a second.
Memory is what is resident; pages that Python's workers share are counted for each.
"""

from __future__ import annotations

import argparse
import multiprocessing
import os
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from threading import Event, Thread
from time import perf_counter

from oxiseq.kb_loader import load
from oxiseq.kb_loader.rdfs import TYPE

NS = "http://example.org/"
_XSD = "http://www.w3.org/2001/XMLSchema#"
_TICKS = os.sysconf("SC_CLK_TCK")
_PAGE = os.sysconf("SC_PAGE_SIZE")


@dataclass(frozen=True, slots=True)
class Loaded:
    """A load: triples, seconds by step, wall and CPU seconds of all, bytes at most."""

    stored: int
    steps: dict[str, float]
    wall: float
    cpu: float
    memory: int


def triples(count: int) -> Iterator[str]:
    """Companies with five triples each, as N-Triples."""
    for i in range(count // 5):
        s = f"<{NS}company/{i}>"
        yield f"{s} {TYPE} <{NS}C{i % 1000}> .\n"
        yield f'{s} <{NS}name> "Company {i}" .\n'
        yield f'{s} <{NS}founded> "{1800 + i % 220}"^^<{_XSD}gYear> .\n'
        yield f'{s} <{NS}staff> "{i * 7 % 100_000}"^^<{_XSD}integer> .\n'
        yield f"{s} <{NS}seat> <{NS}city/{i % 9973}> .\n"


def unusual(lines: Iterator[str], kind: str) -> Iterator[str]:
    """The lines, each thousandth a fault or with a blank node; as they are for "none"."""
    for number, line in enumerate(lines):
        if kind == "none" or number % 1000 != 500:
            yield line
        else:
            yield "oops\n" if kind == "fault" else f"_:b{number % 977} {line.split(' ', 1)[1]}"


def family() -> dict[int, tuple[float, int]]:
    """CPU seconds and resident bytes of this process and all below it, by process."""
    below: dict[int, list[int]] = {}
    known: dict[int, tuple[float, int]] = {}
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                fields = (entry / "stat").read_text().rsplit(")", 1)[1].split()
            except OSError:  # it has ended
                continue
            below.setdefault(int(fields[1]), []).append(int(entry.name))
            known[int(entry.name)] = sum(map(int, fields[11:13])) / _TICKS, int(fields[21]) * _PAGE
    found, todo = {}, [os.getpid()]
    while todo:
        process = todo.pop()
        found[process] = known[process]
        todo += below.get(process, [])
    return found


def measure(file: Path, folder: Path, way: str, memory: str) -> Loaded:
    """Load a file in this process, which should be a new one."""
    most, cpu, ended = 0, {}, Event()

    def look() -> None:
        nonlocal most
        while not ended.wait(0.5):
            now = family()
            most = max(most, sum(resident for _, resident in now.values()))
            cpu.update({process: seconds for process, (seconds, _) in now.items()})

    looking = Thread(target=look, daemon=True)
    looking.start()
    begun = perf_counter()
    if way == "plain":
        report = load(file, folder / "kb", engine="plain", restart=True)
    else:
        report = load(file, folder / "kb", engine="spark", master=way, memory=memory, restart=True)
    wall = perf_counter() - begun
    ended.set()
    looking.join()
    return Loaded(report.stored, report.seconds, wall, sum(cpu.values()), most)


def main(arguments: list[str] | None = None) -> None:
    """Measure and print a table."""
    parser = argparse.ArgumentParser("python -m benchmarks.loading", description="How fast a knowledge base loads.")
    parser.add_argument("ways", nargs="*", metavar="WAY", default=["plain", "local[1]", "local[2]"])
    parser.add_argument("--triples", type=int, default=2_000_000)
    parser.add_argument("--memory", default="2g", help="of Spark's Java")
    parser.add_argument("--unusual", default="none", metavar="KIND,...", help="none, fault, blank")
    options = parser.parse_args(arguments)
    kinds = options.unusual.split(",")
    if other := sorted({*kinds} - {"none", "fault", "blank"}):
        parser.error(f"--unusual: none, fault or blank, not {', '.join(other)}")
    print("| way | triples | unusual lines | seconds | triples/s | CPU seconds | GB at most | by step |")
    print("|---|---:|---|---:|---:|---:|---:|---|")
    with TemporaryDirectory() as folder:
        for kind in kinds:
            file = Path(folder) / f"{kind}.nt"
            with file.open("w", encoding="utf-8") as out:
                out.writelines(unusual(triples(options.triples), kind))
            for way in options.ways or ["plain", "local[1]", "local[2]"]:
                with ProcessPoolExecutor(1, multiprocessing.get_context("spawn")) as fresh:
                    done = fresh.submit(measure, file, Path(folder), way, options.memory).result()
                steps = ", ".join(f"{step} {seconds:.0f}" for step, seconds in done.steps.items())
                print(
                    f"| {way} | {done.stored:,} | {kind} | {done.wall:.0f} | {done.stored / done.wall:,.0f} "
                    f"| {done.cpu:.0f} | {done.memory / 1e9:.1f} | {steps} |",
                    flush=True,
                )


if __name__ == "__main__":
    main()
