"""The time of a launch by a formula, from its work, its schedule and the constants of a GPU.

A launch runs in waves of resident blocks. A wave takes what its blocks take one iteration after another (their path),
what the SM's shared resources need for all blocks on it, or what DRAM needs for the bytes of the wave, whichever is
longest. The clock falls as the tensor cores are busier. Where no launch has MMAs, blocks load tiles into registers and
store them, or load tiles by stages: as many follow one another on an SM as there is room for.
"""

from collections.abc import Sequence
from math import log2

from tile2cu.chooser.counts import Work
from tile2cu.chooser.work import moved_bytes
from tile2cu.core.record import Record
from tile2cu.targets.costs import Costs

_RESERVED_BYTES = 1024  # of shared memory, for each block
_SHARED_BYTES = 228 << 10  # of an SM [CUDA C++ Programming Guide, "Technical Specifications per Compute Capability"]
_BLOCK_BYTES = 227 << 10  # of a block, likewise
_REGISTERS = 64 << 10
_THREADS = 2048
_OTHER_REGISTERS = 56  # of a thread, besides its fragments
_STREAM_REGISTERS = 45  # of a thread that loads tiles by stages, besides what `stream_registers` counts
_ROW_REGISTERS, _MOST_ROW_ELEMENTS = 16, 128  # of a thread without MMAs: besides its tile, and of it
_BOX_BYTES = 128  # of a row of a TMA box, as far as a swizzle spans
_SECTOR_BYTES = 32
_MOST_FRAGMENTS, _LEAST_REGISTERS = 200, 28  # of a thread: in fragments, and for addresses and the like
_PRODUCER_REGISTERS = 24 * 128  # of its warpgroup [headers/tl: warpgroup_reg_dealloc]
_LANES = 128  # of an SM, each of which completes one instruction per cycle
_SHARPNESS = 4  # of the maximum of times that overlap in part


class Schedule(Record, frozen=True, kw_only=True):
    """What the rules decide of a launch: MMAs by wgmma, loads by a producer warp, bytes of shared memory.

    `overlapped`: MMAs of an iteration are in flight during other work of it. `staged`: results are stored by TMA.
    `held`: stages whose operands MMAs still read while the next iteration runs.
    """

    wgmma: bool
    producer: bool
    shared_bytes: int
    overlapped: bool = False
    staged: bool = True
    held: int = 0


class Times(Record, frozen=True, kw_only=True):
    """Microseconds of a launch: `total`; those that tensor cores and DRAM need for its work; and `path`, which blocks
    take one wave after another if nothing limits them but their own iterations and their SM.
    """

    total: float
    mma: float
    dram: float
    path: float
    waves: float
    per_sm: int


def most_registers(threads: int) -> float:
    """How many registers of a thread fragments may take: those of an SM less a producer's, and others of the thread."""
    return min(_MOST_FRAGMENTS, (_REGISTERS - _PRODUCER_REGISTERS) / threads - _LEAST_REGISTERS)


def overlapped(*parts: float) -> float:
    """The time of parts that overlap: the longest, and somewhat more where others take about as long."""
    most, total = max(parts), 0.0
    if most <= 0:
        return 0.0
    for part in parts:
        total += (part / most) ** _SHARPNESS
    root: float = total ** (1 / _SHARPNESS)
    return most * root


def blocks_per_sm(work: Work, schedule: Schedule) -> int:
    """How many blocks are resident on an SM, by shared memory, threads, and an estimate of the registers."""
    threads = work.threads + (128 if schedule.producer else 0)
    registers = min(work.fragment_bytes / 4 / work.threads + _OTHER_REGISTERS, 255)
    by_registers = int(_REGISTERS / (registers * threads))
    by_shared = _SHARED_BYTES // (schedule.shared_bytes + _RESERVED_BYTES)
    return max(1, min(by_registers, by_shared, _THREADS // threads, 32))


def times_of(
    works: Sequence[Work], schedules: Sequence[Schedule], tensors: Sequence[tuple[int, int]], costs: Costs
) -> tuple[Times, ...]:
    """The times of a program's launches; `tensors` are the bytes of those that each of them reads, and writes."""
    found = []
    rows = not any(work.longest.mma for work in works)
    for place, (work, schedule, bytes_) in enumerate(zip(works, schedules, tensors, strict=True)):
        own = costs.following if place else costs
        moved = moved_bytes(work, *bytes_)
        if not rows:
            found.append(time_of(work, schedule, moved, own))
        elif work.longest.iterations:
            found.append(_time_of_stream(work, schedule, moved, own))
        else:
            found.append(_time_of_rows(work, moved, own))
    return tuple(found)


def time_of(work: Work, schedule: Schedule, tensor_bytes: int, costs: Costs) -> Times:
    """The time of one launch that reads and writes at least `tensor_bytes` of DRAM."""
    if not work.blocks:
        return Times(total=0.0, mma=0.0, dram=0.0, path=0.0, waves=0.0, per_sm=1)
    per_sm = blocks_per_sm(work, schedule)
    slots = costs.sms * per_sm
    if work.cluster > 2:  # a cluster's SMs are of one GPC, which leaves some over
        slots = max(int(slots * costs.cluster_share) // work.cluster, 1) * work.cluster
    mma = _mma(work, schedule.wgmma, costs)
    whole, rest = divmod(work.blocks, slots)
    waves = [(whole, per_sm, slots)] * bool(whole) + [(1, -(-rest // costs.sms), rest)] * bool(rest)
    missed = tensor_bytes / work.blocks
    of_one = [_wave(work, schedule, costs, mma, missed, resident, blocks) for _, resident, blocks in waves]
    of_longest = [count * cycles for (count, _, _), cycles in zip(waves, of_one, strict=True)]
    share = max(work.mean, max(of_one) / sum(of_longest))  # the longest blocks start first
    cycles = [share * each for each in of_longest]
    busy = work.mean * work.blocks * mma / costs.sms
    ns_per_cycle = (1 + costs.power * busy / sum(cycles)) / costs.ghz
    paths = [each * ns_per_cycle for each in cycles]
    bytes_ = tensor_bytes * _dram_share(work, schedule, costs) / work.blocks
    drams = [count * blocks * bytes_ / _bandwidth(work, costs, blocks) for count, _, blocks in waves]
    ns = sum(overlapped(path, dram) for path, dram in zip(paths, drams, strict=True))
    return Times(
        total=costs.launch_us + ns / 1e3,
        mma=busy * ns_per_cycle / 1e3,
        dram=tensor_bytes / costs.dram_bytes / 1e3,
        path=sum(paths) / 1e3,
        waves=work.blocks / slots,
        per_sm=per_sm,
    )


def _time_of_rows(work: Work, tensor_bytes: int, costs: Costs) -> Times:
    """The time of a launch whose blocks load tiles into registers, compute there and store them."""
    if not work.blocks:
        return Times(total=0.0, mma=0.0, dram=0.0, path=0.0, waves=0.0, per_sm=1)
    elements = work.tile_elements / work.threads
    registers = min(_ROW_REGISTERS + costs.row_registers * elements, 255)
    per_sm = max(1, min(int(_REGISTERS / (registers * work.threads)), _THREADS // work.threads, 32))
    waves = work.blocks / (costs.sms * per_sm)
    block = (costs.row_ns + costs.row_element_ns * elements) / 1e3
    dram = tensor_bytes / costs.dram_bytes / 1e3
    spilled = 1 + costs.spilled * max(elements / _MOST_ROW_ELEMENTS - 1, 0)
    total = costs.launch_us + overlapped(dram, waves * block) + block  # one after the other, and the last ones
    return Times(total=total * spilled, mma=0.0, dram=dram, path=waves * block, waves=waves, per_sm=per_sm)


def _time_of_stream(work: Work, schedule: Schedule, tensor_bytes: int, costs: Costs) -> Times:
    """The time of a launch whose blocks load tiles stage by stage, and compute their elements, without MMAs.

    An iteration takes what a block's elements take on its own lanes, what those of all blocks take on the SM's, or the
    latency of its loads over the stages. DRAM has the bandwidth that the bytes in flight allow.
    """
    if not work.blocks:
        return Times(total=0.0, mma=0.0, dram=0.0, path=0.0, waves=0.0, per_sm=1)
    registers = min(_STREAM_REGISTERS + costs.stream_registers * work.fragment_bytes / 4 / work.threads, 255)
    by_shared = _SHARED_BYTES // (schedule.shared_bytes + _RESERVED_BYTES)
    per_sm = max(1, min(int(_REGISTERS / (registers * work.threads)), by_shared, _THREADS // work.threads, 32))
    slots = costs.sms * per_sm
    counts, ahead = work.longest, max(work.most_stages - 1, 1)
    computed = costs.stream_elementwise * counts.elementwise / counts.iterations / costs.ghz
    own, latency = computed / min(work.threads, _LANES), costs.stream_ns / ahead
    of_sm = computed / _LANES * min(per_sm, max(work.blocks / costs.sms, 1))
    block = (counts.iterations * overlapped(own, of_sm, latency) + costs.row_ns) / 1e3
    in_flight = min(work.blocks, slots) * counts.loaded / counts.iterations * min(ahead, counts.iterations)
    dram = tensor_bytes / min(costs.dram_bytes, in_flight / costs.stream_ns) / 1e3
    waves = work.blocks / slots
    total = costs.launch_us + overlapped(dram, waves * block) + block / 2  # the last blocks end one after the other
    fastest = tensor_bytes / costs.dram_bytes / 1e3
    return Times(total=total, mma=0.0, dram=fastest, path=waves * block, waves=waves, per_sm=per_sm)


def least_time(work: Work, tensor_bytes: int, costs: Costs) -> float:
    """Microseconds that `time_of` does not fall below, whatever the schedule, threads and stages of the work."""
    if not work.blocks:
        return 0.0
    dram = tensor_bytes / costs.dram_bytes
    if not work.longest.mma:
        return costs.launch_us + dram / 1e3
    loaded = work.longest.loaded
    loads, mma = loaded / costs.sm_bytes, min(_mma(work, wgmma, costs) for wgmma in (True, False))
    path = max(mma, loads) + costs.prologue + _epilogue(work, False, costs)
    l2 = (loaded * work.blocks + tensor_bytes) / (costs.l2_bytes * costs.sms)
    shared = max(-(-work.blocks // costs.sms) * max(mma, loads), l2)
    cycles = max(path, work.mean * overlapped(path, shared))  # the sum over waves is no less than that of their sums
    return costs.launch_us + overlapped(cycles / costs.ghz, dram) / 1e3


def _wave(work: Work, schedule: Schedule, costs: Costs, mma: float, missed: float, resident: int, blocks: int) -> float:
    """Cycles of a wave of `blocks`, of which an SM has up to `resident`.

    `mma` are those of a block's MMAs; of its bytes `missed` come from DRAM, which enter the L2 before they leave it.
    """
    counts = work.longest
    loaded, ahead = counts.loaded + _straddled(work, schedule, costs), work.most_stages - 1
    loads, fills = loaded / costs.sm_bytes, 0.0
    elementwise = costs.elementwise * counts.elementwise / _LANES
    if schedule.producer:  # warpgroups hide one another's waits; loads run beside them
        fills = counts.filled / costs.fill_bytes
        own = mma if schedule.overlapped else mma + elementwise
        loop = overlapped(mma, elementwise, own / max(work.threads // 128, 1), loads, fills)
    else:  # the same threads issue the loads, synchronise and multiply
        latency = counts.iterations * costs.dram_ns * costs.ghz / max(ahead, 1)
        issued = counts.iterations * costs.barrier + loaded / costs.issue_bytes
        loop = overlapped(mma + elementwise + issued, latency)
    if elementwise:
        loop += costs.iteration * counts.iterations
    if schedule.held and ahead <= schedule.held:  # loads begin when the iteration does
        loop += counts.iterations * costs.dram_ns * costs.ghz / resident
    waited = resident * max(ahead, 0.5) * loop / max(counts.iterations, 1)
    loop *= 1 + (costs.load_cycles / max(waited, 1)) ** 2  # loads that take longer than usual are waited for
    by_tma = _by_tma(schedule)
    pieces = costs.piece * (_pieces(work) - 1) if by_tma and not counts.exchanged else 0.0
    end = _epilogue(work, by_tma is False, costs)
    path = loop + costs.prologue + (counts.prologue / costs.sm_bytes) + end + pieces
    l2 = (loaded + missed) * blocks / (costs.l2_bytes * costs.sms)
    return overlapped(path, max(resident * mma, resident * elementwise, resident * loads, resident * fills, l2))


def _by_tma(schedule: Schedule) -> bool | None:
    """Whether wgmma's results leave by TMA, rather than by stores of 4 bytes; None for those of others."""
    return schedule.staged if schedule.wgmma and schedule.producer else None


def _pieces(work: Work) -> int:
    """In how many pieces a tile of results is staged for TMA, in the memory that the stages of the operands leave."""
    left = _BLOCK_BYTES - work.shared_bytes
    results = work.fragment_bytes // 2  # of 16 bits, from float32
    return -(-results // left) if 0 < left < results else 1


def _epilogue(work: Work, narrow: bool, costs: Costs) -> float:
    counts = work.longest
    received = counts.exchanged + counts.gathered * work.cluster
    exchange = costs.cluster * log2(work.cluster) + received / costs.exchange_bytes
    wide = counts.stored_wide / costs.wide_bytes
    stored = (counts.stored - counts.stored_wide) / costs.store_bytes * (costs.unstaged if narrow else 1)
    return costs.epilogue + stored + wide + exchange


def _mma(work: Work, wgmma: bool, costs: Costs) -> float:
    """Cycles of the tensor cores for a block's MMAs: wgmma has 64 rows, mma.sync 16, both 8 columns."""
    rate = costs.mma_flops * 16 / max(work.operand_bits, 1) * (1 if wgmma else costs.mma_sync)
    rows = 64 if wgmma else 16
    return sum(times * 2 * _up(m, rows) * _up(n, 8) * k for (m, n, k), times in work.longest.mma.items()) / rate


def _up(extent: int, step: int) -> int:
    return -(-extent // step) * step


def _dram_share(work: Work, schedule: Schedule, costs: Costs) -> float:
    """What DRAM transfers for a byte that is loaded: short rows and those that straddle sectors are more transfers."""
    counts = work.longest
    return 1 + (costs.narrow * counts.narrow + _straddled(work, schedule, costs)) / max(counts.loaded, 1)


def _straddled(work: Work, schedule: Schedule, costs: Costs) -> float:
    """Bytes of the sectors that rows take more where they begin inside of one: of each box, or each row of a tile."""
    counts = work.longest
    rows = counts.straddling / _BOX_BYTES if schedule.producer else counts.straddling_rows
    return costs.straddling * _SECTOR_BYTES * rows


def _bandwidth(work: Work, costs: Costs, blocks: int) -> float:
    """Bytes per ns of DRAM: fewer bytes in flight than its latency needs leave it idle."""
    iterations = max(work.longest.iterations, 1)
    in_flight = blocks * work.longest.loaded / iterations * min(max(work.most_stages - 1, 1), iterations)
    return min(costs.dram_bytes, max(in_flight + blocks * work.longest.prologue, 1) / costs.dram_ns)
