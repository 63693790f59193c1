"""The settings of `oxiseq serve`: each declared once, as a field of `ServeSettings`.

Where it stands: declaration → flags, OXISEQ_ variables, keys of a TOML file, `--print-config` → **`ServeSettings`** →
serving.py.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any, Final, Literal, TypeVar
from urllib.parse import urlsplit

import click

from oxiseq.cli.options import Duration
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
    """What `oxiseq serve` is told; durations in microseconds, 0 where there is no limit."""

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
        "Pass SPARQL requests on to another server's /query, /update and /store instead of a store; queries of "
        "streams ask it, and the folder holds the journal only.",
        "URL",
    )
    upstream_token: str | None = _setting(None, "Send this token there.", "TOKEN")
    upstream_refresh: int = _setting(
        "10m", "After how long what they ask there is asked again; 0s is never.", "DURATION", type=_WAIT
    )
    read_only: bool = _setting(False, "No updates; the folder is opened for reading.", is_flag=True)
    cors: tuple[str, ...] = _setting(
        None,
        "Web pages of this origin may ask and write; without ORIGIN, pages from anywhere may ask. May be repeated.",
        "[ORIGIN]",
        type=Origin(),
        is_flag=False,
        flag_value=ANY,
        multiple=True,
    )
    allowed_host: tuple[str, ...] = _setting(
        None,
        "Answer requests for this host, too, not only for loopback names and that of --bind; * is any. May be "
        "repeated.",
        "NAME",
        multiple=True,
    )
    union_default_graph: bool = _setting(False, "Queries see all graphs as one.", is_flag=True)
    read_token: str | None = _setting(
        None, "Reading needs this bearer token; better given as OXISEQ_READ_TOKEN.", "TOKEN"
    )
    write_token: str | None = _setting(None, "Writing needs this one, which also reads.", "TOKEN")
    tokens: Path | None = _setting(
        None,
        "Named tokens with rights of their own, a line each (`oxiseq token new` makes it); read again on change.",
        "FILE",
        type=click.Path(dir_okay=False, path_type=Path),
    )
    token_lines: str = _setting("", "Such lines themselves; better given as OXISEQ_TOKEN_LINES.", "LINES")
    tls_cert: Path | None = _setting(
        None,
        "Serve https with this certificate and those that vouch for it, in PEM.",
        "FILE",
        type=click.Path(dir_okay=False, path_type=Path),
    )
    tls_key: Path | None = _setting(
        None, "Its private key, if it is not in the same file.", "FILE", type=click.Path(dir_okay=False, path_type=Path)
    )
    behind_proxy: bool = _setting(
        False, "Clients come by a proxy, whose X-Forwarded-For tells them apart where tokens are wrong.", is_flag=True
    )
    timeout: int = _setting("5m", "For a whole answer; 0s is no limit.", "DURATION", type=_WAIT)
    max_rows: int | None = _setting(None, "Rows or triples of an answer.", "N", type=click.IntRange(min=1))
    query_memory: int = _setting(1 << 30, "That a query's process may take.", "BYTES", type=click.IntRange(min=1 << 20))
    max_body: int = _setting(128 << 20, "Of a request, unpacked.", "BYTES", type=click.IntRange(min=1))
    threads: int = _setting(16, "Requests at a time, beside pushes and live readers.", "N", type=click.IntRange(min=1))
    subscribers: int = _setting(64, "Live readers of matches at a time.", "N", type=click.IntRange(min=1))
    idle: int = _setting(
        "250ms",
        "Without events for so long, the newest instant is taken as complete; 0s is never.",
        "DURATION",
        type=Duration(),
    )
    keep: int = _setting("1h", "For how long new streams keep their events.", "DURATION", type=Duration())
    state_records: int = _setting(
        0,
        "Records that the running state of a query may have, if the query does not say; 0 is any number.",
        "N",
        type=click.IntRange(min=0),
    )
    state_bytes: int = _setting(
        1 << 30, "How large it may become in memory; 0 is no bound.", "BYTES", type=click.IntRange(min=0)
    )
    on_budget: Literal["fail", "reset"] = _setting(
        "fail",
        "When it is larger: fail stops the query, reset lets it forget its partial matches and go on.",
        type=click.Choice(["fail", "reset"]),
    )
    event_triples: int = _setting(
        4_000_000, "Triples of events that are held in memory for SPARQL at a time.", "N", type=click.IntRange(min=1)
    )
    event_triples_for: int = _setting(
        "10m", "After how long without a question those of a stream are let go of.", "DURATION", type=Duration()
    )
    durability: Literal["full", "normal"] = _setting(
        "full",
        "full: what is acknowledged is on the disk; normal: unless the machine dies.",
        type=click.Choice(["full", "normal"]),
    )
    allow_service: bool = _setting(False, "Queries may ask other servers (SERVICE).", is_flag=True)
    allow_load: bool = _setting(False, "Updates may fetch from the web (LOAD).", is_flag=True)
    sink_host: tuple[str, ...] = _setting(
        None,
        "Sinks may reach this host: NAME, NAME:PORT, *.DOMAIN, or * for any. May be repeated.",
        "HOST",
        multiple=True,
    )
    sink_network: tuple[str, ...] = _setting(
        None,
        "Sinks may reach addresses of this network, too, as 10.0.0.0/8 or 127.0.0.1/32: without it public ones "
        "only. May be repeated.",
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
        "text", "Of the log on stderr; json: an object a line.", type=click.Choice(["text", "json"])
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
