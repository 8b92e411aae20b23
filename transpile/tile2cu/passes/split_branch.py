"""A divergent branch in which a barrier is needed: split, so that all threads of the block reach the barrier.

`if tx < 40: A; B` with a barrier before B is `if tx < 40: A`, the barrier, `if tx < 40: B`. Around loops and branches
in it the condition is distributed to the statements. Each thread executes the same statements in the same order.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import partial, reduce

from msgspec.structs import replace

from tile2cu.analysis.accesses import loaded, variables
from tile2cu.analysis.control import arms, declared_in
from tile2cu.analysis.effects import may_leave
from tile2cu.analysis.prelude import around
from tile2cu.analysis.uniformity import MEMORY, Uniformity, uniformity_of
from tile2cu.analysis.uses import all_expressions, statements, unused
from tile2cu.core.dtype import BOOL
from tile2cu.core.expr import Const, Expr, Role, Unary, Var, binary
from tile2cu.core.program import Assign, Atomic, Declare, If, Launch, Let, Loop, LoopKind, Stmt
from tile2cu.core.rebuild import Body, under_comments, with_expressions, with_instead
from tile2cu.core.record import Record
from tile2cu.core.span import Span
from tile2cu.passes.distribute_branch import declared, is_plain_value, orders_nothing, with_own_names

_SPLIT = (LoopKind.SERIAL, LoopKind.UNROLL)
Conditions = tuple[Expr, ...]


def split_before(launch: Launch, stmt: Stmt) -> Launch | None:
    """The launch in which all threads reach the place before a statement of a divergent branch.

    None where loops on values of single threads are around it, where statements of the branch order others, or where
    groups of threads run independently.
    """
    if launch.groups > 1:
        return None
    splitter = _Splitter(launch, stmt)
    branch = splitter.outermost()
    parts = None if branch is None else splitter.split(branch)
    if branch is None or parts is None:
        return None
    return replace(launch, body=with_instead(launch.body, {id(branch): parts}))


class _Run(Record, frozen=True):
    """Adjacent statements under one condition."""

    condition: Expr
    body: Body
    span: Span

    @property
    def stmts(self) -> Body:
        return (If(condition=self.condition, then=self.body, span=self.span),) if self.body else ()


_Part = _Run | Stmt


@dataclass(eq=False)
class _Splitter:
    launch: Launch
    at: Stmt
    path: tuple[Stmt, ...] = field(init=False)  # around the statement, outermost first
    known: Uniformity = field(init=False)

    def __post_init__(self) -> None:
        self.path = around(self.launch.body, self.at)
        self.known, self.names = uniformity_of(self.launch, MEMORY), declared(self.launch)

    def outermost(self) -> If | None:
        """The outermost divergent branch around the statement, where all threads run each iteration of all loops."""
        if not all(isinstance(stmt, If) or self.is_uniform(stmt) for stmt in self.path):
            return None
        branches = (stmt for stmt in self.path if isinstance(stmt, If))
        return next((branch for branch in branches if not self.known.holds(branch.condition)), None)

    def is_uniform(self, stmt: Stmt) -> bool:
        match stmt:
            case Loop() if stmt.kind in _SPLIT:
                bounds = (stmt.start, stmt.stop, stmt.step)
                fixed = all(map(self.known.holds, bounds)) and not any(map(loaded, bounds))
                return fixed and not may_leave(stmt.body)
            case _:
                return False

    def split(self, branch: If) -> Body | None:
        """The branch as several; None where that is not possible."""
        parts = self.branch(branch, ()) if orders_nothing(branch) else None
        return None if parts is None else under_comments(branch, with_own_names(tuple(parts), self.names))

    def branch(self, branch: If, given: Conditions) -> list[Stmt] | None:
        """A branch under conditions, whose arms are parts under one condition more."""
        named, condition = self.named(branch, given)
        parts = list(named)
        for arm, held in arms(branch):
            part = self.body(arm, (*given, condition if held else Unary(BOOL, "not", condition)), branch.span)
            if part is None:
                return None
            parts += part
        return parts

    def named(self, branch: If, given: Conditions) -> tuple[Body, Expr]:
        """The condition, with a name where its value may be another one behind the barrier."""
        condition = branch.condition
        mutable = any(var.role is Role.MUTABLE for var in variables(condition))
        if not mutable and not loaded(condition):
            return (), condition
        name = unused("taken", self.names)
        self.names[name] = 1
        if not given:
            taken = Var(BOOL, name, Role.LET)
            return (Let(var=taken, value=condition, span=branch.span),), taken
        taken = Var(BOOL, name, Role.MUTABLE)
        assigned = _Run(_all_of(given), (Assign(var=taken, value=condition, span=branch.span),), branch.span)
        return (Declare(var=taken, init=Const(BOOL, False), span=branch.span), *assigned.stmts), taken

    def body(self, body: Body, given: Conditions, span: Span) -> list[Stmt] | None:
        """Statements under conditions: runs of them in branches, with the statement at the beginning of one."""
        found: list[_Part] = []
        run: list[Stmt] = []

        def end_of_run() -> None:
            found.append(_Run(_all_of(given), tuple(run), span))
            run.clear()

        for stmt in body:
            if any(stmt is outer for outer in self.path):
                end_of_run()
                inside = self.inside(stmt, given, span)
                if inside is None:
                    return None
                found += inside
                continue
            if stmt is self.at:
                end_of_run()
            run.append(stmt)
        end_of_run()
        shared = _with_shared_names(found)
        return None if shared is None else [stmt for part in shared for stmt in _stmts(part)]

    def inside(self, stmt: Stmt, given: Conditions, span: Span) -> Sequence[Stmt] | None:
        """A loop or branch around the statement."""
        match stmt:
            case If():
                parts = self.branch(stmt, given)
                return None if parts is None else under_comments(stmt, parts)
            case Loop():
                found = self.body(stmt.body, given, span)
                return None if found is None else (replace(stmt, body=tuple(found)),)
            case _:
                return None


def _with_shared_names(parts: list[_Part]) -> list[_Part] | None:
    """The parts of a body, with names before all of them that one part makes and others use; None where it cannot be.

    Values that every thread may compute are computed by all, others assigned under the part's condition.
    """
    for at, part in enumerate(parts):
        if not isinstance(part, _Run):
            continue
        later = _used(parts[at + 1 :])
        if any(atomic.previous in later for atomic in statements(part.body, Atomic)):
            return None
        named = statements(part.body, Let, Declare, below=False)
        made = next((stmt for stmt in named if stmt.var in later), None)
        if made is not None:
            return _with_shared_names([*parts[:at], *_outside(part, made, parts[at + 1 :])])
    return parts


def _outside(part: _Run, made: Let | Declare, later: list[_Part]) -> list[_Part]:
    """A part, and the later ones, with a name of the part declared before it."""
    stmts = part.body
    position = next(at for at, stmt in enumerate(stmts) if stmt is made)
    before, behind = stmts[:position], stmts[position + 1 :]
    value = made.value if isinstance(made, Let) else made.init
    if is_plain_value(made) and value is not None and not declared_in(before) & variables(value):
        return [made, replace(part, body=(*before, *behind)), *later]
    own = replace(made.var, role=Role.MUTABLE)
    assigned = () if value is None else (Assign(var=own, value=value, span=made.span, comments=made.comments),)
    change = partial(_renamed, made.var, own)
    kept = replace(part, body=(*before, *assigned, *with_expressions(behind, change)))
    return [
        Declare(var=own, init=Const(own.dtype, 0), span=made.span),
        kept,
        *(
            replace(each, condition=with_expressions(each.condition, change), body=with_expressions(each.body, change))
            if isinstance(each, _Run)
            else with_expressions(each, change)
            for each in later
        ),
    ]


def _used(parts: list[_Part]) -> set[Var]:
    """The variables that parts read or assign."""
    stmts = tuple(stmt for part in parts for stmt in _stmts(part))
    assigned = {stmt.var for stmt in statements(stmts, Assign)}
    return assigned | variables(*all_expressions(stmts))


def _stmts(part: _Part) -> Body:
    return part.stmts if isinstance(part, _Run) else (part,)


def _renamed(var: Var, own: Var, part: Expr) -> Expr | None:
    return own if part == var else None


def _all_of(conditions: Conditions) -> Expr:
    return reduce(lambda a, b: binary("and", a, b), conditions)
