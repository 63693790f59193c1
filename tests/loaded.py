"""Query texts, each read once: tests run the same few texts many times, and what is read never changes."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

from oxiseq import grammar


@lru_cache(1_000)  # a random text is compared in several ways, then comes no more
def load(text: str, language: str = "spaseq") -> Any:
    """As `oxiseq.grammar.load`."""
    return grammar.load(text, language)
