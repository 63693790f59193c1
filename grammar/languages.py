"""The query languages: what each is to those who only read and write texts, and where it is found.

In the flow: name, file or media type → **`Syntax`** → parse, check, render, translate. Ours are in `builtin.py`.
Another package brings one as a plug-in: an entry point of the group `oxiseq.languages`, named as the language, that
gives an object with a `syntax` (an `oxiseq.languages.Language`). Plug-ins are loaded when a call needs a language that
no language known so far is, so that they cost nothing where they are not used, and one that cannot be loaded is
reported and leaves all others as they are.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import field
from functools import cache
from importlib.metadata import EntryPoint, entry_points
from pathlib import PurePath
from typing import Any, Final, Generic, Literal, Protocol, TypeVar

from oxiseq.grammar.algebra import Span
from oxiseq.grammar.errors import ArgumentTypeError, ArgumentValueError, Finding, OxiseqError
from oxiseq.grammar.records import dataclass

GROUP: Final = "oxiseq.languages"
"""Of entry points."""
USUAL: Final = "spaseq"
"""The language of texts that name no other."""
STANDING: Final[Literal["sparql"]] = "sparql"
"""Of standing queries over a store and read no stream, beside the languages."""


class AnyQuery(Protocol):
    """A parsed query of whatever language."""

    @property
    def language(self) -> str:
        """The name of the language that it is of."""

    @property
    def span(self) -> Span:
        """Its span in the text."""


Q = TypeVar("Q", bound=AnyQuery)


@dataclass(frozen=True, slots=True)
class Syntax(Generic[Q]):
    """A language as texts have it.

    `name`: as code and addresses write it, `title`: as people do; `parse`: the algebra of a text, which may hold names
    that mean nothing (raises QueryError); `check`: what is wrong with it or worth a look, given its text, too;
    `render`: a text of it. `endings` of files, without their dot; `options`: which of those that not all languages have
    (`oxiseq.options`); `translations`: into another language, by its name; `words`: keywords, for editors.
    """

    name: str
    title: str
    parse: Callable[[str], Q]
    check: Callable[[Q, str], Iterable[Finding]]
    render: Callable[[Q], str]
    endings: tuple[str, ...] = ()
    media_type: str = ""
    options: tuple[str, ...] = ()
    translations: Mapping[str, Callable[[Q], Any]] = field(default_factory=dict)
    """What they give is a `Translation` (translating/translation.py)."""
    words: tuple[str, ...] = ()
    about: str = ""
    """What it expresses, for the message that a query of another language cannot be written in it."""
    own: Callable[[Q], tuple[str, Span]] | None = None
    """The part of a query that no other language has, and where: for the message that it cannot be written in
    another."""

    def __post_init__(self) -> None:
        if not self.name.isidentifier() or not self.name.islower() or self.name == STANDING:
            raise OxiseqError(f"{self.name!r} is not a name for a language: use lower-case letters and digits")
        if not self.endings:
            object.__setattr__(self, "endings", (self.name,))
        if not self.media_type:
            object.__setattr__(self, "media_type", f"application/{self.name}-query")


class LanguageWarning(UserWarning):
    """A plug-in that brings a language cannot be used."""


_OURS: Final[dict[str, Syntax[Any]]] = {}
_REGISTERED: Final[dict[str, Any]] = {}
"""By `register`: what has a syntax, by the language's name."""


def declare(*syntaxes: Syntax[Any]) -> None:
    """Languages of oxiseq itself."""
    _OURS.update((syntax.name, syntax) for syntax in syntaxes)


def register(language: Any, *, replace: bool = False) -> None:
    """Have a language, something with a `syntax`, known in this process. Raises OxiseqError where another one has its
    name, unless that one was registered in this way and `replace` says so."""
    name = _syntax(language).name
    taken = name in _OURS or name in _points() or (name in _REGISTERED and not replace)
    if taken:
        raise OxiseqError(f"a language {name!r} is already registered")
    for media_type, other in media_types().items():
        if media_type == _syntax(language).media_type and other != name:
            raise OxiseqError(f"the media type {media_type} of the language {name!r} is that of {other!r}")
    _REGISTERED[name] = language


def unregister(name: str) -> None:
    """Forget a language that was registered, with no effect on what is at work. Raises OxiseqError for others."""
    if name not in _REGISTERED:
        raise OxiseqError(f"no language {name!r} has been registered")
    del _REGISTERED[name]


def plugged(name: str) -> Any:
    """What a plug-in, or who registered it, gives for a language that is none of ours. Raises OxiseqError."""
    if name in _REGISTERED:
        return _REGISTERED[name]
    point = _points().get(name)
    if point is None:
        raise ArgumentValueError(f"the language {name!r} is not known; known: {', '.join(language_names())}")
    found = _loaded(point)
    if isinstance(found, _Failed):
        raise OxiseqError(f"the language {name!r} cannot be used: {found.reason}")
    return found


def language_names() -> tuple[str, ...]:
    """Of all languages; plug-ins are not loaded for it."""
    return (*_OURS, *_points(), *_REGISTERED)


def syntax_named(name: str) -> Syntax[Any]:
    """Raises OxiseqError for a language that is not known, or whose plug-in cannot be used."""
    if not isinstance(name, str):
        raise ArgumentTypeError(f"language takes the name of a language (a string), not {name!r}")
    return _OURS.get(name) or _syntax(plugged(name))


def known_language(name: str) -> str:
    """`name`, if it is the name of a language. Raises OxiseqError."""
    return syntax_named(name).name


def ours() -> tuple[Syntax[Any], ...]:
    """Of the languages that oxiseq itself has."""
    return tuple(_OURS.values())


def known() -> tuple[Syntax[Any], ...]:
    """Of ours and of those that have been registered; no plug-in is loaded for it."""
    return (*_OURS.values(), *(each.syntax for each in _REGISTERED.values()))


def syntaxes() -> Iterator[Syntax[Any]]:
    """Of all languages, ours first; for the others plug-ins are loaded. Warns of those that cannot be used."""
    yield from _OURS.values()
    for found in (*map(_loaded, _points().values()), *_REGISTERED.values()):
        if not isinstance(found, _Failed):
            yield found.syntax


def language_told(file: str) -> str | None:
    """The language by a file's ending; None if it is unknown."""
    ending = PurePath(file).suffix.lower().removeprefix(".")
    return next((each.name for each in syntaxes() if ending in each.endings), None) if ending else None


def language_of(file: str) -> str:
    """The language by a file's ending, else SPAseq."""
    return language_told(file) or USUAL


def media_types() -> dict[str, str]:
    """Media type of texts → language."""
    return {each.media_type: each.name for each in reversed(tuple(syntaxes()))}


# --- plug-ins ---------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Failed:
    reason: str


def _syntax(language: Any) -> Syntax[Any]:
    """Raises OxiseqError."""
    syntax = getattr(language, "syntax", None)
    if not isinstance(syntax, Syntax):
        raise OxiseqError(f"{language!r:.100} is not an oxiseq.languages.Language: it has no syntax")
    return syntax


@cache
def _points() -> dict[str, EntryPoint]:
    """Language → its plug-in, as found on the first call. Of two with one name the first is used."""
    found: dict[str, EntryPoint] = {}
    for point in entry_points(group=GROUP):
        if point.name in _OURS:
            _warn(point, "oxiseq itself has a language of this name")
        elif point.name in found and found[point.name] != point:
            _warn(point, f"{_origin(found[point.name])} provides one of this name")
        else:
            found[point.name] = point
    return found


@cache
def _loaded(point: EntryPoint) -> Any:
    """What it gives, made if it is a class; `_Failed`, with a warning, if that is no language or cannot be had."""
    try:
        found = point.load()
        language = found() if isinstance(found, type) else found
        name = _syntax(language).name
        if name != point.name:
            raise OxiseqError(f"its name is {name!r}")
    except Exception as error:  # whatever another package raises
        reason = f"{_origin(point)}: {error}" if isinstance(error, OxiseqError) else f"{_origin(point)}: {error!r}"
        _warn(point, reason)
        return _Failed(reason)
    return language


def _origin(point: EntryPoint) -> str:
    return f"{point.value} of {point.dist.name}" if point.dist is not None else point.value


def _warn(point: EntryPoint, reason: str) -> None:
    message = f"the plug-in {_origin(point)} for the language {point.name!r} is ignored: {reason}"
    warnings.warn(message, LanguageWarning, stacklevel=2)
