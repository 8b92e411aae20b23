"""The decisions about a kernel, each with its reason.

RULES is the one table. The order within a phase follows from the keys that rules declare to read and to write; of rules
that write the same key the earlier one of the table has priority. To add a rule, write it in the file of its area and
list it here.
"""

from tile2cu.rules.engine import Context, Example, Phase, Rule, resolve
from tile2cu.rules.launch.clusters import arrives_as_reader, cluster, exit_barrier, multicast
from tile2cu.rules.launch.early_exit import early_exit
from tile2cu.rules.launch.grid import grid_contiguous_xcds, grid_raster_groups, grid_xcds, lpt_order
from tile2cu.rules.launch.persistent import persistent
from tile2cu.rules.launch.threads import inline_ptx, shared_addressed, thread_available
from tile2cu.rules.layout.free import flat, loop_flat, loop_over_rows, rows_in_warps
from tile2cu.rules.layout.gemm import fma, mma_accumulator, mma_operand, mma_sync
from tile2cu.rules.layout.operands import copied_swizzle, decoded_swizzle, gathered_rows, widest_swizzle
from tile2cu.rules.layout.propagate import (
    copy_same,
    index_constant,
    parallel_from_fragment,
    parallel_to_fragment,
    reduce_kept_dimension,
    scan_same,
)
from tile2cu.rules.layout.views import view_split_columns
from tile2cu.rules.memory.aliasing import shared_aliasing
from tile2cu.rules.memory.storage import rows_of_lanes, shared_budget, shared_plain, vector_swizzle
from tile2cu.rules.memory.streaming_copies import streaming_copy
from tile2cu.rules.memory.sub_byte import pairs, whole_bytes
from tile2cu.rules.memory.tensors import (
    slice_alignment,
    tensor_bounds_checked,
    tensor_row_alignment,
    tensor_row_alignment_if,
)
from tile2cu.rules.memory.tma_store import tma_store
from tile2cu.rules.mma.cdna import (
    direct,
    mfma,
    mfma_accumulator,
    mfma_interleaved_rows,
    mfma_operand,
    mfma_rows,
    priority,
    registers,
)
from tile2cu.rules.mma.cdna_registers import loaded_operand, two_waves_per_simd
from tile2cu.rules.mma.hopper import (
    on_wgmma,
    producer_warp,
    share_among_warpgroups,
    tma,
    wgmma,
    wgmma_accumulator,
)
from tile2cu.rules.mma.warps import block_threads, full_col, full_row, square
from tile2cu.rules.mma.wgmma_waits import wgmma_wait
from tile2cu.rules.schedule.explicit_pipelines import explicit_barriers, explicit_tma
from tile2cu.rules.schedule.explicit_setmaxnreg import explicit_setmaxnreg
from tile2cu.rules.schedule.in_order import in_order
from tile2cu.rules.schedule.mma_in_flight import mma_in_flight
from tile2cu.rules.schedule.overlap import overlap
from tile2cu.rules.schedule.ping_pong import ping_pong
from tile2cu.rules.schedule.pipeline import cp_async
from tile2cu.rules.schedule.prologue_loads import prologue_loads
from tile2cu.rules.schedule.register_budget import register_operand, register_shares
from tile2cu.rules.schedule.voted_rescales import voted_rescale
from tile2cu.rules.select import (
    atomic_tile,
    copy_cp_async,
    copy_synchronous,
    copy_through_shared,
    gemm_slices,
    loop_elected_writers,
    reduce_workspace,
)
from tile2cu.rules.sync.fences import proxy_fence
from tile2cu.rules.sync.hazards import shared_hazard
from tile2cu.rules.vectors.atomics import vectorised_atomics
from tile2cu.rules.vectors.permutation_invariance import permutation_invariant
from tile2cu.rules.vectors.vectorise import in_registers, loop_vectors, store_last, transposed

__all__ = ["RULES", "Context", "Example", "Phase", "Rule", "resolve"]

RULES: tuple[Rule, ...] = (
    whole_bytes,
    thread_available,
    inline_ptx,
    explicit_barriers,
    cluster,
    block_threads,
    producer_warp,
    on_wgmma,
    ping_pong,
    share_among_warpgroups,
    square,
    full_row,
    full_col,
    wgmma,
    wgmma_accumulator,
    mfma,
    mfma_accumulator,
    mfma_interleaved_rows,
    mfma_rows,
    mma_sync,
    fma,
    mma_accumulator,
    mma_operand,
    explicit_tma,
    shared_addressed,
    widest_swizzle,
    gathered_rows,
    index_constant,
    copy_same,
    reduce_kept_dimension,
    scan_same,
    view_split_columns,
    parallel_from_fragment,
    parallel_to_fragment,
    mfma_operand,
    rows_in_warps,
    loop_over_rows,
    flat,
    copied_swizzle,
    decoded_swizzle,
    vector_swizzle,
    rows_of_lanes,
    shared_plain,
    loop_flat,
    loop_vectors,
    permutation_invariant,
    store_last,
    in_registers,
    transposed,
    vectorised_atomics,
    tensor_bounds_checked,
    tensor_row_alignment,
    tensor_row_alignment_if,
    slice_alignment,
    pairs,
    tma,
    overlap,
    voted_rescale,
    register_shares,
    explicit_setmaxnreg,
    prologue_loads,
    register_operand,
    persistent,
    cp_async,
    direct,
    registers,
    loaded_operand,
    two_waves_per_simd,
    reduce_workspace,
    mma_in_flight,
    in_order,
    wgmma_wait,
    shared_aliasing,
    shared_hazard,
    multicast,
    exit_barrier,
    arrives_as_reader,
    proxy_fence,
    copy_through_shared,
    copy_cp_async,
    streaming_copy,
    tma_store,
    grid_raster_groups,
    grid_xcds,
    grid_contiguous_xcds,
    lpt_order,
    early_exit,
    priority,
    copy_synchronous,
    gemm_slices,
    atomic_tile,
    loop_elected_writers,
    shared_budget,
)
