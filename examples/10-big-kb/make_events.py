"""Twenty minutes of temperatures of three devices."""

from __future__ import annotations

FACTORY = "http://example.org/factory"
MINUTE = 60_000_000
LOAD = ("classes.ttl", "halls.nt", "machines.csv", "--mapping", "machines.rq", "--graph", FACTORY, "--reason", "rdfs")
"""What `oxiseq load` is told, to make the knowledge base."""

# (minute, device, degrees): m3 is a lamp, no machine; m2 is hot once only within ten minutes
READINGS = [(0, "m1", 85), (1, "m3", 90), (2, "m2", 95), (4, "m3", 91), (5, "m1", 70), (8, "m1", 88), (20, "m2", 99)]


def streams() -> dict[str, list[tuple[int, str]]]:
    """The readings as events."""
    return {
        "http://example.org/heat": [
            (minute * MINUTE, f"<{FACTORY}#{device}> <{FACTORY}#heat> {degrees} .")
            for minute, device, degrees in READINGS
        ]
    }
