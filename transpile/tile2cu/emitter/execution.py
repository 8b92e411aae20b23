"""What a caller must know of how calls execute: order on the stream, workspace, determinism, what nobody validates."""

from collections.abc import Iterator

from tile2cu.analysis.accesses import variables
from tile2cu.analysis.determinism import depends_on_order, summed_in_any_order
from tile2cu.analysis.indexing import Index, element_indices
from tile2cu.analysis.masked_operands import masked_operands, replaced_operands, zeroed_operands
from tile2cu.analysis.sum_order import sum_order
from tile2cu.analysis.sync_calls import lets_start_early, starts_early
from tile2cu.analysis.uninitialised import read_unwritten
from tile2cu.analysis.uses import statements
from tile2cu.core.decisions import CALL
from tile2cu.core.expr import Named, Var
from tile2cu.core.program import Buffer, Copy, Loop
from tile2cu.plan.requirements import shared_asked
from tile2cu.plan.resolved import Resolved
from tile2cu.styles.base.comments import listed
from tile2cu.styles.base.expressions import Printer
from tile2cu.styles.base.names import ascii_name
from tile2cu.targets import Target


def execution(launches: tuple[Resolved, ...], printer: Printer, workspace: str) -> tuple[str, ...]:
    """The paragraphs; `workspace` is its size in words, empty for none."""
    graph = "a HIP graph" if launches[0].target.is_amd else "a CUDA graph"
    room = f"Workspace: {workspace}. Less is TL_WORKSPACE_TOO_SMALL." if workspace else "No workspace."
    call = f"A call is asynchronous on `stream`, allocates nothing and can be captured in {graph}. {room}"
    return (
        call,
        _dependent(launches),
        _determinism(launches),
        masked(launches),
        _unvalidated(launches, printer),
        f"Runs on {_devices(launches)}; else TL_WRONG_DEVICE. tl/status.h lists what a call may return.",
    )


def _devices(launches: tuple[Resolved, ...]) -> str:
    """The devices that run a target's code. [CUDA C++ Programming Guide, "Application Compatibility"]"""
    target = launches[0].target
    if target.is_amd:
        return f"devices of {target.arch}"
    capability = ".".join(map(str, target.capability))
    text = f"compute capability {capability} {'alone' if target.arch.endswith('a') else 'and later'}"
    asked = shared_asked(launches)
    allowed = f"where a block may have {asked:,} bytes of shared memory (cudaDevAttrMaxSharedMemoryPerBlockOptin)"
    return f"{text}, {allowed}" if asked else text


def compiler_of(target: Target) -> str:
    """The command that compiles a source; -arch=sm_80 embeds PTX, too, which later GPUs run.

    For a target such as sm_90a never -arch=sm_90a: nvcc 13 then assembles for sm_90, too.
    """
    if target.is_amd:
        return f"hipcc -std=c++17 --offload-arch={target.arch}"
    if target.arch.endswith("a"):
        return f"nvcc -std=c++17 -gencode arch={target.arch.replace('sm', 'compute')},code={target.arch}"
    return f"nvcc -std=c++17 -arch={target.arch}"


def _dependent(launches: tuple[Resolved, ...]) -> str:
    """Which kernels programmatic dependent launch lets start early: of the call, and of the stream after it."""
    names = [each.namespace or each.program.name for each in launches]
    bodies = [each.launch.body for each in launches]
    text = ""
    for place, (name, body) in enumerate(zip(names, bodies, strict=True)):
        if starts_early(body):
            before = names[place - 1] if place else "the kernel before it in the stream"
            text += (
                f"{name} may start before {before} has ended, and waits for its end before it accesses what that wrote "
            )
            text += "(griddepcontrol.wait). "
    triggers = [name for name, body in zip(names, bodies, strict=True) if lets_start_early(body)]
    if triggers:
        executed = f"{listed(triggers)} execute{'s' * (len(triggers) == 1)} griddepcontrol.launch_dependents"
        text += f"{executed}{_after_call(launches, names)} "
    return f"Programmatic dependent launch: {text.rstrip()}" if text else ""


def _after_call(launches: tuple[Resolved, ...], names: list[str]) -> str:
    """When the caller's next kernel may start: the last kernel that has blocks lets it, or does not."""
    empty: list[str] = []  # kernels behind, of which none is launched
    found: list[str] = []
    for name, each in zip(reversed(names), reversed(launches), strict=True):
        if lets_start_early(each.launch.body):
            found.append(f"where {listed(empty[::-1])} {'has' if len(empty) == 1 else 'have'} no blocks" * bool(empty))
        if not any((each.bounds.interval(extent).low or 0) <= 0 for extent in each.launch.grid):
            break
        empty.append(name)
    successor = "A kernel that the caller launches next with the PDL attribute"
    waits = "must execute griddepcontrol.wait before it accesses the tensors or the workspace of the call."
    if not found:
        return f". {successor} starts after the blocks of {names[-1]} have exited, and {waits}"
    when = "" if not all(found) else f", {', or '.join(found)}"
    return f". {successor} may start before the call has ended{when}. In any case it {waits}"


def _determinism(launches: tuple[Resolved, ...]) -> str:
    """Whether identical calls give equal bits, and for which calls; empty where the program does not tell."""
    bodies = [each.launch.body for each in launches]
    sums = dict.fromkeys(
        f"{ascii_name(each.name)} ({each.dtype})" for body in bodies for each in summed_in_any_order(body)
    )
    if sums:
        return f"Not deterministic: atomics add to {listed(list(sums))} in an order that differs from run to run."
    unwritten = any(read_unwritten(each.launch) for each in launches)
    if unwritten or launches[0].program.user_code or any(map(depends_on_order, bodies)):
        return ""
    return (
        "Deterministic: no floating-point atomics; identical calls give equal bits on the same GPU model, with the "
        f"same binary and driver.{_batch(launches)}"
    )


def _batch(launches: tuple[Resolved, ...]) -> str:
    """Whether an element's bits depend on where it is, and on the sizes of the call; empty where nothing is summed."""
    found = sum_order(tuple(each.launch for each in launches))
    if not found.sums:
        return ""
    sizes = [ascii_name(each.name) for each in found.sizes]
    names = listed([ascii_name(each.name) for each in found.tensors])
    block = "workgroup" if launches[0].target.is_amd else "block"
    elements = [f"the elements of {names} that are read for its {block}"] if found.tensors else []
    deciding = listed([*elements, *sizes])
    if found.by_position:
        also = f" and on {deciding}" if deciding else ""
        return (
            " Not shown to be batch-invariant: how the terms of an element are grouped and ordered may depend on the "
            f"position of its tile{also}."
        )
    alone = f"depends only on {deciding}" if deciding else "is fixed"
    return f" Batch-invariant: the order in which an element's terms are added {alone}."


_MASKED = (  # operands with masked rows, and what becomes of NaN in these
    (masked_operands, "in tiles that iterations load are multiplied by 0: NaN or infinity in them gives NaN."),
    (zeroed_operands, "are not loaded, the tile has zeros in their place: they may hold NaN or infinity."),
    (
        replaced_operands,
        "are loaded, but minus infinity replaces their scores after the MMA: they may hold NaN or infinity.",
    ),
)


def masked(launches: tuple[Resolved, ...]) -> str:
    """What NaN in elements does that a mask takes out."""
    bodies = [each.launch.body for each in launches]
    return " ".join(
        f"Masked rows of {ascii_name(tensor.name)}{_decided(deciding)} {effect}"
        for operands, effect in _MASKED
        for tensor, deciding in dict.fromkeys(each for body in bodies for each in operands(body))
    )


def _decided(deciding: tuple[Buffer, ...]) -> str:
    """The tensors whose elements decide which rows are masked, in parentheses."""
    names = listed([ascii_name(each.name) for each in deciding])
    return f" ({names} decide{'s' * (len(deciding) == 1)} which)" if deciding else ""


def _unvalidated(launches: tuple[Resolved, ...], printer: Printer) -> str:
    """The tensors whose elements indices and trip counts are computed from, and what they index."""
    bodies = [each.launch.body for each in launches]
    found = [each for body in bodies for each in element_indices(body)]
    tensors = [each for each in launches[0].program.params if isinstance(each, Buffer)]
    parts = [
        f"{ascii_name(tensor.name)} ({'; '.join(uses)})"
        for tensor in tensors
        if (uses := [*_uses([each for each in found if each.source.memory.name == tensor.name], printer)])
    ]
    if not parts:
        return ""
    indexed = [
        ascii_name(tensor.name)
        for tensor in tensors
        if any(each.tensor is not None and each.tensor.memory.name == tensor.name for each in found)
        and not tensor.dtype.is_float
    ]
    read = ""
    if indexed:
        read = f"; an index that is loaded from outside of {listed(indexed)} is 0, and the data there are used"
    return (
        f"The elements of {listed(parts)} are not validated: where they lead out of bounds, zeros are loaded and "
        f"used as values of the tensor{read}.{_without_map(launches, found)}"
    )


def _without_map(launches: tuple[Resolved, ...], found: list[Index]) -> str:
    """What trip counts that come from elements must be where a tensor that TMA loads has none.

    A tensor map has no extent of 0: headers/tl/common/sm90/tensor_map.h leaves it zero.
    """
    counted = any(each.tensor is None for each in found)
    tensors = dict.fromkeys(
        ascii_name(stmt.src.buffer.memory.name)
        for each in launches
        for loop in statements(each.launch.body, Loop)
        for stmt in statements(loop.body, Copy)
        if counted and each.facts.get(stmt, CALL) == "tma_load"
        if variables(*stmt.src.buffer.shape) - variables(*each.launch.grid)
    )
    if not tensors:
        return ""
    names = " or ".join(filter(None, (", ".join([*tensors][:-1]), [*tensors][-1])))
    return (
        f" Where {names} is empty the trip counts must be 0: TMA has no map of an empty tensor, and a load without one "
        "is an illegal instruction."
    )


def _uses(found: list[Index], printer: Printer) -> Iterator[str]:
    """What elements of one tensor decide."""
    if any(each.tensor is None for each in found):
        yield "trip counts"
    indexed: dict[str, list[str]] = {}
    for each in found:
        if each.tensor is not None and not each.within:
            extent = each.tensor.shape[each.dim]
            along = printer.index(extent) if isinstance(extent, Named | Var) else f"dimension {each.dim}"
            names = indexed.setdefault(along, [])
            names.append(ascii_name(each.tensor.memory.name))
    yield from (f"index {listed([*dict.fromkeys(names)])} along {along}" for along, names in indexed.items())
