"""Compiling the kernels ahead of the first query.

Numba compiles a kernel when it is first called and keeps the result on disk. `warm_up` calls each of them: the
queries below use every operator and index, on memory so small that all of it has to grow. Compiling is spread over
two processes (`first_run.prepare`).
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from time import perf_counter
from typing import TYPE_CHECKING, Final

import numpy as np
from pyoxigraph import RdfFormat
from pyoxigraph import Store as RdfStore

from oxiseq.engine.cea.memory import Capacities as Small
from oxiseq.engine.cea.plan import compile_ceql
from oxiseq.engine.events.assembler import Block, EventAssembler
from oxiseq.engine.events.encode import encode_events
from oxiseq.engine.events.quads import GENERATED_AT
from oxiseq.engine.events.row_graphs import row_graphs
from oxiseq.engine.events.tuples import read_rows
from oxiseq.engine.extras import installed, needed
from oxiseq.engine.flow.epsparql.query import compile_intervals
from oxiseq.engine.kb import StoreKb
from oxiseq.engine.plan.query import compile_query
from oxiseq.engine.rsp.plan import RspOptions, compile_rsp
from oxiseq.engine.run.intervals import IntervalRun
from oxiseq.engine.run.query import QueryRun
from oxiseq.engine.run.rsp import RspRun
from oxiseq.engine.run.tuples import TupleRun
from oxiseq.engine.sequence.memory import Capacities
from oxiseq.engine.sharing.runs import Runs
from oxiseq.engine.sharing.shared import SharedRuns
from oxiseq.engine.snapshot.saving import restore, save
from oxiseq.engine.terms.dictionary import TermDictionary
from oxiseq.engine.terms.order import TermOrder
from oxiseq.engine.terms.texts import parse_term
from oxiseq.grammar import load
from oxiseq.grammar.rsp_algebra import Report, RspQuery
from oxiseq.warmup.first_run import note_warm, prepare

if TYPE_CHECKING:
    import pyarrow as pa
else:
    pa = needed("pyarrow")

_TEXT: Final = "PREFIX : <urn:w:> {form} {window} FROM STREAM S <urn:w:S> WHERE {{ SEQ({seq}) {gpms} }} {tail}"
_GPMS: Final = (
    "DEFINE GPM A ON S { ?s :v ?a FILTER(?a > 1 && ?a < 1000.5) GRAPH ?g { ?s :name ?n } } "
    "DEFINE GPM B ON S { ?s :v ?b OPTIONAL { ?s :w ?w } FILTER(?b > 0) FILTER(?b > ?a) } "
    "DEFINE GPM C ON S { ?t :v ?c FILTER(?c + 0.1 > ?a * 1.5 && STRLEN(STR(?c)) < 9 + ?a) } "
    "DEFINE GPM D ON S { ?s :w ?d . ?s :v ?e FILTER(STRLEN(STR(?e)) < 9) } "
    "DEFINE GPM D2 ON S { ?s :v ?f } "
    "DEFINE GPM N ON S { ?s :w ?m GRAPH ?h { ?s :weight ?x } FILTER(?x < ?m) } "
)
_QUERIES: Final = (
    ("SELECT DISTINCT ?s ?n (MAX(?b) AS ?most) (?c - ?a AS ?rise)", "WITHIN 1 HOUR SLIDING", "N!; A; B+; C"),
    ("SELECT *", "WITHIN 50 EVENTS", "A : B, N!; C?; D"),
    ("ASK", "WITHIN 1 MINUTE SLIDING", "A; (B; C)+; N!"),
    ("SELECT ?s", "", "(A & D); (B | C)"),
    ("SELECT ?d ?e", "", "D"),
    ("SELECT MAX ?d", "WITHIN 5 EVENTS SLIDING PARTITION BY ?s CONSUME BY ANY", "D:+; A"),
    ("SELECT ?d", "", "D; D2", "ORDER BY ?d LIMIT 1"),
    (
        "SELECT (ENDTIME() AS ?t) (COUNT(*) AS ?n) (SUM(?f) AS ?z)",
        "",
        "D; D2",
        "GROUP BY (ENDTIME()) HAVING (COUNT(*) > 1)",
    ),
)
_WINDOWS: Final = (
    "PREFIX : <urn:w:> SELECT * FROM STREAM :S [RANGE 10 SECONDS SLIDE 2 SECONDS] WHERE { ?s :v ?a . ?s :w ?b . "
    "?t :v ?a FILTER(?a > 1 && ?b < 5.5) FILTER(?a + 0.1 > ?b * 1.5) FILTER(STRLEN(STR(?a)) < 9) }",
    "PREFIX : <urn:w:> SELECT ?s (SUM(?a) AS ?t) (MIN(?b) AS ?m) FROM STREAM :S [RANGE 10 SECONDS SLIDE 2 SECONDS] "
    "WHERE { ?s :v ?a OPTIONAL { ?s :w ?b FILTER(?b != ?a) } MINUS { ?a :v ?b } "
    "{ ?s :w+ ?c } UNION { ?s :v ?c } BIND(?a + ?c AS ?x) } GROUP BY ?s ORDER BY ?t LIMIT 2",
)
_CONSTANTS: Final = tuple(
    f"PREFIX : <urn:w:> SELECT ?a FROM STREAM :S [RANGE 10 SECONDS SLIDE 2 SECONDS] WHERE {{{{ {where} }}}}"
    for where in (":{} :v ?a", "?s :v ?a FILTER(?a > {})")
)
_ABOVE: Final = (
    "PREFIX : <urn:w:> SELECT * WITHIN 1 HOUR SLIDING FROM STREAM S <urn:w:S> WHERE {{ SEQ(A; B) "
    "DEFINE GPM A ON S {{ ?s :v ?a FILTER(?a > {0}) }} DEFINE GPM B ON S {{ ?s :v ?b FILTER(?b > {0}) }} }}"
)
_EVENTS_IN_TIME: Final = (
    "PREFIX : <urn:w:> SELECT * FROM NAMED :S WIN [RANGE 10 SECONDS SLIDE 1 SECONDS] AS :w "
    "EVENT ON :w { ?s :v ?a } AS A EVENT ON :w { ?s :v ?b } AS B EVENT ON :w { ?s :w ?c } AS C "
    "WHERE { MATCH { LAST(A SEQ B) SEQ^c FIRST(C) } }"
)
_EVENTS: Final = 60
_TERMS: Final = 10_000
"""More than a dictionary has room for at first."""
_CEQL: Final = (
    "VOCAB <urn:w:> SELECT * FROM S WHERE A AS x; (A OR B)+ AS y FILTER x[v > 1] AND y[w < 2.5 OR k = 'x'] "
    "AND y[v <= w] PARTITION BY [k], [p] WITHIN 9 SECONDS",
    "VOCAB <urn:w:> SELECT LAST y FROM S WHERE A AS x; B+ AS y; A CONSUME BY ANY",
    "VOCAB <urn:w:> SELECT x, y FROM S WHERE (A AS x; B) OR (A AS y; A) PARTITION BY [p] WITHIN 9 EVENTS",
    "VOCAB <urn:w:> SELECT MAX x FROM S WHERE A AS x; B+ AS y WITHIN 9 [v]",
    "VOCAB <urn:w:> SELECT COUNT(*) AS n, AVG(y[v]) AS s, MAX(y[w]) AS m FROM S WHERE A AS x; B+ AS y WITHIN 9 EVENTS",
)

_INTERVALS: Final = (
    "SELECT * { { ?s <urn:w:v> ?a } SEQ { ?s <urn:w:v> ?b } FILTER(?a < ?b && getDURATION() < 50) "
    "OPTIONAL { ?s <urn:w:w>+ ?c } }",
    "SELECT * { { { ?s <urn:w:v> ?a } SEQ { ?t <urn:w:n> ?a } } EQUALS { ?u <urn:w:w> ?c } MINUS { ?s <urn:w:n> ?a } }",
    "SELECT * { { ?s <urn:w:n> ?a } SEQ { ?s <urn:w:n> ?b } } CONSUME CHRONOLOGICAL",
    "SELECT (getDURATION() AS ?t) (?a + 0.5 AS ?x) { ?s ?p ?a }",
)
_RULES: Final = ("CONSTRUCT { ?a <urn:w:n> ?s } { ?s <urn:w:n> ?a }",)
_INTERVAL_EVENTS: Final = 150


def warm_up(
    tell: Callable[[int, int, str], object] = lambda done, all, what: None, *, backwards: bool = False
) -> float:
    """Compile every kernel that is not on disk yet; returns the seconds that it took.

    `tell` is called before each step: how many are done, how many there are, and what is compiled now. `backwards`: the
    last step first; beside a process that begins with the first one each finds half of the kernels compiled.
    """
    begun = perf_counter()
    rdf = RdfStore()
    rdf.load("".join(_facts(i) for i in range(3)).encode(), format=RdfFormat.N_QUADS)
    kb = StoreKb(rdf)
    prepare(lambda note: None)
    steps: list[tuple[str, Callable[[], object]]] = []
    for form, window, seq, *tail in _QUERIES:
        text = _TEXT.format(form=form, window=window, seq=seq, gpms=_GPMS, tail=" ".join(tail))
        steps.append(("sequences", partial(_answer, text, kb)))
    steps.append(("reading of files", _read))
    if installed("pyarrow"):  # tables of tuple events are its tables
        steps += [("tuple events", partial(_answer_ceql, text)) for text in _CEQL]
    steps += [("intervals", partial(_answer_intervals, text)) for text in _INTERVALS]
    for report in Report:
        steps += [("windows", partial(_answer_windows, load(text, "rspql"), report, kb)) for text in _WINDOWS]
    steps.append(("windows", partial(_answer_windows, load(_EVENTS_IN_TIME, "rsepql"), Report.ISTREAM, kb)))
    steps.append(("queries that share", partial(_answer_together, kb)))
    steps.append(("queries that leave a family", partial(_leave, kb)))
    steps.append(("terms that are forgotten", _forget))
    for done, (what, step) in enumerate(reversed(steps) if backwards else steps):
        tell(done, len(steps), what)
        step()
    note_warm()
    return perf_counter() - begun


def _read() -> None:
    """Read one event as from a file, of many terms."""
    terms = TermDictionary()
    terms.reserve(_TERMS, 0)
    assembler = EventAssembler(terms, GENERATED_AT, lambda line, reason: None)
    quad = f"<urn:w:s> <urn:w:v> {_integer(1)} <urn:w:e> .\n<urn:w:e> {GENERATED_AT} {_integer(1)} .\n"
    for _ in assembler.read(Block.of(quad.encode()), 1):
        pass


def _answer(text: str, kb: StoreKb) -> None:
    terms = TermDictionary()
    run = QueryRun(compile_query(load(text), terms), terms, kb, capacities=Capacities.smallest())
    for low in range(0, _EVENTS, 20):
        events = [(1_000_000 * i, _graph(i)) for i in range(low, low + 20)]
        run.push("urn:w:S", encode_events(events, terms))
        run.advance()
    restore(save(run, terms), run.plan, TermDictionary(), kb)
    run.close()
    run.advance()


def _answer_ceql(text: str) -> None:
    """Over graphs and over rows, in memory so small that it has to grow and to be tidied."""
    terms = TermDictionary()
    run = TupleRun(compile_ceql(load(text, "ceql")), terms, capacities=Small.smallest())
    for low in range(0, _EVENTS, 20):
        numbers = range(low, low + 20)
        rows = {
            "time": numbers,
            "type": ["AB"[i % 2] for i in numbers],
            "k": ["xy"[i % 3 == 0] for i in numbers],
            "v": numbers,
            "w": [i / 4 for i in numbers],
            "p": [i % 2 for i in numbers],
        }
        table = pa.table(rows)
        if low % 40:  # such rows are fed past the order of events
            texts = {name: table.column(name).dictionary_encode() for name in ("type", "k")}
            table = pa.table({name: texts.get(name, table.column(name)) for name in table.column_names})
        for batch in read_rows(table):
            run.push("urn:w:S", batch)
            run.advance()
            for time, graph in row_graphs(batch, "urn:w:"):
                run.push("urn:w:S", encode_events([(time, list(graph))], terms))
        run.advance()
    restore(save(run, terms), run.plan, TermDictionary())
    run.close()
    run.advance()


def _answer_intervals(text: str) -> None:
    """More pairs, triples and terms than there is room for at first, paths, rows that are distinguished, rules."""
    terms, store = TermDictionary(), RdfStore()
    query = load(text, "epsparql")
    rules = () if query.consume is not None else tuple(load(rule, "epsparql") for rule in _RULES)
    run = IntervalRun(compile_intervals(query, rules, ("urn:w:S",)), terms, StoreKb(store))
    events = [(i, f"{_graph(i)} <urn:w:{i % 3}> <urn:w:n> <urn:w:n{i}> .") for i in range(_INTERVAL_EVENTS)]
    many = " ".join(f"<urn:w:{i % 3}> <urn:w:n> {_integer(i)} ." for i in range(40))
    for batch in (events, [(_INTERVAL_EVENTS, many)], [(_INTERVAL_EVENTS + 1, many)]):
        run.push("urn:w:S", encode_events(batch, terms))
        run.advance()
    run.collect()
    restore(save(run, terms), run.plan, TermDictionary(), StoreKb(store))
    run.close()
    run.advance()


def _answer_windows(query: RspQuery, report: Report, kb: StoreKb) -> None:
    """A query over a window, saved and restored in the middle."""
    terms = TermDictionary()
    plan = compile_rsp(query, terms, RspOptions(report))
    run = RspRun(plan, terms, kb)
    for low in range(0, _EVENTS, 20):
        events = [(1_000_000 * i, _graph(i)) for i in range(low, low + 20)]
        run.push("urn:w:S", encode_events(events, terms))
        run.advance()
        data, terms = save(run, terms), TermDictionary()
        run = restore(data, compile_rsp(query, terms, RspOptions(report)), terms, kb)
    run.close()
    run.advance()


def _answer_together(kb: StoreKb) -> None:
    """Queries that differ in a constant of a pattern, or of a comparison."""
    terms = TermDictionary()
    runs = Runs(terms)
    for i in range(3):
        for text in _CONSTANTS:
            plan = compile_rsp(load(text.format(i), "rspql"), terms)
            runs.add(RspRun(plan, terms, kb))
    runs.push("urn:w:S", encode_events([(1_000_000 * i, _graph(i)) for i in range(_EVENTS)], terms))


def _leave(kb: StoreKb) -> None:
    """One of the queries that differ in a threshold is saved: it continues alone."""
    terms = TermDictionary()
    runs = SharedRuns(terms)
    members = [QueryRun(compile_query(load(_ABOVE.format(i)), terms), terms, kb) for i in range(3)]
    for member in members:
        runs.add(member)
    for low in range(0, _EVENTS, 20):
        events = [(1_000_000 * i, _graph(i)) for i in range(low, low + 20)]
        runs.push("urn:w:S", encode_events(events, terms))
    runs.catch_up(members[1])
    save(members[1], terms)


def _forget() -> None:
    """Terms in each form in which they are looked up, ranked and written; then all but the constant are forgotten."""
    terms = TermDictionary()
    constant = terms.constant(parse_term("<urn:w:s>"))
    terms.intern_written(b'"\\u0061"')  # another form than the normal one
    ids = np.array([constant, terms.blank()], np.uint32)
    terms.plain_texts(ids)
    TermOrder(terms).ranks(ids)
    terms.json_rows(ids.reshape(2, 1), ['"s"'])
    terms.hold(ids)
    terms.collect()


def _facts(i: int) -> str:
    return f'<urn:w:{i}> <urn:w:name> "{i}" <urn:w:g> .\n<urn:w:{i}> <urn:w:weight> {_integer(i)} <urn:w:g> .\n'


def _graph(i: int) -> str:
    value = _integer(i) if i % 3 else f'"{i}"^^<urn:w:other>'
    more = f"<urn:w:{i % 3}> <urn:w:w> {_integer(i % 7)} ." if i % 4 == 0 else ""
    return f"<urn:w:{i % 3}> <urn:w:v> {value} . {more}"


def _integer(i: int) -> str:
    return f'"{i}"^^<http://www.w3.org/2001/XMLSchema#integer>'
