"""What is wrong with a mapping."""

from __future__ import annotations

from oxiseq.engine.errors import ArgumentValueError


class MappingError(ArgumentValueError):
    """A mapping that is invalid or not supported."""
