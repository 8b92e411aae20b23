"""Streaming copies: data that no block reads again need not stay in L2."""

from collections.abc import Iterator

from tile2cu.analysis.accesses import buffers_read, buffers_written, variables, viewed
from tile2cu.analysis.prelude import around
from tile2cu.core.decisions import CALL, STREAMING
from tile2cu.core.expr import Role, Var, static_value
from tile2cu.core.program import Buffer, Copy, Gemm, If, Loop, While
from tile2cu.rules.engine import Context, Decision, Example, Phase, rule

_LINE = 128  # bytes of L2
_EXAMPLE = """
S = T.alloc_shared((64, 32), "float32")
L = T.alloc_fragment((64, 32), "float32")
for k in T.Pipelined(4, num_stages=2):
    T.copy(X[bx * 64, k * 32], S)
    T.copy(S, L)
"""


@rule(
    "select.copy.streaming",
    phase=Phase.SELECT,
    on=Copy,
    reads=(CALL,),
    writes=(STREAMING,),
    source="PTX ISA, 'Cache Eviction Priority Hints'; measured on an H200: benchmarks/RESULTS.md, 'What the L2 holds'",
    examples=(Example(_EXAMPLE, 4, "streaming", "()"),),
)
def streaming_copy(op: Copy, context: Context) -> Iterator[Decision]:
    """An asynchronous copy of data that is read once is a streaming access (L2 evict-first).

    Streaming data would evict data that others read again, and force modified lines to memory. Data is read once if
    each block and each iteration reads a slice of its own, and nothing else reads the tensor. Blocks whose index does
    not select the slice read the same data; there is one such block where the grid's extent is 1, which is checked at
    run time when it is a size of the tensors. Rows are whole lines of L2: a partial line would be evicted before its
    rest is read. Operands of GEMMs are not streaming: several blocks read them.

    Gives: the extents that must be 1.
    """
    tensor, tile = op.src.buffer, op.dst.buffer
    if context.facts.get(op, CALL) != "copy_async" or op.row is not None or _is_shared_out(tile, context):
        return
    if tile.dtype.bytes_of(tile.static_shape[-1]) % _LINE:
        return
    reads = [stmt for stmt in context.statements if not isinstance(stmt, Loop | If | While)]
    if sum(tensor in buffers_read(stmt) for stmt in reads) > 1 or any(tensor in buffers_written(s) for s in reads):
        return
    moving = variables(*(context.bounds.expanded(part.start) for part in op.src.ranges))
    loops = (loop for loop in around(context.launch.body, op) if isinstance(loop, Loop | While))
    if any(isinstance(loop, While) or loop.var not in moving for loop in loops):
        return
    launch = context.launch
    extents = [extent for block, extent in zip(launch.blocks, launch.grid, strict=True) if block not in moving]
    alone = tuple(extent for extent in extents if static_value(extent) != 1)
    if all(isinstance(extent, Var) and extent.role is Role.SIZE for extent in alone):
        yield op, STREAMING, alone


def _is_shared_out(tile: Buffer, context: Context) -> bool:
    """Whether a GEMM reads the tile, or a view of it."""
    names = {tile, *viewed(context.launch, tile)}
    return any(isinstance(stmt, Gemm) and names & buffers_read(stmt) for stmt in context.statements)
