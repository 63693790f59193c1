"""What failed, for people."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from pyoxigraph import Literal, NamedNode

from oxiseq.engine.terms.texts import term_text
from oxiseq.matches.rows import Cell, Row, Times
from oxiseq.testing.cases import Case
from oxiseq.testing.compare import Difference
from oxiseq.testing.run import Failure, Result

_PLAIN = ("integer", "decimal", "double", "boolean")
_MOST = 20


def failure_text(result: Result, *, why: bool = True) -> str:
    """All failures of a case; with `why`, also why matches are missing, if that can be determined."""
    lines = [line for failure in result.failures for line in _failure(result.case, failure)]
    if why and any(f.difference is not None and _lacks(f.difference) for f in result.failures):
        from oxiseq.testing.reasons import reasons  # noqa: PLC0415  only failures need it

        lines += reasons(result)
    return "\n".join(lines)


def _lacks(difference: Difference) -> bool:
    return bool(difference.missing) or (difference.count or 0) > len(difference.extra)


def _failure(case: Case, failure: Failure) -> Iterator[str]:
    if failure.difference is None:
        yield f"{failure.where}: {failure.message}"
        return
    differs = failure.difference
    if differs.count is not None:
        yield f"{failure.where}: {differs.count} matches expected, but {len(differs.extra)} found"
        yield from _rows(case, differs.columns, [(" ", row) for row in differs.extra])
        return
    parts = [
        f"{len(rows)} {what}" for rows, what in ((differs.missing, "missing"), (differs.extra, "not expected")) if rows
    ]
    yield f"{failure.where}: {', '.join(parts)}"
    marked = [("-", row) for row in differs.missing] + [("+", row) for row in differs.extra]
    yield from _rows(case, differs.columns, marked)


def _rows(case: Case, columns: Sequence[str], rows: Sequence[tuple[str, Row]]) -> Iterator[str]:
    """`-` before what is missing, `+` before what was not expected."""
    if not rows:
        return
    cells = [[cell_text(case, row.get(name)) for name in columns] for _, row in rows[:_MOST]]
    widths = [max(map(len, column)) for column in zip(columns, *cells, strict=True)]

    def line(mark: str, texts: Sequence[str]) -> str:
        return f"  {mark} {' | '.join(text.ljust(w) for text, w in zip(texts, widths, strict=True))}".rstrip()

    yield line(" ", columns)
    yield from (line(mark, texts) for (mark, _), texts in zip(rows, cells, strict=False))
    if len(rows) > _MOST:
        yield f"    ... and {len(rows) - _MOST} more"


def cell_text(case: Case, cell: Cell) -> str:
    """A cell as a test would write it."""
    match cell:
        case None:
            return "-"
        case Times(of):
            return " ".join(case.written(t) for t in of)
        case int():
            return str(cell)
        case NamedNode():
            return short_iri(cell, case.words.prefixes)
        case Literal() if cell.datatype.value.rpartition("#")[2] in _PLAIN and "e" not in cell.value.lower():
            return cell.value
        case _:
            return term_text(cell)


def short_iri(iri: NamedNode, prefixes: object) -> str:
    """`:ann` where a prefix allows it, else `<...>`."""
    if isinstance(prefixes, dict):
        for name, namespace in prefixes.items():
            local = iri.value.removeprefix(namespace)
            if local != iri.value and local.replace("_", "a").replace("-", "a").isalnum():
                return f"{name}:{local}"
    return str(iri)
