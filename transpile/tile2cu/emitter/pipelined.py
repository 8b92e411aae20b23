"""Loops whose loads run ahead of them: their turns, what is said of them, and the parts that they are printed in."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING

from tile2cu.analysis.accesses import (
    buffers_read,
    buffers_written,
    expressions,
    shared,
    variables,
    viewed,
    without_unused_lets,
)
from tile2cu.analysis.prelude import around, is_one_turn
from tile2cu.core.decisions import MMA_IN_FLIGHT, MMA_OVERLAP, PING_PONG, PIPELINE, PREFETCHED_VECTORS
from tile2cu.core.expr import Role, Var, binary, static_value
from tile2cu.core.program import Copy, Loop, Stmt, walk_stmts
from tile2cu.core.schedule import InFlight, Pipeline
from tile2cu.emitter.dealt import dealt_turns
from tile2cu.emitter.overlap import overlapped
from tile2cu.emitter.staged import staged_about, staged_notes, staged_tile
from tile2cu.emitter.storage import loads_name, slots_of, stages_name
from tile2cu.emitter.tma import persistent_in, rings
from tile2cu.plan.rings import publishes_iteration
from tile2cu.styles.base.comments import BODY_WIDTH, listed, wrapped
from tile2cu.styles.base.view import StatementView

if TYPE_CHECKING:
    from tile2cu.emitter.statements import Statements


def pipelined(op: Loop, pipeline: Pipeline, statements: "Statements") -> StatementView:
    """A loop whose loads run ahead: by all threads, or by a producer, which has a part of its own."""
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
        if pipeline.producer and is_one_turn(op):
            note = "The turn waits until TMA has filled the slot; at its end each warp frees it"
            return StatementView("consume_turn", turns, comments=(note,), body=statements.body(pipeline.body))
        if pipeline.producer:
            note = (
                f"Each turn waits until TMA has filled the slot of tile {turns['turn']}; at its end each warp frees it"
            )
            unused = turns["slot"] and not _mentions(pipeline.body, op.var)  # without a slot the tiles' places do
            kind = "[[maybe_unused]] int" if unused else "int"
            parts = {**turns, "kind": kind, "variable": "" if unused else turns["variable"]}
            ahead = _lines_ahead(op, turns, statements)
            turn = pipeline.body
            if ahead:  # the loads of lines have values of their own
                turn = without_unused_lets(turn, but=statements.facts[op, PREFETCHED_VECTORS].copies)
            view = StatementView("consume", parts, body=statements.body(turn), orelse=ahead)
            return replace(view, notes=tuple(wrapped(note, BODY_WIDTH))) if ahead else replace(view, comments=(note,))
        notes = _notes(turns["turn"], pipeline, statements.facts.rule(op, PIPELINE), _read_before(pipeline, statements))
        if pipeline.staged:
            return _staged(op, pipeline, turns, statements)
        loads, body = statements.body(pipeline.loads), statements.body(pipeline.body)
        return StatementView("pipeline", turns, body=body, orelse=loads, notes=notes)


def _lines_ahead(op: Loop, turns: dict[str, str], statements: "Statements") -> tuple[StatementView, ...]:
    """What stands before a loop whose lines are loaded a turn ahead: registers, the load, and the first turn's."""
    found = statements.facts.get(op, PREFETCHED_VECTORS)
    if found is None:
        return ()
    names, turn, trips = statements.printer.names, turns["turn"], turns["trips" if turns["slot"] else "turns"]
    tiles = {id(copy): staged_tile(copy, statements.printer, "LineAhead") for copy in found.copies}
    rule, load = statements.facts.rule(op, PREFETCHED_VECTORS), names.fresh("load_lines")
    about = f"{', '.join(tile.name for tile in tiles.values())}: the next turn's, loaded under this one's products"
    statements.staged |= tiles
    loads = tuple(statements.statement(stmt, []) for stmt in (*found.lets, *found.copies))
    for copy in found.copies:
        del statements.staged[id(copy)]
    statements.lines |= {key: tile.name for key, tile in tiles.items()}
    statements.behind |= {id(found.copies[-1]): f"{load}(tl::min({turn} + 1, {trips} - 1));"}
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
    turn, names, settled = turns["turn"], statements.printer.names, statements.settled
    tiles, sums = [names(tile.name) for tile in found.written], [names(each.c.buffer.name) for each in found.products]
    slots = "has" if len(tiles) == 1 else "have"
    what, are, these, their = (
        ("product", "is", "this one stays", "its") if len(sums) == 1 else ("products", "are", "these stay", "their")
    )
    statements.printer.slots |= {tile.name: f"{turn} % {slots_of(tile, settled)}" for tile in found.written}
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
    turn, names = turns["turn"], statements.printer.names
    tile, sum_ = names(copied.src.buffer.name), names(found.product.c.buffer.name)
    prepare, start = (_lambda_name(name, op, statements) for name in (f"prepare_{tile}", f"start_{sum_}"))
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
        orelse=(statements.statement(copied, []),),
    )


def _staged(op: Loop, pipeline: Pipeline, turns: dict[str, str], statements: "Statements") -> StatementView:
    """A loop whose tiles wait in registers."""
    statements.staged |= {id(copy): staged_tile(copy, statements.printer) for copy in pipeline.copies}
    tiles = [statements.staged[id(copy)] for copy in pipeline.copies]
    about = [f"// {line}" for line in staged_about(tiles, statements.settled.launch.threads)]
    notes = staged_notes(
        turns["turn"], pipeline, statements.facts.rule(op, PIPELINE), _read_before(pipeline, statements)
    )
    stores = [
        f"tl::store({statements.staged[id(copy)].name}, {statements.tile(copy.dst)});" for copy in pipeline.copies
    ]
    return StatementView(
        "staged",
        turns | {"store": _lambda_name("store", op, statements), "stores": "\n".join(stores)},
        body=statements.body(pipeline.body),
        orelse=statements.body(pipeline.loads),
        notes=notes,
        declared=(*about, *(tile.declaration for tile in tiles)),
    )


@contextmanager
def turns_of(op: Loop, pipeline: Pipeline, statements: "Statements") -> Iterator[dict[str, str]]:
    """The texts of a pipelined loop's turns, which count from 0; inside, its tiles print with their turn's slot."""
    name = statements.printer.names(op.var.name)
    from_zero = static_value(op.start) == 0
    turn = name if from_zero else f"{name}_turn"
    stages = stages_name(statements.settled, pipeline.stages)
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
        "load": _lambda_name("load", op, statements),
        "stages": stages,
        "direct": "" if pipeline.direct is None else f", {loads_name(statements.settled, pipeline.direct)}",
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


def _lambda_name(wish: str, op: Loop, statements: "Statements") -> str:
    """The name of the lambda that loads (or stores) a turn's tiles: `wish`, numbered for further loops."""
    loops = [stmt for stmt in walk_stmts(statements.settled.launch.body) if statements.facts.get(stmt, PIPELINE)]
    place = next(number for number, stmt in enumerate(loops, 1) if stmt is op)
    return wish if place == 1 else statements.printer.names(f"__{wish}_{place}")


def _read_before(pipeline: Pipeline, statements: "Statements") -> str:
    """Shared tiles that the turns read and do not load: the pipeline's barrier covers them too."""
    names = [buffer.name for buffer in pipeline.buffers]
    for stmt in pipeline.body:
        names += sorted(buffer.name for buffer in shared(buffers_written(stmt)))
    read = [name for stmt in pipeline.body for name in sorted(b.name for b in shared(buffers_read(stmt)))]
    return ", ".join(statements.printer.names(name) for name in dict.fromkeys(read) if name not in names)


def _notes(name: str, pipeline: Pipeline, rule: str, read_before: str) -> tuple[str, ...]:
    """What a turn of the loop waits for, and what it starts."""
    ahead = pipeline.stages - 1
    if ahead == 0:
        text = f"Each turn loads tile {name}, waits for it, and meets a barrier before and after  [{rule}]"
        return tuple(wrapped(text, BODY_WIDTH))
    publishes = f", and in turn 0 publishes {read_before}" if read_before else ""
    text = (
        f"In each turn a thread waits for its own copies of tile {name}; a barrier then makes all of them visible and "
        f"ends the reads of tile {name} - 1{publishes}; then tile {name} + {ahead}, if there is one, starts to load "
        f"into the slot of tile {name} - 1  [{rule}]"
    )
    return tuple(wrapped(text, BODY_WIDTH))
