"""Loops of a kernel with a producer, as views for the templates: who loads, and who consumes."""

from tile2cu.plan.ping_pong_ops import LoadSlabs, MmaOfSlabs, PingPong
from tile2cu.plan.producer_ops import (
    Consume,
    EachActive,
    Loads,
    Overlapped,
    Prefetch,
    Produce,
    Visit,
    Visits,
)
from tile2cu.styles.base.comments import BODY_WIDTH, wrapped
from tile2cu.styles.base.pipelined import release_method
from tile2cu.styles.base.view import StatementView, text_line
from tile2cu.styles.base.visits import each_active, fields, visit
from tile2cu.styles.tl import vocabulary as tl
from tile2cu.styles.tl.iterations import Texts
from tile2cu.styles.tl.overlap import overlapped
from tile2cu.styles.tl.parts import Parts
from tile2cu.styles.tl.ping_pong import load_slabs, mma_of_slabs, ping_pong
from tile2cu.styles.tl.staged import staged_tile

OfProducer = Produce | Consume | Overlapped | PingPong | LoadSlabs | MmaOfSlabs | Visit | Visits | EachActive
_LOADS = {Loads.LOOP: "produce", Loads.ONCE: "produce_once", Loads.VISITED: "load_taken"}


def of_producer(op: OfProducer, body: Parts) -> StatementView:
    """The view of a part of a schedule with a producer."""
    match op:
        case Visit():
            return visit(op.visiting, body)
        case Visits():
            return _visits(op, body)
        case EachActive():
            return each_active(op, body)
        case LoadSlabs():
            return load_slabs(op, body)
        case MmaOfSlabs():
            return mma_of_slabs(op, body)
        case _:
            with body.iterations(op.iterations) as texts:
                return _loop(op, texts, body)


def _loop(op: Produce | Consume | Overlapped | PingPong, texts: Texts, body: Parts) -> StatementView:
    match op:
        case Produce(how=Loads.LOOP) if not texts.stage:
            return _produce_counted(op, texts, body)
        case Produce():
            parts = {**texts.parts, "by_one": "yes" if body.by_one else ""}
            return StatementView(_LOADS[op.how], parts, body=body.views(op.loads))
        case Overlapped():
            return overlapped(op, texts, body)
        case PingPong():
            return ping_pong(op, texts, body)
        case Consume():
            return _consume(op, texts, body)


def _produce_counted(op: Produce, texts: Texts, body: Parts) -> StatementView:
    """The loads of a loop whose pipelines count iterations."""
    k, count = texts.k, texts.count
    named = [text_line(f"const int {count} = {texts.trips};")] * (count == "num_iterations")
    head = {"end": "", "unroll": "no", "variable": k, "start": "0", "stop": count, "compare": "<", "move": f"++{k}"}
    given = [text_line(texts.variable)] * bool(texts.variable)
    acquired = [text_line(f"{tl.BARRIER}& full = {texts.pipeline}.producer_acquire({texts.before}{k});")] * (
        not op.rings
    )
    loop = StatementView("loop", head, body=(*given, *acquired, *body.views(op.loads)))
    done = [text_line(f"if ({count} > 0) {texts.done}")] * texts.counted
    if body.by_one:
        return StatementView("block", {}, body=(*named, loop, *done))
    return StatementView("branch", {"condition": f"{tl.THREAD}() == threads"}, body=(*named, loop, *done))


def _consume(op: Consume, texts: Texts, body: Parts) -> StatementView:
    stage = texts.stage
    release = f"{texts.pipeline}.{release_method(waits_for_loads=op.waits_for_loads)}({stage or texts.k});"
    release += f"\n{stage}.advance();" * bool(stage)
    unused = stage and not op.reads_var  # the pipeline's state names the tiles' stage
    parts = {**texts.parts, "release": release, "variable": "" if unused else texts.variable}
    parts |= {"count": texts.trips if op.iterations.inside else texts.count}
    if op.once:
        return StatementView("consume_once", parts, body=body.views(op.body))
    ahead = _prefetched(op.prefetch, texts, body, op.iterations.inside) if op.prefetch is not None else ()
    with body.continuing(release):
        views = body.views(op.body)
    return StatementView("consume", parts, body=views, orelse=ahead)


def _prefetched(op: Prefetch, texts: Texts, body: Parts, inside: bool) -> tuple[StatementView, ...]:
    """What stands before a loop whose vectors are loaded one iteration ahead: registers, the load, the first one's."""
    names, k, trips = body.printer.names, texts.k, texts.trips if inside else texts.count
    tiles = {id(copy): staged_tile(copy, body.printer, kind_of_line=tl.PREFETCHED_VECTOR) for copy in op.copies}
    load = names.fresh("load_vectors")
    listed_tiles = ", ".join(tile.name for tile in tiles.values())
    about = f"{listed_tiles}: the next iteration's vectors, prefetched during this one's MMAs"
    body.operations.copies.registers.update({key: tile.name for key, tile in tiles.items()})
    loads = tuple(body.statement(each, []) for each in op.loads)
    body.prefetches[id(op)] = f"{load}({tl.MIN}({k} + 1, {trips} - 1));"
    lines = [*wrapped(f"{about}  [{op.rule}]", BODY_WIDTH)]
    declared = [f"// {line}" for line in lines] + [tile.declaration for tile in tiles.values()]
    part = {"name": load, "argument": k, "variable": texts.variable}
    return (
        text_line("\n".join(declared)),
        StatementView("part", part, body=loads),
        text_line(f"{load}(0);" if texts.certain else f"if ({trips} > 0) {load}(0);"),
    )


def _visits(op: Visits, body: Parts) -> StatementView:
    """What is done there."""
    with fields(op.visiting, body.printer) as names:
        views = body.views(op.body)
    if op.visiting.iterations and views[-1].kind == "overlap":
        return views[-1]
    parts = {**names, "values": "yes" if op.visiting.values else ""}
    return StatementView("visits", parts, op.source.span.line, body=views)
