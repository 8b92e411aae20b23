"""The shared memory of a block as a picture: what is stored at which offset, and when.

Offsets are from left to right, statements from top to bottom: aliased memory is several rectangles below one another.
"""

from collections.abc import Iterator

from msgspec.structs import replace

from tile2cu.core.record import Record
from tile2cu.core.schedule import round_up
from tile2cu.core.shared_memory import Staging, Workspace
from tile2cu.plan import shared as plan
from tile2cu.plan.resolved import Resolved
from tile2cu.review import svg
from tile2cu.review.dataflow import Dataflow, Step, dataflow

_WIDTH, _ROW, _LEFT, _TOP = 860, 16, 430, 40
_LETTERS, _LETTER = 64, 6.1  # of the statements' texts, and the pixels of one
_LEAST = 3  # pixels of a rectangle's width
_WORD = 8  # bytes: alignment of barriers and of what a producer publishes


class Stored(Record, frozen=True, kw_only=True):
    """`bytes` of shared memory at `start`, in so many `stages`; of aliased memory, the `part` that it is live in.

    `lines` are the Python lines between which that part is live, where the rules state them. Of a staging tile `of` is
    the fragment that is stored through it, of a workspace the result of the reduction or scan.
    """

    name: str
    start: int
    bytes: int
    stages: int = 1
    part: int | None = None
    live: str = ""
    lines: tuple[int, int] | None = None
    of: str = ""
    staging: bool = False

    @property
    def end(self) -> int:
        return self.start + self.bytes


def stored(resolved: Resolved) -> tuple[Stored, ...]:
    """What a block stores at which offset, as the kernel's struct of shared memory has it."""
    end, found = 0, []
    for member in plan.shared_memory(resolved).members:
        for each in _member(member, end):
            found.append(each)
        end = max([end, *(each.end for each in found)])
    return tuple(found)


def memory_picture(resolved: Resolved) -> str:
    """The map as SVG: an outline of each tile's memory, filled while the tile is live. Empty where there is none.

    `data-start` and `data-bytes` of a filled rectangle are its offset and size, `data-name` its tile, `data-lines` the
    first and the last line at which it is live.
    """
    found, memory = stored(resolved), plan.shared_memory(resolved)
    if not memory.total:
        return ""
    flow = dataflow(resolved)
    steps = flow.steps
    scale, bottom = _WIDTH / memory.total, _TOP + _ROW * len(steps)
    used = f"{memory.total:,} of {memory.limit:,} bytes per block; filled while a tile is live"
    parts = [svg.text(_LEFT, 14, used, kind="note")]
    for index, step in enumerate(steps):
        y = _TOP + _ROW * index + 12
        parts += [svg.text(4, y, step.line, kind="axis")]
        parts += [svg.text(34 + 12 * step.depth, y, svg.cut(step.text, _LETTERS - 2 * step.depth), kind="axis")]
    parts += [_outline(each, scale, len(steps)) for each in found if each.part is None]
    parts += [_cell(each, at, live, steps, scale) for at, each in enumerate(found) for live in live_steps(each, flow)]
    parts += list(_offsets(found, memory.total, scale, bottom))
    about = "; ".join(f"{each.name}: {each.bytes} bytes at {each.start}{each.live}" for each in found)
    return svg.picture(_LEFT + _WIDTH + 50, bottom + 24, parts, title="shared-memory map", about=about)


def live_steps(each: Stored, flow: Dataflow) -> tuple[range, ...]:
    """The steps in which it is live: between the lines that the rules state, else from its first to its last access,
    with all of a loop that accesses it. Barriers, and what no statement names, are live in all.
    """
    steps, whole = flow.steps, (range(len(flow.steps)),)
    if each.lines is not None:
        first, last = each.lines
        return _joined([at for at, step in enumerate(steps) if first <= step.line <= last]) or whole
    if each.of:
        in_global = {name for name, memory in flow.buffers if memory == "global memory"}
        used = [at for at, step in enumerate(steps) if _uses(step, each, in_global)]
        return tuple(range(at, at + 1) for at in used) or whole
    found = [at for at, step in enumerate(steps) if each.name in (*step.reads, *step.writes)]
    return _joined([index for at in found for index in _around(at, steps)]) or whole


def _uses(step: Step, each: Stored, in_global: set[str]) -> bool:
    """Whether a step stores the fragment of a staging tile, or is a collective with the workspace."""
    if each.staging:
        return each.of in step.reads and not in_global.isdisjoint(step.writes)
    return step.collective and each.of in step.writes


def _joined(found: list[int]) -> tuple[range, ...]:
    return (range(min(found), max(found) + 1),) if found else ()


def _around(at: int, steps: tuple[Step, ...]) -> range:
    """The outermost loop or branch around a step, with its head."""
    if not steps[at].depth:
        return range(at, at + 1)
    head = max(index for index in range(at) if not steps[index].depth)
    end = next((index for index in range(at, len(steps)) if not steps[index].depth), len(steps))
    return range(head, end)


def _member(member: plan.Member, end: int) -> Iterator[Stored]:
    match member:
        case plan.SharedTile():
            start = round_up(end, member.layout.alignment)
            yield Stored(name=member.tile.name, start=start, bytes=member.bytes, stages=max(1, member.stages))
        case plan.StagingTile(instead_of=None):
            layout = member.staging.layout
            yield _staging(member.staging, round_up(end, layout.alignment))
        case plan.StagingTile(instead_of=tile, staging=staging) if tile is not None:
            start = round_up(end, max(tile.layout.alignment, staging.layout.alignment))
            yield Stored(name=tile.tile.name, start=start, bytes=tile.bytes, part=0)
            after = _staging(staging, start)
            yield replace(after, part=1, live=", afterwards")
        case plan.Overlaid():
            yield from _overlaid(member, end)
        case plan.Workspaces():
            yield from _workspaces(member, end)
        case _:
            name, size = _barriers(member)
            if size:
                yield Stored(name=name, start=round_up(end, _WORD), bytes=size)


def _barriers(member: plan.Member) -> tuple[str, int]:
    """Barriers, or what a producer publishes, with its size."""
    match member:
        case plan.UserBarriers():
            return member.tile.name, _WORD * len(member.tile.arrivals)
        case plan.PipelineBarriers():
            return "barriers of the pipeline", member.bytes
        case plan.PrologueBarriers():
            return "barriers of the prologue", member.bytes
        case plan.PublishedIterations():
            return "active iterations", member.bytes
        case plan.DrawnWork():
            return "scheduled tiles", member.bytes
        case _:
            raise TypeError(f"{type(member).__name__} has a place of its own")


def _overlaid(member: plan.Overlaid, end: int) -> Iterator[Stored]:
    alignment = max(tile.layout.alignment for _, tiles in member.parts for tile in tiles)
    first = round_up(end, alignment)
    for number, (part, tiles) in enumerate(member.parts):
        own = first
        for tile in tiles:
            start = round_up(own, tile.layout.alignment)
            yield Stored(
                name=tile.tile.name,
                start=start,
                bytes=tile.bytes,
                stages=max(1, tile.stages),
                part=number,
                live=f", live in lines {part.first_line} to {part.last_line}",
                lines=(part.first_line, part.last_line),
            )
            own = start + tile.bytes


def _workspaces(member: plan.Workspaces, end: int) -> Iterator[Stored]:
    joined = [space for space in member.spaces if member.joined and space.warps]
    for space in member.spaces:
        if space not in joined:
            yield _space(space, end)
            end = round_up(end, space.dtype.bytes) + space.bytes
    first = round_up(end, max((space.dtype.bytes for space in joined), default=1))
    for number, space in enumerate(joined):
        yield Stored(name=space.row, start=first, bytes=space.bytes, part=number, of=_result_of(space))


def _space(space: Workspace, end: int) -> Stored:
    start = round_up(end, space.dtype.bytes)
    return Stored(name=space.row, start=start, bytes=space.bytes, of=_result_of(space))


def _result_of(space: Workspace) -> str:
    """The tile that a reduction or a scan with this workspace writes; empty of values that a fragment hands over."""
    return space.row.removesuffix("_workspace") if space.row_values is None else ""


def _staging(staging: Staging, start: int) -> Stored:
    return Stored(name=staging.name, start=start, bytes=staging.layout.bytes, of=staging.like.memory.name, staging=True)


def _place(each: Stored, scale: float) -> tuple[float, float]:
    """Its left edge, and its width."""
    return round(_LEFT + each.start * scale, 2), round(max(each.bytes * scale, _LEAST), 2)


def _outline(each: Stored, scale: float, rows: int) -> str:
    """Memory that is its own from the first statement to the last."""
    x, width = _place(each, scale)
    box = f'x="{x:g}" y="{_TOP}" width="{width:g}" height="{_ROW * rows}"'
    return f'<rect class="outline" {box} fill="none" stroke-dasharray="2 3"/>'


def _cell(each: Stored, index: int, live: range, steps: tuple[Step, ...], scale: float) -> str:
    """Its rectangle while it is live, with lines between its stages."""
    x, width = _place(each, scale)
    y, height = _TOP + _ROW * live.start, _ROW * len(live)
    first, last = (f"{steps[at].line}" for at in (live[0], live[-1]))
    stages = f", {each.stages} stages" if each.stages > 1 else ""
    where = f"bytes {each.start:,} to {each.end - 1:,} ({each.bytes:,}{stages})"
    title = f"{each.name}: {where}, live from line {first} to {last}"
    data = {"name": each.name, "start": each.start, "bytes": each.bytes, "lines": f"{first}-{last}"}
    cell = svg.rect(x, y, width, height, fill=svg.colour(index), title=title, **data)
    for stage in range(1, each.stages):
        at = round(x + width * stage / each.stages, 2)
        cell += f'<path d="M{at:g} {y}v{height}" stroke="#57606a" stroke-dasharray="3 3"/>'
    label = each.name if each.stages < 2 else f"{each.name} x {each.stages}"
    return cell + (svg.text(x + 5, y + 12, label) if len(label) * _LETTER < width - 6 else "")


def _offsets(found: tuple[Stored, ...], total: int, scale: float, bottom: int) -> Iterator[str]:
    """The offsets, where they do not overlap."""
    last = -100.0
    for offset in sorted({each.start for each in found} | {total}):
        x = _LEFT + offset * scale
        if x - last > 7 * len(f"{offset:,}"):
            yield svg.text(round(x, 2), bottom + 14, f"{offset:,}", kind="axis")
            last = x
