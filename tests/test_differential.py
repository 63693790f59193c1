"""The engine and the reference answer the same random situations (strategies.py), and the engine gives the same
order however the events are pushed. A failure is made small before it is shown."""

from __future__ import annotations

import inspect
from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import replace
from typing import Any, TypeAlias

import oxiseq
import pytest
from hypothesis import assume, given
from pyoxigraph import BlankNode, RdfFormat, Store, Triple, parse
from reduction import reduce
from reference.evaluate import ReferenceResult, evaluate
from strategies import Situation, situations

from oxiseq.grammar.algebra import Query, Select
from oxiseq.grammar.errors import QueryError
from oxiseq.grammar.parser import parse as parse_query

pytestmark = pytest.mark.skipif(not hasattr(oxiseq, "run"), reason="the engine's public API does not exist yet")

Answer: TypeAlias = tuple[int, tuple[tuple[str, str], ...], tuple[tuple[str, Any], ...]]
"""(end time, columns, events per GPM name), blank nodes numbered within the row."""

TAKES_LATENESS = hasattr(oxiseq, "run") and "lateness" in inspect.signature(oxiseq.run).parameters


# --- the two sides --------------------------------------------------------------------------------


def answer(time: int, bindings: Iterable[tuple[str, object]], events: Iterable[tuple[str, Any]]) -> Answer:
    numbers: dict[object, str] = {}
    columns = []
    for name, term in sorted(bindings, key=lambda pair: pair[0]):
        if isinstance(term, BlankNode):
            columns.append((name, numbers.setdefault(term, f"_:{len(numbers)}")))
        elif term is not None:
            columns.append((name, str(term)))
    return time, tuple(columns), tuple(sorted((name, tuple(found)) for name, found in events if found))


def by_reference(query: Query, situation: Situation) -> tuple[ReferenceResult, list[Answer]]:
    kb = Store()
    kb.load(situation.kb.encode(), format=RdfFormat.N_QUADS)
    streams = {iri: [(time, triples_of(text)) for time, text in events] for iri, events in situation.streams.items()}
    result = evaluate(query, streams, kb, lateness=situation.lateness)
    return result, [
        answer(r.time, ((v.value, t) for v, t in r.bindings.items()), r.events.items()) for r in result.rows
    ]


def triples_of(text: str) -> list[Triple]:
    return [quad.triple for quad in parse(text.encode(), format=RdfFormat.N_TRIPLES)]


def by_engine(situation: Situation) -> list[Answer]:
    more = {"lateness": situation.lateness} if TAKES_LATENESS else {}
    found = oxiseq.run(situation.text, streams=situation.streams, kb=situation.kb or None, **more)
    return [answer(m.time, m.bindings.items(), m.events.items()) for m in found]


# --- comparing ------------------------------------------------------------------------------------


def comparable(query: Query, answers: list[Answer]) -> Counter[Answer]:
    """As a bag; which match stands for equal DISTINCT rows is free, and CONSTRUCT has no columns."""
    if not isinstance(query.form, Select):
        return Counter((time, (), events) for time, _, events in answers)
    if query.form.distinct:
        return Counter((time, columns, ()) for time, columns, _ in answers)
    return Counter(answers)


def difference(situation: Situation) -> tuple[Counter[Answer], Counter[Answer]] | None:
    """(missing, too much) of the engine's answers; None where both agree or the query is no query."""
    try:
        query = parse_query(situation.text)
        expected, answers = by_reference(query, situation)
        if expected.ambiguous:
            return None
        missing, found = comparable(query, answers), comparable(query, by_engine(situation))
    except QueryError:
        return None
    return (missing - found, found - missing) if missing != found else None


def fails(check: Callable[[Situation], object | None]) -> Callable[[Situation], bool]:
    def failing(situation: Situation) -> bool:
        try:
            return check(situation) is not None
        except QueryError:
            return False
        except Exception:  # an error of the engine is a failure, too
            return True

    return failing


def show(situation: Situation, check: Callable[[Situation], object | None]) -> None:
    """Fail with a small situation if `check` finds something."""
    failing = fails(check)
    if failing(situation):
        small = reduce(situation, failing)
        events = "\n".join(f"  {iri} {t}: {text!r}" for iri, all_ in small.streams.items() for t, text in all_)
        print(f"{small.text}\n{events}\nKB {small.kb!r} lateness {small.lateness} order {small.order}")
        pytest.fail(f"{check(small)}")


@given(situations())
def test_run_agrees_with_the_reference(situation: Situation) -> None:
    if not TAKES_LATENESS:
        situation = replace(situation, lateness=0)
    query = parse_query(situation.text)
    assume(not by_reference(query, situation)[0].ambiguous)
    show(situation, difference)
