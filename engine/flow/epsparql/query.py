"""An EP-SPARQL query and its rules, compiled."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from pyoxigraph import BlankNode, Variable

from oxiseq.engine.errors import ArgumentTypeError, ArgumentValueError, OxiseqError
from oxiseq.engine.expressions.blank_nodes import with_shared_blank_nodes
from oxiseq.engine.flow.epsparql.lowering import Answered, Lowered, compile_query, compile_rules
from oxiseq.grammar.algebra import Ask, Construct, TriplePattern
from oxiseq.grammar.ep_algebra import EpQuery
from oxiseq.grammar.epsparql.checks import check_use
from oxiseq.grammar.epsparql.rules import Stratum, strata
from oxiseq.grammar.records import dataclass
from oxiseq.grammar.rsp_algebra import Consume


@dataclass(frozen=True, slots=True, weakref_slot=True)
class IntervalPlan:
    """A compiled query. `streams`: the IRIs that it reads. `rules` in the order given, processed by `strata`, whose
    plans are `derived`."""

    query: EpQuery
    streams: tuple[str, ...]
    answered: Answered
    rules: tuple[EpQuery, ...]
    derived: tuple[Lowered, ...]
    strata: tuple[Stratum, ...]

    @property
    def variables(self) -> tuple[Variable, ...]:
        """The answer's columns."""
        return self.answered.names

    @property
    def template(self) -> tuple[TriplePattern, ...]:
        """Of CONSTRUCT."""
        return self.query.form.template if isinstance(self.query.form, Construct) else ()

    @property
    def feeds(self) -> str | None:
        """The stream that results go to."""
        into = self.query.form.into if isinstance(self.query.form, Construct) else None
        return None if into is None else into.value

    @property
    def ask(self) -> bool:
        """Whether it is ASK."""
        return isinstance(self.query.form, Ask)

    @property
    def recursive(self) -> bool:
        """Whether rules feed each other."""
        return any(stratum.recursive for stratum in self.strata)

    @property
    def one_by_one(self) -> bool:
        """Whether instants are processed one by one: to the rules' fixpoint, and so that the blank nodes that
        rules make come in an order that the history alone fixes."""
        made = (t for rule in self.rules if isinstance(rule.form, Construct) for t in rule.form.template)
        return self.recursive or any(isinstance(part, BlankNode) for t in made for part in (t.subject, t.object))

    @property
    def plans(self) -> tuple[Lowered, ...]:
        """Those of the rules and of the query."""
        return (*self.derived, self.answered.lowered)


def compile_intervals(
    query: EpQuery, rules: Sequence[EpQuery] = (), streams: Sequence[str] = (), consume: Consume | None = None
) -> IntervalPlan:
    """Compile a checked query with its checked rules. `streams`: what it reads when it names none itself, its own
    result stream aside; `consume`: what happens to triples that answers are made of, when it does not say so itself.

    Raises QueryError where rules wait for themselves or triples cannot be used up, OxiseqError where no stream is
    known, a rule is no CONSTRUCT, or the query contradicts an option.
    """
    for number, rule in enumerate(rules):
        _check_rule(rule, number + 1)
    if query.consume is not None and consume not in (None, query.consume):
        raise ArgumentTypeError(f"the query says CONSUME {query.consume.value}: leave out consumption")
    if query.consume is None and consume is not None:
        query = replace(query, consume=consume)
        for finding in check_use(query, query.text):
            raise finding.to_error()
    named = dict.fromkeys(s.iri.value for q in (query, *rules) for s in q.streams)
    own = query.form.into.value if isinstance(query.form, Construct) and query.form.into is not None else None
    reads = tuple(named) or tuple(iri for iri in dict.fromkeys(streams) if iri != own)
    if not reads:
        raise OxiseqError("the query reads no stream: write FROM STREAM <...> before WHERE, or give it streams")
    layers = strata(rules)
    query, rules = with_shared_blank_nodes(query), with_shared_blank_nodes(tuple(rules))
    derived = tuple(compile_rules([rules[number] for number in layer.rules], layer.recursive) for layer in layers)
    return IntervalPlan(query, reads, compile_query(query), tuple(rules), derived, layers)


def _check_rule(rule: EpQuery, number: int) -> None:
    if not isinstance(rule.form, Construct):
        raise ArgumentValueError(f"rule {number} is no CONSTRUCT query: a rule derives triples")
    if rule.form.into is not None:
        raise ArgumentValueError(
            f"rule {number} says INTO STREAM: what a rule derives is seen by all rules and the query"
        )
    if rule.consume is not None:
        raise ArgumentValueError(f"rule {number} says CONSUME: only what the query answers can use triples up")
