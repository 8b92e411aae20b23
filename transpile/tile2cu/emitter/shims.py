"""NAME_torch.cpp, NAME_tvm_ffi.cpp and the like: a kernel as other libraries call it, each in one thin file."""

from tile2cu.core.errors import Tile2CuError
from tile2cu.core.expr import Binary, Call, Expr, Var, children, static_value
from tile2cu.core.program import Buffer, Program
from tile2cu.emitter.view import ShimScalarView, ShimSizeView, ShimTensorView, ShimView
from tile2cu.plan.resolved import Resolved
from tile2cu.plan.tensors import access_of
from tile2cu.styles.base.expressions import Printer
from tile2cu.styles.base.names import ascii_name

# c10/core/ScalarType.h, and DLDataTypeCode of dlpack.h with the bits.
_TORCH = {
    "bool": "Bool", "int8": "Char", "int16": "Short", "int32": "Int", "int64": "Long", "uint8": "Byte",
    "uint16": "UInt16", "uint32": "UInt32", "uint64": "UInt64", "float16": "Half", "bfloat16": "BFloat16",
    "float32": "Float", "float64": "Double", "float8_e4m3fn": "Float8_e4m3fn", "float8_e5m2": "Float8_e5m2",
    "float8_e4m3fnuz": "Float8_e4m3fnuz", "float8_e5m2fnuz": "Float8_e5m2fnuz",
    "float8_e8m0fnu": "Float8_e8m0fnu",
}  # fmt: skip
# xla/ffi/api/ffi.h, DataType.
_XLA = {
    "bool": "PRED", "int8": "S8", "int16": "S16", "int32": "S32", "int64": "S64", "uint8": "U8", "uint16": "U16",
    "uint32": "U32", "uint64": "U64", "float16": "F16", "bfloat16": "BF16", "float32": "F32", "float64": "F64",
    "float8_e4m3fn": "F8E4M3FN", "float8_e5m2": "F8E5M2", "float8_e4m3fnuz": "F8E4M3FNUZ",
    "float8_e5m2fnuz": "F8E5M2FNUZ", "float8_e8m0fnu": "F8E8M0FNU",
}  # fmt: skip
_CODES = {"bool": "kDLBool", "int": "kDLInt", "uint": "kDLUInt", "float": "kDLFloat"}
_SPECIAL_CODES = {
    "bfloat16": "kDLBfloat", "float8_e4m3fn": "kDLFloat8_e4m3fn", "float8_e5m2": "kDLFloat8_e5m2",
    "float8_e4m3fnuz": "kDLFloat8_e4m3fnuz", "float8_e5m2fnuz": "kDLFloat8_e5m2fnuz",
    "float8_e8m0fnu": "kDLFloat8_e8m0fnu",
}  # fmt: skip


def shim(launches: tuple[Resolved, ...], printer: Printer, provenance: tuple[str, ...]) -> ShimView:
    """The view that all shims print. Errors: T2C-E031 for what they do not know."""
    program = launches[0].program
    sizes = tuple(_size(size, program, printer) for size in program.sizes)
    tensors = tuple(_tensor(param, launches, printer) for param in program.params if isinstance(param, Buffer))
    return ShimView(
        name=program.name,
        provenance=provenance,
        tensors=tensors,
        scalars=tuple(_scalar(param, printer) for param in program.params if isinstance(param, Var)),
        sizes=sizes,
        params=tuple(printer.names(param.name) for param in program.params),
        schema=_schema(program, launches, sizes),
        device={"cuda": "kDLCUDA", "hip": "kDLROCM"}[launches[0].target.name.partition(":")[0]],
    )


def _tensor(param: Buffer, launches: tuple[Resolved, ...], printer: Printer) -> ShimTensorView:
    dtype = param.dtype
    if param.strides is not None or dtype.name not in _TORCH:
        raise Tile2CuError(
            "T2C-E031", f"`{param.name}` is no dense tensor of a type that other libraries have", param.span
        )
    return ShimTensorView(
        name=printer.names(param.name),
        read=access_of(param, launches) != "write",
        written=access_of(param, launches) != "read",
        dtype=dtype.name,
        torch=_TORCH[dtype.name],
        xla=_XLA[dtype.name],
        code=_SPECIAL_CODES.get(dtype.name, _CODES[dtype.kind]),
        bits=str(dtype.bits),
        rank=str(param.rank),
        extents=tuple(_extent(extent, printer) for extent in param.shape),
    )


def _extent(extent: Expr, printer: Printer) -> str:
    """An extent in plain C++ over the sizes, which are not negative ints: in 64 bits, and 0 where it divides by 0."""
    value = static_value(extent)
    if value is not None:
        return str(int(value))
    return printer.names(extent.name) if isinstance(extent, Var) else _wide(extent, printer)[0]


def _wide(extent: Expr, printer: Printer) -> tuple[str, bool]:
    """(an extent or a part of one in 64 bits, whether it binds tightly)."""
    match extent:
        case _ if (value := static_value(extent)) is not None:
            return str(int(value)), True
        case Binary() | Call(function="ceildiv"):
            lhs, rhs = (
                text if is_tight else f"({text})"
                for text, is_tight in (_wide(side, printer) for side in children(extent))
            )
            if isinstance(extent, Binary) and extent.op not in ("//", "%"):
                return f"{lhs} {extent.op} {rhs}", False
            rounded = f"({lhs} + {rhs} - 1)" if isinstance(extent, Call) else lhs
            quotient = f"{rounded} {'%' if isinstance(extent, Binary) and extent.op == '%' else '/'} {rhs}"
            is_number = static_value(children(extent)[1]) is not None
            return quotient if is_number else f"({rhs} == 0 ? 0 : {quotient})", not is_number
        case Var():
            return f"int64_t({printer.names(extent.name)})", True
        case _:
            raise Tile2CuError("T2C-E031", "an extent of a tensor is more than integer arithmetic of sizes")


def _scalar(param: Var, printer: Printer) -> ShimScalarView:
    wide = "double" if param.dtype.is_float else "bool" if param.dtype.name == "bool" else "int64_t"
    return ShimScalarView(name=printer.names(param.name), type=param.dtype.cpp, wide=wide)


def _size(size: Var, program: Program, printer: Printer) -> ShimSizeView:
    """A size and the tensor and dimension that tell it; without one it is an argument."""
    for param in program.params:
        if isinstance(param, Buffer):
            for dim, extent in enumerate(param.shape):
                if isinstance(extent, Var) and extent == size:
                    return ShimSizeView(name=printer.names(size.name), tensor=printer.names(param.name), dim=str(dim))
    return ShimSizeView(name=printer.names(size.name), tensor="", dim="")


def _schema(program: Program, launches: tuple[Resolved, ...], sizes: tuple[ShimSizeView, ...]) -> str:
    """The operator's signature in torch's notation; written tensors are marked as such."""
    parts, written = [], 0
    for param in program.params:
        if isinstance(param, Buffer):
            mark = ""
            if access_of(param, launches) != "read":
                mark = f"({chr(ord('a') + written)}!)"
                written += 1
            parts.append(f"Tensor{mark} {ascii_name(param.name)}")
        else:
            kind = "float" if param.dtype.is_float else "bool" if param.dtype.name == "bool" else "int"
            parts.append(f"{kind} {ascii_name(param.name)}")
    parts += [f"int {size.name}" for size in sizes if not size.tensor]
    return f"{program.name}({', '.join(parts)}) -> ()"
