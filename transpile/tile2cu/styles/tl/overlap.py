"""A loop whose schedule interleaves two iterations: its parts as lambdas, each once, and the phases that run them."""

from dataclasses import dataclass, field

from msgspec.structs import replace

from tile2cu.core.schedule import RowFactor
from tile2cu.plan.producer_ops import (
    AwaitLoads,
    AwaitMmas,
    Do,
    Overlapped,
    Part,
    PartKind,
    ReleaseStage,
    RunPart,
    RunStatement,
)
from tile2cu.styles.base.comments import listed
from tile2cu.styles.base.constants import WRITTEN_STAGES
from tile2cu.styles.base.expressions import literal
from tile2cu.styles.base.names import Names
from tile2cu.styles.base.overlap import (
    UNMASKED,
    comment_lines,
    counting,
    masking,
    masks,
    notes,
    own_trips,
    part_wish,
    released_late,
    rescaled,
    rolled_notes,
)
from tile2cu.styles.base.pipelined import part_name, release_method
from tile2cu.styles.base.view import StatementView, text_line
from tile2cu.styles.base.visits import called
from tile2cu.styles.tl import vocabulary as tl
from tile2cu.styles.tl.iterations import Texts, pipeline_name
from tile2cu.styles.tl.parts import Parts


def overlapped(op: Overlapped, texts: Texts, body: Parts) -> StatementView:
    """The view of the loop."""
    loop = _Loop(op, texts, body)
    if op.rolled:
        return _rolled(loop)
    parts = tuple(loop.declared(part) for part in op.phases.parts)
    lambdas = [part for part in parts if part.body]
    if op.mask is not None:
        names, lambdas[1:1] = masks(op.mask, texts.k, texts.variable, body)
        loop.masked = (*names, "")
    trips, count = own_trips(op, texts.count, body.printer)
    shown = _visiting(loop) if op.visiting is not None else (*_run_if_any(loop, count), *_skipped(loop, count))
    return StatementView(
        "overlap",
        {},
        body=tuple(lambdas),
        declared=(*counting(op, texts.count, texts.trips), *trips),
        notes=notes(op, loop.masked[1], texts.k, body.printer.names),
        orelse=(*shown, *_deferred_sum(op, body)),
    )


def skipped(factor: RowFactor, names: Names) -> tuple[str, str]:
    """(what fills a factor of rows with 1, the condition that a row of the warp has another)."""
    fill = f"{tl.FILL}({names(factor.tile.name)}, {literal(1, factor.tile.dtype)});"
    return fill, f"{tl.ANY_CHANGED}({names(factor.before.name)}, {names(factor.after.name)})"


@dataclass
class _Loop:
    """Prints the parts of an iteration as lambdas, and the phases that call them.

    A part that asks is given the iteration's number, or, where iterations are skipped, the values that select it.
    """

    op: Overlapped
    texts: Texts
    body: Parts
    names: dict[int, str] = field(default_factory=dict)  # of parts with statements
    changed: str = ""
    masked: tuple[str, str, str] = ("", "", "")  # the condition, the mask, the parameter that applies it

    def __post_init__(self) -> None:
        fresh = self.body.printer.names.fresh
        self.changed = fresh("changed") if self.op.rescale is not None else ""

    @property
    def visited(self) -> dict[str, str]:
        """The names of what is visited, where iterations are skipped."""
        return called(self.op.visiting, self.body.printer.names) if self.op.visiting is not None else {}

    def declared(self, part: Part) -> StatementView:
        """The lambda of a part."""
        printer, k = self.body.printer, self.texts.k
        wish = part_wish(part, self.op, printer.names)
        name = wish if self.op.first else part_name(wish, self.op.iterations.number, printer)
        view = self._lambda(name, part)
        if part.kind is PartKind.START or not self.op.first:
            view = replace(view, parts={**view.parts, "argument": k})
        if self.op.rescale is not None:
            vote = (self.changed, *skipped(self.op.rescale.factor, printer.names))
            view = rescaled(view, part, self.op, k, vote, self.body)
        if view.body:
            self.names[id(part)] = name
        return view

    def _lambda(self, name: str, part: Part) -> StatementView:
        views, visited = self.body.views(part.block), self.visited
        if visited and part.asks:
            given = f"const {visited['type']}& {visited['work']}"
            return StatementView(
                "values_part", {"name": name, "argument": visited["work"], "values": given}, body=views
            )
        argument, variable = (self.texts.k, self.texts.variable) if part.asks or not self.op.first else ("", "")
        return StatementView("part", {"name": name, "argument": argument, "variable": variable}, body=views)

    @property
    def _voting_part(self) -> Part:
        """The part that returns the vote."""
        return next(part for part in self.op.phases.parts if part.kind is PartKind.PROCESS)

    @property
    def place(self) -> int:
        """The Python line of the phases."""
        return self.op.source.span.line

    def line(self, text: str) -> StatementView:
        """A line of a phase."""
        return text_line(text, self.place)

    def phase(self, dos: tuple[Do, ...], k: str, given: str) -> tuple[StatementView, ...]:
        """What a phase does for iteration `k`; `given` selects the iteration in parts that ask."""
        first = k == "0"
        found: list[StatementView] = []
        vote = ""  # a release that waits for the vote of the part behind it
        called = ""  # the call of the last part
        for place, do in enumerate(dos):
            behind = dos[place + 1] if place + 1 < len(dos) else None
            voting = isinstance(behind, RunPart) and behind.part.kind is PartKind.PROCESS and bool(self.changed)
            match do:
                case ReleaseStage(shift=-1) if self.op.rolled and k == self.texts.k:
                    found.append(self.line(f"if ({k} > 0) {self._release(do, k)}"))
                case RunPart(part=part) if self.op.rolled:
                    found += self.body.views(part.block)
                case ReleaseStage() if voting and not first:
                    vote = self._release(do, k, after=self.changed)
                case RunPart(part=part) if vote:
                    call = f"const bool {self.changed} = {self._call(part, k, given)};"
                    found += [self.line(call), self.line(vote)]
                    vote = ""
                case RunPart(part=part) if self.changed and part.kind is PartKind.PREPARE:
                    asked = f", {given}" if part.asks else ""
                    voted = self.changed
                    if first:  # the call of the part that votes is the argument
                        found.pop()
                        voted = called
                    found.append(self.line(f"{self.names[id(part)]}({voted}{asked});"))
                case RunPart(part=part):
                    found += self._run(do, part, k, given)
                    called = self._call(part, _number(do, k), given) if id(part) in self.names else ""
                case _:
                    found += self._other(do, k)
        return tuple(found)

    def _run(self, do: RunPart, part: Part, k: str, given: str) -> list[StatementView]:
        """The call of a part; the mask comes in front of the first that processes a result."""
        found: list[StatementView] = []
        if mask := masking(self.op, part, k, self.masked):
            found.append(self.line(mask))
        if id(part) in self.names:
            found.append(self.line(f"{self._call(part, _number(do, k), given)};"))
        return found

    def _call(self, part: Part, k: str, given: str) -> str:
        starts = part.kind is PartKind.START or not self.op.first
        return f"{self.names[id(part)]}({k if starts else given if part.asks else ''})"

    def _other(self, do: Do, k: str) -> list[StatementView]:
        """Waits, releases, and statements."""
        names = self.body.printer.names
        match do:
            case RunStatement(statement=statement):
                return [self.body.statement(statement, [])]
            case AwaitLoads():
                return [self.line(f"pipeline.consumer_wait({_stage(self.texts.done_before, k)});")]
            case ReleaseStage():
                return [self.line(self._release(do, k))]
            case AwaitMmas(results=results, pending=pending, shift=shift):
                done = ", ".join(names(tile.name) for tile in results if tile not in pending)
                note = ""
                if pending:
                    remain = "remains" if len(pending) == 1 else "remain"
                    of = "" if done else f" of iteration {k}"
                    note = f"  // {listed([names(tile.name) for tile in pending])}{of} {remain} in flight"
                elif shift and self.op.first and not any(do is each for each in self.op.phases.epilogue):
                    note = "  // before its operands and accumulator are written"
                return [self.line(f"{tl.GEMM_WAIT}<{len(pending)}>({done});{note}")]
        raise TypeError(type(do).__name__)

    def _release(self, do: ReleaseStage, k: str, after: str = "") -> str:
        """The call that releases a stage, `after` a value is known."""
        ring, texts, names = do.ring, self.texts, self.body.printer.names
        name = pipeline_name(ring.tile, names) if ring is not None else "pipeline"
        before = texts.first_done_before if ring is not None and ring.publishes else texts.done_before
        stage = _stage(before, _number(do, k))
        if after and not do.waits_for_loads:
            first = tuple(names(tile.name) for tile in self.op.first)
            process = self.names[id(self._voting_part)]
            about = released_late(self.op, first, after, f"{tl.GEMM_WAIT}<0>", process)
            return "\n".join((*comment_lines(about), f"{name}.consumer_release_after({after}, {stage});"))
        return f"{name}.{release_method(waits_for_loads=do.waits_for_loads)}({stage});"


def _number(do: Do, k: str) -> str:
    """The iteration of what is done for iteration `k`."""
    return f"{k} - 1" if do.shift else k


def _stage(before: tuple[str, ...], k: str) -> str:
    """An iteration as its pipeline counts."""
    return " + ".join(before) or "0" if k == "0" else " + ".join((*before, k))


def _run_if_any(loop: _Loop, count: str) -> tuple[StatementView, ...]:
    """The phases of a loop, on the condition that it has an iteration where that is not certain."""
    phases, k = loop.op.phases, loop.texts.k
    prologue, epilogue = loop.phase(phases.prologue, "0", "0"), loop.phase(phases.epilogue, count, count)
    if loop.op.mask is None:
        each = {"end": "", "unroll": "", "variable": k, "start": "1", "stop": count, "compare": "<", "move": f"++{k}"}
        loops: tuple[StatementView, ...] = (
            StatementView("loop", each, loop.place, body=loop.phase(phases.steady, k, k)),
        )
    else:
        loops = _with_and_without_mask(loop, count)
    done = [loop.line(loop.texts.done)] * loop.texts.counted
    body = (*prologue, *loops, *epilogue, *done)
    return body if loop.op.runs else (StatementView("branch", {"condition": f"{count} > 0"}, loop.place, body=body),)


def _with_and_without_mask(loop: _Loop, count: str) -> tuple[StatementView, ...]:
    """Loops over masked and over unmasked iterations."""
    fresh, k = loop.body.printer.names.fresh, loop.texts.k
    whole, masks = fresh("iteration"), fresh("masks")
    masked, mask, _ = loop.masked = (*loop.masked[:2], masks)
    values = {"name": whole, "argument": k, "values": f"int {k}, const auto& {masks}"}
    iteration = StatementView("values_part", values, loop.place, body=loop.phase(loop.op.phases.steady, k, k))
    about = "\n".join(comment_lines(f"{UNMASKED}  [{loop.op.rule}]"))
    text = (
        f"{about}\nfor (int {k} = 1; {k} < {count};) {{\n"
        f"for (; {k} < {count} && {masked}({k}); ++{k}) {whole}({k}, {mask});\n"
        f"for (; {k} < {count} && !{masked}({k}); ++{k}) {whole}({k}, [](int) {{}});\n}}"
    )
    return iteration, loop.line(text)


def _visiting(loop: _Loop) -> tuple[StatementView, ...]:
    """The same in each active iteration: all start the first MMAs, and only the first has no earlier MMA to await."""
    phases, k, given = loop.op.phases, loop.texts.k, loop.visited["work"]
    same = len(loop.op.first)  # the starts of the first MMAs
    begin = loop.phase(phases.steady[:same], k, given)
    first, later = loop.phase(phases.prologue[same:], "0", given), loop.phase(phases.steady[same:], k, given)
    branch = StatementView("branch", {"condition": f"{k} == 0"}, loop.place, body=first, orelse=later)
    texts = loop.texts
    ring = pipeline_name(loop.op.rings[0].tile, loop.body.printer.names)
    next_ = f"{ring}.next({texts.first_before}{k}, {given})" if texts.publishes else ""
    values = "yes" if loop.op.visiting is not None and loop.op.visiting.values else ""
    each = StatementView(
        "visit_active", {**loop.visited, "k": k, "next": next_, "values": values}, body=(*begin, branch)
    )
    last = StatementView("branch", {"condition": f"{k} > 0"}, loop.place, body=loop.phase(phases.epilogue, k, given))
    return each, last


def _skipped(loop: _Loop, count: str) -> tuple[StatementView, ...]:
    """The iterations that only other warpgroups have."""
    op, texts, names = loop.op, loop.texts, loop.body.printer.names
    if op.trips is None:
        return ()
    k = texts.k
    skips = (f"{pipeline_name(ring.tile, names)}.consumer_skip({texts.before}{k});" for ring in op.rings)
    about = "  // iterations of other warpgroups' rows"
    head = f"for (int {k} = {count}; {k} < {texts.count}; ++{k}) {{{about}"
    return (loop.line("\n".join((head, *skips, "}"))),)


def _deferred_sum(op: Overlapped, body: Parts) -> tuple[StatementView, ...]:
    """What adds up the lanes' parts of a sum, behind the loop; nothing where each iteration does it."""
    late = op.running
    if late is None:
        return ()
    total = body.printer.tile(late.total)
    about = comment_lines(f"Until here {total} has each thread's own elements only  [{op.rule}]")
    sum_ = f"{tl.WARP_ALLREDUCE_SUM}<{body.layout_of_tile(late.reduce.src)}, {late.reduce.dim}>({total});"
    return (text_line("\n".join((*about, sum_))),)


def _rolled(loop: _Loop) -> StatementView:
    """One loop over all iterations, whose MMAs are in flight while the next iteration writes their operands."""
    op, texts, printer, k = loop.op, loop.texts, loop.body.printer, loop.texts.k
    sums = [printer.names(each.name) for each in op.second]
    their = "its" if len(sums) == 1 else "their"
    printer.stages |= {tile.name: f"{k} % {WRITTEN_STAGES}" for tile in op.written}
    fences = "\n".join(f"{tl.WARPGROUP_FENCE_OPERAND}({name});" for name in sums)
    each = (*([loop.line(texts.variable)] if texts.variable else ()), *loop.phase(op.phases.steady, k, k))
    head = {"end": "", "unroll": "", "variable": k, "start": "0", "stop": texts.count, "compare": "<", "move": f"++{k}"}
    wait, *released = loop.phase(op.phases.epilogue, texts.count, texts.count)
    shown: tuple[StatementView, ...] = (
        loop.line(f"{fences}  // {their} registers are written before the MMA reads them"),
        StatementView("loop", head, loop.place, body=each),
        wait,
    )
    if op.iterations.inside:
        last = (*released, *[loop.line(texts.done)] * texts.counted)
        any_ = StatementView("branch", {"condition": f"{texts.count} > 0"}, loop.place, body=last)
        shown = (*map(loop.line, counting(op, texts.count, texts.trips)), *shown, any_)
    return StatementView("overlap", {}, comments=(rolled_notes(op, k, printer.names),), orelse=shown)
