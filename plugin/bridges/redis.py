"""Entries of a Redis stream, read by a consumer group: they are acknowledged once they are durable here."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, ClassVar, Final, cast

from oxiseq.bridges.source import BridgeError, BridgeSettings, Message, Source, SourcePosition, digest
from oxiseq.engine.extras import needed

if TYPE_CHECKING:
    import redis
else:
    redis = needed("redis")

_CONSUMER: Final = "oxiseq"
_BEFORE_ALL: Final = "0-0"


class RedisSource(Source):
    """redis://HOST:PORT/DB; the stream is `topic`. The message is the entry's `field`, or the only one it has, or all
    of them as a JSON object. Its key says server, database, stream, group and field, the entry's id, and its content:
    a stream that is deleted and made again may give its ids again. `position`: the newest entry that is confirmed."""

    needs: ClassVar[str] = "redis"

    def __init__(self, settings: BridgeSettings, position: SourcePosition | None = None) -> None:
        super().__init__(settings, position)
        if not settings.topic:
            raise BridgeError("redis: the topic is the name of the stream")
        self._stream, self._group, self._field = settings.topic, settings.group, settings.field
        self._redis: Any = redis.Redis.from_url(settings.url, socket_timeout=10, socket_connect_timeout=10)
        given = self._redis.connection_pool.connection_kwargs
        where = given.get("path") or f"{given.get('host', 'localhost')}:{given.get('port', 6379)}".lower()
        self._origin = digest(where, str(given.get("db") or 0), self._stream, self._group, self._field or "")
        self._since = "0"
        """Behind which entry: those that were not confirmed first, then > for new ones."""
        try:
            self._join(settings.start)
        except BaseException:
            self.close()
            raise

    def _join(self, start: str) -> None:
        """The group begins where the position says, if it had been there before and is gone, else as `start` says."""
        last = self._last()
        newest = self._newest()
        if last is None:
            begin = newest if start == "new" else _BEFORE_ALL
        else:
            begin = last if _number(last) <= _number(newest) else _BEFORE_ALL  # else it is another stream of that name
        try:
            self._redis.xgroup_create(self._stream, self._group, begin, mkstream=True)
        except redis.ResponseError as error:
            if "BUSYGROUP" not in str(error):  # else it is there already
                raise
            begin = last or _BEFORE_ALL
        if begin != last:
            self._position.save({"last": begin})

    def _last(self) -> str | None:
        value = self._position.value
        return str(value["last"]) if isinstance(value, dict) and "last" in value else None

    def _newest(self) -> str:
        """The id of the stream's newest entry."""
        if not self._redis.exists(self._stream):
            return _BEFORE_ALL
        return str(self._redis.xinfo_stream(self._stream)["last-generated-id"].decode())

    def read(self, most: int, seconds: float) -> Sequence[Message]:
        """See Source."""
        fresh = self._since == ">"
        block = max(1, int(seconds * 1000)) if fresh else None
        answer = self._redis.xreadgroup(self._group, _CONSUMER, {self._stream: self._since}, count=most, block=block)
        entries = _entries(answer)
        if not fresh:
            self._since = entries[-1][0].decode() if entries else ">"
        return [self._message(number.decode(), fields, fresh=fresh) for number, fields in entries]

    def _message(self, number: str, fields: Mapping[bytes, bytes] | None, *, fresh: bool) -> Message:
        body = self._body(fields or {})  # an entry that was not confirmed and is deleted has none
        key = f"redis/{self._origin}/{number}/{digest(body)}"
        return Message(body, key, number, former_key="" if fresh else f"redis/{number}")

    def _body(self, found: Mapping[bytes, bytes]) -> bytes:
        if self._field is not None:
            return found.get(self._field.encode(), b"")
        if len(found) == 1:
            return next(iter(found.values()))
        texts = {name.decode(errors="replace"): value.decode(errors="replace") for name, value in found.items()}
        return json.dumps(texts, ensure_ascii=False).encode()

    def acknowledge(self, messages: Sequence[Message]) -> None:
        """See Source."""
        self._redis.xack(self._stream, self._group, *(each.position for each in messages))
        last = max([self._last() or _BEFORE_ALL, *(each.position for each in messages)], key=_number)
        self._position.save({"last": last}, at_once=False)

    def close(self) -> None:
        """See Source."""
        self._redis.close()
        self._position.flush()


def _number(entry: str) -> tuple[int, ...]:
    """An entry's id, to compare."""
    return tuple(int(part) for part in entry.split("-"))


def _entries(answer: Any) -> list[tuple[bytes, Mapping[bytes, bytes] | None]]:
    """Of an answer of either protocol."""
    if not answer:
        return []
    (found,) = answer.values() if isinstance(answer, dict) else [entries for _, entries in answer]
    if isinstance(answer, dict) and found and isinstance(found[0], list):
        (found,) = found
    return cast("list[tuple[bytes, Mapping[bytes, bytes] | None]]", [tuple(each) for each in found])
