"""Which elements a statement reads and writes."""

from collections.abc import Iterable, Iterator, Sequence

from tile2cu.analysis import effects as effect
from tile2cu.analysis.control import steps
from tile2cu.analysis.dependence import is_among, keeps, same_storage
from tile2cu.analysis.effects import effects, evaluated, own_effects
from tile2cu.core.expr import (
    Address,
    Binary,
    Call,
    Const,
    Expr,
    Load,
    Named,
    Var,
    binary,
    static_value,
    substitute,
    variables_in,
    walk,
    walk_evaluated,
)
from tile2cu.core.memo import kept
from tile2cu.core.program import (
    Assert,
    Assign,
    Atomic,
    AtomicTile,
    BindTensor,
    Buffer,
    CallStmt,
    Copy,
    Declare,
    Fill,
    Gemm,
    If,
    Launch,
    Let,
    Loop,
    Parallel,
    Print,
    Reduce,
    Reduction,
    Scope,
    Stmt,
    Store,
    While,
    walk_stmts,
)
from tile2cu.core.record import Record
from tile2cu.core.span import Span


class Access(Record, frozen=True):
    """One element access in an elementwise body."""

    buffer: Buffer
    indices: tuple[Expr, ...]
    is_store: bool
    span: Span
    atomic: bool = False


def element_accesses(body: tuple[Stmt, ...]) -> Iterator[Access]:
    """All element accesses below the statements of an elementwise body, stores last in each statement."""
    for stmt in walk_stmts(body):
        yield from own_accesses(stmt)


def own_accesses(stmt: Stmt) -> tuple[Access, ...]:
    """The element accesses of a statement itself, without those of nested statements.

    Rules call it some two hundred times per statement, and a statement is immutable: the result is cached in it.
    """
    kept = vars(stmt)
    if "own_accesses" not in kept:
        kept["own_accesses"] = tuple(_own_accesses(stmt))
    found: tuple[Access, ...] = kept["own_accesses"]
    return found


def _own_accesses(stmt: Stmt) -> Iterator[Access]:
    for expr in expressions(stmt):
        yield from loads(expr, stmt.span)
        yield from written_through(expr, stmt.span)
    match stmt:
        case Store():
            if stmt.op:
                yield Access(stmt.buffer, stmt.indices, False, stmt.span)
            yield Access(stmt.buffer, stmt.indices, True, stmt.span)
        case Atomic():
            yield Access(stmt.buffer, stmt.indices, True, stmt.span, atomic=True)
        case _:
            pass


@kept
def expressions(stmt: Stmt) -> tuple[Expr, ...]:
    """The expressions that a statement itself evaluates, without its nested statements'."""
    match stmt:
        case Store() | Atomic():
            return (*stmt.indices, stmt.value)
        case If() | While():
            return (stmt.condition,)
        case Loop():
            return (stmt.start, stmt.stop, stmt.step)
        case Fill():
            return (stmt.value, *(part.start for part in stmt.dst.ranges))
        case Gemm():
            starts = tuple(part.start for region in stmt.regions for part in region.ranges)
            return starts if stmt.clear_if is None else (*starts, stmt.clear_if)
        case Copy() | AtomicTile():
            starts = tuple(part.start for region in (stmt.src, stmt.dst) for part in region.ranges)
            if not isinstance(stmt, Copy):
                return starts
            barriers = (index for each in (stmt.barrier, stmt.remote) if each is not None for index in each.indices)
            others = (each for each in (*stmt.ends, stmt.when, stmt.block) if each is not None)
            return (*starts, *barriers, *others)
        case _:
            return _values(stmt)


def _values(stmt: Stmt) -> tuple[Expr, ...]:
    """The expressions of a statement about single values."""
    match stmt:
        case Let() | Assign():
            return (stmt.value,)
        case BindTensor(tensor=tensor) if tensor.address is not None:
            return (tensor.address, *tensor.shape, *(tensor.strides or ()))
        case CallStmt():
            return (stmt.call,)
        case Assert():
            return (stmt.condition,)
        case Declare() if stmt.init is not None:
            return (stmt.init,)
        case Print() if isinstance(stmt.what, Expr):
            return (stmt.what,)
        case _:
            return ()


def parts_of(stmts: Iterable[Stmt]) -> Iterator[Expr]:
    """The parts of the expressions that statements themselves evaluate, without those of their nested statements."""
    return (part for stmt in stmts for expr in expressions(stmt) for part in walk(expr))


def variables(*exprs: Expr) -> set[Var]:
    """The variables that expressions mention."""
    return set().union(*map(variables_in, exprs))


def divisors(expr: Expr) -> Iterator[Expr]:
    """What an expression divides by whenever it is evaluated, the innermost first."""
    for part in reversed([*walk_evaluated(expr)]):
        match part:
            case (
                Binary(op="//" | "%", rhs=divisor)
                | Call(function="ceildiv" | "floordiv" | "floormod", args=(_, divisor))
            ):
                yield divisor
            case _:
                pass


def variables_of(stmt: Stmt) -> set[Var]:
    """The variables that a statement's own expressions mention, without those of its nested statements."""
    return variables(*expressions(stmt))


def lets_for(needed: set[Var], body: tuple[Stmt, ...]) -> tuple[Let, ...]:
    """The immutable values of a body that `needed` and they themselves depend on, in order."""
    lets = [stmt for stmt in body if isinstance(stmt, Let)]
    for let in reversed(lets):
        if let.var in needed:
            needed = needed | variables(let.value)
    return tuple(let for let in lets if let.var in needed)


def value_after(store: Store) -> Expr:
    """The value of an element after a store to it: of an update, in terms of the value before."""
    if not store.op:
        return store.value
    return binary(store.op, Load(store.buffer.dtype, store.buffer, store.indices), store.value)


def loaded(*values: Expr) -> list[Buffer]:
    """The buffers of which values take elements, in order."""
    parts = (part for value in values for part in walk(value))
    return [part.buffer for part in parts if isinstance(part, Load) and isinstance(part.buffer, Buffer)]


def with_values(expr: Expr, lets: Sequence[Stmt]) -> Expr:
    """The expression with the immutable names that `lets` define, each after those it needs, replaced by values."""
    for let in reversed(lets):
        assert isinstance(let, Let), "a named value is a Let"
        expr = substitute(expr, {let.var: let.value})
    return expr


def without_unused_lets(body: tuple[Stmt, ...], *, but: tuple[Stmt, ...] = ()) -> tuple[Stmt, ...]:
    """The statements without unused values, or without those that only `but` uses."""
    kept: list[Stmt] = []
    used: set[Var] = set()
    for stmt in reversed(body):
        if not isinstance(stmt, Let) or stmt.var in used:
            kept.insert(0, stmt)
            if stmt not in but:
                used |= {name for inner in walk_stmts((stmt,)) for name in variables(*expressions(inner))}
    return tuple(kept)


def moved_index(stmt: Stmt, last: Var) -> bool:
    """Whether it names an integer that a loop's last variable moves and no memory gives: an index of vectors."""
    if not isinstance(stmt, Let) or not stmt.var.dtype.is_int:
        return False
    parts = tuple(walk(stmt.value))
    return last in parts and not any(isinstance(part, Load) for part in parts)


def loads(expr: Expr, span: Span) -> Iterator[Access]:
    """The elements that an expression reads."""
    parts = _in_memory(expr)
    if parts:
        calls = (part for part in walk(expr) if isinstance(part, Call) and part.function.startswith("atomic_load"))
        atomic = {id(call.args[0]) for call in calls}
        for part in parts:
            if isinstance(part, Load) or "r" in part.access:
                assert isinstance(part.buffer, Buffer)
                yield Access(part.buffer, part.indices, False, span, id(part) in atomic)


def _in_memory(expr: Expr) -> tuple[Load | Address, ...]:
    """The parts of an expression that are, or are the addresses of, elements."""
    return () if isinstance(expr, (Const, Named, Var)) else _elements_in(expr)


@kept
def _elements_in(expr: Expr) -> tuple[Load | Address, ...]:
    return tuple(part for part in walk(expr) if isinstance(part, Load | Address))


def written_through(expr: Expr, span: Span) -> Iterator[Access]:
    """The elements that a function may write through an address argument."""
    for part in _in_memory(expr):
        if isinstance(part, Address) and "w" in part.access:
            assert isinstance(part.buffer, Buffer)
            yield Access(part.buffer, part.indices, True, span)


@kept
def buffers_read(stmt: Stmt) -> frozenset[Buffer]:
    """The buffers whose elements one statement reads, for indices, too; for loops and branches, all of the body's."""
    return _named(effects(stmt).reads)


@kept
def buffers_written(stmt: Stmt) -> frozenset[Buffer]:
    """The buffers whose elements one statement writes; for loops and branches, all of the body's."""
    return _named(effects(stmt).writes)


@kept
def read_by_itself(stmt: Stmt) -> frozenset[Buffer]:
    """The buffers that a statement reads; for a loop or branch, those of its condition or its bounds."""
    return _named(own_effects(stmt).reads)


@kept
def _written_by_itself(stmt: Stmt) -> frozenset[Buffer]:
    return _named(own_effects(stmt).writes)


def _named(accesses: Iterable[effect.Access]) -> frozenset[Buffer]:
    return frozenset(access.buffer for access in accesses)


def buffers_used(stmt: Stmt) -> frozenset[Buffer]:
    """The buffers whose elements one statement reads or writes; for loops and branches, all of the body's."""
    return buffers_read(stmt) | buffers_written(stmt)


def used_by_itself(stmt: Stmt) -> frozenset[Buffer]:
    """The buffers that a statement reads or writes; for a loop or branch, those of its condition or its bounds."""
    return read_by_itself(stmt) | _written_by_itself(stmt)


def tensors_accessed_again(body: tuple[Stmt, ...]) -> frozenset[Buffer]:
    """The tensors that a body reads as well as writes, or writes in several statements, not by atomics alone."""
    used = [(read_by_itself(stmt), _written_by_itself(stmt), atomic_only(stmt)) for stmt in steps(body)]
    read = frozenset(buffer for reads, _, atomic in used for buffer in reads - atomic)
    ordered = updated_in_several_ways(body).union(buffer for _, writes, atomic in used for buffer in writes - atomic)
    written = [writes for _, writes, _ in used]
    tensors = {buffer.memory for writes in written for buffer in writes if buffer.scope is Scope.GLOBAL}
    return frozenset(
        tensor
        for tensor in tensors
        if is_among(tensor, read)
        or (is_among(tensor, ordered) and sum(is_among(tensor, writes) for writes in written) > 1)
    )


def updated_in_several_ways(body: tuple[Stmt, ...]) -> frozenset[Buffer]:
    """The memory that is updated by sums in one statement and by maxima in another: they do not commute."""
    if not any(isinstance(stmt, (Atomic, AtomicTile)) for stmt in walk_stmts(body)):
        return frozenset()
    updates: set[tuple[Buffer, Reduction | None]] = set()
    for stmt in walk_stmts(body):
        for update in walk_stmts(stmt.body) if isinstance(stmt, Parallel) else (stmt,):
            if isinstance(update, AtomicTile):
                updates.add((update.dst.buffer.memory, update.kind))
            elif isinstance(update, Atomic) and (isinstance(stmt, Parallel) or update.kind is not None):
                updates.add((update.buffer.memory, update.kind))
    return frozenset(
        memory
        for memory, kind in updates
        if any(other_kind is not kind and same_storage(other, memory) for other, other_kind in updates)
    )


def atomic_only(stmt: Stmt) -> frozenset[Buffer]:
    """The buffers whose elements a statement itself reads and writes by atomics only."""
    accesses = own_effects(stmt).accesses
    return _named(accesses) - _named(access for access in accesses if not access.single)


def shared(buffers: Iterable[Buffer]) -> frozenset[Buffer]:
    """The shared tiles that the buffers are, or are views of."""
    return frozenset(buffer.memory for buffer in buffers if buffer.scope is Scope.SHARED)


def has_view_of_other_rows(tile: Buffer, launch: Launch) -> bool:
    """Whether a shared tile is a view with other rows, or has one: then rows must be stored contiguously."""
    return tile.of is not None or any(view.static_shape[:-1] != tile.static_shape[:-1] for view in viewed(launch, tile))


def viewed(launch: Launch, tile: Buffer) -> tuple[Buffer, ...]:
    """The views of this tile's memory in other shapes."""
    return tuple(other for other in launch.tiles if other is not tile and other.memory is tile.memory)


def may_change(expr: Expr, body: tuple[Stmt, ...]) -> bool:
    """Whether statements may change an expression's value."""
    return not keeps(body, of=evaluated(expr))


def covers(op: Parallel, tile: Buffer) -> bool:
    """Whether the loop writes every element of the tile: its variables are the indices."""
    stores = [stmt for stmt in op.body if isinstance(stmt, Store) and stmt.buffer is tile and not stmt.op]
    extents = dict(zip(op.vars, op.extents, strict=True))
    return any(
        len(set(stmt.indices)) == tile.rank
        and all(
            index in extents and static_value(extents[index]) == static_value(extent)
            for index, extent in zip(stmt.indices, tile.shape, strict=True)
        )
        for stmt in stores
    )


def overwrites(stmt: Stmt, tile: Buffer) -> bool:
    """Whether a statement that writes the tile writes all of it."""
    match stmt:
        case Copy() | Fill():
            return stmt.dst.whole and stmt.dst.buffer is tile
        case Reduce():
            return stmt.clear and stmt.dst is tile
        case Gemm():
            return stmt.clear and stmt.c.whole and stmt.c.buffer is tile
        case Parallel():
            return covers(stmt, tile)
        case _:
            return False
