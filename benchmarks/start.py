"""How long a new process takes to its first answer.

    python -m benchmarks.start [--rounds 7]             kernels and tables in their caches
    python -m benchmarks.start --cold [--rounds 5]      the demo and the warm-up with nothing in any cache
    python -m benchmarks.start --cold --native          the same, kernels compiled here (OXISEQ_NATIVE): minutes a round

CPU time of processes, in turns: what others' packages take to be imported, `import oxiseq`, one match of each language,
`oxiseq --help`; a server until /ready answers, and its first query; memory of a first match and of a server, of which
the code of libraries, which processes share, is not private. In a table the least and the median of the rounds; what
an archive in the package has brought is taken unless `--native`.
"""

from __future__ import annotations

import argparse
import os
import resource
import subprocess
import sys
import time
from collections.abc import Iterable, Mapping
from http.client import HTTPConnection
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory
from time import perf_counter
from typing import Final

from benchmarks.serving.__main__ import SERVERS, ask, connect, cpu_seconds
from oxiseq.engine.kernels import archive

_EVENTS: Final = [(t, f"<urn:a> <urn:v> {t} .") for t in (1, 2, 3)]


_TEXTS: Final = {
    "spaseq": "SELECT * WITHIN 1 MINUTES FROM STREAM S <urn:S> WHERE { SEQ(A; B) "
    "DEFINE GPM A ON S { ?s <urn:v> ?a } DEFINE GPM B ON S { ?s <urn:v> ?b FILTER(?b > ?a) } }",
    "rspql": "SELECT ?a FROM STREAM <urn:S> [RANGE 1 MINUTES SLIDE 1 SECONDS] WHERE { ?s <urn:v> ?a }",
    "epsparql": "SELECT * FROM STREAM <urn:S> WHERE { { ?s <urn:v> ?a } SEQ { ?s <urn:v> ?b } }",
}


def first_match(language: str) -> str:
    """A program that finds one."""
    streams = {"S" if language == "spaseq" else "urn:S": _EVENTS}
    return f"import oxiseq; assert list(oxiseq.run({_TEXTS[language]!r}, {streams!r}, language={language!r}))"


PACKAGES: Final = "import numpy, numba, pyarrow.parquet, pyarrow.compute, pyarrow.csv, rdflib, pyoxigraph, lark"
OF_A_MATCH: Final = "import numpy, numba, pyoxigraph"
OF_A_SERVER: Final = (
    f"{OF_A_MATCH}, click, flask, httpx, prometheus_client, uvloop, uvicorn.protocols.http.httptools_impl, "
    "uvicorn.protocols.websockets.websockets_sansio_impl"
)
WAYS: Final = {
    "all packages alone": PACKAGES,
    "a match's packages": OF_A_MATCH,
    "a server's packages": OF_A_SERVER,
    "import oxiseq": "import oxiseq",
    **{f"first match, {name}": first_match(name) for name in _TEXTS},
}
_COLUMNS: Final = ("CPU until it is there", "CPU in all", "clock")
_PATIENCE: Final = 60.0


def clean_environment(**more: str) -> dict[str, str]:
    """Of a process as a user has it: Python may keep what it has compiled."""
    return {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"} | more


def seconds(code: str) -> tuple[float, ...]:
    """CPU time of a process until it has run the code, and until it has ended; the clock's."""
    before, begun = resource.getrusage(resource.RUSAGE_CHILDREN), perf_counter()
    code += "\nimport time; print(time.process_time())"
    command = [sys.executable, "-c", code]
    told = subprocess.run(command, check=True, env=clean_environment(), capture_output=True).stdout
    after, ended = resource.getrusage(resource.RUSAGE_CHILDREN), perf_counter()
    return float(told), after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime, ended - begun


def command(arguments: Iterable[str], **environment: str) -> tuple[float, ...]:
    """CPU time of a command of ours and all its processes, and the time that it takes."""
    before, begun = resource.getrusage(resource.RUSAGE_CHILDREN), perf_counter()
    whole = [sys.executable, "-m", "oxiseq", *arguments]
    subprocess.run(whole, check=True, env=clean_environment(**environment), capture_output=True)
    after, ended = resource.getrusage(resource.RUSAGE_CHILDREN), perf_counter()
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime, ended - begun


def cold(name: str, **environment: str) -> tuple[float, ...]:
    """The same with an empty home and empty caches."""
    with TemporaryDirectory() as home:
        return command([name], HOME=home, NUMBA_CACHE_DIR=f"{home}/kernels", **environment)


def held(code: str) -> tuple[float, ...]:
    """Memory of a process that has run the code."""
    code += "\nimport sys; print(flush=True); sys.stdin.read()"
    command = [sys.executable, "-c", code]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=clean_environment()) as process:
        assert process.stdout is not None
        assert process.stdout.readline()
        memory = _memory(process.pid)
        process.communicate()
    return memory


def served() -> dict[str, tuple[float, ...]]:
    """A server until it is ready, and its first query: CPU time and the clock's; its memory."""
    begun = perf_counter()
    with TemporaryDirectory() as folder:
        settings = clean_environment(OXISEQ_LOCATION=folder, OXISEQ_BIND="127.0.0.1:0")
        with subprocess.Popen(SERVERS["own"], env=settings, stderr=subprocess.PIPE, text=True) as process:
            try:
                assert process.stderr is not None
                line = next(line for line in process.stderr if "istening at" in line)
                connection = connect(line[line.index("http://") :].split()[0])
                while ask(connection, "GET", "/ready", b"", "text/plain") != 200:
                    assert perf_counter() < begun + _PATIENCE
                    time.sleep(0.002)
                ready, used = perf_counter(), cpu_seconds(process.pid)
                _register(connection, "q0")
                first, after = perf_counter(), cpu_seconds(process.pid)
                small = _memory(process.pid)
                for number in range(1, 10):
                    _register(connection, f"q{number}")
                return {
                    "a server is ready": (used, ready - begun),
                    "its first query": (after - used, first - ready),
                    "MB of a server": small,
                    "MB with ten queries": _memory(process.pid),
                }
            finally:
                process.terminate()
                process.wait(30)
                process.stderr.close()  # type: ignore[union-attr]  # it is a pipe


def _register(connection: HTTPConnection, name: str) -> None:
    text = _TEXTS["spaseq"].replace("?b > ?a", f"?b > ?a + {int(name[1:])}").encode()
    assert ask(connection, "PUT", f"/queries/{name}", text, "application/spaseq-query") in (200, 201)


def _memory(pid: int) -> tuple[float, ...]:
    """MB of a process: resident, as `ps` has it, the most that was, and what it has written to and no other one has."""
    status, rollup = (Path(f"/proc/{pid}/{name}").read_text() for name in ("status", "smaps_rollup"))
    found = ((status, "VmRSS:"), (status, "VmHWM:"), (rollup, "Private_Dirty:"))
    return tuple(int(text.split(name)[1].split()[0]) / 1024 for text, name in found)


def show(taken: Mapping[str, list[tuple[float, ...]]], columns: tuple[str, ...]) -> None:
    """Least and median of each figure of each way."""
    print(f"{'':22}" + "".join(f"{name:>24}" for name in columns), "    (least, median)")
    for name, rounds in taken.items():
        figures = (f"{min(each):10.2f} {median(each):10.2f}   " for each in zip(*rounds, strict=True))
        print(f"{name:22}" + "".join(figures), flush=True)


def compare_warm(rounds: int) -> None:
    """Print what a new process takes where kernels and tables are in their places."""
    served()
    taken: dict[str, list[tuple[float, ...]]] = {name: [] for name in WAYS}
    commands: dict[str, list[tuple[float, ...]]] = {"oxiseq --help": []}
    memory: dict[str, list[tuple[float, ...]]] = {}
    for code in WAYS.values():
        seconds(code)
    for _ in range(rounds):
        for name, code in WAYS.items():
            taken[name].append(seconds(code))
        commands["oxiseq --help"].append(command(["--help"]))
        memory.setdefault("MB of a first match", []).append(held(first_match("spaseq")))
        for name, figures in served().items():
            (memory if name.startswith("MB") else commands).setdefault(name, []).append(figures)
    show(taken, _COLUMNS)
    show(commands, ("CPU", "clock"))
    show(memory, ("resident", "the most", "private"))


def compare_cold(rounds: int, native: bool) -> None:
    """Print what a first run takes, round by round since one may take minutes."""
    environment = {archive.NATIVE: "1"} if native else {}
    if archive.shipped() is None:
        print("NO ARCHIVE HERE: kernels are compiled (python -m oxiseq.warmup.shipping .)")
    taken: dict[str, list[tuple[float, ...]]] = {"demo": [], "warmup": []}
    for _ in range(rounds):
        for name, each in taken.items():
            each.append(cold(name, **environment))
            print(f"{name:8} {each[-1][0]:6.2f} s of CPU, {each[-1][1]:6.2f} s", file=sys.stderr, flush=True)
    show(taken, ("CPU of all processes", "clock"))


def main() -> None:
    """Print a table."""
    parser = argparse.ArgumentParser("python -m benchmarks.start")
    parser.add_argument("--rounds", type=int)
    parser.add_argument("--cold", action="store_true", help="a first run, with nothing in any cache")
    parser.add_argument("--native", action="store_true", help="with --cold: kernels are compiled here")
    options = parser.parse_args()
    if options.native and not options.cold:
        parser.error("--native goes with --cold")
    if options.cold:
        compare_cold(options.rounds or (1 if options.native else 5), options.native)
    else:
        compare_warm(options.rounds or 7)


if __name__ == "__main__":
    main()
