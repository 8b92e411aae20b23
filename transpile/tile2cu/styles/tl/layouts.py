"""Names, C++ types and descriptions of the layouts of fragments and loops."""

from collections.abc import Iterator

from msgspec import field

from tile2cu.core.expr import Expr, int_const
from tile2cu.core.layout import (
    SLICES,
    Blocked,
    FragmentLayout,
    MmaAccumulator,
    MmaOperandA,
    MmaOperandB,
    Replicated,
    Slice,
    SplitColumns,
    WgmmaAccumulator,
    slice_of,
)
from tile2cu.core.mfma_layout import MfmaAccumulator, MfmaOperandA
from tile2cu.core.program import Buffer
from tile2cu.core.record import Record
from tile2cu.plan.registers import Registers
from tile2cu.styles.base.comments import listed, rule_line, wrapped
from tile2cu.styles.base.expressions import Printer
from tile2cu.styles.base.layouts import described, has_tv_layout, in_order_of_unpacking, of_alternating, of_interleaved
from tile2cu.styles.base.register_sum import with_sum
from tile2cu.styles.base.view import Declaration, Section
from tile2cu.styles.base.vocabulary import NAMESPACE
from tile2cu.styles.tl import vocabulary as tl


class _Alias(Record, frozen=True):
    """A name for a layout, as tiles of one shape have it. Extents are `spelled` as the user does."""

    name: str
    layout: FragmentLayout
    extents: tuple[Expr, ...]
    spelled: tuple[str, ...]
    reason: str
    loop: str = ""  # over what, where it is no tile's
    users: list[Buffer] = field(default_factory=list)


class Layouts:
    """Names for the layouts of fragments and loops, in order of first use.

    Tiles whose extents have other names have a name of their own for the same layout: numbers may be equal by chance.
    """

    def __init__(self, registers: Registers, printer: Printer, threads: int = 0) -> None:
        """`threads` are the block's, where all of them hold each fragment; 0 where groups have their own."""
        self.registers = registers
        self.printer = printer
        self.threads = threads
        self.aliases: list[_Alias] = []
        for fragment in registers.fragments:
            assert fragment.layout is not None
            shape = fragment.tile.shape
            alias = self._find(fragment.layout, self._spelled(shape))
            alias = alias or self._add(fragment.layout, shape, fragment.tile.name, fragment.rule)
            alias.users.append(fragment.tile)
        for loop in registers.loops:
            if self._of(loop.layout) is None:
                name, over = "".join(loop.over), ", ".join(loop.over)
                self._add(loop.layout, loop.extents, name, loop.rule, over)

    def of_tile(self, tile: Buffer) -> str:
        """The name of a fragment's layout."""
        return next(alias.name for alias in self.aliases if any(user is tile for user in alias.users))

    def of_extents(self, layout: FragmentLayout, extents: tuple[Expr, ...]) -> str:
        """The name of a loop's layout: that of tiles of its shape, if there are such."""
        alias = self._find(layout, self._spelled(extents)) or self._of(layout)
        assert alias is not None, "every loop's layout has a name"
        return alias.name

    def _add(self, layout: FragmentLayout, extents: tuple[Expr, ...], wish: str, reason: str, loop: str = "") -> _Alias:
        name = self.printer.names.fresh(f"{wish}_layout")
        alias = _Alias(name, layout, extents, self._spelled(extents), reason, loop)
        self.aliases.append(alias)
        return alias

    def _find(self, layout: FragmentLayout, spelled: tuple[str, ...]) -> _Alias | None:
        """The name of a layout at a shape; a slice is stated by what it is a slice of, for any shape."""
        same = (alias for alias in self.aliases if alias.layout == layout)
        return next((alias for alias in same if alias.spelled == spelled or isinstance(layout, Slice)), None)

    def _of(self, layout: FragmentLayout) -> _Alias | None:
        """The first name of a layout."""
        return next((alias for alias in self.aliases if alias.layout == layout), None)

    def _spelled(self, extents: tuple[Expr, ...]) -> tuple[str, ...]:
        """What tells extents apart."""
        return tuple(map(self.printer.in_comments.index, extents))

    def section(self) -> Section:
        """One alias a layout, after those it is a slice of."""
        ordered = sorted(self.aliases, key=lambda alias: isinstance(alias.layout, Slice))
        count, limit = self.registers.count, self.registers.limit
        title = f"registers: {count} per thread for tiles" if count else "how loops are distributed over the threads"
        if prefetched := self.registers.prefetched:
            title += f", {prefetched} of which hold the next tile"
        if count > limit:
            title += f", of {limit} that it can have: some go through memory"
        elif shares := self.registers.share:
            title += f", of {shares} that setmaxnreg gives a consumer"
        elif operands := self.registers.read_operands:
            title += f"; up to {operands} for operands of a GEMM"
        section = Section(rule_line(title), tuple(map(self._declared, ordered)))
        return with_sum(section, self.registers, self.printer.names)

    @property
    def in_tv(self) -> bool:
        """Whether comments have a TV layout."""
        return any(has_tv_layout(alias.layout) for alias in self.aliases)

    def _declared(self, alias: _Alias) -> Declaration:
        users = ", ".join(name for tile in alias.users for name in self._fragments_of(tile))
        first = self._of(alias.layout)
        operands = {self.printer.names(tile.name): self._is_operand(tile) for tile in alias.users}
        about = f"{self._about(alias.layout)}{of_interleaved(alias.layout, alias.reason, operands)}  [{alias.reason}]"
        if first is not None and first is not alias:
            about = f"here the same as {first.name}: the sizes are equal"
        text = f"using {alias.name} = {self._type(alias.layout, alias.extents)};"
        comments = [
            f"layout of {users}:" if users else f"layout of a loop over {alias.loop}:",
            about,
            *self._operand_about(alias),
            *(f"{self.printer.names(tile.name)}: {tile.comment}" for tile in alias.users if tile.comment),
        ]
        if partial := [self.printer.names(tile.name) for tile in alias.users if tile in self.registers.partial]:
            own = "only the part of its own elements, until threads add them after the loop"
            comments.append(f"in {listed(partial)} each thread has {own}")
        comments += in_order_of_unpacking(alias.users, self.registers.unpacked, self.printer.names)
        return Declaration(text, tuple(line for comment in comments for line in wrapped(comment)))

    def _about(self, layout: FragmentLayout) -> str:
        """The layout for people; where warpgroups alternate, each has a tile of its own, and rows of it."""
        alternation = self.registers.alternation
        if alternation is None:
            return described(layout)
        return of_alternating(layout, self._layout_of(alternation.computed), alternation, self.printer.names)

    def _fragments_of(self, tile: Buffer) -> Iterator[str]:
        """The fragments that are declared for a tile: where warpgroups alternate, those of other iterations as well."""
        names, alternation = self.printer.names, self.registers.alternation
        yield names(tile.name)
        if alternation is not None:
            yield from (names(other.name) for other in alternation.besides(tile))

    def _layout_of(self, tile: Buffer) -> FragmentLayout:
        return next(alias.layout for alias in self.aliases if any(user is tile for user in alias.users))

    def _users(self, layout: FragmentLayout) -> list[Buffer]:
        """The fragments that have a layout."""
        return [user for alias in self.aliases if alias.layout == layout for user in alias.users]

    def _operand_about(self, alias: _Alias) -> tuple[str, ...]:
        """Why an MMA's result may be the next one's operand."""
        names = [
            self.printer.names(tile.name)
            for tile in alias.users
            if self._is_operand(tile) and not self._is_loaded(tile)
        ]
        if not names or not isinstance(alias.layout, MmaAccumulator | WgmmaAccumulator | MfmaAccumulator):
            return ()
        about = "an MMA reads it as operand A, whose lanes and registers are those of an accumulator: no shuffle"
        return (f"{', '.join(names)}: {about}",)

    def _is_operand(self, tile: Buffer) -> bool:
        """Whether MMAs read a tile as operand A."""
        return any(tile is each for each in self.registers.operands)

    def _is_loaded(self, tile: Buffer) -> bool:
        """Whether such a tile is loaded for them, not computed."""
        return any(tile is each for each in self.registers.loaded)

    def _type(self, layout: FragmentLayout, extents: tuple[Expr, ...]) -> str:
        """The C++ type of a layout."""
        index = self.printer.index
        match layout:
            case MmaAccumulator() | MmaOperandA():
                rows, cols = map(index, extents)
                kind = "MmaAccumulator" if isinstance(layout, MmaAccumulator) else "MmaOperandA"
                return f"{NAMESPACE}{kind}<{rows}, {cols}, {tl.WARPS}<{layout.warps.m}, {layout.warps.n}>>"
            case MmaOperandB():
                rows, cols = map(index, extents)
                kind = "MmaTransposedOperandB" if layout.transposed else "MmaOperandB"
                return f"{NAMESPACE}{kind}<{rows}, {cols}, {tl.WARPS}<{layout.warps.m}, {layout.warps.n}>>"
            case MfmaAccumulator() | MfmaOperandA():
                rows, cols = map(index, extents)
                users = self._users(layout)
                is_operand = users and all(self._is_operand(tile) and self._is_loaded(tile) for tile in users)
                kind = "MfmaOperandA" if is_operand or isinstance(layout, MfmaOperandA) else "MfmaAccumulator"
                shape = f", {tl.MFMA16X16_DOUBLE}" if layout.run == 1 else ""
                interleave = f", {tl.INTERLEAVE}<{layout.interleave}>" if layout.interleave > 1 or shape else ""
                warps = f"{tl.WARPS}<{layout.warps.m}, {layout.warps.n}>"
                return f"{NAMESPACE}{kind}<{rows}, {cols}, {warps}{interleave}{shape}>"
            case WgmmaAccumulator():
                rows, cols = map(index, extents)
                groups = self._warpgroups(layout.along_m)
                if layout.along_n > 1:
                    groups += f", {self._warpgroups(layout.along_n)}"
                return f"{tl.WGMMA_ACCUMULATOR}<{rows}, {cols}, {groups}>"
            case Blocked():
                shape, threads = ", ".join(map(index, extents)), ", ".join(map(str, layout.threads))
                each = f"{layout.vector}, {layout.rows}" if layout.rows > 1 else str(layout.vector)
                return f"{tl.BLOCKED}<{tl.SHAPE}<{shape}>, {tl.SHAPE}<{threads}>, {each}>"
            case Replicated():
                return f"{tl.REPLICATED}<{tl.SHAPE}<{', '.join(map(index, extents))}>>"
            case Slice():
                return self._slice(layout)
            case SplitColumns():
                of = self._named(layout.of)
                return f"{tl.SPLIT_COLUMNS_LAYOUT}<{of}, {index(extents[2])}>"
            case _:
                raise TypeError(f"no C++ type for {layout}")

    def _warpgroups(self, count: int) -> str:
        """A number of warpgroups, stated in the block's threads where it is all of them."""
        return "threads / 128" if 128 * count == self.threads else str(count)

    def _slice(self, layout: Slice) -> str:
        """A row or column slice, of a layout that has a name if there is one."""
        dim, _ = SLICES[len(layout.of.shape), layout.kept]
        for alias in self.aliases:
            whole = alias.layout
            if len(whole.shape) == len(layout.of.shape) and slice_of(whole, layout.kept) == layout:
                return f"{tl.SLICE}<{dim}, {alias.name}>"
        return f"{tl.SLICE}<{dim}, {self._named(layout.of)}>"

    def _named(self, layout: FragmentLayout) -> str:
        """A layout's name, or else its type, in numbers."""
        alias = self._of(layout)
        return alias.name if alias is not None else self._type(layout, tuple(map(int_const, layout.shape)))
