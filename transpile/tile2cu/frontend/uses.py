"""What a traced kernel uses: which named constants, and which open sizes."""

from collections.abc import Iterable, Iterator

from tile2cu.analysis import accesses
from tile2cu.core.expr import Expr, Named, Role, Var, walk
from tile2cu.core.program import (
    Assign,
    Atomic,
    AtomicTile,
    Buffer,
    Copy,
    Declare,
    Fill,
    Gemm,
    Launch,
    Let,
    Loop,
    Parallel,
    Region,
    Stmt,
    Store,
)


def expressions(params: Iterable[Buffer | Var], launches: Iterable[Launch]) -> Iterator[Expr]:
    """All expressions of a kernel with all their parts, in the order of the text."""
    for param in params:
        if isinstance(param, Buffer):
            yield from _of_buffer(param)
    for launch in launches:
        for extent in launch.grid:
            yield from walk(extent)
        for tile in launch.tiles:
            yield from _of_buffer(tile)
        for stmt in launch.statements:
            for expr in _of_stmt(stmt):
                yield from walk(expr)


def _of_buffer(buffer: Buffer) -> Iterator[Expr]:
    for extent in (*buffer.shape, *(buffer.strides or ())):
        yield from walk(extent)


def _of_region(region: Region) -> Iterator[Expr]:
    for found in region.ranges:
        yield found.start
        yield found.extent


def _of_stmt(stmt: Stmt) -> Iterator[Expr]:
    """The expressions of a statement itself; those of its body belong to the statements there."""
    match stmt:
        case Copy() | AtomicTile():
            yield from (*_of_region(stmt.src), *_of_region(stmt.dst))
            yield from accesses.expressions(stmt)
        case Gemm():
            yield from (*_of_region(stmt.a), *_of_region(stmt.b), *_of_region(stmt.c))
        case Fill():
            yield from (*_of_region(stmt.dst), stmt.value)
        case Store() | Atomic():
            yield from (*stmt.indices, stmt.value)
        case Let() | Assign():
            yield stmt.value
        case Declare():
            yield from () if stmt.init is None else (stmt.init,)
        case Parallel():
            yield from stmt.extents
        case Loop():
            yield from (stmt.start, stmt.stop, stmt.step)
        case _:
            yield from accesses.expressions(stmt)


def constant_names(exprs: Iterable[Expr]) -> frozenset[str]:
    """The names of constants among expressions."""
    return frozenset(expr.name for expr in exprs if isinstance(expr, Named))


def size_names(exprs: Iterable[Expr]) -> tuple[str, ...]:
    """The names of open sizes among expressions, in order of first use."""
    return tuple(dict.fromkeys(expr.name for expr in exprs if isinstance(expr, Var) and expr.role is Role.SIZE))


def extents(params: Iterable[Buffer | Var], launches: Iterable[Launch]) -> Iterator[Expr]:
    """What the extents of tensors, grids and loops are made of: integers all."""
    for param in params:
        if isinstance(param, Buffer):
            yield from _of_buffer(param)
    for launch in launches:
        loops = (stmt for stmt in launch.statements if isinstance(stmt, Loop | Parallel))
        for extent in (*launch.grid, *(expr for loop in loops for expr in _of_stmt(loop))):
            yield from walk(extent)


def solvable_sizes(params: Iterable[Buffer | Var]) -> frozenset[str]:
    """The sizes that are alone as an extent or stride of a tensor: a caller's tensors give their values."""
    return frozenset(
        extent.name
        for param in params
        if isinstance(param, Buffer)
        for extent in (*param.shape, *(param.strides or ()))
        if isinstance(extent, Var) and extent.role is Role.SIZE
    )
