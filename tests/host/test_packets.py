"""Loops over packets: what lies at quotients of an index, values with names, small integers as numbers."""

from pathlib import Path

import ml_dtypes
import numpy as np
import pytest

from tests.host.kernels import load_body

RNG = np.random.default_rng(11)
NUMPY = {"float16": np.float16, "bfloat16": ml_dtypes.bfloat16, "float32": np.float32}


@pytest.mark.sweep(cases=1)
@pytest.mark.parametrize("dtype", NUMPY)
@pytest.mark.parametrize("kind", ["int8", "uint8"])
def test_small_integers_become_numbers_exactly(dtype: str, kind: str, tmp_path: Path) -> None:
    """All 256 of a byte, and what arithmetic makes of them within -512 to 511."""
    kernel = load_body(
        tmp_path,
        f"""
        for i in T.Parallel(256):
            Y[0, i] = T.cast(X[i], {dtype!r})
            Y[1, i] = T.cast(T.cast(X[i], "int32") * 2 - 257, {dtype!r})
        """,
        f"X: T.Tensor((256,), {kind!r}), Y: T.Tensor((2, 256), {dtype!r})",
        threads=32,
    )
    x = np.arange(256).astype(np.uint8).view(kind)
    # 2 x - 257 of int8 may be -513, so that its conversion is the usual one
    wide = x.astype(np.int32)
    expected = np.stack([wide, wide * 2 - 257]).astype(NUMPY[dtype])
    np.testing.assert_array_equal(kernel(x).astype(np.float64), expected.astype(np.float64))
    assert kernel.source.count("tl::cast_exact<") == (2 if kind == "uint8" else 1)
    assert "tl::parallel<" in kernel.source


@pytest.mark.sweep(cases=1)
@pytest.mark.parametrize("target", ["cuda:sm_80", "hip:gfx942"])
def test_several_values_of_a_byte_and_one_scale_of_a_group(target: str, tmp_path: Path) -> None:
    """Four values of two bits in a byte, a scale for 32: packets read two bytes and one scale, from ragged tensors."""
    kernel = load_body(
        tmp_path,
        """
        for i, j in T.Parallel(16, 256):
            bits = (W[by * 16 + i, (bx * 256 + j) // 4] >> T.cast(2 * (j % 4), "uint8")) & T.cast(3, "uint8")
            scale = S[by * 16 + i, (bx * 256 + j) // 32]
            Y[by * 16 + i, bx * 256 + j] = T.cast(bits, "float16") * scale - T.cast(1, "float16")
        """,
        'W: T.Tensor((M, N // 4), "uint8"), S: T.Tensor((M, N // 32), "float16"), Y: T.Tensor((M, N), "float16")',
        grid="T.ceildiv(N, 256), T.ceildiv(M, 16)",
        blocks="(bx, by)",
        arguments="M, N",
        target=target,
        M=21,
        N=416,
    )
    w = RNG.integers(0, 256, (21, 104)).astype(np.uint8)
    s = RNG.standard_normal((21, 13)).astype(np.float16)
    values = np.stack([w >> 2 * n & 3 for n in range(4)], axis=-1).reshape(21, 416).astype(np.float16)
    expected = values * np.repeat(s, 32, axis=1) - np.float16(1)
    np.testing.assert_array_equal(kernel(w, s), expected)
    assert "tl::floordiv<4>(bx * 256 + j)" in kernel.source and "tl::floordiv<32>(bx * 256 + j)" in kernel.source


def test_quotients_that_change_within_a_packet_are_taken_one_by_one(tmp_path: Path) -> None:
    """Groups of 12 do not fit packets of 8, and an index that is moved by one does not start at a packet."""
    kernel = load_body(
        tmp_path,
        """
        for j in T.Parallel(96):
            Y[0, j] = X[j // 12]
            Y[1, j] = X[(j + 1) // 8]
        """,
        'X: T.Tensor((16,), "float16"), Y: T.Tensor((2, 96), "float16")',
        threads=32,
    )
    x = RNG.standard_normal(16).astype(np.float16)
    j = np.arange(96)
    np.testing.assert_array_equal(kernel(x), np.stack([x[j // 12], x[(j + 1) // 8]]))
    assert "tl::floordiv" not in kernel.source


@pytest.mark.sweep(cases=1)
@pytest.mark.parametrize("columns", [104, 105])
def test_branches_are_of_packets_where_all_of_one_take_them(columns: int, tmp_path: Path) -> None:
    """ElementsTogether of 8 end where 104 columns do, and one starts at column 24; 105 columns end within a packet."""
    kernel = load_body(
        tmp_path,
        """
        for i, j in T.Parallel(16, 64):
            row = by * 16 + i
            column = bx * 64 + j
            half = T.cast(row, "float16") * T.cast(0.5, "float16")
            if row < M and column < N:
                Y[row, column] = T.if_then_else(column >= 24 or row == 3, X[row, column], half)
        """,
        'X: T.Tensor((M, N), "float16"), Y: T.Tensor((M, N), "float16")',
        grid="T.ceildiv(N, 64), T.ceildiv(M, 16)",
        blocks="(bx, by)",
        arguments="M, N",
        M=21,
        N=columns,
    )
    x = RNG.standard_normal((21, columns)).astype(np.float16)
    expected = x.copy()
    expected[:, :24] = np.arange(21)[:, None] / 2
    expected[3] = x[3]
    np.testing.assert_array_equal(kernel(x), expected)
    assert (
        ("tl::first_of_vector(column) < N" in kernel.source) == ("tl::parallel<8>" in kernel.source) == (columns == 104)
    )


@pytest.mark.sweep(cases=1)
@pytest.mark.parametrize("channels", [24, 20])
@pytest.mark.parametrize("target", ["cuda:sm_80", "hip:gfx942"])
def test_taps_of_a_convolution_are_gathered_in_packets_where_these_divide_the_channels(
    target: str, channels: int, tmp_path: Path
) -> None:
    """Rows of im2col: 3 x 3 taps of images with a border of zeros, from flattened indices, the last of them ragged."""
    kernel = load_body(
        tmp_path,
        """
        col = T.alloc_shared((32, 64), "float16")
        for k in T.serial(T.ceildiv(9 * C, 64)):
            for i, j in T.Parallel(32, 64):
                at = k * 64 + j
                m = bx * 32 + i
                h = m % (H * W) // W + at // C // 3 - 1
                w = m % W + at // C % 3 - 1
                inside = (h >= 0) and (h < H) and (w >= 0) and (w < W) and (at < 9 * C)
                col[i, j] = T.if_then_else(inside, X[m // (H * W), h, w, at % C], 0)
            T.copy(col, Y[bx * 32, k * 64])
        """,
        'X: T.Tensor((N, H, W, C), "float16"), Y: T.Tensor((N * H * W, 9 * C), "float16")',
        grid="T.ceildiv(N * H * W, 32)",
        arguments="N, H, W, C",
        target=target,
        C=channels,
        H=5,
    )
    x = RNG.standard_normal((2, 5, 7, channels)).astype(np.float16)
    around = np.pad(x, ((0, 0), (1, 1), (1, 1), (0, 0)))
    taps = [around[:, h : h + 5, w : w + 7] for h in range(3) for w in range(3)]
    np.testing.assert_array_equal(kernel(x), np.concatenate(taps, axis=-1).reshape(70, 9 * channels))
    assert ("tl::parallel<8>" in kernel.source) == (channels == 24)


def test_a_named_value_of_a_tensor_that_the_loop_writes_is_that_from_before(tmp_path: Path) -> None:
    """Of one that nothing writes, elements are values as they are."""
    kernel = load_body(
        tmp_path,
        """
        for i, j in T.Parallel(16, 64):
            before, given = X[bx * 16 + i, j], G[bx * 16 + i, j]
            X[bx * 16 + i, j] = before + given
            Y[bx * 16 + i, j] = before - given
        """,
        ", ".join(f'{name}: T.Tensor((37, 64), "float16")' for name in "GXY"),
        grid="3",
    )
    g, x = (RNG.integers(-9, 10, (37, 64)).astype(np.float16) for _ in range(2))
    after = x.copy()
    np.testing.assert_array_equal(kernel(g, after), x - g)
    np.testing.assert_array_equal(after, x + g)
    assert "tl::parallel<8>" in kernel.source and "given = G(" in kernel.source
    assert "before = tl::cast<tl::half>(X(" in kernel.source


@pytest.mark.sweep(cases=1)
@pytest.mark.parametrize("target", ["cuda:sm_80", "hip:gfx942"])
def test_functions_of_the_index_of_a_vector(target: str, tmp_path: Path) -> None:
    """Each argument of a function is a number for each element of a vector, the loop's index, too."""
    kernel = load_body(
        tmp_path,
        """
        for i in T.Parallel(256):
            Y[0, i] = T.max(-40, T.min(40, i))
        for i in T.Parallel(256):
            Y[1, i] = T.abs(i) + T.clamp(i, X[i], 9)
        """,
        'X: T.Tensor((256,), "int32"), Y: T.Tensor((2, 256), "int32")',
        threads=64,
        target=target,
    )
    x, i = RNG.integers(-9, 9, 256).astype(np.int32), np.arange(256)
    np.testing.assert_array_equal(kernel(x), [np.minimum(i, 40), i + np.clip(i, x, 9)])
    assert "tl::parallel<4>" in kernel.source
