"""From a URL to its source: a line for each kind."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import Final, TypeAlias

from oxiseq.bridges.brokers import KafkaSource, MqttSource, RedisSource, WebSocket
from oxiseq.bridges.ldes import LdesSource, State
from oxiseq.bridges.lines import FollowedFile, Stdin
from oxiseq.bridges.nats import NatsSource
from oxiseq.bridges.source import STDIN, BridgeError, BridgeSettings, Source, SourcePosition, digest
from oxiseq.engine.extras import loaded

_Opened: TypeAlias = Callable[[BridgeSettings, SourcePosition], Source]
_KINDS: Final[Mapping[str, tuple[str, _Opened]]] = {
    "mqtt": ("paho.mqtt.client", lambda settings, _: MqttSource(settings)),
    "mqtts": ("paho.mqtt.client", lambda settings, _: MqttSource(settings)),
    "kafka": ("confluent_kafka", KafkaSource),
    "nats": ("nats", NatsSource),
    "nats+tls": ("nats", NatsSource),
    "redis": ("redis", RedisSource),
    "rediss": ("redis", RedisSource),
    "ws": ("websockets", lambda settings, _: WebSocket(settings)),
    "wss": ("websockets", lambda settings, _: WebSocket(settings)),
}
"""Scheme → the package that it needs, and what opens it."""
_LDES: Final = ("ldes+http", "ldes+https")


def opener_of(settings: BridgeSettings) -> Callable[[], Source]:
    """Opens the source, again and again. Raises BridgeError for a scheme that is not known, ExtraError for a package
    that is not installed."""
    if settings.url == STDIN:
        source = Stdin(settings)
        return lambda: source
    scheme, separator, _ = settings.url.partition("://")
    if separator and scheme.lower() in _KINDS:
        package, opened = _KINDS[scheme.lower()]
        loaded(package)
        position = SourcePosition(settings.position, digest(settings.shown, settings.topic, settings.group))
        return partial(opened, settings, position)
    if separator and scheme not in ("file", *_LDES):
        known = ", ".join((*_KINDS, *_LDES))
        raise BridgeError(f"{scheme}:// is not known; known: {known}, file, a path, and - for stdin")
    if scheme in _LDES:
        loaded("httpx")
        state = State.of(settings.position, settings.url)
        return lambda: LdesSource(settings, state)
    path = settings.followed or Path(settings.url)
    return partial(FollowedFile, settings, path, SourcePosition(settings.position, digest(os.fsencode(path))))
