"""The recorder: collects the statements of a kernel while its body is traced."""

import math
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TypedDict

from msgspec.structs import replace

from tile2cu.core.dtype import INT32, DType
from tile2cu.core.expr import Call, Expr, Role, Var
from tile2cu.core.program import BindTensor, Buffer, Launch, Reduction, Scope, Stmt, walk_stmts
from tile2cu.core.record import Record
from tile2cu.core.span import Span
from tile2cu.core.user_file import UserCode
from tile2cu.frontend.fault import Fault
from tile2cu.frontend.leaving import without_leaves
from tile2cu.frontend.limits import MAX_BLOCKS
from tile2cu.frontend.names import free_name
from tile2cu.frontend.phases import phases
from tile2cu.frontend.ranges import require_inside
from tile2cu.frontend.values import Allocation, Function, KernelFrame, Placement, Reducer

_INDICES = ("i", "j", "k", "l")  # of loops that the user did not write


class StmtFields(TypedDict):
    """The fields that all statements have."""

    span: Span
    comments: tuple[str, ...]
    trailing: str


class Place(Record, frozen=True):
    """The location of a statement, and the user's comments on it."""

    span: Span
    comments: tuple[str, ...] = ()
    trailing: str = ""

    @property
    def lines(self) -> tuple[str, ...]:
        """All comments, the trailing one last."""
        return self.comments + ((self.trailing,) if self.trailing else ())

    @property
    def fields(self) -> StmtFields:
        """The same as keyword arguments of a statement."""
        return {"span": self.span, "comments": self.comments, "trailing": self.trailing}


@dataclass(eq=False)
class _OpenLaunch:
    grid: tuple[Expr, ...]
    blocks: tuple[Var, ...]
    threads: tuple[int, ...]
    cluster: tuple[int, ...]
    place: Place
    tiles: list[Buffer] = field(default_factory=list)
    least_blocks: int = 0


class Position(Record, frozen=True, eq=False):
    """A place in a block of statements."""

    block: list[Stmt]
    at: int


@dataclass(eq=False)
class Recorder:
    """The launches recorded so far, and the block of statements that is being filled.

    `tracing` is on while the body of a kernel is read. `depth` counts the loops and branches of the program around
    the current statement; `parallel` those of T.Parallel, in which only elementwise statements are allowed.
    `signature` lists the parameters that the kernel's own `def` names, `params` those that turned out to be tensors
    or scalars, in order of declaration. `loops` counts the loops that `break` can leave.
    """

    launches: list[Launch] = field(default_factory=list)
    workspaces: list[Buffer] = field(default_factory=list)
    views: list[Buffer] = field(default_factory=list)  # of tensors, in other shapes
    located: list[BindTensor] = field(default_factory=list)  # tensors at addresses that arguments give
    ranges: dict[Expr, Expr] = field(default_factory=dict)  # of block and T.Parallel indices: from 0 to this
    placements: dict[str, Placement] = field(default_factory=dict)  # of tensors, by name, in the open launch
    otherwise: dict[str, Expr] = field(default_factory=dict)  # of tensors, by name: what is outside, if not 0
    row_values: set[str] = field(default_factory=set)  # tiles with one value per row of another
    pipelined: int = 0  # stages of a `with T.pipeline()` whose loop is still to come
    reducer: Reducer | None = None  # of the T.attr around the current statement
    pasted: list[UserCode] = field(default_factory=list)  # C++ of the user's own
    dropped: dict[Span, str] = field(default_factory=dict)  # calls of the kernel's body that have no effect
    rebound: dict[Span, str] = field(default_factory=dict)  # names that another arm in a loop has read
    random: bool = False  # whether T.rng_init has been called
    passes: tuple[Function, ...] = ()  # of the file, which calls of its own C++ go through
    signature: tuple[str, ...] = ()
    params: dict[str, Buffer | Var] = field(default_factory=dict)
    tracing: bool = False
    depth: int = 0
    parallel: int = 0
    loops: int = 0
    emitted: int = 0  # statements so far
    _launch: _OpenLaunch | None = None
    _blocks: list[list[Stmt]] = field(default_factory=list)
    _live: list[set[str]] = field(default_factory=lambda: [set()])
    _named: Counter[str] = field(default_factory=Counter)
    _pending: list[str] = field(default_factory=list)
    _span: Span | None = None
    _trailing: str = ""
    _unnamed: Buffer | None = None  # a view that has just been made

    @property
    def in_kernel(self) -> bool:
        return self._launch is not None

    @property
    def thread_shape(self) -> tuple[int, ...]:
        """Threads of the open launch along x, y and z."""
        self.require_kernel("a thread index")
        assert self._launch is not None
        return self._launch.threads

    @property
    def blocks_per_cluster(self) -> int:
        assert self._launch is not None
        return math.prod(self._launch.cluster)

    def ask_for_blocks(self, count: int) -> None:
        """So many blocks of the open launch should fit an SM."""
        assert self._launch is not None
        self._launch.least_blocks = count

    @property
    def blocks(self) -> tuple[Var, ...]:
        """The block indices of the open launch."""
        assert self._launch is not None
        return self._launch.blocks

    @property
    def grid(self) -> tuple[Expr, ...]:
        """The extents of the open launch's grid."""
        assert self._launch is not None
        return self._launch.grid

    @property
    def statements(self) -> Iterator[Stmt]:
        """The statements recorded so far, those of open loops and branches included."""
        for block in self._blocks:
            yield from walk_stmts(tuple(block))

    def begin(self, span: Span, comments: Sequence[str], trailing: str) -> None:
        """Start a statement of the user's file: what is emitted next is there."""
        self._span = span
        self._pending += comments
        self._trailing = trailing

    def note(self, comments: Sequence[str]) -> None:
        """Comments that wait for the next statement."""
        self._pending += comments

    @property
    def waiting(self) -> int:
        """How many comments wait for the next statement."""
        return len(self._pending)

    def forget(self, waiting: int) -> None:
        """Drop the comments that came after the first `waiting`: what they are about is not in the program."""
        del self._pending[waiting:]

    def take(self) -> Place:
        """The current place with all waiting comments, which are then used up."""
        assert self._span is not None, "a statement is emitted outside of any statement of the file"
        place = Place(self._span, tuple(self._pending), self._trailing)
        self._pending.clear()
        self._trailing = ""
        return place

    def peek(self) -> Place:
        """The current place, without its comments: they stay for the statement that comes."""
        assert self._span is not None, "a tile is made outside of any statement of the file"
        return Place(self._span)

    def emit(self, stmt: Stmt) -> None:
        """Append a statement to the current block."""
        if not self._blocks:
            self.require_kernel("an operation")
        self._blocks[-1].append(stmt)
        self.emitted += 1

    @property
    def position(self) -> "Position":
        """Where the next statement is."""
        return Position(self._blocks[-1], len(self._blocks[-1]))

    def insert(self, position: "Position", stmt: Stmt) -> None:
        """Put a statement where the recorder has been, in a block that is still open."""
        position.block.insert(position.at, stmt)

    def is_open(self, block: list[Stmt]) -> bool:
        """Whether a block is being filled: the current one, or one around it."""
        return any(block is each for each in self._blocks)

    def amend(self, change: Callable[[Stmt], Stmt]) -> None:
        """Change the statement that was appended last."""
        self._blocks[-1][-1] = change(self._blocks[-1][-1])

    def require_kernel(self, what: str) -> None:
        """Reject what makes sense only inside `with T.Kernel`."""
        if self._launch is None:
            help = "put it into the block of `with T.Kernel(blocks, threads=128) as bx:`"
            raise Fault("T2C-F025", f"{what} is used outside of `with T.Kernel(...)`", help=help)

    def require_tile_operation(self, what: str) -> None:
        """Reject an operation on whole tiles outside of a kernel, and in T.Parallel, where threads are on their own."""
        self.require_kernel(what)
        if self.parallel:
            raise Fault("T2C-F026", f"{what} works on whole tiles; it cannot be inside T.Parallel")

    @contextmanager
    def launch(self, frame: KernelFrame, names: Sequence[str]) -> Iterator[tuple[Var, ...]]:
        """Record one `with T.Kernel(...)`; gives the variables of its block indices."""
        if self._launch is not None:
            raise Fault("T2C-F025", "`with T.Kernel(...)` is inside another")
        if self.depth:
            raise Fault("T2C-F025", "`with T.Kernel(...)` is inside a loop or branch of the program")
        place = self.take()
        with self.scope():
            blocks = tuple(self.variable(name, INT32, Role.BLOCK) for name in names)
            self.ranges.update(zip(blocks, frame.grid, strict=False))
            self._launch = opened = _OpenLaunch(frame.grid, blocks, frame.threads, frame.cluster, place)
            with self.block() as body:
                for stmt in self.located:
                    self.emit(stmt)
                yield blocks
            self._launch = None
            self.placements.clear()
            self.otherwise.clear()
        whole = Launch(
            grid=frame.grid,
            blocks=blocks,
            threads=math.prod(frame.threads),
            cluster=frame.cluster,
            threads_of=frame.threads_of,
            least_blocks=opened.least_blocks,
            tiles=tuple(opened.tiles),
            body=without_leaves(tuple(body)),
            span=place.span,
            comments=place.lines,
        )
        require_inside(whole)
        self.launches += phases(whole)

    @contextmanager
    def block(self) -> Iterator[list[Stmt]]:
        """A nested block of statements, and a scope for the names of its variables."""
        if len(self._blocks) > MAX_BLOCKS:
            message = f"loops and branches are nested more than {MAX_BLOCKS} deep"
            raise Fault("T2C-F002", message, help="join conditions with `and`, or loops in one T.Parallel")
        body: list[Stmt] = []
        self._blocks.append(body)
        with self.scope():
            yield body
        self._blocks.pop()

    @contextmanager
    def scope(self) -> Iterator[None]:
        """Names made inside may be made again after it."""
        self._live.append(set())
        yield
        self._live.pop()

    def variable(self, name: str, dtype: DType, role: Role) -> Var:
        """A new variable, named as the user named it unless that name is in use around it."""
        name = self.unique("unused" if name == "_" else name)
        self._named[name] += 1
        return Var(dtype, name, role, self._named[name] - 1)

    def indices(self, extents: Sequence[Expr], role: Role = Role.PARALLEL) -> tuple[Var, ...]:
        """The variables of a loop over elements that the user did not write. Raises Fault T2C-F020 past four."""
        if len(extents) > len(_INDICES):
            message = f"an operation on elements has at most {len(_INDICES)} dimensions"
            raise Fault("T2C-F020", message, help="write it as a loop over parts with fewer")
        with self.scope():
            made = tuple(self.variable(name, INT32, role) for name in _INDICES[: len(extents)])
        self.ranges |= dict(zip(made, extents, strict=True))
        return made

    def unique(self, name: str) -> str:
        """The name, numbered if it is in use here; it is in use from now on until the scope ends."""
        taken = set().union(*self._live)
        if self._launch is not None:
            taken |= {tile.name for tile in self._launch.tiles}
        found = free_name(name, taken)
        self._live[-1].add(found)
        return found

    @property
    def trailing(self) -> str:
        """The comment at the end of the current statement's line, if nothing has taken it."""
        return self._trailing

    def add_param(self, name: str, param: Buffer | Var) -> Buffer | Expr:
        """A parameter of the kernel: no variable takes its name. Gives its value, as a type that C has rounded."""
        if name in self.params:
            raise Fault("T2C-F029", f"the parameter `{name}` is declared twice")
        given = param if isinstance(param, Buffer) else replace(param, dtype=param.dtype.as_argument)
        self.params[name] = given
        self._live[0].add(name)
        if isinstance(given, Buffer) or given.dtype == param.dtype:
            return given
        return Call(param.dtype, "cast", (given,))

    def allocate(self, name: str, value: Allocation) -> Buffer:
        """A new tile of the open launch, or a workspace in global memory."""
        assert value.scope is not None
        if value.address is not None:
            return self._locate(name, value)
        made = (value.shape, value.dtype, value.scope, value.reducer, value.arrivals)
        return self.allocate_at(self.take(), name, *made, across=value.across)

    def _locate(self, name: str, value: Allocation) -> Buffer:
        """The tensor at an address; one that is made before the kernels is there in all of them."""
        if self.parallel:
            raise Fault("T2C-F026", "T.make_tensor is inside T.Parallel", help="move it above the loop")
        at = self.take()
        tensor = Buffer(
            name=self.unique(name),
            shape=value.shape,
            dtype=value.dtype,
            scope=value.scope or Scope.GLOBAL,
            span=at.span,
            strides=value.strides,
            address=value.address,
        )
        stmt = BindTensor(tensor=tensor, **at.fields)
        if self.in_kernel:
            self.emit(stmt)
        else:
            self.located.append(stmt)
        return tensor

    def allocate_at(
        self,
        place: Place,
        name: str,
        shape: tuple[Expr, ...],
        dtype: DType,
        scope: Scope,
        reducer: Reduction | None = None,
        arrivals: tuple[int, ...] = (),
        *,
        across: bool = False,
    ) -> Buffer:
        """As `allocate`, for a statement that does more than allocate."""
        assert self._launch is not None or scope is Scope.GLOBAL
        comment = "\n".join(place.lines)
        tile = Buffer(
            name=self.unique(name),
            shape=shape,
            dtype=dtype,
            scope=scope,
            span=place.span,
            comment=comment,
            reducer=reducer,
            arrivals=arrivals,
            across=across,
        )
        if self._launch is None or scope is Scope.GLOBAL:
            self.workspaces.append(tile)
        else:
            self._launch.tiles.append(tile)
        return tile

    def show(self, name: str, shape: tuple[Expr, ...], of: Buffer, span: Span, dtype: DType | None = None) -> Buffer:
        """Another shape, and type, for the bits of a tensor or tile."""
        found = dtype or of.dtype
        view = Buffer(name=self.unique(name), shape=shape, dtype=found, scope=of.scope, span=span, of=of.memory)
        self._views_of(view.scope).append(view)
        self._unnamed = view
        return view

    def name_view(self, view: Buffer, name: str) -> Buffer:
        """A view that has just been made, under the name that it is assigned to; any other as it is."""
        if view is not self._unnamed:
            return view
        self._unnamed = None
        listed = self._views_of(view.scope)
        listed[-1] = replace(view, name=self.unique(name))
        return listed[-1]

    def _views_of(self, scope: Scope) -> list[Buffer]:
        """Where views are listed: those of tiles are tiles of the launch."""
        if scope is Scope.GLOBAL:
            return self.views
        assert self._launch is not None
        return self._launch.tiles

    def owns(self, buffer: Buffer) -> bool:
        """Whether a buffer can be used in the open launch: a tensor, or a tile of this launch."""
        return buffer.scope is Scope.GLOBAL or (self._launch is not None and buffer in self._launch.tiles)

    def require_owned(self, buffer: Buffer) -> None:
        """Errors: T2C-F025 for a tile of another launch."""
        if not self.owns(buffer):
            raise Fault("T2C-F025", f"`{buffer.name}` belongs to a `with T.Kernel(...)` that has ended")
