"""Events with large literals that never come again, by many connections: memory stays what it was."""

from __future__ import annotations

import os
import subprocess
import sys
from typing import Final

import numpy as np
import pytest
from pyoxigraph import Literal

from oxiseq.engine.terms.dictionary import COLLECT_TEXT, TermDictionary
from oxiseq.live.intake import MOST, SharedTerms

PUSHES: Final = """
import threading
from oxiseq.server.serving import share_arenas
from oxiseq.live.intake import read_batch

XSD = "http://www.w3.org/2001/XMLSchema#"

def body(first, count):
    lines = []
    for i in range(first, first + count):
        text = f"{i:08}" * 250  # 2 KB, unique
        lines.append(f'<http://e/s> <http://e/p> "{text}" <http://e/e{i}> .\\n<http://e/e{i}> '
                     f'<http://www.w3.org/ns/prov#generatedAtTime> "2024-05-01T10:00:00Z"^^<{XSD}dateTime> .\\n')
    return "".join(lines).encode()

def resident():
    return next(int(line.split()[1]) // 1024 for line in open("/proc/self/status") if line.startswith("VmRSS"))

def push(thread):
    for turn in range(8):
        read_batch(body(1000 * (8 * thread + turn), 1000), "nquads")
    read.release()
    done.wait()  # the thread stays, as a server's do

share_arenas()
read_batch(body(0, 1000), "nquads")
before = resident()
done, read = threading.Event(), threading.Semaphore(0)
threads = [threading.Thread(target=push, args=(n,), daemon=True) for n in range(10)]
for thread in threads:
    thread.start()
    read.acquire()
print(resident() - before)
"""


@pytest.mark.slow
def test_threads_keep_no_dictionaries() -> None:
    """160 MB of literals by ten threads, one after the other."""
    found = subprocess.run(
        [sys.executable, "-c", PUSHES], capture_output=True, text=True, timeout=120, check=True, env=os.environ
    )
    assert int(found.stdout) < 80, "MB more than before"


def test_what_readings_share_is_bounded_by_bytes() -> None:
    shared = SharedTerms()
    for number in range(50):
        with shared.borrowed() as terms:
            terms.intern(Literal(f"{number:06}" * 200_000))  # 1.2 MB
            with shared.borrowed() as other:  # beside it
                assert other is not terms
        assert shared.nbytes <= MOST


def test_a_collection_is_due_for_long_terms_too() -> None:
    terms = TermDictionary()
    held = np.array([terms.intern(Literal("held"))])
    terms.hold(held)
    for number in range(3 * COLLECT_TEXT // 100_000):
        terms.intern(Literal(f"{number:05}" * 20_000))
        terms.collect_if_due()
        assert terms.nbytes < 4 * COLLECT_TEXT
    assert terms.term(int(held[0])) == Literal("held")
