"""Row sums over all iterations whose warp reduction is deferred past the loop."""

from collections.abc import Iterator

from tile2cu.analysis.accesses import overwrites, viewed
from tile2cu.analysis.prelude import before, outermost
from tile2cu.analysis.uses import is_only_use, users, without, writers
from tile2cu.core.expr import OF_THREAD, Binary, Call, Expr, Load, static_value, walk
from tile2cu.core.program import (
    Buffer,
    Fill,
    Loop,
    Parallel,
    Reduce,
    Reduction,
    Scope,
    Stmt,
    Store,
)
from tile2cu.core.schedule import DeferredReduction
from tile2cu.rules.engine import Context


def running_sums(between: tuple[Stmt, ...], loop: Loop, context: Context) -> Iterator[DeferredReduction]:
    """Row sums that iterations only scale and add to: no lane or warpgroup needs the other partial sums before the end.

    `between` are statements of each iteration, a sum's reduction and its update among them. The sum starts from zero
    before the loop, as all partial sums do, and only these statements of the loop access it; nothing else reads the
    addend.
    """
    body = context.launch.body
    above = before(body, outermost(body, loop))
    for position, reduce in enumerate(between):
        if not isinstance(reduce, Reduce) or not _sums_rows(reduce):
            continue
        others = without(tuple(users(body, reduce.dst)), (reduce,))
        update = next((op for op in between[position:] if isinstance(op, Parallel) and others == (op,)), None)
        total = _adds_to(update, reduce.dst) if update is not None else None
        if update is None or total is None or any(viewed(context.launch, tile) for tile in (total, reduce.dst)):
            continue
        starts = writers(above, total)
        zeroed = len(starts) == 1 and starts[0] in above and _is_zeroed(starts[0], total)
        if zeroed and is_only_use(update, total, loop.body):
            yield DeferredReduction(reduce, update, total)


def _sums_rows(op: Reduce) -> bool:
    of_rows = op.src.scope is Scope.FRAGMENT and (op.src.rank, op.dim) == (2, 1)
    return of_rows and op.kind is Reduction.SUM and op.clear


def _is_zeroed(op: Stmt, tile: Buffer) -> bool:
    return isinstance(op, Fill) and overwrites(op, tile) and static_value(op.value) == 0


def _adds_to(op: Stmt, part: Buffer) -> Buffer | None:
    """The fragment t for which a loop over rows is t = t * f + part, or t = t + part; None for other loops.

    All threads that hold a row have the same f, which does not depend on their partial sums.
    """
    if not isinstance(op, Parallel) or len(op.body) != 1 or not isinstance(op.body[0], Store):
        return None
    store = op.body[0]
    total, added = store.buffer, Load(part.dtype, part, op.vars)
    if total.dtype != part.dtype or store.indices != op.vars:
        return None
    if any((tile.scope, tile.rank) != (Scope.FRAGMENT, 1) for tile in (total, part)):
        return None
    if store.op:
        return total if store.op == "+" and store.value == added else None
    if not isinstance(store.value, Binary) or store.value.op != "+" or added not in (store.value.lhs, store.value.rhs):
        return None
    scaled = store.value.lhs if store.value.rhs == added else store.value.rhs
    factors = [scaled.lhs, scaled.rhs] if isinstance(scaled, Binary) and scaled.op == "*" else [scaled]
    own = Load(total.dtype, total, op.vars)
    if own not in factors:
        return None
    factors.remove(own)
    return total if all(_is_of_row(factor, op, (total, part)) for factor in factors) else None


def _is_of_row(factor: Expr, adds: Parallel, sums: tuple[Buffer, ...]) -> bool:
    """Whether all threads that hold a row have the same factor, which does not depend on their partial sums."""
    return not any(
        (isinstance(part, Load) and (part.indices != adds.vars or part.buffer in sums))
        or (isinstance(part, Call) and part.function in OF_THREAD)
        for part in walk(factor)
    )
