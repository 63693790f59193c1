"""SPARQL 1.1 text of patterns, paths, terms and expressions.

In the flow: used by `render` (with the query's prefixes) and for what Oxigraph is asked (full IRIs).
Parentheses are written where the grammar needs them to give the same tree back.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import ClassVar, Protocol

from pyoxigraph import BlankNode, Literal, NamedNode, Variable

from oxiseq.grammar.algebra import (
    Aggregate,
    Ask,
    Bind,
    Call,
    Construct,
    EventName,
    EventPattern,
    Exists,
    Expression,
    Filter,
    FirstOf,
    Following,
    FunctionCall,
    GraphPattern,
    Group,
    LastOf,
    MatchFunction,
    MatchPattern,
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
    Prev,
    Projection,
    Select,
    SubSelect,
    TermOrVariable,
    TimedPattern,
    TriplePattern,
    Union,
    Values,
    WindowPattern,
)
from oxiseq.grammar.functions import IRI_MAKERS
from oxiseq.grammar.parts import parts
from oxiseq.grammar.terms import RDF_TYPE, XSD_BOOLEAN, XSD_DECIMAL, XSD_DOUBLE, XSD_INTEGER, XSD_STRING

_INDENT = "  "
_LOCAL = re.compile(r"(?:[A-Za-z0-9_](?:[A-Za-z0-9_\-]*[A-Za-z0-9_])?)?")
_NUMBERS: dict[NamedNode, re.Pattern[str]] = {
    XSD_INTEGER: re.compile(r"[+-]?[0-9]+"),
    XSD_DECIMAL: re.compile(r"[+-]?[0-9]*\.[0-9]+"),
    XSD_DOUBLE: re.compile(r"[+-]?(?:[0-9]+\.[0-9]*|\.[0-9]+|[0-9]+)[eE][+-]?[0-9]+"),
}
_ESCAPES = {"\\": "\\\\", '"': '\\"', "\n": "\\n", "\r": "\\r", "\t": "\\t", "\b": "\\b", "\f": "\\f"}

# how tightly an expression binds: an operand is put in parentheses unless it binds tighter than its place asks
OR, AND, NOT, RELATION, SUM, PRODUCT, UNARY, PRIMARY = range(8)
_BINARY = {
    "||": OR,
    "&&": AND,
    **dict.fromkeys(("=", "!=", "<", ">", "<=", ">=", "IN", "NOT IN"), RELATION),
    **dict.fromkeys("+-", SUM),
    **dict.fromkeys("*/", PRODUCT),
}


class _WithPrologue(Protocol):
    @property
    def base(self) -> str | None: ...

    @property
    def prefixes(self) -> tuple[tuple[str, str], ...]: ...


class SparqlWriter:
    """Writes algebra as SPARQL; `prefixes` (prefix → IRI) shorten IRIs, without them IRIs are full."""

    words: ClassVar[Mapping[str, str]] = {}
    """How a dialect writes operators."""
    prefixed: ClassVar[Mapping[str, tuple[str, int]]] = {
        "!": ("!", UNARY),
        "NEGATE": ("-", UNARY),
        "PLUS": ("+", UNARY),
    }
    """Operators before their one operand, and how tightly they bind."""

    def __init__(self, prefixes: Mapping[str, str] | None = None) -> None:
        # the longest namespace first: the shortest name wins
        self._prefixes = sorted((prefixes or {}).items(), key=lambda p: -len(p[1]))

    def prologue(self, query: _WithPrologue) -> list[str]:
        """BASE and PREFIX of a query, each on a line."""
        base = query.base or base_of(query)
        lines = [] if base is None else [f"BASE <{base}>"]
        return lines + [f"PREFIX {prefix}: <{iri}>" for prefix, iri in query.prefixes]

    # --- forms ------------------------------------------------------------------------------------

    def form(self, form: Select | Construct | Ask) -> str:
        """SELECT with its columns, CONSTRUCT with its template, or ASK."""
        match form:
            case Ask():
                return "ASK"
            case Select(columns, distinct, selection):
                shown = ["*"] if columns is None else map(self._projection, columns)
                strategy = [selection.strategy.value] if selection else []
                return " ".join(["SELECT", *(["DISTINCT"] if distinct else []), *strategy, *shown])
            case Construct(into=into):
                end = "" if into is None else f" INTO STREAM <{into.value}>"
                return "\n".join(["CONSTRUCT {", *(f"  {triple} ." for triple in self.template(form)), "}" + end])

    def template(self, form: Construct) -> Iterator[str]:
        """The triples of a template, with the expressions that it has for objects."""
        expressions = {c.variable: c.expression for c in form.columns}
        for triple in form.template:
            bound = expressions.get(triple.object) if isinstance(triple.object, Variable) else None
            target = self.term(triple.object) if bound is None else f"({self.expression(bound)})"
            yield f"{self.term(triple.subject)} {self.verb(triple.predicate)} {target}"

    def _projection(self, column: Projection) -> str:
        shown = column.variable
        return self._column(shown if column.expression is None else (column.expression, shown), "")

    # --- terms ------------------------------------------------------------------------------------

    def term(self, term: TermOrVariable) -> str:
        match term:
            case NamedNode():
                return self.iri(term)
            case Literal():
                return self.literal(term)
            case BlankNode():
                return f"_:{term.value}"
            case Variable():
                return f"?{term.value}"

    def iri(self, iri: NamedNode) -> str:
        for prefix, namespace in self._prefixes:
            if namespace and iri.value.startswith(namespace) and _LOCAL.fullmatch(iri.value, len(namespace)):
                return f"{prefix}:{iri.value[len(namespace) :]}"
        return f"<{iri.value}>"

    def literal(self, literal: Literal) -> str:
        kind = literal.datatype
        if kind == XSD_BOOLEAN and literal.value in ("true", "false"):
            return literal.value
        if kind in _NUMBERS and _NUMBERS[kind].fullmatch(literal.value):
            return literal.value
        quoted = '"' + "".join(_ESCAPES.get(c, c) for c in literal.value) + '"'
        if literal.language is not None:
            return f"{quoted}@{literal.language}"
        return quoted if kind == XSD_STRING else f"{quoted}^^{self.iri(kind)}"

    def verb(self, verb: NamedNode | Variable) -> str:
        return "a" if verb == RDF_TYPE else self.term(verb)

    # --- paths ------------------------------------------------------------------------------------

    def path(self, path: Path) -> str:
        match path:
            case NamedNode():
                return self.verb(path)
            case PathAlternative(paths):
                return "|".join(inside(self.path(p), p, PathAlternative) for p in paths)
            case PathSequence(paths):
                return "/".join(inside(self.path(p), p, PathAlternative, PathSequence) for p in paths)
            case PathInverse(inner):
                return "^" + inside(self.path(inner), inner, PathAlternative, PathSequence, PathInverse)
            case PathRepeat(inner, mark):
                loose = PathAlternative, PathSequence, PathInverse, PathRepeat
                return inside(self.path(inner), inner, *loose) + mark
            case PathNegated(paths):
                return "!(" + "|".join(self.path(p) for p in paths) + ")"

    # --- patterns ---------------------------------------------------------------------------------

    def group(self, group: Group, indent: str) -> str:
        """`{ ... }`; lines after the first begin with `indent`."""
        if not group.elements:
            return "{ }"
        if len(group.elements) == 1 and isinstance(group.elements[0], SubSelect):
            return f"{{ {self.sub_select(group.elements[0], indent)} }}"
        return f"{{\n{self.body(group, indent)}\n{indent}}}"

    def body(self, group: Group, indent: str) -> str:
        """The lines between the braces."""
        inner = indent + _INDENT
        return "\n".join(inner + self.element(e, inner) for e in group.elements)

    def element(self, element: PatternElement, indent: str) -> str:
        match element:
            case TriplePattern(s, p, o):
                return f"{self.term(s)} {self.verb(p)} {self.term(o)} ."
            case PathPattern(s, path, o):
                return f"{self.term(s)} {self.path(path)} {self.term(o)} ."
            case Filter(condition):
                return f"FILTER({self.expression(condition, indent)})"
            case Bind(expression, variable):
                return f"BIND({self.expression(expression, indent)} AS {self.term(variable)})"
            case Values():
                return self.values(element)
            case OptionalPattern(pattern):
                return f"OPTIONAL {self.group(pattern, indent)}"
            case Minus(pattern):
                return f"MINUS {self.group(pattern, indent)}"
            case GraphPattern(name, pattern):
                return f"GRAPH {self.term(name)} {self.group(pattern, indent)}"
            case WindowPattern(name, pattern):
                return f"WINDOW {self.term(name)} {self.group(pattern, indent)}"
            case MatchPattern(events):
                return f"MATCH {{ {event_pattern(events)} }}"
            case Union(branches):
                return " UNION ".join(self.group(b, indent) for b in branches)
            case SubSelect():
                return f"{{ {self.sub_select(element, indent)} }}"
            case TimedPattern(op, left, right):
                return f"{self.element(left, indent)} {op.value} {self.element(right, indent)}"
            case Group():
                return self.group(element, indent)

    def values(self, values: Values) -> str:
        names = " ".join(self.term(v) for v in values.variables)
        rows = " ".join(
            "(" + " ".join("UNDEF" if t is None else self.term(t) for t in row) + ")" for row in values.rows
        )
        return f"VALUES ({names}) {{ {rows} }}"

    def sub_select(self, query: SubSelect, indent: str) -> str:
        """A sub-query without the braces around it."""
        mode = "DISTINCT " if query.distinct else "REDUCED " if query.reduced else ""
        return f"SELECT {mode}{self.columns(query, indent)} {self.rest_of_select(query, indent)}"

    def columns(self, query: SubSelect, indent: str) -> str:
        """What SELECT lists."""
        return "*" if query.projection is None else " ".join(self._column(c, indent) for c in query.projection)

    def clauses_of_groups(
        self,
        group_by: Sequence[Expression | tuple[Expression, Variable]],
        having: Sequence[Expression],
        order_by: Sequence[tuple[Expression, bool]],
        indent: str,
    ) -> list[str]:
        """GROUP BY, HAVING and ORDER BY, those that there are."""
        parts = []
        if group_by:
            parts.append("GROUP BY " + " ".join(self._key(k, indent) for k in group_by))
        if having:
            parts.append("HAVING " + " ".join(f"({self.expression(e, indent)})" for e in having))
        if order_by:
            keys = (f"{'DESC' if d else 'ASC'}({self.expression(e, indent)})" for e, d in order_by)
            parts.append("ORDER BY " + " ".join(keys))
        return parts

    def rest_of_select(self, query: SubSelect, indent: str) -> str:
        """WHERE and the solution modifiers."""
        parts = [f"WHERE {self.group(query.where, indent)}"]
        parts += self.clauses_of_groups(query.group_by, query.having, query.order_by, indent)
        if query.limit is not None:
            parts.append(f"LIMIT {query.limit}")
        if query.offset is not None:
            parts.append(f"OFFSET {query.offset}")
        if query.values is not None:
            parts.append(self.values(query.values))
        return " ".join(parts)

    def _column(self, column: Variable | tuple[Expression, Variable], indent: str) -> str:
        if isinstance(column, tuple):
            return f"({self.expression(column[0], indent)} AS {self.term(column[1])})"
        return self.term(column)

    def _key(self, key: Expression | tuple[Expression, Variable], indent: str) -> str:
        if isinstance(key, tuple):
            return self._column(key, indent)
        return self.term(key) if isinstance(key, Variable) else f"({self.expression(key, indent)})"

    # --- expressions ------------------------------------------------------------------------------

    def expression(self, expression: Expression, indent: str = "") -> str:
        return self._expression(expression, indent)[0]

    def one_line(self, expression: Expression) -> str:
        """The same without line breaks, for reports; the pattern of an EXISTS has some."""
        return " ".join(line.strip() for line in self.expression(expression).split("\n"))

    def at(self, expression: Expression, least: int, indent: str = "") -> str:
        """As an operand in a place that needs it to bind at least so tightly."""
        text, binds = self._expression(expression, indent)
        return text if binds >= least else f"({text})"

    def _expression(self, expression: Expression, indent: str) -> tuple[str, int]:
        match expression:
            case Call(name, args):
                return self._call(name, args, lambda e, least: self.at(e, least, indent))
            case FunctionCall(function, args, distinct):
                listed = ", ".join(self.expression(a, indent) for a in args)
                return f"{self.iri(function)}({'DISTINCT ' if distinct else ''}{listed})", PRIMARY
            case Aggregate(name, arg, distinct, separator):
                inner = "*" if arg is None else self.expression(arg, indent)
                end = "" if separator is None else f"; SEPARATOR={self.literal(Literal(separator))}"
                return f"{name}({'DISTINCT ' if distinct else ''}{inner}{end})", PRIMARY
            case Exists(pattern, negated):
                return f"{'NOT ' if negated else ''}EXISTS {self.group(pattern, indent)}", PRIMARY
            case Prev(variable):
                return f"PREV({self.term(variable)})", PRIMARY
            case MatchFunction(name, gpm):
                return f"{name}({gpm or ''})", PRIMARY
            case _:
                return self.term(expression), PRIMARY

    def _call(self, name: str, args: tuple[Expression, ...], at: Callable[[Expression, int], str]) -> tuple[str, int]:
        if name in self.prefixed and len(args) == 1:
            mark, binds = self.prefixed[name]
            operand = at(args[0], binds)
            # `-1` would be read as one number, `--1` is legal but hard to read
            return mark + (f"({operand})" if operand[0] in "0123456789.+-" else operand), binds
        if name in ("IN", "NOT IN"):
            listed = ", ".join(at(a, OR) for a in args[1:])
            return f"{at(args[0], SUM)} {name} ({listed})", RELATION
        if name in _BINARY and len(args) == 2:
            return self._chain(name, args, at)
        shown = args[:1] if name in IRI_MAKERS else args
        return f"{name}({', '.join(at(a, OR) for a in shown)})", PRIMARY

    def _chain(self, name: str, args: tuple[Expression, ...], at: Callable[[Expression, int], str]) -> tuple[str, int]:
        """`a + b - c`: operators of one level from left to right, without a call per operator."""
        binds = _BINARY[name]
        left, right = args
        tail = [f"{self.words.get(name, name)} {at(right, binds + 1)}"]
        while binds != RELATION and isinstance(left, Call) and len(left.args) == 2 and _BINARY.get(left.name) == binds:
            tail.append(f"{self.words.get(left.name, left.name)} {at(left.args[1], binds + 1)}")
            left = left.args[0]
        head = at(left, binds + 1 if binds == RELATION else binds)
        return " ".join([head, *reversed(tail)]), binds


def inside(text: str, part: object, *loose: type) -> str:
    """The text of a part, in parentheses if it is of one of these kinds."""
    return f"({text})" if isinstance(part, loose) else text


def event_pattern(pattern: EventPattern) -> str:
    """An event pattern of MATCH, with the parentheses that it needs."""
    match pattern:
        case EventName(name):
            return name
        case FirstOf(inner):
            return f"FIRST({event_pattern(inner)})"
        case LastOf(inner):
            return f"LAST({event_pattern(inner)})"
        case Following(first, second, choice):
            operator = f"SEQ^{choice.value}" if choice.value else "SEQ"
            return f"{event_pattern(first)} {operator} {inside(event_pattern(second), second, Following)}"


def select_text(query: SubSelect, shown: Sequence[Variable | tuple[Expression, Variable]]) -> str:
    """The query as text, answering these columns; one that means nothing where there are none."""
    writer, base = SparqlWriter(), base_clause(query, shown)
    if shown:
        return base + writer.sub_select(replace(query, projection=tuple(shown)), "")
    mode = "DISTINCT " if query.distinct else ""
    return f"{base}SELECT {mode}(1 AS ?oxiseq_one) {writer.rest_of_select(query, '')}"


def base_of(*algebra: object) -> str | None:
    """The base by which it makes IRIs of relative references; None where it makes none."""
    calls = (each.args[1:] for each in parts(algebra, Call) if each.name in IRI_MAKERS)
    return next((base[0].value for base in calls if base and isinstance(base[0], NamedNode)), None)


def base_clause(*algebra: object) -> str:
    """What a SPARQL text of it begins with: `BASE <...>` and a blank where it needs one, else nothing."""
    base = base_of(*algebra)
    return "" if base is None else f"BASE <{base}> "
