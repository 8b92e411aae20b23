"""Factors of rows that are 1 in most turns: a warp multiplies by them only where one of its rows has another."""

from typing import TYPE_CHECKING

from tile2cu.core.program import Stmt
from tile2cu.core.schedule import RowFactor
from tile2cu.emitter.comments import BODY_WIDTH, wrapped
from tile2cu.emitter.view import StatementView

if TYPE_CHECKING:
    from tile2cu.emitter.statements import Statements


def scaled_where_changed(
    body: tuple[Stmt, ...], factor: RowFactor | None, rule: str, statements: "Statements"
) -> tuple[StatementView, ...]:
    """The statements; those that compute the factor and only multiply by it come first, in a branch of their own."""
    if factor is None:
        return statements.body(body)
    names = statements.printer.names
    before, after = names(factor.before.name), names(factor.after.name)
    skipped = (factor.op, *factor.scaled)
    about = f"most turns leave {after} as it was: they multiply nothing by 1  [{rule}]"
    fill = {"text": f"tl::fill({names(factor.tile.name)}, 1);"}
    ones = StatementView("line", fill, comments=tuple(wrapped(about, BODY_WIDTH)))
    branch = StatementView("branch", {"condition": f"tl::differ({before}, {after})"}, body=statements.body(skipped))
    return (ones, branch, *statements.body(tuple(op for op in body if op not in skipped)))
