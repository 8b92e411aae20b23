"""A loop whose turns overlap: its parts as lambdas, each once, and the order in which they run."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from tile2cu.analysis.accesses import expressions, lets_for, variables
from tile2cu.core.decisions import DEFERRED_REDUCTION, MMA_OVERLAP, UNMASKED_ITERATIONS, WARPGROUP_TRIP_COUNT
from tile2cu.core.expr import Var
from tile2cu.core.program import Let, Loop, Stmt, walk_stmts
from tile2cu.core.schedule import Overlap, PlainTurns
from tile2cu.emitter.factors import has_changed, ones
from tile2cu.emitter.tma import Ring, rings
from tile2cu.emitter.way import called
from tile2cu.plan.rings import publishes_iteration
from tile2cu.styles.base.comments import BODY_WIDTH, wrapped
from tile2cu.styles.base.view import StatementView

if TYPE_CHECKING:
    from tile2cu.emitter.statements import Statements


_PLAIN = (
    "Turns that mask nothing have a loop of their own, without a branch for the mask: over one the compiler moves no "
    "instruction"
)


@dataclass(frozen=True)
class _Given:
    """What tells the parts of a turn which turn it is: its number, or what was found on the way to it.

    `turns` are the texts of the `loop`'s turns; `names` are variables that depend on the turn. Where turns are skipped,
    `declared` is the parameter by which parts get those, and `name` its name.
    """

    turns: Mapping[str, str]
    loop: Loop
    names: tuple[Var, ...]
    declared: str = ""
    name: str = ""
    lets: tuple[Let, ...] = ()

    def with_names(self, body: tuple[Stmt, ...], *others: Stmt) -> tuple[Stmt, ...]:
        """The statements of a part behind the values that they, or `others` in it, name."""
        used = variables(*(expr for op in walk_stmts((*body, *others)) for expr in expressions(op)))
        return (*lets_for(used, self.lets), *body)

    def asked_by(self, body: tuple[Stmt, ...]) -> bool:
        """Whether any of these statements depends on the turn."""
        return any(var in self.names for op in walk_stmts(body) for expr in expressions(op) for var in variables(expr))


def overlapped(loop: Loop, overlap: Overlap, turns: Mapping[str, str], statements: "Statements") -> StatementView:
    """The view of the loop; `turns` are the texts of its turns. The printer knows the slots of its tiles."""
    first, second = (statements.printer.names(op.c.buffer.name) for op in overlap.products)
    first_ring, second_ring = rings(statements.settled, statements.printer)
    given = replace(_given(loop, turns, statements), lets=overlap.lets)
    plain = statements.facts.get(loop, UNMASKED_ITERATIONS)
    changed = statements.printer.names.fresh("changed") if overlap.factor else ""
    parts = (
        _starts(f"start_{first}", (*overlap.before, overlap.first), given, statements, first_ring),
        *_mask(plain, given, statements),
        _between(overlap, changed, plain, given, statements),
        _prepare(f"prepare_{second}", changed, overlap, given, statements),
        _starts(f"start_{second}", (overlap.second,), given, statements, second_ring),
    )
    roles = ("start_first", *(("masked", "mask") if plain else ()), "between", "prepare", "start_second")
    names = {"first": first, "second": second, "first_ring": first_ring.name, "second_ring": second_ring.name}
    names |= {"mask": "", "late_sum": _late_sum(loop, statements), "changed": changed, "given": given.name}
    for role, part in zip(roles, parts, strict=True):
        names |= {role: part.parts["name"] if part.body else "", f"{role}_turn": part.parts["argument"]}
    names |= _own_turns(loop, first, turns["turns"], statements)
    loops: tuple[str, ...] = ()
    if plain:
        fresh, rule = statements.printer.names.fresh, statements.facts.rule(loop, UNMASKED_ITERATIONS)
        names |= {"whole_turn": fresh("turn"), "masks": fresh("masks")}
        loops = tuple(wrapped(f"{_PLAIN}  [{rule}]", BODY_WIDTH))
    timeline = _timeline(first, second, turns["turn"], statements.facts.rule(loop, MMA_OVERLAP))
    body = tuple(part for part in parts if part.body)
    return StatementView("overlap", {**turns, **names}, body=body, notes=timeline, declared=loops)


def _given(loop: Loop, turns: Mapping[str, str], statements: "Statements") -> _Given:
    """What the parts of a turn are given."""
    walk = statements.walk
    if walk is None:
        return _Given(turns, loop, (loop.var,))
    names = called(statements)
    return _Given(turns, loop, walk.values, f"const {names['type']}& {names['work']}", names["work"])


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


def _own_turns(loop: Loop, tile: str, turns: str, statements: "Statements") -> dict[str, str]:
    """What a warpgroup's own turns are named, and how they are counted; no names where it has the block's."""
    own = statements.facts.get(loop, WARPGROUP_TRIP_COUNT)
    if own is None:
        return {"own_turns": "", "turns": turns}
    text, fresh = statements.printer.text, statements.printer.names.fresh
    row, name = fresh("first_row"), fresh("own_turns")
    about = (
        f"A warpgroup's turns end with its own 64 rows: there all later columns of {tile} are masked, and change "
        f"nothing. Rows from {text(own.end)} on are not stored, and need no turn  "
        f"[{statements.facts.rule(loop, WARPGROUP_TRIP_COUNT)}]"
    )
    lines = [*_comment(about), f"const int {row} = {text(own.start)} + 64 * tl::warpgroup();"]
    seen = f"{row} + 64"
    if own.last != own.start:
        seen = fresh("columns_seen")
        lines += _comment("how many columns the last of these rows sees")
        lines.append(f"const int {seen} = {text(own.last)} + 64 * (tl::warpgroup() + 1);")
    stop = f"tl::min({turns}, tl::ceildiv({seen}, {text(own.columns)}))"
    if own.may_see_none:
        lines += _comment("With a row that sees no column it has all turns: they change what has no maximum yet")
        stop = f"({seen} < 64 ? {turns} : {stop})"
    lines.append(f"const int {name} = {row} < {text(own.end)} ? {stop} : 0;")
    return {"own_turns": "\n".join(lines), "turns": name, "all_turns": turns}


def _comment(text: str) -> list[str]:
    return [f"// {line}" for line in wrapped(text, BODY_WIDTH)]


def _late_sum(loop: Loop, statements: "Statements") -> str:
    """The text that adds up what lanes have of a sum, behind the turns; empty where each turn does it."""
    late = statements.facts.get(loop, DEFERRED_REDUCTION)
    if late is None:
        return ""
    layout = statements.layouts.of_tile(late.reduce.src)
    about = f"// until here each thread's own elements  [{statements.facts.rule(loop, DEFERRED_REDUCTION)}]"
    return f"tl::sum_lanes<{layout}, {late.reduce.dim}>({statements.printer.tile(late.total)});  {about}"


def _mask(plain: PlainTurns | None, given: _Given, statements: "Statements") -> tuple[StatementView, ...]:
    """Two lambdas: whether a turn has a masked element, and the mask."""
    if plain is None:
        return ()
    *lets, branch = statements.body(given.with_names((plain.mask,)))
    argument = {"argument": given.turns["turn"], "variable": given.turns["variable"]}
    asked = StatementView("line", {"text": f"return {branch.parts['condition']};"})
    names = [statements.printer.names.fresh(wish) for wish in ("masked", "mask")]
    masked, mask = (StatementView("part", {"name": name, **argument}) for name in names)
    masked = replace(masked, comments=branch.comments, body=(*lets, asked))
    return masked, replace(mask, body=(*lets, *branch.body))


def _between(
    overlap: Overlap, changed: str, plain: PlainTurns | None, given: _Given, statements: "Statements"
) -> StatementView:
    """The part under the second product of the turn before; with a factor it tells whether any is not 1."""
    body, factor = overlap.between[plain is not None :], overlap.factor
    if factor is None:
        return _part("between", given.with_names(body), given, statements)
    part = _part("between", given.with_names(body[:-1], factor.op), given, statements)
    vote = StatementView("line", {"text": f"const bool {changed} = {has_changed(factor, statements)};"})
    one = ones(factor, statements.facts.rule(given.loop, MMA_OVERLAP), statements)
    scale = StatementView("branch", {"condition": changed}, body=statements.body((factor.op,)))
    told = StatementView("line", {"text": f"return {changed};"})
    return replace(part, body=(*part.body, vote, one, scale, told))


def _prepare(name: str, changed: str, overlap: Overlap, given: _Given, statements: "Statements") -> StatementView:
    """The part that waits for the second product of the turn before."""
    if overlap.factor is None:
        return _part(name, given.with_names(overlap.late), given, statements)
    scaled = overlap.factor.scaled
    part = _part(
        name, given.with_names(tuple(op for op in overlap.late if op not in scaled), *scaled), given, statements
    )
    scale = StatementView("branch", {"condition": changed}, body=statements.body(scaled))
    asked = given.declared or f"int {given.turns['turn']}"
    values = f"bool {changed}" + (f", {asked}" if part.parts["argument"] else "")
    return replace(part, kind="values_part", parts={**part.parts, "values": values}, body=(scale, *part.body))


def _part(name: str, body: tuple[Stmt, ...], given: _Given, statements: "Statements") -> StatementView:
    """A lambda of one part of a turn; it takes the turn if it asks for it."""
    asks, turns = given.asked_by(body), given.turns
    views = statements.body(body)
    if given.declared and asks:
        parts = {"name": name, "argument": given.name, "values": given.declared}
        return StatementView("values_part", parts, body=views)
    parts = {"name": name, "argument": turns["turn"] if asks else "", "variable": turns["variable"] if asks else ""}
    return StatementView("part", parts, body=views)


def _starts(name: str, body: tuple[Stmt, ...], given: _Given, statements: "Statements", ring: Ring) -> StatementView:
    """The part that ends with the start of a product, as soon as its tile is there."""
    part, turns = _part(name, given.with_names(body), given, statements), given.turns
    product = part.body[-1]
    start = StatementView("call", {**product.parts, "name": "gemm_start"}, product.line)
    parts = {**part.parts, "argument": turns["turn"]}
    if publishes_iteration(ring.tile, statements.settled):  # who knows the turn has waited for its tile
        return replace(part, parts=parts, body=(*part.body[:-1], replace(start, comments=product.comments)))
    text = f"{ring.name}.wait({turns['before']}{turns['turn']});  // until TMA has filled its slot"
    wait = replace(product, kind="line", parts={"text": text})
    return replace(part, parts=parts, body=(*part.body[:-1], wait, start))
