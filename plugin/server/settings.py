"""What the HTTP side of the server is told."""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class Tokens:
    """Secrets of `Authorization: Bearer`. A write token also reads; with none of a kind everybody may."""

    read: str | None = field(default=None, repr=False)
    write: str | None = field(default=None, repr=False)


@dataclass(frozen=True, slots=True)
class ServerSettings:
    """`cors`: origins whose pages may ask, `*` any, but to read only; `allowed_hosts`: names of this server besides
    loopback's and `host`, `*` any; `body`: bytes of a request, as sent and unpacked; `threads`: requests at a time,
    beside pushes and live readers; `live`: readers whose answers have no end; `grace`: seconds that running requests
    get to end when the server is stopped; `stall`: seconds for which a client may take nothing of an answer; `slow`:
    seconds for which it may send a request, or take an answer, at less than 1 KiB a second; `connections`: open ones at
    a time, beside the readers."""

    host: str = "127.0.0.1"
    port: int = 7878
    cors: tuple[str, ...] = ()
    tokens: Tokens = field(default_factory=Tokens)
    body: int = 128 << 20
    threads: int = 16
    live: int = 0
    grace: float = 10.0
    stall: float = 30.0
    slow: float = 30.0
    connections: int = 1000
    allowed_hosts: tuple[str, ...] = ()
