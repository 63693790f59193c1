"""Posts followed by a like of a popular user: MATCH, WINDOW and GRAPH in one WHERE."""

from __future__ import annotations

from pathlib import Path

from make_events import kb, streams

import oxiseq

HERE = Path(__file__).parent


def main() -> list[tuple[int, int, str, str, int]]:
    """(time of the post, of the like, post, name of the user, followers won in the hour) of each answer."""
    text = (HERE / "query.rsepql").read_text(encoding="utf-8")
    found = []
    for answer in oxiseq.run(text, streams=streams(), kb=kb(), language="rsepql"):
        row = {name: term.value for name, term in answer.items()}
        post = row["post"].rsplit("#", 1)[-1]
        found.append((answer.start_us, answer.end_us, post, row["name"], int(row["fans"])))
    return found


if __name__ == "__main__":
    for start, end, post, name, fans in main():
        minutes = (end - start) // 60_000_000
        print(f"{post:>8} · liked {minutes:>2} minutes later by {name}, who won {fans} followers in that hour")
