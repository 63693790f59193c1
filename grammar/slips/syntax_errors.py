"""Syntax errors in human words: what was found, what could have been there, what was probably meant.

In the flow: lark's exception → `QueryError`. `describe` names what the parser could have used;
the rules of the language know the usual mistakes and what to say about them.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from functools import cache
from typing import TYPE_CHECKING

from oxiseq.grammar.errors import QueryError, listing, span_at
from oxiseq.grammar.name_chars import LETTERS, NAME_CHARS
from oxiseq.grammar.slips.slip import IRI, LONG_STRING, STRING, Rule, Slip, explain_slip

if TYPE_CHECKING:
    from lark.exceptions import UnexpectedInput


@cache
def _found() -> re.Pattern[str]:
    """What stands at a place. It is made when the first error is explained: that takes 20 ms."""
    return re.compile(
        rf"""(?P<iri>{IRI})
          | (?P<string>{LONG_STRING}|{STRING})
          | (?P<variable>[?$][{NAME_CHARS}]+)
          | (?P<name>[^\W\d][{NAME_CHARS}\-]*:[{NAME_CHARS}\-.]*[{NAME_CHARS}\-]|[^\W\d][{NAME_CHARS}\-]*:
                    |:[{LETTERS}][{NAME_CHARS}\-]*)
          | (?P<number>[+-]?(?:\d+\.\d+|\.\d+|\d+)(?:[eE][+-]?\d+)?)
          | (?P<word>@?[{LETTERS}][{NAME_CHARS}]*)
          | (?P<mark>->|=>|==|<>|<=|>=|!=|&&|\|\||\^\^|.)""",
        re.VERBOSE | re.DOTALL,
    )


_OPERAND = {"VAR", "FNAME", "STRING", "BANG"}
_EXPRESSION_STARTS = frozenset(
    [
        "VAR",
        "IRIREF",
        "PNAME",
        "STRING",
        "NUMBER",
        "SIGNED",
        "BOOLEAN",
        "FNAME",
        "BANG",
        "PLUS",
        "MINUS",
        "LPAR",
        "_NOT",
        "_EXISTS",
    ]
)
_TERMS: tuple[tuple[frozenset[str], str], ...] = (
    (frozenset({"VAR"}), "a variable"),
    (frozenset({"IRIREF", "PNAME"}), "an IRI"),
    (frozenset({"STRING", "NUMBER", "SIGNED", "BOOLEAN"}), "a literal"),
    (frozenset({"BLANK_LABEL", "LSQB"}), "a blank node"),
)
_CLAUSES = frozenset({"_FILTER", "_OPTIONAL", "_MINUS", "_GRAPH", "SERVICE", "_BIND", "_VALUES"})
_OPERATORS = frozenset({"COMPARE", "SIGNED", "PLUS", "MINUS", "STAR", "SLASH", "AND", "OR", "_IN", "_NOT"})
_REPEATS = frozenset({"PLUS", "STAR", "CHAIN_PLUS", "CHAIN_OPEN", "OPEN", "QMARK", "BANG"})
_BOUNDS = frozenset({"_WITHIN", "_AFTER", "_LASTING"})
_STEPS = frozenset({"SEMICOLON", "COLON", "_FILTER"})
_VALUES = frozenset({"NAME", "NUMBER", "STRING", "BOOLEAN"})
_MARKS = {
    "LPAR": "`(`",
    "RPAR": "`)`",
    "OPEN": "`{`",
    "LBRACE": "`{`",
    "RBRACE": "`}`",
    "LSQB": "`[`",
    "RSQB": "`]`",
    "DOT": "`.`",
    "COMMA": "`,`",
    "SEMICOLON": "`;`",
    "STAR": "`*`",
    "VBAR": "`|`",
    "AMPERSAND": "`&`",
    "EQUAL": "`=`",
    "SLASH": "`/`",
    "CIRCUMFLEX": "`^`",
    "QMARK": "`?`",
    "BANG": "`!`",
    "PLUS": "`+`",
    "MINUS": "`-`",
    "POLICY": "ANY, PARTITION or NONE",
    "OPERATOR": "`,`, `;` or `:`",
    "COLON": "`:`",
    "COLON_PLUS": "`:+`",
    "COLON_OPEN": "`:{`",
    "IRIREF": "an IRI",
    "PNAME": "a prefix such as ex:",
    "_DATATYPE": "`^^`",
    "LANGTAG": "a language tag",
    "NAME": "a name",
    "NUMBER": "a number",
    "STRING": "a string",
    "DURATION": "a duration such as PT30M",
    "UNIT": "a unit such as MINUTES",
    "FNAME": "a function",
    "STRATEGY": "",
    "SHORT": "",
    "REPORTED": "RSTREAM, ISTREAM or DSTREAM",
    "CONSUMPTION": "UNRESTRICTED, CHRONOLOGICAL or RECENT",
    "A": "`a`",
    "UNDEF": "UNDEF",
    "_TERM_BEGIN": "",
    "_REIFIED_BEGIN": "",
    "_ANNOTATION_BEGIN": "",
    "_TILDE": "",
    "_TERM_END": "`)>>`",
    "_REIFIED_END": "`>>`",
    "_ANNOTATION_END": "`|}`",
    "_VERSION": "",
}


def explain(unexpected: UnexpectedInput, text: str, rules: Sequence[Rule], comment: re.Pattern[str]) -> QueryError:
    """lark's exception as ours; `rules` know the language's slips, `comment` its comments (group 1: other text)."""
    at = -1 if unexpected.pos_in_stream is None else unexpected.pos_in_stream
    ended = getattr(getattr(unexpected, "token", None), "type", None) == "$END"
    if ended or at < 0:
        at = len(text.rstrip())
    accepts = _accepted(unexpected)
    match = _found().match(text, at) if at < len(text.rstrip()) else None
    found = match.group() if match else ""
    kind = (match.lastgroup or "") if match else "end"
    before = comment.sub(lambda m: m.group(1) or " " * len(m.group()), text[:at])
    slip = Slip(text, at, found, kind, accepts, before)
    said = explain_slip(slip, rules)
    start, end = said.place if said.place else (at, at + max(1, len(found)))
    return QueryError(
        said.message or f"unexpected {_describe_found(found, kind)}",
        span_at(text, start, end),
        text,
        hint=said.hint,
        expected="" if said.message else describe(accepts),
    )


def _accepted(unexpected: UnexpectedInput) -> frozenset[str]:
    """The terminals that the parser could have used, without lark's namespaces."""
    parser = getattr(unexpected, "interactive_parser", None)
    names: Iterable[str] = parser.accepts() if parser is not None else ()
    return frozenset(n.replace("sparql__", "") for n in names)


def _describe_found(found: str, kind: str) -> str:
    if kind == "end":
        return "end of the query"
    shown = found if len(found) <= 30 else found[:27] + "..."
    return f"{shown!r}" if kind == "mark" and not shown.isprintable() else f"`{shown}`"


def describe(accepts: frozenset[str]) -> str:
    """What could have been there, as a short list."""
    left = set(accepts) - {"$END"}
    words: list[str] = ["the end of the query"] if "$END" in accepts else []
    if left >= _OPERAND:
        words.append("an expression")
        left -= _EXPRESSION_STARTS
    elif {"CIRCUMFLEX", "A", "VAR"} <= left:
        words.append("a predicate")
        left -= {"CIRCUMFLEX", "A", "VAR", "BANG", "IRIREF", "PNAME", "LPAR"}
    for names, word in _TERMS:
        if names <= left:
            words.append(word)
            left -= names
    if "STRING" in accepts:  # a path may continue, but what is missing is an object
        left -= {"VBAR", "SLASH", "QMARK", "STAR", "PLUS"}
    if left & {"COMPARE", "AND", "OR"}:
        words.append("an operator")
        left -= _OPERATORS
    if left >= _STEPS:
        words.append("an operator of CEL")
        left -= _STEPS | {"_AS", "PLUS", "COLON_PLUS", "OPEN", "COLON_OPEN", "_OR"}
    if "AGGREGATE" in left:
        words.append("an aggregate such as COUNT(*)")
        left -= {"AGGREGATE", "LSQB", "STRING", "NUMBER", "BOOLEAN", "PLUS", "MINUS", "LPAR", "_NOT"}
    if left >= _VALUES:
        words.append("an attribute or a value")
        left -= _VALUES | {"PLUS", "MINUS", "LPAR", "_NOT", "_HOLDING"}
    if "OPERATOR" in left:
        words.append("an operator of SEQ")
        left -= {"OPERATOR", "VBAR", "AMPERSAND"}
        if left & {"PLUS"}:
            words.append("a repeat")
            left -= _REPEATS
        if left >= _BOUNDS:
            words.append("a bound")
            left -= _BOUNDS
    if len(left & _CLAUSES) > 1:
        words.append("a clause such as FILTER")
        left -= _CLAUSES | {"OPEN", "LBRACE"}
    keywords = sorted(n.lstrip("_") for n in left if n not in _MARKS)
    marks = [mark for name, mark in _MARKS.items() if name in left and mark]
    return listing([*words, *keywords, *dict.fromkeys(marks)], "or")
