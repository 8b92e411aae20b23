"""Clusters: blocks that wait for one another, load for one another, and copy to one another's shared memory."""

import shutil
from pathlib import Path
from textwrap import indent

import numpy as np
import pytest

import tile2cu
from tile2cu.core.errors import Tile2CuError
from tile2cu_runtime import CheckError, Kernel, LaunchError, load_kernel, paths

RNG = np.random.default_rng(0)
FACTORY = """
import tilelang
import tilelang.language as T


@tilelang.jit
def clustered({arguments}):
    @T.prim_func
    def main({params}):
        with T.ClusterKernel({grid}, threads={threads}, cluster_dims={cluster}) as {blocks}:
{body}
    return main
"""


def load(
    folder: Path,
    body: str,
    params: str,
    *,
    grid: str,
    cluster: object,
    blocks: str = "bx",
    arguments: str = "",
    threads: int = 128,
    target: str = "cuda:sm_90a",
    **bindings: object,
) -> Kernel:
    """A kernel on the CPU engine, with every check, in several orders of threads and blocks."""
    path = folder / "clustered.py"
    text = FACTORY.format(
        arguments=arguments, params=params, grid=grid, threads=threads, cluster=cluster, blocks=blocks,
        body=indent(body.strip("\n"), " " * 12),
    )  # fmt: skip
    path.write_text(text, encoding="utf-8")
    return tile2cu.load(path, device="cpu", target=target, check=True, **bindings)


RANKS = """
T.cluster_arrive()
T.cluster_wait()
rank = T.block_rank_in_cluster()
if T.get_thread_binding() == 0:
    A[by, bx] = rank
T.cluster_sync()
"""


def test_blocks_have_ranks(tmp_path: Path) -> None:
    kernel = load(
        tmp_path, RANKS, 'A: T.Tensor((6, 8), "int32")', grid="8, 6", cluster="(4, 2)", blocks="(bx, by)"
    )  # fmt: skip
    ranks = np.zeros((6, 8), np.int32)
    kernel(ranks)
    y, x = np.mgrid[:6, :8]
    np.testing.assert_array_equal(ranks, x % 4 + 4 * (y % 2))
    assert "__cluster_dims__(4, 2, 1) __launch_bounds__(threads)" in kernel.source
    assert "tl::launch_clusters(clustered_kernel, dim3(4, 2, 1), grid," in kernel.source


SUMS = """
mine = T.alloc_shared((128,), "float32")
all = T.alloc_shared((4, 128), "float32")
there = T.alloc_cluster_barrier([4 * 128])
rank = T.block_rank_in_cluster()
for turn in T.serial(turns):
    T.copy(A[bx, turn * 128], mine)
    T.copy_cluster(mine, all[rank, :], dst_block=0)
    T.mbarrier_arrive(there, 0)
    if rank == 0:
        T.mbarrier_wait_parity(there, turn % 2)
        for i in T.Parallel(128):
            B[bx // 4, turn * 128 + i] = all[0, i] + all[1, i] + all[2, i] + all[3, i]
    T.cluster_sync()
"""
SUMS_OF = {
    "params": 'A: T.Tensor((M, K), "float32"), B: T.Tensor((M // 4, K), "float32")',
    "arguments": "M, K, turns=3",
    "grid": "M",
    "cluster": 4,
}


def test_blocks_add_up_in_the_first_ones_memory(tmp_path: Path) -> None:
    kernel = load(tmp_path, SUMS, **SUMS_OF)
    a = RNG.integers(-9, 10, (8, 384)).astype(np.float32)
    b = np.zeros((2, 384), np.float32)
    kernel(a, b)
    np.testing.assert_array_equal(b, a.reshape(2, 4, 384).sum(axis=1))
    assert "tl::mbarrier_wait_cluster(there[0]," in kernel.source
    with pytest.raises(LaunchError, match="TL_NOT_SUPPORTED"):
        kernel(np.zeros((6, 384), np.float32), np.zeros((1, 384), np.float32))


def test_the_engine_finds_a_sum_that_nobody_waits_for(tmp_path: Path) -> None:
    """Without the barrier at the end of a turn the next one's rows come while the first block still adds."""
    kernel = load(tmp_path, SUMS.replace("    T.cluster_sync()\n", ""), **SUMS_OF)
    with pytest.raises(CheckError, match=r"read -> write.* of block 1 at clustered.py:17 while .* of block 0 "):
        kernel(np.ones((4, 384), np.float32), np.zeros((1, 384), np.float32))


HANDED = """
src = T.alloc_shared({shape}, "float32")
dst = T.alloc_shared({shape}, "float32")
{barrier}
T.fill(src, 0.0)
T.fill(dst, -1.0)
T.cluster_sync()
if pid == 0:
    T.copy(A, src[{part}])
    T.copy_cluster(src[{part}], dst[{part}], dst_block=1{remote})
{met}
if pid == 1:
    {wait}
    T.copy(dst, B)
"""
BY_BARRIER = {
    "barrier": "there = T.alloc_cluster_barrier([1])",
    "remote": ", remote_barrier=there[0]",
    "wait": "T.mbarrier_wait_parity(there[0], 0)",
    "met": "",
}
BY_CLUSTER = {"barrier": "", "remote": "", "wait": "", "met": "T.cluster_sync()"}


@pytest.mark.sweep(cases=1)
@pytest.mark.parametrize("meets", [BY_BARRIER, BY_CLUSTER], ids=["barrier", "cluster"])
@pytest.mark.parametrize(
    ("shape", "part"),
    [
        ((128,), (slice(0, 128),)),
        ((127,), (slice(0, 127),)),
        ((300,), (slice(3, 200),)),
        ((16, 64), (slice(0, 16), slice(0, 64))),
        ((16, 64), (slice(2, 9), slice(16, 48))),
        ((5, 7), (slice(0, 5), slice(0, 7))),
    ],
    ids=str,
)
def test_a_tile_goes_to_another_block(
    shape: tuple[int, ...], part: tuple[slice, ...], meets: dict[str, str], tmp_path: Path
) -> None:
    bounds = ", ".join(f"{each.start}:{each.stop}" for each in part)
    small = tuple(each.stop - each.start for each in part)
    body = HANDED.format(shape=shape, part=bounds, **meets)
    params = f'A: T.Tensor({small}, "float32"), B: T.Tensor({shape}, "float32")'
    kernel = load(tmp_path, body, params, grid="2", cluster="(2, 1, 1)", blocks="pid")
    a, b, expected = RNG.integers(-9, 10, small).astype(np.float32), np.zeros(shape, np.float32), np.full(shape, -1.0)
    kernel(a, b)
    expected[part] = a
    np.testing.assert_array_equal(b, expected)


FAULTS = {
    "nobody waits": ({**BY_CLUSTER, "met": ""}, r"race: read -> write.*clustered.py:19 while .*clustered.py:23"),
    "the copy is not waited for": ({**BY_BARRIER, "wait": ""}, r"in-flight async copy|race"),
    "the tile was not free": (BY_BARRIER, r"race.*clustered.py:18; previously by .* of block 1 at clustered.py:15"),
    "a second arrival": (
        {**BY_BARRIER, "barrier": "there = T.alloc_cluster_barrier([2])"},
        r"deadlock.*clustered.py:22",
    ),
}


@pytest.mark.sweep(cases=1)
@pytest.mark.parametrize("fault", FAULTS)
def test_the_engine_finds_a_copy_that_is_not_ordered(fault: str, tmp_path: Path) -> None:
    meets, message = FAULTS[fault]
    body = HANDED.format(shape=(16, 64), part="0:16, 0:64", **meets)
    if fault == "the tile was not free":
        body = body.replace("T.cluster_sync()\n", "", 1)
    params = 'A: T.Tensor((16, 64), "float32"), B: T.Tensor((16, 64), "float32")'
    kernel = load(tmp_path, body, params, grid="2", cluster=2, blocks="pid")
    with pytest.raises(CheckError, match=message):
        kernel(np.ones((16, 64), np.float32), np.zeros((16, 64), np.float32))


LOADED = """
A_shared = T.alloc_shared((32, 64), "float16")
for k in T.serial(T.ceildiv(M, 32)):
    T.copy_cluster(A[k * 32, bx * 64], A_shared, cluster_mask={mask})
    T.copy(A_shared, B[k * 32, bx * 64])
"""


@pytest.mark.sweep(cases=1)
@pytest.mark.parametrize("mask", [0b0011, 0b1010, 0b1111, 0b0001])
def test_one_block_loads_for_several(mask: int, tmp_path: Path) -> None:
    params = 'A: T.Tensor((M, N), "float16"), B: T.Tensor((M, N), "float16")'
    kernel = load(
        tmp_path, LOADED.format(mask=mask), params, arguments="M, N", grid="T.ceildiv(N, 256) * 4", cluster="(4, 1, 1)"
    )
    a, b = RNG.integers(1, 100, (100, 504)).astype(np.float16), np.zeros((100, 504), np.float16)
    kernel(a, b)
    first = (mask & -mask).bit_length() - 1
    wide = np.pad(a, ((0, 0), (0, 8)))
    expected = wide.copy()
    for block in range(8):
        loader = block - block % 4 + (first if mask >> block % 4 & 1 else block % 4)
        expected[:, block * 64 : block * 64 + 64] = wide[:, loader * 64 : loader * 64 + 64]
    np.testing.assert_array_equal(b, expected[:, :504])
    assert f"tl::blocks<{mask:#b}>" in kernel.source


GEMM = """
A_shared = T.alloc_shared((2, 64, 32), "float16")
B_shared = T.alloc_shared((2, 32, 64), "float16")
C_local = T.alloc_fragment((64, 64), "float32")
full = T.alloc_barrier([128, 128])
empty = T.alloc_cluster_barrier([256, 256])
T.cluster_sync()
with T.ws(0):
    T.clear(C_local)
for k in T.serial(T.ceildiv(K, 32)):
    with T.ws(1):
        T.mbarrier_wait_parity(empty[k % 2], (k // 2) % 2 ^ 1)
        T.tma_copy(A[by * 64, k * 32], A_shared[k % 2, :, :], barrier=full[k % 2], cluster_mask={mask})
        T.tma_copy(B[k * 32, bx * 64], B_shared[k % 2, :, :], barrier=full[k % 2])
        T.mbarrier_arrive(full[k % 2])
    with T.ws(0):
        T.mbarrier_wait_parity(full[k % 2], (k // 2) % 2)
        T.gemm(A_shared[k % 2, :, :], B_shared[k % 2, :, :], C_local)
        {release}
with T.ws(0):
    T.copy(C_local, C[by * 64, bx * 64])
"""
RELEASE = "T.mbarrier_arrive(empty[k % 2], 0)\n        T.mbarrier_arrive(empty[k % 2], 1)"
GEMM_OF = {
    "params": 'A: T.Tensor((M, K), "float16"), B: T.Tensor((K, N), "float16"), C: T.Tensor((M, N), "float32")',
    "arguments": "M, N, K",
    "grid": "T.ceildiv(N, 128) * 2, T.ceildiv(M, 64)",
    "cluster": "(2, 1, 1)",
    "blocks": "(bx, by)",
    "threads": 256,
}


def product_operands(m: int, n: int, k: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    a, b = (RNG.integers(-4, 5, shape).astype(np.float16) for shape in ((m, k), (k, n)))
    return a, b, np.zeros((m, n), np.float32)


@pytest.mark.sweep(cases=1)
@pytest.mark.parametrize("size", [(64, 128, 64), (100, 200, 168), (72, 8, 8)], ids=str)
def test_a_pipeline_by_hand_shares_its_loads(size: tuple[int, int, int], tmp_path: Path) -> None:
    """One block loads A for both; a slot is free when the consumers of both have said so."""
    kernel = load(tmp_path, GEMM.format(mask=0b11, release=RELEASE), **GEMM_OF)
    a, b, c = product_operands(*size)
    kernel(a, b, c)
    np.testing.assert_array_equal(c, a.astype(np.float64) @ b.astype(np.float64))
    assert kernel.source.count("tl::mbarrier_arrive_as_reader(empty[") == 2


def test_the_engine_finds_slots_that_another_block_still_uses(tmp_path: Path) -> None:
    """The consumers tell their own block twice, and not the one that loads for them."""
    own = RELEASE.replace(", 0)", ", rank)").replace(", 1)", ", rank)")
    body = "rank = T.block_rank_in_cluster()" + GEMM.format(mask=0b11, release=own)
    kernel = load(tmp_path, body, **GEMM_OF)
    with pytest.raises(CheckError, match=r"race|in-flight|deadlock"):
        kernel(*product_operands(64, 128, 168))


def test_the_engine_finds_a_mask_without_a_block(tmp_path: Path) -> None:
    """Each block of another mask loads for itself; that is right, too. One that waits for nobody's load hangs."""
    kernel = load(tmp_path, GEMM.format(mask=0b01, release=RELEASE), **GEMM_OF)
    a, b, c = product_operands(64, 128, 96)
    kernel(a, b, c)
    np.testing.assert_array_equal(c, a.astype(np.float64) @ b.astype(np.float64))


EXAMPLE = Path(__file__).resolve().parents[2] / "examples/gemm_cluster.py"


@pytest.mark.sweep(cases=1)
@pytest.mark.parametrize("cluster", [1, 2, 4])
def test_the_example_shares_its_loads(cluster: int) -> None:
    sizes = {"block_M": 128, "block_N": 64, "block_K": 64, "stages": 2, "cluster": cluster}
    kernel = tile2cu.load(EXAMPLE, device="cpu", target="cuda:sm_90a", check=True, **sizes)
    for m, n, k in ((130, 64 * cluster + 8, 200), (1, 8, 8)):
        a, b, _ = product_operands(m, n, k)
        np.testing.assert_array_equal(kernel(a, b).astype(np.float64), a.astype(np.float64) @ b.astype(np.float64))
    assert ("tl::blocks<" in kernel.source) == (cluster > 1)


@pytest.mark.nightly
def test_the_engine_finds_loads_of_the_example_into_stages_in_use(tmp_path: Path) -> None:
    """Consumers that arrive only at their own block's barriers."""
    text = EXAMPLE.read_text(encoding="utf-8").replace(
        "T.mbarrier_arrive(empty[stage], rank)", "T.mbarrier_arrive(empty[stage])"
    )
    (tmp_path / "gemm_cluster.py").write_text(text, encoding="utf-8")
    sizes = {"block_M": 128, "block_N": 64, "block_K": 64, "stages": 2}
    kernel = tile2cu.load(tmp_path / "gemm_cluster.py", device="cpu", target="cuda:sm_90a", check=True, **sizes)
    a, b, _ = product_operands(130, 136, 400)
    with pytest.raises(CheckError, match=r"gemm_cluster.py:4[1-6]"):
        kernel(a, b)


PLAIN = """
A_shared = T.alloc_shared((128, 32), "float16")
B_shared = T.alloc_shared((32, 128), "float16")
C_local = T.alloc_fragment((128, 128), "float32")
T.clear(C_local)
for k in T.Pipelined(T.ceildiv(K, 32), num_stages=3):
    T.copy(A[by * 128, k * 32], A_shared)
    T.copy(B[k * 32, bx * 128], B_shared)
    T.gemm(A_shared, B_shared, C_local)
T.copy(C_local, C[by * 128, bx * 128])
"""


# the cluster, the grid, the operand that its blocks share, and the order of the clusters
BY_ROWS = "tl::grouped_order_of_clusters<{}, tl::GroupOf::rows, {}>"
ALONG = {
    "columns": ("(2, 1, 1)", "T.ceildiv(N, 256) * 2, T.ceildiv(M, 128)", "A", BY_ROWS.format(12, "2, 1")),
    "rows": ("(1, 4)", "T.ceildiv(N, 128), T.ceildiv(M, 512) * 4", "B", BY_ROWS.format(12, "1, 4")),
    "both": ("(2, 2)", "T.ceildiv(N, 256) * 2, T.ceildiv(M, 256) * 2", "", BY_ROWS.format(12, "2, 2")),
    "asked": ("(1, 2)", "T.ceildiv(N, 128), T.ceildiv(M, 256) * 2", "B", BY_ROWS.format(2, "1, 2")),
}


@pytest.mark.sweep(cases=1)
@pytest.mark.parametrize("along", ALONG)
def test_the_blocks_of_a_pipelined_product_share_what_they_load_alike(along: str, tmp_path: Path) -> None:
    """A producer warp and all; where blocks lie along two axes, each loads for itself. Clusters go in panels."""
    cluster, grid, shared, order = ALONG[along]
    body = ("T.use_swizzle(2)" if along == "asked" else "") + PLAIN
    kernel = load(tmp_path, body, **{**GEMM_OF, "cluster": cluster, "grid": grid, "threads": 128})
    for m, n, k in ((200, 264, 200), (1, 8, 8), (520, 136, 96)):
        a, b, c = product_operands(m, n, k)
        kernel(a, b, c)
        np.testing.assert_array_equal(c, a.astype(np.float64) @ b.astype(np.float64))
    assert "tl::is_producer<threads>()" in kernel.source and order in kernel.source
    found = [name for name in "AB" if f", {name}_map, tl::at(" in kernel.source]
    assert found == list(shared) and "tl::sync_cluster()" not in kernel.source  # the producer stays


MUTATIONS = {
    "the ring asks its own block only": ("num_stages, threads, 2>", "num_stages, threads>", "race|in-flight"),
    "a block is left out": ("tl::blocks<0b11>, A_map", "tl::blocks<0b01>, A_map", "deadlock"),
}


@pytest.mark.sweep(cases=1)
@pytest.mark.parametrize("mutation", MUTATIONS)
def test_the_engine_finds_what_is_wrong_with_a_shared_ring(mutation: str, tmp_path: Path) -> None:
    before, after, match = MUTATIONS[mutation]
    grid = "T.ceildiv(N, 256) * 2, T.ceildiv(M, 128)"
    kernel = load(tmp_path, PLAIN, **{**GEMM_OF, "grid": grid, "threads": 128})
    for file in kernel.folder.glob("clustered.*"):
        text = file.read_text(encoding="utf-8")
        assert file.suffix != ".cu" or text.count(before) == 1
        (tmp_path / file.name).write_text(text.replace(before, after), encoding="utf-8")
    wrong = load_kernel(tmp_path / "clustered.cu", device="cpu", check=True)
    with pytest.raises(CheckError, match=match):
        wrong(*product_operands(128, 256, 200))


@pytest.mark.nightly
def test_the_engine_finds_a_producer_that_does_not_stay(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of a pipeline that several blocks share: another block's consumers arrive at its barriers until the last tile."""
    headers = Path(shutil.copytree(paths.headers_dir(), tmp_path / "headers"))
    file = headers / "tl/common/sm90/tma_pipeline.h"
    stays = "for (int k = tiles < stages ? 0 : tiles - stages; k < tiles; ++k)"
    assert file.read_text(encoding="utf-8").count(stays) == 1
    file.write_text(
        file.read_text(encoding="utf-8").replace(stays, "for (int k = tiles; k < tiles; ++k)"), encoding="utf-8"
    )
    monkeypatch.setattr(paths, "headers_dir", lambda: headers)
    grid = "T.ceildiv(N, 256) * 2, T.ceildiv(M, 128)"
    kernel = load(tmp_path, PLAIN, **{**GEMM_OF, "grid": grid, "threads": 128})
    with pytest.raises(CheckError, match="exited block"):
        kernel(*product_operands(128, 256, 200))


@pytest.mark.parametrize("target", ["cuda:sm_80", "cuda:sm_89", "hip:gfx942"])
def test_older_chips_and_others_have_no_clusters(target: str, tmp_path: Path) -> None:
    with pytest.raises(Tile2CuError, match="no clusters of blocks") as refused:
        load(tmp_path, RANKS, 'A: T.Tensor((6, 8), "int32")', grid="8, 6", cluster=2, blocks="(bx, by)", target=target)
    assert refused.value.code == "T2C-S006"
