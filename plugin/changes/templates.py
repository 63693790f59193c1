"""Data and templates of an update, read by pyoxigraph itself.

pyoxigraph has no parser of updates in Python. But an `INSERT DATA` into an empty store is one: what is then in the
store is what the text says, in normal form, blank nodes being fresh ones. A template is data too once its variables are
replaced by placeholder IRIs; in data and templates `<` always begins an IRI or a triple, so the tokens of
`oxiseq.changes.tokens` are those of the parser, and where they might not be the update is not followed.
"""

from __future__ import annotations

import secrets
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final, NamedTuple, TypeAlias

from pyoxigraph import BlankNode, DefaultGraph, NamedNode, Quad, Triple
from pyoxigraph import Store as RdfStore

from oxiseq.changes import limits
from oxiseq.changes.limits import NotFollowedError
from oxiseq.changes.tokens import tokens
from oxiseq.engine.terms.texts import Term, term_text
from oxiseq.grammar.records import dataclass

STEM: Final = f"oxiseq_{secrets.token_hex(6)}_"
"""In the names that we write into texts: they are nobody else's."""
_MARK: Final = f"urn:{STEM}"
Row: TypeAlias = Sequence[Term | None]


@dataclass(frozen=True, slots=True)
class Surroundings:
    """What IRIs are resolved by. options: `base_iri`, `prefixes`, as pyoxigraph takes them. The methods raise
    SyntaxError, ValueError."""

    prologue: str
    options: Mapping[str, Any]

    def quads(self, data: str) -> list[Quad]:
        """The quads of a block of data, in braces."""
        store = RdfStore()
        store.update(f"{self.prologue}\nINSERT DATA {data}", **self.options)
        return list(store)

    def iris(self, texts: Sequence[str]) -> list[NamedNode]:
        """IRIs as written in a text, or names with a prefix."""
        lines = "".join(f"<{_MARK}s> <{_MARK}{number}> {text} .\n" for number, text in enumerate(texts))
        found = {quad.predicate.value: quad.object for quad in self.quads(f"{{ {lines} }}")}
        iris = [found[f"{_MARK}{number}"] for number in range(len(texts))]
        return [iri for iri in iris if isinstance(iri, NamedNode)]


class _Nested(NamedTuple):
    """A triple term of a template."""

    subject: _Part
    predicate: _Part
    object: _Part


_Part: TypeAlias = "Term | DefaultGraph | int | _Nested"
"""A term, or the place of a variable in a row."""


class Variables:
    """The variables of an update's templates, numbered; behind them the blank nodes of its INSERT template."""

    def __init__(self) -> None:
        self.names: list[str] = []
        self._place: dict[str | BlankNode, int] = {}

    def place(self, name: str | BlankNode) -> int:
        """The number of a variable's name without its mark, or of a blank node."""
        if name not in self._place:
            self._place[name] = len(self.names)
            self.names.append(name if isinstance(name, str) else f"{STEM}b{len(self.names)}")
        return self._place[name]

    def __len__(self) -> int:
        return len(self.names)


@dataclass(frozen=True, slots=True)
class Template:
    """Quads with variables. `blanks`: whether some are blank nodes."""

    patterns: tuple[tuple[_Part, _Part, _Part, _Part], ...] = ()
    blanks: bool = False

    @classmethod
    def read(
        cls, block: str, surroundings: Surroundings, variables: Variables, graph: NamedNode | DefaultGraph
    ) -> Template:
        """That of a block in braces; `graph`: where its triples go that are in no GRAPH. Raises SyntaxError,
        ValueError, NotFollowedError."""
        quads = surroundings.quads(_as_data(block, variables))
        patterns = []
        count = len(variables)
        for quad in quads:
            place = graph if isinstance(quad.graph_name, DefaultGraph) else _part(quad.graph_name, variables)
            s, p, o = (_part(term, variables) for term in (quad.subject, quad.predicate, quad.object))
            patterns.append((s, p, o, place))
        blanks = len(variables) - count
        if blanks > limits.MOST_BLANKS:
            raise NotFollowedError("too many blank nodes in a template")
        return cls(tuple(patterns), blanks > 0)

    def filled(self, row: Row) -> Iterator[Quad]:
        """The quads for a solution; those are left out that are none, or have something unbound."""
        for s, p, o, g in self.patterns:
            graph = _filled(g, row)
            if graph is None:  # for a Quad that is the default graph
                continue
            try:
                yield Quad(_filled(s, row), _filled(p, row), _filled(o, row), graph)  # type: ignore[arg-type]
            except TypeError:  # a term that cannot be in this place, None among them
                continue

    def written(self, variables: Variables) -> str:
        """As a block in braces, blank nodes being variables."""
        lines = []
        for s, p, o, g in self.patterns:
            triple = " ".join(_written(part, variables) for part in (s, p, o)) + " ."
            lines.append(triple if isinstance(g, DefaultGraph) else f"GRAPH {_written(g, variables)} {{ {triple} }}")
        return "{ " + "\n".join(lines) + " }"


def _as_data(block: str, variables: Variables) -> str:
    """The block with an IRI for each variable. Raises NotFollowedError where tokens may be led astray."""
    parts, done = [], 0
    for token in tokens(block):
        if token.kind == "variable":
            parts += [block[done : token.start], f"<{_MARK}v{variables.place(token.text[1:])}>"]
            done = token.end
        elif token.kind == "mark" and token.text in ("<", "\\"):
            raise NotFollowedError("an IRI with escapes")
    return "".join([*parts, block[done:]])


def _part(term: Term, variables: Variables) -> _Part:
    if isinstance(term, BlankNode):
        return variables.place(term)
    if isinstance(term, NamedNode) and term.value.startswith(_MARK):
        return int(term.value.removeprefix(f"{_MARK}v"))
    if isinstance(term, Triple):
        return _Nested(*(_part(each, variables) for each in (term.subject, term.predicate, term.object)))
    return term


def _filled(part: _Part, row: Row) -> Term | DefaultGraph | None:
    """Raises TypeError for a triple term that is none."""
    if isinstance(part, int):
        return row[part]
    if isinstance(part, _Nested):
        return Triple(*(_filled(each, row) for each in part))  # type: ignore[arg-type]  # else it raises
    return part


def _written(part: _Part, variables: Variables) -> str:
    if isinstance(part, int):
        return f"?{variables.names[part]}"
    if isinstance(part, _Nested):
        return f"<<( {' '.join(_written(each, variables) for each in part)} )>>"
    assert not isinstance(part, DefaultGraph)
    return term_text(part)
