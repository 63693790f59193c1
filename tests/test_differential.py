"""The engine and the reference answer the same random situations (strategies.py), and the engine gives the same
order however the events are pushed. A failure is made small before it is shown.

LIMIT leaves open which matches are reported: then the engine's answer must be one of those allowed."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Iterator
from dataclasses import replace
from typing import Any, TypeAlias

import pytest
from hypothesis import Phase, given
from loaded import load
from profiles import thorough
from pyoxigraph import BlankNode, RdfFormat, Store, Triple, parse
from reduction import reduce
from reference.choose import is_choice
from reference.evaluate import ReferenceResult, evaluate
from strategies import Situation, situations

import oxiseq
from oxiseq.engine.terms.dictionary import TermDictionary
from oxiseq.grammar.algebra import Construct, Query, Select
from oxiseq.grammar.errors import QueryError

Answer: TypeAlias = tuple[int, tuple[tuple[str, str], ...], tuple[tuple[str, Any], ...]]
"""(end time, columns, events per GPM name), blank nodes numbered within the row."""

WITHOUT_SHRINKING = [Phase.explicit, Phase.reuse, Phase.generate]  # `reduce` does it, and better


@pytest.fixture(autouse=True, scope="module")
def terms_are_freed_at_every_push() -> Iterator[None]:
    """So that an id which somebody still looks at soon means another term."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(TermDictionary, "collect_if_due", TermDictionary.collect)
        yield


# --- the two sides --------------------------------------------------------------------------------


def answer(
    time: int,
    bindings: Iterable[tuple[str, object]],
    events: Iterable[tuple[str, Any]],
    graph: Iterable[Triple] = (),
) -> Answer:
    numbers: dict[object, str] = {}
    columns = []
    for name, term in sorted(bindings, key=lambda pair: pair[0]):
        if isinstance(term, BlankNode):
            columns.append((name, numbers.setdefault(term, f"_:{len(numbers)}")))
        elif term is not None:
            columns.append((name, str(term)))
    for line in sorted(" ".join("_:" if isinstance(t, BlankNode) else str(t) for t in each) for each in graph):
        columns.append(("triple", line))
    return time, tuple(columns), tuple(sorted((name, tuple(found)) for name, found in events if found))


def by_reference(query: Query, situation: Situation) -> tuple[ReferenceResult, list[Answer]]:
    kb = Store()
    kb.load(situation.kb.encode(), format=RdfFormat.N_QUADS)
    streams = {iri: [(time, triples_of(text)) for time, text in events] for iri, events in situation.streams.items()}
    result = evaluate(query, streams, kb, lateness=situation.lateness)
    return result, [
        answer(r.end, ((v.value, t) for v, t in r.bindings.items()), r.events.items(), r.graph) for r in result.rows
    ]


def triples_of(text: str) -> list[Triple]:
    return [quad.triple for quad in parse(text.encode(), format=RdfFormat.N_TRIPLES)]


def of_match(query: Query, match: oxiseq.Match) -> Answer:
    if isinstance(query.form, Construct):
        return answer(end_of(match), (), match.events.items(), match.graph)
    return answer(end_of(match), match.items(), match.events.items())


def end_of(match: oxiseq.Match) -> int:
    """The end of a match, the time of a group's row, which has no span. When they are decided is compared in
    test_at_differential.py."""
    return match.at_us if match.end_us is None else match.end_us


def by_run(query: Query, situation: Situation) -> tuple[int, list[Answer]]:
    """`oxiseq.run`: how many events were late, and the answers in their order. Iterators are read as they come."""
    lateness, streams = f"{situation.lateness}us", {iri: iter(events) for iri, events in situation.streams.items()}
    found = oxiseq.run(situation.text, streams=streams, kb=situation.kb or None, lateness=lateness, late="ignore")
    assert [m.at_us for m in found] == sorted(m.at_us for m in found)
    return found.late, [of_match(query, m) for m in found]


def by_pushes(query: Query, situation: Situation, together: bool) -> list[Answer]:
    """A live store: the streams by turns in the situation's order, the matches so far taken in its pauses;
    `together` pushes what one stream has between two pauses at once."""
    store = oxiseq.Store()
    store.load(situation.kb.encode(), format=RdfFormat.N_QUADS)
    live = store.register(situation.text, lateness=f"{situation.lateness}us")
    left = {iri: list(events) for iri, events in situation.streams.items()}
    waiting: dict[str, list[tuple[int, str]]] = {iri: [] for iri in left}
    found: list[oxiseq.Match] = []
    for number, iri in enumerate(situation.order):
        waiting[iri].append(left[iri].pop(0))
        if together and number not in situation.pauses:
            continue
        for each, events in waiting.items():
            store.stream(each).extend(events)
            events.clear()
        if number in situation.pauses:
            found += live.poll("0s", idle=None)
    for each, events in waiting.items():
        store.stream(each).extend(events)
    live.close()
    found += live.poll("0s", idle=None)
    return [of_match(query, m) for m in found]


# --- comparing ------------------------------------------------------------------------------------


def comparable(query: Query, answers: list[Answer]) -> Counter[Answer]:
    """As a bag; which match stands for equal DISTINCT rows is free."""
    if isinstance(query.form, Select) and query.form.distinct:
        return Counter((time, columns, ()) for time, columns, _ in answers)
    return Counter(answers)


def choices(query: Query, expected: ReferenceResult, answers: list[Answer]) -> list[Counter[Answer]]:
    """Of each partition and time the answers among which LIMIT chooses."""
    groups: dict[Hashable, list[Answer]] = {}
    for row, each in zip(expected.rows, answers, strict=True):
        groups.setdefault((row.partition, row.end), []).append(each)
    return [comparable(query, group) for group in groups.values()]


def allowed(query: Query, groups: list[Counter[Answer]], reported: Counter[Answer]) -> bool:
    """Whether LIMIT may leave just this. It comes before DISTINCT: `groups` repeat what is equal, `reported` does
    not."""
    assert query.limit is not None
    if not (isinstance(query.form, Select) and query.form.distinct):
        return is_choice(reported, groups, query.limit)
    if any(n > 1 and not has_blanks(a) for a, n in reported.items()):
        return False
    every = sum(groups, Counter[Answer]())
    if any(n > every[a] for a, n in reported.items()):
        return False
    sizes = [min(group.total(), query.limit.count) for group in groups]
    enough = all(sum(group[a] for a in reported) >= size for group, size in zip(groups, sizes, strict=True))
    return enough and len(reported) <= sum(sizes)


def has_blanks(each: Answer) -> bool:
    """Such answers look alike though their blank nodes are those of different events."""
    return any(text.startswith("_:") for _, text in each[1])


def with_repetitions(query: Query) -> Query:
    """The query without DISTINCT."""
    return replace(query, form=replace(query.form, distinct=False)) if isinstance(query.form, Select) else query


def difference(situation: Situation) -> str | None:
    """What `run` and the reference do not agree on."""
    query = load(situation.text)
    expected, answers = by_reference(query if query.limit is None else with_repetitions(query), situation)
    if expected.ambiguous:
        return None
    late, found = by_run(query, situation)
    if late != expected.late:
        return f"{late} events were late, not {expected.late}"
    given = comparable(query, found)
    if query.limit is not None:
        groups = choices(query, expected, answers)
        return None if allowed(query, groups, given) else f"{dict(given)} is not a choice from {groups}"
    wanted = comparable(query, answers)
    return None if wanted == given else f"missing {dict(wanted - given)}, too much {dict(given - wanted)}"


def disorder(situation: Situation) -> str | None:
    """What differs between ways to push the same events."""
    query = load(situation.text)
    one_by_one = by_pushes(query, situation, together=False)
    if by_pushes(query, situation, together=True) != one_by_one:
        return "pushing several events at once gives another answer or order"
    if sorted(one_by_one, key=lambda a: a[0]) != sorted(by_run(query, situation)[1], key=lambda a: a[0]):
        return "run gives another answer or order than pushing one by one"
    return None


def fail_small(situation: Situation, check: Callable[[Situation], str | None]) -> None:
    """Fail with a small situation if `check` finds something."""

    def fails(each: Situation) -> bool:
        try:
            return check(each) is not None
        except QueryError:
            return False  # taking lines away has left no query
        except Exception:
            return True

    if fails(situation):
        small = reduce(situation, fails)
        events = "\n".join(f"  {iri} {t}: {text!r}" for iri, all_ in small.streams.items() for t, text in all_)
        print(f"{small.text}\n{events}\nKB {small.kb!r} lateness {small.lateness} order {small.order}")
        pytest.fail(f"{check(small)}")


@thorough(phases=WITHOUT_SHRINKING)
@given(situations() | situations(clauses=True))
def test_run_agrees_with_the_reference(situation: Situation) -> None:
    fail_small(situation, difference)


@thorough(phases=WITHOUT_SHRINKING)
@given(situations() | situations(clauses=True))
@pytest.mark.slow
def test_order_does_not_depend_on_how_events_are_pushed(situation: Situation) -> None:
    fail_small(situation, disorder)
