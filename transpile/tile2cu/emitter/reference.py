"""A program as plain scalar C++, for the test of a kernel: blocks and elements in sequence.

No threads, no layouts. Floats are computed in double and rounded where they are stored, so that it is a reference for
the kernel.
"""

import math
from collections.abc import Iterator

from tile2cu.analysis.accesses import may_change
from tile2cu.analysis.control import arms
from tile2cu.core.dtype import FLOAT8_E8M0, FLOATS_OF_8_BITS, PACKED, DType
from tile2cu.core.expr import (
    Binary,
    Call,
    Const,
    Expr,
    Load,
    Named,
    Number,
    Unary,
    Var,
    static_value,
)
from tile2cu.core.program import (
    Assert,
    Assign,
    Atomic,
    AtomicTile,
    Break,
    Buffer,
    Continue,
    Copy,
    Declare,
    Fill,
    Gemm,
    If,
    Launch,
    Let,
    Loop,
    Parallel,
    Print,
    Program,
    Reduce,
    Reduction,
    Region,
    Scan,
    SetRegisters,
    Stmt,
    Store,
    Swizzle,
    Sync,
    WgmmaWait,
    While,
)
from tile2cu.styles.base.expressions import PRECEDENCE, SPELLING
from tile2cu.styles.base.names import Names

_OURS = frozenset(("max", "min", "abs", "exp10", "rsqrt", "sigmoid", "floordiv", "floormod", "ceildiv"))
_RENAMED = {"max": "maximum", "min": "minimum", "abs": "absolute", "round": "nearbyint", "round_away": "round"}
_RANKS = 8
_OF_THE_TEST = frozenset(("float16", "bfloat16", *(dtype.name for dtype in (*FLOATS_OF_8_BITS, FLOAT8_E8M0, *PACKED))))


# The names of tl/test.h that a reference uses.
OF_THE_TEST = _OF_THE_TEST | _OURS | frozenset(_RENAMED.values())


def element_type(dtype: DType) -> str:
    """The class of tl/test.h that stores an element."""
    if dtype.name in _OF_THE_TEST:
        return dtype.name
    return f"Native<{'float' if dtype.name == 'tfloat32' else _native(dtype)}>"


def value_type(dtype: DType) -> str:
    """The C++ type in which the reference computes with elements."""
    return "double" if dtype.is_float else _native(dtype)


def _native(dtype: DType) -> str:
    return "int32_t" if dtype.name == "int32" or dtype.is_packed else dtype.cpp


class Reference:
    """Writes the statements of one program. Lines are unindented: clang-format indents them.

    `few_blocks`: only those of the tiles are computed that the CPU engine ran (tl/test.h).
    """

    def __init__(self, program: Program, names: Names, *, few_blocks: bool = False) -> None:
        self.program = program
        self.few_blocks = few_blocks
        self.names = names
        self._i = tuple(names.fresh(f"i{dim}") for dim in range(_RANKS))
        self._k, self._sum = names.fresh("k"), names.fresh("sum")

    # ---- statements

    def body(self) -> tuple[str, ...]:
        """All launches, one after the other."""
        lines: list[str] = []
        for tensor in self.program.workspaces:
            lines.append(self._array(tensor))
        launches = self.program.launches
        for at, launch in enumerate(launches):
            written = self._launch(launch, later=len(launches) - 1 - at)
            lines += ["{", *written, "}"] if len(launches) > 1 else written
        return tuple(lines)

    def _launch(self, launch: Launch, *, later: int) -> list[str]:
        lines = [line for let in launch.prelude for line in self._stmt(let)]
        for block, extent in reversed(list(zip(launch.blocks, launch.grid, strict=True))):
            lines.append(self._loop(self.names(block.name), self.text(extent)))
        if self.few_blocks:
            place = ", ".join(self.names(block.name) for block in launch.blocks)
            lines.append(f"if (!is_computed({later}, {place})) continue;")
        lines += [self._array(tile) for tile in launch.tiles]
        return [*lines, *self._block(launch.body), *["}"] * len(launch.grid)]

    def _array(self, buffer: Buffer) -> str:
        extents = ", ".join(self.text(extent) for extent in buffer.shape)
        return f"Array<{element_type(buffer.dtype)}> {self.names(buffer.name)}({{{extents}}});"

    def _block(self, body: tuple[Stmt, ...]) -> list[str]:
        return [line for stmt in body for line in self._stmt(stmt)]

    def _stmt(self, stmt: Stmt) -> list[str]:
        match stmt:
            case Let() | Declare() | Assign() | Store() | Atomic():
                return [self._scalar(stmt)]
            case Parallel() | Loop() | While() | If() | Break() | Continue():
                return self._control(stmt)
            case Sync() | Swizzle() | Assert() | Print() | WgmmaWait() | SetRegisters():
                return []
            case _:
                return self._tile(stmt)

    def _scalar(self, stmt: Stmt) -> str:
        match stmt:
            case Let():
                return f"const {self._variable(stmt.var)} = {self._stored(stmt.value, stmt.var.dtype)};"
            case Declare():
                init = self._stored(stmt.init, stmt.var.dtype) if stmt.init is not None else "0"
                return f"{self._variable(stmt.var)} = {init};"
            case Assign():
                value = Binary(stmt.var.dtype, stmt.op, stmt.var, stmt.value) if stmt.op else stmt.value
                return f"{self.names(stmt.var.name)} = {self._stored(value, stmt.var.dtype)};"
            case Store():
                old = Load(stmt.buffer.dtype, stmt.buffer, stmt.indices)
                value = Binary(stmt.buffer.dtype, stmt.op, old, stmt.value) if stmt.op else stmt.value
                return self._set(stmt.buffer, [self.text(index) for index in stmt.indices], self.text(value))
            case Atomic():
                assert stmt.kind is not None
                indices = [self.text(index) for index in stmt.indices]
                text, precedence = self._text(stmt.value)
                new = text if precedence == 12 else f"({text})"
                combined = _combine(stmt.kind, self._get(stmt.buffer, indices), new)
                return self._set(stmt.buffer, indices, combined)
        raise TypeError(type(stmt).__name__)

    def _control(self, stmt: Stmt) -> list[str]:
        match stmt:
            case Parallel():
                heads = [
                    self._loop(self.names(var.name), self.text(extent))
                    for var, extent in zip(stmt.vars, stmt.extents, strict=True)
                ]
                return [*heads, *self._block(stmt.body), *["}"] * len(heads)]
            case Loop():
                var, start, stop = self.names(stmt.var.name), self.text(stmt.start), self.text(stmt.stop)
                compare = ">" if (static_value(stmt.step) or 1) < 0 else "<"
                move = f"{var} += {self.text(stmt.step)}"
                end = f"{var}_end" if may_change(stmt.stop, stmt.body) else ""
                begun = f"{start}, {end} = {stop}" if end else start
                return [
                    f"for (int64_t {var} = {begun}; {var} {compare} {end or stop}; {move}) {{",
                    *self._block(stmt.body),
                    "}",
                ]
            case While():
                return [f"while ({self.text(stmt.condition)}) {{", *self._block(stmt.body), "}"]
            case If():
                then, orelse = (self._block(arm) for arm, _ in arms(stmt))
                otherwise = ["} else {", *orelse] if orelse else []
                return [f"if ({self.text(stmt.condition)}) {{", *then, *otherwise, "}"]
            case Break():
                return ["break;"]
        return ["continue;"]

    def _tile(self, stmt: Stmt) -> list[str]:
        match stmt:
            case Copy():
                return self._elements(stmt.src, stmt.dst, lambda old, new: new)
            case AtomicTile():
                return self._elements(stmt.src, stmt.dst, lambda old, new: _combine(stmt.kind, old, new))
            case Fill():
                heads, at = self._over(stmt.dst, stmt.dst.extents)
                return [*heads, self._set(stmt.dst.buffer, at, self.text(stmt.value)), *["}"] * len(heads)]
            case Gemm():
                return self._gemm(stmt)
            case Reduce():
                return self._reduce(stmt)
            case Scan():
                return self._scan(stmt)
        raise TypeError(type(stmt).__name__)

    def _elements(self, src: Region, dst: Region, combine) -> list[str]:  # type: ignore[no-untyped-def]
        """One element after the other from a region to another of the same extents, those of a tile if one is."""
        extents = [
            a if static_value(a) is not None or static_value(b) is None else b
            for a, b in zip(src.extents, dst.extents, strict=True)
        ]
        heads, to = self._over(dst, extents)
        from_ = self._at(src, list(self._i[: len(extents)]))
        value = combine(self._get(dst.buffer, to), self._get(src.buffer, from_))
        return [*heads, self._set(dst.buffer, to, value), *["}"] * len(heads)]

    def _gemm(self, op: Gemm) -> list[str]:
        (i, j), k, total = self._i[:2], self._k, self._sum
        rows, columns = map(self.text, op.c.extents)
        depth = self.text(op.a.extents[0 if op.transpose_a else 1])
        a = self._get(op.a.buffer, self._at(op.a, [k, i] if op.transpose_a else [i, k]))
        b = self._get(op.b.buffer, self._at(op.b, [j, k] if op.transpose_b else [k, j]))
        at = self._at(op.c, [i, j])
        start = "0" if op.clear else self._get(op.c.buffer, at)
        if op.clear_if is not None:
            start = f"{self.text(op.clear_if)} ? 0 : {start}"
        return [
            self._loop(i, rows),
            self._loop(j, columns),
            f"{value_type(op.c.buffer.dtype)} {total} = {start};",
            f"for (int64_t {k} = 0; {k} < {depth}; ++{k}) {total} += {a} * {b};",
            self._set(op.c.buffer, at, total),
            "}",
            "}",
        ]

    def _reduce(self, op: Reduce) -> list[str]:
        along, total = self._i[op.dim], self._sum
        at = list(self._i[: op.src.rank])
        kept = [name for name in at if name != along]
        to = kept if op.dst.rank < op.src.rank else ["0" if name == along else name for name in at]
        absolute = op.kind in (Reduction.ABSMAX, Reduction.ABSSUM)
        value, old = (
            f"absolute({part})" if absolute else part for part in (self._get(op.src, at), self._get(op.dst, to))
        )
        first = _identity(op.kind, op.dst.dtype) if op.clear else old
        return [
            *self._others(op.src, along),
            f"{value_type(op.dst.dtype)} {total} = {first};",
            self._loop(along, self.text(op.src.shape[op.dim])),
            f"{total} = {_combine(op.kind, total, value)};",
            "}",
            self._set(op.dst, to, total),
            *["}"] * max(len(kept), 1),
        ]

    def _scan(self, op: Scan) -> list[str]:
        along, total = self._i[op.dim], self._sum
        at = list(self._i[: op.src.rank])
        extent = self.text(op.src.shape[op.dim])
        turn = self._loop(along, extent)
        if op.reverse:
            turn = f"for (int64_t {along} = {extent} - 1; {along} >= 0; --{along}) {{"
        return [
            *self._others(op.src, along),
            f"{value_type(op.dst.dtype)} {total} = {_identity(op.kind, op.dst.dtype)};",
            turn,
            f"{total} = {_combine(op.kind, total, self._get(op.src, at))};",
            self._set(op.dst, at, total),
            *["}"] * max(len(at), 2),
        ]

    def _others(self, buffer: Buffer, along: str) -> list[str]:
        """Loops over all dimensions but one; of a row alone a block, which has its own names."""
        pairs = zip(self._i, buffer.shape, strict=False)
        return [self._loop(name, self.text(extent)) for name, extent in pairs if name != along] or ["{"]

    def _loop(self, name: str, extent: str) -> str:
        return f"for (int64_t {name} = 0; {name} < {extent}; ++{name}) {{"

    def _over(self, region: Region, extents: tuple[Expr, ...] | list[Expr]) -> tuple[list[str], list[str]]:
        """(loops, indices) over a region."""
        names = list(self._i[: len(extents)])
        heads = [self._loop(name, self.text(extent)) for name, extent in zip(names, extents, strict=True)]
        return heads, self._at(region, names)

    def _at(self, region: Region, names: list[str]) -> list[str]:
        """The indices of a region's element."""
        inner = dict(zip(region.kept, names, strict=True))
        indices = []
        for dim, part in enumerate(region.ranges):
            start = self.text(part.start)
            if dim not in inner:
                indices.append(start)
            else:
                indices.append(inner[dim] if start == "0" else f"{start} + {inner[dim]}")
        return indices

    def _get(self, buffer: Buffer, indices: list[str]) -> str:
        return f"{self.names(buffer.name)}({', '.join(indices)})"

    def _set(self, buffer: Buffer, indices: list[str], value: str) -> str:
        return f"{self.names(buffer.name)}.set({', '.join([value, *indices])});"

    def _variable(self, var: Var) -> str:
        return f"{value_type(var.dtype)} {self.names(var.name)}"

    def _stored(self, expr: Expr, dtype: DType) -> str:
        """A value as a variable of that type keeps it."""
        if expr.dtype == dtype or (dtype.is_int and dtype.kind != "uint" and expr.dtype.is_int):
            return self.text(expr)
        return f"{element_type(dtype)}::from({self.text(expr)})"

    # ---- expressions

    def text(self, expr: Expr) -> str:
        return self._text(expr)[0]

    def _text(self, expr: Expr) -> tuple[str, int]:
        """(text, precedence)."""
        match expr:
            case Const():
                return _literal(expr.value, expr.dtype), 11 if expr.value < 0 else 12
            case Named() | Var():
                return self.names(expr.name), 12
            case Load():
                assert isinstance(expr.buffer, Buffer)
                return self._get(expr.buffer, [self.text(index) for index in expr.indices]), 12
            case Unary():
                text, precedence = self._text(expr.operand)
                sign = "!" if expr.op == "not" else expr.op
                return f"{sign}({text})" if precedence < 12 else sign + text, 11
            case Binary():
                return self._binary(expr)
            case Call():
                return self._call(expr), 12
        raise TypeError(type(expr).__name__)

    def _binary(self, expr: Binary) -> tuple[str, int]:
        if expr.op == "**":
            return f"std::pow({self.text(expr.lhs)}, {self.text(expr.rhs)})", 12
        if expr.op in ("//", "%"):
            name = "floordiv" if expr.op == "//" else "floormod"
            return f"{name}({self.text(expr.lhs)}, {self.text(expr.rhs)})", 12
        own = PRECEDENCE[expr.op]
        (lhs, left), (rhs, right) = self._text(expr.lhs), self._text(expr.rhs)
        is_bits = own in (3, 4, 5, 8)
        lhs = f"({lhs})" if left < own or (left < 11 and (is_bits or (own == 1 and left == 2))) else lhs
        rhs = f"({rhs})" if right <= own or (right < 11 and (is_bits or (own == 1 and right == 2))) else rhs
        if expr.op == "/" and not expr.lhs.dtype.is_float:
            lhs = f"double({lhs})"
        text = f"{lhs} {SPELLING.get(expr.op, expr.op)} {rhs}"
        if expr.dtype.kind == "uint":  # wraps, to any type that the operands were promoted to
            return f"{_native(expr.dtype)}({text})", 12
        return text, own

    def _call(self, expr: Call) -> str:
        arguments = ", ".join(self.text(arg) for arg in expr.args)
        name = expr.function
        match name:
            case "infinity":
                return "std::numeric_limits<double>::infinity()"
            case "cast":
                return f"{element_type(expr.dtype)}::from({arguments})"
            case "reinterpret":
                return f"reinterpret<{element_type(expr.dtype)}, {element_type(expr.args[0].dtype)}>({arguments})"
            case "if_then_else":
                parts = [f"({text})" if low < 12 else text for text, low in map(self._text, expr.args)]
                return f"({parts[0]} ? {parts[1]} : {parts[2]})"
        plain = name.removeprefix("fast_").removeprefix("__")
        if plain in ("divide", "reciprocal"):
            return f"({' / '.join(self.text(arg) for arg in expr.args)})" if plain == "divide" else f"(1 / {arguments})"
        renamed = _RENAMED.get(plain, plain)
        return f"{'' if plain in _OURS else 'std::'}{renamed}({arguments})"


def _combine(kind: Reduction, old: str, new: str) -> str:
    """Two values, neither an open operation, as one."""
    match kind:
        case Reduction.SUM | Reduction.ABSSUM:
            return f"{old} + {new}"
        case Reduction.MIN:
            return f"minimum({old}, {new})"
        case Reduction.BITAND | Reduction.BITOR | Reduction.BITXOR:
            return f"{old} {kind.operator} {new}"
        case _:
            return f"maximum({old}, {new})"


def _identity(kind: Reduction, dtype: DType) -> str:
    if kind not in (Reduction.MAX, Reduction.MIN):
        return "0" if kind.identity(dtype) == 0 else f"{value_type(dtype)}(~0)"
    end = {Reduction.MAX: "lowest", Reduction.MIN: "max"}[kind]
    if dtype.is_float:
        return ("-" if kind is Reduction.MAX else "") + "std::numeric_limits<double>::infinity()"
    return f"std::numeric_limits<{value_type(dtype)}>::{end}()"


def _literal(value: Number, dtype: DType) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if dtype.is_float:
        if math.isnan(value):
            return "std::numeric_limits<double>::quiet_NaN()"
        if math.isinf(value):
            return ("-" if value < 0 else "") + "std::numeric_limits<double>::infinity()"
        return repr(float(value))
    return repr(int(value)) if float(value) == int(value) else repr(float(value))


def constants(program: Program, names: Names) -> Iterator[str]:
    """The named numbers of the program, as it has them; floats in double."""
    for constant in program.constants:
        kind = "double" if constant.dtype.is_float else "bool" if constant.dtype.name == "bool" else "int64_t"
        yield f"constexpr {kind} {names(constant.name)} = {_literal(constant.value, constant.dtype)};"
