"""The usual slips in a query over windows, and what to say about each; see `slips.slip`."""

from __future__ import annotations

import re
from difflib import get_close_matches

from oxiseq.grammar.slips import sparql
from oxiseq.grammar.slips.slip import (
    Rule,
    Said,
    Slip,
    bare_iri,
    broken_iri,
    clause,
    consuming,
    elsewhere,
    missing_close,
    misspelt,
    too_many,
    unclosed_string,
    unit,
)
from oxiseq.grammar.slips.sparql import AFTER_WHERE, OF_SPASEQ, foreign
from oxiseq.grammar.words import OVER_WINDOWS

_REPORTS = ("RSTREAM", "ISTREAM", "DSTREAM")
OF_SEQUENCES = {
    "PARTITION": "share a variable between patterns, or GROUP BY ?a: PARTITION BY is for sequences",
    **OF_SPASEQ,
}
_EXAMPLE = "[RANGE 10 SECONDS SLIDE 1 SECONDS]"


def _windows(s: Slip) -> Said | None:
    if s.last_mark == "[" and {"_RANGE", "_LND"} <= s.accepts:
        hint = "a window is [RANGE size SLIDE slide], [LND time], [INTERVAL time time] or [ID]"
        close = get_close_matches(s.word, ["RANGE", "LND", "INTERVAL", "ID"], 1, 0.6)
        return Said(f"did you mean {close[0]}?" if close else hint)
    if s.accepts == {"LSQB"}:
        return Said(f"a stream is read through a window: {_EXAMPLE}")
    if s.last_word in ("RANGE", "SLIDE", "STEP") and "DURATION" in s.accepts:
        return Said(f"write {s.last_word} 10 SECONDS, {s.last_word} PT10S or {s.last_word} 100 EVENTS")
    if re.search(r"(?i)\[\s*(LND|INTERVAL)\b[^\[\]]*$", s.before):
        return Said('write [LND time] or [INTERVAL time time]; a time is in microseconds, or "2024-05-01T10:00:00Z"')
    if s.accepts >= {"_SLIDE", "RSQB"} and s.found == ",":
        return Said(f"write nothing between the two: {_EXAMPLE}")
    if s.accepts >= {"_SLIDE", "RSQB"} and s.word == "ON":
        return Said("windows use the time of the events: leave ON out")
    if "UNIT" in s.accepts and s.word in ("TRIPLES", "ROWS", "ITEMS", "ELEMENTS"):
        return Said("windows count events (whole graphs): [RANGE 100 EVENTS SLIDE 10 EVENTS]")
    if "UNIT" in s.accepts and s.kind == "word":
        return unit(s) or Said(f"write {_EXAMPLE}")
    if s.last_mark == "]" and s.accepts == {"LSQB", "_AS"}:
        return Said("name the window: AS :w")
    return None


def _streams(s: Slip) -> Said | None:
    if s.last_word == "STREAM" and s.kind == "word" and "IRIREF" in s.accepts:
        return Said(f"name a stream only by its IRI here: FROM STREAM <...> {_EXAMPLE}")
    if s.last_word == "WINDOW" and s.found == "{":
        return Said("name the window: WINDOW :w { ... }")
    if s.last_word == "WINDOW" and s.kind == "variable" and "VAR" not in s.accepts:
        return Said(f"a window's name is an IRI: FROM NAMED WINDOW :{s.found[1:]} ON <...> {_EXAMPLE}")
    if s.found == "[" and s.accepts == {"_ON"}:
        return Said(f"first the stream, then the window: FROM NAMED WINDOW :w ON <...> {_EXAMPLE}")
    if s.found == "[" and re.search(r"(?i)\bFROM\s+NAMED\s+\S+\s*$", s.before):
        return Said(f"write FROM NAMED WINDOW :w ON <...> {_EXAMPLE}")
    if s.found == "[" and re.search(r"(?i)\bFROM\s+\S+\s*$", s.before):
        return Said(f"write FROM STREAM <...> {_EXAMPLE}")
    if s.word == "STREAM" and s.accepts >= {"_WINDOW", "_FILTER"}:
        return Said("WHERE queries a declared window: FROM NAMED WINDOW :w ON <...> [RANGE ...] and WINDOW :w { ... }")
    if s.last_word == "WINDOW" and s.kind == "word":
        return Said(f"a window's name is an IRI: WINDOW :{s.found}")
    return None


def _events(s: Slip) -> Said | None:
    if s.last_word == "MATCH" and s.accepts <= {"LBRACE"}:
        return Said("write an event pattern in braces: MATCH { E1 SEQ E2 }")
    if s.word == "DEFINE" and "_EVENT" in s.accepts:
        return Said("write EVENT ON :w { ... } AS E1")
    if s.last_word == "EVENT" and s.accepts == {"_ON"}:
        return Said(f"the name comes last: EVENT ON :w {{ ... }} AS {s.found if s.kind == 'word' else 'E1'}")
    if s.found == "^" and s.last_word == "SEQ":
        return Said("selections are SEQ^n (naive), SEQ^c (chronological) and SEQ^r (recent)")
    called = s.found == "(" and s.last_word == "SEQ"
    if "SEQ" in s.accepts and (called or s.found in (";", ",", "->", ":")):
        return Said("write E1 SEQ E2")
    if "SEQ" in s.accepts and s.kind == "word" and s.word not in OVER_WINDOWS:
        return Said("write E1 SEQ E2")
    if s.found in ("->", "=>") and "_FILTER" in s.accepts:
        return Said("patterns of WHERE have no order: RSEP-QL has EVENT ON :w { ... } AS E1 and MATCH { E1 SEQ E2 }")
    if s.last_word == "ON" and s.kind == "word" and s.accepts == {"IRIREF", "PNAME"}:
        return Said(f"a window's name is an IRI: ON :{s.found}")
    if "_MATCH" in s.accepts and re.match(r"(?i)(\w+\s+)?SEQ\b", s.text[s.at :]):
        return Said("an event pattern belongs in MATCH: MATCH { E1 SEQ E2 }")
    if s.last_mark == "}" and s.accepts == {"_AS"}:
        return Said("name the event: AS E1")
    if s.last_word == "AS" and s.accepts == {"NAME"}:
        return Said("an event's name is letters, digits and _: AS E1")
    return None


def _head(s: Slip) -> Said | None:
    """Slips in the form of the query: REGISTER, CONSTRUCT, SELECT and the clauses after WHERE."""
    if s.word in _REPORTS and "REPORTED" not in s.accepts:
        return Said(f"write it before the query: REGISTER {s.word} AS ...")
    if s.last_word in _REPORTS and s.accepts == {"IRIREF", "PNAME", "_AS"}:
        return Said(f"write REGISTER {s.last_word} <name> AS")
    if s.word == "DESCRIBE":
        return Said("write CONSTRUCT WHERE { ?x ?p ?y }, or name the triples that describe it")
    if s.found == "{" and s.accepts >= {"_FROM", "_WHERE"} and "LBRACE" not in s.accepts:
        return Said("write WHERE before its braces, or a template before FROM: CONSTRUCT { ... } FROM ...")
    if {"VAR", "LPAR", "_FROM"} <= s.accepts and re.match(r"\w+\s*\(", s.text[s.at :]):
        return Said(f"put parentheses around: ({s.found}(...) AS ?name)")
    if s.word in ("GROUP", "HAVING", "ORDER") and "_REPORT" in s.accepts:
        return Said("after WHERE come GROUP BY, HAVING, ORDER BY, LIMIT, VALUES, in this order")
    if s.word in AFTER_WHERE and "_FILTER" in s.accepts and s.unclosed():
        return Said(f"{clause(s.word)} follows the }} of WHERE")
    if s.word in AFTER_WHERE and s.accepts <= {"$END", "_CONSUME", "_REPORT"} and "_REPORT" in s.accepts:
        return Said("CONSUME and REPORT end the query")
    return None


def _closing(s: Slip) -> Said | None:
    if re.search(r"(?i)\bREPORT(\s+(ON|EVERY|ON\s+CONTENT|ON\s+WINDOW))?\s*$", s.before):
        return Said("write REPORT ON CONTENT CHANGE, REPORT ON WINDOW CLOSE or REPORT EVERY 10 SECONDS")
    if s.last_word == "REGISTER":
        return Said("write REGISTER RSTREAM <name> AS, with RSTREAM, ISTREAM or DSTREAM")
    if s.kind == "end" and "_PREFIX" in s.accepts:
        return Said(f"a query looks like SELECT * FROM STREAM <...> {_EXAMPLE} WHERE {{ ... }}")
    return None


RSP_RULES: tuple[Rule, ...] = (
    unclosed_string,
    sparql.triple_term,
    broken_iri,
    foreign,
    bare_iri,
    _windows,
    _streams,
    _events,
    _head,
    consuming,
    elsewhere(OF_SEQUENCES),
    _closing,
    sparql.braces,
    lambda s: missing_close(s, "WHERE", "EVENT", "CONSUME", "REPORT"),
    sparql.duration,
    misspelt,
    *sparql.OF_PATTERNS,
    too_many,
)
