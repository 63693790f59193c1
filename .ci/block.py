"""Print the n-th fenced shell block of a Markdown file: `python3 .ci/block.py README.md 1`."""

from __future__ import annotations

import re
import sys
from pathlib import Path


def shell_blocks(text: str) -> list[str]:
    """The contents of all ```sh and ```bash blocks, in order."""
    return re.findall(r"^```(?:sh|bash)\n(.*?)^```", text, re.MULTILINE | re.DOTALL)


if __name__ == "__main__":
    blocks = shell_blocks(Path(sys.argv[1]).read_text())
    sys.stdout.write(blocks[int(sys.argv[2]) - 1])
