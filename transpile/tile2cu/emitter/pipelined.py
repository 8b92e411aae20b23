"""Loops whose loads run ahead of them: their turns, what is said of them, and the parts that they are printed in."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING

from tile2cu.analysis.accesses import (
    expressions,
    variables,
    viewed,
    without_unused_lets,
)
from tile2cu.analysis.prelude import around, is_one_turn
from tile2cu.core.decisions import MMA_IN_FLIGHT, MMA_OVERLAP, PING_PONG, PREFETCHED_VECTORS
from tile2cu.core.expr import Role, Var, binary, static_value
from tile2cu.core.program import Copy, Loop, Stmt, walk_stmts
from tile2cu.core.schedule import InFlight, Pipeline
from tile2cu.emitter.dealt import dealt_turns
from tile2cu.emitter.overlap import overlapped
from tile2cu.emitter.tma import persistent_in, rings
from tile2cu.plan.pipelined import number_of
from tile2cu.plan.rings import publishes_iteration
from tile2cu.styles.base.comments import BODY_WIDTH, listed, wrapped
from tile2cu.styles.base.view import StatementView
from tile2cu.styles.tl import vocabulary as tl
from tile2cu.styles.tl.constants import WRITTEN_SLOTS
from tile2cu.styles.tl.pipelined import part_name, staged_tile

if TYPE_CHECKING:
    from tile2cu.emitter.statements import Statements


def pipelined(op: Loop, pipeline: Pipeline, statements: "Statements") -> StatementView:
    """A loop whose loads a producer runs ahead, which has a part of its own."""
    overlap = statements.facts.get(op, MMA_OVERLAP)
    in_flight = statements.facts.get(op, MMA_IN_FLIGHT)
    dealt = statements.facts.get(op, PING_PONG)
    with turns_of(op, pipeline, statements) as turns:
        if overlap is not None and statements.is_loading:
            return StatementView("load_taken", turns, body=statements.body(pipeline.loads))
        if overlap is not None:
            return overlapped(op, overlap, turns, statements)
        if dealt is not None:
            return dealt_turns(dealt, turns, statements)
        if in_flight is not None:
            return _in_flight(op, in_flight, turns, statements)
        if statements.is_loading:
            loads = statements.body(pipeline.loads)
            return StatementView("produce_turn" if is_one_turn(op) else "produce", turns, body=loads)
        if is_one_turn(op):
            note = "The turn waits until TMA has filled the slot; at its end each warp frees it"
            return StatementView("consume_turn", turns, comments=(note,), body=statements.body(pipeline.body))
        note = f"Each turn waits until TMA has filled the slot of tile {turns['turn']}; at its end each warp frees it"
        unused = turns["slot"] and not _mentions(pipeline.body, op.var)  # without a slot the tiles' places do
        kind = "[[maybe_unused]] int" if unused else "int"
        parts = {**turns, "kind": kind, "variable": "" if unused else turns["variable"]}
        ahead = _lines_ahead(op, turns, statements)
        turn = pipeline.body
        if ahead:  # the loads of lines have values of their own
            turn = without_unused_lets(turn, but=statements.facts[op, PREFETCHED_VECTORS].copies)
        view = StatementView("consume", parts, body=statements.body(turn), orelse=ahead)
        return replace(view, notes=tuple(wrapped(note, BODY_WIDTH))) if ahead else replace(view, comments=(note,))


def _lines_ahead(op: Loop, turns: dict[str, str], statements: "Statements") -> tuple[StatementView, ...]:
    """What stands before a loop whose lines are loaded a turn ahead: registers, the load, and the first turn's."""
    found = statements.facts.get(op, PREFETCHED_VECTORS)
    if found is None:
        return ()
    names, turn, trips = statements.printer.names, turns["turn"], turns["trips" if turns["slot"] else "turns"]
    tiles = {id(copy): staged_tile(copy, statements.printer, tl.LINE_AHEAD) for copy in found.copies}
    rule, load = statements.facts.rule(op, PREFETCHED_VECTORS), names.fresh("load_lines")
    about = f"{', '.join(tile.name for tile in tiles.values())}: the next turn's, loaded under this one's products"
    copies, outside = frozenset(tiles), statements.where
    statements.operations.copies.registers.update({key: tile.name for key, tile in tiles.items()})
    statements.where = replace(outside, to_registers=outside.to_registers | copies)
    loads = tuple(map(statements.statement, (*found.lets, *found.copies)))
    statements.where = replace(outside, from_registers=outside.from_registers | copies)
    statements.printed.behind |= {id(found.copies[-1]): f"{load}(tl::min({turn} + 1, {trips} - 1));"}
    lines = [*wrapped(f"{about}  [{rule}]", BODY_WIDTH)]
    declared = [f"// {line}" for line in lines] + [tile.declaration for tile in tiles.values()]
    part = {"name": load, "argument": turn, "variable": turns["variable"]}
    known = trips.isdigit() and int(trips) > 0
    return (
        StatementView("line", {"text": "\n".join(declared)}),
        StatementView("part", part, body=loads),
        StatementView("line", {"text": f"{load}(0);" if known else f"if ({trips} > 0) {load}(0);"}),
    )


def _in_flight(op: Loop, found: InFlight, turns: dict[str, str], statements: "Statements") -> StatementView:
    """A loop whose product is in flight while the next turn writes its operand."""
    if found.copied is not None:
        return _in_flight_from_registers(op, found, found.copied, turns, statements)
    turn, names = turns["turn"], statements.printer.names
    tiles, sums = [names(tile.name) for tile in found.written], [names(each.c.buffer.name) for each in found.products]
    slots = "has" if len(tiles) == 1 else "have"
    what, are, these, their = (
        ("product", "is", "this one stays", "its") if len(sums) == 1 else ("products", "are", "these stay", "their")
    )
    statements.printer.slots |= {tile.name: f"{turn} % {WRITTEN_SLOTS}" for tile in found.written}
    views = statements.body((*found.before, *found.products))
    before, products = views[: -len(sums)], views[-len(sums) :]
    starts = (replace(product, parts={**product.parts, "name": "gemm_start"}) for product in products)
    note = (
        f"Turns overlap: the {what} of turn {turn} - 1 {are} in flight while turn {turn} writes {listed(tiles)}, which "
        f"{slots} two slots. All warps waited for the {what} of turn {turn} - 2, the last that read the slot  "
        f"[{statements.facts.rule(op, MMA_IN_FLIGHT)}]"
    )
    settled_first = [f"tl::settle({name});" for name in sums]
    parts = {
        **turns,
        "settle": "\n".join(settled_first) + f"  // {their} registers are written before products in flight take them",
        "wait": f"tl::gemm_wait<{len(sums)}>();  // the {what} of the turn before {are} there, {these} in flight",
        "end": "\n".join(f"tl::gemm_wait<0>({name});" for name in sums),
    }
    return StatementView("in_flight", parts, comments=(note,), body=(*before, *starts))


def _in_flight_from_registers(
    op: Loop, found: InFlight, copied: Copy, turns: dict[str, str], statements: "Statements"
) -> StatementView:
    """The same where the product has a copy of its operand in registers: the parts of a turn, each once."""
    turn, names, settled = turns["turn"], statements.printer.names, statements.settled
    tile, sum_ = names(copied.src.buffer.name), names(found.product.c.buffer.name)
    prepare, start = (
        part_name(name, number_of(op, settled), statements.printer) for name in (f"prepare_{tile}", f"start_{sum_}")
    )
    (product,) = statements.body((found.product,))
    started = replace(product, parts={**product.parts, "name": "gemm_start"})
    bodies = {prepare: statements.body(found.before), start: (started,)}
    parts = tuple(
        StatementView("part", {**turns, "name": name, "argument": turn}, body=body) for name, body in bodies.items()
    )
    about = (
        f"Turns overlap: the product of turn {turn} - 1, which reads a copy of {tile}, stands behind what comes before "
        f"that of turn {turn}. Neither needs the other: the compiler loads what is prepared, starts the product, and "
        f"prepares the rest while it is in flight  [{statements.facts.rule(op, MMA_IN_FLIGHT)}]"
    )
    return StatementView(
        "in_flight_from_registers",
        {**turns, "sum": sum_, "prepare": prepare, "start": start},
        notes=tuple(wrapped(about, BODY_WIDTH)),
        body=parts,
        orelse=(statements.statement(copied),),
    )


@contextmanager
def turns_of(op: Loop, pipeline: Pipeline, statements: "Statements") -> Iterator[dict[str, str]]:
    """The texts of a pipelined loop's turns, which count from 0; inside, its tiles print with their turn's slot."""
    name = statements.printer.names(op.var.name)
    from_zero = static_value(op.start) == 0
    turn = name if from_zero else f"{name}_turn"
    stages = statements.constants.stages(pipeline.stages)
    inside = pipeline.producer and around(statements.settled.launch.body, op)
    slot = ring_slot(statements) if inside and statements.facts.get(op, MMA_OVERLAP) is None else ""
    trips = statements.printer.text(op.stop if from_zero else binary("-", op.stop, op.start))
    named = from_zero and isinstance(op.stop, Var) and op.stop.role is not Role.MUTABLE
    outside = dict(statements.printer.slots)
    tiles = [view for tile in pipeline.buffers for view in (tile, *viewed(statements.settled.launch, tile))]
    stays = persistent_in(statements.settled) is not None
    own = rings(statements.settled, statements.printer)
    told = [ring.tile for ring in own if publishes_iteration(ring.tile, statements.settled)]
    before = "before + " if stays else ""  # a ring counts the turns of all tiles
    first_before = f"{before}round + " if told else before  # and a slot that ends a tile
    if told and statements.is_loading:  # who finds the turns counts them there
        turn, counted, first_counted = "before", "before", "(before + round)"
    else:
        counted, first_counted = (f"({each}{turn})" if stays else turn for each in (before, first_before))
    statements.printer.slots |= {tile.name: slot or f"{counted} % {stages}" for tile in tiles}
    statements.printer.slots |= {tile.name: f"{first_counted} % {stages}" for tile in told}
    yield {
        "slot": slot,
        "turn": turn,
        "before": before,
        "first_before": first_before,
        "told": "yes" if told else "",
        "load": part_name("load", number_of(op, statements.settled), statements.printer),
        "stages": stages,
        "trips": trips,
        "turns": trips if named else "turns",
        "variable": "" if from_zero else f"const int {name} = {statements.printer.text(op.start)} + {turn};",
    }
    statements.printer.slots = outside


def _mentions(body: tuple[Stmt, ...], var: Var) -> bool:
    return any(var in variables(*expressions(stmt)) for stmt in walk_stmts(body))


def ring_slot(statements: "Statements") -> str:
    """The slot of a producer's ring whose turn it is, where the loop stands in others and the ring goes on."""
    return statements.printer.names("__slot")
