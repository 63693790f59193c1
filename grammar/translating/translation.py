"""What a direction gives: the query in the other language, and what its meaning depends on; or a refusal."""

from __future__ import annotations

from dataclasses import dataclass

from oxiseq.grammar.algebra import Span
from oxiseq.grammar.errors import QueryError
from oxiseq.grammar.languages import AnyQuery


@dataclass(frozen=True, slots=True)
class Translation:
    """`query` gives the answers of the translated one; `provisos` say on which events, and what has new names."""

    query: AnyQuery
    provisos: tuple[str, ...] = ()


def refused(message: str, span: Span, text: str, hint: str = "") -> QueryError:
    """The other language cannot say what stands at `span` of `text`."""
    return QueryError(message, span, text, hint=hint, code="translate")
