"""SPAseq's evaluation: Figures 15 to 20; 21 and 22 are measured in spaseq_runs.py."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory
from time import process_time
from typing import Final

from pyoxigraph import Store

from benchmarks.data import SECOND
from benchmarks.drive import Prepared
from benchmarks.measure import Measured, measure
from benchmarks.papers.figures import Curve, Panel, PaperFigure, Scale
from benchmarks.papers.made import CCD, SHD, SMD, TD, MadeStreams, cards_kb, ccd, companies_kb, shd, smd, td
from benchmarks.papers.spaseq_runs import indexed_runs, lazy_conjunction
from benchmarks.profile import stages
from benchmarks.textbook import Event, Nfa, Step
from oxiseq.engine.events.open import open_events, write_events
from oxiseq.engine.output.batch import MatchBatch
from oxiseq.engine.terms.dictionary import TermDictionary

MINUTES: Final = (10, 20, 30, 40)
LENGTHS: Final = (3, 5, 7, 9, 12)
KBS: Final = (10_000, 100_000, 1_000_000)
OPERATORS: Final = {"SC": ",", "STN": ";"}
CHECKED: Final = 3_000
"""Events whose matches are found a second time by a textbook's NFA in plain Python."""
_PREFIX: Final = "PREFIX pred: <http://example/>\n"


def chain(length: int, operator: str, minutes: int, clause: str = "", kb: str = "") -> str:
    """Prices of one company that rise and fall in turn: Query 4, the V, has three steps."""
    names = [f"G{number}" for number in range(1, length + 1)]
    gpms = []
    for number, name in enumerate(names, 1):
        sign = ">" if number % 2 == 0 else "<"
        asked = "" if number == 1 else f" FILTER(?p{number} {sign} ?p{number - 1})"
        more = kb if number == 1 else ""
        gpms.append(
            f"  DEFINE GPM {name} ON S1 {{ ?company pred:price ?p{number} ; pred:volume ?vol{number} .{asked}{more} }}"
        )
    prices = " ".join(f"?p{number}" for number in range(1, length + 1))
    shown = " ?name" if kb else ""
    return (
        f"{_PREFIX}SELECT ?company {prices}{shown}\nWITHIN {minutes} MINUTES\n{clause}FROM STREAM S1 <{SMD}>\n"
        f"WHERE {{\n  SEQ({f' {operator} '.join(names)})\n" + "\n".join(gpms) + "\n}"
    )


def payments(operator: str, minutes: int, kb: str = "") -> str:
    """Query 2: a payment, then ten times as much with the same card."""
    shown = " ?name ?bank ?type" if kb else ""
    return f"""{_PREFIX}SELECT ?card ?amount1 ?amount2{shown}
WITHIN {minutes} MINUTES
FROM STREAM S1 <{CCD}>
WHERE {{
  SEQ(A {operator} B+)
  DEFINE GPM A ON S1 {{ ?card pred:id ?id1 ; pred:amount ?amount1 ; pred:loc ?loc . FILTER(?amount1 > 0) }}
  DEFINE GPM B ON S1 {{ ?card pred:id ?id1 ; pred:amount ?amount2 . FILTER(?amount2 >= ?amount1 * 10){kb} }}
}}"""


def homes(operator: str, minutes: int) -> str:
    """Query 1, in the vocabulary of the authors' generator, joined on the place."""
    return f"""PREFIX power: <http://www.smart.com/power#>
PREFIX val: <http://www.smart.com/>
PREFIX env: <http://www.smart.com/environmental#>
SELECT ?house1 ?p1 ?watt1 ?house2 ?p2 ?watt2
WITHIN {minutes} MINUTES
FROM STREAM S1 <{SHD[0]}>
FROM STREAM S2 <{SHD[1]}>
FROM STREAM S3 <{SHD[2]}>
WHERE {{
  SEQ(A {operator} B+ {operator} C)
  DEFINE GPM A ON S1 {{ ?house1 power:haslocation ?l ; power:haspower ?pw1 . ?pw1 val:watt ?watt1 ; val:price ?p1 .
                       FILTER(?p1 > 20) }}
  DEFINE GPM B ON S2 {{ ?wthr env:haslocation ?l ; env:hasvalue ?v . ?v val:windspeed ?wspd ; val:heatindex ?heat .
                       FILTER(?wspd >= 1 && ?heat >= 7.0) }}
  DEFINE GPM C ON S3 {{ ?house2 power:haslocation ?l ; power:haspower ?pw2 . ?pw2 val:watt ?watt2 ; val:price ?p2 .
                       FILTER(?p2 <= ?p1) }}
}}"""


def traffic(operator: str, minutes: int) -> str:
    """Query 5: two sensors at once after a third."""
    streams = "\n".join(f"FROM STREAM S{n} <{stream}>" for n, stream in enumerate(TD, 1))
    gpms = "\n".join(
        f"  DEFINE GPM {name} ON S{n} {{ ?traffic ssn:observedProperty ?p1 ; sao:hasValue ?v{n} . FILTER({asked}) }}"
        for n, (name, asked) in enumerate((("A", "?v1 > 3"), ("B", "?v2 >= ?v1"), ("C", "?v3 >= ?v1")), 1)
    )
    return f"""PREFIX ssn: <http://purl.oclc.org/NET/ssnx/ssn#>
PREFIX sao: <http://purl.oclc.org/NET/sao/ssn#>
SELECT ?traffic ?p1 ?v1 ?v2 ?v3
WITHIN {minutes} MINUTES
{streams}
WHERE {{
  SEQ(A {operator} (B & C))
{gpms}
}}"""


def counting(text: str, made: MadeStreams, kb: Store | None = None) -> Callable[[], int]:
    """A task: the number of matches over all events."""
    prepared = Prepared.of(text, made.terms, kb)
    pushes = made.pushes()
    return lambda: total(prepared.run_streams(pushes))


def total(found: list[MatchBatch]) -> int:
    """How many matches."""
    return sum(map(len, found))


# --- 15, 16, 17: windows, lengths ------------------------------------------------------------------------


@cache
def _over_windows(scale: Scale) -> dict[str, tuple[MadeStreams, dict[tuple[str, int], Measured]]]:
    """By data set: the streams, and what was measured by sequence operator and minutes."""
    minutes = scale.some(MINUTES)
    sets: dict[str, tuple[MadeStreams, Callable[[str, int], str]]] = {
        "SMD, V-shape": (smd(TermDictionary(), scale.of(400_000)), lambda o, m: chain(3, o, m)),
        "CCD": (ccd(TermDictionary(), scale.of(200_000)), payments),
        "TD": (td(TermDictionary(), scale.of(60_000)), traffic),
        "SHD": (shd(TermDictionary(), scale.of(90_000)), homes),
    }
    found = {}
    for title, (made, text) in sets.items():
        if made.streams.keys() == {SMD}:
            check_chain(made, 3)
        keys = [(name, m) for name in OPERATORS for m in minutes]
        ways = {str(key): counting(text(OPERATORS[key[0]], key[1]), made) for key in keys}
        measured = measure(ways, scale.rounds, dict(list(ways.items())[:2]))
        found[title] = made, {key: measured[str(key)] for key in keys}
    return found


def windows(scale: Scale) -> Iterator[Panel]:
    """Figure 15: CPU seconds of a window."""
    for title, (made, measured) in _over_windows(scale).items():
        yield _panel(title, measured, lambda m, minutes, made=made: m.median * minutes / made.minutes)


def throughputs(scale: Scale) -> Iterator[Panel]:
    """Figure 16: triples per second of the same runs."""
    for title, (made, measured) in _over_windows(scale).items():
        yield _panel(title, measured, lambda m, _, made=made: made.triples / m.median)


def _panel(title: str, measured: dict[tuple[str, int], Measured], y: Callable[[Measured, int], float]) -> Panel:
    curves, facts = [], {}
    for name in OPERATORS:
        mine = {x: m for (by, x), m in measured.items() if by == name}
        curves.append(Curve(f"oxiseq, {name}", tuple(mine), tuple(y(m, x) for x, m in mine.items())))
        facts[f"matches, {name}"] = tuple(f"{m.answer:,}" for m in mine.values())
    return Panel(title, tuple(curves), facts)


def lengths(scale: Scale) -> Iterator[Panel]:
    """Figure 17: chains of 3 to 12 steps in windows of 40 minutes."""
    made = smd(TermDictionary(), scale.of(100_000))
    ways = {"SC": (",", ""), "STN": (";", ""), "SC, PARTITION BY ?company": (",", "PARTITION BY ?company\n")}
    of = scale.some(LENGTHS)
    check_chain(made, 5)
    tasks = {f"{name} {n}": counting(chain(n, o, 40, clause), made) for name, (o, clause) in ways.items() for n in of}
    measured = measure(tasks, scale.rounds, tasks)
    curves, facts = [], {}
    for name in ways:
        mine = [measured[f"{name} {n}"] for n in of]
        curves.append(Curve(f"oxiseq, {name}", of, tuple(m.median * 40 / made.minutes for m in mine)))
        facts[f"matches, {name}"] = tuple(f"{m.answer:,}" for m in mine)
    yield Panel("SMD, windows of 40 minutes", tuple(curves), facts)


def check_chain(made: MadeStreams, length: int) -> None:
    """The matches among the first events, found a second time. Raises AssertionError."""
    few = made.plain["time"][:CHECKED]
    (stream,) = made.streams
    start = MadeStreams(made.terms, {stream: made.streams[stream].slice(0, CHECKED)}, {})
    columns = zip(
        few.tolist(), made.plain["company"][:CHECKED].tolist(), made.plain["cents"][:CHECKED].tolist(), strict=True
    )
    rows: list[Event] = list(columns)
    for name, operator in OPERATORS.items():
        steps = [Step(lambda event, _: True)]
        for number in range(1, length):
            steps.append(Step(_next(rises=number % 2 == 1), operator))
        expected = len(Nfa(steps, 40 * 60 * SECOND).run(rows, 10**9).matches)
        found = counting(chain(length, operator, 40), start)()
        if found != expected:
            raise AssertionError(f"{name}, {length} steps: {found} matches of {CHECKED} events, {expected} by an NFA")


def _next(rises: bool) -> Callable[[Event, tuple[Event, ...]], bool]:
    def fits(event: Event, chosen: tuple[Event, ...]) -> bool:
        last = chosen[-1]
        return bool(event[1] == last[1] and (event[2] > last[2] if rises else event[2] < last[2]))

    return fits


# --- 18: knowledge bases ---------------------------------------------------------------------------------


def knowledge(scale: Scale) -> Iterator[Panel]:
    """Figure 18: the size of the KB; what asking it once costs, and a run afterwards."""
    sizes = tuple(size for size in KBS if scale.share >= 1 or size < KBS[-1])
    company = " GRAPH <http://stockmarket.org/db> { ?company pred:name ?name ; pred:address ?address ; pred:url ?url }"
    card = (
        " GRAPH <http://creditcard.org/db> { ?id1 pred:cardHolder ?name ; pred:issuedBy ?bank ; pred:type ?type ."
        " ?bank pred:address ?address }"
    )
    yield _known(
        "SMD", smd(TermDictionary(), scale.of(100_000)), chain(3, ";", 40, "", company), companies_kb, sizes, scale
    )
    yield _known("CCD", ccd(TermDictionary(), scale.of(100_000)), payments(";", 30, card), cards_kb, sizes, scale)


def _known(
    title: str, made: MadeStreams, text: str, kb_of: Callable[[int], Store], sizes: tuple[int, ...], scale: Scale
) -> Panel:
    once, tasks = [], {}
    for size in sizes:
        task = counting(text, made, kb_of(size))
        begun = process_time()
        task()
        once.append(process_time() - begun)
        tasks[str(size)] = task
    measured = measure(tasks, scale.rounds)
    runs = tuple(measured[str(size)].median for size in sizes)
    asked = tuple(max(0.0, first - run) for first, run in zip(once, runs, strict=True))
    return Panel(
        title,
        (Curve("oxiseq, STN, a run", sizes, runs), Curve("asking the KB, once", sizes, asked)),
        {"matches": tuple(f"{measured[str(size)].answer:,}" for size in sizes)},
    )


# --- 19, 20: where the time goes -------------------------------------------------------------------------

PARSING, GPMS, AUTOMATON = "parsing", "GPMs", "automaton"


def stages_of(scale: Scale) -> Iterator[Panel]:
    """Figure 19: head and shoulders under `;`, from N-Quads."""
    made = smd(TermDictionary(), scale.of(50_000))
    spent = {PARSING: _parsing(made), **_stages(head_and_shoulders(";", 10), made)}
    yield Panel("SMD, Q3, STN", (Curve("oxiseq", tuple(spent), tuple(1000 * s for s in spent.values())),))


def kleene(scale: Scale) -> Iterator[Panel]:
    """Figure 20: a sequence with and without a repeat."""
    made = smd(TermDictionary(), scale.of(100_000))
    curves = []
    for name, repeat in (("A; B; C", ""), ("A; B+; C", "+"), ("A; B;+; C", ";+")):
        spent = _stages(_peak(repeat), made)
        curves.append(Curve(f"oxiseq, {name}", tuple(spent), tuple(1000 * s for s in spent.values())))
    yield Panel("SMD, STN, windows of 40 minutes", tuple(curves))


def _peak(repeat: str) -> str:
    return f"""{_PREFIX}SELECT ?company ?p1 ?p3
WITHIN 40 MINUTES
FROM STREAM S1 <{SMD}>
WHERE {{
  SEQ(A; B{repeat}; C)
  DEFINE GPM A ON S1 {{ ?company pred:price ?p1 ; pred:volume ?vol1 }}
  DEFINE GPM B ON S1 {{ ?company pred:price ?p2 ; pred:volume ?vol2 . FILTER(?p2 > ?p1) }}
  DEFINE GPM C ON S1 {{ ?company pred:price ?p3 ; pred:volume ?vol3 . FILTER(?p3 < ?p1) }}
}}"""


def head_and_shoulders(operator: str, minutes: int) -> str:
    """Query 3: seven prices."""
    asked = (
        "",
        "?p2 > ?p1",
        "?p3 < ?p2 && ?p3 > ?p1",
        "?p4 > ?p2",
        "?p5 < ?p4 && ?p5 > ?p3",
        "?p6 > ?p5 && ?p6 < ?p4",
        "?p7 < ?p6 && ?p7 > ?p5",
    )
    gpms = "\n".join(
        f"  DEFINE GPM G{n} ON S1 {{ ?company pred:price ?p{n} ; pred:volume ?vol{n} .{f' FILTER({f})' if f else ''} }}"
        for n, f in enumerate(asked, 1)
    )
    names = f" {operator} ".join(f"G{n}" for n in range(1, 8))
    return (
        f"{_PREFIX}SELECT ?company ?p1 ?p4 ?p7\nWITHIN {minutes} MINUTES\nFROM STREAM S1 <{SMD}>\n"
        f"WHERE {{\n  SEQ({names})\n{gpms}\n}}"
    )


def _stages(text: str, made: MadeStreams) -> dict[str, float]:
    """CPU seconds of matching patterns, and of all else."""
    prepared, pushes = Prepared.of(text, made.terms), made.pushes()
    prepared.run_streams(pushes[:2])
    with stages() as clock:
        begun = process_time()
        prepared.run_streams(pushes)
        spent = process_time() - begun
    return {GPMS: clock.seconds["matching"], AUTOMATON: spent - clock.seconds["matching"]}


def _parsing(made: MadeStreams) -> float:
    """CPU seconds to read the events from N-Quads into columns of ids."""
    (batch,) = made.streams.values()
    with TemporaryDirectory() as folder:
        path = Path(folder) / "events.nq"
        write_events(iter((batch,)), made.terms, path)
        begun = process_time()
        read = sum(map(len, open_events(path, TermDictionary())))
        spent = process_time() - begun
    if read != len(batch):
        raise AssertionError(f"{read} events were read of {len(batch)}")
    return spent


_DATA: Final = (
    "Data of the same make (benchmarks/papers/made.py), not the same: the originals are not public. Streams are "
    "shorter than the paper's (SMD: 400,000 of 2.5 M trades). "
)
FIGURES: Final = (
    PaperFigure(
        "spaseq-15",
        "Figure 15: CPU time of a window",
        "window (minutes)",
        "CPU s per window",
        windows,
        "Tumbling windows over stock trades (SMD), card payments (CCD), three traffic sensors (TD) and homes (SHD); "
        "`,` (SC, strict contiguity) and `;` (STN, skip till next).",
        f"{_DATA}The windows' sizes are not given in the paper; these are chosen. A window's time grows with its "
        "events, 57 trades a second; the time of an event is Figure 16's. Published values exist as a bitmap only, "
        "and EP-SPARQL's engine (ETALIS) was not run beside. The homes' weather joins on the place, which the "
        "authors' file leaves out.",
    ),
    PaperFigure(
        "spaseq-16",
        "Figure 16: throughput",
        "window (minutes)",
        "triples/s",
        throughputs,
        "The runs of Figure 15, as triples of the raw stream (7, 4, 2 and 5 an event) in a second of CPU time.",
        "The paper's statement, that SC and STN are two to three orders of magnitude above EP-SPARQL's engine, is not "
        "repeated here. Its shape is: throughput falls little with the window.",
        log="y",
    ),
    PaperFigure(
        "spaseq-17",
        "Figure 17: sequence clauses",
        "GPMs in SEQ",
        "CPU s per window",
        lengths,
        "Chains of rising and falling prices of one company in windows of 40 minutes.",
        f"{_DATA}The paper's curves are nearly flat; under `;` ours grows with the number of steps, since each event "
        "is tried on the runs that wait at every step. Under `,` other companies' trades break nearly every run, so "
        "few matches exist; PARTITION BY is the form that the authors' files have.",
    ),
    PaperFigure(
        "spaseq-18",
        "Figure 18: the knowledge base",
        "triples of the KB",
        "CPU s",
        knowledge,
        "The V-shape with a company's name, address and URL, and payments with holder, bank and type of card.",
        f"{_DATA}The KB is asked once, when the first events arrive, and that is drawn as a line of its own; the "
        "paper's times include it. Runs afterwards do not depend on the KB's size.",
        log="x",
    ),
    PaperFigure(
        "spaseq-19",
        "Figure 19: parsing, GPMs, automaton",
        "stage",
        "CPU ms",
        stages_of,
        "Head and shoulders (Query 3) under `;`, from N-Quads, windows of 10 minutes.",
        "In the paper GPMs cost most, then the automaton, then parsing. Here patterns are matched over columns of a "
        "batch, which costs least; reading text costs more.",
        "bars",
    ),
    PaperFigure(
        "spaseq-20",
        "Figure 20: Kleene plus",
        "stage",
        "CPU ms",
        kleene,
        "`A; B; C` beside `A; B+; C` (B repeats by `,`) and `A; B;+; C`.",
        "In the paper a repeat makes both stages dearer. Here each event is matched with each pattern once, so GPMs "
        "cost the same with and without a repeat.",
        "bars",
    ),
    PaperFigure(
        "spaseq-21",
        "Figure 21: runs indexed by stream",
        "window (minutes)",
        "CPU s per window",
        indexed_runs,
        "Query 1 over three streams of homes under `;`, by a textbook's NFA whose runs stand in one list or by stream.",
        "An optimisation of the paper's automaton that oxiseq has not: its runs are found by the values that they "
        "join. So the figure is repeated with plain Python's NFA. In the paper both are equal in small windows, and "
        "indexed runs win in large ones.",
    ),
    PaperFigure(
        "spaseq-22",
        "Figure 22: lazy conjunction",
        "window (minutes)",
        "CPU s per window",
        lazy_conjunction,
        "Query 5 under `;`: `A; (B & C)`, eager, or evaluated only at times with events of both.",
        "As Figure 21: oxiseq matches each pattern once for a batch, whatever the automaton waits for. Sensor C "
        "speaks at one time in ten, so that most partners never arrive; the table counts the patterns evaluated.",
    ),
)
