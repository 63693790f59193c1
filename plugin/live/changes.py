"""Changes of the knowledge base and the log: a restart must not read events again with a KB of later.

The KB is not in the log. So that what the log finds again after a kill is what was found before it, each change is
put between two entries of the log:

1. It waits until every event that was acknowledged before it has been processed, with the earlier KB.
2. With the worker's lock held, so that no event is processed meanwhile, each query keeps the present answers for
   the instants up to the newest one of which it has accepted an event (engine/kb_in_time.py), and the queries that ask
   the KB get a checkpoint, in the journal. That costs nothing where nothing has come since the last one.
3. Then the store commits the change.

The journal and the store are two files, with a commit each. A kill between the two, 2. done and 3. not, leaves the
earlier KB and the new checkpoints: the change has not been acknowledged and has not happened; queries continue with
what they had. A kill after 3. leaves the changed KB and the same checkpoints, and every event behind them has yet to
be processed. Either way no event before the checkpoint is read again, and all events behind it meet the KB that is
there. So nothing is lost or doubled, whenever the process dies. Of a machine that dies the same holds as far as
both files are on its disk: with `durability` full the journal's are, always; whether the store's last commits are, is
Oxigraph's matter, and a change that it loses there has been seen by the matches since.

Who changes the store behind `oxiseq.Store` (`inner`, then `touch`) goes around this.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from typing import Final

from oxiseq.api.store import ChangeRefusedError
from oxiseq.engine.attended import check
from oxiseq.engine.errors import SnapshotError
from oxiseq.journal import Journal
from oxiseq.live.engine import Engine
from oxiseq.live.worker import Worker

PATIENCE: Final = 30.0
"""Seconds that a change waits for the events before it."""
_PAUSE: Final = 0.002


class KbChanges:
    """Around the changes of a live service's KB; `end` it when the service ends."""

    def __init__(
        self,
        journal: Journal,
        engine: Engine,
        worker: Worker,
        kb_lock: AbstractContextManager[object],
        patience: float = PATIENCE,
    ) -> None:
        self._journal, self._engine, self._worker, self._kb_lock = journal, engine, worker, kb_lock
        self._patience = patience
        self._ended = False

    @contextmanager
    def around(self) -> Iterator[None]:
        """A change is made within. Raises ChangeRefusedError, FullError, KbError; then it must not be made."""
        if self._ended:
            yield
            return
        before, deadline = self._journal.log.position(), time.monotonic() + self._patience
        while not self._ended:
            check()
            with self._worker.lock:
                if self._free(before):
                    self._keep()
                    yield
                    return
            if time.monotonic() >= deadline:
                raise ChangeRefusedError("queries that ask the knowledge base have not caught up with the log yet")
            time.sleep(_PAUSE)
        raise ChangeRefusedError("the service is ending")

    def _free(self, before: int) -> bool:
        """Whether the KB may change now: queries that read it have seen what came before, and no entry in part; those
        that have come or gone before, too. Raises FullError."""
        worker = self._worker
        if not worker.between_entries:
            return False
        worker.make_changes()
        return worker.whole and (not self._matters or worker.position >= before)

    @property
    def _matters(self) -> bool:
        """Whether any query reads the KB, now or once the log has come to its position."""
        return any(query.run.reads_kb for query in (*self._engine.queries, *self._worker.joining))

    def _keep(self) -> None:
        """Checkpoints of the queries that ask the KB, those restored a moment ago too; with the worker's lock
        held."""
        self._worker.join()
        with self._kb_lock:
            self._engine.keep_answers()
        try:
            self._worker.checkpointer.save(*self._engine.kb_readers)
        except SnapshotError as error:
            raise ChangeRefusedError(f"the state of a query cannot be saved: {error}") from error

    def end(self) -> None:
        """The service has made its last checkpoints: changes are free from now on."""
        self._ended = True
