"""Fingerprints of plans: a state is restored only into the plan from which it was saved.

A query whose text differs in spaces alone has the same plan. The layout of records counts too, so that a state which
another version of the engine has saved is refused where it would not fit.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from dataclasses import fields, is_dataclass
from functools import cache, singledispatch
from typing import Any, Final
from weakref import ref

import numpy as np

from oxiseq.engine.cea.plan import CeaPlan, DeterminisedSets
from oxiseq.engine.flow.epsparql.query import IntervalPlan
from oxiseq.engine.kernels.cea import records as cea
from oxiseq.engine.kernels.matches.records import NODE
from oxiseq.engine.kernels.sequence import records as sequence
from oxiseq.engine.matches.plan import SequencePlan
from oxiseq.engine.plan.joined import Lowered
from oxiseq.engine.plan.query import LiveKeys, QueryPlan
from oxiseq.engine.rsp.plan import RspPlan

_OF_A_DICTIONARY: Final = "code"
"""The table that holds the ids of constants."""


_known: Final[dict[int, tuple[ref[object], str]]] = {}
"""By identity: plans never change, and each checkpoint needs the fingerprints of all."""


def fingerprint(plan: object) -> str:
    """The same for the same query, in whatever dictionary and process it is compiled."""
    key = id(plan)
    known = _known.get(key)
    if known is None or known[0]() is not plan:
        known = _known[key] = ref(plan, lambda _: _known.pop(key, None)), _made(plan)
    return known[1]


def _made(plan: object) -> str:
    made = hashlib.blake2b(digest_size=16)
    for part in _parts(plan):
        made.update(part if isinstance(part, bytes) else text_of(part).encode())
        made.update(b"\0")
    return made.hexdigest()


def text_of(value: Any) -> str:
    """A value as `repr` writes it, but for sets: the order of their members is another one in each process.

    What is nested deep is written without a call for each level, and once: a join of a thousand patterns is a join
    within a join."""
    if not isinstance(value, set | frozenset | tuple | list | dict) and _shown(value.__class__) is None:
        return repr(value)
    pieces: list[str] = []
    todo: list[tuple[str, Any, str]] = [("", value, "")]
    """What is to be written, with the text before it; or the text behind the parts of something, with nothing."""
    while todo:
        before, each, behind = todo.pop()
        pieces.append(before)
        if behind:
            pieces.append(behind)
            continue
        match each:
            case set() | frozenset():
                pieces.append(f"{{{', '.join(sorted(map(text_of, each)))}}}")
                continue
            case tuple() | list():
                opening, parts, closing = "(", [("", part) for part in each], ")"
            case dict():
                opening, closing = "{", "}"
                parts = [entry for key, part in each.items() for entry in (("", key), (": ", part))]
            case _:
                kind: Any = type(each)
                shown = _shown(kind)
                if shown is None:
                    pieces.append(repr(each))
                    continue
                opening, closing = f"{kind.__name__}(", ")"
                parts = [(f"{name}=", getattr(each, name)) for name in shown]
        pieces.append(opening)
        todo.append(("", None, closing))
        step = 2 if isinstance(each, dict) else 1
        for number in range(len(parts) - 1, -1, -1):
            text, part = parts[number]
            todo.append((text if number == 0 or number % step else f", {text}", part, ""))
    return "".join(pieces)


@cache
def _shown(kind: type[Any]) -> tuple[str, ...] | None:
    """The fields that `repr` shows of a data class; None for other classes."""
    return tuple(each.name for each in fields(kind) if each.repr) if is_dataclass(kind) else None


@singledispatch
def _parts(plan: object) -> Iterable[object]:
    """What distinguishes plans of a kind."""
    raise TypeError(f"no kind of plan is known for {type(plan).__name__}")


@_parts.register
def _of_sequence(plan: SequencePlan) -> Iterable[object]:  # type: ignore[type-arg]  # singledispatch takes classes
    yield plan.query
    match plan.runner:
        case LiveKeys():
            yield from _of_live_keys(plan)
        case DeterminisedSets():
            yield from _of_sets(plan)
        case Lowered():
            yield from _parts(plan.runner.sequence)


def _of_live_keys(plan: QueryPlan) -> Iterable[object]:
    plan = plan.runner.otherwise or plan  # a state says by itself whether windows are composed
    keys, compiled = plan.runner, plan.runner.sequence
    yield plan.streams
    yield [(gpm.name, gpm.stream, gpm.keep, gpm.late, gpm.enriched, gpm.order) for gpm in keys.gpms.values()]
    yield keys.stored, keys.limit, keys.deferred
    yield compiled.letters, compiled.columns, compiled.keys, compiled.places, compiled.vector, compiled.clauses
    for name, table in zip(compiled.tables._fields, compiled.tables, strict=True):
        if name != _OF_A_DICTIONARY:
            yield name, _written(table.dtype), table.shape
            yield table.tobytes()
    yield sequence.Memory._fields, sequence.SCALARS
    yield from map(_written, (NODE, sequence.GROUP, sequence.AGED))


def _of_sets(plan: CeaPlan) -> Iterable[object]:
    sets = plan.runner
    yield plan.streams, plan.letters, sets.variables, sets.positions, sets.atom_of, sets.kept, sets.masks
    yield cea.Memory._fields, cea.SCALARS
    yield from map(_written, (NODE, cea.PART, cea.LIVE))


@_parts.register
def _of_intervals(plan: IntervalPlan) -> Iterable[object]:
    yield plan.query, plan.rules
    yield plan.streams, plan.strata
    yield [lowered.plan for lowered in plan.plans]


@_parts.register
def _of_rsp(plan: RspPlan) -> Iterable[object]:
    yield plan.query
    yield plan.streams, plan.report, plan.rhythm, plan.consumes, plan.contents
    yield [(event.name, event.content, event.variables) for event in plan.events]
    yield plan.flow.plan, plan.flow.compared
    yield "rows by triple pattern"  # what a state has of windows


@cache
def _written(layout: np.dtype[Any]) -> str:
    """A record's fields; NumPy takes a millisecond to write them."""
    return repr(layout)
