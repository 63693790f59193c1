"""Bytes at addresses: texts are read, compared and copied eight bytes at a time.

Whoever calls a kernel with an address keeps the memory alive and says how long it is; nothing is checked here.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, cast

from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic

from oxiseq.engine.kernels.options import inner


@intrinsic
def _load_byte(typing_context: Any, address: Any) -> tuple[Any, Callable[..., Any]]:
    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        pointer = builder.inttoptr(args[0], ir.IntType(8).as_pointer())
        return builder.zext(builder.load(pointer), ir.IntType(64))

    return types.int64(types.int64), generate


@intrinsic
def _load_word(typing_context: Any, address: Any) -> tuple[Any, Callable[..., Any]]:
    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        loaded = builder.load(builder.inttoptr(args[0], ir.IntType(64).as_pointer()))
        loaded.align = 1
        return loaded

    return types.uint64(types.int64), generate


@intrinsic
def _store_byte(typing_context: Any, address: Any, value: Any) -> tuple[Any, Callable[..., Any]]:
    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        pointer = builder.inttoptr(args[0], ir.IntType(8).as_pointer())
        builder.store(builder.trunc(args[1], ir.IntType(8)), pointer)
        return context.get_dummy_value()

    return types.none(types.int64, types.int64), generate


@intrinsic
def _move(typing_context: Any, target: Any, source: Any, count: Any) -> tuple[Any, Callable[..., Any]]:
    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        target, source = (builder.inttoptr(arg, cgutils.voidptr_t) for arg in args[:2])
        cast(Any, cgutils).raw_memmove(builder, target, source, args[2], 1)  # it has no types
        return context.get_dummy_value()

    return types.none(types.int64, types.int64, types.int64), generate


byte: Callable[[int], int] = _load_byte
"""The byte at an address, 0 to 255, as i64."""
word: Callable[[int], int] = _load_word
"""The eight bytes at an address as u64, first byte lowest; the address need not be aligned."""
set_byte: Callable[[int, int], None] = _store_byte
"""Write a byte."""
move: Callable[[int, int, int], None] = _move
"""Copy `count` bytes from `source` to `target`, which may overlap: move(target, source, count)."""


@inner
def same(a: int, b: int, count: int) -> bool:
    """Whether `count` bytes at two addresses agree."""
    while count >= 8:
        if word(a) != word(b):
            return False
        a += 8
        b += 8
        count -= 8
    while count > 0:
        if byte(a) != byte(b):
            return False
        a += 1
        b += 1
        count -= 1
    return True
