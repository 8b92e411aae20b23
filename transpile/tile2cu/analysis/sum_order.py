"""What decides how many terms an output element's sums have, and their order: whether results depend on the batch."""

from collections.abc import Iterator

from tile2cu.analysis.accesses import expressions
from tile2cu.core.expr import Expr, Load, Role, Var, children, static_value, walk
from tile2cu.core.program import (
    Assign,
    Atomic,
    AtomicTile,
    Buffer,
    Copy,
    Declare,
    Fill,
    Gemm,
    If,
    Launch,
    Let,
    Loop,
    Reduce,
    Scan,
    Stmt,
    Store,
    While,
    walk_stmts,
)
from tile2cu.core.record import Record


class SumOrder(Record, frozen=True):
    """The sizes, scalars and integer tensors that the order of sums depends on.

    `by_position` is whether it may depend on an element's position among the blocks or tiles as well; `sums` whether
    there are sums at all.
    """

    sizes: tuple[Var, ...]
    tensors: tuple[Buffer, ...]
    by_position: bool
    sums: bool


def sum_order(launches: tuple[Launch, ...]) -> SumOrder:
    """What the order of the sums of all launches depends on."""
    found: set[Expr | Buffer] = set()
    sums = False
    for launch in launches:
        values = _values(launch)
        sums = sums or any(_target(stmt) is not None for stmt in launch.statements)
        for expr, counter in _deciding(launch.body):
            sources = _sources(expr, values, launch, frozenset())
            if counter is None or counter in sources:
                found |= {each for each in sources if each != counter and not _is_element(each)}
    variables = [each for each in found if isinstance(each, Var)]
    sizes = tuple(sorted((each for each in variables if each.role in _GIVEN), key=lambda var: var.name))
    tensors = tuple(sorted((each for each in found if isinstance(each, Buffer)), key=lambda each: each.name))
    return SumOrder(sizes, tensors, any(each.role not in _GIVEN for each in variables), sums)


_GIVEN = (Role.SIZE, Role.SCALAR)


def _target(stmt: Stmt) -> Buffer | Var | None:
    """What a statement adds to, or gives the sum of elements; None where it sums nothing."""
    match stmt:
        case Gemm():
            return stmt.c.buffer
        case AtomicTile():
            return stmt.dst.buffer
        case Reduce() | Scan():
            return stmt.dst
        case Atomic():
            return stmt.buffer
        case Store(buffer=buffer, value=value, op=op):
            return (
                buffer if op or any(isinstance(part, Load) and part.buffer is buffer for part in walk(value)) else None
            )
        case Assign(var=var, value=value, op=op):
            return var if op or var in walk(value) else None
        case _:
            return None


def _resets(stmt: Stmt, target: Buffer | Var) -> bool:
    """Whether a statement gives a target a new value, for any condition."""
    match stmt:
        case Gemm():
            return stmt.c.buffer is target and (stmt.clear or stmt.clear_if is not None)
        case Fill() | Copy():
            return stmt.dst.buffer is target
        case Reduce():
            return stmt.dst is target and stmt.clear
        case Scan():
            return stmt.dst is target
        case Store(buffer=buffer):
            return buffer is target and _target(stmt) is None
        case Declare(var=var) | Assign(var=var):
            return var == target and _target(stmt) is None
        case _:
            return False


def _deciding(body: tuple[Stmt, ...]) -> Iterator[tuple[Expr, Var | None]]:
    """What decides which terms a sum has, in which order; with the variable that counts them, if it is about that."""
    for stmt in body:
        match stmt:
            case Loop() | While():
                if _accumulates(stmt):
                    yield from _of_loop(stmt)
                yield from _deciding(stmt.body)
            case If():
                # Without an alternative, the elements of a skipped tile belong to another block, or to none.
                if stmt.orelse and any(_target(each) is not None for each in walk_stmts((*stmt.then, *stmt.orelse))):
                    yield stmt.condition, None
                yield from (*_deciding(stmt.then), *_deciding(stmt.orelse))
            case _:
                pass


def _accumulates(loop: Loop | While) -> bool:
    """Whether iterations of a loop add to one value: a sum in it goes on from one iteration to the next."""
    stmts = list(walk_stmts(loop.body))
    inner = [each for stmt in stmts if isinstance(stmt, Loop | While) for each in walk_stmts(stmt.body)]
    for stmt in stmts:
        target = _target(stmt)
        if target is None:
            continue
        of_inner = any(each is stmt for each in inner)
        resets = [each for each in stmts if _resets(each, target)]
        if not of_inner:  # where a condition of this loop's own clears, its first iteration does
            resets = [each for each in resets if not (isinstance(each, Gemm) and not each.clear)]
        if not resets:
            return True
    return False


def _of_loop(loop: Loop | While) -> Iterator[tuple[Expr, Var | None]]:
    """What decides the trip count of a loop, and which elements an iteration reads."""
    if isinstance(loop, While):
        yield loop.condition, None
        return
    yield from ((bound, None) for bound in (loop.start, loop.stop, loop.step))
    for stmt in walk_stmts(loop.body):
        indices = [part.start for part in stmt.src.ranges] if isinstance(stmt, Copy) else []
        indices += [
            index
            for expr in expressions(stmt)
            for part in walk(expr)
            if isinstance(part, Load)
            for index in part.indices
        ]
        yield from ((index, loop.var) for index in indices)


def _values(launch: Launch) -> dict[Var, list[Expr]]:
    """What each variable of a launch may be computed from; of a loop's, nothing: it counts."""
    values: dict[Var, list[Expr]] = {}
    for stmt in (*launch.prelude, *launch.statements):
        match stmt:
            case Let() | Assign():
                values.setdefault(stmt.var, []).append(stmt.value)
            case Declare(var=var, init=init) if init is not None:
                values.setdefault(var, []).append(init)
            case _:
                pass
    return values


def _sources(expr: Expr, values: dict[Var, list[Expr]], launch: Launch, seen: frozenset[Var]) -> set[Expr | Buffer]:
    """The sizes, scalars, tensors, block indices and loop variables that an expression is computed from."""
    found: set[Expr | Buffer] = set()
    match expr:
        case Load(buffer=buffer) if isinstance(buffer, Buffer):
            return {buffer.memory}  # an element of its own, wherever that is
        case Var() if expr in values:
            for value in values[expr] if expr not in seen else ():
                found |= _sources(value, values, launch, seen | {expr})
            return found
        case Var(role=Role.BLOCK):
            return set() if _is_part(expr, launch) else {expr}
        case Var():
            return {expr}
        case _:
            for part in children(expr):
                found |= _sources(part, values, launch, seen)
            return found


def _is_element(source: Expr | Buffer) -> bool:
    """Whether it counts the elements of a tile."""
    return isinstance(source, Var) and source.role is Role.PARALLEL


def _is_part(block: Var, launch: Launch) -> bool:
    """Whether a block index counts a fixed number of parts, of several that each element has."""
    extent = dict(zip(launch.blocks, launch.grid, strict=True)).get(block)
    return extent is not None and static_value(extent) is not None and len(launch.grid) > 1
