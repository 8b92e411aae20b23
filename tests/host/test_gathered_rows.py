"""Loops of pipelined loops that gather rows of a tensor are copies of rows, which run ahead of the turns."""

from pathlib import Path

import numpy as np
import pytest

from tests.host.kernels import assert_interpreted, load_body, source_of_body
from tile2cu_runtime import Kernel

RNG = np.random.default_rng(7)
PARAMS = (
    'A: T.Tensor((R, G, K), "float16"), B: T.Tensor((K, 64), "float16"), rows: T.Tensor((M,), "int32"), '
    'C: T.Tensor((M, 64), "float32")'
)
BODY = """
        A_shared = T.alloc_shared((64, 32), "{dtype}")
        B_shared = T.alloc_shared((32, 64), "float16")
        A_local = T.alloc_fragment((64, 32), "float16")
        C_local = T.alloc_fragment((64, 64), "float32")
        own = T.alloc_shared((64,), "int32")
        held = T.alloc_fragment((64,), "int32")
        moved = T.alloc_var("int32")
        moved = 0
        T.copy(rows[bx * 64], own)
        T.copy(rows[bx * 64], held)
        T.clear(C_local)
        for k in T.Pipelined(T.ceildiv(K, 32), num_stages={stages}):
            for i, j in T.Parallel({height}, 32):
                A_shared[i, j] = {a}
            {b}
            {more}
            T.copy(A_shared, A_local)
            T.gemm(A_local, B_shared, C_local)
        {after}
        T.copy(C_local, C[bx * 64, 0])
"""
WHERE = "bx * 64 + i"
COPY = "T.copy(B[k * 32, 0], B_shared)"
BACKWARDS = """for i, j in T.Parallel(32, 64):
                at = K - 1 - k * 32 - i
                B_shared[i, j] = T.if_then_else(at >= 0, B[at, j], 0)"""


def form(a: str, target: str, **changed: object) -> dict[str, str]:
    parts = {"dtype": "float16", "b": COPY, "stages": 3, "height": 64, "more": "pass", "after": "pass"} | changed
    launch = {"grid": "T.ceildiv(M, 64)", "arguments": "M, R, G, K", "target": target}
    return {"statements": BODY.format(a=a, **parts), "params": PARAMS, **launch}


def gathering(folder: Path, a: str, target: str = "cuda:sm_80", **changed: object) -> Kernel:
    return load_body(folder, **form(a, target, **changed))


def source(folder: Path, a: str, target: str = "cuda:sm_80", **changed: object) -> str:
    return source_of_body(folder, **form(a, target, **changed))


# The row of A that row m of C multiplies, from rows[m]; -1 where it is zero.
CASES = {
    "a tile's": ("A[own[i], 1, k * 32 + j]", lambda m, r: r),
    "a tile's, on a condition": (
        "T.if_then_else(own[i] % 3 != 0, A[own[i], 1, k * 32 + j], 0)",
        lambda m, r: r if r % 3 else -1,
    ),
    "integers'": (f"A[({WHERE}) * 7 % 50, 1, k * 32 + j]", lambda m, r: m * 7 % 50),
    "two conditions": (
        "T.if_then_else(own[i] > 3 and i != 5, A[own[i] - 3, 1, k * 32 + j], 0)",
        lambda m, r: r - 3 if r > 3 and m % 64 != 5 else -1,
    ),
}


@pytest.mark.sweep(cases=1)
@pytest.mark.parametrize("target", ["cuda:sm_80", "cuda:sm_90a"])
@pytest.mark.parametrize("case", CASES)
def test_rows_run_ahead(case: str, target: str, tmp_path: Path) -> None:
    """Of no turns, one, and several, the last of them ragged; of rows inside and outside of the tensor; 2-byte rows."""
    a, of_row = CASES[case]
    kernel = gathering(tmp_path, a, target, b=BACKWARDS)
    assert kernel.source.count("tl::copy_rows_async<threads>(") == 2
    for k in (104, 32, 0, 33):
        tensor, b = (RNG.integers(-3, 4, shape).astype(np.float16) for shape in ((50, 2, k), (k, 64)))
        rows = RNG.integers(-2, 60, 100).astype(np.int32)
        chosen = [of_row(m, r) for m, r in enumerate(rows)]
        expected = np.array(
            [tensor[r, 1].astype(float) @ b[::-1].astype(float) if 0 <= r < 50 else np.zeros(64) for r in chosen]
        )
        result = np.full((100, 64), 9, np.float32)
        kernel(tensor, b, rows, result)
        np.testing.assert_array_equal(result, expected)


OWN = "A[own[i], 1, k * 32 + j]"
OTHERS = {
    "the turn writes where rows are": (OWN, {"more": "own[0] = k"}),
    "the turn assigns where rows are": ("A[own[i] + moved, 1, k * 32 + j]", {"more": "moved = moved + 1"}),
    "a part of the tile": (OWN, {"height": 32}),
    "another type": (OWN, {"dtype": "float32"}),
    "read later": (OWN, {"after": "T.copy(A_shared, A_local)"}),
    "registers say where": ("A[held[i] + 1, 1, k * 32 + j]", {}),
    "a tensor says where": (f"A[rows[{WHERE}], 1, k * 32 + j]", {}),
    "columns apart": ("A[own[i], 1, k * 32 + j * 2]", {}),
    "columns that rows move": ("A[own[i], 1, k * 32 + j + i]", {}),
    "a condition on columns": (f"T.if_then_else(own[i] < j + 3, {OWN}, 0)", {}),
    "not zero": (f"T.if_then_else(own[i] < 9, {OWN}, 1)", {}),
    "something is computed": (f"{OWN} * 2", {}),
}


@pytest.mark.parametrize("case", OTHERS)
def test_other_loops_stay(case: str, tmp_path: Path) -> None:
    a, changed = OTHERS[case]
    text = source(tmp_path, a, **changed)
    assert "tl::copy_rows_async" not in text and text.count("tl::copy_async<threads>(B") == 1


NIGHTLY = {**OTHERS, "no cp.async": (OWN, {"target": "hip:gfx942"}), "slots that do not fit": (OWN, {"stages": 24})}


@pytest.mark.nightly  # for each change, their sources are read
@pytest.mark.parametrize("case", NIGHTLY)
def test_loops_that_stay_compute_what_the_user_wrote(case: str, tmp_path: Path) -> None:
    a, changed = NIGHTLY[case]
    kernel = gathering(tmp_path, a, **changed)
    if case == "a part of the tile":  # it multiplies rows that nothing writes
        return
    shapes = {"A": (50, 2, 104), "B": (104, 64)}
    given = {name: RNG.integers(-3, 4, shape).astype(np.float16) for name, shape in shapes.items()}
    given |= {"rows": RNG.integers(3, 40, 128).astype(np.int32), "C": np.zeros((128, 64), np.float32)}
    assert_interpreted(kernel, tmp_path / "small.py", given)


def test_machines_without_cp_async_keep_the_loop(tmp_path: Path) -> None:
    assert "tl::copy_rows_async" not in source(tmp_path, OWN, "hip:gfx942")


def test_slots_that_do_not_fit_are_none(tmp_path: Path) -> None:
    """The loop stays, and the copies keep their stages."""
    text = source(tmp_path, OWN, stages=24)
    assert "tl::copy_rows_async" not in text and "tl::cp_async_wait<num_stages - 2>();" in text
    assert "num_stages = 24;" in text
