"""The knowledge base as the engine sees it: a version, and answers to SELECT queries.

In the flow: the engine's only door to storage. The product's store implements `KnowledgeBase`; `StoreKb`
wraps a plain pyoxigraph store whose owner says when its content changed.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any, Protocol, runtime_checkable

from pyoxigraph import QuerySolutions, Store

from oxiseq.engine.errors import KbError
from oxiseq.engine.expressions.times import FUNCTIONS


class Solution(Protocol):
    """The bindings of a query, by the place of a variable in SELECT or by its name: a term, None where it is
    unbound."""

    def __getitem__(self, key: Any, /) -> Any: ...

    def __iter__(self) -> Iterator[Any]: ...


class KnowledgeBase(Protocol):
    """An RDF dataset that can be queried."""

    @property
    def version(self) -> int:
        """Another number whenever the content may have changed."""
        ...

    def solutions(self, query_text: str) -> Iterable[Solution]:
        """The solutions of a SELECT query. Raises KbError."""
        ...


@runtime_checkable
class WatchedKb(KnowledgeBase, Protocol):
    """One that knows which of its answers a change may matter to."""

    def watch(self, texts: Sequence[str]) -> None:
        """Their answers come from the present version, or a later one."""
        ...

    def unchanged_since(self, version: int, texts: Sequence[str]) -> bool:
        """Whether their answers are those of an earlier version, at which or before which they have been watched."""
        ...


def expect(kb: KnowledgeBase, texts: Sequence[str]) -> None:
    """These are going to be asked: what they read is found out now, while nothing waits for their answers."""
    if texts and isinstance(kb, WatchedKb):
        kb.watch(texts)


class Versioned:
    """A KB whose owner says when its content has changed."""

    def __init__(self) -> None:
        self._version = 1

    @property
    def version(self) -> int:
        """Another number after each `touch`."""
        return self._version

    def touch(self) -> None:
        """Say that the content changed: cached answers are queried again."""
        self._version += 1


class StoreKb(Versioned):
    """A pyoxigraph store as a KB. Call `touch` after changing the store."""

    def __init__(self, store: Store) -> None:
        super().__init__()
        self._store: Store | None = store

    def moved(self, store: Store | None) -> None:
        """The same content is now behind another object, or for the moment behind none."""
        self._store = store

    def solutions(self, query_text: str) -> QuerySolutions:
        """The solutions of a SELECT query. Raises KbError when the store refuses or fails."""
        if self._store is None:
            raise KbError("the knowledge base is being opened again")
        try:
            answer = self._store.query(query_text, custom_functions=FUNCTIONS)
        except (SyntaxError, ValueError, OSError) as error:
            raise KbError(f"the knowledge base refuses a query: {error}") from error
        if not isinstance(answer, QuerySolutions):
            raise KbError("the knowledge base answers SELECT queries only")
        return answer
