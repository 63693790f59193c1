"""A place of a CEQL formula → the graph pattern of its GPM.

The event is a node with the type; each attribute that a condition asks for is a variable. One without which the
conditions cannot hold is a triple pattern, another one is OPTIONAL.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from pyoxigraph import NamedNode, Variable

from oxiseq.grammar.algebra import Call, Expression, Filter, Group, OptionalPattern, PatternElement, TriplePattern
from oxiseq.grammar.scope import expression_variables
from oxiseq.grammar.terms import RDF_TYPE
from oxiseq.grammar.translating.ceql_places import Place


@dataclass
class Names:
    """Names that are taken."""

    taken: set[str] = field(default_factory=set)

    def fresh(self, wanted: str) -> str:
        """`wanted`, with a number if it is taken."""
        name, number = wanted, 1
        while name in self.taken:
            number += 1
            name = f"{wanted}{number}"
        self.taken.add(name)
        return name


@dataclass(frozen=True, slots=True)
class GpmWriter:
    """What the patterns of one query have in common."""

    vocab: str
    partition: tuple[Variable, ...]
    by_attribute: bool
    """Every event that has the partition's attributes is in the partition, also where its type or what is asked of it
    does not fit: then only these may stand outside FILTER and OPTIONAL."""
    names: Names

    def pattern(self, place: Place, gpm: str) -> Group:
        """The pattern of `place`."""
        node = Variable(self.names.fresh(gpm))
        asked = sorted({v for e in place.asked for v in expression_variables(e)} - set(self.partition), key=str)
        values = {v: Variable(self.names.fresh(f"{gpm}_{v.value}")) for v in asked}
        needed = set() if self.by_attribute else {v for e in place.asked for v in needed_by(e, True)}
        elements: list[PatternElement] = [self._attribute(node, v, v) for v in self.partition]
        elements += self._type(place, node, gpm)
        for attribute in sorted(asked, key=lambda v: v not in needed):
            triple = self._attribute(node, attribute, values[attribute])
            elements.append(triple if attribute in needed else OptionalPattern(Group((triple,))))
        return Group((*elements, *(Filter(renamed(e, values)) for e in place.asked)))

    def _attribute(self, node: Variable, attribute: Variable, value: Variable) -> TriplePattern:
        return TriplePattern(node, NamedNode(self.vocab + attribute.value), value)

    def _type(self, place: Place, node: Variable, gpm: str) -> list[PatternElement]:
        type_ = NamedNode(self.vocab + place.what.name)
        if not self.by_attribute:
            return [TriplePattern(node, RDF_TYPE, type_)]
        kind = Variable(self.names.fresh(f"{gpm}_type"))
        return [OptionalPattern(Group((TriplePattern(node, RDF_TYPE, kind),))), Filter(Call("=", (kind, type_)))]


def renamed(expression: Expression, values: dict[Variable, Variable]) -> Expression:
    """With other variables."""
    match expression:
        case Variable():
            return values.get(expression, expression)
        case Call(name, args):
            return Call(name, tuple(renamed(a, values) for a in args))
        case _:
            return expression


def needed_by(expression: Expression, truth: bool) -> frozenset[Variable]:
    """The variables without which `expression` cannot be `truth`: unbound they make it an error or the contrary."""
    match expression:
        case Call("!", (inner,)):
            return needed_by(inner, not truth)
        case Call("&&" | "||" as name, args):
            return _merged([needed_by(a, truth) for a in args], every=(name == "&&") is truth)
        case _:
            return _errors(expression)


def _errors(expression: Expression) -> frozenset[Variable]:
    """The variables without which `expression` is an error."""
    match expression:
        case Variable():
            return frozenset([expression])
        case Call(name, args):
            return _merged([_errors(a) for a in args], every=name not in ("&&", "||"))
        case _:
            return frozenset()


def _merged(sets: Sequence[Iterable[Variable]], every: bool) -> frozenset[Variable]:
    """Those of all operands, or those that all have."""
    first, *rest = (frozenset(s) for s in sets)
    return first.union(*rest) if every else first.intersection(*rest)
