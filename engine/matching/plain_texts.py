"""Tests of strings by a text, on their UTF-8: its order is that of the characters.

In the flow: ids of rows → **outcomes of the strings among them** → the other rows are asked (asking.py). Terms with a
language, and all that are no strings, are among the others.
"""

from __future__ import annotations

import operator
from collections.abc import Callable
from functools import partial
from itertools import pairwise
from typing import Final, TypeAlias

import numpy as np
from numpy.typing import NDArray
from pyoxigraph import Literal, Variable

from oxiseq.engine import kinds
from oxiseq.engine.terms.dictionary import TermDictionary
from oxiseq.engine.terms.value import literal_value
from oxiseq.grammar.algebra import Call, Expression
from oxiseq.grammar.functions import MIRRORED_ORDER

TextTest: TypeAlias = Callable[[bytes], bool]

_TESTS: Final[dict[str, Callable[[bytes, bytes], bool]]] = {
    "<": operator.lt,
    ">": operator.gt,
    "<=": operator.le,
    ">=": operator.ge,
    "CONTAINS": operator.contains,
    "STRSTARTS": bytes.startswith,
    "STRENDS": bytes.endswith,
}


def text_test(e: Expression) -> TextTest | None:
    """What the condition says of a string of its variable, if it compares that with a string, or looks for one in it
    (SPARQL 1.1, 17.4.3)."""
    if not isinstance(e, Call) or e.name not in _TESTS:
        return None
    tested, text, name = e.args[0], e.args[1], e.name
    if isinstance(tested, Literal) and name in MIRRORED_ORDER:
        tested, text, name = text, tested, MIRRORED_ORDER[name]
    if not isinstance(tested, Variable) or not isinstance(text, Literal) or literal_value(text).kind != kinds.STRING:
        return None
    return partial(_swapped, _TESTS[name], text.value.encode())


def _swapped(test: Callable[[bytes, bytes], bool], text: bytes, tested: bytes) -> bool:
    return test(tested, text)


def strings_told(
    test: TextTest, ids: NDArray[np.integer], terms: TermDictionary
) -> tuple[NDArray[np.intp], NDArray[np.bool_]]:
    """Which of the terms are strings, and what the test says of each of them."""
    strings = np.flatnonzero(terms.columns.kind[ids] == kinds.STRING)
    data, ends = terms.plain_texts(ids[strings])
    texts = data.tobytes()
    told = [test(texts[a:b]) for a, b in pairwise(ends.tolist())]
    return strings, np.array(told, np.bool_)
