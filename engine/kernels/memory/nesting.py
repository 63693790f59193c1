"""How deep a text of JSON or XML is nested, found by its brackets or tags alone, piece by piece.

In the flow: bytes of a stranger → **how deep** → pyoxigraph's parser, whose time and stack grow with the depth.
"""

from __future__ import annotations

from typing import Final

import numpy as np
from numpy.typing import NDArray

from oxiseq.engine.kernels.compiling.options import unlocked
from oxiseq.engine.kernels.memory.numbers import i64

MODE: Final = 0
"""What the next byte is within; 0: between values, or text of XML."""
DEPTH: Final = 1
DEEPEST: Final = 2
OBJECTS: Final = 3
"""Objects of JSON that are open."""
WEIGHT: Final = 4
"""The values of a JSON text, each as often as objects are open around it."""
PART: Final = 5
"""The same of one item of the list that the text is, or of all of it."""
LARGEST_PART: Final = 6
BEFORE: Final = 7
"""The byte before."""
STATE_WORDS: Final = 8

_STRING: Final = 1
_ESCAPE: Final = 2

_OPENED: Final = 1
"""Behind <."""
_TAG: Final = 2
_END_TAG: Final = 3
_DOUBLE: Final = 4
_SINGLE: Final = 5
_INSTRUCTION: Final = 6
_DECLARED: Final = 7
"""Behind <!, which may begin a comment or a section of characters."""
_COMMENT: Final = 8
_COMMENT_DASH: Final = 9
_COMMENT_END: Final = 10
_CHARACTERS: Final = 11
_CHARACTERS_BRACKET: Final = 12
_CHARACTERS_END: Final = 13
_DOCTYPE: Final = 14

_QUOTE: Final = ord('"')
_APOSTROPHE: Final = ord("'")
_BACKSLASH: Final = ord("\\")
_COMMA: Final = ord(",")
_OPEN_LIST: Final = ord("[")
_CLOSE_LIST: Final = ord("]")
_OPEN_OBJECT: Final = ord("{")
_CLOSE_OBJECT: Final = ord("}")
_LESS: Final = ord("<")
_GREATER: Final = ord(">")
_SLASH: Final = ord("/")
_MARK: Final = ord("!")
_ASKED: Final = ord("?")
_DASH: Final = ord("-")


@unlocked
def json_depth(text: NDArray[np.uint8], state: NDArray[np.int64]) -> None:
    """Read a piece of JSON."""
    mode, depth, deepest, objects = state[MODE], state[DEPTH], state[DEEPEST], state[OBJECTS]
    weight, part, largest = state[WEIGHT], state[PART], state[LARGEST_PART]
    for at in range(len(text)):
        c = text[at]
        if mode == _ESCAPE:
            mode = _STRING
        elif mode == _STRING:
            if c == _QUOTE:
                mode = 0
            elif c == _BACKSLASH:
                mode = _ESCAPE
        elif c == _QUOTE:
            mode = _STRING
        elif c == _COMMA or c == _OPEN_LIST or c == _OPEN_OBJECT:
            objects += c == _OPEN_OBJECT
            depth += c != _COMMA
            deepest = max(deepest, depth)
            if objects == 0 and depth <= 1:
                part = 0
            weight += objects
            part += objects
            largest = max(largest, part)
        elif c == _CLOSE_LIST or c == _CLOSE_OBJECT:
            objects = max(0, objects - (c == _CLOSE_OBJECT))
            depth = max(0, depth - 1)
    state[MODE], state[DEPTH], state[DEEPEST], state[OBJECTS] = mode, depth, deepest, objects
    state[WEIGHT], state[PART], state[LARGEST_PART] = weight, part, largest


@unlocked
def xml_depth(text: NDArray[np.uint8], state: NDArray[np.int64]) -> None:
    """Read a piece of XML."""
    mode, depth, deepest, before = state[MODE], state[DEPTH], state[DEEPEST], state[BEFORE]
    for at in range(len(text)):
        c = i64(text[at])
        if mode == 0:
            if c == _LESS:
                mode = _OPENED
        elif mode == _OPENED:
            if c == _SLASH:
                mode = _END_TAG
            elif c == _MARK:
                mode = _DECLARED
            elif c == _ASKED:
                mode = _INSTRUCTION
            else:
                mode = _TAG
                depth += 1
                deepest = max(deepest, depth)
        elif mode == _TAG:
            if c == _GREATER:
                mode = 0
                if before == _SLASH:
                    depth = max(0, depth - 1)
            elif c == _QUOTE:
                mode = _DOUBLE
            elif c == _APOSTROPHE:
                mode = _SINGLE
        elif mode == _DOUBLE:
            if c == _QUOTE:
                mode = _TAG
        elif mode == _SINGLE:
            if c == _APOSTROPHE:
                mode = _TAG
        elif mode == _END_TAG:
            if c == _GREATER:
                mode = 0
                depth = max(0, depth - 1)
        elif mode == _INSTRUCTION:
            if c == _GREATER and before == _ASKED:
                mode = 0
        elif mode == _DECLARED:
            mode = _COMMENT if c == _DASH else _CHARACTERS if c == _OPEN_LIST else _DOCTYPE
        elif mode == _DOCTYPE:
            if c == _GREATER:
                mode = 0
        elif mode == _COMMENT or mode == _COMMENT_DASH or mode == _COMMENT_END:
            if c == _DASH:
                mode = min(mode + 1, _COMMENT_END)
            else:
                mode = 0 if c == _GREATER and mode == _COMMENT_END else _COMMENT
        elif c == _CLOSE_LIST:
            mode = min(mode + 1, _CHARACTERS_END)
        else:
            mode = 0 if c == _GREATER and mode == _CHARACTERS_END else _CHARACTERS
        before = c
    state[MODE], state[DEPTH], state[DEEPEST], state[BEFORE] = mode, depth, deepest, before
