"""Barriers: before a read or write of memory that another thread's access must precede."""

from collections.abc import Iterator
from itertools import takewhile

from msgspec.structs import replace

from tile2cu.analysis.accesses import (
    atomic_only,
    updated_in_several_ways,
)
from tile2cu.analysis.groups import group_of
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
from tile2cu.core.expr import Call
from tile2cu.core.program import (
    Atomic,
    AtomicTile,
    Break,
    CallStmt,
    Continue,
    Copy,
    If,
    Launch,
    Loop,
    Parallel,
    Stmt,
    Sync,
    WgmmaWait,
    While,
)
from tile2cu.rules.engine import Context, Decision, Example, Phase, ReadsWhatOthersWrite, rule
from tile2cu.rules.sync.hazards_of_loops import Loops
from tile2cu.rules.sync.pending_accesses import Pending


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

    So it is for tensors that a block both writes and reads, or writes again, as in boxes of several iterations that may
    overlap without being the same one; T.sync_grid orders blocks. Where each thread accesses its
    own elements again, no barrier is needed: in loops of one layout with the same indices, and for elements that depend
    on nothing but the thread's index. Prefetched copies of a pipelined loop are ordered by the pipeline's barrier;
    tiles that groups of threads exchange by the user's barriers, where there are some; all the user's tiles, where the
    user disabled inserted barriers. Where the user writes all barriers, T.sync_threads() is the block's, even in
    divergent code. Statements are in order for all threads: the second arm of a branch finds what the first one wrote.
    In a branch that whole warps take, or lanes of one warp, a barrier of these threads orders them; another branch is
    split at the barrier, and a loop that some threads leave has predicates. A block votes on a branch that asks
    a tensor which the kernel writes, since its threads read the element at different times. A `while` that asks
    what its iterations write has a barrier at the end of each.

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


class _Walker(Loops):
    """Walks the statements in order of execution and notes where barriers are needed."""

    def body(self, body: tuple[Stmt, ...], pending: Pending, divergent: If | While | Loop | None) -> Pending:
        """Statements in order; only some threads reach those behind a branch in which others leave the iteration."""
        for position, stmt in enumerate(body):
            if self.group is None and _is_of_groups(stmt) and not (position and _is_of_groups(body[position - 1])):
                run = takewhile(_is_of_groups, body[position:])
                pending = self.before_groups(stmt, [part for part in run if isinstance(part, If)], pending, divergent)
            pending = self.statement(stmt, pending, divergent)
            divergent = divergent or self.uniformity.diverging_exit(stmt)
        return pending

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
            several = {buffer.name for buffer in updated_in_several_ways(self.context.launch.body)}
            # In divergent code their order in a tensor is the user's.
            users = {tensor.name for tensor in self.tensors} if divergent is not None and self.lenient else set()
            atomic -= several - users
        hazards = {name: hazard for name, hazard in hazards.items() if name not in atomic - pending.plainly}
        touches = {name: self.owners.touch(stmt, tile, self.conditions) for name, tile in (reads | writes).items()}
        hazards = {
            name: hazard
            for name, hazard in self.all_come(hazards, divergent).items()
            if hazard.taken_over or self.may_conflict(name, touches.get(name), name in changed, pending)
        }
        self.require_disjoint_arms(stmt, reads, changed, touches, atomic)
        if any(self.owners.overlaps_itself(stmt, tile, self.conditions) for tile in writes.values()):
            raise ReadsWhatOthersWrite.of(stmt)
        if hazards or id(stmt) in self.barriers:
            if pending.written:
                self.end_reads.discard(id(stmt))
            elif id(stmt) not in self.barriers:
                self.end_reads.add(id(stmt))
            self.barrier(stmt, self.also_published(stmt, pending) | hazards if hazards else hazards, divergent)
            pending = self.after_barrier(pending)
        return pending.merge(self.done(writes, reads | self.read_until(stmt), atomic, touches))


def _is_of_groups(stmt: Stmt) -> bool:
    """Whether it is work that the user gives to one group of threads."""
    return isinstance(stmt, If) and group_of(stmt) is not None and not stmt.once
