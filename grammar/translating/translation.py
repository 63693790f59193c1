"""What a direction gives: the query in the other language, and what its meaning depends on; or a refusal, with
the part of the query that the other language lacks.
"""

from __future__ import annotations

import re

from pyoxigraph import NamedNode

from oxiseq.grammar.algebra import Span
from oxiseq.grammar.ep_algebra import EpQuery
from oxiseq.grammar.errors import QueryError, at_pattern
from oxiseq.grammar.languages import AnyQuery, Syntax
from oxiseq.grammar.name_chars import NAME_CHARS
from oxiseq.grammar.records import dataclass
from oxiseq.grammar.rsp_algebra import RspQuery

# --- translation -------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Translation:
    """`query` gives the answers of the translated one; `provisos` say on which events, and what has new names."""

    query: AnyQuery
    provisos: tuple[str, ...] = ()


def at_word(word: str, query: EpQuery | RspQuery) -> Span:
    """The first span of a keyword; the span of the whole query if it does not occur."""
    return at_pattern(rf"(?i)\b{word}\b", query.span, query.text)


def window_name(query: EpQuery | RspQuery) -> NamedNode:
    """A name for the only window: `:w`, as people call it, where the query has the empty prefix and not that name."""
    name = dict(query.prefixes).get("", "") + "w"
    taken = name in query.text or re.search(rf"(?<![{NAME_CHARS}-]):w(?![{NAME_CHARS}])", query.text)
    return NamedNode("urn:window" if taken or name == "w" else name)


def refused(message: str, span: Span, text: str, hint: str = "") -> QueryError:
    """The error for text at `span` that the other language cannot express."""
    return QueryError(message, span, text, hint=hint, code="translate")


# --- apart -------------------------------------------------------------------------------------------


def apart(query: AnyQuery, source: Syntax[AnyQuery], target: Syntax[AnyQuery], hint: str) -> QueryError:
    """Why `query` is not shown in `target`, at the part of it that the other language lacks."""
    what, span = (f"a query of {source.title}", query.span) if source.own is None else source.own(query)
    wants = target.about or f"{target.title} queries differently"
    message = f"{source.name} is not translated to {target.name}: {wants}, not {what}"
    return refused(message, span, str(getattr(query, "text", "")), hint)
