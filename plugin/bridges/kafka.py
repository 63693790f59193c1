"""Messages of a Kafka topic, read by a consumer group: offsets are committed once the messages are durable here."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Any, ClassVar, Final
from urllib.parse import urlsplit

from oxiseq.bridges.source import BridgeError, BridgeSettings, Message, Source, SourcePosition, digest
from oxiseq.engine.extras import needed

if TYPE_CHECKING:
    import confluent_kafka
else:
    confluent_kafka = needed("confluent_kafka")

_TIMEOUT: Final = 10.0
_UNDER_WAY: Final = 500
"""Messages that an earlier version may have stored and not confirmed."""


class KafkaSource(Source):
    """kafka://HOST:PORT,HOST:PORT; the topic is `topic`. A message's key is cluster, topic, partition, offset and time
    there: the offsets of a topic that is deleted and made again begin with 0. `position`: that the group has begun."""

    needs: ClassVar[str] = "confluent_kafka"

    def __init__(self, settings: BridgeSettings, position: SourcePosition | None = None) -> None:
        super().__init__(settings, position)
        brokers = urlsplit(settings.url).netloc
        if not brokers or not settings.topic:
            raise BridgeError("kafka: write kafka://HOST:PORT and a topic")
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
            self._origin = digest(self._cluster() or brokers, settings.topic)
            self._consumer.subscribe([settings.topic], on_assign=self._begin)
        except BaseException:
            self.close()
            raise

    def _cluster(self) -> str | None:
        """The cluster's name for itself. Raises BridgeError."""
        try:
            told: str | None = self._consumer.list_topics(self._settings.topic, timeout=_TIMEOUT).cluster_id
            return told
        except confluent_kafka.KafkaException as error:
            raise BridgeError(f"Kafka: {(self._errors or [error.args[0]])[-1]}") from None

    def _begin(self, consumer: Any, parts: Sequence[Any]) -> None:
        """Parts of which nothing is confirmed: where a group is new it begins as `start` says, and keeps to that; of a
        part, or a topic, that is new to the group nothing is left out."""
        known = consumer.committed(list(parts), timeout=_TIMEOUT)
        fresh = [each for each in known if each.offset < 0]
        if self._settings.start != "all" and not isinstance(self._position.value, dict) and len(fresh) == len(known):
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

    def acknowledge(self, messages: Sequence[Message]) -> None:
        """See Source."""
        last = {(each.position.topic(), each.position.partition()): each.position.offset() + 1 for each in messages}
        offsets = [confluent_kafka.TopicPartition(topic, part, offset) for (topic, part), offset in last.items()]
        self._consumer.commit(offsets=offsets, asynchronous=False)

    def close(self) -> None:
        """See Source."""
        with suppress(confluent_kafka.KafkaException):
            self._consumer.close()
