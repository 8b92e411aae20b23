"""What a program has of the user's file besides its launches: the text, its numbers and sizes, and inline code."""

import ast
import re
from functools import cached_property

from tile2cu.core.dtype import DType
from tile2cu.core.expr import Expr, Number
from tile2cu.core.record import Record
from tile2cu.core.span import Span


class Constant(Record, frozen=True, kw_only=True):
    """A static number with a name in the user's file, printed as a named constant.

    `formula` is the Python text it came from, empty for an argument; `computed` the same as an expression of other
    constants, where it is one. `origin` is where an argument's value came from: "-D", "default", "call at FILE:LINE" or
    "" for a computed one. `instead_of_none`: the file computes it for an argument whose value is None.
    """

    name: str
    value: Number
    dtype: DType
    span: Span
    formula: str = ""
    origin: str = ""
    comment: str = ""
    computed: Expr | None = None
    instead_of_none: bool = False

    @property
    def is_argument(self) -> bool:
        """Whether -D may set it."""
        return self.instead_of_none or (bool(self.origin) and not self.formula)

    @cached_property
    def inputs(self) -> frozenset[str]:
        """The names in the formula."""
        return frozenset(part.id for part in ast.walk(ast.parse(self.formula)) if isinstance(part, ast.Name))


class Decided(Record, frozen=True, kw_only=True):
    """A comparison of static numbers that holds: where it does not, the file gives another program, or none.

    `found` is what the file's own comparison gave: the condition is that, or its opposite. `asserted` comparisons are
    those that an `assert` asks for, with its `message`.
    """

    condition: Expr
    span: Span
    found: bool = True
    asserted: bool = False
    message: str = ""


class Derived(Record, frozen=True):
    """A size that the user's file computes from others before the kernel, by its name: `blocks = T.ceildiv(n, 128)`."""

    name: str
    value: Expr
    span: Span
    formula: str


class UserCode(Record, frozen=True, kw_only=True):
    """Inline user code in C++ (T.import_source, `prelude` of T.Kernel), kept unchanged."""

    text: str
    what: str
    span: Span


class Source(Record, frozen=True, kw_only=True):
    """The user's file. `name` has no folder, so that no path reaches the output.

    `imports` are the files next to it that were read for the kernel: (path relative to it, sha256), in order of names.
    """

    name: str
    sha256: str
    text: str
    imports: tuple[tuple[str, str], ...] = ()

    @property
    def licence(self) -> str:
        """The licence of the file: the expression after `# SPDX-License-Identifier:`, or empty."""
        found = re.search(r"^#\s*SPDX-License-Identifier:\s*([\w.+() -]*\w\)?)", self.text, re.MULTILINE)
        return found[1] if found else ""
