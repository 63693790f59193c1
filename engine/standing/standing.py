"""All standing queries over a store.

In the flow: changes of the store, one after the other → leaves → operators → **outcomes**: of each query that a
change touches what of its answer came and went. Not safe for several threads: who calls has a lock.

A query is *followed* by its operators; or, where these would have to hold too much or have failed, it is *asked* of the
store: again when a quad of one of its patterns has changed, and what its answer was is compared with what it is. Or it
has *failed*: its answer stays until it is begun again. None of this touches other queries.

The caller queries the store and need not lock it meanwhile: the answer is that of some moment after the change
that made the query due, and each change since has made it due again.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Final, Literal, TypeAlias

import numpy as np
from pyoxigraph import Quad, Store

from oxiseq.engine.errors import LimitError, OxiseqError
from oxiseq.engine.flow import plan as p
from oxiseq.engine.flow.told import Bag
from oxiseq.engine.standing.asking import Question, Solutions, bare
from oxiseq.engine.standing.gates import MOST, Columns, Gates
from oxiseq.engine.standing.leaves import Leaf, Leaves
from oxiseq.engine.standing.plan import StorePlan, compile_over_store, sources_of
from oxiseq.engine.standing.run import Limits, StoreRun, Told
from oxiseq.engine.standing.terms import StoreTerms
from oxiseq.engine.terms.saved import Stateful, unsaved
from oxiseq.engine.terms.texts import Term
from oxiseq.grammar.records import dataclass
from oxiseq.grammar.rsp_algebra import RspQuery

ELSEWHERE: Final = "the knowledge base is elsewhere: it is queried there, again at each refresh"
"""Why a query is not followed."""
State: TypeAlias = Literal["followed", "asked", "failed"]


def _nothing() -> None:
    """To be called back in vain."""


class Upheld(Stateful):
    """A query, its answer, and how that is kept. reason: why it is not followed."""

    made_of = unsaved("run"), unsaved("answer")

    def __init__(self, query: RspQuery, text: str, limits: Limits) -> None:
        self.query, self.text, self.limits = query, text, limits
        self.plan: StorePlan
        self.state: State = "followed"
        self.reason = ""
        self.elsewhere = False
        """Whether there is no store here."""
        self.error: Exception | None = None
        """Why it has failed."""
        self.wanted = self.asked = 0
        """How often a query of the store was due; up to which of these it was made."""
        self.run: StoreRun | None = None
        self.watched: tuple[Leaf, ...] = ()
        """The leaves whose changes make a new query of the store due."""
        self.answer = Bag(0)
        self.gates: dict[Leaf, list[tuple[Columns, int]]] = {}
        """The leaves of which it gets only the rows that agree with what they are joined with."""

    @property
    def width(self) -> int:
        """Of its rows."""
        return self.plan.flow.widths[self.plan.flow.root]

    @property
    def told(self) -> Told:
        """Its whole answer."""
        return Told(*self.answer.rows)


@dataclass(frozen=True, slots=True)
class Outcome:
    """What a change has changed of an answer; nothing where only its state is another."""

    upheld: Upheld
    told: Told


@dataclass(frozen=True, slots=True, eq=False)
class Asking:
    """A query that the store is answering. wanted: its `wanted` when that began."""

    upheld: Upheld
    wanted: int


class Standing(Stateful):
    """store: the present store; None where it is remote: then queries are asked when they are added and at `anew`.
    `add` and `anew` begin with what it holds when they call `pinned`: until then nobody may
    change it, and all changes so far have been taken in."""

    made_of = unsaved("_leaves"), unsaved("_each")

    def __init__(self, store: Callable[[], Store] | None) -> None:
        self._store = store
        self.terms = StoreTerms()
        self.terms.dictionary.register(self)
        self._leaves = Leaves(self.terms)
        self._all: dict[Upheld, None] = {}
        self._readers: dict[Leaf, dict[Upheld, None]] = {}
        """Those that are stepped at each change of a leaf."""
        self._gates = Gates[Upheld]()
        """Those that are not."""
        self._due: dict[Upheld, None] = {}
        """Those that wait for the store's answer."""
        self._asking: dict[Upheld, Asking] = {}
        """Those that the store is answering."""
        self._enough: dict[Leaf, int] = {}
        """So many quads a leaf may hold until its queries' limits are checked again (a little late where others that
        they read have shrunk meanwhile)."""
        self._tick = 0

    def __len__(self) -> int:
        return len(self._all)

    # --- queries --------------------------------------------------------------------------------------

    def planned(self, query: RspQuery, text: str, limits: Limits) -> Upheld:
        """A query that `add` takes. Raises QueryError."""
        upheld = Upheld(query, text, limits)
        upheld.plan = compile_over_store(query, None if self._store is None else self._size)
        upheld.elsewhere = self._store is None
        upheld.answer = Bag(upheld.width)
        return upheld

    def add(self, upheld: Upheld, pinned: Callable[[], object] = _nothing) -> None:
        """A query over what the store holds now. Its answer is there, or it is `due` to be asked. Raises LimitError for
        an answer, or a join, of too many rows."""
        self._pin(upheld)
        pinned()
        rows = self._begun(upheld)
        if rows is not None:
            upheld.answer.replace(rows.rows, rows.weight)
        self._all[upheld] = None

    def remove(self, upheld: Upheld) -> None:
        """It gets no more changes."""
        self._all.pop(upheld, None)
        self._let_go(upheld)

    def _pin(self, upheld: Upheld) -> None:
        """It begins with what the store holds now."""
        if self._store is None:
            return
        try:
            upheld.run = StoreRun(upheld.plan, self._leaves, self.terms, upheld.limits)
            upheld.run.pin(self._store())
        except BaseException:
            self._let_go(upheld)
            raise

    def _begun(self, upheld: Upheld) -> Told | None:
        """Follow it, after `_pin`: its answer. None where that would hold too much: the store answers it. Raises
        LimitError, also for a join of too many rows."""
        run = upheld.run
        if run is None:
            self._ask_from_now(upheld, ELSEWHERE)
            return None
        try:
            for leaf in run.leaves:
                self._enough.pop(leaf, None)
            rows = run.begin(self._next(2))
            self._open_gates(upheld, run)
            upheld.state, upheld.reason, upheld.error = "followed", "", None
        except LimitError as error:
            self._let_go(upheld)
            if run.joins_too_much:  # to ask for it might never end
                raise
            self._ask_from_now(upheld, str(error))
            return None
        except BaseException:
            self._let_go(upheld)
            raise
        if (size := int(rows.weight.sum())) > upheld.limits.most_rows:
            self._let_go(upheld)
            raise LimitError(size, upheld.limits.most_rows, "rows of an answer")
        return rows

    def _ask_from_now(self, upheld: Upheld, reason: str) -> None:
        """From now on the store answers it; it is due now."""
        upheld.state, upheld.reason, upheld.error = "asked", reason, None
        if not upheld.elsewhere:
            upheld.watched = tuple(map(self._leaves.get, sources_of(upheld.plan)))
            self._read(upheld, upheld.watched)
        self._want(upheld)

    def _want(self, upheld: Upheld) -> None:
        """It is due."""
        self._due[upheld] = None
        upheld.wanted += 1

    def _open_gates(self, upheld: Upheld, run: StoreRun) -> None:
        upheld.gates = run.gates
        self._read(upheld, (leaf for leaf in run.leaves if leaf not in upheld.gates))
        for leaf, sides in upheld.gates.items():
            for columns, place in sides:
                self._gates.turn(upheld, leaf, columns, *run.side(place))

    def _turn_gates(self, upheld: Upheld, run: StoreRun) -> None:
        """What a step has changed of them. One that holds too much is taken down."""
        for leaf, sides in upheld.gates.items():
            for columns, place in sides:
                delta, key = run.turned(place)
                if len(delta):
                    self._gates.turn(upheld, leaf, columns, delta, key)
        if self._gates.size(upheld) > MOST * max(1, len(upheld.gates)):
            self._read(upheld, upheld.gates)
            self._gates.remove(upheld)
            upheld.gates = {}

    def _read(self, upheld: Upheld, leaves: Iterable[Leaf]) -> None:
        for leaf in leaves:
            self._readers.setdefault(leaf, {})[upheld] = None

    def _let_go(self, upheld: Upheld) -> None:
        self._due.pop(upheld, None)
        self._asking.pop(upheld, None)
        self._gates.remove(upheld)
        upheld.gates = {}
        for leaf in (*upheld.watched, *(upheld.run.leaves if upheld.run is not None else ())):
            readers = self._readers.get(leaf, {})
            readers.pop(upheld, None)
            if not readers:
                self._readers.pop(leaf, None)
            self._enough.pop(leaf, None)
        for leaf in upheld.watched:
            self._leaves.let_go(leaf)
        upheld.watched = ()
        if upheld.run is not None:
            upheld.run.close()
            upheld.run = None

    def _size(self, form: p.Quads) -> int:
        assert self._store is not None
        return self._leaves.known(form).size(self._store())

    def _next(self, ticks: int) -> int:
        """The first of so many ticks."""
        first = self._tick + 1
        self._tick += ticks
        return first

    # --- changes --------------------------------------------------------------------------------------

    def change(
        self, removed: Sequence[Quad], added: Sequence[Quad], dropped: Sequence[Term], created: Sequence[Term]
    ) -> list[Outcome]:
        """What one change of the store changes. Queries that must be asked are `due` then."""
        tick = self._next(1)
        touched: dict[Upheld, None] = {}
        fed: list[Leaf] = []
        broken: list[tuple[Leaf, Exception]] = []
        for leaf, delta in self._leaves.touched(removed, added, dropped, created, tick):
            fed.append(leaf)
            touched |= self._readers.get(leaf, {})
            touched |= dict.fromkeys(self._gates.through(leaf, delta))
            try:
                leaf.feed(delta)
            except Exception as error:
                broken.append((leaf, error))
        outcomes: list[Outcome] = []
        for leaf, reason in broken:
            for upheld in [each for each in self._all if each.run is not None and leaf in each.run.leaves]:
                self._fall_back(upheld, reason)
        for upheld in touched:
            outcomes += self._stepped(upheld)
        for leaf in fed:
            leaf.clear()
        for leaf in fed:
            self._check(leaf)
        return outcomes

    def _check(self, leaf: Leaf) -> None:
        """Queries that hold too many quads are now answered by the store, as at registration. A leaf is checked again
        when it has grown by its part of what its queries may still hold."""
        if leaf.records < self._enough.get(leaf, 0):
            return
        more: list[int] = []
        for upheld in [*self._all]:
            if upheld.run is None or leaf not in upheld.run.leaves:
                continue
            held, most = upheld.run.quads, upheld.limits.most_triples
            if held <= most:
                more.append((most - held) // len(upheld.run.leaves))
                continue
            self._let_go(upheld)
            self._ask_from_now(upheld, str(LimitError(held, most, "quads of a query's patterns")))
        if more:
            self._enough[leaf] = leaf.records + min(more) + 1

    def _stepped(self, upheld: Upheld) -> list[Outcome]:
        if upheld.run is None:
            if upheld.state == "asked":
                self._want(upheld)
            return []
        try:
            told = upheld.run.step()
            self._turn_gates(upheld, upheld.run)
            upheld.run.clear()
            if not len(told):
                return []
            upheld.answer.add(told.rows, told.weight)
        except Exception as error:
            self._fall_back(upheld, error)
            return []
        if upheld.answer.size > upheld.limits.most_rows:
            self.fail(upheld, LimitError(upheld.answer.size, upheld.limits.most_rows, "rows of an answer"))
        return [Outcome(upheld, told)]

    def _fall_back(self, upheld: Upheld, error: Exception) -> None:
        """Its operators have failed: past a limit they would again; else the store answers in their place."""
        self._let_go(upheld)
        if isinstance(error, LimitError):
            self.fail(upheld, error)
        else:
            self._ask_from_now(upheld, f"its operators failed: {_named(error)}")

    def fail(self, upheld: Upheld, error: Exception) -> None:
        """Its answer stays until it is begun again."""
        reason = _named(error)
        try:
            self._let_go(upheld)
        except Exception as another:  # its readers get no more changes all the same
            reason = f"{reason}; {_named(another)}"
            upheld.watched, upheld.run = (), None
        upheld.state, upheld.reason, upheld.error = "failed", reason, bare(error)

    def next_question(self) -> Asking | None:
        """The next query that is due and that the store is not answering."""
        for upheld in self._due:
            if upheld not in self._asking:
                del self._due[upheld]
                asking = self._asking[upheld] = Asking(upheld, upheld.wanted)
                return asking
        return None

    def question(self, asking: Asking) -> Question:
        """The query to ask."""
        upheld = asking.upheld
        limits, plan = upheld.limits, upheld.plan
        return Question(
            plan.asks, plan.names, limits.most_rows, limits.most_seconds, lambda: self._asking.get(upheld) is asking
        )

    def answered(self, asking: Asking, found: Solutions | Exception) -> Iterator[Outcome]:
        """What has come of a question: what differs from the earlier answer, unless nobody wants it any more."""
        upheld = asking.upheld
        if self._asking.get(upheld) is not asking:
            return
        del self._asking[upheld]

        def now() -> Told:
            if isinstance(found, Exception):
                raise found
            return Told(self.terms.encoded(found, len(upheld.plan.names)), np.ones(len(found), np.int64))

        yield from self._compared(upheld, now)
        upheld.asked = asking.wanted

    def anew(self, only: Upheld | None = None, pinned: Callable[[], object] = _nothing) -> Iterator[Outcome]:
        """Begin again, all or one: what differs from the earlier answers. For a change that is not known in
        detail."""
        again = [*self._all] if only is None else [only]
        begun: list[Upheld] = []
        for upheld in again:
            try:
                self._let_go(upheld)
            except Exception as error:
                self.fail(upheld, error)
        for upheld in again:
            try:
                self._pin(upheld)
                begun.append(upheld)
            except Exception as error:
                self.fail(upheld, error)
        pinned()
        for upheld in begun:
            yield from self._compared(upheld, lambda upheld=upheld: self._begun(upheld))  # type: ignore[misc]

    def _compared(self, upheld: Upheld, now: Callable[[], Told | None]) -> Iterator[Outcome]:
        try:
            if (found := now()) is None:
                return
            told = Told(*upheld.answer.replace(found.rows, found.weight))
        except Exception as error:
            self.fail(upheld, error)
            return
        if len(told):
            yield Outcome(upheld, told)

    # --- its memory ------------------------------------------------------------------------------------

    @property
    def _each(self) -> list[Upheld]:
        return [*self._all]

    @property
    def records(self) -> dict[str, int]:
        """Quads held for all, rows held by operators, rows of answers."""
        runs = [upheld.run.records for upheld in self._all if upheld.run is not None]
        return {
            "quads": sum(leaf.records for leaf in self._leaves),
            "rows": sum(runs),
            "answers": sum(len(upheld.answer) for upheld in self._all),
        }


def _named(error: Exception) -> str:
    """What has happened; a fault of ours by its kind."""
    return str(error) if isinstance(error, OxiseqError) else f"{type(error).__name__}: {error}"
