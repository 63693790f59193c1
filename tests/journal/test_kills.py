"""Killed at random moments, or with the end of its WAL torn off: what was acknowledged is there, nothing is half there.

`OXISEQ_PROFILE=nightly` kills 50 times, else 6.
"""

from __future__ import annotations

import os
import random
import shutil
import signal
import subprocess
import sys
import threading
import time
from itertools import groupby
from pathlib import Path

import pytest
from journal_events import STREAM, blob, matches, read
from killed_child import THREADS, batch_times
from profiles import NIGHTLY

from oxiseq.journal import Durability, Journal

KILLS = 50 if NIGHTLY else 6
CHILD = Path(__file__).with_name("killed_child.py")


@pytest.mark.parametrize("durability", ["full", pytest.param("normal", marks=pytest.mark.full)])
def test_what_was_acknowledged_outlives_a_kill(path: Path, durability: Durability) -> None:
    dice = random.Random(7)
    acknowledged: dict[str, tuple[int, int]] = {}
    checkpoint = 0
    for round_ in range(KILLS // 2):
        for line in killed(path, durability, str(round_), dice.uniform(0.0, 0.6)):
            kind, *rest = line.split()
            if kind == "a":
                acknowledged[rest[0]] = int(rest[1]), int(rest[2])
            elif kind == "c":
                checkpoint = int(rest[0])
        with Journal(path, durability) as journal:
            assert journal.verify() == []
            batches = stored(journal)
            for name, (first, count) in acknowledged.items():
                assert batches[first] == times_of(name)
                assert len(batches[first]) == count
            checkpoint = checked(journal, checkpoint)
            resent(journal, str(round_), acknowledged)
    assert len(acknowledged) > KILLS


def killed(path: Path, durability: str, round_: str, after: float) -> list[str]:
    """What a child told before it was killed `after` seconds."""
    command = [sys.executable, str(CHILD), str(path), durability, round_]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as child:
        assert child.stdout is not None
        assert child.stdout.readline() == "ready\n"
        timer = threading.Timer(after, lambda: os.kill(child.pid, signal.SIGKILL))
        timer.start()
        lines = child.stdout.read().splitlines()
        assert child.wait() == -signal.SIGKILL
    return lines


def times_of(name: str) -> list[int]:
    """The times that a batch of this name has."""
    _, thread, number = name.split("-")
    return batch_times(int(thread), int(number))


def stored(journal: Journal) -> dict[int, list[int]]:
    """First offset → times of each batch in the log, all of which are whole."""
    found: dict[int, list[int]] = {}
    for _, run in groupby(read(journal), key=lambda pair: pair[1] // 10_000):
        pairs = list(run)
        while pairs:  # the same batch of several rounds may stand in a row
            offset, time_ = pairs[0]
            whole = batch_times(*divmod(time_ // 10_000, 1_000_000))
            assert [t for _, t in pairs[: len(whole)]] == whole
            found[offset] = whole
            pairs = pairs[len(whole) :]
    return found


def checked(journal: Journal, acknowledged: int) -> int:
    """How many matches the checkpoint has, which are all there and no others."""
    latest = journal.checkpoints.latest("q")
    count = latest.matches["q"] if latest is not None else 0
    assert count >= acknowledged
    assert matches_all(journal) == [(i + 1, i) for i in range(count)]
    if latest is not None and latest.state:
        assert int(latest.state.rstrip(b".")) == count
    return count


def matches_all(journal: Journal) -> list[tuple[int, int]]:
    got: list[tuple[int, int]] = []
    while page := matches(journal, "q", after=len(got)):
        got += page
    return got


def resent(journal: Journal, round_: str, acknowledged: dict[str, tuple[int, int]]) -> None:
    """A client sends again what was not answered: each batch is in the log once, then."""
    for thread in range(THREADS):
        number = sum(name.startswith(f"{round_}-{thread}-") for name in acknowledged)
        name = f"{round_}-{thread}-{number}"
        before = journal.streams.get(STREAM).next
        answer = journal.log.append(STREAM, blob(times_of(name)), name)
        assert answer.repeated == (answer.first < before)
        acknowledged[name] = answer.first, answer.count
    assert len(stored(journal)) == len(acknowledged)


@pytest.mark.parametrize("seed", range(8))
def test_a_torn_end_of_the_wal_costs_whole_batches_only(path: Path, tmp_path: Path, seed: int) -> None:
    """As a power cut may leave it: the WAL's end is missing, or is rubbish."""
    dice = random.Random(seed)
    copy = tmp_path / "copy"
    with Journal(path) as journal:
        journal.streams.create(STREAM)
        for i in range(60):
            journal.log.append(STREAM, blob(range(i * 50, i * 50 + dice.choice([1, 50]))), str(i))
        expected = read(journal)
        for ending in ("", "-wal"):
            shutil.copy(f"{path}{ending}", f"{copy}{ending}")
    wal = copy.with_name("copy-wal")
    size = wal.stat().st_size
    cut = dice.randrange(32 + 4096 * 20, size)
    with wal.open("r+b") as file:
        if seed % 2:
            file.truncate(cut)
        else:
            file.seek(cut)
            file.write(dice.randbytes(min(5000, size - cut)))
    with Journal(copy) as journal:
        assert journal.verify() == []
        left = read(journal)
        assert left == expected[: len(left)]
        assert len(left) < len(expected)
        assert len(left) == len(expected) or expected[len(left)][1] % 50 == 0  # a batch begins there
        again = journal.log.append(STREAM, blob([1]), "new")
        assert again.first == len(left)


def test_a_kill_while_nothing_is_written_costs_nothing(path: Path) -> None:
    code = "import sys, time; from oxiseq.journal import Journal; j = Journal(sys.argv[1]); j.streams.create('urn:s')"
    child = subprocess.Popen(
        [sys.executable, "-c", f"{code}; print(1, flush=True); time.sleep(60)", str(path)], stdout=subprocess.PIPE
    )
    with child:
        assert child.stdout is not None
        child.stdout.readline()
        time.sleep(0.05)
        child.kill()
    with Journal(path) as journal:
        assert [stream.iri for stream in journal.streams.all()] == ["urn:s"]
