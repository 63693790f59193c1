"""The work of `oxiseq explain`."""

from __future__ import annotations

from collections.abc import Sequence

from oxiseq.cli.knowledge import checked_kb, combined
from oxiseq.cli.options import QuerySource
from oxiseq.grammar.ep_algebra import EpQuery
from oxiseq.languages.epsparql import EpFront
from oxiseq.languages.front import ExplanationForm
from oxiseq.languages.registry import front_of, rules_of


def explained(
    source: QuerySource, kbs: Sequence[str], form: ExplanationForm, rules: Sequence[QuerySource] = ()
) -> str:
    """The explanation as `text`, `dot` or `json`. Raises QueryError, KbError."""
    query = source.load()
    front = front_of(query)
    checked_kb(front, kbs)
    with source.named():
        texts = rules_of(front, [rule.text for rule in rules])
        if isinstance(front, EpFront) and isinstance(query, EpQuery):
            return front.explained(query, combined(kbs), form, texts)
        return front.explained(query, combined(kbs), form)
