"""Messages of a Kafka topic, read by a consumer group: offsets are committed once the messages are durable here.

Messages of an MQTT broker, at quality of service 1: it sends what is not confirmed again.

The session is kept by the broker under the group's name, so that it gathers messages while nobody is connected. At most
so many as are read at a time are in progress: a slow intake holds the broker back. What was published at quality of
service 0 has no number: it cannot be known again, and each message is one of its own.

Brokers use the numbers 1 to 65,535 again, and from 1 when they restart. So a number and a content say only that a
message may be known; one that the broker does not mark as sent before (DUP) is new, and stored under a key of its own.
"""

from __future__ import annotations

import json
import os
import queue
import ssl
import threading
from collections.abc import Mapping, Sequence
from contextlib import ExitStack, suppress
from typing import TYPE_CHECKING, Any, Final, cast
from urllib.parse import unquote, urlsplit

from oxiseq.bridges.source import BridgeError, BridgeSettings, Message, SourcePosition, digest
from oxiseq.engine.extras import needed
from oxiseq.options.addresses import unredirected

if TYPE_CHECKING:
    import confluent_kafka
else:
    confluent_kafka = needed("confluent_kafka")
if TYPE_CHECKING:
    import paho.mqtt.client as mqtt
    from paho.mqtt import enums, packettypes, properties, subscribeoptions
else:
    mqtt = needed("paho.mqtt.client")
    enums = needed("paho.mqtt.enums")
    packettypes = needed("paho.mqtt.packettypes")
    properties = needed("paho.mqtt.properties")
    subscribeoptions = needed("paho.mqtt.subscribeoptions")
if TYPE_CHECKING:
    import redis
else:
    redis = needed("redis")
if TYPE_CHECKING:
    from websockets import exceptions
    from websockets.sync import client
else:
    client = needed("websockets.sync.client")
    exceptions = needed("websockets.exceptions")


# --- kafka -----------------------------------------------------------------------------------------------

_TIMEOUT: Final = 10.0
_UNDER_WAY: Final = 500
"""Messages that an earlier version may have stored and not confirmed."""


class KafkaSource:
    """kafka://HOST:PORT,HOST:PORT; the topic is `topic`. A message's key is cluster, topic, partition, offset and time
    there: the offsets of a topic that is deleted and made again begin with 0. `position`: that the group has begun."""

    def __init__(self, settings: BridgeSettings, position: SourcePosition) -> None:
        brokers = urlsplit(settings.url).netloc
        if not brokers or not settings.topic:
            raise BridgeError("kafka: write kafka://HOST:PORT and a topic")
        self._topic, self._position = settings.topic, position
        self._all = settings.start == "all"
        self._errors: list[str] = []
        self._count = 0
        self._consumer = confluent_kafka.Consumer(
            {
                **settings.options,
                "bootstrap.servers": brokers,
                "group.id": settings.group,
                "enable.auto.commit": False,
                "auto.offset.reset": "earliest",  # of messages that are gone, or a topic that was made again
                "log_level": 0,
                "error_cb": self._note,
            }
        )
        try:
            self._origin = digest(self._cluster() or brokers, self._topic)
            self._consumer.subscribe([self._topic], on_assign=self._begin)
        except BaseException:
            self.close()
            raise

    def _cluster(self) -> str | None:
        """The cluster's name for itself. Raises BridgeError."""
        try:
            told: str | None = self._consumer.list_topics(self._topic, timeout=_TIMEOUT).cluster_id
            return told
        except confluent_kafka.KafkaException as error:
            raise BridgeError(f"Kafka: {(self._errors or [error.args[0]])[-1]}") from None

    def _begin(self, consumer: Any, parts: Sequence[Any]) -> None:
        """Parts of which nothing is confirmed: where a group is new it begins as `start` says, and keeps to that; of a
        part, or a topic, that is new to the group nothing is left out."""
        known = consumer.committed(list(parts), timeout=_TIMEOUT)
        fresh = [each for each in known if each.offset < 0]
        if not self._all and not isinstance(self._position.value, dict) and len(fresh) == len(known):
            for each in fresh:
                each.offset = consumer.get_watermark_offsets(each, timeout=_TIMEOUT)[1]
            if fresh:
                consumer.commit(offsets=fresh, asynchronous=False)
        else:
            for each in fresh:
                each.offset = confluent_kafka.OFFSET_BEGINNING
        if parts and not isinstance(self._position.value, dict):
            self._position.save({"begun": True})
        consumer.assign(known)

    def _note(self, error: Any) -> None:
        self._errors = [str(error)]

    def read(self, most: int, seconds: float) -> Sequence[Message]:
        """See Source."""
        found = []
        for each in self._consumer.consume(most, seconds):
            error = each.error()
            if error is not None:
                raise BridgeError(f"Kafka: {error}")
            found.append(self._message(each))
        if not found and self._errors:
            (told,), self._errors = self._errors, []
            raise BridgeError(f"Kafka: {told}")
        return found

    def _message(self, given: Any) -> Message:
        self._count += 1
        place = f"{given.partition()}/{given.offset()}"
        key = f"kafka/{self._origin}/{place}/{given.timestamp()[1]}"
        former = f"kafka/{given.topic()}/{place}" if self._count <= _UNDER_WAY else ""
        return Message(given.value() or b"", key, given, former_key=former)

    def confirm(self, messages: Sequence[Message]) -> None:
        """See Source."""
        last = {(each.position.topic(), each.position.partition()): each.position.offset() + 1 for each in messages}
        offsets = [confluent_kafka.TopicPartition(topic, part, offset) for (topic, part), offset in last.items()]
        self._consumer.commit(offsets=offsets, asynchronous=False)

    def close(self) -> None:
        """See Source."""
        with suppress(confluent_kafka.KafkaException):
            self._consumer.close()


# --- mqtt ------------------------------------------------------------------------------------------------

_RETAINED_ONCE: Final = 1
"""Retain Handling: what a topic retains comes when it is subscribed to, and not again when the session continues."""
_KEPT: Final = 7 * 86_400
"""Seconds for which the broker keeps the session."""


class MqttSource:
    """`topic` is a filter, as `a/#`."""

    def __init__(self, settings: BridgeSettings) -> None:
        parts = urlsplit(settings.url)
        if not parts.hostname or not settings.topic:
            raise BridgeError("mqtt: write mqtt://HOST:PORT and a topic, as a/#")
        self._where, self._topic = f"{parts.hostname}", settings.topic
        self._came: queue.Queue[Message] = queue.Queue(2 * _UNDER_WAY)
        self._closed = threading.Event()
        port = parts.port or (8883 if parts.scheme == "mqtts" else 1883)
        self._origin = digest(f"{parts.hostname}:{port}", settings.group)
        self._run, self._count = os.urandom(8).hex(), 0
        self._ready, self._refusal, self._gone = threading.Event(), "", ""
        client = self._client = mqtt.Client(
            enums.CallbackAPIVersion.VERSION2,
            client_id=f"oxiseq-{settings.group}",
            protocol=enums.MQTTProtocolVersion.MQTTv5,
            manual_ack=True,
            reconnect_on_failure=False,
        )
        client.on_connect, client.on_message = self._connected, self._take
        client.on_subscribe, client.on_disconnect = self._subscribed, self._left
        if parts.username is not None:
            client.username_pw_set(unquote(parts.username), unquote(parts.password or ""))
        if parts.scheme == "mqtts":
            client.tls_set_context(ssl.create_default_context())
        made: Any = properties.Properties  # the library does not say its types
        asked = made(packettypes.PacketTypes.CONNECT)
        asked.SessionExpiryInterval, asked.ReceiveMaximum = _KEPT, _UNDER_WAY
        try:
            client.connect(
                parts.hostname,
                port,
                keepalive=30,
                clean_start=False,
                properties=asked,
            )
            client.loop_start()
            if not self._ready.wait(_TIMEOUT) or self._refusal:
                raise BridgeError(f"the broker {self._where} {self._refusal or 'does not answer'}")
        except BaseException:
            self.close()
            raise

    def _connected(self, client: Any, data: Any, flags: Any, reason: Any, more: Any) -> None:
        if reason.is_failure:
            self._refusal = f"refuses: {reason}"
            self._ready.set()
            return
        made: Any = subscribeoptions.SubscribeOptions  # the library does not say its types
        client.subscribe(self._topic, options=made(qos=1, retainHandling=_RETAINED_ONCE))

    def _subscribed(self, client: Any, data: Any, mid: int, reasons: Any, more: Any) -> None:
        if reasons[0].is_failure:
            self._refusal = f"refuses the topic {self._topic}: {reasons[0]}"
        self._ready.set()

    def _left(self, client: Any, data: Any, flags: Any, reason: Any, more: Any) -> None:
        self._gone = str(reason)

    def _take(self, client: Any, data: Any, message: Any) -> None:
        name = digest(message.topic.encode() + b"\0" + message.payload, size=16)
        self._count += 1
        own = f"mqtt/{self._run}/{self._count}"
        key = f"mqtt/{self._origin}/{message.mid}/{name}" if message.qos else own
        former = f"mqtt/{message.mid}/{name}" if message.qos and message.dup else ""
        came = Message(message.payload, key, (message.mid, message.qos), "" if message.dup else own, former)
        while not self._closed.is_set():  # the broker counts none of quality of service 0 as in progress
            try:
                self._came.put(came, timeout=0.2)
                return
            except queue.Full:
                continue

    def read(self, most: int, seconds: float) -> Sequence[Message]:
        """See Source."""
        found: list[Message] = []
        try:
            found.append(self._came.get(timeout=seconds))
            while len(found) < most:
                found.append(self._came.get_nowait())
        except queue.Empty:
            if not found and self._gone:
                raise BridgeError(f"the broker {self._where} is disconnected: {self._gone}") from None
        return found

    def confirm(self, messages: Sequence[Message]) -> None:
        """See Source."""
        for message in messages:
            mid, qos = message.position
            self._client.ack(mid, qos)

    def close(self) -> None:
        """See Source."""
        self._closed.set()
        self._client.disconnect()
        self._client.loop_stop()


# --- redis -----------------------------------------------------------------------------------------------

_CONSUMER: Final = "oxiseq"
_BEFORE_ALL: Final = "0-0"


class RedisSource:
    """redis://HOST:PORT/DB; the stream is `topic`. The message is the entry's `field`, or the only one it has, or all
    of them as a JSON object. Its key says server, database, stream, group and field, the entry's id, and its content:
    a stream that is deleted and made again may give its ids again. `position`: the newest entry that is confirmed."""

    def __init__(self, settings: BridgeSettings, position: SourcePosition) -> None:
        if not settings.topic:
            raise BridgeError("redis: the topic is the name of the stream")
        self._stream, self._group, self._field = settings.topic, settings.group, settings.field
        self._redis: Any = redis.Redis.from_url(settings.url, socket_timeout=10, socket_connect_timeout=10)
        given = self._redis.connection_pool.connection_kwargs
        where = given.get("path") or f"{given.get('host', 'localhost')}:{given.get('port', 6379)}".lower()
        self._origin = digest(where, str(given.get("db") or 0), self._stream, self._group, self._field or "")
        self._position = position
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

    def confirm(self, messages: Sequence[Message]) -> None:
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


# --- websocket -------------------------------------------------------------------------------------------

_LARGEST: Final = 16 << 20


class WebSocket:
    """ws:// or wss://; `topic` is sent as the first message, where there is one: to subscribe."""

    def __init__(self, settings: BridgeSettings) -> None:
        self._run, self._count = os.urandom(8).hex(), 0
        with ExitStack() as opened:
            try:
                connecting = client.connect(
                    settings.url,
                    open_timeout=10,
                    max_size=_LARGEST,
                    max_queue=16,
                    create_connection=unredirected(),
                )
                self._connection = opened.enter_context(connecting)
                if settings.topic:
                    self._connection.send(settings.topic)
            except exceptions.WebSocketException as error:
                told = str(error).replace(settings.url, settings.shown)  # it may have a password
                raise BridgeError(told if settings.shown in told else f"{settings.shown}: {told}") from None
            self._opened = opened.pop_all()

    def read(self, most: int, seconds: float) -> Sequence[Message]:
        """See Source."""
        found: list[Message] = []
        try:
            while len(found) < most:
                given = self._connection.recv(timeout=0 if found else seconds)
                self._count += 1
                body = given.encode() if isinstance(given, str) else given
                found.append(Message(body, f"ws/{self._run}/{self._count}"))
        except TimeoutError:
            pass
        except exceptions.ConnectionClosed as error:
            if not found:  # else next time
                raise BridgeError(f"the connection is closed: {error}") from error
        return found

    def confirm(self, messages: Sequence[Message]) -> None:
        """Nobody to acknowledge to."""

    def close(self) -> None:
        """See Source."""
        self._opened.close()
