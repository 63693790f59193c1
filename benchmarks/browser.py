"""A real browser, headless, for the page's pictures and its tests: Chromium and its driver as the system has them."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Literal
from urllib.parse import urlsplit

from selenium import webdriver
from selenium.webdriver.chrome.options import Options
from selenium.webdriver.chrome.service import Service
from selenium.webdriver.chrome.webdriver import WebDriver
from selenium.webdriver.support.wait import WebDriverWait

Scheme = Literal["light", "dark"]


def missing() -> str | None:
    """What is not installed, or None."""
    if chromium() is None:
        return "no Chromium here: apt install chromium"
    return None if shutil.which("chromedriver") else "no chromedriver here: apt install chromium-driver"


def chromium() -> str | None:
    """The browser's program."""
    return next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)


@contextmanager
def browser(width: int = 1360, height: int = 900) -> Iterator[WebDriver]:
    """A browser with a log of its console and its requests."""
    options = Options()
    options.binary_location = chromium() or ""
    # in a container there is neither a sandbox of its own nor a large /dev/shm
    for argument in (
        "--headless=new",
        "--no-sandbox",
        "--disable-dev-shm-usage",
        "--disable-gpu",
        "--hide-scrollbars",
        f"--window-size={width},{height}",
        "--disable-background-networking",
        "--no-first-run",
    ):
        options.add_argument(argument)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL", "performance": "ALL"})
    driver = webdriver.Chrome(options, Service(shutil.which("chromedriver")))
    try:
        yield driver
    finally:
        driver.quit()


def show(driver: WebDriver, width: int, height: int, scheme: Scheme = "light") -> None:
    """The window's size (a phone's, too) and whether the system is dark."""
    metrics = {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": width < 600}
    driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", metrics)
    driver.execute_cdp_cmd(
        "Emulation.setEmulatedMedia", {"features": [{"name": "prefers-color-scheme", "value": scheme}]}
    )


def value(driver: WebDriver, script: str) -> Any:
    """What a JavaScript expression is."""
    return driver.execute_script(f"return ({script})")


def until(driver: WebDriver, script: str, seconds: float = 30) -> Any:
    """Wait until a JavaScript expression is true; what it is then. Raises TimeoutException."""
    return WebDriverWait(driver, seconds, 0.1).until(lambda d: value(d, script), script)


def open_page(driver: WebDriver, address: str) -> None:
    """The page, when it has asked the server for the first time."""
    driver.get(address)
    until(driver, "document.body && document.body.dataset.ready === 'true'")


def complaints(driver: WebDriver) -> list[str]:
    """Errors of the console since the last call."""
    return [entry["message"] for entry in driver.get_log("browser") if entry["level"] == "SEVERE"]


def hosts(driver: WebDriver) -> set[str]:
    """The hosts that requests were sent to since the last call."""
    messages = [json.loads(entry["message"])["message"] for entry in driver.get_log("performance")]
    asked = [m["params"]["request"]["url"] for m in messages if m["method"] == "Network.requestWillBeSent"]
    return {urlsplit(url).netloc for url in asked if url.startswith("http")}
