"""Expressions over CuTe's tensors."""

from collections.abc import Callable, Mapping

from msgspec import field

from tile2cu.core.dtype import FLOAT16, FLOAT32, DType
from tile2cu.core.expr import Binary, Call, Expr, Named
from tile2cu.core.program import Buffer, Scope
from tile2cu.core.record import Record
from tile2cu.styles.base.elements import ElementPrinter, Key
from tile2cu.styles.cute import vocabulary as words
from tile2cu.styles.cute.support import unsupported
from tile2cu.styles.cute.types import in_cute, is_half

_PRIMARY = 12
_OF_ANY_TYPE = ("infinity", "cast", "reinterpret", "if_then_else")


class Held(Record, frozen=True):
    """An element that a loop holds in registers: of a `tensor` at `index`, or a value by its name.

    `first` is the index of the first element that is held next to it.
    """

    tensor: str
    index: str = ""
    first: str = "0"

    def __str__(self) -> str:
        return f"{self.tensor}({self.index})" if self.index else self.tensor


class CutePrinter(ElementPrinter):
    """Elements of tensors are predicated where a dimension is `checked`, unless a condition that is `known` to hold
    implies that it is in bounds.
    """

    places: dict[Key, Held] = field(default_factory=dict)
    checked: Mapping[str, tuple[bool, ...]] = field(default_factory=dict)
    known: list[Expr] = field(default_factory=list)
    elements_of: Callable[[Buffer], str] | None = None  # the tensor of a shared tile that its elements are read from

    def element(self, buffer: Buffer, indices: tuple[Expr, ...]) -> str:
        """One element; of a tensor that is checked its value, which is zero outside."""
        held = self.places.get((buffer.name, tuple(indices)))
        if held is not None:
            return str(held)
        checked = self._checked(buffer, indices)
        if any(checked):
            return (
                f"{words.VALUE_AT}({', '.join([self._sliced(buffer, indices, checked), *self._of(indices, checked)])})"
            )
        return self.place(buffer, indices)

    def inside(self, buffer: Buffer, indices: tuple[Expr, ...]) -> str:
        """The condition that an element is in bounds; empty where it is known to be."""
        checked = self._checked(buffer, indices)
        if not any(checked):
            return ""
        at, tensor = ", ".join(self._of(indices, checked)), self._sliced(buffer, indices, checked)
        return f"{words.INSIDE}(make_coord({at}), shape({tensor}))"

    def _checked(self, buffer: Buffer, indices: tuple[Expr, ...]) -> tuple[bool, ...]:
        """The dimensions in which an element may be out of bounds."""
        checked = self.checked.get(buffer.name, ()) if buffer.scope is Scope.GLOBAL else ()
        return tuple(each and not self._is_known(indices[dim], buffer.shape[dim]) for dim, each in enumerate(checked))

    def _is_known(self, index: Expr, extent: Expr) -> bool:
        """Whether a condition implies that an index is below an extent, and it cannot be negative."""
        bounds, low = self.bounds, self.bounds.interval(index).low
        below = (each for each in self.known if isinstance(each, Binary) and each.op == "<" and each.rhs == extent)
        index = bounds.expanded(index)
        return low is not None and low >= 0 and any(bounds.expanded(each.lhs) == index for each in below)

    def _of(self, indices: tuple[Expr, ...], checked: tuple[bool, ...]) -> list[str]:
        return [self.coordinate(index) for index, each in zip(indices, checked, strict=True) if each]

    def _sliced(self, buffer: Buffer, indices: tuple[Expr, ...], checked: tuple[bool, ...]) -> str:
        """A tensor along its `checked` dimensions."""
        name = self.names(buffer.name)
        texts = ("_" if each else self.coordinate(index) for index, each in zip(indices, checked, strict=True))
        return name if all(checked) else f"{name}({', '.join(texts)})"

    def place(self, buffer: Buffer, indices: tuple[Expr, ...]) -> str:
        """The same, assignable."""
        held = self.places.get((buffer.name, tuple(indices)))
        if held is not None:
            return str(held)
        if buffer.scope in (Scope.LOCAL, Scope.BARRIER):
            return super().element(buffer, indices)
        if buffer.name in self.everywhere:
            return f"{self.names(buffer.name)}({', '.join(map(self.coordinate, indices))})"
        if buffer.scope not in (Scope.GLOBAL, Scope.SHARED):
            assert self.span is not None
            raise unsupported(f"an element of {buffer.name} that the loop's layout does not give the thread", self.span)
        return self._at(buffer, [*map(self.coordinate, indices)])

    def _at(self, buffer: Buffer, inside: list[str]) -> str:
        """A tensor, or a shared tile of the current stage, at coordinates."""
        return "{}({})".format(*self.tensor_at(buffer, inside))

    def tensor_at(self, buffer: Buffer, inside: list[str]) -> tuple[str, str]:
        """(a tensor, or a shared tile of the current stage, coordinates in it)."""
        stage = self.stages.get(buffer.name)
        swizzled = buffer.scope is Scope.SHARED and self.elements_of is not None
        name = self.elements_of(buffer) if swizzled and self.elements_of else self.names(buffer.name)
        return name, ", ".join([*inside, *([stage] if stage else [])])

    def row(self, buffer: Buffer, indices: tuple[Expr, ...]) -> tuple[str, str]:
        """(the row of a shared tile in which an element is, its index there)."""
        *outer, last = indices
        inside = [*map(self.coordinate, outer), "_"]
        whole = not outer and not self.stages.get(buffer.name)
        return self.names(buffer.name) if whole else self._at(buffer, inside), self.index(last)

    def coordinate(self, expr: Expr) -> str:
        """An index or extent that CuTe takes by reference: device code cannot refer to a constant of the host's."""
        text = self.index(expr)
        return f"Int<{text}>{{}}" if isinstance(expr, Named) else text

    def cast(self, expr: Expr, want: DType, text: str) -> str:
        """A conversion; CUTLASS's types of 16 bits convert themselves, to nearest even."""
        if want == FLOAT16 and self._is_small(expr):
            return f"{words.EXACT_HALF}({text})"
        if is_half(want) or is_half(expr.dtype):
            return f"{in_cute(want.cpp)}({text})"
        return super().cast(expr, want, text)

    def _binary(self, expr: Binary, dtype: DType) -> tuple[str, int]:
        if is_half(self._operand_type(expr, dtype)) and expr.op in ("//", "%", "**"):
            assert self.span is not None
            raise unsupported(f"`{expr.op}` of {dtype}", self.span)
        return super()._binary(expr, dtype)

    def _call(self, expr: Call, dtype: DType) -> tuple[str, int]:
        if is_half(dtype) and expr.function not in _OF_ANY_TYPE:
            return f"{in_cute(dtype.cpp)}({super()._call(expr, FLOAT32)[0]})", _PRIMARY
        return super()._call(expr, dtype)
