"""Queries about control flow: what is around each statement, and on which conditions it runs."""

from collections.abc import Iterator

from tile2cu.analysis.regions import is_fixed
from tile2cu.core.expr import Expr, Var, negated
from tile2cu.core.program import (
    Assign,
    Atomic,
    Break,
    Continue,
    Declare,
    If,
    Let,
    Loop,
    Parallel,
    Stmt,
    While,
    bodies,
    walk_stmts,
)
from tile2cu.core.record import Record

Body = tuple[Stmt, ...]
Path = tuple[tuple[Stmt, int], ...]  # the statements around one, outermost first, and which of their bodies it is in


class Place(Record, frozen=True):
    """A statement, and its path: the statements around it, outermost first, and which of their bodies it is in."""

    stmt: Stmt
    path: Path

    @property
    def around(self) -> tuple[Stmt, ...]:
        """The loops and branches around the statement, outermost first."""
        return tuple(outer for outer, _ in self.path)

    @property
    def conditions(self) -> tuple[tuple[Expr, bool], ...]:
        """The conditions of the branches around the statement, outermost first, and whether they hold."""
        return conditions_on(self.path)

    @property
    def known(self) -> tuple[Expr, ...]:
        """The conditions that hold at the statement: those around it of values that never change, and that of a branch
        whose arm it begins, since nothing has changed since the branch asked.
        """
        return tuple(
            outer.condition if arm == 0 else negated(outer.condition)
            for outer, arm in self.path
            if isinstance(outer, If) and (bodies(outer)[arm][0] is self.stmt or is_fixed(outer.condition))
        )

    @property
    def always_runs(self) -> bool:
        """Whether the statement runs in each iteration of the loops around it, which are all counted and never left."""
        return not any(
            isinstance(outer, If | While)
            or (isinstance(outer, Loop) and any(isinstance(stmt, Break | Continue) for stmt in walk_stmts(outer.body)))
            for outer in self.around
        )

    @property
    def elements(self) -> dict[Var, Expr]:
        """The variables of the elementwise loops around the statement, with their extents."""
        loops = (outer for outer in self.around if isinstance(outer, Parallel))
        return {var: extent for loop in loops for var, extent in zip(loop.vars, loop.extents, strict=True)}


def places(body: Body, path: Path = ()) -> Iterator[Place]:
    """Where each statement below a body is, in order, outermost first; the body itself is at the end of `path`."""
    for stmt in body:
        yield Place(stmt, path)
        for place, below in enumerate((stmt.body,) if isinstance(stmt, Parallel) else bodies(stmt)):
            yield from places(below, (*path, (stmt, place)))


def places_of_operations(body: Body) -> Iterator[Place]:
    """The same of the statements outside of elementwise loops, each of which is one operation."""
    return (place for place in places(body) if not any(isinstance(outer, Parallel) for outer in place.around))


def steps(body: tuple[Stmt, ...]) -> Iterator[Stmt]:
    """All statements below a body, in order, outermost first, without those in elementwise loops."""
    for stmt in body:
        yield stmt
        for below in bodies(stmt):
            yield from steps(below)


def operations(body: tuple[Stmt, ...]) -> Iterator[Stmt]:
    """The operations of a body, in order, within branches and loops; elementwise loops are one operation."""
    return (stmt for stmt in steps(body) if not bodies(stmt))


def conditions_on(path: Path) -> tuple[tuple[Expr, bool], ...]:
    """The conditions of the branches around a statement, outermost first, and whether they held."""
    return tuple((outer.condition, place == 0) for outer, place in path if isinstance(outer, If))


def arms(branch: If) -> tuple[tuple[Body, bool], tuple[Body, bool]]:
    """The statements that a branch runs, each arm with whether the condition holds there."""
    return (branch.then, True), (branch.orelse, False)


def only_arm(stmt: Stmt) -> tuple[Stmt, ...] | None:
    """The statements of a branch without `else`; None for other statements."""
    return stmt.then if isinstance(stmt, If) and not stmt.orelse else None


def declared_in(body: tuple[Stmt, ...]) -> set[Var]:
    """The variables that statements define, those of serial loops included; others may define the same names."""
    previous = (stmt.previous for stmt in walk_stmts(body) if isinstance(stmt, Atomic))
    named = (stmt.var for stmt in walk_stmts(body) if isinstance(stmt, Let | Declare | Assign | Loop))
    return {*named, *(var for var in previous if var is not None)}
