"""A place of a CEQL formula → the graph pattern of its GPM.

The event is a node with the type; each attribute that a condition reads is a variable. One without which the
conditions cannot hold is a triple pattern, another one is OPTIONAL.
"""

from __future__ import annotations

from dataclasses import replace

from pyoxigraph import NamedNode, Variable

from oxiseq.grammar.algebra import Call, Expression, Filter, Group, OptionalPattern, PatternElement, TriplePattern
from oxiseq.grammar.ceql_graphs import condition_of
from oxiseq.grammar.records import dataclass
from oxiseq.grammar.scope import conjuncts
from oxiseq.grammar.terms import RDF_TYPE
from oxiseq.grammar.translating.ceql_expressions import Names, needed_by, own_attributes, renamed
from oxiseq.grammar.translating.ceql_places import Place


@dataclass(frozen=True, slots=True)
class GpmWriter:
    """What the patterns of one query have in common."""

    vocab: str
    partition: tuple[Variable, ...]
    by_attribute: bool
    """Every event that has the partition's attributes is in the partition, even if its type or its condition
    does not fit: then only these may be outside FILTER and OPTIONAL."""
    names: Names

    def pattern(self, place: Place, gpm: str) -> Group:
        """The pattern of `place`."""
        node = Variable(self.names.fresh(gpm))
        asked = sorted({v for e in place.asked for v in own_attributes(e)} - set(self.partition), key=str)
        values = {v: Variable(self.names.fresh(f"{gpm}_{v.value}")) for v in asked}
        needed = set() if self.by_attribute else {v for e in place.asked for v in needed_by(e, True)}
        elements: list[PatternElement] = [self._attribute(node, v, v) for v in self.partition]
        elements += self._type(place, node, gpm)
        for attribute in sorted(asked, key=lambda v: v not in needed):
            triple = self._attribute(node, attribute, values[attribute])
            elements.append(triple if attribute in needed else OptionalPattern(Group((triple,))))
        for attribute, value, always in place.told:
            triple = self._attribute(node, attribute, value)
            elements.append(triple if always and not self.by_attribute else OptionalPattern(Group((triple,))))
        certain = frozenset({values[v] for v in needed if v in values} | set(self.partition))
        conditions = (each for e in place.asked for each in conjuncts(renamed(e, values)))
        return Group((*elements, *(self._asked(each, certain) for each in conditions)))

    def _asked(self, expression: Expression, certain: frozenset[Variable]) -> PatternElement:
        """The condition on an event. A condition on the knowledge base about what each event binds is a pattern that is
        joined: its answer is fetched once, not for each event."""
        condition = condition_of(expression)
        fetched = condition is not None and condition.joinable and not self.by_attribute
        if condition is None or not fetched or not certain.issuperset(value for _, value in condition.given):
            return Filter(self._condition(expression, certain))
        return condition.joined({v: Variable(self.names.fresh(v.value)) for v in condition.own()})

    def _condition(self, expression: Expression, certain: frozenset[Variable]) -> Expression:
        """Without CEQL's own calls. `certain`: the variables that every event of the place binds."""
        condition = condition_of(expression)
        if condition is not None:
            own = {v: Variable(self.names.fresh(v.value)) for v in condition.own()}
            return condition.written(own, certain)
        if isinstance(expression, Call):
            return replace(expression, args=tuple(self._condition(each, certain) for each in expression.args))
        return expression

    def _attribute(self, node: Variable, attribute: Variable, value: Variable) -> TriplePattern:
        return TriplePattern(node, NamedNode(self.vocab + attribute.value), value)

    def _type(self, place: Place, node: Variable, gpm: str) -> list[PatternElement]:
        type_ = NamedNode(self.vocab + place.what.name)
        if not self.by_attribute:
            return [TriplePattern(node, RDF_TYPE, type_)]
        kind = Variable(self.names.fresh(f"{gpm}_type"))
        return [OptionalPattern(Group((TriplePattern(node, RDF_TYPE, kind),))), Filter(Call("=", (kind, type_)))]
