"""An update's operations as steps that can be followed: each says how it is to be written, and what it does.

The text that is carried out shows what happens. A group of a DELETE/INSERT is written as

    WHERE { { the group }
    BIND(<a function of ours>(its variables) AS ?done) }

so that pyoxigraph calls the function once for each solution, in the update's transaction, whatever the group says and
however often its functions would answer otherwise (RAND, UUID, SERVICE). At that moment the store still answers what
was there before the update. Blank nodes, which pyoxigraph would make silently, become variables: BNODE() in
templates, rows of a table in data. ADD, MOVE and COPY are the operations that SPARQL defines them by.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final, Protocol, TypeAlias

from pyoxigraph import BlankNode, DefaultGraph, NamedNode, Quad, Triple
from pyoxigraph import Store as RdfStore

from oxiseq.changes.change import GraphName
from oxiseq.changes.content import Content
from oxiseq.changes.limits import NotFollowedError
from oxiseq.changes.operations import Operation
from oxiseq.changes.templates import STEM, Surroundings, Template, Variables
from oxiseq.engine.terms.texts import Term

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
