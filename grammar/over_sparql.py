"""Why a store has refused a SPARQL query or update, in the words of our own languages' errors.

    a text that the store has refused ─▶ our grammar (parsing/store.lark) ─▶ QueryError

The store parses first: nothing is refused here. Our grammar takes all that the store does, so that the first token it
cannot continue with is one that the store cannot either. Where it takes the text, and all prefixes are declared and all
functions known, the store's own message is passed on, with its place.
"""

from __future__ import annotations

import re
from typing import Final, Literal

from oxiseq.grammar.errors import QueryError, close_name, span_at
from oxiseq.grammar.functions import AGGREGATES, BUILTINS
from oxiseq.grammar.slips import sparql
from oxiseq.grammar.slips.slip import (
    COMMENT,
    Rule,
    Said,
    Slip,
    bare_iri,
    broken_iri,
    elsewhere,
    missing_close,
    misspelt,
    too_many,
    unclosed_string,
)
from oxiseq.grammar.slips.sparql import AFTER_WHERE, foreign
from oxiseq.grammar.slips.syntax_errors import explain
from oxiseq.grammar.terms import TermBuilder, span_of
from oxiseq.grammar.trees import Lexeme, SizeError, Tree, UnreadableError, tree_parser
from oxiseq.grammar.windows.slips import OF_SEQUENCES

# --- over sparql -------------------------------------------------------------------------------------


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


# --- store -------------------------------------------------------------------------------------------


_QUERIES = ("SELECT", "CONSTRUCT", "ASK", "DESCRIBE")
_UPDATES = ("INSERT", "DELETE", "LOAD", "CLEAR", "DROP", "CREATE", "ADD", "MOVE", "COPY", "WITH")


_CONTINUOUS: Final = (
    (re.compile(r"\bSEQ\s*\(|\bDEFINE\s+GPM\b", re.IGNORECASE), "SPAseq", "spaseq"),
    (re.compile(r"\A\s*VOCAB\b", re.IGNORECASE), "CEQL", "ceql"),
    (re.compile(r"\bEVENT\s+ON\b|\bMATCH\s*\{", re.IGNORECASE), "RSEP-QL", "rsepql"),
    (re.compile(r"\bREGISTER\b|\bFROM\s+(?:NAMED\s+WINDOW|STREAM)\b", re.IGNORECASE), "continuous SPARQL", "rspql"),
)


def _continuous(s: Slip) -> Said | None:
    """A query over streams, which a store does not answer."""
    for words, title, language in _CONTINUOUS:
        if words.search(s.text) is not None:
            return Said(
                f"register it: POST /queries with Content-Type application/{language}-query, or store.register(...); "
                "over files and tables: oxiseq.run(...)",
                f"this is {title}, a query over streams, and SPARQL over the store is expected",
            )
    return None


def _other_kind(s: Slip) -> Said | None:
    """An update where a query is expected, and the other way round."""
    if s.word in _UPDATES and "_ASK" in s.accepts:
        return Said("send it to /update, or call store.update(...)", "this is an update, not a query")
    if s.word in _QUERIES and "_INSERT" in s.accepts:
        return Said("send it to /query, or call store.query(...)", "this is a query, not an update")
    return None


def _missing_close(s: Slip) -> Said | None:
    opened = s.unclosed()
    inside = opened is not None and opened[1] == "{" and "_FILTER" in s.accepts
    return missing_close(s, *(AFTER_WHERE[:-1] if inside else ()))


def _order(s: Slip) -> Said | None:
    if s.word in AFTER_WHERE and s.last_mark != "{" and "VAR" not in s.accepts and "$END" in s.accepts:
        return Said("after WHERE come GROUP BY, HAVING, ORDER BY, LIMIT or OFFSET, VALUES, in this order")
    if s.last_word in ("LIMIT", "OFFSET") and s.accepts == {"NUMBER"}:
        return Said(f"write {s.last_word} 10")
    if s.last_word in ("GROUP", "ORDER") and s.accepts == {"_BY"}:
        return Said(f"write {s.last_word} BY")
    return None


def _updates(s: Slip) -> Said | None:
    if s.last_word in ("INSERT", "DELETE") and s.found != "{" and {"_DATA", "LBRACE"} <= s.accepts:
        forms = f"{s.last_word} DATA {{ ... }} or {s.last_word} {{ ... }} WHERE {{ ... }}"
        return misspelt(s) or Said(f"write {forms}")
    if s.kind == "end" and "_WHERE" in s.accepts and re.search(r"(?i)\b(INSERT|DELETE)\s*\{", s.before):
        return Said("INSERT and DELETE of patterns need WHERE { ... }; for data write INSERT DATA or DELETE DATA")
    if "SEMICOLON" in s.accepts and s.word in _UPDATES:
        return Said("put ; between two operations of an update")
    if s.last_word in ("CLEAR", "DROP") and "_ALL" in s.accepts:
        return Said(f"write {s.last_word} GRAPH <...>, {s.last_word} DEFAULT, {s.last_word} NAMED or {s.last_word} ALL")
    return None


def _end(s: Slip) -> Said | None:
    if s.found == ";" and "_LIMIT" in s.accepts:
        return Said("a query has no ; at its end")
    if s.kind == "end" and "_ASK" in s.accepts:
        return Said("a query looks like SELECT * WHERE { ?s ?p ?o }")
    return None


STORE_RULES: tuple[Rule, ...] = (
    unclosed_string,
    broken_iri,
    foreign,
    bare_iri,
    _continuous,
    _other_kind,
    sparql.braces,
    _missing_close,
    _updates,
    elsewhere(OF_SEQUENCES),
    _order,
    sparql.duration,
    misspelt,
    *sparql.OF_PATTERNS,
    _end,
    too_many,
)
