"""Matches to a Kafka topic: a message each, by an idempotent producer, confirmed by all replicas in sync."""

from __future__ import annotations

import json
import socket
import ssl
import threading
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, ClassVar, Final

from oxiseq.engine.extras import loaded, needed
from oxiseq.grammar.records import dataclass
from oxiseq.sinks.allowed import Allowed, DeliveryError, Secret, SinkError, secret, secret_text
from oxiseq.sinks.delivery import Delivery, Json
from oxiseq.sinks.settings import (
    Receiver,
    SinkSettings,
    any_json,
    port_number,
    setting,
    text,
    texts,
    truth,
    whole,
    word,
)

if TYPE_CHECKING:
    import confluent_kafka
else:
    confluent_kafka = needed("confluent_kafka")
if TYPE_CHECKING:
    import paho.mqtt.client as mqtt
    from paho.mqtt import enums
else:
    mqtt = needed("paho.mqtt.client")
    enums = needed("paho.mqtt.enums")


# --- kafka -----------------------------------------------------------------------------------------------

_KAFKA_TIMEOUT: Final = 20.0
"""Seconds that a delivery may take."""
_PORT: Final = 9092
_PASSWORD: Final = "sasl.password"
_TAKEN: Final = frozenset(
    (
        "security.protocol",
        "sasl.mechanism",
        "sasl.mechanisms",
        "sasl.username",
        _PASSWORD,
        "compression.type",
        "client.id",
        "message.max.bytes",
    )
)
"""Settings of librdkafka that may be given: none of them reads or runs a file..."""
_MECHANISMS: Final = ("PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512")
"""...as GSSAPI does."""


def _brokers(given: Any, name: str) -> tuple[str, ...]:
    found = texts(given, name)
    for each in found:
        _host_and_port(each)
    return found


def _host_and_port(broker: str) -> tuple[str, int]:
    """Raises SinkError."""
    host, _, number = broker.rpartition(":") if broker.rpartition(":")[2].isdecimal() else (broker, "", str(_PORT))
    if not host or "," in broker or "/" in broker or not 0 < int(number) < 65_536:
        raise SinkError(f"{broker[:100]!r} is no broker: write HOST or HOST:PORT")
    return host.strip("[]"), int(number)


def _options(given: Any, name: str) -> dict[str, str | Secret]:
    if not isinstance(given, dict):
        raise SinkError(f"{name} is an object of librdkafka's settings")
    if unknown := set(given) - _TAKEN:
        raise SinkError(f"{name} may have {', '.join(sorted(_TAKEN))}, not {', '.join(sorted(unknown))}")
    for key in {"sasl.mechanism", "sasl.mechanisms"} & set(given):
        word(*_MECHANISMS)(given[key], f"{name}: {key}")
    if "sasl" in str(given.get("security.protocol")).lower() and not {"sasl.mechanism", "sasl.mechanisms"} & set(given):
        raise SinkError(f"{name} needs sasl.mechanism, one of {', '.join(_MECHANISMS)}: librdkafka's own is GSSAPI")
    read = {key: secret(secret_text) if key == _PASSWORD else secret_text for key in given}
    return {key: read[key](value, f"{name}: {key}") for key, value in given.items()}


def _shown(options: Mapping[str, str | Secret] | None) -> dict[str, Any] | None:
    """Without what lets one in."""
    if options is None:
        return None
    return {key: value.shown() if isinstance(value, Secret) else value for key, value in options.items()}


@dataclass(frozen=True, slots=True, kw_only=True)
class Kafka(SinkSettings):
    """By default up to 500 messages are confirmed together."""

    kind: ClassVar[str] = "kafka"
    templates: ClassVar[tuple[str, ...]] = ("template", "key")

    brokers: tuple[str, ...] = setting(
        _brokers,
        "HOST:PORT, one or more. The operator allows each by its name: the cluster may send the client on to "
        "other brokers of its own.",
        schema={"type": "array", "items": {"type": "string"}},
        write=list,
    )
    topic: str = setting(text, "Where to.")
    key: str = setting(text, "The message's key, with places for the match: it chooses the partition.", "{key}")
    template: Json = setting(
        any_json, "The message: a JSON value with places for the match, see webhook.", None, schema={}
    )
    options: Mapping[str, str | Secret] | None = setting(
        _options,
        "Of librdkafka: " + ", ".join(sorted(_TAKEN)) + ".",
        None,
        schema={"type": "object"},
        write=_shown,
    )

    @classmethod
    def of(cls, given: Any) -> Kafka:
        """See the class."""
        return super(Kafka, cls).of({"batch": 500, **given})  # noqa: UP008  # with slots the class is made twice

    def check(self, allowed: Allowed) -> None:
        loaded("confluent_kafka")
        for broker in self.brokers:
            allowed.check_host(*_host_and_port(broker), named=True)
        self.librdkafka(allowed)

    def librdkafka(self, allowed: Allowed) -> dict[str, str]:
        """The options, with secrets. Raises SinkError."""
        given = self.options or {}
        return {key: each.text(allowed) if isinstance(each, Secret) else each for key, each in given.items()}

    def open(self, allowed: Allowed, place: str) -> Receiver:
        self.check(allowed)
        for broker in self.brokers:
            allowed.addresses(*_host_and_port(broker))
        return _Producer(self, self.librdkafka(allowed))


class _Producer:
    """librdkafka's, with its threads."""

    def __init__(self, settings: Kafka, options: Mapping[str, str]) -> None:
        self._settings = settings
        self._errors: list[str] = []
        self._producer = confluent_kafka.Producer(
            {
                **options,
                "bootstrap.servers": ",".join(settings.brokers),
                "enable.idempotence": True,
                "delivery.timeout.ms": int(_KAFKA_TIMEOUT * 1000),
                "linger.ms": 5,
                "log_level": 0,
                "error_cb": lambda error: self._errors.append(str(error)),
            }
        )

    def deliver(self, delivery: Delivery) -> str:
        """Those that are confirmed, up to the first that is not, count."""
        settings = self._settings
        outcomes: list[Any] = [None] * len(delivery)
        for i, item in enumerate(delivery.items()):
            message = json.dumps(item.value(settings.template), ensure_ascii=False).encode()

            def note(error: Any, _: Any, i: int = i) -> None:
                outcomes[i] = error or True

            headers: list[tuple[str, str | bytes | None]] = [("idempotency-key", item.key.encode())]
            self._producer.produce(
                settings.topic, message, item.text(settings.key).encode(), headers=headers, on_delivery=note
            )
            self._producer.poll(0)
        self._producer.flush(_KAFKA_TIMEOUT)
        for confirmed, outcome in enumerate(outcomes):
            if outcome is not True:
                told = str(outcome) if outcome is not None else "; ".join(self._errors[-1:]) or "no answer in time"
                raise DeliveryError(f"Kafka: {told}", confirmed)
        self._errors.clear()
        return ""

    def close(self) -> None:
        self._producer.purge()
        self._producer.flush(1)


# --- mqtt ------------------------------------------------------------------------------------------------

_TIMEOUT: Final = 10.0
"""Seconds that the broker may take to connect, and to confirm."""
_WILD: Final = frozenset("#+\0")


@dataclass(frozen=True, slots=True, kw_only=True)
class Mqtt(SinkSettings):
    """By default up to 100 messages are in progress at once."""

    kind: ClassVar[str] = "mqtt"
    templates: ClassVar[tuple[str, ...]] = ("template", "topic")

    host: str = setting(text, "The broker.")
    port: int | None = setting(port_number, "Default: 1883, with tls 8883.", None, schema={"type": "integer"})
    topic: str = setting(
        text, "With places for the match, as alerts/{?machine}; `/`, `+` and `#` in values become `_`."
    )
    template: Json = setting(
        any_json, "The payload: a JSON value with places for the match, see webhook.", None, schema={}
    )
    qos: int = setting(
        whole(1, 2),
        ("1 or 2: a match counts as delivered only when the broker confirms it."),
        1,
        schema={"enum": [1, 2]},
    )
    retain: bool = setting(truth, "Whether the broker keeps the last message.", False, schema={"type": "boolean"})
    tls: bool = setting(truth, "Whether the connection is encrypted.", False, schema={"type": "boolean"})
    user: str | None = setting(text, "Of the broker.", None)
    password: Secret | None = setting(secret(secret_text), "Its password.", None, secret=True)

    @property
    def its_port(self) -> int:
        """That of the protocol, if none is given."""
        return self.port or (8883 if self.tls else 1883)

    @classmethod
    def of(cls, given: Any) -> Mqtt:
        """See the class."""
        return super(Mqtt, cls).of({"batch": 100, **given})  # noqa: UP008  # with slots the class is made twice

    def check(self, allowed: Allowed) -> None:
        loaded("paho.mqtt.client")
        allowed.check_host(self.host, self.its_port)
        if self.password is not None:
            self.password.text(allowed)

    def open(self, allowed: Allowed, place: str) -> Receiver:
        self.check(allowed)
        return _Publisher(self, allowed)


class _Publisher:
    """Connected, with a thread of the library's that reads and writes."""

    def __init__(self, settings: Mqtt, allowed: Allowed) -> None:
        self._settings = settings
        self._answered = threading.Event()
        self._refusal = ""
        self._client = _client(allowed)
        self._client.on_connect = self._connected
        self._client.max_inflight_messages_set(settings.batch)
        if settings.user is not None:
            password = None if settings.password is None else settings.password.text(allowed)
            self._client.username_pw_set(settings.user, password)
        if settings.tls:
            self._client.tls_set_context(ssl.create_default_context())
        try:
            self._client.connect(settings.host, settings.its_port, keepalive=30)
            self._client.loop_start()
            if not self._answered.wait(_TIMEOUT):
                raise DeliveryError(f"the broker {settings.host} does not answer")
            if self._refusal:
                raise DeliveryError(f"the broker {settings.host} refuses: {self._refusal}")
        except BaseException:
            self.close()
            raise

    def _connected(self, client: Any, data: Any, flags: Any, reason: Any, properties: Any) -> None:
        self._refusal = str(reason) if reason.is_failure else ""
        self._answered.set()

    def deliver(self, delivery: Delivery) -> str:
        """Each that is confirmed before one is not counts."""
        settings, under_way = self._settings, []
        for item in delivery.items():
            payload = json.dumps(item.value(settings.template), ensure_ascii=False).encode()
            topic = _topic(settings.topic, item)
            under_way.append(self._client.publish(topic, payload, settings.qos, settings.retain))
        for confirmed, message in enumerate(under_way):
            try:
                message.wait_for_publish(_TIMEOUT)
            except (RuntimeError, ValueError) as error:  # as the library reports what cannot be sent
                raise DeliveryError(f"the broker {settings.host}: {error}", confirmed) from error
            if not message.is_published():
                raise DeliveryError(f"the broker {settings.host} does not confirm", confirmed)
        return ""

    def close(self) -> None:
        self._client.disconnect()
        self._client.loop_stop()


def _topic(template: str, item: Any) -> str:
    """Filled: what values bring does not make levels or wildcards. Raises DeliveryError."""
    found: str = item.text(template, lambda value: "".join("_" if each in "/+#\0" else each for each in value))
    if not found or set(found) & _WILD or len(found.encode()) > 65_535:
        raise DeliveryError(f"{found[:100]!r} is no topic to publish to")
    return found


def _client(allowed: Allowed) -> Any:
    """The library's, with connections to addresses that have been checked."""

    class Client(mqtt.Client):
        def _create_socket_connection(self) -> socket.socket:
            try:
                return allowed.connect(self._host, self._port, _TIMEOUT)
            except DeliveryError as error:
                raise ConnectionError(str(error)) from error

    return Client(enums.CallbackAPIVersion.VERSION2, reconnect_on_failure=False)
