"""The usual slips in SPARQL queries and updates of a store; see `slip`."""

from __future__ import annotations

import re
from typing import Final

from oxiseq.grammar.slips import sparql
from oxiseq.grammar.slips.foreign import foreign
from oxiseq.grammar.slips.rsp import OF_SEQUENCES
from oxiseq.grammar.slips.slip import (
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

_QUERIES = ("SELECT", "CONSTRUCT", "ASK", "DESCRIBE")
_UPDATES = ("INSERT", "DELETE", "LOAD", "CLEAR", "DROP", "CREATE", "ADD", "MOVE", "COPY", "WITH")
_AFTER = ("GROUP", "HAVING", "ORDER", "LIMIT", "OFFSET", "VALUES")


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
    return missing_close(s, *(_AFTER[:-1] if inside else ()))


def _order(s: Slip) -> Said | None:
    if s.word in _AFTER and s.last_mark != "{" and "VAR" not in s.accepts and "$END" in s.accepts:
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
    sparql.literal,
    sparql.condition,
    sparql.expression,
    sparql.columns,
    sparql.triple,
    _end,
    too_many,
)
