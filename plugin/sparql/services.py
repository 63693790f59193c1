"""`SERVICE <iri> { ... }` of sources that are here, a stream's events: answered in place.

    text ─▶ blocks ─▶ each block's solutions, from its source ─▶ VALUES in the block's place ─▶ the store

That is SPARQL's own meaning of SERVICE: the group is answered by itself, and its solutions are joined with the rest.
The store joins from VALUES towards its data, so the time grows with the solutions, not with the store. Blank nodes
cannot be in VALUES: outside of the block they are IRIs of their own (`BLANK`).

The rest of the text stays where it was, so a syntax error is emitted at its place. Other SERVICE calls stay in the
text, for `guards` to refuse or the store to make. SILENT changes nothing: a local source reports its failures.

Which queries may be sent in parts: a SERVICE block's solutions some at a time, the answers put together.

    a query without its blocks' solutions ─▶ algebra ─▶ why not, and where; or nothing

A query may be where Q(T₁ ⊎ T₂) = Q(T₁) ⊎ Q(T₂) for the block's solutions T. So it is through joins, GRAPH, FILTER,
BIND, a sub-SELECT without modifiers, and on the left of OPTIONAL and MINUS; not where solutions of several parts are
compared or counted.
"""

from __future__ import annotations

import io
import re
from collections.abc import Callable, Iterator, Sequence
from typing import IO, Final, Protocol, cast

from pyoxigraph import NamedNode, QueryResultsFormat, QuerySolutions
from pyoxigraph import Store as RdfStore

from oxiseq.changes.operations import Token, tokens
from oxiseq.grammar import QueryError, parse
from oxiseq.grammar.algebra import (
    Aggregate,
    Call,
    GraphPattern,
    Group,
    Minus,
    OptionalPattern,
    Span,
    SubSelect,
    Union,
    Values,
)
from oxiseq.grammar.parts import parts
from oxiseq.grammar.records import dataclass
from oxiseq.sparql.messages import Place, Problem

# --- services --------------------------------------------------------------------------------------------

BLANK: Final = "urn:oxiseq:blank:"
"""Before a blank node's label, outside of its block. Good within one answer."""
MOST: Final = 256 << 20
"""Bytes of a block's solutions."""
EMPTY: Final = "VALUES(){}"
"""A table without rows, for checks before anything is queried."""
_WORD: Final = re.compile("service", re.IGNORECASE)


class Services(Protocol):
    """Sources that SERVICE may name."""

    def knows(self, iri: str) -> bool:
        """Whether there is a source of this name."""
        ...

    def ask(self, iri: str, queries: Sequence[str], base: str, check: Callable[[], None]) -> list[QuerySolutions]:
        """The answers of SELECT queries, each of one moment of the source; `check` is called now and then, and may
        raise. Raises Problem and what pyoxigraph raises."""
        ...


@dataclass(frozen=True, slots=True)
class Block:
    """A call of the source `iri`: the text from `start` to `end`; its group begins at `group`, its source's name at
    `name`; `prologue`: where the text before it declares BASE and prefixes."""

    iri: str
    start: int
    name: int
    group: int
    end: int
    prologue: tuple[tuple[int, int], ...]


def blocks(text: str, services: Services, base: str) -> list[Block]:
    """The calls of known sources, in order; of nested ones the outermost."""
    if not _WORD.search(text):
        return []
    found: list[Block] = []
    every = list(tokens(text))
    prologue: list[tuple[int, int]] = []
    end = level = 0
    for index, token in enumerate(every):
        level += (token.text == "{") - (token.text == "}")
        if token.start < end:
            continue
        if level == 0 and (declared := _declaration(every[index : index + 3])) is not None:
            prologue.append(declared)
            continue
        block = _block(text, every, index, tuple(prologue), base) if token.is_word("SERVICE") else None
        if block is not None and services.knows(block.iri):
            found.append(block)
            end = block.end
    return found


def _declaration(following: Sequence[Token]) -> tuple[int, int] | None:
    """The place of a BASE or PREFIX that begins here."""
    kinds = [token.kind for token in following]
    if following[0].is_word("BASE") and kinds[1:2] == ["iri"]:
        return following[0].start, following[1].end
    if following[0].is_word("PREFIX") and kinds[1:] == ["name", "iri"]:
        return following[0].start, following[2].end
    return None


def _block(text: str, every: list[Token], index: int, prologue: tuple[tuple[int, int], ...], base: str) -> Block | None:
    """What `SERVICE SILENT? iri {...}` begins at a token; None where it is something else."""
    at = index + 2 if every[index + 1 : index + 2] and every[index + 1].is_word("SILENT") else index + 1
    if at + 1 >= len(every) or every[at].kind not in ("iri", "name") or every[at + 1].text != "{":
        return None
    level = 0
    for token in every[at + 1 :]:
        level += (token.text == "{") - (token.text == "}")
        if level == 0:
            iri = _resolved(every[at].text, "\n".join(text[a:b] for a, b in prologue), base)
            if iri is None:
                return None
            return Block(iri, every[index].start, every[at].start, every[at + 1].start, token.end, prologue)
    return None


def _resolved(name: str, prologue: str, base: str) -> str | None:
    """The IRI that a name means; evaluated on the store, which knows how."""
    try:
        answer = RdfStore().query(f"{prologue}\nSELECT ?iri {{ BIND({name} AS ?iri) }}", base_iri=base)
    except (SyntaxError, ValueError):
        return None
    found = next(iter(cast("QuerySolutions", answer)))["iri"]
    return found.value if isinstance(found, NamedNode) else None


def inner_text(text: str, block: Block) -> str:
    """The block as a query of its own, everything at its place."""
    kept = sorted([*block.prologue, (block.group, block.end)])
    made = list(_spaces(text[: block.end]))
    for first, last in kept:
        made[first:last] = text[first:last]
    made[block.start : block.start + 6] = "SELECT"
    made[block.name] = "*"
    return "".join(made)


@dataclass(frozen=True, slots=True)
class Table:
    """A block's solutions as SPARQL writes them. names: with `?`; rows: `(term term)`, UNDEF for an unbound one."""

    names: tuple[str, ...]
    rows: list[str]

    @property
    def size(self) -> int:
        """Bytes of the rows, about."""
        return sum(map(len, self.rows))

    def parts(self, most: int) -> Iterator[Table]:
        """The table cut into ones of at most `most` bytes; a row that is longer is one by itself."""
        first = size = 0
        for place, row in enumerate(self.rows):
            if size and size + len(row) > most:
                yield Table(self.names, self.rows[first:place])
                first, size = place, 0
            size += len(row)
        yield Table(self.names, self.rows[first:])

    def __str__(self) -> str:
        return f"VALUES({' '.join(self.names)}){{{' '.join(self.rows)}}}"


def with_values(text: str, found: Sequence[Block], tables: Sequence[Table | str]) -> str:
    """The text with a VALUES table, of one line, in place of each block; what follows in other lines stays there."""
    parts: list[str] = []
    done = 0
    for block, table in zip(found, map(str, tables), strict=True):
        replaced = text[block.start : block.end]
        lines, _, last = replaced.rpartition("\n")
        width = len(last) - (0 if lines else len(table))
        parts += [text[done : block.start], table, "\n" * replaced.count("\n"), " " * max(1, width)]
        done = block.end
    return "".join([*parts, text[done:]])


def asked(
    text: str, found: Sequence[Block], services: Services, base: str, check: Callable[[], None]
) -> Iterator[Table]:
    """Each block's solutions. The blocks of one source are queried together."""
    answers: dict[Block, QuerySolutions] = {}
    for iri in dict.fromkeys(block.iri for block in found):
        own = [block for block in found if block.iri == iri]
        queries = [inner_text(text, block) for block in own]
        answers.update(zip(own, services.ask(iri, queries, base, check), strict=True))
    for block in found:
        yield _table(answers.pop(block), check)


@dataclass(slots=True)
class _Buffer:
    """A file in memory, of bounded size."""

    check: Callable[[], None]
    data: io.BytesIO

    def write(self, data: bytes) -> int:
        """Raises Problem 403 when it is too much, and what `check` raises."""
        self.check()
        if self.data.tell() + len(data) > MOST:
            raise Problem(403, "too many results", f"a SERVICE block has solutions of more than {MOST} bytes")
        return self.data.write(data)

    def flush(self) -> None:
        """Files have it."""


def _table(solutions: QuerySolutions, check: Callable[[], None]) -> Table:
    names = tuple(str(variable) for variable in solutions.variables)
    buffer = _Buffer(check, io.BytesIO())
    solutions.serialize(cast("IO[bytes]", buffer), format=QueryResultsFormat.TSV)
    lines = buffer.data.getvalue().decode().split("\n")[1:-1]
    check()
    return Table(names, [_row(line) for line in lines] if names else ["()"] * len(lines))


def _row(line: str) -> str:
    """A line of TSV, whose terms SPARQL reads unchanged."""
    return f"({' '.join(_term(cell) for cell in line.split(chr(9)))})"


def _term(cell: str) -> str:
    if not cell:
        return "UNDEF"
    return f"<{BLANK}{cell[2:]}>" if cell.startswith("_:") else cell


def _spaces(text: str) -> str:
    return re.sub(r"[^\r\n]", " ", text)


# --- splitting -------------------------------------------------------------------------------------------

_MARK: Final = "oxiseq_block_"
"""The prefix of the variables that replace blocks."""
_WITHIN: Final = ((OptionalPattern, "OPTIONAL"), (Minus, "MINUS"), (Union, "UNION"))
"""Patterns that a block may not be in."""


@dataclass(frozen=True, slots=True)
class Obstacle:
    """Why a query is sent as a whole only; where that is in the text, if it is known."""

    reason: str
    place: Place | None = None


def obstacle(text: str, found: Sequence[Block]) -> Obstacle | None:
    """Why a query may not be sent in parts of these blocks' solutions; None where it may."""
    marks = [f"VALUES ?{_MARK}{number} {{}}" for number in range(len(found))]
    try:
        query = parse(with_values(text, found, marks), "rspql")
    except QueryError as error:
        return Obstacle(f"it cannot be analysed: {error.message}", Place(error.line, error.column))
    if query.form == "CONSTRUCT":
        return _at("CONSTRUCT makes one graph of all", query.span)
    for call in parts(query, Call):
        if call.name == "NOW":
            return _at("NOW() would have another value in each part", call.span)
    body = query.body
    if body.projection is None and query.form == "SELECT":
        return _at("SELECT * has no fixed order of columns: name them", query.span)
    return next(_in_select(body), None)


def _in_select(select: SubSelect) -> Iterator[Obstacle]:
    """What is between a block and the answer of a SELECT."""
    if not _has_block(select):
        return
    for given, clause in (
        (select.distinct, "DISTINCT"),
        (select.group_by, "GROUP BY"),
        (select.having, "HAVING"),
        (select.order_by, "ORDER BY"),
        (select.limit is not None, "LIMIT"),
        (select.offset is not None, "OFFSET"),
    ):
        if given:
            yield _at(f"{clause} is of all solutions together", select.span)
    for aggregate in parts(select.projection, Aggregate):
        yield _at(f"{aggregate.name} is of all solutions together", aggregate.span)
    yield from _in_group(select.where)
    if _has_block(select.projection):
        yield _at("the SERVICE block is in EXISTS", select.span)


def _in_group(group: Group) -> Iterator[Obstacle]:
    for element in group.elements:
        if isinstance(element, Values) or not _has_block(element):
            continue
        if isinstance(element, SubSelect):
            yield from _in_select(element)
        elif isinstance(element, Group):
            yield from _in_group(element)
        elif isinstance(element, GraphPattern):
            yield from _in_group(element.pattern)
        else:
            within = next((name for kind, name in _WITHIN if isinstance(element, kind)), "EXISTS")
            yield _at(f"the SERVICE block is in {within}", element.span)


def _has_block(value: object) -> bool:
    return any(v.value.startswith(_MARK) for values in parts(value, Values) for v in values.variables)


def _at(reason: str, span: Span) -> Obstacle:
    return Obstacle(reason, Place(span.line, span.column))
