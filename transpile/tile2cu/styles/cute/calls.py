"""Calls for their effect: barriers of the user's and of a cluster, and the start of later kernels."""

from collections.abc import Iterator

from tile2cu.core.expr import Load
from tile2cu.plan.kernel import StartedBarriers
from tile2cu.plan.structure import Invoke, Purpose
from tile2cu.styles.base.view import Declaration
from tile2cu.styles.base.vocabulary import SHARED
from tile2cu.styles.cute.expressions import CutePrinter
from tile2cu.styles.cute.support import unsupported

# What CuTe and CUTLASS call the functions of headers/tl.
FUNCTIONS = {
    "sync_cluster": "cluster_sync",
    "cluster_arrive": "cluster_arrive",
    "cluster_arrive_relaxed": "cluster_arrive_relaxed",
    "cluster_wait": "cluster_wait",
    "fence_async_proxy": "cutlass::arch::fence_view_async_shared",
    "griddepcontrol_wait": "cutlass::arch::wait_on_dependent_grids",
    "griddepcontrol_launch_dependents": "cutlass::arch::launch_dependent_grids",
}
# Those of cutlass::arch::ClusterTransactionBarrier, by how many arguments they have behind the barrier.
METHODS = {
    ("mbarrier_wait", 1): "wait",
    ("mbarrier_arrive", 0): "arrive",
    ("mbarrier_arrive_as_reader", 1): "arrive",
    ("mbarrier_expect", 1): "expect_transaction",
    ("mbarrier_arrive_expect", 1): "arrive_and_expect_tx",
}
_PURPOSES = {
    Purpose.AWAIT_KERNELS: (
        "up to here the kernel may overlap with earlier ones on its stream; now it reads their results"
    ),
    Purpose.START_KERNELS: "later kernels on the stream that are launched with the PDL attribute may start",
}


def invoke(op: Invoke, printer: CutePrinter) -> str:
    """The statement. Errors: T2C-E034 for a function that CuTe has no counterpart of."""
    name, args = op.call.function, op.call.args
    if op.places:
        raise unsupported(f"the call `{name}`", op.source.span)
    if not args and name in FUNCTIONS:
        return f"{FUNCTIONS[name]}();"
    barrier, method = args[0] if args else None, METHODS.get((name, len(args) - 1))
    if method is None or not isinstance(barrier, Load):
        raise unsupported(f"the call `{name}`", op.source.span)
    return f"{printer.text(barrier)}.{method}({', '.join(map(printer.index, args[1:]))});"


def started(barriers: StartedBarriers, printer: CutePrinter) -> Iterator[Declaration]:
    """Names for the user's barriers, and their initialisation, which a barrier then shows to all threads."""
    shown = "cluster_sync()" if barriers.in_cluster else "__syncthreads()"
    names = [printer.names(tile.name) for tile in barriers.tiles]
    yield from (Declaration(f"auto& {name} = {SHARED}<Shared>().{name};") for name in names)
    yield Declaration(
        "if (threadIdx.x == 0) {", (f"One thread initialises the barriers; {shown} makes them visible to all",)
    )
    for name, tile in zip(names, barriers.tiles, strict=True):
        counts = tile.arrivals
        if len(counts) > 1 and len(set(counts)) == 1:
            yield Declaration(f"for (auto& barrier : {name}) barrier.init({counts[0]});")
        else:
            yield from (Declaration(f"{name}[{at}].init({count});") for at, count in enumerate(counts))
    yield Declaration("cutlass::arch::fence_barrier_init();\n}")
    if not barriers.shown_by_user:
        yield Declaration(f"{shown};")


def comments(op: Invoke) -> tuple[str, ...]:
    """What the call is for."""
    return (_PURPOSES[op.purpose],) if op.purpose in _PURPOSES else ()
