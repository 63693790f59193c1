"""The usual slips in an EP-SPARQL text, and what to say about each; see `slips.slip`."""

from __future__ import annotations

from difflib import get_close_matches

from oxiseq.grammar.slips import sparql
from oxiseq.grammar.slips.slip import (
    Rule,
    Said,
    Slip,
    bare_iri,
    broken_iri,
    consuming,
    elsewhere,
    missing_close,
    misspelt,
    too_many,
    unclosed_string,
)
from oxiseq.grammar.slips.sparql import foreign

_OPERATORS = ["SEQ", "EQUALS", "OPTIONALSEQ", "EQUALSOPTIONAL", "UNION", "OPTIONAL", "MINUS"]
COUNTING = (
    "count with CONSTRUCT rules, as EP-SPARQL's sliding average does, or over a window in RSP-QL (--language rspql)"
)
_OTHER = {
    **sparql.OF_SPASEQ,
    "WITHIN": 'write FILTER(getDURATION() < "PT10M"^^xsd:duration) in the pattern',
    "LIMIT": "a stream's answers do not end: take as many as you need; a sub-SELECT in GRAPH may have LIMIT",
    "OFFSET": "a stream's answers do not end: take those that you need; a sub-SELECT in GRAPH may have OFFSET",
    "ORDER": "answers come in the order of their ends; a sub-SELECT in GRAPH may have ORDER BY",
    "GROUP": COUNTING,
    "HAVING": COUNTING,
    "PARTITION": "patterns that share a variable agree on it: { ?h :p ?x } SEQ { ?h :q ?y }",
}
_FOLLOWS = {"THEN", "FOLLOWED", "->", "=>", ";", "AFTER", "BEFORE"}


def _head(s: Slip) -> Said | None:
    if s.kind == "end" and "_SELECT" in s.accepts and "_PREFIX" in s.accepts:
        return Said("a query looks like SELECT * WHERE { { ?a :p ?x } SEQ { ?b :p ?y } }")
    if s.last_word == "STREAM" and s.kind in ("word", "variable", "string"):
        return Said("write FROM STREAM <http://example.org/stream>")
    if s.last_word == "FROM" and s.kind in ("iri", "name"):
        return Said(f"write FROM STREAM {s.found}")
    if s.word == "INTO" or s.last_word == "INTO":
        return Said("write CONSTRUCT { ... } INTO STREAM <http://example.org/stream>")
    return None


def _operator(s: Slip) -> Said | None:
    """An operator of time without braces on one side, or another word for it."""
    if s.word in _OPERATORS[:4]:
        return Said(f"write both sides in braces: {{ ... }} {s.word} {{ ... }}")
    if s.word != "NOT" and s.last_word in _OPERATORS[:4] and s.accepts <= {"OPEN", "LBRACE"}:
        return Said(f"{s.last_word} is followed by a pattern in braces: {s.last_word} {{ ... }}")
    if s.word in _FOLLOWS and "SEQ" in s.accepts:
        return Said("write SEQ for a pattern that comes strictly later")
    if s.word in ("AND", "&&", "&") and "SEQ" in s.accepts:
        return Said("write EQUALS for patterns of the same interval, SEQ for one after the other")
    if s.last_word == "SEQ" and s.word == "NOT":
        return Said("write { ... } OPTIONALSEQ { ... } and test in a FILTER that the variable is not BOUND")
    if s.last_word == "SEQ" and s.found == "(":
        return Said("SEQ joins two patterns: { ... } SEQ { ... }")
    return None


def _misspelt(s: Slip) -> Said | None:
    if said := misspelt(s):
        return said
    if s.kind == "word" and "SEQ" in s.accepts and (close := get_close_matches(s.word, _OPERATORS, 1, 0.6)):
        return Said(f"did you mean {close[0]}?")
    return None


EP_RULES: tuple[Rule, ...] = (
    unclosed_string,
    sparql.triple_term,
    broken_iri,
    foreign,
    bare_iri,
    missing_close,
    too_many,
    consuming,
    _head,
    _operator,
    elsewhere(_OTHER),
    sparql.duration,
    _misspelt,
    sparql.braces,
    *sparql.OF_PATTERNS,
)
