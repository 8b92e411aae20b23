"""A loop whose iterations two warpgroups take in alternation: its parts as lambdas, and who runs which when."""

from abc import ABC, abstractmethod
from dataclasses import dataclass, field

from msgspec.structs import replace

from tile2cu.core.schedule import RowFactor, handed_name
from tile2cu.plan.ops import Op
from tile2cu.plan.ping_pong_ops import (
    AddUp,
    Exchange,
    IfNext,
    Perform,
    PingPong,
    PingPongKind,
    PingPongPart,
    RunPingPong,
)
from tile2cu.plan.ping_pong_order import timeline
from tile2cu.plan.producer_ops import AwaitMmas, Do, PartKind, ReleaseStage, Rescale
from tile2cu.plan.structure import Block
from tile2cu.styles.base.barriers import called
from tile2cu.styles.base.comments import BODY_WIDTH, listed, table, wrapped
from tile2cu.styles.base.names import Names
from tile2cu.styles.base.overlap import rescale_skipped, wish_of
from tile2cu.styles.base.statements import Statements
from tile2cu.styles.base.view import StatementView, text_line
from tile2cu.styles.base.vocabulary import FRAGMENT_STORED

Views = tuple[StatementView, ...]
NEXT_ISSUED = "the other's next {} is issued after"  # what a signal that the first MMAs are issued is for
OTHERS = "the other warpgroup has this iteration's"
_AGAIN = PingPongKind.START_BOTH
_WHOSE = "with the values of iteration {}: a warpgroup's own, those received, or those whose names end with _now"


@dataclass(frozen=True, kw_only=True)
class PingPongLoop(ABC):
    """Prints the parts of an iteration as lambdas, and each warpgroup's steps, which call them by their names.

    Iteration `k` of `count`; `variable` declares the user's own number of it, `warpgroup` is the number of a thread's.
    A style gives the calls that wait, release and exchange.
    """

    op: PingPong
    body: Statements
    k: str
    count: str
    variable: str
    warpgroup: str
    calls: dict[PingPongKind, str] = field(default_factory=dict)

    @abstractmethod
    def exchange(self, op: Exchange, k: str) -> str:
        """What the warpgroups exchange of iteration `k`."""

    @abstractmethod
    def awaited(self, do: AwaitMmas) -> str:
        """The wait for MMAs."""

    @abstractmethod
    def released(self, k: str, do: ReleaseStage) -> str:
        """The release of the stage of iteration `k`."""

    @abstractmethod
    def changed(self, factor: RowFactor) -> tuple[str, str]:
        """(what fills a factor of rows with 1, the condition that a row of the warp has another)."""

    def view(self) -> StatementView:
        """The loop."""
        op = self.op
        self.calls.update({part.kind: self.name(part) for steps in (op, *op.steps) for part in steps.parts})
        first, second = (self.steps(number) for number in (0, 1))
        condition = {"condition": f"{self.warpgroup} == 0"}
        alternate = StatementView("branch", condition, self.place, body=first, orelse=second)
        summed = () if op.add_up is None else (self.added_up(op.add_up),)
        lambdas = tuple(map(self.declared, op.parts))
        return StatementView("overlap", {}, body=lambdas, orelse=(alternate, *summed), notes=self.notes())

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
        values = {tile.name: self.names.fresh(f"{tile.name}_{self.k}") for tile in part.values}
        with self.names.called(values):
            views = tuple(view for each in part.contents for view in self.views(each, part.kind))
        name, variable = {"name": self.calls[part.kind]}, self.variable if part.asks else ""
        match part.kind:
            case PingPongKind.PREPARE:
                line = (text_line(variable),) if variable else ()
                given = (f"int {self.k}",) if part.asks else ()
                params = ", ".join((*given, *(f"auto& {name}" for name in values.values())))
                about = tuple(wrapped(_WHOSE.format(self.k), BODY_WIDTH)) if part.values else ()
                parts = name | {"values": params, "argument": "", "variable": ""}
                return StatementView("values_part", parts, body=(*line, *views), comments=about)
            case PingPongKind.KEEP:
                about = (f"keeps the values of iteration {self.k} before those of {self.k} + 1 are computed",)
                parts = name | {"argument": "", "variable": ""}
                return StatementView("part", parts, self.place, about, body=views)
            case _:
                parts = name | {"argument": self.k, "variable": variable}
                return StatementView("part", parts, body=views)

    def views(self, part: Block | Op | Rescale, kind: PingPongKind) -> Views:
        """Some of the statements and operations of a part; what is computed again has no comments."""
        match part:
            case tuple():
                views = self.body.views(part)
                return tuple(replace(view, comments=()) for view in views) if kind is PingPongKind.RECEIVE else views
            case Rescale():
                fill, condition = self.changed(part.factor)
                ones = text_line(fill, 0, rescale_skipped(part, self.names))
                return ones, StatementView("branch", {"condition": condition}, body=self.body.views(part.compute))
            case Op():
                return (self.operation(part, self.k),)

    def operation(self, op: Op, k: str) -> StatementView:
        """An operation of iteration `k`."""
        if isinstance(op, Exchange):
            return text_line(self.exchange(op, k), op.source.span.line)
        return self.body.view(op)

    # -- steps

    def steps(self, number: int) -> Views:
        """The loop of a warpgroup, behind the parts that it alone has."""
        steps, k = self.op.steps[number], self.k
        about = f"its own iteration: {self.names(self.op.own.name)} was computed in iteration {k} - 1"
        about = about if steps.early else "its own iteration"
        whose = self.branch(f"{k} % 2 == {number}", about, self.done(steps.own, number), self.done(steps.other, number))
        head = {"end": "", "unroll": "", "variable": k, "start": "0", "compare": "<", "move": f"++{k}"}
        body = (whose, *self.done(steps.both, number))
        loop = StatementView("loop", {**head, "stop": self.count}, self.place, body=body)
        return (*map(self.declared, steps.parts), loop)

    def done(self, dos: tuple[Do, ...], number: int) -> Views:
        """What a warpgroup does in an iteration."""
        return tuple(self.do(do, number) for do in dos)

    def do(self, do: Do, number: int) -> StatementView:
        """One of its steps."""
        k = f"{self.k} + 1" if do.shift else self.k
        match do:
            case RunPingPong():
                return text_line(self.call(do, k), self.place)
            case Perform():
                return replace(self.operation(do.op, k), line=self.place)
            case AwaitMmas():
                return text_line(self.awaited(do), self.place)
            case ReleaseStage():
                return text_line(f"{self.released(k, do)}{self.slabs_released(k, number)}", self.place)
            case IfNext():
                follows, about = f"{self.k} + 1 < {self.count}", "one iteration ahead: its own next one"
                return self.branch(follows, about, self.done(do.followed, number), self.done(do.last, number))
        raise TypeError(type(do).__name__)

    def slabs_released(self, k: str, number: int) -> str:
        """Which slabs a warpgroup releases, and why both have read them."""
        last, slabs = self.names(self.op.second.name), called(self.op.parts_of_stage[number])
        return f"  // empty[s][{number}], {slabs}: read by {self.names(self.op.first.name)} {k} and {last} {k}"

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

    def branch(self, condition: str, about: str, own: Views, others: Views) -> StatementView:
        """A branch on whose iteration it is."""
        return StatementView("branch", {"condition": condition, "about": about}, self.place, body=own, orelse=others)

    def added_up(self, op: AddUp) -> StatementView:
        """What follows the loop, with the reason."""
        about = f"Until here {self.names(op.total.name)} has each thread's own elements only  [{self.op.rule}]"
        return text_line(self.exchange(op, self.k), 0, tuple(wrapped(about, BODY_WIDTH)))

    # -- comments

    def notes(self) -> tuple[str, ...]:
        """Who does what, and why nobody overwrites what the other still reads."""
        op, names = self.op, self.names
        first, second, now = names(op.first.name), names(op.second.name), names(op.now.name)
        handed = listed([names(op.own.name), *(names(each.name) for each in op.handed)])
        through = listed([names(op.tile.name), *(names(handed_name(each)) for each in op.handed)])
        send, receive = self.calls[PingPongKind.SEND], self.calls[PingPongKind.RECEIVE]
        k, loads = self.k, "its rows" if op.slabs[0].gathered else "TMA"
        about = (
            f"Ping-pong: the two warpgroups alternate. Warpgroup {k} % 2 owns iteration {k}: it waits for {loads}, "
            f"computes all of {first}, and passes {handed} to the other through {through}. Each adds the MMA of every "
            f"iteration to its own columns of {second}, with {now}, in registers, as operand A: MMAs of one "
            f"warpgroup overlap with what the other computes between its own  [{op.rule}]",
            f"Warpgroup 1 is one iteration ahead: in an even iteration {k} it computes {first} {k} + 1 and {send} "
            f"{k} + 1, if there is one; then, as in an odd one, {second} {k}. It reads tile {k} + 1 before it "
            f"releases tile {k}: at least 2 stages.",
            f"WAR of {through}: warp w of each warpgroup accesses only the rows of its fragments, the same in both. "
            f"It loads those of {k} ({receive}) before it stores those of {k} + 1 ({send}), whose stores begin with "
            f"__syncwarp, since other lanes of the warp have loaded them; {FRAGMENT_STORED} {k} orders the other's "
            f"stores of {k} before both. wgmma reads {names(op.now.name)} in registers, not {names(op.tile.name)}: no "
            f"proxy fence.",
            f"{send} {k} arrives at {FRAGMENT_STORED} {k}, {receive} {k} begins with the wait there. One order of "
            f"events, if each step takes as long; a warpgroup releases its slabs of tile {k} after {second} {k}:",
        )
        return (*(line for text in about for line in wrapped(text, BODY_WIDTH)), *self.timeline(first, second))

    def loaded(self, parts: list[tuple[int, int]]) -> str:
        """What TMA loads: parts of tiles."""
        tiles = dict.fromkeys(tile for tile, _ in parts)
        return ", ".join(
            f"tile {tile}" if both else f"{called(self.op.parts_of_stage[part])} of tile {tile}"
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
        head = ("step", "producer" if self.op.slabs[0].gathered else "TMA", "warpgroup 0", "warpgroup 1")
        return tuple(f"  {row.rstrip()}" for row in table((head, *rows, ("...", "", "", "")), 2 * BODY_WIDTH))
