"""Elements that lie in other threads than those that ask for them, as tile compilers got it wrong before."""

from pathlib import Path

import ml_dtypes
import numpy as np
import pytest

from tests.host.kernels import load_body
from tests.host.pitfalls.inputs import RNG, TARGETS, integers
from tile2cu.core.errors import Tile2CuError


@pytest.mark.sweep(cases=1)
@pytest.mark.parametrize("hidden", [128, 200])
def test_a_scan_of_a_tile_in_another_shape(hidden: int, tmp_path: Path) -> None:
    statements = """
        held = T.alloc_shared((H,), "float32")
        T.copy(X[bx, :], held)
        T.cumsum(T.view(held, (1, H)), dim=1)
        T.copy(held, Y[bx, :])
    """
    params = 'X: T.Tensor((3, H), "float32"), Y: T.Tensor((3, H), "float32")'
    kernel = load_body(tmp_path, statements, params, grid="3", arguments="H", H=hidden)
    x = integers(3, hidden)
    np.testing.assert_array_equal(kernel(x), np.cumsum(x, axis=1))


@pytest.mark.sweep(cases=1)
@TARGETS
def test_a_row_value_of_a_product_is_written_by_a_loop_of_its_own(target: str, tmp_path: Path) -> None:
    statements = """
        A_shared = T.alloc_shared((32, 32), "float16")
        B_shared = T.alloc_shared((32, 32), "float16")
        product = T.alloc_fragment((32, 32), "float32")
        highest = T.alloc_fragment((32,), "float32")
        T.copy(A, A_shared)
        T.copy(B, B_shared)
        T.gemm(A_shared, B_shared, product, transpose_B=True, clear_accum=True)
        T.reduce_max(product, highest)
        for i in T.Parallel(32):
            highest[i] = highest[i] + i
        T.copy(highest, Y)
    """
    params = ", ".join(f'{name}: T.Tensor((32, 32), "float16")' for name in "AB") + ', Y: T.Tensor((32,), "float32")'
    kernel = load_body(tmp_path, statements, params, threads=32, target=target)
    a, b = integers(32, 32, dtype=np.float16), integers(32, 32, dtype=np.float16)
    product = a.astype(np.float64) @ b.astype(np.float64).T
    np.testing.assert_array_equal(kernel(a, b), product.max(axis=1) + np.arange(32))


def test_a_sum_over_the_middle_dimension_meets_a_tile_of_its_own(tmp_path: Path) -> None:
    statements = """
        part = T.alloc_fragment((32, 4), "float32")
        total = T.alloc_fragment((32, 4), "float32")
        whole = T.alloc_fragment((32, 4, 4), "float32")
        T.copy(X, part)
        for i, j, k in T.Parallel(32, 4, 4):
            whole[i, j, k] = i + 10 * j + 100 * k
        T.reduce_sum(whole, total, dim=1)
        for i, k in T.Parallel(32, 4):
            total[i, k] /= part[i, k]
        T.copy(total, Y)
    """
    kernel = load_body(tmp_path, statements, 'X: T.Tensor((32, 4), "float32"), Y: T.Tensor((32, 4), "float32")')
    x = integers(32, 4, low=1)
    whole = np.fromfunction(lambda i, j, k: i + 10 * j + 100 * k, (32, 4, 4))
    np.testing.assert_allclose(kernel(x), whole.sum(axis=1) / x, rtol=1e-6)


@pytest.mark.sweep(cases=1)
@pytest.mark.parametrize("shape", [(1, 32), (1, 1), (2, 128), (3, 5)])
@pytest.mark.parametrize("dim", [0, 1])
def test_fewer_elements_than_threads_are_reduced(shape: tuple[int, int], dim: int, tmp_path: Path) -> None:
    statements = f"""
        whole = T.alloc_fragment({shape}, "float16")
        total = T.alloc_fragment(({shape[1 - dim]},), "float32")
        T.copy(X, whole)
        T.reduce_sum(whole, total, dim={dim})
        for i in T.Parallel({shape[1 - dim]}):
            total[i] += i
        T.copy(total, Y)
    """
    params = f'X: T.Tensor({shape}, "float16"), Y: T.Tensor(({shape[1 - dim]},), "float32")'
    kernel = load_body(tmp_path, statements, params, threads=96)
    x = integers(*shape, dtype=np.float16)
    np.testing.assert_array_equal(kernel(x), x.astype(np.float32).sum(axis=dim) + np.arange(shape[1 - dim]))


def test_a_loop_reaches_a_fragment_by_fewer_turns_than_it_has_elements(tmp_path: Path) -> None:
    statements = """
        held = T.alloc_shared((8,), "bfloat16")
        wide = T.alloc_fragment((8,), "float32")
        out = T.alloc_shared((4, 64), "bfloat16")
        T.copy(X, held)
        T.copy(held, wide)
        for k in T.serial(64):
            for i in T.Parallel(4):
                out[i, k] = wide[i]
        T.copy(out, Y)
    """
    kernel = load_body(tmp_path, statements, 'X: T.Tensor((8,), "bfloat16"), Y: T.Tensor((4, 64), "bfloat16")')
    x = integers(8, dtype=ml_dtypes.bfloat16)
    np.testing.assert_array_equal(kernel(x), np.repeat(x[:4, None], 64, axis=1))


def test_a_turn_of_a_serial_loop_names_a_distributed_column(tmp_path: Path) -> None:
    statements = """
        A_shared = T.alloc_shared((64, 64), "float16")
        product = T.alloc_fragment((64, 64), "float32")
        total = T.alloc_fragment((64,), "float32")
        T.copy(A, A_shared)
        T.gemm(A_shared, A_shared, product, transpose_B=True, clear_accum=True)
        T.clear(total)
        for i in T.Parallel(64):
            for j in T.serial(64):
                total[i] += product[i, j]
        T.copy(total, Y)
    """
    kernel = load_body(tmp_path, statements, 'A: T.Tensor((64, 64), "float16"), Y: T.Tensor((64,), "float32")')
    a = integers(64, 64, dtype=np.float16)
    wide = a.astype(np.float64)
    np.testing.assert_array_equal(kernel(a), (wide @ wide.T).sum(axis=1))


def test_a_fragment_of_the_whole_block_is_filled_by_cases(tmp_path: Path) -> None:
    statements = """
        score = T.alloc_fragment(32, "float32")
        for i in T.Parallel(32):
            if i < 16:
                score[i] = X[i]
            else:
                score[i] = T.infinity("float32")
        for i in T.Parallel(32):
            if i < 16:
                T.device_assert(T.isfinite(score[i]))
            Y[i] = score[i]
    """
    kernel = load_body(tmp_path, statements, 'X: T.Tensor((16,), "float32"), Y: T.Tensor((32,), "float32")', threads=64)
    x = integers(16)
    np.testing.assert_array_equal(kernel(x), np.concatenate([x, np.full(16, np.inf)]))


LAID_OUT = """
    held = T.alloc_shared((128,), "int32")
    T.annotate_layout({{held: T.Layout((128,), lambda i: {layout})}})
    for i in T.Parallel(128):
        held[i] = X[i]
    for i in T.Parallel(128):
        Y[i] = held[127 - i]
"""
LAID_OUT_PARAMS = 'X: T.Tensor((128,), "int32"), Y: T.Tensor((128,), "int32")'


@pytest.mark.sweep(cases=1)
@pytest.mark.parametrize("layout", ["i ^ 1", "i * 2", "i + 10", "127 - i"])
def test_no_layout_that_is_asked_for_changes_a_result(layout: str, tmp_path: Path) -> None:
    kernel = load_body(tmp_path, LAID_OUT.format(layout=layout), LAID_OUT_PARAMS)
    x = integers(128, dtype=np.int32)
    np.testing.assert_array_equal(kernel(x), x[::-1])


@pytest.mark.parametrize(("layout", "second"), [("i % 64", 64), ("i * 0", 1)])
def test_no_layout_puts_two_elements_in_one_place(layout: str, second: int, tmp_path: Path) -> None:
    with pytest.raises(Tile2CuError, match=rf"T2C-L016.*\(0,\) and \({second},\) in one place"):
        load_body(tmp_path, LAID_OUT.format(layout=layout), LAID_OUT_PARAMS)


def test_a_loop_of_half_a_million_turns_of_which_few_do_anything(tmp_path: Path) -> None:
    statements = """
        T.assume(S % 2 == 0)
        for token, feature in T.Parallel(64, 8192):
            if token < 1:
                Y[token, feature] = X[token, feature]
    """
    params = 'X: T.StridedTensor((1, 8192), (S, 1), "uint8"), Y: T.StridedTensor((1, 8192), (S, 1), "uint8")'
    kernel = load_body(tmp_path, statements, params, head='S = T.dynamic("S")')
    x = RNG.integers(0, 256, (1, 8192)).astype(np.uint8)
    y = np.zeros((1, 8192), np.uint8)
    kernel(x, y)
    np.testing.assert_array_equal(y, x)


@pytest.mark.sweep(cases=1)
@TARGETS
def test_one_tile_is_an_operand_both_ways(target: str, tmp_path: Path) -> None:
    statements = """
        A_shared = T.alloc_shared((64, 96), "float16")
        first = T.alloc_fragment((64, 64), "float32")
        second = T.alloc_fragment((96, 96), "float32")
        T.copy(A, A_shared)
        T.gemm(A_shared, A_shared, first, transpose_B=True, clear_accum=True)
        T.gemm(A_shared, A_shared, second, transpose_A=True, clear_accum=True)
        T.copy(first, Y[0:64, 0:64])
        T.copy(second, Z)
    """
    params = 'A: T.Tensor((64, 96), "float16"), Y: T.Tensor((64, 64), "float32"), Z: T.Tensor((96, 96), "float32")'
    kernel = load_body(tmp_path, statements, params, target=target)
    a, y = integers(64, 96, dtype=np.float16), np.zeros((64, 64), np.float32)
    wide = a.astype(np.float64)
    np.testing.assert_array_equal(kernel(a, y), wide.T @ wide)
    np.testing.assert_array_equal(y, wide @ wide.T)


@pytest.mark.sweep(cases=1)
@pytest.mark.parametrize("coordinates", ["[i * 64 + j]", "[j]", "[0, i, j]"])
def test_a_layout_may_have_fewer_or_more_coordinates_than_a_tensor_of_one_row(coordinates: str, tmp_path: Path) -> None:
    statements = f"""
        T.annotate_layout({{X: T.Layout(X.shape, lambda i, j: {coordinates})}})
        for i in T.Parallel(64):
            Y[i] = X[0, i]
    """
    params = 'X: T.Tensor((1, 64), "float32"), Y: T.Tensor((64,), "float32")'
    x = integers(1, 64)
    np.testing.assert_array_equal(load_body(tmp_path, statements, params)(x), x[0])
