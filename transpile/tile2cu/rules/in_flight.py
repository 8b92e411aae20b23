"""Hopper: a product that stays in flight while the next turn prepares its operand."""

from collections.abc import Iterator
from itertools import takewhile

from tile2cu.analysis.accesses import (
    buffers_read,
    buffers_used,
    buffers_written,
    expressions,
    overwrites,
    used_by_itself,
    variables,
    viewed,
)
from tile2cu.analysis.dependence import broken_by
from tile2cu.core.decisions import (
    ALIASING,
    COPIED_OPERAND,
    LAYOUT,
    MMA_IN_FLIGHT,
    MMA_OVERLAP,
    PERSISTENT,
    PING_PONG,
    PIPELINE,
    PROLOGUE_LOADS,
    REDUCTION_WARPS,
    SHARED_LAYOUT,
    STAGES,
    VECTOR,
    WARP_SPECIALISED,
)
from tile2cu.core.program import (
    Buffer,
    Copy,
    Fill,
    Gemm,
    Let,
    Loop,
    Parallel,
    Scope,
    Stmt,
    walk_stmts,
)
from tile2cu.core.schedule import InFlight, Pipeline
from tile2cu.rules.engine import Context, Decision, Example, Phase, rule
from tile2cu.rules.hopper import on_wgmma, warpgroups
from tile2cu.rules.overlap import has_room
from tile2cu.rules.pipeline import is_at_top
from tile2cu.rules.storage import ledger_of, workspaces_of


def _decode(operand: str, rows: int, product: str) -> str:
    """A product of weights that each turn makes from others, in shared memory or in registers."""
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
    T.gemm({product}, C_local)
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
        MMA_OVERLAP,
        PERSISTENT,
        PING_PONG,
        PIPELINE,
        PROLOGUE_LOADS,
        REDUCTION_WARPS,
        SHARED_LAYOUT,
        STAGES,
        VECTOR,
        WARP_SPECIALISED,
    ),
    writes=(COPIED_OPERAND, MMA_IN_FLIGHT, STAGES),
    source="measured on an H200: benchmarks/RESULTS.md, weights of 4 bits",
    examples=(
        Example(_DECODE, 6, "in_flight", "C_local of the turn before, while B is written", target="cuda:sm_90a"),
        Example(_DECODE, "B", "slots", "2", target="cuda:sm_90a"),
        Example(
            _GATHER,
            8,
            "in_flight",
            "gate, up of the turn before, while X_shared is written",
            target="cuda:sm_90a",
        ),
        Example(
            _DECODE_IN_REGISTERS,
            6,
            "in_flight",
            "C_local of the turn before, while B is written",
            target="cuda:sm_90a",
            threads=256,
        ),
    ),
)
def product_in_flight(op: Loop, context: Context) -> Iterator[Decision]:
    """The product at a turn's end stays in flight while the next turn writes its operand, which gets a second slot.

    So do several that end a turn, of operands in shared memory. That needs an operand that each turn writes whole and
    nothing else uses, results that nothing else in the loop touches, and room: in shared memory for the second slots,
    in registers for a copy, which the product reads.

    Gives: what runs while the product is in flight, and two slots for each shared tile that is written then; or of the
    product, the fragment to copy. The launch is then decided anew with the copy.
    """
    pipeline = context.facts.get(op, PIPELINE)
    if pipeline is None or not pipeline.producer or not on_wgmma(context) or pipeline.stages < 2:
        return
    if not is_at_top(op, context):
        return  # the ring goes on from tile to tile: a slot that is still read would be the next tile's
    before, products = _ending(pipeline.body)
    if not products or not all(isinstance(op, Parallel | Copy | Fill | Let) for op in before):
        return
    if len(products) == 1 and products[0].a.buffer.scope is Scope.FRAGMENT:
        decisions = _in_registers(op, before, products[0], context)
    else:
        decisions = _in_shared(op, before, products, context)
    yield from _legal(op, pipeline, decisions)


def _legal(loop: Loop, pipeline: Pipeline, decisions: Iterator[Decision]) -> Iterator[Decision]:
    """The decisions, none where the order in which they run the loop breaks a dependence."""
    found = tuple(decisions)
    schedules = [value for _, _, value in found if isinstance(value, InFlight)]
    for schedule in schedules:
        versions = {tile.memory: 2 for tile in schedule.written}
        if broken_by(schedule.steps, pipeline.body, loop, versions):
            return
    yield from found


def _ending(body: tuple[Stmt, ...]) -> tuple[tuple[Stmt, ...], tuple[Gemm, ...]]:
    """(what comes before, the products that end a turn)."""
    products = tuple(takewhile(lambda stmt: isinstance(stmt, Gemm), reversed(body)))[::-1]
    return body[: len(body) - len(products)], products  # type: ignore[return-value]


def _in_shared(op: Loop, before: tuple[Stmt, ...], products: tuple[Gemm, ...], context: Context) -> Iterator[Decision]:
    """Where the turn writes an operand in shared memory."""
    operands = tuple(dict.fromkeys(region.buffer for product in products for region in (product.a, product.b)))
    results = {product.c.buffer for product in products}
    written = frozenset().union(*(buffers_written(stmt) for stmt in before))
    tiles = tuple(tile for tile in operands if tile in written)
    if not tiles or any(tile.scope is not Scope.SHARED for tile in operands) or len(results) < len(products):
        return
    if any(_touched(result, before) for result in results):
        return
    alone = all(_handed_over(tile, (*before, *products), context) for tile in tiles)
    ledger = ledger_of(context.launch, context, workspaces_of(context), ())
    more = sum(context.facts[tile, SHARED_LAYOUT].bytes for tile in tiles)
    if alone and ledger.total + more <= ledger.limit:
        yield op, MMA_IN_FLIGHT, InFlight(before=before, product=products[0], written=tiles, beside=products[1:])
        for tile in tiles:
            yield tile, STAGES, 2


def _in_registers(op: Loop, before: tuple[Stmt, ...], product: Gemm, context: Context) -> Iterator[Decision]:
    """Where the turn writes the first operand, a fragment: before it is copied for the product, and after.

    Blocks of one warpgroup share a multiprocessor, and multiply while another one prepares: they need no copy.
    """
    if warpgroups(context.launch) < 2:
        return
    tile, lets = product.a.buffer, {stmt.var for stmt in before if isinstance(stmt, Let)}
    if _touched(product.c.buffer, before) or lets & variables(*expressions(product)):
        return
    if any(product.b.buffer in buffers_written(stmt) for stmt in before):
        return
    copied = before[-1] if before else None
    if isinstance(copied, Copy) and copied.dst.buffer is tile and copied.src.buffer.scope is Scope.FRAGMENT:
        handed_over = _handed_over(tile, (copied, product), context)
        if handed_over and _handed_over(copied.src.buffer, before, context):
            yield op, MMA_IN_FLIGHT, InFlight(before=before[:-1], product=product, copied=copied)
    elif _handed_over(tile, (*before, product), context) and has_room(tile, context):
        yield product, COPIED_OPERAND, tile.name


def _touched(tile: Buffer, body: tuple[Stmt, ...]) -> bool:
    return any(tile in buffers_used(stmt) for stmt in body)


def _handed_over(tile: Buffer, body: tuple[Stmt, ...], context: Context) -> bool:
    """Whether one statement of the body writes the whole tile, later ones read it, and nothing else touches it."""
    if tile.of is not None or viewed(context.launch, tile):
        return False
    users = [stmt for stmt in body if tile in buffers_used(stmt)]
    inside = {id(stmt) for stmt in walk_stmts(body)}
    elsewhere = any(tile in used_by_itself(op) for op in context.statements if id(op) not in inside)
    if len(users) < 2 or elsewhere:
        return False
    writer, *readers = users
    if not all(isinstance(reader, Gemm) for reader in readers[1:]):
        return False
    kept = not any(tile in buffers_written(reader) for reader in readers)
    return overwrites(writer, tile) and tile not in buffers_read(writer) and kept
