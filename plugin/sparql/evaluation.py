"""Work on the store, on threads of its own, with limits.

    answer(work) ─▶ a place in a lane ─▶ thread: work(Sink) ─▶ queue of chunks ─▶ Response, complete or Chunks

Why threads: pyoxigraph's results may be used on the thread that made them only (the process ends otherwise);
its parser is recursive and needs a larger stack than a server's threads have; and it cannot be interrupted
(0.5: no timeout, no cancellation). So a query that may continue without writing is evaluated in a process
(processes.py), and its thread only passes on what comes. Where that cannot be, the client is answered at the time
limit, and the thread is left behind until it next writes; such threads still count as running, and have a lane of
their own.

How a client distinguishes an answer that was broken off from a complete one: what fits into FIRST bytes is sent whole,
with a length, or not at all; of anything longer the connection is cut without the last chunk.

How many evaluations there may be at a time, so that some leave room for the others.

Those that can be ended at any moment have two kinds of places. All begin in a quick one; who is still at work after
half a second moves to a slow one, if one is free. If none is, one goes for each that waits for a quick place. So a
small query gets its turn within a second or so, however many never end.

Counting rows in SPARQL results while pyoxigraph writes them.

pyoxigraph writes results natively, several times faster than rows could pass through Python; a row limit
therefore counts in what is written. Each counter relies on what its format can hold between rows only.
"""

from __future__ import annotations

import queue
import re
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import field
from typing import Final, Protocol, TypeVar

from pyoxigraph import QueryResultsFormat

from oxiseq.api.store import ChangeRefusedError
from oxiseq.engine.attended import AbandonedError, attended, check
from oxiseq.grammar.records import dataclass
from oxiseq.journal import FullError
from oxiseq.rights import DeniedError
from oxiseq.sparql.messages import Interrupted, Problem, Response, denied, store_problem, syntax_problem
from oxiseq.sparql.settings import Limits

# --- lanes -----------------------------------------------------------------------------------------------

GRACE: Final = 0.5
"""Seconds for which anybody may have a quick place."""


class Lane:
    """Places; `slow` of them besides are for who stays long (see the module's text)."""

    def __init__(self, quick: int, patience: float, slow: int = 0) -> None:
        self.places = quick
        self._patience = patience
        self._quick, self._slow = quick, slow
        self._waiting = self._leaving = 0
        self._changed = threading.Condition()

    def enter(self) -> Ticket:
        """A place, when there is one. Raises Problem 503 after waiting without effect."""
        with self._changed:
            self._waiting += 1
            try:
                if not self._changed.wait_for(lambda: self._quick > 0, self._patience):
                    raise too_busy(f"{self.places} requests are being answered")
            finally:
                self._waiting -= 1
            self._quick -= 1
        return Ticket(self)

    def move(self, ticket: Ticket) -> bool:
        """To a slow place; False if there is none, and Problem 503 if the quick one is needed."""
        with self._changed:
            if self._slow > 0:
                self._slow -= 1
                self._quick += 1
                self._changed.notify()
                ticket.slow = True
                return True
            if self._waiting > self._leaving:
                self._leaving += 1
                ticket.sent_away = True
                raise too_busy(f"all places are taken by evaluations of more than {GRACE:g} s, and others wait")
        return False

    def leave(self, ticket: Ticket) -> None:
        """The place is free."""
        with self._changed:
            if ticket.slow:
                self._slow += 1
            else:
                self._quick += 1
                self._changed.notify()
            self._leaving -= ticket.sent_away


class Ticket:
    """The place of one evaluation."""

    def __init__(self, lane: Lane) -> None:
        self._lane = lane
        self._moves_at = time.monotonic() + GRACE
        self.slow = self.sent_away = False

    def stay(self, moved: Callable[[], None]) -> None:
        """To be called now and then by an evaluation that can be ended: Problem 503 says that it must. `moved` is
        called when it has run for long."""
        if not self.slow and time.monotonic() >= self._moves_at:
            if self._lane.move(self):
                moved()
            else:
                self._moves_at = time.monotonic() + GRACE / 5

    def leave(self) -> None:
        """It has come to its end."""
        self._lane.leave(self)


def too_busy(detail: str) -> Problem:
    """There is no place."""
    return Problem(503, "too busy", detail, headers=(("Retry-After", "5"),))


# --- counting --------------------------------------------------------------------------------------------


class RowCounter(Protocol):
    """Rows begun (JSON, XML) or ended (CSV, TSV) in all that was given so far."""

    rows: int

    def add(self, chunk: bytes) -> None:
        """The next bytes, cut anywhere."""
        ...


class TsvRows:
    """Line feeds are escaped within TSV terms; the first line is the header."""

    def __init__(self) -> None:
        self.rows = -1

    def add(self, chunk: bytes) -> None:
        """See RowCounter."""
        self.rows += chunk.count(b"\n")


class CsvRows:
    """Line feeds outside quotes; a doubled quote leaves and enters again."""

    def __init__(self) -> None:
        self.rows = -1
        self._quoted = False

    def add(self, chunk: bytes) -> None:
        """See RowCounter."""
        for index, part in enumerate(chunk.split(b'"')):
            if index:
                self._quoted = not self._quoted
            if not self._quoted:
                self.rows += part.count(b"\n")


class XmlRows:
    """`<result>`: within text a `<` is escaped."""

    _MARK = b"<result>"

    def __init__(self) -> None:
        self.rows = 0
        self._rest = b""

    def add(self, chunk: bytes) -> None:
        """See RowCounter."""
        text = self._rest + chunk
        self.rows += text.count(self._MARK)
        self._rest = text[-len(self._MARK) + 1 :]


class JsonRows:
    """Objects in an array: `[{` or `,{` outside strings, which pyoxigraph writes without blanks."""

    _STRING = re.compile(rb'"(?:[^"\\]++|\\.)*+"', re.DOTALL)
    _REST = re.compile(rb"(?:[^\"\\]++|\\.)*+", re.DOTALL)

    def __init__(self) -> None:
        self.rows = 0
        self._before = b""
        self._inside = False
        self._escaped = False

    def add(self, chunk: bytes) -> None:
        """See RowCounter."""
        if self._inside:
            chunk = self._after_string(chunk)
            if self._inside:
                return
        outside = self._STRING.sub(b"", chunk)
        begun = outside.find(b'"')
        if begun >= 0:
            self._inside = True
            tail = outside[begun + 1 :]
            self._escaped = self._REST.match(tail).end() < len(tail)  # type: ignore[union-attr]  # matches always
            outside = outside[:begun]
        text = self._before + outside
        self.rows += text.count(b"[{") + text.count(b",{")
        self._before = text[-1:]

    def _after_string(self, chunk: bytes) -> bytes:
        start = 1 if self._escaped and chunk else 0
        end = self._REST.match(chunk, start).end()  # type: ignore[union-attr]  # matches always
        if end < len(chunk) and chunk[end : end + 1] == b'"':
            self._inside = self._escaped = False
            return chunk[end + 1 :]
        if chunk:
            self._escaped = end < len(chunk)
        return b""


class NoRows:
    """Nothing to count."""

    rows = 0

    def add(self, chunk: bytes) -> None:
        """See RowCounter."""


def counter_of(format_: QueryResultsFormat) -> RowCounter:
    """A fresh counter for a format."""
    kinds: dict[QueryResultsFormat, type[TsvRows | CsvRows | XmlRows | JsonRows]] = {
        QueryResultsFormat.TSV: TsvRows,
        QueryResultsFormat.CSV: CsvRows,
        QueryResultsFormat.XML: XmlRows,
        QueryResultsFormat.JSON: JsonRows,
    }
    return kinds[format_]()


# --- evaluation ------------------------------------------------------------------------------------------

FIRST = 64 << 10
"""Bytes up to which an answer is collected before anything of it is sent."""
PIECE = 64 << 10
"""Bytes of a chunk."""
AHEAD = 8
"""Chunks that are made before the client has taken them."""
_LEFT = "the client has left"
_LOOK = 0.25
"""Seconds between looks whether the client is still there."""
STACK = 256 << 20
"""Bytes of a thread's stack: address space, not memory. 500 nested groups need less than 16 MB."""
_Result = TypeVar("_Result")


class Stopped(Exception):
    """Raised in `work` at its next write: nobody wants the rest, or a limit is reached (then with a Problem)."""

    def __init__(self, problem: Problem | None = None) -> None:
        super().__init__(problem)
        self.problem = problem


@dataclass(frozen=True, slots=True)
class _Part:
    """What goes from the thread to the receiver: bytes, and whether they are the last or none can follow."""

    media_type: str
    data: bytes
    last: bool = False
    problem: Problem | None = None


@dataclass(slots=True)
class Sink:
    """Where `work` writes, a binary file for pyoxigraph: `begin` first, then `write`."""

    limits: Limits
    deadline: float | None
    parts: queue.Queue[_Part] = field(default_factory=lambda: queue.Queue(AHEAD))
    closed: threading.Event = field(default_factory=threading.Event)
    counter: RowCounter = field(default_factory=NoRows)
    ticket: Ticket | None = None
    """Its place."""
    _media_type: str = "application/octet-stream"
    _pieces: list[bytes] = field(default_factory=list)
    _size: int = 0

    def begin(self, media_type: str, counter: RowCounter | None = None) -> None:
        """The answer's Content-Type, before its first byte."""
        if counter is not None and self.limits.rows is not None:
            self.counter = counter
        self._media_type = media_type

    def write(self, data: bytes) -> int:
        """Bytes of the answer; raises Stopped."""
        data = bytes(data)
        self.counter.add(data)
        self.check()
        self._pieces.append(data)
        self._size += len(data)
        if self._size >= PIECE:
            self.flush()
        return len(data)

    def check(self) -> None:
        """Raises Stopped when the answer has become too long, too late or unwanted."""
        if self.closed.is_set():
            raise Stopped
        if self.limits.rows is not None and self.counter.rows > self.limits.rows:
            raise Stopped(Problem(403, "too many results", f"at most {self.limits.rows} rows are answered"))
        if self.deadline is not None and time.monotonic() > self.deadline:
            raise Stopped(late(self.limits))

    def flush(self, *, last: bool = False) -> None:
        """Hand over what was written; raises Stopped when the receiver has gone."""
        data = b"".join(self._pieces)
        self._pieces.clear()
        self._size = 0
        self._put(_Part(self._media_type, data, last))

    def fail(self, problem: Problem | None) -> None:
        """Nothing follows: because of a problem, or because nobody listens."""
        with suppress(Stopped):
            self._put(_Part(self._media_type, b"", True, problem))

    def _put(self, part: _Part) -> None:
        while not self.closed.is_set():
            try:
                return self.parts.put(part, timeout=0.5)
            except queue.Full:
                continue
        raise Stopped


class Work(Protocol):
    """Evaluates and writes; may raise Problem, Stopped and whatever pyoxigraph raises."""

    def __call__(self, sink: Sink) -> None: ...


def late(limits: Limits) -> Problem:
    """The time limit is reached."""
    return Problem(503, "the time limit is reached", f"no complete answer within {limits.seconds:g} s")


class Evaluations:
    """At most `limits.running` pieces of work at a time in each lane.

    `ready`: work that notices its limits by itself, in this process; `changes`; `ended`: work in processes, which can
    be ended; `unended`: work in this process that may continue for ever, of which there is half as much.
    """

    _stack_size = threading.Lock()  # threading's stack size is global: set while a thread starts

    def __init__(self, limits: Limits) -> None:
        self._limits = limits
        half = max(1, limits.running // 2)
        self.ready = Lane(limits.running, limits.patience)
        self.changes = Lane(limits.running, limits.patience)
        self.ended = Lane(half, limits.patience, limits.running - half)
        self.unended = Lane(half, limits.patience)
        self._count = threading.Lock()
        self._running = 0

    @property
    def running(self) -> int:
        """Work that continues, also what was left behind at the time limit."""
        return self._running

    def answer(self, work: Work, gone: Callable[[], bool] = lambda: False, lane: Lane | None = None) -> Response:
        """What `work` writes as a response; it ends when the client is `gone`. Raises Problem if it fails before
        anything is sent."""
        seconds = self._limits.seconds
        sink = Sink(self._limits, None if seconds is None else time.monotonic() + seconds)
        sink.ticket = (lane if lane is not None else self.ready).enter()
        self._start(lambda: _produce(work, sink), sink.ticket)
        return _received(sink, gone)

    def call(self, work: Callable[[], _Result], gone: Callable[[], bool]) -> _Result:
        """The result of work without a time limit, an update. When the client is `gone` it does not begin, and ends
        where it looks (`attended.check`). Raises Problem."""

        def looked_after() -> _Result:
            with attended(gone):
                check()
                return work()

        done: list[_Result | Problem] = []
        thread = self._start(lambda: done.append(_outcome(looked_after)), self.changes.enter())
        thread.join()
        result = done[0]
        if isinstance(result, Problem):
            raise result
        return result

    def _start(self, target: Callable[[], None], ticket: Ticket) -> threading.Thread:
        def run() -> None:
            try:
                target()
            finally:
                self._count_by(-1)
                ticket.leave()

        thread = threading.Thread(target=run, name="sparql", daemon=True)
        self._count_by(1)
        with self._stack_size:
            before = threading.stack_size(STACK)
            try:
                thread.start()
            except RuntimeError:  # the system has no room for one more
                self._count_by(-1)
                ticket.leave()
                raise too_busy("no thread can be started") from None
            finally:
                threading.stack_size(before)
        return thread

    def _count_by(self, number: int) -> None:
        with self._count:
            self._running += number


def _outcome(work: Callable[[], _Result]) -> _Result | Problem:
    """The result, or the failure without the frames that hold pyoxigraph's objects."""
    try:
        return work()
    except Exception as error:
        return as_problem(error)


def as_problem(error: Exception) -> Problem:
    """Any failure of work as a fresh Problem, without a traceback."""
    if isinstance(error, Problem):
        return Problem(error.status, error.title, error.detail, error.place, error.headers, error.more, error.shown)
    if isinstance(error, AbandonedError):
        return Problem(503, _LEFT)
    if isinstance(error, DeniedError):
        return denied(error)
    if isinstance(error, SyntaxError):
        return syntax_problem("malformed SPARQL", error)
    if isinstance(error, ValueError):  # an IRI or term that is none
        return Problem(400, "malformed request", str(error))
    if isinstance(error, ChangeRefusedError):
        return Problem(503, "no change now", str(error), headers=(("Retry-After", "1"),))
    if isinstance(error, FullError):
        return Problem(507, "no room", str(error))
    return store_problem(error)


def _produce(work: Work, sink: Sink) -> None:
    try:
        work(sink)
        sink.check()
        sink.flush(last=True)
    except Stopped as stop:
        sink.fail(stop.problem)
    except Exception as error:
        sink.fail(as_problem(error))


def _received(sink: Sink, gone: Callable[[], bool]) -> Response:
    """The whole answer if it is short, else its beginning and the rest as it comes. Raises Problem."""
    chunks = _Chunks(sink, gone)
    first: list[bytes] = []
    size = 0
    while size < FIRST:
        part = chunks.next()
        if part.problem is not None:
            chunks.close()
            raise part.problem
        first.append(part.data)
        size += len(part.data)
        if part.last:
            return Response(200, (("content-type", part.media_type),), b"".join(first))
    chunks.first = b"".join(first)
    return Response(200, (("content-type", part.media_type),), chunks)


class _Chunks:
    """The rest of an answer, for one reader."""

    def __init__(self, sink: Sink, gone: Callable[[], bool]) -> None:
        self._sink, self._gone = sink, gone
        self.first = b""

    def next(self) -> _Part:
        """What comes next; at the time limit, or when the client has left, an end with its Problem."""
        while True:
            left = float("inf") if self._sink.deadline is None else self._sink.deadline - time.monotonic()
            try:
                return self._sink.parts.get(timeout=max(0.0, min(left, _LOOK)))
            except queue.Empty:
                if left <= _LOOK:
                    return _Part("", b"", True, late(self._sink.limits))
                if self._gone():
                    return _Part("", b"", True, Problem(503, _LEFT))

    def __iter__(self) -> Iterator[bytes]:
        yield self.first
        last = False
        while not last:
            part = self.next()
            if part.problem is not None:
                self.close()
                raise Interrupted(f"{part.problem.title}: {part.problem.detail}")
            if part.data:
                yield part.data
            last = part.last

    def close(self) -> None:
        """Nobody reads on: the work stops at its next write."""
        self._sink.closed.set()
