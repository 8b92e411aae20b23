"""Where GEMMs and sums accumulate, where values are rounded, what is approximated, and the order of sums."""

from collections.abc import Iterable, Iterator

from tile2cu.analysis.accesses import buffers_written, expressions
from tile2cu.analysis.uses import statements, users
from tile2cu.core.decisions import INSTRUCTION, REDUCTION_WARPS
from tile2cu.core.dtype import FLOAT32, FLOATS_OF_8_BITS, DType
from tile2cu.core.expr import Binary, Call, Expr, static_value, walk
from tile2cu.core.instruction import MmaUnit
from tile2cu.core.program import (
    Assign,
    Atomic,
    AtomicTile,
    Copy,
    Declare,
    Gemm,
    Launch,
    Let,
    Reduce,
    Reduction,
    Scan,
    Scope,
    Stmt,
    Store,
)
from tile2cu.core.record import Record
from tile2cu.plan.mfma_steps import steps_of
from tile2cu.plan.resolved import Resolved

# headers/tl/{cuda,hip}/math.h: what functions of float32 use of the special-function unit, on NVIDIA's and AMD's GPUs.
_UNIT = {
    "exp2": ("ex2.approx.ftz.f32", "v_exp_f32"),
    "log2": ("lg2.approx.ftz.f32", "v_log_f32"),
    "rsqrt": ("rsqrt.approx.ftz.f32", "v_rsq_f32"),
    "rcp": ("rcp.approx.ftz.f32", "v_rcp_f32"),
    "sin": ("sin.approx.ftz.f32", "v_sin_f32"),
    "cos": ("cos.approx.ftz.f32", "v_cos_f32"),
}
_TANH = ("tanh.approx.f32", f"{_UNIT['exp2'][1]} and {_UNIT['rcp'][1]}")
_BY_UNIT = {
    "exp2": (_UNIT["exp2"],),
    "rsqrt": (_UNIT["rsqrt"],),
    "fast_exp": (_UNIT["exp2"],),
    "fast_exp10": (_UNIT["exp2"],),
    "fast_log": (_UNIT["log2"],),
    "fast_log2": (_UNIT["log2"],),
    "fast_log10": (_UNIT["log2"],),
    "fast_sin": (_UNIT["sin"],),
    "fast_cos": (_UNIT["cos"],),
    "fast_tan": (_UNIT["sin"], _UNIT["cos"], _UNIT["rcp"]),
    "fast_tanh": (_TANH,),
    "fast_reciprocal": (_UNIT["rcp"],),
    "fast_pow": (_UNIT["log2"], _UNIT["exp2"]),
    "fast_divide": (_UNIT["rcp"],),
}
# The functions that are one of AMD's instructions, and its error. ["AMD Instinct MI300 ISA", V_EXP_F32, V_LOG_F32,
# V_RSQ_F32]
ACCURATE, ACCURACY = ("exp2", "rsqrt", "fast_log2"), "1 ulp, denormals are flushed"
# By whether the target is AMD's: the instructions that approximate a function.
APPROXIMATIONS = {
    amd: {name: " and ".join(each[amd] for each in units) for name, units in _BY_UNIT.items()} for amd in (False, True)
}
# headers/tl/common/math.h: functions of float32 that are those of the GPU's mathematical library.
_LIBRARY = frozenset(
    [
        "exp",
        "exp10",
        "log",
        "log2",
        "log10",
        "log1p",
        "sqrt",
        "tanh",
        "sin",
        "cos",
        "tan",
        "asin",
        "acos",
        "atan",
        "sinh",
        "cosh",
        "erf",
    ]
)
_SUMS = (Reduction.SUM, Reduction.ABSSUM)
# What gives one of its arguments, a constant, or the same bits: nothing is rounded.
_EXACT = frozenset(("cast", "reinterpret", "if_then_else", "infinity", "max", "min", "abs"))
_ARITHMETIC = frozenset(("+", "-", "*", "/", "//", "%", "**"))


class Numerics(Record, frozen=True, kw_only=True):
    """The numerics of a kernel; element types by name.

    `rounded` is what takes values of a wider type: (tensor, tile or variable, type, Python line). `computed` is what
    operations give whose results are of 16 bits or fewer. `unrounded` are sums of a tile before it is rounded: (sum,
    tile, what is rounded). `extrema` are the functions of floating-point numbers that
    prefer a number to NaN, `clamped` the constants that they give instead, with their Python lines. `order` states in
    which order what is summed, a sentence for each kind of sum. `library` are the functions of the GPU's library.
    `drops_bits`: tensor cores add with fewer bits than the accumulator has.
    """

    products: tuple[str, ...]
    drops_bits: bool
    reductions: tuple[str, ...]
    rounded: tuple[tuple[str, str, int], ...]
    computed: tuple[tuple[str, str, int], ...]
    unrounded: tuple[tuple[str, str, str], ...]
    extrema: tuple[str, ...]
    clamped: tuple[tuple[str, int], ...]
    approximated: tuple[str, ...]
    library: tuple[str, ...]
    order: tuple[str, ...]


def numerics(launches: tuple[Resolved, ...]) -> Numerics:
    """The numerics of a kernel's launches."""
    stmts = [stmt for resolved in launches for stmt in resolved.launch.statements]
    calls = list(_float_calls(stmts))
    return Numerics(
        products=tuple(sorted({op.c.buffer.dtype.name for op in stmts if isinstance(op, Gemm)})),
        drops_bits=any(_drops_bits(op, each) for each in launches for op in statements(each.launch.body, Gemm)),
        reductions=tuple(sorted({op.dst.dtype.name for op in stmts if isinstance(op, Reduce)})),
        rounded=tuple(dict.fromkeys(found for stmt in stmts for found in _rounded(stmt))),
        computed=tuple(dict.fromkeys(found for stmt in stmts for found in _computed(stmt))),
        unrounded=tuple(dict.fromkeys(found for each in launches for found in _unrounded(each.launch))),
        extrema=tuple(sorted({name for name in calls if name in ("max", "min")})),
        clamped=tuple(dict.fromkeys(found for stmt in stmts for found in _clamped(stmt))),
        approximated=tuple(sorted({name for name in calls if name in _BY_UNIT})),
        library=tuple(sorted({name for name in calls if name in _LIBRARY})),
        order=tuple(dict.fromkeys(text for resolved in launches for text in _order(resolved))),
    )


def _drops_bits(op: Gemm, resolved: Resolved) -> bool:
    """Whether wgmma multiplies 8-bit floats. [DeepSeek-V3 Technical Report, 3.3.2; docs/lab/gemm.md]"""
    instruction = resolved.facts[op, INSTRUCTION]
    of_bytes = op.a.buffer.dtype in FLOATS_OF_8_BITS and op.b.buffer.dtype in FLOATS_OF_8_BITS
    return of_bytes and instruction.unit is MmaUnit.WARPGROUP and instruction.through is None


def _rounded(stmt: Stmt) -> Iterator[tuple[str, str, int]]:
    """What takes values of a wider type in a statement."""
    if isinstance(stmt, Copy | AtomicTile):
        if _narrows(stmt.src.buffer.dtype, stmt.dst.buffer.dtype):
            yield stmt.dst.buffer.name, str(stmt.dst.buffer.dtype), stmt.span.line
        return
    name, dtype, value = _result(stmt)
    if value is None:
        return
    if _narrows(value.dtype, dtype):
        yield name, str(dtype), stmt.span.line
    for part in walk(value):
        if isinstance(part, Call) and part.function == "cast" and _narrows(part.args[0].dtype, part.dtype):
            yield name, str(part.dtype), stmt.span.line


def _unrounded(launch: Launch) -> Iterator[tuple[str, str, str]]:
    """The sums of a tile whose elements are rounded for other uses, and are the same at both."""
    for total in statements(launch.body, Reduce):
        uses = users(launch.body, total.src) if total.kind in _SUMS else []
        copies = (op for op in uses if isinstance(op, Copy) and op.src.buffer is total.src)
        for copy in copies:
            first, last = sorted((uses.index(total), uses.index(copy)))
            kept = not any(total.src in buffers_written(op) for op in uses[first:last])
            if kept and _narrows(copy.src.buffer.dtype, copy.dst.buffer.dtype):
                yield total.dst.name, total.src.name, copy.dst.buffer.name


def _computed(stmt: Stmt) -> Iterator[tuple[str, str, int]]:
    """What a statement computes in a narrow type."""
    name, dtype, value = _result(stmt)
    if value is None:
        return
    if isinstance(stmt, Store | Assign) and stmt.op and _is_narrow(dtype):
        yield name, str(dtype), stmt.span.line
    for part in walk(value):
        operates = isinstance(part, Binary) and part.op in _ARITHMETIC
        operates |= isinstance(part, Call) and part.function not in _EXACT
        if operates and _is_narrow(part.dtype):
            yield name, str(part.dtype), stmt.span.line


def _result(stmt: Stmt) -> tuple[str, DType, Expr | None]:
    """What a statement about single values gives a value, its type, and the value."""
    match stmt:
        case Store() | Atomic():
            return stmt.buffer.name, stmt.buffer.dtype, stmt.value
        case Let() | Assign():
            return stmt.var.name, stmt.var.dtype, stmt.value
        case Declare():
            return stmt.var.name, stmt.var.dtype, stmt.init
        case _:
            return "", FLOAT32, None


def _order(resolved: Resolved) -> Iterator[str]:
    """What headers/tl does, a sentence for each kind of sum; for all sizes, each run does the same."""
    for op in resolved.launch.statements:
        if isinstance(op, Gemm) and op.c.buffer.dtype.is_float:
            instruction = resolved.facts[op, INSTRUCTION]
            if instruction.unit is MmaUnit.FMA:
                yield "FMA: along k in ascending order, one product at a time"
            else:
                yield f"MMAs: along k in {_along_k(op, resolved)}, the hardware's order within each"
        elif isinstance(op, Scan) and op.kind in _SUMS and op.dst.dtype.is_float:
            yield "scans: a thread's own elements in ascending order; across a warp in steps of 1, 2, 4, ... elements"
        elif isinstance(op, Reduce) and op.kind in _SUMS and op.dst.dtype.is_float:
            of_tile = " of shared tiles" if op.src.scope is Scope.SHARED else ""
            parts = (
                ", then over the block's lane groups in ascending order"
                if resolved.facts[op, REDUCTION_WARPS] > 1
                else ""
            )
            lanes = "after the loop" if resolved.defers(op) else "then"
            yield f"reductions{of_tile}: a thread's own elements in ascending order, {lanes} lanes pairwise{parts}"
        elif _adds_atomically(op):
            yield "atomic additions: in any order, so the last bits may differ from run to run"


def _along_k(op: Gemm, resolved: Resolved) -> str:
    """Which instruction takes which k; a read of more than one instruction's k is of neighbours."""
    instruction, steps = resolved.facts[op, INSTRUCTION], steps_of(op, resolved)
    if steps is None or steps.piece <= steps.each:
        return f"ascending order, one {instruction} after another"
    extent, count, each = steps.piece * steps.groups, steps.piece // steps.each, steps.each
    own = f"{each} i to {each} i + {each - 1}" if each > 1 else "i"
    return (
        f"ascending steps of {extent}, each {count} {instruction} one after another, of which number i from 0 takes "
        f"{own} of every {steps.piece} k"
    )


def _clamped(stmt: Stmt) -> Iterator[tuple[str, int]]:
    """The constants among the arguments of a statement's maxima and minima, which NaN becomes."""
    for expr in expressions(stmt):
        for part in walk(expr):
            if isinstance(part, Call) and part.function in ("max", "min") and part.dtype.is_float:
                values = [value for each in part.args if (value := static_value(each)) is not None]
                yield from ((f"{value:g}", stmt.span.line) for value in values[:1])


def _float_calls(stmts: Iterable[Stmt]) -> Iterator[str]:
    for stmt in stmts:
        for expr in expressions(stmt):
            yield from (part.function for part in walk(expr) if isinstance(part, Call) and part.dtype.is_float)


def _adds_atomically(op: object) -> bool:
    if isinstance(op, Atomic):
        return op.kind is Reduction.SUM and op.buffer.dtype.is_float
    return isinstance(op, AtomicTile) and op.kind is Reduction.SUM and op.dst.buffer.dtype.is_float


def _narrows(src: DType, dst: DType) -> bool:
    return src.is_float and dst.is_float and dst.bits < src.bits


def _is_narrow(dtype: DType) -> bool:
    return dtype.is_float and dtype.bits <= 16
