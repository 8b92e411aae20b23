"""Statements about single values, and calls by single threads, as views for the templates."""

from dataclasses import replace
from typing import TYPE_CHECKING

from tile2cu.analysis.accesses import moved_index
from tile2cu.analysis.sync_calls import START_KERNELS, WAIT_FOR_KERNELS, is_grid_barrier
from tile2cu.core.decisions import ATOMIC_VECTOR, BOUNDS_CHECKED, CLUSTER_CALL
from tile2cu.core.dtype import BOOL, FLOAT32
from tile2cu.core.expr import Address, Call, Load, walk
from tile2cu.core.facts import Facts
from tile2cu.core.program import Buffer, Effect, Let, Locate, Loop, Scope, Stmt
from tile2cu.emitter.sections import located, touched
from tile2cu.styles.base.view import StatementView

if TYPE_CHECKING:
    from tile2cu.emitter.statements import Statements

_KERNELS = {
    WAIT_FOR_KERNELS: "until here the kernel may run beside those before it on its stream, whose results it reads now",
    START_KERNELS: "a kernel after this one that waits for it by itself may start",
}
_OF_FLOATS = frozenset(("exp", "exp2", "log", "log2", "sqrt", "rsqrt", "tanh", "sigmoid"))


def named(stmt: Let | Locate, statements: "Statements") -> str:
    """A declaration of a value, or of a tensor at an address."""
    match stmt:
        case Let():
            return _let(stmt, statements)
        case Locate():
            return located(stmt.tensor, statements.settled, statements.printer).text


def is_packet_added(stmt: Stmt, facts: Facts) -> bool:
    """Whether a loop's turns are one addition of neighbours."""
    return isinstance(stmt, Loop) and facts.get(stmt, ATOMIC_VECTOR) is not None


def _let(stmt: Let, statements: "Statements") -> str:
    """A value with a name; in a loop over packets it is one of each element, or of all."""
    name, dtype = statements.printer.names(stmt.var.name), stmt.var.dtype.cpp
    if stmt.var.dtype is BOOL:
        return f"const bool {name} = {statements.printer.condition(stmt.value)};"
    if statements.printer.is_run(stmt.value):
        return f"const {dtype} {name} = {statements.printer.first(stmt.value)};"
    value = statements.printer.text(stmt.value, stmt.var.dtype)
    if statements.printer.packet is None or not _varies(stmt, statements):
        return f"const {dtype} {name} = {value};"
    if moved_index(stmt, statements.printer.packet):
        statements.printer.ramps.append(stmt.var)
        return f"const auto {name} = {statements.printer.index(stmt.value)};"
    if _has_its_type(stmt) or _is_value(stmt, statements):
        return f"const auto {name} = {value};"
    return f"const auto {name} = tl::cast<{dtype}>({value});"


def _varies(stmt: Let, statements: "Statements") -> bool:
    """Whether a value may differ from element to element of a packet."""
    if not statements.printer.ramps:
        return True
    varies = not statements.of_packets.isdisjoint(walk(stmt.value))
    statements.of_packets |= {stmt.var} if varies else set()
    return varies


def effect(stmt: Effect, statements: "Statements") -> StatementView:
    """A call; where it is given addresses of a tensor's elements that may lie outside, only if they lie inside."""
    places = [part for part in walk(stmt.call) if isinstance(part, Address) and _may_lie_outside(part, statements)]
    condition = " && ".join(f"tl::inside({statements.printer.last_element(place)})" for place in places)
    text = statements.printer.text(
        replace(stmt.call, function=statements.facts.get(stmt, CLUSTER_CALL) or stmt.call.function)
    )
    if is_grid_barrier(stmt):
        about = "all blocks of the grid come here before any goes on, and see what all have written"
        return StatementView("line", {"text": f"{text};"}, stmt.span.line, (about,))
    if stmt.call.function in _KERNELS:
        return StatementView("line", {"text": f"{text};"}, stmt.span.line, (_KERNELS[stmt.call.function],))
    if places and stmt.call.function.startswith("cp_async<"):  # fills with zeros what it does not read
        *given, count = (statements.printer.argument(arg, arg.dtype) for arg in stmt.call.args)
        text, places = f"tl::{stmt.call.function}({', '.join(given)}, {condition} ? {count} : 0)", []
    line = StatementView("line", {"text": f"{text};"}, stmt.span.line, _about_reader(stmt, statements))
    if not places:
        return line
    return StatementView("branch", {"condition": condition}, 0, (), (line,))


def _about_reader(stmt: Effect, statements: "Statements") -> tuple[str, ...]:
    """Why an arrival at another block's barrier shows nothing that was written."""
    if statements.facts.get(stmt, CLUSTER_CALL) is None or stmt.call.function == "mbarrier_wait_cluster":
        return ()
    rule = statements.facts.rule(stmt, CLUSTER_CALL)
    return (f"it tells that tiles were read; other blocks read nothing that threads wrote  [{rule}]",)


def _may_lie_outside(place: Address, statements: "Statements") -> bool:
    assert isinstance(place.buffer, Buffer)
    return place.buffer.scope is Scope.GLOBAL and any(statements.facts[place.buffer, BOUNDS_CHECKED])


def _is_value(stmt: Let, statements: "Statements") -> bool:
    """Whether it names elements of a tensor of constants: those are values; of others they would be read again."""
    match stmt.value:
        case Load(buffer=Buffer(scope=Scope.GLOBAL) as tensor) if statements.printer.ramps:
            written = {buffer.memory for buffer in touched(statements.settled)[1]}
            same = tensor.dtype == stmt.var.dtype and tensor.dtype.in_memory == tensor.dtype.cpp
            return same and tensor.memory not in written
        case _:
            return False


def _has_its_type(stmt: Let) -> bool:
    """Whether the C++ of a value says the type of its packets already."""
    value = stmt.value
    if not isinstance(value, Call) or value.dtype != stmt.var.dtype:
        return False
    return value.function == "cast" or (value.function in _OF_FLOATS and value.dtype == FLOAT32)
