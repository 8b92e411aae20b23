"""Bounds on what a file may make the front end do, so that a hostile file ends in a diagnostic."""

from dataclasses import dataclass, field

from tile2cu.core.expr import Expr, children
from tile2cu.frontend.fault import Exhausted, Fault

MAX_STEPS = 200_000  # evaluations; the largest kernels seen need about 20,000
MAX_BITS = 4096  # of an integer
MAX_ITEMS = 65_536  # of a list, tuple, dict or range
MAX_TEXT = 100_000  # characters of a string
MAX_CALLS = 30  # nested calls of the user's functions; each takes about 25 frames of the interpreter
MAX_NODES = 2_000  # of one expression of the program
MAX_DEPTH = 100
MAX_BLOCKS = 64  # loops and branches inside one another: templates print them recursively


@dataclass
class Budget:
    """Counts the work done for one file."""

    steps: int = 0
    calls: int = 0
    limit: int = MAX_STEPS
    _sizes: dict[int, tuple[int, int, Expr]] = field(default_factory=dict, repr=False)

    def step(self, count: int = 1) -> None:
        """Account for `count` units of work."""
        self.steps += count
        if self.steps > self.limit:
            raise Exhausted(
                "T2C-F015",
                f"evaluating this file takes more than {MAX_STEPS:,} steps",
                help="loops of helpers and factories run at transpile time; use T.serial for loops of the kernel",
            )

    def sequence(self, length: int) -> None:
        """Account for a list, tuple or dict of `length` items before it is made."""
        if length > MAX_ITEMS:
            raise Fault("T2C-F016", f"a sequence of {length:,} items is too large; at most {MAX_ITEMS:,} are held")
        self.step(length)

    def text(self, length: int) -> None:
        """Account for a string of `length` characters before it is made."""
        if length > MAX_TEXT:
            raise Fault("T2C-F016", f"a string of {length:,} characters is too long; at most {MAX_TEXT:,} are held")
        self.step(length // 64)

    def integer(self, bits: int) -> None:
        """Reject an integer of more than MAX_BITS bits before it is made."""
        if bits > MAX_BITS:
            raise Fault("T2C-F016", f"an integer of about {bits:,} bits is too large; at most {MAX_BITS:,} are held")

    def structure(self, value: object) -> list[object]:
        """All parts of a nested value that are no containers; accounts for what comparing or printing it costs."""
        parts: list[object] = []
        open_values = [value]
        while open_values:
            self.step()
            match open_values.pop():
                case list() | tuple() | set() | frozenset() as items:
                    open_values.extend(items)
                case dict() as table:
                    open_values.extend(table.keys())
                    open_values.extend(table.values())
                case str() as text:
                    self.step(len(text) // 64)
                case part:
                    parts.append(part)
        return parts

    def expression(self, expr: Expr) -> Expr:
        """The expression, if it is not too large; shared parts count as often as they are used."""
        nodes, depth = self.measure(expr)
        if nodes > MAX_NODES or depth > MAX_DEPTH:
            raise Fault(
                "T2C-F016",
                f"an expression of {nodes:,} operations, {depth:,} deep, is too large",
                help="name parts of it in the kernel's body, or write a T.serial loop",
            )
        return expr

    def measure(self, expr: Expr) -> tuple[int, int]:
        """The number of operations of an expression, and its depth."""
        known = self._sizes.get(id(expr))
        if known is not None:
            return known[0], known[1]
        parts = [self.measure(child) for child in children(expr)]
        nodes = 1 + sum(part[0] for part in parts)
        depth = 1 + max((part[1] for part in parts), default=0)
        self._sizes[id(expr)] = (nodes, depth, expr)  # holding the expression keeps its id its own
        return nodes, depth
