"""Standing queries over the store, evaluated in processes: one that takes too long, or too much memory, is ended.

In the flow: `oxiseq.api.standing` → a question → Workers → **solutions**. Where there is no snapshot for processes
(of a large store in memory) the store is queried in this one.
"""

from __future__ import annotations

import time
from typing import Any

from pyoxigraph import QueryResultsFormat, parse_query_results

from oxiseq.engine.errors import KbError
from oxiseq.engine.standing import Asker, Question, Solutions, check_rows, check_time, refused, solutions
from oxiseq.sparql.counting import counter_of
from oxiseq.sparql.problems import Problem
from oxiseq.sparql.processes import Processes

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
