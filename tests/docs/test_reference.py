"""The reference has every public name, command, option, route, setting and metric, each with words of its own."""

from __future__ import annotations

import inspect
import re
import sys
from pathlib import Path

import click
import pytest

import oxiseq
from oxiseq.cli import main
from oxiseq.live.api.operations import OPERATIONS
from oxiseq.options.declared import OPTIONS
from oxiseq.options.reference import reference

DOCS = Path(__file__).parents[2] / "docs"
sys.path.append(str(DOCS / "_site"))

import made_pages as made  # noqa: E402  a script of the site


def commands() -> list[tuple[str, click.Command]]:
    """All of them with their names, those of groups, too."""
    found = []
    waiting: list[tuple[str, click.Command]] = [("oxiseq", main)]
    while waiting:
        name, command = waiting.pop()
        found.append((name, command))
        if isinstance(command, click.Group):
            waiting.extend((f"{name} {inner}", one) for inner, one in command.commands.items())
    return found


def test_every_public_name_is_there() -> None:
    page = made.python()
    for name in oxiseq.__all__:
        assert re.search(rf"^::: oxiseq\.[\w.]+\.{name}$", page, re.MULTILINE), name
        named = getattr(oxiseq, name)
        assert (named.__doc__ or "").strip(), name
        for method, value in vars(named).items() if isinstance(named, type) else ():
            if not method.startswith("_") and (inspect.isfunction(value) or isinstance(value, property)):
                assert inspect.getdoc(getattr(named, method)), f"{name}.{method}"


@pytest.mark.parametrize(("name", "command"), commands(), ids=lambda each: each if isinstance(each, str) else "")
def test_every_command_and_flag_has_its_words(name: str, command: click.Command) -> None:
    assert command.help, name
    for parameter in command.params:
        if isinstance(parameter, click.Option) and not parameter.hidden:
            assert parameter.help, f"{name} {parameter.opts[0]}"


def test_every_command_is_on_the_page_of_commands() -> None:
    page = (DOCS / "command-line.md").read_text(encoding="utf-8")
    for name, command in commands():
        if name.count(" ") == 1 and not command.hidden:
            assert f"`{name}" in page, name


def test_every_option_is_there() -> None:
    page = (DOCS / "options.md").read_text(encoding="utf-8")
    assert page == reference(), "python -m oxiseq.options.reference > docs/options.md"
    for option in OPTIONS.values():
        assert f"| `{option.name}` |" in page
        assert option.help


def test_every_route_and_its_parameters_are_there() -> None:
    page = made.http()
    for route in OPERATIONS:
        assert f"### {route.method} `{route.path}`" in page
        assert route.text
        for parameter in route.documented:
            assert parameter.text, f"{route.path}: {parameter.name}"


def test_every_setting_has_its_words() -> None:
    page = made.settings()
    for setting in made.fields(made.ServeSettings):
        assert f"| `{setting.name}` |" in page
        assert setting.metadata["flag"]["help"], setting.name


def test_every_metric_is_there() -> None:
    """As they stand in the code, whether anything has been counted or not."""
    page = made.metrics()
    live = (Path(__file__).parents[2] / "plugin" / "live").rglob("*.py")
    code = "".join(file.read_text(encoding="utf-8") for file in live)
    named = set(re.findall(r'_(?:counter|histogram)\("(oxiseq_\w+)"', code))
    named |= {f"oxiseq_{name}" for name in re.findall(r'\b(?:counter|gauge)\("(\w+)"', code)}
    assert len(named) > 20
    for name in named:
        assert name in page, name
    without_words = re.compile(r"\| `\w+` \| \w+ \|\s*\|")
    assert not [line for line in page.splitlines() if without_words.fullmatch(line)]


def test_errors_are_there() -> None:
    page = made.error_messages()
    assert all(name in page for name in oxiseq.__all__ if name.endswith("Error"))
    assert len(made.problems()) > 30


def test_every_folder_has_its_place_and_its_line() -> None:
    """The page of layers is drawn from the import contracts: none is left out, each says what it holds."""
    page = made.layers()
    root = Path(__file__).parents[2]
    for package in ("plugin", "engine"):
        for folder in (root / package).iterdir():
            if (folder / "__init__.py").exists():
                assert re.search(rf"\| `{package}/{folder.name}` \| \w", page), folder


def test_each_hop_of_the_architecture_is_a_file_that_says_what_it_is() -> None:
    page = (DOCS / "explanation" / "architecture.md").read_text(encoding="utf-8")
    hops = set(re.findall(r"`((?:grammar|engine|plugin)/[\w/]+\.py)`", page))
    assert len(hops) > 14
    for hop in hops:
        assert (Path(__file__).parents[2] / hop).read_text(encoding="utf-8").startswith('"""'), hop


def test_each_special_path_has_a_test_that_compares_it() -> None:
    page = (DOCS / "explanation" / "architecture.md").read_text(encoding="utf-8")
    lines = page.split("## Special paths")[1].split("\n## ")[0].splitlines()
    rows = [line for line in lines if line.startswith("| ") and not line.startswith("| path,")]
    assert len(rows) > 4
    for row in rows:
        named = re.findall(r"`(tests/[\w/]+\.py)::(test_\w+)`", row)
        assert named, row
        for file, test in named:
            assert f"def {test}(" in (Path(__file__).parents[2] / file).read_text(encoding="utf-8"), row
