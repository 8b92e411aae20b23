"""Loops of pipelined loops that fill a tile from a tensor are copies, running ahead; conditions say where they end."""

from pathlib import Path

import numpy as np
import pytest

from tests.host.kernels import assert_interpreted, load_body, source_of_body
from tile2cu_runtime import Kernel

RNG = np.random.default_rng(5)
PARAMS = (
    'A: T.Tensor((M, K), "float16"), B: T.Tensor((G, K, N), "float16"), starts: T.Tensor((G + 1,), "int32"), '
    'C: T.Tensor((M, N), "float32")'
)
BODY = """
        A_shared = T.alloc_shared((64, 32), "float16")
        B_shared = T.alloc_shared((32, 64), "float16")
        C_local = T.alloc_fragment((64, 64), "float32")
        first = starts[by] + bz * 64
        rows = T.min(64, starts[by + 1] - first)
        T.clear(C_local)
        for k in T.Pipelined(T.ceildiv(K, 32), num_stages=3):
            for i, j in T.Parallel(64, 32):
                A_shared[i, j] = {a}
            for i, j in T.Parallel(32, 64):
                B_shared[i, j] = {b}
            T.gemm(A_shared, B_shared, C_local)
        for i, j in T.Parallel(64, 64):
            if i < rows and bx * 64 + j < N:
                C[first + i, bx * 64 + j] = C_local[i, j]
"""
A = "T.if_then_else({}, A[first + i, k * 32 + j], 0)"
B = "T.if_then_else({}, B[by, k * 32 + i, bx * 64 + j], 0)"
WHOLE_B = "B[by, k * 32 + i, bx * 64 + j]"


LAUNCH = {"grid": "T.ceildiv(N, 64), G, 2", "blocks": "(bx, by, bz)", "arguments": "M, N, K, G"}


def grouped(a: str, b: str, target: str, folder: Path) -> Kernel:
    return load_body(folder, BODY.format(a=a, b=b), PARAMS, target=target, **LAUNCH)


def problem(k: int = 104, n: int = 72) -> tuple[tuple[np.ndarray, ...], list[slice]]:
    """Groups of 70, 0, 1 and 64 rows: some second blocks of a group start past its end, some past the tensor's."""
    starts = np.array([0, 70, 70, 71, 135], np.int32)
    a, b = (RNG.integers(-3, 4, shape).astype(np.float16) for shape in ((135, k), (4, k, n)))
    return (a, b, starts), [slice(*pair) for pair in zip(starts, starts[1:], strict=False)]


CASES = {
    "the end of a group": (
        "i < rows and j < K - k * 32",
        "i < K - k * 32 and j < T.min(64, N - bx * 64)",
        104,
        "tl::up_to<0>(A, tl::saturating_add(first, rows))",
    ),
    "the end of a group alone": ("i < rows", "", 96, "tl::up_to<0>(A, tl::saturating_add(first, rows))"),
    "the end of a group, as an index": ("first + i < starts[by + 1]", "", 96, "tl::up_to<0>(A, starts(by + 1))"),
    "columns, inside of eights": (
        "i < rows and j < 99 - k * 32",
        "",
        104,
        "tl::up_to<1>(tl::up_to<0>(A, tl::saturating_add(first, rows)), ",
    ),
}


@pytest.mark.sweep(cases=1)
@pytest.mark.parametrize("target", ["cuda:sm_80", "cuda:sm_90a"])
@pytest.mark.parametrize("case", CASES)
def test_conditions_say_where_copies_end(case: str, target: str, tmp_path: Path) -> None:
    of_a, of_b, k, text = CASES[case]
    kernel = grouped(A.format(of_a), B.format(of_b) if of_b else WHOLE_B, target, tmp_path)
    assert text in kernel.source and "(B, " not in kernel.source
    assert kernel.source.count("tl::copy_async<threads>(") == 2
    (a, b, starts), groups = problem(k)
    expected = np.zeros((135, 72))
    for number, rows in enumerate(groups):
        used = 99 if "99" in of_a else k
        expected[rows] = a[rows, :used].astype(float) @ b[number, :used].astype(float)
    result = np.zeros((135, 72), np.float32)
    kernel(a, b, starts, result)
    np.testing.assert_array_equal(result, expected)


OTHER = {
    "not zero": "T.if_then_else(i < rows, A[first + i, k * 32 + j], 1)",
    "one of two conditions": A.format("i < rows or j < 8"),
    "elements differ": A.format("i < rows - j"),
    "something is computed": "A[first + i, k * 32 + j] * 2",
    "rows are columns": "A[first + j, k * 32 + i]",
}


@pytest.mark.parametrize("case", OTHER)
def test_other_loops_stay(case: str, tmp_path: Path) -> None:
    source = source_of_body(tmp_path, BODY.format(a=OTHER[case], b=WHOLE_B), PARAMS, **LAUNCH)
    assert "tl::up_to" not in source and source.count("tl::copy_async<threads>(") == 1


@pytest.mark.nightly  # for each change, their sources are read
@pytest.mark.parametrize("case", OTHER)
def test_loops_that_stay_compute_what_the_user_wrote(case: str, tmp_path: Path) -> None:
    (a, b, starts), _ = problem()
    if case == "rows are columns":
        a = RNG.integers(-3, 4, (199, 104)).astype(np.float16)
    kernel = grouped(OTHER[case], WHOLE_B, "cuda:sm_80", tmp_path)
    given = {"A": a, "B": b, "starts": starts, "C": np.zeros((len(a), 72), np.float32)}
    assert_interpreted(kernel, tmp_path / "small.py", given)


def test_loops_without_conditions_go_to_a_producer(tmp_path: Path) -> None:
    """Of two tensors whose rows TMA reaches; ragged, as copies are."""
    kernel = grouped("A[first + i, k * 32 + j]", WHOLE_B, "cuda:sm_90a", tmp_path)
    assert kernel.source.count("tl::tma_load(") == 2
    (a, b, starts), groups = problem()
    expected = np.zeros((135, 72))
    for number, rows in enumerate(groups):
        expected[rows] = a[rows].astype(float) @ b[number].astype(float)
    result = np.zeros((135, 72), np.float32)
    kernel(a, b, starts, result)
    np.testing.assert_array_equal(result, expected)
