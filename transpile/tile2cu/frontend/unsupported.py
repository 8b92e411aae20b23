"""Names of the tile language that are known but not supported yet, and what to write instead."""

from collections.abc import Mapping
from types import MappingProxyType

_BARRIER = "tile2cu places barriers itself: leave it out"
_THREAD = "write a T.Parallel loop: tile2cu spreads it over the threads"
_COPY = "write T.copy: tile2cu chooses how the data moves"
_GEMM = "write T.gemm: tile2cu chooses the instruction"
_WARPS = "write a T.Pipelined loop: tile2cu chooses what each warp does"
_LAYOUT = "leave it out: tile2cu derives the layouts"

_GROUPS: tuple[tuple[str, str], ...] = (
    (
        _BARRIER,
        "alloc_cluster_barrier tma_store_arrive tma_store_wait cp_async_barrier_noinc tvm_storage_sync",
    ),
    (
        _THREAD,
        "launch_thread thread_return",
    ),
    (
        _COPY,
        "async_copy copy_cluster tma_load tma_gather4 tma_scatter4 ",
    ),
    (_GEMM, "tcgen05_gemm tcgen05_gemm_blockscaled mma_gemm_blockscaled "),
    (_WARPS, "annotate_ws_schedule ws_op"),
    (_LAYOUT, "annotate_safe_value"),
    ("write T.Parallel", ""),
    ("write T.alloc_shared, T.alloc_fragment or T.alloc_local", "decl_buffer match_buffer"),
    ("write T.cast, which converts the value", ""),
    ("write `with T.Kernel(...)`", "ClusterKernel CUDASourceCodeKernel"),
    (
        "",
        "SharedBuffer FragmentBuffer handle Var func_attr writes reads sblock "
        "sblock_attr sblock_alloc_buffer type_annotation let If Then While target PrimExpr tir dtypes alloc_tmem "
        "deallocate_tmem any_of all_of "
        ""
        "cluster_sync cluster_arrive cluster_wait pdl_trigger pdl_sync "
        "block_rank_in_cluster call_intrin "
        ""
        "fast_rcp Broadcast Ramp Shuffle extract_lane float16x2 bfloat16x2 "
        "float32x2 float32x4 add2 sub2 mul2 fma2 max2 min2 abs2 tvm_access_ptr ldg32 ldg64 ldg128 ldg256 "
        ""
        "float8_e8m0fnu float4_e2m1_unpacked "
        "tcgen05_mma_arrive clc_try_cancel_multicast",
    ),
)

HELP: Mapping[str, str] = MappingProxyType({name: help for help, names in _GROUPS for name in names.split()})
NAMES: tuple[str, ...] = tuple(HELP)
