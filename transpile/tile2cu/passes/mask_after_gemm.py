"""Masks of GEMMs: after the MMA, and only in tiles that have a masked element."""

import math
from collections.abc import Iterator, Mapping
from itertools import takewhile

from msgspec.structs import replace

from tile2cu.analysis.accesses import buffers_read, with_values
from tile2cu.analysis.bounds import Bounds, bounds_of
from tile2cu.analysis.dependence import keeps, same_storage
from tile2cu.analysis.effects import effects
from tile2cu.analysis.linear import Linear
from tile2cu.analysis.wrapping import may_wrap
from tile2cu.core.expr import (
    Binary,
    Call,
    Const,
    Expr,
    Load,
    Var,
    binary,
    int_const,
    joined,
    negated,
    static_value,
    substitute,
    variables_in,
    walk,
)
from tile2cu.core.program import Gemm, If, Launch, Let, Parallel, Scope, Stmt, Store
from tile2cu.core.rebuild import Body, in_body
from tile2cu.core.record import Record

MASK = "rewrite.mask.after-gemm"


def masks_after_gemms(launch: Launch) -> Launch:
    """The launch with masks after their GEMMs, in branches of tiles with masked elements.

    The GEMM then overwrites its accumulator, and unmasked tiles do not evaluate the mask. A mask is a loop that sets a
    fragment to 0 or minus infinity, directly before GEMMs that add to it, regardless of its old value; it may name the
    values that it compares. Minus infinity plus a finite value is minus infinity, so the result is bit-identical; where
    a GEMM's result is not finite, a masked element becomes minus infinity instead of NaN.
    """

    def change(body: Body, position: int) -> Body | None:
        mask = _mask(*body[position : position + 2])
        if mask is not None:
            return mask.after_gemms(_further(mask, body[position + 2 :]), bounds_of(launch))
        first = position
        while first > 0 and isinstance(body[first], Gemm):
            first -= 1
        mask = _mask(*body[first : first + 2]) if first < position else None
        moved = mask is not None and position <= first + 1 + len(_further(mask, body[first + 2 :]))
        return () if moved else None

    return replace(launch, body=in_body(launch.body, change))


class _Mask(Record, frozen=True):
    """The loop that sets elements to 0 where `visible`, else to minus infinity; `masked` keeps visible ones."""

    loop: Parallel
    mma: Gemm
    visible: Expr  # with values instead of the loop's own names
    masked: tuple[Stmt, ...]

    def after_gemms(self, further: Body, bounds: Bounds) -> Body:
        """The GEMM, which overwrites its accumulator, `further` ones that add to it, and the mask."""
        return replace(self.mma, clear=True), *further, self._where_needed(bounds)

    def _where_needed(self, bounds: Bounds) -> Stmt:
        """The mask, in tiles that have a masked element."""
        needed = some_fails(self.visible, dict(zip(self.loop.vars, self.loop.extents, strict=True)), bounds)
        if needed is None:
            return replace(self.loop, body=self.masked)
        about = f"Replaces masked results of the MMA, in tiles that have masked elements only  [{MASK}]"
        loop = replace(self.loop, body=self.masked, comments=())
        return If(span=self.loop.span, condition=needed, then=(loop,), comments=(*self.loop.comments, about))


def _further(mask: _Mask, behind: Body) -> Body:
    """The GEMMs directly after the first that add to the same accumulator."""
    tile = mask.mma.c.buffer

    def adds(op: Stmt) -> bool:
        return isinstance(op, Gemm) and op.c.buffer is tile and _only_adds(op) and keeps((op,), of=effects(mask.loop))

    return tuple(takewhile(adds, behind))


def _only_adds(op: Gemm) -> bool:
    """Whether a GEMM only adds to its whole accumulator, and is synchronous."""
    operands = (region.buffer for region in op.regions if region is not op.c)
    cleared = op.clear or op.clear_if is not None
    return op.c.whole and not cleared and not op.begun and not any(same_storage(a, op.c.buffer) for a in operands)


def _mask(loop: Stmt, mma: Stmt | None = None) -> _Mask | None:
    """The mask that `loop` is for the GEMM after it, or None."""
    if not isinstance(loop, Parallel) or not isinstance(mma, Gemm) or not loop.body:
        return None
    if not _only_adds(mma) or not keeps((mma,), of=effects(loop)):
        return None
    (*names, store), result = loop.body, mma.c
    if not isinstance(store, Store) or store.op or store.buffer is not result.buffer:
        return None
    if not all(isinstance(name, Let) for name in names) or result.buffer in buffers_read(loop):
        return None
    whole = [static_value(n) for n in loop.extents] == list(result.buffer.static_shape)
    if store.indices != loop.vars or not whole or result.buffer.scope is not Scope.FRAGMENT:
        return None
    choice, element = store.value, Load(store.buffer.dtype, store.buffer, store.indices)
    if not isinstance(choice, Call) or choice.function != "if_then_else":
        return None
    visible, yes, no = choice.args
    args: tuple[Expr, ...]
    match static_value(yes), static_value(no):
        case 0, float() as value if value == -math.inf:
            condition, args = visible, (visible, element, no)
        case float() as value, 0 if value == -math.inf:
            condition, args = negated(visible), (visible, yes, element)
        case _:
            return None
    masked = (*names, replace(store, value=replace(choice, args=args)))
    return _Mask(loop, mma, with_values(condition, names), masked)


def some_fails(condition: Expr, extents: Mapping[Var, Expr], bounds: Bounds) -> Expr | None:
    """When a condition fails for some values of the variables below their extents; None where that is not known.

    Each comparison of a conjunction fails first at an end of each variable's range, unless one of its sums wraps.
    """
    parts = [*conjuncts(condition)]
    known = [fails for part in parts if (fails := _fails_at_an_end(part, extents, bounds)) is not None]
    if len(known) < len(parts):
        return None
    return joined("or", (*known, *(wraps for part in parts for wraps in _wraps(part, extents, bounds))))


def conjuncts(condition: Expr) -> Iterator[Expr]:
    """The conditions that all hold where this one does."""
    if isinstance(condition, Binary) and condition.op == "and":
        yield from conjuncts(condition.lhs)
        yield from conjuncts(condition.rhs)
    else:
        yield condition


def _fails_at_an_end(condition: Expr, extents: Mapping[Var, Expr], bounds: Bounds) -> Expr | None:
    if not isinstance(condition, Binary) or condition.op not in ("<", "<=", ">", ">="):
        return None
    difference = bounds.linear(condition.lhs).plus(bounds.linear(condition.rhs), -1)
    if any(part in extents for atom in difference.terms if atom not in extents for part in walk(atom)):
        return None
    return negated(_at_end(condition, difference, extents, largest=condition.op in ("<", "<=")))


def _wraps(condition: Expr, extents: Mapping[Var, Expr], bounds: Bounds) -> Iterator[Expr]:
    """Conditions that a sum in a comparison wraps between two values of the variables: its largest is below its least.

    So do sums that numbers decide which no launcher knows, also where a wider sum has one.
    """
    for part in walk(condition):
        if may_wrap(bounds, part, as_index=True) and any(var in extents for var in variables_in(part)):
            most, least = (_at_end(part, bounds.linear(part), extents, largest=largest) for largest in (True, False))
            yield binary("<", most, least)


def _at_end(expr: Expr, sum_: Linear, extents: Mapping[Var, Expr], *, largest: bool) -> Expr:
    """An expression where a sum of the variables is largest, or least."""
    ends: dict[Expr, Expr] = {}
    for var, extent in extents.items():
        at_last = (sum_.terms.get(var, 0) > 0) == largest
        ends[var] = binary("-", extent, int_const(1)) if at_last else Const(var.dtype, 0)
    return substitute(expr, ends)
