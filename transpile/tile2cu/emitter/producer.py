"""The producer's part of a kernel: it comes first, and returns."""

from dataclasses import replace
from typing import TYPE_CHECKING

from tile2cu.analysis.accesses import expressions
from tile2cu.analysis.prelude import around, before, for_loads_alone, is_one_turn, prelude, way_to
from tile2cu.core.decisions import (
    MULTICAST_BLOCKS,
    PERSISTENT,
    PIPELINE,
    PROLOGUE_LOADS,
    REGISTER_SHARES,
    SHARED_LAYOUT,
)
from tile2cu.core.expr import Load, walk
from tile2cu.core.program import Copy, Loop, Stmt
from tile2cu.core.schedule import Dealt, Persistent, Pipeline
from tile2cu.emitter.tma import panels_in, persistent_in, producer_loop, rings
from tile2cu.emitter.way import staying_tile, tile_of_staying, walk_view
from tile2cu.plan.producer import ping_pong_of, second_part
from tile2cu.plan.rings import publishes_iteration
from tile2cu.plan.settled import Settled
from tile2cu.styles.base.comments import BODY_WIDTH, heading, listed, wrapped
from tile2cu.styles.base.view import StatementView

if TYPE_CHECKING:
    from tile2cu.emitter.statements import Statements

_BETWEEN_TILES = "While they end what follows a tile's turns, the next tile's loads are under way. "


def producer(statements: "Statements") -> tuple[StatementView, ...]:
    """What the producer does, and the values that it shares with the others; empty without one."""
    found = producer_loop(statements.settled)
    if found is None:
        return ()
    loop, pipeline = found
    persistent = persistent_in(statements.settled)
    if persistent is not None:
        return _staying(persistent, loop, pipeline, statements)
    if around(statements.settled.launch.body, loop):
        return _over_tiles(loop, pipeline, statements)
    settled, names = statements.settled, statements.printer.names
    own = _ring_views(pipeline, statements)
    late = () if own else _behind_first_loads(statements)
    shared = statements.paragraphs(tuple(stmt for stmt in statements.hoisted if stmt not in late))
    read_meanwhile = statements.paragraphs(late)
    with statements.iterations(loop, pipeline) as turns:
        loads = statements.body(pipeline.loads)
    first = first_loads(settled)
    tiles = ", ".join(f"{names(buffer.name)}[0]" for buffer in pipeline.buffers)
    dealt = ping_pong_of(settled)
    of_panels = _of_panels(dealt, pipeline, statements) if dealt is not None else {"panels": ""}
    shares = "yes" if settled.facts.get(settled.launch, REGISTER_SHARES) is not None else ""
    parts = {**turns.parts, "tiles": tiles, "shares": shares, "rings": "yes" if own else "", **of_panels}
    parts["first"] = "yes" if first else ""
    parts["early"] = "yes" if late else ""
    if settled.facts.get(loop, MULTICAST_BLOCKS) is not None:
        parts["blocks"] = str(settled.facts[loop, MULTICAST_BLOCKS])
        parts["multicast"] = f"[{settled.facts.rule(loop, MULTICAST_BLOCKS)}]"
    place = heading((loop,))[-1]  # the user's words stand above the loop itself
    above = tuple(wrapped(place, BODY_WIDTH))
    note = tuple(wrapped(_note(loop, pipeline, statements), BODY_WIDTH))
    view = StatementView("producer", parts, loop.span.line, above, own or read_meanwhile, loads, note)
    views = (*_first_tiles(first, statements), view)
    return (*shared, *(replace(each, gap=bool(shared) or number > 0) for number, each in enumerate(views)))


def _over_tiles(loop: Loop, pipeline: Pipeline, statements: "Statements") -> tuple[StatementView, ...]:
    """The producer's part where its loop stands in others: it goes through them, too."""
    settled, printer = statements.settled, statements.printer
    shared, walk = statements.paragraphs(statements.hoisted), statements.walk
    if walk is not None:
        way: tuple[StatementView, ...] = (walk_view(walk, statements),)
        body: tuple[StatementView, ...] = (statements.visits(loop),)
    else:
        way, body = (), statements.loading(way_to(loop, pipeline.loads, around(settled.launch.body, loop)))
    shares = "yes" if settled.facts.get(settled.launch, REGISTER_SHARES) is not None else ""
    first, own = first_loads(settled), _ring_views(pipeline, statements)
    parts = {
        "stages": statements.constants.stages(pipeline.stages),
        "tiles": ", ".join(f"{printer.names(buffer.name)}[0]" for buffer in pipeline.buffers),
        "shares": shares,
        "first": "yes" if first else "",
        "slot": printer.names("__slot"),
        "counted": printer.names(loop.var.name) if own else "",
    }
    launch, facts = settled.launch, settled.facts
    ahead = "1 turn" if pipeline.stages == 1 else f"{pipeline.stages} turns"
    who = "One warpgroup more" if shares else "One warp more"
    what = "first what is loaded once, then " if first else ""
    note = (
        f"{who} than the {launch.threads} consumer threads: one thread of it only loads, {what}up to {ahead} ahead, "
        f"as slots are freed. {'' if is_one_turn(loop) else _BETWEEN_TILES}No barrier of the whole block follows  "
        f"[{facts.rule(loop, PIPELINE)}]"
    )
    if shares:
        note += f". Most of its registers go to the consumers  [{facts.rule(launch, REGISTER_SHARES)}]"
    above = tuple(wrapped(note, BODY_WIDTH))
    view = StatementView("producer_over_tiles", parts, loop.span.line, (), body, own, above)
    views = (*way, *_first_tiles(first, statements), view)
    return (*shared, *(replace(each, gap=bool(shared) or number > 0) for number, each in enumerate(views)))


def _ring_views(pipeline: Pipeline, statements: "Statements") -> tuple[StatementView, ...]:
    """The declarations of the rings; none where a loop has one, in a pipeline."""
    names, stages = statements.printer.names, statements.constants.stages(pipeline.stages)
    return tuple(
        StatementView(
            "ring",
            {
                "stages": stages,
                "name": ring.name,
                "barriers": ring.barriers,
                "tile": names(ring.tile.name),
                "turn": names("__Turn") if publishes_iteration(ring.tile, statements.settled) else "",
            },
        )
        for ring in rings(statements.settled, statements.printer)
    )


def _staying(
    persistent: Persistent, loop: Loop, pipeline: Pipeline, statements: "Statements"
) -> tuple[StatementView, ...]:
    """The producer of a block that stays: the same for one tile after the other."""
    settled, names = statements.settled, statements.printer.names
    tile = tile_of_staying(persistent, statements.hoisted, statements)
    first, walk = first_loads(settled), statements.walk
    full = StatementView("line", {"text": "tl::Barrier& full = first_tiles_ring.acquire(round);"})
    begin: tuple[StatementView, ...] = (full, *statements.paragraphs(first))
    if walk is None:
        turns = _turns_of_loads(loop, pipeline, statements)
    else:
        begin = (StatementView("branch", {"condition": "tl::thread() == threads"}, body=begin),)
        turns = _taken_turns(loop, statements)
    tiles = ", ".join(names(load.dst.buffer.name) for load in first)
    parts = {"tiles": tiles, "type": names("__WorkTile"), "work": names("__work"), "place": names("__work_tile")}
    parts |= _drawing(statements)
    parts["told"] = rings(settled, statements.printer)[0].name if walk is not None else ""
    body = (*each_tile(statements), *begin, *turns)
    notes = tuple(wrapped(_staying_note(loop, pipeline, statements), BODY_WIDTH))
    own = _ring_views(pipeline, statements)
    way = () if walk is None else (replace(walk_view(walk, statements), gap=True),)
    return (tile, *way, StatementView("staying", parts, loop.span.line, body=own, orelse=body, notes=notes, gap=True))


def _turns_of_loads(loop: Loop, pipeline: Pipeline, statements: "Statements") -> tuple[StatementView, ...]:
    """What the producer of a block that stays loads in a tile's turns."""
    with statements.iterations(loop, pipeline) as turns:
        loads = statements.body(pipeline.loads)
    done = StatementView("line", {"text": f"before += {turns.turns};"})
    persistent = persistent_in(statements.settled)
    if persistent is not None and persistent.idle is not None:
        return (StatementView("load_turns", turns.parts, loop.span.line, body=loads, gap=True), done)
    given = [StatementView("line", {"text": turns.variable})] * bool(turns.variable)
    each = {"unroll": "no", "variable": turns.turn, "start": "0", "stop": turns.turns}
    each |= {"end": "", "compare": "<", "move": f"++{turns.turn}"}
    return (StatementView("loop", each, loop.span.line, body=(*given, *loads), gap=True), done)


def _taken_turns(loop: Loop, statements: "Statements") -> tuple[StatementView, ...]:
    """The same where turns are skipped; the others are told which are taken, and behind the last that it was."""
    ring, _ = rings(statements.settled, statements.printer)
    end = StatementView("line", {"text": f"if (tl::thread() == threads) {ring.name}.end(before + round);"})
    return (replace(statements.visits(loop), gap=True), end)


def _drawing(statements: "Statements") -> dict[str, str]:
    """How a producer draws tiles, and which it passes over; empty where each block takes its own in turns."""
    settled, names = statements.settled, statements.printer.names
    persistent = persistent_in(settled)
    if persistent is None or not persistent.queue:
        return {"queue": "", "idle": "", "rule": ""}
    idle = statements.printer.text(persistent.idle) if persistent.idle is not None else ""
    given = f"round, {names('__work')}" + f", {names('__work_tile')}" * (not idle)
    draw = "draw" if statements.walk is None else "draw_for_warp"
    return {"queue": f"queue.{draw}({given})", "idle": idle, "rule": settled.facts.rule(settled.launch, PERSISTENT)}


def drawn(statements: "Statements") -> str:
    """How the others see what has been drawn; empty where nothing is."""
    persistent = persistent_in(statements.settled)
    queue = persistent is not None and persistent.queue
    return f"queue.drawn(round, {statements.printer.names('__work')})" if queue else ""


def each_tile(statements: "Statements") -> tuple[StatementView, ...]:
    """What a tile begins with, where blocks stay; empty where they do not."""
    found, persistent = producer_loop(statements.settled), persistent_in(statements.settled)
    if found is None or persistent is None:
        return ()
    if statements.walk is not None:
        return ()
    with statements.iterations(*found) as turns:
        counted = StatementView("line", {"text": f"const int turns = {turns.trips};"})
    at = [] if persistent.queue else [staying_tile(statements)]
    return (*at, *[counted] * (turns.turns == "turns"))


def turns_of_tile(statements: "Statements") -> str:
    """What the turns of a tile are counted by, where blocks stay; empty where they do not."""
    found = producer_loop(statements.settled)
    if found is None or persistent_in(statements.settled) is None:
        return ""
    with statements.iterations(*found) as turns:
        return turns.turns if statements.walk is None else turns.turn


def _staying_note(loop: Loop, pipeline: Pipeline, statements: "Statements") -> str:
    """Who loads, and when."""
    launch, facts = statements.settled.launch, statements.facts
    persistent = persistent_in(statements.settled)
    how = "drawn from a queue, so that blocks end together" if persistent and persistent.queue else "in turns"
    return (
        f"Blocks stay, one a multiprocessor, and take tile after tile, {how}: a tile's first loads run under the end "
        f"of the tile before  [{facts.rule(launch, PERSISTENT)}]. One warpgroup more than the {launch.threads} "
        f"consumer threads: one thread of it only loads, up to {pipeline.stages} turns ahead, as slots are freed  "
        f"[{facts.rule(loop, PIPELINE)}]. Most of its registers go to the consumers  "
        f"[{facts.rule(launch, REGISTER_SHARES)}]"
    )


def _of_panels(dealt: Dealt, pipeline: Pipeline, statements: "Statements") -> dict[str, str]:
    """How many panels a slot has, how many of them the first warpgroup frees, and who frees which."""
    names, settled = statements.printer.names, statements.settled
    own = second_part(dealt, pipeline, settled)
    parts = [f"{settled.facts[tile, SHARED_LAYOUT].panels} of {names(tile.name)}" for tile in pipeline.buffers]
    about = (
        f"The panels of a slot are {listed(parts)}, counted from 0. A panel's `full` completes when TMA's "
        f"bytes have arrived (zeros from outside a tensor count). A slot has an "
        f"`empty` for each warpgroup, which completes when its warps have freed its columns of "
        f"{names(dealt.second.b.buffer.name)}; the second's part starts with panel {own}. One thread initialises them; "
        "a barrier of the whole block shows them to all."
    )
    return {
        "panels": str(panels_in(settled)),
        "first_part": str(own),
        "about": "\n".join(wrapped(about, BODY_WIDTH)),
    }


def _first_tiles(loads: tuple[Copy, ...], statements: "Statements") -> tuple[StatementView, ...]:
    """The barrier of what is loaded before the turns, and the loads."""
    if not loads:
        return ()
    settled = statements.settled
    tiles = [statements.printer.names(load.dst.buffer.name) for load in loads]
    about = (
        f"{listed(tiles)} {'is' if len(tiles) == 1 else 'are'} loaded once, before the turns: TMA's bytes arrive at a "
        f"barrier of their own. The next constructor shows it to all  "
        f"[{settled.facts.rule(settled.launch, PROLOGUE_LOADS)}]"
    )
    body = statements.paragraphs(loads)
    above = tuple(wrapped(about, BODY_WIDTH))
    return (StatementView("first_tiles", {"tiles": ", ".join(tiles)}, loads[0].span.line, above, body),)


def _note(loop: Loop, pipeline: Pipeline, statements: "Statements") -> str:
    """Who loads, how far ahead, and what becomes of the registers."""
    launch, facts = statements.settled.launch, statements.facts
    ahead = f"up to {pipeline.stages} tiles ahead, as slots are freed. It returns when it has asked for the last tile"
    if facts.get(loop, MULTICAST_BLOCKS) is not None:
        ahead += ", and all blocks of the cluster have freed it"
    rule = f"[{facts.rule(loop, PIPELINE)}]"
    if first_loads(statements.settled):
        ahead = f"first what is loaded once, then {ahead}"
    if facts.get(launch, REGISTER_SHARES) is None:
        text = f"One warp more than the {launch.threads} consumer threads only loads, {ahead}"
        return f"{text}; no barrier of the whole block follows  {rule}"
    text = f"One warpgroup more than the {launch.threads} consumer threads: one thread of it only loads, {ahead}"
    share = f"Most of its registers go to the consumers  [{facts.rule(launch, REGISTER_SHARES)}]"
    return f"{text}; no barrier of the whole block follows  {rule}. {share}"


def _behind_first_loads(statements: "Statements") -> tuple[Stmt, ...]:
    """The values that the turns need and the first loads do not, where memory is read for them: a wait that the first
    loads need not share.
    """
    settled = statements.settled
    found = producer_loop(settled)
    first = first_loads(settled)
    if found is None or not first or settled.facts.get(found[0], MULTICAST_BLOCKS) is not None:
        return ()
    sooner = prelude(tuple(expr for load in first for expr in expressions(load)), before(settled.launch.body, found[0]))
    later = tuple(stmt for stmt in statements.hoisted if stmt not in sooner)
    parts = (part for stmt in later for expr in expressions(stmt) for part in walk(expr))
    return later if any(isinstance(part, Load) for part in parts) else ()


def loads_alone(settled: Settled) -> tuple[Stmt, ...]:
    """The values that a producer computes once more in the loops around its own, and the others do not need."""
    found = producer_loop(settled)
    return for_loads_alone(*found, settled.launch.body) if found is not None else ()


def first_loads(settled: Settled) -> tuple[Copy, ...]:
    """The copies that the producer does before its turns."""
    found = settled.facts.get(settled.launch, PROLOGUE_LOADS)
    return found.loads if found is not None else ()
