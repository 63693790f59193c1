"""The kinds of sinks: one line each."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from oxiseq.sinks.errors import SinkError
from oxiseq.sinks.files import File
from oxiseq.sinks.kafka import Kafka
from oxiseq.sinks.mail import Mail
from oxiseq.sinks.mqtt import Mqtt
from oxiseq.sinks.settings import SinkSettings
from oxiseq.sinks.webhook import Webhook

KINDS: Final[Mapping[str, type[SinkSettings]]] = {each.kind: each for each in (Webhook, File, Mqtt, Kafka, Mail)}


def settings_of(given: Mapping[str, Any]) -> SinkSettings:
    """Of JSON values, whose member `kind` says which. Raises SinkError."""
    kind = given.get("kind")
    found = KINDS.get(kind) if isinstance(kind, str) else None
    if found is None:
        raise SinkError(f"kind is one of {', '.join(KINDS)}" + ("" if kind is None else f", not {str(kind)[:40]!r}"))
    return found.of({name: value for name, value in given.items() if name != "kind"})
