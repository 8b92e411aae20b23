"""Names for values that the kernel computes."""

from tile2cu.core.expr import Expr, Role, Var, depends_on_thread
from tile2cu.core.program import Let
from tile2cu.frontend.context import Context
from tile2cu.frontend.values import as_expr


def let(cx: Context, name: str, value: Expr) -> Var:
    """Name an immutable value of the program."""
    written = as_expr(value)
    assert written is not None
    var = cx.recorder.variable(name, value.dtype, Role.THREAD if depends_on_thread(written) else Role.LET)
    cx.recorder.emit(Let(var=var, value=written, **cx.recorder.take().fields))
    return var
