"""Expressions over CuTe's tensors."""

from collections.abc import Callable
from dataclasses import dataclass, field

from tile2cu.core.dtype import FLOAT16, FLOAT32, DType
from tile2cu.core.expr import Binary, Call, Expr, Named
from tile2cu.core.program import Buffer, Scope
from tile2cu.core.span import Span
from tile2cu.styles.base.expressions import Printer
from tile2cu.styles.cute import vocabulary as words
from tile2cu.styles.cute.support import unsupported
from tile2cu.styles.cute.types import in_cute, is_half

_PRIMARY = 12
_OF_ANY_TYPE = ("infinity", "cast", "reinterpret", "if_then_else")


@dataclass
class CutePrinter(Printer):
    """Prints elements of CuTe's tensors: `places` has those that a loop holds in registers, by buffer and indices.

    `everywhere` are fragments that every thread holds. `span` is the line that is printed. Elements of tensors whose
    extents are `checked` are predicated.
    """

    places: dict[tuple[str, tuple[Expr, ...]], str] = field(default_factory=dict)
    checked: frozenset[str] = frozenset()
    everywhere: frozenset[str] = frozenset()
    span: Span | None = None
    elements_of: Callable[[Buffer], str] | None = None  # the tensor of a shared tile that its elements are read from

    def element(self, buffer: Buffer, indices: tuple[Expr, ...]) -> str:
        """One element; of a tensor that is checked its value, which is zero outside."""
        held = self.places.get((buffer.name, tuple(indices)))
        if held is not None:
            return held
        if buffer.scope is Scope.GLOBAL and buffer.name in self.checked:
            return f"{words.VALUE_AT}({', '.join([self.names(buffer.name), *map(self.coordinate, indices)])})"
        return self.place(buffer, indices)

    def place(self, buffer: Buffer, indices: tuple[Expr, ...]) -> str:
        """The same, assignable."""
        held = self.places.get((buffer.name, tuple(indices)))
        if held is not None:
            return held
        if buffer.scope is Scope.LOCAL:
            return super().element(buffer, indices)
        if buffer.name in self.everywhere:
            return f"{self.names(buffer.name)}({', '.join(map(self.coordinate, indices))})"
        if buffer.scope not in (Scope.GLOBAL, Scope.SHARED):
            assert self.span is not None
            raise unsupported(f"an element of {buffer.name} that the loop's layout does not give the thread", self.span)
        stage = self.stages.get(buffer.name)
        inside = [*map(self.coordinate, indices), *([stage] if stage else [])]
        swizzled = buffer.scope is Scope.SHARED and self.elements_of is not None
        name = self.elements_of(buffer) if swizzled and self.elements_of else self.names(buffer.name)
        return f"{name}({', '.join(inside)})"

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
