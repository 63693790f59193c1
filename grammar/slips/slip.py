"""A slip in a query text, and what every language says of one.

In the flow: `syntax_errors` makes a `Slip` of what the parser found and could have used, and asks the rules of the
language (`spaseq.slips`, `ceql.slips`...). Each looks for one usual slip and answers with a hint, perhaps with a better
message and place; the first rule that answers is taken.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from difflib import get_close_matches
from typing import Final, TypeAlias

from oxiseq.grammar.errors import listing
from oxiseq.grammar.records import dataclass
from oxiseq.grammar.words import KEYWORDS

IRI: Final = r"""<[^<>"{}|^`\\\x00-\x20]*>"""
STRING: Final = r"""(?:"(?:[^"\\\n]|\\.)*"|'(?:[^'\\\n]|\\.)*')"""
LONG_STRING: Final = r"""(?:\"\"\".*?\"\"\"|'''.*?''')"""
"""Patterns for text between < and > or quotes, where no bracket counts and no comment begins."""
COMMENT = re.compile(rf"({IRI}|{STRING})|#[^\n]*")
"""A comment; group 1 is what only looks as if it held one."""
UNITS: Final = ["MILLISECONDS", "SECONDS", "MINUTES", "HOURS", "DAYS", "EVENTS"]
"""Of WITHIN."""

_TYPOGRAPHIC: Final = "“”„‟‘’‚‛«»‹›"
_SHORT: Final = {
    "MS": "MILLISECONDS",
    "S": "SECONDS",
    "M": "MINUTES",
    "H": "HOURS",
    "HR": "HOURS",
    "D": "DAYS",
}
"""Units as other languages write them."""
OPEN_CLOSE: Final = {"(": ")", "{": "}", "[": "]"}
CLOSING: Final = {"(": "RPAR", "{": "RBRACE", "[": "RSQB"}
"""Bracket → the token that closes it."""
_QUOTED = re.compile(f"{IRI}|{LONG_STRING}|{STRING}", re.DOTALL)
_LAST_NUMBER = re.compile(r"(\d[\d.]*)\s*$")
_LAST_WORD = re.compile(r"(\w+)\s*$")


@dataclass(frozen=True, slots=True)
class Slip:
    """A place where the parser could not continue."""

    text: str
    at: int
    found: str
    """The piece of text at this place; empty at the end."""
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
            elif c in ")}]" and stack and OPEN_CLOSE[stack[-1][1]] == c:
                stack.pop()
        return stack[-1] if stack else None


@dataclass(frozen=True, slots=True)
class Said:
    """What to report. An empty message leaves `unexpected ...` with the list of what was expected."""

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


# --- rules of every language ------------------------------------------------------------------------


def unclosed_string(s: Slip) -> Said | None:
    if s.found[:1] in _TYPOGRAPHIC and s.found:
        return Said("write plain quotes: \"...\" or '...'", f"`{s.found[0]}` is a typographic quote")
    if s.found[:1] in ('"', "'") and s.kind == "mark":
        return Said(f"close it with {s.found}; a line break in a string needs three quotes", "a string is not closed")
    return None


def broken_iri(s: Slip) -> Said | None:
    if s.found == "<" and "IRIREF" in s.accepts and re.match(r"<[A-Za-z][\w+.\-]*:", s.text[s.at :]):
        return Said("an IRI ends with > and contains no space or quote", "an IRI is not closed")
    return None


def not_closed(s: Slip, opened: tuple[int, str]) -> Said:
    """The bracket `opened` (its offset, and itself) should have been closed before the slip."""
    offset, bracket = opened
    end = "the end of the query" if s.kind == "end" else f"`{s.found}`"
    hint = f"close it with {OPEN_CLOSE[bracket]} before {end}"
    return Said(hint, f"the {bracket} of line {s.line_of(offset)} is not closed", (offset, offset + 1))


def misspelt(s: Slip) -> Said | None:
    """A word close to a keyword that could be there."""
    if s.kind != "word":
        return None
    possible = sorted(n.lstrip("_") for n in s.accepts - {"AND", "OR"} if n.lstrip("_") in KEYWORDS)  # those are marks
    close = get_close_matches(s.word, possible, 1, 0.6)
    return Said(f"did you mean {close[0]}?") if close else None


def missing_close(s: Slip, *words: str) -> Said | None:
    """The text ends, the next clause begins with one of these words, or another bracket is closed, inside brackets."""
    opened = s.unclosed()
    if opened is None:
        return None
    wrong = (
        s.found in OPEN_CLOSE.values()
        and s.found != OPEN_CLOSE[opened[1]]
        and not s.accepts.isdisjoint(CLOSING.values())
    )
    return not_closed(s, opened) if s.kind == "end" or s.word in words or wrong else None


def too_many(s: Slip) -> Said | None:
    """A closing bracket that closes nothing."""
    return Said(f"one {s.found} too many") if s.found in [*OPEN_CLOSE.values()] and s.unclosed() is None else None


def unit(s: Slip) -> Said | None:
    """A unit of time that is misspelt, of another language, or missing."""
    number = _LAST_NUMBER.search(s.before)
    if "UNIT" not in s.accepts or number is None:
        return None
    if s.kind == "word" and (close := get_close_matches(s.word, UNITS, 1, 0.6)):
        return Said(f"did you mean {close[0]}?")
    if s.kind == "word" and s.word in _SHORT:
        return Said(f"write {number[1]} {_SHORT[s.word].removesuffix('S') if number[1] == '1' else _SHORT[s.word]}")
    if s.kind == "end" or s.line_of(s.at) > s.line_of(number.start()):
        others = listing([*UNITS, *(["[attribute]"] if "LSQB" in s.accepts else [])], "or")
        return Said(f"write {number[1]} MINUTES, or another of {others}", "a unit is missing", number.span(1))
    return None


def consuming(s: Slip) -> Said | None:
    """What answers consume."""
    if s.accepts == {"POLICY"}:
        return Said("write CONSUME BY ANY, CONSUME BY PARTITION or CONSUME BY NONE")
    if s.accepts == {"CONSUMPTION"}:
        return Said("write CONSUME UNRESTRICTED, CONSUME CHRONOLOGICAL or CONSUME RECENT")
    return None


def clause(word: str) -> str:
    """A clause by its first word, as people call it."""
    return f"{word} BY" if word in ("PARTITION", "CONSUME", "GROUP", "ORDER") else word


def elsewhere(places: Mapping[str, str]) -> Rule:
    """Clauses that another language has: first word → what to write here."""

    def rule(s: Slip) -> Said | None:
        return Said(places[s.word]) if s.word in places else None

    return rule


def bare_iri(s: Slip) -> Said | None:
    line = s.before[s.before.rfind("\n") + 1 :] + s.text[s.at :].split("\n")[0]
    start = len(line) - len(s.text[s.at :].split("\n")[0])
    for match in re.finditer(r"(?<![<\w])https?://\S*", line):
        if match.start() <= start < match.end():
            offset = s.at - start + match.start()
            hint = f"write <{match.group()}>"
            return Said(hint, "write an IRI in < and >", (offset, offset + len(match.group())))
    return None
