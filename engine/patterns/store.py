"""Patterns with GRAPH inside them: Oxigraph, a batch of events per query (matching.md, section 7).

Where it stands: event batch → a scratch store with a graph per event → solutions → rows. Top-level FILTERs are
not the store's business: they run on the stack machine and `exact`, as they do for BGPs. Filters inside
OPTIONAL, EXISTS and sub-SELECT follow Oxigraph (integers beyond 64 bits and NaN under `<` are errors, booleans
have no order).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

import numpy as np
from numpy.typing import NDArray
from pyoxigraph import BlankNode, NamedNode, Quad, QuerySolutions, RdfFormat, Store, parse

from oxiseq.engine import kinds
from oxiseq.engine.errors import LimitError
from oxiseq.engine.events.batch import EventBatch
from oxiseq.engine.events.time import to_text
from oxiseq.engine.kb import KnowledgeBase
from oxiseq.engine.kb_in_time import KbInTime, Materialised
from oxiseq.engine.matching.conditions import ConditionFilter
from oxiseq.engine.patterns.store_plan import FallbackGpm
from oxiseq.engine.terms.blanks import KbBlanks
from oxiseq.engine.terms.content import content_order
from oxiseq.engine.terms.dictionary import TermDictionary
from oxiseq.engine.terms.saved import KnownTerms, SavedTerms, State
from oxiseq.engine.terms.texts import Term

CHUNK: Final = 1024
"""Events of one scratch store."""
EVENT_GRAPH: Final = "urn:oxiseq:event:"
"""Before an event's number: the name of its graph in a scratch store."""

Rows = tuple[NDArray[np.int64], NDArray[np.uint32]]
"""event i64[k] ascending, values u32[k, columns]"""


class FallbackMatcher:
    """Answers GPMs by scratch stores. `kb` is read by patterns with GRAPH in them; None: no graphs."""

    def __init__(
        self,
        gpms: Sequence[FallbackGpm],
        terms: TermDictionary,
        kb: KnowledgeBase | None,
        most_rows: int,
        chunk: int = CHUNK,
        blanks: KbBlanks | None = None,
    ) -> None:
        self._gpms = gpms
        self._terms = terms
        self._most_rows = most_rows
        self._chunk = chunk
        self._predicates = [[terms.constant(p) for p in gpm.predicates] for gpm in gpms]
        self._filters = [ConditionFilter(gpm.conditions, gpm.columns, terms) for gpm in gpms]
        self._graphs = KbGraphs(kb, [gpm.graphs for gpm in gpms], terms, blanks)

    def match(self, batch: EventBatch) -> dict[int, Rows]:
        """Request number → its occurrences, kept columns only. Raises LimitError for too many rows."""
        parts: dict[int, list[Rows]] = {gpm.request: [] for gpm in self._gpms}
        for start in range(0, len(batch), self._chunk):
            piece = batch.slice(start, start + self._chunk)
            for request, (event, values) in self._match_piece(piece).items():
                parts[request].append((event + start, values))
        return {
            gpm.request: (
                np.concatenate([e for e, _ in parts[gpm.request]] or [np.zeros(0, np.int64)]),
                np.concatenate([v for _, v in parts[gpm.request]] or [np.zeros((0, len(gpm.keep)), np.uint32)]),
            )
            for gpm in self._gpms
        }

    def _match_piece(self, batch: EventBatch) -> dict[int, Rows]:
        wanted = [self._candidates(batch, ids) for ids in self._predicates]
        found: dict[int, Rows] = {}
        for in_place in (False, True):
            chosen = [i for i, gpm in enumerate(self._gpms) if gpm.in_place is in_place]
            if not chosen:
                continue
            shipped = np.logical_or.reduce([wanted[i] for i in chosen])
            with _Scratch(batch, np.flatnonzero(shipped), self._terms, self._graphs, in_place) as scratch:
                for i in chosen:
                    found[self._gpms[i].request] = self._answer(i, batch, scratch, np.flatnonzero(wanted[i]))
        return found

    def _candidates(self, batch: EventBatch, predicates: Sequence[int]) -> NDArray[np.bool_]:
        """Events that hold every mandatory predicate."""
        keep = np.ones(len(batch), np.bool_)
        owner = np.repeat(np.arange(len(batch)), np.diff(batch.offset))
        for predicate in predicates:
            hit = np.zeros(len(batch), np.bool_)
            hit[owner[batch.predicate == predicate]] = True
            keep &= hit
        return keep

    def _answer(self, i: int, batch: EventBatch, scratch: _Scratch, wanted: NDArray[np.int64]) -> Rows:
        gpm = self._gpms[i]
        events: list[int] = []
        flat: list[int] = []
        counts = np.zeros(len(batch), np.int64)
        for event, ids in scratch.solutions(gpm, wanted):
            counts[event] += 1
            if counts[event] > self._most_rows:
                where = f"mappings of GPM {gpm.name} on the event at {to_text(int(batch.time[event]))}"
                raise LimitError(self._most_rows + 1, self._most_rows, where)
            events.append(event)
            flat += ids
        event_column = np.array(events, np.int64)
        values = np.array(flat, np.uint32).reshape(len(events), len(gpm.columns))
        order = content_order(event_column, values, self._terms, self._graphs.now.blank_ids)
        event_column, values = event_column[order], values[order]
        keep = self._filters[i].keep(values)
        return event_column[keep], np.ascontiguousarray(values[keep][:, list(gpm.keep)])


@dataclass(frozen=True, slots=True, eq=False)
class CopiedGraphs:
    """Graphs of one version of the KB. A scratch store's events stand in `store` while they are matched."""

    store: Store
    names: tuple[NamedNode, ...] = ()
    blank: Mapping[str, int] = field(default_factory=dict)
    """Labels of the KB's blank nodes in the copy → their ids, in the order of their labels in the KB."""
    blank_ids: NDArray[np.uint32] = field(default_factory=lambda: np.zeros(0, np.uint32))
    """Those ids as an array, held."""
    labels: Mapping[int, str] = field(default_factory=dict)
    """The other way round: id → label in the copy."""


class KbGraphs:
    """The KB's graphs that patterns name: a `Reader` that copies them into a store."""

    def __init__(
        self, kb: KnowledgeBase | None, named: Sequence[tuple[NamedNode, ...] | None], terms: TermDictionary,
        known: KbBlanks | None,
    ) -> None:  # fmt: skip
        """`named`: per pattern the graphs that it names, None for all."""
        self._terms = terms
        self._known = known
        self._all = any(graphs is None for graphs in named)
        self._named = tuple(dict.fromkeys(g for graphs in named for g in graphs or ()))
        self._nothing = CopiedGraphs(Store())
        self._copies: Materialised[CopiedGraphs] | None = None
        if kb is not None and (self._all or self._named):
            (name,) = self.texts
            self._copies = KbInTime.of(kb).materialised(name, self)

    @property
    def now(self) -> CopiedGraphs:
        """Those of the KB that holds at the instant that is worked on. Raises KbError."""
        return self._nothing if self._copies is None else self._copies.now

    def answer(self, kb: KnowledgeBase) -> CopiedGraphs:
        """Copy them."""
        store = Store()
        fresh: dict[BlankNode, BlankNode] = {}
        blank: dict[str, int] = {}

        def renamed(term: Term) -> Term:
            """KB labels could be those of an event's blank nodes."""
            if not isinstance(term, BlankNode):
                return term
            if term not in fresh:
                fresh[term] = BlankNode(f"kb{len(fresh)}")
                known = self._terms.kb_blank if self._known is None else self._known.id
                blank[fresh[term].value] = known(term.value)
            return fresh[term]

        for s, p, o, g in self._quads(kb):
            subject = renamed(s)
            assert isinstance(subject, (NamedNode, BlankNode))  # nothing else stands there
            store.add(Quad(subject, p, renamed(o), g))
        labels = sorted(fresh, key=lambda node: node.value)
        return self._copied(store, {fresh[node].value: blank[fresh[node].value] for node in labels})

    def saved(self, made: CopiedGraphs, terms: SavedTerms) -> State:
        """The copy itself."""
        quads = made.store.dump(format=RdfFormat.N_QUADS)
        ids = terms.ids(made.blank_ids)
        return {"quads": np.frombuffer(quads or b"", np.uint8), "labels": [*made.blank], "ids": ids}

    def restored(self, state: State, terms: KnownTerms) -> CopiedGraphs:
        """The same copy."""
        store = Store()
        store.extend(parse(state["quads"].tobytes(), RdfFormat.N_QUADS))
        return self._copied(store, dict(zip(state["labels"], terms.ids(state["ids"]).tolist(), strict=True)))

    def _copied(self, store: Store, blank: Mapping[str, int]) -> CopiedGraphs:
        names = sorted((n for n in store.named_graphs() if isinstance(n, NamedNode)), key=lambda n: n.value)
        ids = np.array([*blank.values()], np.uint32)
        self._terms.hold(ids)
        return CopiedGraphs(store, tuple(names), blank, ids, {i: label for label, i in blank.items()})

    @property
    def texts(self) -> tuple[str, ...]:
        """What the KB is asked."""
        restricted = "" if self._all else f"VALUES ?g {{ {' '.join(str(g) for g in self._named)} }} "
        return (f"SELECT ?s ?p ?o ?g {{ {restricted}GRAPH ?g {{ ?s ?p ?o }} }}",)

    def _quads(self, kb: KnowledgeBase) -> Iterator[tuple[Term, NamedNode, Term, NamedNode]]:
        (text,) = self.texts
        for solution in kb.solutions(text):
            if isinstance(solution["g"], NamedNode):
                yield solution["s"], solution["p"], solution["o"], solution["g"]


class _Scratch:
    """A store that holds events as named graphs; with the KB's graphs beside them if `in_place`."""

    def __init__(
        self,
        batch: EventBatch,
        shipped: NDArray[np.int64],
        terms: TermDictionary,
        kb: KbGraphs,
        in_place: bool,
    ) -> None:
        self._terms = terms
        self._shipped = shipped
        self._in_place = in_place
        copied = kb.now if in_place else CopiedGraphs(Store())
        self._store = copied.store
        self._names = copied.names
        self._batch = batch
        self._blank: dict[str, int] = dict(copied.blank)
        self._ids: dict[Term, int] = {}

    def __enter__(self) -> _Scratch:
        for event in self._shipped:
            self._store.add_graph(NamedNode(f"{EVENT_GRAPH}{event}"))
        self._store.extend(parse(self._text(), RdfFormat.N_QUADS))
        return self

    def __exit__(self, *_: object) -> None:
        if self._in_place:
            for event in self._shipped:
                self._store.remove_graph(NamedNode(f"{EVENT_GRAPH}{event}"))

    def _text(self) -> str:
        """The shipped events as N-Quads; blank nodes keep the labels of the dictionary."""
        batch, lines = self._batch, []
        used = np.unique(np.concatenate([batch.subject, batch.predicate, batch.object]))
        text = {int(i): self._terms.text(int(i)) for i in used}
        for i in used[self._terms.columns.kind[used] == kinds.BLANK]:
            self._blank[text[int(i)][2:]] = int(i)
        subject, predicate, object_ = batch.subject.tolist(), batch.predicate.tolist(), batch.object.tolist()
        for event in self._shipped:
            graph = f"<{EVENT_GRAPH}{event}> ."
            for t in range(batch.offset[event], batch.offset[event + 1]):
                lines.append(f"{text[subject[t]]} {text[predicate[t]]} {text[object_[t]]} {graph}")
        return "\n".join(lines)

    def solutions(self, gpm: FallbackGpm, wanted: NDArray[np.int64]) -> Iterator[tuple[int, list[int]]]:
        """(event, ids of the columns) of each solution; `wanted` are the events that may have one."""
        if len(wanted) == 0:
            return
        query = gpm.query(self._names, by_event=gpm.by_event)
        width = len(gpm.columns)
        if not gpm.by_event:
            prefix = len(EVENT_GRAPH)
            for solution in self._select(query, None):
                name = solution[0].value
                if name.startswith(EVENT_GRAPH):  # else a graph of the KB
                    yield int(name[prefix:]), [self._id(solution[i + 1]) for i in range(width)]
            return
        for event in wanted.tolist():
            for solution in self._select(query, NamedNode(f"{EVENT_GRAPH}{event}")):
                yield event, [self._id(solution[i]) for i in range(width)]

    def _select(self, query: str, graph: NamedNode | None) -> QuerySolutions:
        solutions = self._store.query(query, default_graph=graph)
        assert isinstance(solutions, QuerySolutions)  # it is a SELECT
        return solutions

    def _id(self, term: Term | None) -> int:
        if term is None:
            return 0
        known = self._ids.get(term)
        if known is None:
            if isinstance(term, BlankNode):
                known = self._blank.get(term.value) or self._terms.blank()  # or one that BNODE() made
            else:
                known = self._terms.intern(term)
            self._ids[term] = known
        return known
