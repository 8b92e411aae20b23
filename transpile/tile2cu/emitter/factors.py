"""Factors of rows that are 1 in most turns: a warp multiplies by them only where one of its rows has another."""

from typing import TYPE_CHECKING

from tile2cu.core.program import Stmt
from tile2cu.core.schedule import RowFactor
from tile2cu.styles.base.comments import BODY_WIDTH, wrapped
from tile2cu.styles.base.view import StatementView
from tile2cu.styles.tl.expressions import literal

if TYPE_CHECKING:
    from tile2cu.emitter.statements import Statements


def scaled_where_changed(
    body: tuple[Stmt, ...], factor: RowFactor | None, rule: str, statements: "Statements"
) -> tuple[StatementView, ...]:
    """The statements; those that compute the factor and only multiply by it come first, in a branch of their own."""
    if factor is None:
        return statements.body(body)
    skipped = (factor.op, *factor.scaled)
    branch = StatementView("branch", {"condition": has_changed(factor, statements)}, body=statements.body(skipped))
    return (ones(factor, rule, statements), branch, *statements.body(tuple(op for op in body if op not in skipped)))


def has_changed(factor: RowFactor, statements: "Statements") -> str:
    """Whether a row of the warp has a factor other than 1."""
    names = statements.printer.names
    return f"tl::differ({names(factor.before.name)}, {names(factor.after.name)})"


def ones(factor: RowFactor, rule: str, statements: "Statements") -> StatementView:
    """What the factor is in most turns, and what is written above it."""
    names = statements.printer.names
    about = f"most turns leave {names(factor.after.name)} as it was: they multiply nothing by 1  [{rule}]"
    fill = {"text": f"tl::fill({names(factor.tile.name)}, {literal(1, factor.tile.dtype)});"}
    return StatementView("line", fill, comments=tuple(wrapped(about, BODY_WIDTH)))
