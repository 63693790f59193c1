"""Bytes and numbers at addresses: texts are read, compared and copied eight bytes at a time.

The caller of a kernel keeps the memory at an address alive and says how long it is; nothing is checked here.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, cast

import numpy as np
from llvmlite import ir
from numba import types
from numba.core import cgutils

from oxiseq.engine.kernels.compiling.as_python import intrinsic_or
from oxiseq.engine.kernels.compiling.options import inner
from oxiseq.engine.kernels.memory.lent import copy_bytes, reader, writer


@intrinsic_or(reader("B", int))
def _load_byte(typing_context: Any, address: Any) -> tuple[Any, Callable[..., Any]]:
    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        pointer = builder.inttoptr(args[0], ir.IntType(8).as_pointer())
        return builder.zext(builder.load(pointer), ir.IntType(64))

    return types.int64(types.int64), generate


@intrinsic_or(reader("Q", np.uint64))
def _load_word(typing_context: Any, address: Any) -> tuple[Any, Callable[..., Any]]:
    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        loaded = builder.load(builder.inttoptr(args[0], ir.IntType(64).as_pointer()))
        loaded.align = 1
        return loaded

    return types.uint64(types.int64), generate


@intrinsic_or(writer("B", lambda value: value & 0xFF))
def _store_byte(typing_context: Any, address: Any, value: Any) -> tuple[Any, Callable[..., Any]]:
    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        pointer = builder.inttoptr(args[0], ir.IntType(8).as_pointer())
        builder.store(builder.trunc(args[1], ir.IntType(8)), pointer)
        return context.get_dummy_value()

    return types.none(types.int64, types.int64), generate


@intrinsic_or(copy_bytes)
def _move(typing_context: Any, target: Any, source: Any, count: Any) -> tuple[Any, Callable[..., Any]]:
    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        target, source = (builder.inttoptr(arg, cgutils.voidptr_t) for arg in args[:2])
        cast(Any, cgutils).raw_memmove(builder, target, source, args[2], 1)  # it has no types
        return context.get_dummy_value()

    return types.none(types.int64, types.int64, types.int64), generate


@intrinsic_or(writer("Q", int))
def _store_unaligned(typing_context: Any, address: Any, value: Any) -> tuple[Any, Callable[..., Any]]:
    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        made = builder.store(args[1], builder.inttoptr(args[0], cgutils.intp_t.as_pointer()))
        made.align = 1
        return context.get_dummy_value()

    return types.none(types.int64, types.uint64), generate


@intrinsic_or(lambda address: None)
def _fetch(typing_context: Any, address: Any) -> tuple[Any, Callable[..., Any]]:
    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        flag, pointer = ir.IntType(32), cgutils.voidptr_t
        fetching = ir.FunctionType(ir.VoidType(), [pointer, flag, flag, flag])
        function = cgutils.get_or_insert_function(builder.module, fetching, "llvm.prefetch.p0")
        to_read_or_write, keep, data = flag(0), flag(3), flag(1)
        builder.call(function, [builder.inttoptr(args[0], pointer), to_read_or_write, keep, data])
        return context.get_dummy_value()

    return types.none(types.int64), generate


def _element(bits: int, real: bool) -> Any:
    return {32: ir.FloatType(), 64: ir.DoubleType()}[bits] if real else ir.IntType(bits)


def _setting(bits: int, in_python: Callable[..., None], *, real: bool = False) -> Any:
    """The function that writes an i64 or f64 as the element of an array: of its address, an index, and the number."""
    element, given = _element(bits, real), types.float64 if real else types.int64

    def typed(typing_context: Any, table: Any, index: Any, value: Any) -> tuple[Any, Callable[..., Any]]:
        return types.none(types.int64, types.int64, given), generate

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        base = builder.inttoptr(args[0], element.as_pointer())
        value = args[2] if bits == 64 else builder.trunc(args[2], element)
        builder.store(value, builder.gep(base, [args[1]]))
        return context.get_dummy_value()

    return intrinsic_or(in_python)(typed)


def _elements(bits: int, *, signed: bool = False, real: bool = False) -> Any:
    """The function from the address of an array and an index to an element, as i64 or f64."""
    element = _element(bits, real)

    def typed(typing_context: Any, table: Any, index: Any) -> tuple[Any, Callable[..., Any]]:
        return (types.float64 if real else types.int64)(types.int64, types.int64), generate

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        base = builder.inttoptr(args[0], element.as_pointer())
        loaded = builder.load(builder.gep(base, [args[1]]))
        if bits == 64:
            return loaded
        if real:
            return builder.fpext(loaded, ir.DoubleType())
        return (builder.sext if signed else builder.zext)(loaded, ir.IntType(64))

    format_ = ("f" if bits == 32 else "d") if real else {8: "B", 16: "H", 32: "I", 64: "Q"}[bits]
    in_python = reader(format_.lower() if signed else format_, np.float64 if real else int)
    return intrinsic_or(in_python)(typed)


byte: Callable[[int], int] = _load_byte
"""The byte at an address, 0 to 255, as i64."""
word: Callable[[int], int] = _load_word
"""The eight bytes at an address as u64, first byte lowest; the address need not be aligned."""
set_byte: Callable[[int, int], None] = _store_byte
"""Write a byte."""
move: Callable[[int, int, int], None] = _move
"""Copy `count` bytes from `source` to `target`, which may overlap: move(target, source, count)."""
get: Callable[[int, int], int] = _elements(64, signed=True)
"""The i64 at `index` of the table at an address: get(table, index)."""
put: Callable[[int, int, int], None] = _setting(64, writer("q", int))
"""Write the i64 at `index` of the table at an address: put(table, index, value)."""
half: Callable[[int, int], int] = _elements(32)
"""The u32 at `index` of the array at an address, as i64."""
signed_byte: Callable[[int, int], int] = _elements(8, signed=True)
"""The i8 at `index` of the array at an address, as i64; those below likewise: i16, u16, i32."""
signed_quarter: Callable[[int, int], int] = _elements(16, signed=True)
quarter: Callable[[int, int], int] = _elements(16)
signed_half: Callable[[int, int], int] = _elements(32, signed=True)
number: Callable[[int, int], float] = _elements(64, real=True)
"""The f64 at `index` of the array at an address."""
short_number: Callable[[int, int], float] = _elements(32, real=True)
"""The f32 at `index` of the array at an address, as f64."""
put_half: Callable[[int, int, int], None] = _setting(32, writer("I", lambda value: value & 0xFFFFFFFF))
"""Write the u32 at `index` of the array at an address."""
set_word: Callable[[int, np.uint64], None] = _store_unaligned
"""Write eight bytes at any address."""
put_number: Callable[[int, int, float], None] = _setting(64, writer("d", float), real=True)
"""Write the f64 at `index` of the array at an address."""

fetch: Callable[[int], None] = _fetch
"""Have the processor load the memory at an address into its cache; it continues meanwhile, and any address will do."""


@inner
def same(a: int, b: int, count: int) -> bool:
    """Whether `count` bytes at two addresses agree."""
    end = a + count
    while a + 8 <= end:
        if word(a) != word(b):
            return False
        a += 8
        b += 8
    while a < end:
        if byte(a) != byte(b):
            return False
        a += 1
        b += 1
    return True
