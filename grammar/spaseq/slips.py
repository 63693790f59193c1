"""The usual slips in the clauses of a SPAseq text and in SEQ, and what to say about each; see `slips.slip`."""

from __future__ import annotations

import re
from difflib import get_close_matches

from oxiseq.grammar.slips import sparql
from oxiseq.grammar.slips.slip import (
    CLOSING,
    OPEN_CLOSE,
    Rule,
    Said,
    Slip,
    bare_iri,
    broken_iri,
    clause,
    consuming,
    missing_close,
    misspelt,
    too_many,
    unclosed_string,
    unit,
)
from oxiseq.grammar.slips.sparql import foreign
from oxiseq.grammar.words import SPASEQ

_SEQ_WORDS = {
    "AND": "&",
    "&&": "&",
    "OR": "|",
    "||": "|",
    "THEN": ";",
    "FOLLOWED": ";",
    "NEXT": ";",
    "->": ";",
    "-": ";",
    "=>": ";",
    ">": ";",
    ".": ";",
    "/": ";",
}
"""What people write in SEQ → the operator."""


_NAME = re.compile(r"\s*(\w+)")


def _missing_close(s: Slip) -> Said | None:
    """As in every language; a definition begins where a pattern could go on, or SEQ be closed."""
    opened = s.unclosed()
    if opened is None or ("_DEFINE" in s.accepts and s.found in OPEN_CLOSE.values()):
        return None
    outside = opened[1] == "{" and s.word in ("DEFINE", "SEQ") and s.accepts.isdisjoint(("_FILTER", "DOT"))
    begins = not outside and CLOSING[opened[1]] in s.accepts
    return missing_close(s, *(("DEFINE", "WHERE", "SEQ") if begins else ()))


def _define(s: Slip) -> Said | None:
    if "_DEFINE" in s.accepts:
        if s.word == "UNTIL":
            return Said("a SEQ has one UNTIL, directly behind it, before FILTER: SEQ(A; B) UNTIL U | V")
        if s.word == "WITHIN":
            return Said(
                "WITHIN for the whole query comes before WHERE; in SEQ it bounds a gap: SEQ(A; B WITHIN 10 MINUTES)"
            )
        if s.word == "GPM":
            return Said("write DEFINE GPM")
        if s.word == "SEQ":
            return Said("a query has one SEQ")
        if s.kind == "word" and re.match(r"\w+\s+ON\b", s.text[s.at :], re.IGNORECASE):
            return Said(f"write DEFINE GPM {s.found} ON ...")
        if s.found == ")":
            return Said("SEQ( is closed already: one ) too many")
        if s.kind in ("variable", "iri", "name") or s.word in ("FILTER", "GRAPH", "OPTIONAL"):
            return Said("write patterns inside DEFINE GPM name ON stream { ... }")
        if s.found and s.found in ";.,":
            return Said(f"no {s.found} between definitions")
        if s.found and s.found in "+?!{" and s.last_mark == ")":
            return Said(f"{s.found} belongs inside SEQ: SEQ((A; B){s.found})" if s.found != "{" else "")
    if "_GPM" in s.accepts:
        return Said(f"write DEFINE GPM {s.found if s.kind == 'word' else 'A'} ON ...")
    if "_ON" in s.accepts:
        name = s.found if s.kind == "word" and s.word not in SPASEQ else "S1"
        if s.last_word == "ON":
            return Said(f"name the GPM: DEFINE GPM A ON {name} {{ ... }}")
        if s.last_word == "GPM" or s.kind == "number":
            return Said("a GPM's name is letters, digits and _")
        return Said(f"a definition names its stream: DEFINE GPM {s.last_name} ON {name} {{ ... }}")
    return None


def _gpm_body(s: Slip) -> Said | None:
    if s.accepts <= {"OPEN", "LBRACE"} and re.search(r"\bON\s+\w+\s*$", s.before, re.IGNORECASE):
        return Said(f"write a GPM's pattern in braces: ON {s.last_name} {{ ... }}")
    return None


def _seq(s: Slip) -> Said | None:
    if "_SEQ" in s.accepts and (s.found == "(" or s.word.startswith("SEQ")):
        return Said("write SEQ(...)")
    if "_SEQ" in s.accepts:
        return Said("WHERE begins with SEQ(...); the definitions follow")
    if s.last_word == "SEQ" and "LPAR" in s.accepts:
        return Said("write SEQ(...) with parentheses")
    return None


def _operator(operator: str, written: str) -> str:
    told = f"in SEQ write {operator} for {written}"
    return f"{told}, if both are at one instant; else A; B" if operator == "&" else told


def _seq_operator(s: Slip) -> Said | None:
    """Inside SEQ, after an element."""
    if not {"OPERATOR", "AMPERSAND"} <= s.accepts:
        return None
    if s.last_word == "DEFINE" and s.word == "GPM":  # `SEQ(A; DEFINE GPM`: DEFINE was read as a name
        before = s.before.rstrip()[: -len("DEFINE")].rstrip()
        if before.upper().endswith("UNTIL"):
            place = (len(before) - len("UNTIL"), len(before))
            return Said("name the GPM that ends a run: SEQ(A; B) UNTIL U", "nothing follows UNTIL", place)
        hint = "add a GPM and close SEQ with )"
        return Said(hint, f"nothing follows the `{before[-1]}`", (len(before) - 1, len(before)))
    if s.word in _SEQ_WORDS:
        written = "FOLLOWED BY" if s.word == "FOLLOWED" else s.found
        return Said(_operator(_SEQ_WORDS[s.word], written))
    if s.word == "NOT" or s.last_word == "NOT":
        return Said(
            f"write the negation after the name: {s.found if s.last_word == 'NOT' and s.kind == 'word' else 'A'}!"
        )
    if s.word == "UNTIL" and "RPAR" in s.accepts:
        stop = _NAME.match(s.text, s.at + len(s.found))
        name = stop[1] if stop else "N"
        return Said(
            f"UNTIL follows SEQ(...), and an event of it ends a run: SEQ(A; B+) UNTIL {name}; "
            f"for the event that ends a repeat write `; {name}`"
        )
    if s.found == "(" and s.last_word == "PERMUTE" and "RPAR" not in s.accepts:
        return Said("UNTIL takes GPMs joined by & and |: SEQ(A; B) UNTIL U | V")
    if s.found == "(" and s.last_word == "PERMUTE":
        return Said("write the orders: (A; B) | (B2; A2), with DEFINE GPM A2 AS A and DEFINE GPM B2 AS B")
    if s.found in ("^", "["):
        return Said("repeats look like A{2} or A{2,5}")
    if s.kind == "word" and s.word not in SPASEQ:
        return Said("put an operator between two GPMs: , (at once), ; (next) or : (any later)")
    if s.kind == "mark" and s.found == "}":
        return Said("close SEQ with )")
    return None


def _behind_bound(s: Slip) -> Said | None:
    """Inside SEQ, after WITHIN, AFTER or LASTING."""
    if not {"OPERATOR", "_AFTER"} <= s.accepts or "PLUS" in s.accepts or s.kind != "mark":
        return None
    if s.found in "|&":
        return Said(f"a bound applies to the whole: write it last, A {s.found} B WITHIN 10 MINUTES")
    if s.found in "+*?!{":
        whole = "{2}" if s.found == "{" else s.found
        return Said(f"write B{whole} WITHIN 10 MINUTES, or (B WITHIN 10 MINUTES){whole}")
    return None


def _seq_operand(s: Slip) -> Said | None:
    """Inside SEQ, where a GPM must be."""
    if {"NAME", "LPAR"} != s.accepts:
        return None
    operator = s.last_mark
    at = len(s.before.rstrip()) - 1
    if operator and operator in ",;:&|":
        if s.found in (")", "") or s.word == "DEFINE":
            return Said(f"drop the {operator} or add a GPM", f"nothing follows the `{operator}`", (at, at + 1))
        if s.found == operator and operator in "&|":
            return Said(_operator(operator, operator * 2))
        if s.found and s.found in ",;:&|":
            return Said("write one operator between two GPMs")
    if s.found == "!":
        negated = _NAME.match(s.text, s.at + 1)
        return Said(f"write the negation after the name: {negated[1] if negated else 'A'}!")
    if s.found == ")":
        return Said("name the GPMs in their order: SEQ(A; B)")
    if s.kind == "variable":
        return Said("SEQ takes names of GPMs; variables belong in their patterns")
    if s.kind == "iri" or s.kind == "name":
        return Said("SEQ takes names of GPMs: define one and name it here")
    return None


def _bounds(s: Slip) -> Said | None:
    if s.accepts == {"NUMBER"} and s.last_mark == "{" and s.found == ",":
        return Said("write {0,n} for 0 to n iterations")
    if s.accepts == {"NUMBER"} and s.last_mark == "{":
        return Said("bounds look like {2}, {2,} or {2,5}")
    return None


def _where(s: Slip) -> Said | None:
    if s.last_word == "WHERE" and s.accepts <= {"OPEN", "LBRACE"}:
        return Said("write WHERE { SEQ(...) ... }")
    if "_WHERE" not in s.accepts:
        return None
    if s.word == "STREAM":
        return Said("write FROM STREAM")
    if s.found == "{" or s.word == "SEQ":
        return Said("WHERE { is missing")
    if s.word == "AS":
        return Said("put parentheses around: (expression AS ?name)")
    if s.kind == "mark" and s.found in "+-*/<>=":
        return Said("put parentheses around: (expression AS ?name)")
    return None


def _streams(s: Slip) -> Said | None:
    if "_STREAM" in s.accepts and s.last_word == "INTO":
        return Said("write INTO STREAM <...>")
    if "_STREAM" in s.accepts:
        if s.kind == "iri":
            return Said(f"write FROM STREAM S1 {s.found}")
        if s.kind == "word" and s.last_word == "FROM":
            if get_close_matches(s.word, ["STREAM"], 1, 0.7):
                return Said("did you mean STREAM?")
            return Said(f"write FROM STREAM {s.found} <...>")
    if s.last_word == "STREAM" and s.accepts == {"NAME"}:
        return Said(f"give the stream a name: FROM STREAM S1 {s.found if s.kind in ('iri', 'name') else '<...>'}")
    named = re.search(r"\bSTREAM\s+(\w+)\s*$", s.before, re.IGNORECASE)
    if named is not None and "IRIREF" in s.accepts:
        hint = f"its IRI follows its name: FROM STREAM {named[1]} <http://example.org/stream>"
        return Said(hint, f"the stream {named[1]} has no IRI", named.span(1))
    return None


def _within(s: Slip) -> Said | None:
    if "UNIT" in s.accepts:
        return Said("give a unit: MILLISECONDS, SECONDS, MINUTES, HOURS, DAYS or EVENTS")
    if s.last_word in ("WITHIN", "AFTER", "LASTING") and "DURATION" in s.accepts and s.unclosed():  # inside SEQ
        return Said(f"write {s.last_word} 10 MINUTES or {s.last_word} PT10M")
    if s.last_word == "WITHIN":
        return Said("write WITHIN 30 MINUTES, WITHIN PT30M or WITHIN 100 EVENTS")
    return None


_BY = re.compile(r"\w+\s+BY(?:\s+(?:[?$]\w+|ANY|PARTITION)\b)+", re.IGNORECASE)
_HEAD = ("PARTITION", "CONSUME", "WITHIN", "FROM", "SUPPRESS")
_AFTER = ("GROUP", "HAVING", "ORDER", "LIMIT", "SAMPLE", "REPORT")


def _misplaced(s: Slip) -> Said | None:
    """A clause that belongs before WHERE, or behind it."""
    if s.word in _HEAD[:2] and "_PARTITION" not in s.accepts:
        given = _BY.match(s.text, s.at)
        written = " ".join(given[0].split()) if given else f"{clause(s.word)} ..."
        return Said(f"{clause(s.word)} belongs before WHERE: SELECT ... {written} FROM STREAM ... WHERE {{ ... }}")
    if s.word in _HEAD[2:] and "$END" in s.accepts:
        return Said(f"{s.word} belongs between SELECT and WHERE")
    if s.word in _AFTER and ("_WHERE" in s.accepts or {"_DEFINE", "RBRACE"} <= s.accepts or "OPERATOR" in s.accepts):
        return Said(f"{clause(s.word)} follows the last }}")
    return None


def _selection(s: Slip) -> Said | None:
    """PARTITION BY, CONSUME BY, SUPPRESS, LIMIT."""
    if s.word == "EXTENDING" and "_SUPPRESS" in s.accepts:
        return Said("a dropped row extends no interval; the first match after a silence is SEQ(N!; X) WITHIN d SLIDING")
    if s.last_word == "BY" and s.accepts == {"VAR"}:
        bare = s.found.upper() not in SPASEQ and s.kind == "word"
        return Said(f"did you mean ?{s.found}?" if bare else "write PARTITION BY ?a, with variables of the GPMs")
    if s.found == "," and re.search(r"\bPARTITION\s+BY(\s+[?$]\w+)+\s*$", s.before, re.IGNORECASE):
        return Said("variables are separated by spaces")
    return None


def _prologue(s: Slip) -> Said | None:
    if "_PREFIX" in s.accepts:
        if s.kind == "name" and s.found.endswith(":"):
            return Said(f"write PREFIX {s.found} <...>")
        if s.kind == "word" and s.found and re.match(r"@(prefix|base)$", s.found, re.IGNORECASE):
            return Said(f"write {s.found[1:].upper()} without @, and no . at the end")
        if s.found == ".":
            return Said("no . after a declaration")
        if s.kind == "end":
            return Said("a query looks like SELECT ... FROM STREAM ... WHERE { SEQ(...) DEFINE GPM ... }")
    if "PNAME" in s.accepts and s.last_word == "PREFIX":
        return Said(f"a prefix ends with a colon: PREFIX {s.found}:" if s.kind == "word" else "write PREFIX p: <...>")
    return None


def _after_end(s: Slip) -> Said | None:
    if "$END" not in s.accepts:
        return None
    if s.word in _AFTER[:-1]:
        return Said("after the last } come GROUP BY, HAVING, ORDER BY, LIMIT or SAMPLE, REPORT, in this order")
    return too_many(s)


RULES: tuple[Rule, ...] = (
    unclosed_string,
    sparql.triple_term,
    broken_iri,
    foreign,
    bare_iri,
    sparql.braces,
    _seq_operand,
    _bounds,
    _seq,
    _gpm_body,
    consuming,
    _misplaced,
    _selection,
    _where,
    _missing_close,
    _seq_operator,
    _behind_bound,
    _define,
    _streams,
    unit,
    _within,
    _prologue,
    sparql.duration,
    misspelt,
    *sparql.OF_PATTERNS,
    _after_end,
)
