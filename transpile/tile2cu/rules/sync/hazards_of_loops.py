"""Hazards in loops: an iteration conflicts with accesses of the one before it."""

from collections.abc import Callable, Iterator
from itertools import takewhile

from tile2cu.analysis.accesses import buffers_read, expressions
from tile2cu.analysis.prelude import begins_pipeline
from tile2cu.analysis.uses import is_at_top, read_in, readers, statements, written_in
from tile2cu.core.decisions import PIPELINE
from tile2cu.core.program import Buffer, If, Loop, Stmt, While
from tile2cu.core.schedule import Hazard, Pipeline
from tile2cu.rules.sync.hazards_of_branches import Branches
from tile2cu.rules.sync.pending_accesses import Pending
from tile2cu.rules.sync.thread_ownership import Touch


class Loops(Branches):
    """Walks the iterations of loops."""

    def loop(self, stmt: Loop, pending: Pending, divergent: If | While | Loop | None) -> Pending:
        pipeline = self.context.facts.get(stmt, PIPELINE)
        pending = self.condition(stmt, pending, divergent)
        if pipeline is None or pipeline.producer:
            pending = self.before_loop(stmt, pending, divergent)
        if pipeline is not None:
            left = stmt if self.uniformity.is_left_by_some(stmt.body) else None
            if self.group is None and not self.context.program.own_barriers and not self.has_one_trip_count(stmt):
                self.barrier(stmt.body[0], {}, stmt)
            return self.pipelined(stmt, pipeline, pending, divergent or left)
        if self.uniformity.taken_by_all(stmt):
            return self.iterations(stmt, pending, divergent)
        return self.diverging(stmt, pending, divergent, lambda before: self.iterations(stmt, before, stmt))

    def has_one_trip_count(self, stmt: Loop) -> bool:
        """Whether all threads run as many iterations."""
        return all(map(self.uniformity.holds, expressions(stmt)))

    def iterations(self, stmt: Loop, pending: Pending, divergent: If | While | Loop | None) -> Pending:
        return self.twice(pending, lambda start: self.iteration(stmt.body, start, divergent))

    def twice(self, before: Pending, iterate: Callable[[Pending], tuple[Pending, Pending]]) -> Pending:
        """What is pending after a loop: the second iteration conflicts with accesses of the first.

        It is skipped where it begins as the first did, and finds the same barriers: nested loops would take 2^depth
        visits of the innermost body.
        """
        pending = before
        for _ in range(2):
            start, known = pending, (len(self.barriers), len(self.part_barriers))
            pending, broken = iterate(start)
            pending = before.merge(pending)
            if pending == start and known == (len(self.barriers), len(self.part_barriers)):
                break
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
        pending = self.condition(stmt, pending, divergent)
        if self.uniformity.taken_by_all(stmt):
            return self.evaluations(stmt, pending, divergent)
        return self.diverging(stmt, pending, divergent, lambda before: self.evaluations(stmt, before, stmt))

    def evaluations(self, stmt: While, pending: Pending, divergent: If | While | Loop | None) -> Pending:

        def evaluate(start: Pending) -> tuple[Pending, Pending]:
            after, broken = self.iteration(stmt.body, start, divergent)
            return self.condition(stmt, after, stmt, strict=divergent is not stmt), broken

        return self.twice(pending, evaluate)

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
        return self.behind_barrier(stmt, pending)

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
            pending = self.behind_barrier(stmt, pending)
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
