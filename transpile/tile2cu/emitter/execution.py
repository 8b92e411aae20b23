"""What a caller must know of how calls execute: order on the stream, workspace, determinism, what nobody validates."""

from tile2cu.analysis.determinism import depends_on_order, summed_in_any_order
from tile2cu.analysis.indexing import indexing_tensors
from tile2cu.analysis.sync_calls import starts_early
from tile2cu.analysis.uninitialised import read_unwritten
from tile2cu.core.program import Buffer
from tile2cu.plan.settled import Settled
from tile2cu.styles.base.comments import listed
from tile2cu.styles.base.names import ascii_name
from tile2cu.styles.base.vocabulary import NAMESPACE


def execution(launches: tuple[Settled, ...], workspace: str) -> tuple[str, ...]:
    """The paragraphs; `workspace` is its size in bytes as the launcher's query computes it, "0" for none."""
    graph = "a HIP graph" if launches[0].target.is_amd else "a CUDA graph"
    room = "No workspace." if workspace == "0" else f"Workspace, in bytes: {workspace.replace(NAMESPACE, '')}."
    early = "Programmatic dependent launch: it may start before the kernel before it in the stream has ended."
    call = f"A call is asynchronous on `stream`, allocates nothing and can be captured in {graph}. {room}"
    dependent = any(starts_early(each.launch.body) for each in launches)
    return (call, early if dependent else "", _determinism(launches), _unvalidated(launches))


def _determinism(launches: tuple[Settled, ...]) -> str:
    """Whether equal calls give equal bits; empty where the program does not tell."""
    bodies = [each.launch.body for each in launches]
    sums = dict.fromkeys(
        f"{ascii_name(each.name)} ({each.dtype})" for body in bodies for each in summed_in_any_order(body)
    )
    if sums:
        return f"Not deterministic: atomics add to {listed(list(sums))} in an order that differs from run to run."
    unwritten = any(read_unwritten(each.launch) for each in launches)
    if unwritten or launches[0].program.user_code or any(map(depends_on_order, bodies)):
        return ""
    return "Deterministic: no floating-point atomics; equal calls give equal bits on the same GPU model."


def _unvalidated(launches: tuple[Settled, ...]) -> str:
    """The tensors whose elements indices and trip counts are computed from."""
    bodies = [each.launch.body for each in launches]
    found = {tensor.memory.name for tensors in map(indexing_tensors, bodies) for tensor in tensors}
    tensors = (each for each in launches[0].program.params if isinstance(each, Buffer))
    names = [ascii_name(each.name) for each in tensors if each.name in found]
    if not names:
        return ""
    return f"Indices or trip counts are computed from the elements of {listed(names)}, which nothing validates."
