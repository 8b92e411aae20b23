"""What threads hold in registers: tiles whose distributions are the fragments' layouts."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from enum import Enum

from msgspec.structs import replace

from tile2cu.core.expr import Expr, static_value
from tile2cu.core.layout import FragmentLayout, Replicated
from tile2cu.core.program import Buffer
from tile2cu.core.record import Record
from tile2cu.core.span import Span
from tile2cu.plan.kernel import Kernel
from tile2cu.plan.registers import Fragment
from tile2cu.styles.base.comments import listed, wrapped
from tile2cu.styles.base.layouts import described, of_interleaved
from tile2cu.styles.base.view import Declaration
from tile2cu.styles.ck import vocabulary as words
from tile2cu.styles.ck.encodings import Encoding, encoding_of
from tile2cu.styles.ck.expressions import CkPrinter
from tile2cu.styles.ck.support import unsupported
from tile2cu.styles.ck.types import SUPPORTED, in_ck

_DIMENSIONS = "ijklmn"


class Temporary(Enum):
    """What a statement has registers for besides the fragments, in words."""

    OPERANDS = "operands of a GEMM"
    TRANSPOSE = "a tile's transpose"
    PARTS = "a reduction's parts"
    OF_TENSORS = "a loop's elements of tensors"


class Distribution(Record, frozen=True):
    """A named encoding, and lines about it; `extents` are those of the tile it distributes, empty where it covers more.

    `uses`: what it is for, each with the tiles whose names take the place of `{}` there.
    """

    name: str
    encoding: Encoding
    about: tuple[str, ...]
    uses: tuple[tuple[str, tuple[str, ...]], ...]
    extents: tuple[Expr, ...] = ()

    @property
    def comments(self) -> tuple[str, ...]:
        """The comment above it."""
        texts = (use.format(listed(list(tiles))) if tiles else use for use, tiles in self.uses)
        return (*(line for text in texts for line in wrapped(text)), *self.about)


def distribution_of(encoding: str) -> str:
    """The distribution of a named encoding."""
    return f"make_static_tile_distribution({encoding}{{}})"


def tile_of(element: str, encoding: str) -> str:
    """A new tile in registers, distributed by a named encoding."""
    return f"make_static_distributed_tensor<{element}>({distribution_of(encoding)})"


@dataclass
class Fragments:
    """The fragments of a kernel, and its distributions by their encoding.

    `temporaries` are the most registers that one statement has besides the fragments, by what they are for.
    """

    plan: Kernel
    printer: CkPrinter
    distributions: dict[Encoding, Distribution] = field(default_factory=dict)
    temporaries: dict[Temporary, int] = field(default_factory=dict)
    _of_layout: dict[FragmentLayout, Distribution] = field(default_factory=dict)
    _names: dict[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        """Errors: T2C-E034 for a layout that has no encoding."""
        span, same = self.plan.launch.span, dict[FragmentLayout, list[Fragment]]()
        for each in self.plan.registers.fragments:
            assert each.layout is not None
            if each.tile.of is not None:
                raise unsupported(f"{each.tile.name}, a fragment in another shape", span)
            same.setdefault(each.layout, []).append(each)
        for layout, tiles in same.items():
            if not isinstance(layout, Replicated):
                read = self.plan.registers.operands
                operands = {
                    self.printer.names(each.tile.name): any(each.tile is tile for tile in read) for each in tiles
                }
                self._add(layout, tiles[0].tile, f"Layout of {', '.join(operands)}:", tiles[0].rule, operands)
        for loop in self.plan.registers.loops:
            if loop.layout not in self._of_layout and not isinstance(loop.layout, Replicated):
                over = tuple(self.printer.names(name) for name in loop.over)
                self._add(loop.layout, over, f"Layout of a loop over {', '.join(over)}:", loop.rule)

    def _add(
        self,
        layout: FragmentLayout,
        of: Buffer | tuple[str, ...],
        about: str,
        rule: str,
        operands: Mapping[str, bool] | None = None,
    ) -> None:
        """The layout of a tile, or of a loop over the variables of these names; `operands`: whether a tile is one."""
        encoding, span = encoding_of(layout), self.plan.launch.span
        if encoding is None or layout.threads_of_block != self.plan.launch.threads:
            kind = f"{type(layout).__name__}, whose elements are no digits of threads and registers"
            what = f"the layout {about.removesuffix(':').removeprefix('Layout ')} ({kind})"
            raise unsupported(what, span)
        runs = of_interleaved(layout, rule, operands or {}, in_runs=True)
        lines = (about, *wrapped(f"{described(layout, in_tv=False)}{runs}  [{rule}]"))
        if isinstance(of, Buffer):
            wish = f"{self.printer.names(of.name)}_layout"
            self._of_layout[layout] = self.named(wish, encoding, lines, shape=of.shape)
        else:
            self._of_layout[layout] = self.named(f"{'_'.join(of)}_layout", encoding, lines, of)

    def named(
        self,
        wish: str,
        encoding: Encoding,
        about: tuple[str, ...],
        over: tuple[str, ...] = (),
        *,
        shape: tuple[Expr, ...] = (),
        tile: str = "",
    ) -> Distribution:
        """The distribution of an encoding of a tile of this shape; one that the kernel has, or `wish` is its name.

        `about` begins with what it is for, where `{}` is `tile`.
        """
        use, *more = about
        tiles = (tile,) if tile else ()
        if encoding not in self.distributions:
            over = over or tuple(_DIMENSIONS[: len(encoding.hs)])
            coordinates = encoding.about(over)
            in_line = wrapped(", ".join(coordinates))
            lines = (*more, *(in_line if len(in_line) == 1 else coordinates))
            extents = self._extents(shape, encoding)
            self.distributions[encoding] = Distribution(
                self.printer.names.fresh(wish), encoding, lines, ((use, tiles),), extents
            )
        found = self.distributions[encoding]
        uses = dict(found.uses)  # another tile may have the same distribution
        if use not in uses or not set(tiles) <= set(uses[use]):
            uses = {use: (*uses.get(use, ()), *tiles)} | {each: of for each, of in uses.items() if each != use}
            found = replace(found, uses=tuple(uses.items()))
            self.distributions[encoding] = found
        return found

    @staticmethod
    def _extents(shape: tuple[Expr, ...], encoding: Encoding) -> tuple[Expr, ...]:
        """The extents of a tile in the order of the encoding's dimensions; none where it is of other extents."""
        orders = {tuple(map(static_value, each)): each for each in (shape[::-1], shape)}
        return orders.get(encoding.shape, ())

    def hold(self, what: Temporary, size: int) -> None:
        """A statement has `size` bytes per thread besides the fragments."""
        self.temporaries[what] = max(self.temporaries.get(what, 0), -(-size // 4))

    def inner_name(self, wish: str) -> str:
        """A name inside of a loop or a lambda, which is the same wherever it is asked for."""
        if wish not in self._names:
            self._names[wish] = self.printer.names.fresh(wish)
        return self._names[wish]

    def of(self, layout: FragmentLayout, span: Span) -> Distribution:
        """The distribution of a layout. Errors: T2C-E034 for one that no fragment and no loop has."""
        if layout not in self._of_layout:
            raise unsupported(f"the layout {layout}", span)
        return self._of_layout[layout]

    def layout(self, tile: Buffer) -> FragmentLayout:
        """The layout of a fragment."""
        return next(each.layout for each in self.plan.registers.fragments if each.tile is tile and each.layout)

    def types(self) -> Iterator[Declaration]:
        """The encodings."""
        for each in self.distributions.values():
            yield Declaration(f"using {each.name} = {each.encoding};", each.comments)
            if each.extents:
                arguments = (each.name, *map(self.printer.index, each.extents))
                yield Declaration(f"static_assert({words.HAS_EXTENTS}<{', '.join(arguments)}>);")

    def tensors(self) -> Iterator[Declaration]:
        """The tiles, and private arrays."""
        for each in self.plan.registers.declared:
            tile, name = each.tile, self.printer.names(each.tile.name)
            layout = each.layout if isinstance(each, Fragment) else None
            if tile.of is not None or tile.dtype.name not in SUPPORTED or (isinstance(each, Fragment) and not layout):
                raise unsupported(f"{tile.name} of {tile.dtype} in registers", self.plan.launch.span)
            element = in_ck(tile.dtype.cpp)
            if layout is None or isinstance(layout, Replicated):
                extents = "".join(f"[{self.printer.index(extent)}]" for extent in tile.shape)
                yield Declaration(f"{element} {name}{extents};")
                continue
            distribution = self.of(layout, self.plan.launch.span).name
            yield Declaration(f"auto {name} = {tile_of(element, distribution)};")


def writer_of(encoding: Encoding, *, in_each_wave: bool = False) -> str:
    """What holds for one of the threads that hold an element, or of those of each wave; empty where one thread does."""
    sources = ("get_warp_id()", "get_lane_id()") if len(encoding.ps) == 2 else ("get_lane_id()",)
    asked = []
    for source, places in zip(sources, encoding.ps, strict=True):
        if in_each_wave and source != "get_lane_id()":
            continue
        below = 1
        for dim, at in reversed(places):
            length = encoding.rs[at] if dim == 0 else encoding.hs[dim - 1][at]
            if dim == 0 and length > 1:
                quotient = f"{source} / {below}" if below > 1 else source
                asked.append(f"{quotient} % {length} == 0")
            below *= length
    return " && ".join(asked)


def guarded(text: str, encoding: Encoding, *, in_each_wave: bool = False) -> str:
    """A statement of one of the threads that hold an element, or of those of each wave."""
    asked = writer_of(encoding, in_each_wave=in_each_wave)
    return f"if ({asked}) {text}" if asked else text
