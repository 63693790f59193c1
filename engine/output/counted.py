"""A run's counts → entries of groups, by the instant, or the window, in which matches end.

In the flow: counts of a run → **entries** → groups (summaries.py). The values written for a match (keys, arguments) are
computed once for each set of values that a run distinguishes.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from pyoxigraph import BlankNode, Variable

from oxiseq.engine.events.time import to_literal
from oxiseq.engine.expressions.exact import ExpressionError, Leaf, evaluate
from oxiseq.engine.output.entries import Entry, Instant, InstantNumbers
from oxiseq.engine.plan.summary import SummaryPlan
from oxiseq.engine.sequence.counts import Counts
from oxiseq.engine.sequence.states import RUN_START, Value
from oxiseq.engine.sequence.tables import SequenceTables
from oxiseq.engine.terms.dictionary import TermDictionary
from oxiseq.engine.terms.texts import Term
from oxiseq.grammar.algebra import Aggregate, Expression, MatchFunction
from oxiseq.grammar.records import dataclass
from oxiseq.grammar.scope import subexpressions


@dataclass(frozen=True, slots=True)
class _Slots:
    """Where an edge's key has the values by which counts are distinguished; `start`: the clock of the match's start."""

    of_name: dict[Variable, int]
    start: int | None

    @classmethod
    def of(cls, key: tuple[Value, ...]) -> _Slots:
        # of several values of one variable the innermost counts: it comes last
        names = {value.variable: slot for slot, value in enumerate(key) if value.variable is not None}
        return cls(names, key.index(RUN_START) if RUN_START in key else None)


class CountedEntries:
    """Turns the counts of one query's run into entries."""

    def __init__(self, summary: SummaryPlan, compiled: SequenceTables, terms: TermDictionary) -> None:
        self._summary = summary
        self._slots = [_Slots.of(key) for key in compiled.keys]
        self._terms = terms

    def instants(self, found: Counts, start: int, numbers: InstantNumbers | None) -> Iterator[Instant]:
        """The counts by their ends, in order. `start`: the window's t; `numbers`: where clocks are not times."""
        entries: dict[int, dict[tuple[object, ...], Entry]] = {}
        rows = zip(found.bucket.tolist(), found.edge.tolist(), found.key.tolist(), found.numbers.tolist(), strict=True)
        for bucket, edge, key, times in rows:
            entry = self._entry(edge, key, bucket, times)
            same = entries.setdefault(bucket, {})
            known = same.get(entry[:3])
            same[entry[:3]] = entry if known is None else known._replace(times=known.times + times)
        window = self._summary.window
        for bucket in sorted(entries):
            clock = bucket
            if self._summary.by_window and window is not None:
                clock = start + bucket * window.size
            time = clock if numbers is None else numbers.time(clock)
            yield Instant(time, clock, list(entries[bucket].values()))

    def _entry(self, edge: int, key: Sequence[int], end: int, times: int) -> Entry:
        slots = self._slots[edge]
        start = key[slots.start] if slots.start is not None else 0
        written = tuple(
            [
                (key[slots.of_name[e]] if e in slots.of_name else 0)
                if isinstance(e, Variable)
                else self._written(e, slots, key, start, end)
                for e in self._summary.written
            ]
        )
        keys = len(self._summary.keys)
        return Entry(start, written[:keys], written[keys:], times)

    def _written(self, expression: Expression, slots: _Slots, key: Sequence[int], start: int, end: int) -> int:
        leaves: dict[Leaf, Term] = {}
        blanks: dict[str, int] = {}
        for part in subexpressions(expression):
            match part:
                case Variable():
                    variable = part
                case Aggregate("LAST", Variable() as variable):
                    pass
                case MatchFunction(name):
                    leaves[part] = to_literal(start if name == "STARTTIME" else end)
                    continue
                case _:
                    continue
            if i := key[slots.of_name[variable]] if variable in slots.of_name else 0:
                leaves[part] = term = self._terms.term(i)
                if isinstance(term, BlankNode):
                    blanks[term.value] = i
        try:
            term = evaluate(expression, leaves)
        except ExpressionError:
            return 0
        return self._terms.computed(term, blanks)
