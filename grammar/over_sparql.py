"""Why a store has refused a SPARQL query or update, in the words of our own languages' errors.

    a text that the store has refused ─▶ our grammar (parsing/store.lark) ─▶ QueryError

The store parses first: nothing is refused here. Our grammar takes all that the store does, so that the first token it
cannot continue with is one that the store cannot either. Where it takes the text, and all prefixes are declared and all
functions known, the store's own message is passed on, with its place.
"""

from __future__ import annotations

import re
from typing import Final, Literal

from oxiseq.grammar.errors import QueryError, span_at
from oxiseq.grammar.finding_tools import close_name
from oxiseq.grammar.functions import AGGREGATES, BUILTINS
from oxiseq.grammar.sizes import SizeError
from oxiseq.grammar.slips.spaseq import COMMENT
from oxiseq.grammar.slips.store import STORE_RULES
from oxiseq.grammar.slips.syntax_errors import explain
from oxiseq.grammar.terms import TermBuilder, span_of
from oxiseq.grammar.trees import Lexeme, Tree, UnreadableError, tree_parser

Kind = Literal["query", "update"]
_PLACE: Final = re.compile(r"error at (\d+):(\d+): ")
_LONGEST: Final = 1 << 14
"""Longest text that is explained, in characters: half a second of work. For a longer one the store's message is passed
on."""
_BEYOND: Final = frozenset(["ADJUST", "HASLANG", "HASLANGDIR", "LANGDIR", "STRLANGDIR"])
"""Functions of RDF 1.2, and of Oxigraph's own."""
_SENTENCE: Final = re.compile(r"(?:expected (?:one of )?|, )([A-Z][\w*?]*(?: [\w*?<>.]+){2,})")
"""What the store says in words, among the tokens that it expected."""


def refusal(text: str, error: SyntaxError, kind: Kind) -> QueryError:
    """The store's refusal of a text, explained."""
    told = _told_by_store(text, error)
    if len(text) > _LONGEST:
        return told
    try:
        tree = tree_parser("store").read(text, kind)
    except UnreadableError as error:
        ours = explain(error.unexpected, text, STORE_RULES, COMMENT)
        return ours if ours.span.start <= told.span.start else told
    except RecursionError:
        return told
    except SizeError as error_of_size:
        return error_of_size.of(text)
    try:
        _Names(text).check(tree)
    except QueryError as found:
        return found
    return told


def _told_by_store(text: str, error: SyntaxError) -> QueryError:
    """The store's own words, where it says so."""
    said = str(error.msg or error)
    place = _PLACE.search(said)
    line, column = (int(place[1]), int(place[2])) if place else (error.lineno or 1, error.offset or 1)
    lines = text.split("\n")
    start = sum(len(each) + 1 for each in lines[: line - 1]) + column - 1
    end = len(text.rstrip())
    start = min(start, end)
    sentence = _SENTENCE.search(said)
    rest = said[place.end() :] if place else said
    message = sentence[1] if sentence else f"the store rejects this: {rest}"
    return QueryError(message, span_at(text, start, start + 1), text)


class _Names(TermBuilder):
    """Whether prefixes are declared and functions known."""

    def check(self, tree: Tree) -> None:
        """Raises QueryError."""
        for node in tree.children:
            if isinstance(node, Lexeme):
                self._check_token(node)
            elif node.kind == "prefix_decl":
                name, iri = node.children
                assert isinstance(name, Lexeme)
                self.prefixes[name.partition(":")[0]] = str(iri)[1:-1]
            else:
                self.check(node)

    def _check_token(self, token: Lexeme) -> None:
        if token.kind == "PNAME":
            self.iri_text(token)
        elif token.kind == "FNAME" and (name := token.upper()) not in BUILTINS.keys() | AGGREGATES | _BEYOND:
            known = [*BUILTINS, *AGGREGATES, *_BEYOND]
            hint = close_name(name, known, "call your own function by its IRI")
            raise self.error(f"there is no function {token}", span_of(token), hint=hint, code="function")
