"""What products on wgmma may look like beyond half: 8-bit operands, and columns shared among warpgroups."""

import re
from pathlib import Path

import ml_dtypes
import numpy as np
import pytest

import tile2cu
from tests.host.kernels import load_body
from tile2cu_runtime import CheckError, Kernel, load_kernel

RNG = np.random.default_rng(7)

GEMM = """
        A_shared = T.alloc_shared(({rows}, {step}), {dtype!r})
        B_shared = T.alloc_shared(({cols}, {step}), {dtype!r})
        C_local = T.alloc_fragment(({rows}, {cols}), {sums!r})
        T.clear(C_local)
        for ko in T.Pipelined(T.ceildiv(K, {step}), num_stages=2):
            T.copy(A[by * {rows}, ko * {step}], A_shared)
            T.copy(B[bx * {cols}, ko * {step}], B_shared)
            T.gemm(A_shared, B_shared, C_local, transpose_B=True, policy=T.GemmWarpPolicy.{policy})
        T.copy(C_local, C[by * {rows}, bx * {cols}])
"""


@pytest.mark.sweep(cases=1)
@pytest.mark.parametrize(
    ("dtype", "sums", "numpy"),
    [
        ("float8_e4m3", "float32", ml_dtypes.float8_e4m3fn),
        ("float8_e5m2", "float32", ml_dtypes.float8_e5m2),
        ("int8", "int32", np.int8),
        ("uint8", "int32", np.uint8),
        ("float16", "float32", np.float16),
        ("float16", "float16", np.float16),
        ("float32", "float32", np.float32),
        ("tfloat32", "float32", np.float32),
    ],
)
def test_gemm(dtype: str, sums: str, numpy: object, tmp_path: Path) -> None:
    """Ragged sizes; half shares its columns between two warpgroups, each of which has all 64 rows."""
    rows, cols, step, m, n, k = 64, 64, 64, 150, 136, 208
    policy, threads = ("FullCol", 256) if dtype == "float16" and sums == "float32" else ("Square", 128)
    body = GEMM.format(rows=rows, cols=cols, step=step, dtype=dtype, sums=sums, policy=policy)
    kernel = load_body(
        tmp_path,
        body,
        f"A: T.Tensor((M, K), {dtype!r}), B: T.Tensor((N, K), {dtype!r}), C: T.Tensor((M, N), {sums!r})",
        grid=f"T.ceildiv(N, {cols}), T.ceildiv(M, {rows})",
        blocks="(bx, by)",
        arguments="M, N, K",
        target="cuda:sm_90a",
        threads=threads,
        M=m,
        N=n,
        K=k,
    )
    low = 0 if dtype == "uint8" else -4
    a, b = (RNG.integers(low, 5, shape).astype(numpy) for shape in ((m, k), (n, k)))
    np.testing.assert_array_equal(kernel(a, b).astype(np.float64), a.astype(np.float64) @ b.astype(np.float64).T)
    assert "tl::TmaPipeline" in kernel.source and "tl::WgmmaAccumulator<64, 64, " in kernel.source


@pytest.mark.nightly
def test_floats_are_read_as_on_mma_sync(tmp_path: Path) -> None:
    """Both ignore the low 13 bits of an operand."""
    body = GEMM.format(rows=64, cols=64, step=32, dtype="float32", sums="float32", policy="Square")
    params = 'A: T.Tensor((M, K), "float32"), B: T.Tensor((N, K), "float32"), C: T.Tensor((M, N), "float32")'
    launch = {"grid": "T.ceildiv(N, 64), T.ceildiv(M, 64)", "blocks": "(bx, by)", "arguments": "M, N, K"}
    a, b = (RNG.standard_normal(shape).astype(np.float32) for shape in ((70, 52), (72, 52)))
    read = [(each.view(np.uint32) & np.uint32(0xFFFFE000)).view(np.float32).astype(np.float64) for each in (a, b)]
    expected = read[0] @ read[1].T
    for target, product in (("cuda:sm_80", "MmaAccumulator"), ("cuda:sm_90a", "WgmmaAccumulator")):
        kernel = load_body(tmp_path, body, params, target=target, **launch)
        assert f"tl::{product}<64, 64, " in kernel.source
        np.testing.assert_allclose(kernel(a, b), expected, rtol=0, atol=2e-5)
    assert np.abs(a.astype(np.float64) @ b.astype(np.float64).T - expected).max() > 1e-3


def test_rows_that_tma_does_not_reach_leave_from_registers(tmp_path: Path) -> None:
    """One text for any N, as only the result's rows are N long; TMA may still read a tile when the next one is made."""
    kernel = load_body(
        tmp_path,
        """
        A_shared = T.alloc_shared((64, 64), "float16")
        B_shared = T.alloc_shared((64, 64), "float16")
        C_local = T.alloc_fragment((64, 64), "float32")
        for tile in T.serial(bx, T.ceildiv(M, 64) * T.ceildiv(N, 64), 2):
            T.clear(C_local)
            for ko in T.Pipelined(T.ceildiv(K, 64), num_stages=2):
                T.copy(A[tile // T.ceildiv(N, 64) * 64, ko * 64], A_shared)
                T.copy(B[tile % T.ceildiv(N, 64) * 64, ko * 64], B_shared)
                T.gemm(A_shared, B_shared, C_local, transpose_B=True)
            T.copy(C_local, C[tile // T.ceildiv(N, 64) * 64, tile % T.ceildiv(N, 64) * 64])
        """,
        'A: T.Tensor((M, K), "float16"), B: T.Tensor((N, K), "float16"), C: T.Tensor((M, N), "float16")',
        grid="2",
        arguments="M, N, K",
        target="cuda:sm_90a",
        threads=128,
    )
    assert "if (K % 8 != 0) return TL_NOT_SUPPORTED;" in kernel.source
    for m, n, k in ((150, 136, 72), (150, 135, 72), (70, 130, 8), (1, 1, 8)):
        a, b = (RNG.integers(-2, 3, shape).astype(np.float16) for shape in ((m, k), (n, k)))
        found = kernel(a, b)
        np.testing.assert_array_equal(found, a.astype(np.float64) @ b.astype(np.float64).T)


LATENT = """
        Q_shared = T.alloc_shared((64, 128), "float16")
        KV_shared = T.alloc_shared((64, 128), "float16")
        S_shared = T.alloc_shared((64, 64), "float16")
        acc_s = T.alloc_fragment((64, 64), "float32")
        P = T.alloc_fragment((64, 64), "float16")
        acc_o = T.alloc_fragment((64, 128), "float32")
        highest = T.alloc_fragment((64,), "float32")
        before = T.alloc_fragment((64,), "float32")
        total = T.alloc_fragment((64,), "float32")
        part = T.alloc_fragment((64,), "float32")
        T.copy(Q, Q_shared)
        T.clear(acc_o)
        T.clear(total)
        T.fill(highest, -T.infinity("float32"))
        for k in T.Pipelined(T.ceildiv(L, 64), num_stages=2):
            T.copy(KV[k * 64, 0], KV_shared)
            T.gemm(Q_shared, KV_shared, acc_s, transpose_B=True, policy=T.GemmWarpPolicy.FullCol, clear_accum=True)
            for i, j in T.Parallel(64, 64):
                acc_s[i, j] = T.if_then_else(k * 64 + j < L, acc_s[i, j] * 0.125, -T.infinity("float32"))
            T.copy(highest, before)
            T.reduce_max(acc_s, highest, dim=1, clear=False)
            for i, j in T.Parallel(64, 64):
                acc_s[i, j] = T.exp(acc_s[i, j] - highest[i])
            T.reduce_sum(acc_s, part, dim=1)
            T.copy(acc_s, S_shared)
            for i in T.Parallel(64):
                total[i] = total[i] * T.exp(before[i] - highest[i]) + part[i]
            for i, j in T.Parallel(64, 128):
                acc_o[i, j] *= T.exp(before[i] - highest[i])
            {second}
        for i, j in T.Parallel(64, 128):
            acc_o[i, j] /= total[i]
        T.copy(acc_o, O)
"""
FROM_SHARED = "T.gemm(S_shared, KV_shared, acc_o, policy=T.GemmWarpPolicy.FullCol)"
FROM_REGISTERS = "T.copy(S_shared, P)\n            T.gemm(P, KV_shared, acc_o, policy=T.GemmWarpPolicy.FullCol)"
COMPUTED = FROM_REGISTERS.replace(
    "T.copy(S_shared, P)", "for i, j in T.Parallel(64, 64):\n                P[i, j] = T.max(S_shared[i, j], 0)"
)


@pytest.mark.sweep(cases=1)
@pytest.mark.parametrize("second", [FROM_SHARED, FROM_REGISTERS, COMPUTED], ids=["shared", "registers", "computed"])
@pytest.mark.parametrize("length", [64, 128, 150])
def test_warpgroups_share_scores(second: str, length: int, tmp_path: Path) -> None:
    """Attention whose rows are shared by two warpgroups: sums and maxima meet in shared memory behind the producer.

    Where the second product reads the shared tile, or a copy of it, each computes the scores of every other turn
    instead.
    """
    kernel = load_body(
        tmp_path,
        LATENT.format(second=second),
        'Q: T.Tensor((64, 128), "float16"), KV: T.Tensor((L, 128), "float16"), O: T.Tensor((64, 128), "float32")',
        arguments="L",
        target="cuda:sm_90a",
        threads=256,
        L=length,
    )
    q, kv = RNG.standard_normal((64, 128)).astype(np.float16), RNG.standard_normal((length, 128)).astype(np.float16)
    scores = q.astype(np.float64) @ kv.astype(np.float64).T * 0.125
    weights = np.exp(scores - scores.max(axis=1, keepdims=True))
    expected = weights / weights.sum(axis=1, keepdims=True) @ kv.astype(np.float64)
    np.testing.assert_allclose(kernel(q, kv), expected, atol=2e-3)
    assert "tl::WgmmaAccumulator<64, 128, 1, threads / 128>" in kernel.source
    dealt = second != COMPUTED
    assert ("tl::store_fragment(highest, highest_handed);" in kernel.source) == dealt
    assert kernel.source.count("tl::copy(highest, before);") == 1 + dealt, "both know the maximum before"
    assert ("tl::allreduce_sum<threads>(total, total_handed);" in kernel.source) == dealt
    assert ("tl::ReduceWorkspace<float, 64, 2, threads" in kernel.source) != dealt
    assert kernel.source.count("start_acc_o(k);") == 2 * dealt, "each warpgroup has the product once"


@pytest.mark.sweep(cases=1)
@pytest.mark.parametrize("start", ["-", ""], ids=["from -inf", "from inf"])
def test_warps_whose_maxima_stay_scale_nothing(start: str, tmp_path: Path) -> None:
    """The first warp's maxima never change after a turn, the second's always do, the others' in every other turn.

    Equal but infinite ones scale by no number.
    """
    factor = "for i in T.Parallel(64):\n                factor[i] = T.exp(before[i] - highest[i])\n            "
    sums = "for i in T.Parallel(64):\n                total[i] = "
    body = LATENT.format(second=FROM_SHARED).replace("T.exp(before[i] - highest[i])", "factor[i]")
    body = body.replace(sums, factor + sums).replace("-T.infinity", f"{start}T.infinity", 1)
    if not start:
        body = body.replace("acc_o[i, j] /= total[i]", "acc_o[i, j] *= 2")
    kernel = load_body(
        tmp_path,
        '\n        factor = T.alloc_fragment((64,), "float32")' + body,
        'Q: T.Tensor((64, 128), "float16"), KV: T.Tensor((L, 128), "float16"), O: T.Tensor((64, 128), "float32")',
        arguments="L",
        target="cuda:sm_90a",
        threads=256,
        L=330,
    )
    q, kv = RNG.standard_normal((64, 128)), RNG.standard_normal((330, 128))
    turn = np.arange(330) // 64
    q[:16], q[16:32, 0], kv[:, 0] = 0, 8, 2 * turn
    q[32:, 1], kv[:, 1] = 8, 2 * (turn // 2)
    q, kv = q.astype(np.float16), kv.astype(np.float16)
    scores = q.astype(np.float64) @ kv.astype(np.float64).T * 0.125
    weights = np.exp(scores - scores.max(axis=1, keepdims=True))
    expected = weights / weights.sum(axis=1, keepdims=True) @ kv.astype(np.float64)
    np.testing.assert_allclose(kernel(q, kv), expected if start else np.full((64, 128), np.nan), atol=8e-3)
    assert re.search(r"if \(tl::any_changed\(before_(\w+), highest_\1\)\) {", kernel.source)


def test_results_are_staged_where_an_operand_was(tmp_path: Path) -> None:
    """There is no room for a staging tile but Q_shared's; without the barrier before it the engine finds a race."""
    scaled = (
        "total[i] *= T.exp(before[i] - highest[i])\n                total[i] += part[i]"  # no sum that adds up at last
    )
    kernel = load_body(
        tmp_path,
        LATENT.format(second=FROM_SHARED)
        .replace("128", "512")
        .replace("total[i] = total[i] * T.exp(before[i] - highest[i]) + part[i]", scaled),
        'Q: T.Tensor((64, 512), "float16"), KV: T.Tensor((L, 512), "float16"), O: T.Tensor((64, 512), "float16")',
        arguments="L",
        target="cuda:sm_90a",
        threads=256,
        L=150,
    )
    q, kv = RNG.standard_normal((64, 512)).astype(np.float16), RNG.standard_normal((150, 512)).astype(np.float16)
    wide = kv.astype(np.float64)
    scores = q.astype(np.float64) @ wide.T * 0.125
    weights = np.exp(scores - scores.max(axis=1, keepdims=True))
    np.testing.assert_allclose(kernel(q, kv), weights / weights.sum(axis=1, keepdims=True) @ wide, atol=4e-3)
    barrier = "  tl::sync_readers<threads>();\n"
    assert kernel.source.count(barrier) == 1 and "acc_o_staging" in kernel.source
    (emitted,) = tile2cu.emit(tmp_path / "small.py", target="cuda:sm_90a", L=150).values()
    for name, text in emitted.files.items():
        (tmp_path / name).write_text(text.replace(barrier, ""), encoding="utf-8")
    with pytest.raises(CheckError, match="race"):
        load_kernel(tmp_path / "small.cu", device="cpu", check=True)(q, kv)


def test_without_wgmma_tma_feeds_mma_sync(tmp_path: Path) -> None:
    """sm_100a: two products a turn on mma.sync, from slots that the producer warp fills."""
    kernel = load_body(
        tmp_path,
        """
        Q_shared = T.alloc_shared((64, 64), "float16")
        K_shared = T.alloc_shared((32, 64), "float16")
        S = T.alloc_fragment((64, 32), "float32")
        P = T.alloc_fragment((64, 32), "float16")
        C_local = T.alloc_fragment((64, 64), "float32")
        T.clear(C_local)
        T.copy(Q[bx * 64, 0], Q_shared)
        for k in T.Pipelined(T.ceildiv(L, 32), num_stages=3):
            T.copy(KV[k * 32, 0], K_shared)
            T.gemm(Q_shared, K_shared, S, transpose_B=True, clear_accum=True, policy=T.GemmWarpPolicy.FullRow)
            T.copy(S, P)
            T.gemm(P, K_shared, C_local, policy=T.GemmWarpPolicy.FullRow)
        T.copy(C_local, C[bx * 64, 0])
        """,
        'Q: T.Tensor((M, 64), "float16"), KV: T.Tensor((L, 64), "float16"), C: T.Tensor((M, 64), "float32")',
        grid="T.ceildiv(M, 64)",
        arguments="M, L",
        target="cuda:sm_100a",
        threads=64,
        M=100,
        L=150,
    )
    q, kv = (RNG.integers(-2, 3, shape).astype(np.float16) for shape in ((100, 64), (150, 64)))
    wide = kv.astype(np.float64)
    np.testing.assert_array_equal(kernel(q, kv), q.astype(np.float64) @ wide.T @ wide)
    assert "tl::TmaPipeline" in kernel.source and "tl::MmaAccumulator" in kernel.source
    assert "tl::AnyAlignment" not in kernel.source, "TMA's condition on the sizes aligns every row"


FOUR_BITS = 'X: T.Tensor((M, K), "float16"), W: T.Tensor((N, K // 2), "uint8"), C: T.Tensor((M, N), "float32")'


def assert_multiplies(kernel: Kernel, m: int, n: int, k: int) -> None:
    """That it computes X @ W^T for weights of 4 bits, less 8."""
    x = RNG.integers(-4, 5, (m, k)).astype(np.float16)
    w = RNG.integers(0, 256, (n, k // 2)).astype(np.uint8)
    weights = np.stack([w & 15, w >> 4], axis=-1).reshape(n, k).astype(np.float64) - 8
    np.testing.assert_array_equal(kernel(x, w), x.astype(np.float64) @ weights.T)


def test_a_product_is_in_flight_while_the_next_turn_writes_its_operand(tmp_path: Path) -> None:
    """Weights of 4 bits become half in shared memory, in two slots; each turn's product runs under the next turn."""
    kernel = load_body(
        tmp_path,
        """
        X_shared = T.alloc_shared((128, 64), "float16")
        packed = T.alloc_shared((64, 32), "uint8")
        W_shared = T.alloc_shared((64, 64), "float16")
        C_local = T.alloc_fragment((128, 64), "float32")
        T.clear(C_local)
        for k in T.Pipelined(T.ceildiv(K, 64), num_stages=3):
            T.copy(X[by * 128, k * 64], X_shared)
            T.copy(W[bx * 64, k * 32], packed)
            for i, j in T.Parallel(64, 64):
                bits = (packed[i, j // 2] >> T.cast(4 * (j % 2), "uint8")) & T.cast(15, "uint8")
                W_shared[i, j] = T.cast(T.cast(bits, "int32") - 8, "float16")
            T.gemm(X_shared, W_shared, C_local, transpose_B=True)
        T.copy(C_local, C[by * 128, bx * 64])
        """,
        FOUR_BITS,
        grid="T.ceildiv(N, 64), T.ceildiv(M, 128)",
        blocks="(bx, by)",
        arguments="M, N, K",
        target="cuda:sm_90a",
        threads=256,
        M=150,
        N=100,
        K=288,
    )
    assert_multiplies(kernel, 150, 100, 288)
    assert "tl::gemm_wait<1>();" in kernel.source and ", written_stages> W_shared;" in kernel.source
    assert "packed[k % num_stages](i, tl::floordiv<2>(j))" in kernel.source


def test_a_product_in_flight_reads_a_copy_of_the_operand_that_the_next_turn_writes(tmp_path: Path) -> None:
    """Weights of 4 bits become half in registers; turns are one, or more than the ring has slots."""
    kernel = load_body(
        tmp_path,
        """
        X_shared = T.alloc_shared((64, 64), "float16")
        packed = T.alloc_shared((128, 32), "uint8")
        W_local = T.alloc_fragment((128, 64), "float16")
        C_local = T.alloc_fragment((128, 64), "float32")
        T.clear(C_local)
        for k in T.Pipelined(T.ceildiv(K, 64), num_stages=3):
            T.copy(X[by * 64, k * 64], X_shared)
            T.copy(W[bx * 128, k * 32], packed)
            for i, j in T.Parallel(128, 64):
                bits = T.cast(packed[i, j // 2], "int32") >> (4 * (j % 2)) & 15
                W_local[i, j] = T.cast(bits - 8, "float16")
            T.gemm(W_local, X_shared, C_local, transpose_B=True)
        for i, j in T.Parallel(128, 64):
            C[by * 64 + j, bx * 128 + i] = C_local[i, j]
        """,
        FOUR_BITS,
        grid="T.ceildiv(N, 128), T.ceildiv(M, 64)",
        blocks="(bx, by)",
        arguments="M, N, K",
        target="cuda:sm_90a",
        threads=256,
    )
    assert "tl::copy(W_local, W_local_in_flight);" in kernel.source and "compute_W_local(k);" in kernel.source
    for k in (32, 64, 288):  # turns: one, one, five
        assert_multiplies(kernel, 70, 140, k)


DEALT = """
    Q_shared = T.alloc_shared(({rows}, 128), "float16")
    KV_shared = T.alloc_shared((32, 128), "float16")
    S_shared = T.alloc_shared(({rows}, 32), "float16")
    S = T.alloc_fragment(({rows}, 32), "float32")
    O = T.alloc_fragment(({rows}, 128), "float32")
    total = T.alloc_fragment(({rows},), "float32")
    sums = T.alloc_fragment(({rows},), "float32")
    T.clear(O)
    T.clear(total)
    T.copy(Q[bx * {rows}, 0], Q_shared)
    for k in T.Pipelined(T.ceildiv(L, 32), num_stages=3):
        T.copy(KV[k * 32, 0], KV_shared)
        T.gemm(Q_shared, KV_shared, S, transpose_B=True, clear_accum=True, policy=T.GemmWarpPolicy.FullCol)
        T.reduce_sum(S, sums, dim=1)
        for i in T.Parallel({rows}):
            total[i] = total[i] + sums[i]
        T.copy(S, S_shared)
        for i, j in T.Parallel({rows}, 128):
            O[i, j] += total[i]
        T.gemm(S_shared, KV_shared, O, policy=T.GemmWarpPolicy.FullCol)
    for i, j in T.Parallel({rows}, 128):
        O[i, j] += total[i]
    T.copy(O, C[bx * {rows}, 0])
"""


@pytest.mark.sweep(cases=1)
@pytest.mark.parametrize(("rows", "length"), [(64, 20), (128, 64), (64, 150)])
def test_two_warpgroups_take_turns(rows: int, length: int, tmp_path: Path) -> None:
    """One, two and five turns; what a turn leaves to the next goes from one warpgroup to the other."""
    params = 'Q: T.Tensor((M, 128), "float16"), KV: T.Tensor((L, 128), "float16"), C: T.Tensor((M, 128), "float32")'
    sizes = {"grid": f"T.ceildiv(M, {rows})", "arguments": "M, L", "threads": 256, "M": 100, "L": length}
    body = DEALT.format(rows=rows)
    kernel = load_body(tmp_path, body, params, target="cuda:sm_90a", **sizes)  # type: ignore[arg-type]
    q, kv = (RNG.integers(-1, 2, shape).astype(np.float16) for shape in ((100, 128), (length, 128)))
    expected, total = np.zeros((100, 128)), np.zeros((100, 1))
    for first in range(0, length, 32):
        keys = kv[first : first + 32].astype(np.float64)
        scores = q.astype(np.float64) @ keys.T
        total += scores.sum(axis=1, keepdims=True)
        expected += total + scores @ keys
    np.testing.assert_array_equal(kernel(q, kv), expected + total)
    assert "tl::named_barrier_arrive<threads>(tl::fragment_stored, k);" in kernel.source
    assert "tl::gemm_start_slab(Q_local, " in kernel.source, "the same in all turns, and small enough for registers"


@pytest.mark.sweep(cases=1)
@pytest.mark.parametrize(
    ("line", "instead"),
    [
        ("    tl::named_barrier_sync<threads>(tl::fragment_stored, k);", ""),
        (
            "tl::gemm_wait<0>(O);\n      pipeline.consumer_release(k);",
            "pipeline.consumer_release(k);\n      tl::gemm_wait<0>(O);",
        ),
    ],
    ids=["not awaited", "released early"],
)
def test_the_engine_sees_what_warpgroups_need_of_each_other(line: str, instead: str, tmp_path: Path) -> None:
    params = 'Q: T.Tensor((M, 128), "float16"), KV: T.Tensor((L, 128), "float16"), C: T.Tensor((M, 128), "float32")'
    sizes = {"grid": "T.ceildiv(M, 64)", "arguments": "M, L", "threads": 256, "M": 64, "L": 300}
    load_body(tmp_path, DEALT.format(rows=64), params, target="cuda:sm_90a", **sizes)  # type: ignore[arg-type]
    (emitted,) = tile2cu.emit(tmp_path / "small.py", target="cuda:sm_90a", M=64, L=300).values()
    assert line in emitted.source
    for name, text in emitted.files.items():
        (tmp_path / name).write_text(text.replace(line, instead), encoding="utf-8")
    kernel = load_kernel(tmp_path / "small.cu", device="cpu", check=True)
    with pytest.raises(CheckError):
        kernel(np.ones((64, 128), np.float16), np.ones((300, 128), np.float16))


def test_boxes_of_a_tensor_without_elements_are_reported(tmp_path: Path) -> None:
    """It has no tensor map: a GPU stops at the copy. Where nothing is copied it does no harm."""
    body = GEMM.format(rows=64, cols=64, step=64, dtype="float16", sums="float32", policy="Square")
    params = 'A: T.Tensor((M, K), "float16"), B: T.Tensor((G, K), "float16"), C: T.Tensor((M, N), "float32")'
    launch = {"grid": "T.ceildiv(N, 64), T.ceildiv(M, 64)", "blocks": "(bx, by)", "arguments": "M, N, K, G"}
    kernel = load_body(tmp_path, body, params, target="cuda:sm_90a", **launch)  # type: ignore[arg-type]
    a, b, c = np.ones((64, 64), np.float16), np.ones((64, 64), np.float16), np.zeros((64, 64), np.float32)
    kernel(a, b, c)
    np.testing.assert_array_equal(c, np.full((64, 64), 64))
    with pytest.raises(CheckError, match="empty tensor"):
        kernel(a, b[:0], c)
    kernel(a[:, :0], b[:0, :0], c)
    np.testing.assert_array_equal(c, np.zeros((64, 64)))


@pytest.mark.nightly
def test_a_result_is_staged_where_slots_were(tmp_path: Path) -> None:
    """14 slots of 16 KB leave no room for C. Without the barrier a warp would write to A while others multiply."""
    kernel = load_body(
        tmp_path,
        """
        A_shared = T.alloc_shared((64, 64), "float16")
        B_shared = T.alloc_shared((64, 64), "float16")
        C_local = T.alloc_fragment((64, 64), "float32")
        T.clear(C_local)
        for ko in T.Pipelined(T.ceildiv(K, 64), num_stages=14):
            T.copy(A[ko * 64, by * 64], A_shared)
            T.copy(B[ko * 64, bx * 64], B_shared)
            T.gemm(A_shared, B_shared, C_local, transpose_A=True)
        T.copy(C_local, C[by * 64, bx * 64])
        """,
        'A: T.Tensor((K, M), "float16"), B: T.Tensor((K, N), "float16"), C: T.Tensor((M, N), "float16")',
        grid="T.ceildiv(N, 64), T.ceildiv(M, 64)",
        blocks="(bx, by)",
        arguments="M, N, K",
        target="cuda:sm_90a",
        M=72,
        N=64,
        K=200,
    )
    a, b = (RNG.integers(-4, 5, shape).astype(np.float16) for shape in ((200, 72), (200, 64)))
    np.testing.assert_array_equal(kernel(a, b), (a.astype(np.float64).T @ b.astype(np.float64)).astype(np.float16))
    assert "tl::StagingTile<tl::half, 64, 64, tl::Swizzle128B> C_local_staging;\n  };" in kernel.source, "in a union"

    barrier = "  tl::sync_readers<threads>();\n"
    assert kernel.source.count(barrier) == 1
    (emitted,) = tile2cu.emit(tmp_path / "small.py", target="cuda:sm_90a", M=72, N=64, K=200).values()
    for name, text in emitted.files.items():
        (tmp_path / name).write_text(text.replace(barrier, ""), encoding="utf-8")
    with pytest.raises(CheckError, match="A_shared"):
        load_kernel(tmp_path / "small.cu", device="cpu", check=True)(a, b)
