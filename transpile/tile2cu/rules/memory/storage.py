"""The shared-memory budget, and layouts of shared tiles that no GEMM reads."""

from collections.abc import Iterator
from math import prod

from msgspec.structs import replace

from tile2cu.analysis.accesses import element_accesses, viewed
from tile2cu.analysis.prelude import producer_loop, producer_pipelines
from tile2cu.analysis.uses import unused, users
from tile2cu.core.decisions import (
    ALIASING,
    BLOCK_VOTE,
    LAYOUT,
    LOADED_OPERAND,
    PERSISTENT,
    PIPELINE,
    PROLOGUE_LOADS,
    REDUCTION_WARPS,
    SCHEDULE,
    SHARED_BUDGET,
    SHARED_LAYOUT,
    STAGES,
    STORE_STAGING,
    WORKSPACES,
)
from tile2cu.core.dtype import INT32
from tile2cu.core.expr import walk
from tile2cu.core.layout import Blocked, SharedLayout
from tile2cu.core.program import (
    Buffer,
    Copy,
    Gemm,
    Launch,
    Loop,
    Parallel,
    Reduce,
    Scan,
    Scope,
)
from tile2cu.core.schedule import BARRIER_BYTES, MmaOverlap, PingPong, Pipeline, handed_name, round_up
from tile2cu.core.shared_memory import (
    ACTIVE_ROW,
    BARRIERS,
    SCHEDULED_ROW,
    VOTES,
    Aliasing,
    BlockVote,
    SharedBudget,
    Staging,
    TooLarge,
    Workspace,
    workspace_name,
)
from tile2cu.rules.engine import Context, Decision, Example, Phase, rule
from tile2cu.rules.layout.free import VECTOR_BYTES
from tile2cu.rules.schedule.pipeline import ping_pong_of

_LINE = 128  # bytes of one word in each of the 32 banks
_LINE_EXAMPLE = """
P = T.alloc_shared((8, 512), "uint8")
x = T.alloc_shared((1024,), "float16")
terms = T.alloc_fragment((8, 32, 32), "float16")
sums = T.alloc_fragment((8, 32), "float16")
for i, c, j in T.Parallel(8, 32, 32):
    nibble = T.cast(P[i, (c * 32 + j) // 2], "int32") >> (4 * (j % 2)) & 15
    terms[i, c, j] = T.cast(nibble, "float16") * x[c * 32 + j]
T.reduce_sum(terms, sums, dim=2)
"""


@rule(
    "layout.shared.line-swizzle",
    phase=Phase.LOOP,
    on=Launch,
    reads=(LAYOUT,),
    writes=(SHARED_LAYOUT,),
    source="CUDA C++ Programming Guide, 'Shared Memory' of compute capability 5.x and later: 32 banks of 4 bytes",
    examples=(Example(_LINE_EXAMPLE, "x", "layout", "128-byte swizzle"),),
)
def vector_swizzle(launch: Launch, context: Context) -> Iterator[Decision]:
    """A tile of one dimension of which threads read runs of more than 16 bytes is swizzled, as rows of 128 bytes.

    Eight lanes read 16 bytes each at a time. At a stride of a whole run they would be in the same banks; adjacent
    vectors, as copies write them, are conflict-free either way.

    Gives: the layout of tiles that only such loops read and only copies write.
    """
    for tile in shared_tiles(launch):
        if tile.rank != 1 or tile.dtype.is_packed or viewed(launch, tile):
            continue
        layout = SharedLayout(tile.static_shape, tile.dtype.bits, swizzle=_LINE)
        if layout.row_bytes % layout.alignment == 0 and _read_in_runs(tile, context):
            yield tile, SHARED_LAYOUT, layout


def _read_in_runs(tile: Buffer, context: Context) -> bool:
    """Whether loops read more than 16 bytes of it per thread together, and only copies access it otherwise."""
    longest = 0
    for op in users(context.launch.body, tile):
        if isinstance(op, Parallel) and isinstance(layout := context.facts.get(op, LAYOUT), Blocked):
            for access in element_accesses(op.body):
                if access.buffer is tile and access.is_store:
                    return False
                if access.buffer is tile:
                    step = dict(context.bounds.linear(access.indices[0]).terms).get(op.vars[-1], 0)
                    longest = max(longest, tile.dtype.bytes_of(step * layout.vector))
        elif not (isinstance(op, Copy) and op.dst.buffer is tile):
            return False
    return longest > VECTOR_BYTES


_ROWS_EXAMPLE = """
S = T.alloc_shared((32, 128), "float32")
sums = T.alloc_fragment((32,), "float32")
T.copy(X[0, 0], S)
for i in T.Parallel(32):
    for j in T.serial(128):
        sums[i] = sums[i] + S[i, j]
"""


@rule(
    "layout.shared.rows-of-lanes",
    phase=Phase.LOOP,
    on=Launch,
    writes=(SHARED_LAYOUT,),
    source="CUDA C++ Programming Guide, 'Shared Memory' of compute capability 5.x and later: 32 banks of 4 bytes",
    examples=(Example(_ROWS_EXAMPLE, "S", "layout", "rows padded by 16 bytes"),),
)
def rows_of_lanes(launch: Launch, context: Context) -> Iterator[Decision]:
    """A tile of which each lane reads a row has rows that start in different banks.

    Rows of a multiple of 128 bytes would all start in the same bank: reads of 16 lanes would be a 16-way bank conflict,
    with 16 bytes of padding a 2-way one.

    Gives: the layout of tiles that only loops and copies access, in which a loop's last variable is the row alone; none
    in launches with GEMMs, whose operands have layouts of their own, or where padding might not fit.
    """
    mmas = any(isinstance(op, Gemm) for op in context.statements)
    for tile in () if mmas or not _pads_easily(launch, context) else shared_tiles(launch):
        free = tile.rank == 2 and not tile.dtype.is_packed and not viewed(launch, tile)
        layout = SharedLayout(tile.static_shape, tile.dtype.bits, padding=VECTOR_BYTES)
        if free and layout.row_bytes % _LINE == 0 and _is_read_by_rows(tile, context):
            yield tile, SHARED_LAYOUT, layout


def _pads_easily(launch: Launch, context: Context) -> bool:
    """Whether three quarters of a block's shared memory hold all tiles with padded rows, and each stage of them."""
    stages = max((op.num_stages for op in context.statements if isinstance(op, Loop)), default=0)
    tiles = shared_tiles(launch)
    layouts = (SharedLayout(tile.static_shape, tile.dtype.bits, padding=VECTOR_BYTES) for tile in tiles)
    return 4 * max(stages, 1) * sum(layout.bytes for layout in layouts) <= 3 * context.target.shared_limit


def _is_read_by_rows(tile: Buffer, context: Context) -> bool:
    """Whether each lane of a loop reads a row of it, and only loops and copies of the whole tile access it."""
    by_rows = False
    for op in users(context.launch.body, tile):
        match op:
            case Parallel():
                last = op.vars[-1]
                indices = [access.indices for access in element_accesses(op.body) if access.buffer is tile]
                by_rows |= any(last in walk(row) and last not in walk(column) for row, column in indices)
            case Copy() if op.barrier is None and not op.begun and op.remote is None:
                pass
            case _:
                return False
    return by_rows


@rule(
    "layout.shared.plain",
    phase=Phase.LOOP,
    on=Launch,
    absent=(SHARED_LAYOUT,),
    writes=(SHARED_LAYOUT,),
    source="docs/tl.md, SharedTile",
    examples=(Example('S = T.alloc_shared((64, 40), "float32")\nT.clear(S)', "S", "layout", "no swizzle"),),
)
def shared_plain(launch: Launch, context: Context) -> Iterator[Decision]:
    """A shared tile that no GEMM reads is stored row by row, and so is a tile with a view of another shape.

    A view of the same rows as another type keeps the layout: swizzles move 16 bytes together.

    Gives: its layout.
    """
    for tile in shared_tiles(launch):
        if context.facts.get(tile, SHARED_LAYOUT) is None:
            yield tile, SHARED_LAYOUT, SharedLayout(tile.static_shape, tile.dtype.bits)
        for view in viewed(launch, tile):
            layout = context.facts[tile, SHARED_LAYOUT]
            yield view, SHARED_LAYOUT, replace(layout, extents=view.static_shape, element_bits=view.dtype.bits)


@rule(
    "storage.shared.budget",
    phase=Phase.STORAGE,
    on=Launch,
    reads=(
        ALIASING,
        BLOCK_VOTE,
        LOADED_OPERAND,
        PERSISTENT,
        PIPELINE,
        PROLOGUE_LOADS,
        REDUCTION_WARPS,
        SCHEDULE,
        SHARED_LAYOUT,
        STAGES,
        STORE_STAGING,
    ),
    writes=(SHARED_BUDGET, WORKSPACES),
    source="CUDA C++ Programming Guide, 'Compute Capabilities': shared memory per block",
    examples=(
        Example(
            'S = T.alloc_shared((64, 32), "float32")\nT.clear(S)',
            "launch",
            "shared_budget",
            "SharedBudget(tiles=(('S', 8192),), total=8192, limit=166912)",
        ),
    ),
)
def shared_budget(launch: Launch, context: Context) -> Iterator[Decision]:
    """All shared tiles, with each stage of their pipelines, fit the target's shared memory.

    Where an operand is to be loaded to registers, they need not: all is decided again without its tile.

    Gives: the workspaces of reductions and votes, and the budget.
    Errors: T2C-L020 with the bytes of each tile.
    """
    workspaces = workspaces_of(context)
    yield launch, WORKSPACES, workspaces
    budget = shared_budget_of(launch, context, workspaces, context.facts.get(launch, STORE_STAGING) or ())
    operands = [op for op in context.statements if isinstance(op, Gemm) and op.a.buffer.scope is Scope.SHARED]
    if budget.total > budget.limit and not any(context.facts.get(op, LOADED_OPERAND) for op in operands):
        raise TooLarge(budget, context.target.arch, launch.span)
    yield launch, SHARED_BUDGET, budget


def shared_tiles(launch: Launch) -> tuple[Buffer, ...]:
    """The tiles that take shared memory; views of them take none of their own."""
    return tuple(tile for tile in launch.tiles if tile.scope is Scope.SHARED and tile.of is None)


def workspaces_of(context: Context) -> tuple[Workspace, ...]:
    """The shared memory in which reductions, scans and votes of the block exchange values."""
    return tuple(_workspaces(context))


def _workspaces(context: Context) -> Iterator[Workspace]:
    seen: set[str] = set()
    for op in context.statements:
        if isinstance(op, Reduce) and context.facts[op, REDUCTION_WARPS] > 1 and op.dst.name not in seen:
            seen.add(op.dst.name)
            extents = (prod(op.dst.static_shape),)
            yield Workspace(workspace_name(op.dst.name), op.dst.dtype, extents, context.facts[op, REDUCTION_WARPS])
        if isinstance(op, Scan) and op.src.scope is Scope.FRAGMENT and op.dst.name not in seen:
            seen.add(op.dst.name)
            yield Workspace(workspace_name(op.dst.name), op.dst.dtype, op.dst.static_shape, 0)
    alternating = ping_pong_of(context)
    for tile in alternating.exchanged if alternating is not None else ():
        yield Workspace(handed_name(tile), tile.dtype, tile.static_shape, 0, row_values=tile)
    if any(context.facts.get(op, BLOCK_VOTE) is BlockVote.LDS for op in context.statements):
        yield Workspace(VOTES, INT32, (1,), -(-context.launch.threads // context.target.warp_size))


def shared_budget_of(
    launch: Launch,
    context: Context,
    workspaces: tuple[Workspace, ...],
    staged: tuple[Staging, ...],
    aliasing: Aliasing | None = None,
) -> SharedBudget:
    """Adds the tiles up in the order of their declaration, each at its alignment, as C++ does."""
    aliasing = aliasing or context.facts.get(launch, ALIASING) or Aliasing(())
    rows: dict[str, int] = {}
    struct, parts = _Struct(), [_Struct() for _ in aliasing.parts]
    afterwards = {staging.where: staging.layout for staging in staged}
    for tile in shared_tiles(launch):
        layout = context.facts[tile, SHARED_LAYOUT]
        alignment = layout.alignment
        rows[tile.name] = round_up(layout.bytes, alignment) * (context.facts.get(tile, STAGES) or 1)
        if tile in afterwards:
            alignment = max(alignment, afterwards[tile].alignment)
            rows[tile.name] = round_up(max(rows[tile.name], afterwards[tile].bytes), alignment)
        inside = (own for own, part in zip(parts, aliasing.parts, strict=True) if tile.name in part.tiles)
        next(inside, struct).add(rows[tile.name], alignment)
    struct.add_union(parts)
    aliased = (struct.end - _Struct.union_of(parts)[0], struct.end) if parts else ()
    for staging in staged:
        if staging.where is None:
            rows[staging.name] = staging.layout.bytes
            struct.add(staging.layout.bytes, staging.layout.alignment)
    exchanged = [_Struct() for workspace in workspaces]
    for own, workspace in zip(exchanged, workspaces, strict=True):
        rows[unused(workspace.row, rows)] = workspace.bytes
        (own if aliasing.joins_workspaces and workspace.warps else struct).add(workspace.bytes, workspace.dtype.bytes)
    struct.add_union(exchanged)
    for tile in launch.tiles:
        if tile.scope is Scope.BARRIER:
            rows[tile.name] = len(tile.arrivals) * BARRIER_BYTES
            struct.add(rows[tile.name], BARRIER_BYTES)
    for name, size in _of_producer(context):
        rows[name] = size
        struct.add(size, BARRIER_BYTES)
    return SharedBudget(tuple(rows.items()), struct.size, context.target.shared_limit, aliased)


def _of_producer(context: Context) -> Iterator[tuple[str, int]]:
    """Bytes of the producer's barriers, and of the values that it publishes."""
    found = producer_loop(context.launch, context.facts)
    persistent = context.facts.get(context.launch, PERSISTENT)
    if found is not None and persistent is not None and persistent.queue:
        yield SCHEDULED_ROW, persistent.scheduled_tiles_bytes
        if persistent.iteration:
            yield ACTIVE_ROW, persistent.active_iterations_bytes(found[1].stages)
    if barriers := _barriers(context) * BARRIER_BYTES:
        yield BARRIERS, barriers


class _Struct:
    """The size and alignment of a struct, in bytes."""

    def __init__(self) -> None:
        self.end, self.alignment = 0, 1

    def add(self, size: int, alignment: int) -> None:
        """One more member."""
        self.end = round_up(self.end, alignment) + size
        self.alignment = max(self.alignment, alignment)

    def add_union(self, members: list["_Struct"]) -> None:
        """One more member, which is a union; of no members, none."""
        size, alignment = self.union_of(members)
        if size:
            self.add(size, alignment)

    @staticmethod
    def union_of(members: list["_Struct"]) -> tuple[int, int]:
        """The size and alignment of a union."""
        alignment = max((member.alignment for member in members), default=1)
        return round_up(max((member.size for member in members), default=0), alignment), alignment

    @property
    def size(self) -> int:
        return round_up(self.end, self.alignment)


def _barriers(context: Context) -> int:
    """The number of a producer's barriers: full and empty for each stage, and one for its prologue loads.

    With alternating warpgroups each swizzle atom has a full barrier, and each stage two empty ones.
    """
    persistent = context.facts.get(context.launch, PERSISTENT) is not None
    first = (1 + persistent) if context.facts.get(context.launch, PROLOGUE_LOADS) is not None else 0
    return sum(_of_loop(*found, context) for found in producer_pipelines(context.launch, context.facts)) + first


def _of_loop(op: Loop, pipeline: Pipeline, context: Context) -> int:
    """The number of barriers of a loop's pipeline."""
    schedule = context.facts.get(op, SCHEDULE)
    if isinstance(schedule, PingPong):
        layouts: list[SharedLayout] = [context.facts[tile, SHARED_LAYOUT] for tile in pipeline.buffers]
        return pipeline.stages * (2 + sum(layout.slabs for layout in layouts))
    return 2 * pipeline.stages * (len(pipeline.buffers) if isinstance(schedule, MmaOverlap) else 1)
