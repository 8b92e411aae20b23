"""Elementwise loops: functions applied to tiles in registers, or sweeps over a tile's distributed indices."""

from collections.abc import Iterator
from dataclasses import dataclass, field

from tile2cu.analysis.dependence import same_storage
from tile2cu.core.errors import Tile2CuError
from tile2cu.core.expr import Expr, Load, Var, children
from tile2cu.core.layout import FragmentLayout, Replicated, Slice, slice_of
from tile2cu.core.program import Buffer, Scope
from tile2cu.plan import ops, structure
from tile2cu.plan.scalar_ops import Atomic, Declare, Store
from tile2cu.styles.base.elements import (
    Access,
    ElementStatements,
    Key,
    accesses_of,
    box_of,
    first_of_four,
    printed_expressions,
)
from tile2cu.styles.ck import vocabulary as words
from tile2cu.styles.ck.copies import Copies
from tile2cu.styles.ck.expressions import CkPrinter
from tile2cu.styles.ck.fragments import Distribution, Fragments, Temporary, distribution_of, guarded, tile_of
from tile2cu.styles.ck.scalars import atomic
from tile2cu.styles.ck.support import unsupported
from tile2cu.styles.ck.types import SUPPORTED, in_ck, in_windows


@dataclass
class ElementLoop(ElementStatements):
    """Prints one loop."""

    op: structure.Elementwise
    printer: CkPrinter
    fragments: Fragments
    copies: Copies
    tiles: dict[Key, str] = field(default_factory=dict)  # of tensors, in registers while the loop runs
    loads: list[str] = field(default_factory=list)
    stores: list[str] = field(default_factory=list)
    _loaded: int = 0  # bytes of a thread in `tiles`

    def lines(self) -> str:
        """The loop. Errors: T2C-E034."""
        accesses = list(accesses_of(self.op.body))
        for each in accesses:
            if each.buffer.dtype.name not in SUPPORTED:
                raise unsupported(f"{each.buffer.name} of {each.buffer.dtype} in a loop", self.op.source.span)
        try:
            if isinstance(self.op.layout, Replicated):
                return self._by_each_thread(accesses)
            distribution = self.fragments.of(self.op.layout, self.op.source.span)
            for each in accesses:
                if each.buffer.scope is Scope.GLOBAL and each.key not in self.tiles:
                    self._tile_of_tensor(each, accesses, distribution)
            body = self._applied(accesses) or self._swept(accesses, distribution)
            return "\n".join([*self.loads, *body, *self.stores])
        finally:
            self.printer.places.clear()

    # ---- tensors ------------------------------------------------------------------------------------------------

    def _tile_of_tensor(self, access: Access, accesses: list[Access], distribution: Distribution) -> None:
        """Loads and stores a tensor's elements as a tile, where they are a box and each has one place."""
        buffer, span = access.buffer, self.op.source.span
        same = [each for each in accesses if same_storage(each.buffer, buffer)]
        found = box_of(access.indices, self.op.vars, self.printer)
        if found is None or any(each.key != access.key for each in same) or buffer.dtype.bits < 8:
            return
        writes = any(each.writes for each in same)
        if not all(not (each.atomic or each.conditions) for each in same if each.writes):
            return
        starts, along = found
        try:
            box = self.copies.tensors.box_at(buffer, starts, along, (), self.op.extents, distribution.encoding, span)
        except Tile2CuError:  # its elements are accessed one by one
            return
        names, element, windows = self.printer.names, in_ck(buffer.dtype.cpp), in_windows(buffer.dtype)
        name = names.fresh(f"{names(buffer.name)}_tile")
        window = box.window(self.printer, distribution_of(distribution.name))
        self.loads += box.lines
        if any(not each.writes for each in same):
            loaded = f"load_tile({window})"
            value = loaded if windows == element else f"cast_tile<{element}>({loaded})"
            self.loads.append(f"auto {name} = {value};")
        else:
            self.loads.append(f"auto {name} = {tile_of(element, distribution.name)};")
        if writes:
            out = names.fresh(f"{names(buffer.name)}_window")
            value = name if windows == element else f"cast_tile<{windows}>({name})"
            self.stores += [f"auto {out} = {window};", guarded(f"store_tile({out}, {value});", distribution.encoding)]
        self.tiles[access.key] = name
        self._loaded += distribution.encoding.registers * buffer.dtype.bytes
        self.fragments.hold(Temporary.OF_TENSORS, self._loaded)

    # ---- forms --------------------------------------------------------------------------------------------------

    def _by_each_thread(self, accesses: list[Access]) -> str:
        """A loop that every thread runs over all elements: all of them hold these."""
        opening = []
        for var, extent in zip(self.op.vars, self.op.extents, strict=True):
            name = self.printer.names(var.name)
            opening.append(f"for (int {name} = 0; {name} < {self.printer.index(extent)}; ++{name}) {{")
        body = self.body(self.op.body)
        return "\n".join([*opening, *body, *["}"] * len(self.op.vars)])

    def _applied(self, accesses: list[Access]) -> list[str] | None:
        """A function of elements of the same place, if the loop has no others and reads no index."""
        tiles: dict[Key, str] = {}
        for each in accesses:
            name = self.tiles.get(each.key)
            if name is None and each.buffer.scope is Scope.FRAGMENT and self._is_own(each):
                name = self.printer.names(each.buffer.name)
            if name is None:
                return None
            tiles[each.key] = name
        held = {key: self._element(name) for key, name in tiles.items()}
        self.printer.places |= held
        if not held or any(self.reads(expr, self.op.vars) for expr in printed_expressions(self.op.body)):
            self.printer.places.clear()
            return None
        written = {each.key for each in accesses if each.writes}
        params = ", ".join(f"{'auto&' if key in written else 'auto'} {name}" for key, name in held.items())
        body = self.body(self.op.body)
        capture = "[&]" if self._captures() else "[]"
        return [f"tile_elementwise_inout({capture}({params}) {{", *body, f"}}, {', '.join(tiles.values())});"]

    def _element(self, tile: str) -> str:
        """The name of a tile's element at the loop's variables: `acc_ij` of `acc` in a loop over i and j."""
        over = [self.printer.names(var.name) for var in self.op.vars]
        between = "" if all(len(each) == 1 for each in over) else "_"
        return self.fragments.inner_name(f"{tile.removesuffix('_tile')}_{between.join(over)}")

    def _captures(self) -> bool:
        """Whether the body reads variables of the kernel."""
        local = {each.op.var for each in self.op.body if isinstance(each.op, structure.Let | Declare)}
        return any(
            isinstance(part, Var) and part not in local
            for expr in printed_expressions(self.op.body)
            for part in self._read(expr)
        )

    def _read(self, expr: Expr) -> Iterator[Expr]:
        """The parts of an expression that are printed."""
        if isinstance(expr, Load) and (getattr(expr.buffer, "name", ""), expr.indices) in self.printer.places:
            return
        yield expr
        for each in children(expr):
            yield from self._read(each)

    def _swept(self, accesses: list[Access], distribution: Distribution) -> list[str]:
        """A sweep over the distributed indices of the loop's tile."""
        printer, names, op = self.printer, self.printer.names, self.op
        index = self.fragments.inner_name("_".join(names(var.name) for var in op.vars) if len(op.vars) > 1 else "index")
        inner: list[str] = []
        lines_of: dict[int, str] = {}
        over = ""
        for each in accesses:
            if each.key in printer.places:
                continue
            tile = self.tiles.get(each.key)
            if tile is None and each.buffer.scope is Scope.FRAGMENT:
                tile = self._fragment(each, index, lines_of, inner)
            elif tile is not None:
                over, tile = over or tile, f"{tile}({index})"
            if tile is not None:
                printer.places[each.key] = tile
            if each.buffer.scope is Scope.FRAGMENT and self._is_own(each):
                over = over or names(each.buffer.name)
        body = self.body(op.body)
        touches = any(
            each.buffer.scope in (Scope.GLOBAL, Scope.SHARED) and each.key not in printer.places for each in accesses
        )
        padded = self._padded() if touches else (False,) * len(op.vars)
        used = {part for expr in printed_expressions(op.body) for part in self._read(expr)}
        named = tuple(var in used or is_padded for var, is_padded in zip(op.vars, padded, strict=True))
        if any(named):
            inner += self._indices(index, distribution.name, named, padded)
        head = f"sweep_tile({over}, [&](auto {index}) {{"
        if not over:
            head = f"sweep_tile<{words.DISTRIBUTED_TILE}<float, {distribution.name}>>([&](auto {index}) {{"
        return [head, *inner, *body, "});"]

    def _indices(self, index: str, layout: str, named: tuple[bool, ...], padded: tuple[bool, ...]) -> Iterator[str]:
        """The loop's variables that are `named`, and the condition under which there is such an element."""
        printer, names = self.printer, self.printer.names
        at = self.fragments.inner_name("at")
        yield f"const auto {at} = get_x_indices_from_distributed_indices({distribution_of(layout)}, {index});"
        numbers = ((dim, var) for dim, var in enumerate(self.op.vars) if named[dim])
        yield f"const index_t {', '.join(f'{names(var.name)} = {at}[number<{dim}>{{}}]' for dim, var in numbers)};"
        if any(padded):
            found = zip(self.op.vars, self.op.extents, padded, strict=True)
            asked = (f"{names(var.name)} >= {printer.index(extent)}" for var, extent, is_padded in found if is_padded)
            yield f"if ({' || '.join(asked)}) return;"

    def _padded(self) -> tuple[bool, ...]:
        shape = self.fragments.of(self.op.layout, self.op.source.span).encoding.shape
        return tuple(a != b for a, b in zip(shape, self.op.layout.shape, strict=True))

    # ---- where elements are -------------------------------------------------------------------------------------

    def _layout(self, buffer: Buffer) -> FragmentLayout | None:
        return self.fragments.layout(buffer) if buffer.scope is Scope.FRAGMENT else None

    def _is_own(self, access: Access) -> bool:
        """Whether an access is to the element of a fragment at the loop's own place."""
        return self._layout(access.buffer) == self.op.layout and access.indices == tuple(self.op.vars)

    def _fragment(self, access: Access, index: str, lines_of: dict[int, str], inner: list[str]) -> str | None:
        layout, variables = self._layout(access.buffer), self.op.vars
        name = self.printer.names(access.buffer.name)
        if isinstance(layout, Replicated):
            return None  # printed as an array's element
        if self._is_own(access):
            return f"{name}({index})"
        if isinstance(layout, Slice) and len(variables) == 2 and slice_of(self.op.layout, layout.kept) == layout:
            (kept,) = layout.kept
            if access.indices == (variables[kept],):
                if kept not in lines_of:
                    lines_of[kept] = self.fragments.inner_name(("row", "column")[kept])
                    inner.append(f"constexpr auto {lines_of[kept]} = make_tuple({index}[number<{kept}>{{}}]);")
                return f"{name}({lines_of[kept]})"
        raise unsupported(f"an element of {access.buffer.name} that another thread holds", self.op.source.span)

    # ---- text ---------------------------------------------------------------------------------------------------

    def other(self, op: ops.Op) -> str:
        """Four multiplied bytes, added to an element. Errors: T2C-E034 for another operation."""
        if isinstance(op, structure.DotsOfFour):
            printer, dot = self.printer, op.dot
            total, packed = (printer.element(each, dot.sum.indices) for each in (dot.sum.buffer, dot.packed))
            first = first_of_four(dot)
            quad = printer.place(dot.tile, tuple(first.indices))
            return f"{total} = {words.DOT_OF_QUARTERS}({packed}, {dot.less}, &{quad}, {total});"
        raise unsupported(f"the operation {type(op).__name__} in an elementwise loop", op.source.span)

    def atomic(self, op: Atomic) -> str:
        """One element of a tensor, updated by one of the threads that hold it."""
        return self._by_writer(op.buffer, op.indices, atomic(op, self.printer))

    def store(self, op: Store) -> str:
        """Of the threads that hold an element, one writes it to memory."""
        printer = self.printer
        value = printer.text(op.value, op.buffer.dtype)
        target = printer.element(op.buffer, op.indices)
        if (op.buffer.name, op.indices) in printer.places or op.buffer.scope not in (Scope.GLOBAL, Scope.SHARED):
            return f"{target} {op.operator}= {value};"
        return self._by_writer(op.buffer, op.indices, f"{target} {op.operator}= {value};")

    def _by_writer(self, buffer: Buffer, indices: tuple[Expr, ...], text: str) -> str:
        """A statement of one of the threads that hold an element."""
        if isinstance(self.op.layout, Replicated):
            return f"if (threadIdx.x == 0) {text}"
        return guarded(text, self.fragments.of(self.op.layout, self.op.source.span).encoding)
