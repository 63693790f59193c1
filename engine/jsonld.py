"""How much work the contexts of a JSON-LD document make, known before the work is done.

A context is copied whenever another is applied within it: an embedded one, or that of a term (scoped) where the term is
used as a property or type. So a few megabytes of contexts within contexts can make hours of work. Here the copies are
counted without making them: for each context, its entries times the contexts that are applied in its part of the
document, however they are ordered. A string that a scoped context may be of counts as a use, so aliases of @type need
no care. Contexts of other documents (`@import`) are written out before (events/contexts.py).
"""

from __future__ import annotations

import json
import re
from typing import Any, Final

MOST_COPIES: Final = 1_000_000
"""Entries of contexts that a document may make the parser copy..."""
PER_BYTE: Final = 4
"""...and one more for so many bytes of it: to read these takes longer."""
_KEY: Final = "@context"
_MARK: Final = re.compile(rb"@context|\\u00(?:40|63|6[fF]|6[eE]|74|65|78)")
"""The name, or an escape of one of its letters."""
_OVERLAP: Final = len("@context") - 1


class FewContexts:
    """Whether a text that is read piece by piece may have more than one context."""

    def __init__(self) -> None:
        self._count, self._end = 0, b""

    def may_multiply(self, piece: bytes) -> bool:
        """With this piece, and those before."""
        text = self._end + piece
        for found in _MARK.finditer(text):
            self._count += found.end() > len(self._end) and (2 if found[0].startswith(b"\\") else 1)
            if self._count > 1:
                return True
        self._end = text[-_OVERLAP:]
        return False


def check_contexts(text: bytes) -> None:
    """Raise SyntaxError for a document, not nested deep, whose contexts make too much work. What is no JSON is for the
    parser to say."""
    if not FewContexts().may_multiply(text):
        return
    try:
        document = json.loads(text, object_pairs_hook=tuple, parse_int=bool, parse_float=bool)
    except ValueError:
        return
    _Copies(MOST_COPIES + len(text) // PER_BYTE, document)


class _Copies:
    """Counts; raises SyntaxError beyond `most`. An object is a tuple of pairs: it may have a name twice."""

    def __init__(self, most: int, document: Any) -> None:
        self._most, self._copies = most, 0
        self._scoped: dict[str, tuple[int, int]] = {}
        """Term → entries of its own context, and contexts that are looked at when it is applied; the most of each."""
        self._known: dict[int, tuple[int, int]] = {}
        """What a context of the document weighs."""
        self._collect(document)
        self._node(document)

    def _collect(self, value: Any) -> None:
        """The terms that have contexts of their own, wherever they are defined."""
        if isinstance(value, list):
            for each in value:
                self._collect(each)
        elif isinstance(value, tuple):
            for name, each in value:
                if name == _KEY:
                    self._known[id(each)] = self._weigh(each)
                else:
                    self._collect(each)

    def _weigh(self, context: Any) -> tuple[int, int]:
        """Entries of a context, with all that is in them, and how many contexts it is and holds."""
        if isinstance(context, list):
            found = [self._weigh(each) for each in context]
            return sum(size for size, _ in found), 1 + sum(count - 1 for _, count in found)
        if not isinstance(context, tuple):
            return 1, 1
        size, count = len(context), 1
        for term, definition in context:
            own = [self._weigh(each) for name, each in definition if name == _KEY] if _is_object(definition) else []
            size += len(definition) if _is_object(definition) else 0
            for entries, contexts in own:
                size, count = size + entries, count + contexts
                known = self._scoped.get(term, (0, 0))
                self._scoped[term] = max(known[0], entries), max(known[1], contexts)
        return size, count

    def _node(self, value: Any) -> int:
        """How many contexts are applied in a part of the document."""
        if isinstance(value, list):
            return sum(map(self._node, value))
        if not isinstance(value, tuple):
            return 0
        own, applied = 0, 0
        for name, each in value:
            if name == _KEY:
                size, count = self._known[id(each)]
                own, applied = own + size, applied + count
                continue
            within = self._node(each)
            if (scoped := self._scoped.get(name)) is not None:
                times = len(each) if isinstance(each, list) else 1
                self._count(scoped[0] * (times + within))
                within += scoped[1] * times
            applied += within
            for text in each if isinstance(each, list) else (each,):
                if isinstance(text, str) and (scoped := self._scoped.get(text)) is not None:
                    own, applied = own + scoped[0], applied + scoped[1]
        self._count(own * (1 + applied))
        return applied

    def _count(self, copies: int) -> None:
        self._copies += copies
        if self._copies > self._most:
            raise SyntaxError(
                f"the contexts of this JSON-LD make more than {self._most:,} copies of their entries, because contexts "
                "are applied again and again within others: write one context at the top, or fewer terms"
            )


def _is_object(value: Any) -> bool:
    return isinstance(value, tuple)
