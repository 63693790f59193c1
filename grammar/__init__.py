"""The grammar: text → algebra and back.

    text ─parse─▶ Query ─check─▶ findings (errors and lints with their places)
    text ─load──▶ Query          parse, then the first error is raised as `QueryError`
    Query ─render─▶ text         parse(render(q)) == q

The algebra (`algebra.py`) is frozen dataclasses over pyoxigraph's terms; `scope.py` tells which variables
a pattern binds. Pure Python, no NumPy; nothing here knows the engine.
"""

from oxiseq.grammar.checks import check, load
from oxiseq.grammar.errors import Finding, OxiseqError, QueryError
from oxiseq.grammar.parser import parse
from oxiseq.grammar.render import render

__all__ = ["Finding", "OxiseqError", "QueryError", "check", "load", "parse", "render"]
