"""Numba's compiler while it compiles kernels: what it computes again and again is remembered, what nobody reads is left
out. It makes the same code in less time.

In the flow: `parts.KernelCompiler` compiles within `quicker()`. Numba's own functions are back when it ends; compilers
of other threads that meet these meanwhile get what Numba's would answer.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from threading import Lock
from types import BuiltinFunctionType, FunctionType, ModuleType
from typing import Any, Final

from llvmlite import ir as llvm
from numba import types
from numba.core import errors, ir, ir_utils, lowering, ssa, typed_passes
from numba.core.lowering import Lower
from numba.core.postproc import PostProcessor, VariableLifetime
from numba.core.transforms import canonicalize_cfg
from numba.core.typing.context import BaseContext

_Patch = tuple[Any, str, Any]
"""Where, which name, what it is meanwhile."""

# --- types -------------------------------------------------------------------------------------------

_SAME_TYPE: Final = (BuiltinFunctionType, FunctionType, ModuleType, type)
"""Values that have one type as long as they live."""
_call_type: Final = types.BaseFunction.get_call_type
_value_type: Final = BaseContext.resolve_value_type
_signatures: Final[dict[Any, Any]] = {}
_types: Final[dict[Any, Any]] = {}


def _remembered_call(self: Any, context: Any, args: Any, keywords: Any) -> Any:
    """The signature of a built-in function for types of arguments. Numba tries every meaning of `+` or `[]` that it
    knows, dates and sets too, at each place; here it does for each combination of types."""
    if keywords:
        return _call_type(self, context, args, keywords)
    key = id(self), id(context), args
    known = _signatures.get(key)
    if known is None:
        answer: Any
        try:
            answer = _call_type(self, context, args, keywords)
        except errors.TypingError as error:
            answer = error.with_traceback(None)
            answer.__context__ = None
        known = _signatures[key] = answer, self, context  # they are kept, so that their ids are not used again
    if isinstance(known[0], errors.TypingError):
        raise known[0].with_traceback(None)
    return known[0]


def _remembered_type(self: Any, value: Any) -> Any:
    """The type of a function or module."""
    if not isinstance(value, _SAME_TYPE):
        return _value_type(self, value)
    key = id(self), id(value)
    known = _types.get(key)
    if known is None:
        known = _types[key] = _value_type(self, value), self, value
    return known[0]


def _literal(value: Any) -> Any:
    """The literal type of a value, None if there is none: by asking, not by an error."""
    return types.literal(value) if type(value) in types.Literal.ctor_map else None


def _literal_or_omitted(value: Any) -> Any:
    return _literal(value) or types.Omitted(value)


# --- variables ---------------------------------------------------------------------------------------

_WITHOUT: Final = frozenset({ir.Loc, str, int, float, bool, type(None), BuiltinFunctionType, type})


def _variables(self: Any, value: Any) -> list[Any]:
    """The variables of an instruction, in order."""
    found: list[Any] = []
    for part in value.values() if type(value) is dict else value if type(value) in (list, tuple) else (value,):
        kind = type(part)
        if kind is ir.Var:
            found.append(part)
        elif kind in _WITHOUT:
            continue
        elif issubclass(kind, ir.Inst):
            found += part.list_vars()
        elif kind in (list, tuple, dict):
            found += _variables(self, part)
    return found


_rewrite: Final = ssa._run_block_rewrite
_post: Final = PostProcessor.run
_legalize: Final = ir_utils.check_and_legalize_ir


def _rewrite_concerned(blocks: Any, states: Any, handler: Any) -> Any:
    """One variable of many assignments gets a name for each: only in the blocks that mention it. Numba goes through the
    whole function for each such variable."""
    if not isinstance(handler, (ssa._FreshVarHandler, ssa._FixSSAVars)):
        return _rewrite(blocks, states, handler)
    name = states["varname"]
    return {
        label: _rewrite({label: block}, states, handler)[label] if name in _names(block) else block
        for label, block in blocks.items()
    }


def _names(block: Any) -> set[str]:
    """Of the variables in a block; as long as it has the same statements they are remembered."""
    known = vars(block).get("names_in")
    if known is None or known[0] is not block.body:
        known = block.body, {variable.name for statement in block.body for variable in statement.list_vars()}
        block.names_in = known
    return known[1]


def _processed_later(self: Any, emit_dels: bool = False, extend_lifetimes: bool = False) -> None:
    """What lives where is computed when it is asked for: after most passes nobody does."""
    if emit_dels or self.func_ir.is_generator:
        _post(self, emit_dels, extend_lifetimes)
        return
    self.func_ir.blocks = canonicalize_cfg(self.func_ir.blocks)
    self.func_ir.variable_lifetime = VariableLifetime(self.func_ir.blocks)
    self.func_ir.generator_info = None


def _legalized(function: Any, flags: Any) -> None:
    """Where no references are counted no variable need end."""
    if flags.nrt or function.is_generator:
        _legalize(function, flags)
    else:
        PostProcessor(function).run()


# --- code --------------------------------------------------------------------------------------------

_store: Final = Lower.storevar
_size: Final = llvm.Type.get_abi_size
_sizes: Final[dict[Any, int]] = {}


def _without_counts_store(self: Any, value: Any, name: str, argidx: int | None = None) -> None:
    """No look at the variable's old value where no references are counted."""
    if self.context.enable_nrt or argidx is not None or self._disable_sroa_like_opt:
        _store(self, value, name, argidx)
    elif name in self._singly_assigned_vars:
        self._blk_local_varmap[name] = value
    else:
        self.builder.store(value, self.getvar(name))


def _remembered_size(self: Any, target: Any, context: Any = None) -> int:
    """The size of a type: Numba has LLVM read a module with a variable of the type, for each variable."""
    if context is not None:
        return int(_size(self, target, context))
    key = str(self), str(target)
    if key not in _sizes:
        _sizes[key] = _size(self, target)
    return _sizes[key]


# --- all of it ---------------------------------------------------------------------------------------

_PATCHES: Final[list[_Patch]] = [
    (types.BaseFunction, "get_call_type", _remembered_call),
    (BaseContext, "resolve_value_type", _remembered_type),
    (types, "maybe_literal", _literal),
    (lowering, "_lit_or_omitted", _literal_or_omitted),
    (ir.Inst, "_rec_list_vars", _variables),
    (ssa, "_run_block_rewrite", _rewrite_concerned),
    (PostProcessor, "run", _processed_later),
    (typed_passes, "check_and_legalize_ir", _legalized),
    (Lower, "storevar", _without_counts_store),
    (llvm.Type, "get_abi_size", _remembered_size),
]
if hasattr(errors, "HighlightColorScheme"):  # colorama is installed; most errors are caught and never shown
    _PATCHES.append((errors.HighlightColorScheme, "_markup", lambda self, message, *colours: message))


_OWN: Final = [(place, name, vars(place)[name]) for place, name, _ in _PATCHES]
_lock: Final = Lock()
_within = 0


@contextmanager
def quicker() -> Iterator[None]:
    """Numba's compiler as above, meanwhile. Within one another, and in several threads: until the last one ends."""
    _enter(1)
    try:
        yield
    finally:
        _enter(-1)


def _enter(step: int) -> None:
    global _within
    with _lock:
        for place, name, made in _PATCHES if _within == 0 else _OWN if _within + step == 0 else ():
            setattr(place, name, made)
        _within += step
