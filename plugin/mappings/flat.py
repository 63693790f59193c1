"""The shorthand for flat rows: a subject, and predicates with the columns of their objects.

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

from pyoxigraph import Literal

from oxiseq.engine.terms.normal import XSD
from oxiseq.mappings.cells import IRI, STRING, escaped
from oxiseq.mappings.errors import MappingError
from oxiseq.mappings.plan import (
    Blank,
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
    Valid,
    is_iri,
)

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
