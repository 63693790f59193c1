"""What a load is to do, whichever way it is done."""

from __future__ import annotations

from collections.abc import Sequence

from pyoxigraph import NamedNode

from oxiseq.grammar.records import dataclass
from oxiseq.kb_loader.frames import Asked
from oxiseq.kb_loader.quarantine import Quarantine
from oxiseq.kb_loader.report import Watch
from oxiseq.kb_loader.sources import Source
from oxiseq.kb_loader.tables import Mapping


@dataclass(frozen=True, slots=True)
class Job:
    """The sources, and how: see `load` for each. `reasoning`: whether RDFS is materialised. `asked`: further sources,
    which only Spark finds."""

    sources: Sequence[Source]
    quarantine: Quarantine
    reasoning: bool
    mapping: Mapping | None
    graph: NamedNode | None
    skolemise: bool
    watch: Watch
    asked: Sequence[Asked] = ()
