"""Hopper and later: results that are stored by TMA through shared memory."""

from collections.abc import Iterator
from functools import reduce

from msgspec.structs import replace

from tile2cu.analysis.accesses import (
    variables,
)
from tile2cu.analysis.control import Place, declared_in, places
from tile2cu.analysis.dependence import conflicts
from tile2cu.analysis.effects import Effects, effects
from tile2cu.analysis.lifetimes import Lifetimes
from tile2cu.analysis.overwritten import may_overlap_in_part, may_write_again
from tile2cu.analysis.prelude import around, behind, block_of, in_other_arms, producer_loop
from tile2cu.analysis.signs import never_negative
from tile2cu.analysis.uniformity import uniformity_of
from tile2cu.analysis.uses import is_at_top, readers, statements, users, writers
from tile2cu.core.decisions import (
    ALIASING,
    BLOCK_VOTE,
    CALL,
    INSTEAD,
    LAYOUT,
    PERSISTENT,
    PIPELINE,
    PROLOGUE_LOADS,
    REDUCTION_WARPS,
    SCHEDULE,
    SHARED_LAYOUT,
    STAGES,
    STAGING_TILE,
    STORE_COMPLETED,
    STORE_OUTSTANDING,
    STORE_STAGING,
    TMA_IF,
    UNSTAGED,
    WARP_SPECIALISED,
)
from tile2cu.core.dtype import FLOAT32
from tile2cu.core.expr import Expr, Role, binary, int_const, static_value
from tile2cu.core.layout import SharedLayout, WgmmaAccumulator
from tile2cu.core.program import (
    AtomicTile,
    Buffer,
    Copy,
    If,
    Launch,
    Loop,
    Parallel,
    Reduction,
    Scope,
    Stmt,
    While,
)
from tile2cu.core.schedule import Multiple
from tile2cu.core.shared_memory import SharedBudget, Staging
from tile2cu.passes.mask_after_gemm import conjuncts
from tile2cu.passes.predicated_copies import bounded
from tile2cu.passes.transposed_stores import transposing
from tile2cu.passes.unstage_results import Unstaged, unstaged
from tile2cu.rules.engine import Context, Decision, Example, Phase, rule
from tile2cu.rules.memory.storage import shared_budget_of, shared_tiles, workspaces_of
from tile2cu.rules.memory.tensors import given_multiples
from tile2cu.rules.mma.hopper import (
    GEMM,
    GEMMS_OVER_TILES,
    LESSONS,
    TMA_BOX_ROWS,
    TMA_RANK,
    columns_aligned_if,
    is_specialised,
    rows_aligned_if,
    rows_unsupported,
)
from tile2cu.rules.schedule.pipeline import ping_pong_of

_TRANSPOSED = """
A_shared = T.alloc_shared((64, 64), "float16")
C_local = T.alloc_fragment((64, 64), "float32")
T.clear(C_local)
for k in T.Pipelined(4, num_stages=2):
    T.copy(Z[k * 64, 0], A_shared)
    T.gemm(A_shared, A_shared, C_local)
for i, j in T.Parallel(64, 64):
    Z[bx * 64 + j, i] = C_local[i, j]
"""
_STAGED = GEMM.replace("T.copy(C_local, Z[0, 0])", "T.copy(C_local, C_shared)\nT.copy(C_shared, Z[0, 0])").replace(
    "for k", 'C_shared = T.alloc_shared((64, 64), "float16")\nfor k'
)
_ADDED = """
A_shared = T.alloc_shared((64, 64), "float16")
C_local = T.alloc_fragment((64, 64), "float32")
for k in T.Pipelined(4, num_stages=2):
    T.copy(Z[k * 64, 0], A_shared)
    T.gemm(A_shared, A_shared, C_local, clear_accum=True)
    T.atomic_add(X[k * 64, 0], C_local)
"""
_BOX_OF_WARPGROUP = 64  # rows that it stages at a time, 16 per warp
_SLAB_FLOATS = 32  # columns that a swizzle spans


_RULE = "epilogue.copy.tma-store"
_NEGATIVE = "TMA would trap at a negative coordinate: threads store such tiles"


@rule(
    _RULE,
    phase=Phase.SELECT,
    on=Launch,
    reads=(
        ALIASING,
        BLOCK_VOTE,
        LAYOUT,
        PERSISTENT,
        PIPELINE,
        PROLOGUE_LOADS,
        REDUCTION_WARPS,
        SCHEDULE,
        SHARED_LAYOUT,
        STAGES,
        TMA_IF,
        WARP_SPECIALISED,
    ),
    writes=(CALL, INSTEAD, STAGING_TILE, STORE_COMPLETED, STORE_OUTSTANDING, STORE_STAGING, TMA_IF, UNSTAGED),
    source=f"{LESSONS}: 5.6 points of a GEMM over direct stores, 4 to 10 where stages take all shared memory",
    examples=(
        Example(GEMM, 8, "call", "tma_store", target="cuda:sm_90a"),
        Example(_STAGED, 10, "call", "tma_store", target="cuda:sm_90a"),
        Example(GEMMS_OVER_TILES, 10, "store_outstanding", "True", target="cuda:sm_90a"),
        Example(_TRANSPOSED, 7, "call", "tma_store", target="cuda:sm_90a"),
        Example(GEMM.replace("C_local, Z[0, 0]", "C_local, Y[0, 0]"), 8, "tma_if", "n % 8 == 0", "cuda:sm_90a"),
        Example(_ADDED, 6, "call", "tma_add_start", target="cuda:sm_90a"),
    ),
)
def tma_store(launch: Launch, context: Context) -> Iterator[Decision]:
    """With a producer warp, 16-bit results are stored through shared memory by TMA, if there is room for staging.

    The memory of a tile that is not live any more is room; and room for some of the columns, whole swizzle atoms, is
    enough where a warp has two boxes of them: TMA reads one while the next is staged, and the first is filled again. In
    a loop over tiles, or in a persistent kernel, the block continues while TMA reads a staging tile, and waits before
    it stages the next one. A loop that only stores a result's transpose is such a copy; so is one that stores a result
    under a condition, as `row < length`, where that holds for all of it. A shared tile of the user's that only stages a
    result is left out: the kernel may be persistent then, and TMA's store needs no block barrier. All decisions are
    then made again. Where a run-time size decides whether TMA can address the rows of the result, and of no tile that
    TMA loads, the block stores it from registers otherwise; so it does with a tile that begins at a negative
    coordinate, an illegal instruction for TMA's stores, where only the kernel knows that. Floats that each iteration of
    the producer's loop adds to a tensor are staged the same way, and TMA adds them: per-thread atomics of two floats
    each took a third of the time of attention's backward pass on an H200.

    Gives: the call of each such copy, the staging tiles, and which of them are read while their block continues; the
    condition on the result's rows, in general or for this copy to be by TMA; for a loop, the copy that it is.
    """
    if not is_specialised(context):
        return
    for direct in unstaged(launch, context.bounds):
        if _goes_without_tile(direct, context):
            yield launch, UNSTAGED, direct.launch
            return
    staged: list[Staging] = []
    yield from _additions(staged, context)
    yield from _stores(staged, context)
    yield launch, STORE_STAGING, tuple(staged)


def _additions(staged: list[Staging], context: Context) -> Iterator[Decision]:
    """The additions of each iteration by TMA; their staging tiles become part of `staged`."""
    for update in _added_in_iterations(context):
        placed = _placed(_staging(update, staged), update, staged, context)
        if placed is not None:
            staged.append(placed)
            yield update, CALL, "tma_add_start"
            yield update, STAGING_TILE, placed.name
            yield update, STORE_OUTSTANDING, True
            yield update.dst.buffer, TMA_IF, rows_aligned_if(update.dst.buffer)


def _stores(staged: list[Staging], context: Context) -> Iterator[Decision]:
    """The same for results."""
    for place in _enclosing_bodies(context):
        op = place.stmt
        copy, instead = _copied_by(op, context)
        if copy is not None and _is_stored_by_tma(copy, op, context):
            asked = _asked_of_start(copy, place, context)
            if (asked, False) in place.conditions:  # the other arm of the branch that follows from it
                continue
            instead = _where(asked, op, copy, instead)
            staging = _placed(_staging(copy, staged), op, staged, context)
            if staging is None:
                continue
            if instead is not None:
                if isinstance(op, Copy) or is_at_top(op, context.launch):
                    yield op, INSTEAD, instead
                continue
            staged.append(staging)
            yield op, CALL, "tma_store"
            yield op, STAGING_TILE, staging.name
            continues = not is_at_top(op, context.launch) or context.facts.get(context.launch, PERSISTENT) is not None
            if continues and not copy.transposed:  # all warps stage a transpose: its store awaits that TMA has read it
                yield op, STORE_OUTSTANDING, True
            if may_write_again(copy, op, context.launch.body):  # the same box: each warp awaits its own stores
                yield op, STORE_COMPLETED, True
            when = rows_aligned_if(copy.dst.buffer)
            yield copy.dst.buffer if _is_given(when, context) else op, TMA_IF, when


def _goes_without_tile(direct: Unstaged, context: Context) -> bool:
    """Whether TMA can store a result that the kernel stages explicitly, for all run-time sizes, and has room for it.

    Where the user's tile shares memory with others, a copy in a branch would need memory of its own.
    """
    tensor = direct.copy.dst.buffer
    aliasing = context.facts.get(context.launch, ALIASING)
    shares = aliasing is not None and bool(aliasing.mates(direct.tile.name))
    given = static_value(tensor.shape[-1]) is not None and tensor.strides is None
    return given and not (direct.in_branch and shares) and _is_stored_by_tma(direct.copy, direct.user, context)


def _copied_by(op: Stmt, context: Context) -> tuple[Copy | None, Stmt | None]:
    """The copy that a statement is, and its replacement where it is a loop that copies."""
    if not isinstance(op, Parallel):
        return (op, None) if isinstance(op, Copy) else (None, None)
    copy = transposing(op)
    return (copy, copy) if copy is not None else bounded(op, context.bounds) or (None, None)


def _is_given(when: Multiple, context: Context) -> bool:
    """Whether the launcher's conditions for the loads imply that TMA can address the rows."""
    return static_value(when.value) is not None or given_multiples(context).get(when.value, 1) % when.of == 0


def _asked_of_start(op: Copy, place: Place, context: Context) -> Expr | None:
    """The condition under which a tile begins at no negative coordinate: TMA stores none there. None where that holds.

    Branches around the copy may imply it.
    """
    starts = [part.start for part in op.dst.ranges if not never_negative(part.start, context.bounds, place.known)]
    asked = [binary(">=", start, int_const(0)) for start in starts]
    return reduce(lambda a, b: binary("and", a, b), asked) if asked else None


def _where(asked: Expr | None, op: Stmt, copy: Copy, instead: Stmt | None) -> Stmt | None:
    """What replaces a statement where TMA stores its tile under a condition; itself is the other arm."""
    if isinstance(instead, If):
        condition = instead.condition if asked is None else binary("and", asked, instead.condition)
        traps = "" if asked is None else f". {_NEGATIVE}, too"
        about = f"TMA stores whole tiles; threads store the elements of others{traps}  [{_RULE}]"
        return replace(instead, condition=condition, comments=(*op.comments, about))
    if asked is None:
        return instead
    other = replace(op, comments=(), trailing="")
    about = f"{_NEGATIVE}  [{_RULE}]"
    arms = ((replace(copy, comments=()),), (other,))
    return If(condition=asked, then=arms[0], orelse=arms[1], span=op.span, comments=(*op.comments, about))


def _enclosing_bodies(context: Context) -> Iterator[Place]:
    """Where the statements of the bodies are that enclose the producer's loop.

    Statements in uniform branches there count, too.
    """
    found = producer_loop(context.launch, context.facts)
    path = around(context.launch.body, found[0]) if found is not None else ()
    uniformity = uniformity_of(context.launch)

    def counts(outer: Stmt) -> bool:
        return outer in path or (isinstance(outer, If) and uniformity.holds(outer.condition))

    return (place for place in places(context.launch.body) if all(map(counts, place.around)))


def _added_in_iterations(context: Context) -> Iterator[AtomicTile]:
    """The additions of each iteration to a float tensor that TMA can address and nothing else accesses."""
    found = producer_loop(context.launch, context.facts)
    for op in statements(found[1].body, AtomicTile, below=False) if found is not None else ():
        if op.kind is not Reduction.SUM:
            continue
        src, dst = op.src.buffer, op.dst.buffer
        layout = context.facts.get(src, LAYOUT)
        if not isinstance(layout, WgmmaAccumulator) or (src.dtype, dst.dtype) != (FLOAT32, FLOAT32):
            continue
        read = not all(isinstance(stmt, AtomicTile) for stmt in users(context.launch.body, dst))
        rows = op.src.whole and len(op.dst.kept) == 2 and op.dst.kept[-1] == dst.rank - 1 and dst.rank <= TMA_RANK
        given = dst.strides is None and not rows_unsupported(dst) and _is_given(rows_aligned_if(dst), context)
        given = given and columns_aligned_if(op.dst, context.bounds) == ()
        given = given and all(never_negative(part.start, context.bounds) for part in op.dst.ranges)
        if rows and given and not read and src.static_shape[1] // layout.along_n % _SLAB_FLOATS == 0:
            yield op


def _is_stored_by_tma(op: Copy, here: Stmt, context: Context) -> bool:
    """Whether a copy, which is the statement `here` or replaces it, stores an MMA's result to a tensor of TMA's."""
    src, dst = op.src.buffer, op.dst.buffer
    layout = context.facts.get(src, LAYOUT)
    if not isinstance(layout, WgmmaAccumulator) or dst.scope is not Scope.GLOBAL or op.by_threads:
        return False
    if dst.dtype.bytes != 2 or not src.dtype.is_float or len(op.dst.kept) != 2 or dst.rank > TMA_RANK:
        return False
    if _read_again(op, here, context) or _written_again(op, here, context):
        return False
    cols = src.static_shape[1]
    slabs = cols // layout.along_n % 64 == 0
    if op.transposed:  # rows are a multiple of 64
        slabs = layout.along_n == 1 and cols % 16 == 0 and cols <= TMA_BOX_ROWS
    starts = columns_aligned_if(op.dst, context.bounds) == ()
    return op.dst.kept[-1] == dst.rank - 1 and starts and not rows_unsupported(dst) and slabs


def _read_again(op: Copy, here: Stmt, context: Context) -> bool:
    """Whether the kernel may read the stored elements: TMA stores are awaited only until they have read their tile."""
    body = context.launch.body
    path = around(body, here)
    if any(isinstance(outer, Loop | While) for outer in path):
        return bool(readers(body, op.dst.buffer))
    blocks = ((block_of(body, inner), inner) for inner in (*path, here))
    return any(readers(behind(block, inner), op.dst.buffer) for block, inner in blocks)


def _written_again(op: Copy, here: Stmt, context: Context) -> bool:
    """Whether the kernel may write the stored elements again: nothing orders that with TMA's writes.

    Statements with provably disjoint boxes do not, nor does the other arm of a branch in the same iteration, nor
    another iteration with another box. Where that may be the same one, and a warp stores its own rows, it awaits its
    previous stores; where boxes may overlap in part, other warps have stored these rows.
    """
    body = context.launch.body
    loops = [each for each in around(body, here) if isinstance(each, Loop | While)]
    if any(not _moves(op, loop) for loop in loops):
        return True
    if may_overlap_in_part(op, here, body, context.bounds) or (op.transposed and may_write_again(op, here, body)):
        return True
    own = Effects(writes=effects(op).writes)
    for stmt in writers(body, op.dst.buffer):
        if stmt is here:
            continue
        other = Effects(writes=effects(stmt).writes)
        apart = in_other_arms(here, stmt, body)
        if conflicts(own, other) and not apart:
            return True
        common = (each for each in loops if each in around(body, stmt))
        if any(_carried(own, other, loop) for loop in common) and not (apart and _by_box(op, here, stmt, body)):
            return True
    return False


def _by_box(op: Copy, here: Stmt, other: Stmt, body: tuple[Stmt, ...]) -> bool:
    """Whether a box alone decides that its elements are written by `other`, in the other arm of the branch around.

    No iteration takes the one arm, and another one the other, for the same elements.
    """
    branch, around_other = around(body, here)[-1], around(body, other)[-1]
    if not isinstance(branch, If) or branch is not around_other or effects(other).writes != effects(op).writes:
        return False
    asked = [binary(">=", part.start, int_const(0)) for part in op.dst.ranges]
    return all(part in asked for part in conjuncts(branch.condition))


def _carried(one: Effects, other: Effects, loop: Loop | While) -> bool:
    """Whether two statements may write the same elements in different iterations."""
    return bool(conflicts(one, other, loop) or conflicts(other, one, loop))


def _moves(op: Copy, loop: Loop | While) -> bool:
    """Whether the box that a copy writes depends on the iteration of a loop."""
    inside = declared_in((loop,))
    return any(var in inside or var.role is Role.MUTABLE for part in op.dst.ranges for var in variables(part.start))


def _placed(staging: Staging, op: Stmt, staged: list[Staging], context: Context) -> Staging | None:
    """The staging tile of a copy: in its own memory, in that of a dead tile, or of fewer columns; None without room."""
    workspaces = workspaces_of(context)
    elsewhere = (replace(staging, where=where) for where in _left_by(op, staged, context))
    for placed in (staging, *elsewhere, *_narrower(staging, context)):
        budget: SharedBudget = shared_budget_of(context.launch, context, workspaces, (*staged, placed))
        if budget.total + (staging.layout.alignment if placed.where is None else 0) <= budget.limit:
            return placed
    return None


def _narrower(staging: Staging, context: Context) -> Iterator[Staging]:
    """Staging tiles of ever fewer columns, whole swizzle atoms, where a warp has whole rows and at least two boxes."""
    layout = context.facts[staging.like, LAYOUT]
    assert isinstance(layout, WgmmaAccumulator)
    rows, cols = staging.layout.extents
    slab = staging.layout.swizzle // staging.dtype.bytes
    least = slab if rows > _BOX_OF_WARPGROUP * layout.along_m else 2 * slab
    if layout.along_n == 1 and not staging.transposed:
        for fewer in range(cols - slab, least - 1, -slab):
            yield replace(staging, layout=replace(staging.layout, extents=(rows, fewer)))


def _left_by(op: Stmt, staged: list[Staging], context: Context) -> Iterator[Buffer]:
    """The shared tiles whose memory is free at `op`, and which only this block's threads read.

    All stages of a pipeline, when its loop has ended; but not where warpgroups release their parts of a stage
    separately.
    """
    launch = context.launch
    ring = producer_loop(launch, context.facts)
    rings = ring[1].buffers if ring is not None and ping_pong_of(context) is None else ()
    taken = context.facts.get(launch, PERSISTENT) or context.facts.get(launch, ALIASING)
    if taken is not None or launch.cluster or not is_at_top(op, context.launch):
        return
    copies = (each for each in context.statements if isinstance(each, Copy))
    read_later = {each.src.buffer for each in copies if each.begun} | {each.where for each in staged}
    lifetimes = Lifetimes(launch, {})
    for tile in shared_tiles(launch):
        life = lifetimes.of(tile)
        whole = context.facts.get(tile, STAGES) is None or tile in rings
        if whole and tile not in read_later and life is not None and life.last < lifetimes.end(op):
            yield tile


def _staging(op: Copy | AtomicTile, staged: list[Staging]) -> Staging:
    tile, dtype = op.src.buffer, op.dst.buffer.dtype
    transposed = isinstance(op, Copy) and op.transposed
    shape = tile.static_shape[::-1] if transposed else tile.static_shape
    layout = SharedLayout(shape, dtype.bits, swizzle=128)
    others = sum(staging.like is tile for staging in staged)
    name = f"{tile.name}_staging{f'_{others + 1}' if others else ''}"
    return Staging(name, tile, dtype, layout, transposed=transposed)
