"""Names of the tile language that are known but not supported yet, and what to write instead."""

from collections.abc import Mapping
from types import MappingProxyType

_BLACKWELL = "it belongs to Blackwell's tensor memory, which tile2cu does not use: write "

_GROUPS: tuple[tuple[str, str], ...] = (
    ("give the blocks their work by T.Persistent", "clc_try_cancel_multicast clc_get_first_ctaid_x clc_is_canceled"),
    (f"{_BLACKWELL}T.gemm into a fragment", "tcgen05_gemm tcgen05_gemm_blockscaled mma_gemm_blockscaled"),
    (f"{_BLACKWELL}T.gemm into a fragment", "tcgen05_mma_arrive alloc_tmem deallocate_tmem"),
    (f"{_BLACKWELL}T.gemm into a fragment", "tcgen05_mma tcgen05_mma_blockscaled alloc_tcgen05_smem_desc"),
    (f"{_BLACKWELL}T.gemm into a fragment", "tcgen05_cp_warpx4 tcgen05_sf_warp_transpose"),
    (f"{_BLACKWELL}T.gemm into a fragment", "tcgen05_after_thread_sync tcgen05_before_thread_sync"),
    ("write T.wgmma_gemm, then T.wait_wgmma", "alloc_wgmma_desc initialize_wgmma_descriptor ptx_wgmma_ss wgmma_mma"),
    ("write T.wgmma_gemm, then T.wait_wgmma", "warpgroup_arrive warpgroup_commit_batch warpgroup_wait"),
    ("write T.alloc_barrier(arrivals), and T.mbarrier_arrive", "ptx_init_barrier_thread_count ptx_arrive_barrier"),
    ("leave it out: T.alloc_barrier makes its barriers known to all threads", "ptx_fence_barrier_init"),
    ("write T.gemm, which takes matrix cores on AMD", "mfma mfma_store tvm_mfma tvm_mfma_store"),
    ("write T.gemm, which loads its own operands", "ds_read_tr16_b64 ds_read_tr8_b64"),
    ("decode the elements in a T.Parallel loop", "float4_e2m1_unpacked"),
    ("write T.copy, or T.tma_copy with a barrier of yours", "tma_load create_tma_descriptor"),
    ("write a T.Parallel loop that reads the rows by their indices", "tma_gather4 tma_gather4_bytes tma_scatter4"),
    (
        "write a T.Pipelined loop: tile2cu chooses what each warp does",
        "annotate_ws_schedule ws_op WSID WSPipeline WSRole WSSchedule WSScope WSSync WSSyncKind",
    ),
    ("call the function of T by its own name", "call_intrin"),
    ("write `name = value`", "let Var"),
    ("only annotations of a macro's parameters have it", "SharedBuffer FragmentBuffer"),
    ("write the type's name, as T.float32", "dtypes PrimExpr"),
    ("`--target` states it; read sizes from the arguments", "target"),
    ("take the names from T", "tir"),
)

HELP: Mapping[str, str] = MappingProxyType({name: help for help, names in _GROUPS for name in names.split()})
NAMES: tuple[str, ...] = tuple(HELP)
