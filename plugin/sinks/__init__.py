"""Where matches go: receivers of other systems, and what the operator of the server lets them reach.

    JSON settings ─ declared ─▶ `SinkSettings` of a kind ─ open ─▶ `Receiver`
    stored matches ─ delivery ─▶ filled template ─▶ Receiver ─▶ webhook, file, MQTT, Kafka, mail

Each system is one file, with its settings and its receiver: webhook.py, files.py, mqtt.py, kafka.py, mail.py. Their
shape is that of settings.py: what they reach and which secrets they need, deliver, and what is tried again
(`DeliveryError`). Nothing here knows of threads, positions or pauses: `oxiseq.live.sinks` delivers, and the journal
keeps how far each sink has come. Every connection goes through `allowed.Allowed`.
"""

from oxiseq.sinks.allowed import Allowed, DeliveryError, SinkError
from oxiseq.sinks.delivery import Delivery
from oxiseq.sinks.kinds import KINDS, DeclaredSink, settings_of
from oxiseq.sinks.settings import NAME, Receiver, SinkSettings

__all__ = [
    "KINDS",
    "NAME",
    "Allowed",
    "DeclaredSink",
    "Delivery",
    "DeliveryError",
    "Receiver",
    "SinkError",
    "SinkSettings",
    "settings_of",
]
