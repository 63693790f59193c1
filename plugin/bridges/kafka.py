"""Messages of a Kafka topic, read by a consumer group: offsets are committed once the messages are durable here."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from oxiseq.bridges.settings import BridgeError, BridgeSettings
from oxiseq.bridges.source import Message
from oxiseq.engine.extras import needed

if TYPE_CHECKING:
    import confluent_kafka
else:
    confluent_kafka = needed("confluent_kafka")


class KafkaSource:
    """kafka://HOST:PORT,HOST:PORT; the topic is `topic`. A message's key is topic, partition and offset."""

    def __init__(self, settings: BridgeSettings) -> None:
        brokers = urlsplit(settings.url).netloc
        if not brokers or not settings.topic:
            raise BridgeError("kafka: write kafka://HOST:PORT and a topic")
        self._topic = settings.topic
        self._errors: list[str] = []
        self._consumer = confluent_kafka.Consumer(
            {
                **settings.options,
                "bootstrap.servers": brokers,
                "group.id": settings.group,
                "enable.auto.commit": False,
                "auto.offset.reset": "earliest" if settings.start == "all" else "latest",
                "log_level": 0,
                "error_cb": self._note,
            }
        )
        self._consumer.subscribe([settings.topic])

    def _note(self, error: Any) -> None:
        self._errors = [str(error)]

    def read(self, most: int, seconds: float) -> Sequence[Message]:
        """See Source."""
        found = []
        for each in self._consumer.consume(most, seconds):
            error = each.error()
            if error is not None:
                raise BridgeError(f"Kafka: {error}")
            key = f"kafka/{each.topic()}/{each.partition()}/{each.offset()}"
            found.append(Message(each.value() or b"", key, each))
        if not found and self._errors:
            (told,), self._errors = self._errors, []
            raise BridgeError(f"Kafka: {told}")
        return found

    def confirm(self, messages: Sequence[Message]) -> None:
        """See Source."""
        last = {(each.position.topic(), each.position.partition()): each.position.offset() + 1 for each in messages}
        offsets = [confluent_kafka.TopicPartition(topic, part, offset) for (topic, part), offset in last.items()]
        self._consumer.commit(offsets=offsets, asynchronous=False)

    def close(self) -> None:
        """See Source."""
        self._consumer.close()
