"""Trawlers that fish in a marine reserve. The rows of ais.csv become events by mapping.json."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Final

import oxiseq

HERE: Final = Path(__file__).parent
STREAM: Final = "http://ais.example/reports"


def main() -> oxiseq.Matches:
    """Push the rows to a stream that has the mapping, and watch it."""
    with oxiseq.open() as store:
        store.load(path=HERE / "kb.nq")
        stream = store.stream(STREAM, mapping=json.loads((HERE / "mapping.json").read_text(encoding="utf-8")))
        query = store.register(HERE / "query.spaseq", name="poachers")
        stream.extend(HERE / "ais.csv")
        stream.advance("2024-05-02T00:00:00Z")
        return query.matches()


if __name__ == "__main__":
    for match in main():
        name, reserve, since, metres = (match[name].value for name in ("name", "reserve", "since", "metres"))
        print(f"{name} in {reserve.rsplit('/', 1)[-1]} since {since}, {float(metres):.0f} m with its net out")
