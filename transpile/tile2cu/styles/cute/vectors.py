"""What the elements of a vector share, where a loop takes several neighbours at a time."""

from dataclasses import dataclass, field

from tile2cu.analysis.dependence import is_among
from tile2cu.analysis.linear import rest_of_sum
from tile2cu.core.expr import Binary, Expr, Load, Var, children, static_value
from tile2cu.core.program import Buffer, Scope
from tile2cu.styles.cute.expressions import CutePrinter


@dataclass
class Uniform:
    """Which expressions have one value for all of a vector's elements: `last` runs along the vector.

    `written` is memory that the loop writes, `rows` are fragments that have one value for a row, `others` are values
    that differ.
    """

    printer: CutePrinter
    last: Var
    vector: int
    written: tuple[Buffer, ...]
    rows: tuple[Buffer, ...] = ()
    others: set[Var] = field(default_factory=set)

    def holds(self, expr: Expr) -> bool:
        """Whether an expression is the same for each."""
        if expr == self.last or expr in self.others:
            return False
        if isinstance(expr, Load):
            buffer = expr.buffer
            in_memory = isinstance(buffer, Buffer) and buffer.scope in (Scope.GLOBAL, Scope.SHARED)
            if not isinstance(buffer, Buffer) or is_among(buffer, self.written):
                return False
            if not in_memory and buffer not in self.rows:
                return False
        if isinstance(expr, Binary) and expr.op in ("//", "<", ">=") and self._starts(expr.lhs):
            bound = static_value(expr.rhs)
            if bound is not None and int(bound) % self.vector == 0:
                return True
        return all(map(self.holds, children(expr)))

    def share(self, index: Expr) -> int:
        """How many neighbours a vector's elements read, where the index is a quotient; 0 where it is none."""
        if not isinstance(index, Binary) or index.op != "//" or not self._starts(index.lhs):
            return 0
        divisor = static_value(index.rhs)
        fits = divisor is not None and 1 < int(divisor) < self.vector and self.vector % int(divisor) == 0
        return self.vector // int(divisor) if fits and divisor is not None else 0

    def follows(self, index: Expr) -> bool:
        """Whether a vector's elements read as many neighbours, which start at a multiple of them."""
        return self._starts(index)

    def _starts(self, expr: Expr) -> bool:
        """Whether an index is the vector's own, behind a multiple of vectors."""
        start = rest_of_sum(self.printer.bounds.expanded(expr), self.last)
        return start is not None and self.printer.bounds.multiple_of(start) % self.vector == 0
