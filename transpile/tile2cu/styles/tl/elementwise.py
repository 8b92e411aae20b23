"""Elementwise loops: over elements, or over vectors of them."""

from collections.abc import Iterator
from contextlib import contextmanager

from tile2cu.analysis.accesses import moved_index
from tile2cu.core.dtype import BOOL, FLOAT32
from tile2cu.core.expr import Call, Load, walk
from tile2cu.core.program import Buffer
from tile2cu.plan.structure import DotsOfFour, Elementwise, Let
from tile2cu.styles.base.expressions import Printer
from tile2cu.styles.tl import vocabulary as tl

_OF_FLOATS = frozenset(("exp", "exp2", "log", "log2", "sqrt", "rsqrt", "tanh", "sigmoid"))


@contextmanager
def packets(op: Elementwise, printer: Printer, *, any_order: bool = False) -> Iterator[None]:
    """Prints what a loop does, over vectors or over elements."""
    last = op.vars[-1] if op.vector > 1 else None
    printer.packet, printer.any_order = last, any_order
    if last is not None and op.neighbours:  # of others each element is asked
        printer.ramps.append(last)
        printer.vector = op.vector
        printer.of_packets = {last}
    yield
    printer.packet, printer.any_order, printer.vector = None, False, 1
    printer.ramps.clear()


def dots_of_four(op: DotsOfFour, printer: Printer) -> str:
    """Four products of bytes at a time, in each element of the vector."""
    dot = op.dot
    place = ", ".join(printer.index(index) for index in dot.sum.indices)
    sum_, less = printer.element(dot.sum.buffer, dot.sum.indices), f" - {dot.less}" if dot.less else ""
    packed = f"{tl.UNPACK_UINT2}({printer.tile(dot.packed)}({place})){less}"
    quads = f"{tl.GROUPS_OF_4}({printer.tile(dot.tile)}, {printer.index(dot.sum.indices[-1])})"
    name = tl.DP4A_TOTAL if dot.in_total else tl.DP4A
    return f"{sum_} = {printer.names.noting(name)}({packed}, {quads}, {sum_});"


def let(op: Let, printer: Printer) -> str:
    """A value with a name; in a loop over vectors it is one of each element, or of all."""
    name, dtype = printer.names(op.var.name), op.var.dtype.cpp
    if op.var.dtype is BOOL:
        return f"const bool {name} = {printer.condition(op.value)};"
    if printer.is_run(op.value):
        return f"const {dtype} {name} = {printer.first(op.value)};"
    value = printer.text(op.value, op.var.dtype)
    if printer.packet is None or not _varies(op, printer):
        return f"const {dtype} {name} = {value};"
    if moved_index(op.source, printer.packet):
        printer.ramps.append(op.var)
        return f"const auto {name} = {printer.index(op.value)};"
    if _has_its_type(op) or _is_value(op, printer):
        return f"const auto {name} = {value};"
    return f"const auto {name} = {tl.CAST}<{dtype}>({value});"


def _varies(op: Let, printer: Printer) -> bool:
    """Whether a value may differ from element to element of a vector."""
    if not printer.ramps:
        return True
    varies = not printer.of_packets.isdisjoint(walk(op.value))
    printer.of_packets |= {op.var} if varies else set()
    return varies


def _is_value(op: Let, printer: Printer) -> bool:
    """Whether it names elements of a tensor of constants: those are values; of others they would be read again."""
    if not printer.ramps or not op.constant or not isinstance(op.value, Load):
        return False
    assert isinstance(op.value.buffer, Buffer)
    dtype = op.value.buffer.dtype
    return dtype == op.var.dtype and dtype.in_memory == dtype.cpp


def _has_its_type(op: Let) -> bool:
    """Whether the C++ of a value states the type of its vectors already."""
    value = op.value
    if not isinstance(value, Call) or value.dtype != op.var.dtype:
        return False
    return value.function == "cast" or (value.function in _OF_FLOATS and value.dtype == FLOAT32)
