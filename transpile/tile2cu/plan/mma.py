"""MMAs and the waits that retire them."""

from collections.abc import Iterator

from tile2cu.core.decisions import (
    INSTRUCTION,
    LAYOUT,
    NO_WGMMA,
    NOT_IN_FLIGHT,
    RETIRED,
    WARPS,
    WAVE_PRIORITY,
)
from tile2cu.core.facts import Facts
from tile2cu.core.instruction import WARPGROUP_WARPS, MmaUnit, executed
from tile2cu.core.mfma_layout import MfmaAccumulator, MfmaTile
from tile2cu.core.program import Gemm, Region, Scope, Stmt, WgmmaWait
from tile2cu.plan.claims import AwaitedAtOnce, Claim, Executes, NoTensorCore, Prioritised, Widened
from tile2cu.plan.lds_reads import RUN_BYTES, is_interleaved, lds_ways_of
from tile2cu.plan.mfma_steps import operand_registers, steps_held, steps_of
from tile2cu.plan.operands import Tile
from tile2cu.plan.ops import ClearIf, Mma, MmaWait, WaitPoint
from tile2cu.plan.resolved import Resolved


def mma(op: Gemm, resolved: Resolved) -> Mma:
    """The MMA of a GEMM statement."""
    facts = resolved.facts
    instruction = facts[op, INSTRUCTION]
    metadata = _operand(op.metadata, transposed=op.transpose_metadata) if op.metadata is not None else None
    return Mma(
        source=op,
        claims=_claims(op, resolved),
        a=_operand(op.a, transposed=op.transpose_a),
        b=_operand(op.b, transposed=op.transpose_b),
        c=_operand(op.c),
        metadata=metadata,
        instruction=instruction,
        starts=resolved.is_in_flight(op) and metadata is None,
        overwrites=op.clear,
        overwrites_if=op.clear_if if instruction.unit is MmaUnit.WARPGROUP else None,
        priority=facts.get(op, WAVE_PRIORITY) or 0,
    )


def clear_before(stmt: Stmt, resolved: Resolved) -> Iterator[ClearIf]:
    """What clears the accumulator of an MMA whose instruction cannot."""
    if not isinstance(stmt, Gemm) or stmt.clear_if is None:
        return
    if unit_of(stmt, resolved.facts) is not MmaUnit.WARPGROUP:
        yield ClearIf(source=stmt, tile=_operand(stmt.c), condition=stmt.clear_if)


def wait_after(stmt: Stmt, resolved: Resolved) -> Iterator[MmaWait]:
    """The wait of an MMA that is awaited immediately while others are in flight, which retire with it."""
    retirement = resolved.waits.get((id(stmt), True)) or resolved.facts.get(stmt, RETIRED)
    if isinstance(stmt, Gemm) and retirement is not None:
        results = {id(tile): tile for tile in (stmt.c.buffer, *retirement.results)}
        yield MmaWait(source=stmt, pending=0, results=tuple(results.values()), in_flight=(), point=WaitPoint.ISSUED)


def wait_before(stmt: Stmt, resolved: Resolved) -> Iterator[MmaWait]:
    """The wait for MMAs in flight before a statement that needs their results."""
    retirement = resolved.waits.get((id(stmt), False))
    if retirement is not None:
        flying = retirement.in_flight
        yield MmaWait(
            source=stmt, pending=len(flying), results=retirement.results, in_flight=flying, point=WaitPoint.NEEDED
        )


def wait_asked(stmt: WgmmaWait, resolved: Resolved) -> MmaWait:
    """T.wait_wgmma."""
    results = resolved.facts[stmt, RETIRED].results
    return MmaWait(source=stmt, pending=stmt.pending, results=results, in_flight=(), point=WaitPoint.ASKED)


def unit_of(op: Gemm, facts: Facts) -> MmaUnit:
    """What multiplies."""
    return facts[op, INSTRUCTION].unit


def _ldmatrix(op: Gemm, resolved: Resolved) -> tuple[str, str] | None:
    """How a warp loads A and B of 16-bit elements from shared memory (headers/tl/common/mma_operands.h)."""
    a, b = op.a.buffer, op.b.buffer
    if resolved.target.is_amd or {a.dtype.bits, b.dtype.bits} != {16} or b.scope is not Scope.SHARED:
        return None
    pairs, one = divmod(op.mnk[1] // (8 * resolved.facts[op, WARPS].n), 2)  # an x4 loads B of two MMAs
    widths = " and ".join(filter(None, ("x4" * (pairs > 0), f"{'.' * (pairs > 0)}x2" * one)))
    of_a = "" if a.scope is Scope.FRAGMENT else "ldmatrix.x4" + ".trans" * op.transpose_a
    return of_a, f"ldmatrix.{widths}" + ".trans" * (not op.transpose_b)


def _interleaved(op: Gemm, resolved: Resolved) -> int:
    """How many MFMAs have interleaved columns; 1 without MFMAs."""
    layout = resolved.facts.get(op.c.buffer, LAYOUT)
    return layout.interleave if isinstance(layout, MfmaTile) else 1


def _lds_reads(op: Gemm, resolved: Resolved) -> tuple[int, int] | None:
    """The bytes of each read of A and B from the LDS (headers/tl/common/cdna/mfma_gemm.h); None where unknown."""
    layout = resolved.facts.get(op.c.buffer, LAYOUT)
    if not isinstance(layout, MfmaAccumulator):
        return None
    size = op.a.buffer.dtype.bytes
    if size == 1 or op.b.buffer.dtype.bytes != size or op.a.buffer.dtype.is_packed:
        return None
    a_in_registers, steps = op.a.buffer.scope is Scope.FRAGMENT, steps_of(op, resolved)
    if steps is None:
        return None
    along = min(steps.piece * size, 16)
    if is_interleaved(op.a.buffer, resolved):
        a = RUN_BYTES
    else:
        a = 0 if a_in_registers else size if op.transpose_a else along
    if is_interleaved(op.b.buffer, resolved):
        return a, RUN_BYTES * layout.interleave
    return a, along if op.transpose_b else min(layout.interleave * size, 16)


def _transposing(op: Gemm, resolved: Resolved, reads: tuple[int, int]) -> tuple[bool, bool]:
    """Whether A and B are read across K by transposing reads, of 8 bytes (the same header, MfmaAcrossK)."""
    layout, steps, size = resolved.facts[op.c.buffer, LAYOUT], steps_of(op, resolved), op.b.buffer.dtype.bytes
    if size not in resolved.target.transposing_reads or steps is None or steps.piece % (8 // size):
        return False, False
    interleave = layout.interleave if isinstance(layout, MfmaTile) else 1
    return bool(reads[0]) and op.transpose_a, not op.transpose_b and interleave == 1


def _operand(region: Region, *, transposed: bool = False) -> Tile:
    return Tile(region=region, transposed=transposed)


def _claims(op: Gemm, resolved: Resolved) -> tuple[Claim, ...]:
    """Why an MMA does not run on the tensor cores, or not as its types say, or not asynchronously."""
    facts = resolved.facts
    first = (Prioritised(rule=facts.rule(op, WAVE_PRIORITY)),) if facts.get(op, WAVE_PRIORITY) else ()
    rejected = facts.get(op, NOT_IN_FLIGHT) is not None
    if not op.begun or (resolved.is_in_flight(op) and not rejected):
        return (*first, *_of_instruction(op, resolved))
    key = next((key for key in (NOT_IN_FLIGHT, NO_WGMMA) if facts.get(op, key) is not None), None)
    because = str(facts[op, key]) if key is not None else ""
    at_once = AwaitedAtOnce(because=because, rule=facts.rule(op, key) if key is not None else "")
    return (at_once, *first, *_of_instruction(op, resolved))


def _warpgroups(op: Gemm, resolved: Resolved) -> tuple[int, int]:
    """How many warpgroups compute a GEMM on wgmma, and how many those that may are; (0, 0) of other GEMMs."""
    if resolved.facts[op, INSTRUCTION].unit is not MmaUnit.WARPGROUP or resolved.launch.groups > 1:
        return 0, 0
    return resolved.facts[op, WARPS].count // WARPGROUP_WARPS, resolved.launch.threads // (32 * WARPGROUP_WARPS)


def _of_instruction(op: Gemm, resolved: Resolved) -> Iterator[Claim]:
    instruction, rule = resolved.facts[op, INSTRUCTION], resolved.facts.rule(op, INSTRUCTION)
    types, arch = (op.a.buffer.dtype, op.b.buffer.dtype, op.c.buffer.dtype), resolved.target.arch
    if unit_of(op, resolved.facts) is MmaUnit.FMA:
        yield NoTensorCore(rule=rule, arch=arch, types=types)
        return
    warps = resolved.facts[op, WARPS]
    along_m = warps.m // WARPGROUP_WARPS if instruction.unit is MmaUnit.WARPGROUP else warps.m
    counts = executed(instruction, op.mnk, along_m, warps.n)
    in_registers = op.a.buffer.scope is Scope.FRAGMENT
    reads, steps = _lds_reads(op, resolved), steps_of(op, resolved)
    transposing = _transposing(op, resolved, reads) if reads is not None else (False, False)
    ways = lds_ways_of(op, resolved, reads) if reads is not None else (0, 0)
    of_one_k = (op.transpose_a and not in_registers, not op.transpose_b)
    permuted = tuple(
        across and op.b.buffer.dtype.bytes == 2 and not (by_columns or is_interleaved(tile.buffer, resolved))
        for across, tile, by_columns in zip(of_one_k, (op.a, op.b), transposing, strict=True)
    )
    yield Executes(
        counts=counts,
        a_in_registers=op.a.buffer if in_registers else None,
        lds_reads=reads,
        lds_ways=(0 if transposing[0] else ways[0], 0 if transposing[1] else ways[1]),
        transposing=transposing,
        banks=resolved.target.banks,
        permuted=(permuted[0], permuted[1]) if reads is not None else (False, False),
        registers=operand_registers(op, resolved),
        steps=steps_held(op, resolved),
        step=steps.extent if steps is not None else 0,
        k_of_mfma=steps.of_mfma(op.mnk[2], instruction.m) if steps is not None else "",
        each=steps.each if steps is not None else 0,
        columns=_interleaved(op, resolved),
        ldmatrix=_ldmatrix(op, resolved) if instruction.unit is MmaUnit.WARP else None,
        k_major=(not op.transpose_a, op.transpose_b),
        warpgroups=_warpgroups(op, resolved),
    )
    if instruction.through is not None:
        yield Widened(rule=rule, arch=arch, types=types, through=str(instruction.through))
