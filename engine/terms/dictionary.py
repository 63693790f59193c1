"""The term dictionary: every RDF term of streams, queries and KB answers gets one small integer.

In the flow: reader → **ids** → event batches, graph patterns, kernels. Literals are brought to the
store's normal form first, so equal ids are equal terms in the sense of a join (semantics.md, section 7).

Texts and values are in flat arrays that double as they grow (kernels/terms/table.py); kernels read and fill
them without touching a Python object, and pyoxigraph's objects are made when somebody looks.

**Terms are freed.** Streams bring terms that occur once: prices, sensors, blank nodes. `collect_if_due`, which
drivers call between batches, frees every id that nothing holds any more, and gives its number again later. Held
are: `constant`s; the ids in arrays that `hold` registered, as long as the arrays live; and what registered
holders show (pending events, rows of the window, live keys). Holding is conservative: any integer that could be
an id counts as one. Whoever caches something by id drops it when `generation` has changed.

**Blank nodes** belong to their event and have no name; only those of the KB are known again, by their labels in the
store, from one answer to the next, as long as anything holds them.

Memory per live term: about 60 bytes and its text. Not safe for several threads.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Final, Protocol, TypeAlias
from weakref import WeakSet, ref

import numpy as np
from numpy.typing import NDArray
from pyoxigraph import BlankNode, Literal, NamedNode, Triple

from oxiseq.engine import kinds
from oxiseq.engine.bounds import BOUNDS
from oxiseq.engine.errors import LimitError
from oxiseq.engine.kernels.events import triples
from oxiseq.engine.kernels.memory.growing import longer
from oxiseq.engine.kernels.memory.pointers import Addressed, Replaceable, address_of
from oxiseq.engine.kernels.output import texts as result_texts
from oxiseq.engine.kernels.terms import table
from oxiseq.engine.kernels.terms import texts as term_texts
from oxiseq.engine.kernels.terms.columns import TermColumns
from oxiseq.engine.kernels.terms.plain import SCRATCH_SPARE
from oxiseq.engine.terms.normal import normalise, normalise_triple
from oxiseq.engine.terms.texts import Term, parse_term, read_term, term_text
from oxiseq.engine.terms.value import IRI_VALUE, term_value

TermId: TypeAlias = int
AnyIds: TypeAlias = NDArray[np.integer]

UNBOUND: Final = 0
MAX_TERMS: Final = 2**31 - 2
"""Entries are numbered in 32 bits."""
CACHE_SIZE: Final = 1 << 17
"""Entries of the caches of Python objects; a full cache is emptied."""
COLLECT_FROM: Final = 1 << 17
"""New terms after which a collection is due, at the least."""
COLLECT_TEXT: Final = 32 << 20
"""Bytes of new texts after which one is due, too: a term may be long."""
MANY: Final = 8
"""Terms that are new from which on it is faster to look them up together."""
_LABELS: Final = 16
"""Places for blank nodes of a graph to begin with, a power of two."""
_PURGE_FROM: Final = 1024
"""Arrays held from which on those that are gone are struck off."""
_SCANNED_PER_TERM: Final = 4
"""Ids that a collection may look through for each new term: bounds its share of the whole work."""
_TEXT_PER_SCANNED: Final = 8
"""Bytes of new texts for each id that it may look through."""


class Holder(Protocol):
    """Running state that holds ids."""

    def held_ids(self) -> Iterable[AnyIds]:
        """Arrays with all ids that it may still read; other numbers among them do no harm."""


class TermDictionary(Addressed[table.TermArrays]):
    """Terms ↔ ids. Id 0 is "unbound", the first term gets 1."""

    def __init__(self, capacity: int = 1024, *, nests: bool = False) -> None:
        """`nests`: it takes triple terms that hold blank nodes; then it cannot be saved."""
        self._nests = nests
        self._ids: dict[Term, TermId] = {}
        self.lookup: Callable[[Term], TermId | None] = self._ids.get
        """A fast first try: the id of a term that was met lately in exactly this form, else None."""
        self._objects: dict[TermId, Term] = {}
        self._kb_blanks: dict[str, TermId] = {}
        self._blanks_in: dict[TermId, tuple[TermId, ...]] = {}
        """The blank nodes that triple terms hold."""
        self._nested: dict[str, TermId] = {}
        """These blank nodes by the labels that `term` gives them."""
        self._set_scratch(1 << 12)
        self._labels = np.zeros((_LABELS + 1, 4), np.int64)
        """For the blank nodes of a graph, unless it has many."""
        self._pinned = np.zeros(0, np.uint8)
        self._held: list[ref[AnyIds]] = []
        self._purge_at = _PURGE_FROM
        self._holders: WeakSet[Holder] = WeakSet()
        self._due, self._due_text = COLLECT_FROM, COLLECT_TEXT
        self.bounds = BOUNDS
        """What a query over these terms may do within an instant."""
        self.generation = 0
        """Changes when ids have been freed: what is kept by id is void then."""
        arrays = _allocate(max(capacity, 16))
        self._pointers = Replaceable(arrays)
        self.address = self._pointers.address
        """Of the pointer table for kernels (`D` of kernels/terms/table.py), always the same."""
        self._replace(arrays)

    def __len__(self) -> int:
        """One more than the largest id ever given; 1 when there was none."""
        return int(self._counts[table.IDS])

    @property
    def live(self) -> int:
        """How many terms have an id."""
        return len(self) - 1 - int(self._counts[table.FREE])

    @property
    def nbytes(self) -> int:
        """Bytes of its tables, without Python's objects, of which there are fewer than terms."""
        return self._arrays.bytes

    @property
    def columns(self) -> TermColumns:
        """The columns as they are now. Growth replaces the arrays: fetch them again for every batch."""
        return self._columns

    # --- terms → ids --------------------------------------------------------------------------------

    def intern(self, term: Term) -> TermId:
        """The id of an IRI, a literal or a triple term without blank nodes; a new one when it is not known.

        Raises ValueError for a blank node, which has no meaning outside its event (see `blank`).
        """
        known = self._ids.get(term)
        if known is None:
            known = self._intern(term)
            if len(self._ids) >= CACHE_SIZE:
                self._ids.clear()
            self._ids[term] = known
        return known

    def constant(self, term: Term) -> TermId:
        """`intern` for a term of a query: its id is never freed."""
        known = self.intern(term)
        self._pinned[known] = 1
        return known

    def intern_all(self, terms: Iterable[Term]) -> NDArray[np.uint32]:
        """The ids of many terms, u32 in their order. Raises ValueError like `intern`."""
        wanted = list(terms)
        known = list(map(self.lookup, wanted))
        if None in known:
            fresh = list(dict.fromkeys(term for term, i in zip(wanted, known, strict=True) if i is None))
            ids = dict(zip(fresh, map(self.intern, fresh), strict=True)) if len(fresh) < MANY else self._many(fresh)
            known = [ids[term] if i is None else i for term, i in zip(wanted, known, strict=True)]
        return np.array(known, np.uint32)

    def intern_different(self, terms: Sequence[NamedNode | Literal]) -> dict[Term, TermId]:
        """The ids of terms that are different, looked up together, by their texts."""
        texts = [term_text(term).encode() for term in terms]
        ends = np.cumsum([0, *map(len, texts)], dtype=np.int64)
        ids = self.intern_texts(np.frombuffer(b"".join(texts), np.uint8), ends)
        return dict(zip(terms, ids.tolist(), strict=True))

    def intern_written(self, token: bytes) -> TermId:
        """The id of a term in N-Triples form (`<http://a>`, `"1"^^<...>`, `"x"@en`), in UTF-8.

        Another form than the normal one is noted beside it. Raises ValueError when the text is not exactly one
        IRI, literal or triple term.
        """
        known = self._find(token)
        if known == UNBOUND:
            known = self.intern(parse_term(token.decode()))
            if self._find(token) == UNBOUND:
                self.reserve(1, len(token))
                table.alias_text(self.address, self._copied(token), len(token), known)
        return known

    def intern_texts(self, data: NDArray[np.uint8], ends: NDArray[np.int64]) -> NDArray[np.uint32]:
        """The ids of many texts: number i is data[ends[i]:ends[i + 1]]. Raises ValueError like `intern_written`."""
        ids = np.zeros(len(ends) - 1, np.uint32)
        text = np.concatenate([data[ends[0] : ends[-1]], np.zeros(table.PADDING, np.uint8)])
        ends = ends - ends[0]
        scratch = np.zeros(int(np.diff(ends).max(initial=0)) + SCRATCH_SPARE, np.uint8)
        done = 0
        while done < len(ids):
            self.reserve(len(ids) - done, int(ends[-1] - ends[done]) + SCRATCH_SPARE * (len(ids) - done))
            done = int(term_texts.intern_texts(self.address, address_of(text), ends, done, ids, address_of(scratch)))
            if done < len(ids):
                ids[done] = self.intern_written(text[ends[done] : ends[done + 1]].tobytes())
                done += 1
        return ids

    def intern_triples(self, text: bytes) -> NDArray[np.uint32]:
        """The ids of the terms of a graph as pyoxigraph writes it in N-Triples: u32[3, n], the subjects, predicates and
        objects of n lines. Blank nodes are fresh. Raises ValueError for a triple term that holds a blank node."""
        ids, labels = np.empty((3, text.count(b"\n")), np.uint32), self._labels
        while True:
            data = self._copied(text)
            scratch = data + len(text) + table.PADDING
            done = int(triples.read_triples(self.address, data, len(text), ids, labels, scratch))
            if done >= 0:
                return ids
            if done == triples.UNUSUAL_TERM:
                start, size = labels[0, 1:3].tolist()
                self.intern_written(text[start : start + size])
            elif done == triples.MANY_LABELS:
                labels = np.zeros((2 * len(labels) - 1, 4), np.int64)
            else:
                self.reserve(ids.size, len(text) + SCRATCH_SPARE)

    def blank(self) -> TermId:
        """The id of a fresh blank node."""
        fresh = int(table.make_blank(self.address))
        if fresh == UNBOUND:
            self.reserve(1, 0)
            fresh = int(table.make_blank(self.address))
        return fresh

    def blanks(self, count: int, serials: NDArray[np.int64] | None = None) -> NDArray[np.uint32]:
        """The ids of fresh blank nodes; with these serial numbers, which nobody has, if they are given."""
        ids = np.zeros(count, np.uint32)
        self.reserve(count, 0)
        made = self.blanks_made
        table.make_blanks(self.address, ids)
        if serials is not None:
            self._columns.exact[ids] = serials
            self._counts[table.BLANKS] = max(made, int(serials.max(initial=0)))
        return ids

    def kb_blank(self, label: str) -> TermId:
        """The id of the knowledge base's blank node that has this label in the store."""
        known = self._kb_blanks.get(label)
        if known is None:
            known = self._kb_blanks[label] = self.blank()
        return known

    @property
    def kb_blanks(self) -> Mapping[str, TermId]:
        """Those that have an id, by label."""
        return self._kb_blanks

    def name_kb_blanks(self, labels: Iterable[str], ids: Iterable[TermId]) -> None:
        """These blank nodes are the KB's."""
        self._kb_blanks.update(zip(labels, ids, strict=True))

    @property
    def blanks_made(self) -> int:
        """The last serial number of a blank node."""
        return int(self._counts[table.BLANKS])

    def skip_blanks(self, first: int, last: int) -> bool:
        """Give none of the serial numbers up to `last` from now on; whether all from `first` on were free."""
        free = first > self.blanks_made
        self._counts[table.BLANKS] = max(last, self.blanks_made)
        return free

    def computed(self, term: Term, known: Mapping[str, TermId]) -> TermId:
        """The id of a term that an expression has made. A blank node that is in `known` by its label, or in a triple
        term, keeps its own; another one is new. 0 for a triple term that holds a blank node, unless it `nests`."""
        if isinstance(term, BlankNode):
            return known.get(term.value) or self._nested.get(term.value) or self.blank()
        if not isinstance(term, Triple) or not any(True for _ in blanks_in(term)):
            return self.intern(term)
        if not self._nests:
            return UNBOUND
        return self.intern_nested(term, {node: self.computed(node, known) for node in blanks_in(term)})

    def intern_nested(self, term: Triple, blanks: Mapping[BlankNode, TermId]) -> TermId:
        """`intern` for a triple term with these blank nodes, which live as long as it does."""
        own = normalise_triple(relabelled(term, lambda node: BlankNode(self.text(blanks[node])[2:])))
        text = term_text(own).encode()
        known = self._find(text) or self._add(own, text)
        if known not in self._blanks_in:
            self._blanks_in[known] = tuple(blanks.values())
            self._nested |= {self.text(each)[2:]: each for each in blanks.values()}
        return known

    def find(self, term: Term) -> TermId:
        """The id of a term, 0 when it has none; nothing is added. Blank nodes are never found."""
        if isinstance(term, BlankNode):
            return UNBOUND
        known = self._ids.get(term) or self._find(term_text(term).encode())
        if known == UNBOUND and isinstance(term, Literal):
            return self._find(str(normalise(term)).encode())
        return known

    # --- ids → terms --------------------------------------------------------------------------------

    def term(self, term_id: TermId) -> Term:
        """The term of an id, in normal form; a blank node is labelled `b` and its serial number.

        Raises KeyError for 0 and for an id that is not given.
        """
        known = self._objects.get(term_id)
        if known is None:
            text = self.text(term_id)
            known = BlankNode(text[2:]) if text[0] == "_" else read_term(text)
            if len(self._objects) >= CACHE_SIZE:
                self._objects.clear()
            self._objects[term_id] = known
        return known

    def text(self, term_id: TermId) -> str:
        """The term of an id in N-Triples form. Raises KeyError like `term`."""
        kind = self._columns.kind[term_id] if 0 < term_id < len(self) else kinds.NONE
        if kind == kinds.NONE:
            raise KeyError(term_id)
        if kind == kinds.BLANK:
            return f"_:b{self._columns.exact[term_id]}"
        entry = self._own[term_id]
        start = self._start[entry]
        return str(self._text[start : start + self._length[entry]], "utf-8")

    def texts(self, ids: AnyIds) -> tuple[NDArray[np.uint8], NDArray[np.int64]]:
        """The texts of many terms (n ids that are given, or 0 for an empty text): UTF-8 and i64[n + 1], where each
        of them begins and the last ends."""
        wanted = np.require(ids, np.int64, ("C", "W"))
        ends = np.zeros(len(wanted) + 1, np.int64)
        term_texts.measure_texts(self.address, wanted, ends)
        out = np.zeros(int(ends[-1]), np.uint8)
        term_texts.write_texts(self.address, wanted, ends, address_of(out))
        return out, ends

    def plain_texts(self, ids: AnyIds) -> tuple[NDArray[np.uint8], NDArray[np.int64]]:
        """Like `texts`: IRIs without brackets, literals' lexical forms, blank nodes with their labels."""
        wanted = np.require(ids, np.int64, ("C", "W"))
        ends = np.zeros(len(wanted) + 1, np.int64)
        out = np.zeros(int(result_texts.plain_texts(self.address, wanted, ends, 0)), np.uint8)
        if len(out):
            result_texts.plain_texts(self.address, wanted, ends, address_of(out))
        return out, ends

    def json_rows(self, rows: NDArray[np.uint32], names: Sequence[str]) -> bytes:
        """Rows (u32[n, c], no triple terms) as SPARQL JSON's binding objects, a comma before each.

        `names` are the columns' names in JSON."""
        wanted = np.require(rows, np.uint32, ("C", "W"))
        heads = [f"{name}: ".encode() for name in names]
        text = np.frombuffer(bytearray(b"".join(heads)), np.uint8)
        ends = np.cumsum([0, *map(len, heads)])
        out = np.zeros(int(result_texts.json_rows(self.address, wanted, text, ends, 0)), np.uint8)
        if len(out):
            result_texts.json_rows(self.address, wanted, text, ends, address_of(out))
        return out.tobytes()

    def text_bytes(self, ids: AnyIds) -> int:
        """How long the texts of these terms are together; 0 and blank nodes have none."""
        return int(self._length[self._own[ids]].sum())

    # --- freeing ------------------------------------------------------------------------------------

    def hold(self, *arrays: AnyIds) -> None:
        """Keep the ids in these arrays as long as the arrays, or views of them, are alive."""
        self._held += [ref(_owner(array)) for array in arrays]
        if len(self._held) >= self._purge_at:
            self._held = [held for held in self._held if held() is not None]
            self._purge_at = max(_PURGE_FROM, 2 * len(self._held))

    def register(self, holder: Holder) -> None:
        """Ask `holder` for its ids at every collection, as long as it is alive."""
        self._holders.add(holder)

    def collect_if_due(self) -> None:
        """Collect if many terms, or long ones, have come since the last time. Only between batches: see the module's
        text."""
        added, text = self._counts.item(table.ADDED), self._counts.item(table.TEXT)
        if added >= self._due or text >= self._due_text:
            self.collect()

    def collect(self) -> int:
        """Free the ids that nothing holds; how many. Linear in all terms and in the ids held."""
        marks = self._pinned[: len(self)].copy()
        scanned = 0
        self._held = [held for held in self._held if held() is not None]
        shown = [array for held in self._held if (array := held()) is not None]
        for holder in list(self._holders):
            shown += holder.held_ids()
        for array in shown:
            scanned += array.size
            table.mark(marks, np.require(array, np.int64, ("C", "W")).reshape(-1))
        for known, inside in self._blanks_in.items():
            if marks[known]:
                marks[list(inside)] = 1
        freed = int(table.sweep(self.address, marks))
        if freed:
            self.generation += 1
            self._drop_objects()
        self._due = max(COLLECT_FROM, self.live, scanned // _SCANNED_PER_TERM)
        size = int(self._counts[table.TEXT])
        self._due_text = size + max(COLLECT_TEXT, size, scanned * _TEXT_PER_SCANNED)
        return freed

    def _drop_objects(self) -> None:
        kind = self._columns.kind
        for term in [term for term, known in self._ids.items() if kind[known] == kinds.NONE]:
            del self._ids[term]
        self._objects = {known: term for known, term in self._objects.items() if kind[known] != kinds.NONE}
        self._kb_blanks = {label: known for label, known in self._kb_blanks.items() if kind[known] != kinds.NONE}
        self._blanks_in = {known: inside for known, inside in self._blanks_in.items() if kind[known] != kinds.NONE}
        self._nested = {self.text(each)[2:]: each for inside in self._blanks_in.values() for each in inside}

    # --- room ---------------------------------------------------------------------------------------

    def reserve(self, terms: int, text: int) -> None:
        """Make room for that many new terms, or ways to write them, and bytes of text. Raises LimitError."""
        arrays, counts = self._arrays, self._counts
        entries = _at_least(len(arrays.entries), int(counts[table.ENTRIES]) + terms)
        ids = _at_least(len(arrays.own), int(counts[table.IDS]) + terms)
        size = _at_least(len(arrays.text), int(counts[table.TEXT]) + text + table.PADDING)
        if max(entries, ids) > MAX_TERMS:
            raise LimitError(len(self) + terms, MAX_TERMS, "distinct terms")
        if (entries, ids, size) != (len(arrays.entries), len(arrays.own), len(arrays.text)):
            self._grow(entries, ids, size)

    def _grow(self, entries: int, ids: int, text: int) -> None:
        arrays = self._arrays
        more = entries != len(arrays.entries)
        grown = arrays.grow("ids", ids).grow("text", text)
        grown = grown.grow("entries", entries) if more else grown
        self._replace(grown)
        if more:
            table.rebuild(self.address)

    def _replace(self, arrays: table.TermArrays) -> None:
        self._arrays = arrays
        self._counts, self._own, self._text = arrays.counts, arrays.own, arrays.text.data
        self._start, self._length = arrays.entries["start"], arrays.entries["length"]
        self._pointers.set(arrays)
        self._columns = TermColumns(arrays.kind, arrays.number, arrays.exact, arrays.quality)
        self._pinned = longer(self._pinned, len(arrays.own))

    # --- steps --------------------------------------------------------------------------------------

    def _intern(self, term: Term) -> TermId:
        if isinstance(term, BlankNode):
            raise ValueError("a blank node belongs to its event: ask for blank()")
        if not isinstance(term, NamedNode | Literal | Triple):
            raise TypeError(f"not an RDF term: {term!r}")
        text = term_text(term).encode()
        known = self._intern_plain(text)
        if known != UNBOUND or isinstance(term, NamedNode):
            return known or self._add(term, text)
        if isinstance(term, Triple) and any(True for _ in blanks_in(term)):
            raise ValueError("a triple term that holds a blank node is not supported")
        normal = normalise(term) if isinstance(term, Literal) else normalise_triple(term)
        if normal is not term:
            text = term_text(normal).encode()
            known = self._find(text)
        return known or self._add(normal, text)

    def _many(self, terms: Sequence[Term]) -> dict[Term, TermId]:
        """Of different terms, kept like those of `intern`."""
        known = self.intern_different([term for term in terms if isinstance(term, NamedNode | Literal)])
        if len(self._ids) + len(known) > CACHE_SIZE:
            self._ids.clear()
        if len(known) <= CACHE_SIZE:
            self._ids.update(known)
        if len(known) < len(terms):
            known |= {term: self.intern(term) for term in terms if term not in known}
        return known

    def _add(self, term: Term, text: bytes) -> TermId:
        kind, number, exact, quality = IRI_VALUE if isinstance(term, NamedNode) else term_value(term)
        self.reserve(1, len(text))
        return int(table.add_text(self.address, self._copied(text), len(text), kind, number, exact, quality))

    def _intern_plain(self, text: bytes) -> TermId:
        """The id of a text that is known, or plain; else 0."""
        size = len(text)
        data = self._copied(text)
        scratch = data + size + table.PADDING
        known = int(term_texts.intern_text(self.address, data, size, scratch))
        if known == term_texts.NO_ROOM:
            self.reserve(1, size + SCRATCH_SPARE)
            known = int(term_texts.intern_text(self.address, data, size, scratch))
        return known

    def _find(self, text: bytes) -> TermId:
        return int(table.find_text(self.address, self._copied(text), len(text)))

    def _copied(self, text: bytes) -> int:
        """The address of a copy of the text, good until the next one."""
        if 2 * (len(text) + SCRATCH_SPARE) > len(self._scratch):
            self._set_scratch(4 * (len(text) + SCRATCH_SPARE))
        self._scratch[: len(text)] = text
        return self._scratch_address

    def _set_scratch(self, size: int) -> None:
        array = np.zeros(size, np.uint8)
        self._scratch = array.data  # keeps the array alive
        self._scratch_address = address_of(array)


def _allocate(capacity: int) -> table.TermArrays:
    arrays = table.TermArrays.allocate(entries=capacity, text=32 * capacity, ids=capacity)
    arrays.counts[[table.ENTRIES, table.IDS]] = 1
    return arrays


def _at_least(size: int, needed: int) -> int:
    return size if needed <= size else max(needed, 2 * size)


def _owner(array: AnyIds) -> AnyIds:
    """The array whose memory a view shows; it lives as long as any view."""
    while isinstance(array.base, np.ndarray):
        array = array.base
    return array


def relabelled(triple: Triple, label: Callable[[BlankNode], BlankNode]) -> Triple:
    """The triple term with other labels of its blank nodes."""
    subject, object_ = (
        label(part) if isinstance(part, BlankNode) else relabelled(part, label) if isinstance(part, Triple) else part
        for part in (triple.subject, triple.object)
    )
    return Triple(subject, triple.predicate, object_)  # type: ignore[arg-type]  # each part is of the kind that it was


def blanks_in(triple: Triple) -> Iterator[BlankNode]:
    """The blank nodes that a triple term holds, at any depth."""
    for part in (triple.subject, triple.object):
        if isinstance(part, BlankNode):
            yield part
        elif isinstance(part, Triple):
            yield from blanks_in(part)
