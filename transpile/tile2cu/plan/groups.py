"""Groups of threads that work independently (T.ws), as they are of all kernels of a file."""

from tile2cu.core.decisions import BARRIER, PART_BARRIER
from tile2cu.core.errors import Tile2CuError
from tile2cu.core.facts import Facts
from tile2cu.core.program import AtomicTile, Copy, Gemm, Reduce, Scan, Stmt, Sync
from tile2cu.plan.resolved import Resolved


def independent_groups(launches: tuple[Resolved, ...]) -> tuple[int, ...]:
    """The threads of each group, or of every one (a single number), where groups work independently; else none.

    Errors: T2C-E032 where the kernels' groups differ.
    """
    in_groups = {each.launch.shares or (each.launch.threads,) for each in launches if each.launch.groups > 1}
    found = {
        next((sizes for sizes in in_groups if _is_first_group(each, sizes[0])), ())
        if each.launch.groups == 1
        else each.launch.shares or (each.launch.threads,)
        for each in launches
    }
    if len(found) > 1:
        raise Tile2CuError(
            "T2C-E032",
            "one kernel of the text has groups of threads (T.ws), another has not, or others",
            launches[0].launch.span,
            help="write them as two functions",
        )
    return found.pop()


def _is_first_group(resolved: Resolved, threads: int) -> bool:
    """Whether a kernel's block is one group of that size, or fewer threads that never wait for one another."""
    waits = (Reduce, Scan, Gemm, AtomicTile, Sync, Copy)
    stmts = resolved.launch.statements
    alone = not any(isinstance(stmt, waits) or _has_barrier(stmt, resolved.facts) for stmt in stmts)
    return resolved.launch.threads == threads or (resolved.launch.threads < threads and alone)


def _has_barrier(stmt: Stmt, facts: Facts) -> bool:
    return facts.get(stmt, BARRIER) is not None or facts.get(stmt, PART_BARRIER) is not None
