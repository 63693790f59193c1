"""CityBench's twelve questions over two hours of a small city."""

from __future__ import annotations

from pathlib import Path

from make_events import MINUTE, streams

import oxiseq

HERE = Path(__file__).parent


def main() -> dict[str, oxiseq.Matches]:
    """What each query answers, by its file's name."""
    events = streams()
    found = {}
    for path in sorted(HERE.glob("q*.rspql")):
        text = path.read_text(encoding="utf-8")
        read = {iri: each for iri, each in events.items() if iri.rsplit("#", 1)[-1] in text}
        found[path.stem] = oxiseq.run(text, streams=read, kb=HERE / "kb.trig", language="rspql")
    return found


if __name__ == "__main__":
    for name, answers in main().items():
        print(f"{name}: {len(answers)} answers")
        for answer in answers[:3]:
            row = ", ".join(f"{v} = {t.value.rsplit('#', 1)[-1]}" for v, t in answer.items())
            print(f"  {answer.at_us / MINUTE:6.1f} min  {row}")
