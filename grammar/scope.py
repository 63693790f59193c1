"""Scope: which variables a pattern binds, and the parts that a GPM falls into.

In the flow: algebra → algebra. The checks use it for what a name can mean; the compiler for what is
evaluated on the event, what on the KB, and what only at the join (semantics.md 2.2). The rules for
patterns are SPARQL 1.1's (section 18.2.1, variable scope).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import field, replace
from operator import is_

from pyoxigraph import Variable

from oxiseq.grammar.algebra import (
    Aggregate,
    Bind,
    Call,
    Exists,
    Expression,
    Filter,
    FunctionCall,
    Gpm,
    GraphPattern,
    Group,
    MatchFunction,
    MatchPattern,
    Minus,
    OptionalPattern,
    PathPattern,
    PatternElement,
    Prev,
    SubSelect,
    TimedPattern,
    TimeOp,
    TriplePattern,
    Union,
    Values,
    WindowPattern,
)
from oxiseq.grammar.parts import once
from oxiseq.grammar.records import dataclass

# --- patterns -------------------------------------------------------------------------------------


@once
def visible_variables(pattern: PatternElement) -> tuple[Variable, ...]:
    """The variables in scope after `pattern`, in order of appearance."""
    found: Iterable[Variable]
    match pattern:
        case TriplePattern(s, p, o):
            found = [t for t in (s, p, o) if isinstance(t, Variable)]
        case PathPattern(s, _, o):
            found = [t for t in (s, o) if isinstance(t, Variable)]
        case Group(parts) | Union(parts):
            found = [variable for part in parts for variable in visible_variables(part)]
        case Filter() | Minus():
            found = ()
        case Bind(_, variable):
            found = (variable,)
        case Values(variables) | MatchPattern(_, variables):
            found = variables
        case OptionalPattern(inner):
            found = visible_variables(inner)
        case GraphPattern(name, inner) | WindowPattern(name, inner):
            found = [*([name] if isinstance(name, Variable) else []), *visible_variables(inner)]
        case SubSelect():
            found = _projected(pattern)
        case TimedPattern(_, left, right):
            found = (*visible_variables(left), *visible_variables(right))
    return tuple(dict.fromkeys(found))


def _projected(query: SubSelect) -> tuple[Variable, ...]:
    if query.projection is None:
        return visible_variables(query.where)
    return tuple(p if isinstance(p, Variable) else p[1] for p in query.projection)


@once
def certain_variables(pattern: PatternElement) -> frozenset[Variable]:
    """The variables that every solution of `pattern` binds."""
    match pattern:
        case TriplePattern() | PathPattern():
            return frozenset(visible_variables(pattern))
        case Group(elements):
            return frozenset().union(*map(certain_variables, elements))
        case Values(variables, rows):
            return frozenset(v for i, v in enumerate(variables) if all(row[i] is not None for row in rows))
        case Union(branches):
            return frozenset.intersection(*map(certain_variables, branches))
        case GraphPattern(name, inner) | WindowPattern(name, inner):
            return certain_variables(inner) | (frozenset([name]) if isinstance(name, Variable) else frozenset())
        case SubSelect(projection, where):
            kept = _projected(pattern) if projection is None else (p for p in projection if isinstance(p, Variable))
            return frozenset(kept) & certain_variables(where)
        case TimedPattern(op, left, right):
            first = frozenset[Variable]() if op is TimeOp.OPTIONALSEQ else certain_variables(left)
            return first | (frozenset() if op is TimeOp.EQUALSOPTIONAL else certain_variables(right))
        case _:  # BIND may fail, OPTIONAL may find nothing
            return frozenset()


# --- expressions ----------------------------------------------------------------------------------


@once
def subexpressions(expression: Expression) -> tuple[Expression, ...]:
    """`expression` and all below it, outermost first; patterns inside EXISTS are not entered."""
    found: list[Expression] = []
    waiting = [expression]
    while waiting:
        each = waiting.pop()
        found.append(each)
        if isinstance(each, Call | FunctionCall):
            waiting += reversed(each.args)
        elif isinstance(each, Aggregate) and each.arg is not None:
            waiting.append(each.arg)
    return tuple(found)


@once
def expression_variables(expression: Expression) -> frozenset[Variable]:
    """Its variables, those inside PREV not included, those of an EXISTS pattern included."""
    found: set[Variable] = set()
    for e in subexpressions(expression):
        if isinstance(e, Variable):
            found.add(e)
        elif isinstance(e, Exists):
            found.update(visible_variables(e.pattern) if e.given is None else e.given)
    return frozenset(found)


def mentioned_variables(pattern: Group) -> frozenset[Variable]:
    """All that a pattern names, in conditions too; not what only a sub-query's inside names."""
    return frozenset(v for element in pattern.elements for v in _mentioned(element))


def _mentioned(element: PatternElement) -> Iterator[Variable]:
    yield from visible_variables(element)
    match element:
        case Filter(expression) | Bind(expression):
            yield from plain_variables(expression)
            for e in exists_in(expression):
                yield from mentioned_variables(e.pattern)
        case SubSelect():
            return
        case _:
            for inner in inner_groups(element):
                if inner is not element:
                    yield from mentioned_variables(inner)
                    continue
                for each in inner.elements:
                    yield from _mentioned(each)


@once
def plain_variables(expression: Expression) -> frozenset[Variable]:
    """Its variables, those inside PREV and EXISTS not included."""
    return frozenset(e for e in subexpressions(expression) if isinstance(e, Variable))


def outside_aggregates(expression: Expression) -> Iterator[Variable]:
    """Its variables that no aggregate has consumed."""
    match expression:
        case Variable():
            yield expression
        case Call(_, args) | FunctionCall(_, args):
            for arg in args:
                yield from outside_aggregates(arg)


@once
def exists_in(expression: Expression) -> tuple[Exists, ...]:
    """Each EXISTS in it, not those inside another's pattern."""
    return tuple(e for e in subexpressions(expression) if isinstance(e, Exists))


@once
def prev_variables(expression: Expression) -> frozenset[Variable]:
    """The variables that `expression` reads from the previous iteration."""
    return frozenset(e.variable for e in subexpressions(expression) if isinstance(e, Prev))


@once
def match_parts(expression: Expression) -> tuple[MatchFunction | Aggregate, ...]:
    """Its functions of the match and its aggregates, outermost first."""
    return tuple(e for e in subexpressions(expression) if isinstance(e, MatchFunction | Aggregate))


def asks_the_run(condition: Expression) -> bool:
    """Whether a FILTER reads more of the partial match than variables: PREV, times, aggregates over iterations."""
    return bool(prev_variables(condition) or match_parts(condition))


@once
def holds_exists(expression: Expression) -> bool:
    """Whether it contains an EXISTS: such a filter needs the graph, not only a mapping."""
    return any(isinstance(e, Exists) for e in subexpressions(expression))


def conjuncts(condition: Expression) -> Iterator[Expression]:
    """The operands of top-level `&&`."""
    if isinstance(condition, Call) and condition.name == "&&":
        for arg in condition.args:
            yield from conjuncts(arg)
    else:
        yield condition


# --- a GPM's parts --------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class GpmParts:
    """What a GPM falls into (semantics.md 2.2).

    `pattern` is evaluated on the event's graph, `filters` on its mappings; `kb` is P_D, joined with it, and
    `kb_filters` need both; `stateful` filters need what precedes the GPM, and those with EXISTS the event's
    graph again. If `in_place`, GRAPH stands where it cannot be split off, `pattern` keeps it and `kb` is None.
    """

    gpm: Gpm
    pattern: Group
    kb: Group | None
    filters: tuple[Expression, ...]
    kb_filters: tuple[Expression, ...]
    stateful: tuple[Expression, ...]
    in_place: bool
    variables: tuple[Variable, ...]
    """All that a mapping may bind: the pattern's, then the KB's."""
    certain: frozenset[Variable]
    """Those of them that every mapping binds."""
    pattern_variables: tuple[Variable, ...] = field(repr=False, compare=False)
    """The pattern's."""
    kb_variables: tuple[Variable, ...] = field(repr=False, compare=False)
    """The KB pattern's, the shared ones included."""


def split_gpm(gpm: Gpm, others: AbstractSet[Variable] = frozenset()) -> GpmParts:
    """Split a GPM's body into what is answered where; `others`: what the GPMs that it sees may bind."""
    conditions, body = _take_filters(gpm, others)
    graphs: list[PatternElement] = [e for e in body if isinstance(e, GraphPattern)]
    rest: list[PatternElement] = [e for e in body if not isinstance(e, GraphPattern)]
    pattern = _with_elements(gpm.pattern, rest)
    in_place = _needs_kb_inside(pattern, graphs)
    if in_place:
        pattern, graphs = _with_elements(gpm.pattern, body), []
    kb = Group(tuple(graphs), span=gpm.pattern.span) if graphs else None
    pattern_variables = visible_variables(pattern)
    kb_variables = visible_variables(kb) if kb is not None else ()
    own, from_kb = frozenset(pattern_variables), frozenset(kb_variables)
    both, certain = own | from_kb, certain_variables(pattern)
    open_to_kb = from_kb - certain  # where the event leaves them unbound, the KB may bind them
    filters, kb_filters, stateful = [], [], []
    for condition in conditions:
        used = expression_variables(condition)
        if holds_exists(condition) or asks_the_run(condition) or not used <= both:
            stateful.append(condition)
        elif used <= own and not used & open_to_kb:
            filters.append(condition)
        else:
            kb_filters.append(condition)
    return GpmParts(
        gpm,
        pattern,
        kb,
        tuple(filters),
        tuple(kb_filters),
        tuple(stateful),
        in_place,
        pattern_variables + tuple(v for v in kb_variables if v not in own),
        certain | (certain_variables(kb) if kb is not None else frozenset()),
        pattern_variables,
        kb_variables,
    )


def _take_filters(gpm: Gpm, others: AbstractSet[Variable]) -> tuple[list[Expression], list[PatternElement]]:
    """The conditions of top-level FILTERs, and the other elements in their order; an EXISTS that reads one event
    alone stays with its pattern."""
    conditions: list[Expression] = []
    rest: list[PatternElement] = []
    own: frozenset[Variable] | None = None  # most patterns need not know
    for element in gpm.pattern.elements:
        if not isinstance(element, Filter):
            rest.append(element)
            continue
        for condition in conjuncts(element.condition):
            if not holds_exists(condition):
                conditions.append(condition)
                continue
            if own is None:
                own = frozenset(visible_variables(gpm.pattern))
            if reads_others(condition, own, others):
                conditions.append(_given(condition, own | others, gpm.name))
            else:
                rest.append(Filter(condition, span=element.span))
    return conditions, rest


def reads_others(condition: Expression, own: frozenset[Variable], others: AbstractSet[Variable]) -> bool:
    """Whether a condition with EXISTS reads more than one event: another GPM's variable, or more of the run."""
    used = plain_variables(condition).union(*(mentioned_variables(e.pattern) for e in exists_in(condition)))
    return asks_the_run(condition) or bool((used - own) & others)


def _given(condition: Expression, known: frozenset[Variable], gpm: str) -> Expression:
    """The condition of a stateful FILTER: each EXISTS in it knows what it reads."""
    match condition:
        case Exists(pattern):
            given = sorted(mentioned_variables(pattern) & known, key=str)
            return replace(condition, given=tuple(given), gpm=gpm)
        case Call(_, args) | FunctionCall(_, args):
            return replace(condition, args=tuple(_given(arg, known, gpm) for arg in args))
        case _:
            return condition


def _with_elements(whole: Group, some: Sequence[PatternElement]) -> Group:
    """The pattern with some of its elements; itself if these are all, of which much is known (`once`)."""
    same = len(some) == len(whole.elements) and all(map(is_, some, whole.elements))
    return whole if same else Group(tuple(some), span=whole.span)


def _needs_kb_inside(own: Group, graphs: list[PatternElement]) -> bool:
    """GRAPH below the top level, or an expression in the pattern that reads what only the KB binds."""
    if any(isinstance(e, GraphPattern) for e in nested_elements(own)):
        return True
    if not graphs:
        return False
    kb_only = frozenset(visible_variables(Group(tuple(graphs)))) - frozenset(visible_variables(own))
    return any(expression_variables(e) & kb_only for e in inner_expressions(own))


@once
def nested_elements(pattern: Group) -> tuple[PatternElement, ...]:
    """Every element at any depth, the patterns of EXISTS and sub-queries included, each before what is in it."""
    found: list[PatternElement] = []
    waiting = [*reversed(pattern.elements)]
    while waiting:
        element = waiting.pop()
        found.append(element)
        for inner in reversed(inner_groups(element)):
            waiting += reversed(inner.elements)
    return tuple(found)


def inner_groups(element: PatternElement) -> Sequence[Group]:
    """The groups directly inside `element`, those of its EXISTS included; a group is its own."""
    match element:
        case TriplePattern():
            return ()
        case Filter(expression) | Bind(expression):
            return [e.pattern for e in exists_in(expression)]
        case Group():
            return (element,)
        case OptionalPattern(inner) | Minus(inner) | GraphPattern(_, inner) | WindowPattern(_, inner):
            return (inner,)
        case Union(branches):
            return branches
        case SubSelect():
            asked = (e.pattern for each in sub_select_expressions(element) for e in exists_in(each))
            return (element.where, *asked)
        case TimedPattern():
            found: list[Group] = []
            operands: list[PatternElement] = [element]  # of a chain: each is the left one of the next
            while operands:
                each = operands.pop()
                if isinstance(each, TimedPattern):
                    operands += (each.right, each.left)
                else:
                    found += inner_groups(each)
            return found
        case _:
            return ()


def sub_select_expressions(query: SubSelect) -> Iterator[Expression]:
    """The expressions of a sub-query's clauses, its WHERE not included."""
    yield from (p[0] for p in query.projection or () if isinstance(p, tuple))
    yield from (k[0] if isinstance(k, tuple) else k for k in query.group_by)
    yield from query.having
    yield from (k[0] for k in query.order_by)


def inner_expressions(pattern: Group) -> Iterator[Expression]:
    """The expressions of BIND and FILTER at any depth."""
    for element in nested_elements(pattern):
        if isinstance(element, Filter):
            yield element.condition
        elif isinstance(element, Bind):
            yield element.expression


def pattern_expressions(pattern: Group) -> Iterator[Expression]:
    """Every expression in a pattern with its subexpressions, sub-queries' clauses included."""
    for condition in inner_expressions(pattern):
        yield from subexpressions(condition)
    for element in nested_elements(pattern):
        if isinstance(element, SubSelect):
            for e in sub_select_expressions(element):
                yield from subexpressions(e)
