"""T.gemm: MMAs of tiles."""

from collections.abc import Callable, Mapping

from msgspec.structs import replace

from tile2cu.core.dtype import FLOAT32, INT32
from tile2cu.core.expr import Expr, Number, Role, Var, static_value
from tile2cu.core.program import Buffer, Gemm, Policy, Region, Scope, Stmt, WgmmaWait
from tile2cu.frontend.context import Context
from tile2cu.frontend.fault import Fault
from tile2cu.frontend.lower import tiles
from tile2cu.frontend.lower.operand import as_count, as_flag, as_region
from tile2cu.frontend.subscript import extents_text
from tile2cu.frontend.values import TileValue, Transposed, describe


def gemm(
    cx: Context,
    A: object,  # noqa: N803 (the language's own names)
    B: object,  # noqa: N803
    C: object = None,  # noqa: N803
    transpose_A: object = False,  # noqa: N803
    transpose_B: object = False,  # noqa: N803
    policy: object = Policy.DEFAULT,
    clear_accum: object = False,
    k_pack: object = 1,
    wg_wait: object = 0,
    mbar: object = None,
    annotations: object = None,
) -> object:
    """`T.gemm(A, B, C)`: C += op(A) @ op(B), all tiles of two dimensions; without C, a tile of its own.

    Of `annotations`, "priority" is read; others are hints for TileLang.
    """
    cx.recorder.require_tile_operation("T.gemm")
    if mbar is not None:
        raise Fault("T2C-F011", "T.gemm with `mbar` is not supported yet")
    if not isinstance(policy, Policy):
        names = " or ".join(f"T.GemmWarpPolicy.{each.value}" for each in Policy if each.value)
        what = f"`policy` of T.gemm is one of T.GemmWarpPolicy, not {describe(policy)}"
        raise Fault("T2C-F023", what, help=f"write {names}")
    transpose_a, left = _operand(A, as_flag(transpose_A, "`transpose_A` of T.gemm"))
    transpose_b, right = _operand(B, as_flag(transpose_B, "`transpose_B` of T.gemm"))
    if isinstance(left, TileValue):
        left = tiles.written(cx, left, "value", right.dtype if isinstance(right, Buffer) else None)
    flags = transpose_a, transpose_b
    a, b = _matrix(cx, left, "A"), _matrix(cx, right, "B")
    result = _result(cx, a, b, *flags) if C is None else C
    c = _matrix(cx, result, "C")
    _require_shapes(a, b, c, *flags)
    _require_scopes(a, b, c)
    clear_if = clear_accum if isinstance(clear_accum, Expr) and _is_of_run_time(clear_accum) else None
    at = cx.recorder.take()
    clear = C is None or (clear_if is None and as_flag(clear_accum, "`clear_accum` of T.gemm"))
    cx.recorder.emit(
        Gemm(
            a=a,
            b=b,
            c=c,
            transpose_a=flags[0],
            transpose_b=flags[1],
            policy=policy,
            clear=clear,
            clear_if=None if clear else clear_if,
            priority=_priority(annotations),
            **at.fields,
        )
    )
    return result if C is None else None


def _priority(annotations: object) -> int:
    found = annotations.get("priority", 0) if isinstance(annotations, dict) else 0
    priority = as_count(found, "the priority of T.gemm")
    if priority > _HIGHEST_PRIORITY:
        raise Fault("T2C-F023", f"the priority of T.gemm is 0 to {_HIGHEST_PRIORITY}, not {priority}")
    return priority


_HIGHEST_PRIORITY = 3  # of a wave: AMD Instinct MI300 ISA, 'S_SETPRIO'


def _is_of_run_time(flag: Expr) -> bool:
    """Whether it is known only when the kernel runs; an open size is an argument that was not given."""
    return static_value(flag) is None and not (isinstance(flag, Var) and flag.role is Role.SIZE)


def _operand(value: object, transposed: bool) -> tuple[bool, object]:
    """An operand, and whether it is transposed: by its flag, or by T.transpose."""
    return (not transposed, value.of) if isinstance(value, Transposed) else (transposed, value)


def _result(cx: Context, a: Region, b: Region, transpose_a: bool, transpose_b: bool) -> Buffer:
    """A tile for the MMA: sums of floating-point numbers in float32, of integers in int32."""
    shape = (a.extents[1 if transpose_a else 0], b.extents[0 if transpose_b else 1])
    dtype = FLOAT32 if a.buffer.dtype.is_float else INT32
    name = f"{a.buffer.name}_product"
    return cx.recorder.allocate_at(cx.recorder.peek(), name, shape, dtype, Scope.FRAGMENT)


def _matrix(cx: Context, value: object, name: str) -> Region:
    """An operand as a region of two dimensions; leading dimensions of extent 1 are dropped."""
    region = as_region(cx, value, f"{name} of T.gemm")
    kept = region.kept
    while len(kept) > 2 and static_value(region.ranges[kept[0]].extent) == 1:
        kept = kept[1:]
    if len(kept) != 2:
        raise Fault(
            "T2C-F021", f"T.gemm: {name} is `{region.buffer.name}` {extents_text(region.extents)}, not a matrix"
        )
    return Region(buffer=region.buffer, ranges=region.ranges, kept=kept, whole=region.whole, span=region.span)


def _require_shapes(a: Region, b: Region, c: Region, transpose_a: bool, transpose_b: bool) -> None:
    """M, N and K must be the same wherever they appear."""
    a_rows, a_columns = (static_value(extent) for extent in a.extents)
    b_rows, b_columns = (static_value(extent) for extent in b.extents)
    m, k_of_a = (a_columns, a_rows) if transpose_a else (a_rows, a_columns)
    k_of_b, n = (b_columns, b_rows) if transpose_b else (b_rows, b_columns)
    operands = (
        f"`{a.buffer.name}` {extents_text(a.extents)}{' transposed' if transpose_a else ''} @ "
        f"`{b.buffer.name}` {extents_text(b.extents)}{' transposed' if transpose_b else ''}"
    )
    if k_of_a != k_of_b:
        help = _transpose_help(a, b, transpose_a, transpose_b)
        raise Fault("T2C-F021", f"T.gemm: {operands}: k is {k_of_a} in A and {k_of_b} in B", help=help)
    if (m, n) != tuple(static_value(extent) for extent in c.extents):
        raise Fault("T2C-F021", f"T.gemm: {operands} is ({m}, {n}), but `{c.buffer.name}` is {extents_text(c.extents)}")


def _transpose_help(a: Region, b: Region, transpose_a: bool, transpose_b: bool) -> str:
    """The change of a flag that would make the k extents agree, if there is one."""
    for flip_a, flip_b in ((False, True), (True, False)):
        k_of_a = static_value(a.extents[0 if transpose_a != flip_a else 1])
        k_of_b = static_value(b.extents[1 if transpose_b != flip_b else 0])
        if k_of_a == k_of_b:
            return f"transpose_{'B' if flip_b else 'A'}={not (transpose_b if flip_b else transpose_a)} would agree"
    return ""


def _require_scopes(a: Region, b: Region, c: Region) -> None:
    for region, name in ((a, "A"), (b, "B")):
        if region.buffer.scope not in (Scope.SHARED, Scope.FRAGMENT):
            raise Fault(
                "T2C-F023",
                f"T.gemm: {name} is {describe(region.buffer)}",
                help="copy it into a tile from T.alloc_shared first",
            )
    if c.buffer.scope is not Scope.FRAGMENT:
        raise Fault("T2C-F023", f"T.gemm: C is {describe(c.buffer)}", help="accumulate in a tile from T.alloc_fragment")


def gemm_sp(
    cx: Context,
    A_sparse: object,  # noqa: N803
    E: object,  # noqa: N803
    B: object,  # noqa: N803
    C: object,  # noqa: N803
    transpose_A: object = False,  # noqa: N803
    transpose_E: object = False,  # noqa: N803
    transpose_B: object = False,  # noqa: N803
    policy: object = Policy.DEFAULT,
    clear_accum: object = False,
    k_pack: object = 1,
    wg_wait: object = 0,
) -> None:
    """`T.gemm_sp(A, E, B, C)`: C += op(A) @ op(B), where A holds two of each four neighbours along K, given by E."""
    cx.recorder.require_tile_operation("T.gemm_sp")
    if not isinstance(policy, Policy):
        raise Fault("T2C-F023", f"`policy` of T.gemm_sp is one of T.GemmWarpPolicy, not {describe(policy)}")
    flags = {"A": transpose_A, "E": transpose_E, "B": transpose_B}
    transposed = {name: as_flag(flag, f"`transpose_{name}` of T.gemm_sp") for name, flag in flags.items()}
    a, e, b, c = (_matrix(cx, value, name) for value, name in ((A_sparse, "A"), (E, "E"), (B, "B"), (C, "C")))
    _require_sparse(a, e, b, c, transposed)
    cx.recorder.emit(
        Gemm(
            a=a,
            b=b,
            c=c,
            metadata=e,
            transpose_a=transposed["A"],
            transpose_metadata=transposed["E"],
            transpose_b=transposed["B"],
            policy=policy,
            clear=as_flag(clear_accum, "`clear_accum` of T.gemm_sp"),
            **cx.recorder.take().fields,
        )
    )


def _require_sparse(a: Region, e: Region, b: Region, c: Region, transposed: Mapping[str, bool]) -> None:
    """Shapes that agree, and tiles that lanes can read."""
    m, half_k = _sides(a, transposed["A"])
    k, groups = 2 * int(half_k or 0), e.buffer.dtype.bits // 4
    k_of_b, n = _sides(b, transposed["B"])
    if k != k_of_b or (*_sides(e, transposed["E"]), *_sides(c, False)) != (m, k // (4 * groups), m, n):
        raise Fault(
            "T2C-F021",
            f"T.gemm_sp: `{a.buffer.name}` {extents_text(a.extents)} denotes ({m}, {k}), and goes with B of {k} by "
            f"N, `{e.buffer.name}` of ({m}, {k // (4 * groups)}) and C of {m} by N",
            help=f"`{e.buffer.name}` has 4 bits for each four elements along K",
        )
    for region, name in ((a, "A"), (e, "E"), (b, "B")):
        if region.buffer.scope is not Scope.SHARED or not region.whole:
            raise Fault(
                "T2C-F023",
                f"T.gemm_sp: {name} is {describe(region.buffer) if region.whole else 'a part of a tile'}",
                help="copy it into a tile from T.alloc_shared first",
            )
    if not e.buffer.dtype.is_int or e.buffer.dtype.bits not in (8, 16, 32):
        raise Fault("T2C-F023", f"T.gemm_sp: E holds {e.buffer.dtype}", help="metadata are int8, int16 or int32")
    _require_scopes(a, b, c)


def _sides(region: Region, transposed: bool) -> tuple[Number | None, ...]:
    """Rows and columns of a matrix as the MMA takes it."""
    extents = tuple(static_value(extent) for extent in region.extents)
    return extents[::-1] if transposed else extents


def wgmma_gemm(cx: Context, *operands: object, **options: object) -> object:
    """`T.wgmma_gemm(A, B, C)`: as T.gemm, and the result may only be used after T.wait_wgmma."""
    result = gemm(cx, *operands, **options)

    def begun(stmt: Stmt) -> Stmt:
        assert isinstance(stmt, Gemm)
        return replace(stmt, begun=True)

    cx.recorder.amend(begun)
    return result


def wait_wgmma(cx: Context, id: object = 0) -> None:
    """`T.wait_wgmma(n)`: until at most n of the MMAs that T.wgmma_gemm started are in flight."""
    cx.recorder.require_kernel("T.wait_wgmma")
    if cx.recorder.parallel:
        raise Fault("T2C-F026", "T.wait_wgmma cannot be inside T.Parallel")
    pending = as_count(id, "the number of T.wait_wgmma")
    cx.recorder.emit(WgmmaWait(pending=pending, **cx.recorder.take().fields))


FUNCTIONS: dict[str, Callable[..., object]] = {
    **{name: gemm for name in ("gemm", "gemm_v1", "gemm_v2")},  # TileLang's two lowerings of the same GEMM
    "gemm_sp": gemm_sp,
    "wgmma_gemm": wgmma_gemm,
    "wait_wgmma": wait_wgmma,
}
