"""Settings of a command from a TOML file and the environment, and `--print-config`.

An option is what the command line says, else its environment variable, else the file's table of the command, else the
default.
"""

from __future__ import annotations

import json
import tomllib
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final, TypeVar

import click
from click.core import ParameterSource

from oxiseq.cli.options import Duration
from oxiseq.options.durations import duration_text

F = TypeVar("F", bound=Callable[..., Any])
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
