"""What a walk over the statements knows: the pending accesses, their hazards, and the barriers that end them."""

from collections.abc import Iterable, Mapping
from itertools import dropwhile
from types import MappingProxyType

from tile2cu.analysis.accesses import (
    buffers_read,
    buffers_written,
    expressions,
    loads,
    shared,
)
from tile2cu.analysis.dependence import is_among
from tile2cu.analysis.sync_calls import awaits_stores
from tile2cu.analysis.uniformity import BLOCK_MEMORY, MEMORY, uniformity_of
from tile2cu.core.decisions import (
    ALIASING,
    PROLOGUE_LOADS,
    RETIRED,
    SCHEDULE,
)
from tile2cu.core.errors import Note
from tile2cu.core.expr import Call, Expr, Load
from tile2cu.core.program import (
    Buffer,
    CallStmt,
    Copy,
    If,
    Loop,
    Stmt,
    Sync,
    While,
)
from tile2cu.core.schedule import Hazard, PartBarrier
from tile2cu.core.shared_memory import Aliasing
from tile2cu.rules.engine import Context, InDivergentCode
from tile2cu.rules.sync.barrier_scope import exchanged_tiles, ordered_by_user, ping_pong_tile, tensors_read_again
from tile2cu.rules.sync.pending_accesses import Pending, Touches, for_all_of, is_of_all
from tile2cu.rules.sync.thread_ownership import Conditions, Owners, Touch, disjoint


class Accesses:
    """The hazards of accesses with pending ones of other threads, and where barriers end them."""

    def __init__(self, context: Context) -> None:
        self.context = context
        # The barriers that are placed here order shared memory, not the accesses of other blocks to tensors.
        self.uniformity = uniformity_of(context.launch, BLOCK_MEMORY)
        self.at_one_time = uniformity_of(context.launch, MEMORY)
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
        self.lenient = True  # with writes of several threads to a tensor in divergent code
        self.in_diverging_loop = False
        self.broken = self.continued = Pending()  # what is pending where the current loop, or its iteration, is left
        found = context.facts.get(context.launch, PROLOGUE_LOADS)
        schedules = (context.facts.get(op, SCHEDULE) for op in context.statements if isinstance(op, Loop))
        waits = (wait for each in schedules if each is not None for wait in each.waits)
        self.retiring = {id(wait.at): wait.retirement.mmas for wait in waits}
        self.first = found.loads if found is not None else ()

    def tracked(self, buffers: Iterable[Buffer]) -> dict[str, Buffer]:
        """The shared tiles whose accesses are ordered here, and tensors that the kernel reads and writes, by name."""
        found = frozenset(buffers)
        tensors = frozenset(tensor for tensor in self.tensors if is_among(tensor, found))
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
        """The hazards that a barrier here ends.

        Those of tensors are the user's in a loop that diverges, in the branches in it, too: no barrier can be there. In
        another branch, so is which thread's value remains in an element of a tensor (WAW): threads that get their
        places from an atomic counter write no element twice.
        """
        if divergent is None or not self.lenient:
            return hazards
        names = {tensor.name for tensor in self.tensors}

        def is_of_user(name: str, hazard: Hazard) -> bool:
            return name in names and (self.in_diverging_loop or hazard.order == "WAW")

        return {name: hazard for name, hazard in hazards.items() if not is_of_user(name, hazard)}

    def barrier(self, stmt: Stmt, hazards: dict[str, Hazard], divergent: If | While | Loop | None) -> None:
        if self.part is not None and self.part[0] is divergent:
            self.part_barriers.setdefault(id(stmt), (stmt, self.part[1], {}))[2].update(hazards)
            return
        if divergent is not None:
            raise _in_divergent_code(stmt, divergent, self.may_agree(divergent))
        known = self.barriers.setdefault(id(stmt), (stmt, {}))[1]
        known |= hazards

    def may_agree(self, stmt: If | While | Loop) -> bool:
        """Whether a branch or loop diverges only where other blocks write what its threads read.

        passes/agree_on_branches.py: the block can vote on a branch.
        """
        return self.at_one_time.taken_by_all(stmt)

    def before_divergence(self, stmt: If | While | Loop, pending: Pending, around: If | While | Loop | None) -> Pending:
        """The barrier that some threads would need in a branch or loop, before it: all threads run it there.

        It orders accesses of before it, not those within it.
        """
        reads, writes = self.tracked(buffers_read(stmt)), self.tracked(buffers_written(stmt))
        hazards = self.hazards(reads, writes, pending) | self.taken_over(writes, pending)
        if not hazards:
            return pending
        self.barrier(stmt, hazards, around)
        return self.behind_barrier(stmt, pending)

    def behind_barrier(self, stmt: If | While | Loop, pending: Pending) -> Pending:
        """The pending accesses behind a barrier before a branch or loop: threads evaluate its condition behind it."""
        reads, touches = self.asked(stmt)
        return self.after_barrier(pending).merge(self.done({}, reads, touches=touches))

    def asked(self, stmt: If | While | Loop) -> tuple[dict[str, Buffer], dict[str, Touch]]:
        """What the condition, or the bounds of a loop, read, but for what they read by atomics, and how."""
        accesses = [access for expr in expressions(stmt) for access in loads(expr, stmt.span) if not access.atomic]
        reads = self.tracked(access.buffer for access in accesses)
        return reads, {name: self.owners.touch(stmt, tile, self.conditions) for name, tile in reads.items()}

    def condition(
        self, stmt: If | While | Loop, pending: Pending, divergent: If | While | Loop | None, *, strict: bool = False
    ) -> Pending:
        """The elements that the condition, or the bounds of a loop, read; `strict` where all threads evaluate it."""
        shared_reads, touches = self.asked(stmt)
        self.require_disjoint_arms(stmt, shared_reads, {}, touches, frozenset())
        found = self.hazards(shared_reads, {}, pending)
        hazards = {
            name: hazard
            for name, hazard in (found if strict else self.all_come(found, divergent)).items()
            if self.may_conflict(name, touches[name], False, pending)
        }
        if hazards:
            self.barrier(stmt, hazards, divergent)
            pending = self.after_barrier(pending)
        return pending.merge(self.done({}, shared_reads, touches=touches))

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
            raise _in_divergent_code(stmt, divergent, self.may_agree(divergent))

    def body(self, body: tuple[Stmt, ...], pending: Pending, divergent: If | While | Loop | None) -> Pending:
        """What is pending behind statements, in order."""
        raise NotImplementedError


_READS = "asks a tensor that the kernel writes: its threads may read different values"


def _in_divergent_code(stmt: Stmt, divergent: If | While | Loop, reads: bool) -> InDivergentCode:
    what = "branch" if isinstance(divergent, If) else "loop"
    error = InDivergentCode(
        "T2C-P002",
        f"a barrier is needed here, inside a {what} that diverges within the block",
        stmt.span,
        notes=(Note(f"the {what} {_READS if reads else 'depends on the thread'}", divergent.span),),
        help=f"move the copy out of the {what}, make it the same for all threads, or write all "
        "barriers yourself: `pass_configs={'tl.disable_thread_storage_sync': True}`",
    )
    error.op = stmt
    return error
