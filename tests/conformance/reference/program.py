"""Statements: SIMT by masks. A loop over elements computes all of them side by side, one statement after the other."""

from __future__ import annotations

import itertools
import time
from collections.abc import Callable, Mapping
from functools import partial

import numpy as np
from msgspec.structs import replace

from tests.conformance.reference.expressions import Values
from tests.conformance.reference.functions import DECODERS
from tests.conformance.reference.groups import Barriers
from tests.conformance.reference.memory import Memory
from tests.conformance.reference.numbers import Array, CannotInterpret, KernelFault, stored, undefined, working_dtype
from tests.conformance.reference.philox import Generators
from tests.conformance.reference.tiles import COMBINE, Tiles
from tile2cu.analysis.accesses import buffers_used, expressions
from tile2cu.analysis.control import operations, steps
from tile2cu.analysis.effects import Order, effects_of
from tile2cu.analysis.groups import asked_warpgroups
from tile2cu.analysis.sync_calls import syncs_grid
from tile2cu.core.dtype import INT32
from tile2cu.core.expr import Address, Binary, Call, Load, Role, Var, int_const, is_of_thread, walk
from tile2cu.core.program import (
    Assert,
    Assign,
    Atomic,
    AtomicTile,
    Break,
    Buffer,
    CallStmt,
    Continue,
    Copy,
    Declare,
    If,
    Launch,
    Let,
    Loop,
    Parallel,
    Print,
    Program,
    Reduction,
    Scope,
    SetRegisters,
    Stmt,
    Store,
    Swizzle,
    Sync,
    WgmmaWait,
    While,
    walk_stmts,
)

_ONE = np.ones(1, bool)
# One statement after the other, all threads side by side: what orders them has nothing left to do.
_ORDER = "sync_warp mbarrier_expect fence_async_proxy cp_async_commit cp_async_wait ::__nanosleep"
# A store by TMA is done when it is issued.
_STORES = "tma_store_commit block_tma_store_wait block_tma_store_wait_read"
_NOTHING = frozenset((*_ORDER.split(), *_STORES.split(), "griddepcontrol_wait", "griddepcontrol_launch_dependents"))
_ARRIVALS = frozenset(("mbarrier_arrive", "mbarrier_arrive_expect", "cp_async_arrive"))
_WAITS = frozenset(("mbarrier_wait", "barrier_sync"))


def interpret(program: Program, arguments: Mapping[str, object], *, seconds: float = 60.0) -> dict[str, Array]:
    """Runs a program on NumPy arrays and numbers, by parameter name, and returns what all its tensors hold afterwards.

    Sizes may be given, too; those that are an extent by themselves follow from the arrays. The arguments are left as
    they are. `seconds` of this process's time bound the run. Errors: CannotInterpret, KernelFault, TimeoutError.
    """
    memory = Memory()
    values = Values(memory)
    memory.size_of = lambda extent: values.number(extent, _ONE)
    tensors = [param for param in program.params if isinstance(param, Buffer)]
    for number in (*program.sizes, *(param for param in program.params if isinstance(param, Var))):
        if number.name in arguments:
            values.set(number, np.array([arguments[number.name]]))
    for tensor in tensors:
        data = np.asarray(arguments[tensor.name])
        for extent, size in zip(tensor.shape, data.shape, strict=True):
            if isinstance(extent, Var):
                values.set(extent, np.array([size]))
        memory.give(tensor, data.astype(working_dtype(tensor.dtype)))
    for workspace in program.workspaces:
        shape = tuple(values.number(extent, _ONE) for extent in workspace.shape)
        memory.give(workspace, undefined(shape, workspace.dtype))
    deadline = time.process_time() + seconds
    outside = values.variables
    for launch in program.launches:
        values.variables = dict(outside)
        _launch(_with_meetings(launch) if program.own_barriers else launch, memory, values, deadline)
    return {tensor.name: stored(memory.data(tensor), tensor.dtype) for tensor in tensors}


_WARPGROUP = 128  # threads, by which T.ws counts


def _launch(launch: Launch, memory: Memory, values: Values, deadline: float) -> None:
    if launch.cluster and _has_blocks_that_meet(launch):
        raise CannotInterpret("blocks that run side by side")
    for let in launch.prelude:
        values.set(let.var, values.of(let.value, _ONE))
    grid = [range(values.number(extent, _ONE)) for extent in launch.grid]
    # An atomic update outside of T.Parallel is every thread's: `T.atomic_add(B[0], 1)` adds their number.
    updates = any(isinstance(stmt, Atomic) for stmt in steps(launch.body))
    uses_threads = updates or _uses_threads(launch) or _groups_assign(launch)
    lanes = launch.threads if uses_threads else 1
    values.thread = np.arange(lanes, dtype=np.int32) if uses_threads else None
    memory.begin_launch(ordered=_orders_blocks(launch), of_threads=_of_threads(launch))
    barriers = Barriers()  # of the grid
    places = list(itertools.product(*reversed(grid)))  # x is the fastest

    def run(number: int) -> None:
        mine = memory.of_block(number)
        own = values.copy(mine)
        own.random = None
        for var, index in zip(launch.blocks, reversed(places[number]), strict=True):
            own.set(var, np.array([index]))
        for tile in launch.tiles:
            mine.allocate(tile)
        meet = partial(barriers.meet, ("", 0), 1, len(places))
        Block(mine, own, launch, lanes, deadline, meet).run(launch.body, np.ones(lanes, bool))

    if syncs_grid(launch.body):
        barriers.side_by_side([partial(run, number) for number in range(len(places))])
    else:
        for number in range(len(places)):
            run(number)


def _has_blocks_that_meet(launch: Launch) -> bool:
    """Whether blocks of a cluster wait for one another, or write to one another's shared memory."""
    copies = (stmt for stmt in walk_stmts(launch.body) if isinstance(stmt, Copy))
    meets = Order.CLUSTER in effects_of(launch.body).orders or any(tile.across for tile in launch.tiles)
    return meets or any(copy.blocks or copy.block is not None for copy in copies)


def _with_meetings(launch: Launch) -> Launch:
    """The launch with T.sync_threads() as the named barrier 0: groups come to that of the whole block, too."""
    meeting = Call(INT32, "barrier_sync", (int_const(0), int_const(launch.threads)))

    def of(body: tuple[Stmt, ...]) -> tuple[Stmt, ...]:
        return tuple(map(changed, body))

    def changed(stmt: Stmt) -> Stmt:
        match stmt:
            case Sync():
                return CallStmt(call=meeting, span=stmt.span)
            case If():
                return replace(stmt, then=of(stmt.then), orelse=of(stmt.orelse))
            case Loop() | While():
                return replace(stmt, body=of(stmt.body))
            case _:
                return stmt

    return replace(launch, body=of(launch.body))


def _uses_threads(launch: Launch) -> bool:
    """Whether the body addresses single threads: then every statement outside tiles runs once per thread."""
    return any(is_of_thread(expr) for stmt in walk_stmts(launch.body) for expr in expressions(stmt))


def _groups_assign(launch: Launch) -> bool:
    """Whether a group of T.ws changes variables, of which each thread has its own."""
    groups = [stmt for stmt in walk_stmts(launch.body) if isinstance(stmt, If) and asked_warpgroups(stmt) is not None]
    return any(isinstance(stmt, Assign) for group in groups for stmt in walk_stmts(group.then))


def _of_threads(launch: Launch) -> frozenset[Buffer]:
    """The fragments that only statements of single threads use: each thread has one of its own."""
    alone = (Store, Let, Assign, Declare, Assert, CallStmt, Break, Continue)
    used = (buffers_used(stmt) for stmt in operations(launch.body) if not isinstance(stmt, alone))
    views = {tile for tile in launch.tiles if tile.of is not None}
    shared = {tile.memory for tiles in (*used, views) for tile in tiles}
    return frozenset(tile for tile in launch.tiles if tile.scope is Scope.FRAGMENT and tile.of is None) - shared


def _orders_blocks(launch: Launch) -> bool:
    """Whether blocks synchronise by atomics that order other accesses."""
    loads = (part for stmt in walk_stmts(launch.body) for expr in expressions(stmt) for part in walk(expr))
    return any(isinstance(part, Call) and part.function.startswith("atomic_load") for part in loads) or any(
        isinstance(stmt, Atomic) and (stmt.order or stmt.previous is not None) for stmt in walk_stmts(launch.body)
    )


def _draws_out_of_turn(loop: Parallel) -> bool:
    """Whether elements of the loop take more than one random number each: here all take the first one first."""
    stmts = list(walk_stmts(loop.body))
    parts = [part for stmt in stmts for expr in expressions(stmt) for part in walk(expr)]
    draws = sum(isinstance(part, Call) and part.function.startswith("random.") for part in parts)
    return draws > 1 or (draws > 0 and any(isinstance(stmt, Loop | While) for stmt in stmts))


def _read_and_written(loop: Parallel) -> list[Buffer]:
    """The fragments of which an iteration of the loop may read what another writes."""
    stores = (stmt for stmt in walk_stmts(loop.body) if isinstance(stmt, Store))
    written = {id(stmt.buffer): stmt.buffer for stmt in stores if stmt.buffer.scope is Scope.FRAGMENT}
    parts = (part for stmt in walk_stmts(loop.body) for expr in expressions(stmt) for part in walk(expr))
    others = {id(part.buffer) for part in parts if isinstance(part, Load) and part.indices != loop.vars}
    return [tile for name, tile in written.items() if name in others and tile.of is None and tile.reducer is None]


def _side_by_side(body: tuple[Stmt, ...]) -> list[tuple[Stmt, ...]]:
    """Single statements, and groups of consecutive T.ws statements, one per thread group; likewise consecutive
    branches whose conditions do not change in between.
    """
    found: list[tuple[Stmt, ...]] = []
    for stmt in body:
        group, before = asked_warpgroups(stmt), {asked_warpgroups(each) for each in found[-1]} if found else {None}
        resolved = bool(found) and None in {group, *before} and all(map(_is_settled, (stmt, *found[-1])))
        if resolved or (group is not None and None not in before and group not in before):
            found[-1] = (*found[-1], stmt)
        else:
            found.append((stmt,))
    return found


def _is_settled(stmt: Stmt) -> bool:
    """Whether it is a branch of which no statement before it changes who takes it."""
    if not isinstance(stmt, If) or stmt.orelse:
        return False
    parts = walk(stmt.condition)
    return not any(isinstance(part, Load) or getattr(part, "role", None) is Role.MUTABLE for part in parts)


def _waits(stmt: Stmt) -> bool:
    return isinstance(stmt, CallStmt) and stmt.call.function in _WAITS


class Block:
    """The execution of one block. A mask states which of the elements that are computed together execute a
    statement.
    """

    def __init__(
        self,
        memory: Memory,
        values: Values,
        launch: Launch,
        lanes: int,
        deadline: float,
        meet_others: Callable[[], None],
    ) -> None:
        self.memory, self.values, self.launch, self.meet_others = memory, values, launch, meet_others
        self.tiles = Tiles(memory, values)
        self.lanes, self.deadline = lanes, deadline
        # Elements that left the innermost loop, and those that left its current iteration.
        self.broken, self.left = np.zeros(lanes, bool), np.zeros(lanes, bool)
        self.barriers = Barriers()
        self.gives_old_values = any(
            isinstance(stmt, Atomic) and stmt.previous is not None for stmt in walk_stmts(launch.body)
        )
        self.updaters = memory.updates.lanes(lanes)  # numbers of the elements that are computed together
        self.in_group = 0  # threads of the group whose statements run; 0 outside of groups

    def run(self, body: tuple[Stmt, ...], mask: Array) -> None:
        """Runs statements for the elements of the mask."""
        for stmts in _side_by_side(body):
            live = mask & ~self.left
            if not live.any():
                return
            if time.process_time() > self.deadline:
                raise TimeoutError("the interpreter ran out of time")
            arms = self._arms(stmts, live)
            if len(arms) > 1 and not self.in_group:
                self._groups(arms)
            else:
                for stmt in stmts:
                    self._run(stmt, live)

    def _arms(self, stmts: tuple[Stmt, ...], mask: Array) -> list[tuple[tuple[Stmt, ...], Array]]:
        """The concurrent parts of groups of threads: those of T.ws, or of a branch that not all threads take.

        Empty if nothing waits.
        """
        first = stmts[0]
        if not isinstance(first, If) or not any(map(_waits, walk_stmts(stmts))):
            return []
        if all(asked_warpgroups(stmt) is not None for stmt in stmts):
            return [((stmt,), self._of_group(stmt, mask)) for stmt in stmts]
        if len(stmts) > 1:
            return self._apart(stmts, mask)
        arms: list[tuple[tuple[Stmt, ...], Array]] = []
        rest: tuple[Stmt, ...] = (first,)
        while len(rest) == 1 and isinstance(branch := rest[0], If) and mask.any() and asked_warpgroups(branch) is None:
            taken = np.broadcast_to(self.values.of(branch.condition, mask).astype(bool), mask.shape)
            arms.append((branch.then, mask & taken))
            mask, rest = mask & ~taken, branch.orelse
        return [arm for arm in (*arms, (rest, mask)) if arm[0] and arm[1].any()]

    def _apart(self, branches: tuple[Stmt, ...], mask: Array) -> list[tuple[tuple[Stmt, ...], Array]]:
        """Consecutive branches; those with a common thread are one part."""
        arms: list[tuple[tuple[Stmt, ...], Array]] = []
        for branch in branches:
            assert isinstance(branch, If)
            if asked_warpgroups(branch) is None:
                taken = mask & self.values.of(branch.condition, mask).astype(bool)
            else:
                taken = self._of_group(branch, mask)
            met = [arm for arm in arms if (arm[1] & taken).any()]
            arms = [arm for arm in arms if not (arm[1] & taken).any()]
            stmts = (*(stmt for arm in met for stmt in arm[0]), branch)
            arms.append((stmts, np.logical_or.reduce([taken, *(arm[1] for arm in met)])))
        return [arm for arm in arms if arm[1].any()]

    def _of_group(self, stmt: Stmt, mask: Array) -> Array:
        """The threads that T.ws names; where no statement is of single threads, it stands for all."""
        if self.lanes == 1:
            return mask
        return mask & np.isin(np.arange(self.lanes) // _WARPGROUP, asked_warpgroups(stmt) or ())

    def _groups(self, arms: list[tuple[tuple[Stmt, ...], Array]]) -> None:
        """Runs the arms side by side, each with variables of its own; afterwards each thread has its group's."""
        common = self.launch, self.lanes, self.deadline, self.meet_others
        blocks = [Block(self.memory, self.values.copy(self.memory), *common) for _ in arms]
        for block in blocks:
            block.barriers, block.in_group, block.updaters = self.barriers, self.launch.threads, self.updaters
            block.broken, block.left = self.broken.copy(), self.left.copy()
        self.barriers.side_by_side(
            [partial(block.run, body, mask) for block, (body, mask) in zip(blocks, arms, strict=True)]
        )
        for block, (_, mask) in zip(blocks, arms, strict=True):
            self.broken, self.left = self.broken | block.broken, self.left | block.left
            self.values.take(block.values, mask)

    def _run(self, stmt: Stmt, mask: Array) -> None:
        if not (self._scalar(stmt, mask) or self._control(stmt, mask) or self.tiles.run(stmt, mask)):
            raise CannotInterpret(f"the statement {type(stmt).__name__}")

    def _scalar(self, stmt: Stmt, mask: Array) -> bool:
        """Runs the statement if it gives a value to an element or a variable, or checks one."""
        match stmt:
            case Store():
                self._store(stmt, mask)
            case Let():
                self.values.set(stmt.var, self.values.of(stmt.value, mask))
            case Declare(init=None):
                self.values.set(stmt.var, np.zeros(1, working_dtype(stmt.var.dtype)), mask)
            case Declare():
                self.values.set(stmt.var, self.values.of(stmt.init, mask), mask)
            case Assign():
                value = Binary(stmt.var.dtype, stmt.op, stmt.var, stmt.value) if stmt.op else stmt.value
                self.values.set(stmt.var, self.values.of(value, mask), mask)
            case Atomic():
                places = [self.values.of(index, mask) for index in stmt.indices]
                value = self.values.of(stmt.value, mask)
                if stmt.kind is None:
                    self.memory.store(stmt.buffer, places, value, mask)
                else:
                    self._update(stmt, stmt.kind, places, value, mask)
            case Assert():
                self._assert(stmt, mask)
            case _:
                return False
        return True

    def _update(self, stmt: Atomic, kind: Reduction, places: list[Array], value: Array, mask: Array) -> None:
        """An atomic update; a thread gets the old value where the order of threads does not decide what it is."""
        asks = stmt.previous is not None
        if not self.gives_old_values:
            self.memory.update(stmt.buffer, places, value, mask, COMBINE[kind])
            return
        if any(isinstance(each, AtomicTile) for each in walk_stmts(self.launch.body)):  # it is not noted who updates
            raise CannotInterpret("which thread comes first")
        who = self.updaters
        old = self.memory.update(stmt.buffer, places, value, mask, COMBINE[kind], who=who, asks=asks)
        if stmt.previous is not None:
            self.values.set(stmt.previous, old, mask)

    def _control(self, stmt: Stmt, mask: Array) -> bool:
        """Runs the statement if it is control flow."""
        match stmt:
            case If():
                self._branch(stmt, mask)
            case Loop() | While():
                self._loop(stmt, mask)
            case Break():
                self.broken |= mask
                self.left |= mask
            case Continue():
                self.left |= mask
            case Parallel():
                self._parallel(stmt, mask)
            case Sync() | Swizzle() | Print() | WgmmaWait() | SetRegisters():
                pass
            case CallStmt():
                return self._effect(stmt.call, mask)
            case _:
                return False
        return True

    def _effect(self, call: Call, mask: Array) -> bool:
        """Runs what a call of single threads does if it is one of these."""
        match call.function.partition("<")[0]:
            case name if name in _NOTHING:
                pass
            case name if name in _ARRIVALS | _WAITS | {"barrier_arrive"}:
                self._at_barrier(call, mask)
            case "cp_async":
                self._copy_async(call, mask)
            case "random.start":
                self._start_random(call, mask)
            case "sync_grid":
                self.meet_others()
                self.memory.begin_phase()
            case name if name in DECODERS:
                self._decode(DECODERS[name], call, mask)
            case _:
                return False
        return True

    def _decode(self, decode: Callable[[Array], Array], call: Call, mask: Array) -> None:
        """Each thread has bytes of its own turned into numbers."""
        src, dst = call.args[:2]
        assert isinstance(dst, Address) and isinstance(dst.buffer, Buffer)
        packed = np.stack(list(self.values.elements(src, mask)), axis=1).astype(np.int64) & 0xFF
        *to, start = (self.values.of(index, mask) for index in dst.indices)
        for step, found in enumerate(decode(packed).T):
            self.memory.store(dst.buffer, [*to, start + step], found, mask)

    def _copy_async(self, call: Call, mask: Array) -> None:
        """Each thread copies consecutive elements; past the given bytes they are zero."""
        dst, src, given = call.args
        assert isinstance(dst, Address) and isinstance(src, Address)
        assert isinstance(dst.buffer, Buffer) and isinstance(src.buffer, Buffer)
        count = self.values.of(given, mask) // dst.dtype.bytes
        (*to, column), (*of, place) = ([self.values.of(each, mask) for each in at.indices] for at in (dst, src))
        for step in range(int(call.function[len("cp_async<") : -1]) // dst.dtype.bytes):
            found = self.memory.load(src.buffer, [*of, place + step], mask & (step < count))
            self.memory.store(dst.buffer, [*to, column + step], found, mask)

    def _start_random(self, call: Call, mask: Array) -> None:
        """Each thread begins to take random numbers there."""
        begun = Generators(*(self.values.of(arg, mask) for arg in call.args), threads=self.lanes)
        if self.values.random is None:
            self.values.random = begun
        self.values.random.start(begun, mask)

    def _at_barrier(self, call: Call, mask: Array) -> None:
        """Threads come to a barrier, wait at one, or both."""
        if call.function.startswith("mbarrier") or call.function == "cp_async_arrive":
            for part in self.values.alike(call.args[0].indices[0], mask):  # type: ignore[attr-defined]
                self._at_one_barrier(call, part)
        else:
            self._at_one_barrier(call, mask)

    def _at_one_barrier(self, call: Call, mask: Array) -> None:
        """All come to the same one."""
        threads = int(mask.sum()) if self.lanes > 1 else self.in_group or self.launch.threads
        if call.function.startswith("barrier"):
            number, needed = (self.values.number(arg, mask) for arg in call.args)
            come = self.barriers.meet if call.function == "barrier_sync" else self.barriers.arrive
            come(("", number), threads, needed)
            return
        place = call.args[0]
        assert isinstance(place, Load) and isinstance(place.buffer, Buffer)
        number = self.values.number(place.indices[0], mask)
        barrier = place.buffer.name, number
        if call.function == "mbarrier_wait":
            self.barriers.wait(barrier, self.values.number(call.args[1], mask))
        else:
            self.barriers.arrive(barrier, threads, place.buffer.arrivals[number])

    def _branch(self, stmt: If, mask: Array) -> None:
        numbers = asked_warpgroups(stmt)
        if numbers is not None:  # the groups run in source order
            outside, self.in_group = self.in_group, _WARPGROUP * len(numbers)
            self.run(stmt.then, self._of_group(stmt, mask))
            self.in_group = outside
            return
        taken = self.values.of(stmt.condition, mask).astype(bool)
        for arm, chosen in ((stmt.then, mask & taken), (stmt.orelse, mask & ~taken)):
            if chosen.any():
                self.run(arm, chosen)

    def _assert(self, stmt: Assert, mask: Array) -> None:
        if not np.broadcast_to(self.values.of(stmt.condition, mask), mask.shape)[mask].all():
            raise KernelFault(f"the assertion in line {stmt.span.line} does not hold")

    def _store(self, stmt: Store, mask: Array) -> None:
        value = stmt.value
        if stmt.buffer.reducer is not None and stmt.op == "+":  # an update: several elements may meet at one
            places = [self.values.of(index, mask) for index in stmt.indices]
            self.memory.update(stmt.buffer, places, self.values.of(value, mask), mask, np.add)
            return
        if stmt.op:
            value = Binary(stmt.buffer.dtype, stmt.op, Load(stmt.buffer.dtype, stmt.buffer, stmt.indices), value)
        found = self.values.of(value, mask)
        self.memory.store(stmt.buffer, [self.values.of(index, mask) for index in stmt.indices], found, mask)

    def _loop(self, stmt: Loop | While, mask: Array) -> None:
        outside = self.broken, self.left
        self.broken = np.zeros(self.lanes, bool)
        if isinstance(stmt, Loop):
            index, stop, step = (
                self.values.of(part, mask).astype(np.int64) for part in (stmt.start, stmt.stop, stmt.step)
            )
        while True:
            self.left = self.broken.copy()
            live = mask & ~self.broken
            if isinstance(stmt, Loop):
                live = live & np.where(step > 0, index < stop, index > stop)
                self.values.set(stmt.var, index)
            elif live.any():
                live = live & self.values.of(stmt.condition, live).astype(bool)
            if not live.any():
                break
            self.run(stmt.body, live)
            if isinstance(stmt, Loop):
                index = index + step
            elif time.process_time() > self.deadline:
                raise TimeoutError("the interpreter ran out of time")
        self.broken, self.left = outside

    def _parallel(self, stmt: Parallel, mask: Array) -> None:
        """All elements of the loop at once; a nested one is a loop of more dimensions.

        Consecutive threads, as a branch may select them, share the loop as all threads of a block do.
        """
        if self.lanes > 1 and not mask[mask.argmax() :][: mask.sum()].all():
            raise CannotInterpret("T.Parallel for some of the threads")
        if _draws_out_of_turn(stmt):
            raise CannotInterpret("several random numbers of an element")
        extents = [self.values.number(extent, mask) for extent in stmt.extents]
        count = int(np.prod(extents))
        if not count:
            return
        outside = self.lanes, self.broken, self.left, self.values.thread, self.updaters
        variables = dict(self.values.variables)
        own = self.memory.enter_loop(self.launch.tiles, mask)
        for key, value in variables.items():
            if len(value) > 1 and len(same := np.unique(value[mask])) == 1:
                self.values.variables[key] = same
            elif len(value) > 1:
                del self.values.variables[key]  # thread-private: no element of the loop has it
        for var, index in zip(stmt.vars, np.indices(extents), strict=True):
            self.values.set(var, index.reshape(-1))
        self.lanes, self.values.thread, self.updaters = count, None, self.memory.updates.lanes(count)
        self.broken, self.left = np.zeros(count, bool), np.zeros(count, bool)
        self.memory.begin_loop(_read_and_written(stmt))
        self.run(stmt.body, np.ones(count, bool))
        self.memory.end_loop()
        self.lanes, self.broken, self.left, self.values.thread, self.updaters = outside
        self.values.variables = variables
        self.memory.leave_loop(own)
