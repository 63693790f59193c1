"""The shape of a source: its settings, how it is read and acknowledged, and where it resumes.

How far a source is acknowledged, beyond what the source itself remembers: in a file, or in memory where none is set.

A broker forgets a group of readers whose stream is deleted. The position tells a group that is gone from one that never
was: what is there when the bridge comes back is then new, and read from where the bridge was.
"""

from __future__ import annotations

import dataclasses
import hashlib
import json
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import fields
from functools import partial
from pathlib import Path
from typing import Any, ClassVar, Final
from urllib.parse import unquote, urlsplit, urlunsplit

from oxiseq.engine.errors import OxiseqError
from oxiseq.engine.events.write import replacing
from oxiseq.engine.extras import loaded
from oxiseq.grammar.records import dataclass
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


def digest(*parts: str | bytes, size: int = 8) -> str:
    """What identifies some parts together in a key: `size` bytes in hexadecimal digits."""
    made = hashlib.blake2b(digest_size=size)
    for part in parts:
        data = part if isinstance(part, bytes) else part.encode(errors="surrogatepass")
        made.update(len(data).to_bytes(8, "little") if len(parts) > 1 else b"")
        made.update(data)
    return made.hexdigest()


# --- source --------------------------------------------------------------------------------------------


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


class Source(ABC):
    """A system from which messages are read. An open one is used by one thread; anything that it raises closes it, and
    it is opened again.

    A kind says how its messages are read and acknowledged, and with its position where it resumes. The keys of its
    messages name the server, the topic, the group where each group has messages of its own, and what tells a topic from
    one of the same name before it (its generation): so none is taken for another one, and none is stored twice.
    """

    needs: ClassVar[str] = ""
    """The package without which it cannot be opened."""

    def __init__(self, settings: BridgeSettings, position: SourcePosition | None = None) -> None:
        """Open it where it was left. `position` outlives it. Raises BridgeError for settings that cannot be, or where
        it cannot be opened now."""
        self._settings = settings
        self._position = SourcePosition(None) if position is None else position

    @classmethod
    def opener(cls, settings: BridgeSettings) -> Callable[[], Source]:
        """Opens it, again and again. Raises BridgeError, ExtraError for a package that is not installed."""
        if cls.needs:
            loaded(cls.needs)
        return partial(cls, settings, SourcePosition(settings.position, cls.identity(settings)))

    @classmethod
    def identity(cls, settings: BridgeSettings) -> str:
        """What a position is of: that of another one does not count."""
        return digest(settings.shown, settings.topic, settings.group)

    @abstractmethod
    def read(self, most: int, seconds: float) -> Sequence[Message]:
        """The next messages, at most so many, in their order, waiting so long for the first; none if there are none.
        Raises EOFError behind the last of a source that ends."""

    def acknowledge(self, messages: Sequence[Message]) -> None:  # noqa: B027  some have nobody to tell
        """These, the first of what `read` has answered, are durable: they need not come again."""

    def close(self) -> None:  # noqa: B027  some have nothing to release
        """Release it; what is not acknowledged comes again."""


def gather(get: Callable[[float], Message], most: int, seconds: float) -> list[Message]:
    """Messages one by one, as long as there are some: `get` waits so long for the next, and raises TimeoutError."""
    found: list[Message] = []
    with suppress(TimeoutError):
        while len(found) < most:
            found.append(get(0 if found else seconds))
    return found
