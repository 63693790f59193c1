"""What every operator at work is."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from oxiseq.engine.intervals.knowledge import Knowledge
from oxiseq.engine.intervals.rows import Column, Rows, concat, empty
from oxiseq.engine.intervals.table import Table
from oxiseq.engine.kernels.intervals.joining import EMPTY_END, EMPTY_START


@dataclass(frozen=True, slots=True)
class Arrived:
    """What a step is about: triples of the stream (columns subject, predicate, object, and which it is where triples
    are used up), or, with `knowledge`, what has no time."""

    triples: Rows
    knowledge: Knowledge | None = None

    @property
    def timeless(self) -> bool:
        return self.knowledge is not None


class Late:
    """An operand that is looked at when the instant is over, if `late`; else as its triples come."""

    def __init__(self, node: Node, late: bool) -> None:
        self._node, self._late = node, late
        self._waiting: list[Rows] = []

    def step(self, arrived: Arrived) -> Rows:
        """The new rows, as far as they may be looked at now."""
        if not self._late or arrived.timeless:
            return self._node.step(arrived)
        self._waiting.append(arrived.triples)
        return self._node.nothing

    def rest(self) -> Rows:
        """Those of the instant that is over."""
        if not self._waiting:
            return self._node.nothing
        triples = concat(self._waiting, self._waiting[0].values.shape[1])
        self._waiting.clear()
        return self._node.step(Arrived(triples))


class Node(ABC):
    """An operator at work."""

    def __init__(self, columns: Sequence[Column], children: Sequence[Node], tables: Sequence[Table] = ()) -> None:
        self.columns = tuple(columns)
        self.children = tuple(children)
        self.tables = tuple(tables)
        self.nothing = empty(len(self.columns))

    @abstractmethod
    def step(self, arrived: Arrived) -> Rows:
        """The new rows."""

    def begin(self) -> None:
        """The instants before are over."""
        return

    @property
    def parts(self) -> Iterator[tuple[Table, tuple[Column, ...]]]:
        """The tables of rows that go into solutions, with their columns."""
        yield from ()

    def everything(self) -> Iterator[Node]:
        """It and all below it."""
        yield self
        for child in self.children:
            yield from child.everything()


def only_timeless(rows: Rows, arrived: Arrived) -> Rows:
    if not arrived.timeless or not len(rows):
        return rows
    return rows.take((rows.end == EMPTY_END) & (rows.start == EMPTY_START))
