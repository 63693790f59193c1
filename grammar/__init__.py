"""The grammar: text → algebra and back.

    text ─parse─▶ Query ─check─▶ findings (errors and lints with their places)
    text ─load──▶ Query          parse, then the first error is raised as `QueryError`
    Query ─render─▶ text         parse(render(q)) == q

`parse` and `load` take the name of a language (languages.py), `"ceql"` for a `CeqlQuery`; without it, SPAseq.
The algebra (`algebra.py`, `ceql_algebra.py`) is frozen dataclasses over pyoxigraph's terms; `scope.py` says
which variables a pattern binds. `parser` has its builders and lark's grammars in `parsing/` and what it says of a text
that is none in `slips/`; the passes of `checks` are in `checking/`. Pure Python, no NumPy; nothing here knows the
engine.
"""

from oxiseq.grammar.builtin import LANGUAGES
from oxiseq.grammar.checks import check, load
from oxiseq.grammar.errors import Finding, OxiseqError, QueryError
from oxiseq.grammar.languages import language_names, language_of
from oxiseq.grammar.parser import parse
from oxiseq.grammar.render import render

__all__ = [
    "LANGUAGES",
    "Finding",
    "OxiseqError",
    "QueryError",
    "check",
    "language_names",
    "language_of",
    "load",
    "parse",
    "render",
]
