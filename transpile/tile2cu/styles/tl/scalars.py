"""Operations on single values as C++."""

from tile2cu.core.dtype import INT32
from tile2cu.core.expr import Call, Expr
from tile2cu.core.program import Buffer
from tile2cu.core.record import Record
from tile2cu.plan import scalar_ops
from tile2cu.styles.base.expressions import Printer
from tile2cu.styles.base.scalars import scalar
from tile2cu.styles.tl import vocabulary as tl

ScalarOp = scalar_ops.Assign | scalar_ops.Atomic | scalar_ops.AtomicVector | scalar_ops.Declare | scalar_ops.Store


class Scalars(Record, frozen=True):
    """Prints operations on single values."""

    printer: Printer

    def __call__(self, op: ScalarOp) -> str:
        match op:
            case scalar_ops.Declare() | scalar_ops.Assign():
                return scalar(op, self.printer)
            case scalar_ops.Store():
                target = self.printer.element(op.buffer, op.indices)
                return f"{target} {op.operator}= {self.printer.text(op.value, op.buffer.dtype)};"
            case scalar_ops.Atomic():
                return self._atomic(op)
            case scalar_ops.AtomicVector():
                dst, src = (op.dst, op.dst_indices), (op.src, op.src_indices)
                return f"{tl.ATOMIC_ADD}({self._vector(*dst, op.count)}, {self._vector(*src, op.count)});"

    def _atomic(self, op: scalar_ops.Atomic) -> str:
        name = tl.ATOMIC_STORE if op.kind is None else tl.ATOMIC[op.kind.atomic]
        arguments = [self.printer.element(op.buffer, op.indices), self.printer.text(op.value, op.buffer.dtype)]
        if op.order:
            arguments.append(tl.MEMORY_ORDER[op.order])
        previous = op.previous
        given = f"const {previous.dtype.cpp} {self.printer.names(previous.name)} = " if previous is not None else ""
        return f"{given}{name}({', '.join(arguments)});"

    def _vector(self, buffer: Buffer, indices: tuple[Expr, ...], count: int) -> str:
        *outer, last = indices
        self.printer.names.noting(tl.VEC)
        return self.printer.element(buffer, (*outer, Call(INT32, f"vec<{count}>", (last,))))
