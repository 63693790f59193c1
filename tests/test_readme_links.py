"""What pages point at is there: their own sections, files of this repository. README stays short."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PAGES = [
    *sorted(ROOT.glob("examples/**/README.md")),
    *sorted(ROOT.glob("docs/**/*.md")),
    *sorted(ROOT.glob("*.md")),
]
_LINK = re.compile(r"\]\((?!https?:)([^)#]*)(?:#([^)]*))?\)")


def anchors(text: str) -> set[str]:
    """The headings as GitHub names them."""
    headings = re.findall(r"^#+ (.*)$", text, re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_links_lead_somewhere(page: Path) -> None:
    text = page.read_text(encoding="utf-8")
    for file, anchor in _LINK.findall(text):
        target = (page.parent / file) if file else page
        assert target.exists(), file
        assert not anchor or anchor in anchors(target.read_text(encoding="utf-8")), anchor


def test_files_that_pages_name_in_commands_are_there() -> None:
    pages = [ROOT / "README.md", *ROOT.glob("docs/**/*.md")]
    named = {path for page in pages for path in re.findall(r"examples/[\w./-]*\w", page.read_text(encoding="utf-8"))}
    assert len(named) > 8
    for path in named:
        assert (ROOT / path).exists(), path


def test_readme_is_short() -> None:
    assert (ROOT / "README.md").stat().st_size <= 6_000


@pytest.mark.parametrize("folder", sorted(ROOT.glob("examples/[0-9]*")), ids=lambda folder: folder.name)
def test_each_example_tells_its_story_and_one_command(folder: Path) -> None:
    page = (folder / "README.md").read_text(encoding="utf-8")
    assert re.search(r"run\.py|oxiseq \w+", page)
    for picture in folder.glob("*.svg"):
        assert f"]({picture.name})" in page, picture
