"""A kernel's body as paragraphs of operations: what a statement becomes, and what stands around it."""

from collections.abc import Iterator
from typing import Any

from msgspec.structs import replace

from tile2cu.analysis.accesses import may_change, parts_of
from tile2cu.analysis.groups import group_of
from tile2cu.analysis.prelude import around, for_loads_alone, hoisted, is_iteration, producer_loops, walk_of
from tile2cu.core.decisions import (
    ATOMIC_VECTOR,
    BARRIER,
    EARLY_EXIT,
    LAYOUT,
    PART_BARRIER,
    PERSISTENT,
    PIPELINE,
    PROLOGUE_LOADS,
    PROXY_FENCE,
    RETIRED,
    STORE_COMPLETED,
    STORE_OUTSTANDING,
)
from tile2cu.core.errors import Tile2CuError
from tile2cu.core.expr import Load
from tile2cu.core.facts import Key
from tile2cu.core.program import (
    Assert,
    Assign,
    Atomic,
    AtomicTile,
    BindTensor,
    Break,
    CallStmt,
    Continue,
    Copy,
    Declare,
    Fill,
    Gemm,
    If,
    Let,
    Loop,
    LoopKind,
    Parallel,
    Print,
    Reduce,
    Scan,
    Scope,
    SetRegisters,
    Stmt,
    Store,
    Swizzle,
    Sync,
    WgmmaWait,
    While,
)
from tile2cu.plan import ops
from tile2cu.plan.copies import load_registers, store_registers
from tile2cu.plan.copy_ops import TmaLoad
from tile2cu.plan.elementwise import elementwise
from tile2cu.plan.lower import before, lower
from tile2cu.plan.mma import clear_before, wait_after
from tile2cu.plan.paragraphs import groups, is_of_rules
from tile2cu.plan.pipelined import pipelined
from tile2cu.plan.producer import Producing
from tile2cu.plan.producer_ops import AcquireStage
from tile2cu.plan.resolved import Resolved
from tile2cu.plan.rings import are_loads_outstanding
from tile2cu.plan.scalars import atomic_vector, invoke, let, locate, with_values_of
from tile2cu.plan.structure import (
    AwaitPrologue,
    AwaitStaging,
    Block,
    ByOneHolder,
    For,
    OfGroup,
    Paragraph,
    ReleasePrologue,
    Statement,
    Where,
)
from tile2cu.plan.structure import If as Branch
from tile2cu.plan.structure import While as Repeat
from tile2cu.plan.tensors import touched

_ORDERING: tuple[Key[Any], ...] = (BARRIER, PART_BARRIER, PROXY_FENCE)


class Lowering:
    """Lowers the statements of one launch."""

    def __init__(self, resolved: Resolved) -> None:
        self.resolved = resolved
        self.facts = resolved.facts
        body = resolved.launch.body
        first = self.facts.get(resolved.launch, PROLOGUE_LOADS)
        self.prologue: tuple[Copy, ...] = first.loads if first is not None else ()
        self._first_reader = first.reader if first is not None else None
        idle = self.facts.get(resolved.launch, EARLY_EXIT)
        early = idle.before if idle is not None else ()
        self.hoisted = tuple(stmt for stmt in hoisted(resolved.launch, self.facts) if stmt not in early)
        self._elsewhere = (*early, *self.hoisted, *self.prologue)
        loops = producer_loops(resolved.launch, self.facts)
        self._of_producer = tuple(let for found in loops for let in for_loads_alone(*found, body))
        self.walk = walk_of(resolved.launch, self.facts)
        self.producing = Producing(resolved, self.walk, self.body, self.statement)
        self._is_persistent = self.facts.get(resolved.launch, PERSISTENT) is not None

    def body(self, body: tuple[Stmt, ...], where: Where) -> Block:
        """The paragraphs of a block, but for what is done elsewhere: before the body, or by the producer alone."""
        elsewhere = self._elsewhere if where.loading else (*self._elsewhere, *self._of_producer)
        return self.paragraphs(tuple(stmt for stmt in body if stmt not in elsewhere), where)

    def paragraphs(self, body: tuple[Stmt, ...], where: Where) -> Block:
        """The paragraphs of these statements, wherever they stand in the program."""
        shown = tuple(stmt for stmt in body if not isinstance(stmt, Swizzle) and not self._is_unused(stmt))
        ordered = frozenset(id(stmt) for stmt in shown if not where.loading and self._is_ordered(stmt))
        return tuple(
            Paragraph(
                statements=tuple(each for stmt in group for each in self.statements(stmt, where)),
                heading=group[0].span != where.around,  # else a part of one operation, as the loop around
            )
            for group in groups(shown, ordered)
        )

    def statement(self, stmt: Stmt, where: Where) -> Statement:
        """The operations of a statement."""
        op = self.operation(stmt, where)
        acquired: tuple[ops.Op, ...] = ()
        if isinstance(op, TmaLoad) and op.own_ring:
            acquired = (AcquireStage(source=stmt, tile=op.dst, publishes=op.publishes),)
        if where.loading:
            return Statement(source=stmt, op=op, first=acquired)
        return Statement(
            source=stmt,
            op=op,
            before=(*before(stmt, self.resolved, where.group), *self._await_prologue(stmt)),
            first=(*acquired, *self._await_staging(stmt), *clear_before(stmt, self.resolved)),
            after=(*self._release_prologue(stmt), *wait_after(stmt, self.resolved)),
        )

    def statements(self, stmt: Stmt, where: Where) -> tuple[Statement, ...]:
        """The same, behind the declarations of values that the statement repeats."""
        return self._named(stmt, self.statement(stmt, where), where)

    def _named(self, stmt: Stmt, alone: Statement, where: Where) -> tuple[Statement, ...]:
        if id(stmt) not in self.resolved.named:
            return (alone,)
        *lets, changed = self.resolved.named[id(stmt)]
        first, *others = (Statement(source=each, op=self.operation(each, where)) for each in lets)
        op = with_values_of(alone.op, changed)
        return (
            replace(first, before=alone.before, first=alone.first),
            *others,
            replace(alone, source=changed, op=op, before=(), first=()),
        )

    def operation(self, stmt: Stmt, where: Where) -> ops.Op:
        """The operation of a statement itself."""
        loop = where.elect
        if loop is not None and (_writes_memory_alone(stmt) or self.facts.get(stmt, ATOMIC_VECTOR) is not None):
            body = self._elements(stmt, replace(where, elect=None))
            return ByOneHolder(source=stmt, layout=self.facts[loop, LAYOUT], extents=loop.extents, body=body)
        if self.walk is not None and stmt is self.walk.outer:
            return self.producing.visits(stmt, where)
        if where.walking and self.facts.get(stmt, PIPELINE) is not None:
            return self.producing.visit(stmt)
        return self._holding(stmt, where if is_of_rules(stmt) else replace(where, around=stmt.span))

    def _holding(self, stmt: Stmt, inside: Where) -> ops.Op:
        """The operation of a statement that holds others, or of one that does not; `inside` is where those stand."""
        match stmt:
            case Parallel():
                return self._elementwise(stmt, inside)
            case Loop():
                return self._loop(stmt, inside)
            case While():
                return Repeat(source=stmt, condition=stmt.condition, body=self.body(stmt.body, inside))
            case If():
                return self._branch(stmt, inside)
            case _:
                return self._single(stmt, inside)

    def _elementwise(self, loop: Parallel, inside: Where) -> ops.Op:
        def body(elect: bool) -> tuple[Statement, ...]:
            where = replace(inside, elect=loop if elect else None)
            return tuple(each for stmt in loop.body for each in self._elements(stmt, where))

        return elementwise(loop, self.resolved, body)

    def _single(self, stmt: Stmt, where: Where) -> ops.Op:
        match stmt:
            case Copy():
                return self._copy(stmt, where)
            case Let():
                return let(stmt, self.resolved)
            case BindTensor():
                return locate(stmt, self.resolved)
            case CallStmt():
                return invoke(stmt, self.resolved)
            case (
                AtomicTile()
                | Assign()
                | Atomic()
                | Declare()
                | Store()
                | Fill()
                | Gemm()
                | Reduce()
                | Scan()
                | WgmmaWait()
                | Sync()
                | SetRegisters()
                | Break()
                | Continue()
                | Assert()
                | Print()
            ):
                return lower(stmt, self.resolved, where.group)
            case _:
                raise Tile2CuError("T2C-E001", f"no text for {type(stmt).__name__}", stmt.span)

    def _elements(self, stmt: Stmt, where: Where) -> tuple[Statement, ...]:
        """A statement of an elementwise loop: nothing orders it but the loop."""
        alone = Statement(source=stmt, op=self.operation(stmt, where))
        return (alone,) if isinstance(alone.op, ByOneHolder) else self._named(stmt, alone, where)

    def _is_ordered(self, stmt: Stmt) -> bool:
        """Whether a barrier, a fence or a wait for MMAs stands before the statement."""
        of_schedule = (id(stmt), False) in self.resolved.waits
        return of_schedule or any(self.facts.get(stmt, key) is not None for key in _ORDERING)

    def _is_unused(self, stmt: Stmt) -> bool:
        """Whether a statement waits for nothing, names what the grid's schedule has, or locates an untouched tensor."""
        if isinstance(stmt, WgmmaWait):
            return self.facts.get(stmt, RETIRED) is None
        if isinstance(stmt, Let) and stmt.var in self.resolved.scheduled:
            return True
        return isinstance(stmt, BindTensor) and not any(stmt.tensor in buffers for buffers in touched(self.resolved))

    def _await_prologue(self, stmt: Stmt) -> Iterator[ops.Op]:
        if stmt is self._first_reader:
            tiles = tuple(load.dst.buffer for load in self.prologue)
            yield AwaitPrologue(source=stmt, tiles=tiles, persistent=self._is_persistent)

    def _release_prologue(self, stmt: Stmt) -> Iterator[ops.Op]:
        if stmt is self._first_reader and self._is_persistent:
            tiles = [load.dst.buffer for load in self.prologue]
            yield ReleasePrologue(source=stmt, waits_for_loads=are_loads_outstanding(tiles, (stmt,), self.resolved))

    def _await_staging(self, stmt: Stmt) -> Iterator[ops.Op]:
        if self.facts.get(stmt, STORE_OUTSTANDING) and self._comes_again(stmt):
            completed = bool(self.facts.get(stmt, STORE_COMPLETED))
            yield AwaitStaging(source=stmt, again=True, completed=completed)

    def _comes_again(self, stmt: Stmt) -> bool:
        """Whether a block may come to a statement several times."""
        loops = (outer for outer in around(self.resolved.launch.body, stmt) if isinstance(outer, Loop | While))
        return self._is_persistent or any(loops)

    def _copy(self, op: Copy, where: Where) -> ops.Op:
        """A copy, or the half of one whose tile waits in registers."""
        if id(op) in where.to_registers:
            return load_registers(op, self.resolved)
        if id(op) in where.from_registers:
            return store_registers(op, self.resolved)
        return lower(op, self.resolved, where.group)

    def _branch(self, stmt: If, where: Where) -> ops.Op:
        group = group_of(stmt)
        if group is not None:
            return OfGroup(source=stmt, group=group, body=self.body(stmt.then, replace(where, group=group)))
        then, orelse = self.body(stmt.then, where), self.body(stmt.orelse, where)
        return Branch(source=stmt, condition=stmt.condition, then=then, orelse=orelse)

    def _loop(self, op: Loop, where: Where) -> ops.Op:
        if self.facts.get(op, ATOMIC_VECTOR) is not None:
            return atomic_vector(op, self.resolved)
        pipeline = self.facts.get(op, PIPELINE)
        if pipeline is not None and pipeline.producer:
            return self.producing.loop(op, pipeline, where)
        if pipeline is not None:
            return pipelined(op, pipeline, self.resolved, where, self.body)
        if where.walking and _asks_memory(op):
            return self.producing.each_active(op, where)
        return For(
            source=op,
            var=op.var,
            start=op.start,
            stop=op.stop,
            step=op.step,
            unrolled=op.kind in (LoopKind.UNROLL, LoopKind.VECTORIZED),
            stop_changes=may_change(op.stop, op.body),
            body=self.body(op.body, where),
        )


def _writes_memory_alone(stmt: Stmt) -> bool:
    """Whether all that a statement does is to write memory or to print."""
    if isinstance(stmt, If):
        return group_of(stmt) is None and all(map(_writes_memory_alone, (*stmt.then, *stmt.orelse)))
    memory = isinstance(stmt, Store | Atomic) and stmt.buffer.scope in (Scope.GLOBAL, Scope.SHARED)
    return memory or isinstance(stmt, Print)


def _asks_memory(op: Loop) -> bool:
    """Whether memory tells which iterations of a loop are active: passes/skip_iterations.py."""
    branch = op.body[-1]
    inside = branch.then[0] if isinstance(branch, If) and len(branch.then) == 1 else None
    if (
        not isinstance(inside, Loop)
        or not is_iteration(inside, (op,))
        or not all(isinstance(let, Let) for let in op.body[:-1])
    ):
        return False
    parts = parts_of(op.body)
    return any(isinstance(part, Load) for part in parts)
