"""What users give as a knowledge base: a file, N-Quads text, a store's folder, or a store."""

from __future__ import annotations

from pathlib import Path
from typing import Protocol, TypeAlias, runtime_checkable

from pyoxigraph import Store as RdfStore

from oxiseq.kb_loader import is_path, load_file, load_text, open_kb


@runtime_checkable
class HasStore(Protocol):
    """An `oxiseq.Store`."""

    @property
    def inner(self) -> RdfStore:
        """The pyoxigraph store behind."""


Kb: TypeAlias = str | Path | HasStore | RdfStore | None
"""A file, N-Quads text, a store's folder, or a store."""


def kb_store(kb: Kb) -> RdfStore:
    """The pyoxigraph store that `kb` means. Raises KbError."""
    if isinstance(kb, RdfStore):
        return kb
    if isinstance(kb, HasStore):
        return kb.inner
    store = RdfStore()
    if kb is None:
        return store
    if is_path(kb):
        if Path(kb).is_dir():
            return open_kb(Path(kb))
        load_file(store, kb)
    else:
        load_text(store, str(kb))
    return store
