"""The shared memory of a block as a picture: what is stored at which offset, and when."""

from collections.abc import Iterator
from dataclasses import dataclass

from tile2cu.core.schedule import Workspace, round_up
from tile2cu.plan import shared as plan
from tile2cu.plan.settled import Settled
from tile2cu.review import svg

_WIDTH, _HEIGHT, _LEFT, _TOP = 900, 46, 10, 24
_LABEL = 6.2  # pixels of a character
_WORD = 8  # bytes: alignment of barriers and of what a producer publishes


@dataclass(frozen=True, kw_only=True)
class Stored:
    """`bytes` of shared memory at `start`, in so many `stages`; of aliased memory, the `part` that it is live in."""

    name: str
    start: int
    bytes: int
    stages: int = 1
    part: int | None = None
    live: str = ""

    @property
    def end(self) -> int:
        return self.start + self.bytes


def stored(settled: Settled) -> tuple[Stored, ...]:
    """What a block stores at which offset, as the kernel's struct of shared memory has it."""
    end, found = 0, []
    for member in plan.shared_memory(settled).members:
        for each in _member(member, end):
            found.append(each)
        end = max([end, *(each.end for each in found)])
    return tuple(found)


def memory_picture(settled: Settled) -> str:
    """The map as SVG: offsets from left to right, aliased memory in a row per lifetime.

    `data-start` and `data-bytes` of a rectangle are its offset and size, `data-name` its tile.
    """
    found, memory = stored(settled), plan.shared_memory(settled)
    if not memory.total:
        return ""
    rows = 1 + max((each.part or 0 for each in found), default=0)
    scale = _WIDTH / memory.total
    parts = [_cell(each, index, rows, scale) for index, each in enumerate(found)]
    bottom = _TOP + _HEIGHT * rows
    parts += [svg.text(_LEFT, 14, f"{memory.total:,} of {memory.limit:,} bytes per block", kind="note")]
    parts += list(_offsets(found, memory.total, scale, bottom))
    about = "; ".join(f"{each.name}: {each.bytes} bytes at {each.start}{each.live}" for each in found)
    return svg.picture(_WIDTH + 80, bottom + 30, parts, title="shared-memory map", about=about)


def _member(member: plan.Member, end: int) -> Iterator[Stored]:
    match member:
        case plan.SharedTile():
            start = round_up(end, member.layout.alignment)
            yield Stored(name=member.tile.name, start=start, bytes=member.bytes, stages=max(1, member.stages))
        case plan.StagingTile(instead_of=None):
            layout = member.staging.layout
            yield Stored(name=member.staging.name, start=round_up(end, layout.alignment), bytes=layout.bytes)
        case plan.StagingTile(instead_of=tile, staging=staging) if tile is not None:
            start = round_up(end, max(tile.layout.alignment, staging.layout.alignment))
            yield Stored(name=tile.tile.name, start=start, bytes=tile.bytes, part=0)
            yield Stored(name=staging.name, start=start, bytes=staging.layout.bytes, part=1, live=", afterwards")
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
            stages, lines = max(1, tile.stages), f", live in lines {part.first_line} to {part.last_line}"
            yield Stored(name=tile.tile.name, start=start, bytes=tile.bytes, stages=stages, part=number, live=lines)
            own = start + tile.bytes


def _workspaces(member: plan.Workspaces, end: int) -> Iterator[Stored]:
    joined = [space for space in member.spaces if member.joined and space.warps]
    for space in member.spaces:
        if space not in joined:
            yield _space(space, end)
            end = round_up(end, space.dtype.bytes) + space.bytes
    first = round_up(end, max((space.dtype.bytes for space in joined), default=1))
    for number, space in enumerate(joined):
        yield Stored(name=space.name, start=first, bytes=space.bytes, part=number)


def _space(space: Workspace, end: int) -> Stored:
    return Stored(name=space.name, start=round_up(end, space.dtype.bytes), bytes=space.bytes)


def _cell(each: Stored, index: int, rows: int, scale: float) -> str:
    """Its rectangle, with lines between its stages; what is not aliased is live all the time, in all rows."""
    x, width = _LEFT + each.start * scale, each.bytes * scale
    y, height = (_TOP, _HEIGHT * rows) if each.part is None else (_TOP + _HEIGHT * each.part, _HEIGHT)
    stages = f", {each.stages} stages" if each.stages > 1 else ""
    title = f"{each.name}: bytes {each.start:,} to {each.end - 1:,} ({each.bytes:,}{stages}){each.live}"
    data = {"name": each.name, "start": each.start, "bytes": each.bytes}
    cell = svg.rect(round(x, 2), y, round(width, 2), height, fill=svg.colour(index), title=title, **data)
    for stage in range(1, each.stages):
        at = round(x + width * stage / each.stages, 2)
        cell += f'<path d="M{at:g} {y}v{height}" stroke="#555" stroke-dasharray="3 3"/>'
    fits = len(each.name) * _LABEL < width
    return cell + (svg.text(round(x + width / 2, 2), y + 18, each.name, middle=True) if fits else "")


def _offsets(found: tuple[Stored, ...], total: int, scale: float, bottom: int) -> Iterator[str]:
    """The offsets, where they do not overlap."""
    last = -100.0
    for offset in sorted({each.start for each in found} | {total}):
        x = _LEFT + offset * scale
        if x - last > 7 * len(f"{offset:,}"):
            yield svg.text(round(x, 2), bottom + 12, f"{offset:,}", kind="axis")
            last = x
