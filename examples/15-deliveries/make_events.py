"""Two days of depots: orders, loadings, arrivals. Loading takes time: it is an interval event."""

from __future__ import annotations

DEPOTS = "http://example.org/depots"
PREFIX = "@prefix : <http://example.org/goods#> .\n"
HOUR = 3_600_000_000

# (hours from, hours until, what happens)
STORY: list[tuple[float, float, str]] = [
    (0.0, 0.0, ":wine :promised :Lyon"),
    (0.0, 0.0, ":books :promised :Isere"),
    (1.0, 2.0, ":t1 :takes :wine , :books"),
    (6.0, 6.0, ":t1 :at :Villeurbanne"),
    (7.0, 8.0, ":t2 :loads :Villeurbanne"),
    (9.0, 9.0, ":t2 :at :Part-Dieu"),
    (12.0, 12.5, ":t3 :loads :Part-Dieu"),
    (12.0, 12.0, ":cheese :promised :Rhone"),
    (20.0, 20.0, ":t3 :at :Grenoble"),
    (25.0, 26.0, ":t4 :takes :cheese"),
    (37.0, 37.0, ":t4 :at :Lyon"),  # eleven hours after loading began: no rule says that the cheese was still on it
    (30.0, 31.0, ":t5 :takes :cheese"),
    (38.0, 38.0, ":t5 :at :Croix-Rousse"),
]


def streams() -> dict[str, list[tuple[int, int, str]]]:
    """(start, end, graph), in the order of ends."""
    events = [(round(start * HOUR), round(end * HOUR), f"{PREFIX}{what} .") for start, end, what in STORY]
    return {DEPOTS: sorted(events, key=lambda event: event[1])}
