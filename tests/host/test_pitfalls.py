"""What has cost tile compilers wrong results before: each case in a few lines, with every check of the engine on."""

from pathlib import Path

import ml_dtypes
import numpy as np
import pytest

from tests.host.kernels import load_body
from tile2cu.core.errors import Tile2CuError

RNG = np.random.default_rng(0)
TARGETS = pytest.mark.parametrize("target", ["cuda:sm_80", "cuda:sm_90a"])


def integers(*shape: int, dtype: object = np.float32, low: int = -4) -> np.ndarray:
    return RNG.integers(low, 5, shape).astype(dtype)


# --- Barriers ------------------------------------------------------------------------------------------------------


def test_an_atomic_on_a_shared_element_is_seen_by_the_threads_that_read_it(tmp_path: Path) -> None:
    statements = """
        held = T.alloc_shared((256,), "int32")
        tx = T.get_thread_binding()
        held[tx ^ 1] = X[tx]
        T.atomic_add(held[(tx * 5) % 256], tx)
        Y[tx] = held[tx ^ 64]
    """
    kernel = load_body(tmp_path, statements, 'X: T.Tensor((256,), "int32"), Y: T.Tensor((256,), "int32")', threads=256)
    x, tx = integers(256, dtype=np.int32), np.arange(256)
    held = np.zeros(256, np.int32)
    held[tx ^ 1] = x
    held[(tx * 5) % 256] += tx.astype(np.int32)
    np.testing.assert_array_equal(kernel(x), held[tx ^ 64])


def test_what_some_lanes_exchange_needs_no_barrier_in_their_branch(tmp_path: Path) -> None:
    statements = """
        held = T.alloc_shared((96,), "int32")
        tx = T.get_thread_binding()
        held[tx] = X[tx]
        if tx % 2 == 0:
            old = held[tx]
            held[tx ^ 1] = old + 1
        Y[tx] = held[95 - tx]
    """
    kernel = load_body(tmp_path, statements, 'X: T.Tensor((96,), "int32"), Y: T.Tensor((96,), "int32")', threads=96)
    x = integers(96, dtype=np.int32)
    held = x.copy()
    held[1::2] = x[::2] + 1
    np.testing.assert_array_equal(kernel(x), held[::-1])


@pytest.mark.parametrize(
    ("second", "barriers"),
    [
        ("for i, j in T.Parallel(32, 64):\n            held[i, j] = held[i, j] * 2", 1),
        ("for i, j in T.Parallel(32, 64):\n            if j > 3:\n                held[i, j] = held[i, j] * 2 + j", 1),
        ("for i, j in T.Parallel(32, 64):\n            held[i, j] = held[i, j] + other[31 - i, j]", 2),
        ("for j, i in T.Parallel(64, 32):\n            held[i, j] = held[i, j] * 2", 2),
        ("for i, j in T.Parallel(32, 32):\n            held[i, j] = held[i, j] * 2", 2),
    ],
)
def test_threads_that_come_back_to_their_own_elements_need_no_barrier(
    second: str, barriers: int, tmp_path: Path
) -> None:
    statements = f"""
        held, other = T.alloc_shared((32, 64), "float32"), T.alloc_shared((32, 64), "float32")
        for i, j in T.Parallel(32, 64):
            held[i, j] = X[i, j]
            other[i, j] = X[i, j] + 1
        {second}
        T.copy(held, Y)
    """
    kernel = load_body(tmp_path, statements, 'X: T.Tensor((32, 64), "float32"), Y: T.Tensor((32, 64), "float32")')
    x = integers(32, 64)
    expected = x.copy()
    if "other" in second:
        expected = x + x[::-1] + 1
    elif "j > 3" in second:
        expected[:, 4:] = x[:, 4:] * 2 + np.arange(4, 64)
    else:
        columns = 32 if "(32, 32)" in second else 64
        expected[:, :columns] *= 2
    np.testing.assert_array_equal(kernel(x), expected)
    assert kernel.source.count("tl::sync_threads();") == barriers


@pytest.mark.parametrize(
    ("there", "barriers"), [("tx", 0), ("tx ^ 0", 0), ("(tx + 1) % 64", 1), ("tx // 2", 1), ("63 - (63 - tx)", 0)]
)
def test_elements_named_by_the_thread_need_a_barrier_where_they_are_another_threads(
    there: str, barriers: int, tmp_path: Path
) -> None:
    statements = f"""
        held = T.alloc_shared((64,), "float32")
        tx = T.get_thread_binding()
        held[tx] = X[tx]
        there = {there}
        Y[tx] = held[there] + 1
    """
    kernel = load_body(tmp_path, statements, 'X: T.Tensor((64,), "float32"), Y: T.Tensor((64,), "float32")', threads=64)
    x = integers(64)
    np.testing.assert_array_equal(kernel(x), x[eval(there, {"tx": np.arange(64)})] + 1)
    assert kernel.source.count("tl::sync_threads();") == barriers


def test_a_condition_is_asked_again_after_its_element_changed(tmp_path: Path) -> None:
    statements = """
        tx = T.get_thread_binding()
        value = T.alloc_local((2,), "int32")
        value[0] = X[tx]
        value[1] = 7
        if value[0] > 0:
            value[0] = 0
        if value[0] > 0:
            value[1] = 1
        Y[tx, 0] = value[0]
        Y[tx, 1] = value[1]
    """
    kernel = load_body(tmp_path, statements, 'X: T.Tensor((32,), "int32"), Y: T.Tensor((32, 2), "int32")', threads=32)
    x = integers(32, dtype=np.int32)
    np.testing.assert_array_equal(kernel(x), np.stack([np.minimum(x, 0), np.full(32, 7)], axis=1))


def test_a_value_that_was_read_before_its_element_is_written_stays(tmp_path: Path) -> None:
    statements = """
        for i in T.Parallel(128):
            at = bx * 128 + i
            first = T.max(X[at], 1)
            Y[at] = first / 2
            X[at] = first * 2
            Y[at] += first
    """
    params = 'X: T.Tensor((300,), "float32"), Y: T.Tensor((300,), "float32")'
    kernel = load_body(tmp_path, statements, params, grid="T.ceildiv(300, 128)")
    x = integers(300)
    first = np.maximum(x, 1)
    np.testing.assert_array_equal(kernel(x), first / 2 + first)
    np.testing.assert_array_equal(x, first * 2)


# --- Layouts -------------------------------------------------------------------------------------------------------


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


# --- Warps of a product --------------------------------------------------------------------------------------------

PRODUCT = """
    A_shared = T.alloc_shared((M, 32), "float16")
    B_shared = T.alloc_shared((32, N), "float16")
    C_local = T.alloc_fragment((M, N), "float32")
    T.clear(C_local)
    for k in T.Pipelined(3, num_stages=2):
        T.copy(A[0, k * 32], A_shared)
        T.copy(B[k * 32, 0], B_shared)
        T.gemm(A_shared, B_shared, C_local, policy=T.GemmWarpPolicy.{policy})
    T.copy(C_local, C)
"""


def product(folder: Path, m: int, n: int, warps: int, policy: str, target: str):
    params = 'A: T.Tensor((M, 96), "float16"), B: T.Tensor((96, N), "float16"), C: T.Tensor((M, N), "float32")'
    statements = PRODUCT.format(policy=policy)
    return load_body(folder, statements, params, arguments="M, N", threads=32 * warps, target=target, M=m, N=n)


@pytest.mark.parametrize(
    ("m", "n", "warps", "policy", "target"),
    [
        (192, 104, 12, "FullCol", "cuda:sm_80"),  # the policy as far as it goes
        (48, 64, 8, "FullRow", "cuda:sm_80"),
        (96, 64, 4, "Square", "cuda:sm_90a"),  # rows that warpgroups do not share out
        (128, 192, 12, "FullRow", "cuda:sm_90a"),
        (64, 40, 4, "Square", "cuda:sm_90a"),  # columns that are no multiple of 16
        (64, 88, 4, "Square", "cuda:sm_90a"),
        (256, 64, 8, "FullRow", "cuda:sm_90a"),  # two warpgroups along m
        (128, 256, 16, "FullRow", "cuda:sm_90a"),
        (256, 16, 16, "Square", "cuda:sm_90a"),
        (64, 96, 8, "FullCol", "cuda:sm_90a"),
        (64, 384, 4, "Square", "cuda:sm_90a"),
    ],
)
def test_warps_cover_every_row_and_column(m: int, n: int, warps: int, policy: str, target: str, tmp_path: Path) -> None:
    a, b = integers(m, 96, dtype=np.float16), integers(96, n, dtype=np.float16)
    kernel = product(tmp_path, m, n, warps, policy, target)
    np.testing.assert_array_equal(kernel(a, b), a.astype(np.float64) @ b.astype(np.float64))


@pytest.mark.parametrize(
    ("m", "n", "warps", "policy", "target"),
    [
        (16, 104, 12, "Square", "cuda:sm_80"),
        (288, 8, 17, "Square", "cuda:sm_80"),
        (336, 8, 20, "FullCol", "cuda:sm_80"),
        (16, 16, 7, "Square", "cuda:sm_80"),
        (64, 104, 12, "Square", "cuda:sm_90a"),
        (336, 16, 20, "FullCol", "cuda:sm_90a"),
    ],
)
def test_warps_that_cannot_cover_it_are_refused(
    m: int, n: int, warps: int, policy: str, target: str, tmp_path: Path
) -> None:
    with pytest.raises(Tile2CuError, match=f"{warps} warps cannot share a product of {m} x {n}"):
        product(tmp_path, m, n, warps, policy, target)


@pytest.mark.parametrize("columns", [96, 112, 160, 176, 256])
def test_a_width_that_the_instruction_has_is_one_instruction(columns: int, tmp_path: Path) -> None:
    kernel = product(tmp_path, 64, columns, 4, "Square", "cuda:sm_90a")
    assert "tl::WgmmaAccumulator<" in kernel.source
    a, b = integers(64, 96, dtype=np.float16), integers(96, columns, dtype=np.float16)
    np.testing.assert_array_equal(kernel(a, b), a.astype(np.float64) @ b.astype(np.float64))


# --- Pipelines -----------------------------------------------------------------------------------------------------


@TARGETS
@pytest.mark.parametrize("stages", [1, 2, 3])
def test_a_turn_copies_one_operand_and_loops_over_the_other(target: str, stages: int, tmp_path: Path) -> None:
    statements = f"""
        A_shared = T.alloc_shared((64, 32), "float16")
        B_shared = T.alloc_shared((64, 32), "float16")
        C_local = T.alloc_fragment((64, 64), "float32")
        T.clear(C_local)
        for k in T.Pipelined(T.ceildiv(K, 32), num_stages={stages}):
            T.copy(A[0, k * 32], A_shared)
            for i, j in T.Parallel(64, 32):
                B_shared[i, j] = B[i, k * 32 + j]
            T.gemm(A_shared, B_shared, C_local, transpose_B=True)
        T.copy(C_local, C)
    """
    params = 'A: T.Tensor((64, K), "float16"), B: T.Tensor((64, K), "float16"), C: T.Tensor((64, 64), "float32")'
    kernel = load_body(tmp_path, statements, params, arguments="K", target=target)
    for k in (8, 32, 40, 136):  # one turn, less than one, a rest, and more turns than stages
        a, b = integers(64, k, dtype=np.float16), integers(64, k, dtype=np.float16)
        np.testing.assert_array_equal(kernel(a, b), a.astype(np.float64) @ b.astype(np.float64).T)


@TARGETS
@pytest.mark.parametrize("chosen", [False, True])
def test_rows_that_a_table_of_a_table_names(target: str, chosen: bool, tmp_path: Path) -> None:
    inner = "T.copy(X[there, :], row)\n            T.copy(row, own)\n            T.atomic_add(Y[0, 0], own)"
    if chosen:
        inner = "if there > 1:\n                " + inner.replace("\n    ", "\n        ")
    statements = f"""
        row = T.alloc_shared((64,), "float32")
        unused = T.alloc_shared((64,), "float32")
        own = T.alloc_fragment((64,), "float32")
        for i in T.Pipelined(4, num_stages=2):
            here = I[i]
            there = J[here]
            {inner}
            T.clear(unused)
    """
    params = (
        'X: T.Tensor((8, 64), "float32"), I: T.Tensor((4,), "int32"), J: T.Tensor((4,), "int32"), '
        'Y: T.Tensor((1, 64), "float32")'
    )
    kernel = load_body(tmp_path, statements, params, target=target, check=False)
    x, y = integers(8, 64), np.zeros((1, 64), np.float32)
    i, j = np.array([3, 0, 2, 1], np.int32), np.array([5, 1, 7, 0], np.int32)
    kernel(x, i, j, y)
    rows = [row for row in j[i] if row > 1 or not chosen]
    np.testing.assert_array_equal(y[0], x[rows].sum(axis=0))


@TARGETS
@pytest.mark.parametrize("stages", [2, 3])
def test_slots_of_one_dimension(target: str, stages: int, tmp_path: Path) -> None:
    statements = f"""
        held = T.alloc_shared((32,), "float16")
        own = T.alloc_fragment((32,), "float32")
        for k in T.Pipelined(T.ceildiv(N, 32), num_stages={stages}):
            T.copy(X[k * 32 : (k + 1) * 32], held)
            T.copy(held, own)
            for i in T.Parallel(32):
                Y[k * 32 + i] = own[i] * 2
    """
    params = 'X: T.Tensor((N,), "float16"), Y: T.Tensor((N,), "float32")'
    kernel = load_body(tmp_path, statements, params, arguments="N", target=target)
    for n in (256, 264, 8):
        x = integers(n, dtype=np.float16)
        np.testing.assert_array_equal(kernel(x), x.astype(np.float32) * 2)


SHARED_BY_LOOPS = """
        A_shared = T.alloc_shared((64, 32), "float16")
        C_local = T.alloc_fragment((64, 64), "float32")
        T.clear(C_local)
        {loops}
        T.copy(C_local, C)
"""
ONE_LOOP = """for k in T.Pipelined({turns}, num_stages={stages}):
            T.copy(A[0, {start} + k * 32], A_shared)
            T.gemm(A_shared, A_shared, C_local, transpose_B=True)
        """
ONE_TURN = """T.copy(A[0, {start}], A_shared)
        T.gemm(A_shared, A_shared, C_local, transpose_B=True)
        """


@TARGETS
@pytest.mark.parametrize(
    ("first", "second"), [(0, 1), (1, 0), (2, 3), (0, 2), (3, None), (None, 3)], ids=lambda stages: str(stages)
)
def test_loops_of_other_depths_share_a_tile(target: str, first: int | None, second: int | None, tmp_path: Path) -> None:
    """A number is a loop with so many stages; None is one turn that stands by itself."""
    turns, rest = (1, 5) if first is None else (4, 2 if second is not None else 1)
    loops = (ONE_TURN if first is None else ONE_LOOP).format(start=0, turns=turns, stages=first)
    loops += (ONE_TURN if second is None else ONE_LOOP).format(start=32 * turns, turns=rest, stages=second)
    params = f'A: T.Tensor((64, {32 * (turns + rest)}), "float16"), C: T.Tensor((64, 64), "float32")'
    a = integers(64, 32 * (turns + rest), dtype=np.float16)
    wide = a.astype(np.float64)
    kernel = load_body(tmp_path, SHARED_BY_LOOPS.format(loops=loops), params, target=target)
    np.testing.assert_array_equal(kernel(a), wide @ wide.T)


@TARGETS
def test_a_row_of_a_tile_of_one_dimension_is_stored_as_far_as_the_tensor_goes(target: str, tmp_path: Path) -> None:
    statements = """
        held = T.alloc_shared((256,), "float32")
        for i in T.Parallel(256):
            held[i] = bx * 256 + i
        T.copy(held, Y[bx * 256])
    """
    kernel = load_body(tmp_path, statements, 'Y: T.Tensor((1000,), "float32")', grid="4", target=target)
    np.testing.assert_array_equal(kernel(), np.arange(1000))


@pytest.mark.parametrize(("shape", "blocks"), [((4, 9), 3), ((4, 8), 3), ((7, 11), 5), ((2, 3), 16), ((3, 5, 10), 4)])
def test_every_tile_has_its_turn(shape: tuple[int, ...], blocks: int, tmp_path: Path) -> None:
    names = ", ".join("ijk"[: len(shape)])
    statements = f"""
        for {names} in T.Persistent({list(shape)}, {blocks}, bx):
            Y[{names}] += 1
    """
    kernel = load_body(tmp_path, statements, f'Y: T.Tensor({shape}, "int32")', grid=str(blocks), threads=1)
    y = np.zeros(shape, np.int32)
    kernel(y)
    np.testing.assert_array_equal(y, 1)


# --- Vectors and indices -------------------------------------------------------------------------------------------


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


@pytest.mark.parametrize(("region", "count"), [("0:128", 128), ("F[0]:F[1]", 40)])
def test_a_part_of_a_tensor_is_filled(region: str, count: int, tmp_path: Path) -> None:
    statements = f"T.fill(Y[{region}], 7)"
    kernel = load_body(tmp_path, statements, 'F: T.Tensor((2,), "int32"), Y: T.Tensor((200,), "int64")')
    y = np.zeros(200, np.int64)
    kernel(np.array([30, 70], np.int32), y)
    start = 0 if count == 128 else 30
    assert (y[start : start + count] == 7).all()
    assert y.sum() == 7 * count


# --- Types ---------------------------------------------------------------------------------------------------------


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
