"""The settings of `oxiseq serve`: each declared once, as a field of `ServeSettings`.

In the flow: declaration → flags, OXISEQ_ variables, keys of a TOML file, `--print-config` → **`ServeSettings`** →
serving.py. An option is what the command line says, else its environment variable, else the file's table of the
command, else the default.
"""

from __future__ import annotations

import json
import tomllib
from collections.abc import Callable
from dataclasses import field, fields
from pathlib import Path
from typing import Any, Final, Literal, TypeVar
from urllib.parse import urlsplit

import click
from click.core import ParameterSource

from oxiseq.cli.options import Duration
from oxiseq.engine.bounds import SERVED
from oxiseq.grammar.records import dataclass
from oxiseq.options.kinds import UNITS, duration_text

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


# --- the file, the environment, --print-config -----------------------------------------------------------

ENVIRONMENT: Final = {"auto_envvar_prefix": "OXISEQ"}
"""Settings of a command whose options are read from OXISEQ_NAME, too."""
_OURS: Final = ("config", "print_config")
_SOURCES: Final = {
    ParameterSource.COMMANDLINE: "command line",
    ParameterSource.ENVIRONMENT: "environment",
    ParameterSource.DEFAULT_MAP: "file",
}


def config_options(*secrets: str, tables: tuple[str, ...] = ()) -> Callable[[F], F]:
    """`--config` and `--print-config` for a command; `secrets` are options whose values are not printed, `tables` what
    only the file has: tables of tables, see `tables_of`."""

    def decorate(function: F) -> F:
        file = click.option(
            "--config",
            metavar="FILE",
            type=click.Path(exists=True, dir_okay=False, path_type=Path),
            is_eager=True,
            expose_value=False,
            callback=_reader(tables),
            allow_from_autoenv=True,
            help="A TOML file with a table of these options, as max_rows.",
        )
        shown = click.option(
            "--print-config",
            is_flag=True,
            expose_value=False,
            callback=_note_secrets(secrets),
            allow_from_autoenv=False,
            help="Print all settings, as such a file and from where each is, and end.",
        )
        return file(shown(function))

    return decorate


def tables_of(ctx: click.Context) -> dict[str, dict[str, dict[str, Any]]]:
    """The tables `[COMMAND.NAME.KEY]` of the file, by NAME and KEY."""
    found: dict[str, dict[str, dict[str, Any]]] = ctx.meta.get(_TABLES, {})
    return found


def print_if_asked(ctx: click.Context) -> bool:
    """Print the settings if `--print-config` is given: whether it was."""
    if not ctx.meta.get(_PRINT):
        return False
    click.echo(f"[{ctx.info_name}]")
    for option in _options(ctx.command):
        click.echo(_line(ctx, option))
    for name, tables in ctx.meta.get(_TABLES, {}).items():
        for key in tables:
            click.echo(f"# [{ctx.info_name}.{name}.{key}] is set in the file")
    return True


_PRINT: Final = "oxiseq.print_config"
_SECRETS: Final = "oxiseq.secrets"
_TABLES: Final = "oxiseq.tables"


def _note_secrets(secrets: tuple[str, ...]) -> Callable[[click.Context, click.Parameter, bool], None]:
    def note(ctx: click.Context, param: click.Parameter, value: bool) -> None:
        ctx.meta[_PRINT], ctx.meta[_SECRETS] = value, secrets

    return note


def _reader(tables: tuple[str, ...]) -> Callable[[click.Context, click.Parameter, Path | None], None]:
    def read(ctx: click.Context, param: click.Parameter, value: Path | None) -> None:
        if value is not None:
            _read(ctx, param, value, tables)

    return read


def _read(ctx: click.Context, param: click.Parameter, value: Path, tabled: tuple[str, ...]) -> None:
    """Make the file's table the defaults, and keep those of `tabled`. Raises BadParameter."""
    try:
        tables = tomllib.loads(value.read_text("utf-8-sig"))
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise click.BadParameter(f"{value}: {error}", ctx, param) from error
    name = ctx.info_name or ""
    table = tables.get(name)
    if not isinstance(table, dict):
        raise click.BadParameter(f"{value} has no table [{name}]", ctx, param)
    ctx.meta[_TABLES] = {key: table.pop(key) for key in tabled if key in table}
    for key, found in ctx.meta[_TABLES].items():
        if not isinstance(found, dict) or not all(isinstance(each, dict) for each in found.values()):
            raise click.BadParameter(f"{value}: {key} are tables: [{name}.{key}.NAME]", ctx, param)
    known = {_key(option): option for option in _options(ctx.command)}
    unknown = [key for key in table if key not in known]
    if unknown:
        raise click.BadParameter(
            f"{value}: [{name}] knows no {', '.join(unknown)}; it takes {', '.join(known)}", ctx, param
        )
    ctx.default_map = {
        known[key].name or "": _checked(value, key, known[key], given, ctx, param) for key, given in table.items()
    }


def _checked(file: Path, key: str, option: click.Option, given: Any, ctx: click.Context, param: click.Parameter) -> Any:
    several = given if option.multiple and isinstance(given, list) else [given]
    if all(isinstance(each, bool | int | float | str) for each in several):
        return several if option.multiple else given
    raise click.BadParameter(f"{file}: {key} is neither a text nor a number nor true or false", ctx, param)


def _options(command: click.Command) -> list[click.Option]:
    return [p for p in command.params if isinstance(p, click.Option) and p.name not in _OURS]


def _key(option: click.Option) -> str:
    return max(option.opts, key=len).removeprefix("--").replace("-", "_")


def _line(ctx: click.Context, option: click.Option) -> str:
    name = option.name or ""
    value, source = ctx.params.get(name), ctx.get_parameter_source(name)
    where = f"  # {_SOURCES[source]}" if source in _SOURCES else ""
    if value is None:
        return f"# {_key(option)} ="
    if isinstance(option.type, Duration):
        value = duration_text(value)
    if name in ctx.meta[_SECRETS]:
        shown = '"..."'
    elif option.multiple:
        shown = f"[{', '.join(map(_toml, value))}]"
    else:
        shown = _toml(value)
    return f"{_key(option)} = {shown}{where}"


def _toml(value: Any) -> str:
    """A TOML value that the option takes again."""
    if isinstance(value, tuple):  # an address
        host, port = value
        value = f"[{host}]:{port}" if ":" in host else f"{host}:{port}"
    if isinstance(value, bool | int | float):
        return json.dumps(value)
    return json.dumps(str(value), ensure_ascii=False)
