"""Calls that order other threads: the user's barriers, those of a grid or cluster, kernels of a stream, TMA stores."""

from collections.abc import Iterator

from tile2cu.core.expr import Call, Expr, Load, static_value
from tile2cu.core.program import Buffer, CallStmt, Copy, If, Stmt, walk_stmts

SYNC_GRID = "sync_grid"
BLOCK_VOTES = ("count_of_block", "any_of_block", "all_of_block")  # of all threads, to which they give one value
WAIT_FOR_KERNELS = "griddepcontrol_wait"  # T.pdl_sync
START_KERNELS = "griddepcontrol_launch_dependents"  # T.pdl_trigger
SYNC_CLUSTER = "sync_cluster"

# Calls about the groups of stores of T.tma_copy; headers/tl/common/sm90/tma_copy.h has the functions.
TMA_STORE_COMMIT, TMA_STORE_WAIT_READ, TMA_STORE_WAIT = (
    "block_tma_store_commit",
    "block_tma_store_wait_read",
    "block_tma_store_wait",
)

# Calls whose first argument is a barrier of the user's: those that count at it, and those that wait for it.
_ARRIVALS = (
    "barrier_sync",
    "barrier_arrive",
    "mbarrier_arrive",
    "mbarrier_arrive_as_reader",
    "mbarrier_arrive_expect",
    "cp_async_arrive",
)
_WAITS = ("barrier_sync", "mbarrier_wait", "mbarrier_wait_cluster")


def ordered_by_barriers(branch: If) -> bool:
    """Whether threads that take one arm wait for those that take the other one, at a barrier of the user's."""
    one, other = branch.then, branch.orelse
    return _awaited(one) & _arrived_at(other) != frozenset() or _awaited(other) & _arrived_at(one) != frozenset()


def _arrived_at(body: tuple[Stmt, ...]) -> frozenset[str]:
    """The barriers of the user's at which statements, or copies by TMA, arrive."""
    by_tma = (op.barrier.buffer for op in walk_stmts(body) if isinstance(op, Copy) and op.barrier is not None)
    return frozenset(each.name for each in by_tma if isinstance(each, Buffer)) | frozenset(_barriers(body, _ARRIVALS))


def _awaited(body: tuple[Stmt, ...]) -> frozenset[str]:
    return frozenset(_barriers(body, _WAITS))


def _barriers(body: tuple[Stmt, ...], functions: tuple[str, ...]) -> Iterator[str]:
    """The barriers that calls of these functions take: names of mbarriers, numbers of named barriers."""
    for stmt in walk_stmts(body):
        match stmt:
            case CallStmt(call=Call(function=function, args=(Load(buffer=Buffer(name=name)), *_))) if (
                function in functions
            ):
                yield name
            case CallStmt(call=Call(function=function, args=(Expr() as number, *_))) if function in functions:
                yield str(number)


def is_named_barrier(stmt: Stmt, threads: int) -> bool:
    """Whether it is T.sync_threads(number, threads): a named barrier of `threads` threads, which all continue there."""
    sync = stmt.call if isinstance(stmt, CallStmt) and stmt.call.function == "barrier_sync" else None
    return sync is not None and len(sync.args) > 1 and static_value(sync.args[1]) == threads


def is_grid_barrier(stmt: Stmt) -> bool:
    """Whether it is T.sync_grid(): all blocks of the grid arrive before any continues."""
    return isinstance(stmt, CallStmt) and stmt.call.function == SYNC_GRID


def is_cluster_barrier(stmt: Stmt) -> bool:
    """Whether it is T.cluster_sync(): all threads of the cluster arrive before any continues."""
    return isinstance(stmt, CallStmt) and stmt.call.function == SYNC_CLUSTER


def syncs_grid(body: tuple[Stmt, ...]) -> bool:
    """Whether blocks wait for one another below the statements."""
    return any(map(is_grid_barrier, walk_stmts(body)))


def waits_for_kernels(stmt: Stmt) -> bool:
    """Whether it is T.pdl_sync(): the earlier kernels of the stream have finished."""
    return isinstance(stmt, CallStmt) and stmt.call.function == WAIT_FOR_KERNELS


def starts_early(body: tuple[Stmt, ...]) -> bool:
    """Whether a kernel may start before earlier ones have finished: all of its threads wait for them."""
    return any(map(waits_for_kernels, body))


def lets_start_early(body: tuple[Stmt, ...]) -> bool:
    """Whether it has T.pdl_trigger(): a later kernel may start before it has finished."""
    return any(isinstance(stmt, CallStmt) and stmt.call.function == START_KERNELS for stmt in walk_stmts(body))


def awaits_stores(stmt: Stmt) -> bool:
    """Whether it is T.tma_store_wait."""
    return isinstance(stmt, CallStmt) and stmt.call.function.startswith((TMA_STORE_WAIT_READ, TMA_STORE_WAIT))


def closes_or_awaits_copies(stmt: Stmt) -> bool:
    """Whether it concerns groups of cp.async: of the user's asynchronous copies, not of T.Pipelined's."""
    return isinstance(stmt, CallStmt) and stmt.call.function.startswith(("cp_async_commit", "cp_async_wait"))
