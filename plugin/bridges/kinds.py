"""From a URL to the kind of its source."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final

from oxiseq.bridges.files import FollowedFile
from oxiseq.bridges.kafka import KafkaSource
from oxiseq.bridges.ldes import LdesSource
from oxiseq.bridges.lines import Stdin
from oxiseq.bridges.mqtt import MqttSource
from oxiseq.bridges.nats import NatsSource
from oxiseq.bridges.redis import RedisSource
from oxiseq.bridges.source import STDIN, BridgeError, BridgeSettings, Source
from oxiseq.bridges.websocket import WebSocketSource

_BROKERS: Final[Mapping[str, type[Source]]] = {
    "mqtt": MqttSource,
    "mqtts": MqttSource,
    "kafka": KafkaSource,
    "nats": NatsSource,
    "nats+tls": NatsSource,
    "redis": RedisSource,
    "rediss": RedisSource,
    "ws": WebSocketSource,
    "wss": WebSocketSource,
}
"""By scheme, in any case of letters..."""
_PAGES: Final[Mapping[str, type[Source]]] = {"ldes+http": LdesSource, "ldes+https": LdesSource}
"""...and as it is written."""


def opener_of(settings: BridgeSettings) -> Callable[[], Source]:
    """Opens the source, again and again. Raises BridgeError for a scheme that is not known, ExtraError for a package
    that is not installed."""
    return _kind_of(settings).opener(settings)


def _kind_of(settings: BridgeSettings) -> type[Source]:
    """Raises BridgeError."""
    scheme, separator, _ = settings.url.partition("://")
    if settings.url == STDIN:
        return Stdin
    if not separator or scheme == "file":
        return FollowedFile
    if (kind := _BROKERS.get(scheme.lower()) or _PAGES.get(scheme)) is None:
        known = ", ".join((*_BROKERS, *_PAGES))
        raise BridgeError(f"{scheme}:// is not known; known: {known}, file, a path, and - for stdin")
    return kind
