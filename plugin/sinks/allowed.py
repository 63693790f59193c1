"""What sinks may reach: hosts, a folder, and secrets that the operator of the server names.

Who may register a query must not make the server ask its own neighbours (server-side request forgery). So a host must
be on the operator's list, its name is resolved here, each address must be a public one unless the operator allows its
network, and the connection goes to the address that was checked: a name cannot be resolved again to another one.
"""

from __future__ import annotations

import os
import re
import socket
import stat
from collections.abc import Iterable
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_address, ip_network
from pathlib import Path
from typing import Final, TypeAlias

from oxiseq.grammar.records import dataclass
from oxiseq.sinks.errors import DeliveryError, SinkError

Address: TypeAlias = IPv4Address | IPv6Address
Network: TypeAlias = IPv4Network | IPv6Network
ANY: Final = "*"
_VARIABLE: Final = re.compile(r"OXISEQ_SECRET_[A-Za-z0-9_]{1,100}")
_SECRET: Final = 1 << 16
"""Bytes of a secret's file."""
_NAT64: Final = IPv6Network("64:ff9b::/96")
"""IPv4 addresses by way of a translator, which are what names resolve to where there is IPv6 alone."""
_GLOBAL_UNICAST: Final = IPv6Network("2000::/3")
"""All that is assigned of IPv6 to hosts of the internet."""
_SPECIAL: Final = tuple(
    ip_network(text)
    for text in (
        # IANA's registry of special-purpose IPv4 addresses, those of multicast behind it
        *("0.0.0.0/8", "10.0.0.0/8", "100.64.0.0/10", "127.0.0.0/8", "169.254.0.0/16", "172.16.0.0/12"),
        *("192.0.0.0/24", "192.0.2.0/24", "192.31.196.0/24", "192.52.193.0/24", "192.88.99.0/24", "192.168.0.0/16"),
        *("192.175.48.0/24", "198.18.0.0/15", "198.51.100.0/24", "203.0.113.0/24", "240.0.0.0/4", "224.0.0.0/4"),
        # what the registry of IPv6 has within _GLOBAL_UNICAST; 2002::/16 (6to4) holds IPv4 addresses
        *("2001::/23", "2001:db8::/32", "2002::/16", "2620:4f:8000::/48", "3fff::/20"),
    )
)
"""Nothing here is plainly a host of the internet, though a few of these blocks are routed: to the next relay, or to a
server that discards. Python's own `is_global` differs from release to release."""


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
        """From texts. Raises SinkError for what is no network."""
        return cls(
            tuple(host.strip().lower() for host in hosts),
            tuple(map(_network, networks)),
            None if folder is None else folder.resolve(),
            None if secrets is None else secrets.resolve(),
        )

    def check_host(self, host: str, port: int, *, named: bool = False) -> None:
        """Raises SinkError unless the operator's list has it; `named`: by its name, `*` will not do."""
        name = host.lower().rstrip(".")
        for entry in self.hosts:
            wanted, _, its_port = entry.rpartition(":") if entry.rpartition(":")[2].isdecimal() else (entry, "", "")
            if its_port and int(its_port) != port:
                continue
            if _covers(wanted.strip("[]"), name) and not (named and ANY in wanted):
                return
        by_name = ", by its name here" if named else ""
        raise SinkError(
            f"sinks may not reach the host {host!r}, port {port}: the server's operator allows hosts by "
            f"--sink-host{by_name}"
        )

    def addresses(self, host: str, port: int) -> list[str]:
        """The addresses of a host on the list, each of them checked. Raises SinkError, DeliveryError."""
        self.check_host(host, port)
        try:
            found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
        except (OSError, UnicodeError) as error:
            raise DeliveryError(f"{host} cannot be resolved: {error}") from error
        texts = list(dict.fromkeys(str(each[4][0]) for each in found))
        for text in texts:
            self._check_address(host, ip_address(text.partition("%")[0]))
        return texts

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

    def _check_address(self, host: str, address: Address) -> None:
        real = _behind(address)
        if any(
            each.version == network.version and each in network for each in (address, real) for network in self.networks
        ):
            return
        if not is_public(address):
            raise SinkError(
                f"{host} has the address {real}, which is not public: the server's operator allows "
                "networks by --sink-network"
            )


def is_public(address: Address) -> bool:
    """Whether it is plainly that of a host of the internet. An IPv4 address that is written as IPv6 counts as itself,
    but not one within a tunnel (6to4, Teredo): who ends that tunnel nobody knows."""
    if isinstance(address, IPv6Address):
        if address.ipv4_mapped is not None or address in _NAT64:
            return is_public(_behind(address))
        if address not in _GLOBAL_UNICAST:
            return False
    return not any(address.version == network.version and address in network for network in _SPECIAL)


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


def _behind(address: Address) -> Address:
    """The IPv4 address inside an IPv6 one, if there is one."""
    if isinstance(address, IPv6Address):
        if address in _NAT64:
            return IPv4Address(int(address) & 0xFFFFFFFF)
        teredo = address.teredo
        return address.ipv4_mapped or address.sixtofour or (teredo[1] if teredo else None) or address
    return address


def _covers(wanted: str, name: str) -> bool:
    if wanted == ANY:
        return True
    if wanted.startswith("*."):
        return name.endswith(wanted[1:])
    return name == wanted


def _network(text: str) -> Network:
    try:
        return ip_network(text.strip())
    except ValueError as error:
        raise SinkError(f"{text!r} is no network: write ADDRESS/BITS, as 10.0.0.0/8") from error
