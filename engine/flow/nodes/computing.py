"""FILTER and BIND: conditions and values of expressions, row by row.

Where it stands: what reads columns alone is for the stack machine (matching/conditions.py); what that lacks, and all
values, the exact evaluator is asked, once per distinct row of what an expression reads.
"""

from __future__ import annotations

from typing import Final

import numpy as np
from pyoxigraph import BlankNode, Variable

from oxiseq.engine.expressions.exact import ExpressionError, evaluate
from oxiseq.engine.flow import plan as p
from oxiseq.engine.flow.delta import Buffer, Delta, Ids
from oxiseq.engine.flow.nodes.node import Chosen, Node
from oxiseq.engine.flow.rewriting import UNBOUND
from oxiseq.engine.flow.times import ids_in, known_rows, saved_rows, times_at
from oxiseq.engine.matching.conditions import ConditionFilter, condition
from oxiseq.engine.terms.dictionary import TermDictionary
from oxiseq.engine.terms.saved import KnownTerms, SavedTerms, State
from oxiseq.engine.terms.texts import Term
from oxiseq.grammar.algebra import Expression
from oxiseq.grammar.scope import expression_variables

_MOST_KNOWN: Final = 1 << 16
"""Values that are remembered; then all are forgotten."""


class Filter(Node):
    def __init__(self, form: p.Filter, child: Buffer, terms: TermDictionary) -> None:
        super().__init__(child.width, (child,))
        names = [*(p.column(i) for i in range(child.width)), UNBOUND]
        self._conditions = ConditionFilter([condition(each) for each in form.conditions], names, terms)
        self._unbound = any(UNBOUND in expression_variables(each) for each in form.conditions)

    def step(self) -> None:
        delta = self.inputs[0].delta
        rows = delta.rows
        if self._unbound:
            rows = np.column_stack([rows, np.zeros(len(rows), np.uint32)])
        keep = self._conditions.keep(rows)
        self.out.put(delta if keep.all() else delta.take(keep))


class Extend(Node):
    """With a function that answers otherwise each time the values are kept, one for all equal rows: it is needed again
    when a row goes."""

    def __init__(self, form: p.Extend, child: Buffer, terms: TermDictionary) -> None:
        super().__init__(child.width + 1, (child,))
        self._values = Computed(form.expression, terms)
        self._lifetime = form.lifetime
        self._drawn = None if p.is_pure(form.expression) else _Drawn(self._values, child)

    @property
    def records(self) -> int:
        return 0 if self._drawn is None else len(self._drawn)

    def step(self) -> None:
        delta = self.inputs[0].delta
        made = self._values.of(delta.rows) if self._drawn is None else self._drawn.of(delta)
        self.out.put(Delta(delta.at, delta.weight, np.column_stack([delta.rows, made])))

    @property
    def forgets(self) -> bool:
        return self._drawn is not None and self._lifetime is not None

    def forget(self, passed: int, *, now: bool = False) -> None:
        if self._drawn is not None and self._lifetime is not None:
            start, before = self._lifetime.start, passed - self._lifetime.limit
            self._drawn.keep(lambda rows: times_at(rows, start) >= before)

    def keep(self, chosen: Chosen) -> None:
        if self._drawn is not None:
            self._drawn.keep(chosen)

    def held_ids(self) -> list[Ids]:
        return [] if self._drawn is None else self._drawn.held_ids()

    def save(self, terms: SavedTerms) -> State:
        return {} if self._drawn is None else self._drawn.save(terms)

    def restore(self, state: State, terms: KnownTerms) -> None:
        if self._drawn is not None:
            self._drawn.restore(state, terms)


class Computed:
    """The values of an expression over a plan's columns."""

    def __init__(self, expression: Expression, terms: TermDictionary) -> None:
        self._expression, self._terms = expression, terms
        variables = sorted(expression_variables(expression) - {UNBOUND}, key=_place)
        self._variables: list[Variable] = variables
        self._places = [_place(v) for v in variables]
        self._pure = p.is_pure(expression)
        self._known: dict[bytes, int] = {}
        self._generation = terms.generation

    def of(self, rows: Ids) -> Ids:
        """u32[n]: the id of each row's value, 0 for an error. A pure one is asked for once per distinct row."""
        read = np.ascontiguousarray(rows[:, self._places])
        if not self._pure:
            found = np.array([self._value(row) for row in read.tolist()], np.uint32)
        else:
            found = self._remembered(read)
        self._terms.hold(found)
        return found

    def _remembered(self, read: Ids) -> Ids:
        if self._generation != self._terms.generation or len(self._known) > _MOST_KNOWN:
            self._known, self._generation = {}, self._terms.generation
        known = self._known
        if not read.shape[1]:
            if b"" not in known:
                known[b""] = self._value([])
            return np.full(len(read), known[b""], np.uint32)
        keys = read.view(f"V{4 * read.shape[1]}").reshape(-1).tolist()
        found = []
        for number, key in enumerate(keys):
            value = known.get(key)
            if value is None:
                value = known[key] = self._value(read[number].tolist())
            found.append(value)
        return np.array(found, np.uint32)

    def _value(self, ids: list[int]) -> int:
        leaves: dict[Variable, Term] = {}
        blanks: dict[str, int] = {}
        for variable, known in zip(self._variables, ids, strict=True):
            if known:
                leaves[variable] = term = self._terms.term(known)
                if isinstance(term, BlankNode):
                    blanks[term.value] = known
        try:
            value = evaluate(self._expression, leaves)
        except ExpressionError:
            return 0
        if isinstance(value, BlankNode):
            return blanks.get(value.value) or self._terms.blank()
        return self._terms.intern(value)


class _Drawn:
    """Values drawn once for each row that is there: row → weight, value."""

    def __init__(self, values: Computed, child: Buffer) -> None:
        self._values = values
        self._kept: dict[bytes, list[int]] = {}
        self._width, self._raw = child.width, child.raw

    def __len__(self) -> int:
        return len(self._kept)

    def of(self, delta: Delta) -> Ids:
        """The values of rows that come and go; at the end of a tick what has no weight is forgotten."""
        kept = self._kept
        found = np.zeros(len(delta), np.uint32)
        touched: dict[bytes, None] = {}
        for number, (at, weight) in enumerate(zip(delta.at.tolist(), delta.weight.tolist(), strict=True)):
            key = delta.rows[number].tobytes()
            entry = kept.get(key)
            if entry is None:
                entry = kept[key] = [0, int(self._values.of(delta.rows[number : number + 1])[0])]
            entry[0] += weight
            touched[key] = None
            found[number] = entry[1]
            if number + 1 == len(delta) or delta.at[number + 1] != at:
                for each in touched:
                    if not kept[each][0]:
                        del kept[each]
                touched = {}
        return found

    def keep(self, chosen: Chosen) -> None:
        """These alone."""
        keep = chosen(self._rows).tolist()
        self._kept = {key: entry for (key, entry), kept in zip(self._kept.items(), keep, strict=True) if kept}

    def held_ids(self) -> list[Ids]:
        """The terms of rows and values."""
        return [ids_in(self._rows, self._raw), self._drawn]

    @property
    def _rows(self) -> Ids:
        return np.frombuffer(bytearray(b"".join(self._kept)), np.uint32).reshape(len(self._kept), self._width)

    @property
    def _drawn(self) -> Ids:
        return np.array([value for _, value in self._kept.values()], np.uint32)

    def save(self, terms: SavedTerms) -> State:
        """All rows with their values, in the order in which they came."""
        rows, values = saved_rows(self._rows, self._raw, terms), terms.ids(self._drawn)
        weights = np.array([weight for weight, _ in self._kept.values()], np.int64)
        return {"rows": rows, "values": values, "weights": weights}

    def restore(self, state: State, terms: KnownTerms) -> None:
        """Go on from a saved state."""
        weights = state["weights"].tolist()
        rows = known_rows(np.asarray(state["rows"]).reshape(len(weights), self._width), self._raw, terms)
        values = terms.ids(state["values"]).tolist()
        self._kept = {
            np.ascontiguousarray(row).tobytes(): [weight, value]
            for row, weight, value in zip(rows, weights, values, strict=True)
        }


def _place(variable: Variable) -> int:
    """The place of a plan's column."""
    return int(variable.value[1:])
