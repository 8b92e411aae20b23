"""The producer's part of a kernel: its barriers, and the loads that it issues stage by stage."""

from collections.abc import Iterator
from contextlib import contextmanager

from msgspec.structs import replace

from tile2cu.core.program import Buffer
from tile2cu.core.schedule import Persistent
from tile2cu.core.shared_memory import ACTIVE_ROW
from tile2cu.plan import producer_ops
from tile2cu.plan.producer_ops import Iterations, Ring
from tile2cu.plan.roles import Fed, PathToLoop, Producer
from tile2cu.styles.base.barriers import SlabWords, barrier_table, barriers_name, numbered
from tile2cu.styles.base.comments import BODY_WIDTH, wrapped
from tile2cu.styles.base.loops import FromZero
from tile2cu.styles.base.roles import ONE_THREAD, SOONER, Notes, members
from tile2cu.styles.base.view import Declaration, StatementView, text_line
from tile2cu.styles.base.visits import ITERATIONS, PUBLISHED, TILES, called
from tile2cu.styles.cute import vocabulary as words
from tile2cu.styles.cute.parts import Parts
from tile2cu.styles.cute.support import unsupported

_PROLOGUE = "prologue"
RESERVED_BARRIERS = 8  # named barriers, before those of a cutlass::arch::NamedBarrier


class Role:
    """Prints the producer of a kernel; `indices` declare where a tile of work of a persistent kernel is."""

    def __init__(self, producer: Producer, kernel: Parts, indices: tuple[Declaration, ...]) -> None:
        """Errors: T2C-E034."""
        self.producer, self.kernel, self.indices = producer, kernel, indices
        self.names, self.counter = kernel.printer.names, kernel.fragments.counter
        self.notes = Notes(producer, self.names)
        self.k = ""  # the number of the iteration that is printed
        if producer.multicast:
            raise unsupported("loads by multicast", producer.loop.span)

    # ---- stages -------------------------------------------------------------------------------------------------

    def state(self, tile: Buffer) -> str:
        """The name of the PipelineState of a tile's stages; one of producer and consumers each."""
        ring = self._ring(tile)
        if ring is not None:
            return self.counter(f"{self.names(ring.tile.name)}_stage")
        number = self._fed(tile).iterations.number
        return self.counter("stage" if number == 1 else f"stage_{number}")

    def barriers(self, tile: Buffer) -> str:
        """The barriers of a tile's stages."""
        ring = self._ring(tile)
        return barriers_name(ring, self.names) if ring else numbered("barriers", self._fed(tile).iterations, self.names)

    def _ring(self, tile: Buffer) -> Ring | None:
        return next((each for each in self.producer.rings if each.tile is tile.memory), None)

    def _fed(self, tile: Buffer) -> Fed:
        """The loop that a tile is loaded for."""
        loops = self.producer.pipelines
        return next(each for each in loops if any(one is tile.memory for one in each.tiles))

    def _pipelines(self) -> Iterator[tuple[str, str, int]]:
        """(barriers, state, stages) of each pipeline but the prologue's."""
        for ring in self.producer.rings:
            yield self.barriers(ring.tile), self.state(ring.tile), ring.stages
        for fed in self.producer.pipelines if not self.producer.rings else ():
            yield self.barriers(fed.tiles[0]), self.state(fed.tiles[0]), fed.iterations.stages

    def _rings(self) -> Iterator[tuple[str, str]]:
        """(barriers, state) of each pipeline."""
        yield from ((barriers, state) for barriers, state, _ in self._pipelines())
        if self.producer.persistent is not None:
            yield f"{_PROLOGUE}_barriers", f"{_PROLOGUE}_stage"

    def advance(self, of: Iterations) -> str:
        """The increments of the states of an iteration's stages; none where it is in the stage of its number."""
        if self.producer.stages is not None:
            return ""
        tiles = [ring.tile for ring in self.producer.rings] or [of.tiles[0]]
        return ", ".join(f"++{self.state(tile)}" for tile in tiles)

    @contextmanager
    def iterations(self, of: Iterations) -> Iterator[FromZero]:
        """How a loop's iterations are written; inside, its tiles print with their stage."""
        printer, outside = self.kernel.printer, self.kernel.printer.stages
        loop = FromZero.of(of.var, of.start, of.stop, printer, lambda name: f"{name}_iter")
        printer.stages = outside | {tile.name: self._stage(tile, of, loop) for tile in of.tiles}
        self.k = loop.k
        yield loop if loop.count else replace(loop, count="num_iterations")
        printer.stages = outside

    def _stage(self, tile: Buffer, of: Iterations, loop: FromZero) -> str:
        """The index of the stage that a tile of an iteration is in."""
        if self.producer.stages is not None:
            return f"{loop.k} % {self.kernel.constants.stages(of.stages)}"
        return f"{self.state(tile)}.index()"

    def consumer_states(self) -> tuple[Declaration, ...]:
        """The states of the consumers, which count on from loop to loop."""
        if self.producer.stages is not None:
            return ()
        stages = {state: self.kernel.constants.stages(count) for _, state, count in self._pipelines()}
        return tuple(
            Declaration(f"cutlass::PipelineState<{stages.get(state, '1')}> {state};") for _, state in self._rings()
        )

    # ---- the role -----------------------------------------------------------------------------------------------

    def setup(self) -> tuple[Declaration, ...]:
        """Names of the barriers."""
        barriers = [name for name, _ in self._rings()]
        if self.producer.prologue is not None and self.producer.persistent is None:
            barriers.append(f"{_PROLOGUE}_full")
        if self.producer.persistent is not None and self.producer.persistent.queue:
            barriers.append("scheduled_tiles")
        if self.producer.persistent is not None and self.producer.persistent.iteration:
            barriers.append(ACTIVE_ROW)
        return tuple(Declaration(f"auto& {name} = {words.SHARED}().{name};") for name in barriers)

    def views(self) -> tuple[StatementView, ...]:
        """What the producer does, and the values that it shares with the others."""
        producer, kernel = self.producer, self.kernel
        if producer.persistent is not None:
            return self._persistent(producer.persistent)
        hoisted, meanwhile = kernel.views(producer.hoisted), kernel.views(producer.meanwhile)
        counted: tuple[StatementView, ...] = ()
        note: tuple[str, ...] = (self.notes.nested(),)
        if producer.nested:
            nested, one = kernel.views(producer.nested), producer.nested_by_one
            alone = (text_line(f"if ({words.THREAD}() != threads) return;  // {ONE_THREAD}"),) * one
            body = (*alone, *self._prologue(one=not one), *self._states(), *nested)
        else:
            with self.iterations(producer.iterations) as loop:
                loads = self._loads(producer.iterations, loop, kernel.views(producer.loads))
                counted = self._counted(loop)
            prologue = () if meanwhile else self._prologue(one=False)
            body = (self._by_one((*prologue, *self._states(), loads)),)
            note = (kernel.heading((producer.loop,))[-1], self.notes.at_top())  # the user comments the loop itself
        sooner: tuple[StatementView, ...] = ()
        if meanwhile:
            (issued,) = self._prologue(one=True)
            about = tuple(wrapped(SOONER, BODY_WIDTH))
            sooner = (replace(issued, comments=about, gap=True), *meanwhile)
        way = (self._way(producer.way),) if producer.way is not None else ()
        first = self._init(gap=bool(hoisted or way))
        return (*hoisted, *way, *first, *sooner, *counted, *self._role(body, note))

    def _way(self, way: PathToLoop) -> StatementView:
        """What is visited, and the way there."""
        given, names = way.visiting, self.names
        persistent = self.producer.persistent is not None  # then shared memory holds it: its type is outside
        parts = {**called(given, names), "fields": "" if persistent else members(given.values, self.kernel.printer)}
        text = PUBLISHED if persistent else ITERATIONS if given.iterations else TILES
        about = tuple(wrapped(text, BODY_WIDTH))
        return StatementView(
            "walk", parts, body=self.kernel.views(way.body), notes=about, gap=bool(self.producer.hoisted)
        )

    def loads_of(self, op: producer_ops.Produce) -> StatementView:
        """The loads of a loop on the producer's way to it."""
        with self.iterations(op.iterations) as loop:
            loads = self.kernel.views(op.loads)
            if op.how is producer_ops.Loads.LOOP:
                each = self._loads(op.iterations, replace(loop, count=loop.trips), loads)
                return each if self.producer.nested_by_one else self._by_one((each,))
            acquired = () if op.rings else self._acquired(op.iterations)
            return self._by_one((*acquired, *loads, text_line(f"{self.advance(op.iterations)};")))

    def each_tile(self) -> tuple[StatementView, ...]:
        """What a tile of work of a persistent kernel begins with."""
        persistent = self.producer.persistent
        assert persistent is not None
        counted: tuple[StatementView, ...] = ()
        if self.producer.way is None:
            with self.iterations(self.producer.iterations) as loop:
                counted = self._counted(loop)
        work, at = self.names("__work"), f"{self.names('__work_tile')}(tile)"
        place = () if persistent.queue else (text_line(f"const {self.names('__WorkTile')} {work} = {at};"),)
        return (*place, *counted)

    def over_tiles(self, next_tile: str, body: tuple[StatementView, ...]) -> tuple[StatementView, ...]:
        """A loop over a block's tiles of work."""
        persistent, names = self.producer.persistent, self.names
        assert persistent is not None
        if not persistent.queue:
            parts = {"unroll": "", "end": "", "variable": "tile", "start": "blockIdx.x", "compare": "<"}
            parts |= {"stop": f"{words.NUM_TILES}(tiles)", "move": "tile += gridDim.x"}
            return (StatementView("loop", parts, body=body, gap=True),)
        declared = text_line(f"{names('__WorkTile')} {names('__work')};\nint tile_iter = 0;")
        condition = f"scheduler.{next_tile}"
        each = StatementView("while", {"condition": condition}, body=(*body, text_line("++tile_iter;")))
        return (replace(declared, gap=True), each)

    def next_tile(self) -> str:
        """The consumers' call for the next tile of work."""
        return f"next_tile(tile_iter, {self.names('__work')})"

    def _persistent(self, persistent: Persistent) -> tuple[StatementView, ...]:
        """The producer of a persistent kernel: the same for one tile of work after the other."""
        kernel, names, producer = self.kernel, self.names, self.producer
        assert producer.prologue is not None, "a persistent kernel has a prologue"
        tile = self._tile_of_work(persistent)
        acquire = f"{_PROLOGUE}_barriers.producer_acquire({_PROLOGUE}_stage, {self._bytes_of_prologue()})"
        first = text_line(f"uint64_t& {_PROLOGUE}_full = {acquire};")
        begin = (first, *kernel.views(producer.prologue.loads), text_line(f"++{_PROLOGUE}_stage;"))
        skips = persistent.idle is not None
        way: tuple[StatementView, ...] = ()
        if producer.way is not None:
            way = (replace(self._way(producer.way), gap=True),)
            loads = self._published(begin)
        else:
            loads = (*begin, replace(self._loads_of_tile(skips), gap=True))
        given = ["tile_iter", names("__work"), *([] if skips else [names("__work_tile")])]
        fetch = f"{'fetch' if producer.way is None else 'fetch_for_warp'}({', '.join(given)})"
        one = text_line(f"if ({words.THREAD}() != threads) return;  // {ONE_THREAD}")
        if producer.way is not None:
            warps = f"{words.WARP}() != threads / {words.WARP_SIZE}"
            one = text_line(
                f"if ({warps}) return;  // one warp finds active iterations, its first lane issues all loads"
            )
        each = (*self.each_tile(), *loads)
        body = (*self._fetching(skips), one, *self._states(), *self.over_tiles(fetch, each))
        return (tile, *way, *self._init(gap=True), *self._role(body, (self.notes.persistent(persistent),)))

    def _loads_of_tile(self, skips: bool) -> StatementView:
        """What the producer of a persistent kernel loads for a tile of work."""
        producer = self.producer
        if producer.nested:
            raise unsupported("a persistent kernel whose loads are in loops", producer.loop.span)
        with self.iterations(producer.iterations) as loop:
            loads = self.kernel.views(producer.loads)
            return self._scheduled(loop, loads) if skips else self._loads(producer.iterations, loop, loads)

    def _published(self, begin: tuple[StatementView, ...]) -> tuple[StatementView, ...]:
        """The same where iterations are skipped; it publishes which are active, and when that was the last."""
        first = self.producer.rings[0].tile
        state, barriers = self.state(first), self.barriers(first)
        end = text_line(f"{barriers}.producer_end({state}, {ACTIVE_ROW});\n++{state};")
        (visits,) = self.kernel.views(self.producer.nested)
        return (self._by_one(begin), replace(visits, gap=True), self._by_one((end,)))

    def _fetching(self, skips: bool) -> tuple[StatementView, ...]:
        """What the producer's other warps do where empty tiles are skipped."""
        if not skips:
            return ()
        about = "Its second warp fetches tiles for all; the last two record which are not empty, each block a part"
        call = f"scheduler.schedule({self.names('__work_tile')}, is_empty)"
        text = f"if ({words.WARP}() > threads / {words.WARP_SIZE}) return {call};"
        return (text_line(text, 0, (about,)),)

    def _scheduled(self, loop: FromZero, loads: tuple[StatementView, ...]) -> StatementView:
        """The loads of a tile of work that another warp has fetched."""
        states = text_line(f"{self.advance(self.producer.iterations)};")
        parts = {"count": loop.count, "k": loop.k, "variable": loop.variable}
        return StatementView("load_iterations", parts, self.producer.loop.span.line, body=(*loads, states))

    def _tile_of_work(self, persistent: Persistent) -> StatementView:
        """Where a tile of work is, and the values that follow: a function for producer and consumers.

        What is printed behind it reads them as parts of the tile.
        """
        names, values, printer = self.names, persistent.work, self.kernel.printer
        text = f"return {names('__WorkTile')}{{{', '.join(names(var.name) for var in values)}}};"
        indices = (text_line(each.text, 0, each.comments) for each in self.indices)
        body = (*indices, *self.kernel.views(self.producer.hoisted), text_line(text))
        printer.fields = printer.fields | {var: f"{names('__work')}.{names(var.name)}" for var in values}
        fields = "" if persistent.queue else members(values, self.kernel.printer)
        parts = {"type": names("__WorkTile"), "each": names("__work_tile"), "fields": fields}
        return StatementView("work_tile", parts, body=body)

    def _role(self, body: tuple[StatementView, ...], notes: tuple[str, ...]) -> tuple[StatementView, ...]:
        """The branch of the producer's warps, and what the others do behind it."""
        about = tuple(line for note in notes for line in wrapped(note, BODY_WIDTH))
        moves, line = bool(self.producer.shares_rule), self.producer.loop.span.line
        fewer = (text_line("cutlass::arch::warpgroup_reg_dealloc<producer_registers>();"),) * moves
        condition = {"condition": f"{words.IS_PRODUCER}<threads>()"}
        role = StatementView("branch", condition, line, about, (*fewer, *body, text_line("return;")), gap=True)
        more = (text_line("cutlass::arch::warpgroup_reg_alloc<consumer_registers>();"),) * moves
        return (role, *more, text_line("__builtin_assume(threadIdx.x < threads);  // the producer has returned"))

    def _by_one(self, body: tuple[StatementView, ...]) -> StatementView:
        """What one thread of the producer does."""
        return StatementView("branch", {"condition": f"{words.THREAD}() == threads"}, body=body)

    def _states(self) -> tuple[StatementView, ...]:
        """The producer's own states."""
        if self.producer.stages is not None:
            return ()
        return tuple(
            text_line(f"auto {state} = cutlass::make_producer_start_state<decltype(Shared::{barriers})>();")
            for barriers, state in self._rings()
        )

    def _loads(self, of: Iterations, loop: FromZero, loads: tuple[StatementView, ...]) -> StatementView:
        """The loop over the iterations' loads."""
        given = (text_line(loop.variable),) * bool(loop.variable)
        acquired = () if self.producer.rings or self.producer.stages is not None else self._acquired(of)
        each = {"unroll": "no", "variable": loop.k, "start": "0", "stop": loop.count}
        each |= {"end": "", "compare": "<", "move": ", ".join(filter(None, (f"++{loop.k}", self.advance(of))))}
        body = (*given, *acquired, *loads)
        return StatementView("loop", each, self.producer.loop.span.line, body=body)

    def _acquired(self, of: Iterations) -> tuple[StatementView, ...]:
        """The wait for an empty stage of all tiles of a loop."""
        fed = self._fed(of.tiles[0])
        tiles = ", ".join(self.names(tile.name) for tile in fed.tiles)
        call = f"producer_acquire({self.state(fed.tiles[0])}, {words.STAGE_BYTES}({tiles}))"
        return (text_line(f"uint64_t& full = {self.barriers(fed.tiles[0])}.{call};"),)

    def acquire(self, tile: Buffer, *, publishes: bool) -> str:
        """The wait for an empty stage of a tile that has barriers of its own; it `publishes` its iteration."""
        full, name = self.counter(f"{self.names(tile.name)}_full"), self.names(tile.name)
        told = f", {ACTIVE_ROW}, {self.names('__iteration')}" if publishes else ""
        call = f"producer_acquire({self.state(tile)}, {words.STAGE_BYTES}({name}){told})"
        return f"uint64_t& {full} = {self.barriers(tile)}.{call};"

    def _counted(self, loop: FromZero) -> tuple[StatementView, ...]:
        return (text_line(f"const int num_iterations = {loop.trips};"),) * (loop.count == "num_iterations")

    def _init(self, *, gap: bool) -> tuple[StatementView, ...]:
        """The initialisation of the barriers."""
        producer, declared = self.producer, ""
        warps = "" if producer.stages is not None else "threads / 32"  # a warpgroup's, of each part of a stage
        started = [f"{name}.init({warps});" for name, _ in self._rings()]
        if producer.prologue is not None and producer.persistent is None:
            started.append(f"initialize_barrier({_PROLOGUE}_full, 1);")
        if producer.persistent is not None and producer.persistent.queue:
            idle, work = producer.persistent.idle, self.names("__WorkTile")
            kind = f"{words.SCHEDULER if idle is None else words.NON_EMPTY_SCHEDULER}<threads, {work}>"
            if idle is not None:
                about = f"// Empty tiles write nothing: the producer skips them  [{producer.persistent_rule}]"
                asked = f"return {self.kernel.printer.text(idle)};"
                given = f"const {work}& {self.names('__work')}"
                declared = f"{about}\nconst auto is_empty = [&]({given}) {{ {asked} }};\n"
            declared += f"const {kind} scheduler(scheduled_tiles, next_tile, {words.NUM_TILES}(tiles));"
            started.append("scheduler.init();")
        init = tuple(map(text_line, (*started, "cutlass::arch::fence_barrier_init();")))
        condition = {"condition": f"{words.THREAD}() == 0"}
        above = barrier_table(producer, self.names, self._words())
        first = StatementView("branch", condition, 0, () if declared else above, init, gap=gap and not declared)
        scheduler = (replace(text_line(declared, 0, above), gap=gap),) * bool(declared)
        return (*scheduler, first, text_line("__syncthreads();  // all threads see the initialised barriers"))

    def _words(self) -> SlabWords:
        stages = self.kernel.constants.stages(self.producer.iterations.stages)
        return SlabWords(stages=stages, wait="warpgroup_wait<0>() for {}", reserved=RESERVED_BARRIERS)

    def _prologue(self, *, one: bool) -> tuple[StatementView, ...]:
        """The loads of what is loaded once, behind what their barrier expects."""
        prologue = self.producer.prologue
        if prologue is None:
            return ()
        expected = text_line(f"set_barrier_transaction_bytes({_PROLOGUE}_full, {self._bytes_of_prologue()});")
        views = (expected, *self.kernel.views(prologue.loads))
        return (self._by_one(views),) if one else views

    def _bytes_of_prologue(self) -> str:
        return f"{words.STAGE_BYTES}({self.notes.prologue_tiles()})"
