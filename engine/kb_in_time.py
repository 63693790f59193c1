"""The knowledge base in stream time: one KB for each instant, whatever the language (semantics.md 2.2).

In the flow: the KB and its changes → **its content at an instant** → graph patterns, windows, rules.

A change of the KB has one place in a query's stream time: behind the newest instant of which an event had been
accepted before it. Instants up to that one see the KB before the change, also their events that come later, within the
lateness; later instants see the KB of after. Several changes may wait at once, each behind its own instant; between
two of them no new instant may have begun, and then nothing sees the KB between them.

A store cannot be queried about its past. So whatever a run makes of the KB (answers of patterns, copies of graphs)
it makes once for each version, by a `Reader`; before a change those are made that have not been yet, and they are kept
as long as an instant up to the change's place is not complete. They are saved with the run.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any, Final, Generic, NamedTuple, Protocol, TypeVar

from oxiseq.engine.kb import KnowledgeBase, Solution, WatchedKb
from oxiseq.engine.terms.saved import KnownTerms, SavedTerms, State

A = TypeVar("A")
FOREVER: Final = 1 << 62
"""After every instant."""
_FORMER: Final = -(1 << 62)
"""Versions of the KB that a saved state speaks of are distinguished by numbers that it never has, from here down."""


class Reader(Protocol[A]):
    """What a part of a run derives from the KB; a derived value never changes."""

    @property
    def texts(self) -> tuple[str, ...]:
        """Its possible queries, as SPARQL."""
        ...

    def answer(self, kb: KnowledgeBase) -> A:
        """Make it of the KB's present content. Raises KbError."""
        ...

    def saved(self, made: A, terms: SavedTerms) -> State:
        """For a snapshot."""
        ...

    def restored(self, state: State, terms: KnownTerms) -> A:
        """What `saved` was given."""
        ...


class Materialised(Generic[A]):
    """A reader's values, by version of the KB."""

    def __init__(self, kb: KbInTime, reader: Reader[A], made: dict[int, A]) -> None:
        self._kb, self.reader = kb, reader
        self.made = made

    @property
    def now(self) -> A:
        """For the KB version of the instant being processed. Raises KbError."""
        return self.of(self._kb.version)

    def of(self, version: int) -> A:
        """Of a version: the present one, or one that is kept. Raises KbError."""
        if version not in self.made:
            made = self._made_now()
            for old in self.made.keys() - self._kb.kept_versions:
                del self.made[old]
            self.made[version] = made
        return self.made[version]

    def _made_now(self) -> A:
        """Of the present version; that of before where the changes since do not matter to it."""
        kb, texts = self._kb.present, self.reader.texts
        if not isinstance(kb, WatchedKb):
            return self.reader.answer(kb)
        newest = max(self.made, default=0)
        if newest > 0 and kb.unchanged_since(newest, texts):
            return self.made[newest]
        made = self.reader.answer(kb)
        kb.watch(texts)
        return made

    def saved(self, version: int, terms: SavedTerms) -> State:
        """For a snapshot."""
        return self.reader.saved(self.of(version), terms)

    def restore(self, version: int, state: State, terms: KnownTerms) -> None:
        """What `saved` gave, as that of a version."""
        self.made[version] = self.reader.restored(state, terms)


class _Kept(NamedTuple):
    """Instants up to `until` (µs) see this version, unless an entry before says otherwise."""

    until: int
    version: int


class KbInTime:
    """The KB of one run. Instants come in their order, by `at` or by `stretches`."""

    def __init__(self, kb: KnowledgeBase) -> None:
        self.present: Final = kb
        """The KB itself."""
        self._kept: list[_Kept] = []
        self._held: int | None = None
        """The version that holds, None for the present one."""
        self._parts: dict[str, Materialised[Any]] = {}

    @classmethod
    def of(cls, kb: KnowledgeBase) -> KbInTime:
        """That of a run, or a KB that never changes while instants wait."""
        return kb if isinstance(kb, cls) else cls(kb)

    @property
    def version(self) -> int:
        """For the KB version of the instant being processed."""
        return self.present.version if self._held is None else self._held

    @property
    def is_read(self) -> bool:
        """Whether anything is made of it."""
        return bool(self._parts)

    def solutions(self, query_text: str) -> Iterable[Solution]:
        """Of the present KB. Raises KbError."""
        return self.present.solutions(query_text)

    def ask(self) -> None:
        """Makes all that is read of the KB version of the instant being processed; until it changes, nothing fails
        any more. Raises KbError."""
        for part in self._parts.values():
            part.of(self.version)

    def materialised(self, name: str, reader: Reader[A]) -> Materialised[A]:
        """A reader's value; one that replaces another of the same name finds the values of that."""
        before = self._parts.get(name)
        part = self._parts[name] = Materialised(self, reader, {} if before is None else before.made)
        return part

    @property
    def texts(self) -> tuple[str, ...]:
        """The queries to it, as SPARQL."""
        return tuple(dict.fromkeys(text for part in self._parts.values() for text in part.reader.texts))

    def release(self, name: str) -> None:
        """Nothing reads this value any more."""
        del self._parts[name]

    def follow(self, other: KbInTime, names: Iterable[tuple[str, str]]) -> None:
        """Instants see from now on what they see in another run; `names`: of values here and there."""
        self._kept = list(other._kept)
        for own, its in names:
            self._parts[own].made |= other._parts[its].made

    # --- changes ------------------------------------------------------------------------------------

    def keep(self, until: int | None) -> bool:
        """The KB is about to change behind the instant `until` (see `Watermarks.unfinished`): up to there what holds
        now holds on. Whether something is kept that was not. Raises KbError; then nothing is."""
        if until is None or not self._parts or (self._kept and self._kept[-1].until >= until):
            return False  # all is complete; or nothing has come since the change before
        version = self.present.version
        for part in self._parts.values():
            part.of(version)
        self._kept.append(_Kept(until, version))
        return True

    @property
    def waits(self) -> bool:
        """Whether instants may come that see the KB before a change."""
        return bool(self._kept)

    def same(self, other: KbInTime) -> bool:
        """Whether instants of another run see the same, from now on."""
        return self._kept == other._kept

    @property
    def kept_until(self) -> int | None:
        """The last instant that sees the KB before a change, if one may come."""
        return self._kept[-1].until if self._kept else None

    @property
    def kept_versions(self) -> set[int]:
        """Those."""
        return {kept.version for kept in self._kept}

    # --- instants -----------------------------------------------------------------------------------

    def at(self, time: int) -> int:
        """Go to an instant; none before it will come. The last instant for which the same KB holds."""
        while self._kept and self._kept[0].until < time:
            self._kept.pop(0)
        self._hold()
        return self._kept[0].until if self._kept else FOREVER

    def stretches(self, passed: int) -> Iterable[int]:
        """Everything before `passed` is complete and is processed stretch by stretch, each up to the time given
        (not included), while the KB is the one that holds there."""
        if not self._kept:
            self._held = None
            return (passed,)
        return self._stretches(passed)

    def _stretches(self, passed: int) -> Iterator[int]:
        while self._kept and self._kept[0].until + 1 < passed:
            self._hold()
            yield self._kept[0].until + 1
            self._kept.pop(0)
        self._hold()
        yield passed
        self.at(passed)

    def _hold(self) -> None:
        self._held = self._kept[0].version if self._kept else None

    # --- saved and restored -------------------------------------------------------------------------

    def save(self, terms: SavedTerms) -> list[State]:
        """The versions for instants that are not complete."""
        return [
            {"until": until, "parts": {name: part.saved(version, terms) for name, part in self._parts.items()}}
            for until, version in self._kept
        ]

    def restore(self, kept: Sequence[State], terms: KnownTerms) -> None:
        """What `save` gave; for a run that has not seen any event."""
        for number, each in enumerate(kept):
            for name, part in self._parts.items():
                part.restore(_FORMER - number, each["parts"][name], terms)
            self._kept.append(_Kept(int(each["until"]), _FORMER - number))
