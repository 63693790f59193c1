"""The work of `oxiseq explain`."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import IO, Literal

from oxiseq.api.store import Store
from oxiseq.cli.knowledge import checked_kb, combined
from oxiseq.cli.options import QuerySource
from oxiseq.cli.progress import working
from oxiseq.grammar.languages import STANDING
from oxiseq.languages.explanation import Explanation
from oxiseq.languages.registry import language_for
from oxiseq.options import said_as_data
from oxiseq.sources.knowledge import kb_store


@working("compiling", quiet=False)
def explained(source: QuerySource, kbs: Sequence[str], rules: Sequence[QuerySource] = ()) -> Explanation:
    """The explanation. Raises QueryError, KbError, LimitError."""
    if source.language == STANDING:
        with source.named():
            return Store(inner=kb_store(combined(kbs))).register(source.text, language=STANDING).explain()
    query = source.load()
    language = language_for(query)
    checked_kb(language, kbs)
    with source.named():
        given = said_as_data(language.name, {"rules": [rule.text for rule in rules]})
        return language.explain(query, combined(kbs), given.rules)


def written(explanation: Explanation, form: Literal["text", "dot", "json"], svg: IO[str] | None) -> str:
    """The explanation on the terminal; with `svg` the picture goes there, and no text is written."""
    if svg is not None:
        svg.write(explanation.svg() + "\n")
        return ""
    if form == "json":
        return json.dumps(explanation.json(), indent=2, ensure_ascii=False) + "\n"
    return explanation.dot() if form == "dot" else str(explanation)
