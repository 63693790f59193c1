"""A CONSTRUCT query over columns → a plan, where its WHERE is made of BINDs of the usual functions.

What is compiled: STR, CONCAT, IRI, URI, ENCODE_FOR_URI, STRDT and STRLANG with a constant, casts to xsd:string,
boolean, integer, decimal and double, variables, constants; in the template anything. Other queries are answered by
Oxigraph, row by row, as `oxiseq load` does it: `NotCompiled` says why.

A query that a server takes has bounds: rows are all its data, so patterns, sub-SELECTs, GRAPH and SERVICE would find
nothing or reach out, and an expression may make a text only so many times as long as the columns are.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final

from pyoxigraph import BlankNode, Literal, NamedNode, Variable

from oxiseq.engine.terms.normal import XSD
from oxiseq.grammar.algebra import (
    Bind,
    Call,
    Exists,
    Expression,
    Filter,
    FunctionCall,
    Group,
    OptionalPattern,
    TermOrVariable,
    Union,
    Values,
)
from oxiseq.grammar.errors import QueryError
from oxiseq.grammar.parser import parse
from oxiseq.grammar.rsp_algebra import RspQuery
from oxiseq.mappings.cells import IRI, STRING
from oxiseq.mappings.errors import MappingError
from oxiseq.mappings.plan import (
    PLAIN_FORMS,
    Blank,
    Cast,
    Column,
    Concat,
    Constant,
    Encoded,
    Expr,
    Iri,
    Part,
    Plan,
    Statement,
    Str,
    Tagged,
    Typed,
)

LONGEST: Final = 64 << 10
"""Characters of a query."""
_GROWTH: Final = 1000
"""How many times as long as the columns a text may become."""
_ROWS: Final = 1000
"""Rows that VALUES and UNION may make of one."""
_FILTERS: Final = ""
"""In place of a variable's name."""


class NotCompiled(Exception):
    """Why Oxigraph is to answer."""


def checked_query(text: str) -> RspQuery:
    """Parse and check. Raises MappingError, with the place in the text."""
    if len(text) > LONGEST:
        raise MappingError(f"a mapping has at most {LONGEST:,} characters, not {len(text):,}")
    try:
        query = parse(text, "rspql")
    except QueryError as error:
        raise MappingError(f"the mapping: {error}") from error
    if not isinstance(query, RspQuery) or query.form != "CONSTRUCT":
        raise MappingError("a CONSTRUCT query is expected")
    if query.windows or query.events or query.default_graphs or query.named_graphs or query.report or query.into:
        raise MappingError("a mapping reads the columns of rows: it has no FROM, no window and no event")
    body = query.body
    modified = body.group_by or body.having or body.order_by or body.values
    if modified or body.limit is not None or body.offset is not None:
        raise MappingError(
            "a mapping is answered for each row: it has no GROUP BY, HAVING, ORDER BY, LIMIT or VALUES behind its WHERE"
        )
    if _rows(body.where, {}) > _ROWS:
        raise MappingError(f"VALUES and UNION make more than {_ROWS:,} rows of one")
    return query


def compiled(query: RspQuery) -> Plan:
    """Raises NotCompiled."""
    known: dict[str, Expr] = {}
    for element in query.body.where.elements:
        if not isinstance(element, Bind):
            raise NotCompiled(f"{type(element).__name__.removesuffix('Pattern').upper()} in WHERE")
        known[element.variable.value] = _expression(element.expression, known)
    blanks: dict[str, Blank] = {}
    statements = tuple(
        Statement(*(_part(term, known, blanks) for term in (triple.subject, triple.predicate, triple.object)))
        for triple in query.template
    )
    return Plan(statements, len(blanks))


def _part(term: TermOrVariable, known: dict[str, Expr], blanks: dict[str, Blank]) -> Part:
    if isinstance(term, BlankNode):
        return blanks.setdefault(term.value, Blank(len(blanks)))
    return _expression(term, known)


def _expression(given: Expression, known: dict[str, Expr]) -> Expr:
    match given:
        case Variable():
            return known.setdefault(given.value, Column(given.value))
        case NamedNode():
            return Constant(given.value, IRI)
        case Literal():
            return _literal(given)
        case Call(name, args):
            return _call(name, [_expression(arg, known) for arg in args])
        case FunctionCall(function, (arg,)) if function.value in PLAIN_FORMS:
            inner = _expression(arg, known)
            return Str(inner) if function.value == XSD + "string" else Cast(inner, function.value)
    raise NotCompiled(f"{getattr(given, 'name', type(given).__name__)} in WHERE")


def _literal(term: Literal) -> Constant:
    if term.direction is not None:
        raise NotCompiled("a literal with a base direction")
    if term.language is not None:
        return Constant(term.value, f"@{term.language}")
    return Constant(term.value, STRING if term.datatype.value == XSD + "string" else f"^^<{term.datatype.value}>")


def _call(name: str, args: list[Expr]) -> Expr:
    match name, args:
        case "STR", [of]:
            return Str(of)
        case "CONCAT", _:
            return Concat(tuple(args))
        case (("IRI" | "URI"), [of]):
            return Iri(of)
        case "ENCODE_FOR_URI", [of]:
            return Encoded(of)
        case "STRDT", [of, Constant(datatype, "<")] if not datatype.endswith("angString"):
            return Typed(of, datatype)
        case "STRLANG", [of, Constant(tag, "")] if tag == tag.lower() and tag.isascii() and tag.isalpha():
            return Tagged(of, tag)
    raise NotCompiled(f"{name} in WHERE")


# --- bounds -----------------------------------------------------------------------------------------


def _rows(group: Group, growth: dict[str, float]) -> float:
    """How many rows at most a group makes of one. Raises MappingError for what a mapping may not have."""
    made = 1.0
    for element in group.elements:
        match element:
            case Bind(expression, variable):
                growth[variable.value] = _bounded(expression, growth)
            case Filter(condition):
                growth[_FILTERS] = max(growth.get(_FILTERS, 1.0), _bounded(condition, growth))
            case Values(_, rows):
                made *= max(1, len(rows))
            case Group() | OptionalPattern():
                made *= _rows(element if isinstance(element, Group) else element.pattern, growth)
            case Union(branches):
                made *= sum(_rows(branch, growth) for branch in branches)
            case _:
                raise MappingError(
                    "a mapping reads the columns of rows, to which its WHERE may BIND more values: it "
                    "has no patterns of triples, sub-SELECT, MINUS, GRAPH or SERVICE"
                )
        if made > _ROWS:
            return made
    return made


def text_growth(query: RspQuery) -> float:
    """How many times as long as the longest column the text may be that a query makes of a row."""
    growth: dict[str, float] = {}
    rows = _rows(query.body.where, growth)
    return rows * max(1, len(query.template)) * max([1.0, *growth.values()])


def _bounded(expression: Expression, growth: Mapping[str, float]) -> float:
    size = _size(expression, growth)
    if size > _GROWTH:
        raise MappingError(f"an expression makes a text that may be {_GROWTH:,} times as long as its columns")
    return size


def _size(expression: Expression, growth: Mapping[str, float]) -> float:
    """How many times as long as the longest column a value may be."""
    match expression:
        case Variable():
            return growth.get(expression.value, 1.0)
        case Exists():
            raise MappingError("a mapping reads the columns of rows: EXISTS has nothing to look at")
        case Call("REPLACE", args):
            _bounded(args[1], growth)
            if not isinstance(args[2], Literal):
                raise MappingError("REPLACE in a mapping takes a constant replacement")
            return _size(args[0], growth) * (1 + len(args[2].value))
        case Call(_, args) | FunctionCall(_, args):
            return sum((_size(arg, growth) for arg in args), 0.0) * (3 if _name(expression) == "ENCODE_FOR_URI" else 1)
        case Literal() | NamedNode():
            return len(expression.value) / 64
    return 1.0


def _name(expression: Expression) -> str:
    return expression.name if isinstance(expression, Call) else ""


def variables(query: RspQuery) -> Iterator[str]:
    """Those that only columns can bind, in the order of the text."""
    bound: set[str] = set()
    used: dict[str, None] = {}
    for element in _elements(query.body.where):
        match element:
            case Bind(expression, variable):
                used.update(dict.fromkeys(_read(expression)))
                bound.add(variable.value)
            case Filter(condition):
                used.update(dict.fromkeys(_read(condition)))
            case Values(names, _):
                bound.update(name.value for name in names)
    for triple in query.template:
        terms = (triple.subject, triple.predicate, triple.object)
        used.update({term.value: None for term in terms if isinstance(term, Variable)})
    return (name for name in used if name not in bound)


def _elements(group: Group) -> Iterator[object]:
    for element in group.elements:
        if isinstance(element, Group):
            yield from _elements(element)
        elif isinstance(element, OptionalPattern):
            yield from _elements(element.pattern)
        elif isinstance(element, Union):
            for branch in element.branches:
                yield from _elements(branch)
        else:
            yield element


def _read(expression: Expression) -> Iterator[str]:
    if isinstance(expression, Variable):
        yield expression.value
    elif isinstance(expression, Call | FunctionCall):
        for arg in expression.args:
            yield from _read(arg)
