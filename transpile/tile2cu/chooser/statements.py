"""The work of statements: of the operations in loops, in branches, and one after another."""

from collections.abc import Callable, Iterator, Sequence, Set
from itertools import groupby

from msgspec.structs import replace

from tile2cu.analysis.accesses import buffers_used, expressions
from tile2cu.analysis.control import declared_in
from tile2cu.chooser.counts import Count, Counts
from tile2cu.chooser.numbers import Number, Unknown, Values, assignments, key_of, number, parameter_key
from tile2cu.chooser.operations import (
    Surroundings,
    both,
    bytes_of,
    copy,
    elements,
    elementwise,
    gemm,
    inside_of,
    parallel,
)
from tile2cu.core.expr import Expr, Named, Var, walk
from tile2cu.core.fields import fields_of
from tile2cu.core.program import (
    AtomicTile,
    Copy,
    Fill,
    Gemm,
    If,
    Let,
    Loop,
    Parallel,
    Reduce,
    Region,
    Scope,
    Stmt,
    While,
    walk_stmts,
)

_KEPT = 1 << 10  # counts of a loop's body
_ALONE = 4  # first and last iterations of a loop whose work depends on them, counted one by one; others in runs


def body_counter(body: tuple[Stmt, ...], scope: Surroundings) -> Count:
    parts: list[Count] = []
    for lets, stmts in groupby(body, lambda stmt: isinstance(stmt, Let)):
        if lets:
            parts.append(_lets([stmt for stmt in stmts if isinstance(stmt, Let) and key_of(stmt.var) in scope.read]))
        else:
            parts += (part for stmt in stmts if (part := _statement(stmt, scope)) is not None)

    def count(values: Values, counts: Counts, times: int) -> None:
        for part in parts:
            part(values, counts, times)

    return count


def _statement(stmt: Stmt, scope: Surroundings) -> Count | None:
    match stmt:
        case Gemm():
            return gemm(stmt)
        case Copy():
            return copy(stmt, scope)
        case AtomicTile() if stmt.dst.buffer.scope is Scope.GLOBAL:
            return bytes_of("stored", inside_of(stmt.dst), twice=True)
        case Parallel():
            return both(parallel(stmt, scope), elementwise(stmt, scope))
        case Reduce(src=tile) | Fill(dst=Region(buffer=tile)):
            return elements(tuple(map(number, tile.shape)), 1, scope)
        case If() if _matters(stmt.then) or _matters(stmt.orelse):
            return _branch(number(stmt.condition), *(_remembered(arm, scope) for arm in (stmt.then, stmt.orelse)))
        case Loop() if _matters(stmt.body):
            return _loop(stmt, scope)
        case While() if _matters(stmt.body):
            return _raise
        case _:
            return None


def _raise(values: Values, counts: Counts, times: int) -> None:
    raise Unknown


def _matters(body: tuple[Stmt, ...]) -> bool:
    return any(isinstance(stmt, Gemm | Copy | AtomicTile | Parallel | Reduce | Fill) for stmt in walk_stmts(body))


def _lets(lets: Sequence[Let]) -> Count:
    assign = assignments([(key_of(let.var), let.value) for let in lets])
    return lambda values, counts, times: assign(values)


def _branch(condition: Number, then: Count, orelse: Count) -> Count:
    """The arm that the condition selects; where it depends on memory, the first."""

    def count(values: Values, counts: Counts, times: int) -> None:
        try:
            taken = condition(values)
        except Unknown:
            taken = 1
        (then if taken else orelse)(values, counts, times)

    return count


def _loop(stmt: Loop, scope: Surroundings) -> Count:
    has_gemm = any(isinstance(inner, Gemm) for inner in stmt.body)
    counted = has_gemm or id(stmt) in scope.pipelined
    own = replace(scope, inside=scope.inside or counted)
    depends = key_of(stmt.var) in variables_of(stmt.body)
    body = body_counter(stmt.body, own) if depends else _remembered(stmt.body, own)
    start, stop, step = number(stmt.start), number(stmt.stop), number(stmt.step)
    key = key_of(stmt.var)

    def count(values: Values, counts: Counts, times: int) -> None:
        trips = range(start(values), stop(values), step(values) or 1)
        if counted:
            counts.iterations += times * len(trips)
        if not depends:
            if len(trips):
                body(values, counts, times * len(trips))
            return
        for at, repeated in _sampled(trips):
            values[key] = at
            body(values, counts, times * repeated)

    return count


def _sampled(trips: range) -> Iterator[tuple[int, int]]:
    """Iterations, each with how many it stands for: the first and the last ones alone, those between in runs."""
    first, last = trips[:_ALONE], trips[_ALONE:][-_ALONE:]
    between = trips[_ALONE : len(trips) - len(last)]
    yield from ((at, 1) for at in first)
    step = -(-len(between) // _ALONE) or 1
    yield from ((between[at], min(step, len(between) - at)) for at in range(0, len(between), step))
    yield from ((at, 1) for at in last)


def variables_of(body: tuple[Stmt, ...]) -> Set[str]:
    """The keys of the variables on which counts of the body depend, also by way of names for values."""
    exprs: list[Expr] = []
    for stmt in walk_stmts(body):
        match stmt:
            case Loop() if _matters(stmt.body):
                exprs += [stmt.start, stmt.stop, stmt.step]
            case If() if _matters(stmt.then) or _matters(stmt.orelse):
                exprs.append(stmt.condition)
            case _:
                pass
    return _keys_of(exprs, body)


def read_by(body: tuple[Stmt, ...]) -> Set[str]:
    """The keys that counting the body reads: all but those of the places of boxes."""
    exprs: list[Expr] = []
    for stmt in walk_stmts(body):
        boxes = [box for box in fields_of(stmt).values() if isinstance(box, Region)]
        exprs += (part.extent for box in boxes for part in box.ranges)
        exprs += (extent for buffer in buffers_used(stmt) for extent in buffer.shape)
        if not boxes and not isinstance(stmt, Let):
            exprs += expressions(stmt)
    return _keys_of(exprs, body)


def _keys_of(exprs: list[Expr], body: tuple[Stmt, ...]) -> Set[str]:
    """The keys of what expressions read, also by way of names for values of the body."""
    named = {key_of(stmt.var): stmt.value for stmt in walk_stmts(body) if isinstance(stmt, Let)}
    found: set[str] = set()
    while exprs:
        for part in walk(exprs.pop()):
            if isinstance(part, Var | Named):
                key = key_of(part) if isinstance(part, Var) else parameter_key(part.name)
                if key not in found:
                    found.add(key)
                    exprs += [named[key]] if key in named else []
    return found


def _remembered(body: tuple[Stmt, ...], scope: Surroundings) -> Count:
    """As `body_counter`, counted once for the same values of what it reads from outside."""
    parts, found = body_counter(body, scope), dict[tuple[int | None, ...], Callable[[Counts, int], None]]()
    read = sorted(read_by(body) - {key_of(var) for var in declared_in(body)})

    def count(values: Values, counts: Counts, times: int) -> None:
        key = tuple(map(values.get, read))
        add = found.get(key)
        if add is None:
            if len(found) == _KEPT:
                found.clear()
            once = Counts()
            parts(values, once, 1)
            found[key] = add = once.adding()
        add(counts, times)

    return count
