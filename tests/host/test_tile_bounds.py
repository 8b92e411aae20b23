"""The engine finds an index that leaves its tile, although the address belongs to a neighbouring tile of the block."""

import re
from pathlib import Path

import numpy as np
import pytest

import tile2cu
from tests.host.kernels import load_body
from tile2cu_runtime import CheckError, Kernel, load_kernel

TARGETS = ("cuda:sm_80", "cuda:sm_90a", "hip:gfx942")

READ = """
        first = T.alloc_shared((64, 32), "float32")
        second = T.alloc_shared((64, 32), "float32")
        T.copy(A, first)
        T.copy(A, second)
        for i, j in T.Parallel(64, 32):
            C[i, j] = first[i, {index}] + second[i, j]  # reads
"""
WRITTEN = """
        first = T.alloc_shared((64, 32), "float32")
        second = T.alloc_shared((64, 32), "float32")
        T.clear(second)
        T.clear(first)
        for i, j in T.Parallel(64, 32):
            first[{index}, j] = A[i, j]  # writes
        for i, j in T.Parallel(64, 32):
            C[i, j] = first[i, j] + second[i, j]
"""
VECTOR = """
        first = T.alloc_shared((64,), "float32")
        second = T.alloc_shared((64,), "float32")
        for i in T.Parallel(64):
            first[i] = A[i, 0]
            second[i] = A[i, 1]
        for i, j in T.Parallel(64, 32):
            C[i, j] = first[{index}] + second[i]  # reads
"""
REPLICATED = """
        taken = T.alloc_fragment((4,), "float32")
        for t in T.serial(4):
            taken[t] = A[0, t]
        for t in T.serial(4):
            for i, j in T.Parallel(64, 32):
                C[i, j] = taken[{index}]  # reads
"""
PART = """
        first = T.alloc_shared((64, 32), "float32")
        second = T.alloc_shared((64, 32), "float32")
        part = T.alloc_fragment((16, 32), "float32")
        T.copy(A, first)
        T.copy(A, second)
        for k in T.serial(4):
            T.copy(first[{index} : {index} + 16, :], part)  # reads
            for i, j in T.Parallel(16, 32):
                C[k * 16 + i, j] = part[i, j] + second[k * 16 + i, j]
"""
PRIVATE = """
        own = T.alloc_local((4,), "float32")
        other = T.alloc_local((4,), "float32")
        for i, j in T.Parallel(64, 32):
            for t in T.serial(4):
                own[t] = A[i, t]
                other[t] = A[i, t]
            C[i, j] = own[{index}] + other[3]  # reads
"""
# Body, an index that stays inside, and one that leaves the tile where n is 1.
FAULTS = [
    (READ, "(j + n) % 32", "j + n"),
    (READ, "(j + n) % 32", "j - n"),
    (WRITTEN, "(i + n) % 64", "i + n"),
    (VECTOR, "(i + n) % 64", "i + n"),
    (REPLICATED, "(t + n) % 4", "t + n"),
    (PRIVATE, "(i + n) % 4", "i % 4 + n"),
    (PRIVATE, "(i + n) % 4", "i % 4 - n"),
    (PART, "(k * 16 + 16 * n) % 64", "k * 16 + 16 * n"),
]


def kernel(folder: Path, target: str, body: str, index: str) -> Kernel:
    params = "A: T.Tensor((64, 32), 'float32'), n: T.int32, C: T.Tensor((64, 32), 'float32')"
    return load_body(folder, body.format(index=index), params, target=target, threads=128)


def values() -> np.ndarray:
    return np.arange(64 * 32, dtype=np.float32).reshape(64, 32)


@pytest.mark.sweep(cases=2)
@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize(("body", "outside"), [(body, outside) for body, _, outside in FAULTS])
def test_an_index_that_leaves_its_tile_is_reported(body: str, outside: str, target: str, tmp_path: Path) -> None:
    with pytest.raises(CheckError, match="index out of bounds") as found:
        kernel(tmp_path, target, body, outside)(values(), 1)
    assert "# reads" in str(found.value) or "# writes" in str(found.value), "the line of the access is shown"


@pytest.mark.sweep(cases=2)
@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize(("body", "inside"), [(body, inside) for body, inside, _ in FAULTS])
def test_indices_that_stay_in_their_tile_are_silent(body: str, inside: str, target: str, tmp_path: Path) -> None:
    kernel(tmp_path, target, body, inside)(values(), 1)


PIPELINED = """
        A_shared = T.alloc_shared((64, 64), "float16")
        B_shared = T.alloc_shared((64, 64), "float16")
        acc = T.alloc_fragment((64, 64), "float32")
        T.clear(acc)
        for k in T.Pipelined(4, num_stages=2):
            T.copy(A[0, k * 64], A_shared)
            T.copy(A[0, k * 64], B_shared)
            T.gemm(A_shared, B_shared, acc, transpose_B=True)  # reads
        T.copy(acc, C)
"""


@pytest.mark.sweep(cases=1)
@pytest.mark.parametrize("target", TARGETS)
def test_a_stage_behind_the_last_one_is_reported(target: str, tmp_path: Path) -> None:
    """The MMA of an emitted source reads the stage behind the last one of a tile, where another tile is."""
    params = "A: T.Tensor((64, 256), 'float16'), C: T.Tensor((64, 64), 'float32')"
    right = load_body(tmp_path, PIPELINED, params, target=target, threads=128)
    a = np.arange(64 * 256, dtype=np.float16).reshape(64, 256) % 5
    np.testing.assert_array_equal(right(a), a.astype(np.float32) @ a.T.astype(np.float32))
    (emitted,) = tile2cu.emit(tmp_path / "small.py", target=target).values()
    for name, text in emitted.files.items():
        wrong = re.sub(r"(gemm\(A_shared\[)(k % \w+|0)\]", r"\1\2 + 1]", text)
        assert (wrong != text) == name.endswith((".cu", ".hip"))
        (tmp_path / name).write_text(wrong, encoding="utf-8")
    (source,) = (name for name in emitted.files if name.endswith((".cu", ".hip")))
    with pytest.raises(CheckError, match="index out of bounds") as found:
        load_kernel(tmp_path / source, device="cpu", check=True)(a)
    assert " + 1], tl::transposed(" in str(found.value), "the line of the MMA is shown"
