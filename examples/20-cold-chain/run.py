"""The cold chain: which boxes were warm for too long. The rows of boxes.csv become events by mapping.json."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Final

import oxiseq

HERE: Final = Path(__file__).parent
STREAM: Final = "http://cold.example/boxes"
LATER: Final = "2024-05-01T10:00:00Z"
"""When nothing more of the day is to come."""


def main() -> oxiseq.Matches:
    """Push the rows to a stream that has the mapping, and watch it."""
    with oxiseq.open() as store:
        stream = store.stream(STREAM, mapping=json.loads((HERE / "mapping.json").read_text(encoding="utf-8")))
        query = store.register(HERE / "query.spaseq", name="warm")
        stream.extend(HERE / "boxes.csv")
        stream.advance(LATER)
        return query.matches()


if __name__ == "__main__":
    for match in main():
        box, since, third, hottest = (match[name].value for name in ("box", "since", "third", "hottest"))
        print(f"{box.rsplit('/', 1)[-1]}: warm since {since}, third reading {third}, {hottest} degrees")
