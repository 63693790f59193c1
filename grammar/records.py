"""Dataclasses whose methods are made when they are first used.

Python writes and compiles up to six methods of a dataclass where it is defined: of six hundred classes, a third of the
time that a new process needs for its imports. Most of these methods are never called. Here a class begins with methods
that have the real one made at their first call, by `dataclasses` itself, and are replaced by it. Nothing is compiled
for what keeps the fields of a frozen class as they are.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from dataclasses import FrozenInstanceError, fields
from typing import TYPE_CHECKING, Any, Final

__all__ = ["dataclass"]

_BY_FIELDS: Final = {
    "__init__": {"init": True, "repr": False, "eq": False},
    "__repr__": {"init": False, "repr": True, "eq": False},
    "__eq__": {"init": False, "repr": False, "eq": True},
    "__hash__": {"init": False, "repr": False, "eq": True, "unsafe_hash": True},
}
"""The methods that depend on a class's fields: how `dataclasses` is asked for this one."""

if TYPE_CHECKING:
    from dataclasses import dataclass
else:

    def dataclass(
        cls: type | None = None, /, *, frozen: bool = False, eq: bool = True, slots: bool = False, **more: bool
    ) -> Any:
        """As `dataclasses.dataclass`, and as fast once its methods are made; `more`: kw_only, weakref_slot.

        A class derived from a frozen one of these is made here, too: `dataclasses` refuses it.
        """

        def made(plain: type) -> type:
            return _made(plain, frozen, eq, slots, more)

        return made if cls is None else made(cls)


class _Signature:
    """Of classes: `inspect.signature` finds the real `__init__`."""

    def __get__(self, instance: object, owner: type) -> Any:
        """Raises AttributeError: there is no other signature than that of `__init__`."""
        method = owner.__init__  # type: ignore[misc]  # its own, or that of the class that it derives from
        if (make := getattr(method, "make", None)) is not None:
            make()
        raise AttributeError("__signature__")


_SIGNATURE: Final = _Signature()


def _made(plain: type, frozen: bool, eq: bool, slots: bool, more: dict[str, bool]) -> type:
    """The class with its fields, and methods that wait."""
    hashed = eq and plain.__dict__.get("__hash__") is None  # where it has __eq__ and no __hash__, Python says None
    cls: Any = dataclasses.dataclass(init=False, repr=False, eq=False, slots=slots, **more)(plain)
    wanted = {"__init__": True, "__repr__": True, "__eq__": eq}
    for name in (name for name, own in wanted.items() if own and name not in cls.__dict__):
        setattr(cls, name, _waiting(cls, name, frozen, slots))
    if hashed:
        cls.__hash__ = _waiting(cls, "__hash__", frozen, slots) if frozen else None
    if frozen:
        _freeze(cls, slots)
    cls.__signature__ = _SIGNATURE
    made: type = cls
    return made


def _waiting(cls: type, name: str, frozen: bool, slots: bool) -> Callable[..., Any]:
    """A method that is replaced by the real one when it is called."""

    def make() -> Any:
        if cls.__dict__[name] is method:
            setattr(cls, name, _compiled(cls, name, frozen, slots))
        return cls.__dict__[name]

    def method(*args: Any, **kwargs: Any) -> Any:
        return make()(*args, **kwargs)

    method.make = make  # type: ignore[attr-defined]
    return method


def _compiled(cls: type, name: str, frozen: bool, slots: bool) -> Any:
    """The method that `dataclasses` makes for a class of the same name and fields, which has no others."""
    known = fields(cls)
    body: dict[str, Any] = {each.name: each for each in known}
    body["__annotations__"] = {each.name: each.type for each in known}
    body |= {"__module__": cls.__module__, "__qualname__": cls.__qualname__, "__doc__": cls.__doc__ or "Fields."}
    if hasattr(cls, "__post_init__"):
        body["__post_init__"] = None
    twin = type(cls.__name__, (), body)
    return dataclasses.dataclass(frozen=frozen, slots=slots, **_BY_FIELDS[name])(twin).__dict__[name]


def _freeze(cls: Any, slots: bool) -> None:
    """Let nothing be set or deleted; with `slots`, copies and pickles are made in spite of that."""
    names = frozenset(each.name for each in fields(cls))

    def set_attribute(self: object, name: str, value: object) -> None:
        if type(self) is cls or name in names:
            raise FrozenInstanceError(f"cannot assign to field {name!r}")
        super(cls, self).__setattr__(name, value)

    def delete_attribute(self: object, name: str) -> None:
        if type(self) is cls or name in names:
            raise FrozenInstanceError(f"cannot delete field {name!r}")
        super(cls, self).__delattr__(name)

    cls.__setattr__, cls.__delattr__ = set_attribute, delete_attribute
    if slots:
        own = cls.__dict__
        for name, method in (("__getstate__", _state), ("__setstate__", _set_state)):
            if name not in own:
                setattr(cls, name, method)


def _state(self: Any) -> list[Any]:
    return [getattr(self, each.name) for each in fields(self)]


def _set_state(self: Any, state: list[Any]) -> None:
    for each, value in zip(fields(self), state, strict=True):
        object.__setattr__(self, each.name, value)
