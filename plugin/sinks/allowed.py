"""What sinks may reach: hosts, a folder, and secrets that the operator of the server names.

A host must be on the operator's list, and its addresses public or of a network that the operator allows
(options/addresses.py).

What goes wrong with a sink.

OxiseqError
├── SinkError        settings that are not accepted, or what the operator does not allow
└── DeliveryError    the receiver has not confirmed: it is tried again

A secret of a sink: a text, or where the operator keeps it.

    "whsec_..."                       is in the journal, or in the settings' file
    {"env": "OXISEQ_SECRET_CHAT"}     an environment variable of the server
    {"file": "chat"}                  a file below the operator's folder of secrets

settings → **Secret** ─ read whenever the receiver is opened, so that a new one is used then ─▶ the text
"""

from __future__ import annotations

import os
import re
import socket
import stat
from collections.abc import Callable, Iterable, Mapping
from dataclasses import field
from ipaddress import ip_address
from pathlib import Path
from typing import Any, Final

from oxiseq.engine.errors import OxiseqError
from oxiseq.grammar.records import dataclass
from oxiseq.options.addresses import AddressError, Network, addresses_of, networks_of

# --- errors ----------------------------------------------------------------------------------------------


class SinkError(OxiseqError):
    """Settings that are not accepted, or what the operator of the server does not allow."""


class DeliveryError(OxiseqError):
    """The receiver has not confirmed a delivery: `confirmed` matches of it are, from the first on. `retry`: seconds
    after which the receiver accepts the next attempt, if it said so."""

    def __init__(self, message: str, confirmed: int = 0, retry: float | None = None) -> None:
        super().__init__(message)
        self.confirmed, self.retry = confirmed, retry


# --- allowed ---------------------------------------------------------------------------------------------

ANY: Final = "*"
_VARIABLE: Final = re.compile(r"OXISEQ_SECRET_[A-Za-z0-9_]{1,100}")
_SECRET: Final = 1 << 16
"""Bytes of a secret's file."""


@dataclass(frozen=True, slots=True)
class Allowed:
    """`hosts`: NAME, NAME:PORT, *.DOMAIN, or * for any; `networks`: addresses beside public ones; `folder`: below which
    files may be written, `secrets`: below which secrets are read (None: nowhere)."""

    hosts: tuple[str, ...] = ()
    networks: tuple[Network, ...] = ()
    folder: Path | None = None
    secrets: Path | None = None

    @classmethod
    def of(
        cls,
        hosts: Iterable[str] = (),
        networks: Iterable[str] = (),
        folder: Path | None = None,
        secrets: Path | None = None,
    ) -> Allowed:
        """From texts. Raises AddressError for what is no network."""
        return cls(
            tuple(host.strip().lower() for host in hosts),
            networks_of(networks),
            None if folder is None else folder.resolve(),
            None if secrets is None else secrets.resolve(),
        )

    def check_host(self, host: str, port: int, *, named: bool = False) -> None:
        """Raises SinkError unless the operator's list has it, and its address where it is written as one; `named`: by
        its name, `*` will not do. All options that are missing are named at once."""
        missing = [] if self._lists(host, port, named=named) else [f"--sink-host {host}"]
        if missing and named:
            missing = [f"--sink-host {host}, by its name here"]
        if not self._reaches(host, port):
            missing += [f"--sink-network {network}" for network in _networks(host)]
        if missing:
            raise SinkError(
                f"sinks may not reach the host {host!r}, port {port}: the server's operator allows it by "
                f"{' and '.join(missing)}"
            )

    def _lists(self, host: str, port: int, *, named: bool) -> bool:
        name = host.lower().rstrip(".")
        for entry in self.hosts:
            wanted, _, its_port = entry.rpartition(":") if entry.rpartition(":")[2].isdecimal() else (entry, "", "")
            if its_port and int(its_port) != port:
                continue
            if _covers(wanted.strip("[]"), name) and not (named and ANY in wanted):
                return True
        return False

    def _reaches(self, host: str, port: int) -> bool:
        """Whether an address that needs no name server may be reached; what others have is seen at each delivery."""
        if not _networks(host):
            return True
        try:
            addresses_of(host.strip("[]"), port, self.networks, "--sink-network")
        except AddressError:
            return False
        except (OSError, UnicodeError):
            return True
        return True

    def addresses(self, host: str, port: int) -> list[str]:
        """The addresses of a host on the list, each of them checked. Raises SinkError, DeliveryError."""
        self.check_host(host, port)
        try:
            return addresses_of(host, port, self.networks, "--sink-network")
        except AddressError as error:
            raise SinkError(str(error)) from None
        except (OSError, UnicodeError) as error:
            raise DeliveryError(f"{host} cannot be resolved: {error}") from error

    def connect(self, host: str, port: int, timeout: float) -> socket.socket:
        """A connection to one of its addresses. Raises SinkError, DeliveryError."""
        told = "it has no address"
        for address in self.addresses(host, port):
            try:
                return socket.create_connection((address, port), timeout)
            except OSError as error:
                told = error.strerror or str(error)
        raise DeliveryError(f"no connection to {host}, port {port}: {told}")

    def file(self, path: str) -> Path:
        """Where a file of this path, relative to the folder or below it, is. Raises SinkError."""
        if self.folder is None:
            raise SinkError("files are written only below a folder that the server's operator names: --sink-folder")
        return _below(self.folder, path)

    def secret_variable(self, name: str) -> str:
        """An environment variable, which only such a name makes one for sinks. Raises SinkError."""
        if not _VARIABLE.fullmatch(name):
            raise SinkError(f"{name[:100]!r} is no secret for sinks: their variables are named OXISEQ_SECRET_...")
        found = os.environ.get(name)
        if not found:
            raise SinkError(f"the server has no variable {name}")
        return found

    def secret_file(self, path: str) -> str:
        """A file below the folder of secrets, without the end of its last line. Raises SinkError."""
        if self.secrets is None:
            raise SinkError("secrets are read only below a folder that the server's operator names: --sink-secrets")
        target = _below(self.secrets, path)
        try:
            opened = os.open(target, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0))
            try:
                if not stat.S_ISREG(os.fstat(opened).st_mode):
                    raise SinkError(f"the secret {path[:200]!r} is no file")
                return os.read(opened, _SECRET).decode().removesuffix("\n").removesuffix("\r")
            finally:
                os.close(opened)
        except OSError as error:
            raise SinkError(f"there is no secret {path[:200]!r}: {error.strerror}") from error
        except UnicodeDecodeError as error:
            raise SinkError(f"the secret {path[:200]!r} is no text in UTF-8") from error


def _below(folder: Path, path: str) -> Path:
    """A path relative to the folder, or below it, not over links either. Raises SinkError."""
    if "\0" in path or not path.strip() or len(path) > 1000:
        raise SinkError(f"{path[:60]!r} is no path of a file")
    target = folder / path
    try:
        inside = ".." not in target.parts and target != folder and target.resolve().is_relative_to(folder)
    except (RuntimeError, UnicodeEncodeError):  # links in a circle, half a character
        raise SinkError(f"{path[:60]!r} is no path of a file") from None
    if not inside:
        raise SinkError(f"{path[:200]!r} is not below the folder that the server's operator allows")
    return target


def _covers(wanted: str, name: str) -> bool:
    if wanted == ANY:
        return True
    if wanted.startswith("*."):
        return name.endswith(wanted[1:])
    return name == wanted


def _networks(host: str) -> tuple[str, ...]:
    """The networks of an address that is written as one, or of this machine; none of another name."""
    try:
        address = ip_address(host.strip("[]").partition("%")[0])
    except ValueError:
        return ("127.0.0.0/8", "::1/128") if host.lower().rstrip(".") == "localhost" else ()
    return (f"{address}/{address.max_prefixlen}",)


# --- secret ----------------------------------------------------------------------------------------------

HIDDEN: Final = "***"
"""What is shown of a secret."""
_LONGEST: Final = 8000
"""Characters."""
REFERENCE: Final = {
    "type": "object",
    "description": "Where the operator keeps it: a variable OXISEQ_SECRET_..., or a file below --sink-secrets.",
    "minProperties": 1,
    "maxProperties": 1,
    "properties": {"env": {"type": "string"}, "file": {"type": "string"}},
    "additionalProperties": False,
}


@dataclass(frozen=True, slots=True)
class Secret:
    """`given`: the text, or the reference; `check` raises SinkError for a text that cannot be."""

    name: str
    given: str | Mapping[str, str] = field(repr=False)
    check: Callable[[str, str], object] = field(repr=False, compare=False)

    def text(self, allowed: Allowed) -> str:
        """What it is now. Raises SinkError."""
        if isinstance(self.given, str):
            return self.given
        ((where, name),) = self.given.items()
        found = allowed.secret_variable(name) if where == "env" else allowed.secret_file(name)
        self.check(found, self.name)
        return found

    def shown(self, write: Callable[[str], str] = lambda _: HIDDEN) -> str | dict[str, str]:
        """Without the secret: `write` shows a text, a reference is shown as it was given."""
        return write(self.given) if isinstance(self.given, str) else dict(self.given)


def secret(check: Callable[[Any, str], object]) -> Callable[[Any, str], Secret]:
    """Reads a secret from a JSON value. Raises SinkError."""

    def read(given: Any, name: str) -> Secret:
        if isinstance(given, dict):
            if len(given) != 1 or not set(given) <= {"env", "file"} or not isinstance(next(iter(given.values())), str):
                raise SinkError(f'{name} is a text, {{"env": NAME}} or {{"file": NAME}}')
        else:
            check(given, name)
        return Secret(name, given, check)

    return read


def secret_text(given: Any, name: str) -> str:
    """A text of one line that is not what is shown in a secret's place. Raises SinkError."""
    found = line_of(given, name, _LONGEST)
    if HIDDEN in found:
        raise SinkError(f"{name}: {HIDDEN} is shown in place of a secret: give the secret itself")
    return found


def line_of(given: Any, name: str, longest: int) -> str:
    """A text of one line that is not empty. Raises SinkError."""
    if not isinstance(given, str) or not given.strip() or len(given) > longest:
        raise SinkError(f"{name} is a text of 1 to {longest} characters")
    if not given.isprintable():
        raise SinkError(f"{name} has characters that cannot be printed, or more than one line")
    return given
