"""Which statements concern the other blocks of a cluster: its barriers, and accesses to distributed shared memory."""

from collections.abc import Iterable

from tile2cu.analysis.accesses import expressions
from tile2cu.analysis.prelude import outermost
from tile2cu.analysis.sync_calls import SYNC_CLUSTER
from tile2cu.core.expr import Call, Expr, walk
from tile2cu.core.program import CallStmt, Copy, Stmt, walk_stmts

_BARRIERS = (SYNC_CLUSTER, "cluster_arrive", "cluster_arrive_relaxed", "cluster_wait")


def is_of_cluster(part: Expr) -> bool:
    """Whether it is a call about the cluster: of its barrier, or for the block's rank."""
    return isinstance(part, Call) and part.function in (*_BARRIERS, "block_rank")


def concerns_cluster(stmt: Stmt) -> bool:
    """Whether the statement needs a cluster."""
    return uses_other_blocks(stmt) or any(is_of_cluster(part) for expr in expressions(stmt) for part in walk(expr))


def waits_for_cluster(stmt: Stmt) -> bool:
    """Whether other blocks take part in it: it accesses their shared memory, or is of the cluster's barrier."""
    return uses_other_blocks(stmt) or (isinstance(stmt, CallStmt) and stmt.call.function in _BARRIERS)


def uses_other_blocks(stmt: Stmt) -> bool:
    """Whether the statement accesses another block's shared memory."""
    match stmt:
        case Copy():
            return stmt.blocks > 0 or stmt.block is not None
        case CallStmt():
            return stmt.call.function == "mbarrier_arrive" and len(stmt.call.args) == 2
        case _:
            return False


def waiting_before_end(loops: Iterable[Stmt], body: tuple[Stmt, ...]) -> tuple[Stmt, ...]:
    """The statements of a body in which other blocks take part, down to the end of the last of these loops."""
    last = max((body.index(outermost(body, loop)) for loop in loops), default=-1)
    return tuple(filter(waits_for_cluster, walk_stmts(body[: last + 1])))


def below_uses_of_others(body: tuple[Stmt, ...]) -> tuple[Stmt, ...] | None:
    """The statements of a body below all that access other blocks' shared memory; None where none does.

    A bulk copy that arrives at another block's barrier may read its tile until the end.
    """
    used = [place for place, stmt in enumerate(body) if any(map(uses_other_blocks, walk_stmts((stmt,))))]
    if not used:
        return None
    sent = any(isinstance(stmt, Copy) and stmt.remote is not None for stmt in walk_stmts(body))
    return body[-1:] if sent else body[used[-1] + 1 :]
