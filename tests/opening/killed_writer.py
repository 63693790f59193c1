"""A program that pushes and reads through a durable store of its own, and is killed.

    python killed_writer.py FOLDER CURSOR NEXT
tells `p N` when push N is durable, and `m ID TIME` for each match behind the cursor.
"""

from __future__ import annotations

import sys
import threading

import oxiseq

S = "http://e/S"
TEXT = f"""PREFIX : <http://e/> SELECT ?a ?b FROM STREAM S <{S}> WHERE {{ SEQ(A; B)
    DEFINE GPM A ON S {{ ?x :p ?a }} DEFINE GPM B ON S {{ ?x :p ?b }} }}"""

MAPPING = {
    "subject": "http://e/x{thing}",
    "predicates": {"http://e/p": "p"},
    "time": {"expression": "?seconds * 1000000 + ?more"},
    "unit": "us",
}


def graph(number: int) -> str:
    """Event `number`: one of three things, in turn."""
    return f"<http://e/x{number % 3}> <http://e/p> {number} ."


def row(number: int) -> dict[str, int]:
    """The same event, as a row for MAPPING."""
    return {"thing": number % 3, "seconds": 1, "more": number, "p": number}


def main() -> None:
    folder, cursor, following = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
    oxiseq.run(TEXT, {S: [(0, graph(0)), (1, graph(3))]})  # what has to be loaded or compiled is, before the clock runs
    with oxiseq.open(folder) as store:
        query = store.register(TEXT, name="pairs")
        query.cursor = cursor
        stream = store.stream(S, mapping=MAPPING)
        print("ready", flush=True)

        def push() -> None:
            number = following
            while True:
                if number % 2:
                    stream.push(row(number), key=f"event {number}")
                else:
                    stream.push(graph(number), 1_000_000 + number, key=f"event {number}")
                print(f"p {number}\n", end="", flush=True)
                number += 1

        threading.Thread(target=push, daemon=True).start()
        for match in query:
            print(f"m {match.id} {match['a'].value} {match['b'].value}\n", end="", flush=True)  # type: ignore[union-attr]


if __name__ == "__main__":
    main()
