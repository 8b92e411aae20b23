"""The producer's part of a kernel as views for the templates, and what it shares with the others."""

from msgspec.structs import replace

from tile2cu.core.schedule import Persistent
from tile2cu.core.shared_memory import ACTIVE_ROW
from tile2cu.plan.producer_ops import Ring
from tile2cu.plan.roles import PathToLoop, Producer
from tile2cu.styles.base.barriers import SlabWords, barrier_table, barriers_name, numbered, of_first_part
from tile2cu.styles.base.comments import BODY_WIDTH, wrapped
from tile2cu.styles.base.expressions import Printer
from tile2cu.styles.base.overlap import comment_lines
from tile2cu.styles.base.roles import ONE_THREAD, SOONER, Notes, members
from tile2cu.styles.base.view import Declaration, StatementView, text_line
from tile2cu.styles.base.visits import ITERATIONS, PUBLISHED, TILES, called
from tile2cu.styles.tl import vocabulary as tl
from tile2cu.styles.tl.body import Body
from tile2cu.styles.tl.iterations import Texts, pipeline_name


class Roles:
    """Prints the producer of a kernel; `indices` declare where a tile of work of a persistent kernel lies."""

    def __init__(self, producer: Producer, body: Body, indices: tuple[Declaration, ...]) -> None:
        self.producer = producer
        self.body = body
        self.printer: Printer = body.printer
        self.indices = indices
        self.notes = Notes(producer, body.printer.names)

    def views(self) -> tuple[StatementView, ...]:
        """What the producer does, and the values that it shares with the others."""
        producer = self.producer
        if producer.persistent is not None:
            return self._persistent(producer.persistent)
        if producer.nested:
            return self._nested()
        shared, meanwhile = self.body.views(producer.hoisted), self.body.views(producer.meanwhile)
        with self.body.iterations(producer.iterations) as texts:
            loads = self._each_stage(texts, self.body.views(producer.loads))
        counted = [text_line(f"const int num_iterations = {texts.trips};")] * (texts.count == "num_iterations")
        prologue = self._prologue()
        tail = [
            text_line(
                f"pipeline.producer_tail({texts.count});  // until all blocks have read the tiles that this one loads"
            )
        ]
        sooner = (replace(self._by_one(prologue, SOONER), gap=True), *_apart((), meanwhile)) if meanwhile else ()
        first = () if meanwhile else prologue
        issued: tuple[StatementView, ...]
        if producer.stages is not None and producer.stages.gathered:
            issued = (*(self._by_one(first) for _ in first[:1]), replace(loads, gap=bool(first)))
        else:
            issued = (replace(self._by_one((*first, loads, *tail * bool(producer.multicast))), gap=False),)
        place = self.body.heading((producer.loop,))[-1]  # the user's words stand above the loop itself
        role = self._role(issued, (place, self.notes.at_top()))
        return _apart(shared, (*self._barriers(), *sooner, *counted, role))

    def each_tile(self) -> tuple[StatementView, ...]:
        """What a tile of work begins with in a persistent kernel; empty in others."""
        persistent = self.producer.persistent
        if persistent is None or self.producer.way is not None:
            return ()
        with self.body.iterations(self.producer.iterations) as texts:
            counted = text_line(f"const int num_iterations = {texts.trips};")
        at = [] if persistent.queue else [self._static_tile()]
        return (*at, *[counted] * (texts.count == "num_iterations"))

    def counted(self) -> str:
        """What adds the iterations of a tile of work to those that are done in a persistent kernel; empty in others."""
        if self.producer.persistent is None:
            return ""
        with self.body.iterations(self.producer.iterations) as texts:
            return texts.done_of_tile if self.producer.way is None else texts.advanced(texts.k)

    def next_tile(self) -> str:
        """The consumers' call for the next tile of work; empty where the schedule is static."""
        persistent = self.producer.persistent
        return (
            f"scheduler.next_tile(tile_iter, {self.printer.names('__work')})" if persistent and persistent.queue else ""
        )

    def _nested(self) -> tuple[StatementView, ...]:
        """The producer's part where its loop stands in others: it goes through them, too."""
        producer, names = self.producer, self.printer.names
        shared = self.body.views(producer.hoisted)
        way = () if producer.way is None else (self._way(producer.way),)
        nested, prologue = self.body.views(producer.nested), self._prologue()
        if producer.nested_by_one:
            prologue = (text_line(f"if ({tl.THREAD}() != threads) return;  // {ONE_THREAD}"), *prologue)
        elif prologue:
            prologue = (self._by_one(prologue),)
        counter = text_line(
            f"int {names(producer.iterations.var.name)} = 0;  // active iterations: the pipelines count them"
        )
        counted = (counter,) if producer.rings and producer.once else ()
        role = self._role((*prologue, *counted, *nested), (self.notes.nested(),))
        first, *others = self._barriers()
        return _apart(shared, (*way, replace(first, gap=bool(way)), *others, role))

    def _persistent(self, persistent: Persistent) -> tuple[StatementView, ...]:
        """The producer of a persistent kernel: the same for one tile of work after the other."""
        producer, names = self.producer, self.printer.names
        tile = self._tile_of_work(persistent)
        assert producer.prologue is not None, "a persistent kernel has a prologue"
        full = f"{tl.BARRIER}& prologue_full = prologue_pipeline.producer_acquire(tile_iter);"
        begin: tuple[StatementView, ...] = (text_line(full), *self.body.views(producer.prologue.loads))
        if producer.way is None:
            loads = self._loads_of_tile(persistent)
        else:
            begin = (self._by_one(begin),)
            loads = self._loads_of_active()
        parts = {"type": names("__WorkTile"), "work": names("__work"), "place": names("__work_tile")}
        parts |= self._drawing(persistent)
        parts["told"] = pipeline_name(producer.rings[0].tile, names) if producer.way is not None else ""
        body = (*self.each_tile(), *begin, *loads)
        notes = tuple(wrapped(self.notes.persistent(persistent), BODY_WIDTH))
        way = () if producer.way is None else (replace(self._way(producer.way), gap=True),)
        line = producer.loop.span.line
        first, *others = self._barriers()
        role = StatementView("persistent_role", parts, line, body=body, notes=notes, gap=True)
        return (tile, *way, replace(first, gap=True), *others, role)

    def _role(self, body: tuple[StatementView, ...], notes: tuple[str, ...]) -> StatementView:
        """The branch of the producer's warps."""
        parts = {"shares": "yes" if self.producer.shares_rule else ""}
        about = tuple(line for note in notes for line in wrapped(note, BODY_WIDTH))
        return StatementView("role", parts, self.producer.loop.span.line, body=body, notes=about, gap=True)

    def _by_one(self, body: tuple[StatementView, ...], about: str = "") -> StatementView:
        """What one thread of the producer does."""
        above = tuple(wrapped(about, BODY_WIDTH)) if about else ()
        return StatementView("branch", {"condition": f"{tl.THREAD}() == threads"}, 0, above, body)

    def _each_stage(self, texts: Texts, loads: tuple[StatementView, ...]) -> StatementView:
        """The loop over the iterations' loads."""
        by_slabs = self.producer.stages is not None
        acquired = [] if self.producer.rings or by_slabs else [self._acquired(texts)]
        given = [text_line(texts.variable)] * bool(texts.variable)
        each = {"unroll": "no", "variable": texts.k, "start": "0", "stop": texts.count}
        each |= {"end": "", "compare": "<", "move": f"++{texts.k}"}
        return StatementView("loop", each, self.producer.loop.span.line, body=(*given, *acquired, *loads))

    def _acquired(self, texts: Texts) -> StatementView:
        """The wait for an empty stage."""
        return text_line(f"{tl.BARRIER}& full = pipeline.producer_acquire({texts.k});")

    def _barriers(self) -> tuple[StatementView, ...]:
        """The pipelines of stages, and the initialisation of their barriers."""
        producer = self.producer
        declared, started = self._pipelines()
        persistent = producer.persistent
        if persistent is not None and persistent.queue:
            declared, started = [*self._queue(persistent), *declared], ["scheduler.init();", *started]
        if producer.prologue is not None:
            tiles = self.notes.prologue_tiles()
            place = f"{tl.SHARED}<Shared>()"
            if persistent is not None:
                kind = f"{tl.TMA_PIPELINE}<1, threads>"
                text = f"const {kind} prologue_pipeline({place}.prologue_barriers, {tl.BYTES}({tiles}));"
                declared, started = [*declared, text], [*started, "prologue_pipeline.init();"]
            else:
                have = "have" if len(producer.prologue.copies) > 1 else "has"
                about = comment_lines(f"completes when {tiles} {have} arrived  [{producer.prologue.rule}]")
                declared = [*declared, *about, f"{tl.BARRIER}& prologue_full = {place}.prologue_full;"]
                started = [*started, f"{tl.MBARRIER_INIT}(prologue_full, 1);"]
        init = tuple(map(text_line, (*started, f"{tl.MBARRIER_INIT_FENCE}();")))
        shown = f"{tl.SYNC_THREADS}();  // all threads see the initialised barriers"
        if producer.multicast:
            shown = f"{tl.CLUSTER_SYNC_RELAXED}();  // all threads of the cluster see the initialised barriers"
        stages = self.body.constants.stages(producer.iterations.stages)
        words = SlabWords(stages=stages, wait="gemm_wait<0>({})")
        above = barrier_table(producer, self.printer.names, words)
        return (
            text_line("\n".join(declared), 0, above),
            StatementView("branch", {"condition": f"{tl.THREAD}() == 0"}, body=init),
            text_line(shown),
        )

    def _pipelines(self) -> tuple[list[str], list[str]]:
        """The declarations of the pipelines of stages, and what initialises their barriers."""
        producer, names = self.producer, self.printer.names
        stages, place = self.body.constants.stages(producer.iterations.stages), f"{tl.SHARED}<Shared>()"
        if producer.rings:
            declared = [*map(self._ring, producer.rings), *self._counted_runs()]
            return declared, [f"{pipeline_name(ring.tile, names)}.init();" for ring in producer.rings]
        if producer.stages is not None:
            kind = (
                f"{tl.TMA_SLAB_PIPELINE}<{stages}, {producer.stages.total}, {len(producer.stages.parts[0])}, threads>"
            )
            declared = [*comment_lines(of_first_part(producer.stages)), f"const {kind} pipeline({place}.barriers);"]
            return declared, [f"pipeline.init({tl.PRODUCER_WARPGROUP * producer.stages.gathered});"]
        declared, started = [], []
        for fed in producer.pipelines:
            stages = self.body.constants.stages(fed.iterations.stages)
            name, barriers = (numbered(wish, fed.iterations, names) for wish in ("pipeline", "barriers"))
            tiles = ", ".join(f"{names(tile.name)}[0]" for tile in fed.tiles)
            kind = f"{tl.TMA_PIPELINE}<{stages}, threads{f', {producer.multicast}' if producer.multicast else ''}>"
            declared.append(f"const {kind} {name}({place}.{barriers}, {tl.BYTES}({tiles}));")
            started.append(f"{name}.init();")
            if fed.iterations.continues:
                state = f"{tl.PIPELINE_STATE}<{stages}> {numbered('stage', fed.iterations, names)};"
                declared.append(f"{state}  // of the next iteration: the pipeline continues from loop to loop")
        return [*declared, *self._counted_runs()], started

    def _counted_runs(self) -> list[str]:
        """The declaration of what counts the iterations of earlier runs of a loop."""
        about = "iterations of earlier runs, modulo twice the stages: the pipelines continue after them"
        return [f"int k_base = 0;  // {about}"] if self.producer.iterations.counted else []

    def _ring(self, ring: Ring) -> str:
        """The declaration of the pipeline of one tile."""
        names, stages = self.printer.names, self.body.constants.stages(ring.stages)
        name, place = pipeline_name(ring.tile, names), f"{tl.SHARED}<Shared>()"
        kind, published = f"{tl.TMA_PIPELINE}<{stages}, threads>", ""
        if ring.publishes:
            kind = f"{tl.ACTIVE_ITERATION_PIPELINE}<{stages}, threads, {names('__Iteration')}>"
            published = f"{place}.{ACTIVE_ROW}, "
        bytes_ = f"{tl.BYTES}({names(ring.tile.name)}[0])"
        return f"const {kind} {name}({place}.{barriers_name(ring, names)}, {published}{bytes_});"

    def _queue(self, persistent: Persistent) -> list[str]:
        """The declaration of the dynamic tile scheduler, and of which tiles it skips."""
        names = self.printer.names
        work, place = names("__WorkTile"), f"{tl.SHARED}<Shared>().scheduled_tiles, next_tile, {tl.NUM_TILES}(tiles)"
        if persistent.idle is None:
            return [f"const {tl.DYNAMIC_TILE_SCHEDULER}<threads, {work}> scheduler({place});"]
        idle = self.printer.text(persistent.idle)
        return [
            f"// Empty tiles write nothing: the producer skips them  [{self.producer.persistent_rule}]",
            f"const auto is_empty = [&](const {work}& {names('__work')}) {{ return {idle}; }};",
            f"const {tl.NON_EMPTY_TILE_SCHEDULER}<threads, {work}> scheduler({place});",
        ]

    def _way(self, way: PathToLoop) -> StatementView:
        """What is visited, and the way there."""
        persistent = self.producer.persistent is not None  # then shared memory holds it: its type is outside
        names = self.printer.names
        parts = {
            **called(way.visiting, names),
            "fields": "" if persistent else members(way.visiting.values, self.printer),
        }
        about = PUBLISHED if persistent else ITERATIONS if way.visiting.iterations else TILES
        return StatementView("walk", parts, body=self.body.views(way.body), notes=tuple(wrapped(about, BODY_WIDTH)))

    def _tile_of_work(self, persistent: Persistent) -> StatementView:
        """Where a tile of work lies, and the values that follow: a function for producer and consumers.

        What is printed behind it reads them as parts of the tile.
        """
        names, values = self.printer.names, persistent.work
        text = f"return {names('__WorkTile')}{{{', '.join(names(var.name) for var in values)}}};"
        indices = (text_line(each.text, 0, each.comments) for each in self.indices)
        body = (*indices, *self.body.views(self.producer.hoisted), text_line(text))
        parts = {"type": names("__WorkTile"), "each": names("__work_tile")}
        self.printer.fields = self.printer.fields | {var: f"{names('__work')}.{names(var.name)}" for var in values}
        fields = "" if persistent.queue else members(values, self.printer)
        return StatementView("work_tile", {**parts, "fields": fields}, body=body)

    def _static_tile(self) -> StatementView:
        """The tile of work that a block is at, where tiles are assigned statically."""
        names = self.printer.names
        return text_line(f"const {names('__WorkTile')} {names('__work')} = {names('__work_tile')}(tile);")

    def _loads_of_tile(self, persistent: Persistent) -> tuple[StatementView, ...]:
        """What the producer of a persistent kernel loads for a tile of work."""
        with self.body.iterations(self.producer.iterations) as texts:
            loads = self.body.views(self.producer.loads)
        done = text_line(texts.done_of_tile)
        if persistent.idle is not None:
            line = self.producer.loop.span.line
            return (StatementView("load_iterations", texts.parts, line, body=loads, gap=True), done)
        return (replace(self._each_stage(texts, loads), gap=True), done)

    def _loads_of_active(self) -> tuple[StatementView, ...]:
        """The same where iterations are skipped; it publishes which are active, and when that was the last."""
        ring = pipeline_name(self.producer.rings[0].tile, self.printer.names)
        end = text_line(f"if ({tl.THREAD}() == threads) {ring}.end(k_base + tile_iter);")
        (visits,) = self.body.views(self.producer.nested)
        with self.body.iterations(self.producer.iterations) as texts:
            done = text_line(f"k_base %= 2 * {texts.stages};")
        return (replace(visits, gap=True), end, done)

    def _drawing(self, persistent: Persistent) -> dict[str, str]:
        """How a producer draws tiles of work, and which it skips; empty where each block has its own."""
        if not persistent.queue:
            return {"queue": "", "idle": ""}
        names, idle = self.printer.names, persistent.idle is not None
        given = f"tile_iter, {names('__work')}" + f", {names('__work_tile')}" * (not idle)
        draw = "fetch" if self.producer.way is None else "fetch_for_warp"
        return {"queue": f"scheduler.{draw}({given})", "idle": "yes" if idle else ""}

    def _prologue(self) -> tuple[StatementView, ...]:
        """The loads of what is loaded once, behind what their barrier expects."""
        prologue = self.producer.prologue
        if prologue is None:
            return ()
        expected = f"{tl.MBARRIER_ARRIVE_EXPECT}(prologue_full, {tl.BYTES}({self.notes.prologue_tiles()}));"
        return (text_line(expected), *self.body.views(prologue.loads))


def _apart(shared: tuple[StatementView, ...], views: tuple[StatementView, ...]) -> tuple[StatementView, ...]:
    """The views behind those of shared values, with an empty line between."""
    first, *others = views
    return (*shared, replace(first, gap=bool(shared)), *others)
