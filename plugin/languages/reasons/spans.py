"""Lengths of time in words."""

from __future__ import annotations


def length(micros: int) -> str:
    """Microseconds for people: `1 day 2 h`."""
    parts = []
    for size, one, many in ((86_400_000_000, "day", "days"), (3_600_000_000, "h", "h"), (60_000_000, "min", "min")):
        number, micros = divmod(micros, size)
        parts += [f"{number:,} {one if number == 1 else many}"] if number else []
    if micros or not parts:
        parts.append(f"{micros / 1_000_000:.6f}".rstrip("0").rstrip(".") + " s")
    return " ".join(parts)
