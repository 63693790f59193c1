"""A program: restores a run from the file that is its argument, pushes the rest of the readings, prints the matches.

Arguments: snapshot, query, first reading to push.
"""

from __future__ import annotations

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))
sys.path.insert(0, str(Path(__file__).parents[1] / "engine"))
from engine_runs import Driven, random_readings

from oxiseq.engine.snapshot.saving import restore


def main(snapshot: str, text: str, first: str) -> None:
    driven = Driven(text)
    driven.run = restore(Path(snapshot).read_bytes(), driven.plan, driven.terms, driven.kb)
    driven.push(random_readings(7, 600, "abcn")[int(first) :])
    print([*driven.advance(), *driven.finish()])


if __name__ == "__main__":
    main(*sys.argv[1:])
