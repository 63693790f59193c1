"""CEQL → SPAseq: each place of a type is a GPM, `;` is `:`, `:` is `,` (semantics.md 2 and 3).

Not kept: sets of events that can be taken in several ways, events that SELECT hides, windows over an attribute,
FILTER with OR over several events. Partitions are those of CEQL also where contiguity or a window counts their events
(`GpmWriter.by_attribute`). STRICT is contiguity in every step.

A place of a CEQL formula → the graph pattern of its GPM.

The event is a node with the type; each attribute that a condition reads is a variable. One without which the
conditions cannot hold is a triple pattern, another one is OPTIONAL.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace

from pyoxigraph import NamedNode, Variable

from oxiseq.grammar.algebra import (
    Atom,
    Call,
    Disjunction,
    Expression,
    Filter,
    Gpm,
    Group,
    MatchFunction,
    Op,
    OptionalPattern,
    PatternElement,
    Projection,
    Query,
    Repeat,
    Select,
    Sequence,
    SequenceElement,
    Strategy,
    Stream,
    Summary,
    TriplePattern,
)
from oxiseq.grammar.ceql.joins import condition_of, twofold
from oxiseq.grammar.ceql.texts import render_predicate
from oxiseq.grammar.ceql_algebra import (
    OF,
    AttributeWindow,
    CeqlQuery,
    Either,
    EventType,
    Filtered,
    Follows,
    Formula,
    Iterated,
    Named,
    Totals,
    aggregates,
    compared_aggregates,
    subformulas,
)
from oxiseq.grammar.errors import listing
from oxiseq.grammar.records import dataclass
from oxiseq.grammar.scope import conjuncts
from oxiseq.grammar.terms import RDF_TYPE
from oxiseq.grammar.translating.ceql_parts import Names, Place, needed_by, own_attributes, places_of, renamed
from oxiseq.grammar.translating.translation import Translation, refused

# --- ceql spaseq -------------------------------------------------------------------------------------


_EVENTS = (
    "means the same where no two events have the same time, and each is one node with one type and\n"
    "at most one value per attribute"
)


def ceql_as_spaseq(query: CeqlQuery) -> Translation:
    """The query in SPAseq. Raises `QueryError` where SPAseq cannot say it."""
    found = as_sequence(query)
    return Translation(found.query, (_EVENTS, *_held(query.formula, iter(found.gpms))))


@dataclass(frozen=True, slots=True)
class Sequenced:
    """A CEQL query in SPAseq's algebra. Of each place of the formula, left to right: its `gpms`, one for each stream,
    and by which variables its events are `held`."""

    query: Query
    gpms: tuple[list[Gpm], ...]
    held: tuple[frozenset[str], ...]


def as_sequence(query: CeqlQuery) -> Sequenced:
    """A checked query as one that matches sequences. Raises `QueryError` where SPAseq cannot say it."""
    _refuse(query)
    partition = query.partition.by if query.partition is not None else ()
    columns = {column.name for column in query.totals.columns} if query.totals is not None else set()
    names = Names({v.value for v in partition} | columns)
    places = places_of(query.formula, query.text, names)
    _refuse_hidden(query, places)
    writer = GpmWriter(query.vocab or "", partition, bool(partition) and _counts_events(query), names)
    gpm_names = Names()
    gpms = [
        [_gpm(place, stream.name, len(query.streams) > 1, gpm_names, writer) for stream in query.streams]
        for place in places
    ]
    strict = query.selection is not None and query.selection.strategy is Strategy.STRICT
    atoms = iter([_either([Atom(g.name) for g in each]) for each in gpms])
    form = Select(None, False, None if strict else query.selection)
    translated = Query(
        form if query.totals is None else replace(form, columns=_columns(query.totals)),
        tuple(Stream(s.name, NamedNode(writer.vocab + s.name)) for s in query.streams),
        _element(query.formula, atoms, strict),
        tuple(gpm for each in gpms for gpm in each),
        query.window,  # type: ignore[arg-type]  # not one over an attribute: see _refuse
        (("", writer.vocab),),
        None,
        query.partition,
        query.consumption,
        query.limit,
        summary=_groups(query.totals) if query.totals is not None else _order(query),
    )
    return Sequenced(translated, tuple(gpms), tuple(frozenset(place.names) for place in places))


# --- what is emitted for all that end at once ---------------------------------------------------------


def _order(query: CeqlQuery) -> Summary:
    keys = () if query.order is None else query.order.keys
    return Summary(order_by=tuple((MatchFunction("STARTTIME"), descending) for _, descending in keys))


def _columns(totals: Totals) -> tuple[Projection, ...]:
    made = [(Variable(column.name), _of_groups(column.expression)) for column in totals.columns]
    return tuple(Projection(name, None if value == name else value) for name, value in made)


def _groups(totals: Totals) -> Summary:
    """Each event has a time of its own, so that those that end at it are those that end then."""
    named = {Variable(column.name): column.expression for column in totals.columns}
    having = () if totals.having is None else (_of_groups(_named(totals.having, named)),)
    return Summary((*totals.by, MatchFunction("ENDTIME")), having)


def _of_groups(expression: Expression) -> Expression:
    """`[company]` is the partition's variable."""
    match expression:
        case Call("[]", (Variable() as attribute,)):
            return attribute
        case Call(name, args):
            return Call(name, tuple(map(_of_groups, args)))
    return expression


def _named(expression: Expression, columns: Mapping[Variable, Expression]) -> Expression:
    """With what the columns are for their names."""
    match expression:
        case Variable():
            return columns[expression]
        case Call(name, args) if name != OF:
            return Call(name, tuple(_named(arg, columns) for arg in args))
    return expression


# --- what cannot be kept --------------------------------------------------------------------------


def _refuse(query: CeqlQuery) -> None:
    if isinstance(query.window, AttributeWindow):
        hint = "SPAseq's windows count time or events: WITHIN 30 SECONDS, WITHIN 10 EVENTS"
        raise refused("a window over an attribute cannot be written in SPAseq", query.window.span, query.text, hint)
    if query.window is not None and query.window.size == 0:
        hint = "it holds one event"
        raise refused("SPAseq has no window of size 0", query.window.span, query.text, hint)
    if query.sample is not None:
        message = "SAMPLE draws other matches in SPAseq: its random draws depend on the query's text"
        raise refused(message, query.sample.span, query.text, "leave it out")
    for aggregate in compared_aggregates(query.order) if query.order is not None else ():
        message = f"{render_predicate(aggregate)} runs over all events of a complex event, at any position"
        hint = "SPAseq's aggregates run over one pattern's values: order by START"
        raise refused(message, aggregate.span, query.text, hint)
    for aggregate in aggregates(query.totals) if query.totals is not None else ():
        if aggregate.arg is not None:
            message = f"{render_predicate(aggregate)} runs over all events of all complex events, at any position"
            hint = "SPAseq's aggregates run over one pattern's values: only COUNT(*) is translated"
            raise refused(message, aggregate.span, query.text, hint)
    by = query.partition.by if query.partition is not None else ()
    for column in query.totals.columns if query.totals is not None else ():
        if Variable(column.name) in by and column.expression != Call(OF, (Variable(column.name),)):
            message = f"{column.name} is a column here and an attribute of PARTITION BY"
            raise refused(message, column.span, query.text, "both would be one variable: rename the column")
    if two := twofold(query.formula):
        first, second = two
        message = f"an event {second.name} can match here and at column {first.span.column} for the same complex event"
        if first.span.line != second.span.line:
            message = message.replace("at column", f"at line {first.span.line}, column")
        hint = "CEQL returns each set of events once, SPAseq each way to match: name each type so that one way is left"
        raise refused(message, second.span, query.text, hint)


def _refuse_hidden(query: CeqlQuery, places: list[Place]) -> None:
    shown = None if query.columns is None else {c.name for c in query.columns}
    for place in places:
        if shown is not None and not shown & place.names:
            message = f"SELECT does not show this {place.what.name}"
            hint = "CEQL returns each set of shown events once, SPAseq each match: write SELECT *"
            raise refused(message, place.what.span, query.text, hint)


# --- SEQ ------------------------------------------------------------------------------------------


def _gpm(place: Place, stream: str, several: bool, names: Names, writer: GpmWriter) -> Gpm:
    name = names.fresh(f"{place.called}_{stream}" if several else place.called)
    return Gpm(name, stream, writer.pattern(place, name))


def _element(formula: Formula, atoms: Iterator[SequenceElement], strict: bool) -> SequenceElement:
    """The formula as an expression of SEQ; `atoms` stand for its types, left to right."""
    match formula:
        case EventType():
            return next(atoms)
        case Named(inner) | Filtered(inner):
            return _element(inner, atoms, strict)
        case Iterated(inner, contiguous):
            return Repeat(_element(inner, atoms, strict), chain=_op(contiguous or strict))
        case Either(formulas):
            return _either([_element(f, atoms, strict) for f in formulas])
        case Follows(first, rest):
            start = _element(first, atoms, strict)
            return Sequence(start, tuple((_op(c or strict), _element(f, atoms, strict)) for c, f in rest))


def _op(contiguous: bool) -> Op:
    return Op.STRICT if contiguous else Op.ANY


def _either(elements: list[SequenceElement]) -> SequenceElement:
    return elements[0] if len(elements) == 1 else Disjunction(tuple(elements))


# --- what depends on what -------------------------------------------------------------------------


def _counts_events(query: CeqlQuery) -> bool:
    """Whether it matters which events of other types are in a partition."""
    strict = query.selection is not None and query.selection.strategy is Strategy.STRICT
    counted = query.window is not None and not isinstance(query.window, AttributeWindow) and query.window.events
    return strict or counted or _contiguous(query.formula)


def _contiguous(formula: Formula) -> bool:
    match formula:
        case Iterated(_, True):
            return True
        case Follows(_, rest) if any(contiguous for contiguous, _ in rest):
            return True
    return any(_contiguous(inner) for inner in subformulas(formula))


def _held(formula: Formula, gpms: Iterator[list[Gpm]]) -> Iterator[str]:
    """Which GPMs stand for the variables that AS gives to more than one type."""
    held: dict[str, list[str]] = {}
    _collect(formula, gpms, held)
    for name, found in held.items():
        yield f"{name} is {listing(dict.fromkeys(found))}"


def _collect(formula: Formula, gpms: Iterator[list[Gpm]], held: dict[str, list[str]]) -> list[str]:
    if isinstance(formula, EventType):
        return [g.name for g in next(gpms)]
    found = [name for inner in subformulas(formula) for name in _collect(inner, gpms, held)]
    if isinstance(formula, Named) and found != [formula.name]:
        held.setdefault(formula.name, []).extend(found)
    return found


# --- ceql gpms ---------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class GpmWriter:
    """What the patterns of one query have in common."""

    vocab: str
    partition: tuple[Variable, ...]
    by_attribute: bool
    """Every event that has the partition's attributes is in the partition, even if its type or its condition
    does not fit: then only these may be outside FILTER and OPTIONAL."""
    names: Names

    def pattern(self, place: Place, gpm: str) -> Group:
        """The pattern of `place`."""
        node = Variable(self.names.fresh(gpm))
        asked = sorted({v for e in place.asked for v in own_attributes(e)} - set(self.partition), key=str)
        values = {v: Variable(self.names.fresh(f"{gpm}_{v.value}")) for v in asked}
        needed = set() if self.by_attribute else {v for e in place.asked for v in needed_by(e, True)}
        elements: list[PatternElement] = [self._attribute(node, v, v) for v in self.partition]
        elements += self._type(place, node, gpm)
        for attribute in sorted(asked, key=lambda v: v not in needed):
            triple = self._attribute(node, attribute, values[attribute])
            elements.append(triple if attribute in needed else OptionalPattern(Group((triple,))))
        for attribute, value, always in place.told:
            triple = self._attribute(node, attribute, value)
            elements.append(triple if always and not self.by_attribute else OptionalPattern(Group((triple,))))
        certain = frozenset({values[v] for v in needed if v in values} | set(self.partition))
        conditions = (each for e in place.asked for each in conjuncts(renamed(e, values)))
        return Group((*elements, *(self._asked(each, certain) for each in conditions)))

    def _asked(self, expression: Expression, certain: frozenset[Variable]) -> PatternElement:
        """The condition on an event. A condition on the knowledge base about what each event binds is a pattern that is
        joined: its answer is fetched once, not for each event."""
        condition = condition_of(expression)
        fetched = condition is not None and condition.joinable and not self.by_attribute
        if condition is None or not fetched or not certain.issuperset(value for _, value in condition.given):
            return Filter(self._condition(expression, certain))
        return condition.joined({v: Variable(self.names.fresh(v.value)) for v in condition.own()})

    def _condition(self, expression: Expression, certain: frozenset[Variable]) -> Expression:
        """Without CEQL's own calls. `certain`: the variables that every event of the place binds."""
        condition = condition_of(expression)
        if condition is not None:
            own = {v: Variable(self.names.fresh(v.value)) for v in condition.own()}
            return condition.written(own, certain)
        if isinstance(expression, Call):
            return replace(expression, args=tuple(self._condition(each, certain) for each in expression.args))
        return expression

    def _attribute(self, node: Variable, attribute: Variable, value: Variable) -> TriplePattern:
        return TriplePattern(node, NamedNode(self.vocab + attribute.value), value)

    def _type(self, place: Place, node: Variable, gpm: str) -> list[PatternElement]:
        type_ = NamedNode(self.vocab + place.what.name)
        if not self.by_attribute:
            return [TriplePattern(node, RDF_TYPE, type_)]
        kind = Variable(self.names.fresh(f"{gpm}_type"))
        return [OptionalPattern(Group((TriplePattern(node, RDF_TYPE, kind),))), Filter(Call("=", (kind, type_)))]
