"""Per graph pattern: how many events it saw, and how many were left after each of its parts."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray
from pyoxigraph import Variable

from oxiseq.engine.events.batch import EventBatch
from oxiseq.engine.expressions.exact import holds
from oxiseq.engine.kb import KnowledgeBase
from oxiseq.engine.matching.enrich import KbPattern
from oxiseq.engine.patterns.matcher import Occurrences, StreamMatcher
from oxiseq.engine.patterns.plan import GpmRequest, compile_stream
from oxiseq.engine.terms.texts import Term
from oxiseq.grammar.algebra import Expression, Group, Query, TriplePattern
from oxiseq.grammar.places import split_gpms
from oxiseq.grammar.render_sparql import SparqlWriter
from oxiseq.grammar.scope import GpmParts, expression_variables
from oxiseq.languages.reasons.near import distance
from oxiseq.languages.reasons.read import History
from oxiseq.languages.reasons.report import SHOWN, Funnel, Miss, Step


def funnels(query: Query, history: History, kb: KnowledgeBase) -> Iterator[Funnel]:
    """One per GPM, in the text's order. Raises KbError, LimitError."""
    iris = {s.name: s.iri.value for s in query.streams}
    write = SparqlWriter(dict(query.prefixes))
    parts = split_gpms(query)
    for gpm in query.gpms:
        batch = history.batches[iris[gpm.stream]]
        steps = tuple(_Funnel(parts[gpm.name], batch, history, kb, write).steps()) if len(batch) else ()
        yield Funnel(gpm.name, gpm.stream, len(batch), steps)


class _Funnel:
    def __init__(
        self, parts: GpmParts, batch: EventBatch, history: History, kb: KnowledgeBase, write: SparqlWriter
    ) -> None:
        self.parts = parts
        self.batch, self.history, self.kb, self.write = batch, history, kb, write
        self.left = np.ones(len(batch), np.bool_)

    def steps(self) -> Iterator[Step]:
        parts = self.parts
        plain = [e for e in parts.pattern.elements if isinstance(e, TriplePattern)]
        variables = parts.pattern_variables
        alone = [GpmRequest("", self._bare(Group((e,))), ()) for e in plain]
        filters = [parts.filters[:n] for n in range(len(parts.filters) + 1)]
        whole = [GpmRequest("", replace(parts, filters=each), variables) for each in filters]
        found = StreamMatcher(compile_stream([*alone, *whole], self.history.terms), self.history.terms, self.kb).match(
            self.batch
        )
        if plain:
            for each in found[: len(plain)]:
                self.left &= self._events(each.event)
            each_of = f"each of {len(plain)} patterns" if len(plain) > 1 else "its pattern"
            yield Step("constants", f"a triple for {each_of}", int(self.left.sum()))
        rows = found[len(plain) :]
        yield self._step("pattern", "the graph pattern", rows[0].event, None, ())
        for number, condition in enumerate(parts.filters):
            yield self._step(
                "filter",
                self.write.expression(condition),
                rows[number + 1].event,
                rows[number],
                _named(condition),
                condition,
            )
        if parts.kb is not None:
            yield from self._with_kb(rows[-1])

    def _bare(self, pattern: Group) -> GpmParts:
        return replace(self.parts, pattern=pattern, filters=(), kb=None, kb_filters=(), stateful=(), in_place=False)

    def _events(self, event: NDArray[np.int64]) -> NDArray[np.bool_]:
        mask = np.zeros(len(self.batch), np.bool_)
        mask[event] = True
        return mask

    def _step(
        self,
        kind: str,
        text: str,
        event: NDArray[np.int64],
        before: Occurrences | None,
        shown: Sequence[Variable],
        condition: Expression | None = None,
    ) -> Step:
        mask = self._events(event)
        stopped = np.flatnonzero(self.left & ~mask)
        if before is not None and condition is not None:
            stopped = self._nearest_first(before, stopped, shown, condition)
        self.left = mask
        misses = tuple(Miss(int(self.batch.time[i]), self._values(before, int(i), shown)) for i in stopped[:SHOWN])
        return Step(kind, text, int(mask.sum()), misses)

    def _nearest_first(
        self, rows: Occurrences, stopped: NDArray[np.int64], shown: Sequence[Variable], condition: Expression
    ) -> NDArray[np.int64]:
        """Events by how close the values of their first row come; each combination of values is tried once."""
        variables = [v for v in shown if v in self.parts.pattern_variables]
        columns = [self.parts.pattern_variables.index(v) for v in variables]
        ids = rows.values[np.searchsorted(rows.event, stopped)][:, columns]
        distinct, place = np.unique(ids, axis=0, return_inverse=True)
        bound = (
            {v: self.history.terms.term(i) for v, i in zip(variables, row, strict=True) if i}
            for row in distinct.tolist()
        )
        far = np.array([distance(condition, mapping) for mapping in bound])
        return stopped[np.argsort(far[place.reshape(-1)], kind="stable")]

    def _values(self, rows: Occurrences | None, event: int, shown: Sequence[Variable]) -> dict[str, Term | None]:
        if rows is None:
            return {}
        row = rows.values[int(np.searchsorted(rows.event, event))]
        places = {v: i for i, v in enumerate(self.parts.pattern_variables)}
        return {v.value: self._term(int(row[places[v]])) for v in shown if v in places}

    def _term(self, i: int) -> Term | None:
        return self.history.terms.term(i) if i else None

    def _with_kb(self, rows: Occurrences) -> Iterator[Step]:
        parts, variables = self.parts, self.parts.pattern_variables
        assert parts.kb is not None
        shared = tuple(v for v in parts.kb_variables if v in variables)
        pattern = KbPattern(parts.kb, shared, self.history.terms)
        answer = pattern.answer(self.kb)
        row, kb_row = answer.join(rows.values[:, [variables.index(v) for v in shared]])
        on = f" on {' '.join(f'?{v.value}' for v in shared)}" if shared else ""
        yield self._step("kb", f"the knowledge base{on}", rows.event[row], rows, shared)
        event, pairs = rows.event[row], list(zip(row.tolist(), kb_row.tolist(), strict=True))
        for condition in parts.kb_filters:
            kept = [
                i
                for i, pair in enumerate(pairs)
                if holds(condition, self._joined(rows, answer.columns, pattern.variables, pair))
            ]
            values = self._kb_values(rows, answer.columns, pattern.variables, pairs, event, _named(condition))
            step = self._step("kb filter", self.write.expression(condition), event[kept], None, ())
            misses = tuple(replace(miss, values=values.get(miss.time, {})) for miss in step.misses)
            yield replace(step, misses=misses)
            event, pairs = event[kept], [pairs[i] for i in kept]

    def _joined(
        self, rows: Occurrences, columns: NDArray[np.uint32], names: Sequence[Variable], pair: tuple[int, int]
    ) -> dict[Variable, Term]:
        """The mapping of a row joined with a row of the KB."""
        mapping = dict(zip(names, columns[pair[1]].tolist(), strict=True))
        own = zip(self.parts.pattern_variables, rows.values[pair[0]].tolist(), strict=False)
        mapping |= {v: i for v, i in own if i}
        return {v: self.history.terms.term(i) for v, i in mapping.items() if i}

    def _kb_values(
        self,
        rows: Occurrences,
        columns: NDArray[np.uint32],
        names: Sequence[Variable],
        pairs: Sequence[tuple[int, int]],
        event: NDArray[np.int64],
        shown: Sequence[Variable],
    ) -> dict[int, dict[str, Term | None]]:
        """By time, what the first pair of an event binds."""
        found: dict[int, dict[str, Term | None]] = {}
        for pair, number in zip(pairs, event.tolist(), strict=True):
            time = int(self.batch.time[number])
            if time not in found:
                mapping = self._joined(rows, columns, names, pair)
                found[time] = {v.value: mapping.get(v) for v in shown}
        return found


def _named(condition: Expression) -> tuple[Variable, ...]:
    return tuple(sorted(expression_variables(condition), key=lambda v: v.value))
