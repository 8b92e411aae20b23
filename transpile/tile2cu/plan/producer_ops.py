"""The operations of a kernel with a producer: its loads, the loops that consume them, and the way to those loops."""

from enum import Enum

from tile2cu.core.expr import Expr, Var
from tile2cu.core.program import Buffer, Copy, Stmt
from tile2cu.core.record import Record
from tile2cu.core.schedule import DeferredReduction, RowFactor, WarpgroupTripCount
from tile2cu.plan.ops import Op
from tile2cu.plan.structure import Block, Statement


class Iterations(Record, frozen=True, kw_only=True, eq=False):
    """How the iterations of a producer's loop count, from 0, and which of the `stages` their `tiles` are in.

    The loop is the kernel's pipelined loop `number`: its only one, at the top of its body, or `inside` of others.
    `continues`: the ring's state continues from one run of the loop, or loop of the same tiles, to the next; `counted`:
    where iterations overlap, rings count those of earlier runs instead. `persistent`: rings count the iterations of all
    tiles of work. `published` tiles come with the iteration that they are of; then who is `loading` counts by that.
    `may_be_negative`: the bounds do not show that `stop` is `start` at least.
    """

    var: Var
    start: Expr
    stop: Expr
    stages: int
    number: int
    tiles: tuple[Buffer, ...]
    published: tuple[Buffer, ...]
    inside: bool
    continues: bool
    counted: bool
    persistent: bool
    loading: bool
    may_be_negative: bool


class Ring(Record, frozen=True, kw_only=True, eq=False):
    """The stages of one tile that TMA loads by itself; it `publishes` the iteration that it is of.

    `loaded`: threads read it by loads, too, rather than wgmma alone.
    """

    tile: Buffer
    stages: int
    publishes: bool
    loaded: bool


class VisitedWork(Record, frozen=True, kw_only=True, eq=False):
    """What a kernel visits on the way to its loads: tiles of work, or `iterations`; those of one tile of work if
    `within_tile`. `values` tell one.
    """

    iterations: bool
    within_tile: bool
    values: tuple[Var, ...]


# -- what producers do


class Loads(Enum):
    """How a producer runs its loads: of a loop, of a loop of one iteration, of an iteration that is visited."""

    LOOP = "loop"
    ONCE = "once"
    VISITED = "visited"


class Produce(Op, frozen=True, kw_only=True, eq=False):
    """The loads of a loop on a producer's way to it; with `rings`, each acquires a stage of its own."""

    iterations: Iterations
    rings: bool
    loads: Block
    how: Loads


# -- loops that consume


class Prefetch(Record, frozen=True, kw_only=True, eq=False):
    """Vectors that all threads load to registers one iteration ahead: `loads`, of which `copies` move them."""

    copies: tuple[Copy, ...]
    loads: tuple[Statement, ...]
    rule: str


class PrefetchNext(Op, frozen=True, kw_only=True, eq=False):
    """The vectors of the next iteration start to load."""

    prefetch: Prefetch


class Consume(Op, frozen=True, kw_only=True, eq=False):
    """A loop whose iterations wait for their stage, and release it at their end; of one iteration if `once`.

    `reads_var`: the body uses the loop's variable; `waits_for_loads`: loads of the stage may be outstanding at its end.
    """

    iterations: Iterations
    body: Block
    once: bool
    waits_for_loads: bool
    reads_var: bool
    prefetch: Prefetch | None


class AcquireStage(Op, frozen=True, kw_only=True, eq=False):
    """Until all consumer warps have released the stage of an iteration in the ring of `tile`.

    With `publishes` consumers are told the iteration with the tile.
    """

    tile: Buffer
    publishes: bool


class AwaitStage(Op, frozen=True, kw_only=True, eq=False):
    """Until TMA has filled the stage of an iteration in a ring."""

    ring: Ring


# -- loops whose iterations overlap: parts of an iteration, and what each phase of the loop does


class PartKind(Enum):
    """What a part of an iteration is for: to start an MMA, to process its result, to prepare the start of one."""

    START = "start"
    PROCESS = "process"
    PREPARE = "prepare"


class Part(Record, frozen=True, kw_only=True, eq=False):
    """Statements of an iteration that are run as one; `asks` whether they depend on which iteration it is.

    `tile` is the accumulator that the part starts, processes or prepares, or the operand that it prepares.
    """

    kind: PartKind
    tile: Buffer
    block: Block
    asks: bool


class Do(Record, frozen=True, kw_only=True):
    """What is done for an iteration: the current one, shifted by `shift`: -1 for the one before, 1 for the next."""

    shift: int


class RunPart(Do, frozen=True, kw_only=True):
    """A part."""

    part: Part


class RunStatement(Do, frozen=True, kw_only=True):
    """A statement."""

    statement: Statement


class AwaitMmas(Do, frozen=True, kw_only=True):
    """Until the MMAs with these `results` have retired; `pending` ones remain in flight."""

    results: tuple[Buffer, ...]
    pending: tuple[Buffer, ...]


class AwaitLoads(Do, frozen=True, kw_only=True):
    """Until the iteration's loads have arrived, where all are of one pipeline."""


class ReleaseStage(Do, frozen=True, kw_only=True):
    """The iteration's stage may be loaded again: that of a ring, or of the one pipeline.

    `waits_for_loads`: loads of it may be outstanding, by threads rather than wgmma.
    """

    ring: Ring | None
    waits_for_loads: bool


class Phases(Record, frozen=True, kw_only=True):
    """The parts of a loop's iterations, in order, and what its prologue, each later iteration and its epilogue do."""

    parts: tuple[Part, ...]
    prologue: tuple[Do, ...]
    steady: tuple[Do, ...]
    epilogue: tuple[Do, ...]


class Mask(Record, frozen=True, kw_only=True, eq=False):
    """A mask of the first MMA's result, the branch `branch`; unmasked iterations have a loop of their own."""

    lets: Block
    condition: Expr
    branch: Block


class Rescale(Record, frozen=True, kw_only=True, eq=False):
    """A factor of rows that is 1 in most iterations: `compute` and `apply` it where a row of the warp has another."""

    factor: RowFactor
    compute: Block
    apply: Block
    rule: str


class Overlapped(Op, frozen=True, kw_only=True, eq=False):
    """A loop whose schedule interleaves two iterations.

    MMAs with the results `first` are of the iteration itself, those of `second` are awaited in the next one. Operands
    in shared memory, `written` by the iterations, have two stages. With a `mask` that comes in front of the first part
    that processes a result. Where iterations are skipped, `visiting` describes one. `trips` is a warpgroup's own
    trip count. Of the `running` sum each thread has a part, until the loop has ended. It `runs` if there provably is
    an iteration.
    """

    iterations: Iterations
    rings: tuple[Ring, ...]
    phases: Phases
    first: tuple[Buffer, ...]
    second: tuple[Buffer, ...]
    written: tuple[Buffer, ...] = ()
    mask: Mask | None = None
    rescale: Rescale | None = None
    visiting: VisitedWork | None = None
    trips: WarpgroupTripCount | None = None
    running: DeferredReduction | None = None
    runs: bool = False
    rule: str

    @property
    def rolled(self) -> bool:
        """Whether an iteration only waits for MMAs of the one before, so that its prologue needs no code of its own."""
        return not any(isinstance(do, RunPart | RunStatement) for do in self.phases.epilogue)


# -- the way to a producer's loop


class Visit(Op, frozen=True, kw_only=True, eq=False):
    """Where the way has led to a tile of work or an iteration."""

    visiting: VisitedWork


class Visits(Op, frozen=True, kw_only=True, eq=False):
    """What is done at each of them."""

    visiting: VisitedWork
    body: Block


class EachActive(Op, frozen=True, kw_only=True, eq=False):
    """A loop of which memory tells the active iterations: each lane of a warp asks about one."""

    var: Var
    start: Expr
    stop: Expr
    asked: Block
    condition: Expr
    branch: Stmt
    visited: Block
    visit: Visit
