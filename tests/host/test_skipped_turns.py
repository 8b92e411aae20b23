"""Branches in pipelined loops: a producer skips the same turns, and loads from the place that is chosen."""

from pathlib import Path

import numpy as np
import pytest

import tile2cu
from tests.host.kernels import load_body
from tile2cu_runtime import CheckError, Kernel, load_kernel

RNG = np.random.default_rng(3)
HEAD = """
        A_shared = T.alloc_shared((64, 64), "float16")
        B_shared = T.alloc_shared((64, 64), "float16")
        C_local = T.alloc_fragment((64, 64), "float32")
        T.clear(C_local)
"""
TURN = """T.copy(A[by * 64, {k} * 64], A_shared)
                T.copy(B[{k} * 64, bx * 64], B_shared)
                T.gemm(A_shared, B_shared, C_local)
        T.copy(C_local, C[by * 64, bx * 64])
"""
LOOP = "for k in T.Pipelined(T.ceildiv(K, 64), num_stages=2):"
FORMS = {
    "an element of a tensor": f"""{HEAD}
        {LOOP}
            if mask[by, bx, k] != 0:
                {TURN.format(k="k")}""",
    "an element of a copy": f"""{HEAD}
        row = T.alloc_fragment((4,), "int32")
        T.copy(mask[by, bx, :], row)
        {LOOP}
            if row[k] != 0:
                {TURN.format(k="k")}""",
    "values of a turn": f"""{HEAD}
        {LOOP}
            here = mask[by, bx, k]
            other = 3 - k
            if here != 0 and other < T.ceildiv(K, 64):
                {TURN.format(k="other")}""",
}


def kernel_of(form: str, folder: Path, **options: object) -> Kernel:
    return load_body(
        folder,
        FORMS[form],
        'A: T.Tensor((M, K), "float16"), B: T.Tensor((K, N), "float16"), '
        'mask: T.Tensor((T.ceildiv(M, 64), T.ceildiv(N, 64), 4), "int32"), C: T.Tensor((M, N), "float32")',
        grid="T.ceildiv(N, 64), T.ceildiv(M, 64)",
        blocks="(bx, by)",
        arguments="M, N, K",
        target="cuda:sm_90a",
        **options,
    )


def problem(form: str) -> tuple[tuple[np.ndarray, ...], np.ndarray]:
    """Ragged in all dimensions; among the tiles of C are some of all turns, of the last one, and of none."""
    m, n, k = 150, 136, 208
    a, b = (RNG.integers(-4, 5, shape).astype(np.float16) for shape in ((m, k), (k, n)))
    mask = RNG.integers(0, 2, (3, 3, 4)).astype(np.int32)
    mask[0, 0], mask[0, 1], mask[1, 2], mask[2, 2] = 0, 1, (0, 0, 0, 1), (1, 0, 0, 0)
    used = mask[:, :, ::-1] if form == "values of a turn" else mask
    whole = used.repeat(64, axis=2)[:, :, :k].astype(np.float64)
    expected = np.zeros((m, n))
    for row, column in np.ndindex(3, 3):
        rows, columns = slice(64 * row, min(64 * row + 64, m)), slice(64 * column, min(64 * column + 64, n))
        expected[rows, columns] = a[rows] * whole[row, column] @ b[:, columns].astype(np.float64)
    return (a, b, mask), expected


@pytest.mark.sweep(cases=1)
@pytest.mark.parametrize("form", FORMS)
def test_turns_are_skipped_by_all(form: str, tmp_path: Path) -> None:
    kernel = kernel_of(form, tmp_path)
    arrays, expected = problem(form)
    np.testing.assert_array_equal(kernel(*arrays), expected)
    assert "pipeline.producer_acquire(stage);" in kernel.source and "rewrite.iterations.skipped" in kernel.source


def test_a_producer_that_skips_other_turns_is_reported(tmp_path: Path) -> None:
    loads = "tl::Barrier& full = pipeline.producer_acquire(stage);"
    assert kernel_of("an element of a tensor", tmp_path).source.count(loads) == 1
    (emitted,) = tile2cu.emit(tmp_path / "small.py", target="cuda:sm_90a").values()
    for name, text in emitted.files.items():
        (tmp_path / name).write_text(text.replace(loads, f"if (iteration.k == 0) return;\n{loads}"), encoding="utf-8")
    arrays, _ = problem("")
    with pytest.raises(CheckError):
        load_kernel(tmp_path / "small.cu", device="cpu", check=True)(*arrays)


OVERLAPPING = """
        A_shared = T.alloc_shared((64, 64), "float16")
        B_shared = T.alloc_shared((64, 64), "float16")
        D_shared = T.alloc_shared((64, 64), "float16")
        S = T.alloc_fragment((64, 64), "float32")
        P = T.alloc_fragment((64, 64), "float16")
        C_local = T.alloc_fragment((64, 64), "float32")
        T.copy(A[bx * 64, 0], A_shared)
        T.clear(C_local)
        for k in T.Pipelined(T.ceildiv(N, 64), num_stages={stages}):
            here = mask[bx, k]
            other = 3 - k
            if here != 0 and other < T.ceildiv(N, 64):
                T.copy(B[other * 64, 0], B_shared)
                T.copy(D[other * 64, 0], D_shared)
                T.gemm(A_shared, B_shared, S, transpose_B=True, clear_accum=True)
                {branch}
                    for i, j in T.Parallel(64, 64):
                        S[i, j] += 3
                for i, j in T.Parallel(64, 64):
                    P[i, j] = S[i, j] - other
                for i, j in T.Parallel(64, 64):
                    C_local[i, j] = C_local[i, j] * 0.5 + {late}
                T.gemm(P, D_shared, C_local)
        T.copy(C_local, C[bx * 64, 0])
"""


BRANCHES = [("if other == 2:", "other", 2), ("if other == 2:", "1", 1), ("for _ in T.serial(1):", "1", 2)]


@pytest.mark.sweep(cases=1)
@pytest.mark.parametrize(("branch", "late", "stages"), BRANCHES)
def test_turns_that_are_not_skipped_overlap(branch: str, late: str, stages: int, tmp_path: Path) -> None:
    """Parts of a turn ask which it is, beside the second product and behind it; of some blocks no turn is taken.

    Without a branch the compiler would wait for the second product at once.
    """
    params = (
        'A: T.Tensor((M, 64), "float16"), B: T.Tensor((N, 64), "float16"), D: T.Tensor((N, 64), "float16"), '
        'mask: T.Tensor((T.ceildiv(M, 64), 4), "int32"), C: T.Tensor((M, 64), "float32")'
    )
    launch = {"grid": "T.ceildiv(M, 64)", "arguments": "M, N", "target": "cuda:sm_90a"}
    kernel = load_body(tmp_path, OVERLAPPING.format(branch=branch, late=late, stages=stages), params, **launch)
    overlaps = "for_each_iteration([&](const Iteration& iteration) {\n    start_S(k_iter);" in kernel.source
    assert overlaps == branch.startswith("if")
    a, b, d = (RNG.integers(-1, 2, shape).astype(np.float16) for shape in ((300, 64), (208, 64), (208, 64)))
    mask = np.array([[0, 0, 0, 0], [1, 1, 1, 1], [0, 0, 1, 0], [1, 0, 0, 1], [0, 1, 1, 1]], np.int32)
    expected = np.zeros((300, 64))
    for block, turn in zip(*np.nonzero(mask), strict=True):
        other = 3 - int(turn)
        rows, keys = slice(64 * block, 64 * block + 64), slice(64 * other, 64 * other + 64)
        product = a[rows].astype(float) @ b[keys].T.astype(float) - other + 3 * (other == 2 or not overlaps)
        added = other if late == "other" else 1
        expected[rows] = expected[rows] * 0.5 + added + product @ d[keys].astype(float)
    np.testing.assert_array_equal(kernel(a, b, d, mask), expected)


def test_what_only_turns_know_is_not_loaded_ahead(tmp_path: Path) -> None:
    body = f"""{HEAD}
        left = T.alloc_var("int32", 3)
        for k in T.Pipelined(4, num_stages=2):
            if left > 0:
                left = left - 1 - k
                {TURN.format(k="k")}"""
    params = 'A: T.Tensor((64, 256), "float16"), B: T.Tensor((256, 64), "float16"), C: T.Tensor((64, 64), "float32")'
    kernel = load_body(tmp_path, body, params, grid="1, 1", blocks="(bx, by)", target="cuda:sm_90a")
    assert "is_producer" not in kernel.source
    a, b = (RNG.integers(-4, 5, shape).astype(np.float16) for shape in ((64, 256), (256, 64)))
    np.testing.assert_array_equal(kernel(a, b), a[:, :128].astype(np.float64) @ b[:128].astype(np.float64))


CHOSEN = """
        A_shared = T.alloc_shared((64, 64), "float16")
        B_shared = T.alloc_shared((64, 64), "float16")
        C_local = T.alloc_fragment((64, 64), "float32")
        T.clear(C_local)
        for k in T.Pipelined(T.ceildiv(K, 64), num_stages=2):
            first = {first}
            if first != 0:
                T.copy(A[bx * 64, 0], A_shared)
            else:
                T.copy({other}[0, k * 64], A_shared)
            T.copy(B[k * 64, bx * 64], B_shared)
            T.gemm(A_shared, B_shared, C_local)
        T.copy(C_local, C[0, bx * 64])
"""


@pytest.mark.sweep(cases=1)
@pytest.mark.parametrize(
    ("other", "first", "ahead"),
    [("A", "T.if_then_else(k == 0, 1, 0)", True), ("A", "First[k]", True), ("D", "First[k]", False)],
)
def test_one_of_two_places_is_loaded_ahead(other: str, first: str, ahead: bool, tmp_path: Path) -> None:
    """Of one tensor, a condition or another tensor says which; ragged, and a first tile lies past the end of A."""
    params = (
        'A: T.Tensor((M, K), "float16"), D: T.Tensor((M, K), "float16"), B: T.Tensor((K, N), "float16"), '
        'First: T.Tensor((4,), "int32"), C: T.Tensor((64, N), "float32")'
    )
    launch = {"grid": "T.ceildiv(N, 64)", "arguments": "M, N, K", "target": "cuda:sm_90a"}
    kernel = load_body(tmp_path, CHOSEN.format(other=other, first=first), params, **launch)
    assert ("rewrite.copy.if-conversion" in kernel.source) == ahead == ("tl::tma_load(A_map" in kernel.source)
    a, d, b = (RNG.integers(-4, 5, shape).astype(np.float16) for shape in ((90, 200), (90, 200), (200, 136)))
    from_second = (a if other == "A" else d)[:64, 64:].astype(np.float64)
    expected = np.zeros((64, 136))
    for column in range(0, 136, 64):
        rows = np.zeros((64, 64))
        rows[: len(a[column : column + 64])] = a[column : column + 64, :64]
        part = b[:, column : column + 64].astype(np.float64)
        expected[:, column : column + 64] = rows @ part[:64] + from_second @ part[64:]
    np.testing.assert_array_equal(kernel(a, d, b, np.array([1, 0, 0, 0], np.int32)), expected)
