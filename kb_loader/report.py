"""How far a load is, and what it has done."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import field
from pathlib import Path
from time import perf_counter
from typing import TypeAlias

from oxiseq.grammar.records import dataclass
from oxiseq.kb_loader.quarantine import Quarantine


@dataclass(frozen=True, slots=True)
class Progress:
    """A moment of a load: the step, bytes (on disk) done of all, statements so far."""

    step: str
    done: int
    total: int
    statements: int
    note: str = ""
    """A note that is reported once: which engine is used, and why."""


Watch: TypeAlias = Callable[[Progress], None]
"""Called every few thousand statements."""


@dataclass(slots=True)
class LoadReport:
    """What a load has done; counts of statements (quads), times in seconds."""

    location: Path
    engine: str = "plain"
    """"plain" (this process) or "spark"."""
    files: int = 0
    read: int = 0
    """Valid statements read."""
    stored: int = 0
    """Different ones among them."""
    quarantined: int = 0
    quarantine: Path | None = None
    faults: list[str] = field(default_factory=list)
    """The first few, as `file:line: reason`."""
    violations: list[str] = field(default_factory=list)
    """What breaks SHACL shapes: it is in the store, nevertheless."""
    without: list[Path | str] = field(default_factory=list)
    """Sources that gave no statement: empty, all bad, or tables whose rows the mapping turns into nothing. Sources that
    are not files of this machine are listed by name."""
    inferred: int = 0
    statistics: int = 0
    """Statements of the VoID description."""
    batch: str | None = None
    """Of what has been appended."""
    known: bool = False
    """The batch was in the store already, and nothing has been done."""
    seconds: dict[str, float] = field(default_factory=dict)
    """By step."""

    @contextmanager
    def timed(self, step: str) -> Iterator[None]:
        """Within it, time is the step's."""
        begun = perf_counter()
        yield
        self.seconds[step] = self.seconds.get(step, 0.0) + perf_counter() - begun

    def judged(self, quarantine: Quarantine) -> None:
        """Take over what the quarantine has."""
        self.quarantined, self.faults = quarantine.count, quarantine.first
        self.quarantine = quarantine.folder if quarantine.count or self.violations else None

    @property
    def duplicates(self) -> int:
        """Statements that were there already."""
        return self.read - self.stored

    @property
    def rate(self) -> float:
        """Statements read a second, from files to the store (reasoning and statistics apart)."""
        spent = sum(seconds for step, seconds in self.seconds.items() if step not in ("reasoning", "counting"))
        return self.read / max(spent, 1e-9)
