"""Random programs of the tile language, as source: copies, elementwise loops, reductions, scans and GEMMs.

All tiles of a program have the block's shape, its rows or its columns, so that any step may follow any other. Values
are small integers, and each tile has a bound: steps that would exceed the integers that its type represents exactly are
not taken. The result is thus independent of the order of evaluation, and compared exactly. A program that is `smooth`
has other, bounded functions, too, and is compared within a tolerance.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from hypothesis import strategies as st

TARGETS = ("cuda:sm_80", "cuda:sm_90a")
# The largest integer up to which a type holds all of them.
EXACT = {"float16": 2**11, "bfloat16": 2**8, "float32": 2**24, "int32": 2**31 - 1}
INPUT = 3  # inputs are -3 .. 3


@dataclass(frozen=True)
class Tensor:
    """A parameter; `is_output` if the program writes it."""

    name: str
    shape: tuple[str, ...]
    dtype: str
    is_output: bool = False


@dataclass(frozen=True)
class Tile:
    """A tile: `axes` is "ij", "i" or "j"; no element's absolute value exceeds `bound`."""

    name: str
    axes: str
    dtype: str
    is_shared: bool
    bound: float

    def at(self, indices: str) -> str:
        """The element at i and j."""
        return f"{self.name}[{indices}]"


@dataclass(frozen=True)
class RandomProgram:
    """A file with one kernel, the target that it is for, its parameters and the values of its sizes."""

    text: str
    target: str
    tensors: tuple[Tensor, ...]
    sizes: dict[str, int]
    is_smooth: bool

    def shape(self, tensor: Tensor) -> tuple[int, ...]:
        return tuple(self.sizes[extent] for extent in tensor.shape)


@dataclass
class Builder:
    """A program in the making."""

    draw: Callable[[st.SearchStrategy], object]
    rows: int
    cols: int
    depth: int
    threads: int
    is_smooth: bool
    tensors: list[Tensor] = field(default_factory=list)
    allocations: list[str] = field(default_factory=list)
    lines: list[str] = field(default_factory=list)
    tiles: list[Tile] = field(default_factory=list)
    count: int = 0

    def pick(self, *choices: object) -> object:
        return self.draw(st.sampled_from(choices))

    def name(self, prefix: str) -> str:
        self.count += 1
        return f"{prefix}{self.count}"

    def tensor(self, shape: tuple[str, ...], dtype: str, *, is_output: bool = False) -> str:
        name = self.name("Y" if is_output else "X")
        self.tensors.append(Tensor(name, shape, dtype, is_output))
        return name

    def allocate(self, prefix: str, shape: tuple[int, ...], dtype: str, *, is_shared: bool) -> str:
        name = self.name(prefix)
        kind = "alloc_shared" if is_shared else "alloc_fragment"
        self.allocations.append(f'{name} = T.{kind}({shape!r}, "{dtype}")')
        return name

    def tile(self, axes: str, dtype: str, bound: float, *, is_shared: bool = False) -> Tile:
        """A new tile of the block's shape, or of its rows or columns."""
        shape = tuple({"i": self.rows, "j": self.cols}[axis] for axis in axes)
        name = self.allocate("S" if is_shared else "F", shape, dtype, is_shared=is_shared)
        return Tile(name, axes, dtype, is_shared, bound)

    def some(self, axes: str = "ij", *, shared: bool | None = None) -> Tile | None:
        """One of the tiles that hold values."""
        fitting = [tile for tile in self.tiles if tile.axes == axes and shared in (None, tile.is_shared)]
        return self.pick(*fitting) if fitting else None  # type: ignore[return-value]

    def keep(self, tile: Tile) -> None:
        """The tile holds values now."""
        self.tiles = [other for other in self.tiles if other.name != tile.name] + [tile]


def _float(b: Builder) -> str:
    return str(b.pick("float32", "float16", "bfloat16"))


# ---- steps: each adds lines to the program, or leaves it as it is ----------------------------------------------------


def load(b: Builder) -> None:
    """A tile of a tensor; what reaches past the tensor's edge is zero."""
    dtype = _float(b)
    source = b.tensor(("M", "N"), dtype)
    tile = b.tile("ij", str(b.pick(dtype, "float32")), INPUT, is_shared=bool(b.pick(False, True)))
    b.lines.append(f"T.copy({source}[by * {b.rows}, bx * {b.cols}], {tile.name})")
    b.keep(tile)


def move(b: Builder) -> None:
    """A copy between registers and shared memory."""
    source = b.some()
    if source is None:
        return
    dtype = str(b.pick(*(dtype for dtype in EXACT if source.bound <= EXACT[dtype] and dtype != "int32")))
    tile = b.tile("ij", dtype, source.bound, is_shared=not source.is_shared)
    b.lines.append(f"T.copy({source.name}, {tile.name})")
    b.keep(tile)


def elementwise(b: Builder) -> None:
    """A loop that writes a tile, in place or another one."""
    first = b.some()
    if first is None:
        return
    text, bound = _expression(b, first)
    # What a smooth function gives is truncated nowhere: a rounding error would become a whole 1.
    in_place = bool(b.pick(False, True)) and not first.is_shared and not (b.is_smooth and first.dtype == "int32")
    dtype = first.dtype if in_place else "float32"
    if bound > EXACT[dtype]:
        return
    tile = Tile(first.name, "ij", dtype, False, bound) if in_place else b.tile("ij", dtype, bound)
    condition = b.pick(None, None, "bx == 0", "by % 2 == 0") if in_place else None
    indent = "    " if condition else ""
    b.lines += [f"if {condition}:"] if condition else []
    b.lines += [f"{indent}for i, j in T.Parallel({b.rows}, {b.cols}):", f"{indent}    {tile.at('i, j')} = {text}"]
    b.keep(Tile(tile.name, "ij", dtype, False, max(bound, first.bound)))


def _expression(b: Builder, first: Tile) -> tuple[str, float]:
    """(source, bound) of an expression of i and j."""
    text, bound = first.at("i, j"), first.bound
    second = b.some(str(b.pick("ij", "i", "j")))
    if second is not None and b.pick(False, True):
        other = second.at(", ".join(second.axes))
        match b.pick("+", "-", "max", "min", *(() if b.is_smooth else ("where",))):
            case "+" | "-" as op:
                text, bound = f"{text} {op} {other}", bound + second.bound
            case "max" | "min" as function:
                text, bound = f"T.{function}({text}, {other})", max(bound, second.bound)
            case _:
                text, bound = f"T.if_then_else({text} > {other}, {text}, {other} + 1)", max(bound, second.bound + 1)
    if b.is_smooth:
        return str(b.pick("T.tanh({})", "T.sigmoid({})", "T.exp2(T.min({}, 0))", "({}) * 0.5")).format(text), bound
    match b.pick("", "scale", "abs", "place", "edge", "integer"):
        case "scale":
            return f"({text}) * 2 - 1", bound * 2 + 1
        case "abs":
            return f"T.abs({text})", bound
        case "place":
            return f"{text} + (i - j) % 5", bound + 4
        case "edge":
            return f"T.if_then_else(by * {b.rows} + i < M, {text}, -7)", max(bound, 7)
        case "integer" if bound < 2**20:
            return f'T.cast(T.cast({text}, "int32") // 2, "float32")', bound + 1
    return text, bound


def narrow(b: Builder) -> None:
    """Integers of 8 or 16 bits, computed with in int, as floats."""
    dtype = str(b.pick("uint8", "int8", "uint16", "int16"))
    largest = INPUT if dtype.startswith("int") else 2 ** int(dtype.removeprefix("uint")) - 1  # -1 wraps
    at = f"{b.tensor(('M', 'N'), dtype)}[by * {b.rows} + i, bx * {b.cols} + j]"
    text, bound = b.pick(  # type: ignore[misc]
        ("{0} + {0}", 2 * largest), ("{0} * {0} - 7", largest**2 + 7), ("({0} + {0}) >> 1", largest),
        ("~{0}", largest + 1), ("1 << ({0} & 15)", 2**15), ("{0} << 2", 4 * largest), ("{0} & 12", 12),
    )  # fmt: skip
    fitting = [each for each in EXACT if each != "int32" and bound <= EXACT[each]]
    if not fitting:
        return
    tile = b.tile("ij", str(b.pick(*fitting)), bound)
    value = f'T.cast({text.format(at)}, "{tile.dtype}")'
    b.lines += [f"for i, j in T.Parallel({b.rows}, {b.cols}):", f"    {tile.at('i, j')} = {value}"]
    b.keep(tile)


def neighbours(b: Builder) -> None:
    """Elements of a shared tile that other threads wrote."""
    source = b.some(shared=True)
    if source is None or source.bound * 2 > EXACT["float32"]:
        return
    tile = b.tile("ij", "float32", source.bound * 2)
    shift = b.pick("(i + 1) % {0}, j", "i, {1} - 1 - j", "{0} - 1 - i, (j + 3) % {1}")
    other = source.at(str(shift).format(b.rows, b.cols))
    b.lines += [
        f"for i, j in T.Parallel({b.rows}, {b.cols}):",
        f"    {tile.at('i, j')} = {source.at('i, j')} + {other}",
    ]
    b.keep(tile)


def reduce(b: Builder) -> None:
    """A reduction along rows or columns, from nothing or joined to what was there."""
    source = b.some()
    if source is None or source.dtype != "float32" and source.is_shared:
        return
    kind = str(b.pick("sum", "max", "min", "absmax", "abssum"))
    dim = int(b.pick(1, 0))  # type: ignore[call-overload]
    many = (b.rows, b.cols)[dim] if kind in ("sum", "abssum") else 1
    clear = bool(b.pick(True, False)) or kind == "abssum"
    bound = source.bound * many + (0 if clear else 5)
    if bound > EXACT["float32"]:
        return
    tile = b.tile("ij"[1 - dim], "float32", bound)
    if clear:
        b.lines.append(f"T.reduce_{kind}({source.name}, {tile.name}, dim={dim})")
    else:
        b.lines += [f"T.fill({tile.name}, 5)", f"T.reduce_{kind}({source.name}, {tile.name}, dim={dim}, clear=False)"]
    b.keep(tile)


def scan(b: Builder) -> None:
    """A cumulative sum or maximum in shared memory."""
    source = b.some(shared=True)
    kind = str(b.pick("cumsum", "cummax"))
    dim = int(b.pick(0, 1))  # type: ignore[call-overload]
    if source is None:
        return
    bound = source.bound * (b.rows, b.cols)[dim] if kind == "cumsum" else source.bound
    if bound > EXACT[source.dtype]:
        return
    b.lines.append(f"T.{kind}({source.name}, dim={dim}, reverse={b.pick(False, True)})")
    b.keep(Tile(source.name, "ij", source.dtype, True, bound))


def repeat(b: Builder) -> None:
    """A serial loop that adds a tile to another."""
    source, total = b.some(), b.some(shared=False)
    if source is None or total is None or source.name == total.name or (b.is_smooth and total.dtype == "int32"):
        return
    turns = int(b.pick(1, 2, 3))  # type: ignore[call-overload]
    bound = total.bound + turns * (source.bound + turns)
    if bound > EXACT[total.dtype]:
        return
    b.lines += [
        f"for turn in T.serial({turns}):",
        f"    for i, j in T.Parallel({b.rows}, {b.cols}):",
        f"        {total.at('i, j')} += {source.at('i, j')} + turn",
    ]
    b.keep(Tile(total.name, "ij", total.dtype, False, bound))


def product(b: Builder) -> None:
    """A GEMM over K, loaded tile by tile, pipelined or not, with one operand in registers or not.

    Some iterations may be skipped, a row may be added in each, and coordinates may be named.
    """
    dtype = str(b.pick("float16", "bfloat16", "float32", "int8"))
    accumulator = "int32" if dtype == "int8" else "float32"
    ta, tb = bool(b.pick(False, True)), bool(b.pick(False, True))
    a = b.tensor(("K", "M") if ta else ("M", "K"), dtype)
    c = b.tensor(("N", "K") if tb else ("K", "N"), dtype)
    a_tile = b.allocate("A", (b.depth, b.rows) if ta else (b.rows, b.depth), dtype, is_shared=True)
    b_tile = b.allocate("B", (b.cols, b.depth) if tb else (b.depth, b.cols), dtype, is_shared=True)
    tile = b.tile("ij", accumulator, INPUT * INPUT * 200)
    through_registers = bool(b.pick(False, True)) and not ta
    left = b.allocate("R", (b.rows, b.depth), dtype, is_shared=False) if through_registers else a_tile
    stages, policy = b.pick(0, 1, 2, 3), b.pick("Square", "FullRow", "FullCol")
    at = b.pick(f"k * {b.depth}", f"k * {b.depth}", "first")
    a_at = f"{at}, by * {b.rows}" if ta else f"by * {b.rows}, {at}"
    b_at = f"bx * {b.cols}, {at}" if tb else f"{at}, bx * {b.cols}"
    b.lines += [f"T.clear({tile.name})", f"for k in T.Pipelined(T.ceildiv(K, {b.depth}), num_stages={stages}):"]
    skip = b.pick("", "", "if (k + bx) % 3 != 1:", f"if {a}[0, 0] > 0:")
    turn = [f"first = k * {b.depth}"] * (at == "first")
    if accumulator == "float32" and not skip and b.pick(False, False, True):
        turn += _left_behind(b, tile, a_tile)
        tile = Tile(tile.name, "ij", accumulator, False, tile.bound + 200 * INPUT)
    turn += [f"T.copy({a}[{a_at}], {a_tile})", f"T.copy({c}[{b_at}], {b_tile})"]
    turn += [f"T.copy({a_tile}, {left})"] * through_registers
    options = f"transpose_A={ta}, transpose_B={tb}, policy=T.GemmWarpPolicy.{policy}"
    turn.append(f"T.gemm({left}, {b_tile}, {tile.name}, {options})")
    if accumulator == "float32" and b.pick(False, False, True):
        turn += _added_line(b, tile)
        tile = Tile(tile.name, "ij", accumulator, False, tile.bound + 200 * INPUT)
    b.lines += [f"    {skip}"] * bool(skip) + [("        " if skip else "    ") + line for line in turn]
    b.keep(tile)


def _left_behind(b: Builder, tile: Tile, loaded: str) -> list[str]:
    """Adds an element that the previous iteration has loaded to all of the accumulator, in a branch."""
    return [
        "if k > 0:",
        f"    for i, j in T.Parallel({b.rows}, {b.cols}):",
        f'        {tile.name}[i, j] += T.cast({loaded}[0, 1], "float32")',
    ]


def _added_line(b: Builder, tile: Tile) -> list[str]:
    """Adds a row of the iteration, through shared memory, to all rows of the accumulator."""
    row = b.allocate("L", (b.cols,), "float32", is_shared=True)
    source = b.tensor(("K", "N"), "float32")
    place = b.pick("k", "at")
    return [
        *(["at = T.if_then_else(k > 1, k - 1, k)"] * (place == "at")),
        f"T.copy({source}[{place}, bx * {b.cols} : (bx + 1) * {b.cols}], {row})",
        f"for i, j in T.Parallel({b.rows}, {b.cols}):",
        f"    {tile.name}[i, j] += {row}[j]",
    ]


def second_product(b: Builder) -> None:
    """A GEMM whose left operand is a computed tile, in 16 bits, in registers or shared memory."""
    source = b.some(shared=False)
    if source is None or source.bound > EXACT["float16"] or b.cols % 16 or source.bound * INPUT * b.cols > 2**24:
        return
    values = b.tensor(("N", "N"), "float16")
    left = b.tile("ij", "float16", source.bound, is_shared=bool(b.pick(False, True)))
    right = b.allocate("V", (b.cols, b.cols), "float16", is_shared=True)
    tile = b.tile("ij", "float32", source.bound * INPUT * b.cols)
    policy = b.pick("FullRow", "Square")
    b.lines += [f"T.copy({source.name}, {left.name})", f"T.copy({values}[bx * {b.cols}, 0], {right})"]
    options = f"clear_accum=True, policy=T.GemmWarpPolicy.{policy}"
    b.lines.append(f"T.gemm({left.name}, {right}, {tile.name}, {options})")
    b.keep(tile)


def exchange(b: Builder) -> None:
    """Atomically exchanges values of a vector in shared memory, one per row or column, and returns the previous
    ones.
    """
    source = b.some(str(b.pick("i", "j")), shared=False)
    if source is None or source.dtype != "float32" or source.bound + 1 > EXACT["float32"]:
        return
    extent = b.rows if source.axes == "i" else b.cols
    line = b.allocate("S", (extent,), "float32", is_shared=True)
    tile = b.tile(source.axes, "float32", source.bound + 1)
    b.lines += [
        f"T.fill({line}, 1)",
        f"for {source.axes} in T.Parallel({extent}):",
        f"    {tile.at(source.axes)} = {source.at(source.axes)} - {line}[{source.axes}]",
        f"    {line}[{source.axes}] = {source.at(source.axes)}",
    ]
    b.keep(Tile(line, source.axes, "float32", True, source.bound))
    b.keep(tile)


def accumulate(b: Builder) -> None:
    """Atomic additions of rows or columns over all blocks, or a store through shared memory."""
    source = b.some(str(b.pick("i", "j")))
    if source is None or source.bound * 64 > EXACT["float32"] or b.is_smooth:
        return
    size, at, extent = (
        ("M", f"by * {b.rows} + i", b.rows) if source.axes == "i" else ("N", f"bx * {b.cols} + j", b.cols)
    )
    total = b.tensor((size,), "float32", is_output=True)
    b.lines += [
        f"for {source.axes} in T.Parallel({extent}):",
        f"    T.atomic_add({total}[{at}], {source.at(source.axes)})",
    ]


STEPS = (
    load,
    move,
    elementwise,
    narrow,
    neighbours,
    reduce,
    scan,
    repeat,
    product,
    second_product,
    exchange,
    accumulate,
)
_TEXT = """\
import tilelang
import tilelang.language as T
{dynamic}

@tilelang.jit
def program():
    @T.prim_func
    def body({params}):
        with T.Kernel(T.ceildiv(N, {cols}), T.ceildiv(M, {rows}), threads={threads}) as (bx, by):
{statements}
    return body
"""


@st.composite
def random_programs(draw: Callable[[st.SearchStrategy], object]) -> RandomProgram:
    """A program of one to seven steps; every tile that holds values at the end is written to a tensor."""
    rows, cols = draw(st.sampled_from((16, 32, 64, 128))), draw(st.sampled_from((16, 32, 64, 96, 128, 40, 160)))
    depth, threads = draw(st.sampled_from((32, 16, 64))), draw(st.sampled_from((128, 64, 32, 256)))
    sizes = {
        "M": draw(st.integers(1, 2 * rows)),
        "N": draw(st.integers(1, 2 * cols)),
        "K": draw(st.integers(0, 200)),
    }
    if draw(st.booleans()):  # rows that start at multiples of 16 bytes, as TMA wants them
        sizes = {name: -(-size // 16) * 16 for name, size in sizes.items()}
    b = Builder(draw, rows, cols, depth, threads, draw(st.booleans()))
    for step in draw(st.lists(st.sampled_from(STEPS), min_size=1, max_size=7)):
        step(b)
    if not b.tiles:
        load(b)
    for tile in b.tiles:
        _write(b, tile)
    static = draw(st.booleans())
    if static:
        dynamic = "\n".join(f"{name} = {size}" for name, size in sizes.items())
    else:
        dynamic = 'M, N, K = T.dynamic("M, N, K")'
    used = {name for tensor in b.tensors for name in tensor.shape} | {"M", "N"}
    text = _TEXT.format(
        dynamic=dynamic,
        params=", ".join(f'{t.name}: T.Tensor(({", ".join(t.shape)},), "{t.dtype}")' for t in b.tensors),
        rows=rows,
        cols=cols,
        threads=threads,
        statements="\n".join(" " * 12 + line for line in b.allocations + b.lines),
    )
    kept = {name: size for name, size in sizes.items() if name in used}
    return RandomProgram(text, draw(st.sampled_from(TARGETS)), tuple(b.tensors), kept, b.is_smooth)


def _write(b: Builder, tile: Tile) -> None:
    """A tile to a tensor of its own."""
    places = {"i": ("M", f"by * {b.rows}"), "j": ("N", f"bx * {b.cols}")}
    shape, at = zip(*(places[axis] for axis in tile.axes), strict=True)
    if tile.axes == "ij":
        output = b.tensor(shape, tile.dtype, is_output=True)
        b.lines.append(f"T.copy({tile.name}, {output}[{', '.join(at)}])")
        if b.pick(False, False, True):  # some elements again, by other threads
            place = f"by * {b.rows} + i, bx * {b.cols} + i % {b.cols}"
            b.lines += [f"for i in T.Parallel({b.rows}):", f"    {output}[{place}] = 5"]
        return
    # Each block of a row (or column) has its own: they may differ.
    other, extent = (("N", b.cols), b.rows) if tile.axes == "i" else (("M", b.rows), b.cols)
    output = b.tensor((*shape, other[0]) if tile.axes == "i" else (other[0], *shape), tile.dtype, is_output=True)
    block = f"bx * {b.cols}" if tile.axes == "i" else f"by * {b.rows}"
    place = f"{at[0]} + i, {block}" if tile.axes == "i" else f"{block}, {at[0]} + j"
    b.lines += [f"for {tile.axes} in T.Parallel({extent}):", f"    {output}[{place}] = {tile.at(tile.axes)}"]
