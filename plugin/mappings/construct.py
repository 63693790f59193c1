"""A CONSTRUCT query over columns → a plan, where its WHERE is made of BINDs of the usual functions.

What is compiled: STR, CONCAT, IRI, URI, ENCODE_FOR_URI, STRDT and STRLANG with a constant, casts to xsd:string,
boolean, integer, decimal and double, variables, constants; in the template anything. Other queries are answered by
Oxigraph, row by row, as `oxiseq load` does it: `NotCompiled` says why.

A query that a server takes has bounds: rows are all its data, so patterns, sub-SELECTs, GRAPH and SERVICE would find
nothing or reach out, and an expression may make a text only so many times as long as the columns are.

The shorthand for flat rows: a subject, and predicates with the columns of their objects.

    {"subject": "http://ex/{id}", "type": "ex:Reading", "prefixes": {"ex": "http://ex/"},
     "predicates": {"ex:room": "<http://ex/room/{room}>",
                    "ex:celsius": {"column": "temp", "datatype": "xsd:double"},
                    "ex:note": {"column": "note", "language": "en"},
                    "ex:by": {"value": "gateway 1"}},
     "time": "ts", "unit": "s"}

`{id}` is a column, percent-encoded as RFC 6570 and ENCODE_FOR_URI do it; `{+id}` is as it is. Without a subject a
row is a blank node. An object whose column is empty is left out; a row without a column of its subject is wrong, as is
one whose text is no value of its datatype, or whose template gives no IRI.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any, Final

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
from oxiseq.mappings.plan import (
    IRI,
    PLAIN_FORMS,
    STRING,
    Blank,
    Cast,
    Column,
    Concat,
    Constant,
    Encoded,
    Expr,
    Iri,
    MappingError,
    Part,
    Plan,
    Statement,
    Str,
    Tagged,
    Typed,
    Valid,
    escaped,
    is_iri,
)

# --- construct -------------------------------------------------------------------------------------------

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


# --- flat ------------------------------------------------------------------------------------------------

RDF_TYPE: Final = "http://www.w3.org/1999/02/22-rdf-syntax-ns#type"
PREFIXES: Final[Mapping[str, str]] = {
    "rdf": "http://www.w3.org/1999/02/22-rdf-syntax-ns#",
    "rdfs": "http://www.w3.org/2000/01/rdf-schema#",
    "xsd": XSD,
    "sosa": "http://www.w3.org/ns/sosa/",
    "ssn": "http://www.w3.org/ns/ssn/",
    "geo": "http://www.opengis.net/ont/geosparql#",
}
"""Known unless a mapping says otherwise."""
MEMBERS: Final = ("prefixes", "subject", "type", "predicates")
MOST: Final = 1000
"""Predicates, and parts of a template."""
_HOLE: Final = re.compile(r"\{(\+?)([^{}]+)\}")
_LANGUAGE: Final = re.compile(r"[a-z]{1,8}(-[a-z0-9]{1,8})*")


class Flat:
    """The shorthand, read. `columns`: those that it names, in its order. Raises MappingError."""

    def __init__(self, given: Mapping[str, Any]) -> None:
        self._prefixes = {**PREFIXES, **_texts(given.get("prefixes", {}), "prefixes")}
        self.columns: dict[str, None] = {}
        self._where: list[str] = []
        self._template: list[str] = []
        statements = tuple(self._statements(given))
        self.plan = Plan(statements, int(given.get("subject") is None))

    def construct(self) -> str:
        """The same as a CONSTRUCT query, for rows that are right: what it means, and what tests compare it with."""
        template, where = " .\n  ".join(self._template), "\n  ".join(self._where)
        return f"CONSTRUCT {{\n  {template}\n}} WHERE {{\n  {where}\n}}"

    # --- parts ----------------------------------------------------------------------------------------

    def _statements(self, given: Mapping[str, Any]) -> Iterator[Statement]:
        subject, name = self._subject(given.get("subject"))
        types = given.get("type", [])
        for each in types if isinstance(types, list) else [types]:
            iri = self._iri(each, "type")
            self._template.append(f"{name} <{RDF_TYPE}> <{iri}>")
            yield Statement(subject, Constant(RDF_TYPE, IRI), Constant(iri, IRI))
        predicates = given.get("predicates", {})
        if not isinstance(predicates, dict) or len(predicates) > MOST:
            raise MappingError(f"predicates: an object of at most {MOST} predicates and their objects is expected")
        for predicate, objects in predicates.items():
            iri = self._iri(predicate, "a predicate")
            for each in objects if isinstance(objects, list) else [objects]:
                what = f"the object of {predicate!r}"
                expression, variable = self._object(each, what)
                if len(self._template) > MOST:
                    raise MappingError(f"predicates: at most {MOST} statements can be made of a row")
                self._template.append(f"{name} <{iri}> {variable}")
                yield Statement(subject, Constant(iri, IRI), expression)
        if not self._template:
            raise MappingError("predicates or a type are expected: a row would make no statement")

    def _subject(self, given: Any) -> tuple[Part, str]:
        if given is None:
            return Blank(0), "_:row"
        if not isinstance(given, str) or not given:
            raise MappingError(f"subject: a template as 'http://example.org/{{id}}' is expected, not {given!r}"[:200])
        return self._iri_of(given.removeprefix("<").removesuffix(">"), "the subject", required=True)

    def _object(self, given: Any, what: str) -> tuple[Expr, str]:
        if isinstance(given, str):
            if given.startswith("<") and given.endswith(">"):
                return self._iri_of(given[1:-1], what, required=False)
            return self._column(given, what)
        if not isinstance(given, dict):
            raise MappingError(f"{what}: a column, an IRI in <> or an object is expected, not {given!r}"[:200])
        keys = set(given)
        if keys == {"iri"} and isinstance(given["iri"], str):
            return self._iri_of(given["iri"], what, required=False)
        if keys == {"value"}:
            return self._value(given["value"], what)
        if "column" not in keys or keys - {"column", "datatype", "language"} or len(keys) > 2:
            raise MappingError(
                f"{what}: column (with datatype or language), iri or value is expected, not "
                f"{', '.join(sorted(keys)) or 'nothing'}"
            )
        if not isinstance(given["column"], str):
            raise MappingError(f"{what}: a column is a text, not {given['column']!r}"[:200])
        expression, variable = self._column(given["column"], what)
        if "datatype" in keys:
            datatype = self._iri(given["datatype"], f"{what}: the datatype")
            if datatype == PREFIXES["rdf"] + "langString" or datatype == PREFIXES["rdf"] + "dirLangString":
                raise MappingError(f"{what}: give a language instead of the datatype {datatype}")
            made = self._bind(f"STRDT(STR({variable}), <{datatype}>)")
            return Valid(Str(expression), datatype, given["column"]), made
        if "language" in keys:
            tag = given["language"]
            if not isinstance(tag, str) or not _LANGUAGE.fullmatch(tag.lower()):
                raise MappingError(f"{what}: {tag!r} is no language tag"[:200])
            return Tagged(Str(expression), tag.lower()), self._bind(f'STRLANG(STR({variable}), "{tag.lower()}")')
        return expression, variable

    def _column(self, name: str, what: str) -> tuple[Expr, str]:
        if not name:
            raise MappingError(f"{what}: a column has a name")
        self.columns[name] = None
        return Column(name), "?" + variable_of(name)

    def _value(self, given: Any, what: str) -> tuple[Expr, str]:
        if not isinstance(given, str | bool | int | float):
            raise MappingError(f"{what}: a value is a text, a number, true or false, not {given!r}"[:200])
        literal = Literal(given)
        form = STRING if isinstance(given, str) else f"^^<{literal.datatype.value}>"
        return Constant(literal.value, form), str(literal)

    def _iri_of(self, template: str, what: str, *, required: bool) -> tuple[Expr, str]:
        parts = list(_parts(template, what))
        names = [name for _, name, _ in parts if name]
        if not names:
            iri = self._iri(template, what)
            return Constant(iri, IRI), f"<{iri}>"
        self.columns.update(dict.fromkeys(names))
        head = parts[0][2] if not parts[0][1] else ""
        if head.partition(":")[0] in self._prefixes and not head.startswith(("http:", "https:", "urn:")):
            parts[0] = ("", "", self._expanded(head))
        expressions: list[Expr] = []
        texts: list[str] = []
        for plus, name, text in parts:
            if not name:
                expressions.append(Constant(text, STRING))
                texts.append(f'"{escaped(text)}"')
                continue
            of = Str(Column(name, required))
            expressions.append(of if plus else Encoded(of))
            texts.append(f"STR(?{variable_of(name)})" if plus else f"ENCODE_FOR_URI(STR(?{variable_of(name)}))")
        return Iri(Concat(tuple(expressions)), names[0]), self._bind(f"IRI(CONCAT({', '.join(texts)}))")

    def _bind(self, expression: str) -> str:
        variable = f"?made_{len(self._where)}_"
        self._where.append(f"BIND({expression} AS {variable})")
        return variable

    def _iri(self, given: Any, what: str) -> str:
        iri = self._expanded(given.removeprefix("<").removesuffix(">")) if isinstance(given, str) else ""
        if not is_iri(iri):
            raise MappingError(f"{what}: {given!r} is no IRI, and no name with a known prefix"[:300])
        return iri

    def _expanded(self, name: str) -> str:
        prefix, colon, local = name.partition(":")
        known = self._prefixes.get(prefix)
        return known + local if colon and known is not None and not local.startswith("//") else name


def variable_of(column: str) -> str:
    """A variable's name for any column: letters and digits as they are, the rest by its number."""
    return "c_" + "".join(c if c.isascii() and c.isalnum() else f"_{ord(c):x}_" for c in column)


def _parts(template: str, what: str) -> Iterator[tuple[str, str, str]]:
    """("+" or "", the column) of holes, texts between them."""
    at, count = 0, 0
    for hole in _HOLE.finditer(template):
        count += 1
        if hole.start() > at:
            yield "", "", template[at : hole.start()]
        yield hole[1], hole[2], ""
        at = hole.end()
    if at < len(template):
        yield "", "", template[at:]
    if count > MOST or "{" in _HOLE.sub("", template) or "}" in _HOLE.sub("", template):
        raise MappingError(f"{what}: {template[:100]!r}: a template has its columns in {{}}, one name in each")


def _texts(given: Any, what: str) -> dict[str, str]:
    if not isinstance(given, dict) or not all(isinstance(v, str) for v in given.values()) or len(given) > MOST:
        raise MappingError(f"{what}: an object of texts is expected")
    return dict(given)
