"""Numbers as terms, by the column."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from oxiseq.engine.kernels.flow.results import SCRATCH, integer_terms
from oxiseq.engine.kernels.memory.pointers import address_of, call
from oxiseq.engine.terms.dictionary import TermDictionary

Ids = NDArray[np.uint32]
_TEXT: Final = 72
"""Bytes of an integer as a term, and more."""
_AT_ONCE: Final = 256
"""Terms that the dictionary is to have room for."""


def integer_ids(numbers: NDArray[np.int64], terms: TermDictionary) -> Ids:
    """The ids of these numbers as xsd:integer."""
    return written(integer_terms, (numbers,), _TEXT, terms)


def written(kernel: Callable[..., int], columns: tuple[NDArray[Any], ...], text: int, terms: TermDictionary) -> Ids:
    """The ids that a kernel of kernels/flow/results.py writes for these columns, 0 where it writes none; `text`: bytes
    that no term is longer than."""
    ids, scratch, done = np.zeros(len(columns[0]), np.uint32), np.zeros(SCRATCH, np.uint8), 0
    while done < len(ids):
        terms.reserve(_AT_ONCE, text * _AT_ONCE)
        done = int(call(kernel, terms, address_of(scratch), *columns, ids, done))
    return ids
