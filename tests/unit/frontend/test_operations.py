"""Tile operations: the boxes that T.copy moves, and what T.gemm, T.reduce and T.fill take."""

from collections.abc import Callable

import pytest

TILES = """
S = T.alloc_shared((block_M, 32), "float16")
R = T.alloc_shared((3, 32, block_M), "float16")
F = T.alloc_fragment((block_M, 64), "float32")
row = T.alloc_fragment((block_M,), "float32")
"""

# statement, how it reads in the program
COPIES = {
    "T.copy(A[bx * block_M, 0], S)": "copy A[(bx * block_M):+block_M, 0:+32] -> S",
    "T.copy(S, B[0, bx * 32])": "copy S -> B[0:+block_M, (bx * 32):+32]",
    "T.copy(A[bx * block_M : (bx + 1) * block_M, 0:32], S)": "copy A[(bx * block_M):+block_M, 0:+32] -> S",
    "T.copy(A[bx * 64 : bx * 64 + 64, :32], S)": "copy A[(bx * 64):+64, 0:+32] -> S",
    "T.copy(A[3, 0], row)": "copy A[3, 0:+block_M] -> row",
    "T.copy(A[3, bx * block_M : (bx + 1) * block_M], row)": "copy A[3, (bx * block_M):+block_M] -> row",
    "T.copy(S, R[1, 0:32, 0:64])": None,
    "T.copy(R[1, :, :], R[2, :, :])": "copy R[1, 0:+32, 0:+block_M] -> R[2, 0:+32, 0:+block_M]",
    "T.copy(R[1, :, 0], S[0, :])": "copy R[1, 0:+32, 0] -> S[0, 0:+32]",
    "T.copy(S[:, :], S)": "copy S -> S",
    "T.copy(F[0:1, :], F[1:2, :])": "copy F[0, 0:+64] -> F[1, 0:+64]",
    "T.copy(A[1, 2], B[2, 1])": "B[2, 1] = A[1, 2]",
}


@pytest.mark.parametrize(("statement", "read"), COPIES.items(), ids=COPIES.keys())
def test_copy(
    body: Callable[..., object],
    listing: Callable[..., list[str]],
    refusal: Callable[..., str],
    statement: str,
    read: str | None,
) -> None:
    if read is None:
        assert refusal(TILES + statement).startswith("F020 T.copy from `S` (64, 32) to `R` (32, 64)")
    else:
        assert listing(body(TILES + statement)) == [read]


def test_extents_keep_their_names(body: Callable[..., object]) -> None:
    program = body(TILES + "T.copy(A[bx * block_M : (bx + 1) * block_M, 0:32], S)")
    assert [constant.name for constant in program.constants] == ["block_M"]


def test_element_copy_converts(body: Callable[..., object], listing: Callable[..., list[str]]) -> None:
    assert listing(body(TILES + "T.copy(A[1, 2], S[2, 1])")) == ["S[2, 1] = float16(A[1, 2])"]


def test_four_dimensions(body: Callable[..., object], listing: Callable[..., list[str]]) -> None:
    tensors = 'Q: T.Tensor((2, M, 8, 32), "float16")'
    text = TILES + "T.copy(Q[bx, 0:block_M, 3, :], S)\nT.copy(S, Q[bx, bx * block_M : (bx + 1) * block_M, 3, 0:32])"
    assert listing(body(text, tensors=tensors)) == [
        "copy Q[bx, 0:+block_M, 3, 0:+32] -> S",
        "copy S -> Q[bx, (bx * block_M):+block_M, 3, 0:+32]",
    ]


def test_gemm(body: Callable[..., object], listing: Callable[..., list[str]]) -> None:
    text = """
    a = T.alloc_shared((2, 64, 32), "float16")
    b = T.alloc_shared((48, 32), "float16")
    c = T.alloc_fragment((64, 48), "float32")
    T.gemm(a[1, :, :], b, c, transpose_B=True, policy=T.GemmWarpPolicy.FullRow)
    T.gemm(a[0, :, :], b, c, False, True, clear_accum=True)
    """
    program = body(text)
    assert listing(program) == [
        "gemm a[1, 0:+64, 0:+32], b, c, FullRow, transpose_b",
        "gemm a[0, 0:+64, 0:+32], b, c, no policy, transpose_b, clear",
    ]
    assert program.launches[0].body[0].mnk == (64, 48, 32)


def test_reduce_and_fill(body: Callable[..., object], listing: Callable[..., list[str]]) -> None:
    text = (
        TILES
        + """
column = T.alloc_fragment((64,), "float32")
kept = T.alloc_fragment((block_M, 1), "float32")
T.reduce_max(F, row, dim=1, clear=False)
T.reduce_sum(F, column, dim=0)
T.reduce_absmax(F, kept)
T.clear(row)
T.fill(R[1, :, 0:8], -T.infinity("float16"))
"""
    )
    assert listing(body(text)) == [
        "reduce_max F -> row, dim=1, clear=False",
        "reduce_sum F -> column, dim=0, clear=True",
        "reduce_absmax F -> kept, dim=1, clear=True",
        "clear row with 0",
        "fill R[1, 0:+32, 0:+8] with -infinity()",
    ]


def test_pipeline_and_swizzle(body: Callable[..., object], listing: Callable[..., list[str]]) -> None:
    text = (
        TILES
        + "T.use_swizzle(10)\nfor k in T.Pipelined(1, T.ceildiv(N, 32), num_stages=3):\n    T.copy(A[0, k * 32], S)"
    )
    assert listing(body(text)) == [
        "swizzle 10 row",
        "pipelined k in 1:ceildiv(N, 32):1, stages=3",
        "  copy A[0:+block_M, (k * 32):+32] -> S",
    ]


@pytest.mark.parametrize(
    ("statement", "refused"),
    {
        "T.copy(A[0:64, 0:16], S)": "F020 T.copy from `A` (64, 16) to `S` (64, 32): the shapes do not agree",
        "T.copy(row, S)": "F020 T.copy from `row` (64,) to `S` (64, 32): the shapes do not agree",
        "T.copy(R, A[0, 0])": "F020 T.copy: `R` of 3 dimensions (3, 32, 64) does not fit `A` of 2",
        "T.copy(A[0:64:2, 0:32], S)": "F012 slices with a step are not supported",
        "T.copy(A[9:2, 0:32], S)": "F023 a slice of `A` has -7 elements in dimension 0",
        "T.copy(3, S)": "F023 the source of T.copy must be a buffer, not the number 3",
        "T.copy(A[0.5, 0], S)": "F024 an index of `A` must be an integer, not float32",
        "T.gemm(S, R, F)": "F021 T.gemm: B is `R` (3, 32, 64), not a matrix",
        "T.gemm(S, R[0, :, :], S)": "F021 T.gemm: `S` (64, 32) @ `R` (32, 64) is (64, 64), but `S` is (64, 32)",
        "T.gemm(S, R[0, :, :], F, policy='FullRow')": "F023 `policy` of T.gemm is one of T.GemmWarpPolicy, "
        "not the string 'FullRow'",
        "T.reduce_sum(F, row, dim=2)": "F022 T.reduce_sum: `F` (64, 64) has no dimension 2",
        "T.reduce_sum(A, row)": "F023 T.reduce_sum takes tiles, not `A`, a tensor in global memory",
        "T.alloc_shared((8,), 'float16')": "F031 this buffer has no name",
    }.items(),
)
def test_refused(refusal: Callable[..., str], statement: str, refused: str) -> None:
    assert refusal(TILES + statement) == refused
