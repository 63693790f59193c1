"""What all operators at work share."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable

from oxiseq.engine.flow.delta import Buffer, Ids
from oxiseq.engine.terms.saved import KnownTerms, SavedTerms, State


class Node(ABC):
    """An operator at work. `out`: what has come of the last batch; the flow clears it before the next."""

    def __init__(self, width: int, inputs: tuple[Buffer, ...] = ()) -> None:
        self.out = Buffer(width)
        self.inputs = inputs

    def begin(self, tick: int) -> bool:
        """The first tick, before anything else; whether it has something to tell then, input or not."""
        return False

    @abstractmethod
    def step(self) -> None:
        """Take in what the inputs hold, and put into `out` what comes of it. Raises LimitError."""

    @property
    def kernel_call(self) -> tuple[int, ...] | None:
        """How the kernel that takes its input is called, for one that drives several (kernels/flow/stepping.py): kind,
        arguments. None: no kernel alone does it."""
        return None

    @property
    def records(self) -> int:
        """How many rows, groups, pairs it keeps."""
        return 0

    @property
    def bytes(self) -> int:
        """How large what it keeps is, room for more included."""
        return 0

    def held_ids(self) -> Iterable[Ids]:
        """The terms of what it keeps (see `TermDictionary`)."""
        return ()

    def save(self, terms: SavedTerms) -> State:
        """What it keeps, between batches."""
        return {}

    def restore(self, state: State, terms: KnownTerms) -> None:  # noqa: B027  most keep nothing
        """Go on from a saved state; for an operator that has not seen anything."""
