"""A loop whose turns overlap: its parts as lambdas, each once, and the order in which they run."""

from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING

from tile2cu.core.accesses import expressions, variables
from tile2cu.core.program import Loop, Stmt, walk_stmts
from tile2cu.core.schedule import Overlap, PlainTurns, RunningSum
from tile2cu.emitter.comments import BODY_WIDTH, wrapped
from tile2cu.emitter.factors import has_changed, ones
from tile2cu.emitter.tma import Ring, rings
from tile2cu.emitter.view import StatementView

if TYPE_CHECKING:
    from tile2cu.emitter.statements import Statements


_PLAIN = (
    "Turns that mask nothing have a loop of their own, without a branch for the mask: over one the compiler moves no "
    "instruction"
)


def overlapped(loop: Loop, overlap: Overlap, turns: Mapping[str, str], statements: "Statements") -> StatementView:
    """The view of the loop; `turns` are the texts of its turns. The printer knows the slots of its tiles."""
    first, second = (statements.printer.names(op.c.buffer.name) for op in overlap.products)
    first_ring, second_ring = rings(statements.settled, statements.printer)
    plain: PlainTurns | None = statements.facts.get(loop, "plain_turns")
    changed = statements.printer.names.fresh("changed") if overlap.factor else ""
    parts = (
        _starts(f"start_{first}", (*overlap.before, overlap.first), loop, turns, statements, first_ring),
        *_mask(plain, loop, turns, statements),
        _between(overlap, changed, loop, turns, statements),
        _prepare(f"prepare_{second}", changed, overlap, loop, turns, statements),
        _starts(f"start_{second}", (overlap.second,), loop, turns, statements, second_ring),
    )
    roles = ("start_first", *(("masked", "mask") if plain else ()), "between", "prepare", "start_second")
    names = {"first": first, "second": second, "first_ring": first_ring.name, "second_ring": second_ring.name}
    names |= {"mask": "", "late_sum": _late_sum(loop, statements), "changed": changed}
    for role, part in zip(roles, parts, strict=True):
        names |= {role: part.parts["name"] if part.body else "", f"{role}_turn": part.parts["argument"]}
    loops: tuple[str, ...] = ()
    if plain:
        fresh, rule = statements.printer.names.fresh, statements.facts.rule(loop, "plain_turns")
        names |= {"whole_turn": fresh("turn"), "masks": fresh("masks")}
        loops = tuple(wrapped(f"{_PLAIN}  [{rule}]", BODY_WIDTH))
    timeline = _timeline(first, second, turns["turn"], statements.facts.rule(loop, "overlap"))
    body = tuple(part for part in parts if part.body)
    return StatementView("overlap", {**turns, **names}, body=body, notes=timeline, declared=loops)


def _timeline(first: str, second: str, turn: str, rule: str) -> tuple[str, ...]:
    """What runs beside what."""
    about = (
        f"Turns overlap: {second} of turn {turn} - 1 is in flight beside {first} of turn {turn}, and under what lies "
        f"between the two in turn {turn}  [{rule}]"
    )
    units = (
        ("tensor cores", f"{first}(0)", "", f"{first}(1)", f"{second}(0)", f"{first}(2)", f"{second}(1)", "..."),
        ("other units", "", "between(0)", "", "between(1)", "", "between(2)", "..."),
    )
    widths = [max(map(len, column)) for column in zip(*units, strict=True)]
    rows = ("  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)) for row in units)
    return (*wrapped(about, BODY_WIDTH), *(f"  {row.rstrip()}" for row in rows))


def _late_sum(loop: Loop, statements: "Statements") -> str:
    """The text that adds up what lanes have of a sum, behind the turns; empty where each turn does it."""
    late: RunningSum | None = statements.facts.get(loop, "late_sum")
    if late is None:
        return ""
    layout = statements.layouts.of_tile(late.reduce.src)
    about = f"// until here each thread's own elements  [{statements.facts.rule(loop, 'late_sum')}]"
    return f"tl::sum_lanes<{layout}, {late.reduce.dim}>({statements.printer.tile(late.total)});  {about}"


def _mask(
    plain: PlainTurns | None, loop: Loop, turns: Mapping[str, str], statements: "Statements"
) -> tuple[StatementView, ...]:
    """Two lambdas: whether a turn has a masked element, and the mask."""
    if plain is None:
        return ()
    (branch,) = statements.body((plain.mask,))
    given = {"argument": turns["turn"], "variable": turns["variable"]}
    asked = StatementView("line", {"text": f"return {branch.parts['condition']};"})
    names = [statements.printer.names.fresh(wish) for wish in ("masked", "mask")]
    masked, mask = (StatementView("part", {"name": name, **given}) for name in names)
    return replace(masked, comments=branch.comments, body=(asked,)), replace(mask, body=branch.body)


def _between(
    overlap: Overlap, changed: str, loop: Loop, turns: Mapping[str, str], statements: "Statements"
) -> StatementView:
    """The part under the second product of the turn before; with a factor it tells whether any is not 1."""
    plain = statements.facts.get(loop, "plain_turns")
    body, factor = overlap.between[plain is not None :], overlap.factor
    if factor is None:
        return _part("between", body, loop, turns, statements)
    part = _part("between", body[:-1], loop, turns, statements)
    vote = StatementView("line", {"text": f"const bool {changed} = {has_changed(factor, statements)};"})
    one = ones(factor, statements.facts.rule(loop, "overlap"), statements)
    scale = StatementView("branch", {"condition": changed}, body=statements.body((factor.op,)))
    told = StatementView("line", {"text": f"return {changed};"})
    return replace(part, body=(*part.body, vote, one, scale, told))


def _prepare(
    name: str, changed: str, overlap: Overlap, loop: Loop, turns: Mapping[str, str], statements: "Statements"
) -> StatementView:
    """The part that waits for the second product of the turn before."""
    if overlap.factor is None:
        return _part(name, overlap.late, loop, turns, statements)
    scaled = overlap.factor.scaled
    part = _part(name, tuple(op for op in overlap.late if op not in scaled), loop, turns, statements)
    scale = StatementView("branch", {"condition": changed}, body=statements.body(scaled))
    given = f"bool {changed}" + (f", int {part.parts['argument']}" if part.parts["argument"] else "")
    return replace(part, kind="values_part", parts={**part.parts, "values": given}, body=(scale, *part.body))


def _part(
    name: str, body: tuple[Stmt, ...], loop: Loop, turns: Mapping[str, str], statements: "Statements"
) -> StatementView:
    """A lambda of one part of a turn; it takes the turn if it asks for it."""
    asks = any(_mentions(op, loop) for op in body)
    parts = {"name": name, "argument": turns["turn"] if asks else "", "variable": turns["variable"] if asks else ""}
    return StatementView("part", parts, body=statements.body(body))


def _starts(
    name: str, body: tuple[Stmt, ...], loop: Loop, turns: Mapping[str, str], statements: "Statements", ring: Ring
) -> StatementView:
    """The part that ends with the start of a product, as soon as its tile is there."""
    part = _part(name, body, loop, turns, statements)
    product = part.body[-1]
    text = f"{ring.name}.wait({turns['before']}{turns['turn']});  // until TMA has filled its slot"
    wait = replace(product, kind="line", parts={"text": text})
    start = StatementView("call", {**product.parts, "name": "gemm_start"}, product.line)
    parts = {**part.parts, "argument": turns["turn"]}
    return replace(part, parts=parts, body=(*part.body[:-1], wait, start))


def _mentions(op: Stmt, loop: Loop) -> bool:
    """Whether a statement depends on the turn."""
    return any(loop.var in variables(*expressions(stmt)) for stmt in walk_stmts((op,)))
