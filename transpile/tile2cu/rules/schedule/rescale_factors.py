"""Rescale factors of rows that are 1 where two values of a row are equal, as in an online softmax."""

from tile2cu.core.dtype import FLOAT32
from tile2cu.core.expr import Binary, Call, Load, substitute, walk
from tile2cu.core.program import Buffer, Parallel, Scope, Stmt, Store
from tile2cu.core.schedule import RowFactor

_EXPONENTIALS = ("exp", "exp2")
_ROWS = (Scope.FRAGMENT, 1, FLOAT32)


def row_factor(op: Stmt, others: tuple[Stmt, ...]) -> RowFactor | None:
    """The factor that a loop over rows computes, if it is f[i] = exp2(a[i] * c - b[i] * c) or of that form; else None.

    At least one of the `others` only multiplies by it.
    """
    store = _only_store(op)
    if store is None or store.op or len(store.indices) != 1 or not isinstance(store.value, Call):
        return None
    loads = tuple(dict.fromkeys(part for part in walk(store.value) if isinstance(part, Load)))
    tiles = [buffer for buffer in (*(load.buffer for load in loads), store.buffer) if isinstance(buffer, Buffer)]
    if len(tiles) != 3 or any((tile.scope, tile.rank, tile.dtype) != _ROWS for tile in tiles):
        return None
    before, after, tile = tiles
    of_rows = all(load.indices == store.indices for load in loads) and tile not in (before, after)
    is_one = store.value.function in _EXPONENTIALS and _is_difference(store.value.args[0], *loads)
    scaled = tuple(each for each in others if _only_scales(each, tile))
    return RowFactor(op, tile, before, after, scaled) if of_rows and is_one and scaled else None


def keeps_earlier(op: Stmt, factor: RowFactor) -> bool:
    """Whether a loop over rows keeps, under some condition, the earlier one of the two values of the factor."""
    store = op.body[-1] if isinstance(op, Parallel) and op.body else None
    if (
        not isinstance(store, Store)
        or store.op
        or store.buffer is not factor.after
        or not isinstance(store.value, Call)
    ):
        return False
    earlier = Load(factor.before.dtype, factor.before, store.indices)
    return store.value.function == "if_then_else" and earlier in store.value.args[1:]


def _only_store(op: Stmt) -> Store | None:
    """The update of each element by a loop, if it is one store to the element."""
    store = op.body[0] if isinstance(op, Parallel) and len(op.body) == 1 else None
    return store if isinstance(op, Parallel) and isinstance(store, Store) and store.indices == op.vars else None


def _only_scales(op: Stmt, factor: Buffer) -> bool:
    """Whether a loop only multiplies elements of a tile by the factor of their row."""
    store = _only_store(op)
    return store is not None and store.op == "*" and isinstance(store.value, Load) and store.value.buffer is factor


def _is_difference(expr: object, before: Load, after: Load) -> bool:
    """Whether it is a term of `before` less the same term of `after`, or such a difference times a value."""
    if not isinstance(expr, Binary):
        return False
    if expr.op == "-":
        return after not in walk(expr.lhs) and substitute(expr.lhs, {before: after}) == expr.rhs
    return expr.op == "*" and (_is_difference(expr.lhs, before, after) or _is_difference(expr.rhs, before, after))
