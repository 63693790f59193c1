"""Functions that only kernels call are made ready for Numba when one that is compiled calls them, as `njit` makes
them."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from numba import njit
from numba.core.registry import CPUDispatcher

from oxiseq.engine.kernels.compiling import options
from oxiseq.engine.kernels.compiling.later import Later, LaterKernel
from oxiseq.engine.kernels.compiling.options import inner, kernel

pytestmark = pytest.mark.skipif(options.PLAIN, reason="with another Numba they are as it makes them")


def twice(number: int) -> int:
    """Two of it."""
    return 2 * number


def test_it_is_ready_when_a_kernel_that_calls_it_is_compiled() -> None:
    part: Any = inner(twice)
    assert isinstance(part, Later) and "_later" in vars(part)
    calls = njit(**options._COMMON, **options._WHOLE, _nrt=False)(lambda number: part(number) + 1)
    assert "_later" in vars(part)
    assert calls(4) == 9
    assert "_later" not in vars(part)
    assert len(part.signatures) == 1


def test_all_that_njit_gives_is_there() -> None:
    part, asked = Later(twice, **options._PART, **options._COMMON), njit(**options._PART, **options._COMMON)(twice)
    assert part.py_func is twice
    assert (part.__name__, part.__doc__) == ("twice", "Two of it.")
    assert part.targetoptions == asked.targetoptions
    assert vars(part).keys() == vars(asked).keys()
    with pytest.raises(AttributeError, match="no_such_thing"):
        part.no_such_thing  # noqa: B018


def test_python_does_not_call_it() -> None:
    with pytest.raises(TypeError, match=r"in_python\(twice\)"):
        inner(twice)(3)


def test_a_kernel_is_numbas_own_from_its_first_call_on() -> None:
    made: Any = kernel(twice)
    assert isinstance(made, LaterKernel)
    assert made(2) == 4
    assert type(made) is CPUDispatcher


def test_threads_make_it_once() -> None:
    for _ in range(20):
        made: Any = kernel(twice)
        with ThreadPoolExecutor(8) as threads:
            assert list(threads.map(made, range(8))) == [2 * number for number in range(8)]
        assert len(made.signatures) == 1
