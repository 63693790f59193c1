"""The usual slips in a CEQL text, and what to say about each; see `slips.slip`."""

from __future__ import annotations

import re
from difflib import get_close_matches

from oxiseq.grammar.slips.slip import (
    CLOSING,
    IRI,
    STRING,
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
from oxiseq.grammar.slips.sparql import OF_SPASEQ, foreign

CEQL_COMMENT = re.compile(rf"({IRI}|{STRING})|#[^\n]*|--[^\n]*|/\*.*?\*/", re.DOTALL)
"""A comment; group 1 is what only looks as if it held one."""

_STEPS = {"->": ";", "=>": ";", "THEN": ";", "FOLLOWED": ";", ".": ";", "-": ";", "|": "OR", "||": "OR"}
_LOGIC = {"&&": "AND", "&": "AND", "||": "OR", "|": "OR", "!": "NOT", ",": "AND"}
_NO_NEGATION = "CEQL has no negation; SPAseq has: SEQ(A; N!; B)"
_END = ("FILTER", "PARTITION", "WITHIN", "GROUP", "HAVING", "CONSUME", "ORDER", "LIMIT", "SAMPLE")


def _missing_close(s: Slip) -> Said | None:
    """As in every language, where the bracket could be closed."""
    opened = s.unclosed()
    closable = opened is not None and CLOSING[opened[1]] in s.accepts
    return missing_close(s, *_END) if closable else None


def _misplaced(s: Slip) -> Said | None:
    """A clause before WHERE, or in parentheses that are closed behind it."""
    closed = s.unclosed() is not None and re.match(r"[^();]*\)", s.text[s.at :])
    if s.word in _END[1:] and ("_WHERE" in s.accepts or ("RPAR" in s.accepts and closed)):
        return Said(f"{clause(s.word)} follows the whole formula: SELECT ... FROM ... WHERE ... {clause(s.word)} ...")
    return None


def _head(s: Slip) -> Said | None:
    if "_VOCAB" in s.accepts or (s.accepts == {"_SELECT"} and s.kind != "word"):
        if s.word in ("PREFIX", "BASE") or s.found.startswith("@"):
            return Said("CEQL has one namespace: VOCAB <...>")
        if s.kind == "end":
            return Said("a query looks like VOCAB <...> SELECT * FROM Stock WHERE BUY AS b; SELL AS s")
    if s.last_word == "VOCAB" and s.accepts == {"IRIREF"}:
        return Said("write VOCAB <http://example.org/stock#>")
    if s.kind == "variable" and "NAME" in s.accepts:
        return Said(f"names have no {s.found[0]} in CEQL: write {s.found[1:]}")
    return None


def _select(s: Slip) -> Said | None:
    if "_FROM" not in s.accepts:
        return None
    if s.last_word == "DISTINCT":
        return Said("complex events are a set: leave DISTINCT out")
    if s.last_word in ("ALL", "NEXT", "LAST", "MAX", "STRICT") and s.found == "*":
        return Said("SELECT takes one strategy")
    if s.word == "WHERE":
        return Said("name the stream: FROM Stock WHERE ...")
    if s.word == "AS":
        return Said("names are given in WHERE: BUY AS b")
    if s.kind == "word" and "COMMA" in s.accepts and not get_close_matches(s.word, ["FROM"], 1, 0.7):
        return Said("names are separated by commas")
    return None


def _totals(s: Slip) -> Said | None:
    """In a column, or in HAVING, where aggregates are allowed."""
    if s.accepts == {"RPAR", "LSQB"} or s.accepts == {"NAME", "STAR"}:
        if s.last_word == "DISTINCT":
            return Said("complex events are a set, and each value counts as often as it occurs: leave DISTINCT out")
        return Said("an aggregate is COUNT(*), COUNT(y) or SUM(y[price]), where y names events in WHERE")
    if s.accepts == {"RSQB"} and re.search(r"\(\s*\w+\s*\[[^\]]*$", s.before):
        return Said("write only an attribute there; conditions belong in FILTER: ... FILTER y[price > 100]")
    if s.word == "AS" and "RPAR" in s.accepts and re.match(r"(?s).*\bSELECT\b[^\[]*\(", s.before, re.IGNORECASE):
        return Said("write columns without parentheses: COUNT(*) AS n")
    if "_AS" in s.accepts and "_FROM" not in s.accepts and "SEMICOLON" not in s.accepts:
        if s.word == "FROM" or s.found == ",":
            return Said("name the column: COUNT(*) AS n")
        if s.kind in ("word", "variable"):
            return Said(f"AS is followed by the name: AS {s.found.lstrip('?$')}")
    if s.accepts == {"LSQB"} and s.found == "(" and s.last_word in ("COUNT", "SUM", "AVG", "MIN", "MAX"):
        return Said("conditions on all that end at one event come after WHERE: HAVING COUNT(*) > 100")
    if s.accepts == {"LSQB"} and re.search(r"\bGROUP\s+BY\b[^;]*$", s.before, re.IGNORECASE):
        return Said("write attributes in brackets: GROUP BY [name], [volume]")
    return None


def _from(s: Slip) -> Said | None:
    if s.last_word == "FROM" and s.accepts == {"NAME"} and s.kind in ("iri", "name"):
        return Said("FROM takes a name; VOCAB gives its namespace")
    if "_WHERE" in s.accepts:
        if s.last_word == "STREAM" and s.kind == "word":
            return Said(f"write FROM {s.found} without STREAM")
        if s.kind in ("iri", "name"):
            return Said("FROM takes names only; VOCAB gives their namespace")
        if s.kind == "word" and re.search(r"\bFROM\b[^;]*$", s.before, re.IGNORECASE):
            if close := get_close_matches(s.word, ["WHERE"], 1, 0.75):
                return Said(f"did you mean {close[0]}?")
            return Said("streams are separated by commas, WHERE follows")
    if s.last_word == "WHERE" and s.found == "{":
        return Said("write a formula without braces: WHERE BUY AS b; SELL AS s")
    return None


def _operand(s: Slip) -> Said | None:
    """Where a formula must be."""
    if s.accepts != {"NAME", "LPAR"}:
        return None
    at = len(s.before.rstrip()) - 1
    last = s.last_mark
    if s.last_word == "FILTER" or re.search(r"\]\s*(AND|OR)\s*$", s.before, re.IGNORECASE):
        if s.found in ("!", "["):
            return Said("a condition looks like x[price > 100]")
        return None
    if last and last in ";:":
        if s.kind == "end" or s.found == ")" or s.word in _END:
            return Said(f"drop the {last} or add an event", f"nothing follows the `{last}`", (at, at + 1))
        if s.found and s.found in ";:,":
            return Said("write one operator between two events")
    if s.found in ("!", "~"):
        return Said(_NO_NEGATION)
    if s.found == "*":
        return Said("name the types of the events: BUY OR SELL")
    if s.kind in ("iri", "name"):
        return Said("types are plain names; VOCAB gives their namespace")
    return None


def _step(s: Slip) -> Said | None:
    """After an event."""
    if not {"SEMICOLON", "COLON"} <= s.accepts:
        return None
    before = s.before.rstrip()[: -len(s.last_word)].rstrip()
    if s.last_word in _END and before[-1:] in (";", ":"):  # `; FILTER b`: FILTER was read as a type
        place = (len(before) - 1, len(before))
        return Said(f"drop the {before[-1]} or add an event", f"nothing follows the `{before[-1]}`", place)
    if s.found == ",":
        return Said("write : for the very next event, ; for any later one")
    if s.word == "UNTIL":
        return Said(
            "write `; B` for the event that ends a repeat; what must not come between SPAseq says: SEQ(A; C) UNTIL B"
        )
    if s.found == "(" and s.last_word == "PERMUTE":
        return Said("write the orders: (A; B) OR (B; A)")
    if s.word in _STEPS:
        written = "FOLLOWED BY" if s.word == "FOLLOWED" else s.found
        return Said(f"write {_STEPS[s.word]} for {written}")
    if s.word in ("AND", "&", "&&"):
        return Said("AND joins conditions of FILTER; ; or : joins events")
    if s.found in ("*", "?"):
        return Said("a repeat is + (one or more), {2,5}, or :+ and :{2,5} for events without a gap")
    if s.found == "!" or s.last_word == "NOT" or s.word == "UNLESS":
        return Said(_NO_NEGATION)
    if s.found == "[":
        return Said(f"conditions belong in FILTER: ... FILTER {s.last_name}[price > 100]")
    if s.found == ">":
        return Said("write only the type; FROM names the streams")
    if s.found == "(" and s.last_word == "SEQ":
        return Said("CEQL has no SEQ: write BUY AS b; SELL AS s")
    if s.found == "(":
        return Said("put ; (any later) or : (the very next) between two events")
    return None


def _go_on(s: Slip) -> Said | None:
    """After a condition of FILTER."""
    if not {"_FILTER", "_AND"} <= s.accepts or "SEMICOLON" in s.accepts:
        return None
    if s.found and (s.found in ";:+" or s.word == "AS"):
        return Said("FILTER applies to all before it: to continue, put that formula and its FILTER into parentheses")
    if s.word in _LOGIC:
        return Said(f"write {_LOGIC[s.word]} for {s.found}")
    return None


def _condition(s: Slip) -> Said | None:
    """Where `X[` must be, or its bracket."""
    if s.accepts == {"LSQB"}:
        if s.last_word == "BY":
            return Said("write attributes in brackets: PARTITION BY [name], [volume]")
        if s.last_word == "NOT" or re.search(r"\bNOT\s+\w+\s*$", s.before, re.IGNORECASE):
            return Said("write NOT inside the brackets: x[NOT price > 100]")
        if re.search(r"(\bBY\b[^;]*|\]\s*),\s*$", s.before, re.IGNORECASE):
            return Said("write attributes in brackets: [name], [volume]")
        return Said(f"a condition looks like {s.last_name}[price > 100]")
    if s.accepts == {"RSQB"} and s.found == ",":
        return Said("write one attribute in each bracket: [name], [volume]")
    return None


def _predicate(s: Slip) -> Said | None:
    """Inside the brackets of a condition."""
    if "RSQB" not in s.accepts and "_NOT" not in s.accepts:
        return None
    if s.word in ("LIKE", "IN", "BETWEEN", "IS") and "_AND" in s.accepts:
        shown = {"BETWEEN": "price >= 1 AND price <= 2", "IS": "name = 'X'"}.get(s.word, "name = 'X' OR name = 'Y'")
        return Said(f"{s.word} is not there: write {shown}")
    if s.word in _LOGIC:
        return Said(f"write {_LOGIC[s.word]} for {s.found}")
    if s.found in (".", "["):
        return Said("write only the attribute in the brackets: price")
    if s.kind == "string" and re.search(r"'$", s.before):
        return Said("write \\' for a quote in a string")
    if s.found in ("<", ">", "<=", ">=", "=", "!=", "==", "<>") and "_AND" in s.accepts:
        return Said("comparisons do not chain: write 1 < price AND price < 5")
    return None


def _within(s: Slip) -> Said | None:
    if s.word in ("SLIDING", "TUMBLING"):
        return Said("windows of CEQL always slide: leave SLIDING out")
    if s.last_word == "WITHIN" and s.accepts == {"NUMBER"}:
        return Said("write WITHIN 30 MINUTES, WITHIN 100 EVENTS or WITHIN 30000 [stock_time]")
    if "UNIT" in s.accepts:
        if s.kind == "word":
            return Said(f"write an attribute in brackets: [{s.found}]")
        return Said("give a unit such as SECONDS, EVENTS, or an attribute in brackets: [stock_time]")
    if s.last_word == "BY" and "START" in s.accepts:
        return Said("write ORDER BY START, or order by an aggregate of a variable: ORDER BY SUM(x[price]) DESC")
    if s.word in ("WHERE", "FROM", "SELECT") and "$END" in s.accepts:
        behind = "PARTITION BY, WITHIN, GROUP BY, HAVING, CONSUME BY, ORDER BY, LIMIT or SAMPLE"
        return Said(f"the order is SELECT, FROM, WHERE, then {behind}")
    return None


def _misspelt(s: Slip) -> Said | None:
    """A word close to a keyword that could be here, or two events without an operator."""
    if said := misspelt(s):
        return said
    if s.kind == "word" and {"SEMICOLON", "COLON"} <= s.accepts:
        return Said("put ; (any later) or : (the very next) between two events")
    return None


CEQL_RULES: tuple[Rule, ...] = (
    unclosed_string,
    broken_iri,
    foreign,
    bare_iri,
    elsewhere(OF_SPASEQ),
    _misplaced,
    _missing_close,
    too_many,
    _head,
    consuming,
    unit,
    _within,
    _totals,
    _select,
    _from,
    _operand,
    _step,
    _go_on,
    _condition,
    _predicate,
    _misspelt,
)
