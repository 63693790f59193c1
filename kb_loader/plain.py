"""Loading in one process: each source's valid statements into the store by Oxigraph's bulk load."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import IO

from pyoxigraph import NamedNode, Quad
from pyoxigraph import Store as RdfStore

from oxiseq.kb_loader.clean_lines import load_clean
from oxiseq.kb_loader.quarantine import Fault, Quarantine
from oxiseq.kb_loader.report import Progress, Watch
from oxiseq.kb_loader.sources import LINE_FORMATS, Source
from oxiseq.kb_loader.statements import in_graph, statements
from oxiseq.kb_loader.tables import Mapping, table_statements

_OFTEN = 20_000
"""Statements between two calls of `watch`."""


class PlainLoad:
    """A load of sources into a store; `read` counts the valid statements."""

    def __init__(
        self, sources: Sequence[Source], quarantine: Quarantine, *,
        skolemise: bool, graph: NamedNode | None, mapping: Mapping | None, watch: Watch,
    ) -> None:  # fmt: skip
        self.read = 0
        self._sources = sources
        self._quarantine = quarantine
        self._skolemise = skolemise
        self._graph = graph
        self._mapping = mapping
        self._watch = watch
        self._total = sum(source.size for source in sources)
        self._before = 0
        """Bytes of the sources already read."""

    def into(self, store: RdfStore) -> None:
        """Load all. Raises KbError at the first fault if the quarantine is strict."""
        for source in self._sources:
            if self._loaded_clean(store, source):
                self._before += source.size
                continue
            faults: list[Fault] = []
            content, raw = source.open()
            with raw, content:
                quads = in_graph(self._statements(source, content, faults), self._graph)
                store.bulk_extend(self._counted(quads, raw))
            self._quarantine.write(source, faults)
            self._before += source.size

    def _loaded_clean(self, store: RdfStore, source: Source) -> bool:
        if source.format not in LINE_FORMATS or self._graph is not None:
            return False
        content, raw = source.open()

        def watch(statements: int) -> None:
            self._watch(Progress("loading", self._before + raw.tell(), self._total, self.read + statements))

        with raw, content:
            count = load_clean(store, source, content, watch)
        self.read += count or 0
        return count is not None

    def _statements(self, source: Source, content: IO[bytes], faults: list[Fault]) -> Iterator[Quad]:
        def tell(fault: Fault) -> None:
            self._quarantine.judge(source, fault)
            faults.append(fault)

        if source.format is not None:
            return statements(source, content, tell, skolemise=self._skolemise)
        return table_statements(source, content, self._mapping, tell, skolemise=self._skolemise)

    def _counted(self, quads: Iterator[Quad], raw: IO[bytes]) -> Iterator[Quad]:
        for quad in quads:
            self.read += 1
            if self.read % _OFTEN == 0:
                self._watch(Progress("loading", self._before + raw.tell(), self._total, self.read))
            yield quad
