"""A bridge at work: reads a source, passes on, acknowledges; opens the source again when that fails.

Source ─ messages ─▶ Intake ─ durable, or refused ─▶ acknowledged at the source
                       └▶ refused: DeadLetters
"""

from __future__ import annotations

import base64
import json
import logging
import os
import random
import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Final, Protocol

from oxiseq.bridges.source import BridgeError, Message, Source
from oxiseq.engine.errors import OxiseqError
from oxiseq.engine.events.time import to_text
from oxiseq.grammar.records import dataclass
from oxiseq.journal.journal import microseconds
from oxiseq.options import room

# --- intake ----------------------------------------------------------------------------------------------

FORMER_KEY: Final = "oxiseq-former-key"
"""The header that names the key which earlier versions gave a message."""
REFUSED: Final = frozenset((400, 409, 413, 415, 422))
"""Statuses that concern the message itself; all others may change later."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """What became of a message: `refused` says why it, or a part of it, was not taken; `duplicate`: it was known."""

    events: int = 0
    refused: str = ""
    duplicate: bool = False


class Intake(Protocol):
    """Takes messages in their order."""

    def knows(self, key: str) -> bool:
        """Whether a message of this key is stored, as far as it knows."""
        ...

    def push(self, messages: Sequence[Message]) -> Sequence[Outcome]:
        """What became of the first of them, which are durable or refused; at least of one. Raises OxiseqError, OSError
        where that is to be tried again."""
        ...


def key_headers(message: Message) -> tuple[tuple[str, str], ...]:
    """The headers of a POST by which a message is known again."""
    former = ((FORMER_KEY, message.former_key),) if message.former_key else ()
    return ("idempotency-key", message.key), *former


def outcome_of(status: int, body: bytes) -> Outcome:
    """Of the answer to a POST. Raises BridgeError where it is to be tried again."""
    try:
        told = json.loads(body)
    except ValueError:
        told = {}
    if not isinstance(told, dict):
        told = {}
    reasons = "; ".join([_reason(each) for each in told.get("reasons") or () if isinstance(each, dict)][:5])
    if 200 <= status < 300:
        refused = reasons or "a part" if told.get("rejected") else ""
        return Outcome(int(told.get("accepted") or 0), refused, bool(told.get("duplicates")))
    titles = [str(told[name]) for name in ("title", "detail") if told.get(name)]
    said = ": ".join([*titles, *([reasons] if reasons else [])]) or f"status {status}"
    if status in REFUSED:
        return Outcome(refused=said)
    raise BridgeError(f"{status} {said}")


def _reason(told: Mapping[str, Any]) -> str:
    column = told.get("column")
    return f"{told.get('reason')}" if column is None else f"{column}: {told.get('reason')}"


# --- letters -------------------------------------------------------------------------------------------

_LARGEST: Final = 256 << 20
"""Bytes: a source that sends nothing but nonsense must not fill the disk."""


class DeadLetters:
    """Appends; each letter is on the disk before the message is confirmed."""

    def __init__(self, path: Path, largest: int = _LARGEST) -> None:
        self._path, self._largest = path, largest

    def add(self, message: Message, source: str, reason: str) -> None:
        """Raises BridgeError when the file is full, OSError."""
        try:
            body: dict[str, Any] = {"body": message.body.decode()}
        except UnicodeDecodeError:
            body = {"body_base64": base64.b64encode(message.body).decode()}
        letter = {"at": to_text(microseconds()), "source": source, "key": message.key, "reason": reason, **body}
        data = json.dumps(letter, ensure_ascii=False).encode() + b"\n"
        self._path.parent.mkdir(parents=True, exist_ok=True)
        if told := room.lacking(self._path.parent, len(data)):
            raise BridgeError(f"{self._path}: no room on the disk for a dead letter: {told}")
        with self._path.open("ab") as file:
            if file.tell() + len(data) > self._largest:
                raise BridgeError(f"{self._path} has {file.tell()} bytes, which is the limit: check it, move it away")
            file.write(data)
            file.flush()
            os.fsync(file.fileno())


# --- bridge --------------------------------------------------------------------------------------------

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
                    source.acknowledge(messages[:done])
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
