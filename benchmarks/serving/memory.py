"""Resident memory of the server while events with large literals, none of which comes twice, are pushed.

    python -m benchmarks.serving.memory [--events 5000000] [--batch 50] [--literal 2000] [--connections 80]
        [--every 100000]

As many connections as the server has threads push batches to one stream; a query reads it. What is kept of the stream
is deleted after some seconds. A line for each `--every` events: how many, seconds, resident MB.
"""

from __future__ import annotations

import argparse
import os
import random
import threading
import time
from pathlib import Path
from urllib.parse import quote

from benchmarks.serving.__main__ import EX, ask, connect, server

QUERY = f"""PREFIX : <{EX}>
SELECT ?s WITHIN 1 SECOND
FROM STREAM S <{EX}notes>
WHERE {{ SEQ(A; B) DEFINE GPM A ON S {{ ?s :note ?a }} DEFINE GPM B ON S {{ ?s :alarm ?b }} }}"""


def main() -> None:
    """The curve."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--events", type=int, default=5_000_000)
    parser.add_argument("--batch", type=int, default=50, help="events of a push")
    parser.add_argument("--literal", type=int, default=2000, help="bytes of each event's literal")
    parser.add_argument("--connections", type=int, default=80)
    parser.add_argument("--retention", default="5s", help="for how long the stream keeps events")
    parser.add_argument("--every", type=int, default=100_000, help="events between two lines")
    parser.add_argument("--seconds", type=float, default=float("inf"), help="after which it ends all the same")
    given = parser.parse_args()
    os.environ["OXISEQ_RETENTION"] = given.retention
    with server("own", "normal") as (address, pid):
        control = connect(address)
        assert ask(control, "PUT", "/queries/notes", QUERY.encode(), "application/spaseq-query") == 200
        pushing = Pushing(address, given)
        threads = [threading.Thread(target=pushing.run, args=(i,), daemon=True) for i in range(given.connections)]
        for thread in threads:
            thread.start()
        begun, told = time.monotonic(), 0
        while any(thread.is_alive() for thread in threads):
            time.sleep(0.2)
            if pushing.done >= told:
                tell(pushing.done, time.monotonic() - begun, pid)
                told += given.every
        tell(pushing.done, time.monotonic() - begun, pid)


def tell(events: int, seconds: float, pid: int) -> None:
    """A line of the curve."""
    print(f"{events:>9,} events {seconds:6.0f} s {resident(pid):6.0f} MB", flush=True)


class Pushing:
    """Connections that push until there are enough events."""

    def __init__(self, address: str, given: argparse.Namespace) -> None:
        self.done = 0
        self._address, self._given = address, given
        self._lock = threading.Lock()
        self._next = 0
        self._end = time.monotonic() + given.seconds
        self._filling = random.Random(1).randbytes(given.literal).hex()[: given.literal - 12]

    def run(self, number: int) -> None:
        """One connection."""
        connection, given = connect(self._address), self._given
        path = f"/streams/{quote(f'{EX}notes', safe='')}"
        while time.monotonic() < self._end:
            with self._lock:
                first, self._next = self._next, self._next + given.batch
            if first >= given.events:
                return
            body = self._batch(first)
            while (status := ask(connection, "POST", path, body, "application/n-quads")) == 429:
                time.sleep(0.2)
            assert status == 200, status
            with self._lock:
                self.done += given.batch

    def _batch(self, first: int) -> bytes:
        lines = []
        for i in range(first, first + self._given.batch):
            seconds = i // 1000
            stamp = time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(1_700_000_000 + seconds))
            lines.append(
                f'<{EX}s{i % 97}> <{EX}note> "{i:012}{self._filling}" <{EX}e{i}> .\n<{EX}e{i}> '
                f'<http://www.w3.org/ns/prov#generatedAtTime> "{stamp}.{i % 1000:03}Z"'
                "^^<http://www.w3.org/2001/XMLSchema#dateTime> .\n"
            )
        return "".join(lines).encode()


def resident(pid: int) -> float:
    """MB."""
    lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith("VmRSS")) / 1024


if __name__ == "__main__":
    main()
