"""Operations on parts of tiles, and on arrays that each thread has for itself."""

from pathlib import Path

import numpy as np
import pytest

import tile2cu
from tests.host.kernels import load_body
from tile2cu.core.errors import Tile2CuError

RNG = np.random.default_rng(0)


def integers(*shape: int, dtype: object = np.float32) -> np.ndarray:
    return RNG.integers(-9, 10, shape).astype(dtype)


@pytest.mark.sweep(cases=2)
@pytest.mark.parametrize(
    ("kind", "dtype", "expected"),
    [
        ("max", "int32", lambda x: x.max(axis=1)),
        ("absmax", "int8", lambda x: np.abs(x).max(axis=1)),
        ("min", "float16", lambda x: x.min(axis=1)),
        ("sum", "float32", lambda x: x.sum(axis=1)),
        ("bitxor", "int32", lambda x: np.bitwise_xor.reduce(x, axis=1)),
    ],
)
def test_private_arrays_are_reduced_by_each_thread(kind: str, dtype: str, expected, tmp_path: Path) -> None:
    statements = f"""
        tx = T.get_thread_binding()
        own = T.alloc_local((5, 6), "{dtype}")
        columns = T.alloc_local((1, 6), "{dtype}")
        for i, j in T.grid(5, 6):
            own[i, j] = X[tx, i, j]
        T.reduce_{kind}(own, columns, dim=0)
        for j in T.serial(6):
            Y[tx, j] = columns[0, j]
    """
    params = f'X: T.Tensor((64, 5, 6), "{dtype}"), Y: T.Tensor((64, 6), "{dtype}")'
    x = integers(64, 5, 6, dtype=dtype)
    np.testing.assert_array_equal(load_body(tmp_path, statements, params, threads=64)(x), expected(x))


def test_a_private_array_is_added_up_to_what_is_there(tmp_path: Path) -> None:
    statements = """
        tx = T.get_thread_binding()
        own = T.alloc_local((5,), "int8")
        total = T.alloc_local((1,), "int32")
        for i in T.serial(5):
            own[i] = X[tx, i]
        total[0] = tx
        T.reduce_sum(own, total, dim=0, clear=False)
        Y[tx] = total[0]
    """
    params = 'X: T.Tensor((64, 5), "int8"), Y: T.Tensor((64,), "int32")'
    x = integers(64, 5, dtype=np.int8)
    expected = x.astype(np.int32).sum(axis=1) + np.arange(64)
    np.testing.assert_array_equal(load_body(tmp_path, statements, params, threads=64)(x), expected)


def test_what_is_private_is_not_reduced_into_a_tile(tmp_path: Path) -> None:
    statements = """
        own, total = T.alloc_local((5,), "float32"), T.alloc_fragment((1,), "float32")
        T.reduce_sum(own, total)
        T.copy(total, Y)
    """
    with pytest.raises(Tile2CuError, match="one of them is private to each thread"):
        load_body(tmp_path, statements, 'Y: T.Tensor((1,), "float32")')


@pytest.mark.sweep(cases=1)
@pytest.mark.parametrize(("rows", "columns"), [((8, 24), (0, 16)), ((0, 40), (3, 20)), ((39, 40), (0, 24))])
@pytest.mark.parametrize(("dim", "reverse"), [(0, False), (1, True)])
def test_a_part_of_a_shared_tile_is_scanned_where_it_lies(
    rows: tuple[int, int], columns: tuple[int, int], dim: int, reverse: bool, tmp_path: Path
) -> None:
    statements = f"""
        held = T.alloc_shared((40, 24), "float32")
        T.copy(X, held)
        T.cumsum(held[{rows[0]}:{rows[1]}, {columns[0]}:{columns[1]}], dim={dim}, reverse={reverse})
        T.copy(held, Y)
    """
    kernel = load_body(tmp_path, statements, 'X: T.Tensor((40, 24), "float32"), Y: T.Tensor((40, 24), "float32")')
    x = integers(40, 24)
    expected = x.copy()
    part = expected[slice(*rows), slice(*columns)]
    part[:] = np.flip(np.cumsum(np.flip(part, dim), axis=dim), dim) if reverse else np.cumsum(part, axis=dim)
    np.testing.assert_array_equal(kernel(x), expected)


def test_parts_are_reduced_into_parts(tmp_path: Path) -> None:
    statements = """
        held = T.alloc_shared((40, 24), "float32")
        rows = T.alloc_fragment((8,), "float32")
        T.copy(X, held)
        T.reduce_sum(held[32:40, 3:20], rows, dim=1)
        T.cummax(src=held[24:32, :], dst=held[0:8, :], dim=1)
        T.reduce_max(held[8:16, 0:8], held[39, 0:8], dim=0, clear=False)
        for i in T.Parallel(8):
            held[38, i] = rows[i]
        T.copy(held, Y)
    """
    kernel = load_body(tmp_path, statements, 'X: T.Tensor((40, 24), "float32"), Y: T.Tensor((40, 24), "float32")')
    x = integers(40, 24)
    expected = x.copy()
    expected[0:8] = np.maximum.accumulate(x[24:32], axis=1)
    expected[39, :8] = np.maximum(x[39, :8], x[8:16, :8].max(axis=0))
    expected[38, :8] = x[32:40, 3:20].sum(axis=1)
    np.testing.assert_array_equal(kernel(x), expected)


@pytest.mark.sweep(cases=1)
@pytest.mark.parametrize("shape", [(64, 48), (33, 70)])
def test_a_tile_becomes_the_transpose_of_another(shape: tuple[int, int], tmp_path: Path) -> None:
    m, n = shape
    statements = """
        there, turned = T.alloc_shared((M, N), "float16"), T.alloc_shared((N, M), "float16")
        T.copy(X, there)
        T.transpose(there, turned)
        T.copy(turned, Y)
    """
    params = 'X: T.Tensor((M, N), "float16"), Y: T.Tensor((N, M), "float16")'
    x = integers(m, n, dtype=np.float16)
    np.testing.assert_array_equal(load_body(tmp_path, statements, params, arguments="M, N", M=m, N=n)(x), x.T)


def test_elements_are_copied_one_by_one_where_every_thread_has_its_own(tmp_path: Path) -> None:
    statements = """
        for i, j in T.Parallel(33, 20):
            T.copy(X[bx * 33 + i, j], Y[bx * 33 + i, j])
    """
    params = 'X: T.Tensor((70, 20), "float16"), Y: T.Tensor((70, 20), "float32")'
    x = integers(70, 20, dtype=np.float16)
    np.testing.assert_array_equal(load_body(tmp_path, statements, params, grid="3")(x), x)


def test_a_kernel_without_a_grid_is_one_block(tmp_path: Path) -> None:
    path = tmp_path / "one.py"
    path.write_text(
        "import tilelang.language as T\n\n\n@T.prim_func\n"
        'def one(Y: T.Tensor((32,), "int32")):\n'
        "    with T.Kernel(threads=32):\n        tx = T.get_thread_binding()\n        Y[tx] = tx\n",
        encoding="utf-8",
    )
    y = np.zeros(32, np.int32)
    tile2cu.load(path, device="cpu", check=True)(y)
    np.testing.assert_array_equal(y, np.arange(32))


HALVES = np.array([-2.5, -1.5, -0.5, 0.5, 1.5, 2.5, 0.49999997, 3.2, -3.7, 1e9], np.float32)


@pytest.mark.sweep(cases=2)
@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ("T.round(x)", np.rint),
        ("T.nearbyint(x)", np.rint),
        ('T.round(x, "ties-away-from-zero")', lambda x: np.copysign(np.floor(np.abs(x.astype(np.float64)) + 0.5), x)),
        ("T.clamp(x, min_val=-1.0, max_val=2.0)", lambda x: np.clip(x, -1, 2)),
        ("T.cast(T.align_up(T.cast(T.min(x, 9.0), 'int32') + 20, 8), 'float32')",
         lambda x: -(-(np.minimum(x, 9).astype(np.int32) + 20) // 8) * 8),
    ],
)  # fmt: skip
def test_rounding_to_whole_numbers(value: str, expected, tmp_path: Path) -> None:
    statements = f"""
        for i in T.Parallel(10):
            x = X[i]
            Y[i] = {value}
    """
    kernel = load_body(tmp_path, statements, 'X: T.Tensor((10,), "float32"), Y: T.Tensor((10,), "float32")')
    np.testing.assert_array_equal(kernel(HALVES), expected(HALVES).astype(np.float32))


def test_a_loop_runs_over_a_part_of_a_fragment(tmp_path: Path) -> None:
    """The loop's own tile lies where so small a loop runs; the first columns of the other lie elsewhere."""
    statements = """
        L = T.alloc_fragment((32, 24), "float32")
        P = T.alloc_fragment((32, 4), "float32")
        T.copy(X, L)
        for i, j in T.Parallel(32, 4):
            P[i, j] = L[i, j] * 2
        for i, j in T.Parallel(32, 4):
            L[i, j] = P[i, j] + L[i, j]
        for i, j in T.Parallel(32, 4):
            L[i, j + 8] = P[i, j]
        T.copy(L, Y)
    """
    kernel = load_body(tmp_path, statements, 'X: T.Tensor((32, 24), "float32"), Y: T.Tensor((32, 24), "float32")')
    x = np.random.default_rng(0).standard_normal((32, 24)).astype(np.float32)
    expected = x.copy()
    expected[:, :4], expected[:, 8:12] = x[:, :4] * 3, x[:, :4] * 2
    np.testing.assert_allclose(kernel(x), expected, rtol=1e-6)


@pytest.mark.sweep(cases=1)
@pytest.mark.parametrize("scope", ["shared", "fragment"])
def test_a_copy_of_as_many_rows_as_a_run_tells(scope: str, tmp_path: Path) -> None:
    statements = f"""
        tile = T.alloc_{scope}((32, 64), "float16")
        first = starts[bx]
        count = T.min(32, starts[bx + 1] - first)
        T.fill(tile, 7.0)
        T.copy(X[first : first + count, 0:64], tile[:count, :64])
        for i, j in T.Parallel(32, 64):
            tile[i, j] = tile[i, j] + 1.0
        T.copy(tile[:count, :], Z[first : first + count, :])
        T.copy(tile, Y[bx * 32, 0])
    """
    params = (
        'X: T.Tensor((M, 64), "float16"), starts: T.Tensor((G + 1,), "int32"), Z: T.Tensor((M, 64), "float32"), '
        'Y: T.Tensor((G * 32, 64), "float16")'
    )
    kernel = load_body(tmp_path, statements, params, grid="G", arguments="M, G", target="cuda:sm_90a")
    x = RNG.integers(-4, 5, (45, 64)).astype(np.float16)
    starts = np.array([0, 17, 17, 40, 45], np.int32)
    z = np.zeros((45, 64), np.float32)
    y = kernel(x, starts, z, G=4)
    expected = np.full((4, 32, 64), 8.0)
    for block, (first, end) in enumerate(zip(starts, starts[1:], strict=False)):
        expected[block, : end - first] = x[first:end] + 1.0
    np.testing.assert_array_equal(y, expected.reshape(128, 64))
    np.testing.assert_array_equal(z, x.astype(np.float64) + 1)
