"""Copies, transposes and parts of shared tiles; tl::print and tl::device_assert."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from engine_kernels import Kernels, ReadWrite, Written

pytestmark = pytest.mark.needs("g++")

F32, F16, I32, I8 = np.float32, np.float16, np.int32, np.int8


@pytest.mark.parametrize(
    ("name", "shape", "dtype", "result"),
    [
        ("moves_half", (64, 32), F16, F16),
        ("moves_converting", (32, 96), F32, F16),
        ("moves_odd", (7, 13), I32, F32),
        ("moves_bytes", (16, 48), I8, I8),
    ],
)
def test_copies_and_transposes(
    kernels: Callable[[str], Kernels], name: str, shape: tuple[int, int], dtype: type, result: type
) -> None:
    x = np.random.default_rng(1).integers(-99, 100, shape).astype(dtype)
    written = Written(shape=shape, dtype=result), Written(shape=shape[::-1], dtype=result)
    run = kernels("tiles")(name, x, *written, Written(shape=shape[1:], dtype=result), schedule="shuffle", seed=4)
    np.testing.assert_array_equal(run.written[0], x)
    np.testing.assert_array_equal(run.written[1], x.T)
    np.testing.assert_array_equal(run.written[2], x[1])


def test_a_transpose_of_a_swizzled_tile_has_no_bank_conflicts(kernels: Callable[[str], Kernels]) -> None:
    x = np.zeros((64, 32), F16)
    written = Written(shape=(64, 32), dtype=F16), Written(shape=(32, 64), dtype=F16), Written(shape=(32,), dtype=F16)
    run = kernels("tiles")("moves_half", x, *written)
    assert run.worst_ways("read", 2) == 1


def test_parts_of_tiles(kernels: Callable[[str], Kernels]) -> None:
    written = Written(shape=(16, 64), dtype=F32), Written(shape=(8,), dtype=F32), Written(shape=(16,), dtype=F32)
    run = kernels("tiles")("parts", *written, schedule="shuffle", seed=4)
    expected = np.zeros((16, 64))
    expected[3:11] = 2
    expected[3:11, 16:32] = 4 + np.arange(16)
    np.testing.assert_array_equal(run.written[0], expected)
    np.testing.assert_array_equal(run.written[1], expected[3:11].sum(1))
    np.testing.assert_array_equal(run.written[2], [0] * 5 + [1, 2, 3, 4] + [0] * 7)


def test_prints_say_what_and_who(kernels: Callable[[str], Kernels], capfd: pytest.CaptureFixture[str]) -> None:
    kernels("tiles")("says", ReadWrite(np.array([7], I32)))
    kernels("tiles").flush()
    lines = capfd.readouterr().out.splitlines()
    here = "in block (0, 0, 0), thread"
    tile = [f"tile({i}, {j}) = {30 * i + 10 * j} {here} 0" for i in range(2) for j in range(3)]
    fragment = [f"f({i}) = {i + 0.5} {here} {i % 2}" for i in range(4)]
    assert sorted(lines) == sorted([*tile, *fragment, f"half = 1.5 {here} 3", f"Y = 7 {here} 3"])


def test_an_assertion_ends_the_launch_and_names_its_line(kernels: Callable[[str], Kernels]) -> None:
    run = kernels("tiles")("asserts", Written(shape=(128,), dtype=I32), 64)
    assert run.written[0].all()
    (finding,) = kernels("tiles").findings("asserts", ReadWrite(np.zeros(128, I32)), 40)
    assert finding["kind"] == "assertion failed"
    assert "thread 40" in finding["message"]
    assert finding["message"].endswith("the bound is too low")
    assert finding["places"][0]["file"].endswith("tiles.cu")


def test_a_failed_assertion_is_an_error_without_checks_too(kernels: Callable[[str], Kernels]) -> None:
    y = np.zeros(128, I32)
    assert kernels("tiles").unchecked("asserts", y, 64) == 0
    assert kernels("tiles").unchecked("asserts", y, 40) >= 1000
