"""Every name that TileLang's examples take from T, by how many of the files need it, is known to the front end.

A tier's names, with those of the tiers before it, are what a quarter, a half, 80, 90 and 95 % of the examples need.
"""

from pathlib import Path

import pytest

from tile2cu.frontend import language, programs
from tile2cu.frontend.fault import Fault
from tile2cu.frontend.unsupported import HELP, NAMES

TIERS = {
    1: """
        Kernel Parallel Pipelined Tensor GemmWarpPolicy prim_func const empty alloc_fragment alloc_shared ceildiv clear
        copy exp2 fill gemm if_then_else infinity max min reduce_max reduce_sum use_swizzle
    """,
    2: "Layout alloc_var annotate_layout atomic_add disable_warp_group_reg_alloc dynamic exp floordiv log2 serial",
    3: """
        FragmentBuffer SharedBuffer alloc_barrier alloc_global alloc_local alloc_tmem barrier_arrive barrier_wait cast
        clamp floormod gemm_sp get_thread_binding im2col log macro mbarrier_arrive mbarrier_wait_parity no_set_max_nreg
        reduce_absmax reinterpret reshape rsqrt sigmoid sync_threads tcgen05_gemm thread_binding tma_copy view ws
    """,
    4: """
        Persistent access_ptr alloc_buffer atomic_addx4 call_extern cp_async_barrier_noinc cumsum device_assert
        fence_proxy_async get_block_binding import_source index_to_coordinates mma_gemm_blockscaled parallel
        ptx_cp_async set_max_nreg shift_left sync_grid tvm_warp_shuffle unroll vectorized wait_wgmma wgmma_gemm
    """,
    5: """
        ClusterKernel PersistentTileScheduler alloc_cluster_barrier assume attr block_rank_in_cluster comm_reducer dp4a
        evaluate tcgen05_cp_warpx4 tcgen05_gemm_blockscaled tcgen05_mma_arrive tcgen05_sf_warp_transpose
        tvm_thread_allreduce
    """,
}
BLACKWELL = """
    alloc_tmem tcgen05_gemm mma_gemm_blockscaled tcgen05_cp_warpx4 tcgen05_gemm_blockscaled tcgen05_mma_arrive
    tcgen05_sf_warp_transpose
"""
ANNOTATIONS = ("FragmentBuffer", "SharedBuffer")  # of a macro's parameters, where they are read and not called


@pytest.mark.parametrize("tier", TIERS)
def test_a_tier_is_known(tier: int) -> None:
    refused = {name for name in TIERS[tier].split() if not _is_handled(name)}
    assert refused == set(TIERS[tier].split()) & {*BLACKWELL.split(), *ANNOTATIONS}


@pytest.mark.parametrize("name", BLACKWELL.split())
def test_what_is_refused_of_the_tiers_says_what_to_write_instead(name: str) -> None:
    with pytest.raises(Fault) as caught:
        language.lookup(name)
    assert (caught.value.code, caught.value.message) == ("T2C-F011", f"T.{name} is not supported yet")
    assert "Blackwell" in caught.value.help


def test_no_name_is_both_handled_and_refused() -> None:
    assert [name for name in NAMES if _is_handled(name)] == []
    assert all(HELP[name] for name in NAMES)


@pytest.mark.parametrize("annotation", ANNOTATIONS)
def test_annotations_of_macros(annotation: str) -> None:
    text = f"""
import tilelang.language as T

@T.macro
def twice(tile: T.{annotation}((64,), "float32")):
    for i in T.Parallel(64):
        tile[i] = 2 * tile[i]

@T.prim_func
def kernel(A: T.Tensor((64,), "float32")):
    with T.Kernel(1, threads=64) as bx:
        tile = T.alloc_{"shared" if annotation == "SharedBuffer" else "fragment"}((64,), "float32")
        T.copy(A, tile)
        twice(tile)
        T.copy(tile, A)
"""
    (program,) = programs(Path("kernel.py"), text, kernel=None, bindings={})
    assert len(program.launches[0].body) == 3


def _is_handled(name: str) -> bool:
    try:
        language.lookup(name)
    except Fault:
        return False
    return True
