"""A bucket between micro-batches: its run stays in the worker, and Spark stores a snapshot and the steps since.

In the flow: Spark's state → **kept run, or one restored** → step → what of the state changes. A snapshot costs what
the run holds, however few rows have come. So a step is stored as what it was given, until the steps since the snapshot
are as large as that; then a snapshot takes their place. A step is a function of state, rows and watermark, so a worker
that does not have the run restores the snapshot and does the steps again.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Sequence
from typing import Final, Protocol

import numpy as np
from numpy.typing import NDArray

from oxiseq.engine.errors import SnapshotError
from oxiseq.engine.snapshot.container import pack, unpack
from oxiseq.grammar.records import dataclass
from oxiseq.spark.bucket import Bucket, Packed
from oxiseq.spark.errors import CheckpointError
from oxiseq.spark.work import Work

MOST_STEPS: Final = 50
"""Steps behind a snapshot, at most, however small they are."""


class Stored(Protocol):
    """A bucket's state as Spark keeps it; what is large is read when it is asked for."""

    @property
    def token(self) -> bytes | None:
        """Which state it is; None: there is none, or a version without tokens has stored it."""

    def snapshot(self) -> bytes | None:
        """None: the bucket is new."""

    def steps(self) -> Iterator[bytes]:
        """Those since the snapshot, in order."""


@dataclass(frozen=True, slots=True)
class Snapshot:
    """One without steps, or none."""

    data: bytes | None = None
    token: bytes | None = None

    def snapshot(self) -> bytes | None:
        """As `Stored` has it."""
        return self.data

    def steps(self) -> Iterator[bytes]:
        """As `Stored` has it."""
        return iter(())


@dataclass(frozen=True, slots=True)
class Change:
    """What of the stored state changes: `snapshot` takes the place of all, or `step` is one more. `token` says which
    state it is then."""

    token: bytes
    snapshot: bytes | None
    step: bytes


@dataclass(slots=True)
class Kept:
    """A bucket at work, and how it is stored: as a snapshot of `size` bytes and so many `steps` of `grown` bytes."""

    bucket: Bucket
    token: bytes = b""
    size: int = 0
    grown: int = 0
    steps: int = 0
    mark: int = 0
    """The watermark (ms) of its last step."""

    def store(self, rows: Sequence[Packed], watermark: int) -> Change:
        """After a step that was given these."""
        step = _packed_step(rows, watermark)
        if self.steps < MOST_STEPS and self.grown + len(step) <= self.size:
            self.grown, self.steps = self.grown + len(step), self.steps + 1
            self.token = _token(self.token + step)
            return Change(self.token, None, step)
        snapshot = self.bucket.save()
        self.token, self.size, self.grown, self.steps = _token(snapshot), len(snapshot), 0, 0
        return Change(self.token, snapshot, b"")


def take(work: Work, number: int, stored: Stored) -> Kept:
    """The run of a bucket as it is stored: the one that this process has kept, if it is in that state. Whoever takes it
    keeps it again after a step that succeeds. Raises CheckpointError."""
    kept = work.kept.pop(number, None)
    if isinstance(kept, Kept) and kept.token == stored.token:
        return kept
    snapshot = stored.snapshot()
    try:
        bucket = Bucket(work, number, snapshot)
        steps = [] if snapshot is None else list(stored.steps())
        for step in steps:
            bucket.step(*_unpacked_step(step))
    except SnapshotError as error:
        raise CheckpointError(
            f"the checkpoint cannot go on with this query: {error}. Go on with the query and the version of oxiseq "
            "that it is of, or give a new checkpointLocation: the query then begins with the source's first events"
        ) from error
    return Kept(bucket, stored.token or b"", len(snapshot or b""), sum(map(len, steps)), len(steps))


def keep(work: Work, number: int, kept: Kept, mark: int) -> None:
    """For the next micro-batch. Buckets that have gone to other workers are dropped when two watermarks have passed."""
    kept.mark = mark
    work.kept[number] = kept
    marks = sorted({each.mark for each in work.kept.values()})[-2:]
    for gone in [number for number, each in work.kept.items() if each.mark not in marks]:
        del work.kept[gone]


def _token(state: bytes) -> bytes:
    return hashlib.blake2b(state, digest_size=16).digest()


def _packed_step(rows: Sequence[Packed], watermark: int) -> bytes:
    given = [{"stream": r.stream, "place": r.place, "events": _array(r.events), "home": _array(r.home)} for r in rows]
    return pack({"watermark": watermark, "rows": given})


def _unpacked_step(step: bytes) -> tuple[list[Packed], int]:
    state = unpack(step)
    rows = [Packed(r["stream"], r["events"].tobytes(), r["home"].tobytes(), r["place"]) for r in state["rows"]]
    return rows, int(state["watermark"])


def _array(data: bytes) -> NDArray[np.uint8]:
    return np.frombuffer(data, np.uint8)
