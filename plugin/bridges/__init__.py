"""Streams of other systems, brought to one of ours: MQTT, Kafka, NATS, Redis, WebSockets, lines of files and of stdin.

    Source (a broker, a file) ─ messages ─▶ Bridge ─▶ Intake: what a POST to the stream does ─▶ acknowledged
                                               └▶ what the intake refuses: the dead-letter file

A message is acknowledged where it comes from once it is durable here; what comes again has the same idempotency key and
is stored once. Each system is one file, whose class has the shape of `source.Source`: kafka.py, mqtt.py, nats.py,
redis.py, websocket.py, files.py, lines.py (stdin), ldes.
"""

from oxiseq.bridges.bridge import Bridge, Counts, DeadLetters, Intake, Outcome, outcome_of
from oxiseq.bridges.kinds import opener_of
from oxiseq.bridges.source import BridgeError, BridgeSettings, Message, Source

__all__ = [
    "Bridge",
    "BridgeError",
    "BridgeSettings",
    "Counts",
    "DeadLetters",
    "Intake",
    "Message",
    "Outcome",
    "Source",
    "opener_of",
    "outcome_of",
]
