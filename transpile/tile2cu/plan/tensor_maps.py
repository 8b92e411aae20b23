"""Tensor maps: how TMA sees tensors, each through one shape of tile."""

from tile2cu.core.decisions import CALL, SHARED_LAYOUT, STAGING_TILE, TMA_IF
from tile2cu.core.memo import kept
from tile2cu.core.program import AtomicTile, Buffer, Copy, Region
from tile2cu.core.record import Record
from tile2cu.core.schedule import Multiple
from tile2cu.core.shared_memory import Staging
from tile2cu.plan.copies import BY_TMA
from tile2cu.plan.resolved import Resolved
from tile2cu.plan.shared import staging_tiles


class TensorMapPlan(Record, frozen=True, kw_only=True, eq=False):
    """A map for copies, and additions, between a tensor and a shared tile: `users`.

    It is along the dimensions `dims`. `when` is what a call need not satisfy: then the kernel does without the map.
    `alone`: it is the tensor's only one.
    """

    tensor: Buffer
    tile: Buffer | Staging
    dims: tuple[int, ...]
    when: Multiple | None
    users: tuple[Copy | AtomicTile, ...]
    alone: bool

    @property
    def of(self) -> str:
        """The name of the user's tile."""
        return self.tile.like.name if isinstance(self.tile, Staging) else self.tile.name


@kept
def tensor_maps(resolved: Resolved) -> tuple[TensorMapPlan, ...]:
    """The maps of a launch in program order: those that would be equal are one."""
    uses: dict[tuple[object, ...], list[_Use]] = {}
    for op in resolved.launch.statements:
        if isinstance(op, Copy | AtomicTile) and resolved.facts.get(op, CALL) in BY_TMA:
            use = _use(op, resolved)
            uses.setdefault(use.key, []).append(use)
    firsts = [found[0] for found in uses.values()]
    return tuple(
        TensorMapPlan(
            tensor=first.tensor,
            tile=first.tile,
            dims=first.dims,
            when=first.when,
            users=tuple(each.op for each in found),
            alone=sum(other.tensor is first.tensor for other in firsts) == 1,
        )
        for first, found in zip(firsts, uses.values(), strict=True)
    )


def mapped_tensors(resolved: Resolved) -> tuple[Buffer, ...]:
    """The tensors that TMA reaches, once for each map."""
    return tuple(each.tensor for each in tensor_maps(resolved))


class _Use(Record, frozen=True, kw_only=True, eq=False):
    """A copy between a tensor and a shared tile; equal `key`s are served by one map."""

    op: Copy | AtomicTile
    tensor: Buffer
    tile: Buffer | Staging
    dims: tuple[int, ...]
    when: Multiple | None
    key: tuple[object, ...]


def _use(op: Copy | AtomicTile, resolved: Resolved) -> _Use:
    region, shared = _sides(op, resolved)
    tensor = region.buffer
    dims = region.kept if len(region.kept) == 2 else (tensor.rank - 2, tensor.rank - 1)  # it constrains no row
    when = resolved.facts.get(op, TMA_IF)
    if isinstance(shared, Staging):
        shape: tuple[object, ...] = (shared.dtype, shared.layout, shared.transposed)
    else:
        shape = (shared.dtype, resolved.facts[shared, SHARED_LAYOUT], None)
    key = (tensor.name, dims, when, *shape)
    return _Use(op=op, tensor=tensor, tile=shared, dims=dims, when=when, key=key)


def _sides(op: Copy | AtomicTile, resolved: Resolved) -> tuple[Region, Buffer | Staging]:
    """The tensor's region, and the shared tile."""
    if isinstance(op, AtomicTile) or resolved.facts[op, CALL] == "tma_store":
        name = resolved.facts[op, STAGING_TILE]
        return op.dst, next(each for each in staging_tiles(resolved) if each.name == name)
    return (op.dst, op.src.buffer) if op.begun else (op.src, op.dst.buffer)
