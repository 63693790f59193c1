"""What the code weighs, by room of the architecture, beside commit 666c5b34 and the budgets: python .ci/weight.py.

A room is a package of the architecture to reach, and what will be its own of today's. Statements are those that
Python's parser counts, docstrings aside: layout, comments and blank lines change nothing. Expressions are counted, too,
so that packing statements into them shows. The gate prints this table; it marks a room that weighs more than at
666c5b34, and CHANGELOG says why.
"""

from __future__ import annotations

import argparse
import ast
from collections import Counter
from dataclasses import dataclass
from pathlib import Path

ROOMS: dict[str, tuple[tuple[str, ...], int, int]] = {
    "grammar": (("grammar",), 7138, 5300),
    "engine/terms": (("engine/terms", "engine/kernels/terms"), 1910, 1500),
    "engine/events": (("engine/events", "engine/order", "engine/turtle", "engine/kernels/events"), 4005, 3000),
    "engine/arrays": (
        ("engine/arrays", "engine/snapshot", "engine/kernels/memory", "engine/kernels/compiling"),
        945,
        1300,
    ),
    "engine/expressions": (("engine/expressions", "engine/kernels/expressions"), 1225, 1100),
    "engine/patterns": (("engine/patterns", "engine/matching", "engine/kernels/matching"), 1806, 1400),
    "engine/automaton": (
        (
            "engine",
            "engine/automaton",
            "engine/sequence",
            "engine/cea",
            "engine/kernels/sequence",
            "engine/kernels/cea",
        ),
        9002,
        6200,
    ),
    "engine/answers": (
        ("engine/answers", "engine/output", "engine/matches", "engine/kernels/matches", "engine/kernels/output"),
        6122,
        3200,
    ),
    "engine/dataflow": (
        (
            "engine/dataflow",
            "engine/flow",
            "engine/rsp",
            "engine/standing",
            "engine/kernels/flow",
        ),
        14825,
        9000,
    ),
    "engine/queries": (("engine/queries", "engine/run", "engine/sharing"), 4610, 2400),
    "kb_loader": (("kb_loader",), 2841, 2500),
    "plugin/languages": (("plugin/languages",), 3983, 2600),
    "plugin/api, served": (("plugin/api", "plugin/served"), 3132, 2300),
    "plugin/journal, live": (("plugin/journal", "plugin/live"), 6426, 4500),
    "plugin/http": (
        ("plugin/http", "plugin/live/api", "plugin/server", "plugin/sparql", "plugin/rights", "plugin/page"),
        5698,
        4500,
    ),
    "plugin/connect": (
        ("plugin/connect", "plugin/bridges", "plugin/sources", "plugin/mappings", "plugin/logs", "plugin/sinks"),
        4396,
        3200,
    ),
    "plugin": (("plugin",), 6958, 5000),
}
"""Of each room: its folders, of which the longest name decides; its statements at 666c5b34; its budget."""
OTHERS = ("tests", "benchmarks", "examples", "docs", ".ci")
ENDINGS = ("lark", "js", "css", "json", "sql")
SMALL = 60
"""Lines below which a module counts as small."""


@dataclass
class Weight:
    """Of a room, or of one module."""

    modules: int = 0
    small: int = 0
    lines: int = 0
    statements: int = 0
    expressions: int = 0

    def add(self, other: Weight) -> None:
        """Both together."""
        for name, value in vars(other).items():
            setattr(self, name, getattr(self, name) + value)


def weigh(path: Path, classes: Counter[str] | None = None) -> Weight:
    """The weight of a module; `classes` gets the names that it defines."""
    text = path.read_text()
    nodes = list(ast.walk(ast.parse(text)))
    texts = sum(isinstance(node, ast.Expr) and _is_text(node.value) for node in nodes)
    if classes is not None:
        classes.update(node.name for node in nodes if isinstance(node, ast.ClassDef))
    lines = text.count("\n")
    return Weight(
        modules=1,
        small=int(lines < SMALL),
        lines=lines,
        statements=sum(isinstance(node, ast.stmt) for node in nodes) - texts,
        expressions=sum(isinstance(node, ast.expr) for node in nodes),
    )


def _is_text(node: ast.expr) -> bool:
    return isinstance(node, ast.Constant) and isinstance(node.value, str)


def room_of(path: Path) -> str:
    """The room of a module, by its folder."""
    folder = path.parent.as_posix()
    longest = {
        len(prefix): room
        for room, (prefixes, _, _) in ROOMS.items()
        for prefix in prefixes
        if folder == prefix or folder.startswith(f"{prefix}/")
    }
    return longest[max(longest)]


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("root", nargs="?", default=".", type=Path)
    root = parser.parse_args().root
    rooms: dict[str, Weight] = {room: Weight() for room in ROOMS}
    classes: Counter[str] = Counter()
    for top in ("grammar", "engine", "kb_loader", "plugin"):
        for path in sorted((root / top).rglob("*.py")):
            rooms[room_of(path.relative_to(root))].add(weigh(path, classes))
    print(
        f"{'':24}{'modules':>8}{'small':>7}{'lines':>8}{'expressions':>13}{'statements':>12}{'666c5b34':>10}{'budget':>8}"
    )
    whole = Weight()
    for room, weight in rooms.items():
        _, before, budget = ROOMS[room]
        _print(room, weight, f"{before:10,}{budget:8,}{'  more than before' if weight.statements > before else ''}")
        whole.add(weight)
    _print("all of these", whole, f"{sum(r[1] for r in ROOMS.values()):10,}{sum(r[2] for r in ROOMS.values()):8,}")
    for other in OTHERS:
        weight = Weight()
        for path in sorted((root / other).rglob("*.py")):
            weight.add(weigh(path))
        _print(other, weight)
    for ending in ENDINGS:
        lines = sum(
            path.read_text(errors="replace").count("\n")
            for top in ("grammar", "engine", "kb_loader", "plugin")
            for path in (root / top).rglob(f"*.{ending}")
            if "node_modules" not in path.parts
        )
        print(f"{'*.' + ending:24}{'':15}{lines:8,}")
    twice = {name: count for name, count in classes.items() if count > 1}
    print(f"classes that share a name: {sum(twice.values())} under {len(twice)} names (439 under 173 at 666c5b34)")


def _print(name: str, weight: Weight, more: str = "") -> None:
    print(
        f"{name:24}{weight.modules:8,}{weight.small:7,}{weight.lines:8,}{weight.expressions:13,}{weight.statements:12,}{more}"
    )


if __name__ == "__main__":
    main()
