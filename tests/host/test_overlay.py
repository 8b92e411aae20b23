"""Shared tiles that are in use one after the other share memory where they do not all fit."""

import re
from pathlib import Path

import numpy as np
import pytest

from tests.host.kernels import load_body

RNG = np.random.default_rng(0)
# Two operands in slots, and a tile for the result: sm_89 has 101,376 bytes, sm_90a 232,448, less than all would take.
PERSISTENT = """
    A_shared = T.alloc_shared((128, 64), "float16")
    B_shared = T.alloc_shared((64, 128), "float16")
    C_shared = T.alloc_shared((128, 128), "float32")
    C_local = T.alloc_fragment((128, 128), "float32")
    for turn in T.serial(2):
        row = (turn * 2 + bx) * 128
        if row < M:
            T.clear(C_local)
            for k in T.Pipelined(T.ceildiv(K, 64), num_stages=3):
                T.copy(A[row, k * 64], A_shared)
                T.copy(B[k * 64, 0], B_shared)
                T.gemm(A_shared, B_shared, C_local)
            T.copy(C_local, C_shared)
            for i, j in T.Parallel(128, 128):
                if row + i < M:
                    C[row + i, j] = C_shared[i, j] + C_shared[i, 127 - j]
"""
EPILOGUE = """
    A_shared = T.alloc_shared((128, 64), "float16")
    B_shared = T.alloc_shared((64, 128), "float16")
    C_shared = T.alloc_shared((128, 128), "float32")
    C_local = T.alloc_fragment((128, 128), "float32")
    T.clear(C_local)
    for k in T.Pipelined(T.ceildiv(K, 64), num_stages=6):
        T.copy(A[bx * 128, k * 64], A_shared)
        T.copy(B[k * 64, 0], B_shared)
        T.gemm(A_shared, B_shared, C_local)
    T.copy(C_local, C_shared)
    for i, j in T.Parallel(128, 128):
        if bx * 128 + i < M:
            C[bx * 128 + i, j] = C_shared[i, j] + C_shared[i, 127 - j]
"""


@pytest.mark.sweep(cases=1)
@pytest.mark.parametrize(("statements", "target"), [(PERSISTENT, "cuda:sm_89"), (EPILOGUE, "cuda:sm_90a")])
def test_a_result_takes_the_memory_of_operands(statements: str, target: str, tmp_path: Path) -> None:
    params = 'A: T.Tensor((M, K), "float16"), B: T.Tensor((K, 128), "float16"), C: T.Tensor((M, 128), "float32")'
    sizes = {"M": 300, "K": 200}
    grid = "2" if "turn" in statements else "3"
    kernel = load_body(tmp_path, statements, params, grid=grid, arguments="M, K", target=target, **sizes)
    a, b = RNG.integers(-4, 5, (300, 200)).astype(np.float16), RNG.integers(-4, 5, (200, 128)).astype(np.float16)
    product = a.astype(float) @ b.astype(float)
    np.testing.assert_array_equal(kernel(a, b), product + product[:, ::-1])
    assert "union {" in kernel.source
    assert re.search("any overwrites (its|their) memory", " ".join(kernel.source.replace("//", "").split()))
    assert ("wgmma" in kernel.source) == (target == "cuda:sm_90a")


@pytest.mark.sweep(cases=1)
@pytest.mark.parametrize(("target", "stages"), [("cuda:sm_89", 3), ("cuda:sm_90a", 7)])
def test_where_fewer_stages_fit_than_asked_for_there_are_as_many(target: str, stages: int, tmp_path: Path) -> None:
    """Twelve of 32 KiB each do not; the file uses the number elsewhere, too, where it stays twelve."""
    statements = EPILOGUE.replace("num_stages=6", "num_stages=num_stages").replace("127 - j]", "127 - j] * num_stages")
    params = 'A: T.Tensor((M, K), "float16"), B: T.Tensor((K, 128), "float16"), C: T.Tensor((M, 128), "float32")'
    options = {"grid": "3", "arguments": "M, K, num_stages", "target": target}
    kernel = load_body(tmp_path, statements, params, **options, M=300, K=1000, num_stages=12)
    a, b = RNG.integers(-4, 5, (300, 1000)).astype(np.float16), RNG.integers(-4, 5, (1000, 128)).astype(np.float16)
    product = a.astype(float) @ b.astype(float)
    np.testing.assert_array_equal(kernel(a, b), product + product[:, ::-1] * 12)
    assert f"constexpr int shared_stages = {stages};" in kernel.source
    assert "12 are asked for and do not fit" in kernel.source


def test_what_lives_on_from_turn_to_turn_keeps_its_memory(tmp_path: Path) -> None:
    statements = """
        sums = T.alloc_shared((64, 160), "float32")
        one = T.alloc_shared((64, 160), "float32")
        two = T.alloc_shared((64, 160), "float32")
        T.clear(sums)
        for turn in T.serial(3):
            T.copy(X[turn * 64, 0], one)
            for i, j in T.Parallel(64, 160):
                sums[i, j] = sums[i, j] + one[i, 159 - j]
            for i, j in T.Parallel(64, 160):
                two[i, j] = sums[63 - i, j]
            for i, j in T.Parallel(64, 160):
                Y[turn * 64 + i, j] = two[i, 159 - j]
    """
    params = 'X: T.Tensor((192, 160), "float32"), Y: T.Tensor((192, 160), "float32")'
    kernel = load_body(tmp_path, statements, params, target="cuda:sm_89")
    x = RNG.integers(-50, 50, (192, 160)).astype(np.float32)
    expected = x.reshape(3, 64, 160)[:, ::-1].cumsum(0).reshape(192, 160)
    np.testing.assert_array_equal(kernel(x), expected)
    assert kernel.source.count("shared<Shared>().sums;") == 1
    assert "shared<Shared>().early.one" in kernel.source
    assert "shared<Shared>().late.two" in kernel.source


def test_reductions_share_their_workspaces(tmp_path: Path) -> None:
    statements = """
        one = T.alloc_shared((12, 1024), "float32")
        two = T.alloc_shared((12, 1024), "float32")
        L = T.alloc_fragment((1, 12288), "float32")
        largest = T.alloc_fragment((1,), "float32")
        total = T.alloc_fragment((1,), "float32")
        T.copy(X, one)
        for i, j in T.Parallel(1, 12288):
            L[i, j] = one[j % 12, j // 12]
        T.reduce_max(L, largest, dim=1)
        T.reduce_sum(L, total, dim=1)
        for i, j in T.Parallel(12, 1024):
            two[i, j] = one[i, j] if False else largest[0] - total[0]
        for i, j in T.Parallel(12, 1024):
            Y[i, j] = X[i, j] + two[11 - i, j]
    """
    params = 'X: T.Tensor((12, 1024), "float32"), Y: T.Tensor((12, 1024), "float32")'
    kernel = load_body(tmp_path, statements, params, target="cuda:sm_89")
    x = RNG.integers(-50, 50, (12, 1024)).astype(np.float32)
    np.testing.assert_array_equal(kernel(x), x + (x.max() - x.sum()))
    assert kernel.source.count("union {") == (2 if "early" in kernel.source else 0)


@pytest.mark.nightly
def test_reductions_share_a_workspace_where_that_is_enough(tmp_path: Path) -> None:
    """Two reductions across warps and a tile of all but the memory that one of their workspaces takes."""
    statements = """
        S = T.alloc_shared((160, 256), "float32")
        L = T.alloc_fragment((64, 256), "float32")
        most = T.alloc_fragment((256,), "float32")
        sums = T.alloc_fragment((256,), "float32")
        T.copy(X[bx * 64, 0], L)
        T.reduce_max(L, most, dim=0)
        T.reduce_sum(L, sums, dim=0)
        for i, j in T.Parallel(160, 256):
            S[i, j] = i
        for i, j in T.Parallel(64, 256):
            Y[bx * 64 + i, j] = (L[i, j] - most[j]) * sums[j] + S[i + 96, 255 - j]
    """
    params = 'X: T.Tensor((M, 256), "float32"), Y: T.Tensor((M, 256), "float32")'
    kernel = load_body(tmp_path, statements, params, grid="M // 64", arguments="M", M=128)
    x = RNG.integers(-4, 5, (128, 256)).astype(np.float32)
    tiles = x.reshape(2, 64, 256)
    expected = (tiles - tiles.max(1, keepdims=True)) * tiles.sum(1, keepdims=True)
    expected += np.arange(96, 160)[:, None]
    np.testing.assert_array_equal(kernel(x), expected.reshape(128, 256))
    assert "each exchange begins with a barrier, so they share memory" in kernel.source


BIASED = """
    A_shared = T.alloc_shared((128, 64), "float16")
    B_shared = T.alloc_shared((64, 128), "float16")
    doubled = T.alloc_shared((64, 128), "float16")
    start = T.alloc_shared((128, 128), "float32")
    C_shared = T.alloc_shared((128, 128), "float32")
    C_local = T.alloc_fragment((128, 128), "float32")
    for i, j in T.Parallel(128, 128):
        start[i, j] = T.if_then_else(bx * 128 + i < M, D[bx * 128 + i, j], 0)
    T.copy(start, C_local)
    for k in T.Pipelined(T.ceildiv(K, 64), num_stages=5):
        T.copy(A[bx * 128, k * 64], A_shared)
        T.copy(B[k * 64, 0], B_shared)
        for i, j in T.Parallel(64, 128):
            doubled[i, j] = B_shared[i, j] * 2
        T.gemm(A_shared, doubled, C_local)
    T.copy(C_local, C_shared)
    for i, j in T.Parallel(128, 128):
        if bx * 128 + i < M:
            C[bx * 128 + i, j] = C_shared[i, j] + C_shared[i, 127 - j]
"""


@pytest.mark.nightly
def test_tiles_that_no_producer_fills_share_memory_before_its_loop_too(tmp_path: Path) -> None:
    params = 'A: T.Tensor((M, K), "float16"), B: T.Tensor((K, 128), "float16"), '
    params += 'D: T.Tensor((M, 128), "float32"), C: T.Tensor((M, 128), "float32")'
    options = {"grid": "3", "arguments": "M, K", "target": "cuda:sm_90a", "M": 300, "K": 200}
    kernel = load_body(tmp_path, BIASED, params, **options)
    a, b = RNG.integers(-4, 5, (300, 200)).astype(np.float16), RNG.integers(-4, 5, (200, 128)).astype(np.float16)
    d = RNG.integers(-4, 5, (300, 128)).astype(np.float32)
    found = a.astype(float) @ b.astype(float) * 2 + d
    np.testing.assert_array_equal(kernel(a, b, d), found + found[:, ::-1])
    union = kernel.source[: kernel.source.index("union {")]
    assert union.index("A_shared") < union.index("struct Part1") < union.index("start;")
    assert "is_producer" in kernel.source


def test_functions_of_the_user_s_own_keep_no_tile_from_sharing(tmp_path: Path) -> None:
    """One that gets the address of a thread's own array meets no shared tile."""
    head = """
    T.import_source("__device__ void add_one(float* at) { *at += 1.0f; }")
    v = T.alloc_local((1,), "float32")
    v[0] = 0
    T.call_extern("handle", "add_one", T.address_of(v[0]))
"""
    statements = head.strip("\n") + EPILOGUE.replace("C_shared[i, 127 - j]", "C_shared[i, 127 - j] * v[0]")
    params = 'A: T.Tensor((M, K), "float16"), B: T.Tensor((K, 128), "float16"), C: T.Tensor((M, 128), "float32")'
    kernel = load_body(tmp_path, statements, params, grid="3", arguments="M, K", target="cuda:sm_90a", M=300, K=200)
    a, b = RNG.integers(-4, 5, (300, 200)).astype(np.float16), RNG.integers(-4, 5, (200, 128)).astype(np.float16)
    product = a.astype(float) @ b.astype(float)
    np.testing.assert_array_equal(kernel(a, b), product + product[:, ::-1])
    assert "union {" in kernel.source
