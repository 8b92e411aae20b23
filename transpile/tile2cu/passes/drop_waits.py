"""The user's waits and setmaxnreg, where the target or the kernel needs none."""

from collections.abc import Callable

from msgspec.structs import replace

from tile2cu.analysis.sync_calls import (
    START_KERNELS,
    TMA_STORE_COMMIT,
    WAIT_FOR_KERNELS,
    awaits_stores,
    closes_or_awaits_copies,
)
from tile2cu.core.program import (
    CallStmt,
    Copy,
    Gemm,
    Launch,
    Loop,
    LoopKind,
    Scope,
    SetRegisters,
    Stmt,
    WgmmaWait,
)
from tile2cu.core.rebuild import Body, in_body


def without_waits(launch: Launch) -> Launch:
    """The launch without T.wait_wgmma and T.set_max_nreg, which a target without wgmma lacks."""
    return _without(launch, (WgmmaWait, SetRegisters))


def without_idle_waits(launch: Launch) -> Launch:
    """The launch without waits that wait for nothing: a loop that tile2cu pipelines waits for each MMA."""
    stmts = launch.statements
    begun = any(isinstance(op, Gemm) and op.begun for op in stmts)
    pipelined = any(isinstance(op, Loop) and op.kind is LoopKind.PIPELINED and op.num_stages > 0 for op in stmts)
    by_hand = launch.groups > 1 or any(tile.scope is Scope.BARRIER for tile in launch.tiles)
    launch = launch if begun and (by_hand or not pipelined) else _without(launch, (WgmmaWait,))
    copies = any(isinstance(op, CallStmt) and op.call.function.startswith("cp_async<") for op in stmts)
    launch = launch if copies else _dropped(launch, closes_or_awaits_copies)
    stores = any(isinstance(op, Copy) and op.begun for op in stmts)
    return launch if stores else _dropped(launch, _closes_or_awaits_stores)


def without_early_starts(launch: Launch) -> Launch:
    """The launch without T.pdl_sync and T.pdl_trigger, for a target without programmatic dependent launch."""
    names = (START_KERNELS, WAIT_FOR_KERNELS)
    return _dropped(launch, lambda stmt: isinstance(stmt, CallStmt) and stmt.call.function in names)


def _closes_or_awaits_stores(stmt: Stmt) -> bool:
    """Whether it concerns groups of stores by TMA; T.copy to a tensor waits for itself."""
    return awaits_stores(stmt) or (isinstance(stmt, CallStmt) and stmt.call.function == TMA_STORE_COMMIT)


def _without(launch: Launch, dropped: tuple[type, ...]) -> Launch:
    """The launch without statements of these types."""
    return _dropped(launch, lambda stmt: isinstance(stmt, dropped))


def _dropped(launch: Launch, goes: Callable[[Stmt], bool]) -> Launch:
    """The launch without some statements, and without branches that then hold nothing."""

    def change(body: Body, position: int) -> Body | None:
        stmt = body[position]
        if goes(stmt):
            return ()
        return None

    body = in_body(launch.body, change)
    return launch if body is launch.body else replace(launch, body=body)
