"""Lines of text through a table of states: which of them are not of a form that the table knows.

In the flow: a block of N-Triples or N-Quads and the table of kb_loader/usual.py → the lines to be looked at singly.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from oxiseq.engine.kernels.compiling.options import unlocked

LINE_END = 10


@unlocked
def other_lines(text: NDArray[np.uint8], table: NDArray[np.uint8], found: NDArray[np.int64]) -> int:
    """Write (number from 0, first byte, byte behind) of each line that does not end in state 0; returns how many.

    `text` ends with a line end. Each line begins in state 0, and `table[state, byte]` is the next state. `found` has
    three columns; where its rows do not suffice, -1 is returned.
    """
    count, line, first, state = 0, 0, 0, 0
    for at in range(len(text)):
        byte = text[at]
        state = np.intp(table[state, byte])
        if byte == LINE_END:
            if state != 0:
                if count == len(found):
                    return -1
                found[count, 0], found[count, 1], found[count, 2] = line, first, at + 1
                count += 1
            state = 0
            line += 1
            first = at + 1
    return count
