"""Hopper: an MMA that remains in flight while the next iteration computes its operand."""

from collections.abc import Iterator
from itertools import takewhile

from tile2cu.analysis.accesses import (
    buffers_read,
    buffers_written,
    overwrites,
    used_by_itself,
    variables_of,
    viewed,
)
from tile2cu.analysis.prelude import is_iteration
from tile2cu.analysis.uses import outside_of, using, written_in
from tile2cu.core.decisions import (
    ALIASING,
    BLOCK_VOTE,
    COPIED_OPERAND,
    LAYOUT,
    ON_WGMMA,
    PERSISTENT,
    PIPELINE,
    PROLOGUE_LOADS,
    REDUCTION_WARPS,
    SCHEDULE,
    SHARED_LAYOUT,
    STAGES,
    VECTOR,
    WARP_SPECIALISED,
)
from tile2cu.core.program import (
    Buffer,
    Copy,
    Gemm,
    Let,
    Loop,
    Scope,
    Stmt,
)
from tile2cu.core.schedule import MmaInFlight
from tile2cu.rules.engine import Context, Decision, Example, Phase, rule
from tile2cu.rules.mma.hopper import all_on_wgmma, warpgroups
from tile2cu.rules.schedule.candidates import scheduled
from tile2cu.rules.schedule.register_budget import has_room


def _decode(operand: str, rows: int, mma: str) -> str:
    """A GEMM of weights that each iteration computes from others, in shared memory or in registers."""
    return f"""
A_shared = T.alloc_shared((64, 64), "float16")
packed = T.alloc_shared(({rows}, 64), "float16")
B = T.{operand}(({rows}, 64), "float16")
C_local = T.alloc_fragment(({rows}, 64), "float32")
T.clear(C_local)
for k in T.Pipelined(4, num_stages=2):
    T.copy(Z[0, k * 64], A_shared)
    T.copy(Z[k * 64, 0], packed)
    for i, j in T.Parallel({rows}, 64):
        B[i, j] = packed[i, j] * T.cast(2.0, "float16")
    T.gemm({mma}, C_local)
T.copy(C_local, Z[0, 0])
"""


_DECODE = _decode("alloc_shared", 64, "A_shared, B")
_GATHER = """
X_shared = T.alloc_shared((64, 64), "float16")
G_shared = T.alloc_shared((64, 64), "float16")
U_shared = T.alloc_shared((64, 64), "float16")
gate = T.alloc_fragment((64, 64), "float32")
up = T.alloc_fragment((64, 64), "float32")
T.clear(gate)
T.clear(up)
for k in T.Pipelined(4, num_stages=2):
    for i, j in T.Parallel(64, 64):
        X_shared[i, j] = Z[T.cast(A[i, 0], "int32"), k * 64 + j]
    T.copy(Z[0, k * 64], G_shared)
    T.copy(Z[64, k * 64], U_shared)
    T.gemm(X_shared, G_shared, gate, transpose_B=True)
    T.gemm(X_shared, U_shared, up, transpose_B=True)
"""
_DECODE_IN_REGISTERS = _decode("alloc_fragment", 128, "B, A_shared")


@rule(
    "pipeline.loop.mma-in-flight",
    phase=Phase.PIPELINE,
    on=Loop,
    reads=(
        ALIASING,
        LAYOUT,
        ON_WGMMA,
        PERSISTENT,
        PIPELINE,
        PROLOGUE_LOADS,
        BLOCK_VOTE,
        REDUCTION_WARPS,
        SHARED_LAYOUT,
        STAGES,
        VECTOR,
        WARP_SPECIALISED,
    ),
    absent=(SCHEDULE,),
    writes=(COPIED_OPERAND, SCHEDULE, STAGES),
    source="measured on an H200: benchmarks/RESULTS.md, weights of 4 bits",
    examples=(
        Example(
            _DECODE,
            6,
            "schedule",
            "C_local of the previous iteration in flight, while B is written",
            target="cuda:sm_90a",
        ),
        Example(_DECODE, "B", "stages", "2", target="cuda:sm_90a"),
        Example(
            _GATHER,
            8,
            "schedule",
            "gate, up of the previous iteration in flight, while X_shared is written",
            target="cuda:sm_90a",
        ),
        Example(
            _DECODE_IN_REGISTERS,
            6,
            "schedule",
            "C_local of the previous iteration in flight, while B is written",
            target="cuda:sm_90a",
            threads=256,
        ),
    ),
)
def mma_in_flight(op: Loop, context: Context) -> Iterator[Decision]:
    """The MMA that ends an iteration remains in flight while the next iteration writes its double-buffered operand.

    So do several MMAs that end an iteration, of operands in shared memory. Each iteration must overwrite the operand,
    which nothing else accesses, nothing else in the loop may access the results, and there must be room: in shared
    memory for the second stages, in registers for a copy, which the MMA reads. Where it reads a copy, a known
    trip count is an argument of the kernel: ptxas issues other instructions between wgmmas where it is a constant.

    Gives: the statements that run while the MMA is in flight, and two stages for each shared tile that they write; or,
    for the MMA, the fragment to copy. All decisions are then made again with the copy.
    """
    pipeline = context.facts.get(op, PIPELINE)
    if pipeline is None or not pipeline.producer or not all_on_wgmma(op, context) or pipeline.stages < 2:
        return
    if context.facts.get(op, SCHEDULE) is not None or is_iteration(op, context.launch.body):
        return
    before, mmas = _ending(pipeline.body)
    if not mmas:
        return
    if len(mmas) == 1 and mmas[0].a.buffer.scope is Scope.FRAGMENT:
        if _needs_copy(before, mmas[0], context):
            yield mmas[0], COPIED_OPERAND, mmas[0].a.buffer.name
        candidates = _in_registers(before, mmas[0], context)
    else:
        candidates = _in_shared(before, mmas, context)
    found = scheduled(candidates, op, pipeline, context)
    if found is not None:
        yield op, SCHEDULE, found
        for tile in found.doubled:
            yield tile, STAGES, 2


def _ending(body: tuple[Stmt, ...]) -> tuple[tuple[Stmt, ...], tuple[Gemm, ...]]:
    """(the statements before them, the GEMMs that end an iteration)."""
    mmas = tuple(takewhile(lambda stmt: isinstance(stmt, Gemm), reversed(body)))[::-1]
    return body[: len(body) - len(mmas)], mmas  # type: ignore[return-value]


def _in_shared(before: tuple[Stmt, ...], mmas: tuple[Gemm, ...], context: Context) -> Iterator[MmaInFlight]:
    """Where the iteration writes an operand in shared memory."""
    operands = tuple(dict.fromkeys(region.buffer for mma in mmas for region in (mma.a, mma.b)))
    results = {mma.c.buffer for mma in mmas}
    written = written_in(before)
    tiles = tuple(tile for tile in operands if tile in written)
    if not tiles or any(tile.scope is not Scope.SHARED for tile in operands) or len(results) < len(mmas):
        return
    if any(_touched(result, before) for result in results):
        return
    if all(_only_passed_on(tile, (*before, *mmas), context) for tile in tiles):
        yield MmaInFlight(before=before, last=mmas, written=tiles)


def _in_registers(before: tuple[Stmt, ...], mma: Gemm, context: Context) -> Iterator[MmaInFlight]:
    """Where the iteration writes the A operand, a fragment, which it copies for the MMA."""
    copied = before[-1] if before else None
    if _may_copy(before, mma, context) and isinstance(copied, Copy) and _copies_to(mma.a.buffer, copied):
        exchanged_tiles = _only_passed_on(mma.a.buffer, (copied, mma), context)
        if exchanged_tiles and _only_passed_on(copied.src.buffer, before, context):
            yield MmaInFlight(before=before[:-1], last=(mma,), copied=copied)


def _needs_copy(before: tuple[Stmt, ...], mma: Gemm, context: Context) -> bool:
    """Whether an MMA would be in flight if it had a copy of its operand, for which there is room."""
    tile = mma.a.buffer
    if not _may_copy(before, mma, context) or (before and _copies_to(tile, before[-1])):
        return False
    return _only_passed_on(tile, (*before, mma), context) and has_room(tile, context)


def _copies_to(tile: Buffer, stmt: Stmt) -> bool:
    """Whether a statement copies another fragment to this one."""
    return isinstance(stmt, Copy) and stmt.dst.buffer is tile and stmt.src.buffer.scope is Scope.FRAGMENT


def _may_copy(before: tuple[Stmt, ...], mma: Gemm, context: Context) -> bool:
    """Whether an MMA whose A operand the iteration writes, a fragment, may be in flight.

    Blocks of one warpgroup share an SM, and one multiplies while another one prepares: they need no copy.
    """
    lets = {stmt.var for stmt in before if isinstance(stmt, Let)}
    if warpgroups(context.launch) < 2 or _touched(mma.c.buffer, before) or lets & variables_of(mma):
        return False
    return not any(mma.b.buffer in buffers_written(stmt) for stmt in before)


def _touched(tile: Buffer, body: tuple[Stmt, ...]) -> bool:
    return bool(using(body, tile))


def _only_passed_on(tile: Buffer, body: tuple[Stmt, ...], context: Context) -> bool:
    """Whether one statement of the body overwrites the tile, later ones read it, and nothing else accesses it."""
    if tile.of is not None or viewed(context.launch, tile):
        return False
    users = using(body, tile)
    elsewhere = any(tile in used_by_itself(op) for op in outside_of(body, context.launch.body))
    if len(users) < 2 or elsewhere:
        return False
    writer, *readers = users
    if not all(isinstance(reader, Gemm) for reader in readers[1:]):
        return False
    kept = not any(tile in buffers_written(reader) for reader in readers)
    return overwrites(writer, tile) and tile not in buffers_read(writer) and kept
