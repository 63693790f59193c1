"""Settings of the HTTP side of the server."""

from __future__ import annotations

import ssl
from dataclasses import field
from pathlib import Path

from oxiseq.grammar.records import dataclass


@dataclass(frozen=True, slots=True)
class Tokens:
    """Secrets of `Authorization: Bearer`. A write token also reads; with none of a kind everybody may. `lines`, and the
    file of such lines: named tokens (`oxiseq.rights.named`); with any of these nobody may do anything without a token
    but what is listed under `anonymous`."""

    read: str | None = field(default=None, repr=False)
    write: str | None = field(default=None, repr=False)
    lines: str = field(default="", repr=False)
    file: Path | None = None


@dataclass(frozen=True, slots=True)
class ServerSettings:
    """`cors`: origins whose pages may ask, `*` any, but to read only; `allowed_hosts`: names of this server besides
    loopback's and `host`, `*` any; `body`: bytes of a request, as sent and unpacked; `threads`: requests at a time,
    beside pushes and live readers; `live`: readers whose answers have no end; `grace`: seconds that running requests
    get to end when the server is stopped; `stall`: seconds for which a client may take nothing of an answer; `slow`:
    seconds for which it may send a request, or take an answer, at less than 1 KiB a second; `connections`: open ones at
    a time, beside the readers; `tls`: for https; `behind_proxy`: all requests come by one that says whose
    they are."""

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
    tls: ssl.SSLContext | None = None
    behind_proxy: bool = False
