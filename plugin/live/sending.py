"""One thread that writes to all live readers, where the server lets it.

A thread for each reader would have to be woken for each match: with fifty readers that costs more than all the rest.
A server that offers an Outlet gets the matches written from here; with any other, each request's thread iterates its
subscription. What is sent is the same: `Subscription.take` makes it.
"""

from __future__ import annotations

import threading
import time
from typing import Final, Protocol

from oxiseq.live.topics import Topic

HEARTBEAT: Final = b": still here\n\n"
_MOST: Final = 256 << 10
"""Bytes that a reader has not taken yet, beyond which it gets no more for now: its backlog stays in the topic."""
_RETRY: Final = 0.02
_LOOK: Final = 1.0
"""Seconds between looks for readers that have left or need a heartbeat."""


class Outlet(Protocol):
    """Where a response that is under way goes on being written."""

    @property
    def open(self) -> bool:
        """Whether the client is still there."""
        ...

    @property
    def pending(self) -> int:
        """Bytes that it has not taken yet."""
        ...

    def write(self, data: bytes) -> bool:
        """Send a piece, without waiting for the client to take it; False when that is gone."""
        ...


class Sendable(Protocol):
    """What the sender needs of a subscription."""

    topic: Topic
    ended: bool

    @property
    def behind(self) -> bool:
        """Whether it is to be let go of, though it has not ended."""
        ...

    @property
    def more(self) -> bool:
        """Whether there is something for it already."""
        ...

    def take(self, timeout: float) -> bytes:
        """What has come; see Subscription."""
        ...


class _Reader:
    """A subscription with its outlet; `done` is set when nothing more is written."""

    def __init__(self, subscription: Sendable, outlet: Outlet) -> None:
        self.subscription, self.outlet = subscription, outlet
        self.wrote = time.monotonic()
        self.done = threading.Event()
        self.error: Exception | None = None


class Sender:
    """Its thread begins with the first reader. `heartbeat`: seconds of silence after which a comment is sent."""

    def __init__(self, heartbeat: float) -> None:
        self._heartbeat = heartbeat
        self._lock = threading.Lock()
        self._readers: dict[Topic, list[_Reader]] = {}
        self._due: set[Topic] = set()
        self._behind: list[_Reader] = []
        self._looked = time.monotonic()
        self._wake = threading.Event()
        self._ending = False
        self._thread: threading.Thread | None = None

    def changed(self, topic: Topic) -> None:
        """Something is to be told to those who listen to a topic."""
        with self._lock:
            if topic not in self._readers:
                return
            self._due.add(topic)
        self._wake.set()

    def send(self, subscription: Sendable, outlet: Outlet) -> None:
        """Write what comes for a subscription; returns when it has ended, is behind, or the client has left. Raises
        what `take` raises."""
        reader = _Reader(subscription, outlet)
        with self._lock:
            if self._ending:
                return
            self._readers.setdefault(subscription.topic, []).append(reader)
            self._due.add(subscription.topic)
            if self._thread is None:
                self._thread = threading.Thread(target=self._run, name="oxiseq-sender", daemon=True)
                self._thread.start()
        self._wake.set()
        reader.done.wait()
        if reader.error is not None:
            raise reader.error

    def close(self) -> None:
        """Let all readers go."""
        with self._lock:
            self._ending = True
        self._wake.set()
        if self._thread is not None:
            self._thread.join()

    def _run(self) -> None:
        while not self._ending:
            self._wake.wait(_RETRY if self._behind else _LOOK)
            self._wake.clear()
            with self._lock:
                due, self._due = self._due, set()
                readers = [reader for topic in due for reader in self._readers.get(topic, ())]
            behind, self._behind = self._behind, []
            for reader in dict.fromkeys(behind + readers):
                self._serve(reader)
            self._look()
        for reader in self._all():
            self._drop(reader)

    def _serve(self, reader: _Reader) -> None:
        if reader.done.is_set():
            return
        if reader.outlet.pending > _MOST and reader.outlet.open:
            self._behind.append(reader)
            return
        try:
            data = reader.subscription.take(0)
            if data and not self._write(reader, data):
                return
        except Exception as error:
            reader.error = error
            self._drop(reader)
            return
        if reader.subscription.ended or reader.subscription.behind:
            self._drop(reader)
        elif reader.subscription.more:
            self._behind.append(reader)
            self._wake.set()

    def _write(self, reader: _Reader, data: bytes) -> bool:
        reader.wrote = time.monotonic()
        if reader.outlet.write(data):
            return True
        self._drop(reader)
        return False

    def _look(self) -> None:
        now = time.monotonic()
        if now - self._looked < min(_LOOK, self._heartbeat / 2):
            return
        self._looked = now
        for reader in self._all():
            if not reader.outlet.open:
                self._drop(reader)
            elif now - reader.wrote >= self._heartbeat and not reader.outlet.pending:
                self._write(reader, HEARTBEAT)

    def _all(self) -> list[_Reader]:
        with self._lock:
            return [reader for readers in self._readers.values() for reader in readers]

    def _drop(self, reader: _Reader) -> None:
        topic = reader.subscription.topic
        with self._lock:
            left = [each for each in self._readers.get(topic, ()) if each is not reader]
            if left:
                self._readers[topic] = left
            else:
                self._readers.pop(topic, None)
        reader.done.set()
