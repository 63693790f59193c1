"""Streaming pushes over a WebSocket at a fixed rate: from when a message is due to when a subscriber has read the match
of its last event, and until the message is acknowledged. A first message warms up.

    python -m benchmarks.serving.streaming [--rate 20000] [--message 100] [--seconds 10] [--live 8]

Events of one stream in N-Quads, their times a microsecond apart; the last event of each message is a match, complete
when the next message begins.
"""

from __future__ import annotations

import argparse
import json
import os
import threading
import time
from urllib.parse import quote, urlsplit

import numpy as np
from websockets.sync.client import connect as connect_socket

from benchmarks.serving.__main__ import EX, Readers, ask, connect, cpu_seconds, server

STREAM = f"{EX}streamed"
MARKED = f"""PREFIX : <{EX}>
SELECT ?house ?number FROM STREAM S <{STREAM}>
WHERE {{ SEQ(A) DEFINE GPM A ON S {{ ?house :number ?number }} }}"""
INTEGER = "<http://www.w3.org/2001/XMLSchema#integer>"


def main() -> None:
    """One line."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--rate", type=int, default=20_000)
    parser.add_argument("--message", type=int, default=100, help="events of a message")
    parser.add_argument("--seconds", type=float, default=10)
    parser.add_argument("--live", type=int, default=8)
    given = parser.parse_args()
    with server("own", "full") as (address, pid):
        control, path = connect(address), f"/streams/{quote(STREAM, safe='')}"
        assert ask(control, "PUT", "/queries/marked", MARKED.encode(), "application/spaseq-query") == 200
        readers = Readers(address, "marked", given.live)
        count = int(given.rate * given.seconds) // given.message
        messages = [message(i, given.message) for i in range(count + 1)]
        place = f"ws://{urlsplit(address).netloc}{path}/events?format=nquads"
        with connect_socket(place, compression=None) as made:
            made.recv()
            made.send(messages.pop(0))  # alone: kernels may have to be compiled for it
            while not readers.seen:
                time.sleep(0.1)
            used = cpu_seconds(pid)
            begun = time.perf_counter() + 0.5
            done = np.zeros(count)
            thread = threading.Thread(target=acknowledged, args=(made, given.message, done))
            thread.start()
            for i, each in enumerate(messages):
                if (rest := begun + i * given.message / given.rate - time.perf_counter()) > 0:
                    time.sleep(rest)
                made.send(each)
            thread.join()
            used = cpu_seconds(pid) - used
        time.sleep(1)
        due = begun + np.arange(count) * given.message / given.rate
        tail = [i for i in readers.seen if i > count // 5]  # after the first fifth
        matched = np.array([(readers.seen[i] - due[i - 1]) * 1000 for i in tail])
        stored = (done - due)[count // 5 :] * 1000
        readers.close()
    print(
        f"{given.rate:,} events/s asked, {count * given.message / (done[-1] - begun):,.0f} acknowledged, messages of "
        f"{given.message}; from when it was due to the match: median {np.median(matched):.1f} ms, p99 "
        f"{np.percentile(matched, 99):.1f} ms; to the acknowledgement: median {np.median(stored):.1f} ms, p99 "
        f"{np.percentile(stored, 99):.1f} ms; {count + 1 - len(readers.seen)} missing; CPU of the server "
        f"{used / count / given.message * 1e6:.0f} us an event; load {os.getloadavg()[0]:.1f}"
    )


def message(number: int, events: int) -> bytes:
    """Events of three triples, the last of which has the message's number."""
    lines = []
    for i in range(events):
        at = number * events + i
        name = f"<{EX}e{at}>"
        marked = f'<{EX}h{at % 97}> <{EX}number> "{number}"^^{INTEGER} {name} .\n' if i == events - 1 else ""
        lines.append(
            f'{name} <http://www.w3.org/ns/prov#generatedAtTime> "{at}"^^{INTEGER} .\n{marked}'
            f'<{EX}h{at % 97}> <{EX}watts> "{at * 7919 % 1000}"^^{INTEGER} {name} .\n'
            f"<{EX}h{at % 97}> <{EX}unit> <{EX}W> {name} .\n"
        )
    return "".join(lines).encode()


def acknowledged(made: object, events: int, done: np.ndarray) -> None:
    """Note when each message is acknowledged."""
    known = 0
    while known < len(done):
        told = json.loads(made.recv(60))  # type: ignore[attr-defined]  # the library's connection
        if (upto := told["seq"] // events - 1) > known:
            done[known:upto] = time.perf_counter()
            known = upto


if __name__ == "__main__":
    main()
