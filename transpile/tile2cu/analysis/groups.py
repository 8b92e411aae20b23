"""Kernels with independent groups of threads: which group runs statements outside of `with T.ws(...)`."""

from collections.abc import Iterator
from itertools import groupby

from tile2cu.analysis.accesses import buffers_used, buffers_written
from tile2cu.analysis.control import operations, places
from tile2cu.core.dtype import BOOL, INT32
from tile2cu.core.expr import Binary, Call, Expr, binary, int_const, static_value
from tile2cu.core.program import AtomicTile, Buffer, Copy, Fill, Gemm, If, Parallel, Reduce, Scan, Scope, Stmt, bodies
from tile2cu.core.rebuild import with_bodies

_MEMORY = (Scope.GLOBAL, Scope.SHARED)


def with_groups(body: tuple[Stmt, ...]) -> Iterator[tuple[Stmt, int | None]]:
    """All statements below a body, those in elementwise loops included, with the group that runs each: None for all."""
    for place in places(body):
        own = (group_of(each) for each in (place.stmt, *reversed(place.around)))
        yield place.stmt, next((group for group in own if group is not None), None)


def group_of(stmt: Stmt) -> int | None:
    """The group of threads that runs a branch of `with T.ws(group)`; None for any other statement."""
    match stmt:
        case If(condition=Binary(op="==", lhs=Call(function="group"), rhs=group)):
            return int(static_value(group) or 0)
        case _:
            return None


def asked_warpgroups(stmt: Stmt) -> tuple[int, ...] | None:
    """The warpgroups that `with T.ws(...)` names, as the user wrote it; None for any other statement."""
    match stmt:
        case If(condition=Call(function="warpgroups", args=numbers)):
            return tuple(int(static_value(number) or 0) for number in numbers)
        case _:
            return None


def in_group(group: int) -> Expr:
    """The condition that a thread belongs to a group."""
    return binary("==", Call(INT32, "group", ()), int_const(group))


def in_warpgroups(numbers: tuple[int, ...]) -> Expr:
    """The condition that a thread belongs to one of these warpgroups, as the user writes it: T.ws(0, 1)."""
    return Call(BOOL, "warpgroups", tuple(map(int_const, numbers)))


def by_groups(body: tuple[Stmt, ...]) -> tuple[Stmt, ...]:
    """Operations on whole tiles that all groups reach: one group executes those that write memory.

    It is the one that alone uses the fragments of the operation, or else the first. Each group executes those that
    write fragments, of which it has its own.
    """
    return _by_users(body, fragment_users(body))


def _by_users(body: tuple[Stmt, ...], users: dict[str, set[int]]) -> tuple[Stmt, ...]:
    done: list[Stmt] = []
    for group, run in groupby(body, lambda stmt: _does_alone(stmt, users)):
        stmts = tuple(run)
        if group is None:
            done += (_inside(stmt, users) for stmt in stmts)
        else:
            done.append(If(condition=in_group(group), then=stmts, once=True, span=stmts[0].span))
    return tuple(done)


def _does_alone(stmt: Stmt, users: dict[str, set[int]]) -> int | None:
    """The group that executes an operation on a tile in memory; None for other statements."""
    if not is_operation(stmt) or not any(tile.scope in _MEMORY for tile in buffers_written(stmt)):
        return None
    found = {group for tile in fragments(stmt) for group in users.get(tile.memory.name, ())}
    return min(found) if len(found) == 1 else 0


def _inside(stmt: Stmt, users: dict[str, set[int]]) -> Stmt:
    return stmt if group_of(stmt) is not None else with_bodies(stmt, lambda body: _by_users(body, users))


def is_operation(stmt: Stmt) -> bool:
    """Whether it is an operation on tiles that the threads of a group share."""
    return isinstance(stmt, Copy | Fill | AtomicTile | Reduce | Scan | Parallel | Gemm)


def is_tile_work(stmt: Stmt) -> bool:
    """Whether it is an operation on a whole tile, which the threads share: not on arrays of each thread."""
    match stmt:
        case Parallel() | Reduce() | Scan() | Gemm():
            return True
        case Copy() | AtomicTile():
            return Scope.LOCAL not in (stmt.src.buffer.scope, stmt.dst.buffer.scope)
        case Fill():
            return stmt.dst.buffer.scope is not Scope.LOCAL
        case _:
            return False


def tile_work(body: tuple[Stmt, ...]) -> Iterator[Stmt]:
    """The operations on whole tiles below a body, in order."""
    return filter(is_tile_work, operations(body))


def fragments(stmt: Stmt) -> frozenset[Buffer]:
    """The fragments that one statement reads or writes."""
    return frozenset(tile for tile in buffers_used(stmt) if tile.scope is Scope.FRAGMENT)


def fragment_users(body: tuple[Stmt, ...]) -> dict[str, set[int]]:
    """The groups that use each fragment, by its name, in their own statements."""
    found: dict[str, set[int]] = {}
    for stmt, group in with_groups(body):
        if group is not None and not bodies(stmt):
            for tile in fragments(stmt):
                found.setdefault(tile.memory.name, set()).add(group)
    return found


def outside_of_groups(body: tuple[Stmt, ...]) -> Iterator[Stmt]:
    """The statements that all groups reach, including those of loops and branches."""
    return (stmt for stmt, group in with_groups(body) if group is None)
