"""A hook of mkdocs: pages link to files of the repository; on the site these are pages, or names of files.

A link to a page or a picture that the site has (docs/, and what pages.py takes over from examples/ and benchmarks/)
leads there. A link to any other file of the repository becomes its text. The hook also links the packages under the
names that Python imports below build/docs-source, where mkdocstrings reads them without importing anything.
"""

from __future__ import annotations

import posixpath
import re
import shutil
from pathlib import Path
from typing import Any, Final

ROOT: Final = Path(__file__).parents[2]
SOURCE: Final = ROOT / "build" / "docs-source"
_LINK: Final = re.compile(
    r"(?P<picture>!?)\[(?P<text>[^\]]*)\]\((?!https?:|#|mailto:)(?P<file>[^)#\s]+)(?P<anchor>#[^)\s]*)?\)"
)

_SHIM: Final = "https://unpkg.com/iframe-worker/shim"
_FOREIGN: Final = re.compile(r"<(?:script|img|iframe)[^>]*\bsrc=\"?https?:[^>]*|<link[^>]*stylesheet[^>]*https?:[^>]*")


def on_config(config: Any) -> Any:
    """Before anything is read."""
    shutil.rmtree(SOURCE, ignore_errors=True)
    (SOURCE / "oxiseq").mkdir(parents=True)
    for file in (ROOT / "plugin").iterdir():
        (SOURCE / "oxiseq" / file.name).symlink_to(file)
    for package in ("engine", "grammar", "kb_loader"):
        (SOURCE / "oxiseq" / package).symlink_to(ROOT / package)
    return config


def on_page_markdown(markdown: str, page: Any, config: Any, files: Any) -> str:
    """Each link of a page as the site has it."""
    here = page.file.src_uri
    in_docs = not page.file.generated_by
    folder = posixpath.dirname(posixpath.join("docs", here) if in_docs else here)

    def replace(found: re.Match[str]) -> str:
        target = posixpath.normpath(posixpath.join(folder, found["file"]))
        for name in (target, posixpath.join(target, "README.md")):
            on_site = name.removeprefix("docs/")
            if files.get_file_from_path(on_site) is not None:
                way = posixpath.relpath(on_site, posixpath.dirname(here) or ".")
                return f"{found['picture']}[{found['text']}]({way}{found['anchor'] or ''})"
        if not (ROOT / target).exists() and in_docs:
            return found[0]  # mkdocs says what is wrong
        return found["text"]

    return _LINK.sub(replace, markdown)


def on_post_page(output: str, page: Any, config: Any) -> str:
    """A page as written: the one script that the theme takes from another host, its shim for search in files on a
    disk, comes from docs/assets. Raises ValueError for any other asset of another host."""
    up = "../" * page.file.dest_uri.count("/")
    output = output.replace(_SHIM, f"{up}assets/iframe-worker.js")
    if foreign := _FOREIGN.search(output):
        raise ValueError(f"{page.file.src_uri}: an asset of another host: {foreign[0]}")
    return output


def on_post_template(output: str, template_name: str, config: Any) -> str:
    """The page for "not found", likewise; its assets are at the site's root."""
    return output.replace(_SHIM, "/assets/iframe-worker.js")
