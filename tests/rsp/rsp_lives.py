"""Queries over windows fed an event at a time, as a server feeds them, and moved into other dictionaries meanwhile."""

from __future__ import annotations

import random
from collections.abc import Callable, Collection
from typing import TypeAlias

from loaded import load
from pyoxigraph import Literal, Store
from reference.rsp import Answer
from rsp_strategies import Setting, kb_store, triples

from oxiseq.engine.events.encode import encode_events
from oxiseq.engine.kb import StoreKb
from oxiseq.engine.rsp.plan import RspOptions, RspPlan, compile_rsp
from oxiseq.engine.run.rsp import RspRun
from oxiseq.engine.snapshot.saving import restore, save
from oxiseq.engine.terms.dictionary import TermDictionary
from oxiseq.grammar.rsp_algebra import RspQuery
from oxiseq.languages.rsp.language import rsp_shape
from oxiseq.matches.match import Match
from oxiseq.options import said

Row: TypeAlias = tuple[int, int | None, int | None, tuple[tuple[str, str], ...]]


def without_label(term: object) -> str:
    """Labels of blank nodes mean nothing."""
    text = str(term)
    return "_:" if text.startswith("_:") else text


def row_of(answer: Match, text: Callable[[object], str] = without_label) -> Row:
    bound = sorted((v, text(t)) for v, t in answer.items() if t is not None)
    return answer.at_us, answer.start_us, answer.end_us, tuple(bound)


def row_of_reference(answer: Answer, shown: Collection[str] | None) -> Row:
    """The row of an answer of the reference, of the variables that are shown; an answer without events has no `end`
    there, and its row's is the instant that it is about."""
    bound = tuple((v, without_label(t)) for v, t in answer.row if shown is None or v in shown)
    return answer.at, answer.start, answer.at if answer.end is None else answer.end, bound


class Life:
    """One query at work. With `kb`, which all lives of a query share, rows have the labels of blank nodes."""

    def __init__(self, setting: Setting, kb: Store | None = None) -> None:
        self.setting = setting
        self.kb = kb
        self.terms = TermDictionary()
        self.plan = self._compiled()
        self.run = RspRun(self.plan, self.terms, self._kb())
        self.found: list[Row] = []

    def _compiled(self) -> RspPlan:
        query = load(self.setting.text, self.setting.language)
        assert isinstance(query, RspQuery)
        asked = said(
            query.language,
            {
                "stream_operator": self.setting.report,
                "evaluation_times": self.setting.instants,
                "consumption": self.setting.consumption,
            },
        )
        return compile_rsp(
            query, self.terms, RspOptions(asked.stream_operator, asked.evaluation_times, asked.consumption)
        )

    def _kb(self) -> StoreKb:
        return StoreKb(kb_store(self.setting.kb) if self.kb is None else self.kb)

    def move(self, dice: random.Random) -> None:
        """Go on from a snapshot in a dictionary that holds other terms."""
        data = save(self.run, self.terms)
        assert save(self.run, self.terms) == data
        self.terms = TermDictionary()
        for i in range(dice.randint(0, 9)):
            self.terms.constant(Literal(f"other {i}"))
        if dice.random() < 0.5 and self.kb is None:  # else its labels stay as they are
            self.terms.blank()
        self.plan = self._compiled()
        self.run = restore(data, self.plan, self.terms, self._kb())

    def push(self, iri: str, time: int, text: str) -> None:
        """An event, when nothing before it can come any more."""
        self.run.push(iri, encode_events([(time, triples(text))], self.terms))
        for other in self.plan.streams:
            self.run.punctuate(other, time)
        self.advance()

    def advance(self) -> None:
        shape = rsp_shape(self.plan, self.terms)
        for batch in self.run.advance():
            label = without_label if self.kb is None else str
            self.found += [row_of(shape.block([batch]).match(i), label) for i in range(len(batch))]
        self.terms.collect()


def pushed_one_by_one(setting: Setting, moves: random.Random | None = None, kb: Store | None = None) -> list[Row]:
    """The events in order of time, a push each; with `moves` the query moves now and then."""
    life = Life(setting, kb)
    streams = enumerate(life.plan.streams)
    events = sorted((time, i, iri, text) for i, iri in streams for time, text in setting.streams.get(iri, []))
    for time, _, iri, text in events:
        life.push(iri, time, text)
        if moves is not None and moves.random() < 0.5:
            life.move(moves)
    life.run.close()
    life.advance()
    return life.found
