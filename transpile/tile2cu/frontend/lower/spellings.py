"""Other spellings: TVM's names for what the language has, and asynchronous copies that nobody has to wait for."""

from collections.abc import Callable
from functools import partial

from tile2cu.core.dtype import BOOL, FLOAT32, INT32
from tile2cu.core.expr import Binary, Call, Const, Expr, Load, Role, Var, binary, int_const, static_value
from tile2cu.core.program import Assign, Buffer, CallStmt, Copy, Declare, Loop, LoopKind, Region, Scope
from tile2cu.frontend.context import Context
from tile2cu.frontend.fault import Fault
from tile2cu.frontend.lower import alloc, atomic, extern, program, warp
from tile2cu.frontend.lower.copy import operands
from tile2cu.frontend.lower.elementwise import cast
from tile2cu.frontend.lower.operand import as_buffer, as_dtype, as_number, as_region, as_shape
from tile2cu.frontend.lower.operand import place as here
from tile2cu.frontend.lower.spread import is_spread, spread
from tile2cu.frontend.operators import binary as operate
from tile2cu.frontend.subscript import subscript
from tile2cu.frontend.values import AttrFrame, BranchFrame, Handle, IfFrame, WhileFrame, describe


def _any_or_all(name: str, cx: Context, /, buffer: object) -> object:
    """`T.any_of(flags)` and `T.all_of(flags)`: whether one, or each, element of a buffer or a slice of it is true."""
    is_any = name == "any_of"
    cx.recorder.require_kernel(f"T.{name}")
    region = as_region(cx, buffer, f"the argument of T.{name}")
    tile = region.buffer
    if tile.scope is Scope.FRAGMENT:
        raise Fault(
            "T2C-F023",
            f"the argument of T.{name} is {describe(tile)}, whose elements are in the registers of many threads",
            help="T.copy it to a shared tile first",
        )
    found = _among(cx, region, "any" if is_any else "all", "or" if is_any else "and", Const(BOOL, not is_any))
    if tile.scope is not Scope.SHARED or cx.recorder.parallel:
        return found
    vote = Call(BOOL, f"{'any' if is_any else 'all'}_of_block", (found,))  # one value, for all threads
    decided = cx.recorder.variable(f"{found.name}_of_block", BOOL, Role.MUTABLE)
    cx.recorder.emit(Declare(var=decided, init=vote, span=here(cx)))
    return decided


def _among(cx: Context, region: Region, name: str, op: str, start: Const) -> Var:
    """A scalar that goes through the elements of a region one by one."""
    at = cx.recorder.take()
    found = cx.recorder.variable(f"{name}_of_{region.buffer.name}", BOOL, Role.MUTABLE)
    cx.recorder.emit(Declare(var=found, init=start, **at.fields))
    starts = [part.start for part in region.ranges]
    with cx.recorder.scope():
        indices = cx.recorder.indices([region.ranges[dim].extent for dim in region.kept], Role.LOOP)
        for dim, index in zip(region.kept, indices, strict=True):
            starts[dim] = index if static_value(starts[dim]) == 0 else binary("+", starts[dim], index)
    flag = cast(cx, Load(region.buffer.dtype, region.buffer, tuple(starts)), BOOL)
    assert isinstance(flag, Expr)
    body: Assign | Loop = Assign(var=found, value=Binary(BOOL, op, found, flag), span=at.span)
    for dim, index in zip(reversed(region.kept), reversed(indices), strict=True):
        extent = region.ranges[dim].extent
        body = Loop(
            kind=LoopKind.SERIAL,
            var=index,
            start=int_const(0),
            stop=extent,
            step=int_const(1),
            body=(body,),
            span=at.span,
        )
    cx.recorder.emit(body)
    return found


def storage_sync(cx: Context, scope: object, *options: object) -> None:
    """`T.tvm_storage_sync("shared")`: T.sync_threads(); of "warp": T.sync_warp()."""
    if scope not in ("shared", "shared.dyn", "warp"):
        raise Fault(
            "T2C-F023",
            f'T.tvm_storage_sync takes "shared" or "warp", not {describe(scope)}',
            help="write T.sync_grid() for a barrier of all blocks",
        )
    (warp.sync_warp if scope == "warp" else atomic.sync_threads)(cx)


def load_read_only(cx: Context, value: object, index: object = None) -> object:
    """`T.__ldg(A[i])`, `T.__ldg(A, i)`: an element of a tensor that the kernel only reads, which nvcc sees itself."""
    element = value if index is None else subscript(cx, value, (index,))
    if not isinstance(element, Load) or not isinstance(element.buffer, Buffer):
        raise Fault("T2C-F023", f"T.__ldg takes an element of a tensor, not {describe(value)}")
    if element.buffer.scope is not Scope.GLOBAL:
        raise Fault("T2C-F023", f"T.__ldg reads tensors in global memory, not {describe(element.buffer)}")
    return element


def fast_rcp(cx: Context, x: object) -> object:
    """`T.fast_rcp(x)`: 1 / x, which may be rounded less well; here it is a division."""
    value = as_number(x, "the argument of T.fast_rcp")
    if not value.dtype.is_float:
        raise Fault("T2C-F018", f"T.fast_rcp takes floating-point numbers, not {value.dtype}")
    return operate(cx.budget, "/", Const(value.dtype, 1.0), value)


def decl_buffer(
    cx: Context, shape: object, dtype: object = FLOAT32, *, scope: object = "global", data: object = None
) -> object:
    """`T.decl_buffer(shape, dtype, scope=...)`: T.alloc_buffer; with `data`, a tensor's elements in this shape."""
    if data is None:
        return alloc.alloc_buffer(cx, shape, dtype, scope=scope)
    return program.tensor(cx, shape, dtype, data)


def if_frame(cx: Context, condition: object) -> object:
    """`with T.If(condition):`, in which `with T.Then():` and `with T.Else():` are."""
    return IfFrame(condition)


def _branch_frame(name: str) -> Callable[..., object]:
    """`with T.Then():` and `with T.Else():`."""
    return lambda cx: BranchFrame(f"T.{name}")


def while_frame(cx: Context, condition: object) -> object:
    """`with T.While(condition):`."""
    return WhileFrame(condition)


def handle(cx: Context, *arguments: object) -> object:
    """`T.handle()`, as the type of a parameter: T.match_buffer states what it is."""
    raise Fault("T2C-F012", "T.handle is a parameter's type", help="write `A: T.Tensor(shape, dtype)`")


def match_buffer(
    cx: Context, param: object, shape: object, dtype: object = FLOAT32, strides: object = None, **options: object
) -> object:
    """`A = T.match_buffer(a, shape, dtype)`: the parameter `a: T.handle` is a tensor."""
    if not isinstance(param, Handle):
        raise Fault("T2C-F023", f"T.match_buffer takes a parameter of type T.handle, not {describe(param)}")
    steps = as_shape(cx, strides, "the strides of T.match_buffer") if strides else None
    tensor = Buffer(
        name=param.name,
        shape=as_shape(cx, shape, "the shape of T.match_buffer"),
        dtype=as_dtype(dtype, "the type of T.match_buffer"),
        scope=Scope.GLOBAL,
        span=param.span,
        comment=param.comment,
        strides=steps,
    )
    cx.recorder.add_param(param.name, tensor)
    return tensor


def tvm_access_ptr(
    cx: Context, ptype: object, data: object, offset: object, extent: object, rw_mask: object = 1
) -> object:
    """`T.tvm_access_ptr(type, A.data, offset, n, mask)`: T.access_ptr with 1 for "r", 2 for "w" and 3 for "rw"."""
    return extern.access_ptr(cx, data, rw_mask, offset=offset, extent=extent)


def annotate_safe_value(cx: Context, values: object) -> None:
    """`T.annotate_safe_value({A: x})`: what is read outside of tensor A is x, not 0, from here on."""
    cx.recorder.require_kernel("T.annotate_safe_value")
    if not isinstance(values, dict):
        raise Fault("T2C-F023", f"T.annotate_safe_value takes a dict of tensors, not {describe(values)}")
    for buffer, value in values.items():
        tensor = as_buffer(cx, buffer, "a key of T.annotate_safe_value")
        if tensor.scope is not Scope.GLOBAL or tensor.name in cx.recorder.placements:
            raise Fault("T2C-F023", f"T.annotate_safe_value is about tensors as they are, not {describe(tensor)}")
        otherwise = cast(cx, value, tensor.dtype)
        assert isinstance(otherwise, Expr)
        cx.recorder.otherwise[tensor.name] = otherwise


def sblock(cx: Context, name: object = "root", **options: object) -> object:
    """`with T.sblock("name"):`: T.block, or statements of a kernel under a name."""
    return AttrFrame(cx.recorder.reducer) if cx.recorder.in_kernel else program.block(cx, name)


def type_annotation(cx: Context, dtype: object) -> object:
    """`T.type_annotation(dtype)`: the first argument of T.tvm_access_ptr."""
    return as_dtype(dtype, "the argument of T.type_annotation")


def async_copy(cx: Context, src: object, dst: object, **options: object) -> None:
    """`T.async_copy(src, dst)`: a copy, and a group for T.ptx_wait_group; here it is done when it returns."""
    cx.recorder.require_tile_operation("T.async_copy")
    source, target = operands(cx, "T.async_copy", src, dst)
    if source.buffer.scope is not Scope.GLOBAL or target.buffer.scope is not Scope.SHARED:
        raise Fault(
            "T2C-F023",
            f"T.async_copy copies from a tensor to a shared tile, not from {describe(source.buffer)} to "
            f"{describe(target.buffer)}",
            help="write T.copy",
        )
    at = cx.recorder.peek()
    if is_spread(cx, source, target):
        spread(cx, source, target, None)
    else:
        laid_out = options.get("loop_layout") is not None
        cx.recorder.emit(Copy(src=source, dst=target, laid_out=laid_out, **cx.recorder.take().fields))
    cx.recorder.emit(CallStmt(call=Call(INT32, "cp_async_commit", ()), span=at.span))


FUNCTIONS: dict[str, Callable[..., object]] = {
    "If": if_frame,
    "Then": _branch_frame("Then"),
    "Else": _branch_frame("Else"),
    "While": while_frame,
    "any_of": partial(_any_or_all, "any_of"),
    "all_of": partial(_any_or_all, "all_of"),
    "tvm_storage_sync": storage_sync,
    "fast_rcp": fast_rcp,
    "__ldg": load_read_only,
    "decl_buffer": decl_buffer,
    "sblock_alloc_buffer": alloc.alloc_buffer,
    "handle": handle,
    "match_buffer": match_buffer,
    "tvm_access_ptr": tvm_access_ptr,
    "type_annotation": type_annotation,
    "async_copy": async_copy,
    "func_attr": program.hint,
    "reads": program.hint,
    "writes": program.hint,
    "sblock_attr": program.hint,
    "sblock": sblock,
    "annotate_safe_value": annotate_safe_value,
}
