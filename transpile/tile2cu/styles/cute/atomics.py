"""Atomic updates of single elements, by CUDA's own functions."""

from tile2cu.core.program import Reduction, Scope
from tile2cu.plan.scalar_ops import Atomic
from tile2cu.styles.cute.expressions import CutePrinter
from tile2cu.styles.cute.support import unsupported

_OF_INTEGERS = {
    Reduction.MAX: "atomicMax",
    Reduction.MIN: "atomicMin",
    Reduction.BITAND: "atomicAnd",
    Reduction.BITOR: "atomicOr",
    Reduction.BITXOR: "atomicXor",
}


def atomic_add(op: Atomic, printer: CutePrinter) -> str:
    """One element of memory, updated. Errors: T2C-E034 for other types than those of 32 bits, or a memory order."""
    memory, dtype = op.buffer.scope in (Scope.GLOBAL, Scope.SHARED), op.buffer.dtype.name
    names = {Reduction.SUM: "atomicAdd"} | (_OF_INTEGERS if dtype in ("int32", "uint32") else {})
    name = names.get(op.kind) if op.kind is not None else None
    if not memory or name is None or op.previous is not None or op.order or dtype not in ("float32", "int32", "uint32"):
        raise unsupported(
            "an atomic other than a relaxed update of 32 bits in memory, without its old value", op.source.span
        )
    return f"{name}(&{printer.place(op.buffer, op.indices)}, {printer.text(op.value, op.buffer.dtype)});"
