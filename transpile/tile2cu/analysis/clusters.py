"""Which statements concern the other blocks of a cluster: its barriers, and accesses to distributed shared memory."""

from tile2cu.analysis.accesses import expressions
from tile2cu.analysis.sync_calls import SYNC_CLUSTER
from tile2cu.core.expr import Call, Expr, walk
from tile2cu.core.program import CallStmt, Copy, Stmt

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
