"""What a caller must know of how calls execute: order on the stream, workspace, determinism, what nobody validates."""

from collections.abc import Iterator

from tile2cu.analysis.accesses import expressions
from tile2cu.analysis.sync_calls import starts_early
from tile2cu.analysis.uninitialised import read_unwritten
from tile2cu.core.expr import Call, Expr, Load, Var, walk
from tile2cu.core.program import (
    Assign,
    Atomic,
    AtomicTile,
    Buffer,
    Copy,
    Declare,
    Let,
    Loop,
    Reduction,
    Scope,
    Stmt,
    Store,
    walk_stmts,
)
from tile2cu.plan.settled import Settled
from tile2cu.styles.base.comments import listed
from tile2cu.styles.base.names import ascii_name

_IN_MEMORY = (Scope.GLOBAL, Scope.SHARED)


def execution(launches: tuple[Settled, ...], workspace: str) -> tuple[str, ...]:
    """The paragraphs; `workspace` is its size in bytes as the launcher's query computes it, "0" for none."""
    graph = "a HIP graph" if launches[0].target.is_amd else "a CUDA graph"
    room = "No workspace." if workspace == "0" else f"Workspace, in bytes: {workspace.replace('tl::', '')}."
    early = "Programmatic dependent launch: it may start before the kernel before it in the stream has ended."
    call = f"A call is asynchronous on `stream`, allocates nothing and can be captured in {graph}. {room}"
    dependent = any(starts_early(each.launch.body) for each in launches)
    return (call, early if dependent else "", _determinism(launches), _unvalidated(launches))


# ---- determinism ---------------------------------------------------------------------------------------------


def _determinism(launches: tuple[Settled, ...]) -> str:
    """Whether equal calls give equal bits; empty where the program does not tell."""
    stmts = [stmt for each in launches for stmt in walk_stmts(each.launch.body)]
    if sums := listed(list(dict.fromkeys(_summed_in_any_order(stmts)))):
        return f"Not deterministic: atomics add to {sums} in an order that differs from run to run."
    unwritten = any(read_unwritten(each.launch) for each in launches)
    if unwritten or launches[0].program.user_code or any(map(_depends_on_order, stmts)):
        return ""
    return "Deterministic: no floating-point atomics; equal calls give equal bits on the same GPU model."


def _summed_in_any_order(stmts: list[Stmt]) -> Iterator[str]:
    """The floating-point tensors and tiles that atomics add to: rounding depends on the order."""
    for stmt in stmts:
        if isinstance(stmt, Atomic | AtomicTile) and stmt.kind is Reduction.SUM:
            buffer = stmt.buffer if isinstance(stmt, Atomic) else stmt.dst.buffer
            if buffer.dtype.is_float and buffer.memory.scope in _IN_MEMORY:
                yield f"{ascii_name(buffer.name)} ({buffer.dtype})"


def _depends_on_order(stmt: Stmt) -> bool:
    """Whether what a statement gives depends on which thread comes first, or on functions of the user's own."""
    if isinstance(stmt, Atomic) and (stmt.previous is not None or stmt.kind is None):
        return True
    calls = (part.function for expr in expressions(stmt) for part in walk(expr) if isinstance(part, Call))
    return any(function.startswith(("atomic", ":")) for function in calls)


# ---- what nobody validates -----------------------------------------------------------------------------------


def _unvalidated(launches: tuple[Settled, ...]) -> str:
    """The tensors whose elements indices and trip counts are computed from."""
    found = {tensor.memory.name for each in launches for tensor in _of_indices(each.launch.body)}
    tensors = (each for each in launches[0].program.params if isinstance(each, Buffer))
    names = [ascii_name(each.name) for each in tensors if each.name in found]
    if not names:
        return ""
    return f"Indices or trip counts are computed from the elements of {listed(names)}, which nothing validates."


def _of_indices(body: tuple[Stmt, ...]) -> set[Buffer]:
    """The tensors whose elements reach an index or a trip count, through scalars and tiles."""
    stmts = list(walk_stmts(body))
    origins: dict[Var | Buffer, frozenset[Buffer]] = {}
    before = None
    while before != origins:  # through loops, what a later statement assigns reaches an earlier one
        before = dict(origins)
        for stmt in stmts:
            for target, given in _assigned(stmt):
                origins[target] = origins.get(target, frozenset()).union(*(_origins(each, origins) for each in given))
    return {tensor for stmt in stmts for index in _indices(stmt) for tensor in _origins(index, origins)}


def _assigned(stmt: Stmt) -> Iterator[tuple[Var | Buffer, tuple[Expr | Buffer, ...]]]:
    """What a statement gives a value to, and from what."""
    match stmt:
        case Let() | Assign():
            yield stmt.var, (stmt.value,)
        case Declare(init=init) if init is not None:
            yield stmt.var, (init,)
        case Store() if stmt.buffer.memory.scope is not Scope.GLOBAL:
            yield stmt.buffer.memory, (stmt.value,)
        case Copy() if stmt.dst.buffer.memory.scope is not Scope.GLOBAL:
            yield stmt.dst.buffer.memory, (stmt.src.buffer,)
        case _:
            pass


def _origins(value: Expr | Buffer, origins: dict[Var | Buffer, frozenset[Buffer]]) -> frozenset[Buffer]:
    """The integer tensors that a value is computed from."""
    if isinstance(value, Buffer):
        memory = value.memory
        if memory.scope is Scope.GLOBAL:
            return frozenset(() if value.dtype.is_float else (memory,))
        return origins.get(memory, frozenset())
    found: frozenset[Buffer] = frozenset()
    for part in walk(value):
        if isinstance(part, Load) and isinstance(part.buffer, Buffer):
            found |= _origins(part.buffer, origins)
        elif isinstance(part, Var):
            found |= origins.get(part, frozenset())
    return found


def _indices(stmt: Stmt) -> Iterator[Expr]:
    """The indices of a statement's accesses, and what decides how often a loop runs."""
    for expr in expressions(stmt):
        for part in walk(expr):
            if isinstance(part, Load):
                yield from part.indices
    match stmt:
        case Loop():
            yield from (stmt.start, stmt.stop)
        case Copy() | AtomicTile():
            yield from (part.start for region in (stmt.src, stmt.dst) for part in region.ranges)
        case Store() | Atomic():
            yield from stmt.indices
        case _:
            pass
