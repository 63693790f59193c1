"""The algebra: what a query text means, as frozen values.

In the flow: text → **algebra** → plan → events → matches. The parser builds these values, the
checks and the compiler read them, `render` writes them back to text. RDF terms are pyoxigraph's own
(`NamedNode`, `Literal`, `BlankNode`, `Variable`); literals keep their written form; the engine brings them to
the store's normal form when it compiles (semantics.md, section 7).

A `span` says where a node was in the text. It takes no part in comparison, so that
parse → render → parse is the identity.
"""

from __future__ import annotations

from dataclasses import field
from enum import Enum
from typing import ClassVar, Final, NamedTuple, TypeAlias

from pyoxigraph import BlankNode, Literal, NamedNode, Variable

from oxiseq.grammar.records import dataclass


class Span(NamedTuple):
    """A place in the query text: character offsets [start, end), line and column counted from 1."""

    start: int
    end: int
    line: int
    column: int


NOWHERE = Span(0, 0, 1, 1)


def span_field() -> Span:
    """A node's `span`: a field, typed as its value, that takes no part in comparison."""
    return field(default=NOWHERE, compare=False, repr=False)


# --- terms ----------------------------------------------------------------------------------------

Term: TypeAlias = NamedNode | Literal | BlankNode
TermOrVariable: TypeAlias = NamedNode | Literal | BlankNode | Variable

# --- expressions ----------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Call:
    """An operator or built-in: `name` in upper case (`"+"`, `"="`, `"&&"`, `"!"`, `"REGEX"`, `"IN"`...).

    `IN` and `NOT IN` have the tested expression first and the list's members after it; the unary
    minus is `"NEGATE"`, the unary plus is `"PLUS"`.
    """

    name: str
    args: tuple[Expression, ...]
    span: Span = span_field()


@dataclass(frozen=True, slots=True)
class FunctionCall:
    """A call by IRI: a cast such as `xsd:integer(?x)` or an extension function."""

    function: NamedNode
    args: tuple[Expression, ...]
    distinct: bool = False
    span: Span = span_field()


@dataclass(frozen=True, slots=True)
class Aggregate:
    """`COUNT SUM MIN MAX AVG SAMPLE GROUP_CONCAT`, of iterations also `FIRST LAST`; `arg` is None for `COUNT(*)`."""

    name: str
    arg: Expression | None
    distinct: bool = False
    separator: str | None = None
    span: Span = span_field()


@dataclass(frozen=True, slots=True)
class Exists:
    """`EXISTS { ... }` or, negated, `NOT EXISTS { ... }`.

    In a stateful FILTER `split_gpm` says what it reads: `given` are the variables whose values in the joined
    mapping are in the pattern, `gpm` is the one on whose event it is evaluated.
    """

    pattern: Group
    negated: bool = False
    span: Span = span_field()
    given: tuple[Variable, ...] | None = None
    gpm: str = ""


@dataclass(frozen=True, slots=True)
class Prev:
    """`PREV(?v)`: the variable's value in the previous iteration (semantics.md 2.4)."""

    variable: Variable
    span: Span = span_field()


@dataclass(frozen=True, slots=True)
class MatchFunction:
    """`STARTTIME() ENDTIME() DURATION() DETECTTIME() SUPPRESSED() TIMEOF(A) COUNT(A)` of a match, `EVENTTIME()` of a
    GPM's event; `gpm` is None where no GPM is named."""

    name: str
    gpm: str | None = None
    span: Span = span_field()


DETECTTIME: Final = MatchFunction("DETECTTIME")
"""When a match, or a row of a group, is decided (semantics.md 2.6a)."""
SUPPRESSED: Final = MatchFunction("SUPPRESSED")
"""How many rows of its key SUPPRESS has dropped since the last one before it (semantics.md 2.6c)."""

Expression: TypeAlias = NamedNode | Literal | Variable | Call | FunctionCall | Aggregate | Exists | Prev | MatchFunction

# --- property paths -------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class PathInverse:
    path: Path


@dataclass(frozen=True, slots=True)
class PathSequence:
    paths: tuple[Path, ...]


@dataclass(frozen=True, slots=True)
class PathAlternative:
    paths: tuple[Path, ...]


@dataclass(frozen=True, slots=True)
class PathRepeat:
    """`path*`, `path+`, `path?`: `mark` is that character."""

    path: Path
    mark: str


@dataclass(frozen=True, slots=True)
class PathNegated:
    """A negated property set; members are IRIs or inverses of IRIs."""

    paths: tuple[NamedNode | PathInverse, ...]


Path: TypeAlias = NamedNode | PathInverse | PathSequence | PathAlternative | PathRepeat | PathNegated

# --- graph patterns -------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class TriplePattern:
    """A triple pattern; blank nodes are variables that cannot be named outside the pattern."""

    subject: TermOrVariable
    predicate: NamedNode | Variable
    object: TermOrVariable
    span: Span = span_field()


@dataclass(frozen=True, slots=True)
class PathPattern:
    """subject path object, for a path that is more than one IRI."""

    subject: TermOrVariable
    path: Path
    object: TermOrVariable
    span: Span = span_field()


@dataclass(frozen=True, slots=True)
class Filter:
    condition: Expression
    span: Span = span_field()


@dataclass(frozen=True, slots=True)
class Bind:
    expression: Expression
    variable: Variable
    span: Span = span_field()


@dataclass(frozen=True, slots=True)
class Values:
    """Inline data; None stands for UNDEF."""

    variables: tuple[Variable, ...]
    rows: tuple[tuple[NamedNode | Literal | None, ...], ...]
    span: Span = span_field()


@dataclass(frozen=True, slots=True)
class OptionalPattern:
    pattern: Group
    span: Span = span_field()


@dataclass(frozen=True, slots=True)
class Union:
    """`{...} UNION {...} ...`, two or more branches."""

    branches: tuple[Group, ...]
    span: Span = span_field()


@dataclass(frozen=True, slots=True)
class Minus:
    pattern: Group
    span: Span = span_field()


@dataclass(frozen=True, slots=True)
class GraphPattern:
    """`GRAPH <iri> {...}`: evaluated on the KB (semantics.md 2.1)."""

    name: NamedNode | Variable
    pattern: Group
    span: Span = span_field()


@dataclass(frozen=True, slots=True)
class SubSelect:
    """A sub-query. `projection` is None for `*`; else variables and (expression, variable) pairs."""

    projection: tuple[Variable | tuple[Expression, Variable], ...] | None
    where: Group
    distinct: bool = False
    reduced: bool = False
    group_by: tuple[Expression | tuple[Expression, Variable], ...] = ()
    having: tuple[Expression, ...] = ()
    order_by: tuple[tuple[Expression, bool], ...] = ()
    """(expression, descending) pairs."""
    limit: int | None = None
    offset: int | None = None
    values: Values | None = None
    span: Span = span_field()


@dataclass(frozen=True, slots=True)
class Group:
    """`{ ... }`: the elements in the order of the text. A nested plain group is itself an element."""

    elements: tuple[PatternElement, ...]
    span: Span = span_field()


class TimeOp(Enum):
    """The relation between the intervals of two patterns in EP-SPARQL (semantics.md 5)."""

    SEQ = "SEQ"
    EQUALS = "EQUALS"
    OPTIONALSEQ = "OPTIONALSEQ"
    EQUALSOPTIONAL = "EQUALSOPTIONAL"


@dataclass(frozen=True, slots=True)
class TimedPattern:
    """`{...} SEQ {...}` of EP-SPARQL, left-associative; UNION binds tighter. No other language has it."""

    op: TimeOp
    left: Group | Union | TimedPattern
    right: Group | Union
    span: Span = span_field()


@dataclass(frozen=True, slots=True)
class WindowPattern:
    """`WINDOW :w {...}`: evaluated on the merge of the window's graphs (semantics.md 4 and 6)."""

    name: NamedNode | Variable
    pattern: Group
    span: Span = span_field()


@dataclass(frozen=True, slots=True)
class MatchPattern:
    """`MATCH {...}`: the mappings of an event pattern, without their times (RSEP-QL, Eq. 8)."""

    events: EventPattern
    variables: tuple[Variable, ...] = field(default=(), compare=False)
    """What the definitions of its events bind, in order."""
    span: Span = span_field()


PatternElement: TypeAlias = (
    TriplePattern
    | PathPattern
    | Filter
    | Bind
    | Values
    | OptionalPattern
    | Union
    | Minus
    | GraphPattern
    | SubSelect
    | Group
    | TimedPattern
    | WindowPattern
    | MatchPattern
)

# --- event patterns of RSEP-QL (Eq. 4 to 11) ------------------------------------------------------


class Choice(Enum):
    """Which pairs of a SEQ are kept (semantics.md 4)."""

    UNRESTRICTED = ""
    NAIVE = "n"
    CHRONOLOGICAL = "c"
    RECENT = "r"


@dataclass(frozen=True, slots=True)
class EventName:
    """An event that EVENT ON ... AS defines."""

    name: str
    span: Span = span_field()


@dataclass(frozen=True, slots=True)
class FirstOf:
    """`FIRST(E)`: those that end earliest."""

    events: EventPattern
    span: Span = span_field()


@dataclass(frozen=True, slots=True)
class LastOf:
    """`LAST(E)`: those that end latest."""

    events: EventPattern
    span: Span = span_field()


@dataclass(frozen=True, slots=True)
class Following:
    """`E1 SEQ E2`, `E1 SEQ^n E2`...: the first ends before the second starts."""

    first: EventPattern
    second: EventPattern
    choice: Choice = Choice.UNRESTRICTED
    span: Span = span_field()


EventPattern: TypeAlias = EventName | FirstOf | LastOf | Following

# --- sequences ------------------------------------------------------------------------------------


class Op(Enum):
    """How a sequence continues (semantics.md 2.3)."""

    STRICT = ","
    NEXT = ";"
    ANY = ":"


@dataclass(frozen=True, slots=True)
class Atom:
    """A GPM by its name."""

    name: str
    span: Span = span_field()


@dataclass(frozen=True, slots=True)
class Conjunction:
    """`A & B`: the same timestamp, mappings join."""

    items: tuple[SequenceElement, ...]
    span: Span = span_field()


@dataclass(frozen=True, slots=True)
class Disjunction:
    """`A | B`."""

    items: tuple[SequenceElement, ...]
    span: Span = span_field()


@dataclass(frozen=True, slots=True)
class Repeat:
    """`item+`, `item;+`, `item{n,m}`, `item:{n,}`...: at least `least`, at most `most` (None: any) iterations.

    `chain` is the operator between iterations where the text names one; None leaves it to
    Definitions 13 and 14 (`;` where no positive atom precedes it, else `,`). `{0,m}` has least 0.
    """

    item: SequenceElement
    least: int = 1
    most: int | None = None
    chain: Op | None = None
    span: Span = span_field()


@dataclass(frozen=True, slots=True)
class Maybe:
    """`item?`."""

    item: SequenceElement
    span: Span = span_field()


@dataclass(frozen=True, slots=True)
class Not:
    """`item!`: no event of it in the gap around it."""

    item: SequenceElement
    span: Span = span_field()


@dataclass(frozen=True, slots=True)
class Sequence:
    """`first op1 e1 op2 e2 ...`: a flat chain of binary operators, also what parentheses enclose."""

    first: SequenceElement
    rest: tuple[tuple[Op, SequenceElement], ...] = ()
    span: Span = span_field()


class BoundKind(Enum):
    """What a bound on a gap or an element limits (semantics.md 2.5b)."""

    WITHIN = "WITHIN"
    """The first event comes at most so long after the last event on the left; of a negation: it holds so long."""
    AFTER = "AFTER"
    """The first event comes at least so long after the last event on the left."""
    LASTING = "LASTING"
    """From the first event to the last at most so long."""


@dataclass(frozen=True, slots=True)
class Bounded:
    """`item WITHIN d`, `item AFTER d`, `item LASTING d`; `size` in microseconds. Stacked bounds nest."""

    item: SequenceElement
    kind: BoundKind
    size: int
    span: Span = span_field()


SequenceElement: TypeAlias = Atom | Conjunction | Disjunction | Repeat | Maybe | Not | Sequence | Bounded

# --- clauses that the languages share -------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Window:
    """`WITHIN`: `size` in microseconds, or in instants if `events`; tumbling unless `sliding`."""

    size: int
    events: bool = False
    sliding: bool = False
    span: Span = span_field()


class Strategy(Enum):
    """Which of the matches that end at one position are kept (semantics.md 3)."""

    NEXT = "NEXT"
    LAST = "LAST"
    MAX = "MAX"
    STRICT = "STRICT"


@dataclass(frozen=True, slots=True)
class Selection:
    """`SELECT NEXT ...`; a query without one keeps all matches."""

    strategy: Strategy
    span: Span = span_field()


@dataclass(frozen=True, slots=True)
class Partition:
    """`PARTITION BY`: the variables (of CEQL: the attributes) whose values name the substreams."""

    by: tuple[Variable, ...]
    span: Span = span_field()


@dataclass(frozen=True, slots=True)
class Consumption:
    """`CONSUME BY ANY`, or only the partition's partial matches; a query without it forgets nothing."""

    whole_query: bool
    """ANY; else PARTITION."""
    span: Span = span_field()


@dataclass(frozen=True, slots=True)
class Limit:
    """`LIMIT`: at most so many matches per completing event; `OFFSET`: without the first ones."""

    count: int
    offset: int = 0
    span: Span = span_field()


@dataclass(frozen=True, slots=True)
class Sample:
    """`SAMPLE k SEED n`: k distinct matches per completing event, each set of k as likely as any other."""

    count: int
    seed: int = 0
    span: Span = span_field()


@dataclass(frozen=True, slots=True)
class Suppression:
    """`SUPPRESS d BY ?k`: rows of one key that are decided less than `interval` µs after an emitted one are dropped.
    by: None where the text has no BY."""

    interval: int
    by: tuple[Variable, ...] | None = None
    span: Span = span_field()


# --- reports --------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class OnChange:
    """`REPORT ON CONTENT CHANGE`: at every instant of the streams; over matches where some of them end."""

    span: Span = span_field()


@dataclass(frozen=True, slots=True)
class OnClose:
    """`REPORT ON WINDOW CLOSE`: when a time-based window closes, that is at the multiples of its slide."""

    span: Span = span_field()


@dataclass(frozen=True, slots=True)
class Every:
    """`REPORT EVERY period`: at the multiples of the period, in microseconds."""

    period: int
    span: Span = span_field()


When: TypeAlias = OnChange | OnClose | Every


@dataclass(frozen=True, slots=True)
class Summary:
    """The clauses after WHERE that make one row of many matches (semantics.md 2.6b): GROUP BY, HAVING, ORDER BY and
    REPORT. In a query whose answer has a row per match ORDER BY orders those of an instant, and the rest is empty."""

    group_by: tuple[Expression | tuple[Expression, Variable], ...] = ()
    having: tuple[Expression, ...] = ()
    order_by: tuple[tuple[Expression, bool], ...] = ()
    """(expression, descending) pairs."""
    report: When | None = None
    span: Span = span_field()
    """Of the first of its clauses."""


# --- queries --------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Stream:
    """`FROM STREAM name <iri>`."""

    name: str
    iri: NamedNode
    span: Span = span_field()


@dataclass(frozen=True, slots=True)
class Gpm:
    """`DEFINE GPM name ON stream { ... }` (Def. 6). `stream` is the declared name."""

    name: str
    stream: str
    pattern: Group
    span: Span = span_field()


@dataclass(frozen=True, slots=True)
class Projection:
    """One column of SELECT: a variable, or `(expression AS ?variable)`."""

    variable: Variable
    expression: Expression | None = None
    span: Span = span_field()


@dataclass(frozen=True, slots=True)
class Select:
    """`columns` is None for `*`; `selection` is None for ALL."""

    columns: tuple[Projection, ...] | None
    distinct: bool = False
    selection: Selection | None = None


@dataclass(frozen=True, slots=True)
class Construct:
    """Template triples may hold expressions of the match in no place: bind them with `(expr AS ?v)` columns.

    `into` names the stream that receives the results, if any.
    """

    template: tuple[TriplePattern, ...]
    into: NamedNode | None = None
    columns: tuple[Projection, ...] = ()


@dataclass(frozen=True, slots=True)
class Ask:
    pass


@dataclass(frozen=True, slots=True)
class Query:
    """A SPAseq query (Def. 4; semantics.md 2.1)."""

    language: ClassVar[str] = "spaseq"
    form: Select | Construct | Ask
    streams: tuple[Stream, ...]
    sequence: SequenceElement
    gpms: tuple[Gpm, ...]
    window: Window | None = None
    prefixes: tuple[tuple[str, str], ...] = ()
    base: str | None = None
    partition: Partition | None = None
    consumption: Consumption | None = None
    limit: Limit | None = None
    filters: tuple[Filter, ...] = ()
    """FILTERs behind SEQ: on the whole match (semantics.md 2.5b)."""
    until: SequenceElement | None = None
    """Its `!` is in every gap of the sequence (semantics.md 2.5c)."""
    summary: Summary = Summary()
    sample: Sample | None = None
    suppression: Suppression | None = None
    span: Span = span_field()
    text: str = field(default="", compare=False, repr=False)
    """What it was parsed from, so that later errors can show the place."""

    @property
    def selection(self) -> Selection | None:
        """The selection strategy, None for all matches."""
        return self.form.selection if isinstance(self.form, Select) else None
