"""Patterns as SPARQL text, for the store that answers what the reference does not answer itself."""

from __future__ import annotations

from pyoxigraph import Literal, NamedNode, Variable

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
    Minus,
    OptionalPattern,
    Path,
    PathAlternative,
    PathInverse,
    PathNegated,
    PathPattern,
    PathRepeat,
    PathSequence,
    PatternElement,
    SubSelect,
    TriplePattern,
    Union,
    Values,
)

INFIX = frozenset(["=", "!=", "<", ">", "<=", ">=", "+", "-", "*", "/", "&&", "||"])
PREFIXED = {"!": "!", "NEGATE": "-", "PLUS": "+"}


def group_text(group: Group) -> str:
    """`{ ... }`; a sub-SELECT alone keeps its own braces."""
    return "{ " + " ".join(element_text(e) for e in group.elements) + " }"


def element_text(element: PatternElement) -> str:
    match element:
        case TriplePattern(s, p, o):
            return f"{s} {p} {o} ."
        case PathPattern(s, path, o):
            return f"{s} {path_text(path)} {o} ."
        case Filter(condition):
            return f"FILTER({expression_text(condition)})"
        case Bind(expression, variable):
            return f"BIND({expression_text(expression)} AS {variable})"
        case Values():
            return values_text(element)
        case OptionalPattern(inner):
            return f"OPTIONAL {group_text(inner)}"
        case Union(branches):
            return " UNION ".join(group_text(b) for b in branches)
        case Minus(inner):
            return f"MINUS {group_text(inner)}"
        case GraphPattern(name, inner):
            return f"GRAPH {name} {group_text(inner)}"
        case SubSelect():
            return "{ " + select_text(element) + " }"
        case Group():
            return group_text(element)


def values_text(values: Values) -> str:
    names = " ".join(str(v) for v in values.variables)
    rows = " ".join("(" + " ".join("UNDEF" if t is None else str(t) for t in row) + ")" for row in values.rows)
    return f"VALUES ({names}) {{ {rows} }}"


def select_text(query: SubSelect) -> str:
    """`SELECT ... WHERE ...` with its solution modifiers."""
    parts = ["SELECT", "DISTINCT" if query.distinct else "", "REDUCED" if query.reduced else ""]
    if query.projection is None:
        parts.append("*")
    else:
        parts += [_column(p) for p in query.projection]
    parts.append("WHERE " + group_text(query.where))
    if query.group_by:
        parts.append("GROUP BY " + " ".join(_group_key(k) for k in query.group_by))
    if query.having:
        parts.append("HAVING " + " ".join(f"({expression_text(h)})" for h in query.having))
    if query.order_by:
        keys = (f"{'DESC' if down else 'ASC'}({expression_text(e)})" for e, down in query.order_by)
        parts.append("ORDER BY " + " ".join(keys))
    if query.limit is not None:
        parts.append(f"LIMIT {query.limit}")
    if query.offset is not None:
        parts.append(f"OFFSET {query.offset}")
    if query.values is not None:
        parts.append(values_text(query.values))
    return " ".join(p for p in parts if p)


def _column(column: Variable | tuple[Expression, Variable]) -> str:
    return str(column) if isinstance(column, Variable) else f"({expression_text(column[0])} AS {column[1]})"


def _group_key(key: Expression | tuple[Expression, Variable]) -> str:
    if isinstance(key, tuple):
        return f"({expression_text(key[0])} AS {key[1]})"
    return str(key) if isinstance(key, Variable) else f"({expression_text(key)})"


def expression_text(expression: Expression) -> str:
    match expression:
        case Variable() | NamedNode() | Literal():
            return str(expression)
        case Call(name, args):
            return _call_text(name, [expression_text(a) for a in args])
        case FunctionCall(function, args):
            return f"{function}({', '.join(expression_text(a) for a in args)})"
        case Exists(pattern, negated):
            return ("NOT " if negated else "") + "EXISTS " + group_text(pattern)
        case Aggregate(name, arg, distinct, separator):
            inner = ("DISTINCT " if distinct else "") + ("*" if arg is None else expression_text(arg))
            tail = f" ; SEPARATOR = {Literal(separator)}" if separator is not None else ""
            return f"{name}({inner}{tail})"
        case _:
            raise AssertionError(f"{type(expression).__name__} does not go to the store")


def _call_text(name: str, args: list[str]) -> str:
    if name in INFIX:
        return "(" + f" {name} ".join(args) + ")"
    if name in PREFIXED:
        return f"({PREFIXED[name]} {args[0]})"
    if name in ("IN", "NOT IN"):
        return f"({args[0]} {name} ({', '.join(args[1:])}))"
    return f"{name}({', '.join(args)})"


def path_text(path: Path) -> str:
    match path:
        case NamedNode():
            return str(path)
        case PathInverse(inner):
            return f"^({path_text(inner)})" if not isinstance(inner, NamedNode) else f"^{inner}"
        case PathSequence(paths):
            return "(" + " / ".join(path_text(p) for p in paths) + ")"
        case PathAlternative(paths):
            return "(" + " | ".join(path_text(p) for p in paths) + ")"
        case PathRepeat(inner, mark):
            return f"({path_text(inner)}){mark}"
        case PathNegated(paths):
            return "!(" + " | ".join(path_text(p) for p in paths) + ")"
