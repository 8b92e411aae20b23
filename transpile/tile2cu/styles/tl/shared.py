"""The struct of a kernel's shared memory, and the names of what is in it."""

from collections.abc import Iterator

from msgspec.structs import replace

from tile2cu.core.expr import static_value
from tile2cu.core.program import Buffer
from tile2cu.core.shared_memory import ACTIVE_ROW, Workspace
from tile2cu.plan import shared as plan
from tile2cu.styles.base.barriers import barriers_name
from tile2cu.styles.base.comments import rule_line, wrapped
from tile2cu.styles.base.constants import Constants
from tile2cu.styles.base.expressions import Printer
from tile2cu.styles.base.shared import (
    EXCHANGES_SHARE_MEMORY,
    PASSES_FRAGMENT,
    counts_votes,
    overlaid,
    passes_values,
    rows_about,
    swizzled,
)
from tile2cu.styles.base.view import Declaration, Section
from tile2cu.styles.tl import vocabulary as tl
from tile2cu.styles.tl.iterations import pipeline_name


class Shared:
    """Prints the shared memory of a kernel."""

    def __init__(self, printer: Printer, constants: Constants) -> None:
        self.printer = printer
        self.constants = constants
        self._is_lds = False

    def struct(self, memory: plan.SharedMemory) -> Section:
        """The struct of shared tiles, with what they take."""
        self._is_lds = memory.lds
        return Section(
            rule_line(memory.title), tuple(each for member in memory.members for each in self._member(member))
        )

    def view(self, view: plan.SharedTile) -> Declaration:
        """A name for a shared tile in another shape."""
        tile = view.tile
        assert tile.of is not None
        shown = f"{self.printer.names(tile.of.name)}"
        read_as = f", its bits read as {tile.dtype}" if tile.dtype != tile.of.dtype else ""
        text = f"auto& {self.printer.names(tile.name)} = {tl.VIEW_AS}<{self._tile_type(view)}>({shown});"
        return Declaration(text, (f"{shown} in another shape{read_as}",))

    def _member(self, member: plan.Member) -> Iterator[Declaration]:
        match member:
            case plan.SharedTile():
                yield self._tile(member)
            case plan.StagingTile(instead_of=None):
                yield self._staging(member)
            case plan.StagingTile(instead_of=tile) if tile is not None:
                declared = self._tile(tile)
                yield Declaration("union {", declared.comments)
                yield replace(declared, comments=())
                yield self._staging(member)
                yield Declaration("};")
            case plan.Overlaid():
                yield from overlaid(member, self.printer.names, lambda tile: (self._tile(tile),))
            case plan.Workspaces():
                yield from self._workspaces(member)
            case plan.UserBarriers():
                yield self._user_barriers(member.tile)
            case _:
                yield self._of_producer(member)

    def _of_producer(self, member: plan.Member) -> Declaration:
        names = self.printer.names
        match member:
            case plan.PipelineBarriers():
                return self._pipeline_barriers(member)
            case plan.PrologueBarriers(persistent=True):
                about = f"{member.bytes} bytes; full and empty of the prologue's tiles, in one stage, 8 bytes each"
                return Declaration(f"{tl.TMA_BARRIERS}<1> prologue_barriers;", tuple(wrapped(about)))
            case plan.PrologueBarriers():
                about = f"{member.bytes} bytes; completes when the prologue's tiles have arrived"
                return Declaration(f"{tl.BARRIER} prologue_full;", tuple(wrapped(about)))
            case plan.PublishedIterations():
                ring, stages = pipeline_name(member.ring.tile, names), self.constants.stages(member.ring.stages)
                about = f"{member.bytes} bytes; the iteration of the tile in each stage of {ring}"
                return Declaration(f"{tl.ACTIVE_ITERATIONS}<{stages}, {names('__Iteration')}> {ACTIVE_ROW};", (about,))
            case plan.DrawnWork():
                about = f"{member.bytes} bytes; the tiles of work that the producer has fetched, and their barriers"
                kind = tl.SCHEDULED_NON_EMPTY_TILES if member.idle else tl.SCHEDULED_TILES
                return Declaration(f"{kind}<{names('__WorkTile')}> scheduled_tiles;", (about,))
            case _:
                raise TypeError(f"no text for {type(member).__name__}")

    def _pipeline_barriers(self, member: plan.PipelineBarriers) -> Declaration:
        stages = self.constants.stages(member.stages)
        panels = f", {member.panels}" if member.panels else ""
        of = "full of each slab and two empty of each stage" if panels else "full and empty of each stage"
        about = f"{member.bytes} bytes; {of}, 8 bytes each"
        rings = ", ".join(barriers_name(ring, self.printer.names) for ring in member.rings)
        one = "barriers" if member.number == 1 else self.printer.names(f"__barriers_{member.number}")
        names = rings or one
        kind = tl.TMA_SLAB_BARRIERS if panels else tl.TMA_BARRIERS
        return Declaration(f"{kind}<{stages}{panels}> {names};", (about,))

    def _workspaces(self, found: plan.Workspaces) -> Iterator[Declaration]:
        """What reductions, scans and votes exchange values through."""
        reductions: list[Declaration] = []
        for space, like, ordered in zip(found.spaces, found.like, found.ordered, strict=True):
            declared = self._workspace(space, like, found, ordered=ordered)
            if space.warps and space.row_values is None:
                reductions.append(declared)
            else:
                yield declared
        if found.joined and len(reductions) > 1:
            about = EXCHANGES_SHARE_MEMORY
            reductions = [Declaration("union {", (about,)), *reductions, Declaration("};")]
        yield from reductions

    def _workspace(
        self, space: Workspace, like: Buffer | None, found: plan.Workspaces, *, ordered: bool
    ) -> Declaration:
        index, name = self.printer.index, self.printer.names(space.name)
        if space.row_values is not None:
            about = passes_values(space, found.rule, self.printer.names)
            kind = f"{tl.SHARED_TILE_1D}<{space.dtype.cpp}, {index(space.row_values.shape[0])}>"
            return Declaration(f"{kind} {name};", (about,))
        if space.holds_votes:
            return Declaration(f"{space.dtype.cpp} {name}[{space.warps}];", (counts_votes(space, found.rule),))
        extents = ", ".join(map(index, like.shape) if like is not None else map(str, space.extents))
        if space.warps:
            about = f"{space.bytes:,} bytes; the parts of {space.warps} {found.parts}  [{found.rule}]"
            among = ", threads" if found.beside else f", {tl.ALL_THREADS}" * ordered
            among += f", {tl.ORDERED}" * ordered
            kind = f"{tl.REDUCE_WORKSPACE}<{space.dtype.cpp}, {extents}, {space.warps}{among}>"
            return Declaration(f"{kind} {name};", (about,))
        about = f"{space.bytes:,} bytes; the running values of all threads  [{found.rule}]"
        return Declaration(f"{tl.SCAN_WORKSPACE}<{space.dtype.cpp}, {extents}> {name};", (about,))

    def _tile(self, shared: plan.SharedTile) -> Declaration:
        tile, layout = shared.tile, shared.layout
        about = f"{shared.bytes:,} bytes" + (f" in {shared.stages} stages" if shared.stages > 1 else "")
        about += PASSES_FRAGMENT if shared.handed else ""
        chunks = swizzled(layout) if self._is_lds and layout.swizzle else ""
        about += f"; {rows_about(layout)}{chunks}  [{shared.rule}]" if tile.rank > 1 or layout.swizzle else ""
        comments = (wrapped(tile.comment) if tile.comment else []) + wrapped(about)
        return Declaration(f"{self._tile_type(shared)} {self.printer.names(tile.name)};", tuple(comments))

    def _tile_type(self, shared: plan.SharedTile) -> str:
        """The C++ type of a shared tile, or of the array of its stages and planes."""
        tile, layout, index = shared.tile, shared.layout, self.printer.index
        extents = ", ".join(index(extent) for extent in tile.shape[-2:])
        padded = f"{tl.PADDED}<{layout.padding}>" if layout.padding else tl.NO_SWIZZLE
        rows = layout.rows_interleaved
        swizzle = f"{tl.INTERLEAVED_ROWS}<{rows}>" if rows > 1 else tl.SWIZZLES.get(layout.swizzle) or padded
        kind = tl.SHARED_TILE_1D if tile.rank == 1 else tl.SHARED_TILE
        parameters = f"{tile.dtype.cpp}, {extents}" + (f", {swizzle}" if tile.rank > 1 or layout.swizzle else "")
        stages = [self.constants.stages_of(tile.memory, shared.stages)] if shared.stages else []
        bounds = [*stages, *map(index, tile.shape[:-2])]
        return f"{tl.ARRAY}<{', '.join((f'{kind}<{parameters}>', *bounds))}>" if bounds else f"{kind}<{parameters}>"

    def _user_barriers(self, tile: Buffer) -> Declaration:
        """Barriers that the user handles."""
        counts = sorted(set(tile.arrivals))
        arrivals = " or ".join(f"{count:,}" for count in counts)
        about = f"{8 * len(tile.arrivals)} bytes; a phase ends after {arrivals} arrivals and all bytes announced"
        comments = [*(wrapped(tile.comment) if tile.comment else []), *wrapped(about)]
        return Declaration(f"{tl.BARRIER} {self.printer.names(tile.name)}[{len(tile.arrivals)}];", tuple(comments))

    def _staging(self, member: plan.StagingTile) -> Declaration:
        """The tile through which a fragment leaves by TMA."""
        staging, index, names = member.staging, self.printer.index, self.printer.names
        shape = staging.like.shape[::-1] if staging.transposed else staging.like.shape
        columns = staging.layout.extents[-1]
        narrower = columns < (static_value(shape[-1]) or 0)
        extents = f"{index(shape[0])}, {columns if narrower else index(shape[-1])}"
        size = "in the same memory afterwards" if member.instead_of is not None else f"{staging.layout.bytes:,} bytes"
        leaving = f"{names(staging.like.name)}{', transposed,' if staging.transposed else ''}"
        leaving += f" staged for its TMA store{f', {columns} columns at a time' if narrower else ''}"
        about = f"{size}; {leaving}, {staging.layout}"
        kind = tl.SHARED_TILE if staging.transposed else tl.STAGING_TILE
        kind = f"{kind}<{staging.dtype.cpp}, {extents}, {tl.SWIZZLES[staging.layout.swizzle]}>"
        return Declaration(f"{kind} {names(staging.name)};", tuple(wrapped(f"{about}  [{member.rule}]")))
