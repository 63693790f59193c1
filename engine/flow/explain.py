"""A plan's operators, as plain facts: for explanations in text, JSON and pictures."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Final

from pyoxigraph import NamedNode, Triple, Variable

from oxiseq.engine.flow import plan as p
from oxiseq.engine.flow.rewriting import placed
from oxiseq.engine.flow.times import NEVER
from oxiseq.grammar.algebra import Expression, TriplePattern
from oxiseq.grammar.records import dataclass
from oxiseq.grammar.render import amount
from oxiseq.grammar.render_sparql import SparqlWriter

_ASKED: Final = "queried from the knowledge base, again when a quad of its patterns is added or removed there"
_PLAIN: Final = "row by row"
_TIMES: Final = 4
"""Columns of an interval."""
_FOLLOWED: Final = "nothing: the store reports its changes"


@dataclass(frozen=True, slots=True)
class Step:
    """An operator. number: its place; inputs: their places; what: its name; detail: its work, line by line;
    columns: names of its columns; keeps: what it remembers."""

    number: int
    inputs: tuple[int, ...]
    what: str
    detail: tuple[str, ...]
    columns: tuple[str, ...]
    keeps: str

    @property
    def asked(self) -> bool:
        """Whether Oxigraph answers it."""
        return self.keeps == _ASKED


def steps(plan: p.FlowPlan, roots: Mapping[int, Sequence[str]], prefixes: Mapping[str, str]) -> tuple[Step, ...]:
    """All operators of a plan, inputs first; `roots`: by its roots the names of their columns."""
    describing = _Describing(plan.forms, _names(plan, roots), prefixes)
    return tuple(describing.step(n, form) for n, form in enumerate(plan.forms))


def long(limit: int | None) -> str:
    """A limit in words: `10 MINUTES`, and `less than` so much where it is a microsecond shorter."""
    if limit is None:
        return "ever"
    if limit <= 0:
        return "an instant" if limit == 0 else "no time"
    exact, above = amount(limit), amount(limit + 1)
    if not exact.isdigit():
        return exact
    return f"{exact} µs" if above.isdigit() else f"less than {above}"


def _names(plan: p.FlowPlan, roots: Mapping[int, Sequence[str]]) -> list[tuple[str, ...]]:
    """The names of each operator's columns, going down from the roots: those of the columns made of them. A column
    that is no part of an answer is called by its place."""
    found: list[list[str]] = [[*roots.get(place, [""] * width)] for place, width in enumerate(plan.widths)]
    for place in range(len(plan.forms) - 1, -1, -1):
        for child, at, here in _handed_on(plan, place):
            found[child][at] = found[child][at] or found[place][here]
    return [tuple(name or f"c{i}" for i, name in enumerate(names)) for names in found]


def _handed_on(plan: p.FlowPlan, place: int) -> Iterator[tuple[int, int, int]]:
    """Columns of its inputs, and which of the operator's they are."""
    form = plan.forms[place]
    for here, origin in enumerate(p.origins(form, plan.widths)):
        yield from ((child, at, here) for child, at in origin if origin != p.NUMBER)
    if isinstance(form, p.Join | p.Look | p.Follow):
        left, right = p.inputs(form)
        pair = (form, plan.forms[right]) if isinstance(form, p.Look) else (plan.forms[left], plan.forms[right])
        sides = (form.left, form.right) if isinstance(form, p.Follow) else pair
        keys = [each.key for each in sides if isinstance(each, p.Arrange | p.Look | p.Timed)]
        yield from ((right, there, here) for here, there in zip(*keys, strict=True))


class _Describing:
    def __init__(self, forms: Sequence[p.Form], names: list[tuple[str, ...]], prefixes: Mapping[str, str]) -> None:
        self.forms, self.names = forms, names
        self.writer = SparqlWriter(dict(prefixes))

    def step(self, number: int, form: p.Form) -> Step:
        what, keeps, *detail = self.described(number, form)
        return Step(number, p.inputs(form), what, tuple(detail), self.names[number], keeps)

    def described(self, number: int, form: p.Form) -> tuple[str, ...]:
        """Name, memory, details."""
        match form:
            case p.Patterns(patterns, conditions, places):
                lines = [self.pattern(number, *each) for each in zip(patterns, places, strict=True)]
                filters = [f"FILTER({self.of(number, f)})" for f in conditions]
                return ("patterns", "the triples that agree with a pattern", *lines, *filters)
            case p.Asked(text, _):
                return ("asked", _ASKED, *text.splitlines())
            case p.Quads(triple, graph):
                return ("quads", _FOLLOWED, self.quads(number, triple, graph))
            case p.Graphs():
                return ("graphs", _FOLLOWED)
            case p.Given(name):
                return ("rows", "nothing", name)
            case p.Constant(rows, _):
                return ("values", "nothing", f"{len(rows)} row{'s' if len(rows) != 1 else ''}")
            case p.Filter(child, conditions):
                return ("filter", _PLAIN, *(self.of(child, each) for each in conditions))
            case p.Extend(child, expression):
                return ("extend", _PLAIN, self.of(child, expression))
            case p.Pick(child, columns):
                return ("columns", _PLAIN, ", ".join(self.picked(child, each) for each in columns))
            case p.Negate():
                return ("less", _PLAIN)
            case p.Union():
                return ("union", _PLAIN)
            case p.Cover():
                return ("hull", _PLAIN)
            case p.Triples():
                names = self.names[number]
                s, o, verb = (
                    Variable(names[part]) if isinstance(part, int) else part
                    for part in (form.parts[0], form.parts[2], form.parts[1])
                )
                assert (
                    not isinstance(s, Triple) and not isinstance(o, Triple) and isinstance(verb, NamedNode | Variable)
                )
                return ("triples", _PLAIN, f"{self.writer.term(s)} {self.writer.verb(verb)} {self.writer.term(o)}")
            case p.Look(child, kept, key, loose, order, what, limit):
                on = " ".join(f"?{self.names[child][i]}" for i in (*key, *loose) if i >= _TIMES)
                said = f"on {on}" if on else "of everything with everything"
                paired = {"ANY": "join", "BEFORE": "SEQ", "BY": "OPTIONAL"}[order]
                name = {"WITH": "EXISTS", "WITHOUT": "NOT EXISTS"}.get(what, paired)
                side = "first" if order == "BEFORE" else "partners"
                within = "" if limit is None else f" within {long(limit)}"
                return (name, f"{side} for {self.kept(kept)}", said + within)
            case p.Sometime():
                return ("sometime", _PLAIN)
            case p.TimeTerm(_, function):
                return (function, _PLAIN)
            case p.Closure(_, limit):
                return ("one step or more", f"steps and paths for {long(limit)}")
            case p.Lasting(_, _, _, least, most):
                if least == 0 and most >= NEVER:
                    return ("timed", _PLAIN)
                return ("lasting", _PLAIN, f"from {least} to {most} microseconds")
            case p.Follow(left, right, choice, meeting):
                return (
                    "follows",
                    "the rows of both sides, in order of time",
                    *self.followed(left, right),
                    *self.of_pairs(choice, meeting),
                )
            case p.Arrange(child, key, loose, lifetime):
                how_long = "" if lifetime is None else f" for {self.kept(number)}"
                return ("arranged by", f"its rows{how_long}", self.keys(child, key, loose))
            case p.Join() | p.JoinAll():
                return ("join", "nothing: its inputs are arranged")
            case p.Lookup(child, _, bound):
                return ("looks up", "nothing: the table is arranged", f"?{self.names[child][bound.place]} {bound.sign}")
            case p.Distinct():
                return ("distinct", "its rows")
            case p.Consolidate():
                return ("consolidate", _PLAIN)
            case p.Once():
                return ("once", _PLAIN)
            case p.Group(child, key, sums):
                shown = (self.sum(child, s) for s in sums)
                return ("group by", "a row for each group", self.keys(child, key, ()), *shown)
            case p.Best(child, key, order, start, stop, ties):
                return ("best", "its rows, ranked", *self.ranks(child, key, order, start, stop, ties))
            case p.Reach():
                return ("reach", "all pairs that are connected, a path for each")

    def kept(self, place: int) -> str:
        """For how long rows are arranged."""
        form = self.forms[place]
        assert isinstance(form, p.Arrange)
        return long(None if form.lifetime is None else form.lifetime.limit)

    def pattern(self, number: int, t: TriplePattern, place: p.Place) -> str:
        """In its window, or its graph."""
        match place:
            case p.WindowPlace(content):
                where = f"in window {content}"
            case p.GraphPlace(None):
                where = "in the knowledge base"
            case p.GraphPlace(name):
                where = f"in {name} of the knowledge base"
        return f"{self.triple(number, t)}  {where}"

    def quads(self, number: int, t: TriplePattern, graph: NamedNode | Variable | None) -> str:
        """A pattern over the store."""
        where = "in the default graph"
        if isinstance(graph, Variable):
            where = f"in graph {self.writer.term(self.variables(number)[graph])}"
        elif graph is not None:
            where = f"in graph {self.writer.term(graph)}"
        return f"{self.triple(number, t)}  {where}"

    def triple(self, number: int, t: TriplePattern) -> str:
        """`number`: of the operator whose columns its variables are."""
        names = self.variables(number)
        subject, object_ = (names.get(x, x) if isinstance(x, Variable) else x for x in (t.subject, t.object))
        verb = names.get(t.predicate, t.predicate) if isinstance(t.predicate, Variable) else t.predicate
        return f"{self.writer.term(subject)} {self.writer.verb(verb)} {self.writer.term(object_)}"

    def of(self, child: int, e: Expression) -> str:
        """An expression over the columns of an operator."""
        return self.writer.one_line(placed(e, self.variables(child)))

    def variables(self, number: int) -> dict[Variable, Variable]:
        """Columns of an operator → their names."""
        return {p.column(i): Variable(name) for i, name in enumerate(self.names[number])}

    def picked(self, child: int, places: tuple[int, ...]) -> str:
        return " or ".join(f"?{self.names[child][i]}" for i in places) or "unbound"

    def keys(self, child: int, key: tuple[int, ...], loose: tuple[int, ...]) -> str:
        names = self.names[child]
        shown = [f"?{names[i]}" for i in key] + [f"?{names[i]} where bound" for i in loose]
        return ", ".join(shown) or "nothing: all pairs"

    def followed(self, left: p.Timed, right: p.Timed) -> tuple[str, ...]:
        """On what pairs in order of time agree."""
        shown = []
        for ours, others, more in ((left.key, right.key, ""), (left.loose, right.loose, " where bound")):
            names = zip(ours, others, strict=True)
            shown += [f"?{self.names[left.child][i]} = ?{self.names[right.child][j]}{more}" for i, j in names]
        return tuple(shown)

    @staticmethod
    def of_pairs(choice: str, meeting: bool) -> tuple[str, ...]:
        which = {"ALL": (), "EARLIEST": ("the first before each",), "LATEST": ("the last before each",)}[choice]
        return (*which, *(("or at the same time",) if meeting else ()))

    def sum(self, child: int, s: p.Sum) -> str:
        return f"{s.name}({'*' if s.place is None else '?' + self.names[child][s.place]})"

    def ranks(
        self, child: int, key: tuple[int, ...], order: tuple[p.Rank, ...], start: int, stop: int | None, ties: bool
    ) -> tuple[str, ...]:
        names = self.names[child]
        by = ", ".join(f"?{names[r.place]}{' descending' if r.descending else ''}" for r in order) or "all columns"
        which = "all that come first" if ties else f"from {start}" + ("" if stop is None else f" to {stop}")
        return (f"by {by}", f"within {self.keys(child, key, ())}" if key else "of all", which)
