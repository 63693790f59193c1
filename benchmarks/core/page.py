"""What was found, as Markdown and as a picture."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Final

from benchmarks.charts import OXISEQ, Chart, Line, Point
from benchmarks.core.memory import Memory
from benchmarks.core.queries import LENGTHS, SECONDS, TAXIS, seconds_of
from benchmarks.core.run import Found
from benchmarks.core.ways import RDF, SPASEQ, TABLE
from benchmarks.measure import growth
from benchmarks.report import Result

AIMS: Final = (
    ("S3", (TABLE,), 8e6),
    ("S3'", (TABLE,), 8e6),
    ("S12", (TABLE,), 3e6),
    ("S24", (TABLE,), 2e6),
    ("S24'", (TABLE,), 2e6),
    ("S3", (RDF, SPASEQ), 3e6),
    ("S12", (RDF, SPASEQ), 1.5e6),
)
"""Events per second that are asked for, by one of the ways at least."""
FLAT: Final = 1.3
"""The quickest window over the slowest, at most."""
GROWS: Final = 1.02
"""Memory of the last quarter over the second, at most."""
MOST: Final = 200e6
"""Bytes resident, at most."""
_TITLES: Final = {
    "S": "Stock trades, S3 to S24",
    "H": "Smart homes, H3 to H24",
    "T": "Taxi trips, T3 to T24",
    "Q": "Q1 to Q7",
}

Rates = Mapping[str, Found]


def faults(found: Rates, memory: Mapping[str, Memory]) -> list[str]:
    """What differs between ways or from the count. What is only slower or larger than asked, `missed` says."""
    return [fault for one in found.values() for fault in one.faults]


def missed(found: Rates, memory: Mapping[str, Memory]) -> list[str]:
    """What is not as asked."""
    slow = [
        f"{name}, {' or '.join(ways)}: {_millions(rate)} M events/s, {_millions(aim)} asked"
        for name, ways, rate, aim in _aims(found)
        if rate < aim
    ]
    steep = [f"{name} over its windows: {ratio:.2f}×, {FLAT}× asked" for name, ratio in _windows(found) if ratio > FLAT]
    large = [
        f"{name}: memory grows {m.growth:.3f}× from the second quarter to the last"
        for name, m in memory.items()
        if m.growth > GROWS
    ]
    large += [
        f"{name}: {_mega(m.peak)} MB resident, {_mega(MOST)} asked" for name, m in memory.items() if m.peak > MOST
    ]
    return slow + steep + large


def page(found: Rates, memory: Mapping[str, Memory], setting: str, events: int) -> str:
    """The whole page. `events`: of the memory's run."""
    lines = [setting, "", *_asked(found)]
    for letter, title in _TITLES.items():
        rows = [one for one in found.values() if one.query.name.removeprefix("LAST ").startswith(letter)]
        plain = [one for one in rows if " " not in one.query.name]
        if plain:
            lines += ["", f"**{title}**", "", *_table(plain)]
    lines += [*_growth(found), *_by_window(found), *_memory(memory, events)]
    bad = [*faults(found, memory), *missed(found, memory)]
    lines += ["", *([f"**{line}**  " for line in bad] or ["All as asked."])]
    return "\n".join(lines) + "\n"


def pictures(found: Rates) -> list[Result]:
    """Events per second over the length and over the window."""
    lengths = [
        Line.of(OXISEQ, f"{letter}n{prime}, {what}", _points(found, [(n, f"{letter}{n}{prime}") for n in LENGTHS], way))
        for letter, prime, way, what in (
            ("S", "", TABLE, "table"),
            ("S", "'", TABLE, "table"),
            ("S", "", RDF, "RDF"),
            ("S", "'", RDF, "RDF"),
        )
    ]
    windows = [Line.of(OXISEQ, f"{letter}3'", _points(found, _variants(letter), TABLE)) for letter in "SHT"]
    charts = (
        Chart("core", "CORE's sequences over stock trades", "pattern length (steps)", _drawn(lengths)),
        Chart("core", "CORE's windows, from tables", "window (s)", _drawn(windows)),
    )
    return [Result("core", "CORE's experiments", "", (), (), tuple(c for c in charts if c.lines))]


# --- tables -----------------------------------------------------------------------------------------


def _asked(found: Rates) -> list[str]:
    rows = [
        f"| {name}, {' or '.join(ways)} | {_millions(rate)} | ≥ {_millions(aim)} |"
        for name, ways, rate, aim in _aims(found)
    ]
    return ["| M events/s | measured | asked |", "|---|---:|---:|", *rows] if rows else []


def _aims(found: Rates) -> Iterable[tuple[str, tuple[str, ...], float, float]]:
    for name, ways, aim in AIMS:
        if name in found and any(way in found[name].rates for way in ways):
            yield name, ways, max(found[name].rates.get(way, 0.0) for way in ways), aim


def _table(rows: Sequence[Found]) -> list[str]:
    ways = [way for way in (TABLE, RDF, SPASEQ) if any(way in one.rates for one in rows)]
    head = ["query", "matches", *(f"{way}, M events/s" for way in ways)]
    lines = [f"| {' | '.join(head)} |", "|---|" + "---:|" * (len(head) - 1)]
    for one in rows:
        rates = [_millions(one.rates[way]) if way in one.rates else "" for way in ways]
        cells = [one.query.name, f"{one.matches:,}", *rates]
        lines.append(f"| {' | '.join(cells)} |")
    return lines


def _growth(found: Rates) -> list[str]:
    lines = [
        "",
        "**Time per event over the length**: of n steps over that of 3.",
        "",
        f"| | {' | '.join(map(str, LENGTHS))} |",
        "|---|" + "---:|" * len(LENGTHS),
    ]
    for letter in "SHT":
        for prime in ("", "'"):
            for way in (TABLE, RDF, SPASEQ):
                rates = [rate for _, rate in _rates(found, [(n, f"{letter}{n}{prime}") for n in LENGTHS], way)]
                if len(rates) == len(LENGTHS):
                    cells = " | ".join(f"{rates[0] / rate:.2f}×" for rate in rates)
                    lines.append(f"| {letter}n{prime}, {way} | {cells} |")
    return lines if len(lines) > 5 else []


def _by_window(found: Rates) -> list[str]:
    lines = [
        "",
        f"**Over the window**, M events/s from tables; the last column is the quickest over the slowest, "
        f"of which at most {FLAT}× is asked.",
        "",
        f"| {TAXIS:,} times as long for taxis | {' | '.join(f'{s} s' for s in SECONDS)} | |",
        "|---|" + "---:|" * (len(SECONDS) + 1),
    ]
    for name, ratio in _windows(found):
        cells = [_millions(rate) for _, rate in _rates(found, _variants(name[-3], name), TABLE)]
        lines.append(f"| {name} | {' | '.join(cells)} | {ratio:.2f}× |")
    return lines if len(lines) > 5 else []


def _windows(found: Rates) -> Iterable[tuple[str, float]]:
    for letter in "SHT":
        for name in (f"{letter}3'", f"LAST {letter}3'"):
            rates = [rate for _, rate in _rates(found, _variants(letter, name), TABLE)]
            if len(rates) == len(SECONDS):
                yield name, growth(rates)


def _memory(memory: Mapping[str, Memory], events: int) -> list[str]:
    if not memory:
        return []
    lines = [
        "",
        f"**Memory** over {events:,} events from tables of 8,192, each query in a process of its own; MB "
        'resident. "Before" is a process that has imported all and loaded the kernels; "private" is what of '
        "the peak no file backs: without the code of NumPy, Arrow, LLVM and Oxigraph. Nodes are the partial "
        "matches' records at the end. `python -m benchmarks.core.base` says what a process has before it reads an "
        "event: of some 215 MB 170 are Python, NumPy, Arrow, pyoxigraph, LLVM and Numba, imported, without the 74 of "
        "LLVM's code, which is given back when kernels are loaded; 16 are the table that is drawn here. So less than "
        "200 are out of reach with these libraries; what oxiseq's modules, a query and its run have are some 30.",
        "",
        "| query | before | most in 2nd quarter | most in last | peak | private | nodes | matches |",
        "|---|" + "---:|" * 7,
    ]
    for name, m in memory.items():
        sizes = [_mega(size) for size in (m.before, m.second, m.last, m.peak, m.private)]
        cells = [*sizes, f"{m.records:,}", f"{m.matches:,}"]
        lines.append(f"| {name} | {' | '.join(cells)} |")
    return lines


def _variants(letter: str, name: str = "") -> list[tuple[int, str]]:
    name = name or f"{letter}3'"
    usual = seconds_of(letter)[0]
    return [(s, name if s == usual and not name.startswith("LAST") else f"{name} {s} s") for s in seconds_of(letter)]


def _rates(found: Rates, names: Iterable[tuple[int, str]], way: str) -> list[tuple[int, float]]:
    return [(x, found[name].rates[way]) for x, name in names if name in found and way in found[name].rates]


def _points(found: Rates, names: Iterable[tuple[int, str]], way: str) -> list[Point]:
    return [Point(x, rate) for x, rate in _rates(found, names, way)]


def _drawn(lines: Iterable[Line]) -> tuple[Line, ...]:
    return tuple(line for line in lines if line.points)


def _millions(rate: float) -> str:
    return f"{rate / 1e6:.3g}"


def _mega(size: float) -> str:
    return f"{size / 1e6:.0f}"


def explained() -> str:
    """What the page begins with, after the machine."""
    return (
        "Queries and streams are described in benchmarks/core/__init__.py. CONSUME BY ANY, at most 1,000 matches "
        "for an event that completes some; a primed query has a last step that nothing fits. Input is loaded before; "
        "what is measured is the whole way from typed columns or coded triples to columns of matches: predicates, "
        "automaton, enumeration. One thread, CPU time. All ways' matches are equal, and those of a prefix are counted "
        "again without the engine (benchmarks/core/count.py). SPAseq has the same window on the events' time."
    )
