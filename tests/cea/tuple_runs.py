"""CEQL queries over streams of events that come in batches, as graphs or as tables."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

from ceql_strategies import CeqlSituation
from loaded import load

from oxiseq.engine.cea.memory import Capacities
from oxiseq.engine.cea.plan import compile_ceql
from oxiseq.engine.events.encode import encode_events
from oxiseq.engine.events.tuples import read_rows
from oxiseq.engine.output.batch import MatchBatch
from oxiseq.engine.output.complex_events import ComplexEvents
from oxiseq.engine.run.tuples import TupleRun
from oxiseq.engine.terms.dictionary import TermDictionary

sys.path.insert(0, str(Path(__file__).parent.parent / "ceql"))
from ceql_tables import as_table


def batches_of(
    situation: CeqlSituation, capacities: Capacities | None, size: int, tables: bool
) -> Iterator[tuple[ComplexEvents | MatchBatch, TermDictionary]]:
    """What a run tells, with the terms that hold until the next batch; terms that nothing holds are freed."""
    plan, terms = compile_ceql(load(situation.text, "ceql")), TermDictionary()
    run = TupleRun(plan, terms, capacities=capacities)
    streams = dict(zip(situation.streams, plan.streams, strict=True))
    events = list(situation.events)
    while events:
        some = [e for e in events[:size] if e.stream == events[0].stream]
        assert some == events[: len(some)] or len(situation.streams) > 1
        while some != events[: len(some)]:
            some.pop()
        events = events[len(some) :]
        for batch in read_rows(as_table(some)) if tables else [encode_events([(e.time, e.graph) for e in some], terms)]:
            run.push(streams[some[0].stream], batch)
        for found in run.advance():
            yield found, terms
        terms.collect()
    run.close()
    for found in run.advance():
        yield found, terms
