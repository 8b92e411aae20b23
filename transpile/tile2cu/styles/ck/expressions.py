"""Expressions over tiles in registers, in LDS, and single elements of tensors."""

from msgspec import field

from tile2cu.core.dtype import FLOAT32, DType
from tile2cu.core.expr import Binary, Call, Const, Expr
from tile2cu.core.program import Buffer, Scope
from tile2cu.styles.base.elements import ElementPrinter, Key
from tile2cu.styles.base.expressions import literal
from tile2cu.styles.ck.support import unsupported
from tile2cu.styles.ck.types import in_ck, is_bits

_PRIMARY = 12
_OF_ANY_TYPE = ("cast", "reinterpret", "if_then_else")


class CkPrinter(ElementPrinter):
    """`elements` are the tensors that are accessed one element at a time, by their names."""

    places: dict[Key, str] = field(default_factory=dict)
    elements: dict[str, str] = field(default_factory=dict)

    def element(self, buffer: Buffer, indices: tuple[Expr, ...]) -> str:
        """One element, readable and assignable."""
        held = self.places.get((buffer.name, tuple(indices)))
        if held is not None:
            return held
        inside = [self.index(index) for index in indices]
        if buffer.scope is Scope.LOCAL or buffer.name in self.everywhere:
            return self.names(buffer.name) + "".join(f"[{index}]" for index in inside)
        if buffer.scope is Scope.SHARED:
            return f"{self.tile(buffer)}({', '.join(inside)})"
        if buffer.scope is Scope.GLOBAL:
            return f"{self.tensor(buffer)}({', '.join(inside)})"
        assert self.span is not None
        raise unsupported(f"an element of {buffer.name} that the loop's layout does not give the thread", self.span)

    def place(self, buffer: Buffer, indices: tuple[Expr, ...]) -> str:
        """An element in memory, not its value."""
        if buffer.scope is Scope.GLOBAL:
            return f"{self.tensor(buffer)}.at({', '.join(map(self.index, indices))})"
        return self.element(buffer, indices)

    def tensor(self, buffer: Buffer) -> str:
        """The name of a tensor for accesses of single elements."""
        return self.elements.setdefault(buffer.name, self.names.fresh(f"{self.names(buffer.name)}_elements"))

    def cast(self, expr: Expr, want: DType, text: str) -> str:
        """A conversion; types that hold bits convert from and to float."""
        if not (is_bits(want) or is_bits(expr.dtype)):
            return super().cast(expr, want, text)
        if is_bits(expr.dtype):
            text = f"type_convert<float>({text})"
            return text if want == FLOAT32 else self.cast(Const(FLOAT32, 0.0), want, text)
        text = text if expr.dtype == FLOAT32 else super().cast(expr, FLOAT32, text)
        return f"type_convert<{in_ck(want.cpp)}>({text})"

    def _converted(self, expr: Expr, want: DType) -> tuple[str, int]:
        if isinstance(expr, Const) and is_bits(want):
            return f"type_convert<{in_ck(want.cpp)}>({literal(expr.value, FLOAT32)})", _PRIMARY
        return super()._converted(expr, want)

    def _operand_type(self, expr: Binary, dtype: DType) -> DType:
        found = super()._operand_type(expr, dtype)
        return FLOAT32 if is_bits(found) else found

    def _binary(self, expr: Binary, dtype: DType) -> tuple[str, int]:
        if not is_bits(dtype):
            return super()._binary(expr, dtype)
        return f"type_convert<{in_ck(dtype.cpp)}>({super()._binary(expr, dtype)[0]})", _PRIMARY

    def _call(self, expr: Call, dtype: DType) -> tuple[str, int]:
        if is_bits(dtype) and expr.function not in _OF_ANY_TYPE:
            return f"type_convert<{in_ck(dtype.cpp)}>({super()._call(expr, FLOAT32)[0]})", _PRIMARY
        return super()._call(expr, dtype)
