"""Where barriers stand: before a read or write of shared memory that another thread's access must precede."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

from tile2cu.core.accesses import buffers_read, buffers_written, expressions, loads, shared
from tile2cu.core.errors import Note, Tile2CuError
from tile2cu.core.program import Buffer, If, Launch, Loop, Stmt, Sync, While
from tile2cu.core.schedule import Hazard, Overlay, Pipeline
from tile2cu.core.uniform import Uniformity
from tile2cu.rules.engine import Context, Decision, Example, Phase, rule


@dataclass
class _Pending:
    """What the block's threads may have done to shared tiles since the last barrier."""

    written: dict[str, Buffer] = field(default_factory=dict)
    read: dict[str, Buffer] = field(default_factory=dict)

    def copy(self) -> "_Pending":
        return _Pending(dict(self.written), dict(self.read))

    def merge(self, other: "_Pending") -> "_Pending":
        return _Pending(self.written | other.written, self.read | other.read)

    def without(self, names: set[str]) -> "_Pending":
        return _Pending(
            {name: buffer for name, buffer in self.written.items() if name not in names},
            {name: buffer for name, buffer in self.read.items() if name not in names},
        )


@rule(
    "sync.shared.hazard",
    phase=Phase.SYNC,
    on=Launch,
    source="PTX ISA, 'bar.sync': orders the shared-memory accesses of the threads that take part",
    examples=(
        Example(
            'S = T.alloc_shared((64, 64), "float32")\n'
            'X_local = T.alloc_fragment((64, 64), "float32")\n'
            "T.copy(X[0, 0], S)\n"
            "T.copy(S, X_local)",
            4,
            "barrier",
            "(Hazard(buffer='S', kind='written'),)",
        ),
    ),
)
def shared_hazard(launch: Launch, context: Context) -> Iterator[Decision]:
    """A barrier stands exactly where a shared tile is read after other threads wrote it, or written after they used it.

    Copies that run ahead of a pipelined loop are ordered by the pipeline's own barrier.

    Gives: the hazards that a barrier before the statement ends; nothing where none is needed.
    Errors: T2C-P002 when a barrier is needed where not all threads come.
    """
    walker = _Walker(context)
    walker.body(launch.body, _Pending(), divergent=None)
    for stmt, hazards in walker.barriers.values():
        yield stmt, "barrier", tuple(hazards[name] for name in sorted(hazards))


class _Walker:
    """Walks the statements in order of execution and notes where barriers are needed."""

    def __init__(self, context: Context) -> None:
        self.context = context
        self.uniformity = Uniformity(context.launch)
        self.overlay: Overlay = context.facts.get(context.launch, "overlay") or Overlay(())
        self.barriers: dict[int, tuple[Stmt, dict[str, Hazard]]] = {}

    def body(self, body: tuple[Stmt, ...], pending: _Pending, divergent: If | While | None) -> _Pending:
        for stmt in body:
            pending = self.statement(stmt, pending, divergent)
        return pending

    def statement(self, stmt: Stmt, pending: _Pending, divergent: If | While | None) -> _Pending:
        match stmt:
            case Loop():
                return self.loop(stmt, pending, divergent)
            case If():
                return self.branch(stmt, pending, divergent)
            case While():
                return self.while_loop(stmt, pending, divergent)
            case Sync():
                return _Pending()
            case _:
                return self.simple(stmt, pending, divergent)

    def simple(self, stmt: Stmt, pending: _Pending, divergent: If | While | None) -> _Pending:
        """One operation: a barrier before it if it meets what others have done since the last one."""
        reads = {buffer.name: buffer for buffer in shared(buffers_read(stmt))}
        writes = {buffer.name: buffer for buffer in shared(buffers_written(stmt))}
        hazards = {name: Hazard(name, "written") for name in reads | writes if name in pending.written}
        hazards |= {name: Hazard(name, "read") for name in writes if name in pending.read and name not in hazards}
        hazards |= self.taken_over(writes, pending)
        if hazards or id(stmt) in self.barriers:
            self.barrier(stmt, hazards, divergent)
            pending = _Pending()
        return pending.merge(_Pending(writes, reads))

    def taken_over(self, writes: Iterable[str], pending: _Pending) -> dict[str, Hazard]:
        """The tiles whose memory is written by another name."""
        mates = {mate for name in writes for mate in self.overlay.mates(name)}
        found = {name: Hazard(name, "read", taken_over=True) for name in mates if name in pending.read}
        return found | {name: Hazard(name, "written", taken_over=True) for name in mates if name in pending.written}

    def barrier(self, stmt: Stmt, hazards: dict[str, Hazard], divergent: If | While | None) -> None:
        if divergent is not None:
            raise Tile2CuError(
                "T2C-P002",
                "a barrier is needed here, inside a branch that not all threads of the block take",
                stmt.span,
                notes=(Note("the branch depends on the thread", divergent.span),),
                help="move the copy out of the `if`, or make its condition the same for all threads",
            )
        known = self.barriers.setdefault(id(stmt), (stmt, {}))[1]
        known |= hazards

    def branch(self, stmt: If, pending: _Pending, divergent: If | While | None) -> _Pending:
        uniform = self.uniformity.holds(stmt.condition)
        pending = self.condition(stmt, pending, divergent)
        inside = divergent if uniform else stmt
        then = self.body(stmt.then, pending.copy(), inside)
        return then.merge(self.body(stmt.orelse, pending.copy(), inside))

    def condition(self, stmt: If | While, pending: _Pending, divergent: If | While | None) -> _Pending:
        """The shared elements that the condition itself reads."""
        accesses = [access for expr in expressions(stmt) for access in loads(expr, stmt.span)]
        shared_reads = {buffer.name: buffer for buffer in shared(access.buffer for access in accesses)}
        hazards = {name: Hazard(name, "written") for name in shared_reads if name in pending.written}
        if hazards:
            self.barrier(stmt, hazards, divergent)
            pending = _Pending()
        return pending.merge(_Pending({}, shared_reads))

    def loop(self, stmt: Loop, pending: _Pending, divergent: If | While | None) -> _Pending:
        pipeline: Pipeline | None = self.context.facts.get(stmt, "pipeline")
        if pipeline is None or pipeline.producer:
            pending = self.before_loop(stmt, pending, divergent)
        if pipeline is not None:
            return self.pipelined(stmt, pipeline, pending, divergent)
        before = pending
        for _ in range(2):  # the second turn meets what the first left behind
            pending = before.merge(self.body(stmt.body, pending, divergent))
        return pending

    def while_loop(self, stmt: While, pending: _Pending, divergent: If | While | None) -> _Pending:
        """A loop on a condition: its barriers are reached by all threads only if all see the same condition."""
        inside = divergent if self.uniformity.holds(stmt.condition) else stmt
        before = pending = self.condition(stmt, pending, divergent)
        for _ in range(2):
            pending = before.merge(self.condition(stmt, self.body(stmt.body, pending, inside), inside))
        return pending

    def before_loop(self, stmt: Loop, pending: _Pending, divergent: If | While | None) -> _Pending:
        """One barrier before the loop, not one a turn, for tiles that its turns read and do not write."""
        read = shared(frozenset(buffer for part in stmt.body for buffer in buffers_read(part)))
        written = {buffer.name for part in stmt.body for buffer in shared(buffers_written(part))}
        names = {buffer.name for buffer in read} - written
        hazards = {name: Hazard(name, "written") for name in names if name in pending.written}
        if not hazards and id(stmt) not in self.barriers:
            return pending
        self.barrier(stmt, hazards, divergent)
        return _Pending()

    def pipelined(self, stmt: Loop, pipeline: Pipeline, pending: _Pending, divergent: If | While | None) -> _Pending:
        """Each turn begins with the pipeline's barrier; slots are ordered by it."""
        slots = {buffer.name: buffer for buffer in pipeline.buffers}
        hazards = {name: Hazard(name, "read") for name in slots if name in pending.read}
        hazards |= {name: Hazard(name, "written") for name in slots if name in pending.written}
        hazards |= self.taken_over(slots, pending)
        if hazards or id(stmt) in self.barriers:
            self.barrier(stmt, hazards, divergent)
            pending = _Pending()
        if divergent is not None:
            self.barrier(stmt, {}, divergent)
        before = pending
        after = pending if pipeline.producer else _Pending()  # a producer's slots have barriers of their own
        for _ in range(2):
            after = self.body(pipeline.body, after.without(set(slots)) if pipeline.producer else _Pending(), divergent)
        return before.merge(after).merge(_Pending({}, slots))
