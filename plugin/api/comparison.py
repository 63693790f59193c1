"""Comparison of two queries over the same events: the matches that a draft gains and loses."""

from __future__ import annotations

from collections.abc import Mapping
from html import escape
from typing import Any

from oxiseq.engine.errors import LimitError, OxiseqError
from oxiseq.engine.events.faults import Faults
from oxiseq.grammar.languages import AnyQuery
from oxiseq.grammar.records import dataclass
from oxiseq.languages.driving import Driver
from oxiseq.languages.reasons.read import FREE, Bounds
from oxiseq.languages.registry import check_kb, language_for
from oxiseq.matches.rows import EVENTS, Row, cell_text, row_of, surplus
from oxiseq.options import Options, fitting
from oxiseq.options.query_text import QueryText
from oxiseq.sources.knowledge import Asked, Kb, kb_store
from oxiseq.sources.warned import warn_unread


@dataclass(frozen=True, slots=True)
class Comparison:
    """Rows by which two queries differ: those that only the draft has, those that only the other has, in order of
    time; `kept` is how many both have. Compared are `columns`: `at` and the variables that both answer.
    `notes`: events that either leaves out."""

    columns: tuple[str, ...]
    gained: tuple[Row, ...]
    lost: tuple[Row, ...]
    kept: int
    notes: tuple[str, ...] = ()

    def to_json(self) -> dict[str, Any]:
        """As JSON values; terms as N-Triples, times as xsd:dateTime."""
        rows = {
            name: [{c: cell_text(row.get(c)) for c in self.columns} for row in each]
            for name, each in (("gained", self.gained), ("lost", self.lost))
        }
        return {"columns": list(self.columns), "kept": self.kept, **rows, "notes": list(self.notes)}

    def __str__(self) -> str:
        lines = [f"{len(self.gained)} gained, {len(self.lost)} lost, {self.kept} kept", " ".join(self.columns)]
        for mark, rows in (("+", self.gained), ("-", self.lost)):
            lines += [f"{mark} {' '.join(cell_text(row.get(c)) or '-' for c in self.columns)}" for row in rows]
        lines += self.notes
        return "\n".join(lines) + "\n"

    def _repr_html_(self) -> str:
        return f"<pre>{escape(str(self))}</pre>"


def difference(
    draft: QueryText, against: QueryText, streams: Mapping[str, Any], kb: Kb, options: Options
) -> Comparison:
    """Two queries over the same whole streams (no iterators: they are read twice). A stream that neither reads is left
    out, with a warning. Raises QueryError, EventError, KbError; OxiseqError where the answers have nothing in common.
    """
    queries = draft.algebra, against.algebra
    mine = fitting(draft.language, options)
    read = [_names(language_for(q).driver(q, None, o).streams) for q, o in zip(queries, (mine, options), strict=True)]
    for name in streams:
        if not any(name in names for names in read):
            warn_unread(name, {iri: iri for names in read for iri in names.values()})
    return compared(*queries, streams, kb, options, mine)


def compared(
    draft: AnyQuery,
    against: AnyQuery,
    streams: Mapping[str, Any],
    kb: Kb,
    options: Options,
    draft_options: Options | None = None,
    bounds: Bounds = FREE,
) -> Comparison:
    """The same of checked queries; a stream that only one of them reads is given to that one. `draft_options`: those of
    the draft, where they are others. Raises LimitError beyond what `bounds` allows."""
    store = kb if kb is None or isinstance(kb, Asked) else kb_store(kb)
    mine, new, left = _rows(draft, streams, store, draft_options or options, bounds)
    theirs, old, other_left = _rows(against, streams, store, options, bounds)
    columns = ("at", *(v for v in mine if v in theirs))
    if len(columns) == 1 and mine and theirs:
        raise OxiseqError(f"the answers have no variable in common: {', '.join(mine)} and {', '.join(theirs)}")
    gained, lost = surplus(new, old, columns), surplus(old, new, columns)
    notes = (*(f"the draft: {line}" for line in left.lines), *(f"the other: {line}" for line in other_left.lines))
    return Comparison(columns, gained, lost, len(new) - len(gained), notes)


def _rows(
    query: AnyQuery, streams: Mapping[str, Any], kb: Kb, options: Options, bounds: Bounds
) -> tuple[tuple[str, ...], list[dict[str, Any]], Faults]:
    """Variables, rows in order of time, what was left out."""
    language = language_for(query)
    check_kb(language, kb)
    driver: Driver = language.driver(query, kb, options)
    language.prepare()
    names = _names(driver.streams)
    for name, events in streams.items():
        if name in names:
            driver.attach(names[name], events, options.on_error, options.time_predicate)
    rows: list[tuple[int, dict[str, Any]]] = []
    for batch in driver.batches(bounds.check):
        if bounds.matches is not None and len(rows) + len(batch) > bounds.matches:
            raise LimitError(len(rows) + len(batch), bounds.matches, "matches of a query that is compared")
        block = driver.shape.block([batch])
        for match in map(block.match, range(len(block))):
            row = {k: v for k, v in row_of(match).items() if not k.startswith(EVENTS)}
            rows.append((match.at_us, row))
    ordered = [row for _, row in sorted(rows, key=lambda each: each[0])]
    return driver.shape.variables, ordered, driver.run.faults


def _names(streams: Mapping[str, str]) -> dict[str, str]:
    """Name or IRI → IRI."""
    return {**{iri: iri for iri in streams.values()}, **streams}
