"""Streams of other systems, brought to one of ours: MQTT, Kafka, NATS, Redis, WebSockets, lines of files and of stdin.

    Source (a broker, a file) ─ messages ─▶ Bridge ─▶ Intake: what a POST to the stream does ─▶ confirmed at the source
                                               └▶ what the intake refuses: the dead-letter file

A message is confirmed where it comes from once it is durable here; what comes again has the same idempotency key and is
stored once. A further source is one file with a class that reads and confirms (`source.Source`).
"""

from oxiseq.bridges.bridge import Bridge, Counts
from oxiseq.bridges.kinds import opener_of
from oxiseq.bridges.source import BridgeError, BridgeSettings, DeadLetters, Intake, Message, Outcome, Source, outcome_of

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
