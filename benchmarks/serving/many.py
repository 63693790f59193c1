"""What a push costs a server beside many registered queries: CPU of its process, what follows on a push included.

    python -m benchmarks.serving.many [--queries 1 300] [--languages spaseq rspql epsparql] [--kinds predicates rows]

The queries of `benchmarks.many`, one event after the other, a second apart. Checkpoints fall into the time, as they do
in a server's life. A line for each: CPU of registering one query, then of a push.
"""

from __future__ import annotations

import argparse
import time
from urllib.parse import quote

from benchmarks.machine import machine
from benchmarks.many import STREAM, TEXTS, E, text_of
from benchmarks.serving.__main__ import ask, connect, cpu_seconds, server

WARM, PUSHES = 150, 1000
FIRST = 1_700_000_000_000_000
SECOND = 1_000_000


def main() -> None:
    """The table."""
    options = argparse.ArgumentParser(prog="python -m benchmarks.serving.many")
    options.add_argument("--queries", type=int, nargs="+", default=[1, 300])
    options.add_argument("--languages", nargs="+", default=[*TEXTS], choices=[*TEXTS])
    options.add_argument("--kinds", nargs="+", default=["predicates", "rows"], choices=["predicates", "rows"])
    chosen = options.parse_args()
    print(f"{machine()}\n\n| language | kind | queries | ms to register | µs per push |\n|---|---|---:|---:|---:|")
    for language in chosen.languages:
        for kind in chosen.kinds:
            for queries in chosen.queries:
                register, push = cell(language, kind, queries)
                print(f"| {language} | {kind} | {queries:,} | {register:.1f} | {push:,.0f} |", flush=True)


def cell(language: str, kind: str, queries: int) -> tuple[float, float]:
    """ms of CPU to register one of so many, and µs for a push."""
    with server("own", "normal") as (address, pid):
        control = connect(address)
        media = f"application/{language}-query"
        assert ask(control, "PUT", "/queries/first", text_of(language, kind, 10**6).encode(), media) == 200
        begun = cpu_seconds(pid)
        for number in range(queries):
            assert ask(control, "PUT", f"/queries/q{number}", text_of(language, kind, number).encode(), media) == 200
        registered = cpu_seconds(pid)
        path = f"/streams/{quote(STREAM, safe='')}"
        for number in range(WARM + PUSHES):
            if number == WARM:
                time.sleep(1)
                warm = cpu_seconds(pid)
            target = f"{path}?time={FIRST + number * SECOND}"
            assert ask(control, "POST", target, event(number), "text/turtle") == 200
        time.sleep(1.5)
        return 1e3 * (registered - begun) / queries, 1e6 * (cpu_seconds(pid) - warm) / PUSHES


def event(number: int) -> bytes:
    """One of `benchmarks.many`."""
    return f"<{E}h{number % 50}> a <{E}T0> ; <{E}p0> {number % 100} .".encode()


if __name__ == "__main__":
    main()
