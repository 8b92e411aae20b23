"""What one attempt to trace a kernel carries along: the file, the budget, the bindings, the names, the record."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

import libcst as cst

from tile2cu.core.dtype import INT32
from tile2cu.core.expr import Binary, Call, Const, Expr, Named, Role, Var, binary, called, children, negated, walk
from tile2cu.core.record import Record
from tile2cu.core.span import Span
from tile2cu.core.user_file import Constant, Decided, Derived
from tile2cu.frontend.limits import Budget
from tile2cu.frontend.parse import SourceFile
from tile2cu.frontend.record import Recorder
from tile2cu.frontend.scope import Env
from tile2cu.frontend.values import Arguments, Function, NamedFloat, NamedInt, as_expr, number_dtype
from tile2cu.targets import SM80, Target


@dataclass
class Constants:
    """The static numbers that have a name. The key is unique: the name, numbered where it has several values."""

    by_name: dict[str, Constant] = field(default_factory=dict)
    _keys: dict[tuple[str, int | float, str], str] = field(default_factory=dict)
    _counts: dict[str, int] = field(default_factory=dict)

    def bind(self, constant: Constant) -> NamedInt | NamedFloat:
        """Declare a constant and give the number that knows its name."""
        identity = (constant.name, constant.value, constant.dtype.name)
        if identity not in self._keys:
            self._keys[identity] = key = self._free(constant.name)
            self.by_name[key] = constant
        key = self._keys[identity]
        named = Named(constant.dtype, key, constant.value)
        if isinstance(constant.value, int):
            return NamedInt(constant.value, named)
        return NamedFloat(constant.value, named)

    def _free(self, name: str) -> str:
        """The name, numbered if it is taken."""
        key = name
        while key in self.by_name:
            self._counts[name] = self._counts.get(name, 0) + 1
            key = f"{name}_{self._counts[name]}"
        return key


DEFAULT_OF = "default of"  # how a value was found that another function has for a parameter of this name


class Found(Record, frozen=True):
    """A value for a parameter from the file itself; `how` states what is at `span`: a call, a default, an option."""

    value: object
    span: Span
    how: str = "call"

    @property
    def origin(self) -> str:
        return f"{self.how} at {Path(self.span.file).name}:{self.span.line}"


class Caller(Protocol):
    """What a running program knows of its call of a kernel: frontend/live.py."""

    @property
    def out_idx(self) -> object: ...
    @property
    def own_barriers(self) -> bool: ...
    def variable(self, name: str, span: Span) -> Found | None: ...
    def datum(self, name: str, span: Span) -> Found | None: ...


@dataclass
class Bindings:
    """Values for the parameters of a kernel.

    `given` come from -D, and `values` are what they denote in the file; `called` come from the file's driver, used
    only for names in `demanded`: those whose value turned out to be needed at transpile time. `possible` are the names
    of all parameters of the kernel's functions, `known` those that were asked for, `none` those whose value is None,
    `said_open` the sizes of which the file has heard that they are no numbers.
    """

    given: Mapping[str, object]
    values: Mapping[str, object] = field(default_factory=dict)
    called: Mapping[str, Found] = field(default_factory=dict)
    demanded: frozenset[str] = frozenset()
    known: dict[str, None] = field(default_factory=dict)
    possible: dict[str, None] = field(default_factory=dict)
    none: dict[str, None] = field(default_factory=dict)
    said_open: dict[str, None] = field(default_factory=dict)
    fixed: dict[str, None] = field(default_factory=dict)  # sizes from T.const, constants where a program calls
    ask: Callable[[str], Found | None] = lambda name: None  # what the file's own driver gives
    variable: Callable[[str], Found | None] = lambda name: None  # what it binds to a global name

    def instead_of_none(self, name: str) -> tuple[object, str] | None:
        """What the driver gives for a parameter whose default is None; other functions' defaults say nothing of it."""
        self.known[name] = None
        found = self.ask(name)
        given = found is not None and found.value is not None and not found.how.startswith(DEFAULT_OF)
        return (found.value, found.origin) if found is not None and given else None

    def find(self, name: str) -> tuple[object, str] | None:
        """The value of a name and where it came from, or None."""
        self.known[name] = None
        if name in self.given:
            return self.values.get(name, self.given[name]), "-D"
        if name in self.demanded and name in self.called:
            return self.called[name].value, self.called[name].origin
        return None


@dataclass(eq=False)
class Context:
    """One attempt to trace a kernel.

    `call_function` runs a function of the user's file; it is given from above, since the evaluator of expressions
    and the executor of statements need each other; so are `trace_block`, which traces the body of a loop,
    `run_module`, which evaluates a file that is imported, and `read`, which gives the text of a file next to the
    user's.
    """

    source: SourceFile
    budget: Budget
    bindings: Bindings
    call_function: Callable[["Context", Function, Arguments], object]
    target: Target = SM80
    environment: Mapping[str, str] = field(default_factory=dict)
    read: Callable[[str], str | None] = lambda name: None
    run_module: Callable[["Context", Sequence[cst.CSTNode], Env], object] = lambda cx, body, env: None
    trace_block: Callable[["Context", cst.BaseSuite, Env], None] = lambda cx, body, env: None
    tuned: dict[str, object] = field(default_factory=dict)  # the first configuration of a tuner that the file makes
    modules: dict[str, Env | None] = field(default_factory=dict)  # files next to the user's, by name
    constants: Constants = field(default_factory=Constants)
    derived: list[Derived] = field(default_factory=list)
    remarks: dict[str, str] = field(default_factory=dict)  # the user's, on run-time sizes and scalars
    decided: dict[Expr, Decided] = field(default_factory=dict)  # comparisons of named numbers, by what holds
    recorder: Recorder = field(default_factory=Recorder)
    here: Span | None = None  # the call being carried out
    wanted: str = ""  # the kernel whose calls are looked for, in a run of the file's driver
    aside: int = 0  # how many branches around the current statement of a driver are not taken
    options: dict[str, tuple[object, Span]] = field(default_factory=dict)  # of a driver's command line, with defaults
    live: "Caller | None" = None  # what the program that calls the kernel knows, where one runs

    def bind_static(
        self, name: str, value: object, span: Span, *, formula: str, comment: str, origin: str = ""
    ) -> object:
        """The value to store under `name`: a static number becomes a Constant that keeps the name."""
        self.note_size(name, value, span, formula)
        if isinstance(value, bool) or not isinstance(value, int | float):
            return value
        plain = float(value) if isinstance(value, float) else int(value)
        if plain != plain or plain in (float("inf"), float("-inf")):
            return value
        if isinstance(plain, int) and not -(2**63) <= plain < 2**63:
            return value
        dtype = value.expr.dtype if isinstance(value, NamedFloat) else number_dtype(plain)
        return self.constants.bind(
            Constant(
                name=name,
                value=plain,
                dtype=dtype,
                span=span,
                formula=formula,
                origin=origin,
                comment=comment,
                computed=value.expr if isinstance(value, NamedInt) and formula else None,
                instead_of_none=bool(formula) and name in self.bindings.none,
            )
        )

    def note_name(self, name: str, value: object) -> None:
        """Keeps the name of a value that a helper computes in a kernel: emitted text may declare it."""
        if isinstance(value, Expr) and self.recorder.in_kernel:
            called(value, name)

    def note_size(self, name: str, value: object, span: Span, formula: str) -> None:
        """Keeps the name of an expression that only sizes make up."""
        if not isinstance(value, Binary | Call) or not value.dtype.is_int:
            return
        parts = [part for part in walk(value) if not children(part)]
        sizes = [part for part in parts if isinstance(part, Var) and part.role is Role.SIZE]
        if sizes and all(isinstance(part, Const | Named) or part in sizes for part in parts):
            self.derived.append(Derived(name, value, span, formula))

    def note_comparison(self, op: str, left: object, right: object, result: object, node: cst.CSTNode) -> None:
        """Keeps a comparison of integers with names, as what holds."""
        if isinstance(result, bool) and any(isinstance(side, NamedInt) for side in (left, right)):
            lhs, rhs = as_expr(left), as_expr(right)
            if lhs is not None and rhs is not None and lhs.dtype.is_int and rhs.dtype.is_int:
                compared = binary(op, lhs, rhs)
                holds = compared if result else negated(compared)
                place = self.source.span(node)
                self.decided.setdefault(holds, Decided(condition=holds, span=place, found=result))

    def size(self, name: str, span: Span, comment: str = "") -> object:
        """A size by its name: the number it is bound to, or a variable that is known only at run time."""
        found = self.bindings.find(name)
        if found is None:
            self.remarks[name] = comment or self.remarks.get(name, "")
            return Var(INT32, name, Role.SIZE)
        value, origin = found
        return self.bind_static(name, value, span, formula="", comment=comment, origin=origin)

    def expression(self, expr: Expr) -> Expr:
        """An expression, if it is not too large."""
        return self.budget.expression(expr)
