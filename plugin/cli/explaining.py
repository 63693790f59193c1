"""The work of `oxiseq explain`."""

from __future__ import annotations

from collections.abc import Sequence

from oxiseq.cli.knowledge import checked_kb, combined
from oxiseq.cli.options import QuerySource
from oxiseq.languages.front import ExplanationForm
from oxiseq.languages.registry import front_of


def explained(source: QuerySource, kbs: Sequence[str], form: ExplanationForm) -> str:
    """The explanation as `text`, `dot` or `json`. Raises QueryError, KbError."""
    query = source.load()
    front = front_of(query)
    checked_kb(front, kbs)
    with source.named():
        return front.explained(query, combined(kbs), form)
