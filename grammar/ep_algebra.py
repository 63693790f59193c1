"""EP-SPARQL's algebra: a SPARQL query whose patterns have intervals (semantics.md 5).

Patterns, expressions and result forms are those of `algebra.py`; `TimedPattern` is one more of them, and
`MatchFunction` has the names below.
"""

from __future__ import annotations

from dataclasses import field
from typing import ClassVar

from oxiseq.grammar.algebra import Ask, Construct, Group, Select, Span, Stream, span_field
from oxiseq.grammar.records import dataclass
from oxiseq.grammar.rsp_algebra import Consume

TIME_FUNCTIONS = {"GETDURATION": "getDURATION", "GETSTARTTIME": "getSTARTTIME", "GETENDTIME": "getENDTIME"}
"""In upper case → as the paper writes them."""


@dataclass(frozen=True, slots=True)
class EpQuery:
    """A query, or a rule if it is a CONSTRUCT. `streams`: those that it names, empty for all that there are; their
    names may be empty."""

    language: ClassVar[str] = "epsparql"
    form: Select | Construct | Ask
    where: Group
    streams: tuple[Stream, ...] = ()
    prefixes: tuple[tuple[str, str], ...] = ()
    base: str | None = None
    consume: Consume | None = None
    """What happens to the triples that an answer was made of; None where the text leaves it open."""
    span: Span = span_field()
    text: str = field(default="", compare=False, repr=False)
    """What it was parsed from, so that later errors can show the place."""
