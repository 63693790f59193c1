"""What expressions read of whole matches besides variables, as columns of ids: times, numbers of iterations,
aggregates over them.

In the flow: rows of matches → **columns** → FILTERs behind SEQ, SELECT expressions (compute.py). Sums of whole numbers
are computed for all matches at once; any other aggregate once for each list of values.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Final

import numpy as np
from numpy.typing import NDArray
from pyoxigraph import BlankNode, Literal, NamedNode, Variable

from oxiseq.engine import kinds
from oxiseq.engine.events.time import to_duration_literal, to_literal
from oxiseq.engine.expressions.aggregate import aggregate, average
from oxiseq.engine.expressions.exact import ExpressionError
from oxiseq.engine.expressions.functions import is_pure
from oxiseq.engine.plan.answer import Iterations
from oxiseq.engine.plan.query import QueryPlan
from oxiseq.engine.terms.dictionary import TermDictionary
from oxiseq.engine.terms.texts import Term
from oxiseq.grammar.algebra import Aggregate, MatchFunction
from oxiseq.grammar.records import dataclass
from oxiseq.grammar.scope import expression_variables

I64 = NDArray[np.int64]
Ids = NDArray[np.uint32]
_INTEGER: Final = NamedNode("http://www.w3.org/2001/XMLSchema#integer")
_MOST: Final = 1 << 62
"""Sums below this are exact, whatever the order of their summands."""


@dataclass(frozen=True, slots=True, eq=False)
class MatchRows:
    """Resolved values of matches (u32[n, v]) and their rows: values u32[f, v], ends i64[n + 1], letter i32[f],
    time i64[f]; at: i64[n], when each match is decided; dropped: i64[n], before each by SUPPRESS, if known."""

    resolved: Ids
    values: Ids
    ends: I64
    letter: NDArray[np.int32]
    time: I64
    at: I64
    dropped: I64 | None = None

    def __len__(self) -> int:
        return len(self.resolved)


class PartColumns:
    """Columns of one query. `index`: the column of each variable."""

    def __init__(self, plan: QueryPlan, index: dict[Variable, int], terms: TermDictionary) -> None:
        self._plan, self._index, self._terms = plan, index, terms
        self._letters = [plan.letter for plan in plan.letters]

    def of(self, part: MatchFunction | Aggregate, matches: MatchRows) -> Ids:
        """u32[n]: the id of what the part is in each match; 0: unbound, or an error."""
        if isinstance(part, Aggregate):
            return self._aggregates(part, matches)
        first, last = matches.time[matches.ends[:-1]], matches.time[matches.ends[1:] - 1]
        match part.name:
            case "STARTTIME":
                return self._ids(first, to_literal)
            case "ENDTIME":
                return self._ids(last, to_literal)
            case "DETECTTIME":
                return self._ids(matches.at, to_literal)
            case "DURATION":
                return self._ids(last - first, to_duration_literal)
            case "SUPPRESSED":
                dropped = matches.dropped
                return np.zeros(len(matches), np.uint32) if dropped is None else self._ids(dropped, integer)
        assert part.gpm is not None
        rows, ends = self._rows_of(part.gpm, matches)
        count = np.diff(ends)
        if part.name == "COUNT":
            return self._ids(count, integer)
        found = np.zeros(len(matches), np.uint32)
        there = count > 0
        found[there] = self._ids(matches.time[rows[ends[1:][there] - 1]], to_literal)
        return found

    def _ids(self, values: I64, term: Callable[[int], Term]) -> Ids:
        """Of the terms of some numbers."""
        distinct, which = np.unique(values, return_inverse=True)
        ids: Ids = self._terms.intern_all(map(term, distinct.tolist()))[which]
        return ids

    def _rows_of(self, name: str, matches: MatchRows) -> tuple[I64, I64]:
        """The rows of a GPM, one match after the other, and where those of each end: i64[n + 1]."""
        named = np.array([name in letter for letter in self._letters], np.bool_)[matches.letter]
        return np.flatnonzero(named), np.concatenate([[0], np.cumsum(named)])[matches.ends]

    def _aggregates(self, part: Aggregate, matches: MatchRows) -> Ids:
        iterations = self._plan.runner.written.iterations[part]
        rows, ends = self._rows_of(iterations.gpm, matches)
        variables = sorted(expression_variables(part), key=str)
        columns = [self._values(variable, iterations, matches, rows, ends) for variable in variables]
        if part.name in ("SUM", "AVG") and not part.distinct and isinstance(part.arg, Variable):
            sums = self._sums(columns[0], ends)
            if sums is not None:
                return self._ids(sums, integer) if part.name == "SUM" else self._averages(sums, np.diff(ends))
        table = np.stack(columns, axis=1) if columns else np.zeros((len(rows), 0), np.uint32)
        return self._one_by_one(part, variables, table, ends)

    def _values(self, variable: Variable, iterations: Iterations, matches: MatchRows, rows: I64, ends: I64) -> Ids:
        """The ids of a variable in all rows of a GPM."""
        at = self._index.get(variable)
        if at is None:
            return np.zeros(len(rows), np.uint32)
        if variable in iterations.variables:
            found: Ids = matches.values[rows, at]
            return found
        return np.repeat(matches.resolved[:, at], np.diff(ends))

    def _sums(self, ids: Ids, ends: I64) -> I64 | None:
        """Of whole numbers; None: not all are, or they are too large."""
        columns = self._terms.columns
        if not ((columns.kind[ids] == kinds.INTEGER) & (columns.quality[ids] & kinds.EXACT_INTEGER != 0)).all():
            return None
        numbers = columns.exact[ids]
        if len(numbers) * float(np.abs(numbers.astype(np.float64)).max(initial=0)) >= _MOST:
            return None
        before = np.concatenate([[0], np.cumsum(numbers)])
        sums: I64 = before[ends[1:]] - before[ends[:-1]]
        return sums

    def _averages(self, sums: I64, counts: I64) -> Ids:
        """Of sums of so many values."""
        distinct, which = np.unique(np.stack([sums, counts], axis=1), axis=0, return_inverse=True)
        terms = (average(integer(total), count) for total, count in distinct.tolist())
        ids: Ids = self._terms.intern_all(terms)[which.reshape(-1)]
        return ids

    def _one_by_one(self, part: Aggregate, variables: Sequence[Variable], ids: Ids, ends: I64) -> Ids:
        """The aggregate over each match's rows of `ids`, u32[rows, variables]; equal lists of values once."""
        known: dict[tuple[int, bytes], int] = {}
        repeats = is_pure(part)
        found = np.zeros(len(ends) - 1, np.uint32)
        for m, (low, high) in enumerate(zip(ends[:-1].tolist(), ends[1:].tolist(), strict=True)):
            values = ids[low:high]
            key = (len(values), values.tobytes()) if repeats else (-1 - m, b"")
            if key not in known:
                known[key] = self._aggregate(part, variables, values)
            found[m] = known[key]
        return found

    def _aggregate(self, part: Aggregate, variables: Sequence[Variable], values: Ids) -> int:
        ids: dict[Term, int] = {}
        mappings = []
        for row in values.tolist():
            mapping = {variable: self._terms.term(i) for variable, i in zip(variables, row, strict=True) if i}
            ids |= zip(mapping.values(), filter(None, row), strict=True)
            mappings.append(mapping)
        try:
            return id_of(aggregate(part, mappings), ids, self._terms)
        except ExpressionError:
            return 0


def id_of(term: Term, known: Mapping[Term, int], terms: TermDictionary) -> int:
    """The id of a computed term; a blank node that it is made of keeps its own, one from BNODE() is new."""
    return terms.computed(term, {each.value: i for each, i in known.items() if isinstance(each, BlankNode)})


def integer(number: int) -> Literal:
    """An xsd:integer."""
    return Literal(str(number), datatype=_INTEGER)
