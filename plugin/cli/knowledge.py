"""Several `--kb` files and folders as one knowledge base."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from pyoxigraph import Store as RdfStore

from oxiseq.kb import load_file, open_kb
from oxiseq.replay import Kb


def combined(paths: Sequence[Path]) -> Kb:
    """One path stands for itself (a store's folder is read where it is); several are loaded into one store.

    Raises KbError.
    """
    if not paths:
        return None
    if len(paths) == 1:
        return paths[0]
    store = RdfStore()
    for path in paths:
        if path.is_dir():
            store.bulk_extend(iter(open_kb(path)))
        else:
            load_file(store, path)
    return store
