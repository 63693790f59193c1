"""The settings of a bridge: from the command line, or from a table of the server's settings."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from dataclasses import fields
from pathlib import Path
from typing import Any, Final
from urllib.parse import unquote, urlsplit, urlunsplit

from oxiseq.engine.errors import OxiseqError
from oxiseq.grammar.records import dataclass
from oxiseq.options.room import overlap

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
