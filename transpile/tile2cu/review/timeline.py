"""A pipelined loop as a Gantt chart: who does what in which iteration, and which stages hold tiles.

Time is in steps of the loop's schedule, not in cycles: the chart shows order and overlap. Barriers are events between
two steps: the mbarriers of a producer's stages, and the block barriers of a loop whose threads load themselves.
"""

from collections.abc import Iterator

from tile2cu.analysis.accesses import buffers_read
from tile2cu.core.decisions import PIPELINE, SCHEDULE
from tile2cu.core.program import Copy, Gemm, Loop, Stmt
from tile2cu.core.record import Record
from tile2cu.core.schedule import Action, By, Pipeline, Step
from tile2cu.plan.producer import rings_of
from tile2cu.plan.resolved import Resolved
from tile2cu.review import svg

_STEPS, _ROW, _LEFT, _TOP = (19, 28), 22, 190, 30  # the least and the most pixels of a step
_WIDTH = 1340  # pixels that a chart should not exceed
_TICK = 5  # pixels of an event
_LETTER = 6.1  # pixels of a character
_BLOCK_BARRIER = "block barriers"
_ARRIVAL = 2  # steps that a load takes in the chart
_ITERATIONS = (4, 6)  # the fewest and the most that are shown


class Bar(Record, frozen=True, kw_only=True):
    """Steps `start` to `end` of one `row`: what happens, in which iteration, by which line of the Python file.

    An event, as a barrier's completion, starts and ends at the same step.
    """

    row: str
    start: int
    end: int
    iteration: int
    line: int
    what: str


class Timeline(Record, frozen=True, kw_only=True):
    """The chart of a loop: its rows in order, and the bars of its first iterations."""

    loop: Loop
    rows: tuple[str, ...]
    bars: tuple[Bar, ...]


def timeline(loop: Loop, resolved: Resolved) -> Timeline | None:
    """The chart of a loop; None where it has no software pipeline."""
    pipeline = resolved.facts.get(loop, PIPELINE)
    if pipeline is None:
        return None
    found = resolved.facts.get(loop, SCHEDULE)
    steps = found.steps if found is not None else Step.each(*pipeline.body)
    chart = _Chart(pipeline, _rings(pipeline, resolved))
    if any(step.by is By.OWNER for step in steps):
        chart.alternate(steps)
    else:
        chart.run(steps)
    return Timeline(loop=loop, rows=chart.rows(), bars=tuple(chart.bars))


class _Ring(Record, frozen=True):
    """Loads whose tiles share stages, which are released together: after the last reader of one of `tiles`."""

    name: str
    loads: tuple[Stmt, ...]
    tiles: frozenset[str]

    def stage(self, iteration: int, stages: int) -> str:
        """The row of the stage that the tiles of an iteration take."""
        return " ".join(filter(None, (self.name, f"stage {iteration % stages}")))

    def barrier(self, kind: str) -> str:
        """The row of its "full" or "empty" mbarriers."""
        return " ".join(filter(None, (self.name, f"{kind} mbarriers")))

    def is_read_by(self, stmt: Stmt) -> bool:
        return any(buffer.memory.name in self.tiles for buffer in buffers_read(stmt))


def _rings(pipeline: Pipeline, resolved: Resolved) -> tuple[_Ring, ...]:
    """The loads of a pipeline, by the ring of stages that a producer has for each MMA; else all in one."""
    rings = [ring.tile.name for ring in rings_of(resolved)] if pipeline.producer else []
    if len(rings) < 2:
        return (_Ring("", pipeline.loads, frozenset(buffer.memory.name for buffer in pipeline.buffers)),)
    loads: dict[str, list[Stmt]] = {name: [] for name in rings}
    for load in pipeline.loads:
        name = load.dst.buffer.memory.name if isinstance(load, Copy) else ""
        loads[name if name in loads else rings[0]].append(load)
    return tuple(_Ring(name, tuple(found), frozenset((name,))) for name, found in loads.items())


class _Chart:
    """Runs the first iterations step by step."""

    def __init__(self, pipeline: Pipeline, rings: tuple[_Ring, ...]) -> None:
        self.pipeline, self.rings = pipeline, rings
        self.count = min(max(pipeline.stages + 2, _ITERATIONS[0]), _ITERATIONS[1])
        self.threads = "consumer warps" if pipeline.producer else "all threads"
        self.bars: list[Bar] = []
        self._arrived: dict[tuple[str, int], int] = {}  # of a ring's tiles of an iteration
        self._fetched: dict[int, int] = {}  # when the loads of an iteration to registers were issued
        self._issued = 0  # when the producer has issued its last load

    def rows(self) -> tuple[str, ...]:
        """The rows in use: roles, then MMAs in flight, barriers and stages."""
        used = tuple(dict.fromkeys(bar.row for bar in self.bars))
        roles = ("producer warp", self.threads, "warpgroup 0", "warpgroup 1", "registers")
        stages = [ring.stage(k, self.pipeline.stages) for ring in self.rings for k in range(self.pipeline.stages)]
        barriers = [ring.barrier(kind) for ring in self.rings for kind in ("full", "empty")] + [_BLOCK_BARRIER]
        mmas = (row for row in used if row not in (*roles, *barriers, *stages))
        return (*(row for row in roles if row in used), *mmas, *(row for row in (*barriers, *stages) if row in used))

    def run(self, steps: tuple[Step, ...]) -> None:
        """All iterations of a schedule, those of the last MMAs included."""
        now, started = 0, dict[tuple[int, int], int]()
        if not self.pipeline.producer:
            now = self._prologue()
        for k in range(self.count + max(step.shift for step in steps)):
            if not self.pipeline.producer:
                now = self._before(k, now)
            for step in steps:
                iteration = k - step.shift
                if 0 <= iteration < self.count:
                    now = self._step(step, iteration, now, started)

    def _prologue(self) -> int:
        """The loads that all threads issue before the first iteration."""
        now, stages = 0, self.pipeline.stages
        for k in range(stages - 1):
            now = self._store(k, self._fetch(k, now)) if self.pipeline.staged else self._load(k, now)
        return self._fetch(stages - 1, now) if self.pipeline.staged else now

    def _before(self, k: int, now: int) -> int:
        """What precedes an iteration where all threads load: its tiles have arrived, and the next load is issued."""
        one_stage = self.pipeline.stages == 1
        if k >= self.count:
            return now
        if one_stage and k > 0:
            self._block_barrier(k, now, f"all threads have read tile {k - 1}")
        if self.pipeline.staged:
            if not one_stage:
                self._block_barrier(k, now, f"tile {k} is visible to all threads")
            stored = k + self.pipeline.stages - 1
            now = self._store(stored, now)
            if one_stage:
                self._block_barrier(k, now, f"tile {k} is visible to all threads")
            return self._fetch(stored + 1, now)
        if one_stage:
            now = self._load(k, now)
        now = max([now, *(self._arrived.get((ring.name, k), now) for ring in self.rings)])
        self._block_barrier(k, now, f"tile {k} is visible to all threads")
        return now if one_stage else self._load(k + self.pipeline.stages - 1, now)

    def _block_barrier(self, k: int, now: int, what: str) -> None:
        self._bar(_BLOCK_BARRIER, now, now, k, self.pipeline.loads[0], what)

    def _step(self, step: Step, iteration: int, now: int, started: dict[tuple[int, int], int]) -> int:
        named = (id(step.stmt), iteration)
        what = "MMA" if isinstance(step.stmt, Gemm) else "load"
        if step.action is Action.WAIT:
            line = step.stmt.span.line
            self._bar(
                f"{what} of line {line}, in flight", started.pop(named), now + 1, iteration, step.stmt, "in flight"
            )
            self._bar(self.threads, now, now + 1, iteration, step.stmt, f"await the {what}")
        else:
            now = self._arrival(step.stmt, iteration, now)
            started[named] = now
            done = f"issue the {what}" if step.action is Action.START else "run"
            self._bar(self.threads, now, now + 1, iteration, step.stmt, done)
        if step.action is not Action.START:
            self._release(step.stmt, iteration, now + 1)
        return now + 1

    def alternate(self, steps: tuple[Step, ...]) -> None:
        """Two warpgroups take iterations alternately, and share the last steps of each."""
        own, shared = (tuple(step.stmt for step in steps if step.by is by) for by in (By.OWNER, By.ALL))
        clocks, ready = [0, 0], dict[int, int]()
        for first in range(0, self.count, 2):
            iterations = range(first, min(first + 2, self.count))
            for k in iterations:
                clocks[k % 2] = ready[k] = self._sequence(f"warpgroup {k % 2}", own, k, clocks[k % 2])
            for k in iterations:
                for group in (0, 1):
                    clocks[group] = self._sequence(f"warpgroup {group}", shared, k, max(clocks[group], ready[k]))

    def _sequence(self, row: str, stmts: tuple[Stmt, ...], iteration: int, now: int) -> int:
        for stmt in stmts:
            now = self._arrival(stmt, iteration, now)
            self._bar(row, now, now + 1, iteration, stmt, "run")
            now += 1
            self._release(stmt, iteration, now)
        return now

    def _arrival(self, stmt: Stmt, iteration: int, now: int) -> int:
        """When the tiles that a statement reads have arrived; a producer has issued their loads by then."""
        for ring in self.rings:
            if ring.is_read_by(stmt):
                if (ring.name, iteration) not in self._arrived:
                    self._produce(ring, iteration)
                now = max(now, self._arrived[ring.name, iteration])
        return now

    def _produce(self, ring: _Ring, k: int) -> None:
        """The producer issues the loads of an iteration as soon as their stage is free."""
        stage = ring.stage(k, self.pipeline.stages)
        begin = max([self._issued, *(bar.end for bar in self.bars if bar.row == stage)])
        self._issued = begin + 1
        self._bar("producer warp", begin, begin + 1, k, ring.loads[0], "issue loads")
        self._hold(ring, k, begin)

    def _load(self, k: int, now: int) -> int:
        """All threads issue the loads of an iteration."""
        if k >= self.count:
            return now
        self._bar(self.threads, now, now + 1, k, self.pipeline.loads[0], "issue loads")
        for ring in self.rings:
            self._hold(ring, k, now)
        return now + 1

    def _fetch(self, k: int, now: int) -> int:
        """All threads issue the loads of an iteration to registers."""
        if k >= self.count:
            return now
        self._bar(self.threads, now, now + 1, k, self.pipeline.loads[0], "issue loads")
        self._fetched[k] = now
        return now + 1

    def _store(self, k: int, now: int) -> int:
        """They store the tiles that have arrived in registers to a stage."""
        if k >= self.count:
            return now
        load, now = self.pipeline.loads[0], max(now, self._fetched[k] + 1 + _ARRIVAL)
        self._bar(self.threads, now, now + 1, k, load, "store to shared memory")
        self._bar("registers", self._fetched[k], now + 1, k, load, "in registers")
        for ring in self.rings:
            self._arrived[ring.name, k] = now + 1
            self._bar(ring.stage(k, self.pipeline.stages), now, now + 1, k, load, "arrive")
        return now + 1

    def _hold(self, ring: _Ring, k: int, begin: int) -> None:
        """The tiles of an iteration take a stage, until they are released."""
        arrived = self._arrived[ring.name, k] = begin + 1 + _ARRIVAL
        if self.pipeline.producer:
            self._bar(ring.barrier("full"), arrived, arrived, k, ring.loads[0], self._phase(k, "full"))
        self._bar(ring.stage(k, self.pipeline.stages), begin, arrived, k, ring.loads[0], "arrive")

    def _release(self, stmt: Stmt, k: int, end: int) -> None:
        """The stages that the statement reads are in use until here."""
        for ring in (ring for ring in self.rings if ring.is_read_by(stmt)):
            row, key = ring.stage(k, self.pipeline.stages), (ring.name, k)
            freed, phase = ring.barrier("empty"), self._phase(k, "empty")
            old = {(row, k, "in use"), (freed, k, phase)}
            self.bars = [bar for bar in self.bars if (bar.row, bar.iteration, bar.what) not in old]
            self._bar(row, self._arrived[key], end, k, ring.loads[0], "in use")
            if self.pipeline.producer:
                self._bar(freed, end, end, k, ring.loads[0], phase)

    def _phase(self, k: int, kind: str) -> str:
        """What completes: an mbarrier's phases are numbered by how often its stage was used."""
        return f"the {kind} mbarrier of stage {k % self.pipeline.stages} completes phase {k // self.pipeline.stages}"

    def _bar(self, row: str, start: int, end: int, iteration: int, stmt: Stmt, what: str) -> None:
        self.bars.append(Bar(row=row, start=start, end=end, iteration=iteration, line=stmt.span.line, what=what))


def timeline_picture(chart: Timeline, text: dict[int, str]) -> str:
    """The chart as SVG, coloured by iteration; `text` has the lines of the Python file.

    `data-row`, `data-start`, `data-end`, `data-iteration` and `data-py` (the line) of a rectangle are its bar.
    """
    last = max(bar.end for bar in chart.bars)
    step = min(max((_WIDTH - _LEFT) // last, _STEPS[0]), _STEPS[1])
    width, bottom = _LEFT + last * step + 20, _TOP + len(chart.rows) * _ROW
    parts = [svg.text(10, 14, f"line {chart.loop.span.line}: iterations, in steps of the schedule", kind="note")]
    parts += [svg.text(10, _TOP + index * _ROW + 14, row, kind="axis") for index, row in enumerate(chart.rows)]
    parts += [_lane(index, width) for index in range(len(chart.rows) + 1)]
    parts += [_cell(bar, chart.rows.index(bar.row), step, text) for bar in chart.bars]
    iterations = sorted({bar.iteration for bar in chart.bars})
    parts += (part for each in iterations for part in _legend(each, bottom))
    about = "; ".join(_sentence(chart, row) for row in chart.rows)
    width = max(width, _LEFT + len(iterations) * 90)
    return svg.picture(width, bottom + 32, parts, title=f"pipeline of line {chart.loop.span.line}", about=about)


def _sentence(chart: Timeline, row: str) -> str:
    bars = (bar for bar in chart.bars if bar.row == row)
    return f"{row}: " + ", ".join(f"{bar.what} (iteration {bar.iteration}, line {bar.line})" for bar in bars)


def _lane(index: int, width: int) -> str:
    """The line above a row."""
    return f'<path class="line" d="M10 {_TOP + index * _ROW - 1.5:g}H{width - 10}" stroke-width=".3"/>'


def _cell(bar: Bar, index: int, step: int, text: dict[int, str]) -> str:
    """A bar with its label, or an event as a tick between two steps."""
    x, y, width = _LEFT + bar.start * step, _TOP + index * _ROW, (bar.end - bar.start) * step
    title = f"iteration {bar.iteration}: {bar.what}, line {bar.line}: {text.get(bar.line, '').strip()}"
    data = {"row": bar.row, "start": bar.start, "end": bar.end, "iteration": bar.iteration, "py": bar.line}
    if not width:
        return svg.rect(x - _TICK / 2, y, _TICK, _ROW - 3, fill=svg.colour(bar.iteration), title=title, **data)
    cell = svg.rect(x, y, width, _ROW - 3, fill=svg.colour(bar.iteration), title=title, **data)
    label = bar.what if bar.end - bar.start > 1 and len(bar.what) * _LETTER < width else str(bar.line)
    return cell + (svg.text(x + width / 2, y + 13, label, middle=True) if len(label) * _LETTER <= width else "")


def _legend(iteration: int, bottom: int) -> Iterator[str]:
    x, y = _LEFT + iteration * 90, bottom + 10
    yield svg.rect(x, y, 10, 10, fill=svg.colour(iteration))
    yield svg.text(x + 14, y + 9, f"iteration {iteration}", kind="axis")
