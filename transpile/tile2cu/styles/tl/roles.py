"""The producer's part of a kernel as views for the templates, and what it shares with the others."""

from dataclasses import replace
from itertools import groupby

from tile2cu.core.expr import Var
from tile2cu.core.schedule import Persistent
from tile2cu.plan.producer_ops import Ring
from tile2cu.plan.roles import Panels, Producer, Prologue, Way
from tile2cu.styles.base.comments import BODY_WIDTH, heading, listed, wrapped
from tile2cu.styles.base.names import Names
from tile2cu.styles.base.view import Declaration, StatementView
from tile2cu.styles.tl import vocabulary as tl
from tile2cu.styles.tl.body import Body
from tile2cu.styles.tl.expressions import Printer
from tile2cu.styles.tl.iterations import barriers_name, called, ring_name

_BETWEEN_TILES = "While they end what follows a tile's turns, the next tile's loads are under way. "
_TILES = "The work of this block, one tile after the other: who loads and who computes go the same way, and visit each."
_TURNS = "The turns that are not skipped: who loads and who computes go the same way, and visit each."
_TAKEN = "The turns of a tile that are not skipped: who loads visits each, and hands it to the others."


class Roles:
    """Prints the producer of a kernel; `indices` declare where a tile of work of a persistent kernel lies."""

    def __init__(self, producer: Producer, body: Body, indices: tuple[Declaration, ...]) -> None:
        self.producer = producer
        self.body = body
        self.printer: Printer = body.printer
        self.indices = indices

    def views(self) -> tuple[StatementView, ...]:
        """What the producer does, and the values that it shares with the others."""
        producer = self.producer
        if producer.persistent is not None:
            return self._persistent(producer.persistent)
        if producer.nested:
            return self._over_tiles()
        shared, meanwhile = self.body.views(producer.hoisted), self.body.views(producer.meanwhile)
        with self.body.iterations(producer.iterations) as texts:
            loads = self.body.views(producer.loads)
        rings = self._rings()
        parts = {**texts.parts, "tiles": self._first_stages(), "shares": "yes" if producer.shares_rule else ""}
        parts |= {"rings": "yes" if rings else "", "first": "yes" if producer.prologue is not None else ""}
        parts |= {"early": "yes" if meanwhile else "", "panels": ""}
        if producer.panels is not None:
            parts |= self._panels(producer.panels)
        if producer.multicast:
            parts |= {"blocks": str(producer.multicast), "multicast": f"[{producer.multicast_rule}]"}
        place = heading((producer.loop,))[-1]  # the user's words stand above the loop itself
        above, note = tuple(wrapped(place, BODY_WIDTH)), tuple(wrapped(self._note(), BODY_WIDTH))
        line = producer.loop.span.line
        view = StatementView("producer", parts, line, above, rings or meanwhile, loads, note)
        return _apart(shared, (*self._prologue(producer.prologue), view))

    def each_tile(self) -> tuple[StatementView, ...]:
        """What a tile of work begins with in a persistent kernel; empty in others."""
        persistent = self.producer.persistent
        if persistent is None or self.producer.way is not None:
            return ()
        with self.body.iterations(self.producer.iterations) as texts:
            counted = StatementView("line", {"text": f"const int turns = {texts.trips};"})
        at = [] if persistent.queue else [self._tile_in_turn()]
        return (*at, *[counted] * (texts.turns == "turns"))

    def counted(self) -> str:
        """What the iterations of a tile of work are counted by in a persistent kernel; empty in others."""
        if self.producer.persistent is None:
            return ""
        with self.body.iterations(self.producer.iterations) as texts:
            return texts.turns if self.producer.way is None else texts.turn

    def drawn(self) -> str:
        """How the others see what has been drawn; empty where nothing is."""
        persistent = self.producer.persistent
        return f"queue.drawn(round, {self.printer.names('__work')})" if persistent and persistent.queue else ""

    def _over_tiles(self) -> tuple[StatementView, ...]:
        """The producer's part where its loop stands in others: it goes through them, too."""
        producer, names = self.producer, self.printer.names
        shared = self.body.views(producer.hoisted)
        way = () if producer.way is None else (self._way(producer.way),)
        body, rings = self.body.views(producer.nested), self._rings()
        parts = {
            "stages": self.body.constants.stages(producer.iterations.stages),
            "tiles": self._first_stages(),
            "shares": "yes" if producer.shares_rule else "",
            "first": "yes" if producer.prologue is not None else "",
            "slot": names("__slot"),
            "counted": names(producer.iterations.var.name) if rings else "",
        }
        above = tuple(wrapped(self._note_over_tiles(), BODY_WIDTH))
        view = StatementView("producer_over_tiles", parts, producer.loop.span.line, (), body, rings, above)
        return _apart(shared, (*way, *self._prologue(producer.prologue), view))

    def _persistent(self, persistent: Persistent) -> tuple[StatementView, ...]:
        """The producer of a persistent kernel: the same for one tile of work after the other."""
        producer, names = self.producer, self.printer.names
        tile = self._tile_of_work(persistent)
        full = StatementView("line", {"text": f"{tl.BARRIER}& full = first_tiles_ring.acquire(round);"})
        assert producer.prologue is not None, "a persistent kernel has a prologue"
        begin: tuple[StatementView, ...] = (full, *self.body.views(producer.prologue.loads))
        if producer.way is None:
            loads = self._loads_of_tile(persistent)
        else:
            begin = (StatementView("branch", {"condition": f"{tl.THREAD}() == threads"}, body=begin),)
            loads = self._loads_of_active()
        tiles = ", ".join(names(load.dst.buffer.name) for load in producer.prologue.copies)
        parts = {"tiles": tiles, "type": names("__WorkTile"), "work": names("__work"), "place": names("__work_tile")}
        parts |= self._drawing(persistent)
        parts["told"] = ring_name(producer.rings[0].tile, names) if producer.way is not None else ""
        body = (*self.each_tile(), *begin, *loads)
        notes = tuple(wrapped(self._persistent_note(persistent), BODY_WIDTH))
        rings = self._rings()
        way = () if producer.way is None else (replace(self._way(producer.way), gap=True),)
        line = producer.loop.span.line
        return (tile, *way, StatementView("staying", parts, line, body=rings, orelse=body, notes=notes, gap=True))

    def _first_stages(self) -> str:
        return ", ".join(f"{self.printer.names(tile.name)}[0]" for tile in self.producer.tiles)

    def _rings(self) -> tuple[StatementView, ...]:
        """The declarations of the rings; none where a loop has one, in a pipeline."""
        return tuple(map(self._ring, self.producer.rings))

    def _ring(self, ring: Ring) -> StatementView:
        names = self.printer.names
        parts = {
            "stages": self.body.constants.stages(ring.stages),
            "name": ring_name(ring.tile, names),
            "barriers": barriers_name(ring, names),
            "tile": names(ring.tile.name),
            "turn": names("__Turn") if ring.publishes else "",
        }
        return StatementView("ring", parts)

    def _way(self, way: Way) -> StatementView:
        """What is visited, and the way there."""
        persistent = self.producer.persistent is not None  # then shared memory holds it: its type is outside
        names = self.printer.names
        parts = {**called(way.visiting, names), "fields": "" if persistent else members(way.visiting.values, names)}
        about = _TAKEN if persistent else _TURNS if way.visiting.iterations else _TILES
        return StatementView("walk", parts, body=self.body.views(way.body), notes=tuple(wrapped(about, BODY_WIDTH)))

    def _tile_of_work(self, persistent: Persistent) -> StatementView:
        """Where a tile of work lies, and the values that follow: a function for who loads and who computes.

        What is printed behind it reads them as parts of the tile.
        """
        names, values = self.printer.names, persistent.work
        text = f"return {names('__WorkTile')}{{{', '.join(names(var.name) for var in values)}}};"
        indices = (StatementView("line", {"text": each.text}, 0, each.comments) for each in self.indices)
        body = (*indices, *self.body.views(self.producer.hoisted), StatementView("line", {"text": text}))
        parts = {"type": names("__WorkTile"), "each": names("__work_tile")}
        self.printer.fields = {var: f"{names('__work')}.{names(var.name)}" for var in values}
        fields = "" if persistent.queue else members(values, names)
        return StatementView("work_tile", {**parts, "fields": fields}, body=body)

    def _tile_in_turn(self) -> StatementView:
        """The tile of work that a block is at, where each takes its own in turns."""
        names = self.printer.names
        text = f"const {names('__WorkTile')} {names('__work')} = {names('__work_tile')}(tile);"
        return StatementView("line", {"text": text})

    def _loads_of_tile(self, persistent: Persistent) -> tuple[StatementView, ...]:
        """What the producer of a persistent kernel loads for a tile of work."""
        line = self.producer.loop.span.line
        with self.body.iterations(self.producer.iterations) as texts:
            loads = self.body.views(self.producer.loads)
        done = StatementView("line", {"text": f"before += {texts.turns};"})
        if persistent.idle is not None:
            return (StatementView("load_turns", texts.parts, line, body=loads, gap=True), done)
        given = [StatementView("line", {"text": texts.variable})] * bool(texts.variable)
        each = {"unroll": "no", "variable": texts.turn, "start": "0", "stop": texts.turns}
        each |= {"end": "", "compare": "<", "move": f"++{texts.turn}"}
        return (StatementView("loop", each, line, body=(*given, *loads), gap=True), done)

    def _loads_of_active(self) -> tuple[StatementView, ...]:
        """The same where iterations are skipped; the others are told which are active, and when that was the last."""
        ring = ring_name(self.producer.rings[0].tile, self.printer.names)
        end = StatementView("line", {"text": f"if ({tl.THREAD}() == threads) {ring}.end(before + round);"})
        (visits,) = self.body.views(self.producer.nested)
        return (replace(visits, gap=True), end)

    def _drawing(self, persistent: Persistent) -> dict[str, str]:
        """How a producer draws tiles of work, and which it skips; empty where each block takes its own in turns."""
        if not persistent.queue:
            return {"queue": "", "idle": "", "rule": ""}
        names = self.printer.names
        idle = self.printer.text(persistent.idle) if persistent.idle is not None else ""
        given = f"round, {names('__work')}" + f", {names('__work_tile')}" * (not idle)
        draw = "draw" if self.producer.way is None else "draw_for_warp"
        return {"queue": f"queue.{draw}({given})", "idle": idle, "rule": self.producer.persistent_rule}

    def _panels(self, panels: Panels) -> dict[str, str]:
        """How many panels a stage has, how many of them the first warpgroup releases, and who releases which."""
        names = self.printer.names
        parts = [f"{count} of {names(tile.name)}" for tile, count in panels.counts]
        about = (
            f"The panels of a slot are {listed(parts)}, counted from 0. A panel's `full` completes when TMA's "
            f"bytes have arrived (zeros from outside a tensor count). A slot has an "
            f"`empty` for each warpgroup, which completes when its warps have freed its columns of "
            f"{names(panels.tile.name)}; the second's part starts with panel {panels.first_part}. One thread "
            "initialises them; a barrier of the whole block shows them to all."
        )
        return {
            "panels": str(panels.total),
            "first_part": str(panels.first_part),
            "about": "\n".join(wrapped(about, BODY_WIDTH)),
        }

    def _prologue(self, prologue: Prologue | None) -> tuple[StatementView, ...]:
        """The barrier of what is loaded once, and the loads."""
        if prologue is None:
            return ()
        tiles = [self.printer.names(load.dst.buffer.name) for load in prologue.copies]
        about = (
            f"{listed(tiles)} {'is' if len(tiles) == 1 else 'are'} loaded once, before the turns: TMA's bytes arrive "
            f"at a barrier of their own. The next constructor shows it to all  [{prologue.rule}]"
        )
        above = tuple(wrapped(about, BODY_WIDTH))
        body = self.body.views(prologue.loads)
        return (StatementView("first_tiles", {"tiles": ", ".join(tiles)}, prologue.copies[0].span.line, above, body),)

    def _note(self) -> str:
        """Who loads, how far ahead, and what becomes of the registers."""
        producer = self.producer
        ahead = f"up to {producer.iterations.stages} tiles ahead, as slots are freed. It returns when it has asked for "
        ahead += "the last tile" + (", and all blocks of the cluster have freed it" if producer.multicast else "")
        if producer.prologue is not None:
            ahead = f"first what is loaded once, then {ahead}"
        rule = f"[{producer.rule}]"
        if not producer.shares_rule:
            text = f"One warp more than the {producer.threads} consumer threads only loads, {ahead}"
            return f"{text}; no barrier of the whole block follows  {rule}"
        text = f"One warpgroup more than the {producer.threads} consumer threads: one thread of it only loads, {ahead}"
        share = f"Most of its registers go to the consumers  [{producer.shares_rule}]"
        return f"{text}; no barrier of the whole block follows  {rule}. {share}"

    def _note_over_tiles(self) -> str:
        producer = self.producer
        stages = producer.iterations.stages
        ahead = "1 turn" if stages == 1 else f"{stages} turns"
        who = "One warpgroup more" if producer.shares_rule else "One warp more"
        what = "first what is loaded once, then " if producer.prologue is not None else ""
        note = (
            f"{who} than the {producer.threads} consumer threads: one thread of it only loads, {what}up to {ahead} "
            f"ahead, as slots are freed. {'' if producer.once else _BETWEEN_TILES}No barrier of the whole block follows"
            f"  [{producer.rule}]"
        )
        if producer.shares_rule:
            note += f". Most of its registers go to the consumers  [{producer.shares_rule}]"
        return note

    def _persistent_note(self, persistent: Persistent) -> str:
        """Who loads, and when."""
        producer = self.producer
        how = "drawn from a queue, so that blocks end together" if persistent.queue else "in turns"
        return (
            f"Blocks stay, one a multiprocessor, and take tile after tile, {how}: a tile's first loads run under the "
            f"end of the tile before  [{producer.persistent_rule}]. One warpgroup more than the {producer.threads} "
            f"consumer threads: one thread of it only loads, up to {producer.iterations.stages} turns ahead, as slots "
            f"are freed  [{producer.rule}]. Most of its registers go to the consumers  [{producer.shares_rule}]"
        )


def work_types(persistent: Persistent | None, printer: Printer) -> tuple[Declaration, ...]:
    """The structs of what a producer hands to the others with a tile of work that it has drawn."""
    if persistent is None or not persistent.queue:
        return ()
    about = "Where a tile lies, and what follows from that for its turns: the producer computes it, and hands it on"
    text = f"struct {printer.names('__WorkTile')} {{ {members(persistent.work, printer.names)} }};"
    tile = Declaration(text, (about,))
    if not persistent.turn:
        return (tile,)
    about = "A turn that is not skipped: the producer finds those, and hands each on with its tile"
    text = f"struct {printer.names('__Turn')} {{ {members(persistent.turn, printer.names)} }};"
    return (tile, Declaration(text, (about,)))


def members(values: tuple[Var, ...], names: Names) -> str:
    """The members of a struct of these values."""
    groups = groupby(values, lambda var: var.dtype.cpp)
    return " ".join(f"{cpp} {', '.join(names(var.name) for var in each)};" for cpp, each in groups)


def _apart(shared: tuple[StatementView, ...], views: tuple[StatementView, ...]) -> tuple[StatementView, ...]:
    """The views behind those of shared values, with empty lines between."""
    return (*shared, *(replace(each, gap=bool(shared) or number > 0) for number, each in enumerate(views)))
