"""Matches to an MQTT broker: a message each, which counts as delivered once the broker confirms it."""

from __future__ import annotations

import socket
import ssl
import threading
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any, ClassVar, Final

from oxiseq.engine.extras import needed
from oxiseq.grammar.records import dataclass
from oxiseq.sinks.allowed import Allowed, DeliveryError, Secret, secret, secret_text
from oxiseq.sinks.delivery import Delivery, Item, Json
from oxiseq.sinks.settings import Receiver, SinkSettings, port_number, setting, template_setting, text, truth, whole

if TYPE_CHECKING:
    import paho.mqtt.client as mqtt
    from paho.mqtt import enums
else:
    mqtt = needed("paho.mqtt.client")
    enums = needed("paho.mqtt.enums")

_TIMEOUT: Final = 10.0
"""Seconds that the broker may take to connect, and to confirm."""
_WILD: Final = frozenset("#+\0")


@dataclass(frozen=True, slots=True, kw_only=True)
class Mqtt(SinkSettings):
    """By default up to 100 messages are in progress at once."""

    kind: ClassVar[str] = "mqtt"
    templates: ClassVar[tuple[str, ...]] = ("template", "topic")
    needs: ClassVar[str] = "paho.mqtt.client"
    usual: ClassVar[Mapping[str, Any]] = {"batch": 100}

    host: str = setting(text, "The broker.")
    port: int | None = setting(port_number, "Default: 1883, with tls 8883.", None, schema={"type": "integer"})
    topic: str = setting(
        text, "With places for the match, as alerts/{?machine}; `/`, `+` and `#` in values become `_`."
    )
    template: Json = template_setting("The payload: a JSON value with places for the match, see webhook.")
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

    def hosts(self, allowed: Allowed) -> Iterator[tuple[str, int]]:
        yield self.host, self.its_port

    def open(self, allowed: Allowed, place: str) -> Receiver:
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
            payload = item.json(settings.template)
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


def _topic(template: str, item: Item) -> str:
    """Filled: what values bring does not make levels or wildcards. Raises DeliveryError."""
    found = item.text(template, lambda value: "".join("_" if each in "/+#\0" else each for each in value))
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
