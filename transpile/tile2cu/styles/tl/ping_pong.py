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
    FollowLoads,
    HandOver,
    IfNext,
    Perform,
    PingPong,
    PingPongKind,
    PingPongPart,
    RunPingPong,
    Signal,
    TakeOver,
)
from tile2cu.plan.producer_ops import AwaitMmas, Do, PartKind, ReleaseStage, Rescale
from tile2cu.plan.structure import Block
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
        case FollowLoads():
            text = f"auto arriving = pipeline.arrivals({k});  // slab by slab, as TMA fills them"
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
        about = f"its own iteration: {self.names(self.op.own.name)} is computed, at the iteration before"
        about = about if steps.early else "its own iteration"
        whose = self.branch(f"{k} % 2 == {number}", about, self.done(steps.own), self.done(steps.other))
        head = {"end": "", "unroll": "", "variable": k, "start": "0", "compare": "<", "move": f"++{k}"}
        body = (whose, *self.done(steps.both))
        return (*map(self.declared, steps.parts), StatementView("loop", {**head, "stop": count}, self.place, body=body))

    def done(self, dos: tuple[Do, ...]) -> Views:
        """What is done in an iteration."""
        return tuple(map(self.do, dos))

    def do(self, do: Do) -> StatementView:
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
                return self.line(f"pipeline.{release_method(waits_for_loads=do.waits_for_loads)}({k});")
            case IfNext():
                follows = f"{self.texts.k} + 1 < {self.texts.count}"
                return self.branch(follows, "its own next iteration", self.done(do.followed), self.done(do.last))
        raise TypeError(type(do).__name__)

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
        about = (
            f"Ping-pong: the two warpgroups alternate. Warpgroup k % 2 owns iteration k: it waits for TMA, computes "
            f"all of {first}, and passes {handed} to the other through {through}. Each adds the MMA of every "
            f"iteration to its own columns of {second}, with {now}, in registers, as operand A. One "
            f"warpgroup runs MMAs while the other computes between its own. No barrier orders the overwriting of "
            f"{through}: each warp loads its rows of one iteration before it stores those of the next  [{op.rule}]"
        )
        return (*wrapped(about, BODY_WIDTH), *self.timeline(first, second))

    def timeline(self, first: str, second: str) -> tuple[str, ...]:
        """What each warpgroup does of iterations 0, 1 and 2, one column after the other."""
        send, receive = self.calls[PingPongKind.SEND], self.calls[PingPongKind.RECEIVE]
        both = f"{second} 0", f"{second} 1"
        rows = (
            ("warpgroup 0", f"{first} 0", f"{send} 0", both[0], f"{receive} 1", both[1], f"{first} 2", "..."),
            ("warpgroup 1", "", f"{first} 1", f"{receive} 0, {send} 1", *both, "", "..."),
        )
        return tuple(f"  {row.rstrip()}" for row in table(rows, 2 * BODY_WIDTH))
