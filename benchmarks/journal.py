"""Appending to the journal and reading it back: `python -m benchmarks.journal [DIR]`.

Where the folder is matters: with `full` every commit waits for the disk. Its own flush is measured beside it.
"""

from __future__ import annotations

import os
import sys
import tempfile
import threading
from collections.abc import Callable
from pathlib import Path
from queue import SimpleQueue
from time import perf_counter, process_time, sleep

from oxiseq.engine.events.encode import encode_events
from oxiseq.engine.terms.dictionary import TermDictionary
from oxiseq.journal import Durability, Journal, pack_events

STREAM = "http://example.org/transactions"
SECONDS = 5
BATCHES = 200


def event(number: int) -> tuple[int, str]:
    """A transaction of five triples."""
    e = "http://example.org/"
    node = f"<{e}tx/{number}>"
    parts = {
        "account": f"<{e}account/{number % 500}>",
        "city": f"<{e}city/{number % 40}>",
        "currency": '"EUR"',
        "merchant": f"<{e}merchant/{number % 300}>",
        "amount": f"{number * 37 % 1000}.50",
    }
    return number * 1000, "".join(f"{node} <{e}{name}> {value} .\n" for name, value in parts.items())


def flush_ms(folder: Path) -> float:
    """The median of what a flush to the disk takes."""
    times = []
    with (folder / "flush").open("wb") as file:
        for _ in range(50):
            file.write(bytes(4096))
            file.flush()
            begun = perf_counter()
            os.fsync(file.fileno())
            times.append(perf_counter() - begun)
    return sorted(times)[25] * 1e3


def in_threads(count: int, work: Callable[[int], object]) -> None:
    threads = [threading.Thread(target=work, args=(number,)) for number in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


def paced(journal: Journal, one: bytes, rate: int, workers: int) -> str:
    """`rate` single events per second, each from its arrival until it is durable."""
    queue: SimpleQueue[tuple[float, int] | None] = SimpleQueue()
    times: list[float] = []

    def work(_: int) -> None:
        while (job := queue.get()) is not None:
            journal.log.append(STREAM, one, f"paced {job[1]}")
            times.append(perf_counter() - job[0])

    pool = threading.Thread(target=in_threads, args=(workers, work))
    pool.start()
    begun, used = perf_counter(), process_time()
    for number in range(rate * SECONDS):
        while perf_counter() < begun + number / rate:
            sleep(0.0003)
        queue.put((perf_counter(), number))
    for _ in range(workers):
        queue.put(None)
    pool.join()
    times.sort()
    p50, p99 = times[len(times) // 2] * 1e3, times[len(times) * 99 // 100] * 1e3
    share = (process_time() - used) / (perf_counter() - begun)
    return f"{rate} single events/s: p50 {p50:.1f} ms, p99 {p99:.1f} ms, {share:.2f} of a processor"


def saturated(journal: Journal, one: bytes, threads: int) -> str:
    """As many single events as go."""
    count = 4000

    def work(thread: int) -> None:
        for number in range(count // threads):
            journal.log.append(STREAM, one, f"{threads} {thread} {number}")

    begun, used, before = perf_counter(), process_time(), journal.commits
    in_threads(threads, work)
    rate, cpu = count / (perf_counter() - begun), (process_time() - used) / count * 1e6
    return f"{threads} threads, single events: {rate:,.0f}/s, {cpu:.0f} µs CPU each, {journal.commits - before} commits"


def batches(journal: Journal) -> list[str]:
    """Batches of 1,000 events, packed and appended; then read back."""
    terms = TermDictionary()
    thousand = encode_events([event(number) for number in range(1000)], terms)
    since = journal.streams.get(STREAM).next
    begun, used = perf_counter(), process_time()
    for _ in range(BATCHES):
        journal.log.append_batch(STREAM, thousand, terms)
    lines = [rate("1,000-event batches", begun, used)]
    begun, used = perf_counter(), process_time()
    assert sum(len(part.batch) for part in journal.log.read(STREAM, terms, since=since)) == BATCHES * 1000
    return [*lines, rate("reading them", begun, used)]


def rate(what: str, begun: float, used: float) -> str:
    """Events per second of the clock and of the processor."""
    events = BATCHES * 1000
    clock, cpu = events / (perf_counter() - begun), events / (process_time() - used)
    return f"{what}: {clock:,.0f} events/s, {cpu:,.0f} per CPU-s"


def measure(folder: Path, durability: Durability) -> None:
    """Print the figures of one setting."""
    terms = TermDictionary()
    one = pack_events(encode_events([event(1)], terms), terms)
    with Journal(folder / durability, durability) as journal:
        journal.streams.create(STREAM)
        lines = [saturated(journal, one, threads) for threads in (1, 8, 32)]
        lines += [paced(journal, one, 1000, 32), *batches(journal)]
    print(f"{durability}, a flush takes {flush_ms(folder):.1f} ms, an event of 5 triples {len(one)} bytes")
    print("".join(f"  {line}\n" for line in lines))


if __name__ == "__main__":
    with tempfile.TemporaryDirectory(dir=sys.argv[1] if len(sys.argv) > 1 else None) as made:
        measure(Path(made), "full")
        measure(Path(made), "normal")
