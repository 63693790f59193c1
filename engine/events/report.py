"""Counts of a reader: what it has read so far, and what it left out."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import field
from typing import Final, Literal, TypeAlias

from oxiseq.engine.errors import EventError
from oxiseq.grammar.records import dataclass

OnError: TypeAlias = Literal["stop", "skip"]
"""`stop`: the first fault is raised as EventError. `skip`: it is left out, counted, and reading continues."""

KEPT_ERRORS: Final = 10


@dataclass(slots=True)
class ReadReport:
    """The running account of one file; a reader changes it as it continues.

    events, quads: events returned so far; quads read from RDF text, or triples of a table. skipped: lines,
    triples and events left out; lines: how many of those are lines of a text; errors: the first ten. bytes_read of
    bytes_total: how far the reader is, in bytes of the file (compressed ones where it is compressed), for a progress
    bar.
    """

    file: str
    bytes_total: int = 0
    bytes_read: int = 0
    events: int = 0
    quads: int = 0
    skipped: int = 0
    lines: int = 0
    errors: list[EventError] = field(default_factory=list)
    told: Callable[[EventError], object] | None = None
    """Called with each fault that is left out."""
    notes: list[str] = field(default_factory=list)
    """What a user should know of it, though nothing is wrong with what is read."""

    def fault(self, line: int | None, reason: str, on_error: OnError) -> None:
        """Raise the fault as EventError, or count it."""
        error = EventError(self.file, line, reason)
        if on_error == "stop":
            raise error
        self.skipped += 1
        if len(self.errors) < KEPT_ERRORS:
            self.errors.append(error)
        if self.told is not None:
            self.told(error)
