"""What is said about single threads: shuffles, votes, reductions of scalars, random numbers."""

from pathlib import Path

import numpy as np
import pytest

from tests.host.kernels import load_body

RNG = np.random.default_rng(0)
THREADS = 96  # an odd number of warps
PARAMS = 'X: T.Tensor((M,), "{dtype}"), Y: T.Tensor((M,), "{out}")'


def by_thread(
    folder: Path, value: str, *, dtype: str = "float32", out: str = "", rows: int = 5 * THREADS, **more: object
):
    """A kernel in which each thread computes `value` of its own element x."""
    statements = f"""
        tx = T.get_thread_binding()
        i = bx * {THREADS} + tx
        x = X[i]
        y = {value}
        Y[i] = y
    """
    params = PARAMS.format(dtype=dtype, out=out or dtype)
    return load_body(
        folder, statements, params, grid=f"T.ceildiv(M, {THREADS})", arguments="M", threads=THREADS, M=rows, **more
    )


def warps(x: np.ndarray) -> np.ndarray:
    return x.reshape(-1, 32)


@pytest.mark.sweep(cases=1)
@pytest.mark.parametrize("dtype", ["float32", "float16", "int8", "int64"])
def test_shuffles(dtype: str, tmp_path: Path) -> None:
    value = "T.shfl_xor(x, 5) + T.shfl_sync(x, tx % 7) - T.shfl_up(x, 3) + T.shfl_down(x, 4, 8)"
    x = RNG.integers(-9, 10, 5 * THREADS).astype(dtype)
    lane = np.arange(32)
    own = warps(x)
    place = np.arange(5 * THREADS) % THREADS % 7
    picked = np.take_along_axis(own, warps(place), axis=1)
    up, down = own[:, np.where(lane < 3, lane, lane - 3)], own[:, np.where(lane % 8 + 4 < 8, lane + 4, lane)]
    expected = (own[:, lane ^ 5] + picked - up + down).reshape(-1)
    np.testing.assert_array_equal(by_thread(tmp_path, value, dtype=dtype)(x), expected)


def test_tvms_order_of_arguments(tmp_path: Path) -> None:
    x = RNG.standard_normal(5 * THREADS).astype(np.float32)
    kernel = by_thread(tmp_path, "T.tvm_warp_shuffle(0xFFFFFFFF, x, (tx ^ 1) % 32, 32, 32)")
    np.testing.assert_array_equal(kernel(x), x.reshape(-1, 2)[:, ::-1].reshape(-1))


def test_votes(tmp_path: Path) -> None:
    x = RNG.integers(0, 3, 5 * THREADS).astype(np.int32)
    x[:32], x[32:64] = 1, 0
    value = (
        "T.any_sync(x == 1) + 2 * T.all_sync(x == 1) + 4 * T.cast(T.ballot(x > 0) >> 31, 'int32')"
        " + 8 * T.cast(T.match_any_sync(x) & 1, 'int32') + 16 * T.cast(T.match_all_sync(x) & 1, 'int32')"
    )
    own = warps(x)
    row = [(own == 1).any(1), (own == 1).all(1), own[:, 31] > 0]
    expected = sum((value.astype(np.int32) << bit)[:, None] for bit, value in enumerate(row))
    expected = expected + 8 * (own == own[:, :1]) + 16 * (own == own[:, :1]).all(1, keepdims=True)
    np.testing.assert_array_equal(by_thread(tmp_path, value, dtype="int32")(x), expected.reshape(-1))


def test_a_part_of_a_warp(tmp_path: Path) -> None:
    """The first 12 lanes of each warp, in a branch that the others do not take, with masks known and computed."""
    statements = """
        tx = T.get_thread_binding(0)
        first = T.shift_left(1, lanes) - 1
        Y[tx] = -1
        if tx % 32 < 12:
            x = X[tx]
            x = x + T.shfl_xor(x, 1, mask=0xFFF)
            T.sync_warp(0xFFF)
            Y[tx] = (
                T.shfl_sync(x, 5, mask=first)
                + 100 * T.any_sync(x > 6, first)
                + 1000 * T.all_sync(x > -6, 0xFFF)
                + 10000 * T.cast(T.ballot_sync(x % 2 == 0, first), "int32")
                + T.cast(T.match_any_sync(x, 0xFFF), "int32")
            )
    """
    params = 'X: T.Tensor((64,), "int32"), lanes: T.int32, Y: T.Tensor((64,), "int32")'
    kernel = load_body(tmp_path, statements, params, threads=64)
    given = np.random.default_rng(8).integers(-4, 5, 64).astype(np.int32)
    expected = np.full(64, -1)
    for at in (0, 32):
        warp = given[at : at + 12]
        x = warp + warp.reshape(6, 2)[:, ::-1].reshape(12)
        bits = 1 << np.arange(12)
        same = [int(bits[x == own].sum()) for own in x]
        ballot = int(bits[x % 2 == 0].sum())
        expected[at : at + 12] = x[5] + 100 * (x > 6).any() + 1000 * (x > -6).all() + 10000 * ballot + same
    np.testing.assert_array_equal(kernel(given, 12), expected)


def test_votes_of_the_block(tmp_path: Path) -> None:
    x = RNG.integers(0, 2, 5 * THREADS).astype(np.int32)
    x[:THREADS], x[THREADS : 2 * THREADS] = 0, 1
    value = "T.syncthreads_count(x) * 4 + T.syncthreads_and(x) * 2 + T.syncthreads_or(x)"
    blocks = x.reshape(-1, THREADS)
    expected = blocks.sum(1) * 4 + blocks.all(1) * 2 + blocks.any(1)
    np.testing.assert_array_equal(by_thread(tmp_path, value, dtype="int32")(x), np.repeat(expected, THREADS))


@pytest.mark.sweep(cases=1)
@pytest.mark.parametrize("kind", ["sum", "max", "min"])
def test_reductions_of_a_warp(kind: str, tmp_path: Path) -> None:
    x = RNG.integers(-99, 100, 5 * THREADS).astype(np.float32)
    expected = np.repeat(getattr(warps(x), kind)(axis=1), 32)
    np.testing.assert_array_equal(by_thread(tmp_path, f"T.warp_reduce_{kind}(x)")(x), expected)


def test_bitwise_reductions_of_a_warp(tmp_path: Path) -> None:
    x = RNG.integers(0, 2**32, 5 * THREADS, dtype=np.uint32) | np.uint32(0x700)
    kernel = by_thread(tmp_path, "T.warp_reduce_bitand(x) ^ T.warp_reduce_bitor(x & 0xFF)", dtype="uint32")
    expected = np.bitwise_and.reduce(warps(x), 1) ^ np.bitwise_or.reduce(warps(x & 0xFF), 1)
    np.testing.assert_array_equal(kernel(x), np.repeat(expected, 32))


def test_indices_of_lanes_and_warps(tmp_path: Path) -> None:
    value = (
        "T.get_lane_idx() + 100 * T.get_warp_idx() + 1000 * T.get_warp_group_idx(16, 2) + 10000 * T.shuffle_elect(48)"
    )
    tx = np.tile(np.arange(THREADS), 5)
    expected = tx % 32 + 100 * (tx // 32) + 1000 * (tx // 32) + 10000 * (tx % 48 == 0)
    found = by_thread(
        tmp_path, value.replace("T.shuffle_elect(48)", "T.if_then_else(T.shuffle_elect(48), 1, 0)"), dtype="int32"
    )
    np.testing.assert_array_equal(found(np.zeros(5 * THREADS, np.int32)), expected)


@pytest.mark.sweep(cases=1)
@pytest.mark.parametrize(("combine", "numpy"), [("x + y", "add"), ("T.max(x, y)", "maximum")])
def test_the_reduction_over_a_thread_axis_that_gemv_kernels_write(combine: str, numpy: str, tmp_path: Path) -> None:
    statements = f"""
        own = T.alloc_local((1,), "float32")
        all = T.alloc_local((1,), "float32")
        tk, tn = T.get_thread_binding(0), T.get_thread_binding(1)
        own[0] = 0
        for k in T.serial(T.ceildiv(K, 8)):
            if k * 8 + tk < K:
                own[0] += X[bx * 4 + tn, k * 8 + tk]
        with T.attr(
            T.comm_reducer(lambda x, y: {combine}, [T.cast(0, "float32")]),
            "reduce_scope",
            T.reinterpret(T.uint64(0), dtype="handle"),
        ):
            T.evaluate(T.tvm_thread_allreduce(T.uint32(1), own[0], True, all[0], tk, dtype="handle"))
        if tk == 0:
            Y[bx * 4 + tn] = all[0]
    """
    params = 'X: T.Tensor((M, K), "float32"), Y: T.Tensor((M,), "float32")'
    kernel = load_body(
        tmp_path, statements, params, grid="T.ceildiv(M, 4)", arguments="M, K", threads=(8, 4), M=11, K=37
    )
    x = RNG.integers(-9, 10, (11, 37)).astype(np.float32)
    parts = np.zeros((11, 40), np.float32)
    parts[:, :37] = x
    expected = getattr(np, numpy).reduce(parts.reshape(11, 5, 8).sum(axis=1), axis=1)
    np.testing.assert_array_equal(kernel(x), expected)


@pytest.mark.sweep(cases=1)
@pytest.mark.parametrize(("threads", "axis"), [((2, 32), 1), ((3, 32), 0), ((8, 12), 1), ((64, 1), 0), ((4, 3), 0)])
def test_the_reduction_over_threads_that_are_no_neighbours(threads: tuple[int, int], axis: int, tmp_path: Path) -> None:
    statements = """
        own = T.alloc_local((1,), "int32")
        all = T.alloc_local((1,), "int32")
        tx, ty = T.get_thread_binding(0), T.get_thread_binding(1)
        for k in T.serial(3):
            own[0] = X[k, ty, tx]
            with T.attr(T.comm_reducer(lambda x, y: x + y, [0]), "reduce_scope", T.reinterpret(T.uint64(0), "handle")):
                T.evaluate(T.tvm_thread_allreduce(T.uint32(1), own[0], True, all[0], AXIS, dtype="handle"))
            Y[k, ty, tx] = all[0]
    """
    shape = (3, threads[1], threads[0])
    params = f'X: T.Tensor({shape}, "int32"), Y: T.Tensor({shape}, "int32")'
    kernel = load_body(tmp_path, statements.replace("AXIS", ["tx", "ty"][axis]), params, threads=threads)
    x = RNG.integers(-9, 10, shape, dtype=np.int32)
    np.testing.assert_array_equal(kernel(x), np.broadcast_to(x.sum(axis=2 - axis, keepdims=True), shape))


def philox(counter: list[int], key: list[int]) -> list[int]:
    """Philox-4x32-10, after Salmon et al., table 2 and section 3."""
    c, k = list(counter), list(key)
    for _ in range(10):
        first, second = 0xD2511F53 * c[0], 0xCD9E8D57 * c[2]
        c = [
            (second >> 32) ^ c[1] ^ k[0], second & 0xFFFFFFFF,
            (first >> 32) ^ c[3] ^ k[1], first & 0xFFFFFFFF,
        ]  # fmt: skip
        k = [(k[0] + 0x9E3779B9) & 0xFFFFFFFF, (k[1] + 0xBB67AE85) & 0xFFFFFFFF]
    return c


def numbers(seed: int, sequence: int, offset: int, count: int) -> list[int]:
    found = []
    for place in range(offset, offset + count):
        block = place // 4
        counter = [block & 0xFFFFFFFF, block >> 32, sequence & 0xFFFFFFFF, sequence >> 32]
        found.append(philox(counter, [seed & 0xFFFFFFFF, seed >> 32])[place % 4])
    return found


def test_the_generator_of_this_file_is_philox() -> None:
    """The known answers of the authors' own library, Random123, kat_vectors."""
    assert philox([0] * 4, [0] * 2) == [0x6627E8D5, 0xE169C58D, 0xBC57AC4C, 0x9B00DBD8]
    assert philox([0xFFFFFFFF] * 4, [0xFFFFFFFF] * 2) == [0x408F276D, 0x41C83B0E, 0xA20BC7C6, 0x6D5451FD]


def test_random_numbers(tmp_path: Path) -> None:
    statements = """
        tx = T.get_thread_binding()
        T.rng_init(seed, off=FIRST)
        for i in T.serial(9):
            Y[bx * 32 + tx, i] = T.rng_rand()
    """
    params = 'seed: T.int32, Y: T.Tensor((M, 9), "uint32")'
    options = {"grid": "T.ceildiv(M, 32)", "arguments": "M", "threads": 32, "head": "FIRST = 5\n"}
    kernel = load_body(tmp_path, statements, params, **options, M=70)  # type: ignore[arg-type]
    expected = [numbers(1234567, thread, 5, 9) for thread in range(70)]
    np.testing.assert_array_equal(kernel(1234567), np.array(expected, np.uint32))


def test_random_numbers_of_distributions(tmp_path: Path) -> None:
    statements = """
        tx = T.get_thread_binding()
        T.rng_init(7, bx * 32 + tx, 1)
        Y[bx * 32 + tx, 0] = T.rng_rand_float()
        Y[bx * 32 + tx, 1] = T.rng_rand_float(dist="normal")
        Y[bx * 32 + tx, 2] = T.rng_rand_float(dist="normal")
        Y[bx * 32 + tx, 3] = T.rng_rand_float(dist="uniform")
    """
    params = 'Y: T.Tensor((M, 4), "float32")'
    kernel = load_body(tmp_path, statements, params, grid="T.ceildiv(M, 32)", arguments="M", threads=32, M=70)
    drawn = np.array([numbers(7, thread, 1, 4) for thread in range(70)], np.float64) * 2.0**-32 + 2.0**-33
    radius = np.sqrt(-2 * np.log(drawn[:, 1]))
    angle = drawn[:, 2] * 2 * np.pi
    expected = np.stack([drawn[:, 0], np.sin(angle) * radius, np.cos(angle) * radius, drawn[:, 3]], axis=1)
    np.testing.assert_allclose(kernel(), expected, rtol=1e-5, atol=1e-5)


@pytest.mark.sweep(cases=1)
@pytest.mark.parametrize("dtype", ["int32", "int64", "int16"])
def test_quotients_and_remainders_round_down_whatever_the_signs(dtype: str, tmp_path: Path) -> None:
    statements = """
        for i in T.Parallel(128):
            if i < M:
                Q[i] = A[i] // B[i]
                R[i] = A[i] % B[i]
    """
    params = ", ".join(f'{name}: T.Tensor((M,), "{dtype}")' for name in "ABRQ")
    kernel = load_body(tmp_path, statements, params, arguments="M", M=100)
    a = np.repeat(np.arange(-10, 10, dtype=dtype), 5)
    b = np.tile(np.array([-7, -2, 1, 3, 9], dtype), 20)
    remainder = np.zeros_like(a)
    np.testing.assert_array_equal(kernel(a, b, remainder), a // b)
    np.testing.assert_array_equal(remainder, a % b)


@pytest.mark.sweep(cases=1)
@pytest.mark.parametrize("dtype", ["float32", "float16", "float64"])
def test_quotients_and_remainders_of_floats(dtype: str, tmp_path: Path) -> None:
    statements = """
        for i in T.Parallel(128):
            if i < M:
                Q[i] = A[i] // B[i] + A[i] % 2.5
                R[i] = A[i] % B[i]
    """
    params = ", ".join(f'{name}: T.Tensor((M,), "{dtype}")' for name in "ABRQ")
    kernel = load_body(tmp_path, statements, params, arguments="M", M=100)
    a = np.repeat(np.arange(-10, 10).astype(dtype), 5)
    b = np.tile(np.array([-7, -2, 0.5, 4, 8], dtype), 20)
    remainder = np.zeros_like(a)
    np.testing.assert_array_equal(kernel(a, b, remainder), np.floor(a / b) + a % np.array(2.5, dtype))
    np.testing.assert_array_equal(remainder, a % b)


def test_coordinates_of_an_element(tmp_path: Path) -> None:
    statements = """
        tx = T.get_thread_binding()
        i, j, k = T.index_to_coordinates(tx, (4, 3, 8))
        Y[tx] = X[i, j, k]
    """
    params = 'X: T.Tensor((4, 3, 8), "float32"), Y: T.Tensor((96,), "float32")'
    x = RNG.standard_normal((4, 3, 8)).astype(np.float32)
    np.testing.assert_array_equal(load_body(tmp_path, statements, params, threads=96)(x), x.reshape(-1))


def test_a_macro_assigns_to_what_it_is_given_by_reference(tmp_path: Path) -> None:
    head = """
@T.macro
def count(x: T.Ref, y, by):
    y = y + by
    x = x + y
"""
    statements = """
        tx = T.get_thread_binding()
        total = T.alloc_var("int32", init=1)
        step = T.alloc_var("int32", init=10)
        for i in T.serial(3):
            count(total, step, i)
        Y[tx] = total * 100 + step
    """
    kernel = load_body(tmp_path, statements, 'Y: T.Tensor((32,), "int32")', threads=32, head=head)
    np.testing.assert_array_equal(kernel(), np.full(32, (1 + 10 + 11 + 12) * 100 + 10))


def test_a_block_of_a_few_threads_that_work_each_by_itself(tmp_path: Path) -> None:
    statements = """
        S = T.alloc_shared((12,), "float32")
        T.copy(X[bx * 12], S)
        for i in T.Parallel(12):
            Y[bx * 12 + i] = S[11 - i] * 2.0
    """
    params = 'X: T.Tensor((M,), "float32"), Y: T.Tensor((M,), "float32")'
    kernel = load_body(tmp_path, statements, params, grid="T.ceildiv(M, 12)", arguments="M", threads=5, M=40)
    x = RNG.standard_normal(40).astype(np.float32)
    whole = np.zeros(48, np.float32)
    whole[:40] = x
    np.testing.assert_array_equal(kernel(x), 2 * whole.reshape(4, 12)[:, ::-1].reshape(-1)[:40])


def test_threads_that_are_done_leave(tmp_path: Path) -> None:
    """Single threads past the end, and whole blocks without work: with tiles behind it, which all others do."""
    statements = f"""
        tx = T.get_thread_binding()
        if skip[bx] > 0:
            if skip[bx] > 1:
                for i in T.Parallel({THREADS}):
                    Y[bx * {THREADS} + i] = -1
            T.thread_return()
        S = T.alloc_shared(({THREADS},), "float32")
        T.copy(X[bx * {THREADS}], S)
        if bx * {THREADS} + tx >= M:
            T.thread_return()
        else:
            Y[bx * {THREADS} + tx] = S[{THREADS} - 1 - tx] * 2
        Y[bx * {THREADS} + tx] += 1
    """
    params = 'skip: T.Tensor((T.ceildiv(M, 96),), "int32"), X: T.Tensor((M,), "float32"), Y: T.Tensor((M,), "float32")'
    kernel = load_body(tmp_path, statements, params, grid="T.ceildiv(M, 96)", arguments="M", threads=THREADS)
    x, y = RNG.standard_normal(4 * THREADS - 10).astype(np.float32), np.zeros(4 * THREADS - 10, np.float32)
    kernel(np.array([0, 1, 2, 0], np.int32), x, y)
    tiles = np.concatenate([x, np.zeros(10, np.float32)]).reshape(4, THREADS)[:, ::-1] * 2 + 1
    tiles[1], tiles[2] = 0, -1
    np.testing.assert_array_equal(y, tiles.ravel()[: x.size])


def test_a_loop_that_threads_take_as_often_as_they_need_has_no_barrier(tmp_path: Path) -> None:
    """Each thread comes back to rows of its own: the others have left the loop."""
    statements = """
        tx = T.get_thread_binding()
        for i in T.serial(tx, M, 96):
            for j in T.serial(1, 4):
                Y[i, j] = Y[i, j - 1] * 2
    """
    kernel = load_body(tmp_path, statements, 'Y: T.Tensor((M, 4), "float32")', arguments="M", threads=THREADS)
    y = RNG.integers(-9, 10, (THREADS + 5, 4)).astype(np.float32)
    expected = y[:, :1] * [1, 2, 4, 8]
    kernel(y)
    np.testing.assert_array_equal(y, expected)
    assert "sync_threads" not in kernel.source
