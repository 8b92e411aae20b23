"""What operations cost on a GPU: the constants of the model that chooses tile sizes (chooser/model.py)."""

from functools import cached_property

from msgspec.structs import replace

from tile2cu.core.record import Record


class Costs(Record, frozen=True, kw_only=True):
    """The constants of one GPU. Cycles are those of an SM, and bytes per cycle those of one SM of `sms`.

    `card` is the GPU that was measured, `source` where the figures are from. `ghz` is the clock where MMAs are few;
    with tensor cores that are busy all the time it is `ghz / (1 + power)`. `mma_flops` are those of 16-bit operands per
    cycle by wgmma; `mma_sync` is the share of them that mma.sync reaches. In kernels whose threads load themselves,
    each iteration takes `barrier` cycles, and they issue loads of `issue_bytes` per cycle. A block begins with
    `prologue` cycles, and ends with `epilogue` and what it stores at `store_bytes`, or `wide_bytes` where threads store
    elements of over 16 bits; a tile of results that is stored in pieces takes `piece` cycles for each further one. For
    each doubling of its cluster it waits `cluster` cycles, and it receives `exchange_bytes` per cycle. Loads that were
    issued less than `load_cycles` before are waited for. Bytes per cycle are `sm_bytes` that an SM loads, `l2_bytes`
    that each SM gets of the L2 where all load, and `fill_bytes` that TMA fills with zeros. `dram_bytes` per ns come
    from DRAM, `dram_ns` after the request; rows of less than a cache line cost the share `narrow` more, rows that begin
    inside of a sector `straddling` sectors. Blocks in clusters of 4 and more have `cluster_share` of the SMs.
    `launch_us` is a kernel's, `next_us` that of one that follows in the same call. Loops over elements take the share
    `elementwise` of the cycles of their operations, and an iteration with such loops `iteration` cycles more. wgmma's
    results that do not leave by TMA take `unstaged` times as long.

    Of kernels without MMAs: a block takes `row_ns` from its loads to its stores, and `row_element_ns` for each element
    that a thread has; an element takes `row_registers` registers. Elements that are twice as many as registers cost the
    share `spilled` of the time.

    Where such a block has a loop with loads, these take `stream_ns` while all blocks load; elements take the share
    `stream_elementwise` of the cycles of their operations, and each register of fragments `stream_registers` of one.
    """

    card: str
    source: str
    sms: int
    ghz: float
    power: float
    mma_flops: float
    mma_sync: float
    barrier: float
    issue_bytes: float
    prologue: float
    epilogue: float
    piece: float
    store_bytes: float
    wide_bytes: float
    exchange_bytes: float
    cluster: float
    cluster_share: float
    load_cycles: float
    sm_bytes: float
    fill_bytes: float
    l2_bytes: float
    dram_bytes: float
    dram_ns: float
    narrow: float
    straddling: float
    launch_us: float
    next_us: float
    elementwise: float
    iteration: float
    unstaged: float
    row_ns: float
    row_element_ns: float
    row_registers: float
    spilled: float
    stream_ns: float
    stream_elementwise: float
    stream_registers: float

    @cached_property
    def following(self) -> "Costs":
        """Those of a kernel that follows in the same call."""
        return replace(self, launch_us=self.next_us)


H200 = Costs(
    card="H200",
    source="tools/fit_costs.py --fit 18 on every other pair of N and K of benchmarks/shapes/h200_2026-11-24.csv and of"
    " benchmarks/choices/h200_2026-11-26_first.csv and h200_2026-11-27_family.csv",
    sms=132,
    ghz=2.258,
    power=0.512,
    mma_flops=4096,  # [NVIDIA H200 datasheet: 989.4 TFLOP/s at 1.83 GHz, dense]
    mma_sync=0.7903,
    barrier=244.8,
    issue_bytes=54.11,
    prologue=1680,
    epilogue=1063,
    piece=1184,
    store_bytes=7364,
    wide_bytes=5.558,
    exchange_bytes=9.984,
    cluster=2823,
    cluster_share=0.9678,
    load_cycles=300,  # set, not fitted: it separates 3 from 4 stages of 128 x 128 x 64 tiles, 10 to 15 %
    sm_bytes=73.97,
    fill_bytes=14.68,
    l2_bytes=57.98,
    dram_bytes=4060,
    dram_ns=718.4,
    narrow=0.2211,
    straddling=1.833,
    launch_us=2.743,
    next_us=1.118,
    # set by the 24 shapes of attention in benchmarks/attention/h200_2026-11-27.csv
    elementwise=0.8,
    iteration=500,
    unstaged=16,
    # fitted to norms and softmax in benchmarks/settings/h100_2026-11-27.csv, of an H100
    row_ns=2123,
    row_element_ns=13.74,
    row_registers=1.15,
    spilled=0.54,
    # fitted to gemv and dequant_gemv in that file and in benchmarks/settings/h200_2026-11-27.csv
    stream_ns=1142,
    stream_elementwise=0.235,
    stream_registers=0.176,
)

# By the name of the target. A target without a measured GPU has no model: kernels keep the values of their files.
COSTS = {"cuda:sm_90a": H200}
