"""A bridge at work: reads, passes on, confirms; opens its source again when that fails."""

from __future__ import annotations

import logging
import random
import threading
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Final

from oxiseq.bridges.source import DeadLetters, Intake, Message, Source
from oxiseq.engine.errors import OxiseqError
from oxiseq.grammar.records import dataclass
from oxiseq.journal.journal import microseconds

LOG: Final = logging.getLogger("oxiseq.bridges")
MOST: Final = 500
"""Messages that are passed on together; a source is read on when these are durable."""
_LOOK: Final = 0.5
"""Seconds that a source may wait for a message."""


@dataclass(slots=True)
class Counts:
    """What has happened since the start. `failing`: since when it fails (µs since 1970), None: it does not."""

    messages: int = 0
    events: int = 0
    duplicates: int = 0
    refused: int = 0
    failures: int = 0
    failing: int | None = None
    error: str = ""


class Bridge:
    """`pauses`: seconds before a source, or the intake, is tried again, at first and at most."""

    def __init__(
        self,
        name: str,
        opened: Callable[[], Source],
        intake: Intake,
        letters: DeadLetters,
        pauses: tuple[float, float] = (0.5, 60.0),
    ) -> None:
        self.name, self.counts = name, Counts()
        self._open, self._intake, self._letters, self._pauses = opened, intake, letters, pauses
        self._pause = 0.0
        self._stopped = threading.Event()
        self._ended = False

    def stop(self) -> None:
        """Let `run` end."""
        self._stopped.set()

    def run(self) -> None:
        """Until `stop`, or the end of a source that has one."""
        while not self._stopped.is_set() and not self._ended:
            source: Source | None = None
            try:
                source = self._open()
                self._work(source)
            except Exception as error:  # a library may raise anything: the source is opened again
                self._fail(error)
            finally:
                _close(source)

    def _work(self, source: Source) -> None:
        while not self._stopped.is_set():
            try:
                messages = source.read(MOST, _LOOK)
            except EOFError:
                self._ended = True
                return
            if messages:
                done = self._hand_on(messages)
                if done:
                    source.confirm(messages[:done])
            self._well()

    def _hand_on(self, messages: Sequence[Message]) -> int:
        """How many are durable, or dead letters: all, unless it is stopped meanwhile."""
        messages = [self._named(message) for message in messages]  # once: they are tried again under the same keys
        done = 0
        while done < len(messages) and not self._stopped.is_set():
            try:
                outcomes = self._intake.push(messages[done:])
                for message, outcome in zip(messages[done:], outcomes, strict=False):
                    if outcome.refused:
                        self._letters.add(message, self.name, outcome.refused)
                        self.counts.refused += 1
                    self.counts.messages += 1
                    self.counts.duplicates += outcome.duplicate
                    self.counts.events += 0 if outcome.duplicate else outcome.events
                    done += 1
                self._well()
            except (OxiseqError, OSError) as error:  # too busy, full, away: the source waits
                self._fail(error)
        return done

    def _named(self, message: Message) -> Message:
        """Under the key that is its own, where it is new and another message has its usual one."""
        if message.new_key and self._intake.knows(message.key):
            return replace(message, key=message.new_key)
        return message

    def _well(self) -> None:
        if self.counts.failing is not None:
            LOG.info("bridge %s works again", self.name)
        self._pause, self.counts.failing, self.counts.error = 0.0, None, ""

    def _fail(self, error: Exception) -> None:
        if self._stopped.is_set():
            return
        told = " ".join(f"{error}".split()) or type(error).__name__
        if self.counts.failing is None:
            self.counts.failing = microseconds()
            LOG.warning(
                "bridge %s failed and tries again: %s",
                self.name,
                told,
                exc_info=None if isinstance(error, OxiseqError | OSError) else error,
            )
        self.counts.failures += 1
        self.counts.error = told[:500]
        first, longest = self._pauses
        self._pause = min(max(2 * self._pause, first), longest)
        self._stopped.wait(self._pause * random.uniform(0.5, 1.0))


def _close(source: Source | None) -> None:
    if source is not None:
        try:
            source.close()
        except Exception as error:
            LOG.debug("a source cannot be closed: %s", error)
