"""The dataflow of a kernel's tiles as a picture: which statement reads which tile, and which one it writes."""

from collections.abc import Iterator

from msgspec.structs import replace

from tile2cu.analysis.control import places_of_operations
from tile2cu.analysis.effects import Access, effects, effects_of
from tile2cu.core.program import (
    Buffer,
    If,
    Launch,
    Loop,
    LoopKind,
    Reduce,
    Scan,
    Scope,
    While,
)
from tile2cu.core.record import Record
from tile2cu.plan.resolved import Resolved
from tile2cu.review import svg

_TEXT, _COLUMN, _ROW, _TOP = 430, 46, 20, 120
_LETTERS, _NAME = 64, 16  # that fit the text's width, and the height above the columns
_TURN = -50  # degrees of a column's name
_END = 70  # right of the last column, for its name
_MARK = 5
_HEAD = 14  # where the names of memories are
_MEMORIES = {
    Scope.GLOBAL: "global memory",
    Scope.SHARED: "shared memory",
    Scope.BARRIER: "shared memory",
    Scope.FRAGMENT: "registers",
    Scope.LOCAL: "registers",
}
_COLOURS = {"global memory": 0, "shared memory": 1, "registers": 2}


class Step(Record, frozen=True, kw_only=True):
    """A statement: its line and text, how many loops and branches are around it, and the tiles that it accesses.

    `loop` is True of a loop's head, which accesses none; `collective` of a reduction or a scan.
    """

    line: int
    text: str
    depth: int
    reads: tuple[str, ...] = ()
    writes: tuple[str, ...] = ()
    loop: bool = False
    collective: bool = False


class Dataflow(Record, frozen=True, kw_only=True):
    """The steps of a launch in order, and its buffers: name and memory, from global memory to registers."""

    buffers: tuple[tuple[str, str], ...]
    steps: tuple[Step, ...]


def dataflow(resolved: Resolved) -> Dataflow:
    """The accesses of a launch's statements, by the table of effects."""
    lines = dict(enumerate(resolved.program.source.text.splitlines(), 1))
    body = resolved.launch.body
    steps = tuple(_steps(resolved.launch, lines))
    memory = {access.root.name: _MEMORIES[access.root.scope] for access in effects_of(body).accesses}
    used = {name for step in steps for name in (*step.reads, *step.writes)}
    order = sorted(_COLOURS, key=lambda each: _COLOURS[each])
    listed = sorted((name for name in memory if name in used), key=lambda name: order.index(memory[name]))
    return Dataflow(buffers=tuple((name, memory[name]) for name in listed), steps=steps)


def dataflow_picture(resolved: Resolved) -> str:
    """The dataflow as SVG: a row per statement, a column per tile; a circle reads, a square writes.

    `data-line` of a mark is the Python line, `data-reads` and `data-writes` its tile.
    """
    flow = dataflow(resolved)
    place = {name: _TEXT + _COLUMN * index + _COLUMN / 2 for index, (name, _) in enumerate(flow.buffers)}
    bottom = _TOP + _ROW * len(flow.steps)
    parts = list(_heads(flow, place, bottom))
    for index, step in enumerate(flow.steps):
        parts += _row(step, _TOP + _ROW * index + _ROW / 2, place, dict(flow.buffers))
    about = "; ".join(_said(step) for step in flow.steps if not step.loop)
    return svg.picture(_TEXT + _COLUMN * len(place) + _END, bottom + 10, parts, title="dataflow of tiles", about=about)


def _steps(launch: Launch, lines: dict[int, str]) -> Iterator[Step]:
    for place in places_of_operations(launch.body):
        stmt = place.stmt
        text = lines.get(stmt.span.line, "").strip()
        step = Step(line=stmt.span.line, text=text, depth=len(place.path))
        if isinstance(stmt, If | Loop | While):
            pipelined = isinstance(stmt, Loop) and stmt.kind is LoopKind.PIPELINED
            yield replace(step, text=f"{text}  (pipelined)" if pipelined else text, loop=True)
            continue
        found = effects(stmt)
        reads, writes = _names(found.reads), _names(found.writes)
        if reads or writes:
            yield replace(step, reads=reads, writes=writes, collective=isinstance(stmt, Reduce | Scan))


def _names(accesses: tuple[Access, ...]) -> tuple[str, ...]:
    found: dict[str, Buffer] = {access.root.name: access.root for access in accesses}
    return tuple(found)


def _heads(flow: Dataflow, place: dict[str, float], bottom: float) -> Iterator[str]:
    """The names of the tiles, below the memory that they are in, and a line down from each."""
    last = ""
    for name, memory in flow.buffers:
        x = place[name]
        if memory != last:
            left = x - _COLUMN / 2
            yield f'<path class="line" d="M{left:g} {_HEAD - 12}V{bottom:g}" stroke-width=".6"/>'
            yield svg.text(left + 5, _HEAD, memory.partition(" ")[0], kind="note")
        last = memory
        yield f'<path class="line" d="M{x:g} {_TOP - 6}V{bottom:g}" stroke-dasharray="2 3"/>'
        yield svg.text(x, _TOP - 10, svg.cut(name, _NAME), kind="axis", turned=_TURN)


def _row(step: Step, y: float, place: dict[str, float], memory: dict[str, str]) -> Iterator[str]:
    """A statement's text, its marks, and a line that joins them."""
    room = _LETTERS - 2 * step.depth
    yield svg.text(4, y + 3, step.line, kind="axis")
    yield svg.text(34 + 12 * step.depth, y + 3, svg.cut(step.text, room), kind="axis")
    at = sorted(place[name] for name in {*step.reads, *step.writes})
    if len(at) > 1:
        yield f'<path class="line" d="M{at[0]:g} {y:g}H{at[-1]:g}"/>'
    for name in step.reads:
        colour = svg.colour(_COLOURS[memory[name]])
        more = f'data-line="{step.line}" data-reads="{name}"'
        circle = f'<circle cx="{place[name]:g}" cy="{y:g}" r="{_MARK:g}" fill="{colour}" {more}>'
        yield f"{circle}<title>line {step.line} reads {name}</title></circle>"
    for name in step.writes:
        x, title = place[name] - _MARK + 2.5 * (name in step.reads), f"line {step.line} writes {name}"
        colour = svg.colour(_COLOURS[memory[name]])
        yield svg.rect(x, y - _MARK, 2 * _MARK, 2 * _MARK, fill=colour, title=title, line=step.line, writes=name)


def _said(step: Step) -> str:
    reads = f"reads {', '.join(step.reads)}" if step.reads else ""
    writes = f"writes {', '.join(step.writes)}" if step.writes else ""
    return f"line {step.line} {' and '.join(each for each in (reads, writes) if each)}"
