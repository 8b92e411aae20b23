"""A loop whose iterations two warpgroups take in alternation: its parts as lambdas, and who runs which when."""

from dataclasses import dataclass, replace

from tile2cu.core.schedule import handed_name
from tile2cu.plan.ops import Op
from tile2cu.plan.ping_pong_ops import (
    AddUp,
    AwaitSignal,
    ClearPartial,
    CopyRegisters,
    Event,
    Exchange,
    HandOver,
    IfNext,
    LoadSlabs,
    MmaOfSlabs,
    Perform,
    PingPong,
    PingPongKind,
    PingPongPart,
    RunPingPong,
    Signal,
    TakeOver,
)
from tile2cu.plan.ping_pong_order import timeline
from tile2cu.plan.producer_ops import AwaitMmas, Do, PartKind, ReleaseStage, Rescale
from tile2cu.plan.structure import Block
from tile2cu.styles.base.barriers import SLAB, numbers
from tile2cu.styles.base.comments import BODY_WIDTH, listed, table, wrapped
from tile2cu.styles.base.names import Names
from tile2cu.styles.base.overlap import wish_of
from tile2cu.styles.base.pipelined import release_method
from tile2cu.styles.base.view import StatementView, text_line
from tile2cu.styles.tl import vocabulary as tl
from tile2cu.styles.tl.iterations import Texts
from tile2cu.styles.tl.overlap import rescaled
from tile2cu.styles.tl.parts import Parts

Views = tuple[StatementView, ...]
_EVENTS = {Event.MMAS_ISSUED: tl.MMA_STARTED, Event.STORED: tl.FRAGMENT_STORED}
_FIRST = "the other's next {} is issued after"
_AGAIN = PingPongKind.START_BOTH
_WHOSE = "with the values of iteration {}: a warpgroup's own, those received, or those whose names end with _now"


def ping_pong(op: PingPong, texts: Texts, body: Parts) -> StatementView:
    """The view of the loop."""
    loop = _Loop(op, texts, body, {})
    loop.calls.update({part.kind: loop.name(part) for steps in (op, *op.steps) for part in steps.parts})
    first, second = (loop.steps(number) for number in (0, 1))
    alternate = StatementView("branch", {"condition": f"{tl.WARPGROUP}() == 0"}, loop.place, body=first, orelse=second)
    summed = () if op.add_up is None else (loop.added_up(op.add_up),)
    lambdas = tuple(map(loop.declared, op.parts))
    return StatementView("overlap", {}, body=lambdas, orelse=(alternate, *summed), notes=loop.notes())


def exchange(op: Exchange, k: str, names: Names, first: str) -> StatementView:
    """What the warpgroups exchange of iteration `k`, as a call of headers/tl; the MMAs add to `first` first."""
    match op:
        case Signal():
            after = f"  // {_FIRST.format(first)}" if op.event is Event.MMAS_ISSUED else ""
            text = f"{tl.NAMED_BARRIER_ARRIVE}<threads>({_EVENTS[op.event]}, {k});{after}"
        case AwaitSignal():
            text = f"{tl.NAMED_BARRIER_SYNC}<threads>({_EVENTS[op.event]}, {k});"
        case HandOver():
            text = f"{tl.STORE_FRAGMENT}({names(op.fragment.name)}, {names(op.through)});"
        case TakeOver():
            text = f"{tl.LOAD_FRAGMENT}({names(op.through)}, {names(op.fragment.name)});"
        case CopyRegisters():
            text = f"{tl.COPY}({names(op.src.name)}, {names(op.dst.name)});"
        case ClearPartial():
            text = f"{tl.CLEAR}({names(op.tile.name)});  // the other warpgroup has this iteration's"
        case AddUp():
            text = f"{tl.ALLREDUCE_SUM}<threads>({names(op.total.name)}, {names(op.through)});"
    return text_line(text, op.source.span.line)


def load_slabs(op: LoadSlabs, body: Parts) -> StatementView:
    """A load of a tile slab by slab, each behind the wait for the warpgroup that releases it."""
    assert body.texts is not None, "slabs are of a producer's loop"
    place = op.source.span.line
    names, k, stages = body.printer.names, body.texts.k, body.constants.stages(op.stages)
    slab, views = names(SLAB), list[StatementView]()
    for part in op.slabs:
        if part in op.acquires:
            until = f"until warpgroup {part.part} has released tile {k} - {stages}: empty[s][{part.part}]"
            views.append(text_line(f"pipeline.producer_acquire({k}, {part.part});  // {until}", place))
        alone, shift = part.count == 1, part.first - part.start
        in_tile = str(part.start) if alone else slab
        in_stage = str(part.first) if alone else f"{slab} + {shift}" if shift else slab
        call = body.operations.copies.by_slab(op.load, in_tile, f"pipeline.full({k}, {in_stage})")
        load = text_line(f"{tl.TMA_LOAD_SLAB}({call});", place)
        views.append(load if alone else _each_slab(slab, part.start, part.start + part.count, (load,)))
    return StatementView("block", {}, body=tuple(views), comments=body.operations.claims(op))


def mma_of_slabs(op: MmaOfSlabs, body: Parts) -> StatementView:
    """An MMA slab by slab, each behind the wait for its arrival."""
    assert body.texts is not None, "slabs are of a producer's loop"
    k, slab, first, place = body.texts.k, body.printer.names(SLAB), op.slabs.start, op.source.span.line
    arrived = "until TMA has filled the slab"
    if len(op.slabs) == 1:
        wait = text_line(f"pipeline.consumer_wait({k}, {first});  // {arrived}: full[s][{first}]", place)
        call = body.operations.view(op.mma)
        return StatementView("block", {}, body=(wait, replace(call, comments=())), comments=call.comments)
    in_stage = f"{slab} + {first}" if first else slab
    wait = text_line(f"pipeline.consumer_wait({k}, {in_stage});  // {arrived}: full[s][{in_stage}]", place)
    call = text_line(f"{tl.GEMM_START_SLAB}({body.operations.mma_of_slab(op.mma, slab)});", place)
    loop = _each_slab(slab, 0, len(op.slabs), (wait, call))
    return replace(loop, comments=body.operations.claims(op.mma))


def _each_slab(slab: str, start: int, stop: int, each: Views) -> StatementView:
    """A loop over slabs of a tile."""
    head = {"end": "", "unroll": "yes", "variable": slab, "compare": "<", "move": f"++{slab}"}
    return StatementView("loop", head | {"start": str(start), "stop": str(stop)}, each[0].line, body=each)


@dataclass(frozen=True)
class _Loop:
    """Prints the parts of an iteration as lambdas, and each warpgroup's steps, which call them by their names."""

    op: PingPong
    texts: Texts
    body: Parts
    calls: dict[PingPongKind, str]

    @property
    def place(self) -> int:
        """The Python line of what both warpgroups do."""
        kinds = {part.kind: part for part in self.op.parts}
        (block,) = kinds[PingPongKind.START_BOTH].contents
        assert isinstance(block, tuple)
        return block[-1].statements[-1].source.span.line

    @property
    def names(self) -> Names:
        return self.body.printer.names

    # -- parts

    def name(self, part: PingPongPart) -> str:
        """What a part's lambda is called."""
        base = part.tile.name.removesuffix("_shared")
        match part.kind:
            case PingPongKind.START_OWN | PingPongKind.START_BOTH:
                return f"start_{self.names(part.tile.name)}"
            case PingPongKind.SEND | PingPongKind.RECEIVE:
                return f"{part.kind.value}_{base}"
            case PingPongKind.KEEP:
                return self.names("set_aside")
            case PingPongKind.PREPARE:
                rescales = any(isinstance(each, Rescale) for each in part.contents)
                block = tuple(p for each in part.contents if isinstance(each, tuple) for p in each)
                return wish_of(PartKind.PREPARE, part.tile, block, self.names, rescales=rescales)

    def declared(self, part: PingPongPart) -> StatementView:
        """The lambda of a part."""
        values = {tile.name: self.names.fresh(f"{tile.name}_{self.texts.k}") for tile in part.values}
        with self.names.called(values):
            views = tuple(view for each in part.contents for view in self.views(each, part.kind))
        name, variable = {"name": self.calls[part.kind]}, self.texts.variable if part.asks else ""
        match part.kind:
            case PingPongKind.PREPARE:
                line = (text_line(variable),) if variable else ()
                given = (f"int {self.texts.k}",) if part.asks else ()
                params = ", ".join((*given, *(f"auto& {name}" for name in values.values())))
                about = tuple(wrapped(_WHOSE.format(self.texts.k), BODY_WIDTH)) if part.values else ()
                parts = name | {"values": params, "argument": "", "variable": ""}
                return StatementView("values_part", parts, body=(*line, *views), comments=about)
            case PingPongKind.KEEP:
                k = self.texts.k
                about = (f"keeps the values of iteration {k} before those of {k} + 1 are computed",)
                parts = name | {"argument": "", "variable": ""}
                return StatementView("part", parts, self.place, about, body=views)
            case _:
                parts = name | {"argument": self.texts.k, "variable": variable}
                return StatementView("part", parts, body=views)

    def views(self, part: Block | Op | Rescale, kind: PingPongKind) -> Views:
        """Some of the statements and operations of a part; what is computed again has no comments."""
        match part:
            case tuple():
                views = self.body.views(part)
                return tuple(replace(view, comments=()) for view in views) if kind is PingPongKind.RECEIVE else views
            case Rescale():
                ones, condition = rescaled(part, self.body.printer)
                return ones, StatementView("branch", {"condition": condition}, body=self.body.views(part.compute))
            case Op():
                return (self.operation(part, self.texts.k),)

    def operation(self, op: Op, k: str) -> StatementView:
        """An operation of iteration `k`."""
        return self.exchanged(op, k) if isinstance(op, Exchange) else self.body.view(op)

    def exchanged(self, op: Exchange, k: str) -> StatementView:
        """What the warpgroups exchange of iteration `k`."""
        return exchange(op, k, self.names, self.names(self.op.first.name))

    # -- steps

    def steps(self, number: int) -> Views:
        """The loop of a warpgroup, behind the parts that it alone has."""
        steps, k, count = self.op.steps[number], self.texts.k, self.texts.count
        about = f"its own iteration: {self.names(self.op.own.name)} was computed in iteration {k} - 1"
        about = about if steps.early else "its own iteration"
        whose = self.branch(f"{k} % 2 == {number}", about, self.done(steps.own, number), self.done(steps.other, number))
        head = {"end": "", "unroll": "", "variable": k, "start": "0", "compare": "<", "move": f"++{k}"}
        body = (whose, *self.done(steps.both, number))
        return (*map(self.declared, steps.parts), StatementView("loop", {**head, "stop": count}, self.place, body=body))

    def done(self, dos: tuple[Do, ...], number: int) -> Views:
        """What a warpgroup does in an iteration."""
        return tuple(self.do(do, number) for do in dos)

    def do(self, do: Do, number: int) -> StatementView:
        k = f"{self.texts.k} + 1" if do.shift else self.texts.k
        match do:
            case RunPingPong():
                return self.line(self.call(do, k))
            case Perform():
                return replace(self.operation(do.op, k), line=self.place)
            case AwaitMmas():
                results = ", ".join(self.names(tile.name) for tile in do.results)
                return self.line(f"{tl.GEMM_WAIT}<{len(do.pending)}>({results});")
            case ReleaseStage():
                release = release_method(waits_for_loads=do.waits_for_loads)
                return self.line(f"pipeline.{release}({k});{self.released(k, number)}")
            case IfNext():
                follows = f"{self.texts.k} + 1 < {self.texts.count}"
                about = "one iteration ahead: its own next one"
                return self.branch(follows, about, self.done(do.followed, number), self.done(do.last, number))
        raise TypeError(type(do).__name__)

    def released(self, k: str, number: int) -> str:
        """Which slabs a warpgroup releases, and why both have read them."""
        last, slabs = self.names(self.op.second.name), numbers(self.op.parts_of_stage[number])
        return f"  // empty[s][{number}], slabs {slabs}: read by {self.names(self.op.first.name)} {k} and {last} {k}"

    def call(self, do: RunPingPong, k: str) -> str:
        """The call of a part."""
        part, name = do.part, self.calls[do.part.kind]
        match part.kind:
            case PingPongKind.PREPARE:
                given = [k] * part.asks
                return f"{name}({', '.join((*given, *(self.names(tile.name) for tile in do.values)))});"
            case PingPongKind.KEEP:
                return f"{name}();"
            case PingPongKind.SEND if do.shift:
                last = self.names(self.op.second.name)
                return f"{name}({k});  // before this warpgroup's own {last} MMA: the other one waits for it"
            case _:
                return f"{name}({k});"

    def line(self, text: str) -> StatementView:
        return text_line(text, self.place)

    def branch(self, condition: str, about: str, own: Views, others: Views) -> StatementView:
        return StatementView("branch", {"condition": condition, "about": about}, self.place, body=own, orelse=others)

    def added_up(self, op: AddUp) -> StatementView:
        """What follows the loop, with the reason."""
        about = f"Until here {self.names(op.total.name)} has each thread's own elements only  [{self.op.rule}]"
        view = self.exchanged(op, self.texts.k)
        return replace(view, line=0, comments=tuple(wrapped(about, BODY_WIDTH)))

    # -- comments

    def notes(self) -> tuple[str, ...]:
        """Who does what, and why nobody overwrites what the other still reads."""
        op, names = self.op, self.names
        first, second, now = names(op.first.name), names(op.second.name), names(op.now.name)
        handed = listed([names(op.own.name), *(names(each.name) for each in op.handed)])
        through = listed([names(op.tile.name), *(names(handed_name(each)) for each in op.handed)])
        send, receive = self.calls[PingPongKind.SEND], self.calls[PingPongKind.RECEIVE]
        k = self.texts.k
        about = (
            f"Ping-pong: the two warpgroups alternate. Warpgroup {k} % 2 owns iteration {k}: it waits for TMA, "
            f"computes all of {first}, and passes {handed} to the other through {through}. Each adds the MMA of every "
            f"iteration to its own columns of {second}, with {now}, in registers, as operand A. One warpgroup runs "
            f"MMAs while the other computes between its own  [{op.rule}]",
            f"Warpgroup 1 is one iteration ahead: in iteration {k} it computes {first} {k} + 1 and {send} {k} + 1, "
            f"then {second} {k}. It reads tile {k} + 1 before it releases tile {k}: at least 2 stages.",
            f"WAR of {through}: warp w of each warpgroup accesses only the rows of its fragments, the same in both. "
            f"It loads those of {k} ({receive}) before it stores those of {k} + 1 ({send}), whose stores begin with "
            f"__syncwarp, since other lanes of the warp have loaded them; {tl.FRAGMENT_STORED} {k} orders the other's "
            f"stores of {k} before both. wgmma reads {names(op.now.name)} in registers, not {names(op.tile.name)}: no "
            f"proxy fence.",
            f"{send} {k} arrives at {tl.FRAGMENT_STORED} {k}, {receive} {k} begins with the wait there. One order of "
            f"events, in which each step takes as long; a warpgroup releases its slabs of tile {k} after {second} {k}:",
        )
        return (*(line for text in about for line in wrapped(text, BODY_WIDTH)), *self.timeline(first, second))

    def loaded(self, parts: list[tuple[int, int]]) -> str:
        """What TMA loads: parts of tiles."""
        tiles = dict.fromkeys(tile for tile, _ in parts)
        return ", ".join(
            f"tile {tile}" if both else f"slabs {numbers(self.op.parts_of_stage[part])} of tile {tile}"
            for tile in tiles
            for both in ((tile, 0) in parts and (tile, 1) in parts,)
            for part in [own for of, own in parts if of == tile][: 1 if both else None]
        )

    def timeline(self, first: str, second: str) -> tuple[str, ...]:
        """What TMA and each warpgroup do in the steps up to the first iterations that use a stage again."""
        stages = self.op.iterations.stages
        found = timeline(self.op, 2 * stages + 2)
        calls = {PingPongKind.START_OWN: first, PingPongKind.START_BOTH: second}
        calls |= {kind: self.calls[kind] for kind in (PingPongKind.SEND, PingPongKind.RECEIVE)}
        last = max(found.groups[stages % 2][PingPongKind.START_OWN, stages], found.groups[1][_AGAIN, 1])
        columns = [
            {step: f"{calls[what]} {k}" for (what, k), step in steps.items() if isinstance(what, PingPongKind)}
            for steps in found.groups
        ]
        loads = {
            step: self.loaded([load for load, at in found.loads.items() if at == step]) for step in range(last + 1)
        }
        rows = [(str(step), loads.get(step, ""), *(c.get(step, "") for c in columns)) for step in range(last + 1)]
        head = ("step", "TMA", "warpgroup 0", "warpgroup 1")
        return tuple(f"  {row.rstrip()}" for row in table((head, *rows, ("...", "", "", "")), 2 * BODY_WIDTH))
