"""Matches to a Kafka topic: a message each, by an idempotent producer, confirmed by all replicas in sync."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any, ClassVar, Final

from oxiseq.engine.extras import needed
from oxiseq.grammar.records import dataclass
from oxiseq.sinks.allowed import Allowed, DeliveryError, Secret, SinkError, secret, secret_text
from oxiseq.sinks.delivery import Delivery, Json
from oxiseq.sinks.settings import Receiver, SinkSettings, setting, template_setting, text, texts, word

if TYPE_CHECKING:
    import confluent_kafka
else:
    confluent_kafka = needed("confluent_kafka")

_TIMEOUT: Final = 20.0
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
    needs: ClassVar[str] = "confluent_kafka"
    named: ClassVar[bool] = True
    usual: ClassVar[Mapping[str, Any]] = {"batch": 500}

    brokers: tuple[str, ...] = setting(
        _brokers,
        "HOST:PORT, one or more. The operator allows each by its name: the cluster may send the client on to "
        "other brokers of its own.",
        schema={"type": "array", "items": {"type": "string"}},
        write=list,
    )
    topic: str = setting(text, "Where to.")
    key: str = setting(text, "The message's key, with places for the match: it chooses the partition.", "{key}")
    template: Json = template_setting("The message: a JSON value with places for the match, see webhook.")
    options: Mapping[str, str | Secret] | None = setting(
        _options,
        "Of librdkafka: " + ", ".join(sorted(_TAKEN)) + ".",
        None,
        schema={"type": "object"},
        write=_shown,
    )

    def hosts(self, allowed: Allowed) -> Iterator[tuple[str, int]]:
        return map(_host_and_port, self.brokers)

    def open(self, allowed: Allowed, place: str) -> Receiver:
        for host, port in self.hosts(allowed):
            allowed.addresses(host, port)
        given = self.options or {}
        options = {key: each.text(allowed) if isinstance(each, Secret) else each for key, each in given.items()}
        return _Producer(self, options)


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
                "delivery.timeout.ms": int(_TIMEOUT * 1000),
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
            message = item.json(settings.template)

            def note(error: Any, _: Any, i: int = i) -> None:
                outcomes[i] = error or True

            headers: list[tuple[str, str | bytes | None]] = [("idempotency-key", item.key.encode())]
            self._producer.produce(
                settings.topic, message, item.text(settings.key).encode(), headers=headers, on_delivery=note
            )
            self._producer.poll(0)
        self._producer.flush(_TIMEOUT)
        for confirmed, outcome in enumerate(outcomes):
            if outcome is not True:
                told = str(outcome) if outcome is not None else "; ".join(self._errors[-1:]) or "no answer in time"
                raise DeliveryError(f"Kafka: {told}", confirmed)
        self._errors.clear()
        return ""

    def close(self) -> None:
        self._producer.purge()
        self._producer.flush(1)
