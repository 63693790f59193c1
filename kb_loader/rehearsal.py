"""`rehearse`: a load into a temporary store, for some seconds, to know what the whole one will find and take."""

from __future__ import annotations

from pathlib import Path
from tempfile import TemporaryDirectory
from time import perf_counter

from pyoxigraph import Store as RdfStore

from oxiseq.engine.errors import KbError
from oxiseq.grammar.records import dataclass
from oxiseq.kb_loader.choice import choose
from oxiseq.kb_loader.plain import PlainLoad
from oxiseq.kb_loader.preparing import Given, prepared
from oxiseq.kb_loader.quarantine import Quarantine
from oxiseq.kb_loader.report import Progress, Watch
from oxiseq.kb_loader.tables import Mapping

SECONDS = 20.0
"""After so many a rehearsal ends, at the next block of statements."""


@dataclass(frozen=True, slots=True)
class Rehearsal:
    """What a load has met so far. `files`: all sources; `statements`: valid ones read; `quarantined`: bad ones;
    `faults`: the first few of these; `without`: sources that were read and gave no statement; `done`, `total`: bytes on
    disk; `seconds`: what that took; `whole`: all has been read, so that the counts are the load's; `why`: which engine
    `auto` would take, if there is a reason to state."""

    files: int
    statements: int
    quarantined: int
    faults: tuple[str, ...]
    without: tuple[Path | str, ...]
    done: int
    total: int
    seconds: float
    whole: bool
    why: str

    @property
    def expected(self) -> float:
        """Seconds of the whole load in this process, without reasoning and statistics."""
        return self.seconds * self._ratio

    @property
    def expected_statements(self) -> int:
        """Valid statements of the whole load; exact if it is `whole`."""
        return round(self.statements * self._ratio)

    @property
    def _ratio(self) -> float:
        return 1.0 if self.whole else self.total / max(self.done, 1)


def rehearse(
    sources: Given,
    *,
    mapping: str | Path | Mapping | None = None,
    graph: str | None = None,
    skolemise: bool = False,
    strict: bool = False,
    seconds: float = SECONDS,
    watch: Watch = lambda progress: None,
) -> Rehearsal:
    """Load what `load` would load, in this process, into a temporary store on disk that goes away; end after so many
    `seconds`, and reckon the rest by its bytes. Nothing is written elsewhere, no quarantine either.

    >>> from oxiseq.kb_loader import rehearse
    >>> found = rehearse("examples/02-fraud/kb.nq")
    >>> found.whole, found.quarantined
    (True, 0)

    Raises KbError as `load` does: for sources or a mapping that cannot be used, and with `strict` at the first fault;
    and for DataFrames, whose size is not known before they are read.
    """
    with TemporaryDirectory(prefix="oxiseq-rehearsal-") as folder:
        bad = Quarantine(Path(folder) / "quarantine", strict=strict)
        begun = perf_counter()
        reached = Progress("loading", 0, 0, 0)

        def note(progress: Progress) -> None:
            nonlocal reached
            reached = progress
            watch(progress)

        job = prepared(sources, [], bad, reasoning=False, mapping=mapping, graph=graph, skolemise=skolemise, watch=note)
        if (frame := next((s for s in job.sources if s.frame is not None), None)) is not None:
            raise KbError(f"{frame.label}: cannot be rehearsed: how much it holds is not known before it is read")
        work = PlainLoad(job, lambda: perf_counter() - begun > seconds)
        total = sum(source.size for source in job.sources)
        store = RdfStore(str(Path(folder) / "store"))
        try:
            work.into(store)
        except OSError as error:
            raise KbError(f"the rehearsal failed: {error}") from error
        spent = perf_counter() - begun
        del store
        return Rehearsal(
            len(job.sources),
            work.read,
            bad.count,
            tuple(bad.first),
            tuple(work.without),
            total if work.whole else reached.done,
            total,
            spent,
            work.whole,
            choose("auto", job.sources, None).why,
        )
