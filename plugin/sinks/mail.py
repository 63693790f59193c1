"""Matches by mail, over SMTP: a message for each delivery."""

from __future__ import annotations

import smtplib
import socket
import ssl
from collections.abc import Iterator, Mapping
from email.headerregistry import Address
from email.message import EmailMessage
from email.utils import formatdate
from typing import Any, ClassVar, Final

from oxiseq.grammar.records import dataclass
from oxiseq.sinks.allowed import Allowed, DeliveryError, Secret, SinkError, secret, secret_text
from oxiseq.sinks.delivery import Delivery
from oxiseq.sinks.settings import Receiver, SinkSettings, port_number, setting, text, texts, word

_TIMEOUT: Final = 20.0
"""Seconds that the server may take for each answer."""
_PORTS: Final = {"starttls": 587, "tls": 465, "none": 25}
_LONGEST: Final = 20_000
_SUBJECT: Final = 200
"""Characters."""


def _address(given: Any, name: str) -> str:
    found = text(given, name)
    try:
        Address(addr_spec=found)
    except Exception as error:  # the library raises several kinds
        raise SinkError(f"{name}: {found[:100]!r} is no address of mail") from error
    if "@" not in found or not found.isascii():
        raise SinkError(f"{name}: {found[:100]!r} is no address of mail")
    return found


def _addresses(given: Any, name: str) -> tuple[str, ...]:
    return tuple(_address(each, name) for each in texts(given, name))


def _body(given: Any, name: str) -> str:
    if not isinstance(given, str) or not given.strip() or len(given) > _LONGEST:
        raise SinkError(f"{name} is a text of 1 to {_LONGEST} characters")
    return given


@dataclass(frozen=True, slots=True, kw_only=True)
class Mail(SinkSettings):
    """By default a mail a minute at most, with up to 50 matches."""

    kind: ClassVar[str] = "mail"
    together: ClassVar[bool] = True
    templates: ClassVar[tuple[str, ...]] = ("subject", "body")
    usual: ClassVar[Mapping[str, Any]] = {"batch": 50, "every": "1m"}

    host: str = setting(text, "The mail server.")
    port: int | None = setting(
        port_number, "Default: 587, with tls 465, with none 25.", None, schema={"type": "integer"}
    )
    tls: str = setting(
        word(*_PORTS),
        "starttls: encrypted after the greeting; tls: from the beginning; none: not encrypted.",
        "starttls",
        schema={"enum": list(_PORTS)},
    )
    user: str | None = setting(text, "The user name at the mail server.", None)
    password: Secret | None = setting(
        secret(secret_text), "Its password; only over tls or starttls.", None, secret=True
    )
    sender: str = setting(_address, "The sender's address.")
    to: tuple[str, ...] = setting(
        _addresses, "The receivers' addresses.", schema={"type": "array", "items": {"type": "string"}}, write=list
    )
    subject: str = setting(text, "With places for the first match, see webhook.", "{query}: match {id}")
    body: str = setting(_body, "With places for the match; of several matches one below the other.", "{at}  {bindings}")

    def __post_init__(self) -> None:
        if self.password is not None and self.tls == "none":
            raise SinkError("a password is sent over tls or starttls only")

    @property
    def its_port(self) -> int:
        """That of the protocol, if none is given."""
        return self.port or _PORTS[self.tls]

    def hosts(self, allowed: Allowed) -> Iterator[tuple[str, int]]:
        yield self.host, self.its_port

    def open(self, allowed: Allowed, place: str) -> Receiver:
        return _Mailer(self, allowed)


class _Mailer:
    """A connection for each mail: servers end silent ones."""

    def __init__(self, settings: Mail, allowed: Allowed) -> None:
        self._settings, self._allowed = settings, allowed

    def deliver(self, delivery: Delivery) -> str:
        settings = self._settings
        try:
            message = _message(settings, delivery)
            with _connected(settings, self._allowed) as server:
                _check_recipients(server, settings)
                refused = server.send_message(message, settings.sender, list(settings.to))
        except (smtplib.SMTPException, OSError) as error:
            raise DeliveryError(f"{settings.host}: {_told(error)}") from error
        if refused:  # since they were requested
            raise SinkError(f"{settings.host} does not take mail for {', '.join(refused)}: take them out")
        return ""

    def close(self) -> None:
        """There is nothing open."""


def _connected(settings: Mail, allowed: Allowed) -> smtplib.SMTP:
    context = ssl.create_default_context()

    class Server(smtplib.SMTP):
        def _get_socket(self, host: str, port: int, timeout: float) -> socket.socket:
            found = allowed.connect(host, port, timeout)
            return context.wrap_socket(found, server_hostname=host) if settings.tls == "tls" else found

    server = Server(settings.host, settings.its_port, timeout=_TIMEOUT)
    try:
        if settings.tls == "starttls":
            server.starttls(context=context)
        if settings.user is not None:
            server.login(settings.user, "" if settings.password is None else settings.password.text(allowed))
    except BaseException:
        server.close()
        raise
    return server


def _check_recipients(server: smtplib.SMTP, settings: Mail) -> None:
    """Raises SinkError unless the server takes mail for all: the delivery is tried again until it has reached each, so
    nobody is sent it before, else who is taken would get it again and again."""
    server.ehlo_or_helo_if_needed()
    code, said = server.mail(settings.sender)
    if code != 250:
        raise smtplib.SMTPSenderRefused(code, said, settings.sender)
    refused = [each for each in settings.to if server.rcpt(each)[0] not in (250, 251)]
    server.rset()
    if refused:
        raise SinkError(f"{settings.host} does not take mail for {', '.join(refused)}: take them out")


def _message(settings: Mail, delivery: Delivery) -> EmailMessage:
    items = list(delivery.items())
    made = EmailMessage()
    subject = " ".join("".join(c if c.isprintable() else " " for c in items[0].text(settings.subject)).split())
    more = f" (and {len(items) - 1} more)" if len(items) > 1 else ""
    made["Subject"] = subject[:_SUBJECT] + more
    made["From"], made["To"] = settings.sender, ", ".join(settings.to)
    made["Date"] = formatdate(localtime=False)
    made["Message-ID"] = f"<{delivery.key.replace('/', '.')}@oxiseq.{settings.sender.rpartition('@')[2]}>"
    made["Auto-Submitted"] = "auto-generated"
    made["X-Oxiseq-Key"] = delivery.key
    made.set_content("\n\n".join(item.text(settings.body) for item in items) + "\n")
    return made


def _told(error: Exception) -> str:
    if isinstance(error, smtplib.SMTPRecipientsRefused):
        return "it takes no mail for " + ", ".join(error.recipients)
    if isinstance(error, smtplib.SMTPResponseException):
        said = error.smtp_error.decode(errors="replace") if isinstance(error.smtp_error, bytes) else error.smtp_error
        return f"{error.smtp_code} {said}"
    return str(error) or type(error).__name__
