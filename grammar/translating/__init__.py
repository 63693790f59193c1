"""Queries of one language in another: text → algebra → **other algebra** → text.

`directions.py` lists the passes, each in a file of its own. Whatever depends on the events, not on the query, is as
comments above the text.
"""

from __future__ import annotations

from oxiseq.grammar.languages import AnyQuery
from oxiseq.grammar.render import render
from oxiseq.grammar.translating.directions import DIRECTIONS, translate_query
from oxiseq.grammar.translating.translation import Translation

__all__ = ["DIRECTIONS", "Translation", "translate_query", "translated_text"]


def translated_text(query: AnyQuery, to: str) -> str:
    """A checked query as a text in the language `to`, with comments that say on which events it means the same.

    Raises `QueryError` where `to` cannot say it, with the place; `OxiseqError` for a language that is not known.
    """
    found = translate_query(query, to)
    return "".join(f"# {line}\n" for proviso in found.provisos for line in proviso.split("\n")) + render(found.query)
