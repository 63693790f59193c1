"""Case `reasoning`: instances of the root of a class tree (EP-SPARQL's Test 2), after loading with RDFS."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from tempfile import TemporaryDirectory

from pyoxigraph import Store

from benchmarks.data import NS, STREAM, quotes
from benchmarks.drive import WARM, Prepared
from benchmarks.measure import measure
from benchmarks.report import Figure, Result, Row, Size
from oxiseq.engine.terms.dictionary import TermDictionary
from oxiseq.kb_loader import LoadReport, load, open_kb
from oxiseq.kb_loader.rdfs import SUB_CLASS, TYPE

CLASSES = 40_080
FANOUT = 4
"""Subclasses of a class: with so many classes the tree's depth is 8."""
COMPANIES = 2_000
LIMIT = 1.3
TITLE = "Instances of a root class"
PATTERNS = {
    "of the root of the tree": f"GRAPH <urn:oxiseq:inferred> {{ ?c a <{NS}C0> }}",
    "of a class, as asserted": f"GRAPH <{NS}kb> {{ ?c a <{NS}Company> }}",
    "without a knowledge base": "",
}
"""What stands beside the quotes in a plain pattern; all have the same matches."""


def depth(classes: int) -> int:
    """Of the tree with so many classes."""
    level, at = 0, classes - 1
    while at:
        level, at = level + 1, (at - 1) // FANOUT
    return level


def lines(classes: int, companies: int = COMPANIES) -> Iterator[str]:
    """The tree, and companies spread over its leaves, each of a class of its own outside of the tree as well."""
    graph = f"<{NS}kb>"
    for number in range(1, classes):
        yield f"<{NS}C{number}> {SUB_CLASS} <{NS}C{(number - 1) // FANOUT}> {graph} .\n"
    for number in range(companies):
        for class_ in (f"C{classes - 1 - number % (classes // 2)}", "Company"):
            yield f"<{NS}company/{number}> {TYPE} <{NS}{class_}> {graph} .\n"


def loaded(folder: Path, classes: int, companies: int = COMPANIES) -> tuple[LoadReport, Store]:
    """The tree loaded with reasoning, from a file in the folder."""
    (folder / "tree.nq").write_text("".join(lines(classes, companies)), encoding="utf-8")
    report = load(folder / "tree.nq", folder / "kb", reasoning="rdfs")
    return report, open_kb(folder / "kb")


def query(pattern: str) -> str:
    """A company's quote below an earlier one; the pattern stands in both GPMs."""
    return f"""PREFIX : <{NS}>
    SELECT ?c ?p1 ?p2 WITHIN 2000 EVENTS SLIDING FROM STREAM S <{STREAM}>
    WHERE {{
      SEQ(A; B)
      DEFINE GPM A ON S {{ ?a :company ?c ; :price ?p1 . {pattern} }}
      DEFINE GPM B ON S {{ ?b :company ?c ; :price ?p2 . FILTER(?p2 < ?p1) {pattern} }}
    }}"""


def run(size: Size) -> Result:
    """Nanoseconds per event of the three patterns; the knowledge base is queried before."""
    classes = CLASSES if size.events > WARM else 1_000
    terms = TermDictionary()
    events = quotes(terms, size.events, COMPANIES)
    with TemporaryDirectory() as folder:
        report, store = loaded(Path(folder), classes)
        prepared = {name: Prepared.of(query(pattern), terms, store) for name, pattern in PATTERNS.items()}
        ways: dict[str, Callable[[], object]] = {name: each.counting(events) for name, each in prepared.items()}
        warm = {name: each.counting(events.first(WARM)) for name, each in prepared.items()}
        measured = measure(ways, size.rounds, warm)
    root, asserted, plain = (measured[name] for name in PATTERNS)
    if not root.answer == asserted.answer == plain.answer:
        raise AssertionError("other matches with the root class")
    told = ", ".join(f"{step} {seconds:.1f} s" for step, seconds in report.seconds.items())
    about = (
        f"`SEQ(A; B)` over quotes of {COMPANIES:,} companies, instances of the leaves of a tree of {classes:,} classes "
        f"of depth {depth(classes)}; loaded with `--reason rdfs`: {report.stored:,} statements, {report.inferred:,} "
        f"inferred ({told}). Which class is asked makes no difference; the knowledge base has nothing to add to an "
        "event, so that matches are not joined with it."
    )
    rows = tuple(Row.of(f"companies {name}", "", measured[name], size.events) for name in PATTERNS)
    figures = (
        Figure("root of the class tree, to an asserted class", root.median / asserted.median, LIMIT),
        Figure("root of the class tree, to the pattern without a KB", root.median / plain.median, LIMIT),
    )
    return Result("reasoning", TITLE, about, rows, figures)
