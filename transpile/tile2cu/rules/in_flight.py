"""Hopper: a product that stays in flight while the next turn prepares its operand in shared memory."""

from collections.abc import Iterator

from tile2cu.core.accesses import buffers_read, buffers_written, overwrites, viewed
from tile2cu.core.program import (
    Buffer,
    Copy,
    Fill,
    Gemm,
    If,
    Let,
    Loop,
    Parallel,
    Scope,
    While,
    walk_stmts,
)
from tile2cu.core.schedule import InFlight, Pipeline
from tile2cu.rules.engine import Context, Decision, Example, Phase, rule
from tile2cu.rules.hopper import on_wgmma
from tile2cu.rules.pipeline import is_at_top
from tile2cu.rules.storage import ledger_of, workspaces_of

_DECODE = """
A_shared = T.alloc_shared((64, 64), "float16")
packed = T.alloc_shared((64, 64), "float16")
B_shared = T.alloc_shared((64, 64), "float16")
C_local = T.alloc_fragment((64, 64), "float32")
T.clear(C_local)
for k in T.Pipelined(4, num_stages=2):
    T.copy(Z[0, k * 64], A_shared)
    T.copy(Z[k * 64, 0], packed)
    for i, j in T.Parallel(64, 64):
        B_shared[i, j] = packed[i, j] * T.cast(2.0, "float16")
    T.gemm(A_shared, B_shared, C_local)
T.copy(C_local, Z[0, 0])
"""


@rule(
    "pipeline.loop.product-in-flight",
    phase=Phase.PIPELINE,
    on=Loop,
    source="measured on an H200: docs/hopper.md, weights of 4 bits",
    examples=(
        Example(_DECODE, 6, "in_flight", "C_local of the turn before, while B_shared is written", target="cuda:sm_90a"),
        Example(_DECODE, "B_shared", "slots", "2", target="cuda:sm_90a"),
    ),
)
def product_in_flight(op: Loop, context: Context) -> Iterator[Decision]:
    """The product at a turn's end stays in flight while the next turn writes its operand, which gets a second slot.

    That needs an operand in shared memory that each turn writes whole and nothing else uses, a result that nothing else
    in the loop touches, and room for the second slots.

    Gives: what runs while the product is in flight, and two slots for each tile that is written then.
    """
    pipeline: Pipeline | None = context.facts.get(op, "pipeline")
    if pipeline is None or not pipeline.producer or not on_wgmma(context) or pipeline.stages < 2:
        return
    if not is_at_top(op, context):
        return  # the ring goes on from tile to tile: a slot that is still read would be the next tile's
    found = _in_flight(pipeline, context)
    if found is not None:
        yield op, "in_flight", found
        for tile in found.written:
            yield tile, "slots", 2


def _in_flight(pipeline: Pipeline, context: Context) -> InFlight | None:
    *before, product = pipeline.body
    if not isinstance(product, Gemm) or not all(isinstance(op, Parallel | Copy | Fill | Let) for op in before):
        return None
    operands = (product.a.buffer, product.b.buffer)
    written = frozenset().union(*(buffers_written(op) for op in before))
    used = written.union(*(buffers_read(op) for op in before))
    tiles = tuple(tile for tile in operands if tile in written)
    if not tiles or product.c.buffer in used or any(tile.scope is not Scope.SHARED for tile in operands):
        return None
    whole = all(any(overwrites(op, tile) for op in before) for tile in tiles)
    alone = all(_used_here_only(tile, pipeline, context) for tile in tiles)
    ledger = ledger_of(context.launch, context, workspaces_of(context), ())
    more = sum(context.facts[tile, "layout"].bytes for tile in tiles)
    fits = ledger.total + more <= ledger.limit
    return InFlight(before=tuple(before), product=product, written=tiles) if whole and alone and fits else None


def _used_here_only(tile: Buffer, pipeline: Pipeline, context: Context) -> bool:
    """Whether one statement of the turn writes the tile, the product reads it, and nothing else touches it."""
    if tile.of is not None or viewed(context.launch, tile):
        return False
    users = [op for op in pipeline.body if tile in buffers_written(op) | buffers_read(op)]
    inside = {id(op) for op in walk_stmts(pipeline.body)}
    others = [op for op in context.statements if id(op) not in inside and not isinstance(op, Loop | If | While)]
    elsewhere = any(tile in buffers_written(op) | buffers_read(op) for op in others)
    return len(users) == 2 and tile not in buffers_read(users[0]) and not elsewhere
