"""Tensors as the kernel sees them."""

from tile2cu.plan.structure import BindTensor
from tile2cu.plan.tensors import TensorView
from tile2cu.styles.base.expressions import Printer
from tile2cu.styles.base.vocabulary import ANY_ALIGNMENT
from tile2cu.styles.tl import vocabulary as tl


def parameter(view: TensorView, printer: Printer) -> str:
    """The declaration of a tensor whose data is a parameter."""
    tensor = view.tensor
    data = f"{printer.names(tensor.memory.name)}_data"
    if tensor.dtype != tensor.memory.dtype:
        data = f"{tl.BITS_AS}<{tensor.dtype.in_memory}>({data})"
    return _declared(view, data, printer)


def located(op: BindTensor, printer: Printer) -> str:
    """The declaration of a tensor at an address."""
    tensor = op.view.tensor
    assert tensor.address is not None
    const = "" if op.written else "const "
    data = f"{tl.DATA_AT}<{const}{tensor.dtype.in_memory}>({printer.text(tensor.address)})"
    return _declared(op.view, data, printer)


def _declared(view: TensorView, data: str, printer: Printer) -> str:
    tensor = view.tensor
    extents = [
        f"{tl.PREDICATED}({printer.index(extent)})" if checked else printer.index(extent)
        for extent, checked in zip(tensor.shape, view.checked, strict=True)
    ]
    start = f"{tl.ALIGNED}<{view.alignment}>" if view.alignment else ANY_ALIGNMENT
    start = "Alignment" if view.by_instance else start
    call = f"{tl.TENSOR}<{start}>({data}, {', '.join(extents)})"
    if tensor.strides is not None:
        strides = ", ".join(printer.index(stride) for stride in tensor.strides)
        call = f"{tl.STRIDED_TENSOR}<{start}>({data}, {tl.STRIDES}({strides}), {', '.join(extents)})"
    return f"const auto {printer.names(tensor.name)} = {call};"
