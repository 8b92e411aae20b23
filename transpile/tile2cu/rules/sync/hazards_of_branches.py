"""Hazards in branches: where different threads take the arms, and in the work of groups of threads."""

from collections.abc import Callable

from tile2cu.analysis.accesses import (
    buffers_read,
    buffers_written,
)
from tile2cu.analysis.control import arms, only_arm
from tile2cu.analysis.groups import group_of
from tile2cu.analysis.sync_calls import ordered_by_barriers
from tile2cu.core.errors import Tile2CuError
from tile2cu.core.program import (
    If,
    Loop,
    Stmt,
    While,
)
from tile2cu.core.schedule import Hazard, PartBarrier
from tile2cu.rules.sync.hazards_of_accesses import Accesses
from tile2cu.rules.sync.pending_accesses import Pending, for_all_of, is_of_all

# Named barriers that nothing else uses in a block of one group: T.sync_threads(id, n) has 1 to 12 (headers/tl/cuda).
_NAMED_BARRIERS = (15, 14, 13)


class Branches(Accesses):
    """Walks the arms of branches."""

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
        was, self.in_diverging_loop = self.in_diverging_loop, self.in_diverging_loop or not isinstance(stmt, If)
        try:
            return self._diverging(stmt, pending, around, inside)
        finally:
            self.in_diverging_loop = was

    def _diverging(
        self,
        stmt: If | While | Loop,
        pending: Pending,
        around: If | While | Loop | None,
        inside: Callable[[Pending], Pending],
    ) -> Pending:
        if around is not None and (self.part is None or self.part[0] is not around):
            return inside(pending)
        try:
            self.lenient = around is not None
            return inside(pending)
        except Tile2CuError:
            self.lenient = not self.may_agree(stmt)
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
