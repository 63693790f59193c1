"""Settings of the HTTP side of the server, and its certificates."""

from __future__ import annotations

import asyncio
import socket
import ssl
import time
from collections.abc import Callable
from dataclasses import field
from pathlib import Path
from typing import Final

from oxiseq.engine.errors import OxiseqError
from oxiseq.grammar.records import dataclass
from oxiseq.server.connections import Connections


@dataclass(frozen=True, slots=True)
class Tokens:
    """Secrets of `Authorization: Bearer`. A write token also reads; with none of a kind everybody may. `lines`, and the
    file of such lines: named tokens (`oxiseq.rights.grants`); with any of these nobody may do anything without a token
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


# --- https -----------------------------------------------------------------------------------------------

HANDSHAKE: Final = 5.0
"""Seconds that a client may take for its handshake, and for the goodbye of TLS at the end."""
_REST: Final = 0.1
"""Seconds until the next try where nothing could be accepted."""


def tls_context(cert: Path, key: Path | None = None) -> ssl.SSLContext:
    """TLS 1.2 and newer with this certificate chain and its private key, which may be in the same file; both PEM.

    Raises OxiseqError that names the file.
    """
    for file in filter(None, (cert, key)):
        try:
            file.open("rb").close()
        except OSError as error:
            raise OxiseqError(f"{file}: cannot be read: {error.strerror or error}") from error
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    try:
        context.load_cert_chain(cert, key, password=_asked)
    except ssl.SSLError as error:
        raise OxiseqError(_said(cert, key or cert, error)) from error
    return context


def _asked() -> str:
    """OpenSSL would ask for it on the terminal, and wait there."""
    raise OxiseqError(
        "the private key is encrypted: a server cannot ask for its password; "
        "`openssl pkey -in KEY -out PLAIN` writes it without"
    )


def _said(cert: Path, key: Path, error: ssl.SSLError) -> str:
    reason = error.reason or ""
    if reason in ("KEY_VALUES_MISMATCH", "KEY_TYPE_MISMATCH"):
        return f"{key}: is not the private key of the certificate in {cert}"
    if reason.startswith(("EE_KEY_TOO_SMALL", "CA_KEY_TOO_SMALL", "CA_MD_TOO_WEAK", "EE_MD_TOO_WEAK")):
        return f"{cert}: OpenSSL takes it for too weak ({reason.replace('_', ' ').lower()})"
    return f"{cert} and {key}: no certificate in PEM with its private key ({reason or error})"


class Handshake:
    """A connection of https between its accept and the end of its handshake, with a place among all Connections."""

    waiting = True
    """Whether it may go for another (Connections)."""

    def __init__(self, owner: Connections, accepted: socket.socket, address: tuple[object, ...]) -> None:
        self._owner, self._socket = owner, accepted
        self._task: asyncio.Task[None] | None = None
        self.client: object = address[:2]
        self.waits_since = time.monotonic()

    def begin(self, inner: asyncio.Protocol, context: ssl.SSLContext) -> None:
        """Shake hands, and have `inner` go on."""
        if self._owner.admit(self):
            self._task = asyncio.get_running_loop().create_task(self._shake(inner, context))
        else:
            self._socket.close()  # no word that the client could read may be said before the handshake

    def too_slow(self, now: float, slow: float, stall: float) -> bool:
        """The handshake has a limit of its own."""
        return False

    def abort(self) -> None:
        """Close it."""
        if self._task is not None:
            self._task.cancel()

    async def _shake(self, inner: asyncio.Protocol, context: ssl.SSLContext) -> None:
        """`inner` takes this place among the connections, or it is free again."""
        try:
            await asyncio.get_running_loop().connect_accepted_socket(
                lambda: inner,
                self._socket,
                ssl=context,
                ssl_handshake_timeout=HANDSHAKE,
                ssl_shutdown_timeout=HANDSHAKE,
            )
        except OSError:  # of TLS, of the connection, or of time
            self._socket.close()
        finally:
            self._owner.lost(self)


async def accept(
    listening: socket.socket, context: ssl.SSLContext, owner: Connections, protocol: Callable[[], asyncio.Protocol]
) -> None:
    """Accept connections of https until cancelled. asyncio's own servers tell of a connection when it has shaken hands,
    so nobody could count, or close, those that never do."""
    loop = asyncio.get_running_loop()
    listening.setblocking(False)
    while True:
        try:
            accepted, address = await loop.sock_accept(listening)
        except OSError:  # the client has left already, or no file is free
            await asyncio.sleep(_REST)
            continue
        accepted.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        Handshake(owner, accepted, address).begin(protocol(), context)
        await asyncio.sleep(0)  # it begins, and others have their turn, before the next
