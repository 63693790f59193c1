"""Pictures of the page for README: `python -m benchmarks.page [FOLDER]`.

It serves an empty store, runs the guided example in a real browser and takes the pictures: the page, light, dark and on
a phone, a timeline, an automaton, and why there is no match in a time that has none.
"""

from __future__ import annotations

import base64
import io
import re
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from PIL import Image
from selenium.webdriver.chrome.webdriver import WebDriver

from benchmarks.browser import Scheme, browser, missing, open_page, show, until, value

FOLDER = Path(__file__).parent / "pictures"
_SETTLE = 0.6
"""Seconds in which the page draws itself again."""
_WHY = """
document.getElementById('past-since').value = '2008-11-24T00:00';
document.getElementById('past-until').value = '2008-12-05T00:00';
document.getElementById('why').click();
"""
_DONE = (
    "document.getElementById('notice').dataset.kind === 'good' && document.querySelectorAll('#detail .subject').length"
)


@contextmanager
def serving() -> Iterator[str]:
    """The address of `oxiseq serve` over a store in memory."""
    command = [sys.executable, "-c", "from oxiseq.cli import main; main()", "serve", "--bind", "127.0.0.1:0"]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as process:
        assert process.stderr is not None
        try:
            yield next(found[1] for line in process.stderr if (found := re.search(r"listening at (\S+)", line)))
        finally:
            process.terminate()


def save(driver: WebDriver, path: Path, selector: str | None = None) -> None:
    """What the window shows, or one element with a small margin, as PNG."""
    asked: dict[str, object] = {"format": "png", "captureBeyondViewport": selector is not None}
    if selector is not None:
        box = value(
            driver,
            f"(() => {{ const b = document.querySelector({selector!r}).getBoundingClientRect();"
            "return [b.x + scrollX, b.y + scrollY, b.width, b.height]; })()",
        )
        asked["clip"] = {"x": box[0] - 8, "y": box[1] - 8, "width": box[2] + 16, "height": box[3] + 16, "scale": 1}
    taken = driver.execute_cdp_cmd("Page.captureScreenshot", asked)
    _small(base64.b64decode(taken["data"])).save(path, optimize=True)
    print(f"{path.name}: {path.stat().st_size:,} bytes")


def _small(png: bytes) -> Image.Image:
    """With 128 colours, which nobody sees and which halves the file."""
    return Image.open(io.BytesIO(png)).convert("RGB").quantize(128)


def take(driver: WebDriver, folder: Path) -> None:
    """All pictures, of a page that has run the guided example."""
    for name, width, height, scheme in _VIEWS:
        show(driver, width, height, scheme)
        driver.execute_script("scrollTo(0, 0)")
        time.sleep(_SETTLE)
        save(driver, folder / name)
    show(driver, 1180, 900)
    time.sleep(_SETTLE)
    save(driver, folder / "timeline.png", "#timeline svg")
    save(driver, folder / "automaton.png", "#automaton svg")
    driver.execute_script(_WHY)
    until(driver, "document.querySelector('#past .reasons')", 60)
    time.sleep(_SETTLE)
    save(driver, folder / "why.png", "#looking-back")


_VIEWS: tuple[tuple[str, int, int, Scheme], ...] = (
    ("page.png", 1280, 1330, "light"),
    ("page-dark.png", 1280, 1330, "dark"),
    ("page-phone.png", 390, 844, "light"),
)


def main(arguments: list[str]) -> int:
    """Take them; the exit status."""
    if (reason := missing()) is not None:
        print(reason, file=sys.stderr)
        return 1
    folder = Path(arguments[0]) if arguments else FOLDER
    folder.mkdir(parents=True, exist_ok=True)
    with serving() as address, browser() as driver:
        open_page(driver, address)
        driver.execute_script("document.getElementById('guide').click()")
        until(driver, _DONE, 180)
        take(driver, folder)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
