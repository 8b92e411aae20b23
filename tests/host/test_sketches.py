"""Kernels in the style of sketches and tutorials: tiles as values, T.block, T.pipeline, older spellings."""

from pathlib import Path

import numpy as np
import pytest

import tile2cu
from tests.host.kernels import load_body
from tile2cu_runtime import Kernel

RNG = np.random.default_rng(0)


def load(folder: Path, text: str, **bindings: object) -> Kernel:
    path = folder / "sketch.py"
    path.write_text("import tilelang\nimport tilelang.language as T\n\n" + text, encoding="utf-8")
    return tile2cu.load(path, device="cpu", check=True, options={"schedules": ("round-robin", "reverse")}, **bindings)


def normal(*shape: int) -> np.ndarray:
    return RNG.standard_normal(shape).astype(np.float16)


ATTENTION = """
BLOCK_M, BLOCK_N, HEAD_DIM = {m}, {n}, 64

@tilelang.jit(out_idx=[-1])
def flash_attention(SEQ_LEN):
    @T.prim_func
    def main(
        Q: T.Buffer((SEQ_LEN, HEAD_DIM), "float16"),
        K: T.Buffer((SEQ_LEN, HEAD_DIM), "float16"),
        V: T.Buffer((SEQ_LEN, HEAD_DIM), "float16"),
        O: T.Buffer((SEQ_LEN, HEAD_DIM), "float32"),
    ):
        with T.Kernel(T.ceildiv(SEQ_LEN, BLOCK_M), threads=128) as bx:
            # Allocate tiles for Q, K, V in shared memory
            Q_shared = T.alloc_shared([BLOCK_M, HEAD_DIM], "float16", scope="shared.dyn", layout="swizzle_128b")
            K_shared = T.alloc_shared([BLOCK_N, HEAD_DIM], "float16")
            V_shared = T.alloc_shared([BLOCK_N, HEAD_DIM], "float16")
            # Fragments for computation
            S_frag = T.alloc_fragment([BLOCK_M, BLOCK_N], "float32")
            O_frag = T.alloc_fragment([BLOCK_M, HEAD_DIM], "float32")
            # Online softmax statistics
            m_prev = T.alloc_fragment([BLOCK_M], "float32")
            l_prev = T.alloc_fragment([BLOCK_M], "float32")
            T.copy(Q[bx * BLOCK_M, 0], Q_shared)
            T.clear(O_frag)
            T.clear(l_prev)
            T.fill(m_prev, -T.infinity("float32"))
            with T.pipeline():
                for block_n in T.serial(SEQ_LEN // BLOCK_N):
                    # Load K, V tiles
                    T.copy(K[block_n * BLOCK_N, 0], K_shared)
                    T.copy(V[block_n * BLOCK_N, 0], V_shared)
                    # Compute attention scores: S = Q @ K^T
                    T.clear(S_frag)
                    T.gemm(Q_shared, T.transpose(K_shared), S_frag)
                    # Online softmax update
                    m_new = T.max(m_prev, T.max(S_frag, axis=1))
                    l_new = T.exp(m_prev - m_new) * l_prev + \\
                            T.reduce_sum(T.exp(S_frag - m_new), axis=1)
                    # Update output with rescaling
                    O_frag = O_frag * (m_prev - m_new).exp()
                    O_frag += T.gemm(T.exp(S_frag - m_new), V_shared)
                    m_prev, l_prev = m_new, l_new
            # Final normalization and write back
            O_frag = O_frag / l_prev
            T.copy(O_frag, O[bx * BLOCK_M, 0])
    return main
"""


def softmax(x: np.ndarray) -> np.ndarray:
    powers = np.exp(x - x.max(axis=-1, keepdims=True))
    return powers / powers.sum(axis=-1, keepdims=True)


@pytest.mark.nightly
@pytest.mark.parametrize(("m", "n"), [(64, 64), (64, 32)])
def test_attention_in_expressions_of_tiles(m: int, n: int, tmp_path: Path) -> None:
    q, k, v = normal(192, 64) / 4, normal(192, 64), normal(192, 64)
    expected = softmax(q.astype(float) @ k.astype(float).T) @ v.astype(float)
    found = load(tmp_path, ATTENTION.format(m=m, n=n))(q, k, v)
    np.testing.assert_allclose(found, expected, atol=2e-3, rtol=2e-3)  # probabilities are rounded to float16


EXPRESSIONS = {
    "x * 2.0 + 1.0": lambda x, r, c: x * 2 + 1,
    "1.0 - x": lambda x, r, c: 1 - x,
    "-x": lambda x, r, c: -x,
    "T.softmax(x)": lambda x, r, c: softmax(x),
    "x - T.max(x, axis=1)": lambda x, r, c: x - x.max(axis=1, keepdims=True),
    "x / T.sum(x * x, axis=0)[None, :]": lambda x, r, c: x / (x * x).sum(axis=0),
    "x + r[:, None]": lambda x, r, c: x + r[:, None],
    "x + r": lambda x, r, c: x + r[:, None],
    "x * c": lambda x, r, c: x * c,
    "T.max(x, 0.0)": lambda x, r, c: np.maximum(x, 0),
    "T.clamp(x, -0.5, 0.5)": lambda x, r, c: np.clip(x, -0.5, 0.5),
    "T.exp(x) * T.reduce_min(x, dim=1)": lambda x, r, c: np.exp(x) * x.min(axis=1, keepdims=True),
    "T.cast(T.cast(x, 'float16'), 'float32')": lambda x, r, c: x.astype(np.float16).astype(np.float32),
    "x.astype('int32').astype('float32')": lambda x, r, c: np.trunc(x),
}


def test_expressions_broadcast_as_in_numpy(tmp_path: Path) -> None:
    """All in one kernel, one after the other: compiling takes the time."""
    statements = """
        x = T.alloc_fragment((32, 48), "float32")
        r = T.alloc_fragment((32,), "float32")
        c = T.alloc_fragment((48,), "float32")
        T.copy(X, x)
        T.copy(R, r)
        T.copy(C, c)
    """
    for at, expression in enumerate(EXPRESSIONS):
        statements += f"    y = {expression}\n        T.copy(y, Y[{at}, 0, 0])\n    "
    params = 'X: T.Tensor((32, 48), "float32"), R: T.Tensor((32,), "float32"), C: T.Tensor((48,), "float32"), '
    kernel = load_body(tmp_path, statements, params + f'Y: T.Tensor(({len(EXPRESSIONS)}, 32, 48), "float32")')
    x, r, c = (RNG.standard_normal(shape).astype(np.float32) for shape in ((32, 48), 32, 48))
    for found, (expression, reference) in zip(kernel(x, r, c), EXPRESSIONS.items(), strict=True):
        np.testing.assert_allclose(found, reference(x, r, c), rtol=2e-6, atol=2e-6, err_msg=expression)


def test_assignments_of_tiles(tmp_path: Path) -> None:
    """In place, in a loop, swapped: a name keeps its tile."""
    statements = """
        a = T.alloc_fragment((64,), "float32")
        b = T.alloc_shared((64,), "float32")
        T.copy(A, a)
        T.copy(B, b)
        for k in T.serial(3):
            a *= 2.0
            a, b = b, a
            b -= 1.0
            a //= 2.0
        T.copy(a, C)
    """
    params = ", ".join(f'{name}: T.Tensor((64,), "float32")' for name in "ABC")
    kernel = load_body(tmp_path, statements, params)
    a, b = (RNG.integers(0, 9, 64).astype(np.float32) for _ in "ab")
    found = kernel(a, b)
    for _ in range(3):
        a = a * 2
        a, b = b, a
        b = b - 1
        a = a // 2
    np.testing.assert_array_equal(found, a)


def test_a_block_without_a_grid(tmp_path: Path) -> None:
    kernel = load(
        tmp_path,
        """
M, N, K, dtype, accum_dtype = 64, 64, 32, "float16", "float32"

@tilelang.jit
def sketch():
    @T.prim_func
    def kernel(A: T.Buffer((M, K), dtype), B: T.Buffer((K, N), dtype), C: T.Buffer((M, N), accum_dtype)):
        # Thread block organization
        with T.block("root"):
            # Allocate shared memory tiles
            A_shared = T.alloc_shared([M, K], dtype)
            B_shared = T.alloc_shared([K, N], dtype)
            # Allocate register fragments
            A_frag = T.alloc_fragment([M, K], dtype)
            C_frag = T.alloc_fragment([M, N], accum_dtype)
            # Cooperative memory operations
            T.copy(A[...], A_shared)
            T.copy(B[...], B_shared)
            T.copy(A_shared, A_frag)
            # Compute
            T.clear(C_frag)
            T.gemm(A_frag, B_shared, C_frag)
            # Write back
            T.copy(C_frag, C[...])
    return kernel
""",
    )
    a, b, c = normal(64, 32), normal(32, 64), np.zeros((64, 64), np.float32)
    kernel(a, b, c)
    np.testing.assert_allclose(c, a.astype(float) @ b.astype(float), rtol=1e-5, atol=1e-4)


GUIDE = """
@tilelang.jit(target="cuda", out_idx=[2])
def matmul(M, N, K, block_M=64, block_N=64, block_K=32):
    @T.prim_func
    def main(A: T.Buffer((M, K), "float16"), B: T.Buffer((K, N), "float16"), C: T.Buffer((M, N), "float16")):
        with T.Kernel(
            T.ceildiv(N, block_N),  # Grid X
            T.ceildiv(M, block_M),  # Grid Y
            threads=128,
        ) as (bx, by):
            A_shared = T.alloc_shared((block_M, block_K), "float16")
            B_shared = T.alloc_shared((block_K, block_N), "float16")
            C_local = T.alloc_fragment((block_M, block_N), "float32")
            T.annotate_layout({
                A_shared: T.make_swizzled_layout(A_shared),
                B_shared: T.make_swizzled_layout(B_shared),
            })
            T.use_swizzle(panel_size=10)
            T.clear(C_local)
            for k in T.Pipelined(T.ceildiv(K, block_K), num_stages=3):
                T.copy(A[by * block_M, k * block_K], A_shared)
                T.copy(B[k * block_K, bx * block_N], B_shared)
                T.gemm(A_shared, B_shared, C_local, transpose_B=False, policy=T.GemmWarpPolicy.FullRow)
            T.copy(C_local, C[by * block_M, bx * block_N])
    return main
"""


@pytest.mark.sweep(cases=1)
@pytest.mark.parametrize("shape", [(64, 64, 64), (100, 72, 50)])
def test_the_product_of_the_guides(shape: tuple[int, int, int], tmp_path: Path) -> None:
    m, n, k = shape
    a, b = normal(m, k), normal(k, n)
    found = load(tmp_path, GUIDE)(a, b)
    np.testing.assert_allclose(found, a.astype(float) @ b.astype(float), rtol=2e-3, atol=2e-2)  # rounded to float16


NORM = """
@tilelang.jit(out_idx=[-1])
def rms_silu(M, C, BLOCK_M=16, dtype="float16", accum_dtype="float32"):
    BLOCK_C = 128 if C % 128 == 0 else 64 if C % 64 == 0 else 32

    @T.prim_func
    def main(X: T.Tensor((M, C), dtype), gamma: T.Tensor((C,), dtype), Y: T.Tensor((M, C), dtype)):
        with T.Kernel(T.ceildiv(M, BLOCK_M), threads=128) as bm:
            X_chunk = T.alloc_shared((BLOCK_M, BLOCK_C), dtype)
            x = T.alloc_fragment((BLOCK_M, BLOCK_C), accum_dtype)
            ss = T.alloc_fragment((BLOCK_M,), accum_dtype)
            g = T.alloc_fragment((BLOCK_C,), dtype)
            T.clear(ss)
            for c in T.serial(C // BLOCK_C):
                T.copy(X[bm * BLOCK_M, c * BLOCK_C], X_chunk)
                T.copy(X_chunk, x)
                ss += T.sum(x * x, axis=1)
            rinv = T.rsqrt(ss / C + 1e-5)
            for c in T.serial(C // BLOCK_C):
                T.copy(X[bm * BLOCK_M, c * BLOCK_C], X_chunk)
                T.copy(X_chunk, x)
                T.copy(gamma[c * BLOCK_C], g)
                y = x * g[None, :] * rinv[:, None]
                y *= T.sigmoid(y)
                T.copy(y, Y[bm * BLOCK_M, c * BLOCK_C])
    return main
"""


@pytest.mark.sweep(cases=1)
@pytest.mark.parametrize("channels", [160, 256, 320])
def test_a_norm_for_any_number_of_channels(channels: int, tmp_path: Path) -> None:
    x, gamma = normal(21, channels), normal(channels)
    wide = x.astype(float)
    y = wide * gamma * (1 / np.sqrt((wide**2).mean(axis=1, keepdims=True) + 1e-5))
    expected = y / (1 + np.exp(-y))
    found = load(tmp_path, NORM, C=channels)(x, gamma)
    np.testing.assert_allclose(found, expected, rtol=2e-3, atol=1e-3)  # rounded to float16


def test_functions_of_integer_tiles_are_computed_in_float(tmp_path: Path) -> None:
    statements = """
        x = T.alloc_fragment((8, 16), "int32")
        y = T.alloc_fragment((8, 16), "float32")
        T.copy(X, x)
        y = x.exp() + T.exp(x)
        T.copy(y, Y)
    """
    params = 'X: T.Tensor((8, 16), "int32"), Y: T.Tensor((8, 16), "float32")'
    x = RNG.integers(-3, 4, (8, 16)).astype(np.int32)
    np.testing.assert_allclose(load_body(tmp_path, statements, params)(x), 2 * np.exp(x), rtol=1e-5)


TENSORS = {
    "S *= A[bx * 24 : (bx + 1) * 24, 0:40]": lambda s, a, r, c: s * a,
    "S = S + C": lambda s, a, r, c: s + c,
    "S *= C[None, :]": lambda s, a, r, c: s * c,
    "S -= R[bx * 24 : bx * 24 + 24, None]": lambda s, a, r, c: s - r[:, None],
    "S = T.max(S, A[bx * 24 : bx * 24 + 24, 0:40]) * 2.0": lambda s, a, r, c: 2 * np.maximum(s, a),
    "S += T.sum(A[bx * 24 : bx * 24 + 24, 0:40], axis=1)": lambda s, a, r, c: s + a.sum(axis=1, keepdims=True),
    "S[4:9, :] = -S[0:5, :] + C": lambda s, a, r, c: np.concatenate([s[:4], c - s[:5], s[9:]]),
    "S //= A[bx * 24, 0:40] * 0.0 + 2.0": lambda s, a, r, c: s // 2,
    "shared[:, :] = A[bx * 24 : bx * 24 + 24, 0:40].astype('float32')\n    S = shared[0:24, 0:40] * S": (
        lambda s, a, r, c: a * s
    ),
}


@pytest.mark.sweep(cases=2)
@pytest.mark.parametrize("statement", TENSORS)
def test_tensors_and_slices_take_part_in_expressions(statement: str, tmp_path: Path) -> None:
    """Blocks of 24 of 37 rows: what lies outside of a tensor is zero."""
    statements = f"""
    S = T.alloc_fragment((24, 40), "float32")
    shared = T.alloc_shared((24, 40), "float32")
    T.copy(X[bx * 24, 0], S)
    {statement}
    Y[bx * 24 : (bx + 1) * 24, :] = S
    """
    params = 'X: T.Tensor((M, 40), "float32"), A: T.Tensor((M, 40), "float16"), R: T.Tensor((M,), "float32"), '
    params += 'C: T.Tensor((40,), "float32"), Y: T.Tensor((M, 40), "float32")'
    kernel = load_body(tmp_path, statements, params, grid="T.ceildiv(M, 24)", arguments="M")
    shapes = ((37, 40), (37, 40), (37,), (40,))
    x, a, r, c = (RNG.integers(-4, 5, shape).astype(np.float32) for shape in shapes)
    if "bx * 24, 0:40" not in statement:
        parts = [TENSORS[statement](x[at : at + 24], a[at : at + 24], r[at : at + 24], c) for at in (0, 24)]
    else:
        parts = [TENSORS[statement](x[at : at + 24], a[at], r, c) for at in (0, 24)]
    np.testing.assert_array_equal(kernel(x, a.astype(np.float16), r, c), np.concatenate(parts))


TARGETS = {
    "Y *= scale": lambda y, scale: y * scale,
    "Y = Y * scale + 1.0": lambda y, scale: y * scale + 1,
    "Y[2:19, :] *= scale[2:19, :]": lambda y, scale: np.concatenate([y[:2], (y * scale)[2:19], y[19:]]),
    "Y[:, 3] = scale[:, 4]": lambda y, scale: np.concatenate([y[:, :3], scale[:, 4:5], y[:, 4:]], axis=1),
    "Y[...] = 7.0": lambda y, scale: 0 * y + 7,
    "for i in T.Parallel(21):\n        Y[i, 1:4] = Y[i, 1:4] + scale[20 - i, 0:3]": lambda y, scale: np.concatenate(
        [y[:, :1], y[:, 1:4] + scale[::-1, :3], y[:, 4:]], axis=1
    ),
}


@pytest.mark.sweep(cases=2)
@pytest.mark.parametrize("statement", TARGETS)
def test_tensors_are_written_in_place(statement: str, tmp_path: Path) -> None:
    params = 'scale: T.Tensor((21, 13), "float32"), Y: T.Tensor((21, 13), "float32")'
    text = f"""
@tilelang.jit
def small():
    @T.prim_func
    def body({params}):
        with T.Kernel(1, threads=64):
            {statement.replace(chr(10), chr(10) + "        ")}
    return body
"""
    scale, y = (RNG.integers(-4, 5, (21, 13)).astype(np.float32) for _ in "ab")
    expected = TARGETS[statement](y, scale)
    load(tmp_path, text)(scale, y)
    np.testing.assert_array_equal(y, expected)


def test_what_each_thread_has_for_itself_is_computed_by_each(tmp_path: Path) -> None:
    """Private arrays, and slices at the thread's own place: no thread computes another's elements."""
    statements = """
        tx = T.get_thread_binding(0)
        x = T.alloc_local((4,), "float32")
        x[0:4] = X[tx, 0:4]
        x *= 2.0
        y = x + X[tx, 4:8]
        Y[tx, 0:4] = y
        Y[tx, 4:8] = X[tx, 0:4] - 1.0
    """
    params = 'X: T.Tensor((50, 8), "float32"), Y: T.Tensor((50, 8), "float32")'
    x = RNG.integers(-4, 5, (50, 8)).astype(np.float32)
    found = load_body(tmp_path, statements, params, threads=64)(x)
    np.testing.assert_array_equal(found, np.concatenate([2 * x[:, :4] + x[:, 4:], x[:, :4] - 1], axis=1))
