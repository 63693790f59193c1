"""A condition evaluated for many rows of terms at once.

In the flow: ids of rows → **outcomes** (conditions.py). A test of strings by a text is made here (plain_texts.py).
Function calls are answered by one store query for all rows, in columns of text; operators stay with `exact`, which sees
each distinct set of the calls' answers, and of the terms that it needs beside them, once.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import cache
from itertools import pairwise
from typing import Final

import numpy as np
from numpy.typing import NDArray
from pyoxigraph import Literal, QueryResultsFormat, QuerySolutions, Store, Variable, parse_query_results

from oxiseq.engine import kinds
from oxiseq.engine.expressions.exact import ExpressionError, evaluate, truth
from oxiseq.engine.expressions.times import FUNCTIONS
from oxiseq.engine.expressions.values import read
from oxiseq.engine.matching.plain_texts import strings_told, text_test
from oxiseq.engine.terms.dictionary import TermDictionary
from oxiseq.engine.terms.texts import Term
from oxiseq.grammar.algebra import Call, Expression, FunctionCall
from oxiseq.grammar.render import render_expression
from oxiseq.grammar.render_sparql import base_clause
from oxiseq.grammar.scope import expression_variables, subexpressions

NOT_KNOWN: Final = 0
KNOWN_FALSE: Final = 1
KNOWN_TRUE: Final = 2
KNOWN_ERROR: Final = 3

_EMPTY: Final = Store()
_CHUNK: Final = 20_000
"""Rows of one store query."""
_FEW: Final = 8
"""Up to so many rows, one by one is faster."""
_ROW: Final = "oxiseq_row"
_UNBOUND: Final = "UNDEF"
_QUOTE: Final = ord('"')
_LESS: Final = ord("<")


class Asked:
    """The condition `expression` on rows of ids of `variables`, 0 where one is unbound."""

    def __init__(self, expression: Expression, variables: Sequence[Variable]) -> None:
        self._variables = tuple(variables)
        self._calls: dict[Expression, Variable] = {}
        self._expression = self._lift(expression)
        own = expression_variables(self._expression) - set(self._calls.values())
        self._own = tuple(i for i, v in enumerate(self._variables) if v in own)
        """Which variables are needed beside the calls."""
        self._named = [_named_texts(self._expression, v) for v in self._calls.values()]
        names = " ".join(f"?{v.value}" for v in self._variables)
        answers = [Variable(_ROW), *self._calls.values()]
        binds = " ".join(f"BIND({render_expression(e)} AS ?{v.value})" for e, v in self._calls.items())
        self._head = f"{base_clause(expression)}SELECT {' '.join(map(str, answers))} {{ VALUES (?{_ROW} {names}) {{ "
        self._tail = f" }} {binds} }}"
        self._test = text_test(expression) if len(self._variables) == 1 else None
        self._answers_head = "\t".join(str(v) for v in self._calls.values()).encode() + b"\n"

    def _lift(self, e: Expression) -> Expression:
        """Replace each function call that holds no operator by a variable."""
        if isinstance(e, (Call, FunctionCall)):
            if expression_variables(e) and _only_functions(e):
                return self._calls.setdefault(e, Variable(f"oxiseq_call{len(self._calls)}"))
            args = tuple(self._lift(arg) for arg in e.args)
            return Call(e.name, args) if isinstance(e, Call) else FunctionCall(e.function, args)
        return e

    def outcomes(self, rows: NDArray[np.integer], terms: TermDictionary) -> NDArray[np.uint8]:
        """u8[k]: KNOWN_FALSE, KNOWN_TRUE or KNOWN_ERROR for each row of ids, u32[k, variables]."""
        found = np.zeros(len(rows), np.uint8)
        if self._test is not None:
            strings, told = strings_told(self._test, rows[:, 0], terms)
            found[strings] = np.where(told, KNOWN_TRUE, KNOWN_FALSE)
        left = np.flatnonzero(found == NOT_KNOWN)
        if self._calls and len(left) > _FEW:
            for start in range(0, len(left), _CHUNK):
                self._ask(left[start : start + _CHUNK], rows, terms, found)
            left = left[found[left] == NOT_KNOWN]
        if len(self._variables) == 1:
            left = self._one_blank(left, rows, terms, found)
        for i in left.tolist():
            found[i] = self._outcome(self._mapping(rows[i], terms))
        return found

    def _one_blank(
        self, left: NDArray[np.intp], rows: NDArray[np.integer], terms: TermDictionary, found: NDArray[np.uint8]
    ) -> NDArray[np.intp]:
        """The rows that are left when one blank node has told of all: no function and no constant tells them apart."""
        blank = terms.columns.kind[rows[left, 0]] == kinds.BLANK
        blanks = left[blank]
        if len(blanks):
            found[blanks] = self._outcome(self._mapping(rows[blanks[0]], terms))
        others: NDArray[np.intp] = left[~blank]
        return others

    def _ask(
        self, chosen: NDArray[np.intp], rows: NDArray[np.integer], terms: TermDictionary, found: NDArray[np.uint8]
    ) -> None:
        """Fill in the outcomes of those of the chosen rows that VALUES takes."""
        columns, fits = zip(*(_texts(terms, column) for column in rows[chosen].T), strict=True)
        asked = np.flatnonzero(np.logical_and.reduce(fits)).tolist()
        written = columns[0] if len(columns) == 1 else [" ".join(row) for row in zip(*columns, strict=True)]
        if len(asked) < len(written):
            written = [written[i] for i in asked]
        texts = [f"({i} {text})" for i, text in zip(asked, written, strict=True)]
        try:
            solutions = _EMPTY.query(f"{self._head}{' '.join(texts)}{self._tail}", custom_functions=FUNCTIONS)
        except RuntimeError:  # a function that Oxigraph does not know: `exact` knows that it is an error
            return
        assert isinstance(solutions, QuerySolutions)  # it is a SELECT
        lines = solutions.serialize(format=QueryResultsFormat.TSV) or b"\n"
        numbers, cells = self._cells(lines[lines.index(b"\n") + 1 :])
        if any(self._named):
            cells = [self._alike(cell) for cell in cells]
        distinct = dict.fromkeys(cells)
        try:
            answers = dict(zip(distinct, self._read(distinct), strict=True))
        except SyntaxError:  # Oxigraph writes triple terms that are nested deeper than it reads them
            return
        places = chosen[numbers]
        if not self._own:
            alone = {cell: self._outcome(mapping) for cell, mapping in answers.items()}
            found[places] = [alone[cell] for cell in cells]
            return
        own = map(tuple, rows[places][:, self._own].tolist())
        each = list(zip(cells, own, strict=True))
        known = {(cell, ids): self._outcome({**answers[cell], **self._terms_of(ids, terms)}) for cell, ids in set(each)}
        found[places] = [known[row] for row in each]

    def _terms_of(self, ids: tuple[int, ...], terms: TermDictionary) -> dict[Variable, Term]:
        """The variables that are needed beside the calls, of one row."""
        return {self._variables[v]: terms.term(i) for v, i in zip(self._own, ids, strict=True) if i}

    def _cells(self, lines: bytes) -> tuple[NDArray[np.int64], list[bytes]]:
        """The number of each line's row, and the answers, as TSV has them: without a tab in any."""
        if len(self._calls) == 1:
            flat = lines.replace(b"\n", b"\t").split(b"\t")
            return np.array(list(map(int, flat[:-1:2])), np.int64), flat[1::2]
        parts = [line.partition(b"\t") for line in lines.split(b"\n")[:-1]]
        return np.array([int(number) for number, _, _ in parts], np.int64), [cell for _, _, cell in parts]

    def _alike(self, cells: bytes) -> bytes:
        """Answers of the same outcome: a text that the expression does not name, where it only looks for some, is like
        any other such."""
        parts = cells.split(b"\t")
        for i, named in enumerate(self._named):
            cell = parts[i]
            if named and cell not in named and cell[:1] == cell[-1:] == b'"':
                parts[i] = _other(named)
        return b"\t".join(parts)

    def _read(self, cells: Iterable[bytes]) -> Iterable[dict[Variable, Term]]:
        """What lines of answers say."""
        lines = self._answers_head + b"".join([cell + b"\n" for cell in cells])
        solutions = parse_query_results(lines, QueryResultsFormat.TSV)
        assert isinstance(solutions, QuerySolutions)  # it has variables
        for solution in solutions:
            yield {v: term for v in self._calls.values() if (term := solution[v]) is not None}

    def _mapping(self, row: NDArray[np.integer], terms: TermDictionary) -> dict[Variable, Term]:
        """The variables of a row and the calls' answers, one by one."""
        given = {v: terms.term(int(i)) for v, i in zip(self._variables, row, strict=True) if i != 0}
        mapping = dict(given)
        for e, v in self._calls.items():
            try:
                mapping[v] = evaluate(e, given)
            except ExpressionError:
                continue
        return mapping

    def _outcome(self, mapping: Mapping[Variable, Term]) -> int:
        try:
            return KNOWN_TRUE if truth(read(evaluate(self._expression, mapping))) else KNOWN_FALSE
        except ExpressionError:
            return KNOWN_ERROR


def _named_texts(e: Expression, call: Variable) -> frozenset[bytes]:
    """The texts, as TSV has them, that an expression compares a call's answer with, if it does nothing else with it."""
    comparisons = [x for x in subexpressions(e) if isinstance(x, Call) and call in x.args]
    asked = [arg for x in comparisons for arg in x.args if arg != call]
    uses = sum(x == call for x in subexpressions(e))
    simple = all(x.name in _EQUALITIES and x.args.count(call) == 1 for x in comparisons) and all(
        isinstance(arg, Literal) and str(arg)[-1] == '"' and "\\" not in str(arg) for arg in asked
    )
    return frozenset(str(arg).encode() for arg in asked) if simple and uses == len(comparisons) else frozenset()


@cache
def _other(named: frozenset[bytes]) -> bytes:
    """A text that is none of these."""
    return b'"' + b"x" * max(map(len, named)) + b'"'


def _texts(terms: TermDictionary, ids: NDArray[np.integer]) -> tuple[list[str], NDArray[np.bool_]]:
    """As SPARQL writes them; and of which VALUES takes it: of no blank node and no triple term."""
    data, ends = terms.texts(ids)
    bytes_ = data.tobytes()
    whole, bounds = bytes_.decode(), pairwise(ends.tolist())
    if len(whole) == len(bytes_):
        texts = [whole[a:b] if a < b else _UNBOUND for a, b in bounds]
    else:
        texts = [str(bytes_[a:b], "utf-8") if a < b else _UNBOUND for a, b in bounds]
    codes = np.append(data, np.zeros(2, np.uint8))
    first, second = codes[ends[:-1]], codes[ends[:-1] + 1]
    fits = (first == _QUOTE) | ((first == _LESS) & (second != _LESS)) | (ends[1:] == ends[:-1])
    return texts, fits


_EQUALITIES: Final = frozenset({"=", "!=", "IN", "NOT IN"})
_OPERATORS: Final = frozenset(
    {
        "=",
        "!=",
        "<",
        ">",
        "<=",
        ">=",
        "&&",
        "||",
        "!",
        "+",
        "-",
        "*",
        "/",
        "NEGATE",
        "PLUS",
        "IN",
        "NOT IN",
        "BOUND",
        "IF",
        "COALESCE",
        "SAMETERM",
    }
)


def _only_functions(e: Expression) -> bool:
    return all(not isinstance(x, Call) or x.name not in _OPERATORS for x in subexpressions(e))
