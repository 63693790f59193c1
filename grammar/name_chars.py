"""The characters that names of SPARQL and Turtle can hold, as parts of regular expressions' `[...]`.

They are PN_CHARS_U, the digits, PN_CHARS (https://www.w3.org/TR/sparql12-query/#rPN_CHARS_BASE), and what else Python
calls a letter or a digit. Its `\\w` alone has no combining marks: no accent as macOS writes it, no vowel sign of
Devanagari.
"""

import re
from typing import Final

LETTERS: Final = (
    r"\w\u0370-\u037d\u037f-\u1fff\u200c\u200d\u2070-\u218f\u2c00-\u2fef\u3001-\ud7ff\uf900-\ufdcf\ufdf0-\ufefe"
    r"\uff00-\ufffd\U00010000-\U000effff"
)
"""What a variable, a local name or a label can begin with; digits too."""
NAME_CHARS: Final = LETTERS + r"\u00b7\u0300-\u036f\u203f\u2040"
"""What may follow. Prefixes, local names and labels hold `-` and `.`, too."""
_ESCAPED: Final = r"%[0-9A-Fa-f]{2}|\\[_~.\-!$&'()*+,;=/?#@%]"
NAMES: Final = {
    "PNAME": rf"(?:[^\W\d_](?:[{NAME_CHARS}.\-]*[{NAME_CHARS}\-])?)?:"
    rf"(?:(?:[{LETTERS}:]|{_ESCAPED})(?:(?:[{NAME_CHARS}:.\-]|{_ESCAPED})*(?:[{NAME_CHARS}:\-]|{_ESCAPED}))?)?",
    "BLANK_LABEL": rf"_:[{LETTERS}](?:[{NAME_CHARS}.\-]*[{NAME_CHARS}\-])?",
    "VAR": rf"[?$][{LETTERS}][{NAME_CHARS}]*",
    "NAME": rf"(?!\d)[{LETTERS}][{NAME_CHARS}]*",
}
"""Patterns of the terminals of `parsing/sparql.lark` that hold names. Those there take any character that is not of
ASCII: a pattern with these characters takes Python a millisecond to compile, and there is one for each parser state."""


def name_in(terminal: str, word: str) -> str:
    """What of a word that is read as this terminal is a name; all of it where the terminal holds none."""
    if terminal not in NAMES:
        return word
    found = re.match(NAMES[terminal], word)
    return "" if found is None else found[0]
