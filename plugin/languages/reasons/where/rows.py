"""Rows that a part of WHERE has, as ids of one dictionary."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray
from pyoxigraph import Variable

from oxiseq.engine.terms.dictionary import TermDictionary
from oxiseq.engine.terms.texts import Term
from oxiseq.grammar.algebra import Group
from oxiseq.grammar.records import dataclass

MOST = 1_000
"""Most rows of a part that are examined."""


@dataclass(frozen=True, slots=True, eq=False)
class Rows:
    """k rows. `ids`: u32[k, columns], 0 for unbound; `spans`: i64[k, 2], µs, of rows with intervals; `more`: there may
    be more rows than these."""

    columns: tuple[str, ...]
    ids: NDArray[np.uint32]
    spans: NDArray[np.int64] | None = None
    more: bool = False

    def __len__(self) -> int:
        return len(self.ids)

    def bound(self, index: int) -> dict[str, int]:
        """Variable → id of a row, without what is unbound."""
        return {name: i for name, i in zip(self.columns, self.ids[index].tolist(), strict=True) if i}

    def mapping(self, index: int, terms: TermDictionary) -> dict[Variable, Term]:
        """The same as terms."""
        return {Variable(name): terms.term(i) for name, i in self.bound(index).items()}

    def parts(self, names: tuple[str, ...], *, timed: bool = False) -> list[tuple[int, ...]]:
        """For each row the ids of some columns, with its interval if requested."""
        ids = self.ids[:, [self.columns.index(name) for name in names]].astype(np.int64)
        shown = np.concatenate([ids, self.spans], axis=1) if timed and self.spans is not None else ids
        return [tuple(row) for row in shown.tolist()]


Ask: TypeAlias = Callable[[Group], Rows]
"""The rows of a part."""
