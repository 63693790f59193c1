"""`python compiled_after_warmup.py FOLDER`: warm up, then register a query of each language at a live service and push
to it; prints the kernels (with types) that were compiled for that."""

from __future__ import annotations

import gc
import sys
import time
from pathlib import Path

from numba.core.dispatcher import Dispatcher

from oxiseq.api.store import Store
from oxiseq.grammar.languages import STANDING
from oxiseq.live import LiveService, LiveSettings
from oxiseq.live.intake import read_batch
from oxiseq.warmup.first_run import warm_up

S = "urn:w:S"
QUERIES = {
    "spaseq": f"PREFIX : <urn:w:> SELECT ?s ?a WITHIN 1 HOUR SLIDING FROM STREAM S <{S}> WHERE {{ SEQ(A; N!; B+) "
    "DEFINE GPM A ON S { ?s :v ?a FILTER(?a > 1) } DEFINE GPM B ON S { ?s :v ?b FILTER(?b > ?a) } "
    "DEFINE GPM N ON S { ?s :w ?n } }",
    "ceql": "VOCAB <urn:w:> SELECT * FROM S WHERE A AS x; B+ AS y FILTER x[v > 1] WITHIN 9 SECONDS",
    "epsparql": f"SELECT * FROM STREAM <{S}> {{ {{ ?s <urn:w:v> ?a }} SEQ {{ ?s <urn:w:v> ?b }} }}",
    "rspql": f"PREFIX : <urn:w:> SELECT ?s ?a FROM STREAM <{S}> [RANGE 4 SECONDS SLIDE 2 SECONDS] "
    "WHERE { ?s :v ?a FILTER(?a > 1) }",
    "rsepql": f"PREFIX : <urn:w:> SELECT * FROM NAMED <{S}> WIN [RANGE 10 SECONDS SLIDE 1 SECONDS] AS :w "
    "EVENT ON :w { ?s :v ?a } AS A EVENT ON :w { ?s :v ?b } AS B WHERE { MATCH { A SEQ B } }",
    STANDING: "SELECT ?s { ?s ?p ?o }",
}


def known() -> set[str]:
    """Kernels, with the types that they are compiled for."""
    found = [each for each in gc.get_objects() if isinstance(each, Dispatcher)]
    return {f"{each.py_func.__module__}.{each.__name__} {types}" for each in found for types in each.stats.cache_misses}


def event(i: int) -> str:
    value = f'"{i}"^^<http://www.w3.org/2001/XMLSchema#integer>'
    time = f'"{i}"^^<http://www.w3.org/2001/XMLSchema#integer>'
    kind = f"<urn:w:{i}> <http://www.w3.org/1999/02/22-rdf-syntax-ns#type> <urn:w:{'AB'[i % 2]}> <urn:e:{i}> .\n"
    return (
        f"{kind}<urn:w:{i}> <urn:w:v> {value} <urn:e:{i}> .\n"
        f"<urn:e:{i}> <http://www.w3.org/ns/prov#generatedAtTime> {time} .\n"
    )


def main(folder: Path) -> None:
    """See above."""
    warm_up()
    before = known()
    with LiveService(Store(), folder, LiveSettings(idle=None), "normal") as service:
        for language, text in QUERIES.items():
            begun = time.monotonic()
            service.queries.register(language, text, language)
            print(f"# {language} {time.monotonic() - begun:.2f}", flush=True)
        body = "".join(map(event, range(12))).encode()
        service.streams.push(S, lambda: read_batch(body, "nquads"), body)
        service.streams.advance(S, 60_000_000)
        service.catch_up(60)
        for status in service.queries.all():
            print(f"# {status.record.name} {status.doing} {status.record.next}")
    for each in sorted(known() - before):
        print(each)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
