"""What threads hold in registers: partitions of tiles by a TiledMMA or a TiledCopy, and values of their rows."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from math import prod

from msgspec.structs import replace

from tile2cu.core.dtype import FLOAT32
from tile2cu.core.expr import Expr
from tile2cu.core.instruction import MmaUnit
from tile2cu.core.layout import (
    Blocked,
    FragmentLayout,
    MmaAccumulator,
    Replicated,
    Slice,
    WgmmaAccumulator,
    slice_of,
)
from tile2cu.core.program import Buffer, Scope
from tile2cu.core.record import Record
from tile2cu.core.span import Span
from tile2cu.plan import ops
from tile2cu.plan.kernel import Kernel
from tile2cu.plan.registers import Fragment
from tile2cu.styles.base.comments import listed, wrapped
from tile2cu.styles.base.expressions import Printer
from tile2cu.styles.base.layouts import described, in_order_of_unpacking, of_alternating, of_now
from tile2cu.styles.base.view import Declaration
from tile2cu.styles.cute import vocabulary as words
from tile2cu.styles.cute import wgmma
from tile2cu.styles.cute.layouts import ATOMS, static, threads_and_values, tiled_mma, which_warp
from tile2cu.styles.cute.support import unsupported
from tile2cu.styles.cute.types import SUPPORTED, in_cute

ACCUMULATORS = MmaAccumulator | WgmmaAccumulator
_ANY_ATOM = "SM80_16x8x16_F32F16F16F32_TN"  # of a fragment that has an accumulator's layout, but no MMA writes


class Partition(Record, frozen=True, kw_only=True):
    """How the threads share a tile of `shape`: the type `name` is a TiledMMA, whose C it is, or a TiledCopy.

    `of` is what views of it are named after.
    """

    name: str
    of: str
    layout: MmaAccumulator | WgmmaAccumulator | Blocked
    shape: str
    type: str
    about: tuple[str, ...]

    @property
    def overhangs(self) -> bool:
        """Whether some of the threads' elements are outside of the tile."""
        return isinstance(self.layout, Blocked) and self.layout.has_idle_lanes

    @property
    def vector(self) -> int:
        """Neighbours of a row that a thread holds."""
        return self.layout.vector if isinstance(self.layout, Blocked) else 2


@dataclass
class Fragments:
    """The fragments of a kernel. `views` are those that its statements use, by name.

    `unpacked` are those that loops store in the order in which numbers of 4 bits come apart.
    """

    plan: Kernel
    printer: Printer
    mmas: Mapping[str, ops.Mma]  # by the accumulator
    views: dict[str, str] = field(default_factory=dict)
    partitions: dict[FragmentLayout, Partition] = field(default_factory=dict)
    other_mmas: dict[str, str] = field(default_factory=dict)  # the names of further TiledMMAs, by their types
    abouts: dict[str, str] = field(default_factory=dict)  # their comments
    unpacked: list[Buffer] = field(default_factory=list)
    _names: dict[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        """Errors: T2C-E034 for a layout that no TiledMMA and no TiledCopy has."""
        span, same = self.plan.launch.span, dict[FragmentLayout, list[Fragment]]()
        for each in self.held:
            assert each.layout is not None
            if each.tile.of is not None:
                raise unsupported(f"{each.tile.name}, a fragment in another shape", span)
            same.setdefault(each.layout, []).append(each)
        for layout, tiles in same.items():
            if not isinstance(layout, Slice | Replicated):
                first = tiles[0].tile
                names = ", ".join(self.printer.names(each.tile.name) for each in tiles)
                self._add(layout, self.printer.names(first.name), first.shape, f"of {names}:", tiles[0].rule)
        for loop in self.plan.registers.loops:
            if loop.layout not in self.partitions and not isinstance(loop.layout, Slice | Replicated):
                over = [self.printer.names(name) for name in loop.over]
                about = f"of a loop over {', '.join(over)}:"
                self._add(loop.layout, "".join(over), loop.extents, about, loop.rule)

    def _add(self, layout: FragmentLayout, of: str, extents: tuple[Expr, ...], about: str, rule: str) -> None:
        span = self.plan.launch.span
        if not isinstance(layout, ACCUMULATORS | Blocked) or layout.threads_of_block != self.plan.launch.threads:
            raise unsupported(f"the layout {type(layout).__name__} {about.removesuffix(':')}", span)
        kind = "mma" if isinstance(layout, ACCUMULATORS) else "partition"
        taken = {each.of for each in self.partitions.values()}
        numbered = (f"{of}_{number}" for number in range(2, len(taken) + 2))
        of = next(name for name in (of, *numbered) if name not in taken)
        part = which_warp(layout) if isinstance(layout, MmaAccumulator) else ""
        self.partitions[layout] = Partition(
            name=self.own(of, kind),
            of=of,
            layout=layout,
            shape=self.shape(extents),
            type=self._mma(layout) if isinstance(layout, ACCUMULATORS) else _tiled_copy(layout, "float"),
            about=(about, *wrapped(f"{self._described(layout, part)}  [{rule}]")),
        )

    @cached_property
    def held(self) -> tuple[Fragment, ...]:
        """The fragments; where warpgroups alternate, behind each those of other iterations."""
        alternation, held = self.plan.registers.alternation, list[Fragment]()
        for each in self.plan.registers.fragments:
            others = alternation.besides(each.tile) if alternation is not None else ()
            held += [each, *(replace(each, tile=tile) for tile in others)]
        return tuple(held)

    def _described(self, layout: FragmentLayout, part: str) -> str:
        """A layout in words."""
        alternation = self.plan.registers.alternation
        if alternation is None:
            return described(layout, part)
        return of_alternating(layout, self.layout(alternation.computed), alternation, self.printer.names)

    def _mma(self, layout: MmaAccumulator | WgmmaAccumulator) -> str:
        """The TiledMMA of the MMAs into accumulators of a layout; of warpgroups' MMAs that of the first."""
        if isinstance(layout, WgmmaAccumulator):
            return self._warpgroups_mma(layout)
        found = {str(self.mmas[each.tile.name].instruction): self.mmas[each.tile.name] for each in self._mma_of(layout)}
        if len(found) > 1:
            raise unsupported("two kinds of MMA into accumulators of one layout", self.plan.launch.span)
        for instruction, op in found.items():
            if instruction not in ATOMS:
                raise unsupported(f"the MMA {instruction}", op.source.span)
            k = op.instruction.k if op.instruction.through is None else op.instruction.k // 2
            return tiled_mma(layout, ATOMS[instruction], k)
        return tiled_mma(layout, _ANY_ATOM, 16)

    def _warpgroups_mma(self, layout: WgmmaAccumulator) -> str:
        span = self.plan.launch.span
        first = next((self.mmas[each.tile.name] for each in self._mma_of(layout)), None)
        if first is not None and first.instruction.unit is MmaUnit.WARPGROUP:
            return self.of_warpgroups(first, layout)
        return wgmma.mma_of_any(layout, FLOAT32, span)

    def of_warpgroups(self, op: ops.Mma, layout: WgmmaAccumulator) -> str:
        """The TiledMMA of an MMA of warpgroups."""
        span, instruction = op.source.span, op.instruction
        majors = (
            wgmma.major(k_is_contiguous=not op.a.transposed),
            wgmma.major(k_is_contiguous=op.b.transposed),
        )
        in_registers = op.a.buffer.scope is Scope.FRAGMENT
        atom = wgmma.atom_name(instruction, majors, a_in_registers=in_registers, span=span)
        return wgmma.tiled_mma(layout, atom, instruction.n, instruction.k, span)

    def mma(self, op: ops.Mma) -> str:
        """The TiledMMA of an MMA of warpgroups: its accumulator's, or one with the same C and other operands."""
        layout = self.layout(op.c.buffer)
        if not isinstance(layout, WgmmaAccumulator):
            raise unsupported("this form of MMA", op.source.span)
        partition, type_ = self.partition(layout, op.source.span), self.of_warpgroups(op, layout)
        if type_ == partition.type:
            return partition.name
        if type_ not in self.other_mmas:
            self.other_mmas[type_] = self.printer.names.fresh(f"{self.printer.names(op.c.buffer.name)}_mma")
            self.abouts[type_] = f"the C of {partition.name}, of other operands: {wgmma.operands(op)}"
        return self.other_mmas[type_]

    def tiled(self, tile: Buffer, span: Span) -> str:
        """The TiledMMA or TiledCopy that partitions a fragment: of an accumulator that of its own MMA."""
        if tile.name in self.mmas and self.is_wgmma(tile):
            return self.mma(self.mmas[tile.name])
        return self.partition(self.layout(tile), span).name

    def is_wgmma(self, tile: Buffer) -> bool:
        """Whether a fragment is an accumulator of warpgroups."""
        return isinstance(self.layout(tile), WgmmaAccumulator)

    @staticmethod
    def warpgroups_along_n(layout: FragmentLayout) -> int:
        """How many warpgroups share the columns of an accumulator."""
        return layout.along_n if isinstance(layout, WgmmaAccumulator) else 1

    def _mma_of(self, layout: FragmentLayout) -> Iterator[Fragment]:
        return (each for each in self.held if each.layout == layout and each.tile.name in self.mmas)

    def own(self, name: str, suffix: str) -> str:
        """The name of what belongs to a tile: its layout, its TiledMMA, a view of it."""
        return self.counter(f"{name}_{suffix}")

    def counter(self, wish: str) -> str:
        """A name that is the same wherever it is asked for, as that of a loop's counter."""
        if wish not in self._names:
            self._names[wish] = self.printer.names.fresh(wish)
        return self._names[wish]

    def shape(self, extents: tuple[Expr, ...]) -> str:
        """A static shape."""
        return f"Shape<{', '.join(f'Int<{self.printer.index(each)}>' for each in extents)}>{{}}"

    def layout(self, tile: Buffer) -> FragmentLayout:
        """The layout of a fragment."""
        return next(each.layout for each in self.held if each.tile.name == tile.name and each.layout)

    def partition(self, layout: FragmentLayout, span: Span) -> Partition:
        """The partition that has a layout, or whose rows or columns a slice has."""
        if layout in self.partitions:
            return self.partitions[layout]
        for each in self.partitions.values():
            if (
                isinstance(layout, Slice)
                and len(each.layout.shape) == 2
                and slice_of(each.layout, layout.kept) == layout
            ):
                return each
        raise unsupported("a fragment of rows or columns of no tile", span)

    # ---- views that statements use ------------------------------------------------------------------------------

    def rowcol(self, tile: str) -> str:
        """A fragment as rows and columns."""
        name = self.own(tile, "rowcol")
        self.views[name] = f"Tensor {name} = {words.ROWCOL}({tile});  // (rows, columns) of this thread"
        return name

    def at(self, partition: Partition) -> str:
        """The coordinates of a thread's elements in the tile."""
        name = self.own(partition.of, "at")
        self.views[name] = f"const Tensor {name} = {words.COORDINATES}({partition.name}{{}}, {partition.shape});"
        return name

    def at_rowcol(self, partition: Partition) -> str:
        """The same as rows and columns."""
        at, name = self.at(partition), self.own(partition.of, "at_rowcol")
        self.views[name] = f"const Tensor {name} = {words.ROWCOL}({at});"
        return name

    # ---- declarations -------------------------------------------------------------------------------------------

    def types(self) -> Iterator[Declaration]:
        """The TiledMMA or TiledCopy of each partition."""
        for each in self.partitions.values():
            tiles = [held.tile for held in self.held if held.layout == each.layout]
            about = (
                f"{listed([self.printer.names(tile.name) for tile in tiles])} have one partition: regenerate this file"
            )
            asserted = "".join(f'\nstatic_assert({equal}, "{about}");' for equal in self._equal_extents(each))
            order = in_order_of_unpacking(tiles, self.unpacked, self.printer.names)
            yield Declaration(f"using {each.name} = decltype({each.type});{asserted}", (*each.about, *order))
        for type_, name in self.other_mmas.items():
            yield Declaration(f"using {name} = decltype({type_});", tuple(wrapped(self.abouts[type_])))

    def _equal_extents(self, partition: Partition) -> Iterator[str]:
        """What must hold for one partition to be that of several tiles, whose extents have other names."""
        tiles = [each.tile for each in self.plan.registers.fragments if each.layout == partition.layout]
        found = dict.fromkeys(
            (self.printer.index(first), self.printer.index(other))
            for tile in tiles[1:]
            for first, other in zip(tiles[0].shape, tile.shape, strict=True)
        )
        yield from (f"{other} == {first}" for first, other in found if first != other)

    def tensors(self) -> Iterator[Declaration]:
        """The fragments, then the views that statements use."""
        alternation = self.plan.registers.alternation
        first = of_now(alternation, self.printer.names) if alternation is not None else ()
        for each in self.plan.registers.declared:
            if not isinstance(each, Fragment):
                yield self._local(each.tile)
                continue
            comments = tuple(wrapped(each.tile.comment)) if each.tile.comment else ()
            yield replace(self._tensor(each), comments=(*first, *comments))
            first = ()
            others = alternation.besides(each.tile) if alternation is not None else ()
            yield from (self._tensor(replace(each, tile=tile)) for tile in others)
        yield from map(Declaration, self.views.values())

    def _local(self, tile: Buffer) -> Declaration:
        if tile.of is not None or tile.dtype.name not in SUPPORTED:
            raise unsupported(f"the private array {tile.name}", self.plan.launch.span)
        extents = "".join(f"[{self.printer.index(extent)}]" for extent in tile.shape)
        return Declaration(f"{in_cute(tile.dtype.cpp)} {self.printer.names(tile.name)}{extents};")

    def _tensor(self, fragment: Fragment) -> Declaration:
        tile, layout, name = fragment.tile, fragment.layout, self.printer.names(fragment.tile.name)
        if layout is None or tile.dtype.name not in SUPPORTED:
            raise unsupported(f"the fragment {tile.name} of {tile.dtype}", self.plan.launch.span)
        element = in_cute(tile.dtype.cpp)
        if isinstance(layout, Replicated):
            return Declaration(f"Tensor {name} = make_tensor<{element}>({self.shape(tile.shape)});  // in each thread")
        partition = self.partition(layout, self.plan.launch.span)
        if isinstance(layout, Slice):
            about = f"this thread's {'rows' if layout.kept == (0,) else 'columns'} of {partition.name}"
            return Declaration(f"Tensor {name} = make_tensor<{element}>({static(layout.registers)}{{}});  // {about}")
        shape = self.shape(tile.shape)
        if isinstance(layout, Blocked):
            modes = ("V", "M", "N", "K")[: 1 + len(layout.shape)]
            call = f"{words.PARTITION_FRAGMENT}<{element}>({partition.name}{{}}, {shape})"
            return Declaration(f"Tensor {name} = {call};  // ({', '.join(modes)})")
        if tile.name in self.mmas:
            mma = self.tiled(tile, self.plan.launch.span)
            return Declaration(f"Tensor {name} = partition_fragment_C({mma}{{}}, {shape});  // (V, M, N)")
        call = f"make_tensor<{element}>(partition_shape_C({partition.name}{{}}, {shape}))"
        return Declaration(f"Tensor {name} = {call};  // (V, M, N)")


def _tiled_copy(layout: Blocked, element: str) -> str:
    return f"make_tiled_copy(Copy_Atom<UniversalCopy<{element}>, {element}>{{}}, {threads_and_values(layout)})"


def sharing(layout: FragmentLayout, dim: int, *, thread_local: bool) -> str:
    """The threads that share a row (`dim` 1) or a column (0): tl::Sharing."""
    along = layout.along(dim)
    lanes, warps = (1, 1) if thread_local else (along.lanes, along.warps)
    if isinstance(layout, MmaAccumulator):
        distance = 1 if dim == 1 else 4
        apart = 32 if dim == 1 else 32 * layout.warps.n
    elif isinstance(layout, WgmmaAccumulator):
        distance = 1 if dim == 1 else 4
        apart = 128 * layout.along_m if dim == 1 else 32
    else:
        assert isinstance(layout, Blocked)
        distance = prod(layout.threads[dim + 1 :])
        apart = distance * along.lanes
    parts = [lanes, distance, warps, apart]
    while len(parts) > 1 and (parts[-1] == (1, 1, 1, 32)[len(parts) - 1] or (warps == 1 and len(parts) > 2)):
        parts.pop()
    return f"{words.SHARING}<{', '.join(map(str, parts))}>"
