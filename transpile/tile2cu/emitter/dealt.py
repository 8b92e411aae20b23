"""A loop whose turns two warpgroups take in alternation: its parts as lambdas, each once, and who runs which when."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from itertools import takewhile
from typing import TYPE_CHECKING

from tile2cu.analysis.accesses import buffers_read, buffers_written
from tile2cu.core.decisions import PING_PONG, SHARED_LAYOUT
from tile2cu.core.program import Buffer
from tile2cu.core.schedule import Dealt, Pipeline
from tile2cu.emitter.factors import scaled_where_changed
from tile2cu.emitter.tma import producer_loop
from tile2cu.plan.settled import Settled
from tile2cu.styles.base.comments import BODY_WIDTH, listed, wrapped
from tile2cu.styles.base.view import StatementView
from tile2cu.styles.tl.expressions import Printer

if TYPE_CHECKING:
    from tile2cu.emitter.statements import Statements


@dataclass(frozen=True)
class Operands:
    """The fragments that hold the last product's operand: of a warpgroup's own turn, and of the turn it is at."""

    own: str
    now: str


def dealt_in(settled: Settled) -> Dealt | None:
    """How the turns of the producer's loop are dealt; None where they are not."""
    found = producer_loop(settled)
    return settled.facts.get(found[0], PING_PONG) if found else None


def operands_of(dealt: Dealt, printer: Printer) -> Operands:
    """The names of the operand's fragments, after the shared tile's."""
    base = _base(dealt.tile)
    return Operands(printer.names(f"{base}_own"), printer.names(f"{base}_now"))


def second_part(dealt: Dealt, pipeline: Pipeline, settled: Settled) -> int:
    """With which panel of a slot the second warpgroup's columns of the last product start, in the order of the loads.

    Panels of other tiles are read by the first products alone, which are done when either warpgroup frees a turn.
    """
    panels: dict[int, int] = {id(tile): settled.facts[tile, SHARED_LAYOUT].panels for tile in pipeline.buffers}
    shared = dealt.second.b.buffer
    before = takewhile(lambda tile: tile is not shared, pipeline.buffers)
    return sum(panels[id(tile)] for tile in before) + panels[id(shared)] // 2


def dealt_turns(dealt: Dealt, turns: Mapping[str, str], statements: "Statements") -> StatementView:
    """The view of the loop; `turns` are the texts of its turns. The printer knows the slots of its tiles."""
    names = statements.printer.names
    first, second = names(dealt.products[0].c.buffer.name), names(dealt.second.c.buffer.name)
    base = _base(dealt.tile)
    operands = operands_of(dealt, statements.printer)
    parts = {
        **turns,
        "first": first,
        "second": second,
        "start_first": f"start_{first}",
        "hand_over": f"hand_over_{base}",
        "take_over": f"take_over_{base}",
        "prepare": f"prepare_{second}" if dealt.late else "",
        "start_second": f"start_{second}",
        "own": operands.own,
        "now": operands.now,
        "values": ", ".join(names(tile.name) for tile in values_kept(dealt)),
        "values_now": ", ".join(names(f"{tile.name}_now") for tile in values_kept(dealt)),
        "set_aside": names("set_aside") if values_kept(dealt) else "",
        "keep": "\n".join(f"tl::copy({names(t.name)}, {names(f'{t.name}_now')});" for t in values_kept(dealt)),
    }
    body = (
        _start_first(dealt, parts, statements),
        _hand_over(dealt, parts, statements),
        _take_over(dealt, parts, statements),
        *([_prepare(dealt, parts, statements)] if dealt.late else []),
        _start_second(dealt, parts, statements),
    )
    notes = _notes(dealt, parts, statements)
    return StatementView("dealt", parts, body=body, orelse=_add_up(dealt, statements), notes=notes)


def _add_up(dealt: Dealt, statements: "Statements") -> tuple[StatementView, ...]:
    """What follows the turns: the threads' parts of a running sum come together."""
    if dealt.running is None:
        return ()
    total = statements.printer.names(dealt.running.total.name)
    place = statements.printer.names(f"{dealt.running.total.name}_handed")
    about = f"until here each thread has its own elements of {total} alone  [{_rule(statements)}]"
    return (_line(f"tl::add_up<threads>({total}, {place});", comments=tuple(wrapped(about, BODY_WIDTH))),)


def values_kept(dealt: Dealt) -> tuple[Buffer, ...]:
    """What the end of a turn reads and the next turn, which begins before, computes anew."""
    sums = (dealt.running.reduce,) if dealt.running is not None else ()
    written = frozenset().union(*(buffers_written(op) for op in (*dealt.between, *sums)))
    wanted = frozenset().union(*(buffers_read(op) for op in dealt.late))
    return tuple(sorted(wanted & written, key=lambda tile: tile.name))


def _prepare(dealt: Dealt, parts: Mapping[str, str], statements: "Statements") -> StatementView:
    """What both do to the last product's result before it, with the values of a turn of either."""
    part = _part(parts["prepare"], "", scaled_where_changed(dealt.late, dealt.factor, _rule(statements), statements))
    values = ", ".join(f"auto& {name}" for name in parts["values"].split(", ") if name)
    return replace(part, kind="values_part", parts={**part.parts, "values": values})


def _base(tile: Buffer) -> str:
    return tile.name.removesuffix("_shared")


def _part(name: str, argument: str, body: tuple[StatementView, ...], variable: str = "") -> StatementView:
    return StatementView("part", {"name": name, "argument": argument, "variable": variable}, body=body)


def _line(text: str, line: int = 0, comments: tuple[str, ...] = ()) -> StatementView:
    return StatementView("line", {"text": text}, line, comments)


def _start_first(dealt: Dealt, parts: Mapping[str, str], statements: "Statements") -> StatementView:
    """The first products, each of which waits for the panels of its tile."""
    line = dealt.products[0].span.line
    arriving = [
        replace(view, parts={**view.parts, "name": "gemm_start", "arguments": f"{view.parts['arguments']}, arriving"})
        for view in statements.body(dealt.products)
    ]
    head = _line(f"auto arriving = pipeline.arrivals({parts['turn']});  // panel by panel, as TMA fills them", line)
    return _part(parts["start_first"], parts["turn"], (head, *arriving), parts["variable"])


def _hand_over(dealt: Dealt, parts: Mapping[str, str], statements: "Statements") -> StatementView:
    """What follows the products, up to the tile that goes to the other warpgroup."""
    names, line = statements.printer.names, dealt.store.span.line
    *between, store = statements.body((*dealt.between, dealt.store))
    copy = _line(f"tl::copy({names(dealt.store.src.buffer.name)}, {parts['own']});", line, store.comments)
    handed = [(names(tile.name), names(f"{tile.name}_handed")) for tile in dealt.handed]
    handed.append((parts["own"], names(dealt.tile.name)))
    lines = [_line(f"tl::hand_over({fragment}, {place});", line) for fragment, place in handed]
    event = _line(f"tl::announce<threads>(tl::turn_handed_over, {parts['turn']});", line)
    own = statements.body((dealt.running.reduce,)) if dealt.running is not None else ()  # nobody waits for them
    body = (*between, replace(copy, gap=store.gap), *lines, event, *own)
    return _part(parts["hand_over"], parts["turn"], body, parts["variable"])


def _take_over(dealt: Dealt, parts: Mapping[str, str], statements: "Statements") -> StatementView:
    """What a turn of the other warpgroup leaves; values a row that follow from it are computed, in the turn's order."""
    names, line = statements.printer.names, dealt.store.span.line
    event = _line(f"tl::await<threads>(tl::turn_handed_over, {parts['turn']});", line)
    lines: list[StatementView] = []
    for place, op in enumerate(dealt.between):
        if op in dealt.again:
            (view,) = statements.body((op,))
            lines.append(replace(view, comments=()))
        later = frozenset().union(*(buffers_written(each) for each in dealt.between[place + 1 :]))
        for tile in dealt.handed:
            if tile in buffers_written(op) - later:
                lines.append(_line(f"tl::take_over({names(f'{tile.name}_handed')}, {names(tile.name)});", line))
    lines.append(_line(f"tl::take_over({names(dealt.tile.name)}, {parts['now']});", line))
    if dealt.running is not None:
        sums = names(dealt.running.reduce.dst.name)
        lines.append(_line(f"tl::clear({sums});  // the other warpgroup has this turn's", line))
    return _part(parts["take_over"], parts["turn"], (event, *lines))


def _start_second(dealt: Dealt, parts: Mapping[str, str], statements: "Statements") -> StatementView:
    """The last product, of an operand in registers; whichever warpgroup computed it."""
    (view,) = statements.body((dealt.second,))
    _, _, others = view.parts["arguments"].partition(", ")
    parts_ = {**view.parts, "name": "gemm_start", "arguments": f"{parts['now']}, {others}"}
    return _part(parts["start_second"], parts["turn"], (replace(view, parts=parts_),))


def _notes(dealt: Dealt, parts: Mapping[str, str], statements: "Statements") -> tuple[str, ...]:
    """Who does what, and why nobody overwrites what the other still reads."""
    names = statements.printer.names
    tile = names(dealt.tile.name)
    handed = [tile, *(names(each.name) for each in dealt.handed)]
    about = (
        f"The two warpgroups take turns: one computes all of {parts['first']}, and hands {listed(handed)} over; both "
        f"add the turn's product to their columns of {parts['second']}. One multiplies while the other is between its "
        f"products. Who reads {tile} is the next to write it: no barrier is needed for that  "
        f"[{_rule(statements)}]"
    )
    return tuple(wrapped(about, BODY_WIDTH))


def _rule(statements: "Statements") -> str:
    found = producer_loop(statements.settled)
    assert found is not None, "turns are dealt of the producer's loop"
    return statements.facts.rule(found[0], PING_PONG)
