"""A process to be killed: threads append batches, one commits checkpoints; what is acknowledged is told on stdout.

    python killed_child.py JOURNAL DURABILITY ROUND

Lines: `a ROUND-THREAD-NUMBER FIRST COUNT` for a batch, `c N` for a checkpoint with N matches.
"""

from __future__ import annotations

import os
import sys
import threading

from journal_events import STREAM, blob, found

from oxiseq.journal import Checkpoint, Durability, Journal

THREADS = 4


def batch_times(thread: int, number: int) -> list[int]:
    """The times of a batch: they tell whose it is and how large; some batches are large enough for many pages."""
    size = 3000 if number % 16 == 15 else 1 + (thread + number) % 5
    return [(thread * 1_000_000 + number) * 10_000 + i for i in range(size)]


def tell(line: str) -> None:
    """One line in one write, so that it is whole whenever the process dies."""
    os.write(1, line.encode() + b"\n")


def append(journal: Journal, round_: str, thread: int) -> None:
    number = 0
    while True:
        times = batch_times(thread, number)
        done = journal.log.append(STREAM, blob(times), f"{round_}-{thread}-{number}")
        tell(f"a {round_}-{thread}-{number} {done.first} {done.count}")
        number += 1


def check(journal: Journal) -> None:
    latest = journal.checkpoints.latest("q")
    number = latest.matches["q"] if latest is not None else 0
    while True:
        end = journal.streams.get(STREAM).next
        new = list(range(number, number + 3))
        state = b"%d" % (number + 3) + b"." * 20_000
        commit = Checkpoint("q", state, {STREAM: end}, {"q": number + 3})
        journal.checkpoints.commit(commit, found("q", number + 1, new))
        number += 3
        tell(f"c {number}")


def main(path: str, durability: Durability, round_: str) -> None:
    journal = Journal(path, durability)
    journal.streams.create(STREAM)
    if not journal.queries.all():
        journal.queries.register("q", "text")
    for thread in range(THREADS):
        threading.Thread(target=append, args=(journal, round_, thread), daemon=True).start()
    tell("ready")
    check(journal)


if __name__ == "__main__":
    main(sys.argv[1], "full" if sys.argv[2] == "full" else "normal", sys.argv[3])
