"""Accesses of tiles that are outside of them in all iterations: no run of the kernel could be right."""

from collections.abc import Iterator

from tile2cu.analysis.accesses import expressions
from tile2cu.analysis.bounds import Bounds, Interval, bounds_of
from tile2cu.core.errors import Tile2CuError
from tile2cu.core.expr import Binary, Call, Const, Expr, Load, Named, Unary, Var, binary, children, static_value, walk
from tile2cu.core.program import (
    Atomic,
    AtomicTile,
    Buffer,
    Copy,
    Fill,
    Gemm,
    If,
    Launch,
    Loop,
    Parallel,
    Region,
    Scope,
    Stmt,
    Store,
    While,
)
from tile2cu.core.span import Span

_NOTHING = Interval(None, None)
# An end of a range that is larger than any tile: it follows from the limits of int32 alone.
_FAR = 1 << 20


def require_inside(launch: Launch) -> None:
    """Reject an element or part of a tile that is outside of it in all iterations that may reach it.

    Tensors are left out: what is outside of them is zero, and is not written.
    """
    bounds = bounds_of(launch)
    for stmt in _reached(launch.body, bounds):
        for expr in expressions(stmt):
            for load in _loads(expr, bounds):
                if isinstance(load.buffer, Buffer):
                    _require_element(load.buffer, load.indices, stmt.span, bounds)
        if isinstance(stmt, Store | Atomic):
            _require_element(stmt.buffer, stmt.indices, stmt.span, bounds)
        for region in _regions(stmt):
            _require_part(region, stmt.span, bounds)


def _reached(body: tuple[Stmt, ...], bounds: Bounds) -> Iterator[Stmt]:
    """The statements below a body but for those that are known never to run."""
    for stmt in body:
        yield stmt
        match stmt:
            case If(condition=condition):
                yield from () if _never(condition, bounds) else _reached(stmt.then, bounds)
                yield from () if _always(condition, bounds) else _reached(stmt.orelse, bounds)
            case While() if not _never(stmt.condition, bounds):
                yield from _reached(stmt.body, bounds)
            case Loop() if not _is_empty(stmt, bounds):
                yield from _reached(stmt.body, bounds)
            case Parallel() if all(static_value(extent) != 0 for extent in stmt.extents):
                yield from _reached(stmt.body, bounds)
            case _:
                pass


def _is_empty(loop: Loop, bounds: Bounds) -> bool:
    """Whether a loop is known to have no iteration."""
    step = static_value(loop.step)
    first, last = (loop.start, loop.stop) if step is None or step > 0 else (loop.stop, loop.start)
    return step is None or _always(binary(">=", first, last), bounds)


def _never(condition: Expr, bounds: Bounds) -> bool:
    return _truth(condition, bounds) is False


def _always(condition: Expr, bounds: Bounds) -> bool:
    return _truth(condition, bounds) is True


def _truth(condition: Expr, bounds: Bounds) -> bool | None:
    """What a condition is by the ranges of what it compares; None where it may be either."""
    match bounds.expanded(condition) if isinstance(condition, Var) else condition:
        case Unary(op="not", operand=operand):
            found = _truth(operand, bounds)
            return None if found is None else not found
        case Binary(op="and" | "or" as op, lhs=lhs, rhs=rhs):
            decisive = op == "or"
            sides = (_truth(lhs, bounds), _truth(rhs, bounds))
            return decisive if decisive in sides else None if None in sides else not decisive
        case Binary(op="<" | "<=" | ">" | ">=" | "==" | "!=" as op, lhs=lhs, rhs=rhs) if lhs.dtype.is_int:
            return _compared(op, _range(lhs, bounds), _range(rhs, bounds))
        case other:
            value = static_value(other)
            return None if value is None else bool(value)


def _compared(op: str, lhs: Interval, rhs: Interval) -> bool | None:
    match op:
        case ">" | ">=":
            return _compared("<" if op == ">" else "<=", rhs, lhs)
        case "!=":
            equal = _compared("==", lhs, rhs)
            return None if equal is None else not equal
        case "==":
            if _before(lhs, rhs) or _before(rhs, lhs):
                return False
            return True if lhs == rhs and lhs.low is not None and lhs.low == lhs.high else None
        case "<":
            return True if _before(lhs, rhs) else False if _before(rhs, lhs, at=True) else None
        case _:
            return True if _before(lhs, rhs, at=True) else False if _before(rhs, lhs) else None


def _before(one: Interval, other: Interval, *, at: bool = False) -> bool:
    """Whether all numbers of one range are less than all of another one, or `at` most as large."""
    return one.high is not None and other.low is not None and one.high < other.low + at


def _range(index: Expr, bounds: Bounds) -> Interval:
    """The range of an integer; nothing is known of what may wrap at zero."""
    parts = (part for part in walk(index) if part.dtype.kind == "uint")
    wraps = any((low := bounds.interval(part).low) is None or low < 0 for part in parts)
    return _NOTHING if wraps or not index.dtype.is_int else bounds.interval(index)


def _loads(expr: Expr, bounds: Bounds) -> Iterator[Load]:
    """The elements that an expression reads but for those of arms that are known never to be taken."""
    match expr:
        case Call(function="if_then_else", args=(condition, then, orelse)):
            parts = [condition]
            parts += [] if _never(condition, bounds) else [then]
            parts += [] if _always(condition, bounds) else [orelse]
        case Binary(op="and" | "or" as op, lhs=lhs, rhs=rhs):
            parts = [lhs] if _truth(lhs, bounds) is (op == "or") else [lhs, rhs]
        case _:
            parts = list(children(expr))
    if isinstance(expr, Load):
        yield expr
    for part in parts:
        yield from _loads(part, bounds)


def _regions(stmt: Stmt) -> tuple[Region, ...]:
    match stmt:
        case Copy() | AtomicTile():
            return (stmt.src, stmt.dst)
        case Gemm():
            return stmt.regions
        case Fill():
            return (stmt.dst,)
        case _:
            return ()


def _require_element(buffer: Buffer, indices: tuple[Expr, ...], span: Span, bounds: Bounds) -> None:
    if buffer.scope is Scope.GLOBAL:
        return
    for dim, (index, extent) in enumerate(zip(indices, buffer.static_shape, strict=True)):
        found = _range(index, bounds)
        if _is_outside(found, extent):
            raise _outside(f"index {_text(index)} {_runs(found)},", buffer, dim, span, below=not _past(found, extent))


def _require_part(region: Region, span: Span, bounds: Bounds) -> None:
    buffer = region.buffer
    if buffer.scope is Scope.GLOBAL:
        return
    for dim, (part, extent) in enumerate(zip(region.ranges, buffer.static_shape, strict=True)):
        first, count = _range(part.start, bounds), static_value(part.extent)
        if not count:
            continue
        if _is_outside(first, extent - int(count) + 1):
            what = f"a part of {count} elements at {_text(part.start)}, which {_runs(first)}, reaches"
            raise _outside(what, buffer, dim, span, below=not _past(first, extent - int(count) + 1))


def _is_outside(found: Interval, extent: int) -> bool:
    """Whether a range is below zero, or at an extent or behind; an empty one is nowhere."""
    empty = found.low is not None and found.high is not None and found.low > found.high
    return not empty and (_past(found, extent) or (found.high is not None and found.high < 0))


def _past(found: Interval, extent: int) -> bool:
    return found.low is not None and found.low >= extent


def _outside(what: str, buffer: Buffer, dim: int, span: Span, *, below: bool) -> Tile2CuError:
    extent = buffer.static_shape[dim]
    message = f"{what} outside of dimension {dim} of `{buffer.name}` of {extent} elements"
    help = f"only a number counts from the end; add {extent} to an index that should" if below else ""
    return Tile2CuError("T2C-F024", message, span, help=help)


def _runs(found: Interval) -> str:
    low, high = (None if end is None or abs(end) > _FAR else end for end in (found.low, found.high))
    if found.low == found.high or (low is None and high is None):
        return f"is always {found.low}" if found.low == found.high else f"runs from {found.low} to {found.high}"
    if high is None:
        return f"runs from {low} on"
    return f"runs up to {high}" if low is None else f"runs from {low} to {high}"


def _text(index: Expr, *, factor: bool = False) -> str:
    """An index in Python's words; dots denote what is longer than that."""
    match index:
        case Var() | Named():
            return index.name
        case Const():
            return str(index.value)
        case Binary(op="+" | "-" | "*" | "//" | "%" as op, lhs=lhs, rhs=rhs):
            inner = op not in "+-"
            text = f"{_text(lhs, factor=inner)} {op} {_text(rhs, factor=inner or op == '-')}"
            return f"({text})" if factor else text
        case _:
            return "..."
