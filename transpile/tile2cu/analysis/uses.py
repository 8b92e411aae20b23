"""Queries that several passes need: positions of statements, and the names that they declare and use."""

import itertools
from collections.abc import Container, Iterable, Iterator
from typing import TypeVar, overload

from tile2cu.analysis.accesses import (
    buffers_read,
    buffers_used,
    buffers_written,
    expressions,
    read_by_itself,
    used_by_itself,
    variables,
    variables_of,
)
from tile2cu.analysis.control import declared_in, operations, steps
from tile2cu.analysis.dependence import is_among
from tile2cu.core.expr import OF_THREAD, Call, Expr, Named, Var, walk
from tile2cu.core.program import (
    Atomic,
    Break,
    Buffer,
    Continue,
    Declare,
    Gemm,
    If,
    Launch,
    Let,
    Loop,
    LoopKind,
    Parallel,
    Reduce,
    Scan,
    Stmt,
    bodies,
    walk_stmts,
)

_Kind = TypeVar("_Kind", bound=Stmt)
_Other = TypeVar("_Other", bound=Stmt)


@overload
def statements(body: tuple[Stmt, ...], kind: type[_Kind], /, *, below: bool = True) -> Iterator[_Kind]: ...
@overload
def statements(
    body: tuple[Stmt, ...], kind: type[_Kind], other: type[_Other], /, *, below: bool = True
) -> Iterator[_Kind | _Other]: ...
def statements(body: tuple[Stmt, ...], *kinds: type[Stmt], below: bool = True) -> Iterator[Stmt]:
    """The statements of some kinds in a body, in order, outermost first; also those `below` its own, or not."""
    return (stmt for stmt in (walk_stmts(body) if below else body) if isinstance(stmt, kinds))


def count(body: tuple[Stmt, ...]) -> int:
    """How many statements a body has, at all depths."""
    return sum(1 for _ in walk_stmts(body))


def exits(body: tuple[Stmt, ...]) -> Iterator[Break | Continue]:
    """The statements of a body that leave the loop around it, or its iteration."""
    for stmt in body:
        match stmt:
            case Break() | Continue():
                yield stmt
            case If():
                yield from exits((*stmt.then, *stmt.orelse))
            case _:
                pass


def has(body: tuple[Stmt, ...], *kinds: type[Stmt]) -> bool:
    """Whether a statement of one of these kinds is below a body."""
    return any(isinstance(stmt, kinds) for stmt in walk_stmts(body))


def without(body: tuple[Stmt, ...], others: Iterable[Stmt]) -> tuple[Stmt, ...]:
    """The statements of a body that are none of the others."""
    left_out = {id(stmt) for stmt in others}
    return tuple(stmt for stmt in body if id(stmt) not in left_out)


def pipelined_loops(launch: Launch) -> list[Loop]:
    """The T.Pipelined loops of a launch, in order, outermost first."""
    return [stmt for stmt in steps(launch.body) if isinstance(stmt, Loop) and stmt.kind is LoopKind.PIPELINED]


def has_mma(launch: Launch) -> bool:
    """Whether a launch multiplies matrices."""
    return any(isinstance(stmt, Gemm) for stmt in steps(launch.body))


def outside_of(parts: Iterable[Stmt], body: tuple[Stmt, ...]) -> list[Stmt]:
    """The statements of a body, loops and branches included, that are none of the parts nor below one."""
    inside = {id(stmt) for stmt in walk_stmts(tuple(parts))}
    return [stmt for stmt in steps(body) if id(stmt) not in inside]


def roots_written(body: Iterable[Stmt]) -> set[Buffer]:
    """The storage that statements write, under any name."""
    return {buffer.memory for buffer in written_in(body)}


def names_used(body: tuple[Stmt, ...]) -> set[str]:
    """The names of all variables and buffers that statements read, write or declare."""
    used = {buffer.name for stmt in body for buffer in buffers_used(stmt)}
    for stmt in walk_stmts(body):
        used |= {var.name for var in variables_of(stmt)}
        used |= {var.name for var in (*getattr(stmt, "vars", ()), getattr(stmt, "var", None)) if isinstance(var, Var)}
    return used


def all_expressions(body: tuple[Stmt, ...]) -> Iterator[Expr]:
    """The expressions that the statements of a body evaluate, and those below them."""
    return (expr for stmt in walk_stmts(body) for expr in expressions(stmt))


def is_per_thread(body: tuple[Stmt, ...]) -> bool:
    """Whether no statement of a body needs whole warps."""
    calls = {part.function.partition("<")[0] for part in all_expressions(body) if isinstance(part, Call)}
    alone = OF_THREAD - {"thread", "random.next", "random.uniform", "random.normal"}
    return not calls & alone and not has(body, Gemm, Reduce, Scan)


def names_of(launch: Launch) -> set[str]:
    """The names that a launch already has, used or not."""
    own = {tile.name for tile in launch.tiles} | {var.name for var in launch.blocks}
    return own | names_of_numbers(launch) | names_used((*launch.prelude, *launch.body))


def unused(wish: str, names: Container[str], first: int = 1) -> str:
    """A name that is none of `names`: `wish`, or `wish_1`, `wish_2`, ... from a first number on."""
    numbered = (f"{wish}_{number}" for number in itertools.count(first))
    return next(name for name in itertools.chain((wish,), numbered) if name not in names)


def names_but_of_loops(launch: Launch) -> set[str]:
    """The names of a launch but for those of loop variables: of buffers, blocks, sizes, numbers and scalars."""
    body = (*launch.prelude, *launch.body)
    loops = variables_of_loops(launch)
    own = {tile.name for tile in launch.tiles} | {var.name for var in launch.blocks}
    own |= {buffer.name for stmt in body for buffer in buffers_used(stmt)}
    named = {part.name for expr in _numbers(launch) for part in walk(expr) if isinstance(part, Named)}
    scalars = {*declared_in(body), *variables(*_numbers(launch))} - loops
    return own | {var.name for var in scalars} | named


def variables_of_loops(launch: Launch) -> set[Var]:
    """The variables of all loops of a launch."""
    return {var for stmt in launch.statements for var in loop_variables(stmt)}


def using(body: tuple[Stmt, ...], tile: Buffer) -> list[Stmt]:
    """The statements of a body, loops and branches with all of theirs, that use a tile under this name, in order."""
    return [stmt for stmt in body if tile in buffers_used(stmt)]


def users(body: tuple[Stmt, ...], tile: Buffer) -> list[Stmt]:
    """The operations, conditions and bounds below a body that use a tile under any name, in order."""
    return [stmt for stmt in steps(body) if is_among(tile, used_by_itself(stmt))]


def readers(body: tuple[Stmt, ...], tile: Buffer) -> list[Stmt]:
    """The operations, conditions and bounds below a body that read a tile under any name, in order."""
    return [stmt for stmt in steps(body) if is_among(tile, read_by_itself(stmt))]


def writers(body: tuple[Stmt, ...], tile: Buffer) -> list[Stmt]:
    """The operations below a body that write a tile under any name, in order."""
    return [stmt for stmt in operations(body) if is_among(tile, buffers_written(stmt))]


def reading(body: tuple[Stmt, ...], tiles: frozenset[Buffer]) -> list[Stmt]:
    """The statements of a body, loops and branches with all of theirs, that read one of these tiles, in order."""
    return [stmt for stmt in body if tiles & buffers_read(stmt)]


def is_at_top(stmt: Stmt, launch: Launch) -> bool:
    """Whether no loop or branch is around a statement."""
    return any(other is stmt for other in launch.body)


def is_only_use(stmt: Stmt, tile: Buffer, body: tuple[Stmt, ...]) -> bool:
    """Whether nothing below a body but the statement uses a tile under this name, conditions and bounds included."""
    return all((tile in used_by_itself(other)) == (other is stmt) for other in steps(body))


def read_in(body: Iterable[Stmt]) -> frozenset[Buffer]:
    """The buffers that statements read, with all below them."""
    return frozenset().union(*map(buffers_read, body))


def written_in(body: Iterable[Stmt]) -> frozenset[Buffer]:
    """The buffers that statements write, with all below them."""
    return frozenset().union(*map(buffers_written, body))


def declares(stmt: Stmt) -> tuple[Var, ...]:
    """The variables that a statement itself declares; those of a loop are its own."""
    match stmt:
        case Let() | Declare() | Loop():
            return (stmt.var,)
        case Parallel():
            return stmt.vars
        case Atomic(previous=Var() as previous):
            return (previous,)
        case _:
            return ()


def declared_by_arms(branch: If) -> set[Var]:
    """The variables that the arms of a branch declare, not those of loops and branches in them."""
    return {var for arm in bodies(branch) for stmt in arm for var in declares(stmt)}


def loop_variables(stmt: Stmt) -> tuple[Var, ...]:
    """The variables of a loop; none of other statements."""
    match stmt:
        case Loop():
            return (stmt.var,)
        case Parallel():
            return stmt.vars
        case _:
            return ()


def names_of_numbers(launch: Launch) -> set[str]:
    """The names of the file's numbers, and of sizes, in the shapes and expressions of a launch."""
    return {part.name for expr in _numbers(launch) for part in walk(expr) if isinstance(part, Named | Var)}


def _numbers(launch: Launch) -> tuple[Expr, ...]:
    """The expressions of a launch, its grid and the shapes of its buffers."""
    body = (*launch.prelude, *launch.body)
    buffers = {*launch.tiles, *(buffer.memory for stmt in body for buffer in buffers_used(stmt))}
    shapes = (extent for buffer in buffers for extent in (*buffer.shape, *(buffer.strides or ())))
    return (*launch.grid, *shapes, *all_expressions(body))


def comments_of(launch: Launch) -> tuple[tuple[str, Stmt], ...]:
    """The user's comments on the statements of a launch, in order."""
    stmts = walk_stmts((*launch.prelude, *launch.body))
    return tuple((comment, stmt) for stmt in stmts for comment in (*stmt.comments, stmt.trailing) if comment)
