"""What is written around a loop that interleaves two iterations: a time line, trip counts."""

from msgspec.structs import replace

from tile2cu.analysis.uses import statements
from tile2cu.core.expr import Call, walk
from tile2cu.core.program import Buffer, Reduce, Reduction, Store
from tile2cu.plan.producer_ops import Mask, Overlapped, Part, PartKind, Rescale, RunPart
from tile2cu.plan.structure import Block
from tile2cu.styles.base.comments import BODY_WIDTH, listed, table, wrapped
from tile2cu.styles.base.expressions import Printer
from tile2cu.styles.base.names import Names
from tile2cu.styles.base.statements import Statements
from tile2cu.styles.base.view import StatementView, text_line
from tile2cu.styles.base.vocabulary import CEILDIV, MIN, WARPGROUP

UNMASKED = (
    "Unmasked iterations have a loop of their own, without a branch for the mask: compilers move no instruction across "
    "one"
)


def part_wish(part: Part, op: Overlapped, names: Names) -> str:
    """What the lambda of a part is called: after what it does with its tile."""
    rescales = op.rescale is not None and part.kind is PartKind.PREPARE
    return wish_of(part.kind, part.tile, part.block, names, rescales=rescales)


def wish_of(kind: PartKind, tile: Buffer, block: Block, names: Names, *, rescales: bool) -> str:
    """The same of a part of that kind; `rescales`: it also multiplies rows of the result by factors."""
    sources = tuple(source for paragraph in block for source in paragraph.sources)
    name = names(tile.name)
    if kind is PartKind.PROCESS and any(each.kind is Reduction.MAX for each in statements(sources, Reduce)):
        return f"row_max_{name}"
    if kind is not PartKind.PREPARE:
        return f"{kind.value}_{name}"
    stores = list(statements(sources, Store))
    rescales |= any(each.op == "*" and each.buffer.memory is tile.memory for each in stores)
    calls = (part for each in stores for part in walk(each.value) if isinstance(part, Call))
    if any(call.function in ("exp", "exp2") for call in calls):
        return f"exp_rescale_{name}" if rescales else f"exp_{name}"
    return f"rescale_{name}" if rescales else f"compute_{name}"


def rescale_skipped(op: Rescale, names: Names) -> tuple[str, ...]:
    """The comment on a factor that is filled with 1."""
    after = names(op.factor.after.name)
    about = f"where no row's {after} changes the factor is 1 in the whole warp: the rescale is skipped  [{op.rule}]"
    return tuple(wrapped(about, BODY_WIDTH))


def timeline(op: Overlapped, mask: str, k: str, names: Names) -> tuple[str, ...]:
    """What of which iteration a warpgroup has its tensor cores and its other units do at the same time."""
    firsts, seconds = ([names(tile.name) for tile in of] for of in (op.first, op.second))
    parts = {kind: [part_wish(each, op, names) for each in op.phases.parts if each.kind is kind] for kind in PartKind}
    first, second, process = ", ".join(firsts), ", ".join(seconds), ", ".join(parts[PartKind.PROCESS])
    process, prepare = process or f"process_{firsts[0]}", ", ".join(parts[PartKind.PREPARE]) or f"prepare_{seconds[0]}"
    are = "is" if len(seconds) == 1 else "are"
    masked = f" In masked iterations {mask} precedes {process}." if mask else ""
    what = "the two MMAs" if len(firsts) == len(seconds) == 1 else "two groups of MMAs"
    about = (
        f"Software pipelining of {what}: {second} of iteration {k} - 1 {are} issued behind {first} of "
        f"iteration {k}, and in flight during {process} of iteration {k}.{masked} For one warpgroup, with the "
        f"iteration of each part  [{op.rule}]"
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


def in_flight(op: Overlapped, k: str, names: Names) -> tuple[str, ...]:
    """What overlaps where no MMA is of the iteration itself."""
    run = next(do.part for do in op.phases.prologue if isinstance(do, RunPart))
    about = (
        f"Software pipelining: the MMA of iteration {k} - 1, which reads a copy of {names(run.tile.name)}, is "
        f"issued after the preparation of iteration {k}. Neither depends on the other, so the compiler overlaps "
        f"them  [{op.rule}]"
    )
    return tuple(wrapped(about, BODY_WIDTH))


def notes(op: Overlapped, mask: str, k: str, names: Names) -> tuple[str, ...]:
    """What overlaps; `mask` is the name of the lambda that masks an iteration."""
    return timeline(op, mask, k, names) if op.first else in_flight(op, k, names)


def rolled_notes(op: Overlapped, k: str, names: Names) -> str:
    """What overlaps where one loop has all iterations."""
    tiles = [names(each.name) for each in op.written]
    what, are = ("MMA", "is") if len(op.second) == 1 else ("MMAs", "are")
    return (
        f"Software pipelining: the {what} of iteration {k} - 1 {are} in flight while iteration {k} writes "
        f"{listed(tiles)}, which {'has' if len(tiles) == 1 else 'have'} two stages. All warps have waited for the "
        f"{what} of iteration {k} - 2, the last to read the stage  [{op.rule}]"
    )


def counting(op: Overlapped, count: str, trips: str) -> tuple[str, ...]:
    """The name of the trip count; of a loop at the top of the kernel's body, the producer's part declares it."""
    named = op.iterations.inside and op.visiting is None and count == "num_iterations"
    return (f"const int num_iterations = {trips};",) if named else ()


def masks(mask: Mask, k: str, variable: str, body: Statements) -> tuple[tuple[str, str], tuple[StatementView, ...]]:
    """Two lambdas and their names: whether an iteration has a masked element, and the mask."""
    lets, (branch,) = body.views(mask.lets), body.views(mask.branch)
    asked = text_line(f"return {body.printer.condition(mask.condition)};")
    names = body.printer.names.fresh("masked"), body.printer.names.fresh("mask")
    masked, applied = (StatementView("part", {"name": name, "argument": k, "variable": variable}) for name in names)
    masked = replace(masked, comments=branch.comments, body=(*lets, asked))
    return names, (masked, replace(applied, body=(*lets, *branch.body)))


def masking(op: Overlapped, part: Part, k: str, names: tuple[str, str, str]) -> str:
    """The mask in front of the first part that processes a result, else nothing.

    `names` are those of the condition, the mask, and the parameter that applies it.
    """
    processing = [each for each in op.phases.parts if each.kind is PartKind.PROCESS]
    if op.mask is None or part is not processing[0]:
        return ""
    masked, mask, whole = names
    return f"{whole}({k});" if whole and k != "0" else f"if ({masked}({k})) {mask}({k});"


def rescaled(
    view: StatementView, part: Part, op: Overlapped, k: str, vote: tuple[str, str, str], body: Statements
) -> StatementView:
    """A part with the rescale that warps vote to skip.

    What processes the first MMA votes, and returns whether any factor is not 1; what follows the second MMA of the
    iteration before takes this result. `vote` is its name, what fills a factor with 1, and the condition that a row
    has another.
    """
    changed, fill, condition = vote
    if op.rescale is None or part.kind not in (PartKind.PROCESS, PartKind.PREPARE):
        return view
    if part.kind is PartKind.PROCESS:
        ones = text_line(fill, 0, rescale_skipped(op.rescale, body.printer.names))
        voted = text_line(f"const bool {changed} = {condition};")
        scale = StatementView("branch", {"condition": changed}, body=body.views(op.rescale.compute))
        return replace(view, body=(*view.body, voted, ones, scale, text_line(f"return {changed};")))
    scale = StatementView("branch", {"condition": changed}, body=body.views(op.rescale.apply))
    values = f"bool {changed}" + (f", {view.parts.get('values') or f'int {k}'}" if part.asks else "")
    return replace(view, kind="values_part", parts={**view.parts, "values": values}, body=(scale, *view.body))


def released_late(op: Overlapped, tiles: tuple[str, ...], changed: str, wait: str, process: str) -> str:
    """Why the lane that arrives for a stage depends on a vote, and why it arrives no earlier."""
    are = "is" if len(op.first) == 1 else "are"
    return (
        f"The stage is free because {listed(list(tiles))} {are} complete. `{changed}` selects the one lane that "
        f"arrives: so the arrival follows {process}, and {wait} follows the arrival. Otherwise the compiler may move "
        f"that wait above {process}, which would not overlap with the MMA"
    )


def comment_lines(text: str) -> list[str]:
    """A comment in the body of a kernel."""
    return [f"// {line}" for line in wrapped(text, BODY_WIDTH)]


def own_trips(op: Overlapped, trips: str, printer: Printer) -> tuple[tuple[str, ...], str]:
    """(how a warpgroup's own trip count is computed, its name); only the name of the block's where it has none."""
    own = op.trips
    if own is None:
        return (), trips
    tile = printer.names(op.first[0].name)
    text, fresh = printer.text, printer.names.fresh
    row, name = fresh("first_row"), fresh("own_trip_count")
    about = (
        f"Per-warpgroup trip count: beyond the last column that its 64 rows see, all of {tile} is masked and "
        f"has no effect. Rows from {text(own.end)} on are not stored and need no iteration  [{op.rule}]"
    )
    lines = [*comment_lines(about), f"const int {row} = {text(own.start)} + 64 * {WARPGROUP}();"]
    seen = f"{row} + 64"
    if own.last != own.start:
        seen = fresh("columns_seen")
        lines += comment_lines("how many columns the last of these rows sees")
        lines.append(f"const int {seen} = {text(own.last)} + 64 * ({WARPGROUP}() + 1);")
    stop = f"{MIN}({trips}, {CEILDIV}({seen}, {text(own.columns)}))"
    if own.may_see_none:
        lines += comment_lines("A row that sees no column needs all iterations: its maximum is not finite yet")
        stop = f"({seen} < 64 ? {trips} : {stop})"
    lines.append(f"const int {name} = {row} < {text(own.end)} ? {stop} : 0;")
    return tuple(lines), name
