"""Expressions in C++: the user's names, C++ precedence, and explicit conversions where C++ would differ."""

import math
import struct
from collections.abc import Iterator, Mapping
from itertools import product
from math import inf

from msgspec import Struct, field
from msgspec.structs import replace

from tile2cu.analysis.bounds import Bounds
from tile2cu.analysis.runs import is_run
from tile2cu.analysis.sync_calls import BLOCK_VOTES
from tile2cu.analysis.wrapping import may_wrap, taken_modulo, wraps_below
from tile2cu.core.dtype import (
    BOOL,
    FLOAT4_E2M1,
    FLOAT8_E8M0,
    FLOAT16,
    FLOAT32,
    FLOAT64,
    FLOATS_OF_8_BITS,
    INT32,
    DType,
    promote,
)
from tile2cu.core.expr import (
    OF_THREAD,
    Address,
    Binary,
    Call,
    Const,
    Expr,
    Load,
    Named,
    Number,
    Role,
    Unary,
    Var,
    as_value,
    binary,
    int_const,
    is_weak,
    nibbles_of,
    quotient_of,
    result_dtype,
    static_value,
    walk,
)
from tile2cu.core.program import Buffer, Scope
from tile2cu.styles.base import vocabulary as words
from tile2cu.styles.base.names import Names

# C++ operator precedence, a larger number binds tighter.
PRECEDENCE = {
    "or": 1, "and": 2, "|": 3, "^": 4, "&": 5, "==": 6, "!=": 6, "<": 7, "<=": 7, ">": 7, ">=": 7,
    "<<": 8, ">>": 8, "+": 9, "-": 9, "*": 10, "/": 10, "//": 10, "%": 10,
}  # fmt: skip
_TERNARY, _UNARY, _PRIMARY = 0, 11, 12
_OF_NUMBERS = {PRECEDENCE[op] for op in ("|", "^", "&", "<<", "+", "*")}  # clang warns of such a condition of `?:`
SPELLING = {"or": "||", "and": "&&", "//": "/"}
_WRAPPING = {"+": words.WRAPPING_ADD, "-": words.WRAPPING_SUBTRACT, "*": words.WRAPPING_MULTIPLY}
_DIGITS = 9  # of a float: std::numeric_limits<float>::max_digits10
_SMALL_FLOATS = (*FLOATS_OF_8_BITS, FLOAT8_E8M0, FLOAT4_E2M1)
_NARROW = frozenset((FLOAT16.name, "bfloat16", *(dtype.name for dtype in _SMALL_FLOATS)))
# Functions of tl:: whose arguments have types of their own, besides those among threads.
_OWN = (
    "any_of_block all_of_block count_of_block sync_warp barrier_sync barrier_arrive dp4a random.start "
    "cp_async cp_async_commit cp_async_wait cp_async_arrive "
    "mbarrier_wait mbarrier_wait_cluster mbarrier_arrive mbarrier_arrive_as_reader mbarrier_expect "
    "mbarrier_arrive_expect fence_async_proxy "
    "block_tma_store_commit block_tma_store_wait_read block_tma_store_wait "
    "block_rank sync_cluster cluster_arrive cluster_arrive_relaxed cluster_wait "
    "first_set nth_set popcount griddepcontrol_wait griddepcontrol_launch_dependents"
)
_OWN_TYPES = frozenset(_OWN.split())
# (operator, operator of an operand): C++ warns of these mixtures without parentheses, or people misread them.
_CONFUSING = frozenset(
    (("or", "and"), ("|", "&"), ("^", "&"), ("|", "^"), ("*", "%"), ("%", "*"), ("//", "%"), ("%", "//"), ("*", "//"))
    + tuple(product(("<<", ">>"), ("+", "-")))
    + tuple(product(("&", "^", "|"), ("+", "-", "<<", ">>", "<", "<=", ">", ">=", "==", "!=")))  # -Wparentheses
)


class Printer(Struct):
    """Prints expressions of one kernel. `stages` gives the stage of a tile inside its pipeline's loop.

    Inside a loop over vectors, `packet` is its last variable.
    """

    names: Names
    bounds: Bounds
    stages: dict[str, str] = field(default_factory=dict)
    counts: dict[str, str] = field(default_factory=dict)  # how many iterations a tile's ring has counted
    groups: int = 1  # of threads that work independently
    votes: str = ""  # what the waves of a block vote through; empty where a barrier does it
    packet: Var | None = None
    vector: int = 1  # the elements of a vector, where they are neighbours
    any_order: bool = False  # its elements are as numbers of 4 bits come apart
    ramps: list[Var] = field(default_factory=list)  # it, and names for sums with it: their conditions are of vectors
    of_packets: set[Var] = field(default_factory=set)  # names that denote a vector's elements
    firsts: frozenset[Var] = frozenset()  # variables of vectors whose first element is printed
    fields: dict[Var, str] = field(default_factory=dict)  # variables that are parts of others
    holds: Expr | None = None  # a condition that is known to hold from here on
    derived: dict[Expr, str] = field(default_factory=dict)  # sizes that the kernel's text has names for
    types: Mapping[str, str] = field(default_factory=dict)  # a library's names of element types, by those of headers/tl
    wraps: bool = True  # whether a sum that an int may not hold is a call that wraps
    as_index: bool = False  # whether an index is printed

    @property
    def in_comments(self) -> "Printer":
        """The same printer, for comments: what these name, the C++ need not have."""
        return replace(self, names=self.names.in_comments, wraps=False)

    def type(self, dtype: DType) -> str:
        """The C++ type of a value."""
        return self.types.get(dtype.cpp, dtype.cpp)

    def in_words(self, expr: Expr) -> str:
        """An expression as comments have it, without the namespace of functions."""
        return self.in_comments.index(expr).replace(words.NAMESPACE, "")

    def text(self, expr: Expr, want: DType | None = None) -> str:
        """The expression, converted to `want` if it is given."""
        return self._converted(expr, want or expr.dtype)[0]

    def condition(self, expr: Expr) -> str:
        """A condition; in a loop over vectors it has one answer for all elements of one, the first's."""
        return self._condition(expr)[0]

    def _condition(self, expr: Expr) -> tuple[str, int]:
        return self._of_first()._converted(expr, BOOL) if self.ramps else self._converted(expr, BOOL)

    def first(self, expr: Expr) -> str:
        """An expression that is the same for all elements of a vector, as its first gives it."""
        return self._of_first().text(expr)

    def _of_first(self) -> "Printer":
        return replace(self, firsts=self.firsts.union(self.ramps), packet=None, vector=1, ramps=[])

    def is_run(self, expr: Expr) -> bool:
        """Whether an index is made of quotients that a vector's elements share, and is more than one, or a name."""
        if self.packet is None or self.vector == 1 or isinstance(expr, Var):
            return False
        if not is_run(expr, self.packet, self.vector, self.bounds):
            return False
        quotient = quotient_of(expr, self.packet)
        if quotient is None or quotient_of(quotient[0], self.packet) is not None:
            return True
        return self.is_run(quotient[0])

    def index(self, expr: Expr) -> str:
        """An index or an argument: no parentheses needed around it."""
        quotient = quotient_of(expr, self.packet) if self.packet is not None else None
        if quotient is not None and not self.is_run(expr):  # the number keeps its name
            assert isinstance(expr, Binary)
            return f"{self.names.noting(words.FLOORDIV)}<{self.text(expr.rhs)}>({self.text(quotient[0])})"
        if self.is_run(expr):
            return self.first(expr)
        if isinstance(expr, Binary) and expr.op == "%" and self._moves(expr.lhs):
            return f"{self.names.noting(words.FLOORMOD)}<{self.text(expr.rhs)}>({self.text(expr.lhs)})"
        if isinstance(expr, Binary) and expr.op == "+" and any(map(self.is_run, (expr.lhs, expr.rhs))):
            sides = [self._term(side) for side in (expr.lhs, expr.rhs)]
            return f"{words.WRAPPING_ADD}({', '.join(sides)})" if self.may_wrap(expr) else " + ".join(sides)
        return replace(self, as_index=True).text(expr)

    def _term(self, expr: Expr) -> str:
        """A side of a sum that is an index: the number that a vector's elements share, or their consecutive indices."""
        if self.is_run(expr):
            return self._of_first()._operand(expr, INT32, PRECEDENCE["+"], "+", is_right=True)
        return self.index(expr)

    def _moves(self, expr: Expr) -> bool:
        """Whether an index moves with the vector of a loop."""
        return self.packet is not None and self.vector > 1 and self.packet in walk(self.bounds.expanded(expr))

    def element(self, buffer: Buffer, indices: tuple[Expr, ...]) -> str:
        """One element of a buffer, readable and assignable."""
        inside = ", ".join(self.index(index) for index in indices)
        if buffer.scope in (Scope.LOCAL, Scope.BARRIER):
            return self.tile(buffer) + "".join(f"[{self.index(index)}]" for index in indices)
        if buffer.scope is Scope.SHARED and buffer.rank > 2:
            inside = ", ".join(self.index(index) for index in indices[-2:])
            return f"{self.plane(buffer, indices[:-2])}({inside})"
        return f"{self.tile(buffer)}({inside})"

    def plane(self, buffer: Buffer, indices: tuple[Expr, ...]) -> str:
        """One plane of a shared tile of more than two dimensions."""
        return self.tile(buffer) + "".join(f"[{self.index(index)}]" for index in indices)

    def tile(self, buffer: Buffer) -> str:
        """A buffer's name, with its stage where a pipeline gives it several."""
        name = self.names(buffer.name)
        stage = self.stages.get(buffer.name)
        return f"{name}[{stage}]" if stage else name

    def _converted(self, expr: Expr, want: DType) -> tuple[str, int]:
        """(text, precedence) of the expression as a value of type `want`."""
        if isinstance(expr, Const):
            found = as_value(expr.value, want) if want.is_int and isinstance(expr.value, float) else None
            value = expr.value if found is None else found
            return self.literal(value, want), _UNARY if _negative(value) else _PRIMARY
        if is_weak(expr) and not isinstance(expr, Named) and not _same_in_cpp(expr.dtype, want):
            return self._arithmetic(expr, want)
        if _same_in_cpp(expr.dtype, want):
            return self._arithmetic(expr, expr.dtype)
        if isinstance(expr, Named):  # by value: device code cannot refer to a constant of the host's
            return f"{self.type(want)}({self.names(expr.name)})", _PRIMARY
        return self.cast(expr, want, self._arithmetic(expr, expr.dtype)[0]), _PRIMARY

    def cast(self, expr: Expr, want: DType, text: str) -> str:
        """The conversion of an expression, which is printed as `text`."""
        return f"{self.names.noting(self._cast(expr, want))}<{self.type(want)}>({text})"

    def _cast(self, expr: Expr, want: DType) -> str:
        """How a value becomes one of another type: a small integer from memory needs no conversion unit."""
        if want.is_float and want.bits <= 32 and want not in _SMALL_FLOATS and self._is_small(expr):
            return words.CAST_EXACT
        return words.CAST

    def _is_small(self, expr: Expr) -> bool:
        """Whether it is an integer that was read and is in what tl::cast_exact takes."""
        if not expr.dtype.is_int or not any(isinstance(part, Load) for part in walk(self.bounds.expanded(expr))):
            return False
        ends = self.bounds.interval(expr)
        return ends.low is not None and ends.high is not None and ends.low >= -512 and ends.high <= 511

    def _arithmetic(self, expr: Expr, dtype: DType) -> tuple[str, int]:
        if self.derived and isinstance(expr, Binary | Call) and expr in self.derived:
            return self.names.noting(self.derived[expr]), _PRIMARY
        match expr:
            case Const():
                return self.literal(expr.value, dtype), _PRIMARY
            case Named() | Var():
                return self._named(expr), _PRIMARY
            case Load():
                assert isinstance(expr.buffer, Buffer)
                element = self.element(expr.buffer, expr.indices)
                return f"{words.INTERLEAVED}({element})" if self._reordered(expr) else element, _PRIMARY
            case Address():
                return self._address(expr), _PRIMARY
            case Unary():
                return self._unary(expr, dtype)
            case Binary():
                return self._binary(expr, dtype)
            case Call():
                return self._call(expr, dtype)
            case _:
                raise TypeError(f"no C++ for {type(expr).__name__}")

    def _named(self, expr: Named | Var) -> str:
        """A name: of a vector's variable where its first element is printed, of a part of another variable."""
        if expr in self.firsts:
            return f"{self.names.noting(words.FIRST_OF_VECTOR)}({self.names(expr.name)})"
        if isinstance(expr, Var) and expr in self.fields:
            return self.names.noting(self.fields[expr])
        return self.names(expr.name)

    def _reordered(self, load: Load) -> bool:
        """Whether a vector of neighbours in memory is put in the order of the loop's numbers of 4 bits."""
        if self.packet is None or not self.any_order or not isinstance(load.buffer, Buffer):
            return False
        index = self.bounds.expanded(load.indices[-1])
        neighbours = self.packet in walk(index) and quotient_of(index, self.packet) is None
        return neighbours and load.buffer.scope is not Scope.FRAGMENT

    def behind(self, start: Expr, offset: str, extent: int) -> str:
        """The index of an element of a tile of such an extent that begins at `start`."""
        wraps = may_wrap(self.bounds, binary("+", start, int_const(extent - 1)), as_index=True)
        return f"{words.WRAPPING_ADD}({self.index(start)}, {offset})" if wraps else f"{self.index(start)} + {offset}"

    def may_wrap(self, expr: Expr) -> bool:
        """Whether a sum, difference or multiple is printed as a call that wraps."""
        return self.wraps and may_wrap(self.bounds, expr, as_index=self.as_index)

    def _unary(self, expr: Unary, dtype: DType) -> tuple[str, int]:
        if self.may_wrap(expr):
            return f"{words.WRAPPING_SUBTRACT}(0, {self.text(expr.operand)})", _PRIMARY
        operand, precedence = self._converted(expr.operand, dtype)
        sign = "!" if expr.op == "not" else expr.op
        if precedence < _UNARY or operand.startswith(sign):
            operand = f"({operand})"
        return sign + operand, _UNARY

    def _binary(self, expr: Binary, dtype: DType) -> tuple[str, int]:
        packed = nibbles_of(expr, self.packet) if self.packet is not None else None
        if packed is not None:
            name = words.UNPACK_UINT4_INTERLEAVED if self.any_order else words.UNPACK_UINT4
            return f"{self.names.noting(name)}({self._arithmetic(packed, packed.dtype)[0]})", _PRIMARY
        operands = self._operand_type(expr, dtype)
        truth = expr.lhs.dtype is BOOL and static_value(expr.rhs) in (0, 1)
        if truth and expr.op in ("==", "!=") and isinstance(expr.rhs, Const):  # a truth, or its opposite
            is_said = (expr.op == "==") == bool(expr.rhs.value)
            return self._arithmetic(expr.lhs, BOOL) if is_said else self._unary(Unary(BOOL, "not", expr.lhs), BOOL)
        if expr.op == "**":
            return f"{words.POW}({self.argument(expr.lhs, operands)}, {self.argument(expr.rhs, operands)})", _PRIMARY
        if expr.op == "//" and operands.is_float:
            return f"{words.FLOOR}({self._binary(replace(expr, op='/'), operands)[0]})", _PRIMARY
        if expr.op == "%" and operands.is_float:
            return f"{words.MOD}({self.argument(expr.lhs, operands)}, {self.argument(expr.rhs, operands)})", _PRIMARY
        if expr.op in ("//", "%") and not self._truncates(expr):
            name = "floordiv" if expr.op == "//" else "floormod"
            return (
                f"{words.NAMESPACE}{name}({self.argument(expr.lhs, operands)}, {self.argument(expr.rhs, operands)})",
                _PRIMARY,
            )
        if self.may_wrap(expr):
            return f"{_WRAPPING[expr.op]}({self.text(expr.lhs, operands)}, {self.text(expr.rhs, operands)})", _PRIMARY
        own = PRECEDENCE[expr.op]
        lhs = self._operand(expr.lhs, operands, own, expr.op, is_right=False)
        if expr.op in ("<<", ">>") and not is_weak(expr.lhs) and _in_cpp(expr.lhs.dtype) != _in_cpp(operands):
            lhs = self._cast_to(operands, self.text(expr.lhs))  # C++ shifts in the type of the left side alone
        apart = expr.op == "+" and not self._adds_in_order(expr.lhs, expr.rhs)
        rhs = self._operand(expr.rhs, operands, own, expr.op, is_right=True, apart=apart)
        return f"{lhs} {SPELLING.get(expr.op, expr.op)} {rhs}", own

    def _operand(self, operand: Expr, dtype: DType, own: int, op: str, *, is_right: bool, apart: bool = False) -> str:
        """A side of an operator. `apart`: a sum that is added as a whole."""
        text, precedence = self._converted(operand, dtype)
        below = operand.op if isinstance(operand, Binary) else ""
        if op == "+" and below in ("+", "-") and dtype.is_int and not _of_elements(operand) and not apart:
            return text  # on either side: integers add in any order
        confusing = (op, below) in _CONFUSING and precedence < _PRIMARY
        return f"({text})" if precedence < own or (is_right and precedence == own) or confusing else text

    def _adds_in_order(self, lhs: Expr, rhs: Expr) -> bool:
        """Whether a sum can be added to another one term by term: no sum on the way overflows."""
        return all(map(self.bounds.of_values.never_wraps, _sums_before_the_last(lhs, rhs)))

    def _operand_type(self, expr: Binary, dtype: DType) -> DType:
        """The type in which an operator computes: its result's, or the operands' common one for a comparison."""
        if expr.op in ("and", "or"):
            return BOOL
        return result_dtype(expr.lhs, expr.rhs) if expr.dtype is BOOL else dtype

    def _truncates(self, expr: Binary) -> bool:
        """Whether C++ division, which rounds toward zero, gives the same: both sides are not negative.

        Unsigned ones never are, but for narrow types, with which C++ computes in int.
        """
        if expr.dtype.kind == "uint" and expr.dtype.bits >= INT32.bits:
            return True
        if expr.lhs in taken_modulo(self.bounds.launch) and wraps_below(self.bounds, expr.lhs):
            return False
        return all(
            self.bounds.never_negative(side) and (expr.dtype.has_all_of(side.dtype) or static_value(side) is not None)
            for side in (expr.lhs, expr.rhs)
        )

    def argument(self, expr: Expr, want: DType) -> str:
        """An argument of a function template: an index of tl::parallel is passed as the number it denotes.

        That of a vector denotes several, which functions of vectors take.
        """
        of_vector = expr == self.packet or expr in self.firsts
        if isinstance(expr, Var) and expr.role is Role.PARALLEL and want == INT32 and not of_vector:
            return f"int({self.names(expr.name)})"
        return self.text(expr, want)

    def _call(self, expr: Call, dtype: DType) -> tuple[str, int]:
        match expr.function:
            case "infinity":
                return f"{words.INFINITY}<{self.type(dtype)}>", _PRIMARY
            case "cast":
                return self.cast(expr.args[0], expr.dtype, self.text(expr.args[0])), _PRIMARY
            case "reinterpret":
                return f"{words.REINTERPRET}<{self.type(expr.dtype)}>({self._same_bits(expr.args[0])})", _PRIMARY
            case "if_then_else":
                return self._select(expr, dtype)
            case name if name.startswith("atomic_load"):
                order = name.removeprefix("atomic_load").lstrip("_")
                return (
                    f"{words.ATOMIC_LOAD}({self.text(expr.args[0])}{f', {words.NAMESPACE}{order}' if order else ''})",
                    _PRIMARY,
                )
            case "truncdiv" | "truncmod":  # as C++ divides
                op = "//" if expr.function == "truncdiv" else "%"
                sides = zip(expr.args, (False, True), strict=True)
                texts = [self._operand(arg, expr.dtype, PRECEDENCE[op], op, is_right=right) for arg, right in sides]
                return f" {SPELLING.get(op, op)} ".join(texts), PRECEDENCE[op]
            case name if name[0] == ":" or name.partition("<")[0] in OF_THREAD | _OWN_TYPES:
                through = (self.names.noting(self.votes),) if self.votes and name in BLOCK_VOTES else ()
                arguments = ", ".join((*(self.argument(arg, arg.dtype) for arg in expr.args), *through))
                name = "thread_of_block" if name == "thread" and self.groups > 1 else name
                return f"{called(name)}({arguments})", _PRIMARY
            case name:
                if name in ("ceildiv", "floordiv", "floormod"):
                    dtype = promote(expr.args[0].dtype, expr.args[1].dtype)
                arguments = ", ".join(self.argument(arg, dtype) for arg in expr.args)
                return f"{words.NAMESPACE}{name}({arguments})", _PRIMARY

    def _address(self, expr: Address) -> str:
        """Where an element is."""
        assert isinstance(expr.buffer, Buffer)
        if expr.buffer.scope is Scope.LOCAL:
            return f"&{self.element(expr.buffer, expr.indices)}"
        return f"{words.ADDRESS}({self.place(expr.buffer, expr.indices)})"

    def place(self, buffer: Buffer, indices: tuple[Expr, ...]) -> str:
        """An element of a tensor or a shared tile, not its value."""
        if buffer.scope is Scope.SHARED:
            return self.element(buffer, indices)
        return f"{self.tile(buffer)}.at({', '.join(self.index(index) for index in indices)})"

    def last_element(self, place: Address) -> str:
        """The last of the elements from an address on, as far as they are in one row."""
        assert isinstance(place.buffer, Buffer)
        *leading, last = place.indices
        row = static_value(place.buffer.shape[-1])
        step = place.extent - 1 if row is None else min(place.extent, int(row)) - 1
        return self.place(place.buffer, (*leading, binary("+", last, int_const(step))))

    def _same_bits(self, expr: Expr) -> str:
        """A value of its own type: C++ computes with narrow integers in int."""
        text = self.text(expr)
        computed = isinstance(expr, Binary | Unary) and expr.dtype.is_int and expr.dtype.bits < 32
        return f"{words.CAST}<{self.type(expr.dtype)}>({text})" if computed else text

    def _select(self, expr: Call, dtype: DType) -> tuple[str, int]:
        condition, yes, no = expr.args
        if condition == self.holds:
            return self._converted(yes, dtype)
        parts = (self._condition(condition), self._arm(yes, dtype), self._arm(no, dtype))
        if self.packet is not None:
            (asked, _), *arms = parts
            if any(map(self._may_leave_its_buffer, (yes, no))):  # only the arm that is taken may be read
                lazy = ", ".join(f"[&] {{ return {text}; }}" for text, _ in arms)
                return f"{words.SELECT_LAZY}({asked}, {lazy})", _PRIMARY
            return f"{words.SELECT}({', '.join(text for text, _ in parts)})", _PRIMARY
        texts = [f"({text})" if precedence == _TERNARY else text for text, precedence in parts]
        if parts[0][1] in _OF_NUMBERS:
            texts[0] = f"({parts[0][0]})"
        if dtype.is_packed:  # C++ would not know which of the two to convert
            texts[1:] = [self._cast_to(dtype, text) for text in texts[1:]]
        return f"{texts[0]} ? {texts[1]} : {texts[2]}", _TERNARY

    def _arm(self, expr: Expr, dtype: DType) -> tuple[str, int]:
        """An arm of a choice, which has that type in C++ too: the infinity of a narrow type is a float there."""
        text, precedence = self._converted(expr, dtype)
        sign = expr.operand if isinstance(expr, Unary) else expr
        is_wide = isinstance(sign, Call) and sign.function == "infinity" and dtype.bits < 32
        return (self._cast_to(dtype, text), _PRIMARY) if is_wide else (text, precedence)

    def _cast_to(self, dtype: DType, text: str) -> str:
        return f"{words.CAST}<{self.type(dtype)}>({text})"

    def literal(self, value: Number, dtype: DType) -> str:
        """A number as C++ writes it in a type."""
        return literal(value, dtype, self.type(dtype))

    def _may_leave_its_buffer(self, expr: Expr) -> bool:
        """Whether an expression reads memory at an index that is not known to be inside, wherever it is evaluated."""
        loads = [part for part in walk(expr) if isinstance(part, Load) and isinstance(part.buffer, Buffer)]
        return any(
            not self.bounds.inside(index, int_const(1), extent)
            for load in loads
            if isinstance(load.buffer, Buffer) and load.buffer.scope is not Scope.FRAGMENT
            for index, extent in zip(load.indices, load.buffer.shape, strict=True)
        )


def called(function: str) -> str:
    """The C++ name of a function that the printer has no form of its own for."""
    if function[0] == ":":
        return function.removeprefix("::")
    return function if "." in function else f"{words.NAMESPACE}{function}"


def literal(value: Number, dtype: DType, named: str = "") -> str:
    """A number as C++ writes it in a type, which may be `named` as another library does."""
    cpp = named or dtype.cpp
    if dtype is BOOL:
        return "true" if value else "false"
    if dtype.is_float and math.isnan(value):
        return f"{words.NAN}<{cpp}>"
    if dtype.is_float and math.isinf(value):
        return ("-" if value < 0 else "") + f"{words.INFINITY}<{cpp}>"
    if dtype == FLOAT32:
        return _float(float(value))
    if dtype == FLOAT64:
        return _decimal(float(value))
    if dtype.is_float:
        return f"{cpp}({_float(float(value))})"
    if float(value) != int(value):
        return _float(float(value))
    if dtype.is_packed:
        return f"{cpp}({int(value)})"
    suffix = {"int64": "ll", "uint64": "ull", "uint32": "u"}.get(dtype.name, "")
    return f"{int(value)}{suffix}"


def _float(value: float) -> str:
    """The value; where it has more digits than a float distinguishes, the shortest that C++ rounds to the same one."""
    wanted = _as_float(value)
    shorter = [float(f"{value:.{digits}g}") for digits in range(1, _DIGITS + 1)]
    if wanted is None or shorter[-1] == value:
        return f"{_decimal(value)}f"
    return f"{_decimal(next((each for each in shorter if _rounds_to(each, wanted)), value))}f"


def _as_float(value: float) -> float | None:
    """The value as a float32; None where that has no such value."""
    try:
        return float(struct.unpack("f", struct.pack("f", value))[0])
    except OverflowError:
        return None


def _rounds_to(value: float, wanted: float | None) -> bool:
    """Whether a decimal becomes that float whichever double is between: it is at no middle of two floats."""
    around = (math.nextafter(value, -inf), value, math.nextafter(value, inf))
    return all(_as_float(each) == wanted for each in around)


def _decimal(value: float) -> str:
    """Shortest decimal that gives the value back, always with a point or an exponent."""
    text = repr(value)
    if value in (inf, -inf) or "." in text or "e" in text:
        return text
    return f"{text}.0"


def _of_elements(expr: Expr) -> bool:
    """Whether an expression differs between the elements of a loop: what is known of their distances stays so."""
    return any(isinstance(part, Var) and part.role is Role.PARALLEL for part in walk(expr))


def _sums_before_the_last(lhs: Expr, rhs: Expr) -> Iterator[Expr]:
    """What is computed on the way where the terms of `rhs` are added to `lhs` one by one."""
    if isinstance(rhs, Binary) and rhs.op in ("+", "-") and rhs.dtype == INT32:
        yield from _sums_before_the_last(lhs, rhs.lhs)
        first = binary("+", lhs, rhs.lhs)
        yield first
        if rhs.op == "+":
            yield from _sums_before_the_last(first, rhs.rhs)


def _negative(value: Number) -> bool:
    return value < 0


def _in_cpp(dtype: DType) -> DType:
    """The integer type in which C++ computes."""
    return dtype if dtype.bits >= INT32.bits else INT32


def _same_in_cpp(a: DType, b: DType) -> bool:
    """Whether C++ converts between the types on its own, in arithmetic and assignment, as the language wants."""
    if a == b or (a.is_float and not b.is_float and b is BOOL):
        return a == b
    if a.name in _NARROW or b.name in _NARROW or (a.is_packed and b.is_packed):
        return False
    if a.is_float and not b.is_float:
        return False
    if a.kind == "int" and b.kind == "uint" and b.bits < 32:
        return False  # a negative number would stay one: C++ computes with narrow integers in int
    if a.kind == "uint" and b.kind == "int" and a.bits == b.bits:
        return False  # C++ takes the unsigned type for both sides of an operator: `>>` and `<` mean another thing
    return b.is_float or a.bits <= b.bits or a is BOOL
