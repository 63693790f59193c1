"""Tables in text: `a | b` above, a row per line, as Markdown has them (a rule of dashes and outer bars are allowed)."""

from __future__ import annotations

import re

from oxiseq.grammar.records import dataclass
from oxiseq.testing.errors import TestFileError

_RULE = re.compile(r"[-:|+\s]+")
_BAR = re.compile(r'\|(?=(?:[^"\\]|\\.|"(?:[^"\\]|\\.)*")*$)')
"""A bar that is not inside a string."""


@dataclass(frozen=True, slots=True)
class Table:
    """Column names, and rows of as many cells."""

    header: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]


def read_table(text: str) -> Table:
    """Lines that are empty or begin with `#` are left out. Raises TestFileError."""
    lines = [line.strip() for line in text.split("\n")]
    lines = [line for line in lines if line and not line.startswith("#")]
    if not lines:
        raise TestFileError("a table needs a line of column names")
    header = _cells(lines[0])
    if len(set(header)) != len(header):
        raise TestFileError(f"a column is named twice: {lines[0]}")
    rows = [_cells(line) for line in lines[1:] if not (_RULE.fullmatch(line) and "-" in line)]
    for row in rows:
        if len(row) != len(header):
            raise TestFileError(f"{len(header)} cells expected ({' | '.join(header)}), but {len(row)}: {row}")
    return Table(header, tuple(rows))


def _cells(line: str) -> tuple[str, ...]:
    if line.startswith("|") and line.endswith("|") and len(line) > 1:
        line = line[1:-1]
    return tuple(cell.strip() for cell in _BAR.split(line))
