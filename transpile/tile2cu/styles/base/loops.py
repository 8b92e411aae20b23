"""Loops of each thread, and how the iterations of pipelined loops are counted."""

from collections.abc import Callable

from tile2cu.core.expr import Binary, Call, Const, Expr, Load, Role, Var, binary, static_value, walk
from tile2cu.core.record import Record
from tile2cu.plan.structure import For
from tile2cu.styles.base import vocabulary as words
from tile2cu.styles.base.expressions import Printer

_IN_A_HEAD = 6  # operations that are read at a glance in a loop's head


def head(op: For, printer: Printer) -> dict[str, str]:
    """The parts of a loop's head."""
    step = int(static_value(op.step) or 0)
    name, stop = printer.names(op.var.name), printer.text(op.stop)
    end = printer.names.fresh(f"{name}_end") if _is_long(op.stop) or op.stop_changes else ""
    return {
        "end": f"const int {end} = {stop};" if end else "",
        "variable": name,
        "start": printer.text(op.start),
        "compare": ">" if step < 0 else "<",
        "stop": end or stop,
        "move": {1: f"++{name}", -1: f"--{name}"}.get(step) or _moved(op, name, printer),
        "unroll": "yes" if op.unrolled else "",
    }


def _moved(op: For, name: str, printer: Printer) -> str:
    """The next iteration's variable. Where no launcher knows the end, a step past it may be past the ints."""
    if printer.may_wrap(binary("+", op.stop, op.step)):
        return f"{name} = {words.SATURATING_ADD}({name}, {printer.text(op.step)})"
    return f"{name} += {printer.text(op.step)}"


class FromZero(Record, frozen=True):
    """A loop whose iterations are numbered from 0: `k` is the number, `variable` declares the user's own from it.

    `trips` is the trip count; `count` names it where it is a number or a name that nothing changes, else it is empty.
    `certain`: it is a number, and not 0.
    """

    k: str
    trips: str
    count: str
    variable: str
    certain: bool

    @classmethod
    def of(cls, var: Var, start: Expr, stop: Expr, printer: Printer, number: Callable[[str], str]) -> "FromZero":
        """Where the loop starts elsewhere, `number` gives its iterations' number a name after the variable's."""
        name, from_zero = printer.names(var.name), static_value(start) == 0
        k = name if from_zero else number(name)
        many = stop if from_zero else binary("-", stop, start)
        # The difference may wrap to a positive number where stop < start: then there is no trip. Where it is larger
        # than 2**31 - 1 it wraps to a negative one: there is no trip either.
        if not from_zero and printer.may_wrap(many):
            many = binary("-", Call(stop.dtype, "max", (start, stop)), start)
        trips, known = printer.text(many), many.value if isinstance(many, Const) else -1
        changes = isinstance(stop, Var) and stop.role is Role.MUTABLE
        is_name = trips.isidentifier() or (from_zero and isinstance(stop, Var))
        return cls(
            k=k,
            trips=trips,
            count=trips if not changes and (is_name or known >= 0) else "",
            variable="" if from_zero else f"const int {name} = {printer.text(start)} + {k};",
            certain=known > 0,
        )


def _is_long(stop: Expr) -> bool:
    """Whether where a loop stops has a name, as it is too long to read in the loop's head; nothing may change it."""
    operations = sum(isinstance(part, Binary | Call) for part in walk(stop))
    moves = any(isinstance(part, Load) or (isinstance(part, Var) and part.role is Role.MUTABLE) for part in walk(stop))
    return operations > _IN_A_HEAD and not moves
