"""Shared tiles as CuTe's tensors: their layouts, the struct that holds them, and their names."""

from collections.abc import Iterator
from math import prod

from tile2cu.core.layout import SharedLayout
from tile2cu.core.program import Buffer
from tile2cu.core.shared_memory import ACTIVE_ROW, Workspace
from tile2cu.plan import shared
from tile2cu.plan.kernel import Kernel
from tile2cu.styles.base.barriers import barriers_name, of_first_part
from tile2cu.styles.base.comments import rule_line, wrapped
from tile2cu.styles.base.constants import Constants
from tile2cu.styles.base.shared import (
    EXCHANGES_SHARE_MEMORY,
    PASSES_FRAGMENT,
    overlaid,
    passes_values,
    place_of,
    struct_of,
)
from tile2cu.styles.base.view import Declaration, Section
from tile2cu.styles.cute import vocabulary as words
from tile2cu.styles.cute.expressions import CutePrinter
from tile2cu.styles.cute.fragments import Fragments
from tile2cu.styles.cute.layouts import atom, is_stacked, static, swizzled_atom, vector_swizzle
from tile2cu.styles.cute.support import unsupported
from tile2cu.styles.cute.types import SUPPORTED, in_cute


class SharedTiles:
    """Prints the shared memory of a kernel."""

    def __init__(
        self, plan: Kernel, printer: CutePrinter, constants: Constants, fragments: Fragments, *, by_hardware: bool
    ) -> None:
        """`by_hardware`: TMA or wgmma addresses the tiles."""
        self.plan = plan
        self.printer = printer
        self.constants = constants
        self.own = fragments.own
        self.mmas = tuple(fragments.mmas.values())
        self.named_atoms = by_hardware
        self.views: dict[str, str] = {}
        printer.elements_of = self.elements_of

    def struct(self) -> Section:
        """The tiles with their layouts; stages are the last mode."""
        memory = self.plan.memory
        title = f"shared memory: {memory.total:,} of {memory.limit:,} bytes per block"
        title += f" ({memory.padding:,} are padding)" if memory.padding > 0 else ""
        return Section(rule_line(title), tuple(line for each in memory.members for line in self._member(each)))

    def _member(self, member: shared.Member) -> Iterator[Declaration]:
        match member:
            case shared.SharedTile():
                yield from self._tile(member)
            case shared.Overlaid():
                yield from overlaid(member, self.printer.names, self._tile)
            case shared.StagingTile():
                yield from self._staging(member)
            case shared.PipelineBarriers() | shared.PrologueBarriers() | shared.PublishedIterations():
                yield self._of_producer(member)
            case shared.DrawnWork():
                yield self._of_producer(member)
            case shared.UserBarriers():
                yield self._user_barriers(member.tile)
            case shared.Workspaces() if all(each.warps or each.row_values is not None for each in member.spaces):
                yield from self._workspaces(member)
            case _:
                raise unsupported(f"a {type(member).__name__} in shared memory", self.plan.launch.span)

    def _staging(self, member: shared.StagingTile) -> Iterator[Declaration]:
        """The tile through which an accumulator leaves by TMA, perhaps in the memory of another."""
        others: tuple[Declaration, ...] = ()
        if member.instead_of is not None:
            first, *others_ = self._tile(member.instead_of)
            others = tuple(others_)
            yield first
        staging, name, names = member.staging, self.printer.names(member.staging.name), self.printer.names
        size = "in the same memory afterwards" if member.instead_of is not None else f"{staging.layout.bytes:,} bytes"
        leaving = f"{names(staging.like.name)}{', transposed,' if staging.transposed else ''} staged for its TMA store"
        about = f"{size}; {leaving}, {staging.layout}  [{member.rule}]"
        layout, element = self.own(name, "layout"), in_cute(staging.dtype.cpp)
        shape = staging.like.shape[::-1] if staging.transposed else staging.like.shape
        extents = ", ".join(f"Int<{self.printer.index(each)}>" for each in shape)
        type_ = f"decltype(tile_to_shape({swizzled_atom(staging.layout, element)}, Shape<{extents}>{{}}))"
        yield Declaration(f"using {layout} = {type_};", tuple(wrapped(about)))
        yield from (Declaration("union {"), *others) if others else ()
        yield Declaration(f"array_aligned<{element}, cosize_v<{layout}>, {staging.layout.alignment}> {name};")
        if member.instead_of is not None:
            yield Declaration("};")

    def _of_producer(self, member: shared.Member) -> Declaration:
        """The barriers of a producer, and the tiles of work that it has fetched."""
        names = self.printer.names
        match member:
            case shared.PipelineBarriers(panels=0):
                about = f"{member.bytes} bytes; full and empty of each stage, 8 bytes each"
                one = "barriers" if member.number == 1 else names(f"__barriers_{member.number}")
                tiles = ", ".join(barriers_name(ring, names) for ring in member.rings) or one
                kind = f"{words.FULL_EMPTY_BARRIERS}<{self.constants.stages(member.stages)}>"
                return Declaration(f"{kind} {tiles};", (about,))
            case shared.PipelineBarriers():
                return self._of_slabs(member)
            case shared.PrologueBarriers(persistent=True):
                about = f"{member.bytes} bytes; the same of the prologue's tiles, in one stage"
                return Declaration(f"{words.FULL_EMPTY_BARRIERS}<1> prologue_barriers;", (about,))
            case shared.PrologueBarriers():
                about = f"{member.bytes} bytes; completes when the prologue's tiles have arrived"
                return Declaration("uint64_t prologue_full;", (about,))
            case shared.PublishedIterations():
                about = (
                    f"{member.bytes} bytes; the iteration of the tile in each stage of {names(member.ring.tile.name)}"
                )
                stages = self.constants.stages(member.ring.stages)
                return Declaration(
                    f"{words.ACTIVE_ITERATIONS}<{stages}, {names('__Iteration')}> {ACTIVE_ROW};", (about,)
                )
            case shared.DrawnWork():
                about = f"{member.bytes} bytes; the tiles of work that the producer has fetched, and their barriers"
                kind = words.SCHEDULED_NON_EMPTY_TILES if member.idle else words.SCHEDULED_TILES
                return Declaration(f"{kind}<{names('__WorkTile')}> scheduled_tiles;", (about,))
            case _:
                raise unsupported(f"a {type(member).__name__} in shared memory", self.plan.launch.span)

    def _of_slabs(self, member: shared.PipelineBarriers) -> Declaration:
        """The barriers of a ping-pong loop."""
        assert self.plan.producer is not None and self.plan.producer.stages is not None
        slabs, stages = self.plan.producer.stages, self.constants.stages(member.stages)
        about = f"{member.bytes} bytes; full of each slab and two empty of each stage, 8 bytes each; "
        about += of_first_part(slabs)
        kind = f"{words.SLAB_BARRIERS}<{stages}, {slabs.total}, {len(slabs.parts[0])}>"
        return Declaration(f"{kind} barriers;", tuple(wrapped(about)))

    def _user_barriers(self, tile: Buffer) -> Declaration:
        """Barriers that the user handles."""
        arrivals = " or ".join(f"{count:,}" for count in sorted(set(tile.arrivals)))
        about = f"{8 * len(tile.arrivals)} bytes; a phase ends after {arrivals} arrivals and all bytes announced"
        comments = (*(wrapped(tile.comment) if tile.comment else ()), *wrapped(about))
        kind = "cutlass::arch::ClusterTransactionBarrier"
        return Declaration(f"{kind} {self.printer.names(tile.name)}[{len(tile.arrivals)}];", comments)

    def _workspaces(self, found: shared.Workspaces) -> Iterator[Declaration]:
        """What reductions exchange the parts of warps through."""
        spaces = tuple(zip(found.spaces, found.like, found.ordered, strict=True))
        for space in (space for space in found.spaces if space.row_values is not None):
            yield self._exchanged(space, found)
        reductions = tuple(each for each in spaces if each[0].row_values is None)
        joined = found.joined and len(reductions) > 1
        if joined:
            yield Declaration("union {", (EXCHANGES_SHARE_MEMORY,))
        for space, like, ordered in reductions:
            extents = map(self.printer.index, like.shape) if like is not None else map(str, space.extents)
            among = ", threads" if found.beside else f", {words.ALL_THREADS}" * ordered
            among += f", {words.ORDERED}" * ordered
            kind = f"{words.REDUCE_WORKSPACE}<{in_cute(space.dtype.cpp)}, {', '.join(extents)}, {space.warps}{among}>"
            about = f"{space.bytes:,} bytes; the parts of {space.warps} {found.parts}  [{found.rule}]"
            yield Declaration(f"{kind} {self.printer.names(space.name)};", (about,))
        if joined:
            yield Declaration("};")

    def _exchanged(self, space: Workspace, found: shared.Workspaces) -> Declaration:
        """What values of rows pass through from one warpgroup to the other."""
        assert space.row_values is not None
        rows = self.printer.index(space.row_values.shape[0])
        text = f"array_aligned<{in_cute(space.dtype.cpp)}, {rows}> {self.printer.names(space.name)};"
        return Declaration(text, (passes_values(space, found.rule, self.printer.names),))

    def _tile(self, member: shared.SharedTile) -> Iterator[Declaration]:
        tile, name = member.tile, self.printer.names(member.tile.name)
        if tile.dtype.name not in SUPPORTED:
            raise unsupported(f"{tile.name} of {tile.dtype}", self.plan.launch.span)
        about = f"{member.bytes:,} bytes" + (f" in {member.stages} stages" if member.stages > 1 else "")
        about += PASSES_FRAGMENT if member.handed else ""
        about += f"; {member.layout}{self._major(tile)}" if tile.rank > 1 or member.layout.swizzle else ""
        about += f"  [{member.rule}]" if tile.rank > 1 or member.layout.swizzle else ""
        comments = (*(wrapped(tile.comment) if tile.comment else ()), *wrapped(about))
        layout = self.own(name, "layout")
        yield Declaration(f"using {layout} = {self._layout(member)};", comments)
        count = f"cosize_v<{layout}>"  # up to the last element: without the padding behind it
        count += f" + {member.layout.padding // tile.dtype.bytes}" * (member.layout.padding > 0)
        yield Declaration(f"array_aligned<{in_cute(tile.dtype.cpp)}, {count}, {member.layout.alignment}> {name};")

    def _major(self, tile: Buffer) -> str:
        """How wgmma reads a tile whose rows are not contiguous along K."""
        read = self.mmas if self.named_atoms else ()
        along = [("N", op) for op in read if op.b.buffer is tile and not op.b.transposed]
        along += [("M", op) for op in read if op.a.buffer is tile and op.a.transposed]
        if not along:
            return ""
        mode, op = along[0]
        where = f"{mode} of the MMAs of {self.printer.names(op.c.buffer.name)}"
        return f"; contiguous along {where}: wgmma reads it MN-major, through swap_modes"

    def _layout(self, member: shared.SharedTile) -> str:
        """The layout of a tile and its stages, as a type."""
        tile, layout = member.tile, member.layout
        extents = [f"Int<{self.printer.index(each)}>" for each in tile.shape]
        if is_stacked(tile, layout):
            extents = [*extents[1:], extents[0]]
        if member.stages:
            extents.append(f"Int<{self.constants.stages_of(tile.memory, member.stages)}>")
        shape = f"Shape<{', '.join(extents)}>"
        if layout.swizzle and tile.rank == 1:
            swizzle = vector_swizzle(layout)
            if swizzle is None:
                raise unsupported(f"the layout of {tile.name} ({layout})", self.plan.launch.span)
            along = ["_1", *([static(layout.bytes * 8 // layout.element_bits)] if member.stages else [])]
            return f"decltype(composition({swizzle}, Layout<{shape}, Stride<{', '.join(along)}>>{{}}))"
        if layout.swizzle:
            if self.named_atoms:
                element = in_cute(tile.dtype.cpp)
                return f"decltype(tile_to_shape({swizzled_atom(layout, element)}, {shape}{{}}))"
            found = atom(layout)
            if found is None:
                raise unsupported(f"the layout of {tile.name} ({layout})", self.plan.launch.span)
            return f"decltype(tile_to_shape({found}, {shape}{{}}))"
        strides = self._strides(layout)
        if strides is None:
            raise unsupported(f"the layout of {tile.name} ({layout})", self.plan.launch.span)
        stage = [layout.bytes * 8 // layout.element_bits] if member.stages else []
        return f"Layout<{shape}, Stride<{', '.join(map(static, (*strides, *stage)))}>>"

    def _strides(self, layout: SharedLayout) -> tuple[int, ...] | None:
        """Of rows one after another; None where planes are padded, or elements share bytes."""
        if layout.element_bits < 8 or layout.bytes % (layout.element_bits // 8):
            return None
        row = (layout.row_bytes + layout.padding) * 8 // layout.element_bits
        extents = layout.extents
        if prod(extents[:-1]) * row * layout.element_bits // 8 != layout.bytes:
            return None
        outer = [prod(extents[dim + 1 : -1]) * row for dim in range(len(extents) - 1)]
        return (*outer, 1)

    def elements_of(self, tile: Buffer) -> str:
        """The tensor that elements of a tile are read from: a swizzled one's has the swizzle in its layout."""
        name = self.printer.names(tile.name)
        layout = next((each.layout for each in self.plan.shared if each.tile is tile), None)
        if not self.named_atoms or layout is None or not layout.swizzle or tile.rank == 1:
            return name
        view = self.own(name, "elements")
        self.views[view] = f"Tensor {view} = {words.BY_LAYOUT}({name});"
        return view

    def names(self) -> Iterator[Declaration]:
        """The tensors of the tiles."""
        for each in self.plan.shared:
            tile = each.tile
            if tile.of is not None:
                raise unsupported(f"{tile.name}, a shared tile in another shape", self.plan.launch.span)
            yield self._named(each, tile)
        for staging in self.plan.staging:
            name = self.printer.names(staging.name)
            data = f"make_smem_ptr({place_of(staging.name, self.plan.overlay, self.printer.names)}.data())"
            text = f"Tensor {name} = make_tensor({data}, Shared::{self.own(name, 'layout')}{{}});"
            yield Declaration(text)
        yield from map(Declaration, self.views.values())
        for space in self.plan.workspaces:
            name, place = self.printer.names(space.name), place_of(space.name, self.plan.overlay, self.printer.names)
            if space.row_values is None:
                yield Declaration(f"auto& {name} = {place};")
                continue
            rows = self.printer.index(space.row_values.shape[0])
            text = f"make_tensor(make_smem_ptr({place}.data()), Shape<Int<{rows}>>{{}})"
            yield Declaration(f"Tensor {name} = {text};  // ({rows})")

    def _named(self, each: shared.SharedTile, tile: Buffer) -> Declaration:
        names, overlay = self.printer.names, self.plan.overlay
        data = f"make_smem_ptr({place_of(tile.name, overlay, names)}.data())"
        inside = struct_of(tile.name, overlay, names)
        layout = f"{inside}::{self.own(names(tile.name), 'layout')}"
        modes = [*map(self.printer.in_comments.index, tile.shape), *(["stage"] if each.stages else [])]
        shape = ", ".join([*modes[1:], modes[0]] if is_stacked(tile, each.layout) else modes)
        return Declaration(f"Tensor {names(tile.name)} = make_tensor({data}, {layout}{{}});  // ({shape})")
