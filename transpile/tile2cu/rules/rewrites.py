"""What precedes all decisions of the rules, by the id that emitted source names it by."""

from tile2cu.chooser.choose import choose, measured
from tile2cu.core.choice import TILES_RULE, TUNED_RULE
from tile2cu.passes.clear_in_gemm import OVERWRITES, overwriting_gemms
from tile2cu.passes.forward_copies import COPY_FORWARDING, forwarded_copies
from tile2cu.passes.gather_rows import GATHERED, loops_that_gather
from tile2cu.passes.if_conversion import IF_CONVERSION, if_converted
from tile2cu.passes.loop_to_copy import COPIED, loops_that_copy
from tile2cu.passes.mask_after_gemm import MASK, masks_after_gemms
from tile2cu.passes.prefetch_rows import PREFETCHED_ROWS, prefetched_rows
from tile2cu.passes.shared_operands import SHARED_OPERAND, operands_in_shared
from tile2cu.passes.skip_iterations import SKIPPED, skipped_iterations
from tile2cu.passes.sum_after_loop import AFTER_LOOP, sums_after_loops
from tile2cu.passes.thread_local_rows import THREAD_LOCAL_ROWS, rows_in_registers

# Choices and rewrites of a kernel. An emission has no need of them, and imports none of the chooser.
REWRITES = {
    PREFETCHED_ROWS: prefetched_rows,
    MASK: masks_after_gemms,
    SKIPPED: skipped_iterations,
    IF_CONVERSION: if_converted,
    OVERWRITES: overwriting_gemms,
    SHARED_OPERAND: operands_in_shared,
    THREAD_LOCAL_ROWS: rows_in_registers,
    COPIED: loops_that_copy,
    GATHERED: loops_that_gather,
    COPY_FORWARDING: forwarded_copies,
    AFTER_LOOP: sums_after_loops,
    TILES_RULE: choose,
    TUNED_RULE: measured,
}
