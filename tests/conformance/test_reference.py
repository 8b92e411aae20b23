"""The reference interpreter against NumPy: the examples, then each construct where its meaning is easily got wrong."""

from __future__ import annotations

from pathlib import Path
from textwrap import indent

import numpy as np
import pytest

from tests.conformance.kernels import small_program
from tests.conformance.reference import CannotInterpret, KernelFault, interpret, philox
from tile2cu.core.program import Program
from tile2cu.frontend import programs

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"
RNG = np.random.default_rng(0)


def example(name: str, **bindings: object) -> Program:
    path = EXAMPLES / name
    (program,) = programs(path, path.read_text(encoding="utf-8"), bindings=bindings)
    return program


def run(program: Program, *arguments: object) -> np.ndarray:
    """The contents of the last parameter."""
    named = dict(zip((param.name for param in program.params), arguments, strict=True))
    return interpret(program, named)[program.params[-1].name]


def small(statements: str, params: str, *arguments: object, **launch: object) -> np.ndarray:
    return run(small_program(statements, params, **launch), *arguments)


def test_vector_add() -> None:
    a, b = RNG.standard_normal((2, 1025)).astype(np.float32)
    np.testing.assert_array_equal(run(example("vector_add.py"), a, b, np.zeros_like(a)), a + b)


@pytest.mark.parametrize("columns", [100, 1024])
def test_row_softmax(columns: int) -> None:
    x = RNG.standard_normal((7, columns)).astype(np.float32)
    e = np.exp(x.astype(np.float64) - x.max(axis=1, keepdims=True))
    expected = (e / e.sum(axis=1, keepdims=True)).astype(np.float32)
    np.testing.assert_allclose(run(example("row_softmax.py", N=columns), x, np.zeros_like(x)), expected, rtol=2e-7)


def test_ragged_product() -> None:
    a, b = RNG.standard_normal((130, 100)).astype(np.float16), RNG.standard_normal((100, 72)).astype(np.float16)
    expected = np.maximum(a.astype(np.float64) @ b.astype(np.float64), 0).astype(np.float16)
    actual = run(example("gemm_relu.py"), a, b, np.zeros((130, 72), np.float16))
    # Sums in float32 may round to the other neighbour in float16, and differ by 1e-5 where they cancel.
    np.testing.assert_allclose(actual, expected, rtol=2**-10, atol=1e-5)


@pytest.mark.parametrize("causal", [False, True])
def test_attention(causal: bool) -> None:
    q, k, v = RNG.standard_normal((3, 1, 100, 2, 64)).astype(np.float16)
    scores = np.einsum("bshd,bthd->bhst", q.astype(np.float64), k.astype(np.float64)) / 8
    if causal:
        scores = np.where(np.tril(np.ones((100, 100), bool)), scores, -np.inf)
    e = np.exp(scores - scores.max(axis=-1, keepdims=True))
    expected = np.einsum("bhst,bthd->bshd", e / e.sum(axis=-1, keepdims=True), v.astype(np.float64))
    actual = run(example("attention.py", dim=64, is_causal=causal), q, k, v, np.zeros_like(q))
    # The kernel rounds its scores to float16 before the second product.
    assert np.max(np.abs(actual - expected)) < 2**-9


def test_outside_of_a_tensor_loads_are_zero_and_stores_are_dropped() -> None:
    statements = """
        tile = T.alloc_fragment((4, 8), "float32")
        T.copy(X[bx * 4, 4], tile)
        for i, j in T.Parallel(4, 8):
            tile[i, j] = tile[i, j] + X[bx * 4 + i, j - 1]
        T.copy(tile, Y[bx * 4, 0])
    """
    params = 'X: T.Tensor((6, 10), "float32"), Y: T.Tensor((6, 5), "float32")'
    x = RNG.integers(1, 9, (6, 10)).astype(np.float32)
    left = np.pad(x, ((0, 0), (1, 0)))[:, :8]
    right = np.pad(x, ((0, 0), (0, 4)))[:, 4:12]
    actual = small(statements, params, x, np.zeros((6, 5), np.float32), grid="2")
    np.testing.assert_array_equal(actual, (left + right)[:, :5])


def test_an_index_outside_of_a_tile_is_a_fault() -> None:
    statements = """
        S = T.alloc_shared((8,), "float32")
        for i in T.Parallel(8):
            S[i + 1] = X[i]
        T.copy(S, Y)
    """
    params = 'X: T.Tensor((8,), "float32"), Y: T.Tensor((8,), "float32")'
    with pytest.raises(KernelFault, match="outside of S"):
        small(statements, params, np.zeros(8, np.float32), np.zeros(8, np.float32))


def test_reductions_join_what_was_there_unless_they_clear() -> None:
    statements = """
        L = T.alloc_fragment((4, 8), "float32")
        r = T.alloc_fragment((4,), "float32")
        T.copy(X, L)
        T.fill(r, 3)
        T.reduce_max(L, r, dim=1, clear=False)
        T.copy(r, Y[0, 0])
        T.reduce_sum(L, r, dim=1, clear=False)
        T.copy(r, Y[1, 0])
        T.reduce_absmax(L, r, dim=1)
        T.copy(r, Y[2, 0])
        T.reduce_abssum(L, r, dim=1)
        T.copy(r, Y[3, 0])
    """
    params = 'X: T.Tensor((4, 8), "float32"), Y: T.Tensor((4, 4), "float32")'
    x = RNG.integers(-9, 6, (4, 8)).astype(np.float32)
    largest = np.maximum(x.max(axis=1), 3)
    expected = [largest, largest + x.sum(axis=1), np.abs(x).max(axis=1), np.abs(x).sum(axis=1)]
    np.testing.assert_array_equal(small(statements, params, x, np.zeros((4, 4), np.float32)), expected)


@pytest.mark.parametrize("update", ["total[i] += X[i, j]", "T.reducer_update(total[i], X[i, j])"])
def test_updates_of_a_reducer_are_combined(update: str) -> None:
    statements = f"""
        total = T.alloc_reducer((4,), "float32")
        T.clear(total)
        for k in T.serial(2):
            for i, j in T.Parallel(4, 8):
                {update}
        T.finalize_reducer(total)
        T.copy(total, Y)
    """
    params = 'X: T.Tensor((4, 8), "float32"), Y: T.Tensor((4,), "float32")'
    x = RNG.integers(-9, 9, (4, 8)).astype(np.float32)
    np.testing.assert_array_equal(small(statements, params, x, np.zeros(4, np.float32)), 2 * x.sum(axis=1))


def test_scans_run_either_way() -> None:
    statements = """
        S = T.alloc_shared((4, 8), "float32")
        L = T.alloc_shared((4, 8), "float32")
        T.copy(X, S)
        T.cumsum(S, L, dim=1, reverse=True)
        T.cummax(L, dim=0)
        T.copy(L, Y)
    """
    params = 'X: T.Tensor((4, 8), "float32"), Y: T.Tensor((4, 8), "float32")'
    x = RNG.integers(-9, 9, (4, 8)).astype(np.float32)
    expected = np.maximum.accumulate(np.cumsum(x[:, ::-1], axis=1)[:, ::-1], axis=0)
    np.testing.assert_array_equal(small(statements, params, x, np.zeros_like(x)), expected)


def test_every_thread_updates_outside_of_parallel_loops() -> None:
    found = small("T.atomic_add(Y[0], 1)", 'Y: T.Tensor((1,), "int32")', np.zeros(1, np.int32))
    assert found.tolist() == [128]


def test_atomics_meet_at_one_element() -> None:
    statements = """
        for i in T.Parallel(64):
            T.atomic_add(Y[X[bx * 64 + i]], 1)
    """
    params = 'X: T.Tensor((256,), "int32"), Y: T.Tensor((8,), "int32")'
    x = RNG.integers(0, 8, 256).astype(np.int32)
    actual = small(statements, params, x, np.zeros(8, np.int32), grid="4")
    np.testing.assert_array_equal(actual, np.bincount(x, minlength=8))


def test_only_the_arm_of_a_select_that_is_taken_is_evaluated() -> None:
    statements = """
        S = T.alloc_shared((8,), "float32")
        T.copy(X, S)
        for i in T.Parallel(8):
            Y[i] = T.if_then_else(i > 0, S[i - 1], 7)
    """
    params = 'X: T.Tensor((8,), "float32"), Y: T.Tensor((8,), "float32")'
    x = np.arange(8, dtype=np.float32)
    np.testing.assert_array_equal(small(statements, params, x, x), [7, 0, 1, 2, 3, 4, 5, 6])


def test_integers_divide_toward_minus_infinity_and_wrap() -> None:
    statements = """
        for i in T.Parallel(8):
            Y[0, i] = (i - 4) // 3
            Y[1, i] = (i - 4) % 3
            Y[2, i] = X[i] * X[i]
    """
    params = 'X: T.Tensor((8,), "int32"), Y: T.Tensor((3, 8), "int32")'
    x = np.arange(8, dtype=np.int32) + 2**16
    expected = [np.arange(-4, 4) // 3, np.arange(-4, 4) % 3, (x.astype(np.int64) ** 2).astype(np.int32)]
    np.testing.assert_array_equal(small(statements, params, x, np.zeros((3, 8), np.int32)), expected)


def test_conversions_round_and_saturate() -> None:
    statements = """
        for i in T.Parallel(6):
            Y[i] = T.cast(X[i], "int8")
            Z[i] = T.cast(T.cast(X[i], "float8_e4m3"), "float32")
    """
    params = 'X: T.Tensor((6,), "float32"), Y: T.Tensor((6,), "int8"), Z: T.Tensor((6,), "float32")'
    program = small_program(statements, params)
    x = np.array([1.9, -1.9, 300, -300, 1000, 17], np.float32)
    out = interpret(program, {"X": x, "Y": np.zeros(6, np.int8), "Z": np.zeros(6, np.float32)})
    np.testing.assert_array_equal(out["Y"], [1, -1, 300 - 256, 256 - 300, 1000 - 1024, 17])
    np.testing.assert_array_equal(out["Z"], [1.875, -1.875, 288, -288, 448, 16])


def test_a_stated_rounding_takes_the_neighbour_on_its_side() -> None:
    """Half a unit in the last place more than 1, and less than -1; a third; a root; of half precision, to nearest."""
    eps = float(np.finfo(np.float32).eps)
    found = small(
        """
        for i in T.Parallel(4):
            if i == 0:
                for j in T.serial(2):
                    Y[0, j] = T.ieee_add(X[j], X[j] * H[0], "rz")
                    Y[1, j] = T.ieee_add(X[j], X[j] * H[0], "ru")
                    Y[2, j] = T.ieee_add(X[j], X[j] * H[0], "rd")
                    Y[3, j] = T.ieee_fdiv(X[j], 3.0, "ru")
                    Y[4, j] = T.ieee_fmaf(X[j], X[j], H[0], "rz")
                    Y[5, j] = T.ieee_fsqrt(X[j] * X[j] * 2.0, "ru")
                    Y[6, j] = T.cast(T.ieee_mul(T.cast(X[j], "float16"), T.cast(H[1], "float16")), "float32")
        """,
        'X: T.Tensor((2,), "float32"), H: T.Tensor((2,), "float32"), Y: T.Tensor((7, 2), "float32")',
        np.array([1, -1], np.float32),
        np.array([eps / 2, 1 / 3], np.float32),
        np.zeros((7, 2), np.float32),
    )
    third, half_third = np.float32(1 / 3), np.float32(np.float16(1 / 3))
    assert float(third) > 1 / 3, "the nearest is the one above"
    root = np.float32(np.sqrt(2.0))
    assert float(root) < np.sqrt(2.0), "the nearest is the one below"
    root = np.nextafter(root, np.float32(2))
    expected = [[1, -1], [1 + eps, -1], [1, -1 - eps], [third, -np.nextafter(third, np.float32(0))], [1, 1], [root] * 2]
    np.testing.assert_array_equal(found, np.array([*expected, [half_third, -half_third]], np.float32))


def test_each_thread_leaves_a_loop_on_its_own() -> None:
    statements = """
        tx = T.get_thread_binding()
        total = T.alloc_var("int32", init=0)
        for k in T.serial(10):
            if k == 2:
                continue
            if k > tx:
                break
            total += k
        while total > 20:
            total -= 7
        Y[tx] = total
    """
    params = 'X: T.Tensor((32,), "int32"), Y: T.Tensor((32,), "int32")'
    sums = [sum(k for k in range(min(thread, 9) + 1) if k != 2) for thread in range(32)]
    expected = [total if total <= 20 else 14 + total % 7 for total in sums]
    zeros = np.zeros(32, np.int32)
    np.testing.assert_array_equal(small(statements, params, zeros, zeros, threads=32), expected)


def test_statements_outside_of_tiles_run_once_a_thread() -> None:
    statements = """
        tx = T.get_thread_binding()
        mine = T.alloc_local((2,), "int32")
        S = T.alloc_shared((64,), "int32")
        mine[0] = X[tx]
        mine[1] = tx
        S[63 - tx] = mine[0] * 2 + mine[1]
        T.sync_threads()
        Y[tx] = S[tx]
    """
    params = 'X: T.Tensor((64,), "int32"), Y: T.Tensor((64,), "int32")'
    x = RNG.integers(0, 99, 64).astype(np.int32)
    actual = small(statements, params, x, np.zeros(64, np.int32), threads=64)
    np.testing.assert_array_equal(actual, (2 * x + np.arange(64))[::-1])


def test_a_fragment_that_single_threads_use_is_each_ones_own() -> None:
    statements = """
        tx = T.get_thread_binding()
        mine = T.alloc_fragment((2,), "int32")
        for i in T.unroll(2):
            mine[i] = X[tx] + i
        {more}
        Y[tx] = mine[0] * mine[1]
    """
    params = 'X: T.Tensor((64,), "int32"), Y: T.Tensor((64,), "int32")'
    x = RNG.integers(0, 99, 64).astype(np.int32)
    actual = small(statements.format(more=""), params, x, np.zeros(64, np.int32), threads=64)
    np.testing.assert_array_equal(actual, x * (x + 1))
    with pytest.raises(CannotInterpret, match="mine, one element of which several threads write"):
        small(statements.format(more="T.copy(mine, Y[0:2])"), params, x, np.zeros(64, np.int32), threads=64)


def test_what_has_no_meaning_without_threads_is_refused() -> None:
    statements = """
        tx = T.get_thread_binding()
        S = T.alloc_shared((64, 64), "float32")
        T.copy(X[tx, 0], S)
        T.copy(S, Y)
    """
    params = 'X: T.Tensor((64, 64), "float32"), Y: T.Tensor((64, 64), "float32")'
    x = np.zeros((64, 64), np.float32)
    with pytest.raises(CannotInterpret, match="another place for each thread"):
        small(statements, params, x, x)


def test_some_threads_share_a_loop_as_all_do() -> None:
    statements = """
        tx = T.get_thread_binding()
        S = T.alloc_shared((8, 8), "float32")
        L = T.alloc_fragment((8, 8), "float32")
        sums = T.alloc_fragment((8,), "float32")
        T.copy(X, S)
        factor = T.alloc_var("float32")
        factor = T.if_then_else(tx < 32, 2, tx)
        if tx < 32:
            for i, j in T.Parallel(8, 8):
                L[i, j] = S[j, i] * factor
            T.reduce_sum(L, sums, dim=1)
            T.copy(sums, Y[0, :])
        elif tx < 64:
            for i in T.Parallel(8):
                Y[1, i] = S[i, 0]
        else:
            if tx % 2 == 0:
                Y[2, tx % 8] = 1
    """
    params = 'X: T.Tensor((8, 8), "float32"), Y: T.Tensor((3, 8), "float32")'
    x = RNG.integers(-9, 9, (8, 8)).astype(np.float32)
    found = small(statements, params, x, np.zeros((3, 8), np.float32), threads=96)
    np.testing.assert_array_equal(found, [x.sum(axis=0) * 2, x[:, 0], [1, 0] * 4])
    with pytest.raises(CannotInterpret, match="some of the threads"):
        small(statements.replace("tx < 32", "tx % 2 == 0"), params, x, np.zeros((3, 8), np.float32), threads=96)


RING = """
    tx = T.get_thread_binding()
    S = T.alloc_shared((2, 16), "float32")
    total = T.alloc_fragment((16,), "float32")
    there = T.alloc_barrier([128, 128])
    free = T.alloc_barrier([128, 128])
    {first}
        T.clear(total)
        for k in T.serial(5):
            T.barrier_wait(there[k % 2], k // 2 % 2)
            for i in T.Parallel(16):
                total[i] = total[i] * 2 + S[k % 2, i]
            T.barrier_arrive(free[k % 2])
        T.copy(total, Y)
    {second}
        for k in T.serial(5):
            T.barrier_wait(free[k % 2], (k // 2 + 1) % 2)
            {load}
            {announce}
"""
LOADS = (
    ("T.copy(X[k, :], S[k % 2, :])", "T.barrier_arrive(there[k % 2])"),
    (
        """if tx % 32 < 4:
                T.ptx_cp_async(T.access_ptr(S[k % 2, tx % 32 * 4], "w", 4), T.access_ptr(X[k, tx % 32 * 4], "r", 4), 4,
                               predicate=k < 9)""",
        "T.cp_async_barrier_noinc(there[k % 2])",
    ),
)


@pytest.mark.parametrize(("load", "announce"), LOADS)
@pytest.mark.parametrize("arms", [("if tx < 128:", "else:"), ("with T.ws(0):", "with T.ws(1):")])
def test_groups_of_threads_wait_for_one_another(arms: tuple[str, str], load: str, announce: str) -> None:
    """The one that uses what the other loads comes first in the text, and neither gets ahead of the other."""
    statements = RING.format(first=arms[0], second=arms[1], load=load, announce=announce)
    params = 'X: T.Tensor((5, 16), "float32"), Y: T.Tensor((16,), "float32")'
    x = RNG.integers(-9, 9, (5, 16)).astype(np.float32)
    if "ws" in arms[0]:
        statements = statements.replace("tx = T.get_thread_binding()", "tx = T.get_thread_binding() % 128")
    expected = (x * 2 ** np.arange(4, -1, -1)[:, None]).sum(axis=0)
    np.testing.assert_array_equal(small(statements, params, x, np.zeros(16, np.float32), threads=256), expected)
    stuck = statements.replace(announce, "pass")
    with pytest.raises(KernelFault, match="every group of threads waits"):
        small(stuck, params, x, np.zeros(16, np.float32), threads=256)


def test_named_barriers_order_groups_too() -> None:
    statements = """
        tx = T.get_thread_binding()
        S = T.alloc_shared((8,), "float32")
        last = T.alloc_var("int32")
        last = 7
        if tx < 32:
            T.sync_threads(3, 64)
            for i in T.Parallel(8):
                Y[i] = S[i] + 1
            last = 5
        elif tx < 64:
            T.copy(X, S)
            T.named_barrier_arrive(3, 64)
        Y[8 + tx // 32] = last
    """
    params = 'X: T.Tensor((8,), "float32"), Y: T.Tensor((11,), "float32")'
    x = RNG.integers(-9, 9, (8,)).astype(np.float32)
    found = small(statements, params, x, np.zeros(11, np.float32), threads=96)
    np.testing.assert_array_equal(found, [*(x + 1), 5, 7, 7])
    alone = statements.replace("T.named_barrier_arrive(3, 64)", "pass").replace("elif tx < 64", "if tx >= 32")
    with pytest.raises(KernelFault, match="every group of threads waits"):
        small(alone, params, x, np.zeros(11, np.float32), threads=96)
    between = alone.replace("if tx >= 32", "Y[0] = 0\n        if tx >= 32")
    with pytest.raises(CannotInterpret, match="of a later statement"):
        small(between, params, x, np.zeros(11, np.float32), threads=96)


@pytest.mark.parametrize("waits", [False, True])
def test_warpgroups_have_scalars_of_their_own(waits: bool) -> None:
    """What T.ws(0) assigns to a variable, T.ws(1) does not see; afterwards each thread has its own."""
    statements = f"""
        ready = T.alloc_barrier(128)
        last = T.alloc_var("int32")
        other = T.alloc_var("int32")
        last = 7
        other = 1
        with T.ws(0):
            last = last + 1
            for k in T.serial(3):
                other += last
            {"T.barrier_arrive(ready)" if waits else "pass"}
        with T.ws(1):
            {"T.barrier_wait(ready, 0)" if waits else "pass"}
            for i in T.Parallel(8):
                Y[i] = X[i] + last
            last = 5
        with T.ws(0):
            for i in T.Parallel(8):
                Y[8 + i] = last + other
        with T.ws(1):
            T.copy(X[0:8], Y[last + 11 : last + 19])
    """
    params = 'X: T.Tensor((8,), "float32"), Y: T.Tensor((24,), "float32")'
    x = RNG.integers(-9, 9, (8,)).astype(np.float32)
    found = small(statements, params, x, np.zeros(24, np.float32), threads=256)
    np.testing.assert_array_equal(found, [*(x + 7), *[8 + 25] * 8, *x])


@pytest.mark.parametrize("nested", [False, True])
def test_branches_of_threads_and_of_warpgroups_wait_for_one_another(nested: bool) -> None:
    """Next to one another, where one thread may take two and does the first one first; or one in the other's arms."""
    ready, wait = (
        "T.copy(X, S)\nT.barrier_arrive(ready)",
        "T.barrier_wait(ready, 0)\nfor i in T.Parallel(8):\n    Y[i] = S[i]",
    )
    if nested:
        branches = f"""
if tx < 128:
    with T.ws(0):
{indent(wait, " " * 8)}
else:
    with T.ws(1):
{indent(ready, " " * 8)}
"""
    else:
        branches = f"""
with T.ws(0):
{indent(wait, " " * 4)}
if tx >= 128 and tx < 160:
{indent(ready, " " * 4)}
    Y[tx - 120] += 1
"""
    statements = f"""
tx = T.get_thread_binding()
S = T.alloc_shared((8,), "float32")
ready = T.alloc_barrier({128 if nested else 32})
if tx >= 128:
    Y[tx - 120] = 3
{branches}
"""
    params = 'X: T.Tensor((8,), "float32"), Y: T.Tensor((136,), "float32")'
    x = RNG.integers(-9, 9, (8,)).astype(np.float32)
    found = small(statements, params, x, np.zeros(136, np.float32), threads=256)
    np.testing.assert_array_equal(found, [*x, *[3 if nested else 4] * 32, *[3] * 96])


def test_threads_copy_what_they_have_for_their_own() -> None:
    statements = """
        tx = T.get_thread_binding()
        own = T.alloc_local((4,), "float32")
        T.copy(X[tx // 4, (tx % 4) * 4 : (tx % 4 + 1) * 4], own)
        for k in T.serial(4):
            own[k] = own[k] * tx
        T.copy(own, Y[tx, 1:5])
    """
    params = 'X: T.Tensor((8, 14), "float16"), Y: T.Tensor((30, 6), "float32")'
    x = RNG.integers(-9, 9, (8, 14)).astype(np.float16)
    full = np.pad(x, ((0, 0), (0, 2))).reshape(32, 4) * np.arange(32)[:, None]
    found = small(statements, params, x, np.zeros((30, 6), np.float32), threads=32)
    np.testing.assert_array_equal(found, np.pad(full, ((0, 0), (1, 1)))[:30])


def test_blocks_that_meet_at_an_element_are_a_fault() -> None:
    params = 'X: T.Tensor((8,), "float32"), at: T.Tensor((4,), "int32"), Y: T.Tensor((8,), "float32")'
    stored = """
        for i in T.Parallel(2):
            Y[at[bx] + i] = X[i]
    """
    x, y = np.arange(8, dtype=np.float32), np.zeros(8, np.float32)
    apart, together = np.array([0, 2, 4, 6], np.int32), np.array([0, 2, 3, 6], np.int32)
    np.testing.assert_array_equal(small(stored, params, x, apart, y, grid="4"), [0, 1] * 4)
    with pytest.raises(KernelFault, match="blocks 1 and 2 meet at an element of Y"):
        small(stored, params, x, together, y, grid="4")
    added = """
        for i in T.Parallel(2):
            T.atomic_add(Y[at[bx] + i], X[i])
    """
    np.testing.assert_array_equal(small(added, params, x, together, y, grid="4"), [0, 1, 0, 1, 1, 0, 0, 1])


def test_a_division_by_zero_is_a_fault_where_it_happens() -> None:
    statements = """
        for i in T.Parallel(4):
            Y[i] = T.if_then_else(X[i] == 0, -1, 12 // X[i])
    """
    params = 'X: T.Tensor((4,), "int32"), Y: T.Tensor((4,), "int32")'
    x = np.array([0, 2, 5, -5], np.int32)
    np.testing.assert_array_equal(small(statements, params, x, np.zeros(4, np.int32)), [-1, 6, 2, -3])
    with pytest.raises(KernelFault, match="division by zero"):
        small(statements.replace("X[i] == 0", "X[i] == 9"), params, x, np.zeros(4, np.int32))


def test_views_have_shapes_of_run_time_sizes() -> None:
    statements = """
        flat = T.Tensor((M * 4,), "float32", X.data)
        for i in T.Parallel(4):
            Y[bx, i] = flat[bx * 4 + i] * 2
    """
    params = 'X: T.Tensor((M, 4), "float32"), Y: T.Tensor((M, 4), "float32")'
    x = RNG.integers(-9, 9, (3, 4)).astype(np.float32)
    actual = small(statements, params, x, np.zeros((3, 4), np.float32), grid="M", head='M = T.dynamic("M")')
    np.testing.assert_array_equal(actual, 2 * x)


def test_memory_may_be_used_again_as_another_type() -> None:
    statements = """
        S = T.alloc_shared((8, 16), "float16")
        V = T.view(S, shape=(8, 8), dtype="float32")
        T.copy(X, S)
        for i, j in T.Parallel(8, 8):
            Y[i, j] = S[i, 2 * j]
        T.copy(Y, V)
        for i, j in T.Parallel(8, 8):
            Y[i, j] = V[i, j] * 2
    """
    params = 'X: T.Tensor((8, 16), "float16"), Y: T.Tensor((8, 8), "float32")'
    x = RNG.integers(-9, 9, (8, 16)).astype(np.float16)
    np.testing.assert_array_equal(small(statements, params, x, np.zeros((8, 8), np.float32)), x[:, ::2] * 2)
    bits = small(statements.replace("T.copy(Y, V)", "pass"), params, x, np.zeros((8, 8), np.float32))
    np.testing.assert_array_equal(bits, x.view(np.float32) * 2)


def test_a_view_of_narrower_elements_has_their_bits() -> None:
    statements = """
        S = T.alloc_shared((4, 16), "float4_e2m1fn")
        T.copy(X, S)
        T.copy(T.view(S, shape=(4, 8), dtype="uint8"), Y)
    """
    params = 'X: T.Tensor((4, 16), "float32"), Y: T.Tensor((4, 8), "uint8")'
    x = np.tile(np.array([0.5, -6], np.float32), (4, 8))
    np.testing.assert_array_equal(small(statements, params, x, np.zeros((4, 8), np.uint8)), np.full((4, 8), 0xF1))


def test_each_warp_may_copy_a_row_of_its_own() -> None:
    statements = """
        tx = T.get_thread_binding()
        S = T.alloc_shared((2, 64), "float32")
        T.copy(X[3 - tx // 32 * 2, 0:64], S[tx // 32, 0:64])
        T.sync_threads()
        Y[tx] = S[tx // 32, tx]
    """
    params = 'X: T.Tensor((4, 64), "float32"), Y: T.Tensor((64,), "float32")'
    x = RNG.standard_normal((4, 64)).astype(np.float32)
    expected = np.concatenate((x[3, :32], x[1, 32:]))
    np.testing.assert_array_equal(small(statements, params, x, np.zeros(64, np.float32), threads=64), expected)


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ("T.__ffs(T.ballot_sync(tx >= 7))", [8] * 32),
        ("T.__ffs(tx % 8 * 4)", [0, 3, 4, 3, 5, 3, 4, 3] * 4),
        ("T.cast(T.__fns(T.cast(X[tx], 'uint32'), 0, 2), 'int32')", [1, 2, -1, 3] * 8),
        ("T.cast(T.match_all_sync(7), 'int32')", [-1] * 32),
        ("T.cast(T.match_all_sync(tx), 'int32')", [0] * 32),
        ("T.cast(T.syncthreads_or(False), 'int32')", [0] * 32),
    ],
)
def test_bits_of_votes(value: str, expected: list[int]) -> None:
    params = 'X: T.Tensor((32,), "int32"), Y: T.Tensor((32,), "int32")'
    x = np.array([0b11, 0b101, 0b100, 0b1010] * 8, np.int32)
    statements = f"""
        tx = T.get_thread_binding()
        Y[tx] = {value}
    """
    actual = small(statements, params, x, np.zeros(32, np.int32), threads=32)
    np.testing.assert_array_equal(actual, expected)


def test_a_turn_reads_what_a_fragment_held_before_the_loop_or_what_it_wrote_itself() -> None:
    statements = """
        S = T.alloc_fragment((5,), "int32")
        T.copy(X, S)
        for i in T.Parallel(5):
            if i < 4:
                S[i] = S[i + 1]
            else:
                S[i] = S[0] + S[i]
            Y[i] = S[4 - i]
    """
    params = 'X: T.Tensor((5,), "int32"), Y: T.Tensor((5,), "int32")'
    x = np.array([1, 2, 4, 8, 16], np.int32)
    np.testing.assert_array_equal(small(statements, params, x, np.zeros(5, np.int32)), [16, 8, 8, 2, 1])


def test_a_launch_has_variables_of_its_own() -> None:
    """What the threads of the first have for themselves, the elements of the second's loop have not."""
    text = """
import tilelang.language as T

@T.prim_func
def kernel(X: T.Tensor((64,), "int32"), Y: T.Tensor((64,), "int32"), Z: T.Tensor((8,), "int32")):
    with T.Kernel(1, threads=64) as bx:
        own = T.get_thread_binding() + 1
        Y[own - 1] = X[own - 1] * own
    with T.Kernel(1, threads=64) as bx:
        for i in T.Parallel(8):
            Z[i] = Y[i * 8]
"""
    (program,) = programs(None, text)
    x = np.arange(64, dtype=np.int32)
    found = interpret(program, {"X": x, "Y": np.zeros(64, np.int32), "Z": np.zeros(8, np.int32)})
    np.testing.assert_array_equal(found["Z"], (x * (x + 1))[::8])


def test_groups_meet_at_the_barrier_of_the_block_where_the_user_writes_all() -> None:
    text = """
import tilelang
import tilelang.language as T

@tilelang.jit(pass_configs={"tl.disable_thread_storage_sync": True})
def kernel():
    @T.prim_func
    def body(X: T.Tensor((64,), "int32"), Y: T.Tensor((64,), "int32")):
        with T.Kernel(1, threads=256) as bx:
            S = T.alloc_shared((64,), "int32")
            tx = T.get_thread_binding()
            if tx < 128:
                T.sync_threads()
                if tx < 64:
                    Y[tx] = S[63 - tx]
            else:
                if tx < 192:
                    S[tx - 128] = X[tx - 128]
                T.sync_threads()
    return body
"""
    (program,) = programs(None, text)
    x = np.arange(64, dtype=np.int32)
    np.testing.assert_array_equal(interpret(program, {"X": x, "Y": np.zeros(64, np.int32)})["Y"], x[::-1])


def test_a_private_array_that_a_loop_reads_is_still_there_after_it() -> None:
    statements = """
        own = T.alloc_local((2,), "float32")
        own[0] = X[0]
        for i in T.Parallel(64):
            Y[i] = own[0]
        for i in T.Parallel(32):
            Y[i] += own[0] * 2
    """
    x, y = np.array([3], np.float32), np.zeros(64, np.float32)
    found = small(statements, 'X: T.Tensor((1,), "float32"), Y: T.Tensor((64,), "float32")', x, y)
    np.testing.assert_array_equal(found, np.where(np.arange(64) < 32, 9, 3))


def test_threads_fill_reduce_and_share_private_arrays() -> None:
    """Each its own; a loop that threads share finds what all of them have."""
    statements = """
        tx = T.get_thread_binding()
        own = T.alloc_local((4,), "float32")
        best = T.alloc_local((1,), "float32")
        same = T.alloc_local((2,), "float32")
        T.fill(own, tx)
        if tx % 2 == 0:
            T.clear(own[2:4])
        own[1] = X[tx]
        T.reduce_max(own, best, dim=0)
        Y[0, tx] = best[0] + own[3]
        same[0] = X[0]
        for i in T.Parallel(64):
            Y[1, i] = same[0] + X[i]
        Y[2, tx] = same[0] + own[0]
    """
    x = RNG.integers(-99, 99, 64).astype(np.float32)
    params = 'X: T.Tensor((64,), "float32"), Y: T.Tensor((3, 64), "float32")'
    found = small(statements, params, x, np.zeros((3, 64), np.float32), threads=64)
    tx = np.arange(64)
    np.testing.assert_array_equal(found, [np.maximum(x, tx) + tx * (tx % 2), x + x[0], x[0] + tx])


def test_elements_of_a_loop_have_no_thread_of_their_own() -> None:
    statements = """
        tx = T.get_thread_binding()
        own = T.alloc_local((1,), "float32")
        own[0] = tx
        for i in T.Parallel(64):
            Y[i] = own[0]
    """
    with pytest.raises(CannotInterpret, match="the private array own in another loop"):
        small(statements, 'Y: T.Tensor((64,), "float32")', np.zeros(64, np.float32), threads=64)


def test_whole_warps_of_a_branch_shuffle() -> None:
    statements = """
        tx = T.get_thread_binding()
        Y[tx] = 0
        if tx // 32 != 1:
            Y[tx] = T.shfl_xor(X[tx], 1) + T.warp_reduce_max(X[tx])
        if tx < 40:
            {rest}
    """
    x = RNG.integers(0, 99, 128).astype(np.int32)
    params = 'X: T.Tensor((128,), "int32"), Y: T.Tensor((128,), "int32")'
    found = small(statements.format(rest="Y[tx] += 1"), params, x, np.zeros(128, np.int32))
    expected = (x.reshape(-1, 2)[:, ::-1].reshape(-1, 32) + x.reshape(-1, 32).max(axis=1, keepdims=True)).reshape(-1)
    tx = np.arange(128)
    np.testing.assert_array_equal(found, np.where(tx // 32 == 1, 0, expected) + (tx < 40))
    with pytest.raises(CannotInterpret, match="not all lanes"):
        small(statements.format(rest="Y[tx] = T.shfl_xor(X[tx], 1)"), params, x, np.zeros(128, np.int32))


def test_votes_of_a_block() -> None:
    statements = """
        tx = T.get_thread_binding()
        Y[tx] = T.{vote}(X[tx])
    """
    params = 'X: T.Tensor((128,), "int32"), Y: T.Tensor((128,), "int32")'
    x = (RNG.random(128) < 0.5).astype(np.int32)
    for vote, expected in (("syncthreads_count", x.sum()), ("syncthreads_or", 1), ("syncthreads_and", 0)):
        found = small(statements.format(vote=vote), params, x, np.zeros(128, np.int32))
        np.testing.assert_array_equal(found, np.full(128, expected))
    some = "tx = T.get_thread_binding()\nif tx < 64:\n    Y[tx] = T.syncthreads_count(X[tx])"
    with pytest.raises(CannotInterpret, match="not all threads"):
        small(some, params, x, np.zeros(128, np.int32))


def test_blocks_wait_for_one_another() -> None:
    """In each turn a block reads what the one before it wrote in the last; without a barrier that is a fault."""
    statements = """
        mine = T.alloc_shared((4,), "int32")
        T.copy(X[bx, :], mine)
        for k in T.serial(3):
            for i in T.Parallel(4):
                X[bx, i] = mine[i] * 2
            {first}
            for i in T.Parallel(4):
                mine[i] += X[(bx + 2) % 3, i]
            {second}
    """
    x = RNG.integers(0, 9, (3, 4)).astype(np.int32)
    expected = mine = x
    for _ in range(3):
        expected = mine * 2
        mine = mine + np.roll(expected, 1, axis=0)
    params = 'X: T.Tensor((3, 4), "int32")'
    barriers = {"first": "T.sync_grid()", "second": "T.sync_grid()"}
    np.testing.assert_array_equal(small(statements.format(**barriers), params, x, grid="3"), expected)
    with pytest.raises(KernelFault, match="meet at an element of X"):
        small(statements.format(**barriers | {"second": "pass"}), params, x, grid="3")


def test_lanes_match() -> None:
    statements = """
        tx = T.get_thread_binding()
        Y[tx] = T.match_any_sync(X[tx])
        Z[tx] = T.call_extern(T.uint32, "__match_any_sync", 0xFFFFFFFF, X[tx])
    """
    x = RNG.integers(0, 5, 64).astype(np.int32)
    params = ", ".join(
        f'{name}: T.Tensor((64,), "{dtype}")' for name, dtype in zip("XYZ", ("int32", "uint32", "uint32"), strict=True)
    )
    empty = np.zeros(64, np.uint32)
    program = small_program(statements, params, threads=64)
    found = interpret(program, {"X": x, "Y": empty, "Z": empty})
    warps = x.reshape(2, 32)
    expected = ((warps[:, :, None] == warps[:, None, :]) << np.arange(32)).sum(axis=2).ravel()
    np.testing.assert_array_equal(found["Y"], expected)
    np.testing.assert_array_equal(found["Z"], expected)


@pytest.mark.parametrize(
    ("function", "dtype", "numbers"),
    [
        ("decode_i2u_to_i8s", "int8", [3, 2, 1, 0, 0, 0, 0, 1, 1, 0, 0, 0, 0, 1, 2, 3]),
        ("decode_i4u_to_f16", "float16", [3, 1, 1, 8, 2, 4, 4, 12]),
        ("decode_fp4_to_bf16_twiddling", "bfloat16", [3, -0.0, -1, 0, -6, 0, 2, 0]),
    ],
)
def test_decoders_are_known_by_name(function: str, dtype: str, numbers: list[float]) -> None:
    """Bytes taken apart by hand: 0001.0011 0100.0010 1000.0001 1100.0100."""
    statements = f"""
        tx = T.get_thread_binding()
        T.import_source("template <class T, class U> __device__ void {function}(T* packed, U* plain) {{}}")
        packed = T.alloc_local((4,), "uint8")
        plain = T.alloc_local(({len(numbers)},), "{dtype}")
        for i in T.serial(4):
            packed[i] = X[tx, i]
        T.call_extern("handle", "{function}", T.access_ptr(packed, "r"), T.access_ptr(plain, "w"))
        for i in T.serial({len(numbers)}):
            Y[tx, i] = plain[i]
    """
    x = np.array([[0x13, 0x42, 0x81, 0xC4]] * 32, np.uint8)
    params = f'X: T.Tensor((32, 4), "uint8"), Y: T.Tensor((32, {len(numbers)}), "{dtype}")'
    found = small(statements, params, x, np.zeros((32, len(numbers)), np.float32), threads=32)
    np.testing.assert_array_equal(found[7], numbers)


def test_four_products_of_bytes_are_added_up() -> None:
    statements = """
        tx = T.get_thread_binding()
        total = T.alloc_local((1,), "int32")
        total[0] = 1
        for i in T.serial(2):
            T.dp4a(A[tx, i * 4], B[tx, i * 4], total[0])
        Y[tx] = total[0]
    """
    a, b = RNG.integers(-128, 128, (2, 32, 8)).astype(np.int8)
    params = 'A: T.Tensor((32, 8), "int8"), B: T.Tensor((32, 8), "int8"), Y: T.Tensor((32,), "int32")'
    found = small(statements, params, a, b, np.zeros(32, np.int32), threads=32)
    np.testing.assert_array_equal(found, 1 + (a.astype(np.int32) * b).sum(axis=1))


def test_random_numbers_are_those_of_philox() -> None:
    """Of its paper's test vector; each thread goes its own way, and a block's only thread from element to element."""
    np.testing.assert_array_equal(philox.numbers(0, 0, np.arange(4)), [0x6627E8D5, 0xE169C58D, 0xBC57AC4C, 0x9B00DBD8])
    statements = """
        tx = T.get_thread_binding()
        T.rng_init(7, bx, tx * 3)
        for i in T.serial(3):
            if (tx + i) % 2 == 0:
                Y[bx, tx * 3 + i] = T.rng_rand()
    """
    found = small(statements, 'Y: T.Tensor((2, 96), "uint32")', np.zeros((2, 96), np.uint32), grid="2", threads=32)
    place = np.arange(96)
    taken = (place // 3 + place % 3) % 2 == 0
    before = np.where(place // 3 % 2 == 0, place % 3 // 2, 0)  # numbers that the thread took
    expected = [np.where(taken, philox.numbers(7, block, place // 3 * 3 + before), 0) for block in (0, 1)]
    np.testing.assert_array_equal(found, expected)
    statements = """
        T.rng_init(7, 3, bx * 50)
        for i, j in T.Parallel(4, 16):
            if j < 10:
                Y[i, j] = T.rng_rand()
    """
    found = small(statements, 'Y: T.Tensor((4, 16), "uint32")', np.zeros((4, 16), np.uint32), threads=1)
    np.testing.assert_array_equal(found[:, :10].ravel(), philox.numbers(7, 3, np.arange(40)))


def test_normal_random_numbers_come_in_pairs() -> None:
    statements = """
        tx = T.get_thread_binding()
        T.rng_init(1, tx, 0)
        for i in T.serial(512):
            Y[tx, i] = T.rng_rand_float(dist="normal")
    """
    found = small(statements, 'Y: T.Tensor((64, 512), "float32")', np.zeros((64, 512), np.float32), threads=64)
    numbers = philox.numbers(1, np.arange(64)[:, None], np.arange(512)).astype(np.float32).astype(np.float64)
    u = (numbers + 0.5) / 2.0**32
    radius, angle = np.sqrt(-2 * np.log(u[:, ::2])), 2 * np.pi * u[:, 1::2]
    np.testing.assert_allclose(found[:, ::2], radius * np.sin(angle), atol=1e-5)
    np.testing.assert_allclose(found[:, 1::2], radius * np.cos(angle), atol=1e-5)


OLD_VALUES = """
        tx = T.get_thread_binding()
        Y[tx] = T.atomic_add(S[{place}], X[tx], return_prev=True)
        {more}
"""


def test_old_values_of_elements_that_one_thread_updates() -> None:
    params = 'X: T.Tensor((32,), "int32"), S: T.Tensor((32,), "int32"), Y: T.Tensor((32,), "int32")'
    x, sums = (RNG.integers(0, 99, 32).astype(np.int32) for _ in range(2))
    arguments = params, x, sums, np.zeros(32, np.int32)
    statements = OLD_VALUES.format(place="31 - tx", more="")
    np.testing.assert_array_equal(small(statements, *arguments, threads=32), sums[::-1])
    twice = OLD_VALUES.format(place="tx", more="Y[tx] = T.atomic_add(S[tx], 1, return_prev=True)")
    np.testing.assert_array_equal(small(twice, *arguments, threads=32), sums + x)
    for other in (
        OLD_VALUES.format(place="tx // 2", more=""),
        OLD_VALUES.format(place="tx", more="T.atomic_add(S[31 - tx], 1)"),
    ):
        with pytest.raises(CannotInterpret, match="which thread comes first"):
            small(other, *arguments, threads=32)
    with pytest.raises(CannotInterpret, match="which thread comes first"):
        small(statements, *arguments, threads=32, grid="2")
