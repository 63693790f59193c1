"""Queries evaluated in processes, over the store's content at the time of the request.

Processes that evaluate queries: pyoxigraph cannot be interrupted, a process can be killed.

    Workers.run(job, ticket, sink) ─▶ Worker (child.py) ─▶ frames ─▶ sink

A query that reaches its time limit, that nobody waits for any more, or that takes too much memory ends with its
process, and takes nothing along. One or two processes wait ready, for it takes a twentieth of a second to start one.

Standing queries over the store, evaluated in processes: one that takes too long, or too much memory, is ended.

In the flow: `oxiseq.api.standing` → a question → Workers → **solutions**. Where there is no snapshot for processes
(of a large store in memory) the store is queried in this one.
"""

from __future__ import annotations

import json
import os
import select
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import IO, Any, Final, Protocol, TypeVar

from pyoxigraph import QueryResultsFormat, RdfFormat, parse_query_results

from oxiseq.engine.errors import KbError
from oxiseq.engine.standing import Asker, Question, Solutions, check_rows, check_time, refused, solutions
from oxiseq.grammar.records import dataclass
from oxiseq.sparql.child import DATA, END, FAILED, HEAD, KIND, TAKEN
from oxiseq.sparql.evaluation import Sink, counter_of
from oxiseq.sparql.messages import GRAPHS, RESULTS, Operation, Problem, content_type, wanted
from oxiseq.sparql.snapshots import Snapshots

# --- workers ---------------------------------------------------------------------------------------------

CHILD: Final = Path(__file__).with_name("child.py")
_READY: Final = 2
"""Processes that are kept for the next queries."""
_LOOK: Final = 0.05
"""Seconds between looks whether an answer is still wanted."""
_READ: Final = 1 << 17
_NICER: Final = 10


class Receiver(Protocol):
    """Who gets an answer; each method may raise, which ends the evaluation."""

    def begin(self, kind: str) -> None:
        """Before the first byte: `triples`, `solutions` or `boolean`."""
        ...

    def write(self, data: bytes) -> object:
        """Bytes of the answer."""
        ...

    def check(self) -> None:
        """Called every now and then."""
        ...


class Died(Exception):
    """The process has ended by itself; `status` as subprocess gives it; `taken`: whether it had taken the job."""

    def __init__(self, status: int, taken: bool = True) -> None:
        super().__init__(status)
        self.status = status
        self.taken = taken


class _Failed(Exception):
    """The process could not answer. foreseen: in a way that leaves it as it was, so that it may take another job."""

    def __init__(self, error: Exception, *, foreseen: bool) -> None:
        super().__init__(error)
        self.error = error
        self.foreseen = foreseen


class Worker:
    """A process, which carries out one job at a time."""

    def __init__(self, memory: int) -> None:
        self._process = subprocess.Popen(
            [sys.executable, "-P", str(CHILD), str(memory)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            start_new_session=True,  # so that Ctrl+C is for the server alone
        )
        self._nice = False

    @property
    def alive(self) -> bool:
        """Whether it can take a job."""
        return not self._nice and self._process.poll() is None

    def run(self, job: dict[str, Any], receiver: Receiver) -> None:
        """Let it do a job. Raises what the receiver raises, Died, and the job's failure."""
        try:
            _stream(self._process.stdin).write(json.dumps(job).encode() + b"\n")
            _stream(self._process.stdin).flush()
        except OSError:
            raise Died(self._process.wait(), taken=False) from None
        frames, taken = _Frames(_stream(self._process.stdout).fileno()), False
        while True:
            frame = frames.next(_LOOK)
            receiver.check()
            if frame is None:
                continue
            kind, data = frame
            if kind == DATA:
                receiver.write(data)
            elif kind == TAKEN:
                taken = True
            elif kind == KIND:
                receiver.begin(data.decode())
            elif kind == FAILED:
                raise _failure(json.loads(data))
            elif kind == END:
                return
            else:
                raise Died(self._process.wait(), taken)

    def yield_to_others(self) -> None:
        """It works for long already: others come first."""
        if not self._nice and hasattr(os, "setpriority"):
            self._nice = True
            with suppress(OSError):
                os.setpriority(os.PRIO_PROCESS, self._process.pid, _NICER)
            with suppress(OSError):  # where Linux has a group for each session: the priority counts within it only
                Path(f"/proc/{self._process.pid}/autogroup").write_text(str(_NICER))

    def kill(self) -> None:
        """End it, and what it does."""
        self._process.kill()
        for end in (self._process.stdin, self._process.stdout):
            with suppress(OSError):
                _stream(end).close()
        self._process.wait()


class _Frames:
    """What a process sends."""

    def __init__(self, source: int) -> None:
        self._source = source
        self._got = bytearray()
        self._poll = select.poll()
        self._poll.register(source, select.POLLIN)

    def next(self, seconds: float) -> tuple[bytes, bytes] | None:
        """The next frame; None when there is none in so many seconds; an empty kind at the end."""
        while (frame := self._complete()) is None:
            if not self._poll.poll(seconds * 1000):
                return None
            data = os.read(self._source, _READ)
            if not data:
                return b"", b""
            self._got += data
        return frame

    def _complete(self) -> tuple[bytes, bytes] | None:
        if len(self._got) < HEAD.size:
            return None
        kind, size = HEAD.unpack_from(self._got)
        end = HEAD.size + size
        if len(self._got) < end:
            return None
        data = bytes(self._got[HEAD.size : end])
        del self._got[:end]
        return kind, data


class Workers:
    """Processes as they are needed; how many work at a time is for who calls (see evaluation.py)."""

    def __init__(self, memory: int) -> None:
        self.memory = memory
        self._lock = threading.Lock()
        self._ready: list[Worker] = []
        self._busy: set[Worker] = set()
        self._closed = False
        threading.Thread(target=self._start_one, daemon=True).start()

    def run(
        self, job: dict[str, Any], receiver: Receiver, begun: Callable[[Worker], None] = lambda worker: None
    ) -> None:
        """Let a process do a job; `begun` gets it. Raises Problem, what the receiver raises, and the job's failure:
        SyntaxError, ValueError, RuntimeError."""
        try:
            self._run(job, receiver, begun)
        except Died as error:
            raise self._died(error.status) from None

    def _run(self, job: dict[str, Any], receiver: Receiver, begun: Callable[[Worker], None]) -> None:
        """Until a process has taken the job: one that waited may have been killed meanwhile."""
        while True:
            worker, waited = self._taken()
            begun(worker)
            whole = False
            try:
                worker.run(job, receiver)
                whole = True
            except _Failed as failed:
                whole = failed.foreseen
                raise failed.error from None
            except Died as died:
                if died.taken or not waited:
                    raise
                continue
            finally:
                self._back(worker, whole=whole)
            return

    def close(self) -> None:
        """End them all."""
        with self._lock:
            self._closed = True
            ended, self._ready = [*self._ready, *self._busy], []
        for worker in ended:
            worker.kill()

    def _taken(self) -> tuple[Worker, bool]:
        """A process, and whether it has waited for a job."""
        with self._lock:
            worker = self._ready.pop() if self._ready else None
            alone = not self._ready
        waited = worker is not None and worker.alive
        if worker is None or not waited:
            if worker is not None:
                worker.kill()
            worker = Worker(self.memory)
        elif alone:  # the next one is to find one, too
            threading.Thread(target=self._start_one, daemon=True).start()
        with self._lock:
            self._busy.add(worker)
        return worker, waited

    def _start_one(self) -> None:
        with self._lock:
            if self._closed or self._ready:
                return
        with suppress(OSError):
            self._keep(Worker(self.memory))

    def _back(self, worker: Worker, *, whole: bool) -> None:
        with self._lock:
            self._busy.discard(worker)
        if whole and worker.alive:
            self._keep(worker)
        else:
            worker.kill()

    def _keep(self, worker: Worker) -> None:
        with self._lock:
            kept = not self._closed and len(self._ready) < _READY
            if kept:
                self._ready.append(worker)
        if not kept:
            worker.kill()

    def _died(self, status: int) -> Problem:
        if -status in (signal.SIGABRT, signal.SIGSEGV, signal.SIGBUS):  # what is left of an allocation that failed
            return Problem(
                507,
                "the query needs too much memory",
                f"at most {self.memory} bytes are given to one (--query-memory): ask for less at a time",
            )
        return Problem(
            503, "the evaluation was ended", "its process was killed: ask again", headers=(("Retry-After", "5"),)
        )


def _stream(end: IO[bytes] | None) -> IO[bytes]:
    assert end is not None  # requested when the process was made
    return end


def _failure(said: dict[str, Any]) -> Died | _Failed:
    """What went wrong in the process, as pyoxigraph raised it there."""
    kind, message = said["kind"], said["message"]
    if kind == "memory":
        return Died(-signal.SIGABRT)
    if kind == "syntax":
        return _Failed(SyntaxError(message, ("", said["line"], said["column"], "")), foreseen=True)
    if kind == "rows":
        return _Failed(Problem(403, "too many results", message), foreseen=True)
    return _Failed(ValueError(message) if kind == "value" else RuntimeError(message), foreseen=False)


# --- processes -------------------------------------------------------------------------------------------

_Format = TypeVar("_Format", RdfFormat, QueryResultsFormat)


@dataclass(frozen=True, slots=True)
class Processes:
    """Workers, and the snapshots that they read."""

    workers: Workers
    snapshots: Snapshots

    @property
    def possible(self) -> bool:
        """Whether there is a snapshot: of a large store in memory there is none."""
        return self.snapshots.possible

    def answer(self, operation: Operation, base: str, accept: str | None, sink: Sink) -> None:
        """Evaluate a query whose `ticket` is one of those that can be ended. Raises Problem, Stopped, and what
        pyoxigraph raises."""
        receiver = _Receiver(accept, sink)
        with self.snapshots.current() as source:
            if source is None:
                raise Problem(503, "the store has just grown", "ask again", headers=(("Retry-After", "1"),))
            job = {
                "source": source,
                "text": operation.text,
                "base": base,
                "union": operation.union,
                "default_graphs": operation.default_graphs,
                "named_graphs": operation.named_graphs,
                "rows": sink.limits.rows,
                "graph_format": receiver.graph_name,
                "results_format": receiver.results_name,
            }
            self.workers.run(job, receiver, receiver.works)

    def close(self) -> None:
        """End what is running."""
        self.workers.close()
        self.snapshots.close()


class _Receiver:
    """Passes an answer on to a sink; see workers.Receiver."""

    def __init__(self, accept: str | None, sink: Sink) -> None:
        self._accept, self._sink = accept, sink
        self._graph = _wanted(accept, GRAPHS, RdfFormat.TURTLE)
        self._results = _wanted(accept, RESULTS, QueryResultsFormat.JSON)
        self.graph_name, self.results_name = _name(self._graph), _name(self._results)
        self._worker: Worker | None = None

    def works(self, worker: Worker) -> None:
        """The process that does it."""
        self._worker = worker

    def begin(self, kind: str) -> None:
        """Raises Problem 406 when none of the formats of this kind is accepted."""
        if kind == "triples":
            wanted(self._accept, GRAPHS)
            self._sink.begin(content_type(self._graph))
        else:
            wanted(self._accept, RESULTS)
            counter = counter_of(self._results) if kind == "solutions" else None
            self._sink.begin(content_type(self._results), counter)

    def write(self, data: bytes) -> None:
        """Raises Stopped."""
        self._sink.write(data)

    def check(self) -> None:
        """Raises Stopped, and Problem 503 when its place is needed by others."""
        self._sink.check()
        if self._sink.ticket is not None and self._worker is not None:
            self._sink.ticket.stay(self._worker.yield_to_others)


def _wanted(accept: str | None, offers: Any, otherwise: _Format) -> _Format:
    """The format of an answer of this kind; that none is acceptable is reported when the answer is of it."""
    try:
        found: _Format = wanted(accept, offers)
    except Problem:
        return otherwise
    return found


def _name(format_: RdfFormat | QueryResultsFormat) -> str:
    """As pyoxigraph's class names it."""
    kind = type(format_)
    return next(name for name in dir(kind) if name.isupper() and getattr(kind, name) == format_)


# --- asking ----------------------------------------------------------------------------------------------

_FORMAT = QueryResultsFormat.JSON


class InProcesses:
    """An Asker. otherwise: for what processes cannot read."""

    def __init__(self, processes: Processes, otherwise: Asker) -> None:
        self._processes = processes
        self._otherwise = otherwise

    def __call__(self, question: Question) -> Solutions:
        """The answer. Raises KbError, LimitError."""
        try:
            if self._processes.possible:
                with self._processes.snapshots.current() as source:
                    if source is not None:
                        return self._asked(question, source)
        except Problem as problem:
            raise KbError(f"{problem.title}: {problem.detail}") from None
        except (SyntaxError, ValueError, RuntimeError, OSError) as error:
            raise refused(error) from None
        return self._otherwise(question)

    def _asked(self, question: Question, source: dict[str, object]) -> Solutions:
        answer = _Answer(question)
        job: dict[str, Any] = {
            "source": source,
            "text": question.asks,
            "base": None,
            "union": False,
            "default_graphs": [],
            "named_graphs": [],
            "rows": None,
            "graph_format": "N_TRIPLES",
            "results_format": "JSON",
        }
        self._processes.workers.run(job, answer)
        return solutions(parse_query_results(bytes(answer.data), _FORMAT), question, answer.begun)


class _Answer:
    """What a process sends; see workers.Receiver."""

    def __init__(self, question: Question) -> None:
        self._question = question
        self._counter = counter_of(_FORMAT)
        self.data = bytearray()
        self.begun = time.monotonic()

    def begin(self, kind: str) -> None:
        """Solutions or a truth value."""

    def write(self, data: bytes) -> None:
        """Raises LimitError."""
        self.data += data
        self._counter.add(data)
        check_rows(self._question, self._counter.rows)

    def check(self) -> None:
        """Raises LimitError; KbError where nobody waits for it any more."""
        check_time(self._question, self.begun)
