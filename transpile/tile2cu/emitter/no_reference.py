"""What a program as plain scalar C++ does not follow: single threads, single bits, and tensors in other shapes."""

from collections.abc import Iterator

from tile2cu.analysis.accesses import expressions, parts_of, used_by_itself
from tile2cu.analysis.groups import asked_warpgroups
from tile2cu.core.errors import Tile2CuError
from tile2cu.core.expr import ROUNDINGS, Call, is_of_thread
from tile2cu.core.program import Atomic, BindTensor, CallStmt, Gemm, Program, Reduce, Stmt

_OF_BITS = ("first_set", "nth_set", "popcount", "truncdiv", "truncmod")
_ROUNDINGS = tuple(f"_{each}" for each in ROUNDINGS)
_WAY_OUT = "emit it without --with-test"


def require_reference(program: Program) -> None:
    """Raises T2C-E030 for what the reference does not follow."""
    for launch in program.launches:
        for stmt in launch.statements:
            for because, way_out in _reasons(stmt, program.name):
                raise Tile2CuError("T2C-E030", because, stmt.span, help=way_out)


def _reasons(stmt: Stmt, program: str) -> Iterator[tuple[str, str]]:
    """(why the reference does not follow a statement, the way out)."""
    line = stmt.span.line
    for shown in (each for each in used_by_itself(stmt) if each.of is not None):
        yield f"`{shown.name}` shows `{shown.memory.name}` in another shape: `{program}` has no reference", _WAY_OUT
    if isinstance(stmt, Gemm) and stmt.metadata is not None:
        yield f"the GEMM in line {line} is sparse, which the reference does not follow", _WAY_OUT
    if isinstance(stmt, BindTensor):
        yield (
            f"`{stmt.tensor.name}` is at an address that the kernel computes, so that `{program}` has no reference",
            _WAY_OUT,
        )
    if isinstance(stmt, Reduce) and stmt.keeps_nan:
        yield f"a NaN wins the reduction in line {line}, which the reference does not follow", _WAY_OUT
    if isinstance(stmt, Atomic) and (stmt.previous is not None or stmt.kind is None):
        which = "depends on which thread comes first"
        yield f"what line {line} does {which}, so that `{program}` has no reference", _WAY_OUT
    calls = [part for part in parts_of((stmt,)) if isinstance(part, Call)]
    if any(part.function[-3:] in _ROUNDINGS or part.function in _OF_BITS for part in calls):
        yield f"line {line} is about single bits, which the reference does not follow", _WAY_OUT
    of_threads = isinstance(stmt, CallStmt) or asked_warpgroups(stmt) is not None
    if any(of_threads or is_of_thread(expr) for expr in expressions(stmt)):
        so = f"`{program}` speaks of single threads, so it has no reference"
        yield so, f"{_WAY_OUT}, or write the loop with T.Parallel"
