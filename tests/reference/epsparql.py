"""EP-SPARQL on timed triples, as semantics.md section 5 says, slowly and in the open.

    timed triples ─ rules, to their closure ─ ⟦P⟧: mappings with hulls ─ answers

A solution is (µ, start, end). ⟦P⟧ is a *set* of solutions in which µ also holds what is hidden: the values of blank
nodes and of columns that a sub-SELECT leaves out, the branch of a UNION, the row of VALUES. So several choices of
occurrences that give the same mapping and hull count once, and over triples of one time the bag of rows is SPARQL's.
A solution without any triple of the stream (VALUES, knowledge) has the empty hull, (inf, −inf), which every join leaves
as it is; it has no place in time, so SEQ and EQUALS do not take it, and it is no answer by itself.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from math import inf
from typing import Any, NamedTuple, TypeAlias

from pyoxigraph import BlankNode, DefaultGraph, Literal, NamedNode, QuerySolutions, Store, Triple, Variable

from oxiseq.grammar.algebra import (
    Bind,
    Call,
    Construct,
    Exists,
    Expression,
    Filter,
    GraphPattern,
    Group,
    MatchFunction,
    Minus,
    OptionalPattern,
    Path,
    PathAlternative,
    PathInverse,
    PathNegated,
    PathPattern,
    PathRepeat,
    PathSequence,
    PatternElement,
    Projection,
    Select,
    SubSelect,
    Term,
    TimedPattern,
    TimeOp,
    TriplePattern,
    Union,
    Values,
)
from oxiseq.grammar.ep_algebra import EpQuery
from oxiseq.grammar.epsparql.rules import strata
from oxiseq.grammar.rsp_algebra import Consume
from reference.scopes import conjuncts, shown
from reference.sparql_text import group_text
from reference.values import XSD, ExpressionError, Number, evaluate, holds, normal, normal_term, normal_triple, value_of

Mu: TypeAlias = frozenset[tuple[Any, Any]]
"""(variable, or the name of something hidden; its value) pairs."""


class Solution(NamedTuple):
    """A mapping and its hull."""

    mu: Mu
    start: float
    end: float


class Timed(NamedTuple):
    """A triple and its interval."""

    triple: Triple
    start: float
    end: float


class Answer(NamedTuple):
    """A row: the visible bindings, the hull, and for CONSTRUCT the triples (blank nodes as the template has them)."""

    bindings: Mapping[Variable, Term]
    start: int
    end: int
    graph: frozenset[Triple]


Omega: TypeAlias = set[Solution]
NOTHING = Solution(frozenset(), inf, -inf)


def stamped(events: Iterable[tuple[int, int, Iterable[Triple]]]) -> set[Timed]:
    """(start, end, triples) → timed triples; blank nodes belong to their event."""
    return {Timed(normal_triple(_own(t, n)), start, end) for n, (start, end, graph) in enumerate(events) for t in graph}


def _own(triple: Triple, n: int) -> Triple:
    def renamed(term: Any) -> Any:
        return BlankNode(f"e{n}x{term.value}") if isinstance(term, BlankNode) else term

    return Triple(renamed(triple.subject), triple.predicate, renamed(triple.object))


def evaluate_ep(
    query: EpQuery, stream: set[Timed], kb: Store | None = None, rules: Sequence[EpQuery] = ()
) -> list[Answer]:
    """The bag of answers, in order of their ends."""
    store = kb if kb is not None else Store()
    everything = closure(stream | stated(store), store, rules)
    if query.consume in (None, Consume.UNRESTRICTED):
        found = Evaluator(everything, store).group(query.where)
    else:
        found = using_up(query, everything, lambda now: store)
    return sorted(_answers(query, found), key=lambda a: a.end)


def evaluate_using_up(query: EpQuery, stream: set[Timed], kb_at: Callable[[float], Store]) -> list[Answer]:
    """The same, of a query that uses triples up, over a knowledge base that changes."""
    return sorted(_answers(query, using_up(query, stream, kb_at)), key=lambda a: a.end)


def stated(kb: Store) -> set[Timed]:
    """The triples of a knowledge base that every pattern sees."""
    return {
        Timed(normal_triple(q.triple), inf, -inf)
        for graph in (DefaultGraph(), NamedNode("urn:oxiseq:inferred"))
        for q in kb.quads_for_pattern(None, None, None, graph)
    }


def closure(timed: set[Timed], kb: Store, rules: Sequence[EpQuery]) -> set[Timed]:
    """What the rules derive, instant by instant, stratum by stratum."""
    if not rules:
        return timed
    derived: set[Timed] = set()
    for now in sorted({t.end for t in timed if t.end > -inf}):
        for stratum in strata(rules):
            while True:
                seen = {t for t in timed if t.end <= now} | derived
                new = set()
                for number in stratum.rules:
                    for s in Evaluator(seen, kb).group(rules[number].where):
                        if s.end == now:
                            new |= {Timed(t, s.start, s.end) for t in _instantiate(rules[number], s, number)}
                if new <= seen:
                    break
                derived |= new
    return timed | derived


def using_up(query: EpQuery, timed: set[Timed], kb_at: Callable[[float], Store]) -> Omega:
    """CONSUME CHRONOLOGICAL or RECENT, instant by instant: of the solutions that end then and are made of triples that
    no answer has used, each SEQ, innermost first, keeps those with the first (last) second operand among those that
    are equal on what its operands share, and for each of these operands those with its first (last) first operand;
    these are told, and use up all triples that they are made of."""
    best = max if query.consume is Consume.RECENT else min
    used: set[Timed] = set()
    told: Omega = set()
    for now in sorted({t.end for t in timed if t.end > -inf}):
        kb = kb_at(now)
        seen = {t for t in timed if t.end <= now} | stated(kb)
        found = {s for s in Evaluator(seen, kb, used).group(query.where) if s.end == now}
        for seq in _sequences(query.where):
            shared = set(shown(Group((seq.left,)))) & set(shown(Group((seq.right,))))
            pairs = {s: pair for s in found for name, pair in s.mu if name == ("pair", id(seq))}
            groups: dict[Any, list[Solution]] = {}
            for _, second in pairs.values():
                groups.setdefault(frozenset((v, t) for v, t in second.mu if v in shared), []).append(second)
            seconds = {s for each in groups.values() for s in each if s.end == best(o.end for o in each)}
            firsts = {s: best(a.end for a, b in pairs.values() if b == s) for s in seconds}
            found -= {s for s, (a, b) in pairs.items() if b not in seconds or a.end != firsts[b]}
        used |= {t for s in found for name, t in s.mu if _is_mark(name, "use")}
        told |= {s._replace(mu=frozenset((n, t) for n, t in s.mu if not _is_mark(n))) for s in found}
    return told


def _is_mark(name: Any, *kinds: str) -> bool:
    """Whether it tells what a solution is made of: triples, and the pairs of operands of SEQ."""
    return isinstance(name, tuple) and name[0] in (kinds or ("use", "pair"))


def _sequences(element: PatternElement) -> Iterator[TimedPattern]:
    """The SEQs that every solution has if it has what stands around them; operands before their operator."""
    match element:
        case Group(elements):
            for each in elements:
                yield from _sequences(each)
        case Union(branches):
            for branch in branches:
                yield from _sequences(branch)
        case TimedPattern(op, left, right):
            if op is not TimeOp.OPTIONALSEQ:
                yield from _sequences(left)
            if op is not TimeOp.EQUALSOPTIONAL:
                yield from _sequences(right)
            if op is TimeOp.SEQ:
                yield element


def _instantiate(rule: EpQuery, solution: Solution, number: int) -> set[Triple]:
    assert isinstance(rule.form, Construct)
    bound = _columns(rule.form.columns, solution) | _visible(solution.mu)
    label = f"r{number}x{abs(hash(solution)):x}"

    def put(term: Any) -> Any:
        if isinstance(term, BlankNode):
            return BlankNode(f"{label}x{term.value}")
        return bound.get(term) if isinstance(term, Variable) else term

    return _graph(rule.form, put)


def _graph(form: Construct, put: Callable[[Any], Any]) -> set[Triple]:
    made = set()
    for pattern in form.template:
        s, p, o = put(pattern.subject), put(pattern.predicate), put(pattern.object)
        if isinstance(s, NamedNode | BlankNode) and isinstance(p, NamedNode) and o is not None:
            made.add(normal_triple(Triple(s, p, o)))
    return made


def _answers(query: EpQuery, found: Omega) -> Iterator[Answer]:
    rows: list[Answer] = []
    for s in found:
        if s.end == -inf:
            continue
        graph: set[Triple] = set()
        match query.form:
            case Select(columns):
                visible = _visible(s.mu)
                row = visible if columns is None else _columns(columns, s)
            case Construct() as form:
                row = {}
                bound = _columns(form.columns, s) | _visible(s.mu)
                graph = _graph(form, lambda term, b=bound: b.get(term) if isinstance(term, Variable) else term)
            case _:
                row = {}
        rows.append(Answer(row, int(s.start), int(s.end), frozenset(graph)))
    if isinstance(query.form, Select) and query.form.distinct:
        yield from {(frozenset(r.bindings.items()), r.start, r.end): r for r in rows}.values()
    else:
        yield from rows


def _visible(mu: Mu) -> dict[Variable, Term]:
    return {v: t for v, t in mu if isinstance(v, Variable)}


def _columns(columns: Sequence[Projection], s: Solution) -> dict[Variable, Term]:
    bound, row = _visible(s.mu), dict[Variable, Term]()
    for column in columns:
        try:
            value = value_at(column.expression if column.expression is not None else column.variable, bound, s)
        except ExpressionError:
            continue
        row[column.variable] = bound[column.variable] = value
    return row


# --- expressions ------------------------------------------------------------------------------------


def value_at(expression: Expression, bound: Mapping[Variable, Term], s: Solution) -> Term:
    """The value of an expression; functions of time are those of `s`."""
    return evaluate(_counted(expression, bound, s), bound, lambda part: _time(part, s))  # type: ignore[arg-type]


def passes(condition: Expression, bound: Mapping[Variable, Term], s: Solution) -> bool:
    """Whether a FILTER keeps it."""
    return holds(_counted(condition, bound, s), bound, lambda part: _time(part, s))  # type: ignore[arg-type]


def _time(part: MatchFunction, s: Solution) -> Literal:
    if s.end == -inf:
        raise ExpressionError("it has no time")
    match part.name:
        case "getSTARTTIME":
            return _moment(int(s.start))
        case "getENDTIME":
            return _moment(int(s.end))
    seconds = f"{int(s.end - s.start):07d}"
    return normal(Literal(f"PT{seconds[:-6]}.{seconds[-6:]}S", datatype=NamedNode(XSD + "dayTimeDuration")))


def _moment(time: int) -> Literal:
    text = (datetime(1970, 1, 1, tzinfo=UTC) + timedelta(microseconds=time)).isoformat().replace("+00:00", "Z")
    return normal(Literal(text, datatype=NamedNode(XSD + "dateTime")))


def _micros(part: MatchFunction, s: Solution) -> int:
    return int({"getSTARTTIME": s.start, "getENDTIME": s.end}.get(part.name, s.end - s.start))


def _counted(e: Expression, bound: Mapping[Variable, Term], s: Solution) -> Expression:
    """Where a function of time is compared with a number, it is a number of microseconds."""
    if not isinstance(e, Call):
        return e
    args = [_counted(a, bound, s) for a in e.args]
    if e.name in ("=", "!=", "<", ">", "<=", ">=") and s.end > -inf:
        for i in (0, 1):
            other = args[1 - i]
            if isinstance(args[i], MatchFunction) and not isinstance(other, MatchFunction):
                try:
                    number = isinstance(value_of(value_at(other, bound, s)), Number)
                except ExpressionError:
                    number = False
                if number:
                    args[i] = Literal(str(_micros(args[i], s)), datatype=NamedNode(XSD + "integer"))  # type: ignore[arg-type]
    return Call(e.name, tuple(args))


# --- patterns ---------------------------------------------------------------------------------------


def compatible(a: Mu, b: Mu) -> Mu | None:
    """µ1 ∪ µ2, or None."""
    known = dict(a)
    return a | b if all(known.get(v, t) == t for v, t in b) else None


def join(left: Omega, right: Omega) -> Omega:
    """Pairs that agree, with the hull of both."""
    return {
        Solution(mu, min(a.start, b.start), max(a.end, b.end))
        for a in left
        for b in right
        if (mu := compatible(a.mu, b.mu)) is not None
    }


@dataclass
class Evaluator:
    """⟦P⟧ over timed triples. With `used` solutions also hold which triples they are made of, none of them used, and of
    which operands each SEQ."""

    timed: set[Timed]
    kb: Store
    used: set[Timed] | None = None

    @property
    def looking(self) -> Evaluator:
        """For patterns that are only looked at."""
        return Evaluator(self.timed, self.kb)

    def triple(self, pattern: TriplePattern) -> Omega:
        found: Omega = set()
        for t in self.timed - (self.used or set()):
            mu = agrees((pattern.subject, pattern.predicate, pattern.object), t.triple)
            if mu is not None and self.used is not None and t.end > -inf:
                mu |= {(("use", id(pattern), ""), t)}
            if mu is not None:
                found.add(Solution(mu, t.start, t.end))
        return found

    def group(self, group: Group, kept: Callable[[Expression], bool] = lambda e: True) -> Omega:
        """A group's solutions; only the filters that `kept` accepts are applied."""
        found: Omega = {NOTHING}
        for element in group.elements:
            found = self.after(found, element)
        for element in group.elements:
            if isinstance(element, Filter):
                for condition in conjuncts(element.condition):
                    if kept(condition):
                        found = {s for s in found if self.keeps(condition, s)}
        return found

    def after(self, found: Omega, element: PatternElement) -> Omega:
        match element:
            case Filter():
                return found
            case OptionalPattern(inner):
                return self.left_join(found, *self.taken_apart(inner), lambda s, o: o.end <= s.end)
            case Minus(inner):
                others = self.looking.group(inner)
                return {s for s in found if not any(self.removes(o, s) for o in others)}
            case Bind(expression, variable):
                return {self.extended(s, expression, variable) for s in found}
            case _:
                return join(found, self.operand(element))

    def operand(self, element: PatternElement) -> Omega:
        match element:
            case TriplePattern():
                return self.triple(element)
            case PathPattern(s, path, o):
                return self.path_pattern(s, path, o, id(element))
            case Group():
                return self.group(element)
            case Union(branches):
                return {
                    s._replace(mu=s.mu | {(("branch", id(element)), n)})
                    for n, branch in enumerate(branches)
                    for s in self.group(branch)
                }
            case Values(variables, rows):
                return {
                    Solution(
                        frozenset(
                            [
                                *((v, normal_term(t)) for v, t in zip(variables, row, strict=True) if t is not None),
                                (("row", id(element)), n),
                            ]
                        ),
                        inf,
                        -inf,
                    )
                    for n, row in enumerate(rows)
                }
            case GraphPattern():
                return self.knowledge(element)
            case SubSelect():
                return self.sub_select(element)
            case TimedPattern():
                return self.in_time(element)
        raise AssertionError(element)

    # --- the operators of time ------------------------------------------------------------------------

    def in_time(self, element: TimedPattern) -> Omega:
        op, first, second = element.op, element.left, element.right
        match op:
            case TimeOp.OPTIONALSEQ:
                others, conditions = self.taken_apart(first)
                return self.left_join(
                    with_time(self.operand(second)), with_time(others), conditions, lambda s, o: o.end < s.start
                )
            case TimeOp.EQUALSOPTIONAL:
                others, conditions = self.taken_apart(second)
                return self.left_join(
                    with_time(self.operand(first)),
                    with_time(others),
                    conditions,
                    lambda s, o: (o.start, o.end) == (s.start, s.end),
                )
        left, right = with_time(self.operand(first)), with_time(self.operand(second))
        if op is TimeOp.SEQ:
            return {
                s if self.used is None else s._replace(mu=s.mu | {(("pair", id(element)), (a, b))})
                for a in left
                for b in right
                if a.end < b.start
                for s in join({a}, {b})
            }
        pairs = [(a, b) for a in left for b in right if (a.start, a.end) == (b.start, b.end)]
        return {s for a, b in pairs for s in join({a}, {b})}

    def taken_apart(self, optional: PatternElement) -> tuple[Omega, list[Expression]]:
        """An optional part without its filters, and these."""
        if not isinstance(optional, Group):
            return self.operand(optional), []
        conditions = [c for e in optional.elements if isinstance(e, Filter) for c in conjuncts(e.condition)]
        return self.group(optional, lambda e: False), conditions

    def left_join(
        self,
        found: Omega,
        others: Omega,
        conditions: list[Expression],
        near: Callable[[Solution, Solution], bool],
    ) -> Omega:
        out: Omega = set()
        for s in found:
            partners = {
                j for o in others if near(s, o) for j in join({s}, {o}) if all(self.keeps(c, j) for c in conditions)
            }
            out |= partners or {s}
        return out

    # --- conditions -------------------------------------------------------------------------------------

    def keeps(self, condition: Expression, s: Solution) -> bool:
        if isinstance(condition, Exists):
            return self.exists(condition, s)
        if isinstance(condition, Call) and condition.name == "!" and isinstance(condition.args[0], Exists):
            return not self.exists(condition.args[0], s)
        return passes(condition, _visible(s.mu), s)

    def exists(self, e: Exists, s: Solution) -> bool:
        others, conditions = self.looking.taken_apart(e.pattern)
        visible = Solution(frozenset(_visible(s.mu).items()), s.start, s.end)
        found = any(
            all(self.keeps(c, j) for c in conditions) for o in others if o.end <= s.end for j in join({visible}, {o})
        )
        return found is not e.negated

    def removes(self, o: Solution, s: Solution) -> bool:
        """MINUS: a solution that ended by then, agrees and shares a variable."""
        mine, theirs = _visible(s.mu), _visible(o.mu)
        shared = mine.keys() & theirs.keys()
        return o.end <= s.end and bool(shared) and all(mine[v] == theirs[v] for v in shared)

    def extended(self, s: Solution, expression: Expression, variable: Variable) -> Solution:
        try:
            value = value_at(expression, _visible(s.mu), s)
        except ExpressionError:
            return s
        return s._replace(mu=s.mu | {(variable, value)})

    # --- others -----------------------------------------------------------------------------------------

    def knowledge(self, element: GraphPattern) -> Omega:
        names = shown(Group((element,)))
        text = " ".join(str(v) for v in names) or "(1 AS ?one)"
        found = self.kb.query(f"SELECT DISTINCT {text} WHERE {group_text(Group((element,)))}")
        assert isinstance(found, QuerySolutions)
        return {
            Solution(frozenset((v, normal_term(t)) for v in names if (t := row[v]) is not None), inf, -inf)
            for row in found
        }

    def sub_select(self, query: SubSelect) -> Omega:
        found = self.group(query.where)
        if query.values is not None:
            found = join(found, self.operand(query.values))
        out: Omega = set()
        for s in found:
            visible = _visible(s.mu)
            if query.projection is not None:
                columns = tuple(
                    Projection(p) if isinstance(p, Variable) else Projection(p[1], p[0]) for p in query.projection
                )
                shown_ = _columns(columns, s)
            else:
                shown_ = visible
            hidden = [((id(query), v), t) for v, t in s.mu if v not in shown_]
            out.add(s._replace(mu=frozenset([*shown_.items(), *([] if query.distinct else hidden)])))
        return out

    # --- paths ------------------------------------------------------------------------------------------

    def path_pattern(self, s: Any, path: Path, o: Any, element: int) -> Omega:
        name = f"p{element}"
        constants = {normal_term(t) for t in (s, o) if not isinstance(t, Variable | BlankNode)}
        steps = Paths(self.timed - (self.used or set()), constants, None if self.used is None else element)
        out: Omega = set()
        for a, b, start, end, hidden in steps.pairs(path, name):
            mu: Mu | None = frozenset(hidden)
            for asked, given in ((s, a), (o, b)):
                if isinstance(asked, Variable | BlankNode):
                    mu = compatible(mu, frozenset([(asked, given)])) if mu is not None else None
                elif normal_term(asked) != given:
                    mu = None
            if mu is not None:
                out.add(Solution(mu, start, end))
        return out


Pair: TypeAlias = tuple[Any, Any, float, float, frozenset[tuple[Any, Any]]]


@dataclass
class Paths:
    """Property paths: (from, to, start, end, what is hidden). A path of no step spans an occurrence of its node."""

    timed: set[Timed]
    constants: set[Any]
    element: int | None = None
    """If given, what is hidden also says which triples a path of it is made of."""

    def pairs(self, path: Path, name: str) -> set[Pair]:
        match path:
            case NamedNode():
                return self.steps(lambda p: p == path, name)
            case PathInverse(inner):
                return {(b, a, s, e, h) for a, b, s, e, h in self.pairs(inner, name)}
            case PathAlternative(paths):
                return {
                    (a, b, s, e, h | {(name, n)})
                    for n, each in enumerate(paths)
                    for a, b, s, e, h in self.pairs(each, f"{name}{n}|")
                }
            case PathSequence(paths):
                found = self.pairs(paths[0], f"{name}0/")
                for n, each in enumerate(paths[1:], 1):
                    found = {
                        (a, d, min(s1, s2), max(e1, e2), h1 | h2 | {(f"{name}{n}at", b)})
                        for a, b, s1, e1, h1 in found
                        for c, d, s2, e2, h2 in self.pairs(each, f"{name}{n}/")
                        if b == c
                    }
                return found
            case PathRepeat(inner, mark):
                return self.repeated(inner, mark, name)
            case PathNegated(paths):
                return self.negated(paths, name)

    def use(self, t: Timed, name: str) -> frozenset[tuple[Any, Any]]:
        if self.element is None or t.end == -inf:
            return frozenset()
        return frozenset([(("use", self.element, name), t)])

    def steps(self, wanted: Callable[[NamedNode], bool], name: str) -> set[Pair]:
        return {
            (t.triple.subject, t.triple.object, t.start, t.end, self.use(t, name))
            for t in self.timed
            if wanted(t.triple.predicate)
        }

    def negated(self, paths: Sequence[NamedNode | PathInverse], name: str) -> set[Pair]:
        forward = {p for p in paths if isinstance(p, NamedNode)}
        inverse = {p.path for p in paths if isinstance(p, PathInverse)}
        found: set[Pair] = set()
        if forward or not inverse:
            found |= {(a, b, s, e, h | {(name, 0)}) for a, b, s, e, h in self.predicated(forward, name)}
        if inverse:
            found |= {(b, a, s, e, h | {(name, 1)}) for a, b, s, e, h in self.predicated(inverse, name)}
        return found

    def predicated(self, but: set[Any], name: str) -> set[Pair]:
        return {
            (
                t.triple.subject,
                t.triple.object,
                t.start,
                t.end,
                frozenset([((name, "by"), t.triple.predicate)]) | self.use(t, name),
            )
            for t in self.timed
            if t.triple.predicate not in but
        }

    def repeated(self, inner: Path, mark: str, name: str) -> set[Pair]:
        once = {(a, b, s, e, frozenset()) for a, b, s, e, _ in self.pairs(inner, name)}
        found: set[Pair] = set(once)
        while mark != "?":
            more = {
                (a, d, min(s1, s2), max(e1, e2), frozenset())
                for a, b, s1, e1, _ in found
                for c, d, s2, e2, _ in once
                if b == c
            }
            if more <= found:
                break
            found |= more
        if mark != "+":
            for t in self.timed:
                for node in (t.triple.subject, t.triple.object):
                    found.add((node, node, t.start, t.end, frozenset()))
            found |= {(c, c, inf, -inf, frozenset()) for c in self.constants}
        return found


def agrees(pattern: tuple[Any, Any, Any], triple: Triple) -> Mu | None:
    """What a triple pattern binds on a triple; blank nodes are hidden variables."""
    mu: Mu | None = frozenset()
    for asked, given in zip(pattern, triple, strict=True):
        if isinstance(asked, Variable | BlankNode):
            mu = compatible(mu, frozenset([(asked, given)]))
        elif normal_term(asked) != given:
            return None
        if mu is None:
            return None
    return mu


def with_time(found: Omega) -> Omega:
    """Those that have a place in time."""
    return {s for s in found if s.end > -inf}
