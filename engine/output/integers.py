"""Integers as terms, by the column."""

from __future__ import annotations

from typing import Final

import numpy as np
from numpy.typing import NDArray

from oxiseq.engine.kernels.flow.results import SCRATCH, integer_terms
from oxiseq.engine.kernels.memory.pointers import address_of
from oxiseq.engine.terms.dictionary import TermDictionary

_TEXT: Final = 72
"""Bytes of an integer as a term, and more."""
_AT_ONCE: Final = 256
"""Terms that the dictionary is to have room for."""


def integer_ids(numbers: NDArray[np.int64], terms: TermDictionary) -> NDArray[np.uint32]:
    """The ids of these numbers as xsd:integer."""
    ids = np.zeros(len(numbers), np.uint32)
    scratch = np.zeros(SCRATCH, np.uint8)
    done = 0
    while done < len(ids):
        terms.reserve(_AT_ONCE, _TEXT * _AT_ONCE)
        done = int(integer_terms(terms.address, address_of(scratch), numbers, ids, done))
    return ids
