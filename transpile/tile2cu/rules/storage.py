"""The ledger: what each tile costs in shared memory and registers, and whether it fits the chip."""

from collections.abc import Iterator
from dataclasses import replace
from math import prod

from tile2cu.core.accesses import viewed
from tile2cu.core.errors import Note, Tile2CuError
from tile2cu.core.layout import SharedLayout
from tile2cu.core.program import Buffer, Launch, Reduce, Scan, Scope
from tile2cu.core.schedule import BARRIERS, Ledger, Pipeline, Staging, Workspace
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
    """A shared tile that no product reads is stored row after row, and so is one that is seen in another shape.

    A view of the same rows as another type is stored as they are: swizzles move 16 bytes at a time.

    Gives: its layout.
    """
    for tile in shared_tiles(launch):
        if context.facts.get(tile, "layout") is None:
            yield tile, "layout", SharedLayout(tile.static_shape, tile.dtype.bytes)
        for view in viewed(launch, tile):
            layout: SharedLayout = context.facts[tile, "layout"]
            yield view, "layout", replace(layout, extents=view.static_shape, element_bytes=view.dtype.bytes)


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
    Errors: T2C-L020 with who uses what.
    """
    workspaces = tuple(_workspaces(launch, context))
    yield launch, "workspaces", workspaces
    ledger = ledger_of(launch, context, workspaces, context.facts.get(launch, "staging") or ())
    if ledger.total > ledger.limit:
        raise _too_large(ledger, launch, context)
    yield launch, "ledger", ledger


def shared_tiles(launch: Launch) -> tuple[Buffer, ...]:
    """The tiles that take shared memory; views of them take none of their own."""
    return tuple(tile for tile in launch.tiles if tile.scope is Scope.SHARED and tile.of is None)


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
    barriers = _barriers(context) * _BARRIER_BYTES
    if barriers:
        end = _round_up(end, _BARRIER_BYTES) + barriers
        widest = max(widest, _BARRIER_BYTES)
        rows.append((BARRIERS, barriers))
    return Ledger(tuple(rows), _round_up(end, widest), context.target.shared_limit)


def _barriers(context: Context) -> int:
    """How many barriers a producer needs: for full and for empty, of each slot of its one or two rings."""
    for op in context.statements:
        pipeline: Pipeline | None = context.facts.get(op, "pipeline")
        if pipeline is not None and pipeline.producer:
            return 2 * pipeline.stages * (2 if context.facts.get(op, "overlap") else 1)
    return 0


def _round_up(value: int, step: int) -> int:
    return -(-value // step) * step


def _too_large(ledger: Ledger, launch: Launch, context: Context) -> Tile2CuError:
    """The diagnostic; `fit` adds what would fit, since only settling anew can tell."""
    width = max(len(name) for name, _ in ledger.tiles)
    table = "\n".join(f"{name:{width}}  {bytes_:>9,} bytes" for name, bytes_ in ledger.tiles)
    return Tile2CuError(
        "T2C-L020",
        f"the tiles need {ledger.total:,} bytes of shared memory; {context.target.arch} has {ledger.limit:,} a block",
        launch.span,
        notes=(Note(table),),
    )
