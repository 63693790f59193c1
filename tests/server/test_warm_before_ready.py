"""What a registration needs is compiled before a server says that it is ready."""

from __future__ import annotations

import subprocess
import sys
import threading
from pathlib import Path

import pytest

from oxiseq.api.store import Store
from oxiseq.live import LiveService, LiveSettings
from oxiseq.live.api import LiveRoutes
from oxiseq.server import ServerSettings, create_app
from oxiseq.sparql import SparqlEndpoint
from oxiseq.warmup import first_run

PROGRAM = Path(__file__).parents[1] / "live" / "compiled_after_warmup.py"


@pytest.mark.parametrize("fails", [False, True])
def test_it_is_not_ready_before(tmp_path: Path, *, fails: bool) -> None:
    done = threading.Event()

    def compiles() -> None:
        assert done.wait(30)
        if fails:
            raise RuntimeError("no compiler")

    store = Store()
    with LiveService(store, tmp_path, LiveSettings(idle=None), "normal") as service:
        endpoint = SparqlEndpoint(store)
        client = create_app(endpoint, ServerSettings(), LiveRoutes(service, endpoint.evaluations)).test_client()
        service.prepare(compiles)
        told = client.get("/ready")
        assert told.status_code == 503 and "compiled" in told.get_json()["reason"] and not service.ready
        assert client.get("/health").status_code == 200
        done.set()
        while not service.ready:
            assert service.worker.error is None
        assert client.get("/ready").status_code == 200
        assert not service.threads.troubles


@pytest.mark.slow
def test_a_registration_of_each_language_compiles_nothing_afterwards(tmp_path: Path) -> None:
    run = subprocess.run(
        [sys.executable, str(PROGRAM), str(tmp_path)], capture_output=True, text=True, timeout=300, check=True
    )
    lines = run.stdout.splitlines()
    assert [line for line in lines if not line.startswith("#")] == []
    assert sum("running" in line for line in lines) == 6


def test_a_server_that_is_warm_need_not_compile(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "cache" / "oxiseq-warm"
    module = tmp_path / "sources" / "kernels" / "one.py"
    module.parent.mkdir(parents=True)
    module.write_text("ONE = 1")
    monkeypatch.setattr(first_run, "_warm", lambda: file)
    monkeypatch.setattr(first_run, "_SOURCES", (tmp_path / "sources",))
    monkeypatch.setattr(first_run.archive, "shipped", lambda: None)
    assert not first_run.is_warm()
    first_run.note_warm()
    assert first_run.is_warm()
    module.write_text("ONE = 2")  # what is compiled is of another source
    assert not first_run.is_warm()
    first_run.note_warm()
    monkeypatch.setattr(first_run.numba, "__version__", "0.0")  # another one compiles again
    assert not first_run.is_warm()


def test_the_stamp_is_of_all_kernels() -> None:
    """Nothing else has to be on disk for it: in a new folder a server would be compiling at each start."""
    (engine,) = first_run._SOURCES
    assert (engine / "kernels" / "sequence" / "advance.py").is_file()
    assert first_run._of_kernels() == first_run._of_kernels()
