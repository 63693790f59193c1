"""Terms from their written form: IRIs against BASE and prefixes, literals, blank nodes.

In the flow: tokens of the text → pyoxigraph terms. Literals stay as written (`01` is
`"01"^^xsd:integer`); the engine normalises them when it compiles.
"""

from __future__ import annotations

import re
from difflib import get_close_matches
from typing import TYPE_CHECKING

from pyoxigraph import BlankNode, Literal, NamedNode, Variable

from oxiseq.grammar.algebra import Span
from oxiseq.grammar.errors import QueryError

if TYPE_CHECKING:
    from oxiseq.grammar.trees import Lexeme

XSD = "http://www.w3.org/2001/XMLSchema#"
RDF = "http://www.w3.org/1999/02/22-rdf-syntax-ns#"
RDF_TYPE = NamedNode(RDF + "type")
RDF_FIRST, RDF_REST, RDF_NIL = NamedNode(RDF + "first"), NamedNode(RDF + "rest"), NamedNode(RDF + "nil")
XSD_INTEGER = NamedNode(XSD + "integer")
_SIGNED = ("integer", "nonPositiveInteger", "negativeInteger", "long", "int", "short", "byte")
_UNSIGNED = ("nonNegativeInteger", "positiveInteger", "unsignedLong", "unsignedInt", "unsignedShort", "unsignedByte")
INTEGER_TYPES = frozenset(XSD + name for name in (*_SIGNED, *_UNSIGNED))
"""The IRIs of XSD's integer types."""
XSD_DECIMAL = NamedNode(XSD + "decimal")
XSD_DOUBLE = NamedNode(XSD + "double")
XSD_BOOLEAN = NamedNode(XSD + "boolean")
XSD_STRING = NamedNode(XSD + "string")
XSD_DURATION = NamedNode(XSD + "duration")
XSD_DAY_TIME_DURATION = NamedNode(XSD + "dayTimeDuration")

WELL_KNOWN = {
    "rdf": RDF,
    "rdfs": "http://www.w3.org/2000/01/rdf-schema#",
    "xsd": XSD,
    "owl": "http://www.w3.org/2002/07/owl#",
    "prov": "http://www.w3.org/ns/prov#",
    "foaf": "http://xmlns.com/foaf/0.1/",
    "schema": "http://schema.org/",
    "sosa": "http://www.w3.org/ns/sosa/",
    "ssn": "http://www.w3.org/ns/ssn/",
    "geo": "http://www.w3.org/2003/01/geo/wgs84_pos#",
}
"""Prefixes that a hint can complete."""

_ESCAPES = {"t": "\t", "b": "\b", "n": "\n", "r": "\r", "f": "\f", '"': '"', "'": "'", "\\": "\\"}
_ESCAPE = re.compile(r"\\(u[0-9A-Fa-f]{4}|U[0-9A-Fa-f]{8}|.)", re.DOTALL)
_IRI_PARTS = re.compile(
    r"^(?:([A-Za-z][A-Za-z0-9+.\-]*):)?(?://([^/?#]*))?([^?#]*)(?:\?([^#]*))?(?:#(.*))?$", re.DOTALL
)


def span_of(token: Lexeme) -> Span:
    """A token's place."""
    return Span(token.start_pos, token.end_pos, token.line or 1, token.column or 1)


class TermBuilder:
    """Terms of one query text; `base` and `prefixes` fill up while the prologue is read."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.base: str | None = None
        self.prefixes: dict[str, str] = {}
        self._fresh = 0

    def error(
        self, message: str, span: Span, *, hint: str = "", expected: str = "", code: str = "syntax"
    ) -> QueryError:
        """A QueryError on this text, to be raised."""
        return QueryError(message, span, self.text, hint=hint, expected=expected, code=code)

    # IRIs

    def iri_text(self, token: Lexeme) -> str:
        """`<...>` or `prefix:name` as an absolute IRI."""
        if token[0] == "<":
            iri = self.unescape(token[1:-1], token)
            return resolve(self.base, iri) if self.base is not None else iri
        prefix, _, local = token.partition(":")
        if prefix not in self.prefixes:
            raise self.error(
                f"the prefix {prefix}: is not declared",
                span_of(token),
                hint=self._prefix_hint(prefix, local),
                code="prefix",
            )
        return self.prefixes[prefix] + (re.sub(r"\\(.)", r"\1", local) if "\\" in local else local)

    def _prefix_hint(self, prefix: str, local: str) -> str:
        if close := get_close_matches(prefix, list(self.prefixes), 1):
            return f"did you mean {close[0]}:?"
        iri = WELL_KNOWN.get(prefix.lower(), "...")
        declare = f"put PREFIX {prefix}: <{iri}> at the top"
        return f"{declare}, or write :{local}" if "" in self.prefixes and iri == "..." else declare

    def iri(self, token: Lexeme) -> NamedNode:
        text = self.iri_text(token)
        try:
            return NamedNode(text)
        except ValueError as reason:
            hint = "a relative IRI needs a BASE <...> at the top" if "scheme" in str(reason) else ""
            raise self.error(f"<{text}> is not an IRI: {reason}", span_of(token), hint=hint, code="iri") from None

    # literals

    def string(self, token: Lexeme) -> str:
        """The characters that a quoted string stands for."""
        quotes = 3 if token[:3] in ('"""', "'''") and len(token) >= 6 else 1
        return self.unescape(token[quotes:-quotes], token)

    def unescape(self, text: str, token: Lexeme) -> str:
        if "\\" not in text:
            return text

        def replace(match: re.Match[str]) -> str:
            code = match.group(1)
            if len(code) > 1:
                value = int(code[1:], 16)
                if value <= 0x10FFFF and not 0xD800 <= value <= 0xDFFF:
                    return chr(value)
            elif code in _ESCAPES:
                return _ESCAPES[code]
            raise self.error(
                f"\\{code} is not an escape", span_of(token), hint="write \\\\ for a backslash", code="escape"
            )

        return _ESCAPE.sub(replace, text)

    def tagged(self, text: str, tag: Lexeme) -> Literal:
        try:
            return Literal(text, language=tag[1:])
        except ValueError as reason:
            raise self.error(f"{tag} is not a language tag: {reason}", span_of(tag), code="language") from None

    # variables and blank nodes

    def variable(self, token: Lexeme) -> Variable:
        try:
            return Variable(token[1:])
        except ValueError as reason:
            raise self.error(f"{token} is not a variable: {reason}", span_of(token)) from None

    def blank(self, token: Lexeme) -> BlankNode:
        try:
            return BlankNode(token[2:])
        except ValueError as reason:
            raise self.error(f"{token} is not a blank node label: {reason}", span_of(token)) from None

    def fresh_blank(self) -> BlankNode:
        """A label that the text does not hold; the same text gets the same labels."""
        while True:
            self._fresh += 1
            label = f"anon{self._fresh}"
            if f"_:{label}" not in self.text:
                return BlankNode(label)

    def fresh_variable(self) -> Variable:
        """One that the text does not hold; the same text gets the same ones."""
        while True:
            self._fresh += 1
            name = f"term{self._fresh}"
            if name not in self.text:
                return Variable(name)


def number(text: str) -> Literal:
    """A bare number: integer, decimal or double by its form."""
    if "e" in text or "E" in text:
        return Literal(text, datatype=XSD_DOUBLE)
    return Literal(text, datatype=XSD_DECIMAL if "." in text else XSD_INTEGER)


def resolve(base: str, reference: str) -> str:
    """`reference` against `base` (RFC 3986, section 5.2), for any scheme."""
    scheme, authority, path, query, fragment = _parts(reference)
    b_scheme, b_authority, b_path, b_query, _ = _parts(base)
    if scheme is not None:
        path = _without_dots(path)
    else:
        scheme = b_scheme
        if authority is not None:
            path = _without_dots(path)
        else:
            authority = b_authority
            if not path:
                path = b_path
                query = b_query if query is None else query
            elif path.startswith("/"):
                path = _without_dots(path)
            elif b_authority is not None and not b_path:
                path = _without_dots("/" + path)
            else:
                path = _without_dots(b_path[: b_path.rfind("/") + 1] + path)
    return "".join(
        (
            f"{scheme}:" if scheme is not None else "",
            f"//{authority}" if authority is not None else "",
            path,
            f"?{query}" if query is not None else "",
            f"#{fragment}" if fragment is not None else "",
        )
    )


def _parts(iri: str) -> tuple[str | None, str | None, str, str | None, str | None]:
    match = _IRI_PARTS.match(iri)
    assert match is not None  # the pattern takes any text
    scheme, authority, path, query, fragment = match.groups()
    return scheme, authority, path or "", query, fragment


def _without_dots(path: str) -> str:
    if "." not in path:
        return path
    out: list[str] = []
    pieces = path.split("/")
    for i, piece in enumerate(pieces):
        last = i == len(pieces) - 1
        if piece == "..":
            if len(out) > 1 or (out and out[0] != ""):
                out.pop()
            if last:
                out.append("")
        elif piece == ".":
            if last:
                out.append("")
        else:
            out.append(piece)
    return "/".join(out)
