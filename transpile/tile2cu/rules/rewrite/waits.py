"""What the user says about products in flight and registers, where the chip or the kernel has none of either."""

from dataclasses import replace

from tile2cu.core.program import Await, Gemm, If, Launch, Loop, LoopKind, Scope, SetRegisters, walk_stmts
from tile2cu.rules.rewrite.replace import Body, in_body


def without_idle_waits(launch: Launch, *, wgmma: bool) -> Launch:
    """The launch without waits that have nothing to wait for, and without T.set_max_nreg where no chip reads it.

    A kernel that tile2cu pipelines waits for each product where it stands.
    """
    dropped: tuple[type, ...] = (Await, SetRegisters) if not wgmma else (Await,) if not _waits(launch) else ()

    def change(body: Body, place: int) -> Body | None:
        stmt = body[place]
        if isinstance(stmt, dropped):
            return ()
        return () if isinstance(stmt, If) and stmt.then and _all_are(dropped, (*stmt.then, *stmt.orelse)) else None

    return replace(launch, body=in_body(launch.body, change)) if dropped else launch


def _waits(launch: Launch) -> bool:
    """Whether products may be in flight until the user waits for them."""
    stmts = tuple(walk_stmts(launch.body))
    begun = any(isinstance(op, Gemm) and op.begun for op in stmts)
    pipelined = any(isinstance(op, Loop) and op.kind is LoopKind.PIPELINED and op.num_stages > 0 for op in stmts)
    by_hand = launch.groups > 1 or any(tile.scope is Scope.BARRIER for tile in launch.tiles)
    return begun and (by_hand or not pipelined)


def _all_are(kinds: tuple[type, ...], body: Body) -> bool:
    return all(isinstance(stmt, kinds) for stmt in body)
