"""The store that WHERE is asked of: contents of windows, the KB's graphs, the rows of MATCH.

Where it stands: what enters and leaves windows → **a store that follows** → solutions → rows of term ids. A triple is
in a window's graph as long as an event in the window has it: they are counted. Of the KB only those graphs are copied
that the query names, and only predicates that it asks for; anew when another version of the KB holds.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Final, TypeAlias

import numpy as np
from numpy.typing import NDArray
from pyoxigraph import BlankNode, DefaultGraph, NamedNode, Quad, QuerySolutions, Store

from oxiseq.engine import kinds
from oxiseq.engine.errors import KbError
from oxiseq.engine.events.batch import EventBatch
from oxiseq.engine.kb import KnowledgeBase, Solution
from oxiseq.engine.kb_in_time import KbInTime, Materialised
from oxiseq.engine.rsp.asking import ROW_MARK, match_graph, row_node, row_number, value_predicate
from oxiseq.engine.rsp.plan import KbNeeds, RspPlan
from oxiseq.engine.rsp.reports import FullRows
from oxiseq.engine.terms.blanks import KbBlanks
from oxiseq.engine.terms.dictionary import TermDictionary
from oxiseq.engine.terms.saved import KnownTerms, SavedTerms, State
from oxiseq.engine.terms.texts import Term

Ids: TypeAlias = NDArray[np.uint32]
Graph: TypeAlias = NamedNode | DefaultGraph
_DEFAULT: Final = DefaultGraph()
_GRAPHS: Final = "SELECT DISTINCT ?g WHERE { GRAPH ?g {} }"
_SPARE: Final = 4096
"""Labels that may be known of blank nodes that have gone."""


class Counted:
    """One graph of the store, whose triples are counted."""

    def __init__(
        self, store: Store, graph: Graph, terms: TermDictionary, predicates: Iterable[NamedNode] | None
    ) -> None:
        self._store = store
        self._graph = graph
        self._terms = terms
        self._counts: dict[tuple[int, int, int], int] = {}
        self._predicates = None if predicates is None else np.array([terms.constant(p) for p in predicates], np.uint32)

    def insert(self, batch: EventBatch) -> None:
        """Events come in."""
        counts, new = self._counts, []
        for triple in self._triples(batch):
            count = counts.get(triple, 0)
            counts[triple] = count + 1
            if not count:
                new.append(triple)
        self._store.extend([self._quad(triple) for triple in new])

    def evict(self, batch: EventBatch) -> None:
        """Events go."""
        counts = self._counts
        for triple in self._triples(batch):
            count = counts[triple] - 1
            if count:
                counts[triple] = count
            else:
                del counts[triple]
                self._store.remove(self._quad(triple))

    def _triples(self, batch: EventBatch) -> Iterator[tuple[int, int, int]]:
        """Of those that a pattern may ask for; one that an event has twice comes twice, on both ways."""
        columns = batch.ids
        if self._predicates is not None:
            asked = np.isin(batch.predicate, self._predicates)
            columns = (batch.subject[asked], batch.predicate[asked], batch.object[asked])
        return zip(*(column.tolist() for column in columns), strict=True)

    def _quad(self, triple: tuple[int, int, int]) -> Quad:
        subject, predicate, object_ = (self._terms.term(i) for i in triple)
        assert isinstance(subject, NamedNode | BlankNode) and isinstance(predicate, NamedNode)
        return Quad(subject, predicate, object_, self._graph)

    def blank_ids(self) -> set[int]:
        """Ids that may be blank nodes."""
        return {i for s, _, o in self._counts for i in (s, o)}

    def __len__(self) -> int:
        return len(self._counts)


class Dataset:
    """The store of one query."""

    def __init__(self, plan: RspPlan, terms: TermDictionary, kb: KbInTime, blanks: KbBlanks) -> None:
        self._terms = terms
        self._plan = plan
        self._store = Store()
        default = Counted(self._store, _DEFAULT, terms, plan.default_predicates)
        self.graphs: list[tuple[Counted, ...]] = []
        """By content the graphs that follow it."""
        for number, content in enumerate(plan.contents):
            named = Counted(self._store, content.graph(number), terms, content.predicates)
            if content.named:
                self._store.add_graph(content.graph(number))  # one that holds nothing is a graph, too
            self.graphs.append((*([named] if content.named else []), *([default] if content.default else [])))
        self._labels: dict[str, int] = {}
        """Of blank nodes in the store → their ids."""
        self._rows: list[dict[bytes, tuple[int, list[int]]]] = [{} for _ in plan.matches]
        """By MATCH and key of a mapping: the number of its row, its values."""
        self._next_row = 0
        self.spans: dict[int, list[int]] = {}
        """By the number of a row: start and end."""
        self.kb = KbCopy(kb, plan.kb, self._store, default, terms, blanks)

    def enter(self, content: int, events: Iterable[EventBatch]) -> None:
        """Events come into a window."""
        for batch in events:
            self._learn(batch)
            for graph in self.graphs[content]:
                graph.insert(batch)

    def leave(self, content: int, events: Iterable[EventBatch]) -> None:
        """Events leave it."""
        for batch in events:
            for graph in self.graphs[content]:
                graph.evict(batch)

    def _learn(self, batch: EventBatch) -> None:
        """The labels of blank nodes that come in."""
        nodes = np.concatenate([batch.subject, batch.object])
        self._name(np.unique(nodes[_is_blank(nodes, self._terms)]))

    def _name(self, blank: Ids) -> None:
        for i in blank.tolist():
            self._labels[self._terms.text(i)[2:]] = i
        if len(self._labels) > _SPARE + 2 * (self.triples + sum(map(len, self._rows))):
            live = {i for each in self.graphs for graph in each for i in graph.blank_ids()}
            live |= {i for rows in self._rows for _, values in rows.values() for i in values}
            self._labels = {label: i for label, i in self._labels.items() if i in live}

    @property
    def triples(self) -> int:
        """How many the windows' graphs hold."""
        return sum(len(graph) for each in self.graphs for graph in each)

    # --- MATCH --------------------------------------------------------------------------------------

    def set_rows(self, match: int, rows: FullRows) -> None:
        """The mappings of a MATCH, each once."""
        keys = rows.keys()
        now, known = set(keys), self._rows[match]
        for key in [key for key in known if key not in now]:
            self._drop_row(match, key)
        self.add_rows(match, rows.take(np.array([i for i, key in enumerate(keys) if key not in known], np.int64)))

    def add_rows(self, match: int, rows: FullRows) -> None:
        """Mappings that come to those of a MATCH."""
        self._name(np.unique(rows.values[_is_blank(rows.values, self._terms)]))
        for key, values, span in zip(rows.keys(), rows.values.tolist(), rows.span.tolist(), strict=True):
            number = self._next_row
            self._next_row += 1
            self._rows[match][key] = number, values
            self._store.extend(self._quads(row_node(number), values, match_graph(match)))
            if span:
                self.spans[number] = span

    def drop_rows(self, match: int, rows: FullRows) -> None:
        """Mappings that go."""
        for key in rows.keys():  # noqa: SIM118  no dictionary
            self._drop_row(match, key)

    def _drop_row(self, match: int, key: bytes) -> None:
        number, values = self._rows[match].pop(key)
        self.spans.pop(number, None)
        for quad in self._quads(row_node(number), values, match_graph(match)):
            self._store.remove(quad)

    def _quads(self, node: NamedNode, values: Sequence[int], graph: NamedNode) -> Iterator[Quad]:
        yield Quad(node, ROW_MARK, ROW_MARK, graph)
        for place, i in enumerate(values):
            if i:
                yield Quad(node, value_predicate(place), self._terms.term(i), graph)

    # --- answers ------------------------------------------------------------------------------------

    def solutions(self, text: str, width: int, with_row: bool) -> tuple[Ids, list[int]]:
        """The solutions of a SELECT as ids u32[k, width]; with `with_row` also the number of each one's row, which is
        the first of the columns asked for. Raises KbError where Oxigraph refuses."""
        try:
            found = self._store.query(text)
        except (SyntaxError, ValueError, OSError) as error:
            raise KbError(f"Oxigraph refuses the query: {error}") from error
        assert isinstance(found, QuerySolutions)
        ids: dict[Term | None, int] = {None: 0}
        flat: list[int] = []
        rows: list[int] = []
        first, count = int(with_row), 0
        for solution in found:
            count += 1
            if with_row:
                rows.append(row_number(solution[0]))
            for i in range(first, first + width):
                term = solution[i]
                known = ids.get(term)
                if known is None:
                    known = ids[term] = self._id(term)
                flat.append(known)
        return np.array(flat, np.uint32).reshape(count, width), rows

    def _id(self, term: Term) -> int:
        if isinstance(term, BlankNode):
            return self._labels.get(term.value) or self.kb.labels.get(term.value) or self._terms.blank()
        return self._terms.intern(term)


def _is_blank(ids: Ids, terms: TermDictionary) -> NDArray[np.bool_]:
    found: NDArray[np.bool_] = terms.columns.kind[ids] == kinds.BLANK
    return found


@dataclass(frozen=True, slots=True, eq=False)
class Copied:
    """What a query asks of one version of the KB. default: triples of the default graph, each batch an event; named: of
    the named graphs, by name in order; empty: those among them that are there without any of the triples."""

    default: tuple[EventBatch, ...]
    named: dict[NamedNode, EventBatch]
    empty: frozenset[NamedNode]


class KbCopy:
    """What a query asks of the KB, beside the windows: a `Reader` of graphs, which the store follows."""

    def __init__(
        self, kb: KbInTime, needs: KbNeeds, store: Store, default: Counted, terms: TermDictionary, blanks: KbBlanks,
    ) -> None:  # fmt: skip
        self._kb = kb
        self._needs = needs
        self._store = store
        self._default = default
        self._terms = terms
        self._version: int | None = None
        self._blanks = blanks
        self._copies: Materialised[Copied] | None = None if needs.nothing else kb.materialised("graphs", self)
        self._inserted: list[tuple[Counted, EventBatch]] = []
        self._named: dict[NamedNode, Counted] = {}
        self.names: list[NamedNode] = []
        """Of the graphs asked for."""
        self.labels: dict[str, int] = {}
        """Labels of the KB's blank nodes in the copy → their ids."""

    def refresh(self) -> None:
        """Go on to the KB that holds at the instant that is worked on. Raises KbError."""
        if self._copies is None or self._kb.version == self._version:
            return
        copied, self._version = self._copies.now, self._kb.version
        for graph, batch in self._inserted:
            graph.evict(batch)
        for name in self._named:
            self._store.remove_graph(name)
        self._inserted = []
        for batch in copied.default:
            self._insert(self._default, batch)
        self.names = [*copied.named]
        for name, batch in copied.named.items():
            graph = self._named.get(name) or Counted(self._store, name, self._terms, None)
            self._named[name] = graph
            self._insert(graph, batch)
        for name in copied.empty:
            self._store.add_graph(name)

    def _insert(self, graph: Counted, batch: EventBatch) -> None:
        graph.insert(batch)
        self._inserted.append((graph, batch))
        nodes = np.unique(np.concatenate([batch.subject, batch.object]))
        for i in nodes[_is_blank(nodes, self._terms)].tolist():
            self.labels[self._terms.text(i)[2:]] = i

    # --- a reader -----------------------------------------------------------------------------------

    @property
    def texts(self) -> tuple[str, ...]:
        """What is asked."""
        needs = self._needs
        if needs.graphs is None:
            return *self._of_default(), self._triples("GRAPH ?g", " ?g"), _GRAPHS
        named = [text for name in needs.graphs for text in (self._triples(f"GRAPH {name}"), _is_there(name))]
        return *self._of_default(), *named

    def answer(self, kb: KnowledgeBase) -> Copied:
        """Copy what is asked for."""
        default = tuple(self._batch(kb.solutions(text)) for text in self._of_default())
        if self._needs.graphs is None:
            return self._all(kb, default)
        named = {name: self._batch(kb.solutions(self._triples(f"GRAPH {name}"))) for name in self._needs.graphs}
        holds_none = [name for name, batch in named.items() if not len(batch.subject)]
        empty = frozenset(name for name in holds_none if any(True for _ in kb.solutions(_is_there(name))))
        return Copied(default, named, empty)

    def _all(self, kb: KnowledgeBase, default: tuple[EventBatch, ...]) -> Copied:
        """With each graph that there is."""
        names = sorted((s["g"] for s in kb.solutions(_GRAPHS) if isinstance(s["g"], NamedNode)), key=str)
        found: dict[NamedNode, list[Solution]] = {name: [] for name in names}
        for solution in kb.solutions(self._triples("GRAPH ?g", " ?g")):
            if solution[3] in found:
                found[solution[3]].append(solution)
        named = {name: self._batch(solutions) for name, solutions in found.items()}
        return Copied(default, named, frozenset(name for name, batch in named.items() if not len(batch.subject)))

    def _of_default(self) -> list[str]:
        """The questions for the default graph."""
        graphs = [f"GRAPH {name}" for name in self._needs.merged]
        return [self._triples(graph) for graph in ([""] if self._needs.default else []) + graphs]

    def _triples(self, graph: str, column: str = "") -> str:
        only = ""
        if self._needs.predicates is not None:
            only = f"VALUES ?p {{ {' '.join(str(p) for p in self._needs.predicates)} }} "
        return f"SELECT ?s ?p ?o{column} WHERE {{ {only}{graph} {{ ?s ?p ?o }} }}"

    def _batch(self, solutions: Iterable[Solution]) -> EventBatch:
        flat = [self._id(solution[i]) for solution in solutions for i in range(3)]
        ids = np.array(flat, np.uint32).reshape(-1, 3)
        columns = (np.ascontiguousarray(ids[:, i]) for i in range(3))
        batch = EventBatch(np.zeros(1, np.int64), np.array([0, len(ids)], np.int64), *columns)
        self._terms.hold(*batch.ids)
        return batch

    def _id(self, term: Term) -> int:
        return self._blanks.id(term.value) if isinstance(term, BlankNode) else self._terms.intern(term)

    def saved(self, made: Copied, terms: SavedTerms) -> State:
        """For a snapshot."""
        for batch in (*made.default, *made.named.values()):
            for ids in batch.ids:
                terms.ids(ids)
        return {
            "default": [batch.save() for batch in made.default], "names": [name.value for name in made.named],
            "named": [batch.save() for batch in made.named.values()], "empty": [name.value for name in made.empty],
        }  # fmt: skip

    def restored(self, state: State, terms: KnownTerms) -> Copied:
        """What `saved` was given."""
        default, named = ([EventBatch.restored(each, terms) for each in state[key]] for key in ("default", "named"))
        for batch in (*default, *named):
            self._terms.hold(*batch.ids)
        names = [NamedNode(name) for name in state["names"]]
        empty = frozenset(NamedNode(name) for name in state["empty"])
        return Copied(tuple(default), dict(zip(names, named, strict=True)), empty)


def _is_there(name: NamedNode) -> str:
    """Whether the KB has a graph: one without the triples asked for still counts in OPTIONAL, COUNT..."""
    return f"SELECT (1 AS ?there) WHERE {{ GRAPH {name} {{}} }}"
