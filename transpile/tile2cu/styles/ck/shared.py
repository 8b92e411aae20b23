"""Shared tiles: how they are stored in LDS, the struct that holds them, and the windows on them."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from math import prod

from tile2cu.analysis.banks import lds_ways
from tile2cu.analysis.elements import byte_of
from tile2cu.core.layout import SharedLayout
from tile2cu.core.mfma_layout import WAVE
from tile2cu.core.program import Buffer
from tile2cu.core.record import Record
from tile2cu.core.span import Span
from tile2cu.plan import shared
from tile2cu.plan.kernel import Kernel
from tile2cu.styles.base.comments import rule_line, wrapped
from tile2cu.styles.base.constants import Constants
from tile2cu.styles.base.shared import EXCHANGES_SHARE_MEMORY, counts_votes, overlaid, part_name, rows_about, swizzled
from tile2cu.styles.base.view import Declaration, Section
from tile2cu.styles.ck import vocabulary as words
from tile2cu.styles.ck.encodings import Encoding
from tile2cu.styles.ck.expressions import CkPrinter
from tile2cu.styles.ck.fragments import Distribution
from tile2cu.styles.ck.support import unsupported
from tile2cu.styles.ck.types import SUPPORTED, VECTOR, in_ck

_ALIGNMENT = 16  # bytes: tl::LdsTile
_EXAMPLE = (21, 13)  # (k, n) of the element whose address a comment computes


def _times(size: int, text: str) -> str:
    """The bytes of so many elements, in words."""
    return f"{size} * ({text})" if size > 1 else text


def _rounded(size: int, alignment: int = _ALIGNMENT) -> int:
    return -(-size // alignment) * alignment


def _of_struct(members: Iterable[tuple[int, int]]) -> tuple[int, int]:
    """(bytes, alignment) of a struct of such members, one after the other."""
    end, largest = 0, 1
    for size, alignment in members:
        end, largest = _rounded(end, alignment) + size, max(largest, alignment)
    return _rounded(end, largest), largest


def _union(sizes: Iterable[tuple[int, int]]) -> tuple[int, int]:
    """(bytes, alignment) of a union of such members."""
    members = [*sizes]
    largest, alignment = max((size for size, _ in members), default=0), max((of for _, of in members), default=1)
    return _rounded(largest, alignment), alignment


class ByColumns(Record, frozen=True, kw_only=True):
    """A (k, n) tile that is stored along K, as its MMA reads it: `count` instructions have runs of `run` columns.

    Of `groups` other than 0, each of so many groups of lanes has `held` neighbours of A along K per instruction: the
    elements of the instructions that 16 bytes are for are neighbours in memory.
    """

    count: int
    run: int
    held: int = 0
    groups: int = 0

    def byte_of(self, at: tuple[int, ...], tile: Buffer) -> int:
        """The offset of an element at (position along K, column). [headers/tl/ck_lds.h, LdsTransposed]"""
        (k, column), n, size = at, tile.static_shape[1], tile.dtype.bytes
        chunk, element = divmod(k, VECTOR // size)
        return ((chunk * n + (self.line_of(column, n) ^ chunk)) * (VECTOR // size) + element) * size

    def address(self, tile: Buffer) -> tuple[str, ...]:
        """At which byte element (k, n) is, `byte_of` in words, and where an element is of which no term is 0."""
        (rows, columns), size = tile.static_shape, tile.dtype.bytes
        per_chunk, run, count = VECTOR // size, self.run, self.count
        slot, line = "k_slot" if self.permutes(size) else "k", "l" if count > 1 else "n"
        known = [f"c = {slot} / {per_chunk} is its 16-byte chunk"]
        if count > 1:
            lines = f"{columns // count} * (n / {run} % {count}) + {run} * (n / {run * count}) + n % {run}"
            known.append(f"l = {lines} is its line: columns of one MFMA, of equal n / {run} % {count}, are neighbours")
        if self.permutes(size):
            known.append(f"k_slot = {self._slot(size)} is its place along k")
        at = f"16 * ({columns} * c + ({line} ^ c)) + {_times(size, f'{slot} % {per_chunk}')}"
        k, n = min(_EXAMPLE[0], rows - 1), min(_EXAMPLE[1], columns - 1)
        place = self.position(k, tile)
        values = [f"k_slot = {place}"] * (slot != "k") + [f"c = {place // per_chunk}"]
        values += [f"l = {self.line_of(n, columns)}"] * (count > 1)
        byte = self.byte_of((place, n), tile)
        example = f"for example, (k, n) = ({k}, {n}): {', '.join(values)}, byte {byte:,}"
        first = f"element (k, n) is at byte {at}, where"
        return (first, *(f"{each}," for each in known[:-1]), f"{known[-1]};", example)

    def line_of(self, column: int, columns: int) -> int:
        """The line of a column."""
        rest, r = divmod(column, self.run)
        group, t = divmod(rest, self.count)
        return t * (columns // self.count) + group * self.run + r

    def permutes(self, size: int) -> bool:
        """Whether a column's elements of `size` bytes are in another order than that of k."""
        return self.groups > 0 and self.held * size < VECTOR

    def _slot(self, size: int) -> str:
        """`position`, in words."""
        held, groups, steps = self.held, self.groups, VECTOR // (size * self.held)
        step, whole = held * groups, held * groups * steps
        of_steps = f"{held} * (k / {step} % {steps}) + k % {held}"
        return f"{whole} * (k / {whole}) + {held * steps} * (k / {held} % {groups}) + {of_steps}"

    def reason(self, size: int) -> str:
        """Why a column's elements are in this order."""
        if not self.permutes(size):
            return ""
        held, groups, steps = self.held, self.groups, VECTOR // (size * self.held)
        lanes, step = WAVE // groups, held * groups
        return (
            f"Operand A is in registers already: in MFMA step s, lanes {lanes} g to {lanes} g + {lanes - 1} hold "
            f"k = {step} s + {held} g to {step} s + {held} g + {held - 1}, so that B must have the same k there. "
            f"k_slot stores those of {steps} steps next to each other: one 16-byte read serves {steps} steps."
        )

    def position(self, k: int, tile: Buffer) -> int:
        """Where an element along K is in the order of the chunks."""
        if not self.groups:
            return k
        steps = VECTOR // (tile.dtype.bytes * self.held)
        rest, element = divmod(k, self.held)
        rest, group = divmod(rest, self.groups)
        outer, step = divmod(rest, steps)
        return ((outer * self.groups + group) * steps + step) * self.held + element


def address_in_rows(layout: SharedLayout) -> str:
    """At which byte an element of a swizzled tile of two dimensions is. [analysis/elements.py, byte_of]"""
    span, size = layout.swizzle, layout.element_bits // 8
    per_chunk, chunks, together = VECTOR // size, span // 16, 128 // span
    row = f"r / {together} % {chunks}" if together > 1 else f"r % {chunks}"
    slabs = layout.row_bytes // span
    slab = f"{layout.extents[0] * span:,} * (j / {span // size}) + " if slabs > 1 else ""
    chunk = f"j / {per_chunk} % {chunks}" if slabs > 1 else f"j / {per_chunk}"
    within = _times(size, f"j % {per_chunk}")
    return f"element (r, j) is at byte {slab}{span} * r + 16 * (({chunk}) ^ ({row})) + {within}"


@dataclass
class SharedTiles:
    """The shared memory of a kernel. `by_columns` are the tiles that are stored so, by their names."""

    plan: Kernel
    printer: CkPrinter
    constants: Constants
    by_columns: Mapping[str, ByColumns]
    # Name and text, by tile, encoding and origin.
    windows: dict[tuple[str, str, tuple[str, ...]], tuple[str, str]] = field(default_factory=dict)

    # ---- declarations -------------------------------------------------------------------------------------------

    def struct(self) -> Section:
        """The tiles with their layouts."""
        memory = self.plan.memory
        title = f"LDS: {self.bytes:,} of {memory.limit:,} bytes per workgroup"
        return Section(rule_line(title), tuple(line for each in memory.members for line in self._member(each)))

    @property
    def bytes(self) -> int:
        """The size of the struct: its tiles start at multiples of 16 bytes, wherever the style tl aligns them."""
        return _of_struct(size for each in self.plan.memory.members for size in self._sizes(each))[0]

    def _sizes(self, member: shared.Member) -> Iterator[tuple[int, int]]:
        """(bytes, alignment) of what a member declares."""
        match member:
            case shared.SharedTile():
                yield _rounded(member.layout.bytes) * max(1, member.stages), _ALIGNMENT
            case shared.Overlaid():
                yield _union(
                    _of_struct(size for each in part for size in self._sizes(each)) for _, part in member.parts
                )
            case shared.Workspaces():
                sizes = [
                    (prod(each.extents) * each.warps * each.dtype.bytes, each.dtype.bytes) for each in member.spaces
                ]
                yield from [_union(sizes)] if member.joined else sizes

    def _member(self, member: shared.Member) -> Iterator[Declaration]:
        match member:
            case shared.SharedTile():
                yield self._tile(member)
            case shared.Overlaid():
                yield from overlaid(member, self.printer.names, lambda tile: (self._tile(tile),))
            case shared.Workspaces() if all(each.warps and each.row_values is None for each in member.spaces):
                yield from self._workspaces(member)
            case _:
                raise unsupported(f"a {type(member).__name__} in shared memory", self.plan.launch.span)

    def _workspaces(self, found: shared.Workspaces) -> Iterator[Declaration]:
        """What reductions exchange the parts of waves through, and votes their counts."""
        joined = found.joined and len(found.spaces) > 1
        if joined:
            yield Declaration("union {", (EXCHANGES_SHARE_MEMORY,))
        for space in found.spaces:
            about = f"{space.bytes:,} bytes; the parts of {space.warps} {found.parts}  [{found.rule}]"
            about = counts_votes(space, found.rule) if space.holds_votes else about
            count = " * ".join(map(str, (*(() if space.holds_votes else space.extents), space.warps)))
            yield Declaration(f"{in_ck(space.dtype.cpp)} {self.printer.names(space.name)}[{count}];", (about,))
        if joined:
            yield Declaration("};")

    def _tile(self, member: shared.SharedTile) -> Declaration:
        tile, name = member.tile, self.printer.names(member.tile.name)
        if tile.dtype.name not in SUPPORTED:
            raise unsupported(f"{tile.name} of {tile.dtype}", self.plan.launch.span)
        about, more = (
            f"{member.bytes:,} bytes" + (f" in {member.stages} stages" if member.stages > 1 else ""),
            list[str](),
        )
        if self._is_own(tile):
            about += "; transposed in registers before the store"
            reason = self.by_columns[tile.name].reason(tile.dtype.bytes)
            more = [*self._about_columns(tile), *(wrapped(reason) if reason else ())]
        elif tile.rank > 1 or member.layout.swizzle:
            about += f"; {self._about_rows(member.layout)}"
        if not self._is_own(tile):  # whose layout is the style's own, not the rule's
            about += f"  [{member.rule}]"
        comments = (*(wrapped(tile.comment) if tile.comment else ()), *wrapped(about), *more)
        stages = f"[{self.constants.stages_of(tile.memory, member.stages)}]" if member.stages else ""
        layout = self._layout(tile, member.layout)
        kind = f"{words.LDS_TILE}<{in_ck(tile.dtype.cpp)}, {layout}>"
        return Declaration(f"{kind} {name}{stages};", comments)

    def own_layouts(self) -> dict[str, str]:
        """How the tiles are stored whose layout no rule decides."""
        own = (each.tile for each in self.plan.shared if self._is_own(each.tile))
        return {tile.name: " ".join(self._about_columns(tile)) for tile in own}

    def _is_own(self, tile: Buffer) -> bool:
        return tile.name in self.by_columns

    def _about_rows(self, layout: SharedLayout) -> str:
        """How a tile is stored row by row: in slabs, one after the other, where rows are wider than the swizzle."""
        if not layout.swizzle or len(layout.extents) == 1:
            return f"{layout}{swizzled(layout) if layout.swizzle else ''}"
        return f"{rows_about(layout)}{swizzled(layout)}; {address_in_rows(layout)}"

    def _about_columns(self, tile: Buffer) -> tuple[str, ...]:
        """How a tile is stored along K."""
        return self.by_columns[tile.name].address(tile)

    def _layout(self, tile: Buffer, layout: SharedLayout) -> str:
        """The layout of a tile as a type."""
        extents = [self.printer.index(each) for each in tile.shape]
        columns = self.by_columns.get(tile.name)
        if columns is not None:
            order = f"{words.HELD_K}<{columns.groups}, {columns.held}>"
            given = [*extents, f"{words.INTERLEAVE}<{columns.count}>", *([order] if columns.groups else [])]
            return f"{words.LDS_TRANSPOSED}<{', '.join(given)}>"
        if layout.swizzle and len(layout.extents) == 1 and layout.bytes % 128 == 0:
            return f"{words.LDS_SWIZZLED_VECTOR}<{layout.swizzle}, {', '.join(extents)}>"
        if layout.swizzle:
            rows = layout.extents[0] if len(layout.extents) == 2 else 0
            if rows == 0 or rows % (128 // layout.swizzle) or layout.row_bytes % layout.swizzle:
                raise unsupported(f"the layout of {tile.name} ({layout})", self.plan.launch.span)
            return f"{words.LDS_SWIZZLED}<{layout.swizzle}, {', '.join(extents)}>"
        padding = layout.padding // tile.dtype.bytes
        if layout.padding and (len(layout.extents) != 2 or layout.padding % tile.dtype.bytes):
            raise unsupported(f"the layout of {tile.name} ({layout})", self.plan.launch.span)
        return f"{words.LDS_ROWS}<{padding}, {', '.join(extents)}>"

    def names(self) -> Iterator[Declaration]:
        """The tiles of the struct, then the windows on them."""
        if not self.plan.memory.total:
            return
        yield Declaration("__shared__ Shared shared;")
        for each in self.plan.shared:
            if each.tile.of is not None:
                raise unsupported(f"{each.tile.name}, a shared tile in another shape", self.plan.launch.span)
            yield Declaration(f"auto& {self.printer.names(each.tile.name)} = {self._place(each.tile.name)};")
        for space in self.plan.workspaces:
            yield Declaration(f"auto& {self.printer.names(space.name)} = {self._place(space.name)};")
        for name, text in self.windows.values():
            yield Declaration(f"auto {name} = {text};")

    def _place(self, name: str) -> str:
        overlay, names = self.plan.overlay, self.printer.names
        inside = [
            part_name(number, len(overlay.parts), names)
            for number, part in enumerate(overlay.parts)
            if name in part.tiles
        ]
        return ".".join(("shared", *inside, names(name)))

    # ---- windows ------------------------------------------------------------------------------------------------

    def member(self, tile: Buffer) -> shared.SharedTile:
        """What is known of a shared tile."""
        return next(each for each in self.plan.shared if each.tile is tile)

    def window(self, tile: Buffer, distribution: Distribution, use: str, origin: tuple[str, ...] = ()) -> str:
        """The window of a tile's stage with a distribution; it is computed before the kernel's first statement.

        `origin` is where a part of the tile begins; none of the whole tile.
        """
        key = (tile.name, distribution.name, origin)
        if key not in self.windows:
            name = self.printer.names(tile.name)
            stages = name if self.member(tile).stages else f"&{name}"
            call = words.OPERAND_WINDOW if use == "operand" else words.STAGED_WINDOW
            text = f"{call}({', '.join((stages, f'{distribution.name}{{}}', *origin))})"
            self.windows[key] = (self.printer.names.fresh(f"{name}_{use}"), text)
        stage = self.printer.stages.get(tile.name, "0")
        return f"{self.windows[key][0]}[{stage}]"

    def vector(self, tile: Buffer) -> int:
        """Elements of a row in 16 bytes, as far as rows allow them."""
        layout = self.member(tile).layout
        most = max(1, VECTOR // tile.dtype.bytes)
        row = (layout.row_bytes + layout.padding) // tile.dtype.bytes
        while most > 1 and (row % most or layout.extents[-1] % most):
            most //= 2
        return most

    def ways(
        self, tile: Buffer, encoding: Encoding, width: int, *, is_read: bool, origin: tuple[int, ...] = (0, 0)
    ) -> int:
        """The conflict degree of the accesses of `width` bytes by which a wave reads or stores a tile, or a part."""
        layout, columns = self.member(tile).layout, self.by_columns.get(tile.name)
        size, worst = tile.dtype.bytes, 1
        lanes = [encoding.element(0, lane, 0) for lane in range(WAVE)]
        for register in range(0, encoding.registers, max(1, width // size)):
            of_register = encoding.element(0, 0, register)  # a coordinate is the sum of what lane and register give
            at = [tuple(map(sum, zip(origin, of_lane, of_register, strict=True))) for of_lane in lanes]
            addresses = [byte_of(layout, each) if columns is None else columns.byte_of(each, tile) for each in at]
            worst = max(worst, lds_ways(addresses, width, is_read=is_read, banks=self.plan.memory.banks))
        return worst

    def check_rank(self, tile: Buffer, span: Span) -> None:
        """Errors: T2C-E034 for a tile that windows do not cover."""
        if tile.rank > 2:
            raise unsupported(f"a copy of {tile.name}, which has {tile.rank} dimensions", span)
