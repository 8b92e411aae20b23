"""Loops that unpack numbers of 4 bits: a vector's elements are computed together, as CUTLASS's arrays."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from tile2cu.analysis.dependence import is_among
from tile2cu.core.dtype import FLOAT16
from tile2cu.core.expr import Binary, Call, Expr, Load, Var, nibbles_of, static_value
from tile2cu.core.program import Buffer, Scope
from tile2cu.core.record import Record
from tile2cu.styles.cute import vocabulary as words
from tile2cu.styles.cute.expressions import Held
from tile2cu.styles.cute.vectors import Uniform

_WORD = 8  # numbers
_MOST = 256  # that is subtracted from a number exactly
_PLUS, _TIMES, _VALUE = 1, 2, 3  # precedence


class _Value(Record, frozen=True, kw_only=True):
    text: str
    precedence: int
    is_array: bool

    def inside(self, precedence: int) -> str:
        """The text as an operand."""
        return self.text if self.precedence >= precedence else f"({self.text})"


@dataclass
class Arrays:
    """Prints expressions of float16 for `count` elements together; `lets` are the names of a loop's body.

    They are a vector's, or pairs of it that are `apart` columns apart, and begin in the same 16 bytes of numbers.
    `lines` declare the arrays of numbers.
    """

    uniform: Uniform
    lets: Mapping[Var, Expr]
    count: int
    apart: int = 0
    any_order: bool = False  # then as they are unpacked
    lines: list[str] = field(default_factory=list)
    names: dict[tuple[Load, str], str] = field(default_factory=dict)

    def text(self, expr: Expr) -> str | None:
        """The expression's array; None where it has no such form."""
        found = self._value(expr) if self.count % _WORD == 0 else None
        return found.text if found is not None and found.is_array and self.names else None

    def _value(self, expr: Expr) -> _Value | None:
        expr = self.lets.get(expr, expr) if isinstance(expr, Var) else expr
        if expr.dtype != FLOAT16:
            return None
        if self.uniform.holds(expr):
            return self._shared(expr)
        if isinstance(expr, Call) and expr.function == "cast":
            return self._numbers(expr.args[0])
        if isinstance(expr, Load):
            return self._neighbours(expr)
        if isinstance(expr, Binary) and expr.op in ("+", "-", "*"):
            lhs, rhs = self._value(expr.lhs), self._value(expr.rhs)
            return self._binary(expr.op, lhs, rhs) if lhs is not None and rhs is not None else None
        return None

    def _shared(self, expr: Expr) -> _Value:
        """A value that all elements share."""
        printer = self.uniform.printer
        if isinstance(expr, Load) and isinstance(expr.buffer, Buffer) and expr.buffer.scope is Scope.GLOBAL:
            key, name = (expr.buffer.name, expr.indices), printer.names(expr.buffer.name)
            if key not in printer.places:
                value = printer.names.fresh(f"{name}_value")
                self.lines.append(f"const half_t {value} = {printer.element(expr.buffer, expr.indices)};")
                printer.places[key] = Held(value)
        is_name = isinstance(expr, Load | Var)
        return _Value(text=printer.text(expr, FLOAT16), precedence=_VALUE if is_name else 0, is_array=False)

    def _binary(self, op: str, lhs: _Value, rhs: _Value) -> _Value | None:
        """Arrays take a scalar on either side of `*` and of `+`; a difference of one is a sum."""
        if op == "*":
            return _Value(text=f"{lhs.inside(_TIMES)} * {rhs.inside(_VALUE)}", precedence=_TIMES, is_array=True)
        if op == "-" and not rhs.is_array:
            return _Value(text=f"{lhs.inside(_PLUS)} + -{rhs.inside(_VALUE)}", precedence=_PLUS, is_array=True)
        if op == "-" and not lhs.is_array:
            return None
        return _Value(text=f"{lhs.inside(_PLUS)} {op} {rhs.inside(_TIMES)}", precedence=_PLUS, is_array=True)

    def _neighbours(self, expr: Load) -> _Value | None:
        """As many neighbours of a shared tile's row."""
        buffer, printer = expr.buffer, self.uniform.printer
        if not isinstance(buffer, Buffer) or buffer.scope is not Scope.SHARED or self.apart:
            return None
        if is_among(buffer, self.uniform.written) or not all(map(self.uniform.holds, expr.indices[:-1])):
            return None
        if not self.uniform.follows(expr.indices[-1]):
            return None
        if (expr, "") not in self.names:
            name = printer.names.fresh(f"{printer.names(buffer.name)}_values")
            row, at = printer.row(buffer, expr.indices)
            call = f"{words.ELEMENTS_AT}<{self.count}>({row}, {at})"
            call = f"{words.INTERLEAVED}({call})" if self.any_order else call
            self.lines.append(f"const auto {name} = {call};  // Array<half_t, {self.count}>")
            self.names[expr, ""] = name
        return _Value(text=self.names[expr, ""], precedence=_VALUE, is_array=True)

    def _numbers(self, expr: Expr) -> _Value | None:
        """Numbers of 4 bits of a shared tile, less a value that all share."""
        less, expr = "0", self._resolved(expr)
        if isinstance(expr, Binary) and expr.op == "-" and self._is_less(expr.rhs):
            less, expr = self.uniform.printer.text(expr.rhs), self._resolved(expr.lhs)
        found, printer = nibbles_of(expr, self.uniform.last), self.uniform.printer
        if found is None or not isinstance(found.buffer, Buffer):
            return None
        shared = found.buffer.scope is Scope.SHARED and not is_among(found.buffer, self.uniform.written)
        if not shared or 2 * self.uniform.share(found.indices[-1]) != self.uniform.vector:
            return None
        if not all(map(self.uniform.holds, found.indices[:-1])):
            return None
        if (found, less) not in self.names:
            tensor, at = printer.tensor_at(found.buffer, [*map(printer.coordinate, found.indices)])
            name = printer.names.fresh(f"{printer.names(found.buffer.name)}_numbers")
            form = f"{self.count}, {self.apart // 2}" if self.apart else f"{self.count}"
            function = words.UNPACK_UINT4_INTERLEAVED if self.any_order and not self.apart else words.UNPACK_UINT4
            call = f"{function}<{form}>({less}, {tensor}, {at})"
            self.lines.append(f"const auto {name} = {call};  // Array<half_t, {self.count}>")
            self.names[found, less] = name
        return _Value(text=self.names[found, less], precedence=_VALUE, is_array=True)

    def _is_less(self, expr: Expr) -> bool:
        """Whether a value is one that a number's halves represent the difference with, the same for all elements."""
        value = self._resolved(expr)
        known = static_value(value)
        return 0 <= known <= _MOST if known is not None else value.dtype.name == "uint8" and self.uniform.holds(expr)

    def _resolved(self, expr: Expr) -> Expr:
        """The value of a name, without conversions among integers."""
        while True:
            if isinstance(expr, Var) and expr in self.lets:
                expr = self.lets[expr]
            elif isinstance(expr, Call) and expr.function == "cast" and expr.args[0].dtype.is_int:
                expr = expr.args[0]
            else:
                return expr
