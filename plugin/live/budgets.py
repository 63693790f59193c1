"""How large a query's running state may become, and what happens when it becomes larger.

When a budget is examined: after each turn of the worker, which is after some thousands of events at most, so it may be
passed by what a turn adds. Records that are dead, but not freed yet, do not count: they are freed first.

Why matches are the same after a kill: a decision is made after an entry of the log and is part of the next checkpoint,
which is that entry's: the state without partial matches, and all matches up to it, in one transaction. Nothing behind
the entry is processed before the checkpoint is durable, so no restart ever reads the log across a decision. The
other way round, a restart must not decide where the run before it did not: where entries share a turn, and
what has been freed by then, is another matter each time. So nothing is decided before the entry that was the log's last
one when the query was restored (`LiveQuery.decided`): nobody has processed what comes behind it.
"""

from __future__ import annotations

from typing import Final, Literal, TypeAlias, cast

from oxiseq.engine.errors import OxiseqError
from oxiseq.engine.run.run import Run
from oxiseq.grammar.records import dataclass
from oxiseq.options import Options

Policy: TypeAlias = Literal["fail", "drop"]
_SLACK: Final = 16
"""Where freeing what is dead has brought it below the budget, it is examined again a part of the budget later."""


class BudgetError(OxiseqError):
    """A query's running state has become larger than it may."""


@dataclass(frozen=True, slots=True)
class Budget:
    """Bounds of the running state, None: none. `records`: what `oxiseq.engine` keeps of events and partial matches
    (`QueryRun.records`); `bytes`: of its arrays, which grow by doubling. `policy`: `fail` stops the query, `drop`
    lets it forget all partial matches and continue."""

    records: int | None = None
    bytes: int | None = None
    policy: Policy = "fail"

    @property
    def bounds(self) -> bool:
        """Whether there are any."""
        return self.records is not None or self.bytes is not None

    def of(self, options: Options) -> Budget:
        """That of a query registered with these options; this one is for what they do not say, and 0 is no bound."""
        records = self.records if options.max_state_records is None else options.max_state_records or None
        most = self.bytes if options.max_state_bytes is None else options.max_state_bytes or None
        return Budget(
            records, most, self.policy if options.on_state_limit is None else cast(Policy, options.on_state_limit)
        )

    def check(self, run: Run) -> None:
        """Raises BudgetError when a run that has not seen anything is beyond it."""
        if self.bytes is None:
            return
        run.reserve()
        if run.bytes > self.bytes:
            raise BudgetError(f"a state budget of {self.bytes:,} bytes: without any event it is {run.bytes:,}")

    def watch(self) -> Watch:
        """Looks after a run."""
        return Watch(self, self.records or 0)


@dataclass(slots=True)
class Watch:
    """`after`: how many records there are to be before it is worth while to free what is dead."""

    budget: Budget
    after: int

    def passed(self, run: Run, had: int) -> str:
        """In which way a run's state is beyond the budget, between batches; empty if it is not. `had`: its records
        before anything dead was freed, so that all that share a state are examined at the same time."""
        records, most = self.budget.records, self.budget.bytes
        if most is not None and run.bytes > most:
            return f"its running state has {run.bytes:,} bytes, and {most:,} are allowed"
        if records is None or had <= self.after:
            return ""
        run.collect()
        alive = run.records
        self.after = max(records, alive + records // _SLACK)
        return f"its running state has {alive:,} records, and {records:,} are allowed" if alive > records else ""
