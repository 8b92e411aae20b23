"""Claims as the comments that are at an operation."""

from tile2cu.analysis.banks import lds_phase
from tile2cu.core.instruction import MmaUnit
from tile2cu.core.schedule import Hazard
from tile2cu.plan.claims import (
    AddedByTma,
    AddressableByTma,
    Aligned,
    ArrivesAsReader,
    AwaitedAtOnce,
    ByLdmatrix,
    Claim,
    CpAsyncs,
    ElementsTogether,
    Ends,
    Evicts,
    Exchanged,
    Executes,
    HalfBytes,
    IdleLanesCompute,
    LeftOut,
    NoTensorCore,
    OutlivesUse,
    Prioritised,
    ReachedElsewhere,
    ReadsGlobal,
    Reuses,
    Staged,
    StoredByLanes,
    StoredByTma,
    StoredByWarps,
    StoredLast,
    Streams,
    TmaBoxes,
    TotalsOnly,
    Widened,
)
from tile2cu.plan.exchanges import Reuse
from tile2cu.plan.ops import ProxyFence
from tile2cu.styles.base.comments import BODY_WIDTH, listed, wrapped
from tile2cu.styles.base.names import Names

# headers/tl/common/tensor.h: both are hints.
_EVICTED = {
    "evict_first": "evict_first: nothing reads it again",
    "evict_last": "evict_last: it is read again soon",
}
# Bytes that a warp stores to a row. [CUDA C++ Best Practices Guide, "Coalesced Access to Global Memory"]
_SECTORS = {32: ", a sector's size,", 16: ", half a sector's size,"}
_EXCHANGES = {
    Reuse.BARRIER: "two barriers: all have read the last exchange (WAR), all have stored their parts (RAW)",
    Reuse.ONCE: "a barrier: all have stored their parts (RAW)",
    Reuse.OTHERS: (
        "a barrier: all have stored their parts (RAW); that of the iteration's other reductions orders the next "
        "exchange after the loads of this one (WAR)"
    ),
}


def fence_comment(op: ProxyFence, names: Names) -> tuple[str, ...]:
    """What a fence makes visible to whom."""
    stored = listed([*map(names.in_comments, op.tiles)])
    said = f"{op.reader.value} does not read as threads do: what they stored to {stored} is shown to it"
    return tuple(wrapped(f"{said}  [{op.claims[0].rule}]", BODY_WIDTH))


def comment(claim: Claim, names: Names) -> str:
    """The claim as a sentence, with its rule behind it."""
    sentence = _sentence(claim, names.in_comments)
    return f"{sentence}  [{claim.rule}]" if claim.rule else sentence


def _sentence(claim: Claim, names: Names) -> str:
    match claim:
        case Exchanged():
            warps, through = ("waves", "LDS") if claim.waves else ("warps", "shared memory")
            who = warps if claim.lanes is None else f"groups of {claim.lanes} lanes"
            return f"{claim.parts} {who} hold a part each: exchanged through {through}, with {_EXCHANGES[claim.reuse]}"
        case Ends():
            return _ended(claim, names)
        case Reuses():
            staging, tile = names(claim.staging), names(claim.where.name)
            return f"until all have read {tile}: {staging} is written in its memory"
        case OutlivesUse():
            return "A block exits when no other block accesses its shared memory"
        case ReachedElsewhere():
            return "a barrier of all threads, which also synchronise elsewhere"
        case LeftOut():
            return f"left out: {claim.because}"
        case _:
            return _of_elementwise(claim, names) or _moved(claim) or _of_copy(claim, names) or _of_mma(claim, names)


def _of_elementwise(claim: Claim, names: Names) -> str:
    match claim:
        case ElementsTogether(columns=0):
            return f"{claim.elements} elements at a time"
        case ElementsTogether():
            return f"{claim.elements} elements at a time: a thread's part of {claim.columns} columns of a row"
        case IdleLanesCompute():
            return "idle lanes compute, too: no branch"
        case TotalsOnly():
            return "permutation-invariant: elements in the order in which they are unpacked, as only totals are read"
        case ReadsGlobal():
            read = listed([names(tensor.name) for tensor in claim.tensors])
            return f"read from global memory in each iteration, not prefetched: {read}"
        case ByLdmatrix():
            return "ldmatrix transposes on the way"
        case ArrivesAsReader():
            return "it releases tiles that were read; other blocks read nothing that these threads wrote"
        case HalfBytes():
            return "two threads may write halves of one byte, so each write is atomic"
        case StoredLast():
            return (
                f"parallel_into: {names(claim.tile.name)} is stored when all vectors are computed, so that no load "
                "waits for a store"
            )
        case _:
            return ""


def _moved(claim: Claim) -> str:
    match claim:
        case TmaBoxes():
            box = f"{claim.rows} x {claim.columns}"
            boxes = f"one box of {box}" if claim.boxes == 1 else f"{claim.boxes} boxes of {box}"
            swizzle = f"{claim.swizzle}-byte swizzle" if claim.swizzle else "no swizzle"
            return f"cp.async.bulk.tensor.{claim.rank}d (TMA), {boxes} per tile, {swizzle}"
        case CpAsyncs():
            cache = "cg" if claim.bytes == 16 else "ca"  # PTX ISA, 'cp.async': .cg takes 16 bytes only
            per_thread = claim.threads and claim.chunks % claim.threads == 0
            each = claim.chunks // claim.threads if per_thread else claim.chunks
            count = f"{each} per thread for each tile" if per_thread else f"{each} per tile"
            where = f"rows start at multiples of {claim.bytes} bytes" if claim.if_aligned else ""
            where = f", where {f'all {where}' if claim.by_instance else where}" if where else ""
            return f"cp.async.{cache} of {claim.bytes} bytes, {count}{where}"
        case StoredByWarps():
            span = claim.lanes * claim.bytes
            aligned = ", where rows are aligned, else single elements" if claim.if_aligned else ""
            return (
                f"each lane stores {claim.count} x {claim.bytes} bytes{aligned}; {claim.lanes} lanes store {span} "
                f"consecutive bytes{_SECTORS.get(span, '')} in each of {claim.rows} rows"
            )
        case _:
            return ""


def _of_copy(claim: Claim, names: Names) -> str:
    match claim:
        case StoredByLanes():
            rounded = f"; converted to {claim.rounded} (RN) before" if claim.rounded else ""
            runs = f"{claim.columns} neighbouring columns at a time"
            aligned = ", where rows are aligned" if claim.if_aligned else ""
            return f"a lane stores {claim.count} x {claim.bytes} bytes per row, {runs}{aligned}{rounded}"
        case AddedByTma():
            return (
                "Each warp writes its rows to the staging tile and fences them for TMA, which adds them to the "
                "tensor's elements while the block continues"
            )
        case Staged():
            return claim.because
        case Streams(tensors=tensors):
            of, it = (f", of {listed([names(each.name) for each in tensors])},", "them") if tensors[1:] else ("", "it")
            by = f" by {claim.by}" * bool(claim.by)
            return f"evict_first in L2{by}{of} where no other block reads {it}, of tensors of at most 256 MiB"
        case StoredByTma() if claim.transposed:
            return (
                "The warps write the tile transposed, by stmatrix; after a barrier one thread stores it; returns when "
                "TMA has read it"
            )
        case StoredByTma():
            again = ", and waits until TMA has read a box before others are staged there" if claim.reused else ""
            last = "the last" if claim.reused else "them"
            goes_on = f"TMA reads {last} while the block continues"
            return (
                f"Each warp stages its rows and fences them for TMA; lane 0 stores them, in boxes of {claim.rows} x "
                f"{claim.columns} elements{again}; "
                f"{goes_on if claim.outstanding else 'lane 0 waits until TMA has read them'}"
            )
        case Aligned():
            return "Aligned<n>: the part starts at a multiple of n bytes, so accesses are n bytes wide"
        case Evicts():
            return _EVICTED[claim.policy]
        case AddressableByTma():
            return "TMA can address rows at multiples of 16 bytes; others are stored from registers"
        case _:
            return ""


def _of_mma(claim: Claim, names: Names) -> str:
    match claim:
        case Executes():
            return _executed(claim, names)
        case Prioritised():
            return "s_setprio: waves at this MMA have priority on their SIMD, as requested"
        case AwaitedAtOnce():
            return "waited for immediately" + (f": {claim.because}" if claim.because else "")
        case NoTensorCore():
            a, b, c = claim.types
            return f"no tensor core of {claim.arch} multiplies {a} by {b} into {c}: each thread multiplies and adds"
        case Widened():
            a, b, _ = claim.types
            operands = str(a) if a == b else f"{a} by {b}, both"
            return f"{claim.arch} multiplies {operands} as {claim.through}, which holds its values exactly"
        case _:
            raise TypeError(f"no sentence for {type(claim).__name__}")


def _executed(claim: Executes, names: Names) -> str:
    parts = listed([f"{each.name} x {count}" for each, count in claim.counts])
    (first, _), *_ = claim.counts
    if first.unit is MmaUnit.WARPGROUP:
        a, b = ("K-major" if major else f"{axis}-major" for axis, major in zip("MN", claim.k_major, strict=True))
        both = f"A and B {b}" if a == b else f"A {a}, B {b}"
        computing, consumers = claim.warpgroups
        who = "per warpgroup" if computing == consumers else "by the warpgroup whose iteration it is"
        return f"{parts} {who}, {f'SS: {both}' if claim.a_in_registers is None else f'RS: A in registers, B {b}'}"
    if not first.is_mfma:
        return f"{parts} per warp{_loaded(claim)}"
    computed = f"{parts} per wave each time, as C^T = B^T A^T: SrcA is B, SrcB is A"
    return f"{computed}{_lds_reads(claim, names)}{_operands_held(claim)}{_along_k(claim, first.m)}"


def _loaded(claim: Executes) -> str:
    """How a warp loads the operands of mma.sync."""
    if claim.ldmatrix is None:
        return ""
    a, b = claim.ldmatrix
    return f"; A and B by {a}" if a == b else f"; A by {a}, B by {b}" if a else f"; A from registers, B by {b}"


def _lds_reads(claim: Executes, names: Names) -> str:
    """From where a lane has the operands of an MFMA."""
    if claim.lds_reads is None:
        return ""
    parts = zip(claim.lds_reads, claim.lds_ways, claim.permuted, claim.transposing, strict=True)
    held = "VGPRs" if claim.a_in_registers is None else f"VGPRs ({names(claim.a_in_registers.name)})"
    a, b = (
        held
        if not width
        else "LDS through VGPRs by ds_read_b64_tr_b16"
        if across
        else _of_lds(width, ways, permuted, claim.banks)
        for width, ways, permuted, across in parts
    )
    return f"; A and B from {a}" if a == b else f"; A from {a}; B from {b}"


def _operands_held(claim: Executes) -> str:
    """The registers of what a lane reads from LDS."""
    if not claim.registers:
        return ""
    of_steps = (
        f"{claim.steps} step{'s' * (claim.steps > 1)} of {claim.step} along K" if claim.steps else "the tile's whole K"
    )
    return f"; operands from LDS take {claim.registers} VGPRs, for {of_steps}"


def _along_k(claim: Executes, size: int) -> str:
    """Which operands a lane gives an MFMA."""
    if not claim.k_of_mfma:
        return ""
    column = f"lane % {size}" if claim.columns == 1 else f"{claim.columns} (lane % {size}) + t"
    of = f" of MFMA t of {claim.columns}" * (claim.columns > 1)
    values = f", i < {claim.each}" * (claim.each > 1)
    return (
        f"; MFMA s along K takes k = {claim.k_of_mfma}{values}, of row lane % {size} of A and column {column} of B{of}"
    )


def _of_lds(width: int, ways: int, permuted: bool, banks: int) -> str:
    """How a lane reads an operand from LDS."""
    text = "LDS through VGPRs" + (" by ds_read_b128" if width == 16 else f", {width} bytes per lane and read")
    if ways:
        text += ", free of bank conflicts" if ways == 1 else f", {ways}-way bank conflicts"
        text += f" among the {lds_phase(width, banks=banks)}"
    return text + (", each of columns at one k: v_perm_b32 packs pairs of k" if permuted and width > 2 else "")


def _ended(claim: Ends, names: Names) -> str:
    """Why there is a barrier: what other threads did to which tiles."""
    who = f"all {claim.threads} threads that come here" if claim.threads else "all threads"
    fence = "; fence.proxy.async before it, for wgmma and TMA" * claim.fenced
    return f"{in_words(claim.hazards, names, who)}{fence}"


def in_words(hazards: tuple[Hazard, ...], names: Names, who: str = "all threads") -> str:
    """The hazards that a barrier ends, by kind: what `who` have done before what."""
    tiles: dict[tuple[str, str, str], list[str]] = {}
    names = names.in_comments
    for hazard in hazards:
        done = "stored" if hazard.kind == "written" else "read"
        them = "any overwrites its memory" if hazard.taken_over else f"any {'reads' if hazard.raw else 'overwrites'} it"
        tiles.setdefault((hazard.order, done, them), []).append(names(hazard.buffer))
    parts = []
    for (order, done, then), found in tiles.items():
        after = then if len(found) == 1 else then.replace(" its ", " their ").replace(" it", " them")
        parts.append(f"{order}: {who} have {done} {listed(found)} before {after}")
    return "; ".join(parts)
