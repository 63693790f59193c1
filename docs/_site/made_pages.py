"""The reference, made from the code: a function a page, each of which gives Markdown.

Python is read by mkdocstrings, the command line by mkdocs-click; the other pages are tables of what the code declares.
tests/docs/test_reference.py tests that nothing public is missing.
"""

from __future__ import annotations

import ast
import re
import tempfile
import tomllib
from collections.abc import Callable, Iterable, Mapping
from dataclasses import fields
from pathlib import Path
from typing import Any

import oxiseq
from oxiseq.api.store import Store
from oxiseq.cli.settings import ServeSettings
from oxiseq.engine import errors
from oxiseq.live.api.openapi import document
from oxiseq.live.api.operations import OPERATIONS
from oxiseq.live.service import LiveService

ROOT = Path(__file__).parents[2]


def python() -> str:
    """The public names, in the order of `oxiseq.__all__`."""
    homes = oxiseq._HOMES  # the module of each: mkdocstrings reads the source and imports nothing
    return "# Python\n\n" + "".join(f"::: oxiseq.{homes[name]}.{name}\n\n" for name in oxiseq.__all__)


def command_line() -> str:
    """All commands with their options."""
    return (
        "# Command line\n\nExit status: 0 all went well; 1 the query, an event, the knowledge base or a file is\n"
        "wrong; 2 the command line itself is wrong.\n\n"
        "::: mkdocs-click\n    :module: oxiseq.cli\n    :command: main\n    :prog_name: oxiseq\n    :depth: 1\n"
    )


def http() -> str:
    """The routes of streams and queries, by path; SPARQL's own are in server.md."""
    described = document(OPERATIONS)
    text = (
        "# HTTP\n\nMade from the server's own description, `GET /openapi.json`. SPARQL's protocol and the graph store\n"
        "(`/query`, `/update`, `/store`) are in [Run a server](../server.md). Errors are `application/problem+json`.\n"
    )
    for path, methods in described["paths"].items():
        text += f"\n## `{path}`\n"
        for method, operation in methods.items():
            text += f"\n### {method.upper()} `{path}`\n\n{operation['summary']}\n" + _operation(operation)
    return text


def _operation(operation: Mapping[str, Any]) -> str:
    text = "".join(f"\nNeeds the right: `{need}`\n" for each in operation["security"] for need in each.get("token", []))
    if parameters := operation.get("parameters"):
        rows = ((f"`{p['name']}`", p["in"], p["description"]) for p in parameters)
        text += "\n" + _table(("parameter", "in", "is"), rows)
    if body := operation.get("requestBody"):
        text += "\nBody: " + ", ".join(f"`{media}`" for media in body["content"]) + "\n"
    rows = ((f"{status}", answer["description"]) for status, answer in operation["responses"].items())
    return text + "\n" + _table(("status", "means"), rows)


def settings() -> str:
    """Each setting of `oxiseq serve`: flag, environment, key of a file."""
    text = (
        "# Settings of the server\n\nEach is a flag of `oxiseq serve`, an environment variable, and a key of a TOML\n"
        "file (`--config`). `oxiseq serve --print-config` shows what holds, and from where.\n\n"
    )
    return text + _table(("flag", "environment", "key", "is", "default"), map(_setting, fields(ServeSettings)))


def _setting(setting: Any) -> tuple[str, ...]:
    flag = setting.metadata["flag"]
    default = flag["default"]
    shown = "none" if default is None else "off" if default is False else f"`{default}`" if default != "" else "empty"
    name = setting.name
    return f"`--{name.replace('_', '-')}`", f"`OXISEQ_{name.upper()}`", f"`{name}`", flag["help"], shown


def metrics() -> str:
    """The text of `GET /metrics` of a service in an empty folder."""
    with tempfile.TemporaryDirectory() as folder, LiveService(Store(), Path(folder)) as service:
        lines = service.metrics.text().decode().splitlines()
    helps = {line.split(" ")[2]: line.split(" ", 3)[3] for line in lines if line.startswith("# HELP")}
    kinds = {line.split(" ")[2]: line.split(" ")[3] for line in lines if line.startswith("# TYPE")}
    rows = [(f"`{name}`", kinds[name], helps[name]) for name in sorted(helps) if not name.endswith("_created")]
    return (
        "# Metrics\n\n`GET /metrics`, in Prometheus' text format. `oxiseq_kb_last_query_timestamp_seconds` (when the\n"
        "knowledge base was last queried, in seconds since 1970) comes with `--upstream`.\n\n"
        + _table(("metric", "kind", "is"), rows)
    )


def error_messages() -> str:
    """The exceptions, and the titles of the server's problems."""
    tree = next(part for part in (errors.__doc__ or "").split("\n\n") if "├──" in part)
    text = f"# Errors\n\n## In Python\n\n```text\n{tree}\n```\n\nThe command line prints the message.\n"
    rows = [(str(status), title) for status, title in sorted(problems())]
    return (
        text
        + "\n## Over HTTP\n\n`title` and `status` of the problem; `detail` says what and where.\n\n"
        + _table(("status", "title"), rows)
    )


def layers() -> str:
    """The layers of the two large packages, as the import contracts have them, with each folder's first line."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    contracts = project["tool"]["importlinter"]["contracts"]
    named = {contract["containers"][0]: contract for contract in contracts if len(contract.get("containers", ())) == 1}
    text = "# Layers\n\nEach layer imports from those below it, and from no other. `lint-imports` checks it.\n"
    for container, root in (("oxiseq", ROOT / "plugin"), ("oxiseq.engine", ROOT / "engine")):
        rows = [
            (str(number), _place(root, name), _first_line(root, name))
            for number, layer in enumerate(named[container]["layers"], 1)
            for name in (part.strip() for part in re.split("[|:]", layer))
        ]
        text += f"\n## `{container}`\n\n" + _table(("layer", "where", "holds"), rows)
    return text


def _place(root: Path, name: str) -> str:
    for where in (root / name, root / f"{name}.py", ROOT / name):
        if where.exists():
            return f"`{where.relative_to(ROOT)}`"
    raise FileNotFoundError(name)


def _first_line(root: Path, name: str) -> str:
    for where in (root / name / "__init__.py", root / f"{name}.py", ROOT / name / "__init__.py"):
        if where.exists():
            return (ast.get_docstring(ast.parse(where.read_text(encoding="utf-8"))) or "").split("\n\n")[0]
    raise FileNotFoundError(name)


def problems() -> set[tuple[int, str]]:
    """Each `Problem(status, title)` in the code that has both."""
    found = set()
    for file in (ROOT / "plugin").rglob("*.py"):
        for call in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
            match call:
                case ast.Call(
                    func=ast.Name(id="Problem"),
                    args=[ast.Constant(value=int(status)), ast.Constant(value=str(title)), *_],
                ):
                    found.add((status, title))
    return found


def _table(head: tuple[str, ...], rows: Iterable[tuple[str, ...]]) -> str:
    lines = [head, ("---",) * len(head), *rows]
    cells = ([cell.replace("|", "\\|").replace("\n", " ").replace("<", "&lt;") for cell in line] for line in lines)
    return "".join(f"| {' | '.join(line)} |\n" for line in cells)


PAGES: dict[str, Callable[[], str]] = {
    "python": python,
    "command-line": command_line,
    "http": http,
    "settings": settings,
    "metrics": metrics,
    "errors": error_messages,
    "layers": layers,
}
