"""The plan of a kernel: its roles, its body, and what is around them."""

from tile2cu.analysis.sync_calls import is_cluster_barrier
from tile2cu.core.decisions import EARLY_EXIT, PERSISTENT, STORE_OUTSTANDING, WORKSPACES
from tile2cu.core.expr import Expr
from tile2cu.core.program import Buffer, Launch, Scope
from tile2cu.core.record import Record
from tile2cu.core.schedule import Persistent
from tile2cu.core.shared_memory import Aliasing, Staging, Workspace
from tile2cu.plan import roles
from tile2cu.plan.body import Lowering
from tile2cu.plan.grid import Grid, grid
from tile2cu.plan.ops import Op
from tile2cu.plan.order import exit_barrier
from tile2cu.plan.registers import Registers, registers
from tile2cu.plan.resolved import Resolved
from tile2cu.plan.shared import SharedMemory, SharedTile, overlay_of, shared_memory, shared_tile, staging_tiles
from tile2cu.plan.structure import AwaitStaging, Block, Where
from tile2cu.plan.tensors import TensorViews, tensor_views


class EarlyExit(Record, frozen=True, kw_only=True, eq=False):
    """Blocks that would write nothing leave: known by `condition`, behind what is computed `before`."""

    before: Block
    condition: Expr
    rule: str


class StartedBarriers(Record, frozen=True, kw_only=True, eq=False):
    """The user's barriers, which one thread initialises; a barrier shows them to all, of the cluster or of the block.

    It is the user's own where his kernel begins with one (`shown_by_user`).
    """

    tiles: tuple[Buffer, ...]
    in_cluster: bool
    shown_by_user: bool


class Kernel(Record, frozen=True, kw_only=True, eq=False):
    """What a launch depends on, and what its threads do: first the `early` exit, then the producer and the others.

    `shared` are the user's tiles and what shows them in other shapes, in `memory` with `staging` and `workspaces`; the
    `overlay` states which are in one place. The others run the `body`, of a `persistent` kernel once per tile of work
    with `each_end` at its end, and `end` at last.
    """

    launch: Launch
    grid: Grid
    tensors: TensorViews
    memory: SharedMemory
    shared: tuple[SharedTile, ...]
    staging: tuple[Staging, ...]
    workspaces: tuple[Workspace, ...]
    overlay: Aliasing
    barriers: StartedBarriers | None
    registers: Registers
    early: EarlyExit | None
    producer: roles.Producer | None
    persistent: Persistent | None
    body: Block
    each_end: tuple[Op, ...]
    end: tuple[Op, ...]


def kernel(resolved: Resolved) -> Kernel:
    """The plan of a launch."""
    lowering, launch, facts = Lowering(resolved), resolved.launch, resolved.facts
    idle = facts.get(launch, EARLY_EXIT)
    left = next((stmt for stmt in launch.statements if facts.get(stmt, STORE_OUTSTANDING)), None)
    return Kernel(
        launch=launch,
        grid=grid(resolved),
        tensors=tensor_views(resolved),
        memory=shared_memory(resolved),
        shared=tuple(shared_tile(tile, resolved) for tile in launch.tiles if tile.scope is Scope.SHARED),
        staging=staging_tiles(resolved),
        workspaces=facts[launch, WORKSPACES],
        overlay=overlay_of(resolved),
        barriers=_barriers(launch),
        registers=registers(resolved),
        early=None
        if idle is None
        else EarlyExit(
            before=lowering.paragraphs(idle.before, Where()),
            condition=idle.condition,
            rule=facts.rule(launch, EARLY_EXIT),
        ),
        producer=roles.producer(lowering),
        persistent=facts.get(launch, PERSISTENT),
        body=lowering.body(launch.body, Where()),
        each_end=tuple(exit_barrier(resolved)),
        end=() if left is None else (AwaitStaging(source=left, again=False),),
    )


def _barriers(launch: Launch) -> StartedBarriers | None:
    tiles = tuple(tile for tile in launch.tiles if tile.scope is Scope.BARRIER)
    shown = bool(launch.body) and is_cluster_barrier(launch.body[0])
    return StartedBarriers(tiles=tiles, in_cluster=bool(launch.cluster), shown_by_user=shown) if tiles else None
