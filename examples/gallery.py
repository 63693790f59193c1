"""The page's gallery: one small story per example, made of the first case of its pattern tests that finds something.

    python examples/gallery.py      writes plugin/page/static/gallery.json

A test compares the file with what this makes, so that examples and gallery stay one.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

from pyoxigraph import NamedNode, Quad, Store

from oxiseq.engine.events.time import to_literal, to_text
from oxiseq.languages.registry import language_for
from oxiseq.options import Options
from oxiseq.testing import Case, load_cases, run_case

HERE = Path(__file__).parent
GALLERY = HERE.parent / "plugin" / "page" / "static" / "gallery.json"
AT = NamedNode("http://www.w3.org/ns/prov#generatedAtTime")
_BLANK = re.compile(r"_:[0-9a-f]+\b")
QUESTIONS = {
    "smart-grid": ("energy", "Who offered cheaper solar power to a house with a high fare once the weather turned?"),
    "fraud": ("cards", "Which card paid ten times more within 30 minutes?"),
    "head-and-shoulders": ("stocks", "Which price made a head between two shoulders, seven days in a row?"),
    "v-shape": ("stocks", "Which price rose one day and fell the next?"),
    "traffic": ("traffic", "When did both other roads reach the speed of the first one?"),
    "vessels": ("ships", "Which vessel left the harbour, sped up and stopped with another in sight?"),
    "glucose": ("health", "When did glucose spike and come back within three hours?"),
    "live": ("energy", "Which house doubled its load?"),
    "two-languages": ("stocks", "Which trades of QQQ lie between two large sales?"),
    "big-kb": ("factory", "Which machine was hot twice within ten minutes?"),
    "server": ("stocks", "Which quotes fell and rose again?"),
    "popular-users": ("social media", "Which post did a popular user like within the hour?"),
    "spark": ("stocks", "Which price fell by a tenth and rose above its start?"),
    "tsunami": ("sea", "Did the sea rise at two buoys after a strong quake?"),
    "deliveries": ("logistics", "Into which region did the goods get, from truck to truck?"),
    "smart-city": ("traffic", "How congested are two roads of a commute now?"),
    "alarms": ("factory", "Which machine was hot three times, and nobody acknowledged it within ten minutes?"),
    "process": ("orders", "Which order was paid and not shipped for two days?"),
    "ssh": ("security", "Which address failed five times within a minute and then logged in?"),
    "cold-chain": ("logistics", "Which box was too warm three times and not delivered within half an hour?"),
    "ais": ("ships", "Which vessel slowed down in the protected area?"),
}
"""The domain of an example, and the question that its query answers."""
LARGEST = 60_000
"""Characters of a story's knowledge base; larger ones have no place on a page."""


def stories() -> Iterator[dict[str, Any]]:
    """One per example with pattern tests."""
    for folder in sorted(HERE.glob("[0-9]*")):
        cases = (case for path in sorted(folder.glob("*.oxitest.toml")) for case in load_cases(path))
        chosen = next((case for case in cases if _finds(case)), None)
        if chosen is not None and (made := _story(folder, chosen)) is not None:
            yield made


def _finds(case: Case) -> bool:
    expected = [case.expect, *(each for stand in case.stands for each in (stand.expect, stand.new))]
    some = any(each is not None and (each.count or (each.table is not None and each.table.rows)) for each in expected)
    plain = replace(case.options, rules=()) == Options()
    return some and plain and run_case(case).passed


def _story(folder: Path, case: Case) -> dict[str, Any] | None:
    kb = _knowledge(case)
    if len(kb) > LARGEST:
        return None
    domain, question = QUESTIONS[folder.name[3:]]
    return {
        "name": folder.name[3:],
        "domain": domain,
        "question": question,
        "story": case.name,
        "language": language_for(case.query).name,
        "text": case.text,
        "rules": list(case.options.rules),
        "kb": kb,
        "at_once": len({e.time for e in case.events}) < len({(e.time, e.stream) for e in case.events}),
        "events": [{"stream": e.stream, "quads": _quads(n, e.time, e.graph)} for n, e in enumerate(case.events)],
        "end": to_text(max(e.time for e in case.events) + 366 * 86_400_000_000),
    }


def _knowledge(case: Case) -> str:
    """The case's knowledge base as N-Quads."""
    if case.kb is None:
        return ""
    store = case.kb if isinstance(case.kb, Store) else Store()
    if isinstance(case.kb, Path):
        store.load(path=str(case.kb))
    return _named(sorted((f"{quad} .\n" for quad in store), key=lambda line: _BLANK.sub("_:", line)))


def _quads(number: int, time: int, graph: tuple[Any, ...]) -> str:
    name = NamedNode(f"urn:oxiseq:gallery:{number}")
    quads = [*(Quad(t.subject, t.predicate, t.object, name) for t in graph), Quad(name, AT, to_literal(time))]
    return _named(f"{quad} .\n" for quad in quads)


def _named(lines: Iterable[str]) -> str:
    """The lines with blank nodes called b0, b1... in their order, so that they are the same each time."""
    names: dict[str, str] = {}
    return _BLANK.sub(lambda found: names.setdefault(found[0], f"_:b{len(names)}"), "".join(lines))


def made() -> str:
    """The file's text."""
    return json.dumps({"stories": list(stories())}, ensure_ascii=False, indent=1) + "\n"


if __name__ == "__main__":
    GALLERY.write_text(made(), encoding="utf-8")
