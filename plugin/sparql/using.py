"""`using-graph-uri` and `using-named-graph-uri` of an update, written into its text as USING clauses.

pyoxigraph takes no dataset beside an update, so each `... WHERE` gets the clauses before it; `DELETE WHERE {P}`
becomes `DELETE {P} USING ... WHERE {P}`. The store parses the result, so a text that is malformed stays so.
"""

from __future__ import annotations

from collections.abc import Sequence

from oxiseq.changes.operations import Token, tokens
from oxiseq.sparql.problems import Problem


def with_using(text: str, default_graphs: Sequence[str], named_graphs: Sequence[str]) -> str:
    """The update over these graphs (checked IRIs). Raises Problem 400 where it has WITH or USING itself."""
    if not default_graphs and not named_graphs:
        return text
    clauses = "".join(f"USING <{iri}> " for iri in default_graphs)
    clauses += "".join(f"USING NAMED <{iri}> " for iri in named_graphs)
    parts: list[str] = []
    done = level = 0
    found = list(tokens(text))
    for index, token in enumerate(found):
        if token.text == "{":
            level += 1
        elif token.text == "}":
            level -= 1
        elif level == 0 and token.is_word("USING", "WITH"):
            raise Problem(400, "the dataset is given twice", f"a USING or WITH clause beside {_names(default_graphs)}")
        elif level == 0 and token.is_word("WHERE"):
            parts.append(text[done : token.start])
            if index and found[index - 1].is_word("DELETE"):
                parts.append(_group(text, found, index + 1) + " ")
            parts.append(clauses)
            done = token.start
    return "".join([*parts, text[done:]])


def _group(text: str, found: list[Token], first: int) -> str:
    """The group in braces that begins at a token; to the end of the text if it is not closed."""
    level = 0
    for token in found[first:]:
        level += (token.text == "{") - (token.text == "}")
        if level == 0:
            return text[found[first].start : token.end]
    return text[found[first].start :] if first < len(found) else ""


def _names(default_graphs: Sequence[str]) -> str:
    return "using-graph-uri" if default_graphs else "using-named-graph-uri"
