"""A WHERE clause as `why` sees it: its steps are ever larger parts; a condition is one of a part's new element. That of
a query over the store is asked of what the store holds now.
"""

from __future__ import annotations

import time
from abc import abstractmethod
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Final

import numpy as np
from numpy.typing import NDArray
from pyoxigraph import BlankNode, Variable

from oxiseq.engine.kb import KnowledgeBase
from oxiseq.engine.terms.dictionary import TermDictionary
from oxiseq.grammar.algebra import Filter, GraphPattern, Group, MatchPattern, PatternElement, SubSelect, TriplePattern
from oxiseq.grammar.render_sparql import SparqlWriter
from oxiseq.grammar.rsp_algebra import RspQuery
from oxiseq.grammar.scope import expression_variables, visible_variables
from oxiseq.grammar.windows.texts import render_rsp
from oxiseq.languages.reasons.read import FREE, Bounds
from oxiseq.languages.reasons.report import Funnel, Near, Provenance, Stage, Step, Why, Wording
from oxiseq.languages.reasons.where.origins import facts_of
from oxiseq.languages.reasons.where.parts import Holder, Part, asked_alone, parts
from oxiseq.languages.reasons.why import MOST, FoundRow, FoundRows, Subject, WhyCondition, WhyStep, why_of

# --- subject -----------------------------------------------------------------------------------------


OTHER: Final = "_of_pattern"
"""After a variable for the value of its own that a pattern has where a join is left out."""
_PLACES: Final = ("subject", "predicate", "object")


class WhereSubject(Subject):
    """`events`: what its EVENT definitions bind, for MATCH."""

    chained = True
    """Whether a part has rows only if the part before has some."""

    def __init__(
        self, where: Group, prefixes: Sequence[tuple[str, str]], events: Mapping[str, Sequence[Variable]] = {}
    ) -> None:
        self.where = where
        self.write = SparqlWriter(dict(prefixes))
        self.ladder = parts(where, dict(prefixes), events)

    @abstractmethod
    def begun(self, variant: Group) -> FoundRows: ...

    def beginnings(self) -> Sequence[WhyStep]:
        last = len(self.ladder) - 1
        return [
            WhyStep(
                part.text,
                part.where,
                partial(self.conditions, part),
                (number - 1,) if number and self.chained else (),
                number == last,
            )
            for number, part in enumerate(self.ladder)
        ]

    def conditions(self, part: Part) -> Iterator[WhyCondition]:
        """Those of its new element."""
        added = part.added
        if isinstance(added, Filter):
            shown = tuple(sorted(v.value for v in expression_variables(added.condition)))
            text = f"FILTER({self.write.expression(added.condition)})"
            yield WhyCondition("filter", text, part.build(()), shown, added.condition)
            return
        if part.unordered is not None:
            yield WhyCondition("order", part.text, part.unordered)
        if isinstance(added, TriplePattern):
            yield from _joins(part, added)
            yield from _constants(part, added, self.write)
        if part.before and not isinstance(added, MatchPattern):
            shared = tuple(v.value for v in visible_variables(added) if v in part.before)
            kind = "knowledge base" if isinstance(part.holder, GraphPattern) else "pattern"
            yield WhyCondition(kind, part.text, part.build(()), shared)

    def alone(self, holder: Holder, element: PatternElement) -> Step:
        """How many rows a pattern has by itself."""
        where = element if holder is None else replace(holder, pattern=Group((element,)))
        return counted(len(self.begun(Group((where,)))), "row", f"of {self.text(element)}")

    def text(self, element: PatternElement) -> str:
        """A part of WHERE in one line."""
        return " ".join(self.write.element(element, "").split()).removesuffix(" .").replace(" . }", " }")


def _joins(part: Part, pattern: TriplePattern) -> Iterator[WhyCondition]:
    for variable in dict.fromkeys(v for v in visible_variables(pattern) if v in part.before):
        pair = variable.value, f"{variable.value}{OTHER}"
        places = [place for place in _PLACES if getattr(pattern, place) == variable]
        loose = part.build((_with(pattern, places, Variable(pair[1])),))
        yield WhyCondition("join", f"the same ?{variable.value}", loose, pair, same=pair)


def _constants(part: Part, pattern: TriplePattern, write: SparqlWriter) -> Iterator[WhyCondition]:
    for place in ("subject", "object"):  # any predicate at all would always give rows, and show nothing
        term = getattr(pattern, place)
        if not isinstance(term, Variable | BlankNode):
            loose = part.build((_with(pattern, [place], Variable(place)),))
            yield WhyCondition("constant", write.term(term), loose, (place,))


def _with(pattern: TriplePattern, places: Sequence[str], variable: Variable) -> TriplePattern:
    """The pattern with a variable in some places."""
    subject, predicate, obj = (variable if place in places else getattr(pattern, place) for place in _PLACES)
    return TriplePattern(subject, predicate, obj)


def counted(number: int, one: str, text: str) -> Step:
    """How many there are, up to those that are examined."""
    return Step("holds", f"{'or more ' * (number >= MOST)}{one}{'s' * (number != 1)} {text}", number)


def answer_stage(body: SubSelect, answers: FoundRows) -> Stage:
    """What the modifiers of a query leave."""
    clauses = ("GROUP BY", body.group_by), ("HAVING", body.having), ("DISTINCT", body.distinct), ("LIMIT", body.limit)
    used = " and ".join(name for name, there in clauses if there)
    return Stage(f"the answer, after {used}" if used else "the answer", len(answers), answers.more)


def rows(
    columns: Iterable[str], ids: NDArray[np.uint32], terms: TermDictionary, spans: NDArray[np.int64] | None = None
) -> tuple[FoundRow, ...]:
    """Rows of ids (0: unbound) as answers. `spans`: i64[k, 2], µs, of rows with intervals."""
    names, found = tuple(columns), []
    for number, row in enumerate(ids.tolist()):
        span = () if spans is None else tuple(spans[number].tolist())
        bound = {name: i for name, i in zip(names, row, strict=True) if i}
        values = {name: terms.term(bound[name]) if name in bound else None for name in names}
        found.append(FoundRow(span, values, (span[1] - span[0],) if span else (), bound))
    return tuple(found)


def behind(answer: FoundRow, where: FoundRows) -> list[FoundRow]:
    """The rows of WHERE that an answer rests on: those that agree with it, at its interval."""
    bound = [(name, term) for name, term in answer.values.items() if term is not None]
    return [
        row
        for row in where.all
        if row.key == answer.key and all(row.values[n] == term for n, term in bound if n in row.values)
    ]


# --- store -------------------------------------------------------------------------------------------


class StoreSubject(WhereSubject):
    """Rows of a standing query; `at`: when it is asked (µs)."""

    language = "sparql"
    late = 0
    wording = Wording("patterns")

    def __init__(self, query: RspQuery, kb: KnowledgeBase, at: int, bounds: Bounds) -> None:
        super().__init__(query.body.where, query.prefixes)
        self.query, self.kb, self.at, self._check = query, kb, at, bounds.check

    def begun(self, variant: Group) -> FoundRows:
        return self._rows(SubSelect(None, variant, limit=MOST))

    def whole(self, variant: None = None) -> FoundRows:
        body = self.query.body
        return self._rows(replace(body, limit=min(MOST if body.limit is None else body.limit, MOST)))

    def _rows(self, body: SubSelect) -> FoundRows:
        asked = replace(self.query, form="SELECT", template=(), body=body)
        names = [
            (each if isinstance(each, Variable) else each[1]).value
            for each in (visible_variables(body.where) if body.projection is None else body.projection)
        ]
        self._check()
        found: list[FoundRow] = []
        for row in self.kb.solutions(render_rsp(asked)):
            self._check()
            found.append(FoundRow((), {name: row[name] for name in names}))
        return FoundRows(tuple(found), len(found) == MOST)

    def outcome(self, whole: FoundRows) -> Stage:
        return answer_stage(self.query.body, whole)

    def patterns(self) -> Iterator[Funnel]:
        steps = tuple(self.alone(holder, element) for holder, element in asked_alone(self.where))
        yield Funnel("the store", "", 0, steps)

    def near(self, condition: WhyCondition, answer: FoundRow) -> Near:
        return Near({}, condition.read(answer))

    def provenances(self, whole: FoundRows, most: int) -> Iterator[Provenance]:
        where = self.begun(self.where)
        for answer in whole.all[:most]:
            rows = behind(answer, where)
            facts = dict.fromkeys(q for row in rows for q in facts_of(self.where, row.values, self.kb, default=True))
            yield Provenance(self.at or 0, answer.values, (), tuple(facts))


def why_over_store(query: RspQuery, kb: KnowledgeBase, provenance: int, bounds: Bounds = FREE) -> Why:
    """Why a standing query has rows or not, over what the store holds now. Raises KbError, and whatever the bounds
    raise."""
    return why_of(StoreSubject(query, kb, time.time_ns() // 1000, bounds), provenance)
