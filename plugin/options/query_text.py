"""A query as it was given: its text, its language, where it is from.

In the flow: text, file, path → **`QueryText`** → whatever takes a query. `oxiseq.Query` is one with a face.
"""

from __future__ import annotations

from functools import cached_property, lru_cache
from os import PathLike, fspath
from pathlib import Path
from typing import IO, Any, TypeAlias, TypeVar

from oxiseq.grammar import Finding, QueryError, check, parse
from oxiseq.grammar.byte_order import unmarked
from oxiseq.grammar.checks import refuse
from oxiseq.grammar.errors import ArgumentTypeError, ArgumentValueError, OxiseqError
from oxiseq.grammar.languages import STANDING, USUAL, AnyQuery, known_language, language_told
from oxiseq.grammar.over_store import findings_over_store

S = TypeVar("S", bound="QueryText")


class QueryText:
    """Immutable; equal by text and language. The text is parsed when that is first needed."""

    _text: str
    _language: str
    _name: str

    def __init__(self, query: QueryLike, language: str | None = None) -> None:
        """`query`: a text; a file's path, as `Path` or as a text of one line that ends like a query file; an open file;
        or another query. `language`: where neither the file's ending nor the query says it; without it, SPAseq.

        Raises OxiseqError for a language that is not known or not the query's, for files that cannot be read, and for
        half a character (a lone surrogate).
        """
        text, name, told = _given(query)
        text = unmarked(text)
        _check_whole(text)
        if language is not None:
            chosen = known_language(language)
            if isinstance(query, QueryText) and chosen != told:
                raise ArgumentValueError(
                    f"the query is in {told}, not in {chosen}: query.translate({chosen!r}) may help"
                )
            told = chosen
        self.__dict__.update(_text=text, _language=told or USUAL, _name=name)

    @classmethod
    def of(cls: type[S], text: str, language: str, name: str = "") -> S:
        """Of a text that is no path, whatever it looks like. Raises OxiseqError for a language that is not known, and
        for half a character."""
        text = unmarked(text)
        _check_whole(text)
        made = cls.__new__(cls)
        made.__dict__.update(_text=text, _language=known_language(language), _name=name)
        return made

    @property
    def text(self) -> str:
        """As it was given."""
        return self._text

    @property
    def language(self) -> str:
        """In which it is written."""
        return self._language

    @property
    def name(self) -> str:
        """The file's, else empty."""
        return self._name

    @cached_property
    def algebra(self) -> AnyQuery:
        """Parsed and checked. Raises QueryError."""
        query, found = self._checked
        refuse(found)
        return query

    @cached_property
    def _checked(self) -> tuple[AnyQuery, tuple[Finding, ...]]:
        query = parse(self.text, self.language)
        return query, check(query, self.text)

    def check(self) -> tuple[Finding, ...]:
        """What is wrong with it (severity `error`) or worth a look (`lint`), each with message, line, column and hint,
        in the order of the text. Of a text that is none of its language, the one error that ends the parsing."""
        try:
            return self._checked[1]
        except QueryError as error:
            return (error.to_finding(),)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, QueryText):
            return NotImplemented
        return (self.text, self.language) == (other.text, other.language)

    def __hash__(self) -> int:
        return hash((self.text, self.language))

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self).of, (self.text, self.language, self.name)

    def __copy__(self: S) -> S:
        return self

    def __deepcopy__(self: S, memo: object) -> S:
        return self

    def __setattr__(self, name: str, value: object) -> None:
        raise AttributeError(f"a query does not change: {name} cannot be set")

    def __delattr__(self, name: str) -> None:
        raise AttributeError(f"a query does not change: {name} cannot be deleted")

    def __str__(self) -> str:
        return self.text

    def __repr__(self) -> str:
        line = " ".join(self.text.split())
        shown = line if len(line) <= 60 else f"{line[:57]}..."
        return f"<{type(self).__name__} {self.language}: {shown}>"


QueryLike: TypeAlias = "str | PathLike[str] | IO[str] | QueryText"
"""What is taken for a query: a text, a path, an open file, or a query."""


def query_text(query: QueryLike, language: str | None = None) -> QueryText:
    """What is given for a query. Raises OxiseqError, as `QueryText` does."""
    if isinstance(query, QueryText) and language in (None, query.language):
        return query
    return QueryText(query, language)


def findings_of(text: str, language: str) -> tuple[Finding, ...]:
    """What is wrong with a text or worth a look; `sparql`: with one over the store. Raises OxiseqError for a language
    that is not known."""
    return findings_over_store(text) if language == STANDING else known_text(text, language).check()


@lru_cache(8)
def known_text(text: str, language: str) -> QueryText:
    """A text that a registration asks about several times, and parses and checks once. Raises OxiseqError."""
    return QueryText.of(text, language)


def is_query_path(query: object) -> bool:
    """Whether it is the path of a query's file: a `Path`, or a text of one line that ends like one."""
    if isinstance(query, PathLike):
        return True
    if not isinstance(query, str) or "\n" in query or "{" in query:
        return False
    return language_told(query) is not None


def _given(query: Any) -> tuple[str, str, str | None]:
    """The text, the file's name, the language by its ending."""
    if isinstance(query, QueryText):
        return query.text, query.name, query.language
    if is_query_path(query):
        return _read(Path(fspath(query)))
    if isinstance(query, str):
        return query, "", None
    if callable(getattr(query, "read", None)):
        name = getattr(query, "name", "")
        try:
            text = query.read()
            text = text.decode("utf-8", "strict") if isinstance(text, bytes) else text
        except UnicodeDecodeError as error:
            raise OxiseqError(f"{name or 'the file'}: not UTF-8 text") from error
        return str(text), name if isinstance(name, str) else "", _told(name)
    raise ArgumentTypeError(f"a query is a text, a path, a file or an oxiseq.Query, not {query!r}"[:200])


def _read(path: Path) -> tuple[str, str, str | None]:
    try:
        return path.read_text(encoding="utf-8"), str(path), _told(str(path))
    except OSError as error:
        raise OxiseqError(f"{path}: {error.strerror or error}") from error
    except ValueError as error:  # not UTF-8, or no path
        raise OxiseqError(f"{path}: {'not UTF-8 text' if isinstance(error, UnicodeDecodeError) else error}") from error


def _check_whole(text: str) -> None:
    """Raises OxiseqError for half a character: no term and no file can hold it."""
    try:
        text.encode()
    except UnicodeEncodeError as error:
        raise OxiseqError(f"half a character (a lone surrogate) at {error.start} of the query") from error


def _told(name: object) -> str | None:
    """The language by a file's ending."""
    return language_told(name) if isinstance(name, str) else None
