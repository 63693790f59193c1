"""Where messages come from.

How far a source is confirmed, beyond what the source itself remembers: in a file, or in memory where none is set.

A broker forgets a group of readers whose stream is deleted. The position tells a group that is gone from one that never
was: what is there when the bridge comes back is then new, and read from where the bridge was.
"""

from __future__ import annotations

import base64
import dataclasses
import hashlib
import json
import os
import time
from collections.abc import Mapping, Sequence
from dataclasses import fields
from pathlib import Path
from typing import Any, Final, Protocol
from urllib.parse import unquote, urlsplit, urlunsplit

from oxiseq.engine.errors import OxiseqError
from oxiseq.engine.events.time import to_text
from oxiseq.engine.events.write import replacing
from oxiseq.grammar.records import dataclass
from oxiseq.journal.journal import microseconds
from oxiseq.options import room
from oxiseq.options.room import overlap

# --- settings --------------------------------------------------------------------------------------------

STDIN: Final = "-"
_FILE: Final = "file://"


class BridgeError(OxiseqError):
    """Settings of a bridge that cannot be, or a source that cannot be read."""


@dataclass(frozen=True, slots=True, kw_only=True)
class BridgeSettings:
    """`url`: mqtt(s)://, kafka://, nats://, redis(s)://, ws(s)://, ldes+http(s)://, a file to follow, or - for stdin;
    `into`: the stream's IRI; `topic`: of MQTT a filter, of Kafka a topic, of NATS a subject, of Redis a stream;
    `group`: by which the broker knows this bridge; `media_type`: of the messages, as in a POST; `time`: as ?time= of a
    POST, `arrival` for one; `start`: `new` or `all` where nothing was confirmed yet; `field`: of a Redis entry, which
    is the message; `options`: librdkafka's, or those of LDES; `position`: a file that says how far
    the source is confirmed; `dead_letter`: a file for what is refused."""

    url: str
    into: str
    topic: str = ""
    group: str = "oxiseq"
    media_type: str = "application/n-quads"
    time: str | None = None
    start: str = "new"
    field: str | None = None
    options: Mapping[str, str] = dataclasses.field(default_factory=dict, repr=False)
    position: Path | None = None
    dead_letter: Path = Path("dead-letters.jsonl")

    def __post_init__(self) -> None:
        for name in ("url", "into", "group", "media_type", "topic", "start"):
            if not isinstance(getattr(self, name), str):
                raise BridgeError(f"{name} is a text, not {getattr(self, name)!r}")
        if self.start not in ("new", "all"):
            raise BridgeError(f"start is new or all, not {self.start[:40]!r}")
        if not self.url or not self.into or not self.group:
            raise BridgeError("a bridge needs url, into and group")
        for name, path in (("position", self.position), ("dead_letter", self.dead_letter)):
            if path is not None and self.followed is not None and overlap(path, self.followed):
                raise BridgeError(f"{name} is {path}, which is the followed file itself, or below or above it")
        if self.position is not None and overlap(self.position, self.dead_letter):
            raise BridgeError(f"position and dead_letter are one file: {self.position}")

    @property
    def followed(self) -> Path | None:
        """The file that is followed, where it is one."""
        if self.url.startswith(_FILE):
            return Path(unquote(urlsplit(self.url).path))
        return None if "://" in self.url or self.url == STDIN else Path(self.url)

    @property
    def shown(self) -> str:
        """The URL without its password, which may be in its query as well (?password=, ?token=)."""
        if "://" not in self.url:
            return self.url
        parts = urlsplit(self.url)
        query = parts.query and "***"
        return urlunsplit(parts._replace(netloc=parts.netloc.rpartition("@")[2], query=query))

    @classmethod
    def of(cls, given: Mapping[str, Any], folder: Path, name: str) -> BridgeSettings:
        """From a table of the settings; files are in `folder` unless it says otherwise. Raises BridgeError."""
        known = {each.name for each in fields(cls)}
        if unknown := set(given) - known:
            raise BridgeError(f"the bridge {name} has no {', '.join(sorted(unknown))}: {', '.join(sorted(known))}")
        if missing := {"url", "into"} - set(given):
            raise BridgeError(f"the bridge {name} needs {', '.join(sorted(missing))}")
        if given["url"] == STDIN:
            raise BridgeError(f"the bridge {name}: a server reads no stdin")
        files = {"position": folder / f"{name}.position", "dead_letter": folder / f"{name}.dead.jsonl"}
        values: dict[str, Any] = {**files, **given}
        for key in files:
            if not isinstance(values[key], str | Path):
                raise BridgeError(f"the bridge {name}: {key} is a path, not {values[key]!r}"[:200])
            values[key] = Path(values[key])
        return cls(**values)


# --- source ----------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Message:
    """`body`: as a POST would have it; `key`: the same whenever this message comes again, at most 200 ASCII characters;
    `position`: the source's own, for `confirm`; `new_key`: of a message that comes for the first time, from a source
    whose keys come again: it is stored under this one where `key` is known already; `former_key`: under
    which earlier versions stored it: a message that is stored so with this body is known."""

    body: bytes
    key: str
    position: Any = None
    new_key: str = ""
    former_key: str = ""


class Source(Protocol):
    """An open source; used by one thread. Anything that it raises closes it, and it is opened again."""

    def read(self, most: int, seconds: float) -> Sequence[Message]:
        """The next messages, at most so many, in their order, waiting so long for the first; none if there are none."""
        ...

    def confirm(self, messages: Sequence[Message]) -> None:
        """These, the first of what `read` has answered, are durable: they need not come again."""
        ...

    def close(self) -> None:
        """Release it; what is not confirmed comes again."""
        ...


def digest(*parts: str | bytes, size: int = 8) -> str:
    """What identifies some parts together in a key: `size` bytes in hexadecimal digits."""
    made = hashlib.blake2b(digest_size=size)
    for part in parts:
        data = part if isinstance(part, bytes) else part.encode(errors="surrogatepass")
        made.update(len(data).to_bytes(8, "little") if len(parts) > 1 else b"")
        made.update(data)
    return made.hexdigest()


# --- position --------------------------------------------------------------------------------------------

_PAUSE: Final = 1.0
"""Seconds between two writings that need not be at once."""


class SourcePosition:
    """A JSON value that outlives the source, which is opened again and again. `of`: what the value is about; that of
    another source does not count."""

    def __init__(self, path: Path | None, of: str = "") -> None:
        self._path, self._of = path, of
        self._value: Any = None
        self._read = False
        self._written = 0.0
        self._behind = False

    @property
    def value(self) -> Any:
        """What was saved last; None: nothing. Raises BridgeError for a file that is no position."""
        if not self._read and self._path is not None and self._path.exists():
            try:
                self._value = json.loads(self._path.read_text())
            except ValueError as error:
                raise BridgeError(f"{self._path} is no position: {error}") from error
        self._read = True
        if isinstance(self._value, dict) and self._value.get("of") != self._of:
            return None
        return self._value

    def save(self, value: dict[str, Any], *, at_once: bool = True) -> None:
        """Replace the value. Unless `at_once`, the file is written once a second. Raises OSError."""
        self._value, self._read, self._behind = {"of": self._of, **value}, True, True
        if at_once or time.monotonic() >= self._written + _PAUSE:
            self.flush()

    def flush(self) -> None:
        """Write what is not written yet. Raises OSError."""
        if self._path is not None and self._behind:
            self._path.parent.mkdir(parents=True, exist_ok=True)
            with replacing(self._path) as part:
                part.write_text(json.dumps(self._value))
            self._written = time.monotonic()
        self._behind = False


# --- letters ---------------------------------------------------------------------------------------------

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
