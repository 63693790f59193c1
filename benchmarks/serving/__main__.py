"""Throughput with live subscribers, and the time from a push to the subscriber's match.

    python -m benchmarks.serving [--subscribers 50] [--batches 200] [--rate 250 --rate 1000]
        [--streams 1] [--connections 32] [--live 8] [--seconds 10]

The server is a process of its own (`oxiseq serve` over a new folder); all clients are in this one, readers as threads
that look at sockets with `selectors`. Two figures:

1. batches of 1,000 events by four connections while the subscribers read: events/s until the last is acknowledged,
   and until the last match is there;
2. single events at a fixed rate by several connections, each with a match: milliseconds from just before the request is
   written to when the match has been read by one subscriber (the others read too). Either all push to one stream and
   the server stamps the events (?time=arrival), or (`--streams N`) each connection has a stream and a query of its own.
   The first fifth, in which kernels are loaded, counts for nothing but the CPU that is given for it.
"""

from __future__ import annotations

import argparse
import http.client
import os
import selectors
import socket
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import quote, urlsplit

import numpy as np

EX = "http://example.org/"
STREAM = f"{EX}power"
RISES = f"""PREFIX : <{EX}>
SELECT ?house ?before ?after WITHIN 1 SECOND
FROM STREAM S <{STREAM}>
WHERE {{
  SEQ(A; B)
  DEFINE GPM A ON S {{ ?house :watts ?before FILTER(?before > %d) }}
  DEFINE GPM B ON S {{ ?house :watts ?after FILTER(?after > ?before) }}
}}"""
SERVERS = {
    "own": [sys.executable, "-c", "from oxiseq.cli import main; main()", "serve"],
    "gunicorn": [
        sys.executable,
        "-m",
        "gunicorn",
        "--worker-class",
        "gthread",
        "--threads",
        "80",
        "--keep-alive",
        "60",
        "--bind",
        "127.0.0.1:0",
        "oxiseq.cli.wsgi:application()",
    ],
}
EACH = f"""PREFIX : <{EX}>
SELECT ?house ?number
FROM STREAM S <{EX}single%d>
WHERE {{ SEQ(A) DEFINE GPM A ON S {{ ?house :number ?number }} }}"""


def main() -> None:
    """Both figures."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--subscribers", type=int, default=50)
    parser.add_argument("--batches", type=int, default=200)
    parser.add_argument("--rate", type=int, action="append", help="may be given several times")
    parser.add_argument("--connections", type=int, default=32, help="that push single events")
    parser.add_argument("--streams", type=int, default=1, help="of the single events: 1, or one a connection")
    parser.add_argument("--live", type=int, default=8, help="subscribers of the single events' matches")
    parser.add_argument("--seconds", type=float, default=10)
    parser.add_argument("--durability", default="full")
    parser.add_argument("--server", default="own", choices=SERVERS)
    given = parser.parse_args()
    print(f"load before: {os.getloadavg()[0]:.1f}, {os.cpu_count()} cores", flush=True)
    with server(given.server, given.durability) as (address, _):
        if given.batches:
            throughput(address, given.subscribers, given.batches)
    for rate in given.rate or [1000]:
        with server(given.server, given.durability) as (address, pid):
            latency(address, pid, given, rate)
    print(f"load after: {os.getloadavg()[0]:.1f}")


@contextmanager
def server(kind: str, durability: str, subscribers: int = 200) -> Iterator[tuple[str, int]]:
    """A new server's address and the id of the process that answers."""
    with tempfile.TemporaryDirectory() as folder:
        settings = {"LOCATION": folder, "DURABILITY": durability, "BIND": "127.0.0.1:0"}
        settings["SUBSCRIBERS"] = str(subscribers)
        environment = os.environ | {f"OXISEQ_{name}": value for name, value in settings.items()}
        with subprocess.Popen(SERVERS[kind], env=environment, stderr=subprocess.PIPE, text=True) as process:
            try:
                assert process.stderr is not None
                line = next(line for line in process.stderr if "istening at" in line)
                pid = process.pid
                if kind == "gunicorn":  # which names its worker's process once that is there
                    pid = int(next(line for line in process.stderr if "pid: " in line).rpartition("pid: ")[2])
                threading.Thread(target=process.stderr.read, daemon=True).start()
                yield line[line.index("http://") :].split()[0], pid
                print(f"{kind}: {cpu_seconds(pid):.1f} s CPU", flush=True)
            finally:
                process.terminate()
                process.wait(30)


def cpu_seconds(pid: int) -> float:
    """What a process has used."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def connect(address: str) -> http.client.HTTPConnection:
    """A connection without Nagle's delay."""
    parts = urlsplit(address)
    connection = http.client.HTTPConnection(parts.hostname or "", parts.port, timeout=60)
    connection.connect()
    connection.sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return connection


def ask(connection: http.client.HTTPConnection, method: str, target: str, body: bytes, media: str) -> int:
    """One request; its status."""
    connection.request(method, target, body, {"Content-Type": media})
    response = connection.getresponse()
    response.read()
    return response.status


class Readers:
    """Subscribers, all read by one thread. `count`: matches that all of them have read; `seen`: number → when the
    first of them has read it."""

    def __init__(self, address: str, query: str, number: int) -> None:
        self.counts = [0] * number
        self.seen: dict[int, float] = {}
        self._selector = selectors.DefaultSelector()
        self._tails = [b""] * number
        self._ended = False
        for i in range(number):
            parts = urlsplit(address)
            made = socket.create_connection((parts.hostname or "", parts.port or 0))
            head = f"GET /queries/{query}/matches HTTP/1.1\r\nHost: localhost\r\nAccept: text/event-stream\r\n\r\n"
            made.sendall(head.encode())
            self._selector.register(made, selectors.EVENT_READ, (i, made))
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()
        while not all(self._tails):
            time.sleep(0.01)

    def _run(self) -> None:
        while not self._ended:
            for key, _ in self._selector.select(0.2):
                i, source = key.data
                data = source.recv(1 << 18)
                now = time.perf_counter()
                text = self._tails[i] + data
                self.counts[i] += text.count(b"\nevent: match\n")
                if i == 0:
                    for part in text.split(b'"number": {"type": "literal", "value": "')[1:]:
                        if b'"' in part:
                            self.seen.setdefault(int(part[: part.index(b'"')]), now)
                self._tails[i] = text[text.rfind(b"\n\n") + 1 :]

    def close(self) -> None:
        """Leave."""
        self._ended = True
        self._thread.join()
        for key in list(self._selector.get_map().values()):
            key.data[1].close()


def batch(first: int, count: int) -> bytes:
    """Events of three triples, a millisecond apart."""
    lines = []
    for i in range(first, first + count):
        second, milli = divmod(i, 1000)
        minute, second = divmod(second, 60)
        stamp = f"2024-05-01T{10 + minute // 60:02}:{minute % 60:02}:{second:02}.{milli:03}Z"
        name, prov, xsd = f"<{EX}e{i}>", "http://www.w3.org/ns/prov#", "http://www.w3.org/2001/XMLSchema#"
        lines.append(
            f'{name} <{prov}generatedAtTime> "{stamp}"^^<{xsd}dateTime> .\n'
            f'<{EX}h{i % 97}> <{EX}watts> "{i * 7919 % 1000}"^^<http://www.w3.org/2001/XMLSchema#integer> {name} .\n'
            f'<{EX}h{i % 97}> <{EX}room> "r{i % 7}" {name} .\n<{EX}h{i % 97}> <{EX}unit> <{EX}W> {name} .\n'
        )
    return "".join(lines).encode()


def throughput(address: str, subscribers: int, count: int) -> None:
    """Figure 1. Batches are in order of time, one after the other by one connection: the stream is in order."""
    control = connect(address)
    assert ask(control, "PUT", "/queries/rises", (RISES % 900).encode(), "application/spaseq-query") == 200
    path = f"/streams/{quote(STREAM, safe='')}"
    bodies = [batch(1000 * i, 1000) for i in range(count + 2)]
    for body in bodies[:2]:
        assert ask(control, "POST", path, body, "application/n-quads") == 200
    time.sleep(1)
    readers = Readers(address, "rises", subscribers)
    refused = 0
    begun = time.perf_counter()
    for body in bodies[2:]:
        while (status := ask(control, "POST", path, body, "application/n-quads")) != 200:
            assert status == 429
            refused += 1
            time.sleep(0.05)
    acknowledged = time.perf_counter() - begun
    before = -1
    while sum(readers.counts) != before:
        before, ended = sum(readers.counts), time.perf_counter()
        time.sleep(1.0)
    print(
        f"1,000-event batches, {subscribers} subscribers: {count * 1000 / acknowledged:,.0f} events/s acknowledged, "
        f"{count * 1000 / (ended - begun):,.0f} events/s until read; {sum(readers.counts):,} matches read, "
        f"{refused} refused for a while",
        flush=True,
    )
    readers.close()


def latency(address: str, pid: int, given: argparse.Namespace, rate: int) -> None:
    """Figure 2."""
    streams, subscribers = given.streams, given.live
    producers = given.connections if streams == 1 else streams
    control = connect(address)
    for i in range(streams):
        assert ask(control, "PUT", f"/queries/each{i}", (EACH % i).encode(), "application/spaseq-query") == 200
    readers = [Readers(address, f"each{i}", max(1, subscribers // streams)) for i in range(streams)]
    sent: dict[int, float] = {}
    total = int(rate * given.seconds)
    requests = [request(i, streams) for i in range(total)]
    connections = [connect(address).sock for _ in range(producers)]
    used = [(cpu_seconds(pid), time.process_time())]
    begun = time.perf_counter() + 0.5

    def push(producer: int) -> None:
        for i in range(producer, total, producers):
            while (now := time.perf_counter()) < begun + i / rate:
                time.sleep(begun + i / rate - now)
            if i == total // 5:
                used.append((cpu_seconds(pid), time.process_time()))
            sent[i] = time.perf_counter()
            exchange(connections[producer], requests[i])

    threads = [threading.Thread(target=push, args=(i,)) for i in range(producers)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    pushed = time.perf_counter() - begun
    used.append((cpu_seconds(pid), time.process_time()))
    (first, _), (cpu, own) = np.diff(used, axis=0) * 1000 / [[total // 5], [total - total // 5]]
    time.sleep(2)
    seen = {number: at for reader in readers for number, at in reader.seen.items()}
    tail = [i for i in seen if i >= total // 5]  # after the first fifth
    from_request = np.array([(seen[i] - sent[i]) * 1000 for i in tail])
    from_due = np.array([(seen[i] - begun - i / rate) * 1000 for i in tail])
    print(
        f"{rate}/s asked, {total / pushed:,.0f}/s done, {streams} streams, {producers} connections, "
        f"{subscribers} subscribers: from request to match "
        f"median {np.median(from_request):.1f} ms, p99 {np.percentile(from_request, 99):.1f} ms; "
        f"from when it was due p99 {np.percentile(from_due, 99):.1f} ms; {total - len(seen)} missing; "
        f"CPU per push: server {cpu:.2f} ms ({first:.2f} ms in the first fifth), clients {own:.2f} ms; "
        f"load {os.getloadavg()[0]:.1f}",
        flush=True,
    )
    for reader in readers:
        reader.close()


def request(i: int, streams: int) -> bytes:
    """The bytes of a push: made before the clock runs, for the clients share the cores with the server."""
    integer = "<http://www.w3.org/2001/XMLSchema#integer>"
    body = f'<{EX}h{i % 97}> <{EX}number> "{i}"^^{integer} .\n'.encode()
    path = f"/streams/{quote(f'{EX}single{i % streams}', safe='')}?time=arrival"
    head = f"POST {path} HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/n-triples\r\n"
    return f"{head}Content-Length: {len(body)}\r\n\r\n".encode() + body


def exchange(connection: socket.socket, asked: bytes) -> None:
    """Send a request and read its answer, which is 200 and has a Content-Length."""
    connection.sendall(asked)
    got = connection.recv(4096)
    while b"\r\n\r\n" not in got:
        got += connection.recv(4096)
    head, _, body = got.partition(b"\r\n\r\n")
    assert head.startswith(b"HTTP/1.1 200 "), head
    size = int(head.lower().partition(b"content-length: ")[2].partition(b"\r\n")[0])
    while len(body) < size:
        body += connection.recv(4096)


if __name__ == "__main__":
    main()
