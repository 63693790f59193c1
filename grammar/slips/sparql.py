"""The usual slips in patterns, expressions and columns, which all languages share; see `slip`. And words of other
languages for streams that people bring along: C-SPARQL, CQELS, SQL's MATCH_RECOGNIZE.
"""

from __future__ import annotations

import re
from difflib import get_close_matches
from typing import Final

from oxiseq.grammar.slips.slip import Rule, Said, Slip
from oxiseq.grammar.words import SPASEQ

# --- sparql ------------------------------------------------------------------------------------------


_PATTERN_STARTS = {"VAR", "_FILTER", "RBRACE"}
_EXPRESSION_WORDS = {"AND": "&&", "OR": "||", "&": "&&", "|": "||", "==": "=", "<>": "!=", "->": "", "IS": "="}


OF_SPASEQ: Final = {
    "SUPPRESS": "SUPPRESS is a clause of SPAseq: SELECT ... SUPPRESS 1 HOUR BY ?a FROM STREAM ... WHERE { SEQ(A) ... }"
}
"""Clauses that no other language has."""
AFTER_WHERE: Final = ("GROUP", "HAVING", "ORDER", "LIMIT", "OFFSET", "VALUES")
"""Words with which the clauses begin that SPARQL has behind its pattern."""
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


OF_PATTERNS: Final[tuple[Rule, ...]] = (literal, condition, expression, columns, triple)
"""What each language that has SPARQL's patterns asks, in this order."""


# --- foreign -----------------------------------------------------------------------------------------


_UNITS: Final = {"ms": "MILLISECONDS", "s": "SECONDS", "m": "MINUTES", "h": "HOURS", "d": "DAYS"}
_DURATION: Final = re.compile(r"(\d+)\s*(ms|s|m|h|d)\b", re.IGNORECASE)
_REGISTER: Final = re.compile(
    r"\bREGISTER\s+(QUERY|STREAM)\s+(?:<[^<>\s]*>|[\w:]+)?\s*(?:COMPUTED?\s+EVERY\s+(\d+\s*\w+))?", re.IGNORECASE
)
_STREAM: Final = re.compile(r"\bSTREAM\s+(<[^<>\s]*>|[\w-]*:[\w-]*)\s*\[([^\[\]]*)\]", re.IGNORECASE)
_RECOGNIZE: Final = re.compile(r"\b(MATCH_RECOGNIZE|ONE\s+ROW\s+PER\s+MATCH|AFTER\s+MATCH\s+SKIP)\b", re.IGNORECASE)
_PATTERN: Final = re.compile(r"\A\s*(VOCAB)\b|\bSEQ\s*\(", re.IGNORECASE)
"""Of CEQL and of SPAseq."""
_IN_WHERE: Final = re.compile(r"\{[^{}]*\Z", re.DOTALL)


def foreign(s: Slip) -> Said | None:
    """The slip is in, or just after, such words."""
    if (found := _RECOGNIZE.search(s.text)) is not None:
        if (pattern := _PATTERN.search(s.text)) is not None:
            where = "before WHERE" if pattern[1] is None else "behind the formula"
            return Said(
                "matches may overlap, as with TO NEXT ROW; for PAST LAST ROW write CONSUME BY ANY, or CONSUME BY "
                f"PARTITION, {where}",
                f"{found[0].upper()} is SQL's",
                found.span(),
            )
        return Said(
            "in SPAseq: SELECT ... WITHIN 1 HOUR FROM STREAM S <...> WHERE { SEQ(A; B+; C) DEFINE GPM A ON S { ... } } "
            "PARTITION BY ...: SEQ for PATTERN, a GPM for each DEFINE",
            f"{found[0].upper()} is SQL's",
            found.span(),
        )
    if (found := _near(_REGISTER, s)) is not None and (found[2] or found[1].upper() == "QUERY" or not _ours(s)):
        every = f", and REPORT EVERY {_written(found[2])} at the end" if found[2] else ""
        how = "ISTREAM <name> AS CONSTRUCT" if found[1].upper() == "STREAM" else "RSTREAM AS SELECT"
        return Said(
            f"in RSP-QL: REGISTER {how} ... FROM STREAM <...> [RANGE 10 MINUTES STEP 1 MINUTES]{every}",
            f"REGISTER {found[1].upper()} is C-SPARQL's",
            found.span(),
        )
    if (found := _near(_STREAM, s)) is not None and _IN_WHERE.search(s.text, 0, found.start()):
        window = _window(found[2])
        return Said(
            f"in RSP-QL: FROM NAMED WINDOW :w ON {found[1]} {window} before WHERE, and WINDOW :w {{ ... }} here",
            "STREAM <...> [...] { ... } is CQELS's",
            found.span(),
        )
    return None


def _ours(s: Slip) -> bool:
    """Whether RSTREAM, ISTREAM or DSTREAM is missing behind our own REGISTER."""
    return "REPORTED" in s.accepts


def _near(pattern: re.Pattern[str], s: Slip) -> re.Match[str] | None:
    """The match that contains the slip, or that comes just before it."""
    for found in pattern.finditer(s.text):
        if found.start() <= s.at and not s.text[found.end() : s.at].strip():
            return found
    return None


def _window(text: str) -> str:
    """CQELS's window in our words."""
    words = text.split()
    head = words[0].upper() if words else ""
    if head == "TRIPLES" and len(words) > 1:
        return f"[RANGE {words[1]} EVENTS SLIDE 1 EVENTS]"
    times = [_written(each[0]) for each in _DURATION.finditer(text)]
    if head == "RANGE" and times:
        return f"[RANGE {times[0]} SLIDE {times[-1]}]" if len(times) > 1 else f"[RANGE {times[0]} TUMBLING]"
    return "[RANGE 10 SECONDS SLIDE 1 SECONDS]"


def _written(duration: str) -> str:
    found = _DURATION.fullmatch(duration.strip())
    return f"{found[1]} {_UNITS[found[2].lower()]}" if found else duration
