"""Kernels called by kernels that do not know them: by their addresses, which are in a table.

A kernel that names another one is compiled with it; one that calls twenty is compiled with all twenty. Here the called
ones stay as they are, each in its own file of the cache.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any, Final

from numba import types
from numba.core import cgutils

from oxiseq.engine.kernels.compiling.as_python import AS_PYTHON, intrinsic_or

MOST_ARGUMENTS = 6
"""Of a kernel that is called so."""
_called: Final[list[Callable[..., Any]]] = []
"""Where kernels run as Python: those that have an entry, which is a number from 1 on."""


@cache
def entry_of(kernel: Callable[..., Any], arguments: int) -> int:
    """The address of a kernel that takes so many integers and answers one; it is compiled if need be. It stays as long
    as the process."""
    if AS_PYTHON:
        _called.append(kernel)
        return len(_called)
    dispatcher: Any = kernel
    signature = (types.int64,) * arguments
    dispatcher.compile(signature)
    compiled = dispatcher.overloads[signature]
    if compiled.signature.return_type != types.int64:
        raise TypeError(f"{dispatcher.py_func.__name__} answers {compiled.signature.return_type}, no int64")
    return int(compiled.library.get_pointer_to_function(compiled.fndesc.llvm_func_name))


def caller(arguments: int) -> Any:
    """The function that calls the kernel at an address with so many integers. What that raises it raises, too."""
    signature = types.int64(*[types.int64] * arguments)

    def generate(context: Any, builder: Any, whole: Any, args: Any) -> Any:
        kind = context.call_conv.get_function_type(signature.return_type, signature.args)
        function = builder.inttoptr(args[0], kind.as_pointer())
        status, answer = context.call_conv.call_function(
            builder, function, signature.return_type, signature.args, args[1:]
        )
        with cgutils.if_unlikely(builder, status.is_error):
            context.call_conv.return_status_propagate(builder, status)
        return answer

    def typed(typing_context: Any, *args: Any) -> tuple[Any, Callable[..., Any]]:
        return types.int64(types.int64, *signature.args), generate

    return intrinsic_or(lambda entry, *args: _called[entry - 1](*args))(_ARITIES[arguments](typed))


_ARITIES: dict[int, Callable[[Any], Any]] = {
    1: lambda typed: lambda context, f, a: typed(context, f, a),
    2: lambda typed: lambda context, f, a, b: typed(context, f, a, b),
    3: lambda typed: lambda context, f, a, b, c: typed(context, f, a, b, c),
    4: lambda typed: lambda context, f, a, b, c, d: typed(context, f, a, b, c, d),
    5: lambda typed: lambda context, f, a, b, c, d, e: typed(context, f, a, b, c, d, e),
    6: lambda typed: lambda context, f, a, b, c, d, e, g: typed(context, f, a, b, c, d, e, g),
}
