"""FILTER and BIND: conditions and values of expressions, row by row.

In the flow: conditions on columns alone are for the stack machine (matching/conditions.py); for those that it lacks,
and for all values, the exact evaluator runs, once per distinct row of what an expression reads.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import numpy as np
from pyoxigraph import BlankNode, Variable

from oxiseq.engine.expressions.exact import ExpressionError, evaluate
from oxiseq.engine.expressions.functions import is_pure
from oxiseq.engine.flow.delta import I64, Buffer, Delta, Ids
from oxiseq.engine.flow.operators.node import ALL_TIME, Call, Chosen, KernelNode, Lifetime, Node
from oxiseq.engine.flow.operators.sources import column
from oxiseq.engine.flow.rewriting import UNBOUND
from oxiseq.engine.flow.times import ids_in, known_rows, times_at
from oxiseq.engine.kernels.flow import computing as k
from oxiseq.engine.kernels.flow.buffers import DONE, NEED_OUT, OVER
from oxiseq.engine.kernels.flow.computing import Sifting, sift
from oxiseq.engine.kernels.memory.pointers import Replaceable, call
from oxiseq.engine.matching.conditions import ConditionFilter, condition
from oxiseq.engine.terms.dictionary import TermDictionary
from oxiseq.engine.terms.saved import KnownTerms, SavedTerms, State, Stateful, spread
from oxiseq.engine.terms.texts import Term
from oxiseq.grammar.algebra import Expression
from oxiseq.grammar.records import dataclass
from oxiseq.grammar.scope import expression_variables


@dataclass(frozen=True, slots=True)
class Filter:
    """The rows for which all conditions hold. Without EXISTS."""

    child: int
    conditions: tuple[Expression, ...]


@dataclass(frozen=True, slots=True)
class Extend:
    """The rows with the value of an expression behind them, unbound where it is an error. Without EXISTS. lifetime: of
    values drawn once for equal rows."""

    child: int
    expression: Expression
    lifetime: Lifetime | None = None


_MOST_KNOWN: Final = 1 << 16
"""Values that are remembered; then all are forgotten."""
_MOST_LEARNED: Final = 1 << 18
"""The same of those in arrays: a hundred queries that differ in a constant of an expression have a hundred of each."""
_FIRST_KNOWN: Final = 16
"""Values that there is room for to begin with."""


def conditions_on(
    conditions: Sequence[Expression], width: int, terms: TermDictionary
) -> tuple[ConditionFilter, Sifting]:
    """Conditions on rows of so many columns, and as kernels take them."""
    names = [*(column(i) for i in range(width)), UNBOUND]
    found = ConditionFilter([condition(each) for each in conditions], names, terms)
    depth = max((int(code[1]) for code in found.programs), default=1)
    sifting = Sifting(
        next=np.zeros(1, np.int64),
        ends=np.cumsum([0, *map(len, found.programs)], dtype=np.int64),
        code=np.concatenate([np.zeros(0, np.int32), *found.programs]),
        values=np.zeros(width + 1, np.int64),
        numbers=np.zeros((depth, 2), np.float64),
        machine=np.zeros((depth, 4), np.int64),
        memo=np.zeros((1, 1), np.uint8),
    )
    return found, sifting


class FilterNode(KernelNode):
    def __init__(self, form: Filter, child: Buffer, terms: TermDictionary) -> None:
        super().__init__(child.width, (child,))
        self._conditions, sifting = conditions_on(form.conditions, child.width, terms)
        self._terms = terms
        self._memory = Replaceable(sifting)

    def call(self) -> Call:
        return Call(sift, (self._memory, self._terms, self.inputs[0], self.out))

    def provide(self, answer: int) -> None:
        """Undecided conditions are decided for the rest of the batch at once."""
        following, delta = self._memory.arrays.next, self.inputs[0].delta
        rest = slice(int(following[0]), len(delta))
        rows = delta.rows[rest]
        unbound = np.zeros((len(rows), 1), np.uint32)
        keep = np.flatnonzero(self._conditions.keep(np.concatenate([rows, unbound], axis=1)))
        self.out.append(Delta(delta.at[rest], delta.weight[rest], rows).take(keep))
        following[0] = len(delta)


class ExtendNode(Node):
    """With a function that answers otherwise each time the values are kept, one for all equal rows: it is needed again
    when a row goes."""

    made_of = (spread("_drawn"),)

    def __init__(self, form: Extend, child: Buffer, terms: TermDictionary, clock: I64 = ALL_TIME) -> None:
        super().__init__(child.width + 1, (child,))
        self._values = Computed(form.expression, terms)
        self._lifetime, self._clock = form.lifetime, clock
        self._drawn = None if is_pure(form.expression) else _Drawn(self._values, child)
        self._terms, self._generation = terms, terms.generation
        self._memory = Replaceable(self._empty())

    def _empty(self) -> k.Extending:
        places = np.array(self._values.places, np.int64)
        return k.Extending.allocate(values=_FIRST_KNOWN, width=len(places))._replace(places=places)

    @property
    def records(self) -> int:
        return 0 if self._drawn is None else len(self._drawn)

    def step(self) -> None:
        if self._drawn is None:
            self._forget_freed()
            self.go_on(call(k.extend, self._memory, self.inputs[0], self.out))
        else:
            self.forget()
            delta = self.inputs[0].delta
            rows = np.column_stack([delta.rows, self._drawn.of(delta)])
            self.out.put(Delta(delta.at, delta.weight, rows))

    def call(self) -> Call | None:
        if self._drawn is not None:
            return None
        self._forget_freed()
        return Call(k.extend, (self._memory, self.inputs[0], self.out))

    def go_on(self, answer: int) -> None:
        given, out = self.inputs[0], self.out
        while answer != DONE:
            if answer == NEED_OUT:
                out.grow()
            else:
                self._learn(given, len(out))
            answer = call(k.extend, self._memory, given, out)

    def _learn(self, given: Buffer, row: int) -> None:
        """Compute the value of a row of the batch."""
        value = self._values.value(given.delta.rows[row, self._values.places].tolist())
        memory = self._memory.arrays
        known, room = int(memory.count[0]), len(memory.values)
        if known == _MOST_LEARNED:
            self._memory.set(self._empty())
        elif known == room:
            self._memory.set(memory.grow("values"))
            call(k.fill_slots, self._memory)
        call(k.learn, self._memory, given, row, value)

    def _forget_freed(self) -> None:
        """Ids that have been freed may mean other terms now."""
        if self._generation != self._terms.generation:
            self._generation = self._terms.generation
            self._memory.set(self._empty())

    def forget(self, *, now: bool = False) -> None:
        if self._drawn is not None and self._lifetime is not None:
            start, before = self._lifetime.start, int(self._clock[OVER]) - self._lifetime.limit
            self._drawn.keep(lambda rows: times_at(rows, start) >= before)

    def keep(self, chosen: Chosen) -> None:
        if self._drawn is not None:
            self._drawn.keep(chosen)


class Computed:
    """The values of an expression over a plan's columns."""

    def __init__(self, expression: Expression, terms: TermDictionary) -> None:
        self._expression, self._terms = expression, terms
        variables = sorted(expression_variables(expression) - {UNBOUND}, key=_place)
        self._variables: list[Variable] = variables
        self.places = [_place(v) for v in variables]
        """The columns that it reads."""
        self._pure = is_pure(expression)
        self._known: dict[bytes, int] = {}
        self._generation = terms.generation

    def of(self, rows: Ids) -> Ids:
        """u32[n]: the id of each row's value, 0 for an error. A pure expression is evaluated once per distinct row."""
        read = np.ascontiguousarray(rows[:, self.places])
        if not self._pure:
            found = np.array([self.value(row) for row in read.tolist()], np.uint32)
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
                known[b""] = self.value([])
            return np.full(len(read), known[b""], np.uint32)
        keys = read.view(f"V{4 * read.shape[1]}").reshape(-1).tolist()
        found = []
        for number, key in enumerate(keys):
            value = known.get(key)
            if value is None:
                value = known[key] = self.value(read[number].tolist())
            found.append(value)
        return np.array(found, np.uint32)

    def value(self, ids: Sequence[int]) -> int:
        """The id of the value where the columns at `places` hold these; 0 for an error."""
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
        return self._terms.computed(value, blanks)


class _Drawn(Stateful):
    """Values drawn once for each row that is there: row → weight, value."""

    def __init__(self, values: Computed, child: Buffer) -> None:
        self._values = values
        self._kept: dict[bytes, list[int]] = {}
        self._width, self._raw = child.width, child.raw

    def __len__(self) -> int:
        return len(self._kept)

    def of(self, delta: Delta) -> Ids:
        """The values of rows that come and go; at the end of a tick rows without weight are dropped."""
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
        rows, values = self._rows, terms.ids(self._drawn)
        terms.ids(ids_in(rows, self._raw))
        weights = np.array([weight for weight, _ in self._kept.values()], np.int64)
        return {"rows": rows, "values": values, "weights": weights}

    def restore(self, state: State, terms: KnownTerms) -> None:
        """Continue from a saved state."""
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
