"""The reference of the options, as Markdown: `python -m oxiseq.options.reference > docs/options.md`."""

from __future__ import annotations

from typing import Final

from oxiseq.options.declared import HISTORY, QUERY, RUN, SOURCES, STATE, Door, Option, options_for

_HEAD: Final = """# Options

The options of a query beside its text. The names are the same everywhere: keywords in Python, `--kebab-case` on
the command line, members of JSON and parameters of the address over HTTP, keys of `*.oxitest.toml`. Generated from
their declaration by `python -m oxiseq.options.reference`.
"""
_DOORS: Final[dict[Door, str]] = {
    QUERY: "Wherever a query is run or registered",
    SOURCES: "Where files and tables of events are read: `run`, `why`, `compare`",
    RUN: "Where a query is answered over whole streams: `run`",
    STATE: "For a query that is registered with a server",
    HISTORY: "Where a stretch of the past is read: `why`; for a server's events also `run`, `compare`",
}


def reference() -> str:
    """A table for each door."""
    return _HEAD + "".join(f"\n## {title}\n{_table(options_for(doors=(door,)))}" for door, title in _DOORS.items())


def _table(options: tuple[Option, ...]) -> str:
    rows = "".join(
        f"| `{o.name}` | {o.help} | {o.kind.unit} | {_default(o)} | {o.titles or 'all'} |\n" for o in options
    )
    return f"\n| option | is | value | default | languages |\n|---|---|---|---|---|\n{rows}"


def _default(option: Option) -> str:
    if option.default is None or option.default in ((), {}):
        return "none"
    return f"`{option.kind.write(option.default)}`"


if __name__ == "__main__":
    print(reference(), end="")
