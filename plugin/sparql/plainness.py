"""Whether a query can be broken off at any row: it has a single triple pattern, and no more.

Each step of such a query writes a row, where a limit is noticed; a join, a filter or a sum may work for hours without
writing any. Told by the text's form alone; whatever is not plain by it is treated as if it never ended.
"""

from __future__ import annotations

import re
from typing import Final

from oxiseq.changes.operations import Token, tokens

_LONGEST: Final = 10_000
_WORDS: Final = {"SELECT": "S", "ASK": "A", "WHERE": "W", "GRAPH": "G", "LIMIT": "L", "PREFIX": "P", "BASE": "B"}
_TERMS: Final = {"iri": "i", "name": "n", "variable": "v", "string": "s"}
_TRIPLE: Final = "[invs][inav](?:[invs]|d+)\\.?"
_FORM: Final = re.compile(rf"(?:Pni|Bi)*(?:A|S(?:v+|\*))W?\{{(?:{_TRIPLE}|G[inv]\{{(?:{_TRIPLE})?\}}\.?)?\}}(?:Ld+)?")


def is_plain(text: str) -> bool:
    """Whether it has this form."""
    if len(text) > _LONGEST:
        return False
    found = list(tokens(text))
    signs = "".join(map(_sign, found))
    if _FORM.fullmatch(signs) is None:
        return False
    asked = [token.text[1:] for token in found[signs.index("{") :] if token.kind == "variable"]
    return len(set(asked)) == len(asked)  # one that comes twice is a condition


def _sign(token: Token) -> str:
    """One character for each kind of token; of other words none that the form knows."""
    if token.kind == "word":
        return "a" if token.text == "a" else _WORDS.get(token.text.upper(), "_")
    if token.kind == "mark":
        return "d" if token.text.isdecimal() else token.text[0] if token.text in ("{", "}", ".", "*") else "_"
    return _TERMS[token.kind]
