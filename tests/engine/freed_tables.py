"""A program: queries of every language, while each pointer table becomes all zeros at the moment at which it is freed.

A program of its own, since a kernel that reads such a table reads at address 0, and that ends the process.
"""

from __future__ import annotations

from typing import Any, Final

import numpy as np

import oxiseq
from oxiseq.engine.kernels.memory.pointers import Pointers, Replaceable

_TABLES: Final[list[np.ndarray[Any, Any]]] = []
"""Of all that were freed: their memory is nobody else's, so that it stays as it is."""


def _free(self: Any) -> None:
    self._table[:] = 0
    _TABLES.append(self._table)


_TYPE: Final = "<http://www.w3.org/1999/02/22-rdf-syntax-ns#type>"
_READINGS: Final = [
    (
        f"2026-01-01T00:00:{second:02}Z",
        f"<http://e/x{second}> {_TYPE} <http://e/{'B' if second % 13 == 12 else 'A'}> ; <http://e/v> {second % 5} .",
    )
    for second in range(26)
]
_A, _B = "DEFINE GPM A ON S { ?a a :A ; :v ?v }", "DEFINE GPM B ON S { ?b a :B ; :v ?w }"
_FROM: Final = f"FROM STREAM S <http://e/s> WHERE {{ SEQ(A:+; B) {_A} {_B} }}"
_WINDOW: Final = "FROM NAMED WINDOW :w ON :s [RANGE PT10S STEP PT5S]"
_QUERIES: Final = [
    ("ceql", "VOCAB <http://e/> SELECT MAX * FROM S WHERE (A AS x; A+ AS y; B) OR (A AS z; B) WITHIN 12 SECONDS"),
    *[("spaseq", f"PREFIX : <http://e/> SELECT {how} * WITHIN 12 SECONDS SLIDING {_FROM}") for how in ("NEXT", "LAST")],
    ("spaseq", f"PREFIX : <http://e/> SELECT ?b WITHIN 8 SECONDS SLIDING {_FROM} ORDER BY DESC(?w) LIMIT 2"),
    ("spaseq", f"PREFIX : <http://e/> SELECT (COUNT(*) AS ?n) WITHIN 12 SECONDS SLIDING {_FROM}"),
    (
        "rspql",
        f"PREFIX : <http://e/> REGISTER RSTREAM :o AS SELECT (SUM(?v) AS ?n) {_WINDOW} "
        "WHERE { WINDOW :w { ?a a :A ; :v ?v } }",
    ),
    (
        "epsparql",
        "PREFIX : <http://e/> SELECT ?a ?b WHERE { { ?a a :A } SEQ { ?b a :B } FILTER(getDURATION() < 5000000) }",
    ),
]


def main() -> None:
    """How many answers each query has, a line each."""
    for kind in (Pointers, Replaceable):
        kind.__del__ = _free  # type: ignore[attr-defined]  # it has none
    for language, text in _QUERIES:
        streams = {"http://e/s" if language == "rspql" else "S": _READINGS}
        print(language, len(list(oxiseq.run(text, streams=streams, language=language))), flush=True)


if __name__ == "__main__":
    main()
