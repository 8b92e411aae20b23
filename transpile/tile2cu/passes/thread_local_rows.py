"""Per-row values of a GEMM that an iteration computes into shared memory: each thread computes its own rows'."""

from msgspec.structs import replace

from tile2cu.analysis.accesses import (
    buffers_read,
    buffers_written,
    covers,
    element_accesses,
    used_by_itself,
    viewed,
)
from tile2cu.analysis.dependence import is_among
from tile2cu.analysis.prelude import before, behind
from tile2cu.analysis.uses import outside_of, pipelined_loops, roots_written, statements, using
from tile2cu.core.program import (
    Buffer,
    Gemm,
    Launch,
    Loop,
    Parallel,
    Scope,
    Stmt,
)
from tile2cu.core.rebuild import with_buffer, with_instead
from tile2cu.passes.tiles import fresh

THREAD_LOCAL_ROWS = "rewrite.vector.own-rows"
_ABOUT = f"each thread computes them for the rows that it holds, so that none waits for another  [{THREAD_LOCAL_ROWS}]"


def rows_in_registers(launch: Launch) -> Launch:
    """The launch with per-row values of a GEMM in registers, where pipelined iterations computed them in shared memory.

        for i in T.Parallel(M):                                 scale in shared memory: a barrier before it is
            scale[i] = scales[i, k] * other                     written, one before it is read, and an MMA that
        T.gemm(A_shared, B_shared, C_local)                     starts when the scales have been loaded.
        for i, j in T.Parallel(M, N):                           In registers the MMA runs meanwhile.
            sums[i, j] += C_local[i, j] * scale[i]

    The four lanes that share a row then load the same element, which costs no more than one of them.
    """
    if launch.groups > 1:
        return launch
    for loop in pipelined_loops(launch):
        for writer in statements(loop.body, Parallel, below=False):
            line = _line(writer, loop, launch)
            if line is not None:
                launch = _in_registers(launch, loop, writer, line)
                return rows_in_registers(launch)
    return launch


def _in_registers(launch: Launch, loop: Loop, writer: Parallel, line: Buffer) -> Launch:
    name = fresh(launch, f"{line.name.removesuffix('_shared')}_local")
    rows = replace(line, name=name, scope=Scope.FRAGMENT)
    tiles = tuple(rows if tile is line else tile for tile in launch.tiles)
    own = replace(with_buffer(writer, line, rows), comments=(*writer.comments, _ABOUT))
    iteration = with_buffer(with_instead(loop.body, {id(writer): (own,)}), line, rows)
    body = with_instead(launch.body, {id(loop): (replace(loop, body=iteration),)})
    return replace(launch, tiles=tiles, body=body)


def _line(writer: Parallel, loop: Loop, launch: Launch) -> Buffer | None:
    """The shared vector that a loop statement computes from tensors, for rows of a GEMM, and nothing else uses."""
    if len(writer.vars) != 1 or len(buffers_written(writer)) != 1:
        return None
    (line,) = buffers_written(writer)
    if line.scope is not Scope.SHARED or line.rank != 1 or line.of is not None or viewed(launch, line):
        return None
    others, changed = outside_of(loop.body, launch.body), roots_written(launch.body)
    if not covers(writer, line):
        return None
    if any(read.scope is not Scope.GLOBAL or is_among(read, changed) for read in buffers_read(writer)):
        return None
    if any(line in used_by_itself(op) for op in others) or using(before(loop.body, writer), line):
        return None
    readers = using(behind(loop.body, writer), line)
    mmas = {op.c.buffer for op in statements(loop.body, Gemm, below=False)}
    return line if readers and all(reads_by_row(op, line, mmas) for op in readers) else None


def reads_by_row(op: Stmt, line: Buffer, mmas: set[Buffer]) -> bool:
    """Whether a loop over the elements of a GEMM's result reads the vector at their rows alone."""
    if not isinstance(op, Parallel) or line in buffers_written(op) or len(op.vars) != 2:
        return False
    row, _ = op.vars
    accesses = tuple(element_accesses(op.body))
    at_rows = all(access.indices == (row,) for access in accesses if access.buffer is line)
    return at_rows and any(access.buffer in mmas and access.indices == op.vars for access in accesses)
