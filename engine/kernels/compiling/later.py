"""Functions are made ready for Numba when they are needed: kernels when they are called, what only kernels call when a
kernel that calls it is compiled.

In the flow: `kernel`, `inner` → **`LaterKernel`, `Later`** → Numba, when it first looks at one. Most processes call few
kernels and find these compiled; to make each of some 850 functions ready takes a third of a millisecond and more.
"""

from __future__ import annotations

from collections.abc import Callable
from threading import RLock
from typing import Any, Final

from numba.core.registry import CPUDispatcher

_making: Final = RLock()


class Later(CPUDispatcher):
    """What `njit(**options)(function)` gives, of which all is made when anything of it is first asked for."""

    def __init__(self, function: Callable[..., Any], pipeline_class: type, **options: Any) -> None:
        vars(self)["_later"] = function, pipeline_class, {"nopython": True, "boundscheck": None} | options

    @property
    def function(self) -> Callable[..., Any]:
        """The Python function, of which nothing is made ready."""
        later = vars(self).get("_later")
        return self.py_func if later is None else later[0]

    def __getattr__(self, name: str) -> Any:
        with _making:  # another thread may be making it
            later = vars(self).pop("_later", None)
            if later is not None:
                function, pipeline_class, options = later
                super().__init__(function, targetoptions=options, pipeline_class=pipeline_class)
                self._finish(function)
        return object.__getattribute__(self, name)

    def _finish(self, function: Callable[..., Any]) -> None:
        pass

    def __call__(self, *args: Any, **named: Any) -> Any:
        """Raises TypeError: no door to Python is made for it."""
        raise TypeError(f"{self.__name__} is called by kernels only; as Python it is in_python({self.__name__})")


class LaterKernel(Later):
    """The same for what Python calls, with a cache on disk; from its first use on it is one of Numba's own."""

    def __init__(self, function: Callable[..., Any], cache: Callable[[Any], Any], **options: Any) -> None:
        super().__init__(function, **options)
        vars(self)["_cache_of"] = cache

    def _finish(self, function: Callable[..., Any]) -> None:
        self._cache = self._cache_of(function)
        self.__class__ = CPUDispatcher

    def __call__(self, *args: Any, **named: Any) -> Any:
        """The first call; the next ones are Numba's."""
        return ready(self)(*args, **named)

    def compile(self, signature: Any) -> Any:
        """Compile it, or load it, for these types of arguments."""
        return ready(self).compile(signature)


def ready(kernel: Any) -> Any:
    """A kernel, of which all is made."""
    if isinstance(kernel, LaterKernel):
        with _making:  # by this thread alone
            _ = kernel.py_func
    return kernel
