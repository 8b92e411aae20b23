"""Indices, packets, and extents that nothing fills, as tile compilers got it wrong before."""

from pathlib import Path

import ml_dtypes
import numpy as np
import pytest

from tests.host.kernels import load_body
from tests.host.pitfalls.inputs import integers


def test_a_column_of_a_fragment_is_read_by_32_of_another(tmp_path: Path) -> None:
    statements = """
        few, many = T.alloc_fragment((16, 14), "int32"), T.alloc_fragment((16, 448), "int32")
        T.copy(A, few)
        T.copy(B, many)
        for i, j in T.Parallel(16, 448):
            B[i, j] += few[i, j // 32]
            C[i, j] = many[i, j] * few[i, 13 - j // 32]
    """
    params = 'A: T.Tensor((16, 14), "int32"), B: T.Tensor((16, 448), "int32"), C: T.Tensor((16, 448), "int32")'
    kernel = load_body(tmp_path, statements, params)
    a, b = integers(16, 14, dtype=np.int32), integers(16, 448, dtype=np.int32)
    after = b.copy()
    np.testing.assert_array_equal(kernel(a, after), b * np.repeat(a[:, ::-1], 32, axis=1))
    np.testing.assert_array_equal(after, b + np.repeat(a, 32, axis=1))


def test_a_variable_has_a_value_of_its_own_in_each_turn(tmp_path: Path) -> None:
    statements = """
        at = T.alloc_var("int32")
        for i in T.Parallel(500):
            at = 499 - i
            Y[i] = X[at]
    """
    kernel = load_body(tmp_path, statements, 'X: T.Tensor((500,), "int32"), Y: T.Tensor((500,), "int32")', threads=64)
    x = integers(500, dtype=np.int32)
    np.testing.assert_array_equal(kernel(x), x[::-1])


@pytest.mark.sweep(cases=1)
@pytest.mark.parametrize("dtype", ["float8_e4m3", "float8_e5m2", "int8", "uint8", "bfloat16"])
@pytest.mark.parametrize("value", ["X[0]", "3"])
def test_small_types_are_filled_element_by_element(dtype: str, value: str, tmp_path: Path) -> None:
    statements = f"""
        own = T.alloc_local((32,), "{dtype}")
        for i in T.vectorized(32):
            own[i] = {value}
        for i in T.vectorized(32):
            Y[i] = own[i]
    """
    params = f'X: T.Tensor((1,), "{dtype}"), Y: T.Tensor((32,), "{dtype}")'
    numpy = {"float8_e4m3": "float8_e4m3fn"}.get(dtype, dtype)
    numpy = getattr(ml_dtypes, numpy, numpy)
    kernel = load_body(tmp_path, statements, params, threads=1)
    number = -6 if dtype != "uint8" else 213
    x = np.array([number]).astype(numpy)
    np.testing.assert_array_equal(kernel(x).astype(np.float32), number if value == "X[0]" else 3)


def test_negative_indices_count_from_the_end_where_they_are_numbers(tmp_path: Path) -> None:
    statements = """
        tx = T.get_thread_binding()
        for i in T.serial(4):
            if i >= 2:
                Y[tx, i] = X[tx, i - 2]
            else:
                Y[tx, i] = X[-1, -2]
    """
    kernel = load_body(
        tmp_path, statements, 'X: T.Tensor((32, 5), "float32"), Y: T.Tensor((32, 4), "float32")', threads=32
    )
    x = integers(32, 5)
    expected = np.full((32, 4), x[-1, -2])
    expected[:, 2:] = x[:, :2]
    np.testing.assert_array_equal(kernel(x), expected)


def test_a_choice_between_values_of_a_packet(tmp_path: Path) -> None:
    statements = """
        for i in T.vectorized(4):
            value = X[i]
            Y[i] = T.Select(value > 0.0, value, value + 1.0)
    """
    kernel = load_body(tmp_path, statements, 'X: T.Tensor((4,), "float32"), Y: T.Tensor((4,), "float32")', threads=1)
    x = np.array([-1, 2, 0, 5], np.float32)
    np.testing.assert_array_equal(kernel(x), np.where(x > 0, x, x + 1))


def test_a_slice_of_a_length_known_at_run_time_fills_the_tile_as_far_as_it_goes(tmp_path: Path) -> None:
    statements = """
        held = T.alloc_shared((1024,), "int32")
        T.copy(X[0:N], held)
        T.copy(held, Y)
    """
    params = 'X: T.Tensor((N,), "int32"), Y: T.Tensor((1024,), "int32")'
    kernel = load_body(tmp_path, statements, params, arguments="N", threads=32)
    for n in (1, 100, 1024):
        x = integers(n, dtype=np.int32)
        np.testing.assert_array_equal(kernel(x), np.pad(x, (0, 1024 - n)))


@pytest.mark.parametrize("grid", ["N", "N // 4"])
def test_a_grid_of_no_blocks_writes_nothing(grid: str, tmp_path: Path) -> None:
    kernel = load_body(tmp_path, "Y[bx] = 1", 'Y: T.Tensor((N,), "float32")', grid=grid, arguments="N", threads=1)
    y = np.zeros(5 if grid == "N" else 3, np.float32)
    kernel(y)
    np.testing.assert_array_equal(y, 1 if grid == "N" else 0)


def test_a_launch_of_no_blocks_that_the_file_fixes(tmp_path: Path) -> None:
    kernel = load_body(tmp_path, "Y[bx] = 1", 'Y: T.Tensor((4,), "float32")', grid="0", threads=1)
    y = np.zeros(4, np.float32)
    kernel(y)
    np.testing.assert_array_equal(y, 0)


@pytest.mark.parametrize("statements", ["pass", "there = X[bx]"])
def test_a_kernel_that_does_nothing(statements: str, tmp_path: Path) -> None:
    kernel = load_body(tmp_path, statements, 'X: T.Tensor((N,), "float32")', grid="N", arguments="N", threads=32)
    x = integers(7)
    before = x.copy()
    kernel(x)
    np.testing.assert_array_equal(x, before)


@pytest.mark.sweep(cases=1)
@pytest.mark.parametrize(("region", "count"), [("0:128", 128), ("F[0]:F[1]", 40)])
def test_a_part_of_a_tensor_is_filled(region: str, count: int, tmp_path: Path) -> None:
    statements = f"T.fill(Y[{region}], 7)"
    kernel = load_body(tmp_path, statements, 'F: T.Tensor((2,), "int32"), Y: T.Tensor((200,), "int64")')
    y = np.zeros(200, np.int64)
    kernel(np.array([30, 70], np.int32), y)
    start = 0 if count == 128 else 30
    assert (y[start : start + count] == 7).all()
    assert y.sum() == 7 * count


@pytest.mark.sweep(cases=1)
@pytest.mark.parametrize("step", [1, 4, 8])
def test_columns_of_a_tensor_that_rows_of_a_loop_move(step: int, tmp_path: Path) -> None:
    """A vector of a row starts at any multiple of the step."""
    params = 'X: T.Tensor((64, 1024), "float16"), Y: T.Tensor((64, 64), "float16")'
    statements = f"for i, j in T.Parallel(64, 64):\n    Y[i, j] = X[i, {step} * i + j] + 1"
    x = (np.arange(64 * 1024) % 1000).reshape(64, 1024).astype(np.float16)
    expected = np.stack([row[step * i : step * i + 64] for i, row in enumerate(x)]) + 1
    np.testing.assert_array_equal(load_body(tmp_path, statements, params)(x), expected)
