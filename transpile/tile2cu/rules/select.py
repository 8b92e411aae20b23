"""The `tl::` call of each operation."""

from collections.abc import Iterator

from tile2cu.analysis.accesses import buffers_read, buffers_written, element_accesses
from tile2cu.analysis.dependence import is_among
from tile2cu.analysis.uses import has, statements
from tile2cu.core.decisions import (
    CALL,
    ELECTED_WRITERS,
    GEMM_SLICES,
    LAYOUT,
    NO_CP_ASYNC,
    ONE_THREAD_PER_ELEMENT,
    PIPELINE,
    REDUCTION_WARPS,
    ROW_ALIGNMENT,
    STAGED_BECAUSE,
)
from tile2cu.core.errors import Note, Tile2CuError
from tile2cu.core.facts import rejected
from tile2cu.core.layout import FragmentLayout
from tile2cu.core.program import Atomic, AtomicTile, Copy, Gemm, Loop, Parallel, Print, Reduce, Scope
from tile2cu.passes.in_place_updates import only_it_reads
from tile2cu.rules.engine import Context, Decision, Example, Phase, rule

_CP_ASYNC_BYTES = 4  # the narrowest cp.async: PTX ISA, 'cp.async', cp-size


_TRANSPOSED = """
X_local = T.alloc_fragment((64, 64), "float32")
Y_local = T.alloc_fragment((64, 64), "float32")
T.copy(X[0, 0], X_local)
for i, j in T.Parallel(64, 64):
    Y_local[i, j] = X_local[j, i]
"""


@rule(
    "select.copy.through-shared",
    phase=Phase.SELECT,
    on=Copy,
    writes=(STAGED_BECAUSE,),
    source="PTX ISA, 'State Spaces': a register belongs to one thread",
    examples=(
        Example(
            _TRANSPOSED, 4, "reason", "elements of `X_local` that other threads hold are read: through shared memory"
        ),
    ),
)
def copy_through_shared(op: Copy, context: Context) -> Iterator[Decision]:
    """Elements of a fragment that an operation needs in other threads are exchanged through a shared tile.

    Gives: the reason of each copy that does that.
    """
    if op.reason:
        yield op, STAGED_BECAUSE, op.reason


@rule(
    "select.copy.cp-async",
    phase=Phase.SELECT,
    on=Loop,
    reads=(PIPELINE, ROW_ALIGNMENT),
    writes=(CALL, NO_CP_ASYNC),
    source="PTX ISA, 'cp.async'",
    examples=(
        Example(
            'S = T.alloc_shared((64, 32), "float32")\n'
            'L = T.alloc_fragment((64, 32), "float32")\n'
            "for k in T.Pipelined(4, num_stages=2):\n"
            "    T.copy(X[0, k * 32], S)\n"
            "    T.copy(S, L)",
            4,
            "call",
            "copy_async",
        ),
    ),
)
def copy_cp_async(op: Loop, context: Context) -> Iterator[Decision]:
    """A prefetched copy is a cp.async when no element changes its type and rows are aligned to 4 bytes.

    Where tiles are held in registers, the copy loads these.

    Gives: the call of each prefetched copy of the loop.
    """
    pipeline = context.facts.get(op, PIPELINE)
    if pipeline is None or pipeline.producer:
        return
    for load in pipeline.copies:
        tensor, tile = load.src.buffer, load.dst.buffer
        row_start = context.facts[tensor, ROW_ALIGNMENT]
        fits = tensor.dtype == tile.dtype and (row_start == 0 or row_start >= _CP_ASYNC_BYTES)
        yield load, CALL, "load" if pipeline.staged else "copy_async" if fits else "copy"
        if tensor.dtype != tile.dtype:
            because = f"it changes {tensor.dtype} to {tile.dtype}, and cp.async moves bytes"
            yield rejected(load, NO_CP_ASYNC, because, f"allocate `{tile.name}` as {tensor.dtype}")
        elif not fits:
            because = f"rows of `{tensor.name}` are aligned to {row_start} bytes, and cp.async needs at least 4"
            yield rejected(load, NO_CP_ASYNC, because, "pad the tensor's rows")


@rule(
    "select.gemm.slices",
    phase=Phase.SELECT,
    on=Gemm,
    writes=(GEMM_SLICES,),
    source="docs/tl.md, rows and cols",
    examples=(
        Example(
            'A_shared = T.alloc_shared((64, 64), "float16")\n'
            'B_shared = T.alloc_shared((32, 64), "float16")\n'
            'C_local = T.alloc_fragment((64, 64), "float32")\n'
            "T.gemm(A_shared[:, 0:32], B_shared, C_local)",
            4,
            "slices",
            "A_shared",
        ),
    ),
)
def gemm_slices(op: Gemm, context: Context) -> Iterator[Decision]:
    """A GEMM may read a slice of a shared tile.

    Gives: the names of the operands that are slices.
    """
    yield op, GEMM_SLICES, ", ".join(region.buffer.name for region in (op.a, op.b) if not region.whole)


@rule(
    "select.copy.synchronous",
    phase=Phase.SELECT,
    on=Copy,
    absent=(CALL,),
    writes=(CALL,),
    source="docs/tl.md, copy",
    examples=(Example('S = T.alloc_shared((64, 32), "float32")\nT.copy(X[0, 0], S)', 2, "call", "copy"),),
)
def copy_synchronous(op: Copy, context: Context) -> Iterator[Decision]:
    """Any other copy is synchronous.

    Gives: the call.
    """
    if context.facts.get(op, CALL) is None:
        yield op, CALL, "copy"


@rule(
    "select.atomic.tile",
    phase=Phase.SELECT,
    on=AtomicTile,
    absent=(CALL,),
    writes=(CALL,),
    source="PTX ISA, 'red' and 'atom'",
    examples=(
        Example(
            'L = T.alloc_fragment((64, 32), "float32")\nT.clear(L)\nT.atomic_add(X[0, 0], L)', 3, "call", "atomic_add"
        ),
    ),
)
def atomic_tile(op: AtomicTile, context: Context) -> Iterator[Decision]:
    """A tile is combined with memory element by element, each by the thread that owns it.

    Gives: the call.
    """
    if context.facts.get(op, CALL) is None:
        yield op, CALL, op.kind.atomic


@rule(
    "select.loop.elected-writers",
    phase=Phase.SELECT,
    on=Parallel,
    reads=(LAYOUT,),
    writes=(ELECTED_WRITERS, ONE_THREAD_PER_ELEMENT),
    source="docs/architecture.md, 'How a layout is found'",
    examples=(
        Example(
            'X_local = T.alloc_fragment((4, 1024), "float32")\n'
            'row_max = T.alloc_fragment((4,), "float32")\n'
            "T.reduce_max(X_local, row_max, dim=1)\n"
            "for i in T.Parallel(4):\n"
            "    X[i, 0] = row_max[i]",
            4,
            "elected_writers",
            "once",
        ),
    ),
)
def loop_elected_writers(op: Parallel, context: Context) -> Iterator[Decision]:
    """Where several threads hold the same element, one of them writes it to memory, or prints it.

    Where a loop changes memory in place and also writes fragments, the other threads would read the changed memory: the
    fragments are then exchanged through shared memory, or the other threads skip the loop where nothing else reads the
    fragments.

    Gives: "once" when replicas skip the whole loop, "stores" when they skip its writes and prints, "all" otherwise;
    whether one thread is to run all iterations of an element. All decisions are then made again with it.
    """
    layout = context.facts[op, LAYOUT]
    stores = [access.buffer.scope for access in element_accesses(op.body) if access.is_store]
    memory = [scope for scope in stores if scope in (Scope.GLOBAL, Scope.SHARED)]
    prints = has(op.body, Print)
    update = next((stmt for stmt in statements(op.body, Atomic) if stmt.previous is not None), None)
    if update is not None and layout.replicas > 1 and len(memory) < len(stores):
        raise _one_thread_knows(update, op, layout)
    if layout.replicas > 1 and len(memory) < len(stores) and _changes_in_place(op):
        alone = only_it_reads(op, context.launch)
        yield op, ELECTED_WRITERS, "once" if alone else "stores"
        if not alone:
            yield op, ONE_THREAD_PER_ELEMENT, True
        return
    if layout.replicas == 1 or not (memory or prints):
        yield op, ELECTED_WRITERS, "all"
    else:
        yield op, ELECTED_WRITERS, "once" if len(memory) == len(stores) else "stores"


def _changes_in_place(op: Parallel) -> bool:
    """Whether a loop reads a tensor or a shared tile that it writes."""
    written = (buffer for buffer in buffers_written(op) if buffer.scope in (Scope.GLOBAL, Scope.SHARED))
    return any(is_among(buffer, buffers_read(op)) for buffer in written)


def _one_thread_knows(update: Atomic, op: Parallel, layout: FragmentLayout) -> Tile2CuError:
    return Tile2CuError(
        "T2C-L014",
        f"only one thread gets the old value of `{update.buffer.name}`, and {layout.replicas} hold each element here",
        update.span,
        notes=(Note("the loop also writes a fragment", op.span),),
        help="write to a tile in shared memory instead of the fragment",
    )


@rule(
    "select.reduce.workspace",
    phase=Phase.PIPELINE,
    on=Reduce,
    reads=(LAYOUT,),
    writes=(REDUCTION_WARPS,),
    source="PTX ISA, 'shfl.sync': registers are exchanged within a warp only",
    examples=(
        Example(
            'X = T.alloc_fragment((1, 4096), "float32")\n'
            'row_max = T.alloc_fragment((1,), "float32")\n'
            "T.reduce_max(X, row_max, dim=1)",
            3,
            "reduction_warps",
            "4",
        ),
    ),
)
def reduce_workspace(op: Reduce, context: Context) -> Iterator[Decision]:
    """A reduction over several warps exchanges their partial results through shared memory.

    Gives: the warps that share the reduced dimension, 1 when shuffles are enough or the source is in shared memory.
    """
    if op.src.scope is Scope.SHARED:
        yield op, REDUCTION_WARPS, 1
        return
    layout = context.facts[op.src, LAYOUT]
    yield op, REDUCTION_WARPS, layout.along(op.dim).warps
