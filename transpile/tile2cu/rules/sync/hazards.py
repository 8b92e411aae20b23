"""Barriers: before a read or write of memory that another thread's access must precede."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import replace
from itertools import dropwhile, takewhile
from types import MappingProxyType

from tile2cu.analysis.accesses import (
    atomic_only,
    buffers_read,
    buffers_written,
    expressions,
    loads,
    shared,
    updated_in_several_ways,
)
from tile2cu.analysis.control import arms, only_arm
from tile2cu.analysis.groups import group_of
from tile2cu.analysis.prelude import begins_pipeline
from tile2cu.analysis.sync_calls import awaits_stores, ordered_by_barriers
from tile2cu.analysis.uniformity import BLOCK_MEMORY, uniformity_of
from tile2cu.analysis.uses import is_at_top, read_in, readers, statements, written_in
from tile2cu.core.decisions import (
    ALIASING,
    BARRIER,
    BLOCK_BARRIER,
    EXPLICIT_SYNC,
    ITERATION_HAZARDS,
    LAYOUT,
    PART_BARRIER,
    PIPELINE,
    PROLOGUE_LOADS,
    RETIRED,
    SCHEDULE,
    VECTOR,
    WAR_ONLY,
)
from tile2cu.core.errors import Note, Tile2CuError
from tile2cu.core.expr import Call, Expr, Load
from tile2cu.core.program import (
    Atomic,
    AtomicTile,
    Break,
    Buffer,
    CallStmt,
    Continue,
    Copy,
    If,
    Launch,
    Loop,
    Parallel,
    Stmt,
    Store,
    Sync,
    WgmmaWait,
    While,
)
from tile2cu.core.schedule import Hazard, PartBarrier, Pipeline
from tile2cu.core.shared_memory import Aliasing
from tile2cu.rules.engine import Context, Decision, Example, InDivergentCode, Phase, ReadsWhatOthersWrite, rule
from tile2cu.rules.sync.barrier_scope import exchanged_tiles, ordered_by_user, ping_pong_tile, tensors_read_again
from tile2cu.rules.sync.pending_accesses import Pending, Touches, for_all_of, is_of_all
from tile2cu.rules.sync.thread_ownership import Conditions, Owners, Touch, disjoint

# Named barriers that nothing else uses in a block of one group: T.sync_threads(id, n) has 1 to 12 (headers/tl/cuda).
_NAMED_BARRIERS = (15, 14, 13)


@rule(
    "sync.shared.hazard",
    phase=Phase.SYNC,
    on=Launch,
    reads=(ALIASING, EXPLICIT_SYNC, LAYOUT, PIPELINE, PROLOGUE_LOADS, RETIRED, SCHEDULE, VECTOR),
    writes=(BARRIER, BLOCK_BARRIER, ITERATION_HAZARDS, PART_BARRIER, WAR_ONLY),
    source="PTX ISA, 'bar.sync': orders the memory accesses of the threads that take part",
    examples=(
        Example(
            'S = T.alloc_shared((64, 64), "float32")\n'
            'X_local = T.alloc_fragment((64, 64), "float32")\n'
            "T.copy(X[0, 0], S)\n"
            "for i, j in T.Parallel(64, 64):\n"
            "    X_local[i, j] = S[j, i]",
            4,
            "barrier",
            "(Hazard(buffer='S', kind='written'),)",
        ),
    ),
)
def shared_hazard(launch: Launch, context: Context) -> Iterator[Decision]:
    """A barrier is placed exactly where threads have a RAW, WAR or WAW hazard on a shared tile.

    So it is for tensors that a block both writes and reads; T.sync_grid orders blocks. Where each thread accesses its
    own elements again, no barrier is needed: in loops of one layout with the same indices, and for elements that depend
    on nothing but the thread's index. Prefetched copies of a pipelined loop are ordered by the pipeline's barrier;
    tiles that groups of threads exchange by the user's barriers, where there are some; all the user's tiles, where the
    user disabled inserted barriers. Where the user writes all barriers, T.sync_threads() is the block's, even in
    divergent code. Statements are in order for all threads: the second arm of a branch finds what the first one wrote.
    In a branch that whole warps take, or lanes of one warp, a barrier of these threads orders them; another branch is
    split at the barrier, and a loop that some threads leave has predicates.

    Gives: at which T.sync_threads() it is divergent; the hazards that a barrier before the statement ends, and those
    between iterations that a pipeline's barrier ends; nothing where none is needed. Whether the barrier ends reads
    alone (WAR), as nothing was written since the previous one.
    Errors: T2C-P002 when a barrier is needed in other divergent code.
    """
    walker = _Walker(context)
    walker.body(launch.body, Pending(), divergent=None)
    for stmt, part, hazards in walker.part_barriers.values():
        yield stmt, PART_BARRIER, replace(part, hazards=tuple(hazards[name] for name in sorted(hazards)))
    for stmt, hazards in walker.barriers.values():
        yield stmt, BARRIER, tuple(hazards[name] for name in sorted(hazards))
        if id(stmt) in walker.end_reads:
            yield stmt, WAR_ONLY, True
    for stmt, hazards in walker.at_iterations.values():
        yield stmt, ITERATION_HAZARDS, tuple(hazards[name] for name in sorted(hazards))
    for sync in walker.divergent_syncs.values():
        yield sync, BLOCK_BARRIER, True


class _Walker:
    """Walks the statements in order of execution and notes where barriers are needed."""

    def __init__(self, context: Context) -> None:
        self.context = context
        # The barriers that are placed here order shared memory, not the accesses of other blocks to tensors.
        self.uniformity = uniformity_of(context.launch, BLOCK_MEMORY)
        self.owners = Owners(context, self.uniformity)
        self.conditions: Conditions = ()  # of the branches on the thread index around the current statement
        self.aliasing: Aliasing = context.facts.get(context.launch, ALIASING) or Aliasing(())
        self.barriers: dict[int, tuple[Stmt, dict[str, Hazard]]] = {}
        self.end_reads: set[int] = set()
        self.at_iterations: dict[int, tuple[Stmt, dict[str, Hazard]]] = {}  # which pipelines' barriers end
        self.divergent_syncs: dict[int, Sync] = {}  # in divergent code, where other threads wait at other ones
        self.part: tuple[If, PartBarrier] | None = None  # the branch whose threads have a barrier, while inside of it
        self.part_barriers: dict[int, tuple[Stmt, PartBarrier, dict[str, Hazard]]] = {}
        self.part_numbers: dict[tuple[int, ...], int] = {}  # the named barriers of sets of threads
        self.past_part_barriers = Pending()  # accesses that a part's barrier ordered among its own threads
        # A branch whose arms have barriers of their own, and the accesses of earlier arms, which these do not order.
        self.of_other_arms: tuple[If | None, Pending] = None, Pending()
        self.group: int | None = None
        self.once = False
        self.own = ordered_by_user(context) if context.program.own_barriers else ping_pong_tile(context)
        self.exchanged_tiles = exchanged_tiles(context)
        self.tensors = tensors_read_again(context)
        self.lenient = True  # with tensors in divergent code
        self.broken = self.continued = Pending()  # what is pending where the current loop, or its iteration, is left
        found = context.facts.get(context.launch, PROLOGUE_LOADS)
        schedules = (context.facts.get(op, SCHEDULE) for op in context.statements if isinstance(op, Loop))
        waits = (wait for each in schedules if each is not None for wait in each.waits)
        self.retiring = {id(wait.at): wait.retirement.mmas for wait in waits}
        self.first = found.loads if found is not None else ()

    def tracked(self, buffers: Iterable[Buffer]) -> dict[str, Buffer]:
        """The shared tiles whose accesses are ordered here, and tensors that the kernel reads and writes, by name."""
        found = frozenset(buffers)
        tensors = self.tensors & {buffer.memory for buffer in found}
        return {buffer.name: buffer for buffer in shared(found) | tensors if buffer.name not in self.own}

    def written(self, stmt: Stmt) -> dict[str, Buffer]:
        """The shared tiles that a statement writes before it completes, or until a barrier that is placed here.

        TMA arrives at the user's barrier or at that of the prologue loads, and so do copies of single threads into an
        exchanged tile.
        """
        match stmt:
            case Copy(barrier=Load()) | Copy(block=Expr()):
                return {}  # accesses to another block's tile are not ordered here
            case Copy() if stmt in self.first:
                return {}
            case CallStmt(call=Call(function=name)) if name.startswith("cp_async<"):
                found = self.tracked(buffers_written(stmt))
                return {name: buffer for name, buffer in found.items() if name not in self.exchanged_tiles}
            case _:
                return self.tracked(buffers_written(stmt))

    def read(self, stmt: Stmt) -> dict[str, Buffer]:
        """The shared tiles that a statement reads; a copy that arrives at another block's barrier orders it itself."""
        return {} if isinstance(stmt, Copy) and stmt.remote is not None else self.tracked(buffers_read(stmt))

    def filled(self, stmt: Stmt) -> dict[str, Buffer]:
        """The tile that TMA fills: one thread issues it, after all accesses of its group to the tile."""
        by_tma = isinstance(stmt, Copy) and stmt.barrier is not None
        return self.tracked(buffers_written(stmt)) if by_tma else {}

    def names(self, table: Touches) -> set[str]:
        """The tiles of a table that the current threads have used; outside of a group all.

        Excluded are accesses of groups to tiles that they exchange by the user's barriers.
        """
        if self.group is not None:
            return {name for name, group, known in table if group == self.group and not known}
        return {name for name, group, _ in table if is_of_all(group) or name not in self.exchanged_tiles}

    def done(
        self,
        written: dict[str, Buffer],
        read: dict[str, Buffer],
        atomic: frozenset[str] = frozenset(),
        touches: Mapping[str, Touch] = MappingProxyType({}),
    ) -> Pending:
        """Records accesses of the current threads; those to tiles in `atomic` are atomic."""
        users = (self.group, for_all_of(self.group)) if self.once else (self.group,)
        return Pending(
            {(name, user, False): frozenset((touches.get(name),)) for name in written for user in users},
            {(name, user, False): frozenset((touches.get(name),)) for name in read for user in users},
            frozenset(written | read) - atomic,
        )

    def may_conflict(self, name: str, touch: Touch, writes: bool, pending: Pending) -> bool:
        """Whether a statement's access to a tile may conflict with accesses of other threads."""
        tables = (pending.written, pending.read) if writes else (pending.written,)
        before = {each for table in tables for key, touches in table.items() if key[0] == name for each in touches}
        return not all(disjoint(touch, each) for each in before)

    def after_barrier(self, pending: Pending) -> Pending:
        """The pending accesses after a barrier of the current threads: a group's stay unordered with other groups."""
        if self.part is not None:
            self.past_part_barriers = self.past_part_barriers.merge(pending)
            return Pending()
        return Pending() if self.group is None else pending.known_to(self.group)

    def body(self, body: tuple[Stmt, ...], pending: Pending, divergent: If | While | Loop | None) -> Pending:
        """Statements in order; only some threads reach those behind a branch in which others leave the iteration."""
        for position, stmt in enumerate(body):
            if self.group is None and _is_of_groups(stmt) and not (position and _is_of_groups(body[position - 1])):
                run = takewhile(_is_of_groups, body[position:])
                pending = self.before_groups(stmt, [part for part in run if isinstance(part, If)], pending, divergent)
            pending = self.statement(stmt, pending, divergent)
            divergent = divergent or self.uniformity.diverging_exit(stmt)
        return pending

    def before_groups(
        self, first: Stmt, run: list[If], pending: Pending, divergent: If | While | Loop | None
    ) -> Pending:
        """One barrier of the block before adjacent work of its groups.

        A barrier between them could deadlock groups that wait for one another.
        """
        hazards: dict[str, Hazard] = {}
        for stmt in run:
            hazards |= self.hazards_of_group(stmt, group_of(stmt) or 0, pending)
        if not hazards:
            return pending
        self.barrier(first, hazards, divergent)
        return Pending()

    def statement(self, stmt: Stmt, pending: Pending, divergent: If | While | Loop | None) -> Pending:
        match stmt:
            case Loop():
                return self.loop(stmt, pending, divergent)
            case If():
                return self.branch(stmt, pending, divergent)
            case While():
                return self.while_loop(stmt, pending, divergent)
            case (
                Copy(awaited=True)
                | Sync()
                | CallStmt(call=Call(function="barrier_sync" | "sync_grid" | "sync_cluster"))
            ):
                disjoint = divergent is not None or self.group is not None
                if isinstance(stmt, Sync) and disjoint and self.context.program.own_barriers:
                    self.divergent_syncs[id(stmt)] = stmt
                return self.after_barrier(pending)
            case Break():
                self.broken = self.broken.merge(pending)
                return self.after_exit(pending, divergent)
            case Continue():
                self.continued = self.continued.merge(pending)
                return self.after_exit(pending, divergent)
            case WgmmaWait():
                return pending.merge(self.done({}, self.read_until(stmt)))
            case _:
                return self.simple(stmt, pending, divergent)

    def after_exit(self, pending: Pending, divergent: If | While | Loop | None) -> Pending:
        """What is pending behind a `break` or `continue`: all where other threads go on, nothing where none does."""
        return Pending() if divergent is None else pending

    def simple(self, stmt: Stmt, pending: Pending, divergent: If | While | Loop | None) -> Pending:
        """One operation: a barrier before it if it conflicts with accesses of other threads since the last one."""
        reads, writes = self.read(stmt), self.written(stmt)
        changed = writes | self.filled(stmt)
        hazards = self.hazards(reads, changed, pending)
        hazards |= self.taken_over(writes, pending)
        atomic = frozenset(self.tracked(atomic_only(stmt)))
        if isinstance(stmt, AtomicTile | Parallel | Atomic):  # a sum, then a maximum: they do not commute
            atomic -= {buffer.name for buffer in updated_in_several_ways(self.context.launch.body)}
        hazards = {name: hazard for name, hazard in hazards.items() if name not in atomic - pending.plainly}
        touches = {name: self.owners.touch(stmt, tile, self.conditions) for name, tile in (reads | writes).items()}
        hazards = {
            name: hazard
            for name, hazard in self.all_come(hazards, divergent).items()
            if hazard.taken_over or self.may_conflict(name, touches.get(name), name in changed, pending)
        }
        self.require_disjoint_arms(stmt, reads, changed, touches, atomic)
        if isinstance(stmt, Store | Atomic) and any(
            self.owners.overlaps_itself(stmt, tile, self.conditions) for tile in writes.values()
        ):
            raise ReadsWhatOthersWrite.of(stmt)
        if hazards or id(stmt) in self.barriers:
            if pending.written:
                self.end_reads.discard(id(stmt))
            elif id(stmt) not in self.barriers:
                self.end_reads.add(id(stmt))
            self.barrier(stmt, self.also_published(stmt, pending) | hazards if hazards else hazards, divergent)
            pending = self.after_barrier(pending)
        return pending.merge(self.done(writes, reads | self.read_until(stmt), atomic, touches))

    def read_until(self, stmt: Stmt) -> dict[str, Buffer]:
        """The reads that complete at a statement: shared operands of MMAs that retire there, tiles that TMA stores."""
        if awaits_stores(stmt):
            copies = (op for op in self.context.statements if isinstance(op, Copy) and op.begun)
            return self.tracked(op.src.buffer for op in copies)
        retirement = self.context.facts.get(stmt, RETIRED)
        mmas = retirement.mmas if retirement is not None else self.retiring.get(id(stmt), ())
        return self.tracked(region.buffer for op in mmas for region in op.regions)

    def hazards(self, reads: dict[str, Buffer], writes: dict[str, Buffer], pending: Pending) -> dict[str, Hazard]:
        """The hazards of these accesses with accesses of other threads."""
        written, read = self.names(pending.written), self.names(pending.read)
        hazards = {
            name: Hazard(name, "written", overwritten=name not in reads) for name in reads | writes if name in written
        }
        return hazards | {name: Hazard(name, "read") for name in writes if name in read and name not in hazards}

    def taken_over(self, writes: Iterable[str], pending: Pending) -> dict[str, Hazard]:
        """The tiles whose memory is written under another name."""
        mates = {mate for name in writes for mate in self.aliasing.mates(name)}
        written, read = self.names(pending.written), self.names(pending.read)
        found = {name: Hazard(name, "read", taken_over=True) for name in mates if name in read}
        return found | {name: Hazard(name, "written", taken_over=True) for name in mates if name in written}

    def also_published(self, stmt: Stmt, pending: Pending) -> dict[str, Hazard]:
        """Further writes that a barrier before a statement makes visible to later ones."""
        behind = dropwhile(lambda each: each is not stmt, self.context.statements)
        read = {name for each in behind for name in self.read(each)}
        return {name: Hazard(name, "written") for name in self.names(pending.written) & read}

    def all_come(self, hazards: dict[str, Hazard], divergent: If | While | Loop | None) -> dict[str, Hazard]:
        """The hazards that a barrier here ends: in divergent code, those of tensors are the user's."""
        if divergent is None or not self.lenient:
            return hazards
        names = {tensor.name for tensor in self.tensors}
        return {name: hazard for name, hazard in hazards.items() if name not in names}

    def barrier(self, stmt: Stmt, hazards: dict[str, Hazard], divergent: If | While | Loop | None) -> None:
        if self.part is not None and self.part[0] is divergent:
            self.part_barriers.setdefault(id(stmt), (stmt, self.part[1], {}))[2].update(hazards)
            return
        if divergent is not None:
            raise _in_divergent_code(stmt, divergent)
        known = self.barriers.setdefault(id(stmt), (stmt, {}))[1]
        known |= hazards

    def work_of_group(self, stmt: If, group: int, pending: Pending, divergent: If | While | Loop | None) -> Pending:
        """A group's work: ordered by its own barrier, and against other groups by a barrier of the block."""
        hazards = self.hazards_of_group(stmt, group, pending)
        if hazards or id(stmt) in self.barriers:
            self.barrier(stmt, hazards, divergent)
            pending = Pending()
        self.group, self.once = group, stmt.once
        pending = self.body(only_arm(stmt) or (), pending, None)
        self.group, self.once = None, False
        return pending

    def hazards_of_group(self, stmt: If, group: int, pending: Pending) -> dict[str, Hazard]:
        """The hazards of a group's work with accesses of other threads."""
        reads, writes = self.tracked(buffers_read(stmt)), self.tracked(buffers_written(stmt))
        own = (group, for_all_of(group))
        by_user = frozenset() if stmt.once else self.exchanged_tiles
        others = pending.kept(lambda key: key[1] not in own and (key[0] not in by_user or is_of_all(key[1])))
        return self.hazards(reads, writes, others)

    def branch(self, stmt: If, pending: Pending, divergent: If | While | Loop | None) -> Pending:
        group = group_of(stmt)
        if group is not None:
            return self.work_of_group(stmt, group, pending, divergent)
        uniform = self.uniformity.holds(stmt.condition) or self.owners.is_one_for_all(stmt.condition)
        pending = self.condition(stmt, pending, divergent)
        if uniform:
            return self.arms(stmt, pending, divergent)
        return self.diverging(stmt, pending, divergent, lambda before: self.arms(stmt, before, stmt))

    def diverging(
        self,
        stmt: If | While | Loop,
        pending: Pending,
        around: If | While | Loop | None,
        inside: Callable[[Pending], Pending],
    ) -> Pending:
        """A branch or loop that diverges: where a barrier would be needed inside, one before it, if that suffices.

        Else the threads that take an arm of a branch have barriers of their own, if they are whole warps or in one.
        Divergent code `around` it has no barriers, but for those of the threads that take a branch.
        """
        if around is not None and (self.part is None or self.part[0] is not around):
            return inside(pending)
        try:
            self.lenient = around is not None
            return inside(pending)
        except Tile2CuError:
            self.lenient = True
            before = self.before_divergence(stmt, pending, around)
            try:
                return inside(before)
            except Tile2CuError:
                if not isinstance(stmt, If):
                    raise
                return self.parts(stmt, before)
        finally:
            self.lenient = True

    def parts(self, stmt: If, pending: Pending) -> Pending:
        """A branch whose arms have barriers of the threads that take them.

        These barriers order accesses among those threads only, so that all of the branch's are pending after it, and
        no later arm may conflict with an earlier one, except where barriers of the user's order the arms.
        """
        after, outside = pending, self.of_other_arms
        done, unordered = Pending(), not ordered_by_barriers(stmt)
        for body, held in arms(stmt):
            if unordered and not held:
                self.of_other_arms = stmt, outside[1].merge(done)
            around, outer, past = self.conditions, self.part, self.past_part_barriers
            self.conditions = (*around, (stmt.condition, held))
            part = self.part_of(self.owners.taking(self.conditions))
            self.part, self.past_part_barriers = None if part is None else (stmt, part), Pending()
            try:
                done = self.body(body, pending.copy(), stmt).merge(self.past_part_barriers)
                after = after.merge(done)
            finally:
                self.conditions, self.part, self.past_part_barriers = around, outer, past
                self.of_other_arms = outside
        return after

    def require_disjoint_arms(
        self,
        stmt: Stmt,
        reads: dict[str, Buffer],
        writes: dict[str, Buffer],
        touches: Mapping[str, Touch],
        atomic: frozenset[str],
    ) -> None:
        """Requires that no access of earlier arms conflicts with a statement, where no barrier orders the arms.

        Errors: T2C-P002.
        """
        divergent, before = self.of_other_arms
        hazards = {
            name: hazard
            for name, hazard in self.all_come(self.hazards(reads, writes, before), divergent).items()
            if name not in atomic - before.plainly
            and self.may_conflict(name, touches.get(name), name in writes, before)
        }
        if hazards and divergent is not None:
            raise _in_divergent_code(stmt, divergent)

    def part_of(self, taking: tuple[bool, ...] | None) -> PartBarrier | None:
        """The barrier of these threads of a block, or None if they can have none."""
        taken = [thread for thread, active in enumerate(taking or ()) if active]
        target = self.context.target
        if not taken or self.context.launch.groups > 1:
            return None
        warps = {thread // target.warp_size for thread in taken}
        if len(warps) == 1:
            return PartBarrier((), len(taken), lanes=sum(1 << thread % target.warp_size for thread in taken))
        if target.mfma or len(taken) != len(warps) * target.warp_size:
            return None
        number = self.part_numbers.setdefault(tuple(taken), _NAMED_BARRIERS[len(self.part_numbers) % 3])
        return PartBarrier((), len(taken), number=number) if len(self.part_numbers) <= len(_NAMED_BARRIERS) else None

    def arms(self, stmt: If, pending: Pending, divergent: If | While | Loop | None) -> Pending:
        """Both arms; where different threads take them, the second one's accesses may conflict with the first one's.

        They do not where barriers of the user's order the arms.
        """
        around, after = self.conditions, Pending()
        follows = divergent is stmt and not ordered_by_barriers(stmt)
        try:
            for body, held in arms(stmt):
                self.conditions = (*around, (stmt.condition, held))
                before = pending.merge(after) if follows else pending.copy()
                after = after.merge(self.body(body, before, divergent))
            return after
        finally:
            self.conditions = around

    def before_divergence(self, stmt: If | While | Loop, pending: Pending, around: If | While | Loop | None) -> Pending:
        """The barrier that some threads would need in a branch or loop, before it: all threads run it there.

        It orders accesses of before it, not those within it.
        """
        reads, writes = self.tracked(buffers_read(stmt)), self.tracked(buffers_written(stmt))
        hazards = self.hazards(reads, writes, pending) | self.taken_over(writes, pending)
        if not hazards:
            return pending
        self.barrier(stmt, hazards, around)
        return self.after_barrier(pending)

    def condition(self, stmt: If | While | Loop, pending: Pending, divergent: If | While | Loop | None) -> Pending:
        """The elements that the condition, or the bounds of a loop, read."""
        accesses = [access for expr in expressions(stmt) for access in loads(expr, stmt.span) if not access.atomic]
        shared_reads = self.tracked(access.buffer for access in accesses)
        touches = {name: self.owners.touch(stmt, tile, self.conditions) for name, tile in shared_reads.items()}
        self.require_disjoint_arms(stmt, shared_reads, {}, touches, frozenset())
        hazards = {
            name: hazard
            for name, hazard in self.all_come(self.hazards(shared_reads, {}, pending), divergent).items()
            if self.may_conflict(name, touches[name], False, pending)
        }
        if hazards:
            self.barrier(stmt, hazards, divergent)
            pending = self.after_barrier(pending)
        return pending.merge(self.done({}, shared_reads, touches=touches))

    def loop(self, stmt: Loop, pending: Pending, divergent: If | While | Loop | None) -> Pending:
        pipeline = self.context.facts.get(stmt, PIPELINE)
        pending = self.condition(stmt, pending, divergent)
        if pipeline is None or pipeline.producer:
            pending = self.before_loop(stmt, pending, divergent)
        if pipeline is not None:
            left = stmt if self.uniformity.is_left_by_some(stmt.body) else None
            return self.pipelined(stmt, pipeline, pending, divergent or left)
        bounds = (stmt.start, stmt.stop, stmt.step)  # uniform: all threads run each iteration
        uniform = all(map(self.uniformity.holds, bounds)) and not self.uniformity.is_left_by_some(stmt.body)
        if uniform:
            return self.iterations(stmt, pending, divergent)
        return self.diverging(stmt, pending, divergent, lambda before: self.iterations(stmt, before, stmt))

    def iterations(self, stmt: Loop, pending: Pending, divergent: If | While | Loop | None) -> Pending:
        before = pending
        for _ in range(2):  # the second iteration conflicts with accesses of the first
            pending, broken = self.iteration(stmt.body, pending, divergent)
            pending = before.merge(pending)
        return pending.merge(broken)

    def iteration(
        self, body: tuple[Stmt, ...], pending: Pending, divergent: If | While | Loop | None
    ) -> tuple[Pending, Pending]:
        """What is pending at the end of an iteration, and where a `break` left the loop in it."""
        around = self.broken, self.continued
        self.broken = self.continued = Pending()
        try:
            after = self.body(body, pending, divergent)
            return after.merge(self.continued), self.broken
        finally:
            self.broken, self.continued = around

    def while_loop(self, stmt: While, pending: Pending, divergent: If | While | Loop | None) -> Pending:
        """A loop on a condition: all threads reach its barriers only if the condition is uniform.

        Where the condition is evaluated again, at an iteration's end, no barrier can be placed.
        """
        uniform = self.uniformity.holds(stmt.condition) and not self.uniformity.is_left_by_some(stmt.body)
        pending = self.condition(stmt, pending, divergent)
        if uniform:
            return self.evaluations(stmt, pending, divergent)
        return self.diverging(stmt, pending, divergent, lambda before: self.evaluations(stmt, before, stmt))

    def evaluations(self, stmt: While, pending: Pending, divergent: If | While | Loop | None) -> Pending:
        before = pending
        for _ in range(2):
            pending, broken = self.iteration(stmt.body, pending, divergent)
            pending = before.merge(self.condition(stmt, pending, stmt))
        return pending.merge(broken)

    def before_loop(self, stmt: Loop, pending: Pending, divergent: If | While | Loop | None) -> Pending:
        """One barrier before the loop, not one per iteration, for tiles that its iterations read and do not write."""
        read, written = self.tracked(read_in(stmt.body)), self.tracked(written_in(stmt.body))
        hazards = self.hazards({name: read[name] for name in read.keys() - written.keys()}, {}, pending)
        hazards = {
            name: hazard
            for name, hazard in self.all_come(hazards, divergent).items()
            if any(self.may_conflict(name, touch, False, pending) for touch in self.reading(stmt, read[name]))
        }
        if not hazards and id(stmt) not in self.barriers:
            return pending
        self.barrier(stmt, hazards, divergent)
        return self.after_barrier(pending)

    def first_conflicts(self, body: tuple[Stmt, ...], pending: Pending) -> dict[str, Hazard]:
        """The hazards with what is pending of the statements of an iteration before its first barrier."""
        found: dict[str, Hazard] = {}
        for stmt in takewhile(lambda each: id(each) not in self.barriers, statements(body, Stmt)):
            if isinstance(stmt, Loop | If | While):
                continue
            reads, writes = self.read(stmt), self.written(stmt)
            touches = {name: self.owners.touch(stmt, tile, self.conditions) for name, tile in (reads | writes).items()}
            for name, hazard in self.hazards(reads, writes, pending).items():
                if name not in found and self.may_conflict(name, touches.get(name), name in writes, pending):
                    found[name] = hazard
        return found

    def reading(self, loop: Loop, buffer: Buffer) -> Iterator[Touch]:
        """How the iterations of a loop access a tile that they read; unknown for conditions and bounds."""
        for stmt in readers(loop.body, buffer):
            yield None if isinstance(stmt, If | Loop | While) else self.owners.touch(stmt, buffer, self.conditions)

    def pipelined(
        self, stmt: Loop, pipeline: Pipeline, pending: Pending, divergent: If | While | Loop | None
    ) -> Pending:
        """Each iteration begins with the pipeline's barrier, which orders the stages."""
        stages = {buffer.name: buffer for buffer in pipeline.buffers}
        written, read = self.names(pending.written), self.names(pending.read)
        continues = begins_pipeline(stmt, self.context.launch, self.context.facts) is not stmt
        filled = {} if continues else stages  # the pipeline's barriers order them with the loop before
        hazards = {name: Hazard(name, "read") for name in filled if name in read}
        hazards |= {name: Hazard(name, "written", overwritten=True) for name in filled if name in written}
        hazards |= self.taken_over(stages, pending)
        first = self.tracked(buffer for load in pipeline.loads for buffer in buffers_read(load))
        hazards |= self.all_come(self.hazards(first, {}, pending), divergent)
        if hazards or id(stmt) in self.barriers:
            self.barrier(stmt, hazards, divergent)
            pending = self.after_barrier(pending)
        if divergent is not None:
            self.barrier(stmt, {}, divergent)
        before = pending
        after = pending if pipeline.producer else Pending()  # a producer's stages have barriers of their own
        for _ in range(2):
            begin = after.without(set(stages)) if pipeline.producer else Pending()
            after, broken = self.iteration(pipeline.body, begin, divergent)
        if not pipeline.producer and (ended := self.first_conflicts(pipeline.body, after.without(set(stages)))):
            self.at_iterations[id(stmt)] = (stmt, ended)
        after = after.merge(broken)
        if pipeline.producer and not is_at_top(stmt, self.context.launch):
            return before.merge(after.without(set(stages)))  # nothing else uses them
        return before.merge(after).merge(self.done({}, stages))


def _in_divergent_code(stmt: Stmt, divergent: If | While | Loop) -> InDivergentCode:
    what = "branch" if isinstance(divergent, If) else "loop"
    error = InDivergentCode(
        "T2C-P002",
        f"a barrier is needed here, inside a {what} that diverges within the block",
        stmt.span,
        notes=(Note(f"the {what} depends on the thread", divergent.span),),
        help=f"move the copy out of the {what}, make it the same for all threads, or write all "
        "barriers yourself: `pass_configs={'tl.disable_thread_storage_sync': True}`",
    )
    error.op = stmt
    return error


def _is_of_groups(stmt: Stmt) -> bool:
    """Whether it is work that the user gives to one group of threads."""
    return isinstance(stmt, If) and group_of(stmt) is not None and not stmt.once
