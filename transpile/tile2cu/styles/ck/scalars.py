"""Operations of each thread on single values."""

from tile2cu.core.program import Reduction, Scope
from tile2cu.plan.scalar_ops import Atomic
from tile2cu.styles.ck import vocabulary as words
from tile2cu.styles.ck.expressions import CkPrinter
from tile2cu.styles.ck.support import unsupported

_ATOMIC = {Reduction.SUM: words.ATOMIC_ADD, Reduction.MAX: words.ATOMIC_MAX, Reduction.MIN: words.ATOMIC_MIN}


def atomic(op: Atomic, printer: CkPrinter) -> str:
    """One element of a tensor, updated. Errors: T2C-E034 for other types than those of 32 bits, or a memory order."""
    is_plain = op.kind in _ATOMIC and op.previous is None and not op.order
    if not is_plain or op.buffer.scope is not Scope.GLOBAL or op.buffer.dtype.bits != 32:
        what = "an atomic other than a relaxed update of 32 bits of a tensor, without its old value"
        raise unsupported(what, op.source.span)
    assert op.kind is not None
    value = printer.text(op.value, op.buffer.dtype)
    return f"{_ATOMIC[op.kind]}({printer.element(op.buffer, op.indices)}, {value});"
