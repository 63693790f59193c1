"""A standing query over the store, wherever that is: in this process (`MemoryStanding`), in a folder or at a server
(served/query.py)."""

from __future__ import annotations

import logging
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from datetime import datetime
from hashlib import blake2b
from itertools import islice
from typing import TYPE_CHECKING, Any, Final, Literal, Protocol, TypeAlias

import numpy as np
from pyoxigraph import BlankNode, NamedNode, Triple, Variable

from oxiseq.api.continuous import CallbackHandle, Reader, Registered, RegisteredBackend, ask_nobody
from oxiseq.engine.errors import OxiseqError
from oxiseq.engine.events.time import to_datetime, to_text
from oxiseq.engine.flow.explain import Step, steps
from oxiseq.engine.kb import StoreKb
from oxiseq.engine.standing import ELSEWHERE, Told, Upheld
from oxiseq.engine.terms.texts import Term
from oxiseq.grammar.algebra import TermOrVariable, TriplePattern
from oxiseq.grammar.arguments import public
from oxiseq.grammar.errors import Finding
from oxiseq.grammar.languages import STANDING
from oxiseq.grammar.over_store import findings_over_store
from oxiseq.grammar.records import dataclass
from oxiseq.journal import CursorError
from oxiseq.languages.explanation import Explanation, network, operator_lines
from oxiseq.languages.reasons.report import SHOWN, Why
from oxiseq.languages.reasons.where.subject import why_over_store
from oxiseq.options.kinds import Duration, duration, whole_number
from oxiseq.pictures.drawing import Arrow, Drawing, Node
from oxiseq.pictures.timeline import html_table

if TYPE_CHECKING:
    from oxiseq.api.standing.standings import Standings


Form: TypeAlias = Literal["SELECT", "CONSTRUCT", "ASK"]
Row: TypeAlias = Mapping[str, Term | None] | Triple
Weighed: TypeAlias = Sequence[tuple[Row, int]]
"""Rows and how many of them come, or (below 0) go."""


Solution = tuple[Term | None, ...]


class Constructed:
    """template: its variables are at `places` of solutions. Blank nodes of the template are new for each solution,
    and the same as long as that is there: their labels are made of it."""

    def __init__(self, template: Sequence[TriplePattern], places: Sequence[tuple[str, int]]) -> None:
        self._template = template
        self._places = {Variable(name): place for name, place in places}
        terms = (t for each in template for t in (each.subject, each.predicate, each.object))
        self._blank = any(isinstance(t, BlankNode) for t in terms)
        self._made: dict[Triple, int] = {}
        self._solutions: dict[Solution, int] = {}
        """How often each is there, where that makes other blank nodes."""

    @property
    def triples(self) -> list[Triple]:
        """The graph."""
        return [*self._made]

    def take(self, solutions: Iterable[tuple[Solution, int]]) -> list[tuple[Triple, int]]:
        """Solutions that come and go: the triples that come (1) and go (-1) with them."""
        before: dict[Triple, bool] = {}
        for solution, weight in solutions:
            for triple, count in self._of(solution, weight):
                known = self._made.get(triple, 0)
                before.setdefault(triple, known > 0)
                if known + count:
                    self._made[triple] = known + count
                else:
                    del self._made[triple]
        now = ((triple, self._made.get(triple, 0) > 0) for triple in before)
        return [(triple, 1 if is_there else -1) for triple, is_there in now if is_there != before[triple]]

    def _of(self, solution: Solution, weight: int) -> Iterable[tuple[Triple, int]]:
        if not self._blank:
            return [(triple, weight) for triple in self._instance(solution, 0)]
        known = self._solutions.get(solution, 0)
        self._solutions[solution] = known + weight
        if not known + weight:
            del self._solutions[solution]
        sign = 1 if weight > 0 else -1
        copies = range(known, known + weight) if weight > 0 else range(known + weight, known)
        return [(triple, sign) for copy in copies for triple in self._instance(solution, copy)]

    def _instance(self, solution: Solution, copy: int) -> list[Triple]:
        triples = []
        for pattern in self._template:
            subject, predicate, object_ = (
                self._filled(t, solution, copy) for t in (pattern.subject, pattern.predicate, pattern.object)
            )
            if isinstance(subject, NamedNode | BlankNode) and isinstance(predicate, NamedNode) and object_ is not None:
                triples.append(Triple(subject, predicate, object_))
        return [*dict.fromkeys(triples)]

    def _filled(self, term: TermOrVariable, solution: Solution, copy: int) -> Term | None:
        if isinstance(term, Variable):
            return solution[self._places[term]] if term in self._places else None
        if isinstance(term, BlankNode):
            made_of = "\n".join([term.value, str(copy), *map(str, solution)])
            return BlankNode("c" + blake2b(made_of.encode(), digest_size=12).hexdigest())
        return term


class _Rows:
    """Rows that are made when somebody looks: of a large change nobody may."""

    __slots__ = ("_made", "_make", "at_us", "form", "number")

    def __init__(self, form: Form, number: int, at: int, make: Callable[[], Weighed]) -> None:
        self.form: Form = form
        self.number = number
        self.at_us = at
        self._make: Callable[[], Weighed] | None = make
        self._made: Weighed = ()

    @property
    def weighed(self) -> Weighed:
        """Each different row once, with how many there are."""
        if self._make is not None:
            self._made, self._make = self._make(), None
        return self._made

    @property
    def at(self) -> datetime:
        """When it was so, in UTC."""
        return to_datetime(self.at_us)

    def _some(self, sign: int) -> tuple[Row, ...]:
        return tuple(row for row, weight in self.weighed for _ in range(sign * weight))


@public
class StoreChange(_Rows):
    """What one update has changed of an answer. `number`: its id; `at`, `at_us`: when the update was made.

    >>> import oxiseq
    >>> store = oxiseq.Store()
    >>> query = store.register("SELECT ?s { ?s <urn:p> ?o }", language="sparql")
    >>> before = query.snapshot()
    >>> store.update("INSERT DATA { <urn:a> <urn:p> 1 }")
    >>> for change in query.poll(after=before.number):
    ...     print([row["s"].value for row in change.added], len(change.removed))
    ['urn:a'] 0
    """

    __slots__ = ("_count",)

    def __init__(self, form: Form, number: int, at: int, count: int, make: Callable[[], Weighed]) -> None:
        super().__init__(form, number, at, make)
        self._count = count

    @property
    def after(self) -> int:
        """The number of the state that it changes."""
        return self.number - self._count

    @property
    def added(self) -> tuple[Row, ...]:
        """The rows (of CONSTRUCT the triples) that came, each as often as it did."""
        return self._some(1)

    @property
    def removed(self) -> tuple[Row, ...]:
        """Those that went."""
        return self._some(-1)

    @property
    def answer(self) -> bool | None:
        """Of ASK: what the answer is now."""
        return any(weight > 0 for _, weight in self.weighed) if self.form == "ASK" else None

    def __len__(self) -> int:
        return self._count

    def __repr__(self) -> str:
        what = f"now {self.answer}" if self.form == "ASK" else f"+{len(self.added)} -{len(self.removed)}"
        return f"<StoreChange {self.number} {to_text(self.at_us)} {what}>"


@public
class Snapshot(_Rows):
    """An answer. `number`: that of the last change in it; `at`, `at_us`: when it was read.

    >>> import oxiseq
    >>> store = oxiseq.Store()
    >>> query = store.register("SELECT ?s { ?s <urn:p> ?o }", language="sparql")
    >>> len(query.snapshot().rows), query.snapshot().number
    (0, 0)
    """

    __slots__ = ()

    @property
    def rows(self) -> tuple[Row, ...]:
        """The rows (of CONSTRUCT the triples), each as often as it is there, in no order."""
        return self._some(1)

    @property
    def answer(self) -> bool | None:
        """Of ASK."""
        return bool(self.weighed) if self.form == "ASK" else None

    def __iter__(self) -> Iterator[Row]:
        return iter(self.rows)

    def __len__(self) -> int:
        return sum(weight for _, weight in self.weighed)

    def __repr__(self) -> str:
        what = self.answer if self.form == "ASK" else f"{len(self):,} rows"
        return f"<Snapshot {self.number} {to_text(self.at_us)} {what}>"


_FOLLOWED: Final = "incremental: each added or removed quad updates the answer, no query is repeated"


@dataclass(frozen=True, slots=True)
class StandingExplanation(Explanation):
    """All of it. evaluation: how it is answered, and why; rows: of its answer; kept: rows that its operators keep for
    it alone; shared: quads that they read in memory, with other queries; asks: the query to the store, if it has
    one."""

    form: str
    columns: tuple[str, ...]
    state: str
    evaluation: str
    operators: tuple[Step, ...]
    rows: int
    kept: int
    shared: int
    asks: str = ""

    @classmethod
    def from_json(cls, told: Mapping[str, Any]) -> StandingExplanation:
        """The one that gives this by `json`."""
        known: Any = _tuples(told)
        return cls(**{**known, "operators": tuple(Step(**each) for each in known["operators"])})

    def __str__(self) -> str:
        return "\n".join(_lines(self)) + "\n"

    @property
    def drawing(self) -> Drawing:
        nodes, arrows = [Node("store", "store")], list[Arrow]()

        def source(step: Step) -> str | None:
            return "store" if step.what in ("quads", "graphs") else None

        ahead = network(self.operators, nodes, arrows, source=source)
        nodes.append(Node("answer", self.form, True, self.state))
        arrows += [Arrow(name, "answer") for name in (ahead[-1] if ahead else ["store"])]
        return Drawing(f"{self.form}: state kept for the store", nodes, arrows, network=True)

    @property
    def summary(self) -> tuple[str, ...]:
        facts = f"{self.rows:,} rows, {self.kept:,} rows kept, {self.shared:,} quads"
        return (f"{self.form}: {self.evaluation}", facts)


def _tuples(told: Any) -> Any:
    """JSON values, with tuples where JSON has lists."""
    if isinstance(told, Mapping):
        return {name: _tuples(each) for name, each in told.items()}
    return tuple(map(_tuples, told)) if isinstance(told, list) else told


def explain_standing(upheld: Upheld) -> StandingExplanation:
    """The explanation of a query at work."""
    plan = upheld.plan
    operators = () if upheld.elsewhere else steps(plan.flow, {plan.flow.root: plan.names}, dict(plan.query.prefixes))
    evaluation = _FOLLOWED
    if upheld.elsewhere and upheld.state != "failed":
        evaluation = upheld.reason or ELSEWHERE
    elif upheld.state == "asked":
        evaluation = f"evaluated on the store again whenever a quad of one of its patterns changes: {upheld.reason}"
    elif upheld.state == "failed":
        evaluation = f"failed: {upheld.reason}"
    run = upheld.run
    kept, shared = (0, 0) if run is None else (run.records, sum(leaf.records for leaf in run.leaves))
    return StandingExplanation(
        plan.query.form,
        plan.columns,
        upheld.state,
        evaluation,
        operators,
        upheld.answer.size,
        kept,
        shared,
        "" if upheld.state == "followed" else plan.asks,
    )


def _lines(e: StandingExplanation) -> Iterator[str]:
    yield f"{e.form} {', '.join(f'?{c}' for c in e.columns)}".rstrip()
    yield f"evaluation: {e.evaluation}"
    yield f"rows: {e.rows:,}; kept for it: {e.kept:,} rows; read with others: {e.shared:,} quads"
    if e.asks:
        yield from ["", "asked", *(f"  {line}" for line in e.asks.strip().splitlines())]
    if e.operators:
        yield from ["", "operators", *operator_lines(e.operators)]


LOG: Final = logging.getLogger("oxiseq.standing")
Callback = Callable[[StoreChange], object]


class StandingBackend(RegisteredBackend, Protocol):
    """The place where a standing query is."""

    def snapshot(self, wait: bool) -> Snapshot:
        """The answer after all updates made so far."""

    def changes(self, reader: Reader, wait: bool) -> list[StoreChange]:
        """All behind the reader's cursor, which follows, that updates have made so far. Raises CursorError."""

    def following(self, reader: Reader, seconds: float | None) -> Iterator[StoreChange]:
        """The changes behind the reader's cursor, which follows them, as they are made: see `StandingQuery.changes`."""

    def subscribe(self, callback: Callback, after: int | None) -> Callable[[], object]:
        """Call back; what this returns ends it."""

    def explain(self) -> Explanation:
        """See `StandingQuery`; so the others."""

    def why(self, limit: int) -> Why: ...

    def catch_up(self) -> None: ...

    def restart(self) -> None: ...


@public
class StandingQuery(Registered):
    """A query registered by `store.register(text, language="sparql")`; see `oxiseq.api.standing`.

    >>> import oxiseq
    >>> store = oxiseq.Store()
    >>> query = store.register("SELECT ?s { ?s <urn:p> ?o }", language="sparql")
    >>> store.update("INSERT DATA { <urn:a> <urn:p> 1 }")
    >>> [row["s"].value for row in query.snapshot().rows]
    ['urn:a']
    """

    _backend: StandingBackend

    def __init__(self, backend: StandingBackend, value: Mapping[str, Any]) -> None:
        """`Store.register` makes it."""
        super().__init__(backend, value)
        self.text: str = value["text"]
        """As it was registered."""
        self.form: Form = value["form"]
        """SELECT, CONSTRUCT or ASK."""
        self.variables: tuple[str, ...] = tuple(value["variables"]) if self.form == "SELECT" else ()
        """The names of the answer's columns, without `?`; of SELECT only."""

    # --- facts ----------------------------------------------------------------------------------------

    @property
    def state(self) -> str:
        """`followed`, `asked` or `failed`, see `oxiseq.api.standing`; `closed`."""
        told = self.status
        return str(told["evaluation"] or told["state"])

    @property
    def reason(self) -> str:
        """Why it is not followed; empty if it is."""
        return str(self.status["reason"] or "")

    @property
    def findings(self) -> tuple[Finding, ...]:
        """What `check` has to say of it: parts of a pattern that share nothing, names that are bound nowhere."""
        return findings_over_store(self.text)

    @property
    def number(self) -> int:
        """That of the last change, 0 before the first."""
        return int(self.status["matches"]["next"]) - 1

    @property
    def first(self) -> int:
        """The least `after` that changes can still be read behind."""
        return int(self.status["matches"]["first"]) - 1

    def explain(self) -> Explanation:
        """How it is answered, and whether it is evaluated on the store; numbers of what it keeps."""
        return self._backend.explain()

    def why(self, limit: int = SHOWN) -> Why:
        """Why it has rows or not, over what the store holds now: how many each pattern has, how many each part of WHERE
        leaves, and what a condition of the part where they end leaves out. `limit`: of as many rows it shows the facts
        that they rest on. Queries at work, and changes, do not wait for it.

        Raises OxiseqError, KbError.
        """
        return self._backend.why(limit)

    # --- what it answers ------------------------------------------------------------------------------

    def snapshot(self, wait: bool = True) -> Snapshot:
        """The answer after all updates made so far, and the number behind which changes continue from it. Those up to
        it count as returned. wait: while the store is answering, until it has answered; else what it answered
        last. Raises UnknownError, UnreachableError."""
        found = self._backend.snapshot(wait)
        self.cursor = max(self.cursor, found.number)
        return found

    def changes(self, after: int | None = None, timeout: Duration | None = None) -> Iterator[StoreChange]:
        """The changes above `after` (None: those not returned yet), as they are made; waits for the next one at most
        `timeout` in all (None: for ever). A server that goes away meanwhile is waited for. Ends when that is over, or
        with the query. Raises CursorError if changes above `after` are no longer kept: take a new snapshot;
        UnreachableError."""
        seconds = None if timeout is None else duration(timeout, "timeout") / 1e6
        return self._backend.following(self if after is None else Reader(after), seconds)

    def poll(self, timeout: Duration = "0s", *, after: int | None = None, wait: bool = True) -> list[StoreChange]:
        """Returns all changes above `after` (None: those not returned yet) that updates have made so far; if there are
        none, waits at most `timeout` for the next one. `wait` as for `snapshot`. Raises CursorError as `changes`."""
        seconds = duration(timeout, "timeout") / 1e6
        reader = self if after is None else Reader(after)
        found = self._backend.changes(reader, wait)
        if not found and seconds:
            found = list(islice(self._backend.following(reader, seconds), 1))
        return found

    def on_change(self, callback: Callback, after: int | None = None) -> CallbackHandle:
        """Call back with each change above `after` (None: from now on), in order, in another thread, until what this
        returns is closed; in memory all callbacks get a change before any gets the next. Raises CursorError like
        `changes`."""
        return CallbackHandle(self._backend.subscribe(callback, after))

    def catch_up(self) -> None:
        """Wait until all earlier updates are applied: snapshots and changes include them; callbacks may still follow.
        While the store evaluates the query it waits for the answer. Raises nothing: check `state`."""
        self._backend.catch_up()

    def restart(self) -> None:
        """Evaluate it again on the current content of the store; the difference is a change. For a query that has
        failed, or that is asked although it could be followed again."""
        self._backend.restart()

    def _repr_html_(self) -> str:
        told = self.status
        state, last = told["evaluation"] or told["state"], told["matches"]["next"] - 1
        facts = [("state", str(state)), ("rows", f"{told['rows']:,}"), ("last change", f"{last:,}")]
        return f"<div>{html_table(self.name, facts, self.text)}</div>"

    def __repr__(self) -> str:
        return f"<StandingQuery {self.name}: {self.form}>"


class Subscription:
    """A callback that is called until `close()`."""

    def __init__(self, query: MemoryStanding, callback: Callback) -> None:
        self._query, self._callback = query, callback
        self._closed = False

    def close(self) -> None:
        """It is called no more."""
        self.end()
        self._query.unsubscribe(self)

    def end(self) -> None:
        """Nor does it see what waits for it."""
        self._closed = True

    def tell(self, change: StoreChange) -> None:
        """Call it; its error is logged."""
        if not self._closed:
            try:
                self._callback(change)
            except Exception:
                LOG.exception("query %s: a callback failed at change %d", self._query.name, change.number)


class MemoryStanding:
    """A standing query over a store that this process follows, or asks. See `StandingBackend`. `keep`: how many rows of
    changes are kept; `upheld`: the engine's side of it."""

    ask = staticmethod(ask_nobody)

    def __init__(self, standings: Standings, name: str, upheld: Upheld, keep: int) -> None:
        self.name, self.upheld = name, upheld
        self.closed = False
        self._standings, self._keep = standings, keep
        self._number = self._first = 0
        """Of the last change; from which on changes are kept."""
        self._changes: deque[StoreChange] = deque()
        self._held = 0
        self._subscriptions: tuple[Subscription, ...] = ()
        self._form: Form = upheld.query.form
        self._stale = False
        """Whether its graph misses a change."""
        self._graph = self._constructed() if self._form == "CONSTRUCT" else None
        self.face = StandingQuery(self, self.status)

    def _constructed(self) -> Constructed:
        made = Constructed(self.upheld.query.template, self.upheld.plan.told)
        made.take(self._solutions(self.upheld.told))
        return made

    @property
    def status(self) -> dict[str, Any]:
        """See `Registered.status`."""
        upheld = self.upheld
        return {
            "name": self.name,
            "state": "closed" if self.closed else "running",
            "language": STANDING,
            "text": upheld.text,
            "variables": upheld.plan.columns,
            "form": self._form,
            "matches": {"first": self._first + 1, "next": self._number + 1},
            "rows": upheld.answer.size,
            "evaluation": None if self.closed else upheld.state,
            "reason": upheld.reason,
            "asks": self.asks,
        }

    def explain(self) -> Explanation:
        """With numbers of what it keeps."""
        with self._standings.lock:
            return explain_standing(self.upheld)

    def why(self, limit: int) -> Why:
        """Raises OxiseqError where the store is not in this process; KbError."""
        if self._standings.present is None:
            raise OxiseqError("why of a standing query is for a store in this process")
        kb = StoreKb(self._standings.present())
        return why_over_store(self.upheld.query, kb, whole_number(limit, "limit"))

    # --- what it answers ------------------------------------------------------------------------------

    def snapshot(self, wait: bool) -> Snapshot:
        """Of what the store holds, or of what it answered last."""
        self.catch_up(wait)
        with self._standings.lock:
            weighed = self._answered()
            return Snapshot(self._form, self._number, time.time_ns() // 1000, lambda: weighed)

    def _answered(self) -> Weighed:
        self._refresh()
        if self._graph is not None:
            return [(triple, 1) for triple in self._graph.triples]
        return self._rows(self.upheld.told)

    def following(self, reader: Reader, seconds: float | None) -> Iterator[StoreChange]:
        """As they are made."""
        deadline = None if seconds is None else time.monotonic() + seconds
        self._standings.catch_up()
        while (change := self._wait_for(reader, deadline)) is not None:
            reader.cursor = change.number
            yield change

    def _wait_for(self, reader: Reader, deadline: float | None) -> StoreChange | None:
        with self._standings.arrived:
            while not (found := self._behind(reader)):
                left = None if deadline is None else deadline - time.monotonic()
                if self.closed or (left is not None and left <= 0):
                    return None
                self._standings.arrived.wait(left)
            return found[0]

    def changes(self, reader: Reader, wait: bool) -> list[StoreChange]:
        """Those that there are."""
        self.catch_up(wait)
        with self._standings.lock:
            found = self._behind(reader)
            reader.cursor = self._number
            return found

    def _behind(self, reader: Reader) -> list[StoreChange]:
        after = reader.cursor
        if after < self._first:
            reader.cursor = self._first  # whoever calls again has no error
            raise CursorError(f"changes of {self.name!r}", after + 1, self._first + 1)
        if after >= self._number:
            return []
        return [change for change in self._changes if change.number > after]

    def subscribe(self, callback: Callback, after: int | None) -> Callable[[], object]:
        """In another thread."""
        subscription = Subscription(self, callback)
        self._standings.catch_up()
        with self._standings.lock:
            if self.closed:
                subscription.end()
                return subscription.close
            for change in [] if after is None else self._behind(Reader(after)):
                self._standings.deliver_later(subscription, change)
            self._subscriptions = (*self._subscriptions, subscription)
        self._standings.deliver()
        return subscription.close

    def unsubscribe(self, subscription: Subscription) -> None:
        """Stop calling it back."""
        with self._standings.lock:
            self._subscriptions = tuple(each for each in self._subscriptions if each is not subscription)

    def catch_up(self, wait: bool = True) -> None:
        """Wait until all earlier updates are applied, and if `wait` for the store's answer."""
        self._standings.catch_up(self.upheld if wait else None)

    def restart(self) -> None:
        """Raises OxiseqError for one that has been closed."""
        if self.closed:
            raise OxiseqError(f"the query {self.name!r} is closed")
        self._standings.restart(self.upheld)

    def close(self) -> None:
        """End it: it receives no more changes, and callers that wait for changes return."""
        self._standings.remove(self)

    delete = close

    # --- the standings' side --------------------------------------------------------------------------

    @property
    def asks(self) -> str:
        """What is queried from the store where it is not followed."""
        return self.upheld.plan.asks

    def asked_in_vain(self, error: str) -> None:
        """A store elsewhere could not be queried again (empty: it could), and the answer stays."""
        if self.closed or self.upheld.state != "asked":
            return
        self.upheld.reason = f"{ELSEWHERE}; the last time that failed: {error}" if error else ELSEWHERE

    def end(self) -> None:
        """It has been closed."""
        self.closed = True
        for subscription in self._subscriptions:
            subscription.end()
        self._subscriptions = ()

    def receive(self, told: Told, at: int) -> None:
        """What a change made at a time has changed of the rows. With the lock held."""
        if self._stale:
            self.lose()
            return
        change = self._changed(told, at)
        if change is not None:
            self._tell(change)

    def lose(self) -> None:
        """A change is not known in detail: readers of the ones before begin with a snapshot. With the lock held."""
        self._changes.clear()
        self._number += 1
        self._held, self._first = 0, self._number
        self._stale = self._graph is not None
        self._refresh()

    def _refresh(self) -> None:
        """A graph that a change was lost of is made again; where that fails it stays, and this is tried later."""
        if self._stale:
            with suppress(Exception):
                self._graph, self._stale = self._constructed(), False

    def _tell(self, change: StoreChange) -> None:
        self._number = change.number
        self._changes.append(change)
        self._held += len(change)
        while self._held > self._keep and self._changes:
            gone = self._changes.popleft()
            self._held -= len(gone)
            self._first = gone.number
        for subscription in self._subscriptions:
            self._standings.deliver_later(subscription, change)

    def _changed(self, told: Told, at: int) -> StoreChange | None:
        if self._graph is not None:
            triples = self._graph.take(self._solutions(told))
            if not triples:
                return None
            return StoreChange(self._form, self._number + len(triples), at, len(triples), lambda: triples)
        self._standings.hold(told.rows)
        count = int(np.abs(told.weight).sum())
        return StoreChange(self._form, self._number + count, at, count, lambda: self._rows(told))

    def _solutions(self, told: Told) -> list[tuple[Solution, int]]:
        return [*zip(self._standings.decoded(told.rows), told.weight.tolist(), strict=True)]

    def _rows(self, told: Told) -> Weighed:
        names = self.upheld.plan.columns if self._form == "SELECT" else ()
        rows = self._standings.decoded(told.rows)
        return [(dict(zip(names, row, strict=True)), w) for row, w in zip(rows, told.weight.tolist(), strict=True)]
