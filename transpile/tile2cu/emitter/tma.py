"""TMA in the emitted text: the names of tensor maps, and the producer's part of the kernel."""

from tile2cu.analysis import prelude
from tile2cu.core.decisions import PERSISTENT, REGISTER_SHARES, SETMAXNREG, STAGES
from tile2cu.core.program import Buffer, Loop
from tile2cu.core.schedule import Persistent, Pipeline
from tile2cu.core.shared_memory import Staging
from tile2cu.plan import tensor_maps as plan
from tile2cu.plan.launch_bounds import asked_blocks, producer_threads, registers_of_bounds
from tile2cu.plan.resolved import Resolved
from tile2cu.plan.shared import overlay_of
from tile2cu.styles.base.expressions import Printer
from tile2cu.styles.base.shared import type_place_of
from tile2cu.styles.base.tensor_map import TensorMap
from tile2cu.styles.base.vocabulary import NAMESPACE


def tensor_maps(resolved: Resolved, printer: Printer) -> dict[int, TensorMap]:
    """The map of each copy or addition that TMA does, by its id, in program order.

    Where a tensor has several, their names say for which tiles they are.
    """
    maps: dict[int, TensorMap] = {}
    for each in plan.tensor_maps(resolved):
        name = printer.names.fresh(f"{each.tensor.name}_map" if each.alone else f"{each.tensor.name}_{each.of}_map")
        named = TensorMap(name, each.tensor, _tile(each.tile, resolved, printer), each.dims, each.when)
        maps |= {id(op): named for op in each.users}
    return maps


def _tile(tile: Buffer | Staging, resolved: Resolved, printer: Printer) -> str:
    """An expression of a tile's type."""
    if isinstance(tile, Staging):
        return f"Shared::{printer.names(tile.name)}"
    planes = "[0]" * (tile.rank - 2 + (resolved.facts.get(tile, STAGES) is not None))
    return type_place_of(tile.name, overlay_of(resolved), printer.names) + planes


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
