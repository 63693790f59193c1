"""An update's operations as steps that can be followed: each says how it is to be written, and what it does.

The text that is carried out shows what happens. A group of a DELETE/INSERT is written as

    WHERE { { the group }
    BIND(<a function of ours>(its variables) AS ?done) }

so that pyoxigraph calls the function once for each solution, in the update's transaction, whatever the group says and
however often its functions would answer otherwise (RAND, UUID, SERVICE). At that moment the store still answers what
was there before the update. Blank nodes, which pyoxigraph would make silently, become variables: BNODE() in
templates, rows of a table in data. ADD, MOVE and COPY are the operations that SPARQL defines them by.

What a change touches of a store's content: as it was before, and as it becomes.

The quads touched are *looked at* first, while the store still has its old content. The operations are then followed
here, in their order; the difference of both is the change.

Data and templates of an update, read by pyoxigraph itself.

pyoxigraph has no parser of updates in Python. But an `INSERT DATA` into an empty store is one: what is then in the
store is what the text says, in normal form, blank nodes being fresh ones. A template is data too once its variables are
replaced by placeholder IRIs; in data and templates `<` always begins an IRI or a triple, so the tokens of
`oxiseq.changes.operations` are those of the parser, and where they might not be the update is not followed.
"""

from __future__ import annotations

import secrets
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import islice
from typing import Any, Final, NamedTuple, Protocol, TypeAlias

from pyoxigraph import BlankNode, DefaultGraph, NamedNode, Quad, Triple
from pyoxigraph import Store as RdfStore

from oxiseq.changes import limits
from oxiseq.changes.change import Change, GraphName
from oxiseq.changes.limits import NotFollowedError, TooMuchError
from oxiseq.changes.operations import Operation, tokens
from oxiseq.engine.terms.texts import Term, term_text
from oxiseq.grammar.records import dataclass

# --- content ---------------------------------------------------------------------------------------------


class Content:
    """At most MOST quads and as many graphs. The quads are in the store's normal form.

    A quad or a graph is looked at before it is put, taken, cleared, dropped or created. `look...` raise TooMuchError.
    """

    def __init__(self, store: RdfStore) -> None:
        self._store = store
        self._before: dict[Quad, bool] = {}
        self._now: dict[GraphName | DefaultGraph, dict[Quad, bool]] = {DefaultGraph(): {}}
        self._graphs_before: dict[GraphName, bool] = {}
        self._graphs_now: dict[GraphName, bool] = {}
        self._whole: set[GraphName | DefaultGraph] = set()

    # --- before ---------------------------------------------------------------------------------------

    def look(self, quads: Iterable[Quad]) -> None:
        """Whether each of them is there, and its graph."""
        for quad in quads:
            if quad not in self._before:
                self._know(quad, quad in self._store)

    def look_at_name(self, graph: GraphName | DefaultGraph) -> None:
        """Whether it is there."""
        if graph in self._now:
            return
        assert not isinstance(graph, DefaultGraph)  # it is there from the first
        if len(self._graphs_before) >= limits.MOST:
            raise TooMuchError
        self._graphs_before[graph] = self._graphs_now[graph] = self._store.contains_named_graph(graph)
        self._now[graph] = {}

    def look_at_graph(self, graph: GraphName | DefaultGraph) -> None:
        """All that it holds."""
        if graph in self._whole:
            return
        self._whole.add(graph)
        self.look_at_name(graph)
        for quad in islice(self._store.quads_for_pattern(None, None, None, graph), limits.MOST + 1):
            if quad not in self._before:
                self._know(quad, True)

    def look_at_graphs(self) -> None:
        """All named graphs, and all that they hold."""
        for graph in list(islice(self._store.named_graphs(), limits.MOST + 1)):
            self.look_at_graph(graph)

    def _know(self, quad: Quad, is_there: bool) -> None:
        if len(self._before) >= limits.MOST:
            raise TooMuchError
        self.look_at_name(quad.graph_name)
        self._before[quad] = is_there
        self._now[quad.graph_name][quad] = is_there

    # --- what becomes of it -----------------------------------------------------------------------------

    def put(self, quads: Iterable[Quad]) -> None:
        """They are added, with their graphs."""
        for quad in quads:
            graph = quad.graph_name
            self._now[graph][quad] = True
            if not isinstance(graph, DefaultGraph):
                self._graphs_now[graph] = True

    def take(self, quads: Iterable[Quad]) -> None:
        """They are removed; their graphs stay."""
        for quad in quads:
            self._now[quad.graph_name][quad] = False

    def clear(self, graph: GraphName | DefaultGraph) -> None:
        """It is empty; it stays."""
        held = self._now[graph]
        for quad in held:
            held[quad] = False

    def drop(self, graph: GraphName | DefaultGraph) -> None:
        """It is no more; the default graph is empty."""
        self.clear(graph)
        if not isinstance(graph, DefaultGraph):
            self._graphs_now[graph] = False

    def create(self, graph: GraphName) -> None:
        """It is there, empty if it was not."""
        self._graphs_now[graph] = True

    @property
    def named_graphs(self) -> list[GraphName]:
        """Those that have been looked at and are there now."""
        return [graph for graph, is_there in self._graphs_now.items() if is_there]

    def change(self) -> Change:
        """What has become of it."""
        removed: list[Quad] = []
        added: list[Quad] = []
        for held in self._now.values():
            for quad, is_there in held.items():
                if is_there != self._before[quad]:
                    (added if is_there else removed).append(quad)
        graphs = [
            (graph, is_there) for graph, is_there in self._graphs_now.items() if is_there != self._graphs_before[graph]
        ]
        return Change(
            tuple(removed),
            tuple(added),
            tuple(graph for graph, is_there in graphs if not is_there),
            tuple(graph for graph, is_there in graphs if is_there),
        )


def normal_quads(quads: Iterable[Quad]) -> list[Quad]:
    """The quads as a store has them (1 for "01"^^xsd:integer), each once. Raises TypeError for what is none."""
    store = RdfStore()
    store.extend(quads)
    return list(store)


# --- templates -------------------------------------------------------------------------------------------

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


# --- steps -----------------------------------------------------------------------------------------------

NOTHING: Final = "INSERT DATA {}"
_UNBOUND: Final = NamedNode(f"urn:{STEM}unbound")
_ALL: Final = "{ ?s ?p ?o }"
Function: TypeAlias = Callable[..., Any]


class Step(Protocol):
    """An operation, or a part of one. text: how it is written, None: as it was. functions: what the text calls."""

    text: str | None
    functions: dict[NamedNode, Function]

    def look(self, content: Content) -> None:
        """Before anything is carried out: what it will touch, as far as that is known. Raises TooMuchError."""
        ...

    def follow(self, content: Content) -> None:
        """After all has been carried out: what it did. Raises TooMuchError, and what its functions have raised."""
        ...


class Put:
    """INSERT DATA, LOAD. quads: in normal form; graphs: that are there afterwards, though they may be empty."""

    def __init__(
        self,
        quads: Sequence[Quad],
        number: int,
        text: str | None = None,
        *,
        as_table: bool,
        graphs: Sequence[GraphName] = (),
    ) -> None:
        self.quads, self.graphs = quads, graphs
        self.functions: dict[NamedNode, Function] = {}
        self.text = self._table(number) if as_table else text

    def _table(self, number: int) -> str:
        """The quads as rows, each term a call of ours: data cannot name a blank node."""
        columns = "spog"
        names = [f"urn:{STEM}{number}{column}" for column in columns]
        for name, place in zip(names, range(4), strict=True):
            self.functions[NamedNode(name)] = lambda row, place=place: self.quads[int(row.value)][place]
        parts = [f"CREATE SILENT GRAPH {graph}" for graph in self.graphs]
        for default, template, used in ((True, _ALL, 3), (False, f"{{ GRAPH ?g {_ALL} }}", 4)):
            rows = [n for n, quad in enumerate(self.quads) if isinstance(quad.graph_name, DefaultGraph) == default]
            if rows:
                binds = " ".join(f"BIND(<{names[i]}>(?n) AS ?{columns[i]})" for i in range(used))
                values = " ".join(map(str, rows))
                parts.append(f"INSERT {template} WHERE {{ VALUES ?n {{ {values} }} {binds} }}")
        return " ;\n".join(parts) or NOTHING

    def look(self, content: Content) -> None:
        """See Step."""
        content.look(self.quads)
        for graph in self.graphs:
            content.look_at_name(graph)

    def follow(self, content: Content) -> None:
        """See Step."""
        content.put(self.quads)
        for graph in self.graphs:
            content.create(graph)


class Take:
    """DELETE DATA. quads: in normal form."""

    text: str | None = None

    def __init__(self, quads: Sequence[Quad]) -> None:
        self._quads = quads
        self.functions: dict[NamedNode, Function] = {}

    def look(self, content: Content) -> None:
        """See Step."""
        content.look(self._quads)

    def follow(self, content: Content) -> None:
        """See Step."""
        content.take(self._quads)


class Create:
    """CREATE."""

    text: str | None = None

    def __init__(self, graph: NamedNode) -> None:
        self._graph = graph
        self.functions: dict[NamedNode, Function] = {}

    def look(self, content: Content) -> None:
        """See Step."""
        content.look_at_name(self._graph)

    def follow(self, content: Content) -> None:
        """See Step."""
        content.create(self._graph)


class Empty:
    """CLEAR and DROP. graph: one; named: all named graphs beside it."""

    def __init__(
        self, graph: NamedNode | DefaultGraph | None, *, drop: bool, named: bool = False, text: str | None = None
    ) -> None:
        self._graph, self._drop, self._named = graph, drop, named
        self.text = text
        self.functions: dict[NamedNode, Function] = {}

    def look(self, content: Content) -> None:
        """See Step."""
        if self._graph is not None:
            content.look_at_graph(self._graph)
        if self._named:
            content.look_at_graphs()

    def follow(self, content: Content) -> None:
        """See Step."""
        graphs: list[GraphName | DefaultGraph] = [] if self._graph is None else [self._graph]
        if self._named:
            graphs += content.named_graphs
        for graph in graphs:
            (content.drop if self._drop else content.clear)(graph)


class Modify:
    """DELETE/INSERT. before: the text in front of its WHERE; where: its group, in braces."""

    def __init__(
        self, before: str, where: str, number: int, templates: tuple[Template, Template], variables: Variables
    ) -> None:
        self._delete, self._insert = templates
        self._variables = variables
        self._content: Content | None = None
        self._taken: dict[Quad, None] = {}
        self._made: dict[Quad, None] = {}
        self._failure: Exception | None = None
        function = NamedNode(f"urn:{STEM}{number}")
        self.functions: dict[NamedNode, Function] = {function: self._solution}
        self.text: str | None = f"{before} WHERE {{ {where}\n{self._binds(function)} }}"

    def _binds(self, function: NamedNode) -> str:
        names = self._variables.names
        made = "".join(f"BIND(BNODE() AS ?{name}) " for name in names if name.startswith(STEM))
        given = ", ".join(f"COALESCE(?{name}, {_UNBOUND})" for name in names)
        return f"{made}BIND({function}({given}) AS ?{STEM}done)"

    def _solution(self, *terms: Term) -> None:
        """pyoxigraph takes no error from here. It gives literals in normal form, though they have just been made."""
        if self._failure is not None:
            return
        assert self._content is not None, "it has been looked at"
        try:
            row = [None if term == _UNBOUND else term for term in terms]
            for template, quads in ((self._delete, self._taken), (self._insert, self._made)):
                filled = list(template.filled(row))
                self._content.look(filled)
                quads.update(dict.fromkeys(filled))
        except Exception as error:
            self._failure = error
            self._taken.clear()
            self._made.clear()

    def look(self, content: Content) -> None:
        """The quads that it touches are looked at when they are known."""
        self._content = content

    def follow(self, content: Content) -> None:
        """All that goes, goes before anything comes."""
        if self._failure is not None:
            raise self._failure
        content.take(self._taken)
        content.put(self._made)


class Steps:
    """The steps of an update's operations. options: pyoxigraph's, of which the prologue's are used."""

    def __init__(self, text: str, options: Mapping[str, Any]) -> None:
        self._text = text
        self._options = {name: options[name] for name in ("base_iri", "prefixes") if name in options}
        self._number = 0

    def of(self, operation: Operation) -> list[Step]:
        """Raises NotFollowedError and what pyoxigraph does: SyntaxError, ValueError, OSError, RuntimeError."""
        self._number += 1
        surroundings = Surroundings(operation.prologue, self._options)
        match operation.kind:
            case "insert data":
                quads = surroundings.quads(operation.data)
                return [Put(quads, self._number, as_table=any(map(_has_blanks, quads)))]
            case "delete data":
                quads = surroundings.quads(operation.data)
                if any(map(_has_blanks, quads)):
                    raise NotFollowedError("blank nodes that are to be deleted")
                return [Take(quads)]
            case "modify":
                return [self._modify(operation, surroundings)]
            case "load":
                return [self._loaded(operation)]
            case "create":
                return [Create(surroundings.iris(operation.graphs)[0])]
            case "clear" | "drop":
                return [_empty(operation, surroundings)]
            case _:
                return self._moved(operation, surroundings)

    def _modify(self, operation: Operation, surroundings: Surroundings) -> Modify:
        graph = DefaultGraph() if operation.with_ is None else surroundings.iris([operation.with_])[0]
        variables = Variables()
        delete = insert = Template()
        head = "" if operation.with_ is None else f"WITH {graph} "
        if operation.delete is not None:
            delete = Template.read(operation.delete.text, surroundings, variables, graph)
            head += f"DELETE {operation.delete.text} "
        if delete.blanks:
            raise NotFollowedError("blank nodes that are to be deleted")
        if operation.insert is not None:
            insert = Template.read(operation.insert.text, surroundings, variables, graph)
            head += f"INSERT {insert.written(variables) if insert.blanks else operation.insert.text} "
        assert operation.where is not None  # of this kind
        head += operation.using
        where = operation.where.text
        if operation.where is operation.delete:
            where = delete.written(variables)  # to pyoxigraph GRAPH :g {} says nothing here, elsewhere that :g is there
        return Modify(head, where, self._number, (delete, insert), variables)

    def _loaded(self, operation: Operation) -> Put:
        """What a LOAD loads. It makes a graph of an empty document, too."""
        store = RdfStore()
        store.update(f"{operation.prologue}{self._text[operation.start : operation.end]}", **self._options)
        return Put(list(store), self._number, as_table=True, graphs=list(store.named_graphs()))

    def _moved(self, operation: Operation, surroundings: Surroundings) -> list[Step]:
        """ADD, MOVE, COPY."""
        source, target = (_graph(each, surroundings) for each in operation.graphs)
        if source == target:
            return [Put([], self._number, NOTHING, as_table=False)]
        steps: list[Step] = []
        if operation.kind != "add":
            steps.append(Empty(target, drop=True, text=f"DROP SILENT {_target(target)}"))
        variables = Variables()
        everything = Template.read(_ALL, surroundings, variables, target)
        insert = f"INSERT {_within(target)}"
        steps.append(Modify(insert, _within(source), self._number, (Template(), everything), variables))
        if operation.kind == "move":
            silent = "SILENT " if operation.silent else ""
            steps.append(Empty(source, drop=True, text=f"DROP {silent}{_target(source)}"))
        return steps


def _empty(operation: Operation, surroundings: Surroundings) -> Empty:
    (name,) = operation.graphs
    graph = None if name == "NAMED" else DefaultGraph() if name == "ALL" else _graph(name, surroundings)
    return Empty(graph, drop=operation.kind == "drop", named=name in ("NAMED", "ALL"))


def _graph(name: str, surroundings: Surroundings) -> NamedNode | DefaultGraph:
    return DefaultGraph() if name == "DEFAULT" else surroundings.iris([name])[0]


def _target(graph: NamedNode | DefaultGraph) -> str:
    return "DEFAULT" if isinstance(graph, DefaultGraph) else f"GRAPH {graph}"


def _within(graph: NamedNode | DefaultGraph) -> str:
    return _ALL if isinstance(graph, DefaultGraph) else f"{{ GRAPH {graph} {_ALL} }}"


def _has_blanks(quad: Quad) -> bool:
    return any(isinstance(term, BlankNode) or (isinstance(term, Triple) and "_:" in str(term)) for term in quad)
