"""The outer forms: kernels, tensors, open sizes, hints on the whole launch."""

import math
from collections.abc import Callable
from functools import partial

from tile2cu.core.dtype import FLOAT32, INT32, DType
from tile2cu.core.expr import int_const
from tile2cu.core.program import Buffer, Scope, SetRegisters, Swizzle
from tile2cu.frontend import builtins
from tile2cu.frontend.context import Context
from tile2cu.frontend.fault import Fault
from tile2cu.frontend.lower import extern, ranks
from tile2cu.frontend.lower.operand import (
    argument_name,
    as_count,
    as_dtype,
    as_flag,
    as_integer,
    as_number,
    as_shape,
    place,
)
from tile2cu.frontend.values import Allocation, KernelFrame, OutputTensor, PipelineFrame, TensorType, describe

DEFAULT_THREADS = 128


def kernel(
    cx: Context, *blocks: object, threads: object = None, prelude: object = None, cluster_dims: object = None
) -> KernelFrame:
    """`T.Kernel(x, y, z, threads=128)`: a grid of one to three extents; one block where none is given.

    With `cluster_dims` (T.ClusterKernel) blocks make clusters of so many along x, y and z.
    """
    extern.paste(cx, prelude, "`prelude` of T.Kernel")
    if len(blocks) > 3:
        raise Fault("T2C-F025", f"T.Kernel takes one to three grid extents, not {len(blocks)}")
    grid = tuple(as_integer(extent, "a grid extent of T.Kernel") for extent in blocks or (1,))
    cluster = ranks.dims(cx, cluster_dims, grid)
    return KernelFrame(grid, _thread_shape(cx, threads), cluster, argument_name(cx, threads))


def block(cx: Context, name: object = "root", threads: object = None) -> object:
    """`with T.block("root"):`: one block, for kernels that are sketched without a grid."""
    return KernelFrame((int_const(1),), _thread_shape(cx, threads))


def pipeline(cx: Context, num_stages: object = 2) -> object:
    """`with T.pipeline():`: the loop inside is T.Pipelined."""
    cx.recorder.require_kernel("T.pipeline")
    return PipelineFrame(as_count(num_stages, "`num_stages` of T.pipeline", least=1))


def _thread_shape(cx: Context, threads: object) -> tuple[int, ...]:
    """Threads of a block along x, y and z."""
    if threads is None:
        return (DEFAULT_THREADS,)
    counts = builtins.items(cx, threads) if isinstance(threads, tuple | list) else [threads]
    shape = tuple(as_count(count, "`threads` of T.Kernel", least=1) for count in counts)
    if math.prod(shape) > 1024:
        raise Fault("T2C-F025", f"T.Kernel asks for {math.prod(shape)} threads; a block has at most 1024")
    return shape


def tensor(cx: Context, shape: object, dtype: object = FLOAT32, data: object = None) -> object:
    """`T.Tensor(shape, dtype)`: a row-major tensor in global memory; with `data`, another's elements in this shape."""
    extents, kind = as_shape(cx, shape, "the shape of T.Tensor"), as_dtype(dtype, "the type of T.Tensor")
    if data is None:
        return TensorType(extents, kind)
    if not isinstance(data, Buffer) or data.scope is not Scope.GLOBAL or data.strides is not None:
        raise Fault("T2C-F023", f"the data of T.Tensor is {describe(data)}", help="write `tensor.data` of a parameter")
    if data.dtype != kind:
        raise Fault("T2C-F023", f"`{data.name}` holds {data.dtype}, and is shown as {kind}")
    return TensorType(extents, kind, data=data)


def strided_tensor(cx: Context, shape: object, strides: object, dtype: object = FLOAT32) -> object:
    """`T.StridedTensor(shape, strides, dtype)`; strides are in elements."""
    extents = as_shape(cx, shape, "the shape of T.StridedTensor")
    steps = as_shape(cx, strides, "the strides of T.StridedTensor")
    if len(extents) != len(steps):
        raise Fault("T2C-F023", f"T.StridedTensor has {len(extents)} extents and {len(steps)} strides")
    return TensorType(extents, as_dtype(dtype, "the type of T.StridedTensor"), steps)


def fixed_sizes(cx: Context, names: object, dtype: object = INT32) -> object:
    """`T.const("M, N")`: sizes from the tensors' shapes, each value of which is a kernel of its own where a program
    calls it.
    """
    found = open_sizes(cx, names, dtype)
    cx.bindings.fixed.update(dict.fromkeys(str(names).replace(",", " ").split()))
    return found


def open_sizes(cx: Context, names: object, dtype: object = INT32) -> object:
    """`T.dynamic("m")`: sizes that come from the tensors' shapes."""
    if not isinstance(names, str):
        raise Fault("T2C-F023", 'the names of open sizes are given as one string: "M, N"')
    as_dtype(dtype, "the type of an open size")
    found = [name for name in names.replace(",", " ").split() if name]
    wrong = next((name for name in found if not name.isidentifier()), None)
    if wrong is not None or not found:
        raise Fault("T2C-F023", f"{(wrong or names)!r} is no name of a size")
    sizes = tuple(cx.size(name, place(cx)) for name in found)
    return sizes[0] if len(sizes) == 1 else sizes


def empty(cx: Context, *shape: object, dtype: object = FLOAT32) -> object:
    """`T.empty(shape, dtype)`: a tensor that the caller allocates and gets back."""
    extents = shape
    if isinstance(shape[0] if shape else None, tuple | list):
        extents, rest = tuple(builtins.items(cx, shape[0])), shape[1:]
        dtype = rest[0] if rest else dtype
    elif len(shape) > 1 and isinstance(shape[-1], str | DType):
        extents, dtype = shape[:-1], shape[-1]
    return OutputTensor(as_shape(cx, extents, "the shape of T.empty"), as_dtype(dtype, "the type of T.empty"))


def dtype(cx: Context, value: object) -> object:
    """`T.dtype("float16")`."""
    return as_dtype(value, "T.dtype")


def use_swizzle(cx: Context, panel_size: object, order: object = "row", enable: object = True) -> None:
    """`T.use_swizzle(panel_size)`: blocks take output tiles panel by panel, for the sake of the L2 cache."""
    cx.recorder.require_kernel("T.use_swizzle")
    panel = as_count(panel_size, "the panel of T.use_swizzle", least=1)
    if order not in ("row", "column", "col"):
        raise Fault("T2C-F023", '`order` of T.use_swizzle is "row" or "column"')
    if as_flag(enable, "`enable` of T.use_swizzle"):
        cx.recorder.emit(Swizzle(panel=panel, order=str(order), **cx.recorder.take().fields))


def annotate_min_blocks_per_sm(cx: Context, num: object) -> None:
    """`T.annotate_min_blocks_per_sm(n)`: threads get so few registers that n blocks fit an SM."""
    cx.recorder.require_kernel("T.annotate_min_blocks_per_sm")
    cx.recorder.ask_for_blocks(as_count(num, "the blocks of T.annotate_min_blocks_per_sm", least=1))


def hint(cx: Context, *arguments: object, **options: object) -> None:
    """A hint to another compiler that changes no result."""


def set_max_nreg(cx: Context, reg_count: object, is_inc: object) -> None:
    """`T.set_max_nreg(n, is_inc)`: how many registers the threads that come there have from then on."""
    _set_registers(cx, "T.set_max_nreg", reg_count, more=bool(as_count(is_inc, "`is_inc`")))


def inc_max_nreg(cx: Context, reg_count: object) -> None:
    """`T.inc_max_nreg(n)`: the threads take registers."""
    _set_registers(cx, "T.inc_max_nreg", reg_count, more=True)


def dec_max_nreg(cx: Context, reg_count: object) -> None:
    """`T.dec_max_nreg(n)`: the threads hand registers over."""
    _set_registers(cx, "T.dec_max_nreg", reg_count, more=False)


def _set_registers(cx: Context, name: str, reg_count: object, *, more: bool) -> None:
    cx.recorder.require_kernel(name)
    if cx.recorder.parallel:
        raise Fault("T2C-F026", f"{name} cannot be inside T.Parallel")
    count = as_count(reg_count, f"the registers of {name}")
    cx.recorder.emit(SetRegisters(count=count, more=more, **cx.recorder.take().fields))


def not_called(name: str, cx: Context, /, *arguments: object, **named: object) -> object:
    """Names that are decorators or have members only."""
    raise Fault("T2C-F012", f"T.{name} cannot be called here")


def make_tensor(cx: Context, ptr: object, shape: object, dtype: object = FLOAT32, strides: object = None) -> object:
    """`T.make_tensor(ptr, shape, dtype)`: the tensor at an address, which an argument or a table of them gives."""
    address = as_number(ptr, "the address of T.make_tensor")
    if not address.dtype.is_int or address.dtype.bits != 64:
        raise Fault(
            "T2C-F023",
            f"the address of T.make_tensor is {address.dtype}",
            help="write `table: T.Tensor((n,), T.ptr)`, or `address: T.ptr`",
        )
    extents = as_shape(cx, shape, "the shape of T.make_tensor")
    steps = None if strides is None else as_shape(cx, strides, "the strides of T.make_tensor")
    if steps is not None and len(steps) != len(extents):
        raise Fault("T2C-F023", f"T.make_tensor has {len(extents)} extents and {len(steps)} strides")
    kind = as_dtype(dtype, "the type of T.make_tensor")
    return Allocation(extents, kind, Scope.GLOBAL, address=address, strides=steps)


FUNCTIONS: dict[str, Callable[..., object]] = {
    "Kernel": kernel,
    "ClusterKernel": kernel,
    "block": block,
    "pipeline": pipeline,
    "Tensor": tensor,
    "Buffer": tensor,
    "StridedTensor": strided_tensor,
    "make_tensor": make_tensor,
    "const": fixed_sizes,
    "dynamic": open_sizes,
    "symbolic": open_sizes,
    "empty": empty,
    "dtype": dtype,
    "DataType": dtype,
    "use_swizzle": use_swizzle,
    "assume": hint,
    "disable_warp_group_reg_alloc": hint,
    "no_set_max_nreg": hint,
    "warpgroup_fence_operand": hint,  # MMAs state themselves which registers they write
    "set_max_nreg": set_max_nreg,
    "inc_max_nreg": inc_max_nreg,
    "dec_max_nreg": dec_max_nreg,
    "annotate_l2_hit_ratio": hint,
    "annotate_min_blocks_per_sm": annotate_min_blocks_per_sm,
    "annotate_restrict_buffers": hint,
    "annotate_compile_flags": hint,
    "annotate_pass_configs": hint,
    "annotate_producer_reg_dealloc": hint,
    "annotate_consumer_reg_alloc": hint,
    "Ref": partial(not_called, "Ref"),
    "prim_func": partial(not_called, "prim_func"),
    "macro": partial(not_called, "macro"),
    "GemmWarpPolicy": partial(not_called, "GemmWarpPolicy"),
}
