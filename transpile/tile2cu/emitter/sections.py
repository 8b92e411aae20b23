"""The declarations around a kernel's body: tensors, fragments and the block's place in the grid."""

from collections.abc import Iterator

from tile2cu.analysis.accesses import expressions
from tile2cu.analysis.sync_calls import is_cluster_barrier
from tile2cu.core.decisions import (
    BOUNDS_CHECKED,
    RASTER_GROUP,
    ROW_ALIGNMENT,
    ROW_ALIGNMENT_IF,
    TILE_ORDER,
    TMA_IF,
    WORKSPACES,
)
from tile2cu.core.expr import Expr, Var, walk
from tile2cu.core.facts import Fact, Key, Subject
from tile2cu.core.program import (
    Copy,
    Pasted,
    Scope,
    Swizzle,
    walk_stmts,
)
from tile2cu.core.schedule import Multiple, strictest
from tile2cu.emitter.tma import persistent_in
from tile2cu.plan.settled import Settled
from tile2cu.plan.shared import overlay_of, shared_tile, staging_tiles
from tile2cu.plan.tensors import tensor_view, viewed_tensors
from tile2cu.styles.base.comments import BODY_WIDTH, ascii_source, rule_line, wrapped
from tile2cu.styles.base.view import Declaration, Section
from tile2cu.styles.tl.constants import Constants
from tile2cu.styles.tl.expressions import Printer
from tile2cu.styles.tl.shared import Shared, place_of
from tile2cu.styles.tl.tensors import parameter

_PANELS = {"row": "rows", "col": "columns", "column": "columns"}


def pasted(source: Pasted, file: str) -> Section:
    """C++ of the user's own, in ASCII, otherwise as it is written."""
    lines = [Declaration(ascii_source(line.rstrip())) for line in source.text.strip("\n").expandtabs(4).split("\n")]
    return Section(rule_line(f"{file}:{source.span.line}  {source.what}: kept as it is written"), tuple(lines))


def setup(settled: Settled, printer: Printer) -> tuple[Declaration, ...]:
    """Views of the tensors, names for the shared tiles, and the block's indices."""
    declared = [Declaration(parameter(tensor_view(t, settled), printer)) for t in viewed_tensors(settled)]
    if declared:
        declared[0] = Declaration(declared[0].text, tuple(_tensors_about(settled)))
    views, overlay = Shared(printer, Constants.of(settled)), overlay_of(settled)
    for tile in settled.launch.tiles:
        if tile.scope is Scope.SHARED and tile.of is not None:
            declared.append(views.view(shared_tile(tile, settled)))
        elif tile.scope is Scope.SHARED:
            name = printer.names(tile.name)
            declared.append(Declaration(f"auto& {name} = {place_of(tile.name, overlay, printer.names)};"))
    for staging in staging_tiles(settled):
        name = printer.names(staging.name)
        declared.append(Declaration(f"auto& {name} = {place_of(staging.name, overlay, printer.names)};"))
    for space in settled.facts[settled.launch, WORKSPACES]:
        name = printer.names(space.name)
        declared.append(Declaration(f"auto& {name} = {place_of(space.name, overlay, printer.names)};"))
    declared += _started_barriers(settled, printer)
    declared += block_indices(settled, printer) if persistent_in(settled) is None else []
    for let in settled.launch.prelude:
        value = printer.text(let.value, let.var.dtype)
        declared.append(Declaration(f"const {let.var.dtype.cpp} {printer.names(let.var.name)} = {value};"))
    return tuple(declared)


def _started_barriers(settled: Settled, printer: Printer) -> Iterator[Declaration]:
    """Names for the user's barriers, and their initialisation, which a barrier then shows to all threads."""
    barriers = [tile for tile in settled.launch.tiles if tile.scope is Scope.BARRIER]
    shown = "tl::sync_cluster()" if settled.launch.cluster else "tl::sync_block()"
    for tile in barriers:
        name = printer.names(tile.name)
        yield Declaration(f"auto& {name} = tl::shared<Shared>().{name};")
    for number, tile in enumerate(barriers):
        about = (f"One thread initialises the barriers; {shown} shows them to all",) if not number else ()
        counts = ", ".join(map(str, tile.arrivals))
        yield Declaration(f"tl::mbarrier_start({printer.names(tile.name)}, {{{counts}}});", about)
    body = settled.launch.body
    if barriers and not (body and is_cluster_barrier(body[0])):
        yield Declaration(f"{shown};")


def _tensors_about(settled: Settled) -> Iterator[str]:
    """What the marks on the tensors' extents and rows mean."""
    views = viewed_tensors(settled)
    if any(any(settled.facts[tensor, BOUNDS_CHECKED]) for tensor in views):
        rule = settled.facts.rule(views[0], BOUNDS_CHECKED)
        yield f"ragged: accesses may reach past this extent; there, reads give zero and writes are dropped  [{rule}]"
    starts = {settled.facts[tensor, ROW_ALIGNMENT] for tensor in views}
    rule = settled.facts.rule(views[0], ROW_ALIGNMENT)
    if starts - {0}:
        yield f"RowStart<n>: rows and offsets are multiples of n bytes, so copies move n bytes at once  [{rule}]"
    if 0 in starts:
        asked = {
            settled.facts.get(t, ROW_ALIGNMENT_IF) is not None for t in views if not settled.facts[t, ROW_ALIGNMENT]
        }
        ways = {True: "the launcher chooses", False: "copies choose their width"}
        how = ways[asked.pop()] if len(asked) == 1 else "the launcher chooses, or copies do"
        yield f"A run-time size decides where rows start: {how}  [{rule}]"


def aligned_when(settled: Settled) -> tuple[Multiple, ...]:
    """The run-time conditions under which all rows start at multiples of 16 bytes, if they are to be asked."""
    return strictest(fact.value for fact in _asked_of_rows(settled))


def rule_of_rows(settled: Settled) -> str:
    """The rule that has them asked."""
    return next(fact.rule for fact in _asked_of_rows(settled))


def _asked_of_rows(settled: Settled) -> Iterator[Fact]:
    """Of tensors that the kernel reaches by pointer, and of stores that go by TMA if it reaches their rows."""
    asked: list[tuple[Subject, Key[Multiple]]] = [(tensor, ROW_ALIGNMENT_IF) for tensor in viewed_tensors(settled)]
    asked += [(op, TMA_IF) for op in walk_stmts(settled.launch.body) if isinstance(op, Copy)]
    return (settled.facts.fact(*key) for key in asked if settled.facts.get(*key) is not None)


def block_indices(settled: Settled, printer: Printer) -> list[Declaration]:
    """The block's indices, or those of the tile that a block which stays is at."""
    used = [axis for axis, block in enumerate(settled.launch.blocks) if uses(settled, block)]
    persistent = persistent_in(settled)
    order = _block_order(settled) or (("place_of", "") if persistent is not None else None)
    ordered = 2 if order and order[0].startswith("panel") else 3
    block = printer.names.fresh("block") if order else ""
    places = [
        f"{printer.names(settled.launch.blocks[axis].name)} = "
        + (f"{block}.{'xyz'[axis]}" if order and axis < ordered else f"blockIdx.{'xyz'[axis]}")
        for axis in used
    ]
    declared = [Declaration(f"const int {', '.join(places)};")] if places else []
    if order is None:
        return declared
    call, about = order
    arguments = "" if persistent is None else "tile, tiles"
    comments = tuple(wrapped(about, BODY_WIDTH)) if about else ()
    return [Declaration(f"const auto {block} = tl::{call}({arguments});", comments), *declared]


def _block_order(settled: Settled) -> tuple[str, str] | None:
    """(call of tl::, what it does) for the order in which blocks take their tiles, if it is not the grid's own."""
    order = settled.facts.get(settled.launch, TILE_ORDER)
    if order is not None:
        rule = settled.facts.rule(settled.launch, TILE_ORDER)
        return f"longest_first<{order.least}>", (
            "blocks with the most turns start first, so that short ones fill the gaps at the end; of those that differ "
            f"in other indices, {order.least} at a time, or as many as make 128 blocks, so that their tensors meet in "
            f"L2  [{rule}]"
        )
    panels = _panels(settled)
    if panels is None:
        return None
    panel, kind, reason = panels
    dies = settled.target.dies
    if reason and dies > 1:
        return f"panel_order<{panel}, tl::Panels::{kind}, {dies}>", (
            f"the hardware deals blocks to {dies} dies in turn, each with its own L2: each die takes a stretch of the "
            f"tiles, in panels of {panel} {kind}, so that its operands meet there{reason}"
        )
    cluster = settled.launch.cluster
    who = "clusters" if cluster else "blocks"
    about = f"{who} take their tiles in panels of up to {panel} {kind}, so that their operands meet in L2{reason}"
    if cluster:
        wide, high, _ = cluster
        return f"panel_order_of_clusters<{panel}, tl::Panels::{kind}, {wide}, {high}>", about
    return f"panel_order<{panel}, tl::Panels::{kind}>", about


def _panels(settled: Settled) -> tuple[int, str, str] | None:
    """(size, rows or columns, reason) of the order in which blocks take their tiles, if it is not the grid's own."""
    asked = next((s for s in walk_stmts(settled.launch.body) if isinstance(s, Swizzle)), None)
    if asked is not None and len(settled.launch.grid) > 1:
        return asked.panel, _PANELS[asked.order], ""
    decided = settled.facts.get(settled.launch, RASTER_GROUP)
    if decided is None:
        return None
    return decided, "rows", f"  [{settled.facts.rule(settled.launch, RASTER_GROUP)}]"


def uses(settled: Settled, var: Var) -> bool:
    """Whether the kernel's text mentions a variable."""
    return any(part == var for expr in kernel_expressions(settled) for part in walk(expr))


def kernel_expressions(settled: Settled) -> Iterator[Expr]:
    """Every expression that the kernel itself evaluates, the extents of its tensors included."""
    for stmt in walk_stmts(settled.launch.body):
        yield from expressions(stmt)
    for tensor in viewed_tensors(settled):
        yield from tensor.shape
        yield from tensor.strides or ()
    for let in settled.launch.prelude:
        yield let.value


def used_sizes(settled: Settled) -> tuple[Var, ...]:
    """The run-time sizes that the kernel needs as arguments."""
    return tuple(size for size in settled.program.sizes if uses(settled, size))
