"""The operations of a loop whose iterations two warpgroups take in alternation: its parts, and each one's steps."""

from enum import Enum

from tile2cu.core.program import Buffer
from tile2cu.core.record import Record
from tile2cu.plan.copy_ops import GatherRows, TmaLoad
from tile2cu.plan.ops import Mma, Op
from tile2cu.plan.producer_ops import Do, Iterations, Rescale
from tile2cu.plan.slabs import Slabs, parts_of_stage
from tile2cu.plan.structure import Block

# -- operations within an iteration


class Event(Enum):
    """What one warpgroup signals to the other, of an iteration: its first MMAs are issued, or its result is stored."""

    MMAS_ISSUED = "MMAs issued"
    STORED = "stored"


class Signal(Op, frozen=True, kw_only=True, eq=False):
    """An event is signalled to the other warpgroup."""

    event: Event


class AwaitSignal(Op, frozen=True, kw_only=True, eq=False):
    """Until the other warpgroup has signalled an event."""

    event: Event


class LoadSlabs(Op, frozen=True, kw_only=True, eq=False):
    """A load of a tile of a stage, slab by slab, each with a barrier of its own.

    Before the first of the `slabs` that a warpgroup releases, which is in `acquires`, it waits for that release.
    """

    load: TmaLoad | GatherRows
    stages: int
    slabs: tuple[Slabs, ...]
    acquires: tuple[Slabs, ...]


class MmaOfSlabs(Op, frozen=True, kw_only=True, eq=False):
    """An MMA that is started slab by slab of its operand B, each of the stage's `slabs` after it has arrived.

    Threads have written `gathered` slabs, by the generic proxy: a fence is between their arrival and wgmma.
    """

    mma: Mma
    slabs: range
    gathered: bool


class FenceGathered(Op, frozen=True, kw_only=True, eq=False):
    """What threads have written to shared memory, as this one knows, comes before its later wgmmas read it."""


class HandOver(Op, frozen=True, kw_only=True, eq=False):
    """A fragment is stored to the shared memory `through`, from which the other warpgroup takes it."""

    fragment: Buffer
    through: str


class TakeOver(Op, frozen=True, kw_only=True, eq=False):
    """The same elements are loaded to the other warpgroup's `fragment`."""

    fragment: Buffer
    through: str


class CopyRegisters(Op, frozen=True, kw_only=True, eq=False):
    """Each thread's elements of `src` become those of `dst`."""

    src: Buffer
    dst: Buffer


class ClearPartial(Op, frozen=True, kw_only=True, eq=False):
    """A partial sum becomes zero in the warpgroup whose iteration it is not."""

    tile: Buffer


class AddUp(Op, frozen=True, kw_only=True, eq=False):
    """The partial sums of all threads are added, `through` shared memory."""

    total: Buffer
    through: str


Exchange = Signal | AwaitSignal | FenceGathered | HandOver | TakeOver | CopyRegisters | ClearPartial | AddUp


# -- what a warpgroup does of an iteration, and in which


class PingPongKind(Enum):
    """What a part of an iteration is for.

    Its owner starts the first MMAs and sends what follows from them, which the other receives. Both prepare the last
    MMA, with values that one keeps while the next iteration computes them anew, and start it.
    """

    START_OWN = "start own"
    SEND = "send"
    RECEIVE = "receive"
    KEEP = "keep"
    PREPARE = "prepare"
    START_BOTH = "start both"


class PingPongPart(Record, frozen=True, kw_only=True, eq=False):
    """Statements and operations of an iteration that are run as one; `asks` whether they depend on which it is.

    `tile` is the accumulator that it starts or prepares, or the tile that it sends or receives. It is given the
    `values` of an iteration, where it has some.
    """

    kind: PingPongKind
    tile: Buffer
    contents: tuple[Block | Op | Rescale, ...]
    asks: bool
    values: tuple[Buffer, ...] = ()


class RunPingPong(Do, frozen=True, kw_only=True):
    """A part, with the fragments in which its `values` are."""

    part: PingPongPart
    values: tuple[Buffer, ...] = ()


class Perform(Do, frozen=True, kw_only=True):
    """An operation."""

    op: Op


class IfNext(Do, frozen=True, kw_only=True):
    """What is done where the iteration is `followed` by another, or is the `last`."""

    followed: tuple[Do, ...]
    last: tuple[Do, ...]


class WarpgroupSteps(Record, frozen=True, kw_only=True):
    """What a warpgroup does in each iteration: its `own` ones, the `other` one's, and then `both`.

    With `early` it computes its own iterations in those before. It alone has the `parts`.
    """

    own: tuple[Do, ...]
    other: tuple[Do, ...]
    both: tuple[Do, ...]
    early: bool
    parts: tuple[PingPongPart, ...] = ()


class PingPong(Op, frozen=True, kw_only=True, eq=False):
    """A loop whose iterations two warpgroups take in alternation, but for the last MMA, whose columns they share.

    Warpgroup k % 2 owns iteration k, and does the `steps` of its number. The result of an own iteration, `first`, is
    copied to the fragment `own`, and sent through `tile` with what is `handed`; the last MMA adds to `second`, and
    reads the fragment `now`. A stage has the `slabs`. A running sum is added up behind the loop.
    """

    iterations: Iterations
    parts: tuple[PingPongPart, ...]
    steps: tuple[WarpgroupSteps, WarpgroupSteps]
    slabs: tuple[Slabs, ...]
    add_up: AddUp | None
    first: Buffer
    second: Buffer
    tile: Buffer
    handed: tuple[Buffer, ...]
    own: Buffer
    now: Buffer
    rule: str

    @property
    def parts_of_stage(self) -> tuple[range, range]:
        """The slabs that each warpgroup releases."""
        return parts_of_stage(self.slabs)
