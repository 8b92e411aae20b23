"""Blocks of a part of a warp: rounded up to whole warps."""

from msgspec.structs import replace

from tile2cu.analysis.control import steps
from tile2cu.analysis.sync_calls import closes_or_awaits_copies
from tile2cu.analysis.uses import all_expressions
from tile2cu.core.expr import is_of_thread
from tile2cu.core.program import Atomic, CallStmt, Gemm, Launch, Parallel, Reduce, Scan


def in_whole_warps(launch: Launch, warp_size: int) -> Launch | None:
    """The launch with its threads rounded up to whole warps, as 32 threads on a target with waves of 64.

    Operations on whole tiles are distributed over any number of threads; those that need whole warps are the reason for
    this pass. All other statements are executed by each thread in the same way: one more changes nothing, unless it is
    distinguished by its index or by a layout of the user's, exchanges values with others, or updates memory once more.
    """
    threads = -(-launch.threads // warp_size) * warp_size
    if threads == launch.threads or launch.groups > 1:
        return None
    stmts = list(steps(launch.body))
    reducers = any(tile.reducer is not None for tile in launch.tiles)  # lowered to reductions by a later pass
    if not reducers and not any(isinstance(stmt, Gemm | Reduce | Scan) for stmt in stmts):
        return None
    calls = any(isinstance(stmt, CallStmt) and not closes_or_awaits_copies(stmt) for stmt in stmts)
    updates = any(isinstance(stmt, Atomic) for stmt in stmts)
    laid_out = any(isinstance(stmt, Parallel) and stmt.laid_out for stmt in stmts)
    if calls or updates or laid_out or any(map(is_of_thread, all_expressions(launch.body))):
        return None
    rounded = f"{threads} threads, whole warps of {warp_size}, where the source asks for {launch.threads}"
    return replace(launch, threads=threads, comments=(*launch.comments, rounded))
