"""The usual slips in patterns, expressions and columns, which SPAseq shares with SPARQL; see `slip`."""

from __future__ import annotations

import re
from difflib import get_close_matches

from oxiseq.grammar.slips.slip import Said, Slip
from oxiseq.grammar.words import SPASEQ

_PATTERN_STARTS = {"VAR", "_FILTER", "RBRACE"}
_EXPRESSION_WORDS = {"AND": "&&", "OR": "||", "&": "&&", "|": "||", "==": "=", "<>": "!=", "->": "", "IS": "="}


_DURATIONS = {
    **dict.fromkeys(("S", "SEC", "SECS", "SECOND", "SECONDS"), "PT{}S"),
    **dict.fromkeys(("M", "MIN", "MINS", "MINUTE", "MINUTES"), "PT{}M"),
    **dict.fromkeys(("H", "HR", "HRS", "HOUR", "HOURS"), "PT{}H"),
    **dict.fromkeys(("D", "DAY", "DAYS"), "P{}D"),
}
"""Units behind a number → the duration, as XSD writes it."""
_NUMBER = re.compile(r"(\d+)\s*$")


def literal(s: Slip) -> Said | None:
    if s.kind not in ("string", "number"):
        return None
    if {"CIRCUMFLEX", "A"} <= s.accepts:
        return Said("a predicate is an IRI, a variable or a path", "a literal cannot be a predicate")
    if s.accepts >= _PATTERN_STARTS and "STRING" not in s.accepts and "DOT" not in s.accepts:
        return Said("a triple begins with an IRI, a variable or a blank node", "a literal cannot be a subject")
    return None


def triple_term(s: Slip) -> Said | None:
    """RDF 1.2 in a pattern of ours: triple terms are objects; the short forms for reifiers are not read."""
    if s.found == "<" and s.text.startswith("<<", s.at):
        if s.text.startswith("<<(", s.at):
            return Said("it is the object of a triple: ?r rdf:reifies <<( ?s ?p ?o )>>", "a triple term here")
        return Said("write ?r rdf:reifies <<( ?s ?p ?o )>>", "a reified triple in a pattern")
    annotated = s.found == "|" and s.text[: s.at].endswith("{")
    if annotated or (s.found == "~" and "_TILDE" not in s.accepts):
        return Said("write ?r rdf:reifies <<( ?s ?p ?o )>> . ?r ?p ?o", "an annotation in a pattern")
    return None


def triple(s: Slip) -> Said | None:
    if "DOT" in s.accepts and "SEMICOLON" in s.accepts and s.kind in ("variable", "iri", "name"):
        return Said("put . between two triples, ; before another predicate, , before another object")
    if s.kind == "word" and {"VAR", "IRIREF"} <= s.accepts and "NAME" not in s.accepts:
        if re.fullmatch(r"-?PT?\d[\dDTHMS]*", s.word):
            return Said(f'write "{s.word}"^^xsd:duration')
        if (close := get_close_matches(s.word, SPASEQ, 1, 0.75)) and close[0] != s.word:
            return Said(f"did you mean {close[0]}?")
        return Said(f"did you mean ?{s.found} or a prefixed name such as :{s.found}?")
    if s.found in (".", "}", ";") and {"STRING", "BLANK_LABEL", "LSQB"} <= s.accepts and "FNAME" not in s.accepts:
        return Said("a triple is subject, predicate, object")
    if s.found in (".", "}", ";") and {"CIRCUMFLEX", "A"} <= s.accepts:
        return Said("a triple is subject, predicate, object")
    return None


def condition(s: Slip) -> Said | None:
    if s.last_word in ("FILTER", "HAVING") and "FNAME" in s.accepts and "VAR" not in s.accepts:
        shown = s.found if s.kind in ("variable", "number", "string") else "condition"
        return Said(f"put parentheses around the condition: {s.last_word}({shown} ...)")
    return None


def duration(s: Slip) -> Said | None:
    """A number with a unit in an expression."""
    number = _NUMBER.search(s.before)
    if number is None or s.word not in _DURATIONS or s.accepts.isdisjoint({"AND", "COMPARE"}):
        return None
    return Said(f'write "{_DURATIONS[s.word].format(number[1])}"^^xsd:duration for a span of time')


def expression(s: Slip) -> Said | None:
    if {"OR", "AND"} <= s.accepts or "COMPARE" in s.accepts:
        if _EXPRESSION_WORDS.get(s.word):
            return Said(f"write {_EXPRESSION_WORDS[s.word]} for {s.found}")
        if s.word == "BETWEEN":
            return Said("write ?x >= 1 && ?x <= 2")
        if s.word == "LIKE":
            return Said('write REGEX(?x, "pattern")')
    if s.last_word == "NOT" and s.accepts == {"_EXISTS"}:
        return Said("write ! for NOT, with parentheses: !(?x > 1)")
    if s.last_word == "IN" and s.accepts == {"LPAR"}:
        return Said("put parentheses around the list: IN (1, 2)")
    if s.last_mark == "=" and s.found == "=" and "FNAME" in s.accepts:
        at = len(s.before.rstrip()) - 1
        return Said("write = for ==", "", (at, at + 2))
    if s.found == ">" and s.last_mark == "<" and "FNAME" in s.accepts:
        at = len(s.before.rstrip()) - 1
        return Said("write != for <>", "", (at, at + 2))
    if s.found in ("<", ">", "<=", ">=", "=", "!=") and "AND" in s.accepts:
        return Said("comparisons do not chain: write 1 < ?x && ?x < 5")
    if s.found == "," and s.accepts & {"AND", "OR"}:
        return Said("join conditions with &&")
    if s.found == "&" and "AND" in s.accepts:
        return Said("write && for &")
    if "_AS" in s.accepts and s.kind == "variable":
        return Said(f"write AS before the name: (... AS {s.found})")
    if "_AS" in s.accepts and s.found == ")":
        return Said("name the column: (expression AS ?name)")
    return None


def columns(s: Slip) -> Said | None:
    if s.found == "," and {"VAR", "LPAR"} <= s.accepts and s.accepts & {"_FROM", "_WHERE"}:
        return Said("columns are separated by spaces")
    if {"VAR", "STAR", "LPAR"} <= s.accepts and s.kind == "word":
        if re.match(r"\w+\s*\(", s.text[s.at :]):
            return Said(f"put parentheses around: ({s.found}(...) AS ?name)")
        if s.word in SPASEQ:
            return Said("name the columns, or write * for all")
        return Said(f"did you mean ?{s.found}?")
    return None


def braces(s: Slip) -> Said | None:
    """OPTIONAL, UNION, GRAPH, BIND... without what belongs to them."""
    if s.last_word in ("OPTIONAL", "MINUS", "UNION", "EXISTS") and s.accepts <= {"OPEN", "LBRACE"}:
        return Said(f"{s.last_word} is followed by a pattern in braces: {s.last_word} {{ ... }}")
    if s.word == "UNION":
        return Said("write both sides in braces: { ... } UNION { ... }")
    if s.last_word == "BIND" and s.accepts == {"LPAR"}:
        return Said("write BIND(expression AS ?name)")
    if s.last_word == "GRAPH" and s.found == "{":
        return Said("name the graph: GRAPH <iri> { ... }")
    if s.last_word == "CONSTRUCT":
        return Said("write a template in braces: CONSTRUCT { ... }")
    if s.last_word == "ON" and s.accepts == {"NAME"}:
        return Said("name the stream as FROM STREAM does: ON S1")
    if s.last_word == "GPM" and s.accepts == {"NAME"}:
        return Said("a GPM's name is letters, digits and _")
    return None
