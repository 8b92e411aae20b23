"""TMA in the emitted text: which tensors are reached through maps, and the producer's part of the kernel."""

from dataclasses import dataclass

from tile2cu.analysis import prelude
from tile2cu.core.decisions import (
    CALL,
    PERSISTENT,
    REGISTER_SHARES,
    SETMAXNREG,
    SHARED_LAYOUT,
    STAGES,
    STAGING_TILE,
    TMA_COLUMNS_IF,
    TMA_IF,
)
from tile2cu.core.expr import static_value
from tile2cu.core.program import AtomicTile, Buffer, Copy, Loop, Region
from tile2cu.core.schedule import Multiple, Persistent, Pipeline
from tile2cu.core.shared_memory import Staging
from tile2cu.plan.copies import BY_TMA
from tile2cu.plan.launch_bounds import asked_blocks, producer_threads, registers_of_bounds
from tile2cu.plan.resolved import Resolved
from tile2cu.plan.shared import overlay_of, staging_tiles
from tile2cu.styles.base.expressions import Printer
from tile2cu.styles.base.shared import type_place_of
from tile2cu.styles.base.tensor_map import TensorMap
from tile2cu.styles.base.vocabulary import NAMESPACE


def tensor_maps(resolved: Resolved, printer: Printer) -> dict[int, TensorMap]:
    """The map of each copy or addition that TMA does, by its id, in program order; equal maps are one.

    Where a tensor has several, their names say for which tiles they are.
    """
    uses: dict[int, _Use] = {}
    for op in resolved.launch.statements:
        if isinstance(op, Copy | AtomicTile) and resolved.facts.get(op, CALL) in BY_TMA:
            uses[id(op)] = _use(op, resolved, printer)
    maps: dict[tuple[object, ...], TensorMap] = {}
    for use in uses.values():
        if use.key not in maps:
            alike = {other.key for other in uses.values() if other.tensor is use.tensor}
            wish = f"{use.tensor.name}_map" if len(alike) == 1 else f"{use.tensor.name}_{use.of}_map"
            maps[use.key] = TensorMap(printer.names.fresh(wish), use.tensor, use.tile, use.dims, use.when)
    return {op: maps[use.key] for op, use in uses.items()}


@dataclass(frozen=True, kw_only=True)
class _Use:
    """A copy between a tensor and a shared tile. `of` names the tile; equal `key`s are served by one map."""

    tensor: Buffer
    tile: str
    dims: tuple[int, ...]
    when: Multiple | None
    of: str
    key: tuple[object, ...]


def _use(op: Copy | AtomicTile, resolved: Resolved, printer: Printer) -> _Use:
    region, shared, tile = _sides(op, resolved, printer)
    tensor = region.buffer
    dims = region.kept if len(region.kept) == 2 else (tensor.rank - 2, tensor.rank - 1)  # it constrains no row
    when = resolved.facts.get(op, TMA_IF)
    if isinstance(shared, Staging):
        shape: tuple[object, ...] = (shared.dtype, shared.layout, shared.transposed)
        of = shared.like.name
    else:
        shape = (shared.dtype, resolved.facts[shared, SHARED_LAYOUT], None)
        of = shared.name
    return _Use(tensor=tensor, tile=tile, dims=dims, when=when, of=of, key=(tensor.name, dims, when, *shape))


def distinct(maps: dict[int, TensorMap]) -> tuple[TensorMap, ...]:
    return tuple(dict.fromkeys(maps.values()))


def is_producer(resolved: Resolved) -> bool:
    """Whether the launch has a producer warp."""
    return producer_loop(resolved) is not None


def producer_loop(resolved: Resolved) -> tuple[Loop, Pipeline] | None:
    """The loop whose loads a producer warp does."""
    return prelude.producer_loop(resolved.launch, resolved.facts)


def persistent_in(resolved: Resolved) -> Persistent | None:
    """How persistent blocks take their tiles; None where each block has one."""
    return resolved.facts.get(resolved.launch, PERSISTENT)


def block_threads(resolved: Resolved) -> str:
    """The threads of a block, the producer's among them."""
    if resolved.launch.groups > 1:
        return "block_threads"
    if not is_producer(resolved):
        return "threads"
    warpgroup = resolved.facts.get(resolved.launch, REGISTER_SHARES) is not None
    return f"threads + {NAMESPACE}{'producer_warpgroup' if warpgroup else 'producer_threads'}"


def _rounded(resolved: Resolved) -> str:
    """Why fewer registers are left than the block's warps alone would need."""
    warps = (resolved.launch.threads + producer_threads(resolved)) // 32
    even = -(-warps // 4) * 4
    return (
        f": {warps} warps take as many as {even}, as many in each of the SM's 4 sub-partitions" if warps < even else ""
    )


def bounds_notes(resolved: Resolved) -> tuple[str, ...]:
    """What a reader of the kernel's declaration has to know of the producer warp and of its registers."""
    notes = []
    if is_producer(resolved) and not asked_blocks(resolved):
        most = registers_of_bounds(resolved)
        moved = resolved.facts.get(resolved.launch, REGISTER_SHARES) is not None
        so = f"whose threads start with {most} registers each" if moved else f"so ptxas may use up to {most} "
        so += "" if moved else f"registers per thread{_rounded(resolved)}"
        notes.append(f"Launch bounds: the consumers' `threads` and the producer's; 1 block per SM, {so}")
    started_with = resolved.facts.get(resolved.launch, SETMAXNREG)
    if started_with is not None:
        rule = resolved.facts.rule(resolved.launch, SETMAXNREG)
        notes.append(
            f"Launch bounds: 1 block per SM, whose threads start with {started_with} registers each; setmaxnreg moves "
            f"some of them  [{rule}]"
        )
    return tuple(notes)


def run_time_rows(resolved: Resolved, maps: dict[int, TensorMap]) -> tuple[Multiple, ...]:
    """The conditions on run-time sizes under which TMA can reach all its tensors, and all boxes of them."""
    wanted = (resolved.facts.get(view.tensor, TMA_IF) for view in distinct(maps))
    rows = dict.fromkeys(m for m in wanted if m is not None and static_value(m.value) is None)
    return (*rows, *run_time_columns((resolved,)))


def run_time_columns(launches: tuple[Resolved, ...]) -> tuple[Multiple, ...]:
    """The conditions on run-time sizes under which all boxes start at multiples of 16 bytes of a row."""
    wanted = (resolved.facts.get(resolved.launch, TMA_COLUMNS_IF) or () for resolved in launches)
    return tuple(dict.fromkeys(each for found in wanted for each in found))


def _sides(op: Copy | AtomicTile, resolved: Resolved, printer: Printer) -> tuple[Region, Buffer | Staging, str]:
    """The tensor's region, the shared tile, and an expression of the tile's type."""
    if isinstance(op, AtomicTile) or resolved.facts[op, CALL] == "tma_store":
        name = resolved.facts[op, STAGING_TILE]
        staging = next(each for each in staging_tiles(resolved) if each.name == name)
        return op.dst, staging, f"Shared::{printer.names(name)}"
    tensor, tile = (op.dst, op.src.buffer) if op.begun else (op.src, op.dst.buffer)
    planes = "[0]" * (tile.rank - 2 + (resolved.facts.get(tile, STAGES) is not None))
    return tensor, tile, type_place_of(tile.name, overlay_of(resolved), printer.names) + planes
