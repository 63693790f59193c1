"""The types of each kernel's arguments by module and name: one signature each, as Numba finds it at the first call.

In the flow: what compiles kernels ahead of their first call (`oxiseq warmup`, the archive in the wheel) asks for all of
them → **a table** → `KernelCache`.
"""

from __future__ import annotations

import importlib
from collections.abc import Iterator, Mapping
from typing import Any, Final

from numba import from_dtype, types

from oxiseq.engine.kernels.cea.records import LIVE
from oxiseq.engine.kernels.compiling.as_python import AS_PYTHON
from oxiseq.engine.kernels.memory.slots import SLOT
from oxiseq.engine.kernels.sequence.records import BUCKET, GROUP

SIGNATURES: Final[Mapping[str, Mapping[str, str]]] = {
    "cea.advance": {"advance": "i8, i8, i8"},
    "cea.clocks": {
        "attribute_clocks": "i8, f8[::1], i8[::1], i8[::1]",
        "enter_few": "i8, i8, i8[::1], i8[::1], i8, i8, i8",
        "place_few": "i8, i8[::1], i8",
    },
    "cea.collect": {
        "collect": "i8, i8, i4[::1], i8[::1], i8",
        "pack": "i8, LIVE[::1]",
        "renumber": "i8, i4[::1]",
    },
    "cea.facts": {
        "last_untupled": "i8[::1], i8, u4[::1], u4[::1], u4[::1]",
        "leaf_facts": "i8[:, ::1], i8[::1], i8[::1], i8[::1], i4[::1], i8[::1], u1[::1], f8[::1], i8[::1], u1[::1], "
        "u8[:, ::1], u8[:, ::1]",
        "pivot": "i8[::1], u4[::1], u4[::1], u4[::1], i8[::1], i8[::1], i8[:, ::1], i8[::1], i8[::1]",
        "symbols": "u8[:, ::1], i8[::1], i8, u8[:, ::1], u1[::1], i8[::1], i8[::1], u8[:, ::1], u8[:, ::1]",
    },
    "cea.held": {
        "append": "i8, u8[:, ::1], i8[::1], i8, i8",
        "resolve": "i8, i8, i8, i8[::1], i8",
    },
    "cea.rows": {
        "find_cells": "i8, i8, i8, SLOT[::1], u4[:, ::1], i8[::1], u4[:, ::1], i8[:, ::1], i8",
        "mark_rows": "i8, i8, i8, i8, i8, b1",
    },
    "cea.symbols": {
        "enter_steps": "i8, i8, i8",
        "enter_symbols": "i8",
        "number_events": "i8, i8, i4[::1], i4[::1], i8[::1]",
        "unknown_state": "i8, i8, i8",
    },
    "events.arrow": {"copy_times": "i8, i8, i8[::1]"},
    "events.assembly": {"tidy": "i8, i8"},
    "events.messages": {
        "label": "i8, i8, i8, i8",
        "read": "i8, i8",
    },
    "events.nquads": {"read": "i8, i8"},
    "events.triples": {
        "keep_triples": "u1[::1], i8[::1], u4[::1], u4[::1], u4[::1], i8[::1], u4[:, ::1]",
        "read_triples": "i8, i8, i8, u4[:, ::1], i8[:, ::1], i8",
    },
    "expressions.machine": {"truth_column": "i4[::1], i8, i8, i8[:, ::1], u1[::1], f8[::1], i8[::1], u1[::1]"},
    "flow.arranging": {
        "arrange": "i8, i8",
        "fill_by_key": "i8",
        "fill_by_row": "i8",
        "forget": "i8, i8",
    },
    "flow.buffers": {
        "tell": "i8[::1], i8[::1], u4[:, ::1], i8, i8, i8[::1], u4[:, ::1]",
        "told_rows": "i8[::1], i8",
        "with_rows": "i8[::1], i8[::1]",
    },
    "flow.choosing": {
        "choose": "i8, i8, i8, i8",
        "drop_used": "i8, i8[::1]",
        "fill_used": "i8[::1], i8[::1]",
    },
    "flow.computing": {
        "extend": "i8, i8, i8",
        "fill_slots": "i8",
        "learn": "i8, i8, i8, i8",
        "sift": "i8, i8, i8, i8",
    },
    "flow.conjoining": {"conjoin": "i8, i8, i8, i8"},
    "flow.copying": {
        "merge": "i8, i8",
        "negate": "i8, i8",
        "pick": "i8, i8, i8",
    },
    "flow.counting": {
        "consolidate": "i8, i8, i8",
        "distinct": "i8, i8, i8",
        "fill_found": "i8, i8, i8",
        "fill_slots": "i8",
        "forget": "i8, i8",
    },
    "flow.driving": {"drive": "i8"},
    "flow.facts": {
        "make_facts": "i8, i8, i8, i8",
        "read_rows": "i8, i8[::1], u4[:, ::1], i8[::1]",
        "write_facts": "i8, i8",
    },
    "flow.following": {
        "follow": "i8, i8, i8, i8, i8, i8",
    },
    "flow.grouping": {"group": "i8, i8, i8, i8"},
    "flow.groups": {"fill_slots": "i8"},
    "flow.happening": {
        "accept": "i8, i8, i8",
        "cover": "i8, i8, i8",
        "lasting": "i8, i8, i8",
        "sometime": "i8, i8",
    },
    "flow.joining": {
        "between": "i8, i8, i8, i8",
        "join": "i8, i8, i8, i8, i8, i8",
        "look": "i8, i8, i8, i8",
    },
    "flow.path_storing": {
        "fill_pair_slots": "i8",
        "fill_row_slots": "i8",
    },
    "flow.paths": {"reach": "i8, i8, i8"},
    "flow.ranking": {
        "fill_slots": "i8",
        "rank": "i8, i8, i8, i8, i8",
    },
    "flow.results": {
        "integer_terms": "i8, i8, i8[::1], u4[::1], i8",
        "large_terms": "i8, i8, i8[::1], f8[::1], u1[::1], u4[::1], i8",
        "number_terms": "i8, i8, i8[::1], f8[::1], u8[::1], u8[::1], u4[::1], i8",
    },
    "flow.stepping": {"step_by_tick": "i8"},
    "flow.timelines": {
        "fill_group_slots": "i8",
        "fill_row_slots": "i8",
        "keep_rows": "i8, i8, i8",
    },
    "matches.choice.choose": {"choose": "i8"},
    "matches.composed": {
        "begin": "i8, i8[::1]",
        "compose": "i8, i8, i8, i8, i8",
        "settle": "i8, i8, u1[::1], i8",
        "wipe": "i8",
    },
    "matches.frozen.best": {"find_best": "i8"},
    "matches.frozen.freeze": {
        "count_above": "i8",
        "count_ways": "i8",
        "freeze": "i8",
    },
    "matches.nearest": {"nearest": "u8[:, ::1], i8[::1], i8[::1], i8, i8, u8[::1], f8[::1]"},
    "matches.numbering": {
        "enter_rows": "i8[::1], SLOT[::1], u4[:, ::1]",
        "find_rows": "u4[:, ::1], SLOT[::1], u4[:, ::1], i8[::1]",
    },
    "matches.ordering": {"arrange": "i8[::1], i8[::1], i8[::1], i8[::1]"},
    "matches.weighing": {"weigh": "i8, i8"},
    "matching.match": {
        "fill_objects": "i8[:, ::1], i8[::1]",
        "match_events": "i8, i8, i8, b1, i8[::1], u4[::1], u4[::1], u4[::1]",
    },
    "memory.nesting": {
        "json_depth": "const u1[::1], i8[::1]",
        "xml_depth": "const u1[::1], i8[::1]",
    },
    "output.answers": {"write_answers": "i8, i8, i8, i8[::1], i8[::1], i8[::1], u4[:, ::1], i4[::1], i8[::1]"},
    "output.paths": {
        "choose": "i8[:, ::1], i8[::1], i8[::1], i8[::1], i8[:, ::1], i8[::1]",
        "count_products": "i8[:, ::1], i8[::1], i8[::1]",
        "resolve": "u4[:, ::1], b1[::1], i8[::1], u4[:, ::1]",
        "visible": "i4[::1], i8[::1], i4[::1], b1[:, ::1], b1[::1]",
    },
    "output.suppressing": {"suppress": "i8[::1], i8[::1], i8[::1], i8, i8, i8[::1], i8[::1], i8[::1], i8[:, ::1]"},
    "output.texts": {
        "json_rows": "i8, u4[:, ::1], u1[::1], i8[::1], i8",
        "plain_texts": "i8, i8[::1], i8[::1], i8",
    },
    "sequence.advance": {
        "advance": "i8, i8, i8, i8, i8, i8",
        "measure": "i8, i8, i8, i8",
    },
    "sequence.collect": {"collect": "i8, i8, i4[::1], i8[::1]"},
    "sequence.entries": {"chain_entries": "i8, i8"},
    "sequence.extraction": {
        "adopt_groups": "i8, i8, i8, i8, i8",
        "count_records": "i8, i8, i4[::1], i8[::1]",
        "drop_queries": "i8, i8, u1[::1]",
        "keep_begun": "i8, i8, u1[::1], i8, i4[::1], i8",
        "nodes_below": "i8, i4[::1], i4[::1], i4[::1]",
    },
    "sequence.hashing": {
        "hash_again": "i8, i8",
        "rehash_buckets": "SLOT[::1], BUCKET[::1], i8",
        "rehash_groups": "SLOT[::1], GROUP[::1], i8",
    },
    "sequence.indexes": {"index_groups": "i8, i8, i8", "remove_dead": "i8, i8"},
    "sequence.joining": {"remember": "i8, i8, i8[:, ::1], i8, i8"},
    "sequence.leads": {"rebuild_leads": "i8, i8, i8[:, ::1], i8, i8"},
    "sequence.letter_rows": {"write_rows": "i8, i8, i8, i8[:, ::1], i8, i8, i8"},
    "sequence.partitions": {
        "sweep": "i8, i8",
        "used_partitions": "i8, i8, u1[::1]",
    },
    "sequence.splitting": {
        "number_instants": "i8[::1], i8[::1], i8[::1]",
        "own_events": "i8[:, ::1], i8[:, ::1], SLOT[::1], u4[:, ::1], u4[:, ::1], i8[:, ::1]",
        "place_owned": "i8[:, ::1], i8[::1], i8[::1], i8[::1], i8[::1]",
    },
    "terms.content": {"sort_rows": "i8, i8[::1], u4[:, ::1], i8[::1], i8[::1]"},
    "terms.order": {
        "hard_terms": "i8, i8, u4[::1], u4[::1]",
        "rank_sorted": "i8, i8, u4[::1], i8[::1], b1",
        "sort_terms": "i8, i8, u4[::1], u4[::1], b1",
    },
    "terms.table": {
        "add_text": "i8, i8, i8, i8, f8, i8, i8",
        "alias_text": "i8, i8, i8, i8",
        "find_text": "i8, i8, i8",
        "make_blank": "i8",
        "make_blanks": "i8, u4[::1]",
        "mark": "u1[::1], i8[::1]",
        "rebuild": "i8",
        "sweep": "i8, u1[::1]",
    },
    "terms.texts": {
        "intern_text": "i8, i8, i8, i8",
        "intern_texts": "i8, i8, i8[::1], i8, u4[::1], i8",
        "measure_texts": "i8, i8[::1], i8[::1]",
        "write_texts": "i8, i8[::1], i8[::1], i8",
    },
    "flow.windowing": {
        "advance": "i8, i8, i8, i8[::1], u4[::1], u4[::1], u4[::1], i8[::1], i4[::1], i8[::1], i8[:, ::1]",
        "enter": "i8, i8, i8[:, ::1], u4[:, ::1]",
    },
}
"""As Numba writes types, with the records below: i8 is a number, or the address of a group of arrays. `const`: bytes
that nobody may write."""
_RECORDS: Final = {"BUCKET": BUCKET, "GROUP": GROUP, "LIVE": LIVE, "SLOT": SLOT}


def names() -> list[str]:
    """Those of all kernels, module and function; as Python none is compiled."""
    return [] if AS_PYTHON else [f"{module}.{name}" for module, kernels in SIGNATURES.items() for name in kernels]


def kernel_of(name: str) -> tuple[Any, tuple[types.Type, ...]]:
    """A kernel and the types of its arguments. Its module is imported."""
    module, _, function = name.rpartition(".")
    kernel = getattr(importlib.import_module(f"{__package__}.{module}"), function)
    return kernel, tuple(_types(SIGNATURES[module][function]))


def signature_of(kernel: Any) -> tuple[types.Type, ...]:
    """The types of a kernel's arguments."""
    return kernel_of(f"{kernel.__module__}.{kernel.__name__}".removeprefix(f"{__package__}."))[1]


def _types(text: str) -> Iterator[types.Type]:
    """Of a signature: `i8, u4[:, ::1], SLOT[::1]`."""
    for part in text.replace("[:, ::1]", "[2]").replace("[::1]", "[1]").split(", "):
        name, _, dimensions = part.removeprefix("const ").partition("[")
        kind = from_dtype(_RECORDS[name]) if name in _RECORDS else getattr(types, name)
        readonly = part.startswith("const ")
        yield types.Array(kind, int(dimensions[0]), "C", readonly) if dimensions else kind
