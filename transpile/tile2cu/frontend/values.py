"""What an expression of the user's file can evaluate to.

Plain Python numbers, strings, tuples, lists and dicts denote themselves. A static number that has a name is a
NamedInt or NamedFloat: a number that also knows how it is written. What is known only at run time is a core Expr.
"""

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import Enum
from typing import Any

import libcst as cst
from msgspec import field

from tile2cu.core.dtype import BOOL, FLOAT32, INT32, INT64, DType
from tile2cu.core.errors import Tile2CuError
from tile2cu.core.expr import Call, Const, Expr, Load, Named, Unary, Var, int_const, static_value, walk
from tile2cu.core.program import Buffer, Reduction, Scope
from tile2cu.core.record import Record
from tile2cu.core.span import Span
from tile2cu.frontend.fault import Fault
from tile2cu.frontend.scope import Env


class NamedInt(int):
    """A static integer and the expression that it is written as."""

    expr: Expr

    def __new__(cls, value: int, expr: Expr) -> "NamedInt":
        self = super().__new__(cls, value)
        self.expr = expr
        return self


class NamedFloat(float):
    """A static floating-point number and the expression that it is written as."""

    expr: Expr

    def __new__(cls, value: float, expr: Expr) -> "NamedFloat":
        self = super().__new__(cls, value)
        self.expr = expr
        return self


class FunctionKind(Enum):
    PLAIN = "plain"
    JIT = "jit"
    PRIM_FUNC = "prim_func"
    MACRO = "macro"


class Function(Record, frozen=True, eq=False):
    """A `def` or a lambda of the user's file, with the scope that it closes over."""

    name: str
    node: cst.FunctionDef | cst.Lambda
    env: Env
    defaults: Mapping[str, object]
    kind: FunctionKind = FunctionKind.PLAIN
    out_idx: object = None
    configs: cst.BaseExpression | None = None  # of @tilelang.autotune
    own_barriers: bool = False  # the user writes all barriers
    maker: "Function | None" = None  # of a prim_func, the jit function whose call gave it
    passes: tuple["Function", ...] = ()  # of a prim_func, the functions that the file applies to its nodes, in order

    @property
    def definition(self) -> cst.FunctionDef:
        """The `def` of a function that is no lambda."""
        assert isinstance(self.node, cst.FunctionDef)
        return self.node


class Opaque(Record, frozen=True, eq=False):
    """A value that only running the file would give. Harmless until something needs it.

    `reason` is the diagnostic of the statement that could not be evaluated, if that is why; `help` states how else the
    value can be given.
    """

    what: str
    span: Span | None = None
    reason: Tile2CuError | None = None
    help: str = ""


class Namespace(Record, frozen=True, eq=False):
    """A module that the front end knows: `tilelang.language`, `math`, `torch` and so on."""

    name: str


class Layout(Record, frozen=True, eq=False):
    """`T.Layout(shape, function)`: where the element of each index is."""

    function: "Function"


class Placement(Record, frozen=True):
    """A layout of a tensor in global memory.

    `extents` are those of the layout's coordinates, `unchanged` the number of leading dimensions it leaves alone.
    """

    layout: Layout
    extents: tuple[Expr, ...]
    unchanged: int


class Placed(Load, frozen=True):
    """An element of a placed tensor: `indices` say where it is, `logical` are the user's.

    `inside` is the condition that there is such an element, None where that is certain.
    """

    logical: tuple[Expr, ...] = ()
    inside: Expr | None = None


class Padded(Load, frozen=True):
    """An element of a tensor that T.annotate_safe_value is about: `otherwise` unless it is `inside`."""

    inside: Expr = Const(BOOL, True)
    otherwise: Expr = Const(FLOAT32, 0.0)


class Deferred(Record, frozen=True, eq=False):
    """A module next to the user's file, or a name in it (None: the module itself), before it is needed.

    `folder` is relative to the user's file, `module` its dotted name. `absolute`: no dot is before it, and the
    package of the file that imports it may be its own.
    """

    folder: str
    module: str
    name: str | None
    absolute: bool = False


class NodeKind(Record, frozen=True, eq=False):
    """A class of TVM's nodes, as `tvm.tirx.Evaluate`."""

    name: str


class Node(Record, frozen=True, eq=False):
    """A node of a prim_func as a pass of the file sees it; without `fields` one that nothing is known of."""

    kind: str
    fields: Mapping[str, object] = field(default_factory=dict)


class Body(Record, frozen=True, eq=False):
    """`prim_func.body`, before or after passes."""

    of: Function


class TorchTensor(Record, frozen=True, eq=False):
    """A tensor of the driver: its shape and type are known, its elements are not."""

    shape: tuple[object, ...]
    dtype: object


class Class(Record, frozen=True, eq=False):
    """A class of the user's file. `fields` are its annotated names, in order; `foreign`: a base is not in the file."""

    name: str
    values: Mapping[str, object]
    fields: tuple[str, ...] = ()
    foreign: bool = False


class Instance(Record, frozen=True, eq=False):
    """An object of a class of the file, or a substitute for a library's: its attributes, which may be set."""

    name: str
    values: dict[str, object] = field(default_factory=dict)
    of: Class | None = None


class Builtin(Record, frozen=True, eq=False):
    """A function that the front end carries out itself.

    `run` takes the context first, then the call's arguments. `name` is as users write it.
    """

    name: str
    run: Callable[..., object]


class Jit(Record, frozen=True, eq=False):
    """`tilelang.jit(...)`, a decorator. With `own_barriers` the user writes all barriers."""

    out_idx: object = None
    own_barriers: bool = False


class TensorType(Record, frozen=True):
    """`T.Tensor(shape, dtype)` as an annotation, or as a view of another tensor's `data`."""

    shape: tuple[Expr, ...]
    dtype: DType
    strides: tuple[Expr, ...] | None = None
    data: Buffer | None = None

    def named(self, name: str, span: Span, comment: str) -> Buffer:
        """The tensor in global memory that a parameter is."""
        shape, dtype, strides = self.shape, self.dtype, self.strides
        return Buffer(
            name=name, shape=shape, dtype=dtype, scope=Scope.GLOBAL, span=span, comment=comment, strides=strides
        )


class Handle(Record, frozen=True, eq=False):
    """A parameter of type T.handle, before T.match_buffer states what it is."""

    name: str
    span: Span
    comment: str = ""


class Interval(Record, frozen=True):
    """`start:stop` in a subscript; None where it is left out."""

    start: object
    stop: object


class View(Record, frozen=True, eq=False):
    """`buffer[...]` with at least one slice: an index or an Interval a dimension."""

    buffer: Buffer
    items: tuple[object, ...]


class TileValue(Record, frozen=True, eq=False):
    """An expression of tiles, before it is written to one: `element` gives the value at indices.

    `of_rows`: a vector with one value for each row of a tile, as a reduction of rows gives.
    """

    shape: tuple[Expr, ...]
    dtype: DType
    element: Callable[[tuple[Expr, ...]], Expr]
    of_rows: bool = False


class Lanes(Record, frozen=True, eq=False):
    """A short vector of one thread, as `T.Ramp(i, 1, 4)` and what is at such an index: its elements.

    `made_of` are the narrower elements whose bits they are, if they are words of such.
    """

    parts: tuple[Expr, ...]
    made_of: tuple[Expr, ...] = ()


class Transposed(Record, frozen=True, eq=False):
    """`T.transpose(tile)`, an operand of T.gemm."""

    of: object


class PipelineFrame(Record, frozen=True, eq=False):
    """`T.pipeline()`, before `with` enters it."""

    num_stages: int


class Reducer(Record, frozen=True, eq=False):
    """`T.comm_reducer(...)`: `combine` is the function of two values; `kind` its name where it is a common one."""

    kind: str
    combine: Function


class AttrFrame(Record, frozen=True, eq=False):
    """`T.attr(...)`, before `with` enters it: what T.tvm_thread_allreduce does inside, or a hint."""

    reducer: Reducer | None
    asynchronous: bool = False  # whether stores inside are copies by cp.async


class GroupFrame(Record, frozen=True, eq=False):
    """`T.ws(...)` of some warpgroups, before `with` enters it."""

    numbers: tuple[int, ...]


class IfFrame(Record, frozen=True, eq=False):
    """`T.If(condition)`, before `with` enters it: inside are `with T.Then():` and `with T.Else():`."""

    condition: object


class BranchFrame(Record, frozen=True, eq=False):
    """`T.Then()` or `T.Else()`, before `with` enters it."""

    name: str


class WhileFrame(Record, frozen=True, eq=False):
    """`T.While(condition)`, before `with` enters it."""

    condition: object


class KernelFrame(Record, frozen=True, eq=False):
    """`T.Kernel(...)`, before `with` enters it."""

    grid: tuple[Expr, ...]
    threads: tuple[int, ...]  # along x, y, z
    cluster: tuple[int, ...] = ()  # of blocks along x, y, z
    threads_of: str = ""  # the argument that is the number of threads


class LoopFrame(Record, frozen=True, eq=False):
    """`T.serial(...)`, `T.Parallel(...)` and so on, before `for` enters it."""

    kind: str
    bounds: tuple[Expr, ...]
    num_stages: int = 0
    stages_of: str = ""  # the argument that is `num_stages`
    panel: Expr = int_const(1)  # places along the last dimension that T.Persistent takes together
    laid_out: bool = False  # T.Parallel with a `loop_layout`


class Allocation(Record, frozen=True, eq=False):
    """`T.alloc_*(...)`, before an assignment names it."""

    shape: tuple[Expr, ...]
    dtype: DType
    scope: Scope | None  # None for T.alloc_var
    init: Expr | None = None
    reducer: Reduction | None = None
    arrivals: tuple[int, ...] = ()
    across: bool = False
    address: Expr | None = None  # of T.make_tensor
    strides: tuple[Expr, ...] | None = None


@dataclass(eq=False)
class OutputTensor:
    """`T.empty(...)`, before an assignment names it."""

    shape: tuple[Expr, ...]
    dtype: DType


class Arguments(Record, frozen=True):
    """The arguments of a call, evaluated."""

    positional: tuple[object, ...]
    named: Mapping[str, object] = field(default_factory=dict)


def number_dtype(value: int | float) -> DType:
    """The type of a Python number that denotes itself."""
    if isinstance(value, bool):
        return BOOL
    if isinstance(value, int):
        return INT32 if -(2**31) <= value < 2**31 else INT64
    return FLOAT32


def as_expr(value: object) -> Expr | None:
    """A number or expression as an Expr; None for anything else."""
    if isinstance(value, Placed):
        return _read_placed(value)
    if isinstance(value, Padded):
        return padded(value)
    if isinstance(value, Expr):
        return value
    if isinstance(value, NamedInt | NamedFloat):
        return value.expr
    if isinstance(value, float) and math.isinf(value):
        infinity = Call(FLOAT32, "infinity", ())
        return infinity if value > 0 else Unary(FLOAT32, "-", infinity)
    if isinstance(value, int) and not -(2**63) <= value < 2**64:
        raise Fault("T2C-F016", f"the integer {_short(value)} does not fit into 64 bits")
    if isinstance(value, bool | int | float):
        return Const(number_dtype(value), value)
    return None


def _read_placed(element: Placed) -> Expr:
    """The value of a placed tensor's element: 0 outside of the tensor."""
    load = Load(element.dtype, element.buffer, element.indices)
    if element.inside is None:
        return load
    return Call(element.dtype, "if_then_else", (element.inside, load, Const(element.dtype, 0)))


def padded(element: Padded) -> Expr:
    """The value of an element that may be outside of its tensor."""
    load = Load(element.dtype, element.buffer, element.indices)
    return Call(element.dtype, "if_then_else", (element.inside, load, element.otherwise))


def from_expr(expr: Expr) -> object:
    """An expression as a value: a number (named if it has names) where it is static, else itself."""
    leaves = [part for part in walk(expr) if isinstance(part, Const | Named)]
    value = static_value(expr)
    if value is None or not leaves or not all(leaf.weak for leaf in leaves) or not math.isfinite(value):
        return expr
    if isinstance(value, bool) or not any(isinstance(leaf, Named) for leaf in leaves):
        return value
    return NamedInt(value, expr) if isinstance(value, int) else NamedFloat(value, expr)


def _short(value: int) -> str:
    return str(value) if value.bit_length() < 200 else f"of {value.bit_length()} bits"


def describe(value: object) -> str:
    """What a value is, for a diagnostic: `the number 3`, `a list`, `` `A_shared`, a shared buffer ``."""
    if value is None or isinstance(value, bool):
        return f"`{value}`"
    if isinstance(value, int | float):
        return f"the number {_short(value) if isinstance(value, int) else value}"
    for kind, text in _DESCRIPTIONS:
        if isinstance(value, kind):
            return text(value)
    return f"a {type(value).__name__}"


def _describe_buffer(buffer: Buffer) -> str:
    what = "tensor in global memory" if buffer.scope is Scope.GLOBAL else f"{buffer.scope.value} buffer"
    return f"`{buffer.name}`, a {what}"


_DESCRIPTIONS: tuple[tuple[type, Callable[[Any], str]], ...] = (
    (str, lambda value: f"the string {value[:40]!r}"),
    (tuple, lambda value: "a tuple"),
    (list, lambda value: "a list"),
    (dict, lambda value: "a dict"),
    (Buffer, _describe_buffer),
    (View, lambda value: f"a slice of `{value.buffer.name}`"),
    (Var, lambda value: f"`{value.name}`, known only at run time"),
    (Expr, lambda value: "a value known only at run time"),
    (DType, lambda value: f"the type {value}"),
    (Function, lambda value: f"the function `{value.name}`"),
    (Builtin, lambda value: f"`{value.name}`"),
    (Opaque, lambda value: f"`{value.what}`"),
    (Namespace, lambda value: f"the module `{value.name}`"),
    (NodeKind, lambda value: f"the class `{value.name}` of TVM's nodes"),
    (Node, lambda value: "a node of the kernel"),
    (Body, lambda value: f"the body of `{value.of.name}`"),
    (TorchTensor, lambda value: "a tensor of the driver"),
    (Class, lambda value: f"the class `{value.name}`"),
    (Instance, lambda value: f"an object of `{value.name}`"),
    (Layout, lambda value: "a layout"),
    (Handle, lambda value: f"`{value.name}`, which no T.match_buffer describes"),
    (TensorType, lambda value: "a tensor's type"),
    (Allocation, lambda value: "a buffer without a name"),
    (OutputTensor, lambda value: "a tensor without a name"),
    (LoopFrame, lambda value: "a loop"),
    (KernelFrame, lambda value: "T.Kernel(...)"),
    (Reducer, lambda value: "a reducer"),
    (AttrFrame, lambda value: "T.attr(...)"),
    (GroupFrame, lambda value: "T.ws(...)"),
    (IfFrame, lambda value: "T.If(...)"),
    (BranchFrame, lambda value: f"{value.name}()"),
    (WhileFrame, lambda value: "T.While(...)"),
    (PipelineFrame, lambda value: "T.pipeline(...)"),
    (Lanes, lambda value: f"a vector of {len(value.parts)} elements"),
    (TileValue, lambda value: "an expression of tiles"),
    (Transposed, lambda value: "a transposed tile, which only T.gemm takes"),
)
