"""Numbers of types that hold less than float32, as tile compilers got it wrong before."""

from pathlib import Path

import ml_dtypes
import numpy as np
import pytest

from tests.host.kernels import load_body
from tests.host.pitfalls.inputs import integers
from tile2cu.core.errors import Tile2CuError


@pytest.mark.sweep(cases=2)
@pytest.mark.parametrize("kind", ["absmax", "abssum"])
@pytest.mark.parametrize("dtype", ["uint8", "uint32", "uint64", "int32", "float16"])
def test_magnitudes_of_unsigned_numbers_are_the_numbers(kind: str, dtype: str, tmp_path: Path) -> None:
    statements = f"""
        whole, total = T.alloc_fragment((4,), "{dtype}"), T.alloc_fragment((1,), "{dtype}")
        T.copy(X, whole)
        T.reduce_{kind}(whole, total, dim=0)
        T.copy(total, Y)
    """
    params = f'X: T.Tensor((4,), "{dtype}"), Y: T.Tensor((1,), "{dtype}")'
    x = np.array([100, 10, 20, 30]).astype(dtype)
    kernel = load_body(tmp_path, statements, params, threads=32)
    assert kernel(x)[0] == (x.max() if kind == "absmax" else x.sum())


@pytest.mark.sweep(cases=2)
@pytest.mark.parametrize("dtype", ["float32", "float16", "bfloat16", "int16", "int8"])
@pytest.mark.parametrize("operator", ["+", "*"])
def test_a_reduction_over_few_threads_of_any_width(dtype: str, operator: str, tmp_path: Path) -> None:
    statements = f"""
        tk = T.get_thread_binding()
        own, total = T.alloc_local((1,), "{dtype}"), T.alloc_local((1,), "{dtype}")
        own[0] = X[tk]
        with T.attr(
            T.comm_reducer(lambda x, y: x {operator} y, [T.cast({int(operator == "*")}, "{dtype}")]),
            "reduce_scope",
            T.reinterpret(T.uint64(0), dtype="handle"),
        ):
            T.evaluate(T.tvm_thread_allreduce(T.uint32(1), own[0], True, total[0], tk, dtype="handle"))
        Y[tk] = total[0]
    """
    params = f'X: T.Tensor((8,), "{dtype}"), Y: T.Tensor((8,), "{dtype}")'
    numpy = getattr(ml_dtypes, dtype, dtype)
    x = np.array([1, 2, -1, 3, 1, 2, 1, 2]).astype(numpy)
    expected = x.astype(np.int64).sum() if operator == "+" else x.astype(np.int64).prod()
    kernel = load_body(tmp_path, statements, params, threads=8)
    np.testing.assert_array_equal(kernel(x).astype(np.int64), expected)


@pytest.mark.sweep(cases=1)
@pytest.mark.parametrize("dtype", ["bfloat16", "float8_e4m3", "float8_e5m2"])
def test_small_floats_are_rounded_to_whole_numbers(dtype: str, tmp_path: Path) -> None:
    statements = """
        for i in T.Parallel(6):
            Y[i] = T.round(X[i], "ties-away-from-zero")
            Z[i] = T.round(X[i])
    """
    params = ", ".join(f'{name}: T.Tensor((6,), "{dtype}")' for name in "XYZ")
    numpy = getattr(ml_dtypes, {"float8_e4m3": "float8_e4m3fn"}.get(dtype, dtype))
    x, y = np.array([-2.5, -0.5, 0.5, 1.5, 3.5, 2.25]).astype(numpy), np.zeros(6, numpy)
    kernel = load_body(tmp_path, statements, params, threads=32)
    np.testing.assert_array_equal(kernel(x, y).astype(np.float32), [-2, 0, 0, 2, 4, 2])
    np.testing.assert_array_equal(y.astype(np.float32), [-3, -1, 1, 2, 4, 2])


@pytest.mark.parametrize("types", [("float16", "int32"), ("int8", "float32"), ("uint8", "int32")])
def test_products_of_four_bytes_take_signed_bytes(types: tuple[str, str], tmp_path: Path) -> None:
    statements = f"""
        a, c = T.alloc_local((4,), "{types[0]}"), T.alloc_local((1,), "{types[1]}")
        T.dp4a(a[0], a[0], c[0])
        Y[0] = c[0]
    """
    with pytest.raises(Tile2CuError, match="T.dp4a"):
        load_body(tmp_path, statements, f'Y: T.Tensor((1,), "{types[1]}")')


@pytest.mark.sweep(cases=1)
@pytest.mark.parametrize("kind", ["sum", "max", "min"])
@pytest.mark.parametrize("batch", [1, 2])
def test_several_reductions_share_a_barrier_or_not(kind: str, batch: int, tmp_path: Path) -> None:
    statements = f"""
        held = T.alloc_shared((2, 8, 16), "float32")
        whole, total = T.alloc_fragment((2, 8, 16), "float32"), T.alloc_fragment((2, 16), "float32")
        T.copy(X[bx * 2, 0, 0], held)
        T.copy(held, whole)
        T.reduce_{kind}(whole, total, dim=1, batch={batch})
        T.copy(total, Y[bx * 2, 0])
    """
    params = 'X: T.Tensor((16, 8, 16), "float32"), Y: T.Tensor((16, 16), "float32")'
    x = integers(16, 8, 16)
    kernel = load_body(tmp_path, statements, params, grid="8")
    np.testing.assert_array_equal(kernel(x), getattr(x, kind)(axis=1))


def test_a_branch_on_an_element_of_a_row_is_taken_as_it_was(tmp_path: Path) -> None:
    statements = """
        own, other, rows = (T.alloc_fragment((2, 512), "float32"), T.alloc_fragment((2, 512), "float32"),
                            T.alloc_fragment((2,), "float32"))
        T.copy(X, own)
        T.copy(R, rows)
        T.fill(other, -1)
        for i, j in T.Parallel(2, 512):
            if rows[i] >= 0:
                other[i, j] = own[i, j]
        T.copy(other, Y)
    """
    params = 'X: T.Tensor((2, 512), "float32"), R: T.Tensor((2,), "float32"), Y: T.Tensor((2, 512), "float32")'
    x, rows = integers(2, 512), np.array([1, -1], np.float32)
    kernel = load_body(tmp_path, statements, params, threads=256)
    np.testing.assert_array_equal(kernel(x, rows), np.where(rows[:, None] >= 0, x, -1))


def test_a_block_looks_back_until_it_finds_what_another_published(tmp_path: Path) -> None:
    statements = """
        look, state, done = T.alloc_var("int32"), T.alloc_var("int32"), T.alloc_var("bool")
        tx = T.get_thread_binding()
        if tx == 0:
            look = bx - 1
            done = look < 0
            state = 0
            while not done:
                state = T.atomic_load(S[look], memory_order="acquire")
                if state != 0:
                    done = True
                else:
                    look -= 1
                    done = look < 0
            Y[bx] = state
    """
    params = 'S: T.Tensor((6,), "int32"), Y: T.Tensor((6,), "int32")'
    kernel = load_body(tmp_path, statements, params, grid="6", threads=32)
    np.testing.assert_array_equal(kernel(np.array([0, 3, 0, 0, 5, 0], np.int32)), [0, 0, 3, 3, 3, 5])


def test_narrow_integers_are_computed_in_int_and_wrap_where_they_are_kept(tmp_path: Path) -> None:
    """As C++ does it; a sum of two bytes is no byte, and none of the small numbers that convert in a shorter way."""
    statements = """
        kept = T.alloc_var("uint8")
        for i in T.Parallel(256):
            W[0, i] = X[i] + X[i]
            W[1, i] = T.cast(X[i] * X[i], "float16")
            W[2, i] = T.cast(T.shift_left(1, X[i] & 15), "float16")
            W[3, i] = T.if_then_else(X[i] + X[i] > 300, X[i] - 7, (X[i] + X[i]) >> 1)
            W[4, i] = ~X[i] + T.cast(S[i] * S[i], "int32")
            W[6, i] = T.cast(X[i], "uint16") + S[i]
            Y[i] = X[i] + X[i]
        for i in T.serial(256):
            kept = X[i] + X[i]
            W[5, i] = kept
    """
    params = ", ".join(
        ('X: T.Tensor((256,), "uint8")', 'S: T.Tensor((256,), "int8")', 'W: T.Tensor((7, 256), "float32")')
        + ('Y: T.Tensor((256,), "uint8")',)
    )
    kernel = load_body(tmp_path, statements, params, threads=32)
    x = np.arange(256)
    s, wide, narrow = x - 128, np.zeros((7, 256), np.float32), np.zeros(256, np.uint8)
    kernel(x.astype(np.uint8), s.astype(np.int8), wide, narrow)
    expected = [
        2 * x,
        (x * x).astype(np.float16),
        1 << (x & 15),
        np.where(2 * x > 300, x - 7, x),
        ~x + s * s,
        2 * x % 256,
        s % 2**16 + x,
    ]
    np.testing.assert_array_equal(wide, expected)
    np.testing.assert_array_equal(narrow, 2 * x % 256)
