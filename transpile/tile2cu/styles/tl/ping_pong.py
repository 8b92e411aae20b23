"""A loop whose iterations two warpgroups take in alternation: its parts as lambdas, and who runs which when."""

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from tile2cu.core.program import Buffer
from tile2cu.core.schedule import handed_name
from tile2cu.plan.producer_ops import PartKind, PingPong
from tile2cu.styles.base.comments import BODY_WIDTH, listed, table, wrapped
from tile2cu.styles.base.names import Names
from tile2cu.styles.base.overlap import wish_of
from tile2cu.styles.base.pipelined import release_method
from tile2cu.styles.base.view import StatementView, text_line
from tile2cu.styles.tl import vocabulary as tl
from tile2cu.styles.tl.iterations import Texts
from tile2cu.styles.tl.overlap import rescaled

if TYPE_CHECKING:
    from tile2cu.styles.tl.body import Body

Views = tuple[StatementView, ...]
_WHOSE = "for the values of one iteration: a warpgroup's own, those received, or those whose names end with _now"


def ping_pong(op: PingPong, texts: Texts, body: "Body") -> StatementView:
    """The view of the loop."""
    names = body.printer.names
    first, second = (names(tile.name) for tile in op.accumulators)
    base = op.tile.name.removesuffix("_shared")
    iteration = (texts.k,) if op.late_asks else ()
    parts = {
        **texts.parts,
        "first": first,
        "second": second,
        "start_first": f"start_{first}",
        "store_fragment": f"send_{base}",
        "load_fragment": f"receive_{base}",
        "prepare": _late(op, names) if op.has_late else "",
        "start_second": f"start_{second}",
        "own": names(op.own.name),
        "now": names(op.now.name),
        "values": ", ".join((*iteration, *(names(tile.name) for tile in op.kept))),
        "values_now": ", ".join((*iteration, *(names(f"{tile.name}_now") for tile in op.kept))),
        "set_aside": names("set_aside") if op.kept else "",
    }
    lambdas = (
        _start_first(op, parts, body),
        _hand_over(op, parts, body),
        _take_over(op, parts, body),
        *([_prepare(op, parts, body)] if op.has_late else []),
        _part(parts["start_second"], parts["k"], body.views(op.second), parts["variable"] if op.second_asks else ""),
    )
    loops = _Loops(op, parts, names, op.second[-1].statements[-1].source.span.line)
    shown = (loops.views(), *_add_up(op, body))
    return StatementView("overlap", {}, body=lambdas, orelse=shown, notes=_notes(op, parts, body))


@dataclass(frozen=True)
class _Loops:
    """What each warpgroup runs: of an iteration of its own, of the other's, and of each."""

    op: PingPong
    parts: dict[str, str]
    names: Names
    place: int  # the Python line

    def views(self) -> StatementView:
        """Both warpgroups' loops."""
        first = (self.iterations(self.first(), self.parts["values"]),)
        second = (*self.keeps(), self.iterations(self.second(), self.parts["values_now"]))
        return self.branch(f"{tl.WARPGROUP}() == 0", "", first, second)

    def first(self) -> StatementView:
        """Whose iteration it is, for the first warpgroup."""
        k, start, send, receive = (self.parts[name] for name in ("k", "start_first", "store_fragment", "load_fragment"))
        started = f"{tl.NAMED_BARRIER_ARRIVE}<threads>({tl.MMA_STARTED}, {k});"
        after = "  // the other warpgroup's MMAs come after these"
        own = (f"{start}({k});", f"{started}{after}", self.awaited("first"), f"{send}({k});", self.held)
        return self.branch(f"{k} % 2 == 0", "its own iteration", self.lines(*own), self.lines(f"{receive}({k});"))

    def second(self) -> StatementView:
        """The same for the second one, which begins its own iteration at the one before."""
        k, start, send, receive = (self.parts[name] for name in ("k", "start_first", "store_fragment", "load_fragment"))
        aside = f"{self.parts['set_aside']}();" if self.op.kept else ""
        taken = (f"{receive}({k});", aside)
        before = f"  // before this warpgroup's own {self.parts['second']} MMA: the other one waits for it"
        ahead = self.lines(f"{start}({k} + 1);", self.awaited("first"), *taken, f"{send}({k} + 1);{before}")
        next_ = self.branch(f"{k} + 1 < {self.parts['count']}", "its own next iteration", ahead, self.lines(*taken))
        others = (*self.lines(f"{tl.NAMED_BARRIER_SYNC}<threads>({tl.MMA_STARTED}, {k});"), next_)
        about = f"its own iteration: {self.parts['own']} is computed, at the iteration before"
        return self.branch(f"{k} % 2 == 1", about, self.lines(self.held, aside), others)

    def iterations(self, own: StatementView, values: str) -> StatementView:
        """The loop: `own` of the warpgroup, and what both warpgroups do with the values of the iteration."""
        k = self.parts["k"]
        prepare = f"{self.parts['prepare']}({values});" if self.op.has_late else ""
        release = f"pipeline.{release_method(waits_for_loads=False)}({k});"
        each = self.lines(prepare, f"{self.parts['start_second']}({k});", self.awaited("second"), release)
        head = {"end": "", "unroll": "", "variable": k, "start": "0", "compare": "<", "move": f"++{k}"}
        return StatementView("loop", {**head, "stop": self.parts["count"]}, self.place, body=(own, *each))

    def keeps(self) -> tuple[StatementView, ...]:
        """What sets aside the values that both warpgroups need of an iteration while the next one's are computed."""
        k, names = self.parts["k"], self.names
        copies = (f"{tl.COPY}({names(tile.name)}, {names(f'{tile.name}_now')});" for tile in self.op.kept)
        about = f"keeps the values of iteration {k} before those of {k} + 1 are computed"
        part = _part(self.parts["set_aside"], "", self.lines(*copies))
        return (replace(part, line=self.place, comments=(about,)),) if self.op.kept else ()

    @property
    def held(self) -> str:
        """What makes a warpgroup's own operand that of the iteration."""
        return f"{tl.COPY}({self.parts['own']}, {self.parts['now']});"

    def awaited(self, result: str) -> str:
        """The wait for an MMA's result."""
        return f"{tl.GEMM_WAIT}<0>({self.parts[result]});"

    def lines(self, *texts: str) -> tuple[StatementView, ...]:
        return tuple(text_line(text, self.place) for text in texts if text)

    def branch(self, condition: str, about: str, own: Views, others: Views) -> StatementView:
        noted = {"about": about} if about else {}
        return StatementView("branch", {"condition": condition, **noted}, self.place, body=own, orelse=others)


def _add_up(op: PingPong, body: "Body") -> tuple[StatementView, ...]:
    """What follows the loop: the threads' parts of a running sum come together."""
    if op.total is None:
        return ()
    total, place = (body.printer.names(name) for name in (op.total.name, handed_name(op.total)))
    about = f"Until here {total} has each thread's own elements only  [{op.rule}]"
    return (text_line(f"{tl.ALLREDUCE_SUM}<threads>({total}, {place});", comments=tuple(wrapped(about, BODY_WIDTH))),)


def _late(op: PingPong, names: Names) -> str:
    """The name of what both do to the last MMA's result."""
    return wish_of(PartKind.PREPARE, op.accumulators[1], op.late, names, rescales=op.rescale is not None)


def _prepare(op: PingPong, parts: dict[str, str], body: "Body") -> StatementView:
    """What both do to the last MMA's result before it, with the values of an iteration of either."""
    views: tuple[StatementView, ...] = ()
    if op.rescale is not None:
        ones, condition = rescaled(op.rescale, body.printer)
        views = (ones, StatementView("branch", {"condition": condition}, body=body.views(op.rescale.compute)))
    variable = parts["variable"] if op.late_asks else ""
    line = (text_line(variable),) if variable else ()
    part = _part(parts["prepare"], "", (*line, *views, *body.views(op.late)))
    iteration = (f"int {parts['k']}",) if op.late_asks else ()
    values = ", ".join((*iteration, *(f"auto& {body.printer.names(tile.name)}" for tile in op.kept)))
    about = wrapped(_WHOSE, BODY_WIDTH) if op.kept else ()
    return replace(part, kind="values_part", parts={**part.parts, "values": values}, comments=tuple(about))


def _part(name: str, argument: str, body: tuple[StatementView, ...], variable: str = "") -> StatementView:
    return StatementView("part", {"name": name, "argument": argument, "variable": variable}, body=body)


def _start_first(op: PingPong, parts: dict[str, str], body: "Body") -> StatementView:
    """The first MMAs, each of which waits for the panels of its tile."""
    line = op.products[0].statements[0].source.span.line
    head = text_line(f"auto arriving = pipeline.arrivals({parts['k']});  // slab by slab, as TMA fills them", line)
    return _part(parts["start_first"], parts["k"], (head, *body.views(op.products)), parts["variable"])


def _hand_over(op: PingPong, parts: dict[str, str], body: "Body") -> StatementView:
    """What follows the MMAs, up to the tile that goes to the other warpgroup."""
    names, line = body.printer.names, op.store_fragment[-1].statements[-1].source.span.line
    handed = [(names(tile.name), names(handed_name(tile))) for tile in op.handed]
    handed.append((parts["own"], names(op.tile.name)))
    views = body.views(op.store_fragment)
    lines = [text_line(f"{tl.STORE_FRAGMENT}({fragment}, {place});", line) for fragment, place in handed]
    event = text_line(f"{tl.NAMED_BARRIER_ARRIVE}<threads>({tl.FRAGMENT_STORED}, {parts['k']});", line)
    own = body.views(op.running)  # nobody waits for them
    return _part(parts["store_fragment"], parts["k"], (*views, *lines, event, *own), parts["variable"])


def _take_over(op: PingPong, parts: dict[str, str], body: "Body") -> StatementView:
    """What an iteration of the other warpgroup leaves; values a row that follow from it are computed."""
    names, line = body.printer.names, op.store_fragment[-1].statements[-1].source.span.line
    event = text_line(f"{tl.NAMED_BARRIER_SYNC}<threads>({tl.FRAGMENT_STORED}, {parts['k']});", line)
    lines: list[StatementView] = []
    for each in op.taken:
        if isinstance(each, Buffer):
            lines.append(text_line(f"{tl.LOAD_FRAGMENT}({names(handed_name(each))}, {names(each.name)});", line))
        else:
            lines += [replace(view, comments=()) for view in body.views(each)]
    lines.append(text_line(f"{tl.LOAD_FRAGMENT}({names(op.tile.name)}, {parts['now']});", line))
    if op.sums is not None:
        about = "the other warpgroup has this iteration's"
        lines.append(text_line(f"{tl.CLEAR}({names(op.sums.name)});  // {about}", line))
    return _part(parts["load_fragment"], parts["k"], (event, *lines), parts["variable"] if op.taken_asks else "")


def _notes(op: PingPong, parts: dict[str, str], body: "Body") -> tuple[str, ...]:
    """Who does what, and why nobody overwrites what the other still reads."""
    names = body.printer.names
    tile = names(op.tile.name)
    handed = [tile, *(names(each.name) for each in op.handed)]
    about = (
        f"Ping-pong: the two warpgroups alternate. Warpgroup k % 2 owns iteration k: it waits for TMA, computes all of "
        f"{parts['first']}, and passes {listed(handed)} to the other through shared memory. Each adds the MMA of every "
        f"iteration to its own columns of {parts['second']}, with {parts['now']}, in registers, as operand A. One "
        f"warpgroup runs MMAs while the other computes between its own. No barrier orders the overwriting of "
        f"{listed(handed)}: each warp loads its rows of one iteration before it stores those of the next  [{op.rule}]"
    )
    return (*wrapped(about, BODY_WIDTH), *_timeline(parts))


def _timeline(parts: dict[str, str]) -> tuple[str, ...]:
    """What each warpgroup does of iterations 0, 1 and 2, one column after the other."""
    first, second, send, receive = (parts[name] for name in ("first", "second", "store_fragment", "load_fragment"))
    rows = (
        ("warpgroup 0", f"{first} 0", f"{send} 0", f"{second} 0", f"{receive} 1", f"{second} 1", f"{first} 2", "..."),
        ("warpgroup 1", "", f"{first} 1", f"{receive} 0, {send} 1", f"{second} 0", f"{second} 1", "", "..."),
    )
    return tuple(f"  {row.rstrip()}" for row in table(rows, 2 * BODY_WIDTH))
