"""Pages of the site that are no files of docs/: those of examples/ and benchmarks/, and the reference from the code.

Run by mkdocs-gen-files.
"""

from __future__ import annotations

import sys
from pathlib import Path

import mkdocs_gen_files

sys.path.append(str(Path(__file__).parent))

from made_pages import PAGES

ROOT = Path(__file__).parents[2]
TAKEN = [
    *sorted(ROOT.glob("examples/**/README.md")),
    *sorted(ROOT.glob("examples/**/*.svg")),
    *sorted(ROOT.glob("examples/**/*.png")),
    *sorted(ROOT.glob("benchmarks/*.md")),
    *sorted(ROOT.glob("benchmarks/pictures/*")),
    *(ROOT / name for name in ("CONTRIBUTING.md", "SECURITY.md", "CHANGELOG.md")),
]
for file in TAKEN:
    with mkdocs_gen_files.open(str(file.relative_to(ROOT)), "wb") as copy:
        copy.write(file.read_bytes())
for name, page in PAGES.items():
    with mkdocs_gen_files.open(f"reference/{name}.md", "w") as made:
        made.write(page())
