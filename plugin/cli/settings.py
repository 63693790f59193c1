"""The settings of `oxiseq serve`: each declared once, as a field of `ServeSettings`.

In the flow: declaration → flags, OXISEQ_ variables, keys of a TOML file, `--print-config` → **`ServeSettings`** →
serving.py.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import field, fields
from pathlib import Path
from typing import Any, Final, Literal, TypeVar
from urllib.parse import urlsplit

import click

from oxiseq.cli.options import Duration
from oxiseq.engine.bounds import SERVED
from oxiseq.grammar.records import dataclass
from oxiseq.options.durations import UNITS

SECOND: Final = UNITS["s"]
_LONGEST_WAIT: Final = 24 * UNITS["d"]
"""The operating system waits on a socket no longer: 2 ** 31 milliseconds."""
F = TypeVar("F", bound=Callable[..., Any])

ANY: Final = "*"
BRIDGES: Final = "bridges"
SINKS: Final = "sinks"
TABLES: Final = (BRIDGES, SINKS)
"""Tables of the file: [serve.bridges.NAME], [serve.sinks.NAME]."""


class Address(click.ParamType[tuple[str, int]]):
    """HOST:PORT, with an IPv6 host in brackets; port 0 is any free one."""

    name = "address"

    def convert(self, value: object, param: click.Parameter | None, ctx: click.Context | None) -> tuple[str, int]:
        """Split it."""
        if isinstance(value, tuple):
            return value
        host, separator, port = str(value).rpartition(":")
        if not separator or not port.isdecimal() or int(port) > 65_535 or not host.strip("[]"):
            self.fail(f"{value!r} is not HOST:PORT", param, ctx)
        return host.removeprefix("[").removesuffix("]"), int(port)


class Origin(click.ParamType[str]):
    """`http://host:port` of a page; `*`, or true in a file or the environment, is any, and false is none."""

    name = "origin"

    def convert(self, value: object, param: click.Parameter | None, ctx: click.Context | None) -> str:
        """Checked."""
        text = str(value).strip()
        if text.lower() in ("true", "1", "yes", "on", ANY):
            return ANY
        if text.lower() in ("false", "0", "no", "off", ""):
            return ""
        parts = urlsplit(text)
        if parts.scheme not in ("http", "https") or not parts.netloc or parts.path.strip("/") or parts.query:
            self.fail(f"{text!r} is no origin: write SCHEME://HOST:PORT, as http://localhost:3000", param, ctx)
        return f"{parts.scheme}://{parts.netloc}".lower()


_WAIT: Final = Duration(most=_LONGEST_WAIT)


def _setting(default: Any, help: str, metavar: str | None = None, *short: str, **more: Any) -> Any:
    """A field whose flag has this default; `more`: as click.option takes it."""
    return field(metadata={"short": short, "flag": {"default": default, "help": help, "metavar": metavar, **more}})


@dataclass(frozen=True, slots=True, kw_only=True)
class ServeSettings:
    """The options of `oxiseq serve`; durations in microseconds, 0 where there is no limit."""

    location: Path | None = _setting(
        None,
        "The store's folder, made if missing. [default: in memory]",
        "DIR",
        "-l",
        type=click.Path(file_okay=False, path_type=Path),
    )
    bind: tuple[str, int] = _setting(
        "127.0.0.1:7878", "Where to listen; port 0 takes any free one.", "HOST:PORT", "-b", type=Address()
    )
    upstream: str | None = _setting(
        None,
        "Forward SPARQL requests to another server's /query, /update and /store instead of keeping a store; queries "
        "over streams use it as their knowledge base, and the folder holds only the journal.",
        "URL",
    )
    upstream_token: str | None = _setting(None, "The token for the upstream server.", "TOKEN")
    upstream_refresh: int = _setting(
        "10m", "How often knowledge from upstream is fetched again; 0s: never.", "DURATION", type=_WAIT
    )
    read_only: bool = _setting(False, "Refuse updates; open the folder for reading.", is_flag=True)
    cors: tuple[str, ...] = _setting(
        None,
        "Web pages of this origin may read and write; without ORIGIN, pages from anywhere may read. May be repeated.",
        "[ORIGIN]",
        type=Origin(),
        is_flag=False,
        flag_value=ANY,
        multiple=True,
    )
    allowed_host: tuple[str, ...] = _setting(
        None,
        "Also answer requests for this host, beside loopback names and the host of --bind; * is any. May be repeated.",
        "NAME",
        multiple=True,
    )
    union_default_graph: bool = _setting(
        False, "The default graph of queries is the union of all graphs.", is_flag=True
    )
    read_token: str | None = _setting(None, "The bearer token for reading; better set as OXISEQ_READ_TOKEN.", "TOKEN")
    write_token: str | None = _setting(None, "The bearer token for writing, which also allows reading.", "TOKEN")
    tokens: Path | None = _setting(
        None,
        "Named tokens and their rights, one per line (`oxiseq token new` makes them); reloaded when it changes.",
        "FILE",
        type=click.Path(dir_okay=False, path_type=Path),
    )
    token_lines: str = _setting("", "The lines of such a file; better set as OXISEQ_TOKEN_LINES.", "LINES")
    tls_cert: Path | None = _setting(
        None,
        "Serve https with this certificate chain (PEM).",
        "FILE",
        type=click.Path(dir_okay=False, path_type=Path),
    )
    tls_key: Path | None = _setting(
        None,
        "The certificate's private key, if it is in another file.",
        "FILE",
        type=click.Path(dir_okay=False, path_type=Path),
    )
    behind_proxy: bool = _setting(
        False,
        "Clients come through a proxy: its X-Forwarded-For distinguishes those that send wrong tokens.",
        is_flag=True,
    )
    timeout: int = _setting("5m", "How long an answer may take; 0s: no limit.", "DURATION", type=_WAIT)
    max_rows: int | None = _setting(
        None, "The most rows or triples of an answer. [default: no limit]", "N", type=click.IntRange(min=1)
    )
    query_memory: int = _setting(
        1 << 30, "The most memory a query's process may take.", "BYTES", type=click.IntRange(min=1 << 20)
    )
    max_body: int = _setting(
        128 << 20, "The largest body of a request, decompressed.", "BYTES", type=click.IntRange(min=1)
    )
    threads: int = _setting(
        16, "How many requests run at a time, beside pushes and subscribers.", "N", type=click.IntRange(min=1)
    )
    subscribers: int = _setting(64, "The most subscribers at a time.", "N", type=click.IntRange(min=1))
    max_queries: int = _setting(1000, "The most registered queries.", "N", type=click.IntRange(min=1))
    max_streams: int = _setting(1000, "The most streams.", "N", type=click.IntRange(min=1))
    max_sinks: int = _setting(100, "The most sinks of all queries.", "N", type=click.IntRange(min=1))
    connections: int = _setting(
        1000,
        "The most open connections at a time, beside subscribers; a new one then closes those that are idle longest.",
        "N",
        type=click.IntRange(min=1),
    )
    stream_idle: int = _setting(
        "250ms",
        "After this long without events the newest instant counts as complete; 0s: never.",
        "DURATION",
        type=Duration(),
    )
    retention: int = _setting("1h", "How long new streams keep their events.", "DURATION", type=Duration())
    max_ahead: int = _setting(
        "1d",
        "How far an event's time, or an advance, may be ahead of the server's clock; what is further is rejected. 0s: "
        "any.",
        "DURATION",
        type=Duration(),
    )
    max_state_records: int = _setting(
        0,
        "The most records of a query's running state, unless the query sets it; 0: no limit.",
        "N",
        type=click.IntRange(min=0),
    )
    max_state_bytes: int = _setting(
        1 << 30, "The most memory of a query's running state; 0: no limit.", "BYTES", type=click.IntRange(min=0)
    )
    on_state_limit: Literal["fail", "drop"] = _setting(
        "fail",
        "When the state exceeds its limit: fail stops the query, drop discards its partial matches and continues.",
        type=click.Choice(["fail", "drop"]),
    )
    instant_matches: int = _setting(
        SERVED.matches,
        "The most matches or rows of a query at one instant; beyond it the instant is left out.",
        "N",
        type=click.IntRange(min=1, max=1 << 31),
    )
    event_triples: int = _setting(
        4_000_000, "The most triples of events held in memory for SPARQL queries.", "N", type=click.IntRange(min=1)
    )
    event_triples_for: int = _setting(
        "10m", "How long the triples of a stream stay in memory without being queried.", "DURATION", type=Duration()
    )
    durability: Literal["full", "normal"] = _setting(
        "full",
        "What an acknowledged event survives. full: also a power failure; normal: a killed process.",
        type=click.Choice(["full", "normal"]),
    )
    allow_service: bool = _setting(False, "Allow SERVICE in queries: requests to other servers.", is_flag=True)
    allow_load: bool = _setting(False, "Allow LOAD in updates: fetching from the web.", is_flag=True)
    load_network: tuple[str, ...] = _setting(
        None,
        "LOAD may also reach addresses of this network, such as 10.0.0.0/8 or 127.0.0.1/32; without it only public "
        "addresses. May be repeated.",
        "NETWORK",
        multiple=True,
    )
    sink_host: tuple[str, ...] = _setting(
        None,
        "Sinks may reach this host: NAME, NAME:PORT, *.DOMAIN, or * for any. May be repeated.",
        "HOST",
        multiple=True,
    )
    sink_network: tuple[str, ...] = _setting(
        None,
        "Sinks may also reach addresses of this network, such as 10.0.0.0/8 or 127.0.0.1/32; without it only public "
        "addresses. May be repeated.",
        "NETWORK",
        multiple=True,
    )
    sink_folder: Path | None = _setting(
        None,
        "Sinks may write files below this folder. [default: no files]",
        "DIR",
        type=click.Path(file_okay=False, path_type=Path),
    )
    sink_secrets: Path | None = _setting(
        None,
        "Sinks may read secrets from files below this folder. [default: no files]",
        "DIR",
        type=click.Path(file_okay=False, path_type=Path),
    )
    log_format: Literal["text", "json"] = _setting(
        "text", "The format of the log on stderr; json: one object per line.", type=click.Choice(["text", "json"])
    )


def setting_flags(function: F) -> F:
    """A flag of the command for each setting."""
    for each in reversed(fields(ServeSettings)):
        flag = each.metadata["flag"]
        shown = flag["default"] is not None and not flag.get("is_flag")
        name = f"--{each.name.replace('_', '-')}"
        function = click.option(name, *each.metadata["short"], **flag, show_default=shown)(function)
    return function


def settings_of(options: dict[str, Any]) -> ServeSettings:
    """What the flags say; an empty origin is none."""
    return ServeSettings(**{**options, "cors": tuple(filter(None, options["cors"]))})


def seconds(duration: int) -> float | None:
    """A duration in seconds; None, which is never or without limit, for 0."""
    return duration / SECOND or None
