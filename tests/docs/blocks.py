"""The fenced blocks of a page: what each says, where it stands, and why one is not run.

A block that no test can run has a comment before it: `<!-- not run: why -->`.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
PAGES = [ROOT / "README.md", *sorted(DOCS.rglob("*.md"))]
_FENCE = re.compile(
    r"(?:<!-- not run: (?P<why>[^\n]+) -->\n\n?)?"
    r"^(?P<indent> *)```(?P<kind>[\w-]*)[^\n]*\n(?P<text>.*?)^(?P=indent)```",
    re.MULTILINE | re.DOTALL,
)


@dataclass(frozen=True, slots=True)
class Block:
    """One fenced block: `kind` is its language, `line` that of its fence, `why` the reason not to run it."""

    kind: str
    text: str
    line: int
    why: str | None


def blocks(page: Path, *kinds: str) -> list[Block]:
    """Those of `kinds`, or all, in order."""
    text = page.read_text(encoding="utf-8")
    found = [
        Block(m["kind"], m["text"], text.count("\n", 0, m.start("kind")) + 1, m["why"]) for m in _FENCE.finditer(text)
    ]
    return [block for block in found if not kinds or block.kind in kinds]


def to_run(page: Path, *kinds: str) -> list[Block]:
    """Those without a reason not to be run."""
    return [block for block in blocks(page, *kinds) if block.why is None]


def name(page: Path) -> str:
    """As a test's id."""
    return str(page.relative_to(ROOT))
