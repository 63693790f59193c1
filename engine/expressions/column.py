"""Filters over columns of mappings: the machine where it can decide, the exact evaluator where it cannot."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import numpy as np
from numpy.typing import NDArray
from pyoxigraph import Variable

from oxiseq.engine.expressions.exists import Ask, graph_of, holds_with
from oxiseq.engine.expressions.program import compile_program
from oxiseq.engine.kernels.expressions.machine import TRUE, UNDECIDED, truth_column
from oxiseq.engine.terms.dictionary import TermDictionary
from oxiseq.grammar.algebra import Expression
from oxiseq.grammar.scope import exists_in, expression_variables


def holding(
    conditions: Iterable[Expression],
    columns: Mapping[Variable, NDArray[np.uint32]],
    count: int,
    terms: TermDictionary,
    ask: Ask | None = None,
) -> NDArray[np.bool_]:
    """bool[count]: which mappings pass all conditions. `columns`: u32[count] term ids by variable; `ask` answers the
    EXISTS of stateful filters."""
    kept = np.ones(count, np.bool_)
    for condition in conditions:
        if count:
            kept &= _holding(condition, columns, count, terms, ask)
    return kept


def _holding(
    condition: Expression,
    columns: Mapping[Variable, NDArray[np.uint32]],
    count: int,
    terms: TermDictionary,
    ask: Ask | None,
) -> NDArray[np.bool_]:
    used = expression_variables(condition).union(graph_of(e.gpm) for e in exists_in(condition) if e.given is not None)
    variables = sorted((v for v in used if v in columns), key=str)
    places = dict.fromkeys(used, 0)
    places |= {v: 1 + i for i, v in enumerate(variables)}
    table = np.zeros((count, 1 + len(variables)), np.int64)  # column 0 stays unbound
    for i, v in enumerate(variables):
        table[:, 1 + i] = columns[v]
    code = np.ascontiguousarray(compile_program(condition, places, terms).code, np.int32)
    out = truth_column(code, 0, len(code), table, *terms.columns)
    decided: dict[tuple[int, ...], bool] = {}
    for r in np.flatnonzero(out == UNDECIDED):
        ids = tuple(int(x) for x in table[r, 1:])
        if ids not in decided:
            decided[ids] = holds_with(condition, dict(zip(variables, ids, strict=True)), terms, ask)
        out[r] = decided[ids]
    passed: NDArray[np.bool_] = out == TRUE
    return passed
