"""One page after the other over HTTP, politely: what is known is not sent again, and who is busy is left alone.

A page may link anywhere. Only the hosts that the operator of the bridge names get requests: that of its URL, and those
of the option `hosts`.

How far a Linked Data Event Stream is read, so that only what is new is read again.

A page that cannot change is remembered by a digest of its address; one that can by its address, its ETag, and the
members of it that are confirmed.
"""

from __future__ import annotations

import io
import json
import time
from collections.abc import Iterator, Sequence
from dataclasses import field
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, Final
from urllib.parse import urljoin, urlsplit

from pyoxigraph import NamedNode, Quad, RdfFormat

from oxiseq.bridges.source import BridgeError, digest
from oxiseq.engine.events.write import replacing
from oxiseq.engine.extras import needed
from oxiseq.engine.rdf import parse
from oxiseq.grammar.records import dataclass
from oxiseq.options.addresses import seconds_of

if TYPE_CHECKING:
    import httpx
else:
    httpx = needed("httpx")


# --- state -----------------------------------------------------------------------------------------------


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


# --- fetching --------------------------------------------------------------------------------------------

FORMATS: Final = {
    "application/n-quads": RdfFormat.N_QUADS,
    "application/n-triples": RdfFormat.N_TRIPLES,
    "application/trig": RdfFormat.TRIG,
    "text/turtle": RdfFormat.TURTLE,
    "application/ld+json": RdfFormat.JSON_LD,
    "application/rdf+xml": RdfFormat.RDF_XML,
}
_ACCEPT: Final = ", ".join(f"{name};q={1 - n / 10:.1f}" for n, name in enumerate(FORMATS))
LARGEST: Final = 64 << 20
"""Bytes of a page."""
_LARGEST_TEXT: Final = 256 << 20
"""Characters of its quads: a prefix may be long."""
MOST_QUADS: Final = 250_000
"""Of a page, unless the option `quads` says otherwise: each takes a kilobyte while the page is read."""
_BLOCK: Final = 1 << 16
_LONGEST: Final = 4000
"""Characters of an address."""
_PACKED: Final = "gzip"
"""What we unpack: a packed piece of 64 KiB has at most 64 MiB. Others pack closer, and several codings again."""
_TIMEOUT: Final = 10.0
_DEADLINE: Final = 120.0
"""Seconds for a whole page."""
_REDIRECTS: Final = 10
_LATER: Final = frozenset((408, 425, 429, 500, 502, 503, 504))
_PATIENCE: Final = 3600.0
"""Seconds for which a server may ask us to wait."""
_PORTS: Final = {"http": 80, "https": 443}


@dataclass(frozen=True, slots=True)
class Fetched:
    """`url`: where it was found, after redirects; `quads`: None: it has not changed; `etag`: empty where it has none;
    `gone`: it was deleted; `missing`: nothing is there now; `immutable`: as HTTP says."""

    url: str
    quads: Sequence[Quad] | None
    etag: str = ""
    gone: bool = False
    missing: bool = False
    immutable: bool = False


class Fetching:
    """`hosts`: NAME or NAME:PORT, beside the one of `url`. User and password of `url` are sent to its host alone.
    `state`: until when the server asks us to wait. `transport`: what sends the requests, where it is not the
    network."""

    def __init__(
        self,
        url: str,
        hosts: Sequence[str],
        state: State,
        transport: httpx.BaseTransport | None = None,
        most_quads: int = MOST_QUADS,
    ) -> None:
        self._most_quads = most_quads
        parts = urlsplit(url)
        self._auth = (parts.username or "", parts.password or "") if "@" in parts.netloc else None
        try:
            self._origin = _origin(url)
        except ValueError:
            raise BridgeError(
                f"{_shown(url).partition('?')[0]}: write ldes+https://HOST/..., the address of the stream or its root"
            ) from None
        self._hosts, self._secure = hosts, parts.scheme == "https"
        self._state = state
        self._client = httpx.Client(
            transport=transport,
            timeout=_TIMEOUT,
            follow_redirects=False,
            headers={"user-agent": "oxiseq", "accept": _ACCEPT, "accept-encoding": _PACKED},
        )

    def fetch(self, url: str, etag: str = "") -> Fetched:
        """A page, unless it is still the one of `etag`. Raises BridgeError."""
        if (left := self._state.wait - time.monotonic()) > 0:
            raise BridgeError(f"{self._origin[0]} asks us to wait for {left:.0f} s more")
        try:
            for _ in range(_REDIRECTS):
                self._check(url)
                found = self._answer(url, etag)
                if isinstance(found, Fetched):
                    return found
                url = found
        except (httpx.HTTPError, httpx.InvalidURL) as error:
            raise BridgeError(f"{_shown(url)}: {error or type(error).__name__}") from None
        raise BridgeError(f"{_shown(url)}: more than {_REDIRECTS} redirects")

    def _answer(self, url: str, etag: str) -> Fetched | str:
        """The page, or where it is."""
        headers = {"if-none-match": etag} if etag else {}
        auth = self._auth if _origin(url) == self._origin else None
        with self._client.stream("GET", url, headers=headers, auth=auth) as answer:
            status = answer.status_code
            if status in (301, 302, 303, 307, 308) and (to := answer.headers.get("location")):
                return urljoin(url, str(to))
            if status == 304 and etag:
                return Fetched(url, None, etag)
            if status == 410:
                return Fetched(url, (), gone=True)
            if status == 404:
                return Fetched(url, (), missing=True)
            if status != 200:
                self._refused(answer, url)
            kept = [each.strip().lower() for each in answer.headers.get("cache-control", "").split(",")]
            quads = _parsed(self._body(answer, url), answer.headers.get("content-type", ""), url, self._most_quads)
            return Fetched(url, quads, answer.headers.get("etag", ""), immutable="immutable" in kept)

    def _body(self, answer: httpx.Response, url: str) -> IO[bytes]:
        if (packed := answer.headers.get("content-encoding", _PACKED).lower()) not in (_PACKED, "identity"):
            raise BridgeError(f"{_shown(url)}: packed by {packed[:40]}; {_PACKED} is known")
        return io.BufferedReader(_PageBody(answer.iter_bytes(), _shown(url)), _BLOCK)

    def _refused(self, answer: httpx.Response, url: str) -> None:
        status, asked = answer.status_code, seconds_of(answer.headers.get("retry-after"))
        if status in _LATER and asked is not None:
            self._state.wait = time.monotonic() + min(asked, _PATIENCE)
        raise BridgeError(f"{_shown(url)}: status {status}")

    def _check(self, url: str) -> None:
        """Raises BridgeError for an address that may not be fetched."""
        try:
            host, port = origin = _origin(url)
            NamedNode(url)
        except ValueError:
            raise BridgeError(f"{_shown(url)} is no address of a page") from None
        if len(url) > _LONGEST or not url.isascii():
            raise BridgeError(f"an address is longer than {_LONGEST} characters, or not ASCII: {_shown(url)}")
        if origin != self._origin and not {host, f"{host}:{port}"}.intersection(self._hosts):
            raise BridgeError(f"a page links to {host}:{port}: add this host to the option hosts if it may be asked")
        if self._secure and urlsplit(url).scheme != "https":
            raise BridgeError(f"{_shown(url)}: from https no link leads to http")

    def close(self) -> None:
        """Release the connection."""
        self._client.close()


def _origin(url: str) -> tuple[str, int]:
    """Host and port. Raises ValueError."""
    parts = urlsplit(url)
    if parts.scheme not in _PORTS or not parts.hostname:
        raise ValueError(url)
    return parts.hostname.lower(), parts.port or _PORTS[parts.scheme]


def without_user(url: str) -> str:
    """An address without user and password."""
    scheme, separator, rest = url.partition("://")
    end = min((at for mark in "/?#" if (at := rest.find(mark)) >= 0), default=len(rest))
    return f"{scheme}{separator}{rest[:end].rpartition('@')[2]}{rest[end:]}"


def _shown(url: str) -> str:
    """Without user and password; who asks for the page hides more."""
    return without_user(url)


class _PageBody(io.RawIOBase):
    """The bytes of a page as a file, while they come; `shown`: its address, for errors."""

    def __init__(self, pieces: Iterator[bytes], shown: str) -> None:
        self._pieces, self._shown = pieces, shown
        self._rest, self._size = memoryview(b""), 0
        self._until = time.monotonic() + _DEADLINE

    def readable(self) -> bool:
        """Yes."""
        return True

    def readinto(self, buffer: Any, /) -> int:
        """The next bytes. Raises BridgeError."""
        while not self._rest and (piece := next(self._pieces, None)) is not None:
            self._rest = memoryview(piece)
            self._size += len(piece)
            if self._size > LARGEST:
                raise BridgeError(f"{self._shown}: a page has at most {LARGEST} bytes")
            if time.monotonic() > self._until:
                raise BridgeError(f"{self._shown}: a page is read for at most {_DEADLINE:.0f} s")
        size = min(len(buffer), len(self._rest))
        buffer[:size] = self._rest[:size]
        self._rest = self._rest[size:]
        return size


def _parsed(body: IO[bytes], content_type: str, url: str, most: int) -> list[Quad]:
    """While the bytes come: no more is read than a page may have. Raises BridgeError."""
    media_type = content_type.partition(";")[0].strip().lower()
    format = FORMATS.get(media_type)
    if format is None:
        raise BridgeError(f"{_shown(url)} is {media_type or 'of no type'}; known: {', '.join(FORMATS)}")
    try:
        base = {} if format in (RdfFormat.N_QUADS, RdfFormat.N_TRIPLES) else {"base_iri": url}
        found, size = list[Quad](), 0
        for quad in parse(body, format, **base):
            found.append(quad)
            if len(found) > most:
                raise BridgeError(f"{_shown(url)}: a page has at most {most:,} quads: see the option quads")
            size += len(str(quad))
            if size > _LARGEST_TEXT:
                raise BridgeError(f"{_shown(url)}: the quads of a page have at most {_LARGEST_TEXT} characters")
        return found
    except (SyntaxError, ValueError, RecursionError, OSError) as error:
        raise BridgeError(f"{_shown(url)}: {error}") from None
