"""Dependences between statements: the only source of legality for rules and passes.

Two statements conflict where one may change what the other reads, or both write: memory by the storage that buffers
name (views and reshapes included) and by boxes, scalars, asynchronous operations, and what synchronises. Unknown is a
conflict.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from enum import Enum
from functools import lru_cache

from tile2cu.analysis.control import declared_in
from tile2cu.analysis.effects import Access, Effects, effects, effects_of
from tile2cu.analysis.regions import disjoint, disjoint_in_other_iterations, is_fixed
from tile2cu.core.expr import Expansion, Expr, Role, Var, int_const, static_value
from tile2cu.core.memo import kept
from tile2cu.core.program import Buffer, Gemm, Let, Loop, Scope, Stmt, While, walk_stmts
from tile2cu.core.record import Record
from tile2cu.core.schedule import Action, Step


class Kind(Enum):
    """Why two statements must keep their order."""

    RAW = "read after write"
    WAR = "write after read"
    WAW = "write after write"
    ORDER = "synchronisation"
    CONTROL = "control flow"


class Dependence(Record, frozen=True):
    """`second` must come after `first`, which is `distance` iterations earlier or more (0: the same iteration)."""

    first: Stmt
    second: Stmt
    kind: Kind
    on: Buffer | Var | None = None
    distance: int = 0

    def __str__(self) -> str:
        what = f" of `{self.on.name}`" if self.on is not None else ""
        return f"line {self.second.span.line} depends on line {self.first.span.line}: {self.kind.value}{what}"


# ---- memory --------------------------------------------------------------------------------------------------


def same_storage(a: Buffer, b: Buffer) -> bool:
    """Whether two buffers may alias.

    Tensor arguments do not alias where one is written (the kernel's contract); a tensor at an address that the kernel
    computes may be anywhere in global memory.
    """
    one, other = a.memory, b.memory
    if one is other or (one.name == other.name and one == other):
        return True
    both_global = a.scope is Scope.GLOBAL and b.scope is Scope.GLOBAL
    return both_global and (one.address is not None or other.address is not None)


def is_among(buffer: Buffer, written: Iterable[Buffer]) -> bool:
    """Whether a buffer may alias one of those that are written."""
    return any(same_storage(buffer, each) for each in written)


def may_overlap(a: Access, b: Access) -> bool:
    """Whether two accesses, of one iteration of all enclosing loops, may access the same element."""
    if not same_storage(a.buffer, b.buffer):
        return False
    if a.buffer is not b.buffer and a.buffer.shape != b.buffer.shape:
        return True  # boxes of different shapes do not compare
    return not any(map(disjoint, a.box, b.box))


def _may_conflict_later(a: Access, b: Access, loop: "_Carrier") -> bool:
    """Whether an access of one iteration may access the same element as another one of a later iteration."""
    if not same_storage(a.buffer, b.buffer):
        return False
    if a.buffer is not b.buffer and a.buffer.shape != b.buffer.shape:
        return True
    step = static_value(loop.step)
    if not isinstance(step, int):
        return True
    expanded = _expansion(loop)
    boxes = (tuple(extent and (expanded(extent[0]), expanded(extent[1])) for extent in each.box) for each in (a, b))
    return not any(disjoint_in_other_iterations(x, y, loop.var, step, loop.names) for x, y in zip(*boxes, strict=True))


def commute(a: Access, b: Access) -> bool:
    """Whether two updates of an element commute: atomics of one kind that return nothing."""
    return a.combines is not None and a.combines is b.combines


# ---- conflicts -----------------------------------------------------------------------------------------------

Conflict = tuple[Kind, Buffer | Var | None]


class _Carrier(Record, frozen=True):
    """A loop that carries dependences: its variable and step, where it has one, and the names that each iteration gives
    values of its own. `values` are those that its other names have for the iteration.
    """

    var: Var | None
    step: Expr
    names: frozenset[Var]
    values: tuple[tuple[Var, Expr], ...]


def conflicts(first: Effects, second: Effects, carried_by: Loop | While | None = None) -> tuple[Conflict, ...]:
    """The dependences of `second` on `first`, each once; carried by a loop, where one is given."""
    return _conflicts(first, second, None if carried_by is None else _carrier(carried_by))


@kept
def _carrier(loop: Loop | While) -> _Carrier:
    lets = [stmt for stmt in walk_stmts(loop.body) if isinstance(stmt, Let)]
    defined = Counter(let.var for let in lets)  # branches may define a name each
    values = {let.var: let.value for let in lets if defined[let.var] == 1 and is_fixed(let.value)}
    names = frozenset(declared_in(loop.body) - values.keys())
    var, step = (loop.var, loop.step) if isinstance(loop, Loop) else (None, int_const(1))
    return _one_of_each(var, step, names, tuple(values.items()))


_one_of_each = lru_cache(maxsize=1 << 10)(_Carrier)  # answers are kept by identity


@kept
def _expansion(loop: _Carrier) -> Expansion:
    return Expansion(dict(loop.values))


@kept
def _conflicts(first: Effects, second: Effects, loop: _Carrier | None) -> tuple[Conflict, ...]:
    """The same: of two statements also where the loop has other statements now."""
    found = (
        *_in_memory(first, second, loop),
        *_in_scalars(first, second, loop is not None),
        *_in_order(first, second),
    )
    return tuple(dict.fromkeys(found))


def _in_memory(first: Effects, second: Effects, loop: _Carrier | None) -> Iterator[Conflict]:
    pairs = (
        (Kind.RAW, first.writes, second.reads),
        (Kind.WAR, first.reads, second.writes),
        (Kind.WAW, first.writes, second.writes),
    )
    for kind, befores, afters in pairs:
        if not befores or not afters:
            continue
        found: set[Buffer] = set()
        anywhere = any(map(_is_anywhere, (*befores, *afters)))
        by_name = {} if anywhere else _by_name(afters)
        for a in befores:
            for b in afters if anywhere else by_name.get(a.root.name, ()):
                if b.root in found:
                    continue
                meet = may_overlap(a, b) if loop is None else _may_conflict_later(a, b, loop)
                if meet and not commute(a, b):
                    found.add(b.root)
                    yield kind, b.root


def _is_anywhere(access: Access) -> bool:
    """Whether an access is to a tensor at an address that the kernel computes."""
    return access.root.address is not None


def _by_name(accesses: Iterable[Access]) -> dict[str, list[Access]]:
    """Accesses by the name of the storage: those to storage of different names do not alias."""
    found: dict[str, list[Access]] = {}
    for access in accesses:
        found.setdefault(access.root.name, []).append(access)
    return found


def _in_scalars(first: Effects, second: Effects, carried: bool) -> Iterator[Conflict]:
    for var in first.scalars_written & second.scalars_read:
        if not (carried and var.role is Role.LET):  # each iteration names a value of its own before it uses it
            yield Kind.RAW, var
    for var in first.scalars_read & second.scalars_written:
        yield Kind.WAR, var
    for var in first.scalars_written & second.scalars_written:
        yield Kind.WAW, var


def _in_order(first: Effects, second: Effects) -> Iterator[Conflict]:
    for a, b in ((first, second), (second, first)):
        if a.orders and (b.orders or any(_is_ordered(access.buffer) for access in b.accesses)):
            yield Kind.ORDER, None
        if (a.starts or a.awaits) and (b.starts or b.awaits or b.accesses):
            yield Kind.ORDER, None
        if a.may_leave and (b.writes or b.scalars_written or b.orders or b.starts or b.awaits or b.may_leave):
            yield Kind.CONTROL, None
        if a.may_not_terminate and (b.orders or any(access.root.scope is Scope.GLOBAL for access in b.writes)):
            yield Kind.CONTROL, None


def _is_ordered(buffer: Buffer) -> bool:
    """Whether other threads may see a buffer's elements, so that barriers order accesses to them."""
    return buffer.memory.scope in (Scope.GLOBAL, Scope.SHARED, Scope.BARRIER, Scope.FRAGMENT)


def depends(first: Stmt, second: Stmt) -> bool:
    """Whether `second`, which follows in the same iteration, must come after `first`."""
    return bool(conflicts(effects(first), effects(second)))


def may_swap(first: Stmt, second: Stmt) -> bool:
    """Whether two statements of one body commute."""
    return not depends(first, second)


def keeps(body: Iterable[Stmt], *, of: Effects) -> bool:
    """Whether statements change nothing that `of` reads: evaluated after them, it has the same value."""
    found = [effects(stmt) for stmt in body]
    if any(each.scalars_written & of.scalars_read for each in found):
        return False
    return not any(may_overlap(a, b) for each in found for a in each.writes for b in of.reads)


def may_repeat(stmt: Stmt, behind: Sequence[Stmt]) -> bool:
    """Whether a statement, executed again after others, would change nothing: its results are unchanged."""
    own = effects(stmt)
    kept = keeps((stmt, *behind), of=own)
    return kept and not any(may_overlap(a, b) for other in behind for a in effects(other).writes for b in own.writes)


def is_parallel(loop: Loop) -> bool:
    """Whether a loop's iterations may run in any order, or concurrently: none depends on an earlier one."""
    body = effects_of(loop.body)
    return not conflicts(body, body, loop)


def dependences(
    body: Sequence[Stmt], loop: Loop | None = None, *, but: Callable[[Stmt, Stmt, int], bool] | None = None
) -> Iterator[Dependence]:
    """All dependences among the statements of a body; with those from one iteration of a loop to later ones.

    Those of a first statement, a second one and a distance that are excepted by `but` are left out.
    """
    found = tuple(map(effects, body))
    related = _related(found)
    for position, second in enumerate(body):
        for place in related[position]:
            if place < position and not (but and but(body[place], second, 0)):
                for kind, on in conflicts(found[place], found[position]):
                    yield Dependence(body[place], second, kind, on)
    for position, first in enumerate(body) if loop is not None else ():
        for place in related[position]:
            if but and but(first, body[place], 1):
                continue
            for kind, on in conflicts(found[position], found[place], loop):
                yield Dependence(first, body[place], kind, on, 1)


def _related(found: Sequence[Effects]) -> list[list[int]]:
    """For each statement's effects the places of those that may conflict with them, in order: by what both use."""
    everywhere = [place for place, each in enumerate(found) if _may_order(each)]
    users: dict[str | Var, list[int]] = {}
    writers: dict[str | Var, list[int]] = {}
    used = [_used(each) for each in found]
    for place, (reads, writes) in enumerate(used):
        for key in writes:
            writers.setdefault(key, []).append(place)
        for key in reads | writes:
            users.setdefault(key, []).append(place)
    ordered = set(everywhere)
    return [
        [*range(len(found))]
        if place in ordered
        else sorted(
            {
                *everywhere,
                *(other for key in writes for other in users[key]),
                *(other for key in reads for other in writers.get(key, ())),
            }
        )
        for place, (reads, writes) in enumerate(used)
    ]


def _used(found: Effects) -> tuple[frozenset[str | Var], frozenset[str | Var]]:
    """What a statement reads and writes: names of storage, and scalars."""
    reads: frozenset[str | Var] = frozenset(access.root.name for access in found.reads)
    writes: frozenset[str | Var] = frozenset(access.root.name for access in found.writes)
    return reads | found.scalars_read, writes | found.scalars_written


def _may_order(found: Effects) -> bool:
    """Whether a statement may conflict with those that use nothing that it uses."""
    orders = found.orders or found.starts or found.awaits or found.may_leave or found.may_not_terminate
    return bool(orders) or any(map(_is_anywhere, found.accesses))


# ---- schedules -----------------------------------------------------------------------------------------------


Versions = dict[Buffer, int]  # how many copies a buffer has, of which iteration k uses copy k % n


def broken_by(
    steps: Sequence[Step], body: Sequence[Stmt], loop: Loop, versions: Versions | None = None
) -> list[Dependence]:
    """The dependences of a loop's body that a schedule does not keep; none where the schedule is legal.

    A dependence of distance d is kept where the first statement's end, d iterations before, precedes the second one's
    start. Between different iterations writes to a buffer of n versions conflict only every n iterations. Tensor cores
    execute MMAs of one accumulator in order, so that one may start before the wait for an earlier one (PTX ISA,
    'wgmma': accumulators of the same shape).
    A `continue` or `break` ends the trip of the loop that it is in: no part of its iteration, or of another one that
    the trip has, may be in a different trip.
    """
    begin, end = _positions(steps)
    copies = versions or {}

    def ordered(first: Stmt, second: Stmt, distance: int) -> bool:
        """Whether a schedule keeps the order of two statements, and so all dependences between them."""
        if id(first) not in end or id(second) not in begin:
            return False
        later, at = begin[id(second)]
        return end[id(first)] < (later + distance, at)

    broken = [each for each in dependences(body, loop, but=ordered) if not _is_kept(each, begin, end, copies)]
    return broken + list(_of_other_trips(steps))


def _of_other_trips(steps: Sequence[Step]) -> Iterator[Dependence]:
    for leaving in (step for step in steps if effects(step.stmt).may_leave):
        for step in steps:
            if step.shift != leaving.shift:
                yield Dependence(leaving.stmt, step.stmt, Kind.CONTROL)


def _positions(steps: Sequence[Step]) -> tuple[dict[int, tuple[int, int]], dict[int, tuple[int, int]]]:
    """Where each statement begins and ends: (iterations later, place)."""
    begin = {id(step.stmt): (step.shift, at) for at, step in enumerate(steps) if step.action is not Action.WAIT}
    end = {id(step.stmt): (step.shift, at) for at, step in enumerate(steps) if step.action is not Action.START}
    return begin, end


def _is_kept(
    found: Dependence, begin: dict[int, tuple[int, int]], end: dict[int, tuple[int, int]], versions: Versions
) -> bool:
    first, second = id(found.first), id(found.second)
    if first not in end or second not in begin:
        return False
    if _accumulates(found):
        end = begin
    distance = found.distance
    if distance and isinstance(found.on, Buffer) and found.kind is not Kind.RAW:
        distance = versions.get(found.on.memory, 1)
    elif distance and isinstance(found.on, Buffer) and found.on.memory in versions:
        return True  # what a copy holds is of its own iteration
    later, at = begin[second]
    return end[first] < (later + distance, at)


def _accumulates(found: Dependence) -> bool:
    """Whether it is a dependence of MMAs on their common accumulator, which no operand shares."""
    first, second = found.first, found.second
    if not isinstance(first, Gemm) or not isinstance(second, Gemm):
        return False
    if first.c.buffer is not second.c.buffer or first.c.ranges != second.c.ranges:
        return False
    operands = (region.buffer.memory for mma in (first, second) for region in (mma.a, mma.b))
    return found.on is first.c.buffer.memory and all(memory is not found.on for memory in operands)
