"""What threads hold in registers: fragments, private arrays, and how loops are spread over the threads."""

from math import prod

from tile2cu.analysis.accesses import parts_of
from tile2cu.analysis.uses import statements
from tile2cu.core.decisions import LAYOUT, PERMUTATION_INVARIANT, PIPELINE, REGISTER_SHARES, SCHEDULE, SHARED_LAYOUT
from tile2cu.core.expr import Address, Call, Expr
from tile2cu.core.layout import FragmentLayout
from tile2cu.core.memo import kept
from tile2cu.core.program import Buffer, Copy, Gemm, Loop, Parallel, Scope, Store
from tile2cu.core.record import Record
from tile2cu.core.schedule import InOrder
from tile2cu.plan.launch_bounds import registers_of_thread
from tile2cu.plan.mfma_steps import operand_registers
from tile2cu.plan.ping_pong import now_of, operands_of, values_kept
from tile2cu.plan.resolved import Resolved
from tile2cu.plan.slabs import ping_pong_of


class Fragment(Record, frozen=True, kw_only=True, eq=False):
    """A register tile, or one that shows another's registers in another shape; no layout where nothing uses it."""

    tile: Buffer
    layout: FragmentLayout | None
    rule: str = ""


class LocalArray(Record, frozen=True, kw_only=True, eq=False):
    """A private array of each thread; `addressed` where a function is given places in it."""

    tile: Buffer
    addressed: bool


class LoopSpread(Record, frozen=True, kw_only=True, eq=False):
    """A layout that a loop over elements has, and the names of the loop's variables."""

    layout: FragmentLayout
    extents: tuple[Expr, ...]
    over: tuple[str, ...]
    rule: str


class Alternation(Record, frozen=True, kw_only=True, eq=False):
    """The registers of warpgroups that alternate: what they keep of an iteration, and the last MMA's operands.

    `computed` is the tile that each of them holds one of, whose layout the `operands` have.
    """

    kept: tuple[Buffer, ...]
    operands: tuple[Buffer, ...]
    computed: Buffer

    def besides(self, tile: Buffer) -> tuple[Buffer, ...]:
        """The fragments of a tile's layout that a warpgroup holds besides it, of other iterations."""
        kept = (now_of(tile),) if tile in self.kept else ()
        return (*kept, *(self.operands if tile is self.computed else ()))


class Registers(Record, frozen=True, kw_only=True, eq=False):
    """All that a thread holds. `count` registers of 4 bytes are for tiles, of `limit` that it can have; `share` is the
    part of a consumer where a producer's registers go to the consumers, else 0.

    `prefetched` of them hold the next tile before it is stored. A GEMM has up to `read_operands` more of what
    it has read from shared memory. `operands` are the tiles that MMAs read as their first operand,
    `loaded` those of them that copies from memory write; `partial` are row sums of which each thread has its own
    elements' part until their loop has ended; `unpacked` have neighbours in the order in which 4-bit numbers are
    unpacked; `random` is the state of a generator.
    """

    declared: tuple[Fragment | LocalArray, ...]
    loops: tuple[LoopSpread, ...]
    operands: tuple[Buffer, ...]
    loaded: tuple[Buffer, ...]
    partial: tuple[Buffer, ...]
    unpacked: tuple[Buffer, ...]
    alternation: Alternation | None
    random: bool
    count: int
    prefetched: int
    read_operands: int
    limit: int
    share: int

    @property
    def fragments(self) -> tuple[Fragment, ...]:
        """The fragments that have a layout."""
        return tuple(each for each in self.declared if isinstance(each, Fragment) and each.layout is not None)


@kept
def registers(resolved: Resolved) -> Registers:
    """What threads of a launch hold in registers."""
    launch, facts, stmts = resolved.launch, resolved.facts, resolved.launch.statements
    parts = [*parts_of(stmts)]
    addressed = [part.buffer for part in parts if isinstance(part, Address)]
    found, shares = ping_pong_of(resolved), facts.get(launch, REGISTER_SHARES)
    # Loops run one at a time.
    prefetched = max((_prefetched(stmt, resolved) for stmt in stmts if isinstance(stmt, Loop)), default=0)
    return Registers(
        declared=tuple(
            _fragment(tile, resolved)
            if tile.scope is Scope.FRAGMENT
            else LocalArray(tile=tile, addressed=tile in addressed)
            for tile in launch.tiles
            if tile.scope in (Scope.FRAGMENT, Scope.LOCAL)
        ),
        loops=tuple(
            LoopSpread(
                layout=facts[op, LAYOUT],
                extents=op.extents,
                over=tuple(var.name for var in op.vars),
                rule=facts.rule(op, LAYOUT),
            )
            for op in stmts
            if isinstance(op, Parallel)
        ),
        operands=tuple(op.a.buffer for op in stmts if isinstance(op, Gemm)),
        loaded=tuple(
            op.dst.buffer for op in stmts if isinstance(op, Copy) and op.src.buffer.scope is not Scope.FRAGMENT
        ),
        partial=tuple(
            tile
            for loop in stmts
            if (schedule := facts.get(loop, SCHEDULE)) is not None and (late := schedule.running) is not None
            for tile in (late.reduce.dst, late.total)
        ),
        unpacked=tuple(
            store.buffer
            for op in stmts
            if isinstance(op, Parallel) and facts.get(op, PERMUTATION_INVARIANT) is True
            for store in statements(op.body, Store)
        ),
        alternation=None
        if found is None
        else Alternation(kept=values_kept(found), operands=operands_of(found), computed=found.store.src.buffer),
        random=any(isinstance(part, Call) and part.function == "random.start" for part in parts),
        count=_fragment_registers(resolved) + prefetched,
        prefetched=prefetched,
        read_operands=max((operand_registers(op, resolved) for op in stmts if isinstance(op, Gemm)), default=0),
        limit=registers_of_thread(resolved),
        share=shares.consumer if shares is not None else 0,
    )


def read_operands(resolved: Resolved) -> int:
    """The most registers of operands that a GEMM of the launch has read from shared memory."""
    return registers(resolved).read_operands


def tile_registers(resolved: Resolved) -> int:
    """The registers, of 4 bytes, that a thread needs for its parts of all tiles, prefetched ones among them."""
    return registers(resolved).count


def _fragment_registers(resolved: Resolved) -> int:
    tiles = [tile for tile in resolved.launch.tiles if tile.scope is Scope.FRAGMENT and tile.of is None]
    found = ping_pong_of(resolved)
    tiles += values_kept(found) if found is not None else ()  # of a warpgroup's own iteration, and of the other's
    size = sum(_bytes(resolved.facts.get(tile, LAYOUT), tile.dtype.bytes) for tile in tiles)
    if found is not None:
        operand = resolved.facts[found.store.src.buffer, LAYOUT]
        size += len(operands_of(found)) * _bytes(operand, found.tile.dtype.bytes)
    return -(-size // 4)


def staged_registers(copy: Copy, threads: int, rows: int) -> int:
    """The registers in which a tile waits (headers/tl/common/cdna/staged.h): pieces of up to 16 bytes, as stored."""
    count, width = staged_loads(copy, threads, rows)
    return count * -(-width // 4)


def staged_loads(copy: Copy, threads: int, rows: int) -> tuple[int, int]:
    """(loads that a thread issues for a tile, bytes of each) of aligned rows; `rows` neighbours are one thread's."""
    extents, source = copy.dst.buffer.static_shape, copy.src.buffer.dtype
    vector = min(extents[-1] & -extents[-1], 16 // max(source.bytes, copy.dst.buffer.dtype.bytes))
    if rows > 1 and prod(extents) // (rows * vector) % threads:
        vector //= 2
    return _per_thread(prod(extents) // (rows * vector), threads) * rows, vector * source.bytes


def _prefetched(loop: Loop, resolved: Resolved) -> int:
    """The registers that hold tiles and vectors of a loop before they reach shared memory."""
    threads, pipeline = resolved.launch.threads, resolved.facts.get(loop, PIPELINE)
    schedule = resolved.facts.get(loop, SCHEDULE)
    staged = pipeline.copies if pipeline is not None and pipeline.staged else ()
    lines = schedule.copies if isinstance(schedule, InOrder) else ()
    ahead = (_per_thread(prod(each.dst.buffer.static_shape), threads) * each.src.buffer.dtype.bytes for each in lines)
    rows = [resolved.facts[each.dst.buffer, SHARED_LAYOUT].rows_interleaved for each in staged]
    tiles = sum(staged_registers(each, threads, count) for each, count in zip(staged, rows, strict=True))
    return tiles + sum(-(-size // 4) for size in ahead)


def _per_thread(pieces: int, threads: int) -> int:
    return -(-pieces // threads)


def _bytes(layout: FragmentLayout | None, element: int) -> int:
    return layout.registers * element if layout is not None else 0


def _fragment(tile: Buffer, resolved: Resolved) -> Fragment:
    layout = resolved.facts.get(tile, LAYOUT)
    return Fragment(tile=tile, layout=layout, rule=resolved.facts.rule(tile, LAYOUT) if layout is not None else "")
