"""The struct of a kernel's shared memory: what lies where, and how much it takes."""

from collections.abc import Iterator, Mapping
from dataclasses import replace

from tile2cu.core.decisions import (
    ALIASING,
    PROLOGUE_LOADS,
    SHARED_BUDGET,
    SHARED_LAYOUT,
    STAGES,
    STORE_STAGING,
    WORKSPACES,
)
from tile2cu.core.expr import static_value
from tile2cu.core.layout import SharedLayout
from tile2cu.core.program import Buffer, Scope
from tile2cu.core.schedule import (
    BARRIER_BYTES,
    BARRIERS,
    TAKEN,
    Ledger,
    Overlay,
    Pipeline,
    Staging,
    Workspace,
)
from tile2cu.emitter.overlaid import overlay_of, part_name, type_of
from tile2cu.emitter.tma import panels_in, persistent_in, producer_loop, rings, staging_tiles
from tile2cu.plan.producer import ping_pong_of
from tile2cu.plan.settled import Settled
from tile2cu.styles.base.comments import rule_line, wrapped
from tile2cu.styles.base.view import Declaration, Section
from tile2cu.styles.tl.constants import Constants
from tile2cu.styles.tl.expressions import Printer

_SWIZZLES = {128: "tl::Swizzle128B", 64: "tl::Swizzle64B", 32: "tl::Swizzle32B"}


def shared(settled: Settled, printer: Printer) -> Section:
    """The struct of shared tiles, with the ledger."""
    ledger = settled.facts[settled.launch, SHARED_BUDGET]
    costs, overlay = dict(ledger.tiles), overlay_of(settled)
    tiles = {
        tile.name: _shared_tile(tile, costs[tile.name], settled, printer)
        for tile in settled.launch.tiles
        if tile.scope is Scope.SHARED and tile.of is None
    }
    apart = {name for part in overlay.parts for name in part.tiles}
    staged_in = {staging.where.name: staging for staging in staging_tiles(settled) if staging.where is not None}
    declared: list[Declaration] = []
    for name, declaration in tiles.items():
        if name in staged_in:
            declared += _then_staged(declaration, staged_in[name], settled, printer)
        elif name not in apart:
            declared.append(declaration)
    declared += _one_after_another(overlay, tiles, settled, printer)
    apart_staged = (staging for staging in staging_tiles(settled) if staging.where is None)
    declared += [_staging_tile(staging, settled, printer) for staging in apart_staged]
    declared += _workspaces(settled, printer)
    for tile in settled.launch.tiles:
        if tile.scope is Scope.BARRIER:
            declared.append(_barriers(tile, printer))
    found = producer_loop(settled)
    if found is not None:
        declared += _of_producer(found[1], ledger, settled, printer)
    padding = ledger.total - sum(costs.values())
    title = f"shared memory: {ledger.total:,} of {ledger.limit:,} bytes a block may use"
    title += f" ({padding:,} are padding)" if padding > 0 else ""
    return Section(rule_line(title), tuple(declared))


def _of_producer(pipeline: Pipeline, ledger: Ledger, settled: Settled, printer: Printer) -> Iterator[Declaration]:
    """The barriers of a producer's pipeline, of what it loads once, and of the tiles and turns that it hands on."""
    stages = Constants.of(settled).stages(pipeline.stages)
    first = settled.facts.get(settled.launch, PROLOGUE_LOADS) is not None
    persistent = persistent_in(settled)
    of_first = BARRIER_BYTES * (0 if not first else 1 if persistent is None else 2)
    own = dict(ledger.tiles)[BARRIERS] - of_first
    panels = "" if ping_pong_of(settled) is None else f", {panels_in(settled)}"
    of = "`full` of each panel and two `empty` of each slot" if panels else "`full` and `empty` of each slot"
    about = f"{own} bytes; {of}, 8 bytes each"
    names = ", ".join(ring.barriers for ring in rings(settled, printer)) or "barriers"
    kind = "TmaPanelBarriers" if panels else "TmaBarriers"
    yield Declaration(f"tl::{kind}<{stages}{panels}> {names};", (about,))
    if persistent is not None:
        about = f"{of_first} bytes; the same of the tiles that are loaded once for all turns, in one slot"
        yield Declaration("tl::TmaBarriers<1> first_tiles_barriers;", tuple(wrapped(about)))
        if persistent.turn:
            ring, size = rings(settled, printer)[0].name, persistent.taken_bytes(pipeline.stages)
            about = f"{size} bytes; which turn the tile in a slot of {ring} is of"
            yield Declaration(f"tl::TakenTurns<{stages}, {printer.names('__Turn')}> {TAKEN};", (about,))
        if persistent.queue:
            about = f"{persistent.drawn_bytes} bytes; the work of tiles that the producer has drawn, and barriers"
            work = printer.names("__WorkTile")
            kind = "DrawnTiles" if persistent.idle is None else "DealtTiles"
            yield Declaration(f"tl::{kind}<{work}> drawn_tiles;", (about,))
    elif first:
        about = f"{BARRIER_BYTES} bytes; completes when the tiles that are loaded before the first turn are there"
        yield Declaration("tl::Barrier first_tiles_full;", tuple(wrapped(about)))


def _one_after_another(
    overlay: Overlay, tiles: Mapping[str, Declaration], settled: Settled, printer: Printer
) -> Iterator[Declaration]:
    """A struct for each part of the tiles that share memory, and their union."""
    if not overlay.parts:
        return
    members = [part_name(number, overlay.parts, printer) for number in range(len(overlay.parts))]
    for member, part in zip(members, overlay.parts, strict=True):
        lines = dict.fromkeys((part.first_line, part.last_line))
        where = f"{settled.program.source.name}:{'-'.join(map(str, lines))}"
        yield Declaration(f"struct {type_of(member)} {{", (f"in use in {where}",))
        yield from (tiles[name] for name in part.tiles)
        yield Declaration("};")
    rule = settled.facts.rule(settled.launch, ALIASING)
    about = f"never in use at once, so they share memory; a barrier stands where it changes hands  [{rule}]"
    yield Declaration("union {", tuple(wrapped(about)))
    yield from (Declaration(f"{type_of(member)} {member};") for member in members)
    yield Declaration("};")


def _then_staged(tile: Declaration, staging: Staging, settled: Settled, printer: Printer) -> Iterator[Declaration]:
    """A tile, and the staging tile that has its memory when nobody needs it any more."""
    yield Declaration("union {", tile.comments)
    yield replace(tile, comments=())
    yield _staging_tile(staging, settled, printer)
    yield Declaration("};")


def _workspaces(settled: Settled, printer: Printer) -> Iterator[Declaration]:
    """What reductions and scans exchange values through."""
    spaces = settled.facts[settled.launch, WORKSPACES]
    rule = settled.facts.rule(settled.launch, WORKSPACES)
    reductions: list[Declaration] = []
    for space in spaces:
        if space.handed is not None:
            extent = printer.index(space.handed.shape[0])
            about = (
                f"{space.bytes:,} bytes; {printer.names(space.handed.name)} on its way to the other warpgroup  [{rule}]"
            )
            yield Declaration(f"tl::SharedTile1D<{space.dtype.cpp}, {extent}> {printer.names(space.name)};", (about,))
            continue
        extents = _extents(space, settled, printer)
        if space.warps:
            about = f"{space.bytes:,} bytes; the parts of {space.warps} warps  [{rule}]"
            among = ", threads" if producer_loop(settled) else ""
            kind = f"tl::ReduceWorkspace<{space.dtype.cpp}, {extents}, {space.warps}{among}>"
            reductions.append(Declaration(f"{kind} {printer.names(space.name)};", (about,)))
        else:
            about = f"{space.bytes:,} bytes; the running values of all threads  [{rule}]"
            kind = f"tl::ScanWorkspace<{space.dtype.cpp}, {extents}>"
            yield Declaration(f"{kind} {printer.names(space.name)};", (about,))
    if overlay_of(settled).joins_workspaces and len(reductions) > 1:
        about = "each reduction begins with a barrier, so they share memory"
        reductions = [Declaration("union {", (about,)), *reductions, Declaration("};")]
    yield from reductions


def _extents(space: Workspace, settled: Settled, printer: Printer) -> str:
    """The shape of what is exchanged: as the tile of that shape spells it that is reduced to, if there is one."""
    tile = next((tile for tile in settled.launch.tiles if space.name == f"{tile.name}_workspace"), None)
    shape = tile.static_shape if tile is not None else ()
    named = tile is not None and shape == space.extents
    return ", ".join(map(printer.index, tile.shape) if tile is not None and named else map(str, space.extents))


def _shared_tile(tile: Buffer, cost: int, settled: Settled, printer: Printer) -> Declaration:
    layout = settled.facts[tile, SHARED_LAYOUT]
    fact = settled.facts.fact(tile, SHARED_LAYOUT)
    slots = settled.facts.get(tile, STAGES) or 1
    about = f"{cost:,} bytes" + (f" in {slots} slots" if slots > 1 else "")
    about += f"; {_rows_about(layout)}  [{fact.rule}]" if tile.rank > 1 or layout.swizzle else ""
    comments = (wrapped(tile.comment) if tile.comment else []) + wrapped(about)
    kind, array = _tile_type(tile, settled, printer)
    return Declaration(f"{kind} {printer.names(tile.name)}{array};", tuple(comments))


def _tile_type(tile: Buffer, settled: Settled, printer: Printer) -> tuple[str, str]:
    """The C++ type of a shared tile: of a plane, and how many slots and planes there are, as an array's bounds."""
    layout = settled.facts[tile, SHARED_LAYOUT]
    slots = settled.facts.get(tile.memory, STAGES)
    extents = ", ".join(printer.index(extent) for extent in tile.shape[-2:])
    swizzle = _SWIZZLES.get(layout.swizzle) or (f"tl::Padded<{layout.padding}>" if layout.padding else "tl::NoSwizzle")
    kind = "SharedTile1D" if tile.rank == 1 else "SharedTile"
    parameters = f"{tile.dtype.cpp}, {extents}" + (f", {swizzle}" if tile.rank > 1 or layout.swizzle else "")
    array = f"[{Constants.of(settled).stages_of(tile.memory, slots)}]" if slots else ""
    array += "".join(f"[{printer.index(extent)}]" for extent in tile.shape[:-2])
    return f"tl::{kind}<{parameters}>", array


def _barriers(tile: Buffer, printer: Printer) -> Declaration:
    """Barriers that the user handles."""
    counts = sorted(set(tile.arrivals))
    arrivals = " or ".join(f"{count:,}" for count in counts)
    about = f"{8 * len(tile.arrivals)} bytes; a phase ends after {arrivals} arrivals and all bytes announced"
    comments = [*(wrapped(tile.comment) if tile.comment else []), *wrapped(about)]
    return Declaration(f"tl::Barrier {printer.names(tile.name)}[{len(tile.arrivals)}];", tuple(comments))


def shared_view(tile: Buffer, settled: Settled, printer: Printer) -> Declaration:
    """A name for a shared tile in another shape."""
    assert tile.of is not None
    shown = f"{printer.names(tile.of.name)}"
    read_as = f", its bits read as {tile.dtype}" if tile.dtype != tile.of.dtype else ""
    text = f"auto& {printer.names(tile.name)} = tl::view_as<{''.join(_tile_type(tile, settled, printer))}>({shown});"
    return Declaration(text, (f"{shown} in another shape{read_as}",))


def _rows_about(layout: SharedLayout) -> str:
    """How rows are stored: in panels as wide as the swizzle, where they are wider."""
    row = layout.row_bytes
    if len(layout.extents) == 1:
        return f"stored as rows of {layout.swizzle} bytes, {layout}"
    if layout.swizzle and row > layout.swizzle:
        return f"{row // layout.swizzle} panels of {layout.swizzle * 8 // layout.element_bits} columns, {layout}"
    return f"rows of {row} bytes, {layout}"


def _staging_tile(staging: Staging, settled: Settled, printer: Printer) -> Declaration:
    """The tile through which a fragment leaves by TMA."""
    shape = staging.like.shape[::-1] if staging.transposed else staging.like.shape
    columns = staging.layout.extents[-1]
    narrower = columns < (static_value(shape[-1]) or 0)
    extents = f"{printer.index(shape[0])}, {columns if narrower else printer.index(shape[-1])}"
    size = f"{staging.layout.bytes:,} bytes" if staging.where is None else "in the same memory afterwards"
    leaving = f"{printer.names(staging.like.name)}{', transposed,' if staging.transposed else ''}"
    leaving += f" on its way out{f', {columns} of its columns at a time' if narrower else ''}"
    about = f"{size}; {leaving}, {staging.layout}"
    rule = settled.facts.rule(settled.launch, STORE_STAGING)
    tile = "SharedTile" if staging.transposed else "StagingTile"
    kind = f"tl::{tile}<{staging.dtype.cpp}, {extents}, {_SWIZZLES[staging.layout.swizzle]}>"
    return Declaration(f"{kind} {printer.names(staging.name)};", tuple(wrapped(f"{about}  [{rule}]")))
