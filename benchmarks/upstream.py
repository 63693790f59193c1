"""In front of Oxigraph's server: SERVICE <stream> joined with a million triples, and standing queries over them.

    python -m benchmarks.upstream [--companies 125000] [--events 100000]

Eight triples a company, loaded by `oxigraph load`; each event is a trade of one. The same solutions are also sent to
Oxigraph directly, as VALUES written by hand: what is more is the price of answering the block, of cutting and putting
together. Then the time of a refresh, of answers that have changed by nothing and by ten rows. Wall time, the best of
some rounds; all processes share the machine.
"""

from __future__ import annotations

import argparse
import json
import os
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from importlib.metadata import distribution
from pathlib import Path
from urllib.parse import quote

import httpx

from benchmarks.machine import machine

E = "http://example.org/"
PREFIX = f"PREFIX : <{E}> "
STREAM = f"{E}trades"
ROUNDS = 3
SPARQL = {"content-type": "application/sparql-query", "accept": "application/sparql-results+json"}


def main() -> None:
    """Measure, and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--companies", type=int, default=125_000)
    parser.add_argument("--events", type=int, default=100_000)
    given = parser.parse_args()
    print(machine(), f"load {os.getloadavg()[0]:.1f}", flush=True)
    with (
        tempfile.TemporaryDirectory() as folder,
        oxigraph(Path(folder), given.companies) as behind,
        front(behind, Path(folder) / "journal") as address,
    ):
        push(address, given.events, given.companies)
        for count in sorted({min(count, given.events) for count in (10, 1_000, 10_000, given.events)}):
            asked(address, behind, count, given.companies)
        for rows in sorted({min(1_000, given.companies), given.companies}):
            stood(address, behind, rows)


def asked(address: str, behind: str, count: int, companies: int) -> None:
    """One question with so many solutions of the block, in front and directly; then the same, counted."""
    block = f"{{ SELECT ?c ?p {{ GRAPH ?e {{ ?t :of ?c ; :price ?p }} FILTER(?p < {count}) }} }}"
    values = " ".join(f"(:c{number * 7919 % companies} {number})" for number in range(count))
    for what, head, tail in (
        ("joined", "SELECT ?c ?p ?s", ""),
        ("counted", "SELECT ?s (COUNT(*) AS ?n)", "GROUP BY ?s"),
    ):
        here = f"{PREFIX}{head} {{ SERVICE :trades {block} ?c :sector ?s }} {tail}"
        there = f"{PREFIX}{head} {{ VALUES(?c ?p) {{ {values} }} ?c :sector ?s }} {tail}"
        one, other = rows_of(address, here), rows_of(behind, there)
        assert one == other, (one, other)
        front_seconds, direct = best(lambda: rows_of(address, here)), best(lambda: rows_of(behind, there))  # noqa: B023
        print(
            f"{what:8} {count:>8,} solutions: {front_seconds:7.3f} s, by hand {direct:7.3f} s, "
            f"{front_seconds / direct:4.1f} times, {one:,} rows",
            flush=True,
        )


def stood(address: str, behind: str, rows: int) -> None:
    """A standing query over so many rows, at refreshes."""
    text = f"{PREFIX}SELECT ?c ?s {{ ?c :number ?n ; :sector ?s FILTER(?n < {rows}) }}"
    begun = time.perf_counter()
    answer = httpx.put(f"{address}/queries/q", content=text, headers=SPARQL, timeout=600)
    assert answer.status_code == 200, answer.text
    registered = time.perf_counter() - begun
    last_id = httpx.get(f"{address}/queries/q/answer", timeout=600).headers["oxiseq-last-id"]
    unchanged = best(lambda: refresh(address))
    taken = []
    for round_ in range(ROUNDS):
        change = " ".join(f":c{number} :sector :new{round_} ." for number in range(10))
        httpx.post(f"{behind}/update", data={"update": f"{PREFIX}INSERT DATA {{ {change} }}"}).raise_for_status()
        begun = time.perf_counter()
        refresh(address)
        taken.append(time.perf_counter() - begun)
    last = httpx.get(f"{address}/queries/q/changes?after={last_id}&limit=100000", timeout=600).json()["changes"]
    assert sum(len(change["added"]) for change in last) == 10 * ROUNDS, last
    direct = best(lambda: rows_of(behind, text))
    print(
        f"stands   {rows:>8,} rows: registered {registered:.3f} s, refresh without change {unchanged:.3f} s, of ten "
        f"rows {min(taken):.3f} s, the question alone {direct:.3f} s",
        flush=True,
    )
    httpx.delete(f"{address}/queries/q").raise_for_status()
    httpx.post(
        f"{behind}/update",
        data={
            "update": f"{PREFIX}DELETE WHERE {{ ?c :sector :new0 }} ; "
            "DELETE WHERE { ?c :sector :new1 } ; DELETE WHERE { ?c :sector :new2 }"
        },
    )


def refresh(address: str) -> None:
    """All is queried again."""
    httpx.post(f"{address}/kb/refresh", timeout=600).raise_for_status()


def rows_of(address: str, text: str) -> int:
    """How many rows the answer has."""
    answer = httpx.post(f"{address}/query", content=text.encode(), headers=SPARQL, timeout=600)
    assert answer.status_code == 200, answer.text
    return len(json.loads(answer.content)["results"]["bindings"])


def best(work: Callable[[], object]) -> float:
    """Seconds of the quickest round."""
    taken = []
    for _ in range(ROUNDS):
        begun = time.perf_counter()
        work()
        taken.append(time.perf_counter() - begun)
    return min(taken)


def push(address: str, events: int, companies: int) -> None:
    """Trades, of which the n-th has the price n."""
    stream = f"{address}/streams/{quote(STREAM, safe='')}"
    httpx.put(stream, json={"retention": {"for": "1d"}}).raise_for_status()
    for first in range(0, events, 10_000):
        lines = []
        for number in range(first, min(first + 10_000, events)):
            graph, day = f"<{E}t{number}>", f"2024-01-{1 + number // 86_400:02}"
            at = f"{day}T{number // 3600 % 24:02}:{number // 60 % 60:02}:{number % 60:02}Z"
            lines.append(
                f'{graph} <http://www.w3.org/ns/prov#generatedAtTime> "{at}"^^'
                "<http://www.w3.org/2001/XMLSchema#dateTime> .\n"
                f"_:t{number} <{E}of> <{E}c{number * 7919 % companies}> {graph} .\n"
                f'_:t{number} <{E}price> "{number}"^^<http://www.w3.org/2001/XMLSchema#integer> {graph} .\n'
            )
        body = "".join(lines).encode()
        answer = httpx.post(stream, content=body, headers={"content-type": "application/n-quads"}, timeout=600)
        assert answer.status_code == 200, answer.text


@contextmanager
def oxigraph(folder: Path, companies: int) -> Iterator[str]:
    """The real server over the companies."""
    program = next(str(f.locate()) for f in distribution("oxigraph").files or () if f.name.startswith("oxigraph"))
    file = folder / "kb.nt"
    with file.open("w") as out:
        for n in range(companies):
            of = f"<{E}c{n}> <{E}"
            out.write(
                f'{of}sector> <{E}s{n % 20}> .\n{of}country> <{E}l{n % 100}> .\n{of}name> "company {n}" .\n'
                f'{of}number> "{n}"^^<http://www.w3.org/2001/XMLSchema#integer> .\n{of}owner> <{E}c{n // 2}> .\n'
                f"{of}chair> <{E}p{n}> .\n{of}city> <{E}v{n % 5000}> .\n{of}kind> <{E}Company> .\n"
            )
    store = ["--location", str(folder / "kb")]
    subprocess.run([program, "load", *store, "--file", str(file)], check=True, stderr=subprocess.DEVNULL)
    port = free_port()
    with subprocess.Popen([program, "serve", *store, "--bind", f"127.0.0.1:{port}"], stderr=subprocess.DEVNULL) as p:
        try:
            yield wait_for(f"http://127.0.0.1:{port}")
        finally:
            p.terminate()


@contextmanager
def front(behind: str, journal: Path) -> Iterator[str]:
    """Our server in front of it."""
    port = free_port()
    command = [sys.executable, "-m", "oxiseq", "serve", "--upstream", behind, "--location", str(journal)]
    command += ["--bind", f"127.0.0.1:{port}", "--upstream-refresh", "0s", "--stream-idle", "0s"]
    with subprocess.Popen(command, stderr=subprocess.DEVNULL) as process:
        try:
            yield wait_for(f"http://127.0.0.1:{port}")
        finally:
            process.terminate()


def free_port() -> int:
    """One that nobody listens at."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def wait_for(address: str) -> str:
    """The address, once somebody answers there."""
    for _ in range(600):
        try:
            httpx.get(f"{address}/query?query=ASK%20%7B%7D")
            return address
        except httpx.HTTPError:
            time.sleep(0.1)
    raise TimeoutError(address)


if __name__ == "__main__":
    main()
