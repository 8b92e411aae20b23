"""Statements of a kernel's body, as views for the templates. Decides nothing: asks the facts."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from tile2cu.analysis.accesses import may_change
from tile2cu.analysis.prelude import around, hoisted
from tile2cu.core.decisions import (
    BARRIER,
    BLOCK_BARRIER,
    CALL,
    EARLY_EXIT,
    LAYOUT,
    PIPELINE,
    PROLOGUE_LOADS,
    PROXY_FENCE,
    REDUCTION_WARPS,
    RETIRED,
    RETIRED_BEFORE,
    SLICE_ALIGNMENT,
    STAGING_TILE,
    STORE_OUTSTANDING,
    THREAD_LOCAL_SUM,
    WAR_ONLY,
)
from tile2cu.core.errors import Tile2CuError
from tile2cu.core.expr import Binary, Call, Expr, Load, Role, Var, negated, static_value, walk
from tile2cu.core.facts import Key
from tile2cu.core.layout import Blocked
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
    Reduction,
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
from tile2cu.core.schedule import Hazard
from tile2cu.core.span import Span
from tile2cu.emitter import products
from tile2cu.emitter.comments import BODY_WIDTH, file_of, groups, heading, is_of_rules, listed, wrapped
from tile2cu.emitter.copies import copy_view, operand
from tile2cu.emitter.debug import said
from tile2cu.emitter.elementwise import parallel
from tile2cu.emitter.expressions import Printer
from tile2cu.emitter.layouts import Layouts
from tile2cu.emitter.pipelined import pipelined
from tile2cu.emitter.producer import first_loads, loads_alone
from tile2cu.emitter.scalars import effect, is_packet_added, packet_added, scalar
from tile2cu.emitter.sections import block_indices, touched
from tile2cu.emitter.settled import Settled
from tile2cu.emitter.staged import StagedTile
from tile2cu.emitter.tma import TensorMap, is_producer, persistent_in, staging_tiles, store_dims
from tile2cu.emitter.view import StatementView
from tile2cu.emitter.way import asks_memory, each_taken, visit, visits, walk_in

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
        hazards = self.facts.get(stmt, BARRIER)
        yield from products.before(stmt, self)
        if hazards is not None:
            about = wrapped(f"{self._because(hazards)}  [{self.facts.rule(stmt, BARRIER)}]", BODY_WIDTH)
            call = self._barrier_call(ends_reads=bool(self.facts.get(stmt, WAR_ONLY)))
            yield StatementView("barrier", {"call": call}, stmt.span.line, tuple(about))
        yield from self._left_to(stmt)
        yield from products.landed(stmt, self)
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
        for view in products.cleared(stmt, above, self):
            yield view
            above = []
        yield self.statement(stmt, above)
        yield from products.after(stmt, self)

    def _left_to(self, stmt: Stmt) -> Iterator[StatementView]:
        """The barrier before a copy that stages its fragment where another tile was."""
        name = self.facts.get(stmt, STAGING_TILE) if isinstance(stmt, Copy) else None
        found = next((each for each in staging_tiles(self.settled) if each.name == name), None)
        if found is not None and found.where is not None:
            staging, tile = self.printer.names(found.name), self.printer.names(found.where.name)
            about = f"until all have read {tile}, in whose memory {staging} is  [{self.facts.rule(stmt, STAGING_TILE)}]"
            call = self._barrier_call(ends_reads=True)
            yield StatementView("barrier", {"call": call}, stmt.span.line, tuple(wrapped(about, BODY_WIDTH)))

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

    def _because(self, hazards: tuple[Hazard, ...]) -> str:
        """Why there is a barrier: what other threads did to which tiles."""
        done: dict[str, list[str]] = {}
        for hazard in hazards:
            done.setdefault(hazard.kind, []).append(self.printer.names(hazard.buffer))
        parts = [f"{listed(names)} {'was' if len(names) == 1 else 'were'} {kind}" for kind, names in done.items()]
        again = "it is" if len(hazards) == 1 else "they are"
        if any(hazard.taken_over for hazard in hazards):
            again = "its memory is" if len(hazards) == 1 else "their memory is"
        return f"{', '.join(parts)} by other threads: a barrier before {again} used again"

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
            case Copy() | Fill() | Gemm() | Reduce() | AtomicTile() | Scan():
                return self._operation(stmt)
            case Store() | Let() | Locate() | Declare() | Assign() | Atomic():
                return StatementView("line", {"text": scalar(stmt, self)})
            case Effect():
                return effect(stmt, self)
            case Assert() | Print():
                return StatementView("line", {"text": said(stmt, self.printer)})
            case Break() | Continue():
                return StatementView("line", {"text": f"{type(stmt).__name__.lower()};"})
            case Sync():
                return self._sync(stmt)
            case Parallel():
                return parallel(stmt, self)
            case Loop():
                return self._loop(stmt)
            case While() | If():
                return self._conditional(stmt)
            case _:
                return self._of_group(stmt)

    def _sync(self, stmt: Sync) -> StatementView:
        """T.sync_threads(), to which the block's threads may come at different places."""
        if not self.facts.get(stmt, BLOCK_BARRIER):
            return StatementView("barrier", {"call": self._barrier_call()})
        threads = "block_threads" if self.settled.launch.groups > 1 else "threads"
        about = f"all threads of the block meet here and elsewhere  [{self.facts.rule(stmt, BLOCK_BARRIER)}]"
        return StatementView("barrier", {"call": f"tl::barrier_sync(0, {threads})"}, comments=(about,))

    def _of_group(self, stmt: Stmt) -> StatementView:
        """What a whole group of threads does that has products in flight."""
        match stmt:
            case Await():
                return products.awaited(stmt, self)
            case SetRegisters():
                return products.registers_set(stmt, self)
            case _:
                raise Tile2CuError("T2C-E001", f"no text for {type(stmt).__name__}", stmt.span)

    def _operation(self, op: Copy | Fill | Gemm | Reduce | AtomicTile | Scan) -> StatementView:
        """An operation on tiles: one call."""
        match op:
            case Copy():
                return copy_view(op, self)
            case Fill() if op.dst.buffer.scope is Scope.LOCAL and op.dst.whole and op.dst.buffer.rank == 1:
                return StatementView("line", {"text": self._fill_local(op)})
            case Fill():
                return StatementView("call", self._fill(op))
            case Gemm():
                parts, comments = products.product_call(op, self), products.product_comments(op, self)
                return StatementView("prioritized" if "priority" in parts else "call", parts, comments=comments)
            case Reduce():
                return StatementView("call", self._reduce(op), comments=self._reduce_comments(op))
            case AtomicTile():
                return StatementView("call", self._atomic_tile(op), comments=self._about_adding(op))
            case Scan():
                return StatementView("call", self._scan(op))

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

    @property
    def threads(self) -> str:
        """How many threads share an operation: the block's, or a group's."""
        return f"threads[{self._group or 0}]" if self.settled.launch.shares else "threads"

    def _barrier_call(self, *, ends_reads: bool = False) -> str:
        if self.settled.launch.groups > 1 and self._group is None:
            return "tl::sync_block()"
        if not is_producer(self.settled):
            return "tl::sync_threads()"
        return "tl::sync_readers<threads>()" if ends_reads else "tl::sync_consumers<threads>()"

    def _about_adding(self, op: AtomicTile) -> tuple[str, ...]:
        """How TMA adds a tile."""
        if id(op) not in self.maps:
            return ()
        about = "Each warp writes its rows to the staging tile and fences them for TMA, which adds them to the tensor's"
        return (f"{about} while the block goes on  [{self.facts.rule(op, CALL)}]",)

    def _atomic_tile(self, op: AtomicTile) -> Mapping[str, str]:
        view = self.maps.get(id(op))
        if view is not None:
            place = f"tl::at({', '.join(self.printer.index(part.start) for part in op.dst.ranges)})"
            tiles = f"{self.printer.tile(op.src.buffer)}, {self.printer.names(self.facts[op, STAGING_TILE])}"
            arguments = f"{tiles}, {view.name}, {place}"
            return {"name": self.facts[op, CALL], "template": store_dims(view), "arguments": arguments}
        arguments = f"{operand(op.src, op.dst, self)}, {operand(op.dst, op.src, self)}"
        template = "" if op.src.buffer.scope is Scope.FRAGMENT else self.threads
        return {"name": self.facts[op, CALL], "template": template, "arguments": arguments}

    def _scan(self, op: Scan) -> Mapping[str, str]:
        name = "cummax" if op.kind is Reduction.MAX else "cumsum"
        arguments = f"{self.printer.tile(op.src)}, {self.printer.tile(op.dst)}"
        if op.src.scope is Scope.FRAGMENT:
            arguments += f", {self.printer.names(f'{op.dst.name}_workspace')}"
        name = f"{name}_reversed" if op.reverse else name
        return {"name": name, "template": f"{op.dim}, {self.threads}", "arguments": arguments}

    def _fill(self, op: Fill) -> Mapping[str, str]:
        buffer = op.dst.buffer
        value = "" if op.is_clear else ", " + self.printer.text(op.value, buffer.dtype)
        return {
            "name": "clear" if op.is_clear else "fill",
            "template": self.threads if buffer.scope is Scope.SHARED else "",
            "arguments": self.tile(op.dst, op) + value,
        }

    def _fill_local(self, op: Fill) -> str:
        """A private array, element by element."""
        value, name = self.printer.text(op.value, op.dst.buffer.dtype), self.printer.tile(op.dst.buffer)
        return f"for (auto& element : {name}) element = {value};"

    def _reduce(self, op: Reduce) -> Mapping[str, str]:
        arguments = [self.printer.tile(op.src), self.printer.tile(op.dst)]
        arguments += ["tl::accumulate"] * (not op.clear)
        if self.facts[op, REDUCTION_WARPS] > 1:
            arguments.append(self.printer.names(f"{op.dst.name}_workspace"))
        template = f"{op.dim}, {self.threads}" if op.src.scope is Scope.SHARED else str(op.dim)
        name = f"reduce_{op.kind.value}" + "_or_nan" * op.keeps_nan
        name += "_own" * bool(self.facts.get(op, THREAD_LOCAL_SUM))
        return {"name": name, "template": template, "arguments": ", ".join(arguments)}

    def _reduce_comments(self, op: Reduce) -> tuple[str, ...]:
        parts = self.facts[op, REDUCTION_WARPS]
        if parts == 1:
            return ()
        layout = self.facts[op.src, LAYOUT]
        within = isinstance(layout, Blocked) and layout.parts_within_warps(op.dim)
        who = f"groups of {layout.along(op.dim).lanes} lanes" if within else "warps"
        rule = self.facts.rule(op, REDUCTION_WARPS)
        return (f"{parts} {who} hold a part each: exchanged in shared memory, two barriers inside  [{rule}]",)

    def _loop(self, op: Loop) -> StatementView:
        if is_packet_added(op, self.facts):
            return StatementView("line", {"text": packet_added(op, self)})
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
        buffer = region.buffer
        if buffer.scope is not Scope.SHARED:
            return self.printer.tile(buffer)
        text = self.printer.plane(buffer, tuple(part.start for part in region.ranges[:-2]))
        names = ("rows",) if buffer.rank == 1 else ("rows", "cols")
        parts = list(zip(names, region.ranges[-2:], buffer.shape[-2:], strict=True))
        start = self.facts.get(op, SLICE_ALIGNMENT) if op is not None and buffer.rank == 1 else None
        known = f", tl::RowStart<{start}>" if start else ""
        for name, part, extent in reversed(parts):
            if static_value(part.extent) != static_value(extent):
                count = self.printer.index(part.extent)
                text = f"tl::{name}<{count}{known}>({text}, {self.printer.index(part.start)})"
        return text


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
