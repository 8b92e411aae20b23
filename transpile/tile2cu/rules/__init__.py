"""What is decided, and why.

RULES is the one table. The order within a phase follows from the keys that rules declare to read and to write; of
rules that write the same key the earlier one of the table has priority. To add a rule, write it in the file of its area
and list it here.
"""

from tile2cu.passes.clear_in_gemm import OVERWRITES, with_overwriting_products
from tile2cu.passes.forward_copies import STRAIGHT, with_straight_copies
from tile2cu.passes.gather_rows import GATHERED, loops_that_gather
from tile2cu.passes.if_conversion import CHOSEN, with_chosen_places
from tile2cu.passes.loop_to_copy import COPIED, loops_that_copy
from tile2cu.passes.mask_after_gemm import MASK, masks_after_products
from tile2cu.passes.prefetch_rows import ROWS_AHEAD, with_rows_ahead
from tile2cu.passes.skip_iterations import SKIPPED, with_skipped_turns
from tile2cu.passes.sum_after_loop import AFTER_LOOP, with_sums_after_loops
from tile2cu.passes.thread_local_rows import OWN_ROWS, with_own_rows
from tile2cu.rules.any_order import any_order
from tile2cu.rules.awaited import awaited
from tile2cu.rules.beside import products_beside
from tile2cu.rules.by_hand import by_hand, tma_by_hand, wgmma_by_hand
from tile2cu.rules.cdna import direct, mfma, mfma_accumulator, mfma_operand, mfma_rows, priority, registers, two_waves
from tile2cu.rules.clusters import arrives_as_reader, cluster, multicast, stays
from tile2cu.rules.dealt import dealt_turns
from tile2cu.rules.engine import Context, Example, Phase, Rule, resolve
from tile2cu.rules.fences import proxy_fence
from tile2cu.rules.first_tiles import first_tiles
from tile2cu.rules.grid import grid_dies, grid_panels, lpt_order
from tile2cu.rules.hopper import (
    producer_warp,
    share_among_warpgroups,
    tma,
    wgmma,
    wgmma_accumulator,
)
from tile2cu.rules.idle import idle_blocks
from tile2cu.rules.in_flight import product_in_flight
from tile2cu.rules.late_sums import lanes_last
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
from tile2cu.rules.lines import lines_a_turn_ahead
from tile2cu.rules.loops import in_registers, loop_packets, store_last, transposed
from tile2cu.rules.memory import tensor_ragged, tensor_row_start, tensor_row_start_when, tile_part_start
from tile2cu.rules.neighbours import atomic_packet
from tile2cu.rules.once import read_once
from tile2cu.rules.overlap import held_operand, overlap, plain_turns, register_shares
from tile2cu.rules.overlay import shared_overlay
from tile2cu.rules.own_turns import own_turns
from tile2cu.rules.packed import pairs, whole_bytes
from tile2cu.rules.persistent import persistent
from tile2cu.rules.pipeline import cp_async
from tile2cu.rules.select import (
    atomic_tile,
    copy_cp_async,
    copy_synchronous,
    copy_through_shared,
    gemm_parts,
    loop_owners_store,
    reduce_workspace,
)
from tile2cu.rules.shares_by_hand import registers_by_hand
from tile2cu.rules.storage import line_swizzle, rows_of_lanes, shared_ledger, shared_plain
from tile2cu.rules.sync import shared_hazard
from tile2cu.rules.threads import pasted_ptx, shared_addressed, thread_available
from tile2cu.rules.tma_store import tma_store
from tile2cu.rules.warps import block_threads, full_col, full_row, square

__all__ = ["REWRITES", "RULES", "Context", "Example", "Phase", "Rule", "resolve"]

# Changes to a kernel before anything is decided, that its text names.
REWRITES = {
    ROWS_AHEAD: with_rows_ahead,
    MASK: masks_after_products,
    SKIPPED: with_skipped_turns,
    CHOSEN: with_chosen_places,
    OVERWRITES: with_overwriting_products,
    OWN_ROWS: with_own_rows,
    COPIED: loops_that_copy,
    GATHERED: loops_that_gather,
    STRAIGHT: with_straight_copies,
    AFTER_LOOP: with_sums_after_loops,
}

RULES: tuple[Rule, ...] = (
    whole_bytes,
    thread_available,
    pasted_ptx,
    by_hand,
    cluster,
    block_threads,
    producer_warp,
    wgmma_by_hand,
    dealt_turns,
    share_among_warpgroups,
    square,
    full_row,
    full_col,
    wgmma,
    wgmma_accumulator,
    mfma,
    mfma_accumulator,
    mfma_rows,
    mma_sync,
    fma,
    mma_accumulator,
    mma_operand,
    tma_by_hand,
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
    line_swizzle,
    rows_of_lanes,
    shared_plain,
    loop_flat,
    loop_packets,
    any_order,
    store_last,
    in_registers,
    transposed,
    atomic_packet,
    tensor_ragged,
    tensor_row_start,
    tensor_row_start_when,
    tile_part_start,
    pairs,
    tma,
    overlap,
    plain_turns,
    own_turns,
    lanes_last,
    register_shares,
    registers_by_hand,
    first_tiles,
    held_operand,
    persistent,
    cp_async,
    direct,
    registers,
    two_waves,
    reduce_workspace,
    product_in_flight,
    products_beside,
    lines_a_turn_ahead,
    awaited,
    shared_overlay,
    shared_hazard,
    multicast,
    stays,
    arrives_as_reader,
    proxy_fence,
    copy_through_shared,
    copy_cp_async,
    read_once,
    tma_store,
    grid_panels,
    grid_dies,
    lpt_order,
    idle_blocks,
    priority,
    copy_synchronous,
    gemm_parts,
    atomic_tile,
    loop_owners_store,
    shared_ledger,
)
