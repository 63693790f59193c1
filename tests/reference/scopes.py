"""Which variables a pattern shows and an expression mentions (SPARQL 1.1, section 18.2.1)."""

from __future__ import annotations

from collections.abc import Iterator

from pyoxigraph import Variable

from oxiseq.grammar.algebra import (
    Aggregate,
    Bind,
    Call,
    Exists,
    Expression,
    Filter,
    FunctionCall,
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
    TriplePattern,
    Union,
    Values,
    WindowPattern,
)


def shown(pattern: Group) -> list[Variable]:
    """The variables of its solutions, in order of appearance, each once."""
    return list(dict.fromkeys(v for element in pattern.elements for v in shown_by(element)))


def shown_by(element: PatternElement) -> Iterator[Variable]:
    match element:
        case TriplePattern(s, p, o):
            yield from (t for t in (s, p, o) if isinstance(t, Variable))
        case PathPattern(s, _, o):
            yield from (t for t in (s, o) if isinstance(t, Variable))
        case Bind(_, variable):
            yield variable
        case Values(variables):
            yield from variables
        case OptionalPattern(inner):
            yield from shown(inner)
        case Group():
            yield from shown(element)
        case Union(branches):
            for branch in branches:
                yield from shown(branch)
        case GraphPattern(name, inner) | WindowPattern(name, inner):
            yield from ([name] if isinstance(name, Variable) else [])
            yield from shown(inner)
        case MatchPattern(_, variables):
            yield from variables
        case SubSelect(None, where):
            yield from shown(where)
        case SubSelect(projection):
            yield from (c if isinstance(c, Variable) else c[1] for c in projection or ())
        case Filter() | Minus():
            return


def inside(expression: Expression) -> Iterator[Expression]:
    """The expression and all its parts, outermost first."""
    yield expression
    if isinstance(expression, Call | FunctionCall):
        for arg in expression.args:
            yield from inside(arg)
    elif isinstance(expression, Aggregate) and expression.arg is not None:
        yield from inside(expression.arg)


def mentioned(expression: Expression) -> set[Variable]:
    """Its variables, those of EXISTS included, those of PREV not."""
    found = {e for e in inside(expression) if isinstance(e, Variable)}
    for e in inside(expression):
        if isinstance(e, Exists):
            found.update(shown(e.pattern))
    return found


def plainly_mentioned(expression: Expression) -> set[Variable]:
    """Its variables outside EXISTS and PREV."""
    return {e for e in inside(expression) if isinstance(e, Variable)}


def mentioned_in(pattern: Group) -> set[Variable]:
    """All variables of a pattern, its conditions' too; of a sub-SELECT only what it shows."""
    found = set(shown(pattern))
    for element in pattern.elements:
        for inner in [] if isinstance(element, SubSelect) else _groups_of(element):
            found |= mentioned_in(inner)
        if isinstance(element, Filter):
            found |= plainly_mentioned(element.condition)
        elif isinstance(element, Bind):
            found |= plainly_mentioned(element.expression)
    return found


def has_prev(expression: Expression) -> bool:
    return any(isinstance(e, Prev) for e in inside(expression))


def asks_the_run(expression: Expression) -> bool:
    """Whether it asks for more of the partial match than variables, PREV included."""
    return any(isinstance(e, Prev | MatchFunction | Aggregate) for e in inside(expression))


def has_exists(expression: Expression) -> bool:
    return any(isinstance(e, Exists) for e in inside(expression))


def conjuncts(condition: Expression) -> list[Expression]:
    """The operands of the outermost `&&`."""
    if isinstance(condition, Call) and condition.name == "&&":
        return [c for arg in condition.args for c in conjuncts(arg)]
    return [condition]


def holds_graph(pattern: Group) -> bool:
    """Whether GRAPH stands anywhere in it."""
    return any(isinstance(e, GraphPattern) for e in elements_below(pattern))


def conditions_below(pattern: Group) -> list[Expression]:
    """The expressions of FILTER and BIND at any depth."""
    found: list[Expression] = []
    for element in elements_below(pattern):
        if isinstance(element, Filter):
            found.append(element.condition)
        elif isinstance(element, Bind):
            found.append(element.expression)
    return found


def elements_below(pattern: Group) -> Iterator[PatternElement]:
    for element in pattern.elements:
        yield element
        for inner in _groups_of(element):
            yield from elements_below(inner)


def _groups_of(element: PatternElement) -> list[Group]:
    match element:
        case Group():
            return [element]
        case OptionalPattern(inner) | Minus(inner) | GraphPattern(_, inner) | SubSelect(_, inner):
            return [inner]
        case Union(branches):
            return list(branches)
        case Filter(expression) | Bind(expression):
            return [e.pattern for e in inside(expression) if isinstance(e, Exists)]
        case _:
            return []
