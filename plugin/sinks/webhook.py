"""Matches to an HTTP server: a POST for each delivery, signed, never redirected.

Signed as standardwebhooks.com has it, so that there is a library for the receiver in every language: the headers
webhook-id, webhook-timestamp and webhook-signature, which is HMAC-SHA256 over `id.timestamp.body`. Chats take such
posts as they are: Slack, Mattermost and Teams with {"text": "..."} as template.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import hmac
import json
import re
import ssl
import time
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import field
from typing import TYPE_CHECKING, Any, ClassVar, Final
from urllib.parse import SplitResult, urlsplit

from oxiseq.engine.extras import needed
from oxiseq.grammar.records import dataclass
from oxiseq.options.addresses import seconds_of
from oxiseq.options.kinds import UNITS, duration_text
from oxiseq.sinks.allowed import HIDDEN, REFERENCE, Allowed, DeliveryError, Secret, SinkError, secret, secret_text
from oxiseq.sinks.delivery import Delivery, Json
from oxiseq.sinks.settings import Receiver, SinkSettings, setting, template_setting, word
from oxiseq.sinks.settings import time as duration

if TYPE_CHECKING:
    import httpcore
else:
    httpcore = needed("httpcore")

SECRET_PREFIX: Final = "whsec_"
"""Before a secret in base64, as Standard Webhooks writes it."""
_TOKEN: Final = re.compile(r"[A-Za-z0-9!#$%&'*+.^_`|~-]{1,100}")
_OURS: Final = frozenset(
    (
        "host",
        "content-length",
        "content-type",
        "transfer-encoding",
        "connection",
        "upgrade",
        "te",
        "trailer",
        "expect",
        "idempotency-key",
        "webhook-id",
        "webhook-timestamp",
        "webhook-signature",
    )
)
_READ: Final = 4096
"""Bytes of an answer that are read at most."""
_TELLTALE: Final = 5
"""Characters from which on a secret is taken out of what a receiver says."""
_PORTS: Final = {"http": 80, "https": 443}


def _url(given: Any, name: str) -> str:
    found = secret_text(given, name)
    try:
        parts = urlsplit(found)
        port = parts.port
    except ValueError:  # which quotes a part of it
        raise SinkError(f"{name} is no address of a host and a port") from None
    if parts.scheme not in _PORTS or not parts.hostname or port == 0:
        raise SinkError(f"{name} is http://HOST/... or https://HOST/...")
    if parts.username is not None or parts.password is not None:
        raise SinkError(f"{name} has a user in it: send an Authorization header instead")
    if not found.isascii() or " " in found or parts.fragment:
        raise SinkError(f"{name} has a space, a fragment, or characters beyond ASCII: encode them")
    return found


def _shown_url(url: str) -> str:
    """Its path is as good as a password at many chats."""
    parts = urlsplit(url)
    rest = parts.path.strip("/") or parts.query
    return f"{parts.scheme}://{parts.netloc}/" + (HIDDEN if rest else "")


def _headers(given: Any, name: str) -> dict[str, Secret]:
    if not isinstance(given, dict) or len(given) > 30:
        raise SinkError(f"{name} is an object of at most 30 names and texts")
    for key in given:
        if not _TOKEN.fullmatch(key) or key.lower() in _OURS:
            raise SinkError(f"{name}: {key[:100]!r} is no name of a header that can be set")
    return {key: _HEADER(value, f"{name}: {key}") for key, value in given.items()}


def _header(given: Any, name: str) -> str:
    if not isinstance(given, str) or not given.isascii() or not given.isprintable():
        raise SinkError(f"{name} is a text of printable ASCII characters")
    if given != given.strip():
        raise SinkError(f"{name} begins or ends with a space")
    return secret_text(given, name)


_HEADER: Final = secret(_header)


def _shown_headers(headers: Mapping[str, Secret] | None) -> dict[str, Any] | None:
    return None if headers is None else {name: value.shown() for name, value in headers.items()}


def _secret(given: Any, name: str) -> str:
    found = secret_text(given, name)
    key_of(found)
    return found


def key_of(secret: str) -> bytes:
    """The key in a secret. Raises SinkError."""
    if not secret.startswith(SECRET_PREFIX):
        return secret.encode()
    try:
        return base64.b64decode(secret.removeprefix(SECRET_PREFIX), validate=True)
    except (binascii.Error, ValueError):
        raise SinkError(f"secret: behind {SECRET_PREFIX} comes base64") from None


def signature(secret: str, key: str, timestamp: int, body: bytes) -> str:
    """The header webhook-signature."""
    signed = b"%b.%d.%b" % (key.encode(), timestamp, body)
    return "v1," + base64.b64encode(hmac.digest(key_of(secret), signed, hashlib.sha256)).decode()


@dataclass(frozen=True, slots=True, kw_only=True)
class Webhook(SinkSettings):
    """`batch` of more than one sends a list of filled templates."""

    kind: ClassVar[str] = "webhook"
    together: ClassVar[bool] = True
    needs: ClassVar[str] = "httpcore"

    url: Secret = setting(
        secret(_url),
        "The address that matches are sent to. Its path is never shown again.",
        secret=True,
        write=lambda value: value.shown(_shown_url),
    )
    template: Json = template_setting(
        "A JSON value with {?variable}, {id}, {at}, {query}, {key}, {bindings}, {events} in its texts. Default: the "
        "JSON that live readers of the query get, and the query's name."
    )
    method: str = setting(word("POST", "PUT"), "Of the request.", "POST", schema={"enum": ["POST", "PUT"]})
    headers: Mapping[str, Secret] | None = setting(
        _headers,
        "More headers, as Authorization; their values are not shown again.",
        None,
        schema={"type": "object", "additionalProperties": {"oneOf": [{"type": "string"}, REFERENCE]}},
        write=_shown_headers,
    )
    secret: Secret | None = setting(
        secret(_secret),
        "With it, requests are signed (standardwebhooks.com): HMAC-SHA256 over id, timestamp and body. whsec_ and "
        "base64, or any text.",
        None,
        secret=True,
    )
    timeout: int = setting(
        duration(UNITS["ms"], 5 * UNITS["min"]),
        "For a whole request.",
        10 * UNITS["s"],
        schema={"type": "string", "examples": ["10s"]},
        write=duration_text,
    )

    def hosts(self, allowed: Allowed) -> Iterator[tuple[str, int]]:
        parts = urlsplit(self.url.text(allowed))
        yield parts.hostname or "", parts.port or _PORTS[parts.scheme]

    def open(self, allowed: Allowed, place: str) -> Receiver:
        sent = _Sent(
            self.url.text(allowed),
            {name: value.text(allowed) for name, value in (self.headers or {}).items()},
            None if self.secret is None else self.secret.text(allowed),
        )
        return _Poster(self, sent, allowed)


@dataclass(frozen=True, slots=True)
class _Sent:
    """The secrets of a webhook as they are now."""

    url: str = field(repr=False)
    headers: Mapping[str, str] = field(repr=False)
    secret: str | None = field(repr=False)

    @property
    def parts(self) -> SplitResult:
        """Of the address."""
        return urlsplit(self.url)

    def hidden(self, said: str) -> str:
        """What a receiver says, without the secrets that it may have sent back."""
        parts = self.parts
        texts = [self.secret or "", parts.path.strip("/"), parts.query, *self.headers.values()]
        texts += [part for value in self.headers.values() for part in value.split()]
        for each in sorted({each for each in texts if len(each) >= _TELLTALE}, key=len, reverse=True):
            said = said.replace(each, HIDDEN)
        return said


class _Poster:
    """Keeps a connection open."""

    def __init__(self, settings: Webhook, sent: _Sent, allowed: Allowed) -> None:
        self._settings, self._sent = settings, sent
        self._deadline = _Deadline()
        self._pool = httpcore.ConnectionPool(
            ssl.create_default_context() if sent.parts.scheme == "https" else None,
            max_connections=1,
            keepalive_expiry=30.0,
            network_backend=_checking_backend(allowed, self._deadline),
        )

    def deliver(self, delivery: Delivery) -> str:
        settings = self._settings
        values = [item.value(settings.template) for item in delivery.items()]
        several = settings.batch > 1 or len(values) > 1  # one that is tried again is as it was with a larger batch
        body = json.dumps(values if several else values[0], ensure_ascii=False).encode()
        status, retry, told = self._send(body, delivery.key)
        if not 200 <= status < 300:
            where = "; redirects are not followed" if 300 <= status < 400 else ""
            raise DeliveryError(f"{self._sent.parts.netloc} answers {status}{where}{told}", retry=retry)
        return ""

    def _send(self, body: bytes, key: str) -> tuple[int, float | None, str]:
        """Status, Retry-After, and the begin of what a refusal says."""
        settings = self._settings
        self._deadline.at = time.monotonic() + settings.timeout / UNITS["s"]
        try:
            with self._pool.stream(
                settings.method,
                self._sent.url,
                headers=self._headers(body, key),
                content=body,
                extensions={"timeout": self._deadline.timeouts()},
            ) as answer:
                read = b""
                for piece in answer.iter_stream():
                    read += piece
                    if len(read) > _READ:
                        break
                asked = (
                    seconds_of(value.decode("latin-1"))
                    for name, value in answer.headers
                    if name.lower() == b"retry-after"
                )
                retry = next(asked, None)
                return answer.status, retry, self._told(read)
        except (httpcore.NetworkError, httpcore.ProtocolError, httpcore.TimeoutException, OSError) as error:
            reason = self._sent.hidden(str(error)) or type(error).__name__  # h11 quotes a header that it refuses
            raise DeliveryError(f"{self._sent.parts.netloc}: {reason}") from error

    def _told(self, read: bytes) -> str:
        """Of a refusal's text what can be shown."""
        said = self._sent.hidden(" ".join(read.decode(errors="replace").split()))
        return f": {''.join(each for each in said if each.isprintable())[:200]}" if said else ""

    def _headers(self, body: bytes, key: str) -> list[tuple[str, str]]:
        sent, now = self._sent, int(time.time())
        found = [
            ("Host", sent.parts.netloc),
            ("User-Agent", "oxiseq"),
            ("Content-Type", "application/json"),
            ("Content-Length", str(len(body))),
            ("Idempotency-Key", key),
            ("webhook-id", key),
            ("webhook-timestamp", str(now)),
        ]
        if sent.secret is not None:
            found.append(("webhook-signature", signature(sent.secret, key, now, body)))
        taken = {name.lower() for name in sent.headers}
        return [*(each for each in found if each[0].lower() not in taken), *sent.headers.items()]

    def close(self) -> None:
        self._pool.close()


class _Deadline:
    """When the running request must be over: a receiver that answers byte by byte does not hold it up for ever."""

    def __init__(self) -> None:
        self.at = 0.0

    def left(self) -> float:
        """Seconds. Raises httpcore.ReadTimeout when there are none."""
        left = self.at - time.monotonic()
        if left <= 0:
            raise httpcore.ReadTimeout("no answer in time")
        return left

    def timeouts(self) -> dict[str, float]:
        """As httpcore takes them."""
        return dict.fromkeys(("connect", "read", "write", "pool"), self.left())


def _checking_backend(allowed: Allowed, deadline: _Deadline) -> httpcore.NetworkBackend:
    """Connects to addresses that have been checked, and keeps to the deadline."""

    class Stream(httpcore.NetworkStream):
        def __init__(self, inner: httpcore.NetworkStream) -> None:
            self._inner = inner

        def read(self, max_bytes: int, timeout: float | None = None) -> bytes:
            return self._inner.read(max_bytes, deadline.left())

        def write(self, buffer: bytes, timeout: float | None = None) -> None:
            self._inner.write(buffer, deadline.left())

        def close(self) -> None:
            self._inner.close()

        def start_tls(
            self, ssl_context: ssl.SSLContext, server_hostname: str | None = None, timeout: float | None = None
        ) -> httpcore.NetworkStream:
            return Stream(self._inner.start_tls(ssl_context, server_hostname, deadline.left()))

        def get_extra_info(self, info: str) -> Any:
            return self._inner.get_extra_info(info)

    class Backend(httpcore.NetworkBackend):
        def connect_tcp(
            self,
            host: str,
            port: int,
            timeout: float | None = None,
            local_address: str | None = None,
            socket_options: Iterable[Any] | None = None,
        ) -> httpcore.NetworkStream:
            inner = httpcore.SyncBackend()
            failed: Exception = httpcore.ConnectError("it has no address")
            for address in allowed.addresses(host, port):
                try:
                    return Stream(inner.connect_tcp(address, port, deadline.left(), None, socket_options))
                except (httpcore.ConnectError, httpcore.ConnectTimeout) as error:
                    failed = error
            raise failed

    return Backend()
