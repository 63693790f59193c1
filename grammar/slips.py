"""The usual slips in a query text, and what to say about each.

Where it stands: asked by `syntax_errors` with what the parser found and could have used. Each rule of
`RULES` looks for one slip and answers with a hint, perhaps with a better message and place; the first
rule that answers is taken.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from typing import TypeAlias

_OPEN_CLOSE = {"(": ")", "{": "}", "[": "]"}
_QUOTED = re.compile(
    r"""<[^<>"{}|^`\\\x00-\x20]*>|\"\"\".*?\"\"\"|'''.*?'''|"(?:[^"\\\n]|\\.)*"|'(?:[^'\\\n]|\\.)*'""",
    re.DOTALL,
)
COMMENT = re.compile(r"""(<[^<>"{}|^`\\\x00-\x20]*>|"(?:[^"\\\n]|\\.)*"|'(?:[^'\\\n]|\\.)*')|#[^\n]*""")
"""A comment; group 1 is what only looks as if it held one."""
_LAST_WORD = re.compile(r"(\w+)\s*$")
_PATTERN_STARTS = {"VAR", "_FILTER", "RBRACE"}

SEQ_WORDS = {
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

EXPRESSION_WORDS = {"AND": "&&", "OR": "||", "&": "&&", "|": "||", "==": "=", "<>": "!=", "->": "", "IS": "="}
KEYWORDS = [
    "SELECT",
    "CONSTRUCT",
    "ASK",
    "WITHIN",
    "FROM",
    "STREAM",
    "WHERE",
    "SEQ",
    "DEFINE",
    "GPM",
    "ON",
    "FILTER",
    "OPTIONAL",
    "UNION",
    "MINUS",
    "GRAPH",
    "BIND",
    "VALUES",
    "DISTINCT",
    "PREFIX",
    "BASE",
    "SLIDING",
    "INTO",
    "EXISTS",
    "LIMIT",
    "PARTITION",
    "CONSUME",
    "SECONDS",
    "MINUTES",
    "HOURS",
    "DAYS",
    "MILLISECONDS",
    "EVENTS",
]


@dataclass(frozen=True, slots=True)
class Slip:
    """A place where the parser could not go on."""

    text: str
    at: int
    found: str
    """The piece of text that stands there; empty at the end."""
    kind: str
    """iri, string, variable, name (prefixed), number, word, mark, end."""
    accepts: frozenset[str]
    before: str
    """The text before it, comments blanked."""

    @property
    def word(self) -> str:
        return self.found.upper()

    @property
    def last_word(self) -> str:
        match = _LAST_WORD.search(self.before)
        return match.group(1).upper() if match else ""

    @property
    def last_name(self) -> str:
        match = _LAST_WORD.search(self.before)
        return match.group(1) if match else "A"

    @property
    def last_mark(self) -> str:
        return self.before.rstrip()[-1:]

    def line_of(self, offset: int) -> int:
        return self.text.count("\n", 0, offset) + 1

    def unclosed(self) -> tuple[int, str] | None:
        """The innermost bracket that is open here: its offset and the bracket."""
        blank = _QUOTED.sub(lambda m: " " * len(m.group()), self.before)
        stack: list[tuple[int, str]] = []
        for i, c in enumerate(blank):
            if c in "({[":
                stack.append((i, c))
            elif c in ")}]" and stack and _OPEN_CLOSE[stack[-1][1]] == c:
                stack.pop()
        return stack[-1] if stack else None


@dataclass(frozen=True, slots=True)
class Said:
    """What to tell. An empty message leaves `unexpected ...` with the list of what was expected."""

    hint: str = ""
    message: str = ""
    place: tuple[int, int] | None = None
    """Offsets of a better place than where the parser stopped."""


Rule: TypeAlias = Callable[[Slip], Said | None]


def explain_slip(slip: Slip, rules: Sequence[Rule]) -> Said:
    """The first rule's answer."""
    for rule in rules:
        if said := rule(slip):
            return said
    return Said()


# --- texts that are not closed ----------------------------------------------------------------------


def unclosed_string(s: Slip) -> Said | None:
    if s.found[:1] in ('"', "'") and s.kind == "mark":
        return Said(f"close it with {s.found}; a line break in a string needs three quotes", "a string is not closed")
    return None


def broken_iri(s: Slip) -> Said | None:
    if s.found == "<" and "IRIREF" in s.accepts and re.match(r"<[A-Za-z][\w+.\-]*:", s.text[s.at :]):
        return Said("an IRI ends with > and holds no space or quote", "an IRI is not closed")
    return None


def _missing_close(s: Slip) -> Said | None:
    """The text ends, or the next definition begins, inside brackets."""
    opened = s.unclosed()
    if opened is None or not (s.kind == "end" or s.word in ("DEFINE", "WHERE", "SEQ", "WITHIN")):
        return None
    offset, bracket = opened
    if bracket == "{" and s.word in ("DEFINE", "SEQ") and "_FILTER" not in s.accepts and "DOT" not in s.accepts:
        return None
    close = _OPEN_CLOSE[bracket]
    if ["RPAR", "RBRACE", "RSQB"]["({[".index(bracket)] not in s.accepts and s.kind != "end":
        return None
    end = "the end of the query" if s.kind == "end" else f"`{s.found}`"
    hint = f"close it with {close} before {end}"
    return Said(hint, f"the {bracket} of line {s.line_of(offset)} is not closed", (offset, offset + 1))


# --- clauses --------------------------------------------------------------------------------------


def _define(s: Slip) -> Said | None:
    if "_DEFINE" in s.accepts:
        if s.word == "GPM":
            return Said("write DEFINE GPM")
        if s.word == "SEQ":
            return Said("a query has one SEQ")
        if s.kind == "word" and re.match(r"\w+\s+ON\b", s.text[s.at :], re.IGNORECASE):
            return Said(f"write DEFINE GPM {s.found} ON ...")
        if s.found == ")":
            return Said("SEQ( is closed already: one ) too many")
        if s.kind in ("variable", "iri", "name") or s.word in ("FILTER", "GRAPH", "OPTIONAL"):
            return Said("patterns stand inside DEFINE GPM name ON stream { ... }")
        if s.found and s.found in ";.,":
            return Said(f"no {s.found} between definitions")
        if s.found and s.found in "+?!{" and s.last_mark == ")":
            return Said(f"{s.found} stands inside SEQ: SEQ((A; B){s.found})" if s.found != "{" else "")
    if "_GPM" in s.accepts:
        return Said(f"write DEFINE GPM {s.found if s.kind == 'word' else 'A'} ON ...")
    if "_ON" in s.accepts:
        name = s.found if s.kind == "word" and s.word not in KEYWORDS else "S1"
        if s.last_word == "ON":
            return Said(f"name the GPM: DEFINE GPM A ON {name} {{ ... }}")
        if s.last_word == "GPM" or s.kind == "number":
            return Said("a GPM's name is letters, digits and _")
        return Said(f"a definition names its stream: DEFINE GPM {s.last_name} ON {name} {{ ... }}")
    return None


def _gpm_body(s: Slip) -> Said | None:
    if s.accepts <= {"OPEN", "LBRACE"} and re.search(r"\bON\s+\w+\s*$", s.before, re.IGNORECASE):
        return Said(f"a GPM's pattern stands in braces: ON {s.last_name} {{ ... }}")
    return None


def _seq(s: Slip) -> Said | None:
    if "_SEQ" in s.accepts and (s.found == "(" or s.word.startswith("SEQ")):
        return Said("write SEQ(...)")
    if "_SEQ" in s.accepts:
        return Said("WHERE begins with SEQ(...), the definitions follow")
    if s.last_word == "SEQ" and "LPAR" in s.accepts:
        return Said("write SEQ(...) with parentheses")
    return None


def _seq_operator(s: Slip) -> Said | None:
    """Inside SEQ, after an element."""
    if not {"OPERATOR", "AMPERSAND"} <= s.accepts:
        return None
    if s.last_word == "DEFINE" and s.word == "GPM":  # `SEQ(A; DEFINE GPM`: DEFINE was read as a name
        before = s.before.rstrip()[: -len("DEFINE")].rstrip()
        hint = "add a GPM and close SEQ with )"
        return Said(hint, f"nothing follows the `{before[-1]}`", (len(before) - 1, len(before)))
    if s.word in SEQ_WORDS:
        written = "FOLLOWED BY" if s.word == "FOLLOWED" else s.found
        return Said(f"in SEQ write {SEQ_WORDS[s.word]} for {written}")
    if s.found == "*":
        return Said("any number of times is {0,}: A{0,}")
    if s.word == "NOT" or s.last_word == "NOT":
        return Said("negation stands after the name: A!")
    if s.found in ("^", "["):
        return Said("repeats look like A{2} or A{2,5}")
    if s.kind == "word" and s.word not in KEYWORDS:
        return Said("put an operator between two GPMs: , (at once), ; (next) or : (any later)")
    if s.kind == "mark" and s.found == "}":
        return Said("close SEQ with )")
    return None


def _seq_operand(s: Slip) -> Said | None:
    """Inside SEQ, where a GPM must stand."""
    if {"NAME", "LPAR"} != s.accepts:
        return None
    operator = s.last_mark
    at = len(s.before.rstrip()) - 1
    if operator and operator in ",;:&|":
        if s.found in (")", "") or s.word == "DEFINE":
            return Said(f"drop the {operator} or add a GPM", f"nothing follows the `{operator}`", (at, at + 1))
        if s.found == operator and operator in "&|":
            return Said(f"in SEQ write {operator} for {operator}{operator}")
        if s.found and s.found in ",;:&|":
            return Said("one operator stands between two GPMs")
    if s.found == "!":
        return Said("negation stands after the name: A!")
    if s.found == ")":
        return Said("name the GPMs in their order: SEQ(A; B)")
    if s.kind == "variable":
        return Said("SEQ takes names of GPMs, variables stand in their patterns")
    if s.kind == "iri" or s.kind == "name":
        return Said("SEQ takes names of GPMs: define one and name it here")
    return None


def _bounds(s: Slip) -> Said | None:
    if s.accepts == {"NUMBER"} and s.last_mark == "{" and s.found == ",":
        return Said("from no iteration on is {0,n}")
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
    if s.found == ",":
        return Said("columns are separated by spaces")
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
            return Said(f"write FROM STREAM {s.found} <...>")
    if s.last_word == "STREAM" and s.accepts == {"NAME"}:
        return Said(f"give the stream a name: FROM STREAM S1 {s.found if s.kind in ('iri', 'name') else '<...>'}")
    if re.search(r"\bSTREAM\s+\w+\s*$", s.before, re.IGNORECASE) and "IRIREF" in s.accepts:
        return Said("a stream's name is followed by its IRI: FROM STREAM S1 <...>")
    return None


def _within(s: Slip) -> Said | None:
    if "UNIT" in s.accepts:
        if s.kind == "word" and (close := get_close_matches(s.word, KEYWORDS[-6:], 1, 0.6)):
            return Said(f"did you mean {close[0]}?")
        return Said("give a unit: MILLISECONDS, SECONDS, MINUTES, HOURS, DAYS or EVENTS")
    if s.last_word == "WITHIN":
        return Said("write WITHIN 30 MINUTES, WITHIN PT30M or WITHIN 100 EVENTS")
    if s.word in ("WITHIN", "FROM") and "$END" in s.accepts:
        return Said(f"{s.word} stands between SELECT and WHERE")
    return None


def _selection(s: Slip) -> Said | None:
    """PARTITION BY, CONSUME BY, LIMIT."""
    if s.last_word == "BY" and s.accepts == {"VAR"}:
        bare = s.found.upper() not in KEYWORDS and s.kind == "word"
        return Said(f"did you mean ?{s.found}?" if bare else "write PARTITION BY ?a, with variables of the GPMs")
    if s.found == "," and re.search(r"\bPARTITION\s+BY(\s+[?$]\w+)+\s*$", s.before, re.IGNORECASE):
        return Said("variables are separated by spaces")
    if s.accepts == {"POLICY"}:
        return Said("write CONSUME BY ANY, CONSUME BY PARTITION or CONSUME BY NONE")
    if s.word == "LIMIT" and "_WHERE" in s.accepts:
        return Said("LIMIT follows the last }")
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


# --- patterns and expressions -----------------------------------------------------------------------


def _literal(s: Slip) -> Said | None:
    if s.kind not in ("string", "number"):
        return None
    if {"CIRCUMFLEX", "A"} <= s.accepts:
        return Said("a predicate is an IRI, a variable or a path", "a literal cannot be a predicate")
    if s.accepts >= _PATTERN_STARTS and "STRING" not in s.accepts and "DOT" not in s.accepts:
        return Said("a triple begins with an IRI, a variable or a blank node", "a literal cannot be a subject")
    return None


def _triple(s: Slip) -> Said | None:
    if "DOT" in s.accepts and "SEMICOLON" in s.accepts and s.kind in ("variable", "iri", "name"):
        return Said("put . between two triples, ; before another predicate, , before another object")
    if s.kind == "word" and {"VAR", "IRIREF"} <= s.accepts and "NAME" not in s.accepts:
        if close := get_close_matches(s.word, KEYWORDS, 1, 0.75):
            return Said(f"did you mean {close[0]}?")
        return Said(f"did you mean ?{s.found} or a prefixed name such as :{s.found}?")
    if s.found in (".", "}", ";") and {"STRING", "BLANK_LABEL", "LSQB"} <= s.accepts and "FNAME" not in s.accepts:
        return Said("a triple is subject, predicate, object")
    if s.found in (".", "}", ";") and {"CIRCUMFLEX", "A"} <= s.accepts:
        return Said("a triple is subject, predicate, object")
    return None


def _filter(s: Slip) -> Said | None:
    if s.last_word in ("FILTER", "HAVING") and "FNAME" in s.accepts and "VAR" not in s.accepts:
        shown = s.found if s.kind in ("variable", "number", "string") else "condition"
        return Said(f"put parentheses around the condition: {s.last_word}({shown} ...)")
    return None


def _expression(s: Slip) -> Said | None:
    if {"OR", "AND"} <= s.accepts or "COMPARE" in s.accepts:
        if EXPRESSION_WORDS.get(s.word):
            return Said(f"write {EXPRESSION_WORDS[s.word]} for {s.found}")
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


def _select(s: Slip) -> Said | None:
    if {"VAR", "STAR", "LPAR"} <= s.accepts and s.kind == "word":
        if re.match(r"\w+\s*\(", s.text[s.at :]):
            return Said(f"put parentheses around: ({s.found}(...) AS ?name)")
        if s.word in KEYWORDS:
            return Said("name the columns, or write * for all")
        return Said(f"did you mean ?{s.found}?")
    return None


def _braces(s: Slip) -> Said | None:
    """OPTIONAL, UNION, GRAPH, BIND... without what belongs to them."""
    if s.last_word in ("OPTIONAL", "MINUS", "UNION", "EXISTS") and s.accepts <= {"OPEN", "LBRACE"}:
        return Said(f"{s.last_word} is followed by a pattern in braces: {s.last_word} {{ ... }}")
    if s.word == "UNION":
        return Said("both sides stand in braces: { ... } UNION { ... }")
    if s.last_word == "BIND" and s.accepts == {"LPAR"}:
        return Said("write BIND(expression AS ?name)")
    if s.last_word == "GRAPH" and s.found == "{":
        return Said("name the graph: GRAPH <iri> { ... }")
    if s.last_word == "CONSTRUCT":
        return Said("a template stands in braces: CONSTRUCT { ... }")
    if s.last_word == "ON" and s.accepts == {"NAME"}:
        return Said("name the stream as FROM STREAM does: ON S1")
    if s.last_word == "GPM" and s.accepts == {"NAME"}:
        return Said("a GPM's name is letters, digits and _")
    return None


def bare_iri(s: Slip) -> Said | None:
    line = s.before[s.before.rfind("\n") + 1 :] + s.text[s.at :].split("\n")[0]
    start = len(line) - len(s.text[s.at :].split("\n")[0])
    for match in re.finditer(r"(?<![<\w])https?://\S*", line):
        if match.start() <= start < match.end():
            offset = s.at - start + match.start()
            hint = f"write <{match.group()}>"
            return Said(hint, "an IRI stands in < and >", (offset, offset + len(match.group())))
    return None


def _misspelt(s: Slip) -> Said | None:
    """A word close to a keyword that could stand here."""
    if s.kind != "word":
        return None
    possible = [n.lstrip("_") for n in s.accepts if n.lstrip("_") in KEYWORDS]
    close = get_close_matches(s.word, possible, 1, 0.6)
    return Said(f"did you mean {close[0]}?") if close else None


def _after_end(s: Slip) -> Said | None:
    if "$END" not in s.accepts:
        return None
    if s.word in ("ORDER", "GROUP", "HAVING"):
        return Said(f"{s.word} BY orders or groups a finished result; a stream's matches come in order of time")
    if s.found == "}":
        return Said("one } too many")
    return None


def _open_bracket(s: Slip) -> Said | None:
    """A closing bracket of another kind."""
    opened = s.unclosed() if "_DEFINE" not in s.accepts else None
    if opened and s.found in (")", "}", "]") and _OPEN_CLOSE[opened[1]] != s.found:
        offset, bracket = opened
        hint = f"close it with {_OPEN_CLOSE[bracket]} before `{s.found}`"
        if {"RPAR", "RBRACE", "RSQB"} & s.accepts:
            return Said(hint, f"the {bracket} of line {s.line_of(offset)} is not closed", (offset, offset + 1))
    return None


RULES: tuple[Rule, ...] = (
    unclosed_string,
    broken_iri,
    bare_iri,
    _braces,
    _seq_operand,
    _bounds,
    _seq,
    _gpm_body,
    _selection,
    _where,
    _missing_close,
    _open_bracket,
    _seq_operator,
    _define,
    _streams,
    _within,
    _prologue,
    _misspelt,
    _literal,
    _filter,
    _expression,
    _select,
    _triple,
    _after_end,
)
