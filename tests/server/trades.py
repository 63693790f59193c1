"""Events and knowledge for tests of SERVICE <stream>."""

from __future__ import annotations

import json
from urllib.parse import quote

from oxiseq.sparql import Response

EX = "http://example.org/"
TRADES, QUOTES = f"{EX}trades", f"{EX}quotes"
PREFIXES = f"PREFIX : <{EX}> PREFIX prov: <http://www.w3.org/ns/prov#> "
OWNERS = f"""
INSERT DATA {{
  <{EX}acme> <{EX}sector> <{EX}steel> . <{EX}bolt> <{EX}sector> <{EX}tools> . <{EX}idle> <{EX}sector> <{EX}tools> .
  GRAPH <{EX}board> {{ <{EX}acme> <{EX}chair> "Ann" }}
}}"""


def trade(number: int, company: str, price: int, more: str = "") -> str:
    graph = f"<{EX}t{number}>"
    integer = f'"{price}"^^<http://www.w3.org/2001/XMLSchema#integer>'
    time = f'"2024-05-01T10:00:{number:02}Z"^^<http://www.w3.org/2001/XMLSchema#dateTime>'
    return (
        f"{graph} <http://www.w3.org/ns/prov#generatedAtTime> {time} .\n"
        f"_:t <{EX}of> <{EX}{company}> {graph} .\n_:t <{EX}price> {integer} {graph} .\n{more}"
    )


def path(stream: str) -> str:
    return f"/streams/{quote(stream, safe='')}"


def table(response: Response) -> list[dict[str, str]]:
    assert response.status == 200, response.content()
    found = json.loads(response.content())["results"]["bindings"]
    return [{name: value["value"] for name, value in row.items()} for row in found]
