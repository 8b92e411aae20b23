"""Loops whose tiles a producer loads, as the consumers run them."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

from msgspec.structs import replace

from tile2cu.analysis.accesses import buffers_read
from tile2cu.core.schedule import RowFactor
from tile2cu.core.shared_memory import ACTIVE_ROW
from tile2cu.plan.producer_ops import (
    AwaitLoads,
    AwaitMmas,
    Consume,
    Do,
    Overlapped,
    Part,
    PartKind,
    Prefetch,
    ReleaseStage,
    RunPart,
    RunStatement,
    VisitedWork,
    Visits,
)
from tile2cu.styles.base.comments import BODY_WIDTH, listed, wrapped
from tile2cu.styles.base.constants import WRITTEN_STAGES
from tile2cu.styles.base.expressions import literal
from tile2cu.styles.base.loops import FromZero
from tile2cu.styles.base.names import Names
from tile2cu.styles.base.overlap import (
    UNMASKED,
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
from tile2cu.styles.base.pipelined import release_method
from tile2cu.styles.base.view import StatementView, text_line
from tile2cu.styles.base.visits import called, fields
from tile2cu.styles.cute import vocabulary as words
from tile2cu.styles.cute.fragments import sharing
from tile2cu.styles.cute.parts import Parts
from tile2cu.styles.cute.producer import Role
from tile2cu.styles.cute.support import unsupported
from tile2cu.styles.cute.wgmma import fences


def consume(op: Consume, role: Role, kernel: Parts) -> StatementView:
    """A loop whose iterations wait for their stage and release it."""
    tile = op.iterations.tiles[0]
    with role.iterations(op.iterations) as loop:
        state, barriers = role.state(tile), role.barriers(tile)
        released = f"{barriers}.{release_method(waits_for_loads=op.waits_for_loads)}({state});"
        wait, release = text_line(f"{barriers}.consumer_wait({state});"), text_line(released)
        given = (text_line(loop.variable),) * (bool(loop.variable) and op.reads_var)
        nested = op.iterations.inside
        first = prefetched(op.prefetch, loop, loop.trips if nested else loop.count, kernel) if op.prefetch else ()
        with kernel.continuing(released):
            body = (wait, *given, *kernel.views(op.body), release)
        if op.once:
            only = (*body, text_line(f"{role.advance(op.iterations)};"))
            return StatementView("branch", {"condition": "true"}, body=only)
        each = _loop(loop, "0", role.advance(op.iterations), body, op.source.span.line, declares=nested)
        return StatementView("block", {}, body=(*first, each)) if first else each


def prefetched(op: Prefetch, loop: FromZero, trips: str, kernel: Parts) -> tuple[StatementView, ...]:
    """What precedes a loop whose vectors are loaded one iteration earlier: registers, the load, the first one's."""
    names, k = kernel.printer.names, loop.k
    tiles = [kernel.copies.waiting(copy) for copy in op.copies]
    load = names.fresh("load_vectors")
    about = f"{', '.join(tile.name for tile in tiles)}: the next iteration's vectors, prefetched during this one's MMAs"
    comments = tuple(wrapped(f"{about}  [{op.rule}]", BODY_WIDTH))
    declared = text_line("\n".join(tile.declaration for tile in tiles), 0, comments)
    loads = tuple(kernel.statement(each, []) for each in op.loads)
    kernel.prefetches[id(op)] = f"{load}({words.MIN}({k} + 1, {trips} - 1));"
    part = StatementView("part", {"name": load, "argument": k, "variable": loop.variable}, body=loads)
    return declared, part, text_line(f"if ({trips} > 0) {load}(0);")


def _loop(
    loop: FromZero, start: str, also: str, body: tuple[StatementView, ...], line: int, *, declares: bool = False
) -> StatementView:
    stop = loop.trips if declares else loop.count
    each = {"unroll": "no", "end": "", "variable": loop.k, "start": start, "compare": "<", "stop": stop}
    return StatementView("loop", each | {"move": ", ".join(filter(None, (f"++{loop.k}", also)))}, line, body=body)


def visits(op: Visits, kernel: Parts) -> StatementView:
    """What is done there."""
    with fields(op.visiting, kernel.printer) as names:
        views = kernel.views(op.body)
    if isinstance(op.body[-1].statements[-1].op, Overlapped) and op.visiting.iterations:
        return views[-1]  # it visits the iterations itself
    parts = {**names, "values": "yes" if op.visiting.values else ""}
    return StatementView("visits", parts, op.source.span.line, body=views)


def overlapped(op: Overlapped, role: Role, kernel: Parts) -> StatementView:
    """A loop whose schedule interleaves two iterations."""
    with role.iterations(op.iterations) as loop:
        if op.rolled:
            return _rolled(op, loop, role, kernel)
        return StatementView("block", {}, body=Overlap(op, role, kernel, loop).views())


def _rolled(op: Overlapped, loop: FromZero, role: Role, kernel: Parts) -> StatementView:
    """A loop whose MMAs are in flight while the next iteration writes their operands."""
    printer, tile, k = kernel.printer, op.iterations.tiles[0], loop.k
    if op.rings:
        raise unsupported("MMAs in flight whose operands have pipelines of their own", op.source.span)
    sums = [printer.names(each.name) for each in op.second]
    state, barriers = role.state(tile), role.barriers(tile)
    printer.stages |= {each.name: f"{k} % {WRITTEN_STAGES}" for each in op.written}
    released = printer.names.fresh(f"released_{state}")
    what, are, these = ("MMA", "is", "this one remains") if len(sums) == 1 else ("MMAs", "are", "these remain")
    (part,) = op.phases.parts
    release = text_line(f"{barriers}.consumer_release({released});")
    again = StatementView("branch", {"condition": f"{k} > 0"}, body=(release, text_line(f"++{released};")))
    body = (
        *((text_line(loop.variable),) * bool(loop.variable)),
        text_line(f"{barriers}.consumer_wait({state});"),
        *kernel.views(part.block),
        text_line(
            f"warpgroup_wait<{len(sums)}>();  // the {what} of the iteration before {are} done, {these} in flight"
        ),
        again,
    )
    last = (StatementView("branch", {"condition": f"{loop.count} > 0"}, body=(release,)),) * op.iterations.inside
    shown = (
        *map(text_line, counting(op, loop.count, loop.trips)),
        text_line(fences(tuple(sums)) + "  // its registers are written before the MMA reads them"),
        text_line(f"auto {released} = {state};  // of the {what} in flight"),
        _loop(loop, "0", role.advance(op.iterations), body, op.source.span.line),
        text_line(f"warpgroup_wait<0>();\n{fences(tuple(sums))}"),
        *last,
    )
    return StatementView(
        "block", {}, comments=tuple(wrapped(rolled_notes(op, k, printer.names), BODY_WIDTH)), body=shown
    )


def skipped(factor: RowFactor, names: Names) -> tuple[str, str]:
    """(what fills a factor of rows with 1, the condition that a row of the warp has another)."""
    fill = f"fill({names(factor.tile.name)}, {literal(1, factor.tile.dtype)});"
    return fill, f"{words.VALUES_CHANGED}({names(factor.before.name)}, {names(factor.after.name)})"


@dataclass
class Overlap:
    """Prints the parts of an iteration as lambdas, each once, and the phases that call them."""

    op: Overlapped
    role: Role
    kernel: Parts
    loop: FromZero
    names: dict[int, str] = field(default_factory=dict)  # of parts with statements
    changed: str = ""
    masked: tuple[str, str, str] = ("", "", "")  # the condition, the mask, the parameter that applies it
    releases: str = ""  # the state of the MMAs in flight, where all tiles share a pipeline

    def __post_init__(self) -> None:
        """Errors: T2C-E034 where a part reads a stage that its pipeline's state has left, or is not yet at."""
        releases = {id(do.ring.tile): do.shift for do in self._steady if isinstance(do, ReleaseStage) and do.ring}
        for do in self._steady:
            if isinstance(do, RunPart):
                statements = (each for paragraph in do.part.block for each in paragraph.statements)
                read = {id(tile.memory) for each in statements for tile in buffers_read(each.source)}
                if any(releases[tile] != do.shift for tile in read & releases.keys()):
                    raise unsupported("a part of an iteration that reads a stage of another", self.op.source.span)
        if not self.op.rings:
            if self.op.first:
                raise unsupported("two groups of MMAs that overlap and share a pipeline", self.op.source.span)
            state = self._shared[1]
            self.releases = self.kernel.printer.names.fresh(f"released_{state}")
        if self.op.rescale is not None:
            self.changed = self.kernel.printer.names.fresh("changed")

    @property
    def _steady(self) -> tuple[Do, ...]:
        return self.op.phases.steady

    @property
    def _shared(self) -> tuple[str, str]:
        """(barriers, state) of the one pipeline."""
        tile = self.op.iterations.tiles[0]
        return self.role.barriers(tile), self.role.state(tile)

    def views(self) -> tuple[StatementView, ...]:
        """The loop."""
        op, printer = self.op, self.kernel.printer
        lambdas = [part for part in map(self._declared, op.phases.parts) if part.body]
        if op.mask is not None:
            names, lambdas[1:1] = masks(op.mask, self.loop.k, self.loop.variable, self.kernel)
            self.masked = (*names, "")
        trips, count = own_trips(op, self.loop.count, printer)
        about = notes(op, self.masked[1], self.loop.k, printer.names)
        if op.visiting is not None:
            last = self._visiting(op.visiting)
            return (*lambdas, replace(last[0], gap=True, comments=about), *last[1:], *self._deferred())
        prologue, epilogue = self._phase(op.phases.prologue, "0"), self._phase(op.phases.epilogue, count)
        if self.releases:
            _, state = self._shared
            older = f"auto {self.releases} = {state};  // of the MMA, which is issued one iteration later"
            lambdas.insert(0, replace(text_line(older), gap=True))
            prologue = (*prologue, text_line(f"++{state};"))
        body = (*prologue, *self._loops(count), *epilogue)
        guarded: tuple[StatementView, ...] = (
            replace(body[0], comments=(*about, *body[0].comments), gap=True),
            *body[1:],
        )
        if not op.runs:
            guarded = (StatementView("branch", {"condition": f"{count} > 0"}, 0, about, body, gap=True),)
        declared = (replace(text_line("\n".join(trips)), gap=True),) * bool(trips)
        return (
            *map(text_line, counting(op, self.loop.count, self.loop.trips)),
            *lambdas,
            *declared,
            *guarded,
            *self._others(count),
            *self._deferred(),
        )

    def _visiting(self, visiting: VisitedWork) -> tuple[StatementView, ...]:
        """The same in each active iteration: all start the first MMAs, and only the first has no earlier to await."""
        phases, k, names = self.op.phases, self.loop.k, self.kernel.printer.names
        same, parts = len(self.op.first), called(visiting, names)  # the starts of the first MMAs
        begin = self._phase(phases.steady[:same], k)
        first, later = self._phase(phases.prologue[same:], "0"), self._phase(phases.steady[same:], k)
        branch = StatementView("branch", {"condition": f"{k} == 0"}, body=first, orelse=later)
        ring = self.op.rings[0]
        state, barriers = self.role.state(ring.tile), self.role.barriers(ring.tile)
        next_ = f"{barriers}.consumer_next({state}, {ACTIVE_ROW}, {parts['work']})" if ring.publishes else ""
        parts |= {"k": k, "next": next_, "values": "yes" if visiting.values else ""}
        each = StatementView("visit_active", parts, self.op.source.span.line, body=(*begin, branch))
        ended = (text_line(f"++{state};  // behind the stage without a tile"),) * ring.publishes
        last = self._phase(phases.epilogue, k)
        return (each, *ended, StatementView("branch", {"condition": f"{k} > 0"}, body=last))

    def _given(self) -> str:
        """How a part states its iteration."""
        op = self.op
        return called(op.visiting, self.kernel.printer.names)["work"] if op.visiting is not None else ""

    # ---- parts --------------------------------------------------------------------------------------------------

    def _declared(self, part: Part) -> StatementView:
        """The lambda of a part."""
        names, op = self.kernel.printer.names, self.op
        name = names.fresh(part_wish(part, op, names))
        asked, variable = (f"int {self.loop.k}", self.loop.variable) if part.asks else ("", "")
        if part.asks and self.op.visiting is not None:
            asked, variable = f"const {called(self.op.visiting, names)['type']}& {self._given()}", ""
        parts = {"name": name, "values": asked}
        with self._stage_of(part):
            body = (*(text_line(variable),) * bool(variable), *self.kernel.views(part.block))
        kind = "values_part" if asked else "part"
        view = StatementView(kind, {**parts, "argument": "", "variable": ""}, body=body)
        if op.rescale is not None:
            vote = (self.changed, *skipped(op.rescale.factor, names))
            view = rescaled(view, part, op, self.loop.k, vote, self.kernel)
        if view.body:
            self.names[id(part)] = name
        return view

    @contextmanager
    def _stage_of(self, part: Part) -> Iterator[None]:
        """Prints a part that is run one iteration later with the stage that is then the older one."""
        printer = self.kernel.printer
        outside = printer.stages
        if self.releases and any(isinstance(do, RunPart) and do.part is part and do.shift for do in self._steady):
            older = {tile.name: f"{self.releases}.index()" for tile in self.op.iterations.tiles}
            printer.stages = outside | older
        yield
        printer.stages = outside

    # ---- phases -------------------------------------------------------------------------------------------------

    def _phase(self, dos: tuple[Do, ...], k: str) -> tuple[StatementView, ...]:
        """What a phase does for iteration `k`."""
        found: list[StatementView] = []
        voted: ReleaseStage | None = None  # it waits for the vote of the part behind it
        called = ""  # the call of the last part
        for place, do in enumerate(dos):
            behind = dos[place + 1] if place + 1 < len(dos) else None
            votes = isinstance(behind, RunPart) and behind.part.kind is PartKind.PROCESS and bool(self.changed)
            if isinstance(do, ReleaseStage) and votes and k != "0":
                voted = do
            elif isinstance(do, RunPart) and voted is not None:
                found += [
                    *self._mask_before(do, k),
                    text_line(f"const bool {self.changed} = {self._call(do, k)};"),
                    *self._release(voted, self.changed),
                ]
                voted = None
            elif isinstance(do, RunPart) and self.changed and do.part.kind is PartKind.PREPARE:
                vote = self.changed
                if k == "0":  # the call of the part that votes is the argument
                    found.pop()
                    vote = called
                also = f", {self._given() or k}" if do.part.asks else ""
                found.append(text_line(f"{self.names[id(do.part)]}({vote}{also});"))
            else:
                found += self._do(do, k, last=dos is self.op.phases.epilogue)
                has_call = isinstance(do, RunPart) and id(do.part) in self.names
                called = self._call(do, k) if isinstance(do, RunPart) and has_call else ""
        return tuple(found)

    def _do(self, do: Do, k: str, *, last: bool) -> list[StatementView]:
        """A part, a statement, a wait or a release."""
        names = self.kernel.printer.names
        match do:
            case RunPart():
                call = [text_line(f"{self._call(do, k)};")] if id(do.part) in self.names else []
                return [*self._mask_before(do, k), *call]
            case RunStatement(statement=statement):
                return [self.kernel.statement(statement, [])]
            case ReleaseStage():
                return self._release(do, "")
            case AwaitLoads():
                barriers, state = self._shared
                return [text_line(f"{barriers}.consumer_wait({state});")]
            case AwaitMmas(results=results, pending=pending, shift=shift):
                note = ""
                if pending:
                    remain = "remains" if len(pending) == 1 else "remain"
                    note = f"  // {listed([names(tile.name) for tile in pending])} {remain} in flight"
                elif shift and not last:
                    note = "  // before its operands and accumulator are written"
                done = fences(tuple(names(tile.name) for tile in results))
                return [text_line(f"warpgroup_wait<{len(pending)}>();{note}\n{done}")]
        raise unsupported(f"the step {type(do).__name__} of an iteration", self.op.source.span)

    def _mask_before(self, do: RunPart, k: str) -> list[StatementView]:
        """The mask, in front of the first part that processes a result."""
        mask = masking(self.op, do.part, k, self.masked)
        return [text_line(mask)] if mask else []

    def _call(self, do: RunPart, k: str) -> str:
        number = self._given() or (f"{k} - 1" if do.shift else k)
        return f"{self.names[id(do.part)]}({number if do.part.asks else ''})"

    def _release(self, do: ReleaseStage, known: str) -> list[StatementView]:
        """The release of a stage, perhaps by an arrival that depends on a vote."""
        if do.ring is not None:
            state, barriers = self.role.state(do.ring.tile), self.role.barriers(do.ring.tile)
        else:
            state, barriers = self.releases, self._shared[0]
        if not known or do.waits_for_loads:
            return [
                text_line(f"{barriers}.{release_method(waits_for_loads=do.waits_for_loads)}({state});"),
                text_line(f"++{state};"),
            ]
        names = self.kernel.printer.names
        first = tuple(names(tile.name) for tile in self.op.first)
        process = next(part for part in self.op.phases.parts if part.kind is PartKind.PROCESS)
        text = released_late(self.op, first, known, "the wait", self.names[id(process)])
        about = tuple(wrapped(text, BODY_WIDTH))
        released = text_line(f"{barriers}.consumer_release_after({known}, {state});", 0, about)
        return [released, text_line(f"++{state};")]

    def _loops(self, count: str) -> tuple[StatementView, ...]:
        """The iterations behind the first: of masked and unmasked ones a loop each."""
        k, fresh, line = self.loop.k, self.kernel.printer.names.fresh, self.op.source.span.line
        head = {"unroll": "no", "end": "", "variable": k, "start": "1", "compare": "<", "stop": count}
        if self.op.mask is None:
            body, move = self._phase(self._steady, k), f", ++{self._shared[1]}" if self.releases else ""
            return (StatementView("loop", {**head, "move": f"++{k}{move}"}, line, body=body),)
        whole, masks = fresh("iteration"), fresh("masks")
        masked, mask, _ = self.masked = (*self.masked[:2], masks)
        values = {"name": whole, "values": f"int {k}, const auto& {masks}"}
        iteration = StatementView("values_part", values, body=self._phase(self._steady, k))
        about = tuple(wrapped(f"{UNMASKED}  [{self.op.rule}]", BODY_WIDTH))
        inside = f"{k} < {count} && "
        lines = (
            f"for (; {inside}{masked}({k}); ++{k}) {whole}({k}, {mask});",
            f"for (; {inside}!{masked}({k}); ++{k}) {whole}({k}, [](int) {{}});",
        )
        loop = StatementView("loop", {**head, "unroll": "", "move": ""}, line, about, tuple(map(text_line, lines)))
        return (iteration, loop)

    def _others(self, count: str) -> tuple[StatementView, ...]:
        """The stages of iterations that the rows of other warpgroups need."""
        if self.op.trips is None:
            return ()
        k, rings = self.loop.k, self.op.rings
        body = tuple(
            text_line(f"{self.role.barriers(each.tile)}.consumer_skip({self.role.state(each.tile)});") for each in rings
        )
        parts = {"unroll": "", "end": "", "variable": k, "start": count, "compare": "<", "stop": self.loop.count}
        about = ("iterations of other warpgroups' rows",)
        return (
            StatementView("loop", {**parts, "move": f"++{k}, {self.role.advance(self.op.iterations)}"}, 0, about, body),
        )

    def _deferred(self) -> tuple[StatementView, ...]:
        """What lanes have of a sum is added behind the loop."""
        late, kernel = self.op.running, self.kernel
        if late is None:
            return ()
        total, layout = kernel.printer.names(late.total.name), kernel.fragments.layout(late.reduce.src)
        among = f"{words.REDUCTIONS['sum']}, {sharing(layout, late.reduce.dim, thread_local=False)}"
        about = tuple(wrapped(f"Until here {total} has each thread's own elements only  [{self.op.rule}]", BODY_WIDTH))
        return (text_line(f"{words.ALLREDUCE_ROWS}<{among}>({total});", 0, about),)
