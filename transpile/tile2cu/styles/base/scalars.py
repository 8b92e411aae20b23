"""Variables of each thread, as all styles write them."""

from tile2cu.core.expr import Expr, Var, binary
from tile2cu.core.program import Launch
from tile2cu.plan.scalar_ops import Assign, Declare
from tile2cu.plan.structure import Let
from tile2cu.styles.base.expressions import Printer
from tile2cu.styles.base.view import Declaration


def scalar(op: Let | Declare | Assign, printer: Printer) -> str:
    """A name for a value, a variable, or its new value."""
    match op:
        case Let():
            return _constant(op.var, op.value, printer)
        case Declare():
            return f"{printer.type(op.var.dtype)} {printer.names(op.var.name)} = {printer.text(op.init, op.var.dtype)};"
        case Assign():
            return assigned(op, printer)


def prelude_values(launch: Launch, printer: Printer) -> list[Declaration]:
    """The values that are computed before a kernel's tiles are declared."""
    return [Declaration(_constant(let.var, let.value, printer)) for let in launch.prelude]


def _constant(var: Var, value: Expr, printer: Printer) -> str:
    return f"const {printer.type(var.dtype)} {printer.names(var.name)} = {printer.text(value, var.dtype)};"


def assigned(op: Assign, printer: Printer) -> str:
    """A variable's new value; an augmented assignment that may overflow is one of a sum that wraps."""
    name = printer.names(op.var.name)
    if op.operator and printer.may_wrap(whole := binary(op.operator, op.var, op.value)):
        return f"{name} = {printer.text(whole, op.var.dtype)};"
    return f"{name} {op.operator}= {printer.text(op.value, op.var.dtype)};"
