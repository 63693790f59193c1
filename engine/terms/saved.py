"""Terms of a saved state: ids mean something in one dictionary only, so a state is saved with the terms it names.

Each part of a run names to `SavedTerms` its arrays of ids; these are saved as they are, and
beside them, once for all, every term by its id. `KnownTerms` gives the same terms ids in the dictionary of the run
that continues, which may hold others already, and translates. Nothing in the engine depends on the size of an id.

Blank nodes have no text that means anything, but their serial numbers, by which some rows are ordered and from which
their labels are made (`TermDictionary.term`). They keep them if the dictionary has not given any of them; else they
get new ones in the same order. The KB's are saved with their labels in the store: where the dictionary knows such a
label already, it is that node.

What has a state says of which parts it is made (`Stateful`); what is saved, restored, pinned and weighed follows.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import fields
from operator import attrgetter
from typing import Any, ClassVar, Final, TypeAlias, TypeVar

import numpy as np
from numpy.typing import NDArray

from oxiseq.engine import kinds
from oxiseq.engine.arrays.declared import Arrays
from oxiseq.engine.errors import SnapshotError
from oxiseq.engine.terms.dictionary import AnyIds, TermDictionary
from oxiseq.grammar.records import dataclass

State: TypeAlias = dict[str, Any]
"""A saved state: arrays, numbers, texts, None, and lists and dictionaries of them, the keys of which are texts."""
_Array = TypeVar("_Array", bound=NDArray[np.integer])


class SavedTerms:
    """Collects the ids that a state names."""

    def __init__(self, terms: TermDictionary) -> None:
        self._terms = terms
        self._named = np.zeros(len(terms), np.bool_)

    def ids(self, ids: _Array) -> _Array:
        """The same array, all of which are ids."""
        self._named[ids] = True
        return ids

    def state(self) -> State:
        """The terms named."""
        self._named[0] = False
        ids = np.flatnonzero(self._named)
        blank = self._terms.columns.kind[ids] == kinds.BLANK
        text, ends = self._terms.texts(ids[~blank])
        serial = self._terms.columns.exact[ids[blank]]
        order = np.argsort(serial)
        of_kb = {label: known for label, known in self._terms.kb_blanks.items() if self._named[known]}
        return {
            "ids": ids[~blank].astype(np.uint32),
            "text": text,
            "ends": ends,
            "blank": ids[blank][order].astype(np.uint32),
            "serial": serial[order],
            "blanks": self._terms.blanks_made,
            "kb": np.array([*of_kb.values()], np.uint32),
            "kb_labels": [*of_kb],
        }


class KnownTerms:
    """The terms of a saved state in another dictionary."""

    def __init__(self, state: State, terms: TermDictionary) -> None:
        ids, blank = state["ids"], state["blank"]
        most = max(int(ids.max(initial=0)), int(blank.max(initial=0)))
        self._numbers = np.zeros(most + 1, np.int64)
        try:
            self._numbers[ids] = terms.intern_texts(state["text"], state["ends"])
        except ValueError as error:
            raise SnapshotError(f"the saved state holds a text that is no term: {error}") from error
        labels, of_kb = state["kb_labels"], state["kb"]
        self._numbers[of_kb] = [terms.kb_blanks.get(label, 0) for label in labels]
        self._give_blanks(blank, state["serial"], int(state["blanks"]), terms)
        terms.name_kb_blanks(labels, self._numbers[of_kb].tolist())

    def _give_blanks(
        self, blank: NDArray[np.uint32], serial: NDArray[np.int64], made: int, terms: TermDictionary
    ) -> None:
        """Ids for the blank nodes that have none yet."""
        keeps = terms.skip_blanks(int(serial[0]) if len(serial) else 1, made)
        missing = self._numbers[blank] == 0
        self._numbers[blank[missing]] = terms.blanks(int(missing.sum()), serial[missing] if keeps else None)

    def ids(self, ids: NDArray[np.integer]) -> NDArray[np.uint32]:
        """What these ids are here; 0 is 0."""
        known: NDArray[np.uint32] = self._numbers[ids].astype(np.uint32)
        return known

    @property
    def numbers(self) -> NDArray[np.int64]:
        """By saved id the id here, for kernels."""
        return self._numbers


class SameTerms(KnownTerms):
    """The terms of the dictionary itself, for a state that continues beside the one that was saved."""

    def __init__(self, terms: TermDictionary) -> None:
        self._numbers = np.arange(len(terms))


# --- what has a state ---------------------------------------------------------------------------------

_NEEDED: Final = object()
MadeOf: TypeAlias = "tuple[_Value | _Part, ...]"


class Stateful:
    """Something that has a state: it names the parts of which it is made, in the order in which they are saved, and its
    four methods follow.

        class Standing(Stateful):
            made_of = value("_tick"), part("_flow"), part("knowledge", "kb"), part("_told")

    Parts have these methods, too; an attribute may hold one, several, or None.
    """

    __slots__ = ()
    made_of: ClassVar[MadeOf] = ()

    def save(self, terms: SavedTerms) -> State:
        """Its state between batches."""
        state: State = {}
        for each in self.made_of:
            each.save(self, state, terms)
        return state

    def restore(self, state: State, terms: KnownTerms) -> None:
        """Continue from a saved state; for one that has not seen anything."""
        for each in self.made_of:
            each.restore(self, state, terms)

    def held_ids(self) -> Iterable[AnyIds]:
        """The terms of all that it may still look at (see `TermDictionary`)."""
        for each in self.made_of:
            for member in each.members(self):
                yield from member.held_ids()

    @property
    def bytes(self) -> int:
        """How large its memory is, spare room included."""
        return sum([member.bytes for each in self.made_of for member in each.members(self)])


@dataclass(frozen=True, slots=True)
class _Value:
    """A number, an array without ids, a text, or what these are written from."""

    attribute: str
    name: str
    write: Callable[[Any], Any]
    read: Callable[[Any], Any]
    missing: Any

    def save(self, owner: Stateful, state: State, _terms: SavedTerms) -> None:
        state[self.name] = self.write(getattr(owner, self.attribute))

    def restore(self, owner: Stateful, state: State, _terms: KnownTerms) -> None:
        saved = state[self.name] if self.missing is _NEEDED else state.get(self.name, self.missing)
        setattr(owner, self.attribute, self.read(saved))

    def members(self, _owner: Stateful) -> Iterable[Any]:
        return ()


@dataclass(frozen=True, slots=True)
class _Part:
    """Others that have a state. name: None, it is not saved; empty, its state is among the owner's own."""

    attribute: str
    name: str | None

    def save(self, owner: Stateful, state: State, terms: SavedTerms) -> None:
        if self.name is None:
            return
        content = attrgetter(self.attribute)(owner)
        if _are_several(content):
            state[self.name] = [member.save(terms) for member in self.members(owner)]
        elif self.name:
            state[self.name] = None if content is None else content.save(terms)
        elif content is not None:
            state.update(content.save(terms))

    def restore(self, owner: Stateful, state: State, terms: KnownTerms) -> None:
        if self.name is None:
            return
        content = attrgetter(self.attribute)(owner)
        if _are_several(content):
            for member, saved in zip(self.members(owner), state[self.name], strict=True):
                member.restore(saved, terms)
        elif content is not None:
            content.restore(state[self.name] if self.name else state, terms)

    def members(self, owner: Stateful) -> Iterable[Any]:
        content = attrgetter(self.attribute)(owner)
        if _are_several(content):
            return content.values() if isinstance(content, dict) else content
        return () if content is None else (content,)


def _are_several(content: object) -> bool:
    return isinstance(content, (list, tuple, dict)) and not isinstance(content, Arrays)


def value(
    attribute: str, read: Callable[[Any], Any] = int, name: str | None = None, *, missing: Any = _NEEDED
) -> _Value:
    """Declare that the attribute is saved as it is, by its own name if there is no other, and `read` when it is
    restored. missing: what is read where an earlier version has not saved it."""
    return _Value(attribute, name or attribute.lstrip("_"), lambda content: content, read, missing)


def record(attribute: str, kind: type, *, missing: Any = _NEEDED) -> _Value:
    """Declare an attribute that has a frozen dataclass of numbers and texts, or tuples of them; None in a saved state
    is one that has its defaults."""
    names = [each.name for each in fields(kind)]

    def read(saved: State | None) -> Any:
        values = [] if saved is None else [saved[name] for name in names]
        return kind(*[tuple(each) if isinstance(each, list) else each for each in values])

    return _Value(
        attribute, attribute.lstrip("_"), lambda content: {n: getattr(content, n) for n in names}, read, missing
    )


def part(attribute: str, name: str | None = None) -> _Part:
    """Declare that the attribute has a state, which is saved by its own name if there is no other."""
    return _Part(attribute, attribute.lstrip("_") if name is None else name)


def spread(attribute: str) -> _Part:
    """Declare that the attribute has a state, which is saved among the owner's own."""
    return _Part(attribute, "")


def unsaved(attribute: str) -> _Part:
    """Declare that the attribute has ids and a size, and is not saved, or by the owner's own method."""
    return _Part(attribute, None)


def maybe(number: Any) -> int | None:
    """Read a number, or None."""
    return None if number is None else int(number)


def numbers(saved: NDArray[Any]) -> NDArray[np.int64]:
    """Read an array of numbers, a copy."""
    return saved.astype(np.int64)
