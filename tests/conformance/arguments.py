"""Arguments for a program without a driver: sizes, and random tensors in suitable ranges."""

from __future__ import annotations

import itertools
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass

import numpy as np

from tests.conformance.chosen import CHOSEN, Chosen
from tests.conformance.reference import KernelFault, numpy_dtype
from tests.conformance.reference.expressions import Values
from tests.conformance.reference.memory import Memory
from tile2cu.analysis.accesses import expressions
from tile2cu.core.expr import Binary, Call, Expr, Load, Named, Role, Var, children, static_value, walk
from tile2cu.core.program import (
    Assign,
    Atomic,
    AtomicTile,
    Buffer,
    Copy,
    Declare,
    Gemm,
    Let,
    Program,
    Scope,
    Stmt,
    Store,
    walk_stmts,
)
from tile2cu.core.user_file import Constant

# The values of sizes: those that count blocks (batch, heads) take the first values of a choice in rotation, those along
# which tiles run the last. The first choice is not divisible by any tile; kernels that need whole tiles, rows aligned
# to 16 bytes, or many heads, get later ones.
CHOICES = (
    (2, 136), (2, 100), (2, 128), (4, 256), (16, 128), (32, 512), (1, 1024), (1, 16, 256), (16, 1, 256), (1, 128, 256),
    (2, 16),
)  # fmt: skip
# What integers hold, tried in this order: random numbers within their range, ascending ones, zeros, ones.
INTEGERS = ("random", "ascending", "zeros", "ones")
MAX_BYTES = 1 << 26
# A tensor of more elements than this gets small sizes along its outer dimensions.
MAX_ELEMENTS = 1 << 21
# What the driver's own sizes are made at most, step by step, where a run takes too long.
LARGEST = (512, 128, 8)
_DEFAULT_BOUND = 64
_ROW_ELEMENTS = 16  # rows of strided tensors start at multiples of it, which is what any copy asks for


class TooLarge(Exception):
    """A run would take too much memory."""


@dataclass(frozen=True)
class Choice:
    """How the arguments of a run were made."""

    sizes: tuple[int, ...]
    integers: str
    seed: int = 0
    fractions: bool = False  # floats are 0 to 1/32: small parts of a whole; iterations converge
    first: int = 0  # the dimension of a large tensor that is made small before others
    by_hand: bool = False  # sizes and tables of chosen.py

    def __str__(self) -> str:
        if self.by_hand:
            return f"sizes and tables by hand, seed {self.seed}"
        floats = ", floats below 1/32" if self.fractions else ""
        first = f", dimension {self.first} small first" if self.first else ""
        sizes = " and ".join(map(str, self.sizes))
        return f"sizes {sizes}, {self.integers} integers, seed {self.seed}{floats}{first}"


def choices(program: Program) -> Iterator[Choice]:
    """All choices, the likeliest first; where tensors are large, with other dimensions of theirs small."""
    if _chosen(program) is not None:
        yield Choice((), "random", by_hand=True)
        return
    seen: set[tuple[str, ...]] = set()
    ranks = [param.rank for param in program.params if isinstance(param, Buffer)]
    for integers, first, sizes in itertools.product(INTEGERS, range(max(ranks, default=1)), CHOICES):
        choice = Choice(sizes, integers, first=first)
        key = (integers, *(f"{name}={size}" for name, size in sizes_of(program, choice).items()), str(sizes))
        if key not in seen:
            seen.add(key)
            yield choice


def _chosen(program: Program) -> Callable[[np.random.Generator], Chosen] | None:
    """What makes the arguments that a person chose for the program."""
    return CHOSEN.get((program.source.name, program.alias_of or program.name))


def sizes_of(program: Program, choice: Choice) -> dict[str, int]:
    """A value for each size: a small one for what the grid counts one by one, and along tensors of many dimensions."""
    *smalls, large = choice.sizes
    small, counted = smalls[0], _counted(program)
    sizes = {size.name: large for size in program.sizes}
    sizes |= zip((size.name for size in program.sizes if size.name in counted), itertools.cycle(smalls))
    sizes |= dict.fromkeys(_divisors(program) & sizes.keys() - counted, max(1, small // 2))
    for tensor in (param for param in program.params if isinstance(param, Buffer)):
        for extent in (*tensor.shape[choice.first :], *tensor.shape[: choice.first]):
            if isinstance(extent, Var) and np.prod(shape_of(tensor, _values(program, sizes, choice))) > MAX_ELEMENTS:
                sizes[extent.name] = small
    return sizes


def _counted(program: Program) -> set[str]:
    """The names of the numbers that the grid counts one by one."""
    extents = [extent for launch in program.launches for extent in launch.grid]
    return {part.name for extent in extents for part in _outside_of_ceildiv(extent) if isinstance(part, Var)}


def _divisors(program: Program) -> set[str]:
    """The names of numbers that divide extents of the grid and are not divided themselves, such as groups of heads."""
    quotients = [
        part
        for launch in program.launches
        for extent in launch.grid
        for part in walk(extent)
        if isinstance(part, Binary) and part.op in ("//", "%")
    ]
    above, below = (
        {part.name for side in sides for part in walk(side) if isinstance(part, Var)}
        for sides in ([quotient.lhs for quotient in quotients], [quotient.rhs for quotient in quotients])
    )
    return below - above


def nudged(program: Program, arguments: Mapping[str, object], choice: Choice) -> dict[str, object]:
    """The arguments with each float moved by half a unit of float32's last digit at most, as rounding would."""
    rng = np.random.default_rng(choice.seed + 1)
    moved = dict(arguments)
    for param in program.params:
        if isinstance(param, Buffer) and param.dtype.is_float:
            values = np.asarray(arguments[param.name]).astype(np.float64)
            moved[param.name] = values * (1 + rng.uniform(-1, 1, values.shape) * 2.0**-24)
    return moved


def _number(program: Program, param: Var, choice: Choice) -> int | float:
    """The value of a scalar argument: 1, unless the grid depends on it or it is an extent of a tensor."""
    if param.dtype.is_float:
        return 0.5
    tensors = [tensor for tensor in program.params if isinstance(tensor, Buffer)]
    shapes = [extent for tensor in tensors for extent in tensor.shape]
    extents = [*shapes, *(extent for launch in program.launches for extent in launch.grid)]
    if not any(part == param for extent in extents for part in walk(extent)):
        return 1
    return choice.sizes[0] if param.name in _counted(program) else choice.sizes[-1]


def _values(program: Program, sizes: Mapping[str, int], choice: Choice) -> Values:
    """The sizes and the scalar arguments as the interpreter has them."""
    values = Values(Memory())
    for size in program.sizes:
        values.set(size, np.array([sizes[size.name]]))
    for param in program.params:
        if isinstance(param, Var):
            values.set(param, np.array([_number(program, param, choice)]))
    return values


def _outside_of_ceildiv(expr: Expr) -> Iterator[Expr]:
    """The parts of a grid's extent that are not divided into tiles."""
    if isinstance(expr, Call) and expr.function == "ceildiv":
        return
    if getattr(expr, "op", "") == "//":
        return
    yield expr
    for child in (getattr(expr, "lhs", None), getattr(expr, "rhs", None), *getattr(expr, "args", ())):
        if isinstance(child, Expr):
            yield from _outside_of_ceildiv(child)


def make(program: Program, choice: Choice) -> dict[str, object]:
    """All arguments by name, sizes included. Errors: TooLarge, KernelFault."""
    rng = np.random.default_rng(choice.seed)
    chosen = _chosen(program) if choice.by_hand else None
    sizes, tables = (sizes_of(program, choice), {}) if chosen is None else chosen(rng)
    values = _values(program, sizes, choice)
    bounds = index_bounds(program, values)
    arguments: dict[str, object] = dict(sizes)
    total = 0
    for param in program.params:
        if isinstance(param, Var):
            arguments[param.name] = _number(program, param, choice)
            continue
        shape = shape_of(param, values)
        total += int(np.prod(shape)) * param.dtype.bytes
        if total > MAX_BYTES:
            raise TooLarge(f"tensors of {total >> 20} MB and more")
        if min(shape, default=1) < 1:  # for example more groups than heads: no call has that
            raise KernelFault(f"{param.name} has no elements")
        if param.strides is not None:
            strides_of(param, shape, values, sizes)
            arguments |= sizes
        if param.name in tables:
            assert tables[param.name].shape == shape
            arguments[param.name] = tables[param.name].astype(numpy_dtype(param.dtype))
            continue
        if param.name in metadata_of(program):
            arguments[param.name] = metadata(param, shape, rng)
            continue
        arguments[param.name] = tensor(param, shape, rng, choice, bounds.get(param.name, _DEFAULT_BOUND))
    return arguments


def strides_of(tensor: Buffer, shape: tuple[int, ...], values: Values, sizes: dict[str, int]) -> tuple[int, ...]:
    """A tensor's strides in elements. A size that is nothing but one gets a value in `sizes`: rows do not touch."""
    strides = dict(enumerate(tensor.strides or ()))
    inner_first = sorted(reversed(strides), key=lambda dim: static_value(strides[dim]) is None)
    found: dict[int, int] = {}
    span = 1  # of the dimensions so far
    for dim in inner_first:
        stride = strides[dim]
        if isinstance(stride, Var) and stride not in tensor.shape:
            sizes[stride.name] = -(-span // _ROW_ELEMENTS) * _ROW_ELEMENTS + _ROW_ELEMENTS
            values.set(stride, np.array([sizes[stride.name]]))
        found[dim] = values.number(stride, np.ones(1, bool))
        span = max(span, found[dim] * shape[dim])
    return tuple(found[dim] for dim in strides)


def with_strides(program: Program, arguments: Mapping[str, object], name: str, array: np.ndarray) -> np.ndarray:
    """A copy of an argument, in memory with the strides that its parameter asks for."""
    param = next(param for param in program.params if param.name == name)
    if not isinstance(param, Buffer) or param.strides is None or not array.size:
        return array.copy()
    values = Values(Memory())
    for size in program.sizes:
        values.set(size, np.array([int(str(arguments[size.name]))]))
    strides = strides_of(param, array.shape, values, {})
    last = sum((extent - 1) * stride for extent, stride in zip(array.shape, strides, strict=True))
    memory = np.zeros(last + 1, array.dtype)
    placed = np.lib.stride_tricks.as_strided(memory, array.shape, [stride * array.itemsize for stride in strides])
    placed[...] = array
    return placed


def smaller(program: Program, largest: int) -> dict[str, int]:
    """New values for the arguments of the factory that are extents of tensors and of no tile."""
    return {constant.name: largest for constant in _only_of_tensors(program, largest) if constant.origin}


def with_smaller_numbers(program: Program, text: str, largest: int) -> str:
    """The file's source with smaller values for the numbers that are extents of tensors but not of tiles."""
    lines = text.splitlines(keepends=True)
    for constant in _only_of_tensors(program, largest):
        if not constant.origin and constant.formula == str(constant.value):
            number = rf"\b{constant.formula}\b"
            lines[constant.span.line - 1] = re.sub(number, str(largest), lines[constant.span.line - 1])
    return "".join(lines)


def _only_of_tensors(program: Program, largest: int) -> Iterator[Constant]:
    """The constants above `largest` that are extents of tensors and of no tile."""
    tensors = {name for param in program.params if isinstance(param, Buffer) for name in _named(param)}
    tiles = {name for launch in program.launches for tile in launch.tiles for name in _named(tile)}
    return (each for each in program.constants if each.name in tensors - tiles and each.value > largest)


def _named(buffer: Buffer) -> set[str]:
    """The names of the constants that a shape is made of."""
    return {part.name for extent in buffer.shape for part in walk(extent) if isinstance(part, Named)}


def shape_of(buffer: Buffer, values: Values) -> tuple[int, ...]:
    """A tensor's extents for the sizes chosen."""
    return tuple(values.number(extent, np.ones(1, bool)) for extent in buffer.shape)


def tensor(buffer: Buffer, shape: tuple[int, ...], rng: np.random.Generator, choice: Choice, bound: int) -> np.ndarray:
    """Random contents: normal floats, bytes and halves of bytes of all values, other integers below their bound."""
    dtype = numpy_dtype(buffer.dtype)
    if buffer.dtype.is_float:
        found = rng.uniform(0, 1 / 32, shape) if choice.fractions else rng.standard_normal(shape)
        return found.astype(np.float32).astype(dtype)
    if buffer.dtype.kind == "bool":
        return rng.integers(0, 2, shape).astype(bool)
    if buffer.dtype.is_packed:
        return rng.integers(0, 16, shape).astype(np.uint8).astype(dtype)
    if buffer.dtype.bits == 8 and bound == _DEFAULT_BOUND:
        info = np.iinfo(dtype)
        return rng.integers(info.min, info.max + 1, shape).astype(dtype)
    bound = max(bound, 1)
    match choice.integers:
        case "random":
            return rng.integers(0, bound, shape).astype(dtype)
        case "ascending":  # along the last dimension: offsets, block tables
            steps = np.arange(shape[-1] if shape else 1)
            return np.broadcast_to(np.minimum(steps * max(1, bound // max(len(steps), 1)), bound), shape).astype(dtype)
        case "zeros":
            return np.zeros(shape, dtype)
        case _:
            return np.ones(shape, dtype)


def metadata_of(program: Program) -> set[str]:
    """The metadata tensors of sparse matrices: those that are copied to T.gemm_sp's second operand."""
    stmts = [stmt for launch in program.launches for stmt in walk_stmts(launch.body)]
    tiles = [stmt.metadata.buffer for stmt in stmts if isinstance(stmt, Gemm) and stmt.metadata is not None]
    return {stmt.src.buffer.name for stmt in stmts if isinstance(stmt, Copy) and stmt.dst.buffer in tiles}


def metadata(buffer: Buffer, shape: tuple[int, ...], rng: np.random.Generator) -> np.ndarray:
    """For each four elements two places in order, 2 bits each."""
    codes = rng.choice(np.array([4, 8, 12, 9, 13, 14], np.uint8), (*shape[:-1], shape[-1] * buffer.dtype.bits // 4))
    return np.ascontiguousarray(codes[..., ::2] | codes[..., 1::2] << 4).view(numpy_dtype(buffer.dtype))


def index_bounds(program: Program, values: Values) -> Mapping[str, int]:
    """For the tensors of integers that others are indexed with: the smallest extent along which they are used."""
    found: dict[str, int] = {}
    for launch in program.launches:
        body = launch.prelude + launch.body
        origins, undivided = _origins(body), _origins(body, through=lambda expr: getattr(expr, "op", "") not in _PARTS)
        for stmt in walk_stmts(launch.body):
            for buffer, dim, index in _indices(stmt):
                extent = buffer.static_shape[dim] if buffer.scope is not Scope.GLOBAL else shape_of(buffer, values)[dim]
                for name in _names_in(index, origins):
                    bound = max(1, extent // _factor(index, undivided))
                    found[name] = min(found.get(name, bound), bound)
    return found


def _indices(stmt: Stmt) -> Iterator[tuple[Buffer, int, Expr]]:
    """Every index of a statement: (buffer, dimension, expression)."""
    if isinstance(stmt, Store | Atomic):
        yield from ((stmt.buffer, dim, index) for dim, index in enumerate(stmt.indices))
    if isinstance(stmt, Copy | AtomicTile):
        for region in (stmt.src, stmt.dst):
            yield from ((region.buffer, dim, part.start) for dim, part in enumerate(region.ranges))
    for expr in expressions(stmt):
        for part in walk(expr):
            if isinstance(part, Load):
                assert isinstance(part.buffer, Buffer)
                yield from ((part.buffer, dim, index) for dim, index in enumerate(part.indices))


def _factor(index: Expr, origins: Mapping[object, frozenset[str]]) -> int:
    """What an index multiplies a table's values by, at most: `table[i] * 64 + j` needs them below an extent's 64th."""
    factors = [1]
    for part in walk(index):
        if isinstance(part, Binary) and part.op == "*":
            for side, other in ((part.lhs, part.rhs), (part.rhs, part.lhs)):
                factor = static_value(side)
                factors += [int(factor)] if factor and _names_in(other, origins) else []
    return max(factors)


# Quotients and remainders do not bound a number's range.
_PARTS = frozenset(("//", "%", ">>"))


def _origins(
    body: tuple[Stmt, ...], *, through: Callable[[Expr], bool] = lambda expr: True
) -> dict[object, frozenset[str]]:
    """The tensors of integers that variables and tiles get their values from; `through` which operations."""
    origins: dict[object, frozenset[str]] = {}
    for _ in range(4):  # chains are short: a table, a tile, a variable
        for stmt in walk_stmts(body):
            match stmt:
                case Let() | Assign() | Declare():
                    value = stmt.init if isinstance(stmt, Declare) else stmt.value
                    if value is not None:
                        key = (stmt.var.name, stmt.var.role)
                        origins[key] = origins.get(key, frozenset()) | _names_in(value, origins, through)
                case Store():
                    key = stmt.buffer.name
                    origins[key] = origins.get(key, frozenset()) | _names_in(stmt.value, origins, through)
                case Copy():
                    source = stmt.src.buffer
                    own = _own(source) or origins.get(source.name, frozenset())
                    key = stmt.dst.buffer.name
                    origins[key] = origins.get(key, frozenset()) | own
                case _:
                    pass
    return origins


def _names_in(
    expr: Expr, origins: Mapping[object, frozenset[str]], through: Callable[[Expr], bool] = lambda expr: True
) -> frozenset[str]:
    """The tensors of integers that an expression's value comes from; conditions of selects do not count."""
    match expr:
        case _ if not through(expr):
            return frozenset()
        case Load():
            assert isinstance(expr.buffer, Buffer)
            return _own(expr.buffer) or origins.get(expr.buffer.name, frozenset())
        case Var(role=Role.LET | Role.MUTABLE):
            return origins.get((expr.name, expr.role), frozenset())
        case Var():
            return frozenset()
        case _:
            return frozenset().union(*(_names_in(part, origins, through) for part in children(expr)))


def _own(buffer: Buffer) -> frozenset[str]:
    """The origin of an integer tensor is the tensor itself."""
    if buffer.scope is Scope.GLOBAL and buffer.dtype.is_int:
        return frozenset((buffer.name,))
    return frozenset()
