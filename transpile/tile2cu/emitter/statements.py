"""Statements of a kernel's body, as views for the templates. Decides nothing: asks the facts."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from tile2cu.analysis.accesses import may_change
from tile2cu.analysis.prelude import around, hoisted
from tile2cu.core.decisions import (
    BARRIER,
    EARLY_EXIT,
    PIPELINE,
    PROLOGUE_LOADS,
    PROXY_FENCE,
    RETIRED,
    RETIRED_BEFORE,
    SLICE_ALIGNMENT,
    STORE_OUTSTANDING,
)
from tile2cu.core.errors import Tile2CuError
from tile2cu.core.expr import Binary, Call, Expr, Load, Role, Var, negated, static_value, walk
from tile2cu.core.facts import Key
from tile2cu.core.program import (
    Assert,
    Assign,
    Atomic,
    AtomicTile,
    Await,
    Break,
    Continue,
    Copy,
    Declare,
    Effect,
    Fill,
    Gemm,
    If,
    Let,
    Locate,
    Loop,
    LoopKind,
    Parallel,
    Print,
    Reduce,
    Region,
    Scan,
    Scope,
    SetRegisters,
    Stmt,
    Store,
    Swizzle,
    Sync,
    While,
    group_of,
    walk_stmts,
)
from tile2cu.core.span import Span
from tile2cu.emitter.elementwise import parallel
from tile2cu.emitter.layouts import Layouts
from tile2cu.emitter.pipelined import pipelined
from tile2cu.emitter.producer import first_loads, loads_alone
from tile2cu.emitter.scalars import effect, is_packet_added, named
from tile2cu.emitter.sections import block_indices, touched
from tile2cu.emitter.staged import StagedTile
from tile2cu.emitter.tma import persistent_in
from tile2cu.emitter.way import asks_memory, each_taken, visit, visits, walk_in
from tile2cu.plan.copies import load_registers, store_registers
from tile2cu.plan.lower import before, lower
from tile2cu.plan.mma import clear_before, wait_after
from tile2cu.plan.operands import Tile
from tile2cu.plan.scalars import atomic_vector
from tile2cu.plan.settled import Settled
from tile2cu.styles.base.comments import BODY_WIDTH, file_of, groups, heading, is_of_rules, listed, wrapped
from tile2cu.styles.base.view import StatementView
from tile2cu.styles.tl.expressions import Printer
from tile2cu.styles.tl.operations import Operations
from tile2cu.styles.tl.tensor_map import TensorMap

_IN_A_HEAD = 6  # operations that are read at a glance in a loop's head
_OWNS = "tl::owns"


class Statements:
    """Views of the statements of one launch."""

    def __init__(
        self,
        settled: Settled,
        printer: Printer,
        layouts: Layouts,
        maps: Mapping[int, TensorMap],
    ) -> None:
        self.settled = settled
        self.facts = settled.facts
        self.printer = printer
        self.layouts = layouts
        self.maps = maps
        self.operations = Operations.of(printer, maps)
        first = settled.facts.get(settled.launch, PROLOGUE_LOADS)
        self._first_reader = first.reader if first is not None else None
        self.idle = settled.facts.get(settled.launch, EARLY_EXIT)
        early = self.idle.before if self.idle is not None else ()
        self.hoisted = tuple(stmt for stmt in hoisted(settled.launch, settled.facts) if stmt not in early)
        self._elsewhere = (*early, *self.hoisted, *first_loads(settled))
        self._of_producer = loads_alone(settled)
        self.walk = walk_in(settled)
        self.is_walking = False  # whether the way to a producer's loop is printed
        self.is_loading = False  # whether a producer's way to its loads is printed, not what the others do
        self.staged: dict[int, StagedTile] = {}
        self.lines: dict[int, str] = {}  # the registers of lines that were loaded a turn before, by the copy's id
        self.behind: dict[int, str] = {}  # a line of text behind a statement, by its id
        self.tile_indices = tuple(block_indices(settled, printer) if persistent_in(settled) is not None else ())
        self._group: int | None = None  # of threads, whose statements are printed
        self._around: Span | None = None  # the place of the statement whose parts are printed
        self.replicated: str | None = None  # the layout of a loop whose elements several threads hold, and all compute
        self.of_packets: set[Var] = set()  # names that stand for a packet's elements in the loop that is printed

    def body(self, body: tuple[Stmt, ...]) -> tuple[StatementView, ...]:
        """The views of a block, paragraph by paragraph, each under its place in the Python file."""
        elsewhere = self._elsewhere if self.is_loading else (*self._elsewhere, *self._of_producer)
        return self.paragraphs(tuple(stmt for stmt in body if stmt not in elsewhere))

    def loading(self, *way: Stmt) -> tuple[StatementView, ...]:
        """What a producer does on its way to its loads, in the loops around them."""
        self.is_loading = True
        views = self.paragraphs(way)
        self.is_loading = False
        return views

    def paragraphs(self, body: tuple[Stmt, ...]) -> tuple[StatementView, ...]:
        """The same of these statements, wherever they stand in the program."""
        shown = tuple(stmt for stmt in body if not isinstance(stmt, Swizzle) and not self._is_unused(stmt))
        barriers = frozenset(id(stmt) for stmt in shown if self._has_barrier(stmt))
        views: list[StatementView] = []
        for group in groups(shown, barriers):
            is_said = group[0].span == self._around  # parts of one operation, as the loop around them
            above = list(group[0].comments) if is_said else heading(group)
            paragraph = [*self._with_barrier(group[0], above)]
            paragraph += [view for stmt in group[1:] for view in self._with_barrier(stmt, [])]
            views += [replace(paragraph[0], gap=bool(views)), *paragraph[1:]]
        return tuple(views)

    def _has_barrier(self, stmt: Stmt) -> bool:
        """Whether a barrier, a fence or a wait for products stands before the statement."""
        waits: tuple[Key[Any], ...] = (BARRIER, PROXY_FENCE, RETIRED_BEFORE)
        return not self.is_loading and any(self.facts.get(stmt, key) is not None for key in waits)

    def _is_unused(self, stmt: Stmt) -> bool:
        """Whether a statement waits for nothing, or locates a tensor that the kernel does not touch."""
        if isinstance(stmt, Await):
            return self.facts.get(stmt, RETIRED) is None
        return isinstance(stmt, Locate) and not any(stmt.tensor in buffers for buffers in touched(self.settled))

    def elements(self, body: tuple[Stmt, ...]) -> tuple[StatementView, ...]:
        """The views of an elementwise body: the user's comments, no places."""
        return _joined(tuple(self.statement(stmt, list(stmt.comments)) for stmt in body))

    def _with_barrier(self, stmt: Stmt, above: list[str]) -> Iterator[StatementView]:
        """The statement, after the barrier it needs; `above` are the comments of its paragraph."""
        if self.is_loading:
            yield self.statement(stmt, above)
            return
        yield from map(self.operations.view, before(stmt, self.settled, self._group))
        stays = persistent_in(self.settled) is not None
        if stmt is self._first_reader:
            tiles = listed([self.printer.names(load.dst.buffer.name) for load in first_loads(self.settled)])
            wait = "first_tiles_ring.wait(round);" if stays else "first_tiles.wait();"
            yield StatementView("line", {"text": f"{wait}  // until TMA has filled {tiles}"})
        if self.facts.get(stmt, STORE_OUTSTANDING) and self._comes_again(stmt):
            yield self._staging_free("before it is written again", above)
            above = []
        if not isinstance(stmt, Gemm):
            yield self.statement(stmt, above)
            if id(stmt) in self.behind:
                yield StatementView("line", {"text": self.behind[id(stmt)]})
            if stmt is self._first_reader and stays:
                text = "first_tiles_ring.release(round);  // this warp has read it; the next tile's comes when all have"
                yield StatementView("line", {"text": text})
            return
        for clear in clear_before(stmt, self.settled):
            yield replace(self.operations.view(clear), comments=tuple(above))
            above = []
        yield self.statement(stmt, above)
        yield from map(self.operations.view, wait_after(stmt, self.settled))

    def _comes_again(self, stmt: Stmt) -> bool:
        """Whether a block may come to a statement several times."""
        loops = (outer for outer in around(self.settled.launch.body, stmt) if isinstance(outer, Loop | While))
        return persistent_in(self.settled) is not None or any(loops)

    def _staging_free(self, until: str, above: Sequence[str] = ()) -> StatementView:
        """The wait until TMA has read what was staged."""
        return StatementView("line", {"text": f"tl::staging_is_free();  // {until}"}, 0, tuple(above))

    def start(self) -> tuple[StatementView, ...]:
        """What all threads do first: those of a block that would write nothing leave."""
        if self.idle is None:
            return ()
        about = f"such a block would write nothing  [{self.facts.rule(self.settled.launch, EARLY_EXIT)}]"
        text = f"if ({self.printer.text(self.idle.condition)}) return;  // {about}"
        first = self.paragraphs(self.idle.before)
        self.printer.holds = negated(self.idle.condition)  # the others have left
        return (*first, StatementView("line", {"text": text}))

    def end(self) -> tuple[StatementView, ...]:
        """What all threads but a producer's do last."""
        left = any(self.facts.get(stmt, STORE_OUTSTANDING) for stmt in walk_stmts(self.settled.launch.body))
        return (replace(self._staging_free("before the block ends"), gap=True),) if left else ()

    def statement(self, stmt: Stmt, above: list[str]) -> StatementView:
        """The statement under its comments: its paragraph's, the one at its line's end, and the emitter's."""
        if self.replicated is not None and (_writes_memory_alone(stmt) or is_packet_added(stmt, self.facts)):
            return self._by_its_owner(stmt, above)
        if self.walk is not None and stmt is self.walk.outer:
            return visits(self.walk, stmt.span.line, self, loading=False)
        if self.walk is not None and self.is_walking and self.facts.get(stmt, PIPELINE) is not None:
            return visit(self.walk, self)
        around, self._around = self._around, self._around if is_of_rules(stmt) else stmt.span
        view = self._bare_view(stmt)
        self._around = around
        own = [stmt.trailing] if stmt.trailing and not any(stmt.trailing in line for line in above) else []
        comments = [line for text in [*above, *own, *view.comments] for line in wrapped(text, BODY_WIDTH)]
        is_own = file_of(stmt) == self.settled.program.source.name  # the manifest tells of no lines of other files
        line = view.line or stmt.span.line if is_own else 0
        return replace(view, line=line, comments=tuple(comments))

    def _by_its_owner(self, stmt: Stmt, above: list[str]) -> StatementView:
        """What only one of the threads does that hold the same element of the loop around."""
        layout, self.replicated = self.replicated, None
        view = self.statement(stmt, above)
        self.replicated = layout
        return StatementView("branch", {"condition": f"{_OWNS}({layout}{{}})"}, view.line, (), (view,))

    def _bare_view(self, stmt: Stmt) -> StatementView:
        match stmt:
            case Copy():
                return self._copy(stmt)
            case Let() | Locate():
                return StatementView("line", {"text": named(stmt, self)})
            case Effect():
                return effect(stmt, self)
            case Parallel():
                return parallel(stmt, self)
            case Loop():
                return self._loop(stmt)
            case While() | If():
                return self._conditional(stmt)
            case (
                AtomicTile()
                | Assign()
                | Atomic()
                | Declare()
                | Store()
                | Fill()
                | Gemm()
                | Reduce()
                | Scan()
                | Await()
                | Sync()
                | SetRegisters()
                | Break()
                | Continue()
                | Assert()
                | Print()
            ):
                return self.operations.view(lower(stmt, self.settled, self._group))
            case _:
                raise Tile2CuError("T2C-E001", f"no text for {type(stmt).__name__}", stmt.span)

    def _conditional(self, stmt: While | If) -> StatementView:
        group = group_of(stmt)
        if group is not None and isinstance(stmt, If):
            outside, self._group = self._group, group
            body = self.body(stmt.then)
            self._group = outside
            return StatementView("branch", {"condition": f"tl::group() == {group}"}, body=body)
        parts = {"condition": self.printer.condition(stmt.condition)}
        if isinstance(stmt, While):
            return StatementView("while", parts, body=self.body(stmt.body))
        return StatementView("branch", parts, body=self.body(stmt.then), orelse=self.body(stmt.orelse))

    def _copy(self, op: Copy) -> StatementView:
        """A copy, or the half of one whose tile waits in registers."""
        if id(op) in self.staged:
            self.operations.copies.registers[id(op)] = self.staged[id(op)].name
            return self.operations.view(load_registers(op, self.settled))
        if id(op) in self.lines:
            self.operations.copies.registers[id(op)] = self.lines[id(op)]
            return self.operations.view(store_registers(op, self.settled))
        return self.operations.view(lower(op, self.settled, self._group))

    def _loop(self, op: Loop) -> StatementView:
        if is_packet_added(op, self.facts):
            return self.operations.view(atomic_vector(op, self.settled))
        pipeline = self.facts.get(op, PIPELINE)
        if pipeline is not None:
            return pipelined(op, pipeline, self)
        if self.walk is not None and self.is_walking and asks_memory(op):
            return each_taken(self.walk, op, self)
        step = int(static_value(op.step) or 0)
        name, stop = self.printer.names(op.var.name), self.printer.text(op.stop)
        named = _is_long(op.stop) or may_change(op.stop, op.body)
        end = self.printer.names.fresh(f"{name}_end") if named else ""
        parts = {
            "end": f"const int {end} = {stop};" if end else "",
            "variable": name,
            "start": self.printer.text(op.start),
            "compare": ">" if step < 0 else "<",
            "stop": end or stop,
            "move": {1: f"++{name}", -1: f"--{name}"}.get(step, f"{name} += {self.printer.text(op.step)}"),
            "unroll": "yes" if op.kind in (LoopKind.UNROLL, LoopKind.VECTORIZED) else "",
        }
        return StatementView("loop", parts, body=self.body(op.body))

    def tile(self, region: Region, op: Stmt | None = None) -> str:
        """A tile, or rows and columns of a shared one: for an operation of which facts may say where they start."""
        start = self.facts.get(op, SLICE_ALIGNMENT) if op is not None and region.buffer.rank == 1 else None
        return self.operations.operands.tile(Tile(region=region, alignment=start or 0))


def _joined(views: tuple[StatementView, ...]) -> tuple[StatementView, ...]:
    """Neighbours that are left to the same thread, as one branch."""
    found: list[StatementView] = []
    for view in views:
        before = found[-1] if found else None
        owned = view.kind == "branch" and view.parts["condition"].startswith(_OWNS)
        if before is not None and owned and (before.kind, before.parts) == (view.kind, view.parts):
            found[-1] = replace(before, body=(*before.body, *view.body))
        else:
            found.append(view)
    return tuple(found)


def _is_long(stop: Expr) -> bool:
    """Whether where a loop stops has a name, as it is too long to read in the loop's head; turns must not change it."""
    operations = sum(isinstance(part, Binary | Call) for part in walk(stop))
    moves = any(isinstance(part, Load) or (isinstance(part, Var) and part.role is Role.MUTABLE) for part in walk(stop))
    return operations > _IN_A_HEAD and not moves


def _writes_memory_alone(stmt: Stmt) -> bool:
    """Whether all that a statement does is to write memory or to print."""
    if isinstance(stmt, If):
        return group_of(stmt) is None and all(map(_writes_memory_alone, (*stmt.then, *stmt.orelse)))
    memory = isinstance(stmt, Store | Atomic) and stmt.buffer.scope in (Scope.GLOBAL, Scope.SHARED)
    return memory or isinstance(stmt, Print)
