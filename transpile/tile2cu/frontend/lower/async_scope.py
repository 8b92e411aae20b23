"""`with T.attr(..., "async_scope", 1)`: stores of a tensor's elements to shared tiles that are copies by cp.async."""

from collections.abc import Sequence

from msgspec.structs import replace

from tile2cu.analysis.linear import rest_of_sum
from tile2cu.core.dtype import INT32
from tile2cu.core.expr import Address, Call, Expr, Load, Var, int_const, walk
from tile2cu.core.program import Buffer, CallStmt, If, Loop, Scope, Stmt, Store
from tile2cu.core.rebuild import with_bodies
from tile2cu.frontend.fault import Fault

_SIZES = (4, 8, 16)  # bytes that one instruction copies


def asynchronous(body: Sequence[Stmt]) -> tuple[Stmt, ...]:
    """The statements with what they copy begun by cp.async, as T.ptx_cp_async begins it.

    A loop over elements that are adjacent, as T.vectorized makes it, is one copy.
    """
    return tuple(copy for stmt in body for copy in _begun(stmt))


def _begun(stmt: Stmt) -> tuple[Stmt, ...]:
    match stmt:
        case Loop():
            copies = tuple(_copy(each, stmt) for each in stmt.body)
            first, *others = (each for each in copies if each is not None) if None not in copies else (None,)
            if first is not None:
                return (replace(first, comments=(*stmt.comments, *first.comments)), *others)
            return (with_bodies(stmt, asynchronous),)
        case Store() if stmt.buffer.scope is Scope.SHARED:
            copy = _copy(stmt, None)
            if copy is None:
                raise Fault(
                    "T2C-F023",
                    f"cp.async copies 4, 8 or 16 bytes of a tensor to `{stmt.buffer.name}`, and this is no such copy",
                    help="write `for v in T.vectorized(n): S[i, v] = A[j, v]`, or leave T.attr out",
                ).at(stmt.span)
            return (copy,)
        case If():
            return (with_bodies(stmt, asynchronous),)
        case _:
            return (stmt,)


def _copy(stmt: Stmt, loop: Loop | None) -> CallStmt | None:
    """The copy that a store makes in all iterations of a loop; None where it is none that cp.async can do."""
    if not isinstance(stmt, Store) or stmt.op or not isinstance(stmt.value, Load):
        return None
    target, source = stmt.buffer, stmt.value.buffer
    assert isinstance(source, Buffer)
    count = 1 if loop is None else loop.count or 0
    size = count * target.dtype.bytes
    if (target.scope, source.scope) != (Scope.SHARED, Scope.GLOBAL) or target.dtype != source.dtype:
        return None
    if size not in _SIZES or target.dtype.is_packed:
        return None
    ends = []
    for buffer, indices, access in ((target, stmt.indices, "w"), (source, stmt.value.indices, "r")):
        first = indices if loop is None else _first(indices, loop.var)
        if first is None:
            return None
        ends.append(Address(buffer.dtype, buffer, first, access, count))
    call = Call(INT32, f"cp_async<{size}>", (*ends, int_const(size)))
    return CallStmt(call=call, span=stmt.span, comments=stmt.comments, trailing=stmt.trailing)


def _first(indices: tuple[Expr, ...], var: Var) -> tuple[Expr, ...] | None:
    """The indices in a loop's first iteration; None where its iterations are not adjacent along the last dimension."""
    *outer, last = indices
    first = rest_of_sum(last, var)
    alone = first is not None and not any(part == var for index in (*outer, first) for part in walk(index))
    return (*outer, first) if alone and first is not None else None
