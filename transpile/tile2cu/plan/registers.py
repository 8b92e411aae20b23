"""What threads hold in registers: fragments, private arrays, and how loops are spread over the threads."""

from dataclasses import dataclass

from tile2cu.analysis.accesses import expressions
from tile2cu.core.decisions import LAYOUT
from tile2cu.core.expr import Address, Call, Expr, walk
from tile2cu.core.layout import FragmentLayout
from tile2cu.core.program import Buffer, Gemm, Parallel, Scope, walk_stmts
from tile2cu.plan.producer import operands_of, ping_pong_of, values_kept
from tile2cu.plan.settled import Settled


@dataclass(frozen=True, kw_only=True, eq=False)
class Fragment:
    """A register tile, or one that shows another's registers in another shape; no layout where nothing uses it."""

    tile: Buffer
    layout: FragmentLayout | None
    rule: str = ""


@dataclass(frozen=True, kw_only=True, eq=False)
class LocalArray:
    """A private array of each thread; `addressed` where a function is given places in it."""

    tile: Buffer
    addressed: bool


@dataclass(frozen=True, kw_only=True, eq=False)
class LoopSpread:
    """A layout that a loop over elements has, and the names of the loop's variables."""

    layout: FragmentLayout
    extents: tuple[Expr, ...]
    over: tuple[str, ...]
    rule: str


@dataclass(frozen=True, kw_only=True, eq=False)
class Alternation:
    """The registers of warpgroups that alternate: what they keep of an iteration, and the last MMA's operands.

    `computed` is the tile that each of them holds one of, whose layout the `operands` have.
    """

    kept: tuple[Buffer, ...]
    operands: tuple[Buffer, ...]
    computed: Buffer


@dataclass(frozen=True, kw_only=True, eq=False)
class Registers:
    """All that a thread holds. `count` registers of 4 bytes are for fragments, of `limit` that it can have.

    `operands` are the tiles that MMAs read as their first operand; `random` is the state of a generator.
    """

    declared: tuple[Fragment | LocalArray, ...]
    loops: tuple[LoopSpread, ...]
    operands: tuple[Buffer, ...]
    alternation: Alternation | None
    random: bool
    count: int
    limit: int

    @property
    def fragments(self) -> tuple[Fragment, ...]:
        """The fragments that have a layout."""
        return tuple(each for each in self.declared if isinstance(each, Fragment) and each.layout is not None)


def registers(settled: Settled) -> Registers:
    """What threads of a launch hold in registers."""
    launch, facts, stmts = settled.launch, settled.facts, tuple(walk_stmts(settled.launch.body))
    parts = [part for stmt in stmts for expr in expressions(stmt) for part in walk(expr)]
    addressed = [part.buffer for part in parts if isinstance(part, Address)]
    found = ping_pong_of(settled)
    return Registers(
        declared=tuple(
            _fragment(tile, settled)
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
        alternation=None
        if found is None
        else Alternation(kept=values_kept(found), operands=operands_of(found), computed=found.store.src.buffer),
        random=any(isinstance(part, Call) and part.function == "random.start" for part in parts),
        count=tile_registers(settled),
        limit=settled.target.max_registers,
    )


def tile_registers(settled: Settled) -> int:
    """The registers, of 4 bytes, that a thread needs for its parts of all tiles at once."""
    size, found = 0, ping_pong_of(settled)
    if found is not None:  # the operands, a warpgroup's own and the other's
        size += 2 * settled.facts[found.store.src.buffer, LAYOUT].registers * found.tile.dtype.bytes
    for tile in settled.launch.tiles:
        layout = settled.facts.get(tile, LAYOUT) if tile.scope is Scope.FRAGMENT and tile.of is None else None
        size += layout.registers * tile.dtype.bytes if layout is not None else 0
    return -(-size // 4)


def _fragment(tile: Buffer, settled: Settled) -> Fragment:
    layout = settled.facts.get(tile, LAYOUT)
    return Fragment(tile=tile, layout=layout, rule=settled.facts.rule(tile, LAYOUT) if layout is not None else "")
