"""Functions that only kernels call, made ready for Numba when a kernel that calls them is compiled.

In the flow: `inner` → **`Later`** → Numba, when it first looks at one. Most processes find all kernels on disk, and to
make each of some 700 such functions ready takes a third of a millisecond.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from numba.core.registry import CPUDispatcher


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
        later = vars(self).pop("_later", None)
        if later is None:
            raise AttributeError(name)
        function, pipeline_class, options = later
        super().__init__(function, targetoptions=options, pipeline_class=pipeline_class)
        return getattr(self, name)

    def __call__(self, *args: Any, **named: Any) -> Any:
        """Raises TypeError: no door to Python is made for it."""
        raise TypeError(f"{self.__name__} is called by kernels only; as Python it is in_python({self.__name__})")
