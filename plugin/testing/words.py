"""RDF as tests write it: Turtle with the prefixes of the file and of the query."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pyoxigraph import Literal, NamedNode, RdfFormat, Triple

from oxiseq.engine.errors import syntax_reason
from oxiseq.engine.rdf import parse
from oxiseq.engine.terms.normal import normalise
from oxiseq.engine.terms.texts import Term
from oxiseq.grammar.records import dataclass
from oxiseq.testing.errors import TestFileError


@dataclass(frozen=True, slots=True)
class Words:
    """Prefixes, and the namespace of bare words (CEQL's VOCAB, else the prefix without a name)."""

    prefixes: Mapping[str, str]
    vocab: str | None

    def triples(self, text: str) -> tuple[Triple, ...]:
        """The triples of a Turtle text. Raises TestFileError."""
        body = text.strip()
        if body and not body.endswith("."):
            body += " ."
        head = "".join(f"@prefix {name}: <{iri}> .\n" for name, iri in self.prefixes.items())
        try:
            return tuple(quad.triple for quad in parse(head + body, RdfFormat.TURTLE))
        except (SyntaxError, ValueError) as error:
            reason = syntax_reason(error) if isinstance(error, SyntaxError) else str(error)
            raise TestFileError(f"not Turtle: {reason}\n  {body}") from None

    def term(self, text: str) -> Term | None:
        """One term of Turtle in the store's normal form; None if the text is not a term."""
        try:
            (triple,) = self.triples(f"<urn:s> <urn:p> {text}")
        except (TestFileError, ValueError):
            return None
        found: Any = triple.object
        return normalise(found) if isinstance(found, Literal) else found

    def predicate(self, text: str) -> NamedNode:
        """`:price`, `<iri>`, `a`, or a bare word of the vocabulary. Raises TestFileError."""
        word = text.strip()
        if word in ("a", "type"):
            word = "a"
        elif self.vocab is not None and word.isidentifier():
            return NamedNode(self.vocab + word)
        try:
            (triple,) = self.triples(f"<urn:s> {word} <urn:o>")
        except (TestFileError, ValueError):
            raise TestFileError(f"{text!r} is not a predicate") from None
        return triple.predicate
