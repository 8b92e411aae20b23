"""What counts as agreement with a reference: tolerances, special values, shapes."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import pytest

from tile2cu_runtime.comparison import Comparison, compare
from tile2cu_runtime.errors import ArgumentError
from tile2cu_runtime.spec import read_manifest

ADD = Path(__file__).resolve().parents[3] / "emitted/cuda/sm_80/vector_add.json"


def compared(result: Any, expected: Any, dtype: Any = np.float32, **tolerance: float) -> Comparison:
    return call(lambda a, b: np.array(expected), np.array(result, dtype), **tolerance)


def call(reference: Callable[..., Any], result: np.ndarray, **tolerance: float) -> Comparison:
    manifest = read_manifest(ADD)
    before = {name: np.ones(result.shape, result.dtype) for name in ("A", "B")}
    (found,) = compare(manifest, reference, before, before | {"C": result}, {}, **tolerance)
    return found


def test_the_unit_is_that_of_the_largest_element() -> None:
    found = compared([1024.0, 1.0], [1024.0, 1.0 + 3 * 2.0**-13])
    assert found.agrees and found.ulps == pytest.approx(3) and found.worst == (1,)
    assert not compared([1024.0, 1.0], [1024.0, 1.1]).agrees


@pytest.mark.parametrize(("dtype", "step"), [(np.float16, 2.0**-10), (ml_dtypes.bfloat16, 2.0**-7)])
def test_narrow_types_may_differ_by_4_units(dtype: Any, step: float) -> None:
    assert compared([1.0, 1.0], [1.0, 1.0 - 3.9 * step], dtype).agrees
    assert not compared([1.0, 1.0], [1.0, 1.0 - 4.5 * step], dtype).agrees


def test_integers_are_exact() -> None:
    assert not compared([3], [4], np.int32).agrees
    assert compared([3], [4], np.int32, atol=1.0).agrees


def test_values_that_are_not_finite() -> None:
    nan, inf = float("nan"), float("inf")
    assert compared([nan, inf, -inf, 1.0], [nan, inf, -inf, 1.0]).agrees
    for result, expected in ((nan, 1.0), (1.0, nan), (inf, -inf), (inf, 1.0), (1.0, inf)):
        found = compared([result, 2.0], [expected, 2.0], rtol=10.0, atol=10.0)
        assert found.differing == 1 and found.worst == (0,)


def test_a_tensor_without_elements_agrees() -> None:
    assert compared([], []).agrees


@pytest.mark.parametrize(
    ("made", "said"),
    [
        (lambda a, b: None, "gives NoneType for C"),
        (lambda a, b: (a, b), "returns 2 results"),
        (lambda a, b: {"D": a}, "names `D`"),
        (lambda a, b: {}, "returns nothing"),
        (lambda a, b: np.ones(7), "the shape (7,)"),
    ],
)
def test_what_is_no_result(made: Callable[..., Any], said: str) -> None:
    with pytest.raises(ArgumentError) as raised:
        call(made, np.ones(3, np.float32))
    assert raised.value.code == "T2C-R120" and said in raised.value.message


def test_numpy_gets_float32_for_narrow_floats() -> None:
    seen: list[Any] = []
    call(lambda a, b: seen.append(a.dtype) or a, np.ones(3, ml_dtypes.bfloat16))
    assert seen == [np.float32]
