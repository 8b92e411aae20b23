"""T.Parallel loops of a kernel's body, as views for the templates: over elements, or over packets of them."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING

from tile2cu.analysis.accesses import expressions, variables
from tile2cu.core.decisions import (
    DOT_OF_FOUR,
    ELECTED_WRITERS,
    IN_REGISTERS,
    LAYOUT,
    PACKED_GROUP,
    PERMUTATION_INVARIANT,
    STORE_LAST,
    TRANSPOSED,
    VECTOR,
)
from tile2cu.core.expr import Load
from tile2cu.core.facts import Facts
from tile2cu.core.layout import Blocked
from tile2cu.core.program import Atomic, Buffer, Parallel, Store, walk_stmts
from tile2cu.core.schedule import DotOfFour
from tile2cu.emitter.scalars import is_packet_added
from tile2cu.styles.base.view import StatementView
from tile2cu.styles.tl.expressions import Printer

if TYPE_CHECKING:
    from tile2cu.emitter.statements import Statements

# Of names in an elementwise loop that do not speak for themselves.
_SAID_OF_NAMES = {
    "tl::packet<": "tl::packet<n>(j): j and the n - 1 behind it, added by one instruction where the chip has one",
    "tl::quotient<": "tl::quotient<n>(j): what lies at j / n, one element for n of a packet or for all of it",
    "tl::remainder<": "tl::remainder<n>(j): j % n, whose packets follow one another as j's do",
    "tl::first_index(": "tl::first_index(j): what holds for a packet's first element holds for all",
    "tl::nibbles(": "tl::nibbles(bytes): the 4 bits that each element of the packet has of them",
    "tl::nibbles_apart(": (
        "tl::nibbles_apart(bytes): the 4 bits that each element has of them, numbers i and i + 4 of eight side by "
        "side; tl::apart(x): x in that order"
    ),
    "tl::dot_4(": (
        "tl::dot_4(tl::quarters(bytes), tl::quads(x, j), sum): the four numbers of 2 bits of each byte times x(4 j) to "
        "x(4 j + 3), added to sum"
    ),
    "tl::dot_4_in_total(": (
        "tl::dot_4_in_total(tl::quarters(bytes), tl::quads(x, j), sum): the four numbers of 2 bits of each byte times "
        "x(4 j) to x(4 j + 3), added to the first of the packet's sums: only their total is read"
    ),
    "tl::cast_small<": "tl::cast_small: integers from -512 to 511, exactly, without the conversion unit",
}


def parallel(op: Parallel, statements: "Statements") -> StatementView:
    """A loop over elements, with a word on each of its means that does not speak for itself."""
    facts, names = statements.facts, statements.printer.names
    if facts.get(op, TRANSPOSED):
        return _transposed(op, statements)
    vector, owners = facts[op, VECTOR], facts[op, ELECTED_WRITERS]
    used = {part.name for stmt in walk_stmts(op.body) for part in variables(*expressions(stmt))}
    layout = statements.layouts.of_loop(op)
    in_registers = facts.get(op, IN_REGISTERS) is True
    parts = {
        "name": "parallel_once" if owners == "once" else "parallel_in_registers" if in_registers else "parallel",
        "vector": str(vector) if vector > 1 else "",
        "layout": layout,
        "into": "",
        "indices": ", ".join(f"auto {names(v.name)}" if v.name in used else "auto" for v in op.vars),
    }
    dot = facts.get(op, DOT_OF_FOUR)
    any_order = facts.get(op, PERMUTATION_INVARIANT) is True
    with _packets(statements, op, any_order=any_order):
        statements.replicated = layout if owners == "stores" else None
        body = statements.elements(op.body) if dot is None else (_dot_of_four(dot, statements.printer),)
        statements.replicated = None
    packets = [f"{_elements_at_a_time(op, facts)}  [{facts.rule(op, VECTOR)}]"] if vector > 1 else []
    if in_registers:
        packets.append(f"idle lanes compute, too: nobody branches  [{facts.rule(op, IN_REGISTERS)}]")
    if any_order:
        rule = facts.rule(op, PERMUTATION_INVARIANT)
        packets.append(f"in the order in which the numbers come apart: only totals are read  [{rule}]")
    if facts.get(op, PACKED_GROUP) == 1:
        rule = facts.rule(op, PACKED_GROUP)
        packets.append(f"two threads may write halves of one byte: each by an atomic operation  [{rule}]")
    shown = " ".join(str(view.parts) for view in body)
    comments = (*packets, *(about for name, about in _SAID_OF_NAMES.items() if name in shown))
    if facts.get(op, STORE_LAST):
        return _parallel_into(op, parts, body, comments, statements)
    if dot is not None:
        return StatementView("parallel_line", parts, dot.sum.span.line, comments, body)
    alone = len(op.body) == 1 and (isinstance(op.body[0], Store | Atomic) or is_packet_added(op.body[0], facts))
    if alone and body[0].kind == "line" and not body[0].comments:
        return StatementView("parallel_line", parts, op.body[0].span.line, comments, body)
    return StatementView("parallel", parts, 0, comments, body)


@contextmanager
def _packets(statements: "Statements", op: Parallel, *, any_order: bool = False) -> Iterator[None]:
    """Prints what a loop does, over packets or over elements."""
    last = op.vars[-1] if statements.facts[op, VECTOR] > 1 else None
    statements.printer.packet, statements.printer.any_order = last, any_order
    if last is not None and isinstance(statements.facts[op, LAYOUT], Blocked):  # of others each element is asked
        statements.printer.ramps.append(last)
        statements.printer.vector = statements.facts[op, VECTOR]
        statements.of_packets = {last}
    yield
    statements.printer.packet, statements.printer.any_order, statements.printer.vector = None, False, 1
    statements.printer.ramps.clear()


def _transposed(op: Parallel, statements: "Statements") -> StatementView:
    """A loop that copies a shared tile's rows to a fragment's columns."""
    (store,) = op.body
    assert isinstance(store, Store) and isinstance(store.value, Load) and isinstance(store.value.buffer, Buffer)
    arguments = (
        f"tl::transposed({statements.printer.tile(store.value.buffer)}), {statements.printer.tile(store.buffer)}"
    )
    comment = f"ldmatrix transposes on the way  [{statements.facts.rule(op, TRANSPOSED)}]"
    parts = {"name": "copy", "template": "", "arguments": arguments}
    return StatementView("call", parts, store.span.line, (comment,))


def _elements_at_a_time(op: Parallel, facts: Facts) -> str:
    vector = facts[op, VECTOR]
    if isinstance(facts[op, LAYOUT], Blocked):
        return f"{vector} elements at a time"
    return f"{vector} elements at a time: what a thread holds of {4 * vector} columns of a row"


def _dot_of_four(dot: DotOfFour, printer: Printer) -> StatementView:
    """Four products of bytes at once, in each element of the packet."""
    place = ", ".join(printer.index(index) for index in dot.sum.indices)
    sum_, less = printer.element(dot.sum.buffer, dot.sum.indices), f" - {dot.less}" if dot.less else ""
    packed = f"tl::quarters({printer.tile(dot.packed)}({place})){less}"
    quads = f"tl::quads({printer.tile(dot.tile)}, {printer.index(dot.sum.indices[-1])})"
    name = "tl::dot_4_in_total" if dot.in_total else "tl::dot_4"
    return StatementView("line", {"text": f"{sum_} = {name}({packed}, {quads}, {sum_});"}, dot.sum.span.line)


def _parallel_into(
    op: Parallel,
    parts: dict[str, str],
    body: tuple[StatementView, ...],
    comments: tuple[str, ...],
    statements: "Statements",
) -> StatementView:
    """A loop whose packets are all computed before the first is stored."""
    store = op.body[-1]
    assert isinstance(store, Store)
    printer = statements.printer
    tile = printer.tile(store.buffer)
    note = (
        f"parallel_into: {printer.names(store.buffer.name)} is stored when all packets are computed, so that "
        f"no load waits for a store  [{statements.facts.rule(op, STORE_LAST)}]"
    )
    with _packets(statements, op):
        result = f"return {printer.text(store.value, store.buffer.dtype)};"
    body = (*body[:-1], replace(body[-1], parts={"text": result}))
    parts = {**parts, "name": "parallel_into", "into": tile}
    return StatementView("parallel", parts, 0, (*comments, note), body)
