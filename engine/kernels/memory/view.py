"""A view: an array that a kernel has the address of, as a Numba type of its own.

Numba's arrays would do, but each access then compiles to ten times as much code: seven fields, reference counts,
negative indices. A view is an address, rows and columns. It has `view[i]`, `view[i, j]` and `view.shape`; an index
counts from the start, never from the end; `NUMBA_BOUNDSCHECK` holds.
"""

from __future__ import annotations

from operator import getitem, setitem
from typing import Any, ClassVar, cast

from llvmlite.ir import Constant, Undefined
from numba import types
from numba.core import cgutils
from numba.core.typing import signature  # type: ignore[attr-defined]  # Numba does not list it
from numba.core.typing.templates import AbstractTemplate, AttributeTemplate, infer_global
from numba.extending import infer_getattr, lower_builtin, lower_getattr, models, register_model


class View(types.Type):
    """A C-contiguous array of `dtype` with one or two dimensions, kept alive elsewhere."""

    def __init__(self, dtype: Any, ndim: int) -> None:
        self.dtype = dtype
        self.ndim = ndim
        super().__init__(f"View({dtype}, {ndim})")


@register_model(View)
class _Model(models.StructModel):
    def __init__(self, manager: Any, view: View) -> None:
        fields = [("data", types.CPointer(view.dtype)), ("rows", types.int64), ("columns", types.int64)]
        super().__init__(manager, view, fields)


def _is_place(view: Any, index: Any) -> bool:
    """Whether `view[index]` is one element."""
    if not isinstance(view, View):
        return False
    if view.ndim == 1:
        return isinstance(index, types.Integer)
    return (
        isinstance(index, types.BaseTuple)
        and len(index) == view.ndim
        and all(isinstance(type_, types.Integer) for type_ in tuple(cast(Any, index)))
    )


class _Template(AbstractTemplate):
    metadata: ClassVar = {"target": "cpu"}  # type: ignore[misc]  # so do Numba's own
    """Asked before the thirty that Numba has for any target."""


@infer_global(getitem)
class _GetItem(_Template):
    def generic(self, args: Any, keywords: Any) -> Any:
        view, index = args
        return signature(view.dtype, view, index) if _is_place(view, index) else None


@infer_global(setitem)
class _SetItem(_Template):
    def generic(self, args: Any, keywords: Any) -> Any:
        view, index, value = args
        return signature(types.none, view, index, value) if _is_place(view, index) else None


@infer_getattr
class _Attributes(AttributeTemplate):
    key = View

    def resolve_shape(self, view: View) -> Any:
        return types.UniTuple(types.int64, view.ndim)


def view_at(builder: Any, kind: Any, address: Any, rows: Any, columns: Any) -> Any:
    """Code that makes a view, of the LLVM type `kind`, of memory at an address, for intrinsics. The words stay what
    they are: through memory, as Numba's own structures go, they would be four times as much code."""
    data = builder.inttoptr(address, kind.elements[0])
    made = builder.insert_value(Constant(kind, Undefined), data, 0)
    return builder.insert_value(builder.insert_value(made, rows, 1), columns, 2)


def _place(context: Any, builder: Any, typed: Any, args: Any) -> Any:
    """The pointer to `view[index]`."""
    type_, index_type = typed.args[:2]
    view = args[0]
    if type_.ndim == 1:
        indices = [context.cast(builder, args[1], index_type, types.int64)]
    else:
        given = cgutils.unpack_tuple(builder, args[1], type_.ndim)
        indices = [context.cast(builder, i, t, types.int64) for i, t in zip(given, index_type, strict=True)]
    if context.enable_boundscheck:
        for axis, i in enumerate(indices):
            cgutils.do_boundscheck(context, builder, i, builder.extract_value(view, 1 + axis), axis)
    at = indices[0]
    if type_.ndim == 2:
        at = builder.add(builder.mul(at, builder.extract_value(view, 2)), indices[1])
    return builder.gep(builder.extract_value(view, 0), [at], inbounds=True)


@lower_builtin(getitem, View, types.Any)
def _lower_getitem(context: Any, builder: Any, typed: Any, args: Any) -> Any:
    return context.unpack_value(builder, typed.args[0].dtype, _place(context, builder, typed, args))


@lower_builtin(setitem, View, types.Any, types.Any)
def _lower_setitem(context: Any, builder: Any, typed: Any, args: Any) -> Any:
    dtype = typed.args[0].dtype
    value = context.cast(builder, args[2], typed.args[2], dtype)
    context.pack_value(builder, dtype, value, _place(context, builder, typed, args))
    return context.get_dummy_value()


@lower_getattr(View, "shape")
def _lower_shape(context: Any, builder: Any, type_: Any, value: Any) -> Any:
    lengths = [builder.extract_value(value, 1 + axis) for axis in range(type_.ndim)]
    return context.make_tuple(builder, types.UniTuple(types.int64, type_.ndim), lengths)
