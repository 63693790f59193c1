"""Messages of an MQTT broker, at quality of service 1: it sends what is not acknowledged again.

The session is kept by the broker under the group's name, so that it gathers messages while nobody is connected. At most
so many as are read at a time are in progress: a slow intake holds the broker back. What was published at quality of
service 0 has no number: it cannot be known again, and each message is one of its own.

Brokers use the numbers 1 to 65,535 again, and from 1 when they restart. So a number and a content say only that a
message may be known; one that the broker does not mark as sent before (DUP) is new, and stored under a key of its own.
"""

from __future__ import annotations

import os
import queue
import ssl
import threading
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, ClassVar, Final
from urllib.parse import unquote, urlsplit

from oxiseq.bridges.source import BridgeError, BridgeSettings, Message, Source, SourcePosition, digest, gather
from oxiseq.engine.extras import needed

if TYPE_CHECKING:
    import paho.mqtt.client as mqtt
    from paho.mqtt import enums, packettypes, properties, subscribeoptions
else:
    mqtt = needed("paho.mqtt.client")
    enums = needed("paho.mqtt.enums")
    packettypes = needed("paho.mqtt.packettypes")
    properties = needed("paho.mqtt.properties")
    subscribeoptions = needed("paho.mqtt.subscribeoptions")

_TIMEOUT: Final = 10.0
_UNDER_WAY: Final = 500
_RETAINED_ONCE: Final = 1
"""Retain Handling: what a topic retains comes when it is subscribed to, and not again when the session continues."""
_KEPT: Final = 7 * 86_400
"""Seconds for which the broker keeps the session."""


class MqttSource(Source):
    """mqtt://HOST:PORT, or mqtts://; `topic` is a filter, as `a/#`. A message's key is server, group, number, and a
    digest of topic and content."""

    needs: ClassVar[str] = "paho.mqtt.client"

    def __init__(self, settings: BridgeSettings, position: SourcePosition | None = None) -> None:
        super().__init__(settings, position)
        parts = urlsplit(settings.url)
        if not parts.hostname or not settings.topic:
            raise BridgeError("mqtt: write mqtt://HOST:PORT and a topic, as a/#")
        self._where = parts.hostname
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
        client.subscribe(self._settings.topic, options=made(qos=1, retainHandling=_RETAINED_ONCE))

    def _subscribed(self, client: Any, data: Any, mid: int, reasons: Any, more: Any) -> None:
        if reasons[0].is_failure:
            self._refusal = f"refuses the topic {self._settings.topic}: {reasons[0]}"
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
        found = gather(self._next, most, seconds)
        if not found and self._gone:
            raise BridgeError(f"the broker {self._where} is disconnected: {self._gone}")
        return found

    def _next(self, seconds: float) -> Message:
        try:
            return self._came.get(timeout=seconds) if seconds else self._came.get_nowait()
        except queue.Empty:
            raise TimeoutError from None

    def acknowledge(self, messages: Sequence[Message]) -> None:
        """See Source."""
        for message in messages:
            mid, qos = message.position
            self._client.ack(mid, qos)

    def close(self) -> None:
        """See Source."""
        self._closed.set()
        self._client.disconnect()
        self._client.loop_stop()
