"""The operations of a plan on single values: of each thread, or by it on one element of memory."""

from tile2cu.core.expr import Expr, Var
from tile2cu.core.program import Buffer, Reduction
from tile2cu.plan.ops import Op


class Declare(Op, frozen=True, kw_only=True, eq=False):
    """A mutable variable of each thread."""

    var: Var
    init: Expr


class Assign(Op, frozen=True, kw_only=True, eq=False):
    """`var` = `value`; `operator` is that of an augmented assignment, or empty."""

    var: Var
    operator: str
    value: Expr


class Store(Op, frozen=True, kw_only=True, eq=False):
    """One element of `buffer` = `value`; `operator` as for Assign."""

    buffer: Buffer
    indices: tuple[Expr, ...]
    operator: str
    value: Expr


class Atomic(Op, frozen=True, kw_only=True, eq=False):
    """One element of `buffer` is combined with `value`, or stored (no `kind`), in the memory order `order`.

    The order is relaxed where it is empty. `previous` is the name of the element's value before.
    """

    kind: Reduction | None
    buffer: Buffer
    indices: tuple[Expr, ...]
    value: Expr
    order: str
    previous: Var | None


class AtomicVector(Op, frozen=True, kw_only=True, eq=False):
    """`count` neighbours of a row of `dst` are added to by those of `src`, in one instruction where there is one."""

    dst: Buffer
    dst_indices: tuple[Expr, ...]
    src: Buffer
    src_indices: tuple[Expr, ...]
    count: int
