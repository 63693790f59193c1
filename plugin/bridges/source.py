"""Where messages come from."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol

from oxiseq.grammar.records import dataclass


@dataclass(frozen=True, slots=True)
class Message:
    """`body`: as a POST would have it; `key`: the same whenever this message comes again, at most 200 ASCII characters;
    `position`: the source's own, for `confirm`; `new_key`: of a message that comes for the first time, from a source
    whose keys come again: it is stored under this one where `key` is known already."""

    body: bytes
    key: str
    position: Any = None
    new_key: str = ""


class Source(Protocol):
    """An open source; used by one thread. Anything that it raises closes it, and it is opened again."""

    def read(self, most: int, seconds: float) -> Sequence[Message]:
        """The next messages, at most so many, in their order, waiting so long for the first; none if there are none."""
        ...

    def confirm(self, messages: Sequence[Message]) -> None:
        """These, the first of what `read` has answered, are durable: they need not come again."""
        ...

    def close(self) -> None:
        """Release it; what is not confirmed comes again."""
        ...
