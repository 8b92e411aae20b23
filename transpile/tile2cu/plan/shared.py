"""The shared memory of a kernel: what is where, and how much it takes."""

from collections.abc import Iterator

from tile2cu.analysis.prelude import producer_loop, producer_pipelines
from tile2cu.core.decisions import (
    ALIASING,
    PERSISTENT,
    PROLOGUE_LOADS,
    SHARED_BUDGET,
    SHARED_LAYOUT,
    STAGES,
    STORE_STAGING,
    WORKSPACES,
)
from tile2cu.core.layout import SharedLayout
from tile2cu.core.program import Buffer, Scope
from tile2cu.core.record import Record
from tile2cu.core.schedule import BARRIER_BYTES
from tile2cu.core.shared_memory import BARRIERS, Aliasing, Part, Staging, Workspace, workspace_name
from tile2cu.plan.exchanges import Reuse, reuse_of
from tile2cu.plan.pipelined import number_of
from tile2cu.plan.producer import rings_of
from tile2cu.plan.producer_ops import Ring
from tile2cu.plan.resolved import Resolved
from tile2cu.plan.slabs import ping_pong_of


class SharedTile(Record, frozen=True, kw_only=True, eq=False):
    """A tile of the user's in `stages`, 0 where it has none, or one that shows another's memory in another shape.

    `handed`: it passes a fragment from one warpgroup to the other, and no MMA reads it.
    """

    tile: Buffer
    layout: SharedLayout
    stages: int
    bytes: int
    rule: str
    handed: bool = False


class StagingTile(Record, frozen=True, kw_only=True, eq=False):
    """The tile through which a fragment, or its transpose, leaves by TMA; it may have the memory of `instead_of`."""

    staging: Staging
    instead_of: SharedTile | None
    rule: str


class Overlaid(Record, frozen=True, kw_only=True, eq=False):
    """Parts of the tiles that are never in use together and so share memory; `file` has their lines."""

    parts: tuple[tuple[Part, tuple[SharedTile, ...]], ...]
    file: str
    rule: str


class Workspaces(Record, frozen=True, kw_only=True, eq=False):
    """What reductions, scans and votes exchange values through; `joined` where all but those of scans share memory.

    Only the consumers of a kernel with a producer, `beside` it, take part. `like` is the tile of a workspace's shape
    that is reduced to, where there is one; `ordered`: no barrier has to order its stores after earlier loads. `parts`:
    who holds a part each, warps or waves.
    """

    spaces: tuple[Workspace, ...]
    like: tuple[Buffer | None, ...]
    ordered: tuple[bool, ...]
    joined: bool
    beside: bool
    parts: str
    rule: str


class UserBarriers(Record, frozen=True, kw_only=True, eq=False):
    """Barriers that the user handles."""

    tile: Buffer


class PipelineBarriers(Record, frozen=True, kw_only=True, eq=False):
    """The barriers of pipeline `number` of a producer, or of its `rings`: of each panel of a stage with `panels`."""

    stages: int
    rings: tuple[Ring, ...]
    panels: int
    bytes: int
    number: int


class PrologueBarriers(Record, frozen=True, kw_only=True, eq=False):
    """Those of what a producer loads once; in a `persistent` kernel once per tile of work."""

    bytes: int
    persistent: bool


class PublishedIterations(Record, frozen=True, kw_only=True, eq=False):
    """Which iteration the tile in each of a ring's stages is of."""

    ring: Ring
    bytes: int


class DrawnWork(Record, frozen=True, kw_only=True, eq=False):
    """The tiles of work that a producer has fetched; `idle` ones among them are passed over."""

    bytes: int
    idle: bool


Member = (
    SharedTile
    | StagingTile
    | Overlaid
    | Workspaces
    | UserBarriers
    | PipelineBarriers
    | PrologueBarriers
    | PublishedIterations
    | DrawnWork
)


class SharedMemory(Record, frozen=True, kw_only=True, eq=False):
    """All of it, in bytes of a `limit` that a block may use; `lds`: AMD's name for it, of `banks` of 4 bytes."""

    members: tuple[Member, ...]
    total: int
    padding: int
    limit: int
    lds: bool
    banks: int

    @property
    def title(self) -> str:
        """How much of it is used."""
        memory, block = ("LDS", "workgroup") if self.lds else ("shared memory", "block")
        text = f"{memory}: {self.total:,} of {self.limit:,} bytes per {block}"
        return text + (f" ({self.padding:,} are padding)" if self.padding > 0 else "")


def shared_memory(resolved: Resolved) -> SharedMemory:
    """The shared memory of a launch."""
    ledger = resolved.facts[resolved.launch, SHARED_BUDGET]
    costs = dict(ledger.tiles)
    return SharedMemory(
        lds=resolved.target.is_amd,
        banks=resolved.target.banks,
        members=tuple(_members(resolved, costs)),
        total=ledger.total,
        padding=ledger.total - sum(costs.values()),
        limit=ledger.limit,
    )


def shared_tile(tile: Buffer, resolved: Resolved, bytes_: int = 0) -> SharedTile:
    """A shared tile of the user's; of a view in another shape there are no bytes."""
    fact = resolved.facts.fact(tile, SHARED_LAYOUT)
    stages = resolved.facts.get(tile.memory, STAGES) or 0
    layout = resolved.facts[tile, SHARED_LAYOUT]
    found = ping_pong_of(resolved)
    handed = found is not None and found.tile is tile
    return SharedTile(tile=tile, layout=layout, stages=stages, bytes=bytes_, rule=fact.rule, handed=handed)


def overlay_of(resolved: Resolved) -> Aliasing:
    """The parts of shared memory that are in use one after the other."""
    return resolved.facts.get(resolved.launch, ALIASING) or Aliasing(())


def staging_tiles(resolved: Resolved) -> tuple[Staging, ...]:
    """The tiles through which fragments leave by TMA."""
    return resolved.facts.get(resolved.launch, STORE_STAGING) or ()


def _members(resolved: Resolved, costs: dict[str, int]) -> Iterator[Member]:
    launch, facts, overlay = resolved.launch, resolved.facts, overlay_of(resolved)
    tiles = {
        tile.name: shared_tile(tile, resolved, costs[tile.name])
        for tile in launch.tiles
        if tile.scope is Scope.SHARED and tile.of is None
    }
    staging_rule = facts.rule(launch, STORE_STAGING) if staging_tiles(resolved) else ""
    reused = {each.where.name: each for each in staging_tiles(resolved) if each.where is not None}
    overlaid = {name for part in overlay.parts for name in part.tiles}
    for name, tile in tiles.items():
        if name in reused:
            yield StagingTile(staging=reused[name], instead_of=tile, rule=staging_rule)
        elif name not in overlaid:
            yield tile
    if overlay.parts:
        parts = tuple((part, tuple(tiles[name] for name in part.tiles)) for part in overlay.parts)
        yield Overlaid(parts=parts, file=resolved.program.source.name, rule=facts.rule(launch, ALIASING))
    for staging in staging_tiles(resolved):
        if staging.where is None:
            yield StagingTile(staging=staging, instead_of=None, rule=staging_rule)
    yield _workspaces(resolved)
    yield from (UserBarriers(tile=tile) for tile in launch.tiles if tile.scope is Scope.BARRIER)
    yield from _of_producer(resolved, costs)


def _workspaces(resolved: Resolved) -> Workspaces:
    spaces = resolved.facts[resolved.launch, WORKSPACES]
    named = {workspace_name(tile.name): tile for tile in resolved.launch.tiles}
    like = [named.get(space.name) for space in spaces]
    return Workspaces(
        spaces=spaces,
        like=tuple(
            tile if tile is not None and tile.static_shape == space.extents else None
            for space, tile in zip(spaces, like, strict=True)
        ),
        ordered=tuple(tile is not None and reuse_of(tile, resolved) is not Reuse.BARRIER for tile in like),
        joined=overlay_of(resolved).joins_workspaces,
        beside=producer_loop(resolved.launch, resolved.facts) is not None,
        parts="waves" if resolved.target.is_amd else "warps",
        rule=resolved.facts.rule(resolved.launch, WORKSPACES),
    )


def _of_producer(resolved: Resolved, costs: dict[str, int]) -> Iterator[Member]:
    """The barriers of a producer's pipeline, of what it loads once, and what it passes to the others."""
    facts, found = resolved.facts, producer_loop(resolved.launch, resolved.facts)
    if found is None:
        return
    loops = producer_pipelines(resolved.launch, facts)
    persistent = facts.get(resolved.launch, PERSISTENT)
    first = facts.get(resolved.launch, PROLOGUE_LOADS) is not None
    of_first = BARRIER_BYTES * (0 if not first else 1 if persistent is None else 2)
    panels = 0
    if ping_pong_of(resolved) is not None:
        panels = sum(facts[tile, SHARED_LAYOUT].slabs for tile in found[1].buffers)
    rings, bytes_ = rings_of(resolved), costs[BARRIERS] - of_first
    for loop, pipeline in loops:
        own = bytes_ if len(loops) == 1 else 2 * pipeline.stages * BARRIER_BYTES
        yield PipelineBarriers(
            stages=pipeline.stages, rings=rings, panels=panels, bytes=own, number=number_of(loop, resolved)
        )
    pipeline = found[1]
    if persistent is not None:
        yield PrologueBarriers(bytes=of_first, persistent=True)
        if persistent.iteration:
            yield PublishedIterations(ring=rings[0], bytes=persistent.active_iterations_bytes(pipeline.stages))
        if persistent.queue:
            yield DrawnWork(bytes=persistent.scheduled_tiles_bytes, idle=persistent.idle is not None)
    elif first:
        yield PrologueBarriers(bytes=of_first, persistent=False)
