"""Why an EP-SPARQL query has answers or not."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

import numpy as np

from oxiseq.grammar.algebra import GraphPattern, Group, PatternElement
from oxiseq.grammar.render import render_group
from oxiseq.grammar.render_sparql import SparqlWriter
from oxiseq.languages.epsparql.reasons.asking import Source, intervals_of
from oxiseq.languages.reasons.provenance import Provenance
from oxiseq.languages.reasons.read import Span
from oxiseq.languages.reasons.report import SHOWN, Funnel, Reason, Stage, Step, Why, Wording
from oxiseq.languages.reasons.where.contents import Contents
from oxiseq.languages.reasons.where.origins import Origins
from oxiseq.languages.reasons.where.parts import asked_alone, parts
from oxiseq.languages.reasons.where.reasons import counted, reasons
from oxiseq.languages.reasons.where.relax import Relaxation, relaxations
from oxiseq.languages.reasons.where.rows import MOST, Rows

_WORDING = Wording("patterns")


def why_intervals(source: Source, provenance: int = SHOWN) -> Why:
    """Of a history. Raises OxiseqError as `run` does, KbError, LimitError."""
    history, faults = intervals_of(source.history)
    source = replace(source, history=history)
    query, prefixes = source.query, dict(source.query.prefixes)
    told = source.whole()
    ladder = parts(query.where, prefixes)
    rows = [source.part(part.where) for part in ladder]
    stages = tuple(Stage(part.text, len(each), each.more) for part, each in zip(ladder, rows, strict=True))
    stopped = _stopped(rows)
    found: list[Reason] = []
    if ladder:
        at = len(ladder) - 1 if stopped is None else stopped
        found = sorted(_reasons(source, relaxations(ladder[at], prefixes), rows[at]), key=lambda r: -r.matches)
    return Why(
        tuple(_funnels(source)),
        stages,
        None if stopped is None else ladder[stopped].text,
        tuple(found),
        len(told),
        told.more,
        source.history.late,
        tuple(_provenances(source, told, provenance)),
        "epsparql",
        notes=faults.lines,
        wording=_WORDING,
    )


def _stopped(rows: Sequence[Rows]) -> int | None:
    """The first part from which on there are no rows. Parts before may have none either: what only the knowledge base
    says has no time, and is no answer by itself."""
    with_rows = [number for number, each in enumerate(rows) if len(each)]
    first = with_rows[-1] + 1 if with_rows else 0
    return first if first < len(rows) else None


def _reasons(source: Source, each: Iterator[Relaxation], strict: Rows) -> Iterator[Reason]:
    def times(relaxation: Relaxation, rows: Rows, index: int) -> dict[str, tuple[int, ...]]:
        assert rows.spans is not None, "rows of EP-SPARQL have intervals"
        return {"row": tuple(rows.spans[index].tolist())}

    return reasons(each, strict, source.part, source.history.terms, times)


# --- patterns by themselves -----------------------------------------------------------------------


def _funnels(source: Source) -> Iterator[Funnel]:
    writer = SparqlWriter(dict(source.query.prefixes))
    for iri, batch in source.history.batches.items():
        distinct = len(np.unique(np.stack(batch.ids, axis=1), axis=0))
        yield Funnel("the query", f"<{iri}>", len(batch), (Step("holds", "different triples", distinct),))
    each = [_alone(source, holder, element, writer) for holder, element in asked_alone(source.query.where)]
    yield Funnel("patterns, each alone", "", 0, tuple(each))
    if source.rules:
        rows = [len(source.part(rule.where)) for rule in source.rules]
        derived = tuple(counted(number, "row", f"of rule {n + 1}", MOST) for n, number in enumerate(rows))
        yield Funnel("rules", "", 0, derived)


def _alone(source: Source, holder: PatternElement | None, element: PatternElement, writer: SparqlWriter) -> Step:
    where = replace(holder, pattern=Group((element,))) if isinstance(holder, GraphPattern) else element
    text = " ".join(writer.element(where, "").split()).removesuffix(" .").replace(" . }", " }")
    if isinstance(where, GraphPattern):  # rows without a time are no answer of a query over streams
        found = source.kb.solutions(f"SELECT * WHERE {render_group(Group((where,)))} LIMIT {MOST}")
        return counted(sum(1 for _ in found), "row", f"of {text}", MOST)
    rows = source.part(Group((where,)))
    return counted(len(rows), "row", f"of {text}", MOST)


# --- what answers were made of --------------------------------------------------------------------


def _provenances(source: Source, told: Rows, most: int) -> Iterator[Provenance]:
    """Of the first answers: the events in an answer's interval that have a triple of it. What rules derive is in no
    event, so no reason is given for that."""
    if not len(told) or not most:
        return
    rows, terms, where = source.part(source.query.where), source.history.terms, source.query.where
    for index in range(min(most, len(told), MOST)):
        assert told.spans is not None, "rows of EP-SPARQL have intervals"
        start, end = told.spans[index].tolist()
        origins = Origins(Contents.within(source.history, Span(start, end + 1)), terms, source.kb, beside=True)
        answer = told.bound(index)
        behind = [
            row
            for i, row in enumerate(map(rows.bound, range(len(rows))))
            if _same(rows, i, (start, end)) and all(row.get(n, v) == v for n, v in answer.items())
        ]
        yield origins.provenance(end, where, {n: terms.term(i) for n, i in answer.items()}, behind)


def _same(rows: Rows, index: int, span: tuple[int, int]) -> bool:
    return rows.spans is not None and tuple(rows.spans[index].tolist()) == span
