"""Stories: a query over windows and all that happens to it, one thing after the other.

Events come late, or for one instant several; rows come and go at once, since windows are small and data is dense. The
knowledge base changes, fails once and answers then. Terms are freed and their ids given to others. The query is saved
and goes on in another dictionary. None of it changes what is told.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import TypeAlias

from flow.lowering_strategies import Drawing, E, facts, form
from hypothesis import assume
from hypothesis import strategies as st
from loaded import load

from oxiseq.grammar import QueryError

STREAMS = (f"{E}S", f"{E}T")
PREFIX = f"PREFIX : <{E}>\n"
INTEGER = "http://www.w3.org/2001/XMLSchema#integer"


@dataclass(frozen=True)
class Event:
    """An event arrives; its blank nodes have labels that rise as they come. `punctual`: no stream has any before it."""

    stream: str
    time: int
    text: str
    punctual: bool


@dataclass(frozen=True)
class Change:
    """The knowledge base holds this from now on."""

    quads: str


@dataclass(frozen=True)
class Fails:
    """The knowledge base fails once, when it is asked for the `number`-th time from now on."""

    number: int


@dataclass(frozen=True)
class Moves:
    """The query is saved and goes on in another dictionary, where blank nodes begin with another number."""

    blanks: int


@dataclass(frozen=True)
class Answers:
    """What is complete is answered."""


Step: TypeAlias = Event | Change | Fails | Moves | Answers


@dataclass(frozen=True)
class Sorting:
    """How a query sorts and slices: variables, each with whether it descends."""

    keys: tuple[tuple[str, bool], ...] = ()
    offset: int = 0
    limit: int | None = None

    @property
    def sliced(self) -> bool:
        """Whether not all rows are told."""
        return self.limit is not None or self.offset > 0

    @property
    def text(self) -> str:
        """Behind WHERE."""
        keys = " ".join(f"DESC(?{v})" if down else f"?{v}" for v, down in self.keys)
        first = f" ORDER BY {keys}" if keys else ""
        limit = "" if self.limit is None else f" LIMIT {self.limit}"
        return first + limit + (f" OFFSET {self.offset}" if self.offset else "")


@dataclass(frozen=True)
class Story:
    """head: what is told, without the column NOW() that `now` asks for; `shown`: its variables, None: all."""

    head: str
    froms: str
    where: str
    report: str
    steps: tuple[Step, ...] = field(repr=False)
    tail: str = ""
    when: str = ""
    sorting: Sorting = Sorting()
    now: bool = False
    quads: str = ""
    lateness: int = 0
    blanks: int = 0
    """How many blank nodes there are before."""

    @property
    def text(self) -> str:
        """Of the query."""
        return self.written(f"{self.head} (NOW() AS ?now)" if self.now else self.head, self.sorting.text)

    @property
    def plain(self) -> str:
        """Without NOW()."""
        return self.written(self.head, self.sorting.text)

    @property
    def whole(self) -> str:
        """The rows of which the story's query shows, sorts and slices some columns."""
        return self.written("SELECT *")

    @property
    def shown(self) -> list[str]:
        """The variables that the head names."""
        return [word[1:] for word in self.head.split() if word[0] == "?"]

    def written(self, head: str, sorting: str = "") -> str:
        """The query with another head and end."""
        return f"{PREFIX}{head}\n{self.froms}\nWHERE {{ {self.where} }}{self.tail}{sorting}{self.when}"

    def __repr__(self) -> str:
        steps = "\n".join(map(repr, self.steps))
        given = f"{self.report}, lateness {self.lateness}, blanks {self.blanks}"
        return f"{self.text}\n{given}, kb:\n{self.quads}\n{steps}"


# --- what happens ---------------------------------------------------------------------------------


@st.composite
def steps(draw: st.DrawFn, blank: bool, lateness: int, kb: st.SearchStrategy[str] | None) -> tuple[Step, ...]:
    """Some events, and what happens between them. blank: events have blank nodes; kb: what it may hold."""
    found = list[Step]()
    newest = 0
    for number in range(draw(st.integers(3, 9))):
        newest += draw(st.sampled_from([0, 1, 1, 1, 2, 2, 7]))
        early = draw(st.integers(0, lateness + 1)) if lateness else 0
        made = draw(_facts(blank))
        text = "\n".join(f"{fact} ." for fact in made).replace("_:new", f"_:x{number}")
        stream = draw(st.sampled_from([STREAMS[0], STREAMS[0], STREAMS[1]]))
        found.append(Event(stream, max(newest - early, 0), text, draw(st.integers(0, 3)) > 0 and not early))
        if draw(st.integers(0, 3)):
            found.append(Answers())
        if kb is not None:
            kind = draw(st.integers(0, 5))
            if kind == 0:
                found.append(Fails(draw(st.integers(1, 2))))
            if kind <= 2:
                found.append(Change(draw(kb)))
        if draw(st.integers(0, 4)) == 0:
            found.append(Moves(draw(st.sampled_from([0, 1, 8]))))
    return tuple(found)


@st.composite
def _facts(draw: st.DrawFn, blank: bool) -> list[str]:
    """Of an event: few subjects, so that events agree. `_:new` is a blank node of its own."""
    nodes = [f"<{E}a>", f"<{E}b>", *(["_:new"] if blank else [])]
    fact = st.tuples(
        st.sampled_from(nodes),
        st.sampled_from("ppppqqr"),
        st.sampled_from([*nodes, f'"1"^^<{INTEGER}>', f'"2"^^<{INTEGER}>']),
    )
    return [f"{s} <{E}{p}> {o}" for s, p, o in draw(st.lists(fact, min_size=0, max_size=3))]


_SIZES = (
    "[RANGE 1 EVENTS]",
    "[RANGE 1 EVENTS]",
    "[RANGE 2 EVENTS]",
    "[RANGE 3 EVENTS SLIDE 2 EVENTS]",
    "[RANGE 1]",
    "[RANGE 2]",
    "[RANGE 2 SLIDE 2]",
    "[RANGE 3 SLIDE 2]",
    "[RANGE 5]",
    "[RANGE 30 SLIDE 10]",
)
_NAMED = st.tuples(*[st.sampled_from(_SIZES)] * 2).map(
    lambda sizes: "\n".join(
        f"FROM NAMED WINDOW :{name} ON <{iri}> {size}" for name, iri, size in zip("wv", STREAMS, sizes, strict=True)
    )
)
_WHENS = (
    "",
    "",
    "",
    "",
    "\nREPORT EVERY 2",
    "\nREPORT EVERY 3",
    "\nREPORT ON CONTENT CHANGE",
    "\nREPORT ON WINDOW CLOSE",
)
_REPORTS = ("ISTREAM", "ISTREAM", "DSTREAM", "RSTREAM")


@st.composite
def _when(draw: st.DrawFn, froms: str) -> str:
    """When it is answered; windows that count events do not close."""
    when = draw(st.sampled_from(_WHENS))
    return "" if "CLOSE" in when and froms.count("EVENTS]") >= froms.count("RANGE") else when


# --- shapes that reviewers have found wrong --------------------------------------------------------

_OF_WINDOWS = (
    *["WINDOW :w { ?s :p ?a }"] * 4,
    "WINDOW :w { ?s :p ?a OPTIONAL { ?s :q ?b } }",
    "WINDOW :w { ?s :p ?a } OPTIONAL { WINDOW :v { ?s :q ?b } }",
    "WINDOW :w { ?s :p ?a } OPTIONAL { WINDOW :v { ?s :q ?b } FILTER(?a != ?b) }",
    "WINDOW :w { { SELECT ?s { ?s :p ?a } } }",
    "WINDOW :w { { SELECT DISTINCT ?s { ?s ?w ?a } } ?s :p ?a }",
    "WINDOW :w { { SELECT ?s (MIN(?x) AS ?b) { ?s :p ?x } GROUP BY ?s } ?s :p ?a }",
    "WINDOW :w { { SELECT ?s (COUNT(*) AS ?a) { ?s :p ?x } GROUP BY ?s } }",
    "WINDOW :w { ?s :p ?a MINUS { ?s :q ?a } }",
    "WINDOW :w { ?s :p ?a } MINUS { WINDOW :v { ?s :q ?b } }",
    "WINDOW :w { ?s :p ?a FILTER NOT EXISTS { ?s :q ?b } }",
    "WINDOW :w { ?s :p ?a } FILTER EXISTS { WINDOW :v { ?s :q ?b } }",
    "WINDOW :w { { ?s :p ?a } UNION { ?s :q ?a } }",
    "WINDOW :w { { ?s :p ?a } UNION { ?s :q ?b } }",
    "WINDOW :w { ?s :p ?a } WINDOW :v { ?s :q ?b }",
    "WINDOW :w { ?s :p/:q ?a }",
    "WINDOW :w { ?s :p+ ?a }",
    "WINDOW :w { ?s :p* ?a . ?s :q ?b }",
    "WINDOW :w { ?s :p [ :q ?a ] }",
    "WINDOW :w { ?s :p ?b BIND(STR(?b) AS ?a) }",
    "WINDOW :w { ?s :p ?a } VALUES ?a { 1 :a }",
    "WINDOW ?n { ?s :p ?a }",
)
_OF_KB = (
    " GRAPH :g { ?s :q ?k }",
    " GRAPH ?g { ?s :q ?k }",
    " ?s :q ?k .",
    " OPTIONAL { GRAPH :g { ?s :q ?k } }",
    " OPTIONAL { GRAPH ?g { ?a :q ?k } }",
    " MINUS { GRAPH :g { ?s :q ?k } }",
    " FILTER NOT EXISTS { GRAPH :g { ?s :q ?k } }",
    " GRAPH :g { ?s :q ?k . ?k :q ?l }",
    " GRAPH :g { ?s :p/:q ?k }",
    " GRAPH :g { :a :q ?k }",
    " GRAPH :g { ?s :q ?k } GRAPH :h { ?k :q ?l }",
    " { SELECT ?s (COUNT(*) AS ?k) { GRAPH :g { ?s :q ?x } } GROUP BY ?s }",
)
_LIMITED = "WINDOW :w { { SELECT ?s ?a { ?s :p ?a } ORDER BY DESC(?a) ?s LIMIT 1 } }"
"""Without blank nodes: the reference sorts those by their labels."""
_HEADS = (
    "SELECT *",
    "SELECT ?s",
    "SELECT ?s",
    "SELECT ?a",
    "SELECT ?s ?b",
    "SELECT ?s ?nothing",
    "SELECT DISTINCT ?s",
    "SELECT DISTINCT ?a ?b",
    "CONSTRUCT { ?s :made ?a }",
    "ASK",
)
_SUMS = ("COUNT(*)", "COUNT(?a)", "COUNT(DISTINCT ?a)", "SUM(?a)", "SUM(DISTINCT ?a)", "AVG(?a)", "MIN(?a)", "MAX(?a)")
_KEYS = st.lists(st.tuples(st.sampled_from("sab"), st.booleans()), min_size=1, max_size=2, unique_by=lambda key: key[0])


@st.composite
def _kb(draw: st.DrawFn, blank: bool) -> str:
    """Of two graphs and the default one; none is empty, or which of them there are would change."""
    subjects = [f"<{E}a>", f"<{E}b>", *(["_:known", "_:other"] if blank else [])]
    objects = [*subjects, f'"1"^^<{INTEGER}>']
    fact = st.tuples(st.sampled_from(subjects), st.sampled_from("pqqq"), st.sampled_from(objects))
    lines = []
    for graph in ("", f" <{E}g>", f" <{E}h>"):
        lines += [f"{s} <{E}{p}> {o}{graph} ." for s, p, o in draw(st.lists(fact, min_size=1, max_size=4))]
    return "\n".join(lines)


@st.composite
def dense(draw: st.DrawFn) -> Story:
    """One of many shapes, sorted and sliced, on data that it meets all the time."""
    blank = draw(st.booleans())
    where = draw(st.sampled_from(_OF_WINDOWS if blank else (*_OF_WINDOWS, _LIMITED)))
    known = draw(st.sampled_from([*[""] * 2 * len(_OF_KB), *_OF_KB]))
    tail, sorting = "", Sorting()
    if draw(st.integers(0, 4)) == 0:
        key = draw(st.sampled_from(["", "?s", "?s ?b"]))
        listed = draw(st.lists(st.sampled_from(_SUMS), min_size=1, max_size=2))
        sums = " ".join(f"({each} AS ?n{i})" for i, each in enumerate(listed))
        head, tail = f"SELECT {key} {sums}", f" GROUP BY {key}" if key else ""
        tail += draw(st.sampled_from(["", "", " HAVING(COUNT(*) > 1)"]))
    else:
        head = draw(st.sampled_from(_HEADS))
        if head.startswith("SELECT ") and draw(st.booleans()):
            sorting, head = draw(_sorting(head))
    kb = _kb(blank and sorting == Sorting()) if known else None  # its blank nodes stand as the engine met them
    froms = draw(_NAMED)
    now = head.startswith("SELECT") and head != "SELECT *" and draw(st.integers(0, 3)) == 0
    lateness = draw(st.sampled_from([0, 0, 2]))
    happens = draw(steps(blank, lateness, kb))
    story = Story(
        head,
        froms,
        where + known,
        draw(st.sampled_from(_REPORTS)),
        happens,
        tail,
        draw(_when(froms)),
        sorting,
        now,
        draw(kb) if kb is not None else "",
        lateness,
        draw(st.sampled_from([0, 7, 8, 9])),
    )
    return _checked(story)


@st.composite
def _sorting(draw: st.DrawFn, head: str) -> tuple[Sorting, str]:
    """With the head: a slice is of rows whose columns have an order, and DISTINCT sorts by what is shown."""
    sliced = draw(st.integers(0, 1)) == 0
    if sliced and head == "SELECT *":
        head = "SELECT ?s ?a"
    keys = [key for key in draw(_KEYS) if "DISTINCT" not in head or f"?{key[0]}" in head]
    if not sliced:
        return Sorting(tuple(keys)), head
    return Sorting(tuple(keys), draw(st.sampled_from([0, 0, 1])), draw(st.sampled_from([1, 2, 2, None]))), head


def _checked(story: Story) -> Story:
    try:
        load(story.text, "rspql")
    except QueryError as error:
        assume(error.code != "scope")  # FILTER in WINDOW on what only stands outside
        raise
    return story


# --- anything -------------------------------------------------------------------------------------


@st.composite
def deep(draw: st.DrawFn) -> Story:
    """Patterns as deep as SPARQL goes, over two windows and the knowledge base."""
    drawing = Drawing(draw, "wv")
    part = drawing.group(draw(st.sampled_from([1, 1, 2])))
    head, tail = form(drawing, part)
    froms = draw(_NAMED)
    lateness = draw(st.sampled_from([0, 0, 2]))
    kb = st.tuples(*[facts(5, True)] * 3).map(_quads)
    known = kb if "GRAPH" in part.text or draw(st.booleans()) else None
    happens = draw(steps(False, lateness, known))
    return _checked(
        Story(
            head,
            froms,
            part.text,
            draw(st.sampled_from(_REPORTS)),
            happens,
            tail,
            draw(_when(froms)),
            quads=draw(kb),
            lateness=lateness,
        )
    )


def _quads(each: tuple[list[str], ...]) -> str:
    graphs = ("", f" <{E}g>", f" <{E}h>")
    return "\n".join(f"{fact}{graph} ." for graph, some in zip(graphs, each, strict=True) for fact in some)


def events(story: Story) -> Iterator[Event]:
    """Those of the story."""
    return (step for step in story.steps if isinstance(step, Event))
