"""A store as a knowledge base that knows which of the answers it gave a change may matter to.

In the flow: queries that are evaluated on the store → their patterns; changes of the store → **since when an answer is
what it is**. So what continuous queries read of the knowledge base is queried again only when a quad of one of its
patterns has come or gone.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from pyoxigraph import Store as RdfStore
from pyoxigraph import Variable

from oxiseq.changes import Anew, Changed
from oxiseq.engine.errors import OxiseqError
from oxiseq.engine.kb import StoreKb
from oxiseq.engine.standing import Leaf, Leaves, StoreTerms, compile_over_store, sources_of
from oxiseq.grammar.algebra import (
    Path,
    PathAlternative,
    PathInverse,
    PathPattern,
    PathRepeat,
    PathSequence,
    PatternElement,
)
from oxiseq.grammar.over_store import load_over_store
from oxiseq.grammar.scope import nested_elements

MOST: Final = 10_000
"""Queries whose patterns are known at a time."""


class ConcernedKb(StoreKb):
    """See the module's text. Not safe for several threads: who calls has the store's lock."""

    def __init__(self, store: RdfStore) -> None:
        super().__init__(store)
        self._forget()

    def _forget(self) -> None:
        """Everything may have changed by now, and nothing is watched."""
        self._leaves = Leaves(StoreTerms())
        self._read: dict[str, tuple[Leaf, ...] | None] = {}
        """By query the patterns that it reads; None: unknown."""
        self._touched: dict[Leaf, int] = {}
        """By pattern the version at which one of its quads came or went last."""
        self._everything = self.version
        """The version at which something changed that is not emitted quad by quad."""

    @property
    def watches(self) -> bool:
        """Whether it matters what changes."""
        return any(leaves is not None for leaves in self._read.values())

    def watch(self, texts: Sequence[str]) -> None:
        """Their present answers have been taken. Later the question is whether they still hold."""
        for text in texts:
            if text not in self._read:
                if len(self._read) >= MOST:
                    self._forget()
                self._read[text] = self._patterns(text)

    def _patterns(self, text: str) -> tuple[Leaf, ...] | None:
        try:
            query = load_over_store(text)
            if any(map(_may_be_nowhere, nested_elements(query.body.where))):
                return None
            forms = sources_of(compile_over_store(query))
        except (OxiseqError, RecursionError):
            return None
        return tuple(map(self._leaves.get, forms))

    def unchanged_since(self, version: int, texts: Sequence[str]) -> bool:
        """Whether the answers to watched queries are those of an earlier version."""
        if version < self._everything:
            return False
        for text in texts:
            leaves = self._read.get(text)
            if leaves is None or any(self._touched.get(leaf, 0) > version for leaf in leaves):
                return False
        return True

    def touch(self) -> None:
        """Say that everything may have changed."""
        self.changed(None)

    def changed(self, changes: Sequence[Changed] | None) -> None:
        """Say that the content changed: how, in their order; None: it is not known."""
        super().touch()
        if changes is None or any(isinstance(change, Anew) for change in changes):
            self._everything = self.version
            return
        for change in changes:
            assert not isinstance(change, Anew)
            graphs = bool(change.dropped or change.created)
            for leaf in self._leaves.concerned((*change.removed, *change.added), graphs):
                self._touched[leaf] = self.version


def _may_be_nowhere(element: PatternElement) -> bool:
    """Whether it is a path of no length from a term: the store follows it only if that term occurs in it."""
    return (
        isinstance(element, PathPattern)
        and not (isinstance(element.subject, Variable) and isinstance(element.object, Variable))
        and _has_no_length(element.path)
    )


def _has_no_length(path: Path) -> bool:
    match path:
        case PathRepeat(inner, mark):
            return mark != "+" or _has_no_length(inner)
        case PathInverse(inner):
            return _has_no_length(inner)
        case PathSequence(paths) | PathAlternative(paths):
            return any(map(_has_no_length, paths))
        case _:
            return False
