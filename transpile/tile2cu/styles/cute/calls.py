"""Calls for their effect: barriers of a cluster, and the start of later kernels."""

from tile2cu.plan.structure import Invoke, Purpose
from tile2cu.styles.cute.support import unsupported

# What CuTe and CUTLASS call the functions of headers/tl.
FUNCTIONS = {
    "sync_cluster": "cluster_sync",
    "cluster_arrive": "cluster_arrive",
    "cluster_arrive_relaxed": "cluster_arrive_relaxed",
    "cluster_wait": "cluster_wait",
    "griddepcontrol_wait": "cutlass::arch::wait_on_dependent_grids",
    "griddepcontrol_launch_dependents": "cutlass::arch::launch_dependent_grids",
}
_PURPOSES = {
    Purpose.AWAIT_KERNELS: (
        "up to here the kernel may overlap with earlier ones on its stream; now it reads their results"
    ),
    Purpose.START_KERNELS: "later kernels on the stream that are launched with the PDL attribute may start",
}


def invoke(op: Invoke) -> str:
    """The statement. Errors: T2C-E034 for a function that CuTe has no counterpart of."""
    function = FUNCTIONS.get(op.call.function)
    if function is None or op.call.args or op.places:
        raise unsupported(f"the call `{op.call.function}`", op.source.span)
    return f"{function}();"


def comments(op: Invoke) -> tuple[str, ...]:
    """What the call is for."""
    return (_PURPOSES[op.purpose],) if op.purpose in _PURPOSES else ()
