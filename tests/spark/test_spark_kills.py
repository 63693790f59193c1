"""A streaming query is killed at random moments and started again: its sink holds every match once.

`OXISEQ_SPARK_KILLS=20` kills it twenty times.
"""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from killed_query import QUERY, work_through

import oxiseq

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

KILLS = int(os.environ.get("OXISEQ_SPARK_KILLS", "1"))
FILES = max(5, 2 * KILLS)
START = 1_700_000_000


def write_events(folder: Path, dice: random.Random, files: int) -> None:
    """Files of N-Quads, a second from event to event; the last event only says that those before it are complete."""
    folder.mkdir()
    at = START
    for number in range(files):
        lines = []
        for _ in range(60):
            at += 1
            what = dice.choice([f":a {dice.randint(0, 9)}", f":b {dice.randint(0, 9)}", ":stop true"])
            lines += event(at, f":k :k{dice.randint(0, 3)}", what)
        if number == files - 1:
            lines += event(at + 1000, ":k :none", ":a 1")
        (folder / f"{number:03d}.nq").write_text("".join(lines))


def event(at: int, *pairs: str) -> list[str]:
    quads = []
    for pair in pairs:
        name, value = pair.split()
        term = (
            f"<http://e/{value[1:]}>"
            if value.startswith(":")
            else (f'"{value}"^^<http://www.w3.org/2001/XMLSchema#{"boolean" if value == "true" else "integer"}>')
        )
        quads.append(f"_:x <http://e/{name[1:]}> {term} <urn:e:{at}> .\n")
    dated = f'"{at * 1_000_000}"^^<http://www.w3.org/2001/XMLSchema#integer>'
    return [*quads, f"<urn:e:{at}> <http://www.w3.org/ns/prov#generatedAtTime> {dated} .\n"]


@pytest.mark.slow
def test_the_sink_holds_every_match_once(spark: SparkSession, tmp_path: Path) -> None:
    dice = random.Random(7)
    write_events(tmp_path / "in", dice, FILES)
    kills = 0
    while kills < KILLS:
        with started(tmp_path) as process:
            if kills % 2 == 0:  # at work for sure
                wait_for_a_batch(tmp_path, process)
                time.sleep(dice.uniform(0, 3))
            else:
                time.sleep(dice.uniform(0, 25))
            if process.poll() is not None:
                break  # it was done
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()
        kills += 1
    work_through(spark, tmp_path)
    expected = wanted(tmp_path)
    assert in_sink(tmp_path) == expected
    assert sum(expected.values()) >= FILES
    assert kills == KILLS


def wanted(folder: Path) -> Counter[str]:
    """What `oxiseq.run` finds in all files together."""
    everything = folder / "all.nq"
    everything.write_text("".join(p.read_text() for p in sorted((folder / "in").iterdir())))
    expected: Counter[str] = Counter()
    for match in oxiseq.run(QUERY, {"S": everything}):
        row = [match.at_us / 1e6, *(term_text(match[v]) for v in "kab"), [t / 1e6 for _, t in match.events["B"]]]
        expected[json.dumps(row)] += 1
    return expected


def in_sink(folder: Path) -> Counter[str]:
    """The matches that the query has emitted."""
    found: Counter[str] = Counter()
    for file in (folder / "out").glob("*.jsonl"):
        found.update(file.read_text().splitlines())
    return found


def term_text(term: object) -> str:
    return str(getattr(term, "value", term))


def wait_for_a_batch(folder: Path, process: subprocess.Popen[bytes]) -> None:
    """Until the sink has one more batch."""
    before, deadline = len(list((folder / "out").glob("*.jsonl"))), time.monotonic() + 900
    while len(list((folder / "out").glob("*.jsonl"))) <= before and process.poll() is None:
        assert time.monotonic() < deadline
        time.sleep(0.05)


def started(folder: Path) -> subprocess.Popen[bytes]:
    """In a process group of its own, so that Java and the workers are killed with it."""
    options = {"JAVA_TOOL_OPTIONS": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC", "TMPDIR": str(folder)}
    command = [sys.executable, "-W", "ignore", str(Path(__file__).with_name("killed_query.py")), str(folder)]
    return subprocess.Popen(
        command,
        env={**os.environ, **options},
        start_new_session=True,
        stdout=subprocess.DEVNULL,
        stderr=(folder / "stderr").open("ab"),
    )
