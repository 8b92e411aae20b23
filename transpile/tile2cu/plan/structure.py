"""The structure of a plan: paragraphs of statements, and the operations that hold others."""

from collections.abc import Callable
from enum import Enum

from msgspec.structs import replace

from tile2cu.core.expr import Address, Call, Expr, Var, negated
from tile2cu.core.layout import FragmentLayout
from tile2cu.core.program import Buffer, Parallel, Stmt
from tile2cu.core.record import Record
from tile2cu.core.schedule import Hazard, PackedDot
from tile2cu.core.span import Span
from tile2cu.plan.copy_ops import StoreRegisters
from tile2cu.plan.ops import Op
from tile2cu.plan.tensors import TensorView


class Statement(Record, frozen=True, kw_only=True, eq=False):
    """A statement of the program as operations: `op`, and those that it needs around it.

    What orders it after others, `before`, is above the comment of its paragraph; `first` is under it.
    """

    source: Stmt
    op: Op
    before: tuple[Op, ...] = ()
    first: tuple[Op, ...] = ()
    after: tuple[Op, ...] = ()


class Paragraph(Record, frozen=True, kw_only=True, eq=False):
    """Neighbouring statements under one comment; without a `heading` it is part of what the comment above states."""

    statements: tuple[Statement, ...]
    heading: bool

    @property
    def sources(self) -> tuple[Stmt, ...]:
        return tuple(statement.source for statement in self.statements)


Block = tuple[Paragraph, ...]


class For(Op, frozen=True, kw_only=True, eq=False):
    """A loop of each thread. `stop` is evaluated once, where `stop_changes`: the body may change its value."""

    var: Var
    start: Expr
    stop: Expr
    step: Expr
    unrolled: bool
    stop_changes: bool
    body: Block


class While(Op, frozen=True, kw_only=True, eq=False):
    """A loop that ends when `condition` does not hold."""

    condition: Expr
    body: Block


class If(Op, frozen=True, kw_only=True, eq=False):
    """A branch."""

    condition: Expr
    then: Block
    orelse: Block

    @property
    def arms(self) -> "tuple[tuple[Expr, tuple[Statement, ...]], ...]":
        """The arms that have statements, with the condition on which each runs."""
        both = ((self.condition, self.then), (negated(self.condition), self.orelse))
        return tuple((on, tuple(each for part in arm for each in part.statements)) for on, arm in both if arm)

    @property
    def only(self) -> Op | None:
        """What the branch does, if it is one operation without an alternative."""
        alone = not self.orelse and len(self.then) == 1 and len(self.then[0].statements) == 1
        return self.then[0].statements[0].op if alone else None


class OfGroup(Op, frozen=True, kw_only=True, eq=False):
    """What one group of the block's threads does."""

    group: int
    body: Block


class Let(Op, frozen=True, kw_only=True, eq=False):
    """A name for a value. Of `constant` memory nothing is written while the kernel runs."""

    var: Var
    value: Expr
    constant: bool


class BindTensor(Op, frozen=True, kw_only=True, eq=False):
    """The tensor at an address; `written` where the kernel writes it."""

    view: TensorView
    written: bool


class Purpose(Enum):
    """What a call is for, where a reader should be informed."""

    GRID_BARRIER = "grid barrier"
    AWAIT_KERNELS = "await earlier kernels"
    START_KERNELS = "let later kernels start"
    ARRIVE_AS_READER = "arrive as a reader"
    OTHER = "other"


class Invoke(Op, frozen=True, kw_only=True, eq=False):
    """A call, done only where all of `places` are inside their tensors; a cp.async then writes zeros (`fills`)."""

    call: Call
    places: tuple[Address, ...]
    fills: bool
    purpose: Purpose


class Writers(Enum):
    """Who runs an iteration whose elements several threads hold: all; all but for stores; one of them."""

    ALL = "all"
    STORES = "stores"
    ONCE = "once"


class Scaled(Record, frozen=True, kw_only=True, eq=False):
    """The rows of `tile` are multiplied by `factor`, which is 1 in rows of which `before` and `after` are equal."""

    tile: Buffer
    factor: Buffer
    before: Buffer
    after: Buffer
    rule: str


class Elementwise(Op, frozen=True, kw_only=True, eq=False):
    """A loop over all elements in parallel: `layout` states which thread takes which, `vector` neighbours at a time.

    Vectors of `neighbours` are adjacent. `in_registers`: idle lanes compute, too. `any_order`: elements are in
    the order in which numbers of 4 bits come apart. `stores_last`: all is computed before the one store. `scales`:
    it is a rescale that warps may vote to skip. `used`: the variables that the body reads.
    """

    vars: tuple[Var, ...]
    extents: tuple[Expr, ...]
    layout: FragmentLayout
    vector: int
    neighbours: bool
    writers: Writers
    in_registers: bool
    any_order: bool
    stores_last: bool
    scales: Scaled | None
    used: frozenset[Var]
    body: tuple[Statement, ...]


class ByOneHolder(Op, frozen=True, kw_only=True, eq=False):
    """Statements that one of the threads runs which hold the same element of a loop of that layout and extents."""

    layout: FragmentLayout
    extents: tuple[Expr, ...]
    body: tuple[Statement, ...]


class DotsOfFour(Op, frozen=True, kw_only=True, eq=False):
    """Four products of numbers of 2 bits and int8, added to an element."""

    dot: PackedDot


class PipelinedLoop(Op, frozen=True, kw_only=True, eq=False):
    """A loop whose `loads`, by all threads, run `stages` - 1 iterations ahead of its `body`, into stages of `tiles`.

    Its iterations count from 0; `start` is added for the user's variable. With `stores` a tile waits in registers
    first, one iteration longer. `direct`: each iteration starts so many loads past the registers at least, which waits
    count; None where groups are counted. The barrier of the first iteration also publishes what `reads` names; those of
    later ones end the hazards `ended` with the iteration before.
    `number` distinguishes the kernel's pipelined loops; `threads` share the loads. With `may_leave` loads of later
    iterations may be outstanding behind the loop.
    """

    var: Var
    start: Expr
    stop: Expr
    stages: int
    tiles: tuple[Buffer, ...]
    loads: Block
    body: Block
    stores: tuple[StoreRegisters, ...]
    direct: int | None
    reads: tuple[str, ...]
    ended: tuple[Hazard, ...]
    number: int
    threads: int
    may_leave: bool
    rule: str


class AwaitPrologue(Op, frozen=True, kw_only=True, eq=False):
    """Until the `tiles` that a producer loads once are there; in a `persistent` kernel those of this tile of work."""

    tiles: tuple[Buffer, ...]
    persistent: bool


class ReleasePrologue(Op, frozen=True, kw_only=True, eq=False):
    """This warp has read the tiles that are loaded once: those of the next tile of work may be loaded.

    `waits_for_loads`: loads of them may be outstanding, by threads rather than wgmma.
    """

    waits_for_loads: bool


class AwaitStaging(Op, frozen=True, kw_only=True, eq=False):
    """Until TMA has read what was staged, or `completed` its store, before the next one (`again`) or the block ends."""

    again: bool
    completed: bool = False


class Where(Record, frozen=True):
    """The location of a statement: in the part of a `group` of threads, or of the producer, which is `loading`.

    `walking`: on the way to a producer's loop. `around`: the place of the statement that it is a part of. `elect`: the
    loop around whose elements several threads hold, of which one is to write memory. Copies to a tile go
    `to_registers` or `from_registers`, by their ids, where that tile waits in some.
    """

    group: int | None = None
    loading: bool = False
    walking: bool = False
    around: Span | None = None
    elect: Parallel | None = None
    to_registers: frozenset[int] = frozenset()
    from_registers: frozenset[int] = frozenset()


Lower = Callable[[tuple[Stmt, ...], Where], Block]  # how the statements of a place become a block


def mapped(block: Block, change: Callable[[Statement], Statement]) -> Block:
    """A block with each of its statements changed."""
    return tuple(replace(each, statements=tuple(map(change, each.statements))) for each in block)
