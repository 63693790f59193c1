"""Where messages come from."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from typing import Any, Protocol

from oxiseq.grammar.records import dataclass


@dataclass(frozen=True, slots=True)
class Message:
    """`body`: as a POST would have it; `key`: the same whenever this message comes again, at most 200 ASCII characters;
    `position`: the source's own, for `confirm`; `new_key`: of a message that comes for the first time, from a source
    whose keys come again: it is stored under this one where `key` is known already; `former_key`: under
    which earlier versions stored it: a message that is stored so with this body is known."""

    body: bytes
    key: str
    position: Any = None
    new_key: str = ""
    former_key: str = ""


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


def digest(*parts: str | bytes, size: int = 8) -> str:
    """What identifies some parts together in a key: `size` bytes in hexadecimal digits."""
    made = hashlib.blake2b(digest_size=size)
    for part in parts:
        data = part if isinstance(part, bytes) else part.encode(errors="surrogatepass")
        made.update(len(data).to_bytes(8, "little") if len(parts) > 1 else b"")
        made.update(data)
    return made.hexdigest()
