"""The user's own C++ in a kernel: T.import_source, prelude, T.call_extern, addresses, T.dp4a."""

from pathlib import Path

import numpy as np
import pytest

from tests.host.kernels import load_body

RNG = np.random.default_rng(0)
DECODE = """
source = '''
// 4 bits each, the low ones first; naïve
template <class Packed, class Value>
__device__ void decode(const Packed* packed, Value* out, int count) {
  for (int i = 0; i < count; ++i) out[i] = Value((packed[i / 2] >> (4 * (i % 2))) & 15);
}
__device__ float scaled(float x, int by) { return x * by; }
'''
"""
PARAMS = 'X: T.Tensor((M, 4), "uint8"), Y: T.Tensor((M, 8), "float32")'


def decoded(x: np.ndarray) -> np.ndarray:
    return np.stack([x & 15, x >> 4], axis=2).reshape(len(x), -1).astype(np.float32)


def load(folder: Path, statements: str, *, rows: int = 37, params: str = PARAMS, head: str = DECODE, **more: object):
    """As load_body, with the C++ at the head of the file."""
    options = {"grid": "T.ceildiv(M, 32)", "threads": 32, **more}
    kernel = load_body(folder, statements, params, arguments="M", M=rows, head=head, **options)  # type: ignore[arg-type]
    assert kernel.source.isascii()
    return kernel


def test_private_arrays_go_to_the_users_functions(tmp_path: Path) -> None:
    statements = """
        T.import_source(source)
        packed = T.alloc_local((4,), "uint8")
        values = T.alloc_local((8,), "float32")
        row = bx * 32 + T.get_thread_binding()
        for i in T.vectorized(4):
            packed[i] = X[row, i]
        T.call_extern("handle", "decode", T.access_ptr(packed, "r"), T.access_ptr(values, "w"), 4)
        T.call_extern("decode", T.access_ptr(packed[2], "r", 2), T.address_of(values[4]), 4, dtype="handle")
        for i in T.serial(8):
            Y[row, i] = T.call_extern("float32", "scaled", values[i], 3)
    """
    x = RNG.integers(0, 256, (37, 4), dtype=np.uint8)
    np.testing.assert_array_equal(load(tmp_path, statements)(x), 3 * decoded(x))


@pytest.mark.nightly
def test_elements_outside_of_a_tensor_are_not_given_away(tmp_path: Path) -> None:
    statements = """
        row = bx * 32 + T.get_thread_binding()
        T.call_extern("handle", "decode", T.access_ptr(X[row, 0], "r", 4), T.access_ptr(Y[row, 0], "w", 8), 8)
    """
    x = RNG.integers(0, 256, (37, 4), dtype=np.uint8)
    kernel = load(tmp_path, statements, prelude="source")
    assert "if (tl::inside(X.at(row, 3)) && tl::inside(Y.at(row, 7)))" in kernel.source
    assert "#define TL_CUDA_HALF" in kernel.source, "the user's C++ may have __half"
    np.testing.assert_array_equal(kernel(x), decoded(x))


def test_shared_tiles_get_their_barriers(tmp_path: Path) -> None:
    statements = """
        T.import_source(source)
        S = T.alloc_shared((32, 4), "uint8")
        V = T.alloc_shared((32, 8), "float32")
        T.copy(X[bx * 32, 0], S)
        other = 31 - T.get_thread_binding()
        T.call_extern("handle", "decode", T.access_ptr(S[other, 0], "r", 4), T.access_ptr(V[other, 0], "w", 8), 8)
        T.copy(V, Y[bx * 32, 0])
    """
    x = RNG.integers(0, 256, (37, 4), dtype=np.uint8)
    kernel = load(tmp_path, statements)
    assert kernel.source.count("tl::sync_threads();") == 2
    np.testing.assert_array_equal(kernel(x), decoded(x))


def test_a_file_of_the_users_is_included(tmp_path: Path) -> None:
    (tmp_path / "own.h").write_text(
        "template <class T> __device__ T doubled(T x) { return x + x; }\n", encoding="utf-8"
    )
    head = f"source = '#include \"{tmp_path / 'own.h'}\"'\n"
    statements = """
        T.import_source(source)
        for i, j in T.Parallel(32, 8):
            Y[bx * 32 + i, j] = T.call_extern("float32", "doubled", T.cast(X[bx * 32 + i, j // 2], "float32"))
    """
    x = RNG.integers(0, 256, (37, 4), dtype=np.uint8)
    np.testing.assert_array_equal(
        load(tmp_path, statements, head=head)(x), 2 * np.repeat(x, 2, axis=1).astype(np.float32)
    )


def test_products_of_four_bytes(tmp_path: Path) -> None:
    statements = """
        a = T.alloc_local((8,), "int8")
        b = T.alloc_local((8,), "int8")
        sum = T.alloc_local((1,), "int32")
        row = bx * 32 + T.get_thread_binding()
        sum[0] = row
        for i in T.serial(8):
            a[i] = A[row, i]
            b[i] = B[row, i]
        for k in T.serial(2):
            T.dp4a(a[k * 4], b[k * 4], sum[0])
        C[row] = sum[0]
    """
    params = 'A: T.Tensor((M, 8), "int8"), B: T.Tensor((M, 8), "int8"), C: T.Tensor((M,), "int32")'
    a, b = (RNG.integers(-128, 128, (37, 8), dtype=np.int8) for _ in range(2))
    expected = (a.astype(np.int32) * b).sum(axis=1) + np.arange(37)
    np.testing.assert_array_equal(load(tmp_path, statements, params=params, head="")(a, b), expected)


def test_text_for_amd_has_the_same_calls(tmp_path: Path) -> None:
    statements = """
        T.import_source(source)
        row = bx * 64 + T.get_thread_binding()
        v = T.alloc_local((8,), "float32")
        T.call_extern("handle", "decode", T.access_ptr(X[row, 0], "r", 4), T.access_ptr(v, "w"), 8)
        for i in T.serial(8):
            Y[row, i] = v[i]
    """
    x = RNG.integers(0, 256, (37, 4), dtype=np.uint8)
    kernel = load(tmp_path, statements, target="hip:gfx942", grid="T.ceildiv(M, 64)", threads=64)
    np.testing.assert_array_equal(kernel(x), decoded(x))


def test_intrinsics_of_bytes(tmp_path: Path) -> None:
    head = """
source = '''
__device__ unsigned mixed(unsigned a, unsigned b, int which) {
  switch (which) {
    case 0: return __vadd4(a, b);
    case 1: return __vsub4(a, b);
    case 2: return __vadd2(a, b);
    case 3: return __vsub2(a, b);
    case 4: return __byte_perm(a, b, 0xf240);
    case 5: return __popc(a) + 100 * __clz(b) + 10000 * __ffs(a);
    case 6: return __umulhi(a, b);
    default: return __mulhi(a, b);
  }
}
'''
"""
    statements = """
        T.import_source(source)
        row = bx * 32 + T.get_thread_binding()
        for i in T.serial(8):
            Y[row, i] = T.call_extern("uint32", "mixed", X[row, 0], X[row, 1], i)
    """
    params = 'X: T.Tensor((M, 2), "uint32"), Y: T.Tensor((M, 8), "uint32")'
    x = RNG.integers(0, 2**32, (37, 2), dtype=np.uint32)
    x[0] = 0, 0
    lanes = {bits: np.arange(0, 32, bits, dtype=np.uint32) for bits in (8, 16)}

    def by_lanes(bits: int, sign: int) -> np.ndarray:
        parts = (x[:, :, None] >> lanes[bits]) & np.uint32(2**bits - 1)
        sums = (parts[:, 0].astype(np.int64) + sign * parts[:, 1].astype(np.int64)) % 2**bits
        return (sums << lanes[bits]).sum(axis=1)

    a, b = x[:, 0].astype(np.int64), x[:, 1].astype(np.int64)
    bytes_ = x.copy().view(np.uint8).astype(np.int64)
    picked = bytes_[:, 0] | bytes_[:, 4] << 8 | bytes_[:, 2] << 16 | np.where(bytes_[:, 7] > 127, 0xFF << 24, 0)
    text = [(format(p, "032b"), format(q, "032b")) for p, q in zip(a, b, strict=True)]
    counted = [p.count("1") + 100 * (32 - len(q.lstrip("0"))) + 10000 * (p[::-1].find("1") + 1) for p, q in text]
    signed = x.view(np.int32).astype(np.int64)
    expected = [
        by_lanes(8, 1), by_lanes(8, -1), by_lanes(16, 1), by_lanes(16, -1), picked, counted,
        [p * q >> 32 for p, q in zip(a.tolist(), b.tolist(), strict=True)], (signed[:, 0] * signed[:, 1] >> 32) % 2**32,
    ]  # fmt: skip
    actual = load(tmp_path, statements, params=params, head=head)(x)
    np.testing.assert_array_equal(actual, np.array(expected, dtype=np.uint32).T)


def test_lanes_by_cudas_own_names(tmp_path: Path) -> None:
    head = """
source = '''
__device__ int told(int x, int which) {
  switch (which) {
    case 0: return __shfl_sync(~0u, x, 3);
    case 1: return __shfl_xor_sync(~0u, x, 5, 8);
    case 2: return __shfl_up_sync(~0u, x, 2);
    case 3: return __shfl_down_sync(~0u, x, 2);
    case 4: return __ballot_sync(~0u, x > 2);
    case 5: return __any_sync(~0u, x == 9) + 2 * __all_sync(~0u, x < 9);
    default: return __match_any_sync(~0u, x);
  }
}
'''
"""
    statements = """
        T.import_source(source)
        row = bx * 32 + T.get_thread_binding()
        for i in T.serial(7):
            Y[row, i] = T.call_extern("int32", "told", X[row], i)
    """
    x = RNG.integers(0, 6, 64).astype(np.int32)
    x[40] = 9
    kernel = load(
        tmp_path, statements, rows=64, head=head, params='X: T.Tensor((M,), "int32"), Y: T.Tensor((M, 7), "int32")'
    )
    warps, lane = x.reshape(2, 32), np.arange(32)
    bits = np.uint32(1) << lane.astype(np.uint32)
    expected = [
        np.repeat(warps[:, 3:4], 32, axis=1), warps[:, lane ^ 5], warps[:, np.where(lane < 2, lane, lane - 2)],
        warps[:, np.where(lane < 30, lane + 2, lane)],
        np.repeat(((warps > 2) * bits).sum(axis=1, keepdims=True).astype(np.uint32).view(np.int32), 32, axis=1),
        np.repeat([[2], [1]], 32, axis=1),
        ((warps[:, :, None] == warps[:, None, :]) * bits).sum(axis=2).astype(np.uint32).view(np.int32),
    ]  # fmt: skip
    np.testing.assert_array_equal(kernel(x), np.stack([each.reshape(-1) for each in expected], axis=1))


def in_mode(exact: np.ndarray, nearest: np.ndarray, mode: str) -> np.ndarray:
    """Numbers that were rounded to nearest, in another mode, by NumPy's neighbours."""
    wide, infinity = nearest.astype(np.float64), np.asarray(np.inf, nearest.dtype)
    down = (wide > exact) & ((mode == "rd") | ((mode == "rz") & (exact > 0)))
    up = (wide < exact) & ((mode == "ru") | ((mode == "rz") & (exact < 0)))
    lower, upper = np.nextafter(nearest, -infinity), np.nextafter(nearest, infinity)
    return np.where(down, lower, np.where(up, upper, nearest))


@pytest.mark.sweep(cases=1)
@pytest.mark.parametrize("mode", ["rn", "rz", "ru", "rd"])
def test_conversions_of_cuda_round_in_their_mode(mode: str, tmp_path: Path) -> None:
    import ml_dtypes

    statements = f"""
        t = bx * 64 + T.get_thread_binding()
        H[t] = T.call_extern("float16", "__float2half_{mode}", X[t])
        B[t] = T.call_extern("bfloat16", "__float2bfloat16_{mode}", X[t])
        I[t] = T.call_extern("int32", "__float2int_{mode}", X[t])
        F[t] = T.call_extern("float32", "__int2float_{mode}", T.call_extern("int32", "__float_as_int", X[t]))
        S[t] = T.call_extern("float32", "__fadd_{mode}", X[t], T.float32(1.0))
    """
    names = ("X", "H", "B", "I", "F", "S")
    types = ("float32", "float16", "bfloat16", "int32", "float32", "float32")
    params = ", ".join(f'{name}: T.Tensor((256,), "{type}")' for name, type in zip(names, types, strict=True))
    kernel = load_body(tmp_path, statements, params, grid="4", blocks="bx", threads=64)
    edges = [
        0,
        -0.0,
        1e-8,
        -1e-8,
        1e-45,
        -1e-45,
        65504,
        65519,
        65520,
        65536,
        1e6,
        -1e6,
        3.4e38,
        -3.4e38,
        np.inf,
        -np.inf,
    ]
    edges += [0.5, -0.5, 1.5, -1.5, 2.5, 2**31 - 100, 2**31, -(2**31), -(2**32), 6e-5, -6e-5, 2049.0, -2049.0, np.nan]
    x = np.concatenate([edges, RNG.standard_normal(256 - len(edges)) * 2.0 ** RNG.integers(-30, 30, 256 - len(edges))])
    x = x.astype(np.float32)
    h, b = np.zeros(256, np.float16), np.zeros(256, ml_dtypes.bfloat16)
    i, f, s = np.zeros(256, np.int32), np.zeros(256, np.float32), np.zeros(256, np.float32)
    kernel(x, h, b, i, f, s)
    exact = x.astype(np.float64)
    with np.errstate(all="ignore"):
        np.testing.assert_array_equal(h, in_mode(exact, x.astype(np.float16), mode))
        np.testing.assert_array_equal(np.signbit(h), np.signbit(x))
        wide = in_mode(exact, x.astype(ml_dtypes.bfloat16), mode)
        np.testing.assert_array_equal(b.astype(np.float32), wide.astype(np.float32))
        whole = {"rn": np.rint, "rz": np.trunc, "ru": np.ceil, "rd": np.floor}[mode](exact)
        np.testing.assert_array_equal(
            i, np.clip(np.nan_to_num(whole, posinf=2**40, neginf=-(2**40)), -(2**31), 2**31 - 1)
        )
        word = x.view(np.int32)
        np.testing.assert_array_equal(f, in_mode(word.astype(np.float64), word.astype(np.float32), mode))
        sums = exact + 1.0
        agree = (np.abs(x) > 2.0**-28) & (np.abs(x) < 2.0**28)  # where the sum is exact in float64
        np.testing.assert_array_equal(s[agree], in_mode(sums, sums.astype(np.float32), mode)[agree])


def test_a_thread_sleeps(tmp_path: Path) -> None:
    statements = """
        t = T.get_thread_binding()
        if t == 0:
            T.call_extern("void", "__nanosleep", 100)
        Y[t] = X[t] + 1
    """
    params = 'X: T.Tensor((32,), "int32"), Y: T.Tensor((32,), "int32")'
    x = np.arange(32, dtype=np.int32)
    np.testing.assert_array_equal(load_body(tmp_path, statements, params, threads=32)(x), x + 1)
