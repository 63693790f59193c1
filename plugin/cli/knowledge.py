"""Several `--kb` files and folders as one knowledge base."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import click
from pyoxigraph import Store as RdfStore

from oxiseq.kb_loader import load_file, open_kb
from oxiseq.languages.language import Language
from oxiseq.sources.knowledge import Kb


def combined(given: Sequence[str]) -> Kb:
    """`FILE`, a store's folder, or `IRI=FILE` for a named graph. A single file or folder is read where it is.

    Raises KbError.
    """
    if not given:
        return None
    named = [_split(text) for text in given]
    if len(named) == 1 and named[0][0] is None:
        return named[0][1]
    store = RdfStore()
    for graph, path in named:
        if path.is_dir():
            store.bulk_extend(iter(open_kb(path)))
        else:
            load_file(store, path, graph)
    return store


def _split(text: str) -> tuple[str | None, Path]:
    """(IRI of a named graph or None, path). An IRI may hold a "=": the file's name follows the last one."""
    iri, separator, file = text.rpartition("=")
    if separator and ":" in iri and not Path(text).exists():
        return iri.removeprefix("<").removesuffix(">"), Path(file)
    return None, Path(text)


def checked_kb(language: Language[Any], given: Sequence[str]) -> None:
    """Raise a usage error if `--kb` is given to a language whose queries ask none."""
    if given and not language.asks_kb:
        raise click.BadParameter(f"a {language.syntax.title} query asks no knowledge base", param_hint="--kb")
