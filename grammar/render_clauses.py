"""Clauses that SPAseq and CEQL write alike."""

from __future__ import annotations

from oxiseq.grammar.algebra import Consumption


def render_consumption(consumption: Consumption) -> str:
    """CONSUME BY."""
    return f"CONSUME BY {'ANY' if consumption.whole_query else 'PARTITION'}"
