"""Runs of all examples, of the corpus and of random CEQL queries: each part of their states is one."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from pyoxigraph import Store

sys.path.insert(0, str(Path(__file__).parent))
from fingerprints import texts
from loaded import load

from oxiseq.engine.errors import OxiseqError
from oxiseq.engine.kb import StoreKb
from oxiseq.engine.snapshot.container import pack, unpack
from oxiseq.engine.terms.dictionary import TermDictionary
from oxiseq.engine.terms.saved import KnownTerms, SavedTerms, Stateful
from oxiseq.languages.registry import language_for
from oxiseq.options import Options


def reached(run: Any) -> Iterator[Stateful]:
    """All that a run is made of, and what has a state besides."""
    left, seen = [run], set()
    while left:
        each = left.pop()
        if id(each) in seen or not isinstance(each, Stateful):
            continue
        seen.add(id(each))
        yield each
        left += [member for part in each.made_of for member in part.members(each)]
        left += [member for value in vars(each).values() for member in several(value)]


def several(value: Any) -> Iterable[Any]:
    if isinstance(value, Mapping):
        return value.values()
    return value if isinstance(value, list | tuple) else (value,)


def faults(run: Any) -> Iterator[str]:
    """What parts of a run cannot do."""
    for each in reached(run):
        for part in each.made_of:
            for member in part.members(each):
                missing = [name for name in ("held_ids", "bytes") if not hasattr(member, name)]
                if part.name is not None:
                    missing += [name for name in ("save", "restore") if not hasattr(member, name)]
                if missing:
                    yield f"{type(each).__qualname__}.{part.attribute}: {type(member).__qualname__} has no {missing}"


def test_all_parts_of_all_runs_have_a_state() -> None:
    found, kinds = dict.fromkeys(()), set()
    for name, language, text, rules in texts():
        terms = TermDictionary()
        try:
            query = load(text, language)
            options = Options(rules=rules, reads=("http://example.org/S",))
            run, _ = language_for(query).compile(query, terms, StoreKb(Store()), options)
        except OxiseqError:
            continue
        run.reserve()
        kinds |= {type(each) for each in reached(run)}
        found |= dict.fromkeys(faults(run))
        if found:
            continue
        assert sum(len(ids) for ids in run.held_ids()) < 1 << 20, name
        assert run.bytes >= 0
        named = SavedTerms(terms)
        state = unpack(pack({"state": run.save(named), "terms": named.state()}))
        run.restore(state["state"], KnownTerms(state["terms"], terms))
    assert not found, "\n".join(found)
    assert len(kinds) > 40, sorted(each.__qualname__ for each in kinds)
