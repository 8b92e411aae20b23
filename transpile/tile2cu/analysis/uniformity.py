"""Values that are uniform over the threads of a block: a barrier may only be in branches on such values."""

from collections.abc import Callable, Iterator
from functools import cached_property

from tile2cu.analysis.accesses import expressions
from tile2cu.analysis.dependence import is_among
from tile2cu.analysis.sync_calls import BLOCK_VOTES
from tile2cu.analysis.uses import exits, roots_written
from tile2cu.core.expr import Address, Call, Const, Expr, Load, Named, Role, Var, children, is_of_thread
from tile2cu.core.memo import kept
from tile2cu.core.program import (
    Assign,
    Atomic,
    Break,
    Buffer,
    Continue,
    Copy,
    Declare,
    Fill,
    Gemm,
    If,
    Launch,
    Let,
    Loop,
    Parallel,
    Reduce,
    Scan,
    Scope,
    Stmt,
    Store,
    While,
)

_PRIVATE = (Scope.LOCAL, Scope.FRAGMENT)
MEMORY = (Scope.SHARED, Scope.GLOBAL)
BLOCK_MEMORY = (Scope.SHARED,)


@kept
def uniformity_of(launch: Launch, ordered: tuple[Scope, ...] = ()) -> "Uniformity":
    """The uniform values of a launch, where barriers order the memory `ordered`: BLOCK_MEMORY, MEMORY, or none."""
    return Uniformity(launch, ordered=ordered)


class Uniformity:
    """The uniform values of a launch.

    In memory that is `ordered` by barriers, all threads read an element between the same two writes of it. In a part of
    the block, `uniform_branches` decides for branches of which all of its threads take the same arm.
    """

    def __init__(
        self,
        launch: Launch,
        *,
        ordered: tuple[Scope, ...] = (),
        uniform_branches: Callable[[If], bool] = lambda branch: False,
    ) -> None:
        self._ordered, self._uniform_branches = ordered, uniform_branches
        lets = [*launch.prelude, *(stmt for stmt in launch.statements if isinstance(stmt, Let))]
        self._values = {let.var: let.value for let in lets}
        self._launch = launch
        self._previous = {stmt.previous for stmt in launch.statements if isinstance(stmt, Atomic)}
        self._held: dict[Expr, bool] = {}  # answers, for what is known to vary and the indices below
        self._only_read: dict[Buffer, bool] = {}
        self._indices: tuple[Var, ...] = ()  # of the iteration whose stores are examined

    @cached_property
    def _varying(self) -> set[str]:
        """The mutable scalars, private arrays and fragments that vary, once a value depends on one."""
        self.__dict__["_varying"] = found = set[str]()
        known = -1
        while known != len(found):  # an assigned value may vary itself: up to a fixpoint
            known = len(found)
            self._visit(self._launch.body, divergent=False)
        return found

    @cached_property
    def _written(self) -> set[Buffer]:
        return roots_written(self._launch.body)

    def holds(self, expr: Expr) -> bool:
        """Whether all threads of a block compute the same value."""
        if isinstance(expr, Const | Named):
            return True
        held = self._held.get(expr)
        if held is None:
            vote = isinstance(expr, Call) and expr.function in BLOCK_VOTES
            held = self._held[expr] = vote or (self._part(expr) and all(map(self.holds, children(expr))))
        return held

    def _part(self, part: Expr) -> bool:
        """Whether one part of an expression, apart from its operands, is uniform."""
        match part:
            case Var(role=Role.THREAD | Role.PARALLEL):
                return part in self._indices
            case Var(role=Role.MUTABLE):
                return part.name not in self._varying
            case Var() if part in self._previous:
                return False  # each thread's atomic returned the value at its time
            case Var() if part in self._values:
                return self.holds(self._values[part])
            case Load():
                assert isinstance(part.buffer, Buffer)
                return self.holds_in(part.buffer)
            case Call() | Address():
                return not is_of_thread(part)
            case _:
                return True

    def holds_in(self, buffer: Buffer) -> bool:
        """Whether an element at a uniform index is the same for all threads that read it."""
        if buffer.scope in _PRIVATE:
            return buffer.memory.name not in self._varying
        if buffer.scope in self._ordered:
            return True
        if buffer not in self._only_read:
            self._only_read[buffer] = buffer.scope is Scope.GLOBAL and not is_among(buffer, self._written)
        return self._only_read[buffer]

    def _visit(self, body: tuple[Stmt, ...], *, divergent: bool) -> None:
        """Records variables that get different values in different threads, or only in some of them."""
        for stmt in body:
            match stmt:
                case If():
                    inside = divergent or not self._is_uniform_branch(stmt)
                    self._visit(stmt.then, divergent=inside)
                    self._visit(stmt.orelse, divergent=inside)
                case While():
                    same = self.holds(stmt.condition) and not self.has_diverging_exit(stmt.body)
                    self._visit(stmt.body, divergent=divergent or not same)
                case Loop():
                    same = self.holds(stmt.start) and self.holds(stmt.stop) and not self.has_diverging_exit(stmt.body)
                    self._visit(stmt.body, divergent=divergent or not same)
                case Parallel():
                    kept = () if divergent else self._elements(stmt)
                    self._visit(tuple(each for each in stmt.body if each not in kept), divergent=True)
                case _:
                    self._assign(stmt, divergent)

    def _elements(self, loop: Parallel) -> tuple[Stmt, ...]:
        """The stores to fragments that give an element one value, whichever threads execute its iteration.

        A fragment that is read at an index which is no loop variable is replicated: each thread has all elements.
        """
        self._indices, self._held = loop.vars, {}
        stores = (stmt for stmt in loop.body if isinstance(stmt, Store) and stmt.buffer.scope is Scope.FRAGMENT)
        kept = tuple(stmt for stmt in stores if stmt.indices == loop.vars and self.holds(stmt.value))
        self._indices, self._held = (), {}
        return kept

    def _is_uniform_branch(self, branch: If) -> bool:
        """Whether all threads take the same arm of a branch."""
        return self.holds(branch.condition) or self._uniform_branches(branch)

    def taken_by_all(self, stmt: If | While | Loop) -> bool:
        """Whether all threads run the same arm of a branch, or each iteration of a loop."""
        left = not isinstance(stmt, If) and self.is_left_by_some(stmt.body)
        return all(map(self.holds, expressions(stmt))) and not left

    def is_left_by_some(self, body: tuple[Stmt, ...]) -> bool:
        """Whether some threads may leave the loop around a body before others do."""
        return self.has_diverging_exit(body, Break)

    def has_diverging_exit(self, body: tuple[Stmt, ...], *kinds: type[Break | Continue]) -> bool:
        """Whether some threads leave the loop around a body, or its iteration, and others do not."""
        return any(self.diverging_exits(body, *kinds))

    def diverging_exits(self, body: tuple[Stmt, ...], *kinds: type[Break | Continue]) -> Iterator[If]:
        """The branches by which some threads leave the loop around a body, or its iteration, and others do not."""
        found = (self.diverging_exit(stmt, *kinds) for stmt in body)
        return (branch for branch in found if branch is not None)

    def diverging_exit(self, stmt: Stmt, *kinds: type[Break | Continue]) -> If | None:
        """The branch by which some threads leave the loop around a statement, or its iteration, and others do not."""
        leaving = kinds or (Break, Continue)
        if not isinstance(stmt, If) or not any(isinstance(each, leaving) for each in exits((stmt,))):
            return None
        if not self._is_uniform_branch(stmt):
            return stmt
        inside = (self.diverging_exit(each, *leaving) for each in (*stmt.then, *stmt.orelse))
        return next((branch for branch in inside if branch is not None), None)

    def _assign(self, stmt: Stmt, divergent: bool) -> None:
        values: tuple[Expr, ...] = ()
        match stmt:
            case Declare():
                name, values = stmt.var.name, () if stmt.init is None else (stmt.init,)
            case Assign():
                name, values = stmt.var.name, (stmt.value,)
            case Store() if stmt.buffer.scope in _PRIVATE:
                name, values = stmt.buffer.memory.name, (stmt.value, *stmt.indices)
            case Fill() if stmt.dst.buffer.scope in _PRIVATE:
                name, values = stmt.dst.buffer.memory.name, (stmt.value,)
            case Copy() if stmt.dst.buffer.scope in _PRIVATE:
                # A fragment that is read at an index which is no loop variable is replicated in every thread, and into
                # a private array each thread copies all elements.
                parts = (*stmt.src.ranges, *stmt.dst.ranges)
                name, values = stmt.dst.buffer.memory.name, tuple(part.start for part in parts)
                of_others = stmt.dst.buffer.scope is Scope.LOCAL and stmt.src.buffer.scope is Scope.FRAGMENT
                divergent |= of_others or not self.holds_in(stmt.src.buffer)
            case Gemm():
                name, divergent = stmt.c.buffer.memory.name, True
            case Reduce(dst=Buffer(scope=Scope.FRAGMENT)) if stmt.src.scope is not Scope.LOCAL:
                # Read at an index which is no loop variable, it is replicated: each thread combines the same parts.
                name = stmt.dst.memory.name
            case Reduce() | Scan():
                name, divergent = stmt.dst.memory.name, True
            case _:
                return
        if divergent or not all(self.holds(value) for value in values):
            self._note(name)

    def _note(self, name: str) -> None:
        """Notes that a scalar, a private array or a fragment varies."""
        if name not in self._varying:
            self._varying.add(name)
            self._held.clear()
