"""Entries of a Redis stream, read by a consumer group: what was read and not confirmed is read first."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final, cast

from oxiseq.bridges.settings import BridgeError, BridgeSettings
from oxiseq.bridges.source import Message
from oxiseq.engine.extras import needed

if TYPE_CHECKING:
    import redis
else:
    redis = needed("redis")

_CONSUMER: Final = "oxiseq"


class RedisSource:
    """redis://HOST:PORT/DB; the stream is `topic`. The message is the entry's `field`, or the only one it has, or all
    of them as a JSON object. Its key is the entry's id."""

    def __init__(self, settings: BridgeSettings) -> None:
        if not settings.topic:
            raise BridgeError("redis: the topic is the name of the stream")
        self._stream, self._group, self._field = settings.topic, settings.group, settings.field
        self._redis: Any = redis.Redis.from_url(settings.url, socket_timeout=10, socket_connect_timeout=10)
        self._since = "0"
        """Behind which entry: those that were not confirmed first, then > for new ones."""
        try:
            start = "0" if settings.start == "all" else "$"
            self._redis.xgroup_create(self._stream, self._group, start, mkstream=True)
        except redis.ResponseError as error:
            if "BUSYGROUP" not in str(error):  # else it is there already
                self.close()
                raise

    def read(self, most: int, seconds: float) -> Sequence[Message]:
        """See Source."""
        block = max(1, int(seconds * 1000)) if self._since == ">" else None
        answer = self._redis.xreadgroup(self._group, _CONSUMER, {self._stream: self._since}, count=most, block=block)
        entries = _entries(answer)
        if self._since != ">":
            self._since = entries[-1][0].decode() if entries else ">"
        return [self._message(number, fields) for number, fields in entries]

    def _message(self, number: bytes, fields: Mapping[bytes, bytes] | None) -> Message:
        found = fields or {}  # an entry that was not confirmed and is deleted has none
        key = f"redis/{number.decode()}"
        if self._field is not None:
            return Message(found.get(self._field.encode(), b""), key, number)
        if len(found) == 1:
            return Message(next(iter(found.values())), key, number)
        texts = {name.decode(errors="replace"): value.decode(errors="replace") for name, value in found.items()}
        return Message(json.dumps(texts, ensure_ascii=False).encode(), key, number)

    def confirm(self, messages: Sequence[Message]) -> None:
        """See Source."""
        self._redis.xack(self._stream, self._group, *(each.position for each in messages))

    def close(self) -> None:
        """See Source."""
        self._redis.close()


def _entries(answer: Any) -> list[tuple[bytes, Mapping[bytes, bytes] | None]]:
    """Of an answer of either protocol."""
    if not answer:
        return []
    (found,) = answer.values() if isinstance(answer, dict) else [entries for _, entries in answer]
    if isinstance(answer, dict) and found and isinstance(found[0], list):
        (found,) = found
    return cast("list[tuple[bytes, Mapping[bytes, bytes] | None]]", [tuple(each) for each in found])
