"""The ledger: what each tile costs in shared memory and registers, and whether it fits the chip."""

from collections.abc import Iterator, Mapping
from itertools import product
from math import prod

from tile2cu.core.errors import Note, Tile2CuError
from tile2cu.core.expr import Expr, Named, binary, children, static_value, walk
from tile2cu.core.layout import SharedLayout
from tile2cu.core.program import Buffer, Launch, Reduce, Scan, Scope
from tile2cu.core.schedule import BARRIERS, Ledger, Staging, Workspace
from tile2cu.rules.engine import Context, Decision, Example, Phase, rule

_BARRIER_BYTES = 8  # PTX ISA, 'Size and alignment of mbarrier object'


@rule(
    "layout.shared.plain",
    phase=Phase.LOOP,
    on=Launch,
    source="docs/tl.md, tl::SharedTile",
    examples=(Example('S = T.alloc_shared((64, 40), "float32")\nT.clear(S)', "S", "layout", "no swizzle"),),
)
def shared_plain(launch: Launch, context: Context) -> Iterator[Decision]:
    """A shared tile that no product reads is stored row after row.

    Gives: its layout.
    """
    for tile in shared_tiles(launch):
        if context.facts.get(tile, "layout") is None:
            yield tile, "layout", SharedLayout(tile.static_shape, tile.dtype.bytes)


@rule(
    "storage.shared.ledger",
    phase=Phase.STORAGE,
    on=Launch,
    source="CUDA C++ Programming Guide, 'Compute Capabilities': shared memory per block",
    examples=(
        Example(
            'S = T.alloc_shared((64, 32), "float32")\nT.clear(S)',
            "launch",
            "ledger",
            "Ledger(tiles=(('S', 8192),), total=8192, limit=166912)",
        ),
    ),
)
def shared_ledger(launch: Launch, context: Context) -> Iterator[Decision]:
    """All shared tiles, with a slot for each stage of their pipeline, fit the chip's limit.

    Gives: the workspaces of reductions, and the ledger.
    Errors: T2C-L020 with who uses what and the largest tile that fits.
    """
    workspaces = tuple(_workspaces(launch, context))
    yield launch, "workspaces", workspaces
    ledger = ledger_of(launch, context, workspaces, context.facts.get(launch, "staging") or ())
    if ledger.total > ledger.limit:
        raise _too_large(ledger, launch, context)
    yield launch, "ledger", ledger


def shared_tiles(launch: Launch) -> tuple[Buffer, ...]:
    return tuple(tile for tile in launch.tiles if tile.scope is Scope.SHARED)


def _workspaces(launch: Launch, context: Context) -> Iterator[Workspace]:
    seen: set[str] = set()
    for op in context.statements:
        if isinstance(op, Reduce) and context.facts[op, "workspace"] > 1 and op.dst.name not in seen:
            seen.add(op.dst.name)
            extents = (prod(op.dst.static_shape),)
            yield Workspace(f"{op.dst.name}_workspace", op.dst.dtype, extents, context.facts[op, "workspace"])
        if isinstance(op, Scan) and op.src.scope is Scope.FRAGMENT and op.dst.name not in seen:
            seen.add(op.dst.name)
            yield Workspace(f"{op.dst.name}_workspace", op.dst.dtype, op.dst.static_shape, 0)


def ledger_of(
    launch: Launch, context: Context, workspaces: tuple[Workspace, ...], staged: tuple[Staging, ...]
) -> Ledger:
    """Adds the tiles up in the order of their declaration, each at its alignment, as C++ does."""
    rows: list[tuple[str, int]] = []
    end, widest = 0, 1
    for tile in shared_tiles(launch):
        layout: SharedLayout = context.facts[tile, "layout"]
        bytes_ = _round_up(layout.bytes, layout.alignment) * (context.facts.get(tile, "slots") or 1)
        end = _round_up(end, layout.alignment) + bytes_
        widest = max(widest, layout.alignment)
        rows.append((tile.name, bytes_))
    for staging in staged:
        end = _round_up(end, staging.layout.alignment) + staging.layout.bytes
        widest = max(widest, staging.layout.alignment)
        rows.append((staging.name, staging.layout.bytes))
    for workspace in workspaces:
        end = _round_up(end, workspace.dtype.bytes) + workspace.bytes
        widest = max(widest, workspace.dtype.bytes)
        rows.append((workspace.name, workspace.bytes))
    stages = _producer_stages(context)
    if stages:
        end = _round_up(end, _BARRIER_BYTES) + 2 * stages * _BARRIER_BYTES
        widest = max(widest, _BARRIER_BYTES)
        rows.append((BARRIERS, 2 * stages * _BARRIER_BYTES))
    return Ledger(tuple(rows), _round_up(end, widest), context.target.shared_limit)


def _producer_stages(context: Context) -> int:
    """The slots of the producer's pipeline, each with a barrier for full and one for empty; 0 without a producer."""
    found = (context.facts.get(op, "pipeline") for op in context.statements)
    return next((pipeline.stages for pipeline in found if pipeline is not None and pipeline.producer), 0)


def _round_up(value: int, step: int) -> int:
    return -(-value // step) * step


def _too_large(ledger: Ledger, launch: Launch, context: Context) -> Tile2CuError:
    width = max(len(name) for name, _ in ledger.tiles)
    table = "\n".join(f"{name:{width}}  {bytes_:>9,} bytes" for name, bytes_ in ledger.tiles)
    fitting = _largest_that_fits(launch, context)
    largest = ", ".join(f"{name}={value}" for name, value in fitting.items())
    return Tile2CuError(
        "T2C-L020",
        f"the tiles need {ledger.total:,} bytes of shared memory; {context.target.arch} has {ledger.limit:,} a block",
        launch.span,
        notes=(Note(table),),
        help=f"the largest tile that fits is {largest}" if largest else "use smaller tiles or fewer stages",
    )


def _largest_that_fits(launch: Launch, context: Context) -> Mapping[str, int]:
    """The named sizes of the shared tiles, halved as little as possible until all fit; empty when none does."""
    sizes: dict[str, int] = {}
    for tile in shared_tiles(launch):
        parts = (part for extent in tile.shape for part in walk(extent))
        sizes |= {part.name: int(part.value) for part in parts if isinstance(part, Named)}
    stages = max((context.facts.get(tile, "slots") or 1 for tile in shared_tiles(launch)), default=1)
    choices = [[size >> shift for shift in range(4) if size >> shift >= 16] or [size] for size in sizes.values()]
    best: tuple[tuple[int, int], dict[str, int]] | None = None
    for slots in range(stages, 0, -1):
        for values in product(*choices):
            named = dict(zip(sizes, values, strict=True))
            bytes_ = _bytes_with(named, slots, launch, context)
            if bytes_ <= context.target.shared_limit:
                candidate = ((bytes_, slots), named | ({"num_stages": slots} if stages > 1 else {}))
                best = candidate if best is None or candidate[0] > best[0] else best
    return {} if best is None else best[1]


def _bytes_with(sizes: Mapping[str, int], slots: int, launch: Launch, context: Context) -> int:
    """Bytes of all shared tiles if the named sizes were these and pipelined tiles had so many slots."""
    total = 0
    for tile in shared_tiles(launch):
        extents = (static_value(_substitute(extent, sizes)) for extent in tile.shape)
        ahead = slots if context.facts.get(tile, "slots") else 1
        total += prod(int(extent or 0) for extent in extents) * tile.dtype.bytes * ahead
    return total


def _substitute(expr: Expr, sizes: Mapping[str, int]) -> Expr:
    if isinstance(expr, Named) and expr.name in sizes:
        return Named(expr.dtype, expr.name, sizes[expr.name])
    operands = children(expr)
    if hasattr(expr, "op") and len(operands) == 2:
        return binary(expr.op, *(_substitute(operand, sizes) for operand in operands))
    return expr
