"""The W3C's protocol, graph store, service description and result format tests, on ours and on the real server.

Ours must pass what the real server passes; where it fails, the reason stands here.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from w3c_manifests import format_cases, protocol_cases
from w3c_runs import run_case, run_description, run_format
from w3c_suites import absent, suite

Run = Callable[[str], None]

NORMALISED = "Oxigraph's store keeps numbers by value: 1.0E6 is written as 1000000; the real server fails too"

FAILS: dict[str, str] = {"csv03": NORMALISED, "tsv03": NORMALISED}
"""Tests that ours does not pass, with the reason."""


def _collected() -> list[Any]:
    """(suite, name, how to run it); one skipped entry for a suite that is not there."""
    found: list[Any] = []

    def add(kind: str, name: str, run: Run) -> None:
        found.append(pytest.param(name, run, id=f"{kind}-{name}"))

    files = [
        ("protocol", "manifest.ttl"),
        ("graph-store-protocol", "manifest-direct.ttl"),
        ("graph-store-protocol", "manifest-indirect.ttl"),
    ]
    for kind, file in files:
        if (folder := suite(kind)) is None:
            found.append(_absent(kind))
            continue
        for case in protocol_cases(folder, file):
            add(kind, case.name, lambda address, case=case: run_case(address, case))
    for kind in ("csv-tsv-res", "json-res"):
        if (folder := suite(kind)) is None:
            found.append(_absent(kind))
            continue
        for format_case in format_cases(folder):
            add(kind, format_case.name, lambda address, case=format_case: run_format(address, case))
    for name in ("returns-rdf", "has-endpoint-triple", "conforms-to-schema"):
        add("service-description", name, lambda address, name=name: run_description(address, name))
    return found


def _absent(kind: str) -> Any:
    return pytest.param(kind, None, id=f"{kind}-absent", marks=pytest.mark.skip(reason=absent(kind)))


CASES = _collected()


@pytest.mark.parametrize(("name", "run"), CASES)
def test_ours(name: str, run: Run, our_address: str) -> None:
    if name in FAILS:
        pytest.skip(FAILS[name])
    run(our_address)


@pytest.mark.parametrize(("name", "run"), CASES)
def test_the_real_server_passes_no_more(name: str, run: Run, real_address: str) -> None:
    try:
        run(real_address)
    except AssertionError as error:
        pytest.xfail(f"oxigraph itself fails: {str(error)[:200]}")
    assert name not in FAILS, "the real server passes it, so must ours"
