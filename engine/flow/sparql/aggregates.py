"""GROUP BY and aggregates: sums of groups, ranks for MIN, MAX and SAMPLE, attached to each other by the key.

An error among the values makes SUM, AVG, MIN, MAX and GROUP_CONCAT an error; COUNT counts the others, SAMPLE is one of
them, the least (SPARQL 1.1, 18.5.1; semantics.md 4).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import count
from typing import Final, NamedTuple
from typing import Literal as OneOf

from pyoxigraph import Literal, NamedNode, Variable

from oxiseq.engine.expressions.functions import is_pure
from oxiseq.engine.flow import plan as p
from oxiseq.engine.flow.relations import Column, Relation, Relations
from oxiseq.engine.flow.rewriting import UNBOUND, replaced
from oxiseq.engine.flow.sparql.existence import Conditions
from oxiseq.engine.flow.sparql.grounds import Contexts, Scope
from oxiseq.engine.flow.sparql.leaves import OWN
from oxiseq.grammar.algebra import Aggregate, Call, Expression, SubSelect
from oxiseq.grammar.scope import conjuncts, expression_variables, holds_exists, visible_variables

_ZERO: Final = Literal("0", datatype=NamedNode("http://www.w3.org/2001/XMLSchema#integer"))
_OF_NOTHING: Final[dict[str, Expression]] = {
    "COUNT": _ZERO,
    "SUM": _ZERO,
    "AVG": _ZERO,
    "GROUP_CONCAT": Literal(""),
}
_SUMS: Final[dict[str, OneOf["COUNT", "SUM", "AVG", "GROUP_CONCAT"]]] = {
    "COUNT": "COUNT",
    "SUM": "SUM",
    "AVG": "AVG",
    "GROUP_CONCAT": "GROUP_CONCAT",
}


class Grouped(NamedTuple):
    """A row for each group; which columns stand for which expressions; the conditions of HAVING left to evaluate."""

    relation: Relation
    known: dict[Expression, Expression]
    having: Sequence[Expression]


class Aggregation:
    """Groups of relations."""

    def __init__(self, relations: Relations, contexts: Contexts, conditions: Conditions) -> None:
        self._relations = relations
        self._contexts = contexts
        self._conditions = conditions
        self._numbers = count(1)

    def grouped(self, query: SubSelect, whole: Relation, aggregates: Sequence[Aggregate], scope: Scope) -> Grouped:
        """A row for each group: contexts, keys, aggregates. What HAVING says of sums alone holds for all of them."""
        known = dict[Expression, Expression]()
        keys: list[Column] = []
        for each in query.group_by:
            expression, name = each if isinstance(each, tuple) else (each, None)
            if not isinstance(each, Variable):
                column = name or self._fresh()
                whole = self._conditions.extended(whole, expression, column, scope)
                if name is None:
                    known[expression] = column
                keys.append(column)
            else:
                keys.append(each)
        keys = list(dict.fromkeys(keys))
        missing = [key for key in keys if key not in whole.columns]
        whole = self._relations.project(whole, [*whole.columns, *missing])
        arguments = dict[Aggregate, Variable | None]()
        for aggregate in aggregates:
            whole, arguments[aggregate] = self._argument(whole, aggregate.arg, scope)
        names = {aggregate: self._fresh() for aggregate in aggregates}
        known.update(names.items())
        key, counted = [*whole.context, *keys], visible_variables(query.where)
        each_case = not query.group_by and bool(whole.context)
        having = [each for whole in query.having for each in conjuncts(replaced(whole, known))]
        found, others = self._summed(whole, key, arguments, names)
        early = [] if each_case else [each for each in having if _is_about(found, each)]
        found = self._relations.filter(found, early)  # fewer groups are joined with aggregates that are no sums
        for aggregate in others:
            found = self._with(found, whole, key, aggregate, arguments[aggregate], names[aggregate], counted)
        if each_case:
            found = self._of_nothing(found, names)
        return Grouped(found, known, [each for each in having if each not in early])

    def _fresh(self) -> Variable:
        return Variable(f"{OWN}group_{next(self._numbers)}")

    def _argument(self, whole: Relation, argument: Expression | None, scope: Scope) -> tuple[Relation, Variable | None]:
        """With a column for an aggregate's argument; None for all rows."""
        if argument is None or (isinstance(argument, Variable) and argument in whole.columns):
            return whole, argument
        name = self._fresh()
        return self._conditions.extended(whole, argument, name, scope), name

    def _summed(
        self,
        whole: Relation,
        key: Sequence[Column],
        arguments: Mapping[Aggregate, Variable | None],
        names: Mapping[Aggregate, Variable],
    ) -> tuple[Relation, Sequence[Aggregate]]:
        """Groups with all that is a sum of their rows; and the other aggregates, in an order that queries which list
        them otherwise have, too."""
        plain = [a for a in arguments if a.name in _SUMS and not a.distinct]
        found = self._sums(whole, key, [(names[a], a, arguments[a]) for a in plain])

        def place(aggregate: Aggregate) -> tuple[str, bool, int]:
            argument = arguments[aggregate]
            return aggregate.name, aggregate.distinct, -1 if argument is None else whole.place(argument)

        return found, sorted((a for a in arguments if a not in plain), key=place)

    def _with(
        self,
        found: Relation,
        whole: Relation,
        key: Sequence[Column],
        aggregate: Aggregate,
        argument: Variable | None,
        name: Variable,
        counted: Sequence[Variable],
    ) -> Relation:
        """With a column for an aggregate that is no sum of a group's rows."""
        if aggregate.name in _SUMS:  # of distinct ones, which every group has
            mine = [c for c in counted if c in whole.columns] if argument is None else [argument]
            every = self._relations.distinct(self._relations.project(whole, list(dict.fromkeys([*key, *mine]))))
            more = self._sums(every, key, [(name, aggregate, argument)])
            return self._relations.attached(found, more, key, everywhere=True)
        assert argument is not None
        more = self._end(whole, key, aggregate.name, argument, name)
        everywhere = bool(key) and argument in whole.certain  # a group has a value if all rows bind one
        return self._relations.attached(found, more, key, everywhere=everywhere)

    def _sums(
        self, whole: Relation, key: Sequence[Column], sums: Sequence[tuple[Variable, Aggregate, Variable | None]]
    ) -> Relation:
        made = []
        for name, aggregate, argument in sums:
            place = None if argument is None else whole.place(argument)
            separator = " " if aggregate.separator is None else aggregate.separator
            made.append((name, p.Sum(_SUMS[aggregate.name], place, separator)))
        return self._relations.group(whole, key, made)

    def _end(self, whole: Relation, key: Sequence[Column], name: str, argument: Variable, shown: Variable) -> Relation:
        """MIN, MAX, SAMPLE: of each group the first value in an order."""
        value, bound = self._fresh(), argument in whole.certain
        values = self._relations.copied(whole, [(argument, value)])
        if not bound:
            values = self._relations.filter(values, [Call("BOUND", (value,))])
        each = self._relations.distinct(self._relations.project(values, [*key, value]))
        order = () if name == "SAMPLE" else ((value, name == "MAX"),)
        first = self._relations.best(each, key, order, 0, 1)
        named = self._relations.renamed(first, [*key, shown])
        return named if bound or name == "SAMPLE" else self._without_errors(whole, key, argument, named, shown)

    def _without_errors(
        self, whole: Relation, key: Sequence[Column], argument: Variable, first: Relation, shown: Variable
    ) -> Relation:
        """Of groups in which all rows have a value."""
        rows, values = self._fresh(), self._fresh()
        counts = self._relations.group(
            whole, key, [(rows, p.Sum("COUNT", None)), (values, p.Sum("COUNT", whole.place(argument)))]
        )
        clean = self._relations.filter(counts, [Call("=", (rows, values))])
        both = self._relations.attached(self._relations.project(clean, key), first, key, everywhere=bool(key))
        return self._relations.project(both, [*key, shown])

    def _of_nothing(self, found: Relation, names: dict[Aggregate, Variable]) -> Relation:
        """Without keys there is a group in each case, of no rows where there are none."""
        cases = self._contexts.of(found.context, named=False)
        empty = self._relations.antijoin(cases, self._relations.project(found, found.context))
        for aggregate, name in names.items():
            empty = self._relations.extend(empty, _OF_NOTHING.get(aggregate.name, UNBOUND), name)
        return self._relations.union([found, empty])


def _is_about(a: Relation, condition: Expression) -> bool:
    """Whether a condition reads only a relation's columns."""
    return is_pure(condition) and not holds_exists(condition) and expression_variables(condition) <= a.variables
