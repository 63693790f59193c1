"""Lines of N-Quads for the tests of the reader: usual ones, odd ones, and lines that chance has changed."""

from __future__ import annotations

import random
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from oxiseq.engine.terms.normal import XSD

SUITE: Final = Path(__file__).parent / "data" / "n-quads"
AT: Final = "<http://www.w3.org/ns/prov#generatedAtTime>"

GOOD: Final = [
    "<http://example.org/a>",
    "<urn:p>",
    "_:b",
    "_:b1",
    '"a"',
    '"a"@en',
    f'"1"^^<{XSD}integer>',
    f'"12.50"^^<{XSD}decimal>',
]
TERMS: Final = [
    "<http://example.org/a>",
    "<urn:p>",
    "<http://example.org:80/%41?b#c>",
    "<urn:é>",
    "<urn:\\u0061>",
    "<http://a b>",
    "<a>",
    "_:b",
    "_:b1",
    "_:0a",
    "_:b.c",
    "_:é",
    "_:-x",
    '""',
    '"a"',
    '"a\\"b\\\\"',
    '"\\u00e9\\n"',
    '"é\t"',
    '"a"@en',
    '"a"@EN-gb',
    '"a"@de-Latn-de',
    '"a"@en--ltr',
    '"a"@a',
    f'"1"^^<{XSD}integer>',
    f'"01"^^<{XSD}integer>',
    f'"12.50"^^<{XSD}decimal>',
    f'"1.5E3"^^<{XSD}double>',
    f'"x"^^<{XSD}double>',
    f'"-0.0"^^<{XSD}float>',
    f'"true"^^<{XSD}boolean>',
    f'"a"^^<{XSD}string>',
    f'"2024-01-01T00:00:00.000Z"^^<{XSD}dateTime>',
    f'"2024-02-30T00:00:00"^^<{XSD}dateTime>',
    '"x"^^<urn:t>',
    '"x"^^<t>',
    f'"300"^^<{XSD}byte>',
    '<<( <urn:a> <urn:b> "c)>>" )>>',
    "<<( _:b <urn:b> <urn:c> )>>",
    '<<( <urn:a> <urn:b> <<( <urn:a> <urn:b> "c"@EN )>> )>>',
]
TIMES: Final = [f'"1970-01-01T00:00:0{n}Z"^^<{XSD}dateTime>' for n in range(4)] + [
    f'"1"^^<{XSD}integer>',
    f'"01"^^<{XSD}integer>',
    f'"5"^^<{XSD}short>',
    f'"1970-01-01T02:00:00.50+02:00"^^<{XSD}dateTime>',
    f'"1970-01-01T00:00:00Z"^^<{XSD}dateTimeStamp>',
    '"soon"',
    f'"1970-02-30T00:00:00Z"^^<{XSD}dateTime>',
    "<urn:soon>",
    "_:b",
    f'"0.5"^^<{XSD}decimal>',
    f'"1970-01-01T00:00:00.0000001Z"^^<{XSD}dateTime>',
]
NAMES: Final = ["<urn:e1>", "<urn:e2>", "<http://example.org/e/3>", "_:e4", "<urn:é5>", "<urn:\\u0065\\u0031>", "_:e.6"]
"""Of events; the last but one is the first, in other words."""


def random_name(chance: random.Random) -> str:
    """The name of an event."""
    return chance.choice(NAMES) if chance.random() < 0.3 else f"<urn:x{chance.randint(0, 99)}>"


def random_line(chance: random.Random, name: str | None = None) -> str:
    """A quad of this event, a time, or something else; without its line break."""
    name = random_name(chance) if name is None else name
    kind = chance.random()
    if kind < 0.25:
        if chance.random() < 0.5:
            return f"{name} {AT} {TIMES[0]} {chance.choice(['', name])} ."
        graph = chance.choice(["", name, chance.choice(NAMES)])
        return f"{name} {chance.choice([AT, AT, AT.replace('#', chr(92) + 'u0023')])} {chance.choice(TIMES)} {graph} ."
    if kind < 0.3:
        return chance.choice(["", " ", "# a comment", "\t# é", "#\r", "# a\r# b", "\r", ".", "# \x00"])
    if kind < 0.65:
        return f"{chance.choice(GOOD[:4])} {chance.choice(GOOD[:2])} {chance.choice(GOOD)} {name} ."
    space = chance.choice([" "] * 8 + ["", "  ", "\t"])
    subject = chance.choice([*TERMS[:13], name])
    predicate = chance.choice([*TERMS[:4], "<urn:p>", AT])
    end = chance.choice(
        [" ."] * 10 + [".", " . ", " .\r", " . # c", "", " . .", " .\t\r", " .\r<urn:s> <urn:p> <urn:o> <urn:e1> ."]
    )
    return space.join([subject, predicate, chance.choice(TERMS), name]) + end


def changed(line: bytes, chance: random.Random) -> bytes:
    """The line with a few bytes put in, taken out, doubled or replaced."""
    content = bytearray(line)
    for _ in range(chance.choice([1, 1, 1, 2, 3])):
        at = chance.randint(0, len(content))
        match chance.randint(0, 4):
            case 0:
                content[at:at] = bytes([chance.choice(b'<>"\\.@^_: #\r\t\x00\x7f\x80\xc3\xff-aE0%')])
            case 1:
                del content[at : at + chance.choice([1, 1, 2, 5])]
            case 2:
                content[at:at] = content[at : at + chance.choice([1, 3, 10])]
            case 3:
                content[at : at + 1] = bytes([chance.randint(0, 255)])
            case _:
                piece = chance.choice(TERMS).encode()
                content[at:at] = piece[: chance.randint(0, len(piece))]
    return bytes(content).replace(b"\n", b"")


def suite_lines() -> list[bytes]:
    """The lines of the W3C's suite, the triples also in a graph."""
    lines = [line for file in sorted(SUITE.glob("*.nq")) for line in file.read_bytes().split(b"\n")]
    return lines + [line.rstrip()[:-1] + b" <urn:e1> ." for line in lines if line.rstrip().endswith(b".")]


def mutated(count: int, seed: int) -> Iterator[bytes]:
    """Lines that are changed by chance, and some that are not."""
    chance = random.Random(seed)
    suite = suite_lines()
    name = random_name(chance)
    for _ in range(count):
        name = random_name(chance) if chance.random() < 0.2 else name
        line = chance.choice(suite) if chance.random() < 0.2 else random_line(chance, name).encode()
        yield line if chance.random() < 0.5 else changed(line, chance)
