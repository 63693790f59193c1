"""Docstrings, comments and pages cite sections of the designs that are in docs/design."""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path
from typing import Final

import pytest
from blocks import DOCS, ROOT

DESIGNS: Final = {
    "semantics": 200,
    "engine": 14,
    "matching": 9,
    "windows": 5,
    "operators": 38,
    "answers": 13,
    "one-automaton": 0,
}
"""Each design, and how many citations of its sections there are at least."""
PACKAGES: Final = ("engine", "grammar", "plugin", "kb_loader", "tests", "benchmarks")
_NUMBER = re.compile(r"\d+(?:\.\d+)*[a-d]?")
_LIST = rf"{_NUMBER.pattern}(?:(?:, (?:and )?| and | to ){_NUMBER.pattern})*"
_HEADING = re.compile(rf"^#+ ({_NUMBER.pattern})", re.MULTILINE)
_NAMED = re.compile(r"(?<![\w/.-])([a-z]+)\.md\b")
_CITED = re.compile(rf"\b({'|'.join(DESIGNS)})\.md\)?,?\s+(?:sections?\s+)?({_LIST})")
"""Also over the end of a line, and behind a link: `engine.md, section 4`, `[engine](engine.md), 4`."""


@cache
def sections(design: str) -> frozenset[str]:
    return frozenset(_HEADING.findall((DOCS / "design" / f"{design}.md").read_text(encoding="utf-8")))


def texts(*tops: str) -> list[tuple[Path, str]]:
    return [
        (path.relative_to(ROOT), path.read_text(encoding="utf-8"))
        for top in tops
        for path in sorted((ROOT / top).rglob("*"))
        if path.suffix in {".py", ".md", ".toml"}
    ]


def missing(text: str) -> list[str]:
    return [cited[0] for cited in _CITED.finditer(text) if not sections(cited[1]).issuperset(_NUMBER.findall(cited[2]))]


def test_the_table_has_every_design() -> None:
    assert {page.stem for page in (DOCS / "design").glob("*.md")} == {*DESIGNS, "index"}


def test_every_cited_section_is_there() -> None:
    found = dict.fromkeys(DESIGNS, 0)
    wrong = []
    for path, text in texts(*PACKAGES, "docs"):
        wrong += [f"{path}: {cited}" for cited in missing(text)]
        for cited in _CITED.finditer(text):
            found[cited[1]] += 1
    assert not wrong
    assert all(found[design] >= least for design, least in DESIGNS.items()), found


def test_the_engine_cites_no_other_document() -> None:
    """A design that is not in the repository is of no use to a reader of the code."""
    named = [(path, name) for path, text in texts("engine", "grammar", "kb_loader") for name in _NAMED.findall(text)]
    assert not [(path, name) for path, name in named if name not in DESIGNS]


@pytest.mark.parametrize("form", ["{}.md, section 44", "{}.md, 4 and 44", "[a page]({}.md), 44", "{}.md\n44"])
@pytest.mark.parametrize("design", DESIGNS)
def test_a_section_that_is_not_there_is_found(design: str, form: str) -> None:
    assert missing(f"See {form.format(design)}.")
