"""Tables (CSV, TSV, Parquet, JSON Lines) as statements, through a SPARQL CONSTRUCT query over their columns.

As in tarql, each row binds a variable per column (what a variable's name cannot hold becomes "_"), an empty cell or
null binds nothing, and the query's WHERE may BIND more. CSV cells are plain strings; Parquet and JSON values have
their types: numbers, booleans, dates and times, durations; bytes are xsd:base64Binary, lists their JSON text. A
template's statement with an unbound variable is left out, as SPARQL says.

pyoxigraph answers the query, a batch of rows at a time: the rows are a VALUES block put first into WHERE.
"""

from __future__ import annotations

import json
import re
from base64 import b64encode
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from difflib import get_close_matches
from functools import cache
from pathlib import Path
from typing import IO, Any

from pyoxigraph import Literal, NamedNode, Quad, QuerySolutions, QueryTriples, Triple
from pyoxigraph import Store as RdfStore

from oxiseq.engine.errors import KbError, syntax_reason
from oxiseq.grammar.name_chars import NAME_CHARS
from oxiseq.grammar.over_sparql import refusal
from oxiseq.kb_loader.quarantine import Fault, cut_off
from oxiseq.kb_loader.rows import Rows, column_names, table_rows
from oxiseq.kb_loader.sources import BROKEN, Source
from oxiseq.kb_loader.statements import scoped


@cache
def _word() -> re.Pattern[str]:
    """Variables, what binds them, brackets; strings and the like as wholes."""
    return re.compile(
        r"<[^<>\"{}|^`\\\s]*>"
        r"|\"\"\".*?\"\"\"|'''.*?'''|\"(?:\\.|[^\"\\\n])*\"|'(?:\\.|[^'\\\n])*'|#[^\n]*"
        rf"|[?$]([{NAME_CHARS}]+)|\b(AS|VALUES)\b(?!:)|([(){{}}])|[^\s?$(){{}}<\"'#]+",
        re.DOTALL | re.IGNORECASE,
    )


@cache
def _no_variable() -> re.Pattern[str]:
    """What SPARQL's VARNAME cannot hold."""
    return re.compile(
        "[^0-9A-Z_a-z\\u00b7\\u00c0-\\u00d6\\u00d8-\\u00f6\\u00f8-\\u02ff\\u0300-\\u037d\\u037f-\\u1fff\\u200c-\\u200d\\u203f-\\u2040"
        "\\u2070-\\u218f\\u2c00-\\u2fef\\u3001-\\ud7ff\\uf900-\\ufdcf\\ufdf0-\\ufffd\\U00010000-\\U000effff]"
    )


_XSD = "http://www.w3.org/2001/XMLSchema#"
_CAST = re.compile(r"\bBIND\s*\(\s*(?:(\w*):(\w+)|<([^<>\s]+)>)\s*\(\s*[?$](\w+)\s*\)\s*AS\s*[?$](\w+)", re.IGNORECASE)
"""A variable that is a cast of another."""
_PREFIX = re.compile(r"\bPREFIX\s+(\w*):\s*<([^<>\s]*)>", re.IGNORECASE)
_VARIABLE = re.compile(r"[?$](\w+)")
_CONDITION = re.compile(r"\b(FILTER|OPTIONAL|UNION|MINUS|VALUES|SELECT)\b", re.IGNORECASE)


_RML = ("http://www.w3.org/ns/r2rml#", "http://semweb.mmlab.be/ns/rml#", "http://w3id.org/rml/")


class Mapping:
    """A CONSTRUCT query, cut where the rows go: behind the "{" of its WHERE."""

    def __init__(self, text: str, name: str = "mapping") -> None:
        self.name = name
        self.text = text
        depth, groups = 0, 0
        for token in _word().finditer(text):
            if token[0] == "{":
                depth += 1
                groups += depth == 1
                if groups == 2:
                    self._head, self._tail = text[: token.end()], text[token.end() :]
                    break
            elif token[0] == "}":
                depth -= 1
        else:
            raise KbError(f"{name}: CONSTRUCT {{ ... }} WHERE {{ ... }} expected")
        try:
            answer = RdfStore().query(text)
        except SyntaxError as error:
            raise KbError(f"{name}: {refusal(text, error, 'query')}") from error
        except RuntimeError as error:  # a function that there is not
            raise KbError(f"{name}: {error}") from error
        if not isinstance(answer, QueryTriples):
            raise KbError(f"{name}: a CONSTRUCT query expected")
        self.needs = _needs(text)
        """The variables that only columns can bind, in the order of the text."""
        self._casts = _casts(self._head, self._tail)

    def fitting(self, rows: Rows, tell: Callable[[Fault], None]) -> Rows:
        """The rows but for those with a text that a cast of its column does not take, which go to `tell`: SPARQL leaves
        out the statement, of which nobody would know."""
        wrong: dict[int, str] = {}
        variables = [variable_name(name) for name in rows.names]
        for variable, datatype in self._casts:
            if variable not in variables:
                continue
            cells = [row[variables.index(variable)] for row in rows.values]
            texts = {n: text for n, text in enumerate(cells) if isinstance(text, str) and text.strip()}
            wrongly = refused_by_cast(set(texts.values()), datatype)
            for number in [number for number, text in texts.items() if text in wrongly]:
                told = f"?{variable}: {texts[number][:60]!r} is no xsd:{datatype.removeprefix(_XSD)}"
                wrong.setdefault(number, told)
        if not wrong:
            return rows
        for number, reason in sorted(wrong.items()):
            line, row = rows.lines[number], rows.values[number]
            tell(Fault(line, line, reason, ", ".join("" if cell is None else str(cell) for cell in row)))
        kept = [number for number in range(len(rows.values)) if number not in wrong]
        return Rows(rows.names, [rows.values[n] for n in kept], [rows.lines[n] for n in kept])

    @classmethod
    def given(cls, mapping: str | Path | Mapping | None) -> Mapping | None:
        """A mapping, its text (which has braces) or its file. Raises KbError."""
        if mapping is None or isinstance(mapping, Mapping):
            return mapping
        return cls(mapping) if isinstance(mapping, str) and "{" in mapping else cls.of_file(mapping)

    @classmethod
    def of_file(cls, path: str | Path) -> Mapping:
        """Raises KbError."""
        try:
            text = Path(path).read_text(encoding="utf-8-sig")
        except (OSError, UnicodeDecodeError) as error:
            raise KbError(f"{path}: cannot be read: {error}") from error
        try:
            return cls(text, str(path))
        except KbError as error:
            if not any(name in text for name in _RML):
                raise
            raise KbError(
                f"{path}: is an RML or R2RML mapping; a mapping here is a SPARQL CONSTRUCT query. Let morph-kgc write "
                "N-Triples by it, in an environment of its own (it needs an older pyoxigraph), and load these"
            ) from error

    def triples(self, rows: Rows) -> Iterator[Triple]:
        """What the query makes of the rows. Raises KbError, for columns that it cannot take."""
        names = [variable_name(name) for name in rows.names]
        if twice := [name for name, variable in zip(rows.names, names, strict=True) if names.count(variable) > 1]:
            told = ", ".join(map(repr, twice))
            raise KbError(f"{self.name}: columns {told} have the same name as variables")
        head = " ".join("?" + name for name in names)
        values = "\n".join(f"({' '.join(map(_cell, row))})" for row in rows.values)
        try:
            answer = RdfStore().query(f"{self._head} VALUES ({head}) {{\n{values}\n}}{self._tail}")
        except SyntaxError as error:
            raise KbError(f"{self.name}: with the columns {', '.join(rows.names)}: {syntax_reason(error)}") from error
        assert isinstance(answer, QueryTriples)
        return answer


def _casts(head: str, tail: str) -> list[tuple[str, str]]:
    """Variables that a BIND casts for the template (`head`), and to which of XSD's datatypes. None where what the query
    makes of a row depends on conditions: those may be there for texts that are no numbers."""
    if _CONDITION.search(tail):
        return []
    known = dict(_PREFIX.findall(head))
    shown = set(_VARIABLE.findall(head))
    found = [(v, iri or known.get(p, "") + name) for p, name, iri, v, as_ in _CAST.findall(tail) if as_ in shown]
    return [(variable, iri) for variable, iri in found if iri.startswith(_XSD)]


def refused_by_cast(texts: set[str], datatype: str) -> set[str]:
    """Those that Oxigraph's cast to a datatype does not take."""
    if not texts:
        return set()
    rows = " ".join(str(Literal(text)) for text in texts)
    query = f"SELECT ?t {{ VALUES ?t {{ {rows} }} BIND({NamedNode(datatype)}(?t) AS ?c) FILTER(!BOUND(?c)) }}"
    answer = RdfStore().query(query)
    assert isinstance(answer, QuerySolutions)
    return {solution["t"].value for solution in answer}


def _needs(text: str) -> tuple[str, ...]:
    """The variables that the query neither binds (AS, VALUES) nor has in a pattern that its own data could bind."""
    used: dict[str, None] = {}
    bound: set[str] = set()
    before, naming = "", False
    for word in _word().finditer(text):
        variable, keyword, bracket = word.groups()
        if variable is not None:
            (bound.add if naming or before == "AS" else used.setdefault)(variable)
        elif bracket == "{" or (bracket is not None and bracket == ")" and before != "VALUES"):
            naming = False
        before = (keyword or "").upper() if word[0][0] not in "#" else before
        naming = naming or before == "VALUES"
    return tuple(name for name in used if name not in bound)


def check_columns(mapping: Mapping, sources: Iterable[Source]) -> None:
    """Raise KbError if the mapping has a variable that no table has a column for. A column that only some tables or
    rows have will do. Only as much of a table is read as this needs."""
    missing, seen = set(mapping.needs), dict[str, None]()
    for source in sources:
        if source.format is not None or not missing:
            continue
        content, raw = source.open()
        with raw, content, suppress(*BROKEN):  # reading it reports the fault
            for names in column_names(source, content):
                seen.update(dict.fromkeys(map(variable_name, names)))
                missing.difference_update(seen)
                if not missing:
                    break
    if missing and seen:
        name = next(name for name in mapping.needs if name in missing)
        near = get_close_matches(name, seen, len(seen))
        listed = ", ".join("?" + each for each in [*near, *(each for each in seen if each not in near)])
        reason = f"?{name} is no column of the tables and nothing else binds it; columns: {listed}"
        raise KbError(f"{mapping.name}: {reason}")


def table_statements(
    source: Source, content: IO[bytes], mapping: Mapping | None, tell: Callable[[Fault], None], *, skolemise: bool
) -> Iterator[Quad]:
    """A table's statements (of a frame `content` is not read). Rows that do not fit and a file that cannot be read on
    go to `tell`. Raises KbError."""
    if mapping is None:
        raise KbError(f"{source.label}: a table needs a mapping (--mapping FILE with a CONSTRUCT query)")
    return scoped(_mapped(source, content, mapping, tell), source.scope, skolemise, numbered=True)


def _mapped(source: Source, content: IO[bytes], mapping: Mapping, tell: Callable[[Fault], None]) -> Iterator[Quad]:
    try:
        for rows in table_rows(source, content, tell):
            for triple in mapping.triples(mapping.fitting(rows, tell)):
                yield Quad(triple.subject, triple.predicate, triple.object)
    except BROKEN as error:
        if source.frame is not None:  # nothing of it is bad: it was not had
            raise KbError(f"{source.label}: {error}") from error
        tell(cut_off(error))
    except KbError as error:
        raise KbError(f"{source.label}: {error}") from error


def variable_name(name: str) -> str:
    return _no_variable().sub("_", name)


def _cell(value: object) -> str:
    """A value in SPARQL."""
    if value is None:
        return "UNDEF"
    if isinstance(plain := unwrapped(value), str | bool | int | float):
        return str(Literal(plain))
    text, datatype = lexical_form(plain)
    return str(Literal(text, datatype=NamedNode(_XSD + datatype)))


def unwrapped(value: Any) -> Any:
    """A scalar of NumPy's as Python's own; all else as it is."""
    return value.item() if hasattr(value, "item") and type(value.item()) is not type(value) else value


def lexical_form(value: object) -> tuple[str, str]:
    """The lexical form and the XSD datatype of what is neither a string nor a number of Python's."""
    if isinstance(value, datetime):
        return value.isoformat(), "dateTime"
    if isinstance(value, date):
        return value.isoformat(), "date"
    if isinstance(value, time):
        return value.isoformat(), "time"
    if isinstance(value, timedelta):
        return _duration(value), "dayTimeDuration"
    if isinstance(value, Decimal):
        return f"{value:f}", "decimal"
    if isinstance(value, bytes):
        return b64encode(value).decode(), "base64Binary"
    return json.dumps(value, ensure_ascii=False, default=_inner_text), "string"


def _inner_text(value: object) -> str:
    """Of a member that JSON does not know."""
    plain = unwrapped(value)
    return Literal(plain).value if isinstance(plain, str | bool | int | float) else lexical_form(plain)[0]


def _duration(value: timedelta) -> str:
    length = abs(value)
    seconds = Decimal(length.seconds) + Decimal(length.microseconds) / 1_000_000
    return f"{'-' * (value < timedelta())}P{length.days}DT{seconds:f}S"
