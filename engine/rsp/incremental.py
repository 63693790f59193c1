"""Whether a query can be answered incrementally, and what is kept then.

Where it stands: algebra → **what is joined, how its rows are folded**, or the reason why Oxigraph is asked → native.py.

WHERE must be a conjunction: triple patterns and WINDOW over contents, triple patterns and GRAPH over the KB, FILTERs.
Each content is a source of `engine/windows`; each graph of the KB that patterns are about is one too, which holds the
newest answer. What is on the KB and no plain triple pattern (a path, GRAPH ?g, UNION...) is asked of the KB as a table
whose rows are kept as triples. Rows are folded where they are not told as they are: DISTINCT, ASK, blank nodes that
rows do not tell apart, GROUP BY and aggregates.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Final, TypeAlias

from pyoxigraph import BlankNode, Literal, NamedNode, Variable

from oxiseq.engine.expressions.functions import IMPURE
from oxiseq.engine.rsp.asking import ROW_MARK, asked_by_name, blank_variable, value_predicate
from oxiseq.engine.terms.dictionary import TermDictionary
from oxiseq.engine.windows import ConjunctiveQuery, Window, compile_windows, not_native
from oxiseq.grammar.algebra import (
    Aggregate,
    Bind,
    Call,
    Expression,
    Filter,
    GraphPattern,
    Group,
    MatchPattern,
    PathPattern,
    PatternElement,
    SubSelect,
    TermOrVariable,
    TriplePattern,
    Union,
    WindowPattern,
)
from oxiseq.grammar.render_sparql import select_text
from oxiseq.grammar.rsp_algebra import RangeWindow, RspQuery
from oxiseq.grammar.scope import (
    certain_variables,
    expression_variables,
    holds_exists,
    inner_expressions,
    inner_groups,
    subexpressions,
    visible_variables,
)

ROW: Final = -1
Slot: TypeAlias = int | NamedNode | Literal
"""A column of an answer, or a constant; ROW: the row itself."""
AGGREGATES: Final = frozenset(("COUNT", "SUM", "AVG", "MIN", "MAX"))
LATEST: Final = Window(1, 1, counted=True)
"""Of a source that holds the newest answer."""


@dataclass(frozen=True, slots=True)
class KbPart:
    """What a source holds of the KB: a SELECT, and the triples that each of its rows makes."""

    text: str
    width: int
    triples: tuple[tuple[Slot, Slot, Slot], ...]
    graphs: tuple[int, ...] = ()
    """The columns that must be IRIs: graphs' names."""

    @property
    def keyed(self) -> bool:
        """Whether it is a table, whose rows are nodes."""
        return isinstance(self.triples[0][0], int) and self.triples[0][0] == ROW


@dataclass(frozen=True, slots=True)
class Grouping:
    """GROUP BY. keys: columns of rows; aggregates: with the column of each's argument, −1 for COUNT(*); `shown`: by
    column of the answer the number of a key, or of an aggregate behind the keys."""

    keys: tuple[int, ...]
    names: tuple[Variable, ...]
    aggregates: tuple[tuple[Aggregate, int], ...]
    having: tuple[Expression, ...]
    shown: tuple[int, ...]
    implied: bool
    """There is one group, and it may be empty."""


@dataclass(frozen=True, slots=True)
class Fold:
    """How joined rows become rows of the answer. columns: of the joined rows (−1: unbound); distinct: each once."""

    columns: tuple[int, ...]
    distinct: bool
    grouping: Grouping | None = None


@dataclass(frozen=True, slots=True)
class NativePlan:
    """A query that is answered incrementally. Sources: the contents, then the KB's parts."""

    query: ConjunctiveQuery
    windows: tuple[Window, ...]
    kb: tuple[KbPart, ...]
    columns: tuple[Variable, ...]
    """Of the joined rows."""
    fold: Fold | None

    @property
    def sources(self) -> int:
        """How many windows there are, those of the KB's parts included."""
        return len(self.windows)


class NotIncrementalError(Exception):
    """Why not; for `explain`."""


@dataclass(frozen=True, slots=True)
class Surroundings:
    """What is known of a query besides its text. windows: the contents' windows; named: window's name → content;
    default: contents that are part of the default graph; columns: names of the answer's, None for an expression;
    `plain`: rows are full mappings."""

    windows: tuple[tuple[object, ...], ...]
    floored: bool
    named: dict[NamedNode, int]
    default: tuple[int, ...]
    columns: tuple[Variable | tuple[Expression, Variable], ...]
    plain: bool
    every_instant: bool


def compile_native(query: RspQuery, around: Surroundings) -> NativePlan:
    """The plan. Raises NotIncrementalError."""
    _check_form(query, around)
    windows = tuple(_window(operators) for operators in around.windows)
    joined = _Joined(query, around)
    for element in query.body.where.elements:
        joined.add(element)
    joined.finish()
    found = ConjunctiveQuery(tuple(joined.patterns), tuple(joined.filters), tuple(joined.sources))
    reason = not_native(found)
    if reason is not None:
        raise NotIncrementalError(reason)
    if all(source >= len(windows) for source in found.sources):
        raise NotIncrementalError("no pattern is about a window")
    if compile_windows([found], TermDictionary()).queries[0].left:
        raise NotIncrementalError("a FILTER depends on more than its mapping")
    keys = tuple(dict.fromkeys(t for p in found.patterns for t in (p.subject, p.predicate, p.object)
                               if isinstance(t, Variable | BlankNode)))  # fmt: skip
    columns = tuple(_column(key) for key in keys)
    hidden = frozenset(_column(key) for key in joined.hidden)
    fold = _fold(query, around, columns, hidden)
    every = (*windows, *(LATEST for _ in joined.kb))
    return NativePlan(found, every, tuple(joined.kb), columns, fold)


def _column(key: Variable | BlankNode) -> Variable:
    made = blank_variable(key)
    assert isinstance(made, Variable)
    return made


def _check_form(query: RspQuery, around: Surroundings) -> None:
    body = query.body
    if query.events:
        raise NotIncrementalError("it has event patterns")
    if not around.every_instant:
        raise NotIncrementalError("it is answered at other times than the streams' instants")
    if around.floored:
        raise NotIncrementalError("windows of RSEP-QL may end before now")
    if body.values is not None:
        raise NotIncrementalError("VALUES")
    if body.order_by or body.limit is not None or body.offset is not None:
        raise NotIncrementalError("ORDER BY, LIMIT, OFFSET")
    if len(around.default) > 1:
        raise NotIncrementalError("several windows make up the default graph")
    if around.default and query.default_graphs:
        raise NotIncrementalError("a window and a graph of the KB make up the default graph")


def _window(operators: Sequence[object]) -> Window:
    if len(operators) != 1 or not isinstance(operators[0], RangeWindow):
        raise NotIncrementalError("a window other than RANGE")
    operator = operators[0]
    return Window(operator.size, operator.slide, operator.events)


# --- WHERE ----------------------------------------------------------------------------------------


@dataclass(slots=True)
class _Joined:
    """What has been found of WHERE."""

    query: RspQuery
    around: Surroundings
    patterns: list[TriplePattern] = field(default_factory=list)
    sources: list[int] = field(default_factory=list)
    filters: list[Expression] = field(default_factory=list)
    known: list[_Known] = field(default_factory=list)
    kb: list[KbPart] = field(default_factory=list)
    hidden: set[BlankNode] = field(default_factory=set)
    labels: set[BlankNode] = field(default_factory=set)

    def add(self, element: PatternElement) -> None:
        """An element of WHERE."""
        match element:
            case TriplePattern():
                self._blank([element], hidden=False)
                if self.around.default:
                    self._pattern(element, self.around.default[0])
                else:
                    self.known.append(_Known(element, (element,), self.query.default_graphs))
            case WindowPattern(NamedNode() as name, inner):
                self._group(inner, "WINDOW")
                for pattern in _patterns(inner):
                    self._pattern(pattern, self.around.named[name])
            case GraphPattern(NamedNode() as name, inner) if _is_plain(inner):
                self._may_name(name)
                self._group(inner, "GRAPH")
                self.known.append(_Known(element, tuple(_patterns(inner)), (name,)))
            case Filter(condition) if not holds_exists(condition):
                self.filters.append(condition)
            case GraphPattern() | PathPattern() | Union():
                self._table(element)
            case _:
                raise NotIncrementalError(f"WHERE is no conjunction of triple patterns: {_name(element)}")

    def _may_name(self, name: NamedNode) -> None:
        if self.query.named_graphs and name not in self.query.named_graphs:
            raise NotIncrementalError(f"<{name.value}> is not among FROM NAMED")

    def _group(self, group: Group, kind: str) -> None:
        """What stands in a graph: triple patterns, and FILTERs that need nothing from outside."""
        patterns = list(_patterns(group))
        if not patterns:
            raise NotIncrementalError(f"a {kind} without triple patterns")
        known = visible_variables(Group(tuple(patterns)))
        self._blank(patterns, hidden=True)
        for element in group.elements:
            match element:
                case TriplePattern():
                    pass
                case Filter(condition) if not holds_exists(condition) and expression_variables(condition) <= {*known}:
                    self.filters.append(condition)
                case Filter():
                    raise NotIncrementalError(f"a FILTER in {kind} that needs more than its triple patterns")
                case _:
                    raise NotIncrementalError(f"what is in {kind} is no conjunction: {_name(element)}")

    def _blank(self, patterns: Sequence[TriplePattern], hidden: bool) -> None:
        """Blank nodes are variables of their graph; full rows tell only those apart that stand outside WINDOW and
        GRAPH."""
        found = {t for p in patterns for t in (p.subject, p.object) if isinstance(t, BlankNode)}
        if hidden:
            if found & self.labels:
                raise NotIncrementalError("a blank node stands in several graphs")
            self.hidden |= found
        elif found & self.hidden:
            raise NotIncrementalError("a blank node stands in several graphs")
        self.labels |= found

    def _pattern(self, pattern: TriplePattern, source: int) -> None:
        self.patterns.append(pattern)
        self.sources.append(source)

    def _table(self, element: PatternElement) -> None:
        """What the KB alone answers and is no triple pattern."""
        inside = Group((element,))
        ends = (element.subject, element.object) if isinstance(element, PathPattern) else ()
        if any(isinstance(t, BlankNode) for t in ends):
            raise NotIncrementalError("a blank node beside a path")
        names = {e.name for x in inner_expressions(inside) for e in subexpressions(x) if isinstance(e, Call)}
        if names & IMPURE:
            raise NotIncrementalError("a function that answers otherwise each time")
        if self.around.default or self.query.default_graphs or self.query.named_graphs or _asks_windows(inside):
            raise NotIncrementalError(f"WHERE is no conjunction of triple patterns: {_name(element)}")
        if asked_by_name(element):
            raise NotIncrementalError("MINUS inside GRAPH over a variable")
        if set(visible_variables(inside)) - certain_variables(inside):
            raise NotIncrementalError(f"what the KB is asked may leave variables unbound: {_name(element)}")
        self.known.append(_Known(element))

    def finish(self) -> None:
        """Sources for what is on the KB. A question for each graph, and for each table with all that is joined with it
        there: a KB elsewhere tells blank nodes apart within one answer only."""
        places: dict[tuple[NamedNode, ...], list[TriplePattern]] = {}
        for joined in _connected(self.known):
            if any(not each.patterns for each in joined):
                self._rows([each.element for each in joined])
                continue
            for each in joined:
                places.setdefault(each.graphs, []).extend(each.patterns)
        for graphs, patterns in places.items():
            for pattern in patterns:
                self._pattern(pattern, len(self.around.windows) + len(self.kb))
            self.kb.append(KbPart(_triples_text(patterns, graphs), 3, ((0, 1, 2),)))

    def _rows(self, elements: Sequence[PatternElement]) -> None:
        """A table: each row is a node, with a triple for each column."""
        ends = [t for e in elements if isinstance(e, TriplePattern) for t in (e.subject, e.object)]
        if any(isinstance(t, BlankNode) for t in ends):
            raise NotIncrementalError("a blank node beside what else the KB is asked")
        inside = Group(tuple(elements))
        shown = visible_variables(inside)
        row, source = BlankNode(f"oxiseqrow{len(self.kb)}"), len(self.around.windows) + len(self.kb)
        self.hidden.add(row)
        triples: list[tuple[Slot, Slot, Slot]] = [(ROW, value_predicate(i), i) for i in range(len(shown))]
        for place, variable in enumerate(shown):
            self._pattern(TriplePattern(row, value_predicate(place), variable), source)
        if not shown:
            triples.append((ROW, ROW_MARK, ROW_MARK))
            self._pattern(TriplePattern(row, ROW_MARK, ROW_MARK), source)
        named = [e.name for e in elements if isinstance(e, GraphPattern)]
        columns = tuple(shown.index(name) for name in named if isinstance(name, Variable))
        text = select_text(SubSelect(None, inside), shown)
        self.kb.append(KbPart(text, len(shown), tuple(triples), columns))


@dataclass(frozen=True, slots=True)
class _Known:
    """An element of WHERE that is on the KB: triple patterns on some graphs merged (none: the default graph), or,
    without patterns, a table."""

    element: PatternElement
    patterns: tuple[TriplePattern, ...] = ()
    graphs: tuple[NamedNode, ...] = ()

    @property
    def variables(self) -> frozenset[Variable]:
        """Those that it binds."""
        return frozenset(visible_variables(Group((self.element,))))


def _connected(known: Sequence[_Known]) -> list[list[_Known]]:
    """Elements that share variables, directly or by way of others."""
    found: list[list[_Known]] = []
    for each in known:
        mine = [joined for joined in found if any(each.variables & other.variables for other in joined)]
        found = [joined for joined in found if joined not in mine]
        found.append([*(other for joined in mine for other in joined), each])
    return found


_PLACES: Final = (Variable("s"), Variable("p"), Variable("o"))


def _triples_text(patterns: Sequence[TriplePattern], graphs: Sequence[NamedNode]) -> str:
    """The question for all triples that agree with one of the patterns."""
    branches = [branch for pattern in dict.fromkeys(patterns) for branch in _branches(pattern, graphs)]
    element = branches[0] if len(branches) == 1 else Union(tuple(branches))
    return select_text(SubSelect(None, Group((element,))), _PLACES)


def _branches(pattern: TriplePattern, graphs: Sequence[NamedNode]) -> Iterator[Group]:
    """?s ?p ?o of the triples that agree with a pattern, by graph."""
    first: dict[TermOrVariable, Variable] = {}
    terms: list[TermOrVariable] = []
    binds = []
    for term, place in zip((pattern.subject, pattern.predicate, pattern.object), _PLACES, strict=True):
        if isinstance(term, Variable | BlankNode) and term not in first:
            first[term] = place
            terms.append(place)
            continue
        known = first.get(term, term)
        assert not isinstance(known, BlankNode)  # it is among the first
        terms.append(known)
        binds.append(Bind(known, place))
    subject, predicate, object_ = terms
    assert isinstance(predicate, NamedNode | Variable)
    asked = TriplePattern(subject, predicate, object_)
    for graph in graphs:
        yield Group((GraphPattern(graph, Group((asked,))), *binds))
    if not graphs:
        yield Group((asked, *binds))


def _patterns(group: Group) -> Iterator[TriplePattern]:
    return (e for e in group.elements if isinstance(e, TriplePattern))


def _is_plain(group: Group) -> bool:
    return all(isinstance(e, TriplePattern | Filter) for e in group.elements)


def _asks_windows(group: Group) -> bool:
    """Whether it asks more than the KB."""
    return any(
        isinstance(e, WindowPattern | MatchPattern | SubSelect)
        or (isinstance(e, Filter) and holds_exists(e.condition))
        or any(_asks_windows(inner) for inner in inner_groups(e))
        for e in group.elements
    )


_NAMES: Final = {
    "OptionalPattern": "OPTIONAL", "GraphPattern": "GRAPH", "WindowPattern": "WINDOW", "PathPattern": "a path",
    "SubSelect": "a sub-query", "Group": "a group", "Values": "VALUES",
}  # fmt: skip


def _name(element: PatternElement) -> str:
    if isinstance(element, Filter):
        return "FILTER EXISTS"
    kind = type(element).__name__
    return _NAMES.get(kind, kind.upper())


# --- what is told ---------------------------------------------------------------------------------


def _fold(
    query: RspQuery, around: Surroundings, columns: tuple[Variable, ...], hidden: frozenset[Variable]
) -> Fold | None:
    """None: joined rows are told as they are."""
    body = query.body
    place = {variable: number for number, variable in enumerate(columns)}
    if query.form == "ASK":
        if body.group_by or body.having:
            raise NotIncrementalError("ASK with GROUP BY")
        return Fold((), distinct=True)
    if _aggregates(query, around):
        return Fold((), body.distinct, _grouping(body, around, place))
    if any(isinstance(column, tuple) for column in around.columns):
        raise NotIncrementalError("SELECT lists expressions")
    if around.plain and not hidden:
        return None
    if around.plain:
        return Fold(tuple(place[v] for v in columns if v not in hidden), distinct=False)
    assert body.distinct  # nothing else is left that is not plain
    return Fold(tuple(place.get(c, -1) for c in around.columns if isinstance(c, Variable)), distinct=True)


def _aggregates(query: RspQuery, around: Surroundings) -> bool:
    listed = [c[0] for c in around.columns if isinstance(c, tuple)]
    aggregated = any(isinstance(e, Aggregate) for x in listed for e in subexpressions(x))
    return bool(query.body.group_by or query.body.having) or aggregated


def _grouping(body: SubSelect, around: Surroundings, place: dict[Variable, int]) -> Grouping:
    keys: list[Variable] = []
    for key in body.group_by:
        if not isinstance(key, Variable) or key not in place:
            raise NotIncrementalError("GROUP BY something else than a variable of the patterns")
        keys.append(key)
    found: dict[Aggregate, int] = {}
    shown = []
    for column in around.columns:
        if isinstance(column, Variable) and column in keys:
            shown.append(keys.index(column))
        elif isinstance(column, tuple) and isinstance(column[0], Aggregate):
            found.setdefault(column[0], len(found))
            shown.append(len(keys) + found[column[0]])
        else:
            raise NotIncrementalError("beside GROUP BY's variables SELECT lists other expressions than aggregates")
    for condition in body.having:
        _check_having(condition, keys)
        for each in subexpressions(condition):
            if isinstance(each, Aggregate):
                found.setdefault(each, len(found))
    aggregates = tuple((each, _argument(each, place)) for each in found)
    return Grouping(tuple(place[k] for k in keys), tuple(keys), aggregates, body.having, tuple(shown), not keys)


def _check_having(condition: Expression, keys: Sequence[Variable]) -> None:
    names = {e.name for e in subexpressions(condition) if isinstance(e, Call)}
    inside = {v for e in subexpressions(condition) if isinstance(e, Aggregate) for v in expression_variables(e)}
    if holds_exists(condition) or names & IMPURE or not expression_variables(condition) - inside <= {*keys}:
        raise NotIncrementalError("HAVING depends on more than the group")


def _argument(aggregate: Aggregate, place: dict[Variable, int]) -> int:
    """The column that it is about."""
    if aggregate.name not in AGGREGATES:
        raise NotIncrementalError(f"the aggregate {aggregate.name}")
    if aggregate.arg is None:
        if aggregate.distinct:
            raise NotIncrementalError("COUNT(DISTINCT *)")
        return -1
    if not isinstance(aggregate.arg, Variable) or aggregate.arg not in place:
        raise NotIncrementalError("an aggregate of something else than a variable of the patterns")
    return place[aggregate.arg]
