"""T.ptr and T.make_tensor: tensors at addresses that a table or an argument gives, on the CPU engine against NumPy."""

from pathlib import Path

import numpy as np
import pytest

import tile2cu
from tests.host.kernels import load_body, source_of_body
from tile2cu_runtime import CheckError

RNG = np.random.default_rng(6)


def aligned(array: np.ndarray) -> np.ndarray:
    """A copy that starts at a multiple of 16 bytes, as tensors on a GPU do."""
    memory = np.zeros(array.nbytes + 16, np.uint8)
    start = -memory.ctypes.data % 16
    copy = memory[start : start + array.nbytes].view(array.dtype).reshape(array.shape)
    copy[...] = array
    return copy


def integers(*shape: int) -> np.ndarray:
    return aligned(RNG.integers(-4, 5, shape).astype(np.float16))


def table(arrays: list[np.ndarray], dtype: type = np.int64) -> np.ndarray:
    return np.array([array.ctypes.data for array in arrays], dtype)


@pytest.mark.sweep(cases=1)
@pytest.mark.parametrize("stages", [1, 3])
@pytest.mark.parametrize("target", ["cuda:sm_80", "cuda:sm_90a", "hip:gfx942"])
def test_products_of_groups(stages: int, target: str, tmp_path: Path) -> None:
    """The groups' rows are many, their matrices lie anywhere: a block finds its group's by three tables."""
    statements = f"""
        A_shared = T.alloc_shared((32, 32), "float16")
        B_shared = T.alloc_shared((32, 32), "float16")
        C_local = T.alloc_fragment((32, 32), "float32")
        A = T.make_tensor(A_ptrs[group], (rows[group], K), "float16")
        B = T.make_tensor(B_ptrs[group], (K, N), "float16")
        C = T.make_tensor(C_ptrs[group], (rows[group], N), "float32")
        T.clear(C_local)
        for ko in T.Pipelined(T.ceildiv(K, 32), num_stages={stages}):
            T.copy(A[by * 32, ko * 32], A_shared)
            T.copy(B[ko * 32, bx * 32], B_shared)
            T.gemm(A_shared, B_shared, C_local)
        T.copy(C_local, C[by * 32, bx * 32])
    """
    params = ", ".join(f"{name}_ptrs: T.Tensor((G,), T.ptr)" for name in "ABC")
    params += ', rows: T.Tensor((G,), "int32"), done: T.Tensor((G, 2, 3), "int32")'
    kernel = load_body(
        tmp_path,
        f"{statements}    done[group, bx, by] = 1\n",
        params,
        grid="T.ceildiv(N, 32), T.ceildiv(most, 32), G",
        blocks="(bx, by, group)",
        arguments="G, N, K, most",
        target=target,
        N=40,
        K=72,
        most=70,
    )
    rows = np.array([70, 1, 33], np.int32)
    a = [integers(m, 72) for m in rows]
    b = [integers(72, 40) for _ in rows]
    c = [aligned(np.full((m, 40), np.nan, np.float32)) for m in rows]
    np.testing.assert_array_equal(kernel(table(a), table(b, np.uint64), table(c), rows), np.ones((3, 2, 3)))
    for left, right, found in zip(a, b, c, strict=True):
        np.testing.assert_array_equal(found, left.astype(np.float64) @ right.astype(np.float64))
    assert "tl::data_at<const tl::half>(A_ptrs(group))" in kernel.source
    assert "tl::data_at<float>(C_ptrs(group))" in kernel.source


POINTERS = """
import tilelang
import tilelang.language as T


@tilelang.jit
def scaled(N):
    @T.prim_func
    def main(x_ptr: T.ptr, y_ptr: T.ptr, rows: T.int32, factor: T.float32):
        X = T.make_tensor(x_ptr, (rows, N), "float32", strides=(2 * N, 1))
        Y = T.make_tensor(y_ptr, (rows, N), "float32")
        with T.Kernel(T.ceildiv(rows, 8), threads=64) as bx:
            for i, j in T.Parallel(8, N):
                Y[bx * 8 + i, j] = X[bx * 8 + i, j] * factor
        with T.Kernel(rows, threads=64) as bx:
            for j in T.Parallel(N):
                Y[bx, j] = Y[bx, j] + 1.0

    return main
"""


@pytest.mark.binding
def test_arguments_that_are_addresses(tmp_path: Path) -> None:
    (tmp_path / "scaled.py").write_text(POINTERS, encoding="utf-8")
    kernel = tile2cu.load(tmp_path / "scaled.py", device="cpu", check=True, N=40)
    x = aligned(RNG.standard_normal((13, 80)).astype(np.float32))
    y = aligned(np.zeros((13, 40), np.float32))
    kernel(x, y, 13, 2.0)
    np.testing.assert_array_equal(y, x[:, :40] * 2 + 1)
    kernel(x.ctypes.data, y.ctypes.data, 13, -1.0)
    np.testing.assert_array_equal(y, x[:, :40] * -1 + 1)
    second = kernel.source.split("namespace launch_2")[1]
    assert second.count("tl::data_at") == 1, "a tensor that a kernel does not touch is not there"


GROUPS = """
Y = T.make_tensor(pointers[bx], (rows[bx], 32), "float32")
for k in T.serial(rows[bx]):
    for j in T.Parallel(32):
        Y[k, j] = 1.0  # writes
done[bx] = 1
"""


def test_a_table_may_have_null_where_a_tensor_is_empty(tmp_path: Path) -> None:
    """Elsewhere the launcher cannot see it, as the head of the source states, and a checked run names the access."""
    params = 'pointers: T.Tensor((G,), T.ptr), rows: T.Tensor((G,), "int32"), done: T.Tensor((G,), "int32")'
    kernel = load_body(tmp_path, GROUPS, params, grid="G", arguments="G", threads=32)
    y = aligned(np.zeros((3, 32), np.float32))
    addresses = np.array([y.ctypes.data, 0], np.int64)
    np.testing.assert_array_equal(kernel(addresses, np.array([3, 0], np.int32)), [1, 1])
    np.testing.assert_array_equal(y, np.ones((3, 32)))
    with pytest.raises(CheckError, match="# writes"):
        kernel(addresses, np.array([0, 1], np.int32))
    head = kernel.source.replace("\n// ", " ")
    assert "The same holds for Y, whose addresses come from memory: the launcher cannot check them." in head


# Each once read the elements of the row before while, or before, other threads wrote them through another name.
SAME_MEMORY = {
    "two addresses": """
X = T.make_tensor(source, (8, 64), "float32")
Y = T.make_tensor(target, (8, 64), "float32")
for k in T.serial(4):
    last = X[k, 63]
    for j in T.Parallel(64):
        Y[k + 1, j] = last + 1.0
done[0] = 1
""",
    "an address and an argument": """
Y = T.make_tensor(target, (8, 64), "float32")
for k in T.serial(4):
    for j in T.Parallel(64):
        Y[k + 1, j] = Z[k, 63] + 1.0
done[0] = 1
""",
}


@pytest.mark.parametrize("name", SAME_MEMORY)
def test_a_tensor_at_an_address_may_be_a_part_of_another(name: str, tmp_path: Path) -> None:
    params = 'source: T.ptr, target: T.ptr, Z: T.Tensor((8, 64), "float32"), done: T.Tensor((1,), "int32")'
    kernel = load_body(tmp_path, SAME_MEMORY[name], params, threads=64, check=False)
    tensor = aligned(np.zeros((8, 64), np.float32))
    kernel(tensor, tensor, tensor)
    np.testing.assert_array_equal(tensor[:, 0], [0, 1, 2, 3, 4, 0, 0, 0])
    assert "const float* __restrict__" not in kernel.source


def test_a_statement_of_threads_may_store_what_others_of_them_load(tmp_path: Path) -> None:
    """All threads have loaded before one stores, also where the two tensors only may be the same."""
    statements = """
    tx = T.get_thread_binding(0)
    X = T.make_tensor(source, (65,), "float32")
    Y = T.make_tensor(target, (65,), "float32")
    Y[tx + 1] = X[tx]
    Y[0] = 7.0
    done[0] = 1
    """
    params = 'source: T.ptr, target: T.ptr, done: T.Tensor((1,), "int32")'
    kernel = load_body(tmp_path, statements, params, threads=64, check=False)
    tensor = aligned(np.arange(65).astype(np.float32))
    kernel(tensor, tensor, np.zeros(1, np.int32))
    np.testing.assert_array_equal(tensor, [7, *range(64)])


ELECTED = """
X = T.make_tensor(source, (8,), "float32")
Y = T.make_tensor(target, (8,), "float32")
with T.ws(0):
    Y[0] = X[0] + 1.0
with T.ws(1):
    done[0] = 1
"""
PASSED = """
X = T.make_tensor(source, (8,), "float32")
Y = T.make_tensor(target, (8,), "float32")
there = T.alloc_cluster_barrier(128)
Y[bx] = 1.0
T.mbarrier_arrive(there, 0)
T.mbarrier_wait_parity(there, 0)
done[0] = X[1 - bx]
"""


def test_updates_and_data_of_other_blocks_may_be_of_another_name(tmp_path: Path) -> None:
    """One thread of a group updates an element; an arrival releases what other blocks read at an address."""
    params = 'source: T.ptr, target: T.ptr, done: T.Tensor((1,), "float32")'
    elected = source_of_body(tmp_path, ELECTED, params, threads=256, target="cuda:sm_90a")
    assert "if (tl::thread_of_block() == 0) {" in elected
    text = source_of_body(tmp_path, PASSED, params, grid="2", threads=128, target="cuda:sm_90a")
    assert "mbarrier_arrive_as_reader" not in text
