"""How Numba compiles kernels: inner functions become parts, and what is known is not computed again.

In the flow: `options` has Numba compile kernels with `KernelCompiler`, inner functions with `PartCompiler`.
Three things that Numba does for each function took most of the time of the first run:

1. It links a function with all that it calls, optimises the whole and makes it executable, and does that again
   in each of the callers. A part is only lowered; the kernel that holds it links all parts at once.
2. It computes much again and again: quicker.py.
3. It looks for closures, array expressions and the like. There are none, so those passes are left out.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

import llvmlite.binding as llvm
from numba.core.codegen import JITCodeLibrary
from numba.core.compiler import CompilerBase, DefaultPassBuilder

from oxiseq.engine.kernels.compiling.quicker import quicker
from oxiseq.grammar.garbage import uncollected

_NOT_NEEDED: Final = frozenset(
    {
        "annotate_types",  # for inspect_types()
        "with_lifting",
        "inline_closure_likes",
        "rewrite_dynamic_raises",
        "make_function_op_code_to_jit_function",
        "find_literally",
        "literal_unroll",
        "LiteralPropagation",
        "inline_inlinables",
        "inline_overloads",
        "nopython_rewrites",  # array expressions
        "dump_parfor_diagnostics",
    }
)

# --- code --------------------------------------------------------------------------------------------


class _Unoptimised(JITCodeLibrary):
    """Code that is not optimised function by function before the whole is."""

    def add_llvm_module(self, module: Any) -> None:
        self._final_module.link_in(module)


class _Part(_Unoptimised):
    """The code of one function, not optimised; it cannot be called but from other code."""

    @property
    def codegen(self) -> Any:
        return _NO_ENGINE

    def finalize(self) -> None:
        self._raise_if_finalized()
        self._finalized = True

    def get_pointer_to_function(self, name: str) -> int:
        return 0

    def _get_module_for_linking(self) -> Any:
        """This part's module with those of all that it calls, for linking into a kernel."""
        if self._shared_module is None:
            module = self._final_module.clone()
            for library in _callees(self, set()):
                callee = library._final_module if isinstance(library, _Part) else library._get_module_for_linking()
                module.link_in(callee, preserve=True)
            for function in module.functions:
                if not function.is_declaration and function.linkage == llvm.Linkage.external:
                    function.linkage = llvm.Linkage.linkonce_odr
            self._shared_module = module
        return self._shared_module


class _Kernel(_Unoptimised):
    """The code of a function with copies of its parts that are its own: LLVM inlines what has one caller.

    Private, not internal: LLVM changes how such a copy is called, and the loader finds internal ones by name too when
    other code brings a function of the same name.
    """

    def _optimize_final_module(self) -> None:
        for function in self._final_module.functions:
            if not function.is_declaration and function.linkage == llvm.Linkage.linkonce_odr:
                function.linkage = llvm.Linkage.private
        # Numba's way, a cheap round before and level 3, made nothing quicker than one round of level 2
        passes, builder = self._codegen._module_pass_manager(opt=2)
        passes.run(self._final_module, builder)


class _NoEngine:
    """What a part does with the process: nothing, it is not loaded."""

    def set_env(self, name: str, environment: object) -> None:
        pass


_NO_ENGINE = _NoEngine()


def _callees(library: Any, seen: set[Any]) -> Iterator[Any]:
    """The libraries that a part calls, directly or through other parts, each once."""
    for callee in library._linking_libraries:
        if callee not in seen:
            seen.add(callee)
            yield callee
            if isinstance(callee, _Part):
                yield from _callees(callee, seen)


# --- compilers ---------------------------------------------------------------------------------------


class KernelCompiler(CompilerBase):
    """Numba's compiler without what our functions never need."""

    library = _Kernel

    def __init__(self, typing_context: Any, *arguments: Any) -> None:
        super().__init__(typing_context, *arguments)
        self.state.library = self.library(self.state.targetctx.codegen(), "kernel")
        self.state.library.enable_object_caching()

    def _compile_core(self) -> Any:
        with uncollected(), quicker():
            return super()._compile_core()

    def define_pipelines(self) -> list[Any]:
        """Numba's passes, some left out."""
        passes = DefaultPassBuilder.define_nopython_pipeline(self.state)
        passes.passes = [entry for entry in passes.passes if entry[0].name() not in _NOT_NEEDED]
        passes.finalize()
        return [passes]


class PartCompiler(KernelCompiler):
    """The compiler of inner functions."""

    library = _Part
