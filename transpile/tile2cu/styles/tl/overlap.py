"""A loop of two MMAs that overlap: its parts as lambdas, each once, and the order in which they run."""

from dataclasses import replace
from typing import TYPE_CHECKING

from tile2cu.plan.producer_ops import Mask, Overlapped, Part, Rescale
from tile2cu.styles.base.comments import BODY_WIDTH, table, wrapped
from tile2cu.styles.base.expressions import Printer, literal
from tile2cu.styles.base.view import StatementView, text_line
from tile2cu.styles.tl import vocabulary as tl
from tile2cu.styles.tl.iterations import Texts, called, pipeline_name

if TYPE_CHECKING:
    from tile2cu.styles.tl.body import Body

_PLAIN = (
    "Unmasked iterations have a loop of their own, without a branch for the mask: compilers move no instruction across "
    "one"
)


def overlapped(op: Overlapped, texts: Texts, body: "Body") -> StatementView:
    """The view of the loop."""
    names, fresh = body.printer.names, body.printer.names.fresh
    first, second = (names(tile.name) for tile in op.accumulators)
    changed = fresh("changed") if op.rescale is not None else ""
    visited = called(op.visiting, names) if op.visiting is not None else {}
    declared = f"const {visited['type']}& {visited['work']}" if visited else ""
    given = visited.get("work", "")
    printed = _Parts(texts, body, declared, given)
    parts = (
        _starts(printed, f"start_{first}", op.first),
        *_mask(op.mask, texts, body),
        _between(printed, f"process_{first}", op, changed),
        _prepare(printed, f"prepare_{second}", op, changed),
        _starts(printed, f"start_{second}", op.second),
    )
    masks = ("masked", "mask") if op.mask is not None else ()
    rings = [pipeline_name(ring.tile, names) for ring in op.rings]
    named = {"first": first, "second": second, "first_ring": rings[0], "second_ring": rings[1]}
    named |= {"mask": "", "late_sum": _late_sum(op, body), "changed": changed, "given": given}
    for role, part in zip(("start_first", *masks, "between", "prepare", "start_second"), parts, strict=True):
        named |= {role: part.parts["name"] if part.body else "", f"{role}_k": part.parts["argument"]}
    named |= _own_trips(op, first, texts.count, body.printer)
    loops: tuple[str, ...] = ()
    if op.mask is not None:
        named |= {"whole": fresh("iteration"), "masks": fresh("masks")}
        loops = tuple(wrapped(f"{_PLAIN}  [{op.mask.rule}]", BODY_WIDTH))
    kind = "overlap"
    if op.visiting is not None:
        kind = "overlap_taken"
        named |= {**visited, "values": "yes" if op.visiting.values else ""}
    timeline = _timeline((first, second), named["mask"], texts.k, op.rule)
    shown = tuple(part for part in parts if part.body)
    return StatementView(kind, {**texts.parts, **named}, body=shown, notes=timeline, declared=loops)


def rescaled(op: Rescale, printer: Printer) -> tuple[StatementView, str]:
    """The factor where it is 1, and the condition under which a row of the warp has another."""
    factor, names = op.factor, printer.names
    changed = names(factor.after.name)
    about = f"where no row's {changed} changes the factor is 1 in the whole warp: the rescale is skipped  [{op.rule}]"
    fill = f"{tl.FILL}({names(factor.tile.name)}, {literal(1, factor.tile.dtype)});"
    ones = text_line(fill, 0, tuple(wrapped(about, BODY_WIDTH)))
    return ones, f"{tl.ANY_CHANGED}({names(factor.before.name)}, {names(factor.after.name)})"


class _Parts:
    """Prints the parts of an iteration as lambdas; each that asks is given the iteration's number, or what tells it."""

    def __init__(self, texts: Texts, body: "Body", declared: str, given: str) -> None:
        self.texts, self.body, self.declared, self.given = texts, body, declared, given

    def part(self, name: str, part: Part) -> StatementView:
        views = self.body.views(part.block)
        if self.declared and part.asks:
            parts = {"name": name, "argument": self.given, "values": self.declared}
            return StatementView("values_part", parts, body=views)
        argument, variable = (self.texts.k, self.texts.variable) if part.asks else ("", "")
        return StatementView("part", {"name": name, "argument": argument, "variable": variable}, body=views)


def _starts(printed: _Parts, name: str, part: Part) -> StatementView:
    """The part that ends with the start of an MMA."""
    view = printed.part(name, part)
    return replace(view, parts={**view.parts, "argument": printed.texts.k})


def _mask(mask: Mask | None, texts: Texts, body: "Body") -> tuple[StatementView, ...]:
    """Two lambdas: whether an iteration has a masked element, and the mask."""
    if mask is None:
        return ()
    lets, (branch,) = body.views(mask.lets), body.views(mask.branch)
    argument = {"argument": texts.k, "variable": texts.variable}
    asked = text_line(f"return {body.printer.condition(mask.condition)};")
    names = [body.printer.names.fresh(wish) for wish in ("masked", "mask")]
    masked, applied = (StatementView("part", {"name": name, **argument}) for name in names)
    masked = replace(masked, comments=branch.comments, body=(*lets, asked))
    return masked, replace(applied, body=(*lets, *branch.body))


def _between(printed: _Parts, name: str, op: Overlapped, changed: str) -> StatementView:
    """The part under the second MMA of the iteration before; with a factor it tells whether any is not 1."""
    part = printed.part(name, op.between)
    if op.rescale is None:
        return part
    ones, condition = rescaled(op.rescale, printed.body.printer)
    vote = text_line(f"const bool {changed} = {condition};")
    scale = StatementView("branch", {"condition": changed}, body=printed.body.views(op.rescale.compute))
    told = text_line(f"return {changed};")
    return replace(part, body=(*part.body, vote, ones, scale, told))


def _prepare(printed: _Parts, name: str, op: Overlapped, changed: str) -> StatementView:
    """The part that waits for the second MMA of the iteration before."""
    part = printed.part(name, op.late)
    if op.rescale is None:
        return part
    scale = StatementView("branch", {"condition": changed}, body=printed.body.views(op.rescale.apply))
    asked = printed.declared or f"int {printed.texts.k}"
    values = f"bool {changed}" + (f", {asked}" if part.parts["argument"] else "")
    return replace(part, kind="values_part", parts={**part.parts, "values": values}, body=(scale, *part.body))


def _timeline(accumulators: tuple[str, str], mask: str, k: str, rule: str) -> tuple[str, ...]:
    """What of which iteration a warpgroup has its tensor cores and its other units do at the same time."""
    first, second = accumulators
    process, prepare = f"process_{first}", f"prepare_{second}"
    masked = f" In masked iterations {mask} precedes {process}." if mask else ""
    about = (
        f"Software pipelining of the two MMAs: {second} of iteration {k} - 1 is in flight concurrently with {first} "
        f"and {process} of iteration {k}.{masked} For one warpgroup, with the iteration of each part  [{rule}]"
    )
    units: list[tuple[str, ...]] = [
        ("tensor cores", f"{first} 0", "", ""),
        ("CUDA cores", "", f"{process} 0", f"{prepare} 0"),
    ]
    for iteration in (1, 2):
        more = (
            (f"{first} {iteration}", f"{second} {iteration - 1}", ""),
            ("", f"{process} {iteration}", f"{prepare} {iteration}"),
        )
        longer = [(*row, *cells) for row, cells in zip(units, more, strict=True)]
        if iteration == 1 or max(map(len, table(tuple(longer), 2 * BODY_WIDTH))) <= BODY_WIDTH:
            units = longer
    rows = table(tuple((*row, "...") for row in units), 2 * BODY_WIDTH)
    return (*wrapped(about, BODY_WIDTH), *(f"  {row.rstrip()}" for row in rows))


def _own_trips(op: Overlapped, tile: str, trips: str, printer: Printer) -> dict[str, str]:
    """A warpgroup's own trip count: its name, and how it is computed; no names where it has the block's."""
    own = op.trips
    if own is None:
        return {"own_trips": "", "count": trips}
    text, fresh = printer.text, printer.names.fresh
    row, name = fresh("first_row"), fresh("own_trip_count")
    about = (
        f"Per-warpgroup trip count: beyond the last column that its 64 rows see, all of {tile} is masked and "
        f"has no effect. Rows from {text(own.end)} on are not stored and need no iteration  [{op.trips_rule}]"
    )
    lines = [*_comment(about), f"const int {row} = {text(own.start)} + 64 * {tl.WARPGROUP}();"]
    seen = f"{row} + 64"
    if own.last != own.start:
        seen = fresh("columns_seen")
        lines += _comment("how many columns the last of these rows sees")
        lines.append(f"const int {seen} = {text(own.last)} + 64 * ({tl.WARPGROUP}() + 1);")
    stop = f"{tl.MIN}({trips}, {tl.CEILDIV}({seen}, {text(own.columns)}))"
    if own.may_see_none:
        lines += _comment("A row that sees no column needs all iterations: its maximum is not finite yet")
        stop = f"({seen} < 64 ? {trips} : {stop})"
    lines.append(f"const int {name} = {row} < {text(own.end)} ? {stop} : 0;")
    return {"own_trips": "\n".join(lines), "count": name, "all_trips": trips}


def _comment(text: str) -> list[str]:
    return [f"// {line}" for line in wrapped(text, BODY_WIDTH)]


def _late_sum(op: Overlapped, body: "Body") -> str:
    """The text that adds up what lanes have of a sum, behind the loop; empty where each iteration does it."""
    late = op.deferred
    if late is None:
        return ""
    total = body.printer.tile(late.total)
    about = _comment(f"Until here {total} has each thread's own elements only  [{late.rule}]")
    sum_ = f"{tl.WARP_ALLREDUCE_SUM}<{body.layout_of_tile(late.source)}, {late.dim}>({total});"
    return "\n".join((*about, sum_))
