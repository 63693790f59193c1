"""The decorator `public`: a public function checks its arguments when it is called.

    @public
    def run(text: str, streams: Mapping[str, Any], ...): ...

`public` gives a function or class `oxiseq` as its module, as users import it, and checks the arguments of functions and
methods by their annotations: containers by their kind and, where they can be examined without using them up, by what
they hold. What an annotation cannot say (a time out of range, an IRI that is none) is found by the code that reads it.
"""

from __future__ import annotations

import inspect
import threading
import types
import typing
from collections import abc
from collections.abc import Callable
from functools import wraps
from numbers import Integral, Real
from typing import Any, Final, Literal, TypeVar, cast

from pyoxigraph import NamedNode

from oxiseq.grammar.errors import ArgumentTypeError, ArgumentValueError

T = TypeVar("T", bound=Callable[..., Any])
C = TypeVar("C", bound=type[Any])
Check = Callable[[Any], bool]
_LOOKED_AT: Final = 100
"""Members of a container that are checked; faults in the rest are found by the code that reads them."""
_SHOWN: Final = 60
_INTERNAL: Final = "_oxiseq_internal"
_TOLD_BETTER: Final = "Duration"
"""Who reads it says how to write what was given as a bare number (durations.py)."""
_NUMBERS: Final[dict[Any, type]] = {int: Integral, float: Real}
_HOLDING: Final = (abc.Mapping, abc.Sequence, abc.Set)
"""Kinds of containers that may be looked into."""


def public(what: T) -> T:
    """Mark a function or class as one that users import from `oxiseq`. Of a class that users make themselves `__init__`
    is to be `checked`."""
    found = faced(what) if inspect.isclass(what) else checked(what)
    found.__module__ = "oxiseq"
    return found


def faced(what: C) -> C:
    """A class whose objects users get: the arguments of its methods are checked, completion offers what is theirs."""
    for name, member in list(vars(what).items()):
        if inspect.isfunction(member) and not name.startswith("_") and not hasattr(member, _INTERNAL):
            setattr(what, name, checked(member))
    if "__dir__" not in vars(what):
        setattr(what, "__dir__", offered)  # noqa: B010  a type checker refuses the assignment
    return what


def internal(function: T) -> T:
    """What oxiseq itself uses of such a class, a method or the function of a property: nothing of it is checked, and
    completion does not offer it."""
    setattr(function, _INTERNAL, True)
    return function


def offered(self: object) -> list[str]:
    """What completion offers of such an object."""
    return [name for name in object.__dir__(self) if not _is_internal(getattr(type(self), name, None))]


def _is_internal(member: object) -> bool:
    return hasattr(member.fget if isinstance(member, property) else member, _INTERNAL)


def checked(function: T) -> T:
    """The function, which says what is wrong with an argument before it begins. Raises ArgumentTypeError (a TypeError)
    and ArgumentValueError (a ValueError)."""
    if inspect.iscoroutinefunction(function) or isinstance(function, types.BuiltinFunctionType):
        return function
    parameters = inspect.signature(function).parameters
    order = [p.name for p in parameters.values() if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)]
    checks: dict[str, Callable[[Any], None]] = {}
    by_place: list[tuple[int, Callable[[Any], None]]] = []
    ready = False

    @wraps(function)
    def called(*given: Any, **named: Any) -> Any:
        nonlocal ready
        if not ready:
            checks.update(_checks(function, parameters))
            by_place.extend((place, checks[name]) for place, name in enumerate(order) if name in checks)
            ready = True
        for place, check in by_place:
            if place >= len(given):
                break
            check(given[place])
        for name, value in named.items():
            if name in checks:
                checks[name](value)
        return function(*given, **named)

    return cast(T, called)


def named_node(iri: str | NamedNode, name: str) -> NamedNode:
    """The IRI that the argument `name` is. Raises ArgumentValueError."""
    try:
        return NamedNode(iri) if isinstance(iri, str) else iri
    except ValueError as error:
        raise ArgumentValueError(f"{name} is no IRI: {iri!r}: {error}") from None


def seconds(given: float | None, name: str) -> float | None:
    """For how long the argument `name` lets a thread wait; None: for ever. Raises ArgumentValueError."""
    if given is not None and not 0 <= given <= threading.TIMEOUT_MAX:
        raise ArgumentValueError(f"{name} is a number of seconds, 0 or more, not {given!r}")
    return given


def _checks(function: Callable[..., Any], parameters: abc.Mapping[str, inspect.Parameter]) -> dict[str, Any]:
    """By name, for those parameters of which an annotation says what they take."""
    found = {}
    scope = {**vars(typing), **getattr(function, "__globals__", {})}
    for name, parameter in parameters.items():
        if not isinstance(parameter.annotation, str) or _TOLD_BETTER in parameter.annotation:
            continue
        if parameter.kind is not parameter.VAR_KEYWORD:
            try:
                of = eval(parameter.annotation, scope)  # our own source
            except NameError:  # a type that is imported for type checkers only
                continue
            if (check := _check_of(of)) is not None:
                found[name] = _refusing(f"{function.__name__}(): {name}", parameter.annotation, of, check)
    return found


def _refusing(where: str, annotation: str, of: Any, check: Check) -> Callable[[Any], None]:
    choices = _choices(of)

    def look(value: Any) -> None:
        if check(value):
            return
        shown = repr(value)
        shown = shown if len(shown) <= _SHOWN else f"{shown[:_SHOWN]}..."
        if isinstance(value, str) and choices:
            raise ArgumentValueError(f"{where} is one of {', '.join(map(repr, choices))}, not {shown}")
        raise ArgumentTypeError(f"{where} is {annotation}, not {type(value).__name__}: {shown}")

    return look


def _choices(of: Any) -> tuple[Any, ...]:
    """What a Literal, or one among alternatives, allows."""
    if typing.get_origin(of) is Literal:
        return typing.get_args(of)
    if isinstance(of, types.UnionType) or typing.get_origin(of) is typing.Union:
        return tuple(each for part in typing.get_args(of) for each in _choices(part))
    return ()


def _check_of(of: Any) -> Check | None:
    """Whether a value is of a type; None: undecidable."""
    if isinstance(of, str):  # an alias of what only type checkers import
        return None
    if of is None or of is type(None):
        return lambda value: value is None
    origin, parts = typing.get_origin(of), typing.get_args(of)
    if origin is Literal:
        return lambda value: any(type(value) is type(each) and value == each for each in parts)
    if isinstance(of, types.UnionType) or origin is typing.Union:
        checks = [_check_of(part) for part in parts]
        if None in checks:
            return None
        exact = frozenset(part for part in parts if isinstance(part, type))  # most values are of one of these
        return lambda value: type(value) in exact or any(check is not None and check(value) for check in checks)
    if origin is abc.Callable:
        return callable
    if origin is not None:
        return _container(origin, parts) if isinstance(origin, type) else None
    if of in _NUMBERS:
        number = _NUMBERS[of]
        return lambda value: isinstance(value, number) and not isinstance(value, bool)
    if of is Any or not isinstance(of, type) or of is object or getattr(of, "_is_protocol", False):
        return None
    if issubclass(of, typing.IO):
        return lambda value: hasattr(value, "read") or hasattr(value, "write")
    return lambda value: isinstance(value, of)


def _container(origin: type, parts: tuple[Any, ...]) -> Check | None:
    inside = [_check_of(part) for part in parts if part is not Ellipsis]
    if issubclass(origin, abc.Mapping):
        keys, values = (*inside, None, None)[:2]
        return lambda value: (
            isinstance(value, origin)
            and (keys is None or all(map(keys, _first(value))))
            and (values is None or all(map(values, _first(value.values()))))
        )
    member = inside[0] if len(inside) == 1 else None
    text = issubclass(str, origin)  # a text is a sequence, but never meant as one

    def holds(value: Any) -> bool:
        if not isinstance(value, origin) or (text and isinstance(value, str | bytes)):
            return False
        return member is None or not isinstance(value, _HOLDING) or all(map(member, _first(value)))

    return holds


def _first(values: Any) -> list[Any]:
    return [each for each, _ in zip(values, range(_LOOKED_AT), strict=False)]
