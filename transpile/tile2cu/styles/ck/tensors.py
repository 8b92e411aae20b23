"""Tensors as ck_tile's views, and the windows on them."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from functools import partial

from tile2cu.analysis.bounds import Bounds
from tile2cu.analysis.signs import never_negative
from tile2cu.analysis.tile_starts import begins_near
from tile2cu.core.dtype import INT32
from tile2cu.core.expr import Call, Expr, Load, Role, Unary, Var, binary, int_const, static_value, walk
from tile2cu.core.program import Buffer
from tile2cu.core.record import Record
from tile2cu.core.span import Span
from tile2cu.plan.kernel import Kernel
from tile2cu.plan.operands import TensorTile
from tile2cu.plan.tensors import TensorView
from tile2cu.styles.base.comments import BODY_WIDTH, wrapped
from tile2cu.styles.base.view import Declaration
from tile2cu.styles.base.vocabulary import ANY_ALIGNMENT
from tile2cu.styles.ck import vocabulary as words
from tile2cu.styles.ck.encodings import Encoding
from tile2cu.styles.ck.expressions import CkPrinter
from tile2cu.styles.ck.support import unsupported
from tile2cu.styles.ck.types import SUPPORTED, VECTOR, in_ck, in_windows

_OF_BLOCKS = (Role.SIZE, Role.SCALAR, Role.BLOCK)  # what has its value before the kernel's first statement


class Box(Record, frozen=True, kw_only=True):
    """A box of a tensor: the view's name, its text, the coordinate at which it starts, and its extents.

    `lines` declare its view where that depends on what only the statement knows.
    """

    tensor: Buffer
    view: str
    by_instance: bool  # the width of accesses is that of the kernel's instance
    vector: int  # the neighbours of a row that an access may take, in the instance where they are most
    origin: tuple[Expr, ...]
    lengths: str
    lines: tuple[str, ...]

    def origin_text(self, printer: CkPrinter) -> str:
        """The coordinate, as indices of ck_tile."""
        return f"{{{', '.join(_index(start, printer) for start in self.origin)}}}"

    def window(self, printer: CkPrinter, distribution: str = "") -> str:
        """The window on it, with a distribution where it is loaded."""
        return window_on(self.view, self.lengths, self.origin_text(printer), distribution)


def window_on(view: str, lengths: str, origin: str, distribution: str = "") -> str:
    """A window on a view."""
    return f"make_tile_window({', '.join(filter(None, (view, lengths, origin, distribution)))})"


def _index(expr: Expr, printer: CkPrinter) -> str:
    text = printer.index(expr)
    return text if expr.dtype.name == "int32" or static_value(expr) is not None else f"static_cast<index_t>({text})"


@dataclass
class Tensors:
    """The views of a kernel's tensors; those that hold in all of the kernel are declared at its beginning."""

    plan: Kernel
    printer: CkPrinter
    _views: dict[str, str] = field(default_factory=dict)  # by their text
    _notes: bool = False
    _checks_columns: bool = False  # in a view that holds in all of the kernel
    _moves_next_to: bool = False

    def view(self, buffer: Buffer) -> TensorView:
        """What is known of a tensor."""
        return next(each for each in self.plan.tensors.views if each.tensor is buffer)

    # ---- boxes --------------------------------------------------------------------------------------------------

    def box(
        self,
        operand: TensorTile,
        extents: tuple[Expr, ...],
        encoding: Encoding | None,
        span: Span,
        *,
        atomic: bool = False,
    ) -> Box:
        """A box of these extents, for windows with an encoding. Errors: T2C-E034."""
        starts = tuple(part.start for part in operand.region.ranges)
        return self.box_at(operand.buffer, starts, operand.along, operand.ends, extents, encoding, span, atomic)

    def box_at(
        self,
        buffer: Buffer,
        starts: tuple[Expr, ...],
        along: tuple[int, ...],
        ends: tuple[Expr | None, ...],
        extents: tuple[Expr, ...],
        encoding: Encoding | None,
        span: Span,
        atomic: bool = False,
    ) -> Box:
        """The same of a tensor whose dimensions `along` it runs over."""
        self._check(buffer, starts, along, span)
        shape = tuple(int(static_value(each) or 0) for each in extents)
        rounded = encoding.shape if encoding is not None else shape
        sizes = tuple(
            given if covered == extent else int_const(covered)
            for given, extent, covered in zip(extents, shape, rounded, strict=True)
        )
        origin = tuple(self._near(buffer, dim, starts[dim], extent) for dim, extent in zip(along, sizes, strict=True))
        overhangs = tuple(covered != extent for covered, extent in zip(rounded, shape, strict=True))
        given = tuple(ends[dim] if ends else None for dim in along)
        stops = tuple(
            self._stop(buffer, dim, given[number], starts[dim], origin[number], extents[number])
            if overhangs[number]
            else given[number]
            for number, dim in enumerate(along)
        )
        plane = self._plane(buffer, starts, along)
        planes = (plane, *[""] * (len(along) - 1))  # no element of the first dimension is inside where the plane is not
        lengths = tuple(map(partial(self._length_until, buffer), along, stops, planes))
        pads = tuple(
            bool(planes[number])
            or stops[number] is not None
            or overhangs[number]
            or (self.view(buffer).checked[dim] and not self._ends_with_buffer(buffer, along, number))
            for number, dim in enumerate(along)
        )
        last_end = self.printer.bounds.multiple_of(stops[-1]) if stops[-1] is not None else 0
        below = any(not never_negative(starts[dim], self.printer.bounds) for dim in along[1:])
        windows = tuple(f"number<{self.printer.index(size)}>{{}}" for size in sizes)
        fixed = tuple(starts[dim] for dim in range(buffer.rank) if dim not in along)
        clipped = tuple(start for start, is_clipped in zip(origin, overhangs, strict=True) if is_clipped)
        if not any(planes) and all(
            stop is None and static_value(buffer.shape[dim]) is not None for dim, stop in zip(along, stops, strict=True)
        ):  # a buffer view's size is none of the types
            lengths = (self.printer.index(buffer.shape[along[0]]), *lengths[1:])
        text = self._view_text(buffer, starts, along, lengths, last_end, atomic=atomic)
        if below:  # a tile may start before the first column: that is checked, too
            flags = (pad or dim != along[0] for pad, dim in zip(pads, along, strict=True))
            text = f"{words.CLIP}({text}, {_sequence(flags)})"
        elif any(pads):
            text = f"pad_tensor_view({text}, make_tuple({', '.join(windows)}), {_sequence(pads)})"
        depends = (*fixed, *clipped, *(each for each in ends if each))
        name, lines = self._named(buffer, text, depends, padded=any(pads), checks_columns=below or any(pads))
        lengths_text = f"make_tuple({', '.join(windows)})"
        by_instance = self._by_instance(buffer, starts, along, last_end)
        return Box(
            tensor=buffer,
            view=name,
            by_instance=by_instance,
            vector=self._neighbours(buffer, starts, along, last_end),
            origin=origin,
            lengths=lengths_text,
            lines=lines,
        )

    def _stop(self, buffer: Buffer, dim: int, end: Expr | None, start: Expr, origin: Expr, extent: Expr) -> Expr | None:
        """Where a box ends that its distribution covers more than: at its own end, or the `end` that the user gives."""
        if static_value(start) == 0 and static_value(buffer.shape[dim]) == int(static_value(extent) or 0):
            return end
        stop = binary("+", origin, extent)
        return stop if end is None else Call(end.dtype, "min", (end, stop))

    def _length_until(self, buffer: Buffer, dim: int, stop: Expr | None, plane: str) -> str:
        """The extent of a view's dimension that stops at `stop`, and is empty where the condition `plane` fails."""
        extent = self.printer.index(buffer.shape[dim])
        if stop is None:
            return f"{plane} ? {extent} : 0" if plane else self._length(buffer.shape[dim])
        length = f"{words.MINIMUM_OF}({extent}, {self.printer.index(stop)})"
        length = length if never_negative(stop, self.printer.bounds) else f"{words.MAXIMUM_OF}(0, {length})"
        return f"{plane} ? {length} : 0" if plane else length

    def _near(self, buffer: Buffer, dim: int, start: Expr, tile: Expr) -> Expr:
        """Where a tile begins: next to the tensor if it may be so far outside that offsets would wrap."""
        bounds, extent = self.printer.bounds, buffer.shape[dim]
        if not self.view(buffer).checked[dim] or begins_near(start, extent, bounds):
            return start
        self._moves_next_to = True
        kind = start.dtype if start.dtype.bits >= INT32.bits else INT32
        moved: Expr = Call(kind, "min", (start, extent))
        low = bounds.of_values.interval(start).low
        return moved if low is not None and low >= 0 else Call(kind, "max", (Unary(kind, "-", tile), moved))

    def _check(self, buffer: Buffer, starts: tuple[Expr, ...], along: tuple[int, ...], span: Span) -> None:
        reads_bits = buffer.of is not None and buffer.of.dtype != buffer.dtype
        if buffer.dtype.name not in SUPPORTED or reads_bits or in_windows(buffer.dtype) is None:
            raise unsupported(f"the tensor {buffer.name} of {buffer.dtype}", span)
        if along != tuple(sorted(along)) or not along:
            raise unsupported("a box that runs along the tensor's dimensions in another order", span)

    def _plane(self, buffer: Buffer, starts: tuple[Expr, ...], along: tuple[int, ...]) -> str:
        """The condition under which the fixed indices of a box are in bounds, where they may be outside."""
        asked = []
        for dim, start in enumerate(starts):
            if dim not in along and (self.view(buffer).checked[dim] or not never_negative(start, self.printer.bounds)):
                extent, index = self.printer.index(buffer.shape[dim]), self.printer.index(start)
                asked.append(f"unsigned({index}) < unsigned({extent})")
        return " && ".join(asked)

    def _ends_with_buffer(self, buffer: Buffer, along: tuple[int, ...], number: int) -> bool:
        """Whether what is behind the last row is behind the buffer's end, which the hardware checks."""
        if number > 0 or len(along) == 1 or buffer.strides is not None:
            return False
        inner = static_value(buffer.shape[-1])
        return inner is None or int(inner) * buffer.dtype.bytes >= VECTOR

    # ---- texts --------------------------------------------------------------------------------------------------

    def _length(self, extent: Expr) -> str:
        text = self.printer.index(extent)
        return f"number<{text}>{{}}" if static_value(extent) is not None else text

    def stride(self, buffer: Buffer, dim: int) -> Expr:
        """The distance of neighbours along a dimension, in elements."""
        if buffer.strides is not None:
            return buffer.strides[dim]
        found: Expr = int_const(1)
        for extent in buffer.shape[dim + 1 :]:
            found = binary("*", found, extent)
        return found

    def _view_text(
        self,
        buffer: Buffer,
        starts: tuple[Expr, ...],
        along: tuple[int, ...],
        lengths: tuple[str, ...],
        end: int,
        *,
        atomic: bool,
    ) -> str:
        """A view without padding; `end` divides where its tile's rows end."""
        data = f"kargs.{self.printer.names(buffer.memory.name)}"
        offset: Expr = int_const(0)
        for dim, start in enumerate(starts):
            if dim not in along:
                offset = binary("+", offset, binary("*", start, self.stride(buffer, dim)))
        if static_value(offset) != 0:
            data += f" + {self.printer.index(offset)}"
        if in_windows(buffer.dtype) != in_ck(buffer.dtype.cpp):
            data = f"{words.WINDOW_DATA}({data})"
        strides = ", ".join(self._length(self.stride(buffer, dim)) for dim in along)
        vector = self._vector(buffer, starts, along, end)
        memory = "address_space_enum::global" + ", memory_operation_enum::atomic_add" * atomic
        return (
            f"make_naive_tensor_view<{memory}>({data}, make_tuple({', '.join(lengths)}), make_tuple({strides}), "
            f"number<{vector}>{{}}, number<1>{{}})"
        )

    def _vector(self, buffer: Buffer, starts: tuple[Expr, ...], along: tuple[int, ...], end: int) -> str:
        """`_neighbours` as text, which an instance of the kernel may have its own value of."""
        if self._by_instance(buffer, starts, along, end):
            return f"{words.VECTOR_LENGTH}<Alignment, {in_ck(buffer.dtype.cpp)}>"
        most = self._neighbours(buffer, starts, along, end)
        return str(most) if most * buffer.dtype.bytes < VECTOR else f"16 / sizeof({in_ck(buffer.dtype.cpp)})"

    def _neighbours(self, buffer: Buffer, starts: tuple[Expr, ...], along: tuple[int, ...], end: int) -> int:
        """How many neighbours of a row an access may take; `end` divides where its tile's rows end, 0 for their end."""
        most = VECTOR // buffer.dtype.bytes
        if not self._along_rows(buffer, along):
            return 1
        if self._by_instance(buffer, starts, along, end):
            return most
        most = max(1, min(most, self.view(buffer).alignment // buffer.dtype.bytes))
        start, row = self.printer.bounds.multiple_of(starts[-1]), self._row(buffer)
        while most > 1 and (start | row | end) % most:
            most //= 2
        return most

    def _row(self, buffer: Buffer) -> int:
        """What divides the length of rows: where it is a run-time size, what they are aligned to, as nothing pads them.

        The alignment of a tensor of one dimension is that of its only row's start.
        """
        row = static_value(buffer.shape[-1])
        if row is not None:
            return int(row)
        return self.view(buffer).alignment // buffer.dtype.bytes if buffer.rank > 1 else 1

    @staticmethod
    def _along_rows(buffer: Buffer, along: tuple[int, ...]) -> bool:
        """Whether neighbours of a box are neighbours in memory."""
        return along[-1] == buffer.rank - 1 and buffer.strides is None

    def _by_instance(self, buffer: Buffer, starts: tuple[Expr, ...], along: tuple[int, ...], end: int) -> bool:
        """Whether the instance of the kernel that the launcher chooses decides about accesses' width."""
        view, most = self.view(buffer), VECTOR // buffer.dtype.bytes
        chosen = view.by_instance or has_vectors(buffer, view.alignment)
        starts_of = self.printer.bounds.multiple_of(starts[-1])
        return chosen and self._along_rows(buffer, along) and (starts_of | end) % most == 0

    def _named(
        self, buffer: Buffer, text: str, depends: tuple[Expr, ...], *, padded: bool, checks_columns: bool
    ) -> tuple[str, tuple[str, ...]]:
        """(the view's name, the lines that declare it where its text depends on what only the statement knows)."""
        self._notes |= padded or any(self.view(buffer).checked)
        parts = [part for each in depends for part in walk(each)]
        late = any(
            (isinstance(part, Var) and part.role not in _OF_BLOCKS and not self._is_of_prelude(part))
            or isinstance(part, Load)
            for part in parts
        )
        name = self.printer.names(buffer.name)
        if late:
            own = self.printer.names.fresh(f"{name}_view")
            return own, (f"const auto {own} = {text};",)
        self._checks_columns |= checks_columns
        if text not in self._views:
            taken = set(self._views.values())
            self._views[text] = name if name not in taken else self.printer.names.fresh(f"{name}_view")
        return self._views[text], ()

    def _is_of_prelude(self, var: Var) -> bool:
        return any(let.var == var for let in self.plan.launch.prelude)

    def declared(self) -> Iterator[Declaration]:
        """The views that hold in all of the kernel, and tensors whose elements are accessed one by one."""
        columns = ", and of columns past it a lane's offset is set past the buffer's end" * self._checks_columns
        moved = "; a tile that begins farther outside is moved next to the tensor, as offsets have 32 bits"
        moved = moved if self._moves_next_to else ""
        about = (
            "Tiles may reach past an extent: rows past the last one are outside of the buffer, whose bounds the "
            f"hardware checks{columns}: loads return zero, stores are dropped{moved}  [{self.plan.tensors.bounds_rule}]"
        )
        comments = tuple(wrapped(about, BODY_WIDTH)) if self._notes else ()
        for text, name in self._views.items():
            yield Declaration(f"const auto {name} = {text};", comments)
            comments = ()
        for tensor_name, name in self.printer.elements.items():
            yield self._elements(next(v for v in self.plan.tensors.views if v.tensor.name == tensor_name), name)

    def _elements(self, view: TensorView, name: str) -> Declaration:
        tensor = view.tensor
        reads_bits = tensor.of is not None and tensor.of.dtype != tensor.dtype
        if tensor.dtype.name not in SUPPORTED or reads_bits or tensor.strides is not None:
            raise unsupported(f"single elements of {tensor.name}", self.plan.launch.span)
        extents = (
            f"{words.PREDICATED}({text})" if checked else text
            for text, checked in zip(map(self.printer.index, tensor.shape), view.checked, strict=True)
        )
        data = f"kargs.{self.printer.names(tensor.memory.name)}"
        return Declaration(f"const auto {name} = {words.TENSOR}<{ANY_ALIGNMENT}>({data}, {', '.join(extents)});")


def has_vectors(tensor: Buffer, alignment: int) -> bool:
    """Whether a tensor's accesses have 16 bytes where its run-time extent is a multiple of them."""
    open_ended = tensor.rank == 1 and static_value(tensor.shape[0]) is None
    return open_ended and alignment >= VECTOR and tensor.strides is None and tensor.dtype.name in SUPPORTED


def _sequence(flags: Iterable[bool]) -> str:
    return f"sequence<{', '.join('true' if flag else 'false' for flag in flags)}>{{}}"


def steps_of(starts: Iterable[Expr], var: Var, bounds: Bounds) -> tuple[int, ...] | None:
    """By how much a window moves per iteration of a loop; None where it does not evenly, or by what memory holds."""
    found = tuple(_step_of(start, var, bounds) for start in map(bounds.expanded, starts))
    return None if None in found else tuple(each for each in found if each is not None)


def _step_of(start: Expr, var: Var, bounds: Bounds) -> int | None:
    found = bounds.linear(start)
    if any(isinstance(part, Load) for part in walk(start)) or any(
        var in walk(atom) and atom != var for atom in found.terms
    ):
        return None
    return found.terms.get(var, 0)
