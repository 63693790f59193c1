"""What listeners receive."""

from __future__ import annotations

from typing import TypeAlias

from pyoxigraph import BlankNode, NamedNode, Quad

from oxiseq.grammar.records import dataclass

GraphName: TypeAlias = NamedNode | BlankNode


@dataclass(frozen=True, slots=True, eq=False)
class Change:
    """The difference between the content before and after one change of the store, as sets. Never empty.

    The terms are as the store has them: it writes "01"^^xsd:integer as "1"^^xsd:integer. `dropped`, `created`: named
    graphs as such, which may be empty; one that quads were added to is among `created` if it was not there before.
    """

    removed: tuple[Quad, ...] = ()
    added: tuple[Quad, ...] = ()
    dropped: tuple[GraphName, ...] = ()
    created: tuple[GraphName, ...] = ()

    def __bool__(self) -> bool:
        return bool(self.removed or self.added or self.dropped or self.created)


@dataclass(frozen=True, slots=True)
class Anew:
    """Everything may have changed: listeners query again, and compare with the answer before. `why`: for a log.

    This is notified of bulk loads and of anything else that touches too many quads to list, of what was
    changed behind the store's back, and to a listener that failed at an earlier change.
    """

    why: str


Changed: TypeAlias = Change | Anew
