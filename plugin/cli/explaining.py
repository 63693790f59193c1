"""The work of `oxiseq explain`."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import IO, Literal

from oxiseq.cli.knowledge import checked_kb, combined
from oxiseq.cli.options import QuerySource
from oxiseq.cli.progress import working
from oxiseq.explanation import Explanation
from oxiseq.languages.registry import front_of, rules_of


@working("compiling", quiet=False)
def explained(source: QuerySource, kbs: Sequence[str], rules: Sequence[QuerySource] = ()) -> Explanation:
    """The explanation. Raises QueryError, KbError."""
    query = source.load()
    front = front_of(query)
    checked_kb(front, kbs)
    with source.named():
        texts = rules_of(front, [rule.text for rule in rules])
        return front.explain(query, combined(kbs), texts)


def written(explanation: Explanation, form: Literal["text", "dot", "json"], svg: IO[str] | None) -> str:
    """What is told on the terminal; with `svg` the picture goes there, and nothing is told."""
    if svg is not None:
        svg.write(explanation.to_svg() + "\n")
        return ""
    if form == "json":
        return json.dumps(explanation.to_json(), indent=2, ensure_ascii=False) + "\n"
    return explanation.to_dot() if form == "dot" else explanation.to_text()
