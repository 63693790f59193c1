"""Group graph patterns: neighbours are joined; OPTIONAL, MINUS and BIND take what precedes them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from pyoxigraph import NamedNode, Variable

from oxiseq.engine.errors import OxiseqError
from oxiseq.engine.flow import plan as p
from oxiseq.engine.flow.events import Events, Used
from oxiseq.engine.flow.relations import Relation, Relations
from oxiseq.engine.flow.sparql.around import Around, Matched
from oxiseq.engine.flow.sparql.asking import Asking
from oxiseq.engine.flow.sparql.existence import Conditions, correlated
from oxiseq.engine.flow.sparql.grounds import Cases, Contexts, EachEvent, EachGraph, Ground, Merge, Scope
from oxiseq.engine.flow.sparql.leaves import Leaves
from oxiseq.engine.flow.sparql.rebuilding import NOWHERE
from oxiseq.engine.flow.sparql.runs import Runs, decided
from oxiseq.engine.flow.sparql.selects import Selects
from oxiseq.engine.flow.sparql.store_leaves import StoreLeaves
from oxiseq.grammar.algebra import (
    Bind,
    Expression,
    Filter,
    GraphPattern,
    Group,
    MatchPattern,
    Minus,
    OptionalPattern,
    PatternElement,
    SubSelect,
    TimeOp,
    Union,
    Values,
    WindowPattern,
)
from oxiseq.grammar.scope import (
    certain_variables,
    conjuncts,
    mentioned_variables,
    visible_variables,
)

_NOT_ASKED: Final = "GRAPH over a variable is not answered where the knowledge base itself is followed"


class Groups:
    """Compiles patterns to relations; their columns are the variables that a pattern binds, and contexts."""

    def __init__(self, relations: Relations, around: Around, timed: MatchPattern | None) -> None:
        """timed: the MATCH whose rows carry times; an equal one elsewhere does not."""
        self._relations = relations
        self._around = around
        self._timed = timed
        self._events = Events(relations, around.events, items=around.items)
        self.used: dict[Used, None] = {}
        """The items that the query's MATCHes use, if requested."""
        self.contexts = Contexts(relations)
        self._asking = Asking(relations, around)
        self._runs = Runs(
            relations,
            self._asking,
            _leaves(relations, around),
            self._named,
            self.element,
            followed=around.alone,
            opens=not relations.in_time,
        )
        self.conditions = Conditions(relations, self.contexts, self)
        self.selects = Selects(relations, self.contexts, self.conditions, self)

    # --- grounds ------------------------------------------------------------------------------------

    def default(self) -> Merge:
        """The default graph."""
        around = self._around
        graphs: list[p.Place] = [p.WindowPlace(content) for content in around.default]
        graphs += [p.GraphPlace(name) for name in around.default_graphs]
        if not graphs and around.whole_dataset:
            return Merge((p.GraphPlace(NOWHERE),))
        return Merge(tuple(dict.fromkeys(graphs)) or (p.GraphPlace(None),))

    def _named(self, block: GraphPattern | WindowPattern) -> Ground:
        name = block.name
        assert isinstance(name, NamedNode)
        if isinstance(block, WindowPattern):
            return Merge((p.WindowPlace(self._around.windows[name]),))
        named = self._around.named_graphs
        left_out = (named or self._around.whole_dataset) and name not in named
        return Merge(() if left_out else (p.GraphPlace(name),))

    def _nothing_said(self, ground: Ground) -> Relation:
        """The empty pattern: one row, in graphs that there are."""
        match ground:
            case EachGraph(context) | EachEvent(context):
                return self.contexts.of((context,), named=False)
            case Merge(places) if not places:
                return self._relations.source(p.Constant((), 0), (), ())
            case Merge((p.GraphPlace(NamedNode() as name),)) if not self._is_given(name):
                return self._asking.is_there(name)
            case _:
                return self._relations.unit()

    def _is_given(self, name: NamedNode) -> bool:
        """Whether the query itself says that it is there: a graph of FROM, any of the whole dataset."""
        return name in self._around.default_graphs or self._around.whole_dataset

    # --- groups -------------------------------------------------------------------------------------

    def group(self, group: Group, scope: Scope) -> Relation:
        """A group with all its conditions."""
        if self._worth_asking(group, group.elements, scope):
            return self._asking.asked(group.elements, scope.ground)
        relation, conditions = self._opened(group, scope, correlated(group, scope.given))
        return self.conditions.filtered(relation, conditions, scope)

    def opened(self, group: Group, scope: Scope) -> tuple[Relation, list[Expression]]:
        """A group, and those of its conditions that may read the joined row."""
        bare = Group(tuple(e for e in group.elements if not isinstance(e, Filter)))
        known, inside, open_ = certain_variables(bare), list[PatternElement](), list[Expression]()
        for element in group.elements:
            if isinstance(element, Filter) and not decided(element.condition, known):
                open_ += conjuncts(element.condition)
            else:
                inside.append(element)
        if self._worth_asking(group, inside, scope):
            return self._asking.asked(inside, scope.ground), open_
        return self._opened(group, scope, correlated(bare, scope.given))

    def _worth_asking(self, group: Group, elements: Sequence[PatternElement], scope: Scope) -> bool:
        """Whether the knowledge base answers all of it, and it is more than a conjunction."""
        more = any(isinstance(e, OptionalPattern | Minus | Bind) for e in group.elements)
        return more and self._asking.may(elements, scope)

    def _opened(self, group: Group, scope: Scope, by_case: bool) -> tuple[Relation, list[Expression]]:
        pending = [c for e in group.elements if isinstance(e, Filter) for c in conjuncts(e.condition)]
        current = self._cases(mentioned_variables(group), scope) if by_case else []
        if not _begins_with_rows(group):
            current.append(self._nothing_said(scope.ground))
        run: list[PatternElement] = []
        with self._relations.within(pending):
            for number, element in enumerate(group.elements):
                match element:
                    case Filter():
                        pass
                    case OptionalPattern() | Minus() | Bind():
                        before = self._runs.joined(current, run, pending, scope)
                        current, run = [self._next(before, element, Group(group.elements[:number]), scope)], []
                    case _:
                        run.append(element)
            return self._runs.joined(current, run, pending, scope), pending

    def _cases(self, mentioned: frozenset[Variable], scope: Scope) -> list[Relation]:
        some = [self.contexts.some(each, each.variables & mentioned) for each in scope.cases]
        return [each.relation for each in some if each.contexts]

    # --- elements that take what precedes them --------------------------------------------------

    def _next(self, a: Relation, element: OptionalPattern | Minus | Bind, before: Group, scope: Scope) -> Relation:
        match element:
            case OptionalPattern(inner):
                return self.left_join(a, inner, scope)
            case Minus(inner):
                with self._relations.apart(tested=True):
                    b = self.group(inner, scope)
                counted = frozenset(visible_variables(before)) & frozenset(visible_variables(inner))
                a, b = self.contexts.aligned((a, b))
                return self._relations.minus(a, b, counted)
            case Bind(expression, variable):
                return self.conditions.extended(a, expression, variable, scope)

    def left_join(
        self, a: Relation, inner: PatternElement, scope: Scope, op: TimeOp | None = None, *, late: bool = False
    ) -> Relation:
        """With the rows of a pattern that may have none, and its conditions on both; see `Relations.apart`."""
        with self._relations.apart(tested=False, op=op, late=late):
            b, conditions = self.opened(inner, scope) if isinstance(inner, Group) else (self.element(inner, scope), [])
        a, b = self.contexts.aligned((a, b))
        return self._relations.left_join(
            a, b, conditions, lambda pairs: self.conditions.filtered(pairs, conditions, scope), op
        )

    # --- elements -----------------------------------------------------------------------------------

    def element(self, element: PatternElement, scope: Scope) -> Relation:
        """An element that is joined with others and is no triple pattern."""
        match element:
            case Group():
                return self.group(element, scope)
            case Values(variables, rows):
                return self._relations.values(variables, rows)
            case Union(branches):
                parts = [self.group(branch, scope) for branch in branches]
                return self._relations.union(self.contexts.aligned(parts))
            case SubSelect():
                return self.selects.sub_select(element, scope)
            case WindowPattern(Variable() as name, inner):
                return self._each_window(name, inner, scope)
            case GraphPattern(Variable() as name, inner):
                if name == self._around.event:
                    return self._each(name, inner, EachEvent(self._relations.context()), scope)
                return self._each_graph(name, inner, scope)
            case WindowPattern(NamedNode(), inner) | GraphPattern(NamedNode(), inner):
                assert isinstance(element, WindowPattern | GraphPattern)
                return self.group(inner, scope.on(self._named(element)))
            case MatchPattern():
                given = self._around.timed if element is self._timed else self._around.matches[element]
                assert given is not None
                return self._matched(given)
            case _:
                raise AssertionError(f"no pattern of a query over windows: {type(element).__name__}")

    def _matched(self, given: Matched) -> Relation:
        """The rows of a MATCH."""
        if self._around.items:
            self.used[self._events.used(given.pattern)] = None
        return self._events.match(given.pattern, given.variables, timed=given.timed)[0]

    def _each_window(self, name: Variable, inner: Group, scope: Scope) -> Relation:
        """WINDOW ?w: the windows one by one; conditions inside see the name."""
        parts = []
        for window, content in self._around.windows.items():
            there = scope.on(Merge((p.WindowPlace(content),)))
            if name in mentioned_variables(inner):
                parts.append(self.group(_titled(name, window, inner), there))
            else:
                parts.append(self._relations.extend(self.group(inner, there), window, name))
        if not parts:
            return self._relations.values([*visible_variables(WindowPattern(name, inner))], ())
        return self._relations.union(self.contexts.aligned(parts))

    def _each_graph(self, name: Variable, inner: Group, scope: Scope) -> Relation:
        """GRAPH ?g over more than the knowledge base is evaluated as a whole: by graph, its name being a context."""
        if not (self._around.asks_kb or self._around.alone):
            raise OxiseqError(f"{_NOT_ASKED}: GRAPH ?{name.value}")
        return self._each(name, inner, EachGraph(self._relations.context()), scope)

    def _each(self, name: Variable, inner: Group, ground: EachGraph | EachEvent, scope: Scope) -> Relation:
        """A group on each graph, or event; `name` becomes the variable of which."""
        context = ground.context
        graphs = self._relations.copied(self._asking.graphs(ground), [(context, name)])
        cases = self.contexts.known(Cases(graphs, {name: context}))
        found = self.group(inner, Scope(ground, (*scope.cases, cases)))
        if context in found.columns and name not in found.columns:
            return self._relations.renamed(found, [name if c == context else c for c in found.columns])
        return self._relations.without_columns(self._relations.join(found, graphs), [context])


def _leaves(relations: Relations, around: Around) -> Leaves:
    if around.leaves is not None:
        return around.leaves(relations)
    return StoreLeaves(relations, around) if around.alone else Leaves(relations)


def _begins_with_rows(group: Group) -> bool:
    """Whether something is joined before the first OPTIONAL, MINUS or BIND; else that is the empty pattern."""
    first = next((e for e in group.elements if not isinstance(e, Filter)), None)
    return first is not None and not isinstance(first, OptionalPattern | Minus | Bind)


def _titled(name: Variable, window: NamedNode, inner: Group) -> Group:
    """With the name as a value: first, so that all conditions see it, or last where the pattern makes it."""
    said = Values((name,), ((window,),))
    if len(inner.elements) == 1 and isinstance(inner.elements[0], SubSelect):
        return Group((said, inner))
    made_inside = any(isinstance(e, Bind) and e.variable == name for e in inner.elements)
    return Group((*inner.elements, said) if made_inside else (said, *inner.elements))
