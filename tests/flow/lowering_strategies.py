"""Random queries over two windows and a knowledge base, as deep as SPARQL goes, and small data that they meet.

Built so that Oxigraph answers as SPARQL says; what is left out, and why, stands where it is.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from hypothesis import assume
from hypothesis import strategies as st
from loaded import load
from pyoxigraph import NamedNode, RdfFormat, Store, Triple, parse

from oxiseq.grammar import QueryError
from oxiseq.grammar.rsp_algebra import RspQuery

STREAMS = ("http://e/S", "http://e/T")
E = "http://e/"
GRAPHS = (NamedNode(f"{E}g"), NamedNode(f"{E}h"))
"""Of the knowledge base; both have triples."""
INTEGER = "http://www.w3.org/2001/XMLSchema#integer"
_VARIABLES = ("x", "y", "z")
_HEADS = {
    "named": (
        f"FROM NAMED WINDOW :w ON <{STREAMS[0]}> [RANGE 99]\nFROM NAMED WINDOW :v ON <{STREAMS[1]}> [RANGE 99]\n"
    ),
    "default": f"FROM STREAM <{STREAMS[0]}> [RANGE 99]\nFROM NAMED WINDOW :v ON <{STREAMS[1]}> [RANGE 99]\n",
    "both": f"FROM STREAM <{STREAMS[0]}> [RANGE 99]\nFROM STREAM <{STREAMS[1]}> [RANGE 99]\n",
    "graph": f"FROM NAMED WINDOW :w ON <{STREAMS[0]}> [RANGE 99]\nFROM :g\n",
    "graphs": f"FROM NAMED WINDOW :w ON <{STREAMS[0]}> [RANGE 99]\nFROM :g\nFROM :h\nFROM NAMED :h\n",
    "mixed": f"FROM STREAM <{STREAMS[0]}> [RANGE 99]\nFROM NAMED WINDOW :w ON <{STREAMS[0]}> [RANGE 99]\nFROM :g\n",
}
_WINDOWS = {"named": "wv", "default": "v", "both": "", "graph": "w", "graphs": "w", "mixed": "w"}


@dataclass(frozen=True)
class Case:
    """A query, what its streams hold at the one instant that it is asked at, and the knowledge base."""

    query: RspQuery = field(repr=False)
    text: str
    streams: dict[str, list[Triple]]
    quads: str

    @property
    def kb(self) -> Store:
        """The knowledge base."""
        kb = Store()
        kb.extend(parse(self.quads.encode(), format=RdfFormat.N_QUADS))
        return kb


@dataclass
class Part:
    """A pattern's text; what it binds, and what of that surely."""

    text: str
    seen: frozenset[str] = frozenset()
    sure: frozenset[str] = frozenset()


@dataclass
class Drawing:
    """What patterns are drawn with."""

    draw: st.DrawFn
    windows: str
    names: list[str] = field(default_factory=list)
    place: str = ""
    """Where the patterns inside an EXISTS stand."""

    def one(self, *choices: str) -> str:
        """One of some."""
        return self.draw(st.sampled_from(choices))

    def chance(self, of: int) -> bool:
        """One time in so many."""
        return self.draw(st.integers(1, of)) == of

    def fresh(self) -> str:
        """A variable that nothing else is."""
        self.names.append(f"n{len(self.names)}")
        return self.names[-1]

    # --- patterns -----------------------------------------------------------------------------------

    def triples(self, variables: tuple[str, ...] = _VARIABLES, most: int = 2, predicate_too: str = "w") -> Part:
        """Triple patterns."""
        lines, seen = [], set[str]()
        for _ in range(self.draw(st.integers(1, most))):
            subject = self.one(*(f"?{v}" for v in variables), *(f"?{v}" for v in variables), ":a", "_:b")
            predicate = self.one(":p", ":q", ":p", ":q", ":r", f"?{predicate_too}")
            object_ = self.one(*(f"?{v}" for v in variables), *(f"?{v}" for v in variables), ":b", "1", "[]")
            lines.append(f"{subject} {predicate} {object_} .")
            seen |= {t[1:] for t in (subject, predicate, object_) if t[0] == "?"}
        # a label of a blank node stands in one group of triple patterns
        text = " ".join(lines).replace("_:b", f"_:{self.fresh()}")
        return Part(text, frozenset(seen), frozenset(seen))

    def path(self) -> Part:
        """A path. A constant end is not at one that may have no step: Oxigraph has none then. Alternatives stand where
        they repeat: Oxigraph makes sets of them, SPARQL bags."""
        ends = [self.one("?x", "?y", "?z"), self.one("?x", "?y", "?z")]
        path = self.one(
            ":p/:q",
            "^:p",
            ":p+",
            "(:p|:q)+",
            "(:p/:q)+",
            "!(:p)",
            "!(:p|:q)",
            "!(:p|^:q)+",
            "^(:p/!(^:q))",
            ":p*",
            ":p?",
            "(^:p/:q)*",
            ":p+/:q",
            ":p/:q?",
        )
        if path[-1] not in "*?" and self.chance(4):
            ends[self.draw(st.integers(0, 1))] = ":a"
        if path == "^(:p/!(^:q))" and ends[0] == ends[1]:  # Oxigraph has it once then, however often it is there
            ends[1] = "?y" if ends[0] == "?x" else "?x"
        seen = frozenset(end[1:] for end in ends if end[0] == "?")
        return Part(f"{ends[0]} {path} {ends[1]} .", seen, seen)

    def condition(self, seen: frozenset[str]) -> str:
        """On variables that may be bound."""
        names = sorted(seen) or ["x"]
        one, other = (f"?{self.one(*names)}" for _ in range(2))
        return self.one(
            f"{one} != {other}",
            f"{one} = {other}",
            f"isIRI({one})",
            f"{one} > 1 || BOUND({other})",
            f"BOUND({one})",
            f"!BOUND({one})",
            f"COALESCE({one}, 2) = 2",
            f"{one} IN (:a, 1, {other})",
            f"{one} < 2",
        )

    def exists(self, part: Part, depth: int) -> str:
        """Variables of its own have names of their own: where a group is joined with another, Oxigraph lets bindings of
        that in (operators.md 9)."""
        outer = tuple(sorted(part.sure & {*_VARIABLES}))
        own = self.fresh(), self.fresh()
        names = (*outer, *own)
        inner = self.triples(names, predicate_too=own[0])
        self.place = self.one(*(f"WINDOW :{w}" for w in self.windows), "GRAPH :g", "")
        text = self.within(inner.text)
        if depth and (depth > 1 or self.chance(2)):
            text += self._deep(inner, names, outer)
        if outer and self.chance(2):
            text += f" FILTER({self.condition(inner.sure | {self.one(*outer)})})"
        return f"{self.one('', 'NOT ')}EXISTS {{ {text} }}"

    def _deep(self, inner: Part, names: tuple[str, ...], outer: tuple[str, ...]) -> str:
        """What looks at the row from deep inside. MINUS shares a variable with what is before it there: Oxigraph counts
        those of the row as shared, too."""
        more = self.triples(names, 1, names[-1])
        seen = inner.seen | more.seen | frozenset(outer)
        condition = self.condition(seen)
        kind = self.draw(st.integers(0, 6))
        if kind == 0 and inner.sure & more.sure:
            return f" MINUS {{ {self.within(more.text)} }}"
        if kind == 1:
            return f" OPTIONAL {{ {self.within(more.text)} FILTER({condition}) }} FILTER({self.condition(seen)})"
        if kind == 2:
            return f" {{ {self.within(more.text)} FILTER({condition}) }}"
        if kind == 3:
            other = self.triples(names, 1, names[-1])
            return f" {{ {self.within(more.text)} FILTER({condition}) }} UNION {{ {self.within(other.text)} }}"
        if kind == 4 and seen:
            name = self.fresh()
            return f" BIND(STR(?{self.one(*sorted(seen))}) AS ?{name}) FILTER(STRLEN(?{name}) > 8)"
        if kind == 5:
            return f" FILTER NOT EXISTS {{ {self.within(more.text)} FILTER({condition}) }}"
        name, counted, where = self.one(*names), f"(COUNT(*) AS ?{self.fresh()})", self.within(more.text)
        return self.one(
            f" {{ SELECT ?{name} {{ {where} FILTER({condition}) }} }}",
            f" {{ SELECT ?{name} {{ {where} }} ORDER BY ?{name} LIMIT 1 }}",
            f" {{ SELECT ?{name} {counted} {{ {where} }} GROUP BY ?{name} HAVING(COUNT(*) > 1) }}",
            f" {{ SELECT {counted} {{ {where} }} HAVING(COUNT(*) > 2) }}",
        )

    def within(self, text: str) -> str:
        """In the place of the EXISTS."""
        return f"{self.place} {{ {text} }}" if self.place and text else text

    def _within(self, text: str) -> str:
        """In a window or a graph."""
        places = [f"WINDOW :{w}" for w in self.windows] + ["GRAPH :g", "GRAPH :h"]
        return f"{self.one(*places)} {{ {text} }}"

    def group(self, depth: int, top: bool = True) -> Part:
        """The inside of a group."""
        part = self.element(depth, top)
        for _ in range(self.draw(st.integers(0, 3 if depth else 1))):
            part = self._more(part, depth, top)
        return part

    def _more(self, part: Part, depth: int, top: bool) -> Part:
        kind = self.draw(st.integers(0, 9))
        if kind <= 1 and depth:
            other = self.group(depth - 1, top)
            condition = f" FILTER({self.condition(part.seen | other.seen)})" if self.chance(3) else ""
            if other.sure and self.chance(6):
                condition += f" FILTER {self.exists(other, 0)}"
            return Part(f"{part.text} OPTIONAL {{ {other.text}{condition} }}", part.seen | other.seen, part.sure)
        if kind == 2 and depth:
            return Part(f"{part.text} MINUS {{ {self.group(depth - 1, top).text} }}", part.seen, part.sure)
        if kind == 3:
            return Part(f"{part.text} FILTER({self.condition(part.seen)})", part.seen, part.sure)
        if kind == 4:
            return Part(f"{part.text} FILTER {self.exists(part, depth)}", part.seen, part.sure)
        if kind == 5:
            both = f"{self.exists(part, 0)} {self.one('||', '&&')} {self.condition(part.seen)}"
            return Part(f"{part.text} FILTER({both})", part.seen, part.sure)
        if kind == 6:
            name, some = self.fresh(), f"?{self.one(*sorted(part.seen))}" if part.seen else "?x"
            value = self.one(f"STR({some})", f"{some} + 1", f"IF(BOUND({some}), {some}, 0)", some, self.exists(part, 0))
            return Part(f"{part.text} BIND({value} AS ?{name})", part.seen | {name}, part.sure)
        other = self.element(depth, top)
        return Part(f"{part.text} {other.text}", part.seen | other.seen, part.sure | other.sure)

    def element(self, depth: int, top: bool) -> Part:
        """What is joined."""
        kind = self.draw(st.integers(0, 11 if depth else 4))
        if kind <= 1:
            return self._block(self.triples()) if top and self.chance(2) else self.triples()
        if kind == 2:
            return self._block(self.path()) if top else self.path()
        if kind == 3:
            name, rows = self.one(*_VARIABLES), self.one(":a :b", "1 2", "UNDEF :a", "1 1", "")
            sure = frozenset() if "UNDEF" in rows else frozenset([name])
            return Part(f"VALUES ?{name} {{ {rows} }}", frozenset([name]), sure)
        if kind == 4:
            return self._block(self.triples()) if top else self.triples()
        if kind == 5:
            one, other = self.group(depth - 1, top), self.group(depth - 1, top)
            return Part(f"{{ {one.text} }} UNION {{ {other.text} }}", one.seen | other.seen, one.sure & other.sure)
        if kind <= 7 and top:
            return self._block(self.group(depth - 1, False))
        if kind <= 9:
            return self.sub_select(depth - 1, top)
        inner = self.group(depth - 1, top)
        return Part(f"{{ {inner.text} }}", inner.seen, inner.sure)

    def _block(self, part: Part) -> Part:
        kind = self.draw(st.integers(0, 9))
        if kind == 0:
            return Part(f"GRAPH ?n {{ {part.text} }}", part.seen | {"n"}, part.sure | {"n"})
        if kind == 1 and self.windows:
            return Part(f"WINDOW ?n {{ {part.text} }}", part.seen | {"n"}, part.sure | {"n"})
        return Part(self._within(part.text), part.seen, part.sure)

    # --- sub-queries --------------------------------------------------------------------------------

    def sub_select(self, depth: int, top: bool) -> Part:
        """A sub-query."""
        part = self.group(depth, top)
        names = sorted(part.seen & {*_VARIABLES})
        if names and self.chance(2):
            kept = sorted({self.one(*names) for _ in range(2)})
            mode = self.one("", "DISTINCT ")
            text = f"SELECT {mode}{' '.join(f'?{v}' for v in kept)} {{ {part.text} }}{self.slice(kept)}"
            return Part(f"{{ {text} }}", frozenset(kept), part.sure & frozenset(kept))
        if self.chance(3):
            return Part(f"{{ SELECT * {{ {part.text} }} }}", part.seen, part.sure)
        listed, tail, keys, made = self.aggregates(part)
        text = f"SELECT {listed} {{ {part.text} }}{tail}"
        return Part(f"{{ {text} }}", frozenset([*keys, *made]), part.sure & frozenset(keys))

    def slice(self, names: list[str]) -> str:
        """An order of all that is shown, so that a slice is one set of rows."""
        if self.chance(2):
            return ""
        keys = " ".join(f"{self.one('', 'DESC')}(?{v})" for v in names)
        keys = self.one("", f"DESC(STRLEN(STR(?{names[0]}))) ") + keys
        return f" ORDER BY {keys} {self.one('LIMIT 2', 'LIMIT 1 OFFSET 1', 'OFFSET 1', 'LIMIT 0', '')}"

    def aggregates(self, part: Part) -> tuple[str, str, list[str], list[str]]:
        """What is listed, what follows WHERE, keys, other names. SAMPLE and GROUP_CONCAT have other orders in
        Oxigraph, and COUNT of an expression with an error has none."""
        names = sorted(part.seen & {*_VARIABLES}) or ["x"]
        keys = sorted({self.one(*names) for _ in range(self.draw(st.integers(0, 2)))} & part.seen)
        shown, made = [f"?{k}" for k in keys], list[str]()
        for _ in range(self.draw(st.integers(1, 2))):
            name, v = self.fresh(), self.one(*names)
            made.append(name)
            shown.append(
                self.one(
                    f"(COUNT(*) AS ?{name})",
                    f"(COUNT(?{v}) AS ?{name})",
                    f"(COUNT(DISTINCT ?{v}) AS ?{name})",
                    f"(SUM(?{v}) AS ?{name})",
                    f"(SUM(DISTINCT ?{v}) AS ?{name})",
                    f"(MIN(?{v}) AS ?{name})",
                    f"(MAX(?{v}) AS ?{name})",
                    f"(COUNT(*) + COUNT(?{v}) AS ?{name})",
                    f"(AVG(?{v}) AS ?{name})",
                    f"(SUM(IF(BOUND(?{v}), 1, 2)) AS ?{name})",
                )
            )
        by = [f"?{k}" for k in keys]
        if self.chance(5):
            made.append(self.fresh())
            by.append(f"(COALESCE(?{names[0]}, 0) AS ?{made[-1]})")
            shown.append(f"?{made[-1]}")
        tail = f" GROUP BY {' '.join(by)}" if by else ""
        of_keys = self.exists(Part("", sure=part.sure & {*keys}), 0)
        having = " HAVING(COUNT(*) > 1)", " HAVING(COUNT(*) < 3)", f" HAVING({of_keys})"
        tail += self.one("", "", "", *having)
        return " ".join(shown), tail, keys, made


# --- data and queries -----------------------------------------------------------------------------


@st.composite
def facts(draw: st.DrawFn, most: int, blank: bool = False) -> list[str]:
    """N-Triples without their ends, four at least."""
    objects = [f"<{E}a>", f"<{E}b>", f'"1"^^<{INTEGER}>', f'"2"^^<{INTEGER}>']
    subjects = [f"<{E}a>", f"<{E}b>", *(["_:k"] if blank else [])]
    whole = st.tuples(st.sampled_from(subjects), st.sampled_from("ppqqr"), st.sampled_from([*objects, *subjects]))
    return [f"{s} <{E}{p}> {o}" for s, p, o in draw(st.lists(whole, min_size=4, max_size=most))]


@st.composite
def cases(draw: st.DrawFn) -> Case:
    """A query and its data."""
    kind = draw(st.sampled_from(["named", "named", "named", *_HEADS]))
    drawing = Drawing(draw, _WINDOWS[kind])
    part = drawing.group(draw(st.sampled_from([1, 1, 2])))
    return _case(draw, kind, part, *form(drawing, part))


@st.composite
def existences(draw: st.DrawFn) -> Case:
    """EXISTS that looks at its row from deep inside, on data that it often meets."""
    drawing = Drawing(draw, _WINDOWS["named"])
    part = Part("WINDOW :w { ?x :p ?y }", frozenset("xy"), frozenset("xy"))
    if drawing.chance(3):
        part = Part(f"{part.text} OPTIONAL {{ ?x :q ?z }}", frozenset("xyz"), part.sure)
    around = drawing.one("{}", "{}", "{} || {}", "!({}) && {}", "!({})")
    conditions = [drawing.exists(part, 2) for _ in range(around.count("{}"))]
    part.text += f" FILTER({around.format(*conditions)})"
    return _case(draw, "named", part, "SELECT *", "")


@st.composite
def aggregations(draw: st.DrawFn) -> Case:
    """Groups of what may be unbound; in sub-queries whose keys are joined, and in the GRAPH of each name."""
    drawing = Drawing(draw, _WINDOWS["named"])
    first = drawing.one("WINDOW :w {{ ?x :p ?y {} }}", "GRAPH ?n {{ ?x :p ?y {} }}", "WINDOW :v {{ ?y :q ?x {} }}")
    more = drawing.one("", "OPTIONAL { ?y :q ?z }", "OPTIONAL { ?x :r ?z }", "MINUS { ?y :q ?x }")
    part = Part(first.format(more), frozenset("xyz" if "z" in more else "xy"), frozenset("xy"))
    listed, tail, keys, _ = drawing.aggregates(part)
    if drawing.chance(2):
        return _case(draw, "named", part, f"SELECT {listed}", tail)
    other = drawing.one("WINDOW :w {{ ?x :q ?u {} }}", "GRAPH ?m {{ ?x :q ?u {} }}")
    inner = f"{{ SELECT {listed} {{ {'?x :p ?y' if 'GRAPH' in first else first.format(more)} }}{tail} }}"
    if "GRAPH ?m" in other and "GRAPH" not in first:
        inner = f"{{ SELECT {listed} {{ ?x :p ?y {more} }}{tail} }}"
    part = Part(other.format(inner), frozenset(["x", "u", *keys]), frozenset(["x", "u"]))
    return _case(draw, "named", part, "SELECT *", "")


def _case(draw: st.DrawFn, kind: str, part: Part, head: str, tail: str) -> Case:
    text = f"PREFIX : <{E}>\n{head}\n{_HEADS[kind]}WHERE {{ {part.text} }}{tail}"
    try:
        query = load(text, "rspql")
    except QueryError as error:  # FILTER in WINDOW on what only stands outside
        assume(error.code != "scope")
        raise
    assert isinstance(query, RspQuery)
    streams = {iri: _parsed("\n".join(f"{fact} ." for fact in draw(facts(9)))) for iri in STREAMS}
    quads = [f"{f}{g} ." for g in ("", f" <{E}g>", f" <{E}h>") for f in draw(facts(7, True))]
    return Case(query, text, streams, "\n".join(quads))


def _parsed(text: str) -> list[Triple]:
    return [q.triple for q in parse(text.encode(), format=RdfFormat.N_TRIPLES)]


def form(drawing: Drawing, part: Part) -> tuple[str, str]:
    """What a query lists of a pattern, and what follows WHERE."""
    names = sorted(part.seen & {*_VARIABLES})
    match drawing.draw(st.integers(0, 7)):
        case 0:
            return "ASK", ""
        case 1 if names:
            kept = sorted({drawing.one(*names) for _ in range(2)})
            return f"SELECT {drawing.one('', 'DISTINCT ')}{' '.join(f'?{v}' for v in kept)}", drawing.slice(kept)
        case 2 | 3:
            listed, tail, _, _ = drawing.aggregates(part)
            return f"SELECT {listed}", tail
        case 4 if names:
            return "CONSTRUCT { ?x :made ?y }", ""
        case 5 if names:
            some = drawing.one(*names)
            return f"SELECT ?{some} ({drawing.exists(part, 0)} AS ?there) (STR(?{some}) AS ?text)", ""
        case _:
            return "SELECT *", drawing.one("", "", " VALUES ?x { :a 1 }")
