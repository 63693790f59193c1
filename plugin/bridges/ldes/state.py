"""How far a Linked Data Event Stream is read, so that only what is new is read again.

A page that cannot change is remembered by a digest of its address; one that can by its address, its ETag, and the
members of it that are confirmed.
"""

from __future__ import annotations

import json
from dataclasses import field
from pathlib import Path
from typing import Any

from oxiseq.bridges.settings import BridgeError
from oxiseq.bridges.source import digest
from oxiseq.engine.events.write import replacing
from oxiseq.grammar.records import dataclass


@dataclass(slots=True)
class Open:
    """A page that is to be read (again). `low`: no member of it is earlier (µs); `seen`: digests of its members."""

    low: int | None = None
    etag: str = ""
    seen: set[str] = field(default_factory=set)


@dataclass(slots=True)
class State:
    """`opened`: address → page, the root first; `done`: digests of addresses; `caught_up`: all that there was has been
    read once; `path`: where this is kept, None: nowhere; `url`: a digest of what is read; `wait`: until when the server
    asks us to wait (monotonic clock, not kept)."""

    opened: dict[str, Open] = field(default_factory=dict)
    done: set[str] = field(default_factory=set)
    caught_up: bool = False
    path: Path | None = None
    url: str = ""
    wait: float = 0.0

    @classmethod
    def of(cls, path: Path | None, url: str) -> State:
        """That of a file, or a new one: also where the file is about another `url`. Raises BridgeError."""
        state = cls(path=path, url=digest(url))
        if path is None or not path.exists():
            return state
        try:
            found = json.loads(path.read_text())
            if found["url"] != state.url:
                return state
            state.opened = {
                at: Open(None if low is None else int(low), str(etag), set(seen))
                for at, (low, etag, seen) in found["opened"].items()
            }
            state.done, state.caught_up = set(found["done"]), bool(found["caught_up"])
        except (OSError, ValueError, TypeError, KeyError, AttributeError) as error:
            raise BridgeError(f"{path} does not say how far a stream is read: {error}") from error
        return state

    def save(self) -> None:
        """Raises OSError."""
        if self.path is None:
            return
        opened = {at: [page.low, page.etag, sorted(page.seen)] for at, page in self.opened.items()}
        value: dict[str, Any] = {"url": self.url, "caught_up": self.caught_up, "opened": opened}
        self.path.parent.mkdir(parents=True, exist_ok=True)
        with replacing(self.path) as part:
            part.write_text(json.dumps({**value, "done": sorted(self.done)}))
