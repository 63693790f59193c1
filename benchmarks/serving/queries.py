"""What a small SPARQL query costs over HTTP, on a store that rests and after each change; and beside endless ones.

    python -m benchmarks.serving.queries [--triples 100000] [--memory] [--asked 300] [--endless 40]

Milliseconds from the request to the whole answer, on a connection of its own each time: median and 95th percentile.
"""

from __future__ import annotations

import argparse
import contextlib
import http.client
import os
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import quote

import numpy as np

from benchmarks.serving.__main__ import SERVERS, connect

QUERIES = {
    "one pattern": "SELECT * { <http://e/7> ?p ?o } LIMIT 5",
    "two patterns": "SELECT * { <http://e/7> <http://e/p> ?o . ?s <http://e/p> ?o FILTER(?o > 3) }",
}
ENDLESS = (
    "SELECT (COUNT(*) AS ?n) { ?a ?b ?c . ?d ?e ?f . ?g ?h ?i . ?j ?k ?l "
    "FILTER(CONCAT(STR(?a), STR(?d), STR(?g)) = '') }"
)


def main() -> None:
    """A line each."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--triples", type=int, default=100_000)
    parser.add_argument("--memory", action="store_true", help="the store is in memory, not on disk")
    parser.add_argument("--asked", type=int, default=300, help="queries for each figure")
    parser.add_argument("--endless", type=int, default=40, help="endless queries at the same time, at the end")
    given = parser.parse_args()
    print(f"load before: {os.getloadavg()[0]:.1f}, {os.cpu_count()} cores", flush=True)
    with serving(memory=given.memory) as address:
        lines = "\n".join(f"<http://e/{i}> <http://e/p> {i} ." for i in range(given.triples))
        assert ask(address, "POST", "/store?default", lines.encode(), "text/turtle") == 204
        for name, query in QUERIES.items():
            tell(f"{name}, the store rests", [timed(address, query) for _ in range(given.asked)])
        for name, query in QUERIES.items():
            found = []
            for number in range(given.asked // 10):
                change = f"INSERT DATA {{ <http://e/changed> <http://e/q> {number} }}".encode()
                assert ask(address, "POST", "/update", change, "application/sparql-update") == 204
                found.append(timed(address, query))
            tell(f"{name}, first after a change", found)
        for _ in range(given.endless):
            threading.Thread(target=endless, args=(address,), daemon=True).start()
        time.sleep(3)
        for name, query in QUERIES.items():
            tell(f"{name}, beside {given.endless} endless ones", [timed(address, query) for _ in range(20)])
    print(f"load after: {os.getloadavg()[0]:.1f}")


@contextlib.contextmanager
def serving(*, memory: bool) -> Iterator[str]:
    """A new server's address."""
    with tempfile.TemporaryDirectory() as folder:
        place = [] if memory else ["--location", str(Path(folder, "kb"))]
        command = [*SERVERS["own"], "--bind", "127.0.0.1:0", "--timeout", "20", *place]
        with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as process:
            try:
                assert process.stderr is not None
                line = next(line for line in process.stderr if "istening at" in line)
                threading.Thread(target=process.stderr.read, daemon=True).start()
                yield line[line.index("http://") :].split()[0]
            finally:
                process.terminate()
                process.wait(60)


def ask(address: str, method: str, target: str, body: bytes, media: str) -> int:
    """One request; its status."""
    connection = connect(address)
    connection.request(method, target, body, {"Content-Type": media})
    response = connection.getresponse()
    response.read()
    connection.close()
    return response.status


def timed(address: str, query: str) -> float:
    """Milliseconds; infinity when it is refused."""
    begin = time.perf_counter()
    status = ask(address, "GET", "/query?query=" + quote(query), b"", "text/plain")
    return (time.perf_counter() - begin) * 1000 if status == 200 else float("inf")


def endless(address: str) -> None:
    """Ask, and get no answer."""
    with contextlib.suppress(OSError, http.client.HTTPException):
        ask(address, "GET", "/query?query=" + quote(ENDLESS), b"", "text/plain")


def tell(name: str, milliseconds: list[float]) -> None:
    """A line."""
    told = np.array(milliseconds)
    refused = int(np.isinf(told).sum())
    median, most = np.percentile(told, [50, 95], method="nearest")
    print(f"{name:45} {median:8.1f} ms, 95 % below {most:8.1f} ms, {refused} refused", flush=True)


if __name__ == "__main__":
    sys.exit(main())
