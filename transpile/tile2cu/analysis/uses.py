"""Where statements use names: what a pass asks before it gives one, or takes one away."""

from tile2cu.analysis.accesses import buffers_used, expressions, variables
from tile2cu.core.expr import Var
from tile2cu.core.program import Launch, Stmt, walk_stmts


def names_used(body: tuple[Stmt, ...]) -> set[str]:
    """The names of all variables and buffers that statements read, write or declare."""
    used = {buffer.name for stmt in body for buffer in buffers_used(stmt)}
    for stmt in walk_stmts(body):
        used |= {var.name for var in variables(*expressions(stmt))}
        used |= {var.name for var in (*getattr(stmt, "vars", ()), getattr(stmt, "var", None)) if isinstance(var, Var)}
    return used


def names_of(launch: Launch) -> set[str]:
    """The names that something in a launch has already, used or not."""
    own = {tile.name for tile in launch.tiles} | {var.name for var in launch.blocks}
    return own | names_used((*launch.prelude, *launch.body))
