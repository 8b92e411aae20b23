"""A kernel as the front end understood it: the user's program, before any decision.

Read top down: a Program has parameters and launches; a Launch has tiles and a body of statements.
"""

from collections.abc import Iterator, Sequence
from enum import Enum
from functools import cached_property
from math import inf

from msgspec.structs import replace

from tile2cu.core.choice import Choice, Unchosen
from tile2cu.core.dtype import DType
from tile2cu.core.expr import Call, Expr, Load, Number, Var, binary, int_const, negated, static_value
from tile2cu.core.memo import kept
from tile2cu.core.record import Record
from tile2cu.core.span import Span
from tile2cu.core.user_file import Constant, Decided, Derived, Source, UserCode


class Scope(Enum):
    """The memory of a buffer."""

    GLOBAL = "global"  # a tensor argument
    SHARED = "shared"  # one tile per block, in shared memory
    FRAGMENT = "fragment"  # one tile per block, distributed over the registers of its threads
    LOCAL = "local"  # a private array in each thread
    BARRIER = "barrier"  # mbarriers in shared memory that the user operates: T.alloc_barrier


class Buffer(Record, frozen=True, kw_only=True):
    """A named tensor or tile. Shape: in elements, outermost first.

    Only GLOBAL buffers may have extents that are not static. `strides` (elements) is given where the tensor is not
    row-major contiguous. Of a `reducer` (T.alloc_reducer), updates in T.Parallel are combined. `of` is the tensor or
    tile that this one is a view of, in another shape or type: T.view. `address` is the address of a tensor that is no
    argument: T.make_tensor.
    """

    name: str
    shape: tuple[Expr, ...]
    dtype: DType
    scope: Scope
    span: Span
    comment: str = ""
    strides: tuple[Expr, ...] | None = None
    reducer: "Reduction | None" = None
    of: "Buffer | None" = None
    arrivals: tuple[int, ...] = ()  # of barriers: the arrivals per phase of each
    across: bool = False  # of barriers at which other blocks of the cluster arrive: T.alloc_cluster_barrier
    address: Expr | None = None

    def __hash__(self) -> int:
        """Of the name alone, for speed, as rules keep buffers in many sets: few different ones share a name."""
        return hash(self.name)

    @property
    def memory(self) -> "Buffer":
        """The tensor or tile that this is a view of, or this one itself."""
        return self.of or self

    @property
    def rank(self) -> int:
        return len(self.shape)

    @property
    def static_shape(self) -> tuple[int, ...]:
        """The extents as ints; tiles always have them. Raises ValueError for a run-time extent."""
        values = [int(value) for extent in self.shape if (value := static_value(extent)) is not None]
        if len(values) < self.rank:
            raise ValueError(f"{self.name} has an extent that is known only at run time")
        return tuple(values)


class Range(Record, frozen=True, kw_only=True):
    """`start : start + extent` along one dimension, in elements."""

    start: Expr
    extent: Expr


class Region(Record, frozen=True, kw_only=True):
    """A box of a buffer: one Range per dimension. Extents are already resolved by T.copy's rules.

    `kept` lists the dimensions that the operation runs over; the others have extent 1 and are fixed at their start.
    `whole` is whether the region is all of the buffer.
    """

    buffer: Buffer
    ranges: tuple[Range, ...]
    kept: tuple[int, ...]
    whole: bool
    span: Span

    @classmethod
    def all_of(cls, buffer: "Buffer", span: Span) -> "Region":
        """All of a buffer."""
        ranges = tuple(Range(start=int_const(0), extent=extent) for extent in buffer.shape)
        return cls(buffer=buffer, ranges=ranges, kept=tuple(range(buffer.rank)), whole=True, span=span)

    @property
    def extents(self) -> tuple[Expr, ...]:
        """The extents of the kept dimensions."""
        return tuple(self.ranges[dim].extent for dim in self.kept)

    def at(self, steps: Sequence[Expr]) -> tuple[Expr, ...]:
        """The indices of the element so many steps along each kept dimension."""
        along = dict(zip(self.kept, steps, strict=True))
        return tuple(
            binary("+", each.start, along[dim]) if dim in along else each.start for dim, each in enumerate(self.ranges)
        )

    @property
    def is_shared_part(self) -> bool:
        """Whether it is rows and columns of a shared tile, or all of it; of more dimensions, of one plane."""
        rank = self.buffer.rank
        if rank > 2:
            return self.buffer.scope is Scope.SHARED and self.kept == (rank - 2, rank - 1)
        return self.buffer.scope is Scope.SHARED and (self.whole or len(self.kept) == rank)


class Stmt(Record, frozen=True, kw_only=True):
    """Base of all statements.

    `comments` are the user's own comment lines above the statement, without the `#`; `trailing` is
    the comment at the end of its line. `span` covers the statement's first line.
    """

    span: Span
    comments: tuple[str, ...] = ()
    trailing: str = ""


class Copy(Stmt, frozen=True, kw_only=True):
    """`T.copy(src, dst)`: elements are converted to dst's type.

    Out-of-bounds loads return zero; out-of-bounds stores are predicated off. `reason` is why the copy was added where
    the user did not write it. With a `barrier` it is an asynchronous T.tma_copy, which arrives there. Blocks of a
    cluster: the first one of the mask `blocks` loads for all of it, and with `awaited` they all wait; or dst is in the
    block of rank `block`, where the copy arrives at `remote`. With `begun` it is T.tma_copy to a tensor, whose tile is
    read until T.tma_store_wait. `evict`, a function of headers/tl/common/tensor.h: the cache eviction policy. With
    `transposed`, src's rows are dst's columns. `laid_out`: the user fixed the mapping of elements to threads, as in
    Parallel. `by_threads`: not by TMA (disable_tma=True). `ends`, one per dimension of a tensor src where there are
    any: elements from there on count as out of bounds; None for the tensor's own end. With `row`, the number of a row
    of dst, src is the coordinates of that row alone, and rows are zero for which `when` is given and does not hold.
    """

    src: Region
    dst: Region
    reason: str = ""
    evict: str = ""
    barrier: Load | None = None
    begun: bool = False
    blocks: int = 0
    awaited: bool = False
    block: Expr | None = None
    remote: Load | None = None
    transposed: bool = False
    laid_out: bool = False
    by_threads: bool = False
    ends: tuple[Expr | None, ...] = ()
    row: Var | None = None
    when: Expr | None = None

    @property
    def plain(self) -> bool:
        """Whether it is the user's own copy within a block, done when it returns: not transposed, begun or remote."""
        elsewhere = any(part is not None for part in (self.barrier, self.block, self.remote))
        return not (self.transposed or self.reason or self.begun or self.blocks or elsewhere)


class Policy(Enum):
    """How the warps of a block partition the rows and columns of a GEMM."""

    DEFAULT = ""  # the user gives no policy
    SQUARE = "Square"
    FULL_ROW = "FullRow"
    FULL_COL = "FullCol"


class Gemm(Stmt, frozen=True, kw_only=True):
    """`T.gemm(a, b, c)`: c += op(a) @ op(b); `clear` makes it c = op(a) @ op(b), `clear_if` where that holds.

    a is (M, K), or (K, M) when `transpose_a`; b is (K, N), or (N, K) when `transpose_b`; c is (M, N), a fragment. With
    `metadata` (T.gemm_sp), a holds two of each four adjacent elements along K, and metadata, in 4 bits for each four,
    which two: the first in the lower 2 bits. A row of it is a row of op(a), or a column with `transpose_metadata`.
    `priority` is the issue priority of the waves in the GEMM that the user asks for.
    """

    a: Region
    b: Region
    c: Region
    metadata: Region | None = None
    transpose_a: bool = False
    transpose_b: bool = False
    transpose_metadata: bool = False
    policy: Policy = Policy.DEFAULT
    clear: bool = False
    clear_if: Expr | None = None
    begun: bool = False  # T.wgmma_gemm: the user waits for it by T.wait_wgmma
    priority: int = 0

    @property
    def mnk(self) -> tuple[int, int, int]:
        m, n, *a = (int(static_value(extent) or 0) for part in (self.c, self.a) for extent in part.extents)
        k = a[0 if self.transpose_a else 1]
        return m, n, k if self.metadata is None else 2 * k

    @property
    def regions(self) -> tuple[Region, ...]:
        """All regions that the GEMM reads, its result included."""
        return (self.a, self.b, self.c) if self.metadata is None else (self.a, self.b, self.c, self.metadata)


class Reduction(Enum):
    SUM = "sum"
    MAX = "max"
    MIN = "min"
    ABSMAX = "absmax"
    ABSSUM = "abssum"
    BITAND = "bitand"
    BITOR = "bitor"
    BITXOR = "bitxor"

    @property
    def atomic(self) -> str:
        """The name of the atomic that combines a value with memory."""
        return "atomic_add" if self is Reduction.SUM else f"atomic_{self.value.removeprefix('bit')}"

    @property
    def operator(self) -> str:
        """The infix operator that combines two values; empty where a function of the kind's name does."""
        return {"sum": "+", "abssum": "+", "bitand": "&", "bitor": "|", "bitxor": "^"}.get(self.value, "")

    def identity(self, dtype: DType) -> Number:
        """The neutral element."""
        most: Number = inf if dtype.is_float else 2 ** (dtype.bits - (dtype.kind == "int")) - 1
        match self:
            case Reduction.MAX:
                return -most if dtype.is_float else (-int(most) - 1 if dtype.kind == "int" else 0)
            case Reduction.MIN:
                return most
            case Reduction.BITAND:
                return -1 if dtype.kind == "int" else most
            case _:
                return 0


class Reduce(Stmt, frozen=True, kw_only=True):
    """`T.reduce_*(src, dst, dim)`: dst = reduction of src along `dim` (from 0).

    With `clear=False`, dst = op(dst, reduction). With `keeps_nan`, a NaN is the maximum and the minimum.
    """

    kind: Reduction
    src: Buffer
    dst: Buffer
    dim: int
    clear: bool = True
    keeps_nan: bool = False


class Fill(Stmt, frozen=True, kw_only=True):
    """`T.fill(dst, value)`; `T.clear(dst)` is a Fill with 0 and `is_clear`."""

    dst: Region
    value: Expr
    is_clear: bool = False


class Store(Stmt, frozen=True, kw_only=True):
    """`buffer[indices] = value`, one element. `op` keeps an augmented assignment: + - * / or empty."""

    buffer: Buffer
    indices: tuple[Expr, ...]
    value: Expr
    op: str = ""


class Let(Stmt, frozen=True, kw_only=True):
    """`var = value`, immutable."""

    var: Var
    value: Expr


class BindTensor(Stmt, frozen=True, kw_only=True):
    """`tensor = T.make_tensor(address, shape, dtype)`: from here on, the tensor at an address."""

    tensor: Buffer


class Declare(Stmt, frozen=True, kw_only=True):
    """`var = T.alloc_var(dtype, init)`: a mutable scalar of each thread."""

    var: Var
    init: Expr | None


class Assign(Stmt, frozen=True, kw_only=True):
    """`var = value` for a mutable scalar. `op` keeps an augmented assignment."""

    var: Var
    value: Expr
    op: str = ""


class Parallel(Stmt, frozen=True, kw_only=True):
    """`for i, j in T.Parallel(M, N)`: independent iterations, distributed over the block's threads.

    With `laid_out` the user fixed the mapping to threads (`loop_layout`), and other statements may rely on it.
    """

    vars: tuple[Var, ...]
    extents: tuple[Expr, ...]
    body: tuple[Stmt, ...]
    laid_out: bool = False


class LoopKind(Enum):
    SERIAL = "serial"
    UNROLL = "unroll"
    PIPELINED = "pipelined"
    VECTORIZED = "vectorized"


class Loop(Stmt, frozen=True, kw_only=True):
    """`for var in T.serial / T.unroll / T.Pipelined(start, stop)`, uniform over the threads.

    `num_stages` is 0 where no pipelining is asked for; `stages_asked` is the file's value where only fewer fit, and
    `stages_of` the kernel's argument that gives it.
    """

    kind: LoopKind
    var: Var
    start: Expr
    stop: Expr
    step: Expr
    num_stages: int = 0
    stages_of: str = ""
    stages_asked: int = 0
    body: tuple[Stmt, ...] = ()

    @property
    def count(self) -> int | None:
        """The trip count, where the loop counts from 0 by 1 and it is known."""
        start, stop, step = (static_value(part) for part in (self.start, self.stop, self.step))
        return int(stop) if stop is not None and (start, step) == (0, 1) else None


class If(Stmt, frozen=True, kw_only=True):
    """A branch on a run-time condition. With `once`, one group of threads executes statements that all groups reach."""

    condition: Expr
    then: tuple[Stmt, ...]
    orelse: tuple[Stmt, ...] = ()
    once: bool = False

    def with_arms(self, then: tuple[Stmt, ...], orelse: tuple[Stmt, ...]) -> tuple[Stmt, ...]:
        """The branch with other arms: none where both are empty, the opposite condition for the second alone."""
        if then:
            return (replace(self, then=then, orelse=orelse),)
        return (replace(self, condition=negated(self.condition), then=orelse, orelse=()),) if orelse else ()


class While(Stmt, frozen=True, kw_only=True):
    """`while condition:`, on a run-time condition."""

    condition: Expr
    body: tuple[Stmt, ...] = ()


class Break(Stmt, frozen=True, kw_only=True):
    """Leaves the innermost serial loop."""


class Continue(Stmt, frozen=True, kw_only=True):
    """Continues with the next iteration of the innermost serial loop."""


class Atomic(Stmt, frozen=True, kw_only=True):
    """`T.atomic_add(buffer[indices], value)` and its kin, one element; without a `kind`, `T.atomic_store`.

    `previous` gets the old value. `order` is its memory order: acquire, release, acq_rel or seq_cst; relaxed where it
    is empty. On a fragment, `T.reducer_update`.
    """

    kind: Reduction | None
    buffer: Buffer
    indices: tuple[Expr, ...]
    value: Expr
    order: str = ""
    previous: Var | None = None


class AtomicTile(Stmt, frozen=True, kw_only=True):
    """`T.atomic_add(dst, src)` of tiles: each element of src is combined with dst's. Extents as for Copy."""

    kind: Reduction
    src: Region
    dst: Region


class Scan(Stmt, frozen=True, kw_only=True):
    """`T.cumsum(src, dst, dim, reverse)`: the inclusive running sum (or maximum) along `dim`."""

    kind: Reduction
    src: Buffer
    dst: Buffer
    dim: int
    reverse: bool = False


class Sync(Stmt, frozen=True, kw_only=True):
    """`T.sync_threads()`: a barrier that the user asks for."""


class WgmmaWait(Stmt, frozen=True, kw_only=True):
    """`T.wait_wgmma(n)`: waits until at most `pending` of the MMAs that T.wgmma_gemm started are in flight."""

    pending: int


class SetRegisters(Stmt, frozen=True, kw_only=True):
    """`T.set_max_nreg(count, is_inc)`: the registers per thread from here on, `more` than before or fewer."""

    count: int
    more: bool


class Assert(Stmt, frozen=True, kw_only=True):
    """`T.device_assert(condition, message)` or an `assert` on a run-time value, by every thread that executes it."""

    condition: Expr
    message: str = ""


class Print(Stmt, frozen=True, kw_only=True):
    """`T.print(what, message)`: a number by every thread that executes it, or each element of a tile once."""

    what: Expr | Buffer
    message: str = ""


class CallStmt(Stmt, frozen=True, kw_only=True):
    """A call for its side effects, by every thread that executes it; its address arguments are its accesses."""

    call: Call


class Swizzle(Stmt, frozen=True, kw_only=True):
    """`T.use_swizzle(panel_size)`: the rasterisation order of the blocks; results do not depend on it."""

    panel: int
    order: str = "row"


# Every kind of statement of a Program, for exhaustive matches.
AnyStmt = (
    Assert
    | Assign
    | Atomic
    | AtomicTile
    | WgmmaWait
    | Break
    | Continue
    | Copy
    | Declare
    | CallStmt
    | Fill
    | Gemm
    | If
    | Let
    | BindTensor
    | Loop
    | Parallel
    | Print
    | Reduce
    | Scan
    | SetRegisters
    | Store
    | Swizzle
    | Sync
    | While
)


class Launch(Record, frozen=True, kw_only=True):
    """One `with T.Kernel(...)`: a grid of blocks, and what each block does."""

    grid: tuple[Expr, ...]  # in blocks, x first
    blocks: tuple[Var, ...]  # the names of the grid's indices, x first
    threads: int  # per group, where there are several: T.ws
    tiles: tuple[Buffer, ...]  # SHARED, FRAGMENT and LOCAL buffers in order of allocation
    body: tuple[Stmt, ...]
    span: Span
    comments: tuple[str, ...] = ()
    groups: int = 1  # independent groups of threads
    shares: tuple[int, ...] = ()  # the threads of each group, where they differ; `threads` are then the first one's
    prelude: tuple[Let, ...] = ()  # values computed before `with T.Kernel`, needed inside
    cluster: tuple[int, ...] = ()  # extents of the clusters that the blocks make, along x, y and z; none: ()
    least_blocks: int = 0  # per SM, as the user asks for; none: 0
    threads_of: str = ""  # the kernel's argument that is the number of threads

    @property
    def sizes(self) -> tuple[int, ...]:
        """The threads of each group, in their order."""
        return self.shares or (self.threads,) * self.groups

    @property
    def block_threads(self) -> int:
        return sum(self.sizes)

    @cached_property
    def statements(self) -> "tuple[Stmt, ...]":
        """All statements of the body, in order, outermost first."""
        return tuple(walk_stmts(self.body))


class Program(Record, frozen=True, kw_only=True):
    """One kernel of the user's file.

    `name` is the outermost function's (factory or eager function), `function` the traced one's. `params` are in call
    order: a Buffer for a tensor, a Var for a scalar. `outputs` are indices into `params` that a caller leaves to be
    allocated and returned. `sizes` are the run-time extents, in the order in which they first appear in the parameters'
    shapes. `bindings` are the values given with -D, as they were given. `alias_of` is the outermost function's name
    where `name` is another one: given with --name, or the file's for a function called main. `workspaces` are tensors
    in global memory that the launches share (T.alloc_global): the launcher provides them, callers do not see them. With
    `own_barriers` the user writes all barriers between accesses to shared tiles (tl.disable_thread_storage_sync).
    `derived` are names for sizes, in the order in which the file computes them; expressions hold the values. `decided`
    are comparisons of named numbers on which the program depends. `dropped` are calls in the kernel's body that Python
    makes when it traces the file, by their names; `rebound` are assignments in one arm of a branch to names that the
    other reads, in a loop, which the next iteration does not see. `doc` is the function's docstring, `about` the
    file's, without the paragraph that is its title, and both without paragraphs about other values of the arguments.
    `choice` is how the values of its tile parameters were chosen, if they were to be. `remarks` are the user's comments
    on scalars and sizes, by their names.
    """

    name: str
    function: str
    doc: str
    about: str
    source: Source
    params: tuple[Buffer | Var, ...]
    outputs: tuple[int, ...]
    sizes: tuple[Var, ...]
    constants: tuple[Constant, ...]
    launches: tuple[Launch, ...]
    span: Span
    comments: tuple[str, ...] = ()
    bindings: tuple[tuple[str, Number | str | None], ...] = ()
    workspaces: tuple[Buffer, ...] = ()
    user_code: tuple[UserCode, ...] = ()
    own_barriers: bool = False
    alias_of: str = ""
    derived: tuple[Derived, ...] = ()
    decided: tuple[Decided, ...] = ()
    dropped: tuple[tuple[Span, str], ...] = ()
    rebound: tuple[tuple[Span, str], ...] = ()
    choice: Choice | Unchosen | None = None
    remarks: tuple[tuple[str, str], ...] = ()


def bodies(stmt: Stmt) -> tuple[tuple[Stmt, ...], ...]:
    """The bodies of a loop or a branch; none of other statements, nor of loops over elements."""
    match stmt:
        case If():
            return (stmt.then, stmt.orelse)
        case Loop() | While():
            return (stmt.body,)
        case _:
            return ()


def walk_stmts(body: tuple[Stmt, ...]) -> Iterator[Stmt]:
    """All statements below `body`, in order, outermost first."""
    for stmt in body:
        yield stmt
        if isinstance(stmt, _AROUND_OTHERS):
            yield from _all_below(stmt)


_AROUND_OTHERS = (If, Loop, While, Parallel)


@kept
def _all_below(stmt: Stmt) -> tuple[Stmt, ...]:
    below = (stmt.body,) if isinstance(stmt, Parallel) else bodies(stmt)
    return tuple(inner for body in below for inner in walk_stmts(body))
