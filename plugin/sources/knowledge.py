"""What users give as a knowledge base: a file, N-Quads text, a store's folder, or a store."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Protocol, TypeAlias, runtime_checkable

from pyoxigraph import Store as RdfStore

from oxiseq.engine.errors import KbError
from oxiseq.engine.extras import needed
from oxiseq.engine.kb import KnowledgeBase, StoreKb

if TYPE_CHECKING:
    from oxiseq.kb_loader import files
else:
    files = needed("oxiseq.kb_loader.files")


@runtime_checkable
class HasStore(Protocol):
    """An `oxiseq.Store`."""

    @property
    def inner(self) -> RdfStore:
        """The pyoxigraph store behind."""


@runtime_checkable
class Asked(KnowledgeBase, Protocol):
    """A knowledge base that answers by itself."""


Kb: TypeAlias = str | Path | HasStore | RdfStore | Asked | None
"""A file, N-Quads text, a store's folder, a store, or anything with the engine's protocol of a knowledge base."""


def knowledge_of(kb: Kb) -> KnowledgeBase:
    """The engine's knowledge base. Raises KbError."""
    found = opened(kb)
    return StoreKb(found) if isinstance(found, RdfStore) else found


def opened(kb: Kb) -> RdfStore | Asked:
    """The knowledge base that `kb` means, read once, for several queries. Raises KbError."""
    return kb if not isinstance(kb, RdfStore) and isinstance(kb, Asked) else kb_store(kb)


def kb_store(kb: Kb) -> RdfStore:
    """The pyoxigraph store that `kb` means. Raises KbError."""
    if isinstance(kb, RdfStore):
        return kb
    if isinstance(kb, HasStore):
        return kb.inner
    if isinstance(kb, Asked):
        raise KbError("a store is needed, not only what answers queries")
    store = RdfStore()
    if kb is None:
        return store
    if not isinstance(kb, str | Path):
        raise KbError(f"a knowledge base is a file, text, a folder or a store, not {kb!r}")
    if files.is_path(kb):
        if Path(kb).is_dir():
            return files.open_kb(Path(kb))
        files.load_file(store, kb)
    else:
        files.load_text(store, str(kb))
    return store
