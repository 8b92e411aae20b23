"""Tiles that are loaded ahead, in slots, for whatever reads them, as tile compilers got it wrong before."""

from pathlib import Path

import numpy as np
import pytest

from tests.host.kernels import load_body
from tests.host.pitfalls.inputs import TARGETS, integers


@pytest.mark.sweep(cases=1)
@TARGETS
@pytest.mark.parametrize("stages", [1, 2, 3])
def test_a_turn_copies_one_operand_and_loops_over_the_other(target: str, stages: int, tmp_path: Path) -> None:
    statements = f"""
        A_shared = T.alloc_shared((64, 32), "float16")
        B_shared = T.alloc_shared((64, 32), "float16")
        C_local = T.alloc_fragment((64, 64), "float32")
        T.clear(C_local)
        for k in T.Pipelined(T.ceildiv(K, 32), num_stages={stages}):
            T.copy(A[0, k * 32], A_shared)
            for i, j in T.Parallel(64, 32):
                B_shared[i, j] = B[i, k * 32 + j]
            T.gemm(A_shared, B_shared, C_local, transpose_B=True)
        T.copy(C_local, C)
    """
    params = 'A: T.Tensor((64, K), "float16"), B: T.Tensor((64, K), "float16"), C: T.Tensor((64, 64), "float32")'
    kernel = load_body(tmp_path, statements, params, arguments="K", target=target)
    for k in (8, 32, 40, 136):  # one turn, less than one, a rest, and more turns than stages
        a, b = integers(64, k, dtype=np.float16), integers(64, k, dtype=np.float16)
        np.testing.assert_array_equal(kernel(a, b), a.astype(np.float64) @ b.astype(np.float64).T)


@pytest.mark.sweep(cases=1)
@TARGETS
@pytest.mark.parametrize("chosen", [False, True])
def test_rows_that_a_table_of_a_table_names(target: str, chosen: bool, tmp_path: Path) -> None:
    inner = "T.copy(X[there, :], row)\n            T.copy(row, own)\n            T.atomic_add(Y[0, 0], own)"
    if chosen:
        inner = "if there > 1:\n                " + inner.replace("\n    ", "\n        ")
    statements = f"""
        row = T.alloc_shared((64,), "float32")
        unused = T.alloc_shared((64,), "float32")
        own = T.alloc_fragment((64,), "float32")
        for i in T.Pipelined(4, num_stages=2):
            here = I[i]
            there = J[here]
            {inner}
            T.clear(unused)
    """
    params = (
        'X: T.Tensor((8, 64), "float32"), I: T.Tensor((4,), "int32"), J: T.Tensor((4,), "int32"), '
        'Y: T.Tensor((1, 64), "float32")'
    )
    kernel = load_body(tmp_path, statements, params, target=target, check=False)
    x, y = integers(8, 64), np.zeros((1, 64), np.float32)
    i, j = np.array([3, 0, 2, 1], np.int32), np.array([5, 1, 7, 0], np.int32)
    kernel(x, i, j, y)
    rows = [row for row in j[i] if row > 1 or not chosen]
    np.testing.assert_array_equal(y[0], x[rows].sum(axis=0))


@pytest.mark.sweep(cases=1)
@TARGETS
@pytest.mark.parametrize("stages", [2, 3])
def test_slots_of_one_dimension(target: str, stages: int, tmp_path: Path) -> None:
    statements = f"""
        held = T.alloc_shared((32,), "float16")
        own = T.alloc_fragment((32,), "float32")
        for k in T.Pipelined(T.ceildiv(N, 32), num_stages={stages}):
            T.copy(X[k * 32 : (k + 1) * 32], held)
            T.copy(held, own)
            for i in T.Parallel(32):
                Y[k * 32 + i] = own[i] * 2
    """
    params = 'X: T.Tensor((N,), "float16"), Y: T.Tensor((N,), "float32")'
    kernel = load_body(tmp_path, statements, params, arguments="N", target=target)
    for n in (256, 264, 8):
        x = integers(n, dtype=np.float16)
        np.testing.assert_array_equal(kernel(x), x.astype(np.float32) * 2)


SHARED_BY_LOOPS = """
        A_shared = T.alloc_shared((64, 32), "float16")
        C_local = T.alloc_fragment((64, 64), "float32")
        T.clear(C_local)
        {loops}
        T.copy(C_local, C)
"""
ONE_LOOP = """for k in T.Pipelined({turns}, num_stages={stages}):
            T.copy(A[0, {start} + k * 32], A_shared)
            T.gemm(A_shared, A_shared, C_local, transpose_B=True)
        """
ONE_TURN = """T.copy(A[0, {start}], A_shared)
        T.gemm(A_shared, A_shared, C_local, transpose_B=True)
        """


@pytest.mark.sweep(cases=1)
@TARGETS
@pytest.mark.parametrize(
    ("first", "second"), [(0, 1), (1, 0), (2, 3), (0, 2), (3, None), (None, 3)], ids=lambda stages: str(stages)
)
def test_loops_of_other_depths_share_a_tile(target: str, first: int | None, second: int | None, tmp_path: Path) -> None:
    """A number is a loop with so many stages; None is one turn that stands by itself."""
    turns, rest = (1, 5) if first is None else (4, 2 if second is not None else 1)
    loops = (ONE_TURN if first is None else ONE_LOOP).format(start=0, turns=turns, stages=first)
    loops += (ONE_TURN if second is None else ONE_LOOP).format(start=32 * turns, turns=rest, stages=second)
    params = f'A: T.Tensor((64, {32 * (turns + rest)}), "float16"), C: T.Tensor((64, 64), "float32")'
    a = integers(64, 32 * (turns + rest), dtype=np.float16)
    wide = a.astype(np.float64)
    kernel = load_body(tmp_path, SHARED_BY_LOOPS.format(loops=loops), params, target=target)
    np.testing.assert_array_equal(kernel(a), wide @ wide.T)


@TARGETS
def test_a_row_of_a_tile_of_one_dimension_is_stored_as_far_as_the_tensor_goes(target: str, tmp_path: Path) -> None:
    statements = """
        held = T.alloc_shared((256,), "float32")
        for i in T.Parallel(256):
            held[i] = bx * 256 + i
        T.copy(held, Y[bx * 256])
    """
    kernel = load_body(tmp_path, statements, 'Y: T.Tensor((1000,), "float32")', grid="4", target=target)
    np.testing.assert_array_equal(kernel(), np.arange(1000))


TILES = [
    ((4, 9), 3, "8"),
    ((4, 8), 3, "8"),
    ((2, 3), 16, "8"),
    ((10,), 4, "3"),
    ((3, 5, 10), 4, "4"),
    ((2, 3, 2, 7), 5, "3"),
    ((7, 11), 5, "group"),  # a size of the call's
    ((3, 2, 11), 5, "group - 4"),
]


@pytest.mark.sweep(cases=2)
@pytest.mark.parametrize(("shape", "blocks", "group"), TILES)
def test_every_tile_has_its_turn(shape: tuple[int, ...], blocks: int, group: str, tmp_path: Path) -> None:
    """In order: panels of as many places along the last dimension, and all others in each."""
    names, given = ", ".join("ijkl"[: len(shape)]), 4
    statements = f"""
        group = X.shape[0]
        turn = T.alloc_var("int32", bx)
        for {names} in T.Persistent({list(shape)}, {blocks}, bx, group_size={group}):
            Y[{names}] += turn + 1
            turn = turn + {blocks}
    """
    params = f'X: T.Tensor((n,), "int32"), Y: T.Tensor({shape}, "int32")'
    kernel = load_body(tmp_path, statements, params, grid=str(blocks), threads=1, arguments="n")
    y = np.zeros(shape, np.int32)
    kernel(np.zeros(given, np.int32), y)
    wide = max(1, min(shape[-1], eval(group, {"group": given})))
    places = sorted(np.ndindex(*shape), key=lambda place: (place[-1] // wide, place))
    np.testing.assert_array_equal([y[place] for place in places], np.arange(1, y.size + 1))
