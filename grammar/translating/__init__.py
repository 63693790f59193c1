"""Queries of one language in another: text → algebra → **other algebra** → text.

`directions.py` lists the passes, each in a file of its own. What depends on the events, not on the query, stands as
comments above the text.
"""

from __future__ import annotations

from oxiseq.grammar.arguments import public
from oxiseq.grammar.checks import load
from oxiseq.grammar.render import render
from oxiseq.grammar.translating.directions import DIRECTIONS, translate_query
from oxiseq.grammar.translating.translation import Translation

__all__ = ["DIRECTIONS", "Translation", "translate", "translate_query"]


@public
def translate(text: str, *, to: str, language: str = "spaseq") -> str:
    """A query text in the language `to`, with comments that say on which events it means the same.

    Raises `QueryError` where the text is wrong or `to` cannot say it, with the place; `OxiseqError` for a language that
    is not known.

    >>> from oxiseq import translate
    >>> print(translate("VOCAB <http://e/> SELECT * FROM S WHERE A; B AS b FILTER b[x > 1] WITHIN 5 SECONDS",
    ...                 language="ceql", to="spaseq"))
    # means the same where no two events have the same time, and each is one node with one type and
    # at most one value per attribute
    PREFIX : <http://e/>
    SELECT *
    WITHIN 5 SECONDS SLIDING
    FROM STREAM S <http://e/S>
    WHERE {
      SEQ(A : b)
      DEFINE GPM A ON S {
        ?A a :A .
      }
      DEFINE GPM b ON S {
        ?b a :B .
        ?b :x ?b_x .
        FILTER(?b_x > 1)
      }
    }
    <BLANKLINE>
    """
    found = translate_query(load(text, language), to)
    return "".join(f"# {line}\n" for proviso in found.provisos for line in proviso.split("\n")) + render(found.query)
