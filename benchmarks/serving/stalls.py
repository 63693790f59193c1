"""How long a server answers nothing beside a query whose instants are dear: the longest GET, PATCH and DELETE.

python -m benchmarks.serving.stalls [--seconds 6]
"""

from __future__ import annotations

import argparse
import os
import signal
import threading
import time
from collections.abc import Callable, Iterable
from urllib.parse import quote

from benchmarks.serving.__main__ import ask, connect, server

E, STREAM = "http://e/", "http://e/s"
INTEGER = "http://www.w3.org/2001/XMLSchema#integer"
STAMP = "http://www.w3.org/ns/prov#generatedAtTime"
WINDOW = f"FROM NAMED WINDOW :w ON <{STREAM}> [RANGE PT2H STEP PT1S]"
COUNTED = f"PREFIX : <{E}> REGISTER ISTREAM :found AS SELECT (COUNT(*) AS ?n) {WINDOW}"
SEQ = f"PREFIX : <{E}> SELECT ?b FROM STREAM S <{STREAM}> WHERE {{ SEQ(%s) %s }}"
TRIPLE = "WHERE { WINDOW :w { ?x :v ?a . ?y :v ?b . ?z :v ?c FILTER(?a + ?b = ?c * 7) } }"
PAIR = "?x :v ?a . ?y :v ?b FILTER(?a + ?b = -1)"


def graphs(sizes: Iterable[int]) -> bytes:
    """An event a second, each of so many things with a value."""
    lines = []
    for at, size in enumerate(sizes):
        lines += [f'<{E}{at}-{n}> <{E}v> "{at + n}"^^<{INTEGER}> <urn:e{at}> .' for n in range(size)]
        clock = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(1_714_557_600 + at))
        lines.append(f'<urn:e{at}> <{STAMP}> "{clock}"^^<http://www.w3.org/2001/XMLSchema#dateTime> .')
    return "\n".join(lines).encode()


CASES = {
    "a three-way product of 1,000 events": (
        f"{COUNTED} {TRIPLE}",
        "rspql",
        [1] * 1000,
    ),
    "2,000 partial matches, 2,000 rows": (
        SEQ % ("A; B", "DEFINE GPM A ON S { ?x :v ?a } DEFINE GPM B ON S { ?y :v ?b FILTER(?a + ?b = -1) }"),
        "spaseq",
        [2000] * 7,
    ),
    "6,000 by 6,000 triples of one event": (SEQ % ("A", f"DEFINE GPM A ON S {{ {PAIR} }}"), "spaseq", [6000] * 6),
}


def main() -> None:
    """A line for each case."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--seconds", type=float, default=6)
    seconds = parser.parse_args().seconds
    for name in CASES:
        print(f"{name}: {beside(name, seconds)}", flush=True)


def beside(name: str, seconds: float) -> str:
    """The longest times beside a case's query."""
    text, language, sizes = CASES[name]
    stream, worst, ending = f"/streams/{quote(STREAM, safe='')}", [0.0], threading.Event()
    with server("own", "normal") as (address, pid):
        control = connect(address)
        ask(control, "PUT", stream, b"", "application/json")
        assert ask(control, "PUT", "/queries/dear", text.encode(), f"application/{language}-query") < 300
        thread = threading.Thread(target=look, args=(address, worst, ending))
        thread.start()
        assert ask(control, "POST", stream, graphs(sizes), "application/n-quads") == 200
        time.sleep(seconds)
        pause = timed(lambda: ask(control, "PATCH", "/queries/dear", b'{"state": "paused"}', "application/json"))
        gone = timed(lambda: ask(control, "DELETE", "/queries/dear", b"", "application/json"))
        ending.set()
        thread.join()
        os.kill(pid, signal.SIGKILL)  # to end it waits for what is at work
    return f"GET {worst[0]:.2f} s at the most, PATCH {pause:.2f} s, DELETE {gone:.2f} s"


def look(address: str, worst: list[float], ending: threading.Event) -> None:
    """GET again and again; the longest time goes into `worst`."""
    connection = connect(address)
    while not ending.wait(0.01):
        for path in ("/queries", "/queries/dear", "/health", "/metrics"):
            worst[0] = max(worst[0], timed(lambda path=path: ask(connection, "GET", path, b"", "application/json")))


def timed(work: Callable[[], object]) -> float:
    """Seconds."""
    begun = time.perf_counter()
    work()
    return time.perf_counter() - begun


if __name__ == "__main__":
    main()
