"""Which buffers a kernel reads and writes, and which tensors it reaches by pointer."""

import functools

from tile2cu.analysis.accesses import expressions, own_accesses, used_by_itself
from tile2cu.analysis.uses import read_in, written_in
from tile2cu.core.decisions import BOUNDS_CHECKED, CALL, ROW_ALIGNMENT, ROW_ALIGNMENT_IF, TMA_IF
from tile2cu.core.expr import Address, walk
from tile2cu.core.program import Atomic, AtomicTile, Buffer, Scope
from tile2cu.core.record import Record
from tile2cu.plan.copies import BY_TMA
from tile2cu.plan.resolved import Resolved

POINTER_BYTES = 16  # the widest access


@functools.lru_cache(maxsize=8)  # asked for every tensor and parameter
def touched(resolved: Resolved) -> tuple[frozenset[Buffer], frozenset[Buffer]]:
    """(read, written) buffers of the launch; what is added to counts as both."""
    stmts = resolved.launch.statements
    reads = read_in(resolved.launch.body)
    reads |= {stmt.dst.buffer for stmt in stmts if isinstance(stmt, AtomicTile)}
    reads |= {stmt.buffer for stmt in stmts if isinstance(stmt, Atomic)}
    return reads, written_in(resolved.launch.body)


def access_of(tensor: Buffer, launches: tuple[Resolved, ...]) -> str:
    """ "read", "write" or "readwrite": what becomes of what the tensor holds before the first of the launches.

    An output that nothing writes is a caller's to take nevertheless.
    """
    found = ""
    for launch in launches:
        reads, writes = ({buffer.memory.name for buffer in buffers} for buffers in touched(launch))
        if tensor.name in reads:
            found = "write" if found == "write" else "readwrite" if tensor.name in writes else "read"
        elif tensor.name in writes:
            found = "readwrite" if found in ("read", "readwrite") else "write"
    program = launches[0].program
    if tensor in [program.params[place] for place in program.outputs]:
        return {"": "write", "read": "readwrite"}.get(found, found)
    return found or "read"


def tensors(resolved: Resolved) -> tuple[Buffer, ...]:
    """The tensor parameters and workspaces that the kernel touches, then the other shapes that it sees them in."""
    reads, writes = touched(resolved)
    found = reads | writes
    names = {buffer.name for buffer in found}
    shown = {tensor.name: tensor for tensor in found if tensor.scope is Scope.GLOBAL and tensor.of is not None}
    listed = (*resolved.program.params, *resolved.program.workspaces)
    own = tuple(tensor for tensor in listed if isinstance(tensor, Buffer) and tensor.name in names)
    return (*own, *(shown[name] for name in sorted(shown)))


@functools.lru_cache(maxsize=8)  # asked for every tensor
def viewed_tensors(resolved: Resolved) -> tuple[Buffer, ...]:
    """The tensors that the kernel reaches by pointer: all that it does not reach through tensor maps alone."""
    facts, stmts = resolved.facts, resolved.launch.statements
    plain = [op for op in stmts if str(facts.get(op, CALL)) not in BY_TMA or facts.get(op, TMA_IF) is not None]
    names = {buffer.name for stmt in plain for buffer in used_by_itself(stmt)}
    names |= {access.buffer.name for stmt in stmts for access in own_accesses(stmt)}
    return tuple(tensor for tensor in tensors(resolved) if tensor.name in names)


def memories(resolved: Resolved) -> tuple[Buffer, ...]:
    """The tensors whose addresses the kernel takes."""
    return tuple({tensor.memory.name: tensor.memory for tensor in viewed_tensors(resolved)}.values())


class TensorView(Record, frozen=True, kw_only=True):
    """How a kernel sees a tensor: which extents are `checked`, and at which multiple of bytes its rows start.

    0: nothing is known of that. `by_instance`: the launcher gives it, by the kernel's instance that it chooses.
    """

    tensor: Buffer
    checked: tuple[bool, ...]
    alignment: int
    by_instance: bool


def tensor_view(tensor: Buffer, resolved: Resolved) -> TensorView:
    """How the kernel sees a tensor."""
    facts = resolved.facts
    return TensorView(
        tensor=tensor,
        checked=facts[tensor, BOUNDS_CHECKED],
        alignment=resolved.row_alignment(tensor),
        by_instance=resolved.row_alignment(tensor) == 0 and facts.get(tensor, ROW_ALIGNMENT_IF) is not None,
    )


def instance_alignment(resolved: Resolved) -> int:
    """The bytes that rows start at multiples of in the instance that the launcher chooses; 0 without a choice.

    The launcher chooses one for all tensors: by the widest of their accesses, which is 16 bytes where TMA stores.
    """
    facts = resolved.facts
    unknown = (tensor for tensor in viewed_tensors(resolved) if resolved.row_alignment(tensor) == 0)
    asked = ((each, facts.get(each, ROW_ALIGNMENT_IF)) for each in unknown)
    widths = [found.of * tensor.dtype.bits // 8 for tensor, found in asked if found is not None]
    by_tma = any(facts.get(op, TMA_IF) is not None for op in resolved.launch.statements)
    return POINTER_BYTES if by_tma else max(widths, default=0)


def pointer_alignment(tensor: Buffer, launches: tuple[Resolved, ...]) -> int:
    """The bytes that a tensor's address must be a multiple of: what its widest access needs, a whole element at least.

    16 where TMA moves it, where the user's C++ or a function takes its address, and where it is updated atomically.
    """
    return max(
        (_needed(view, resolved) for resolved in launches for view in tensors(resolved) if view.memory is tensor),
        default=max(1, tensor.dtype.bytes),
    )


def _needed(tensor: Buffer, resolved: Resolved) -> int:
    """What the accesses of one launch to a tensor need."""
    stmts = resolved.launch.statements
    parts = (part for stmt in stmts for expr in expressions(stmt) for part in walk(expr))
    buffers = (part.buffer for part in parts if isinstance(part, Address))
    taken = {buffer.memory.name for buffer in buffers if isinstance(buffer, Buffer)}
    taken |= {stmt.buffer.memory.name for stmt in stmts if isinstance(stmt, Atomic)}
    taken |= {stmt.dst.buffer.memory.name for stmt in stmts if isinstance(stmt, AtomicTile)}
    by_tma = any(
        resolved.facts.get(op, CALL) is not None and str(resolved.facts.get(op, CALL)) in BY_TMA
        for op in stmts
        if tensor.name in {buffer.name for buffer in used_by_itself(op)}
    )
    if by_tma or resolved.program.user_code or tensor.memory.name in taken:
        return POINTER_BYTES
    view = tensor_view(tensor, resolved)
    return view.alignment or (instance_alignment(resolved) if view.by_instance else POINTER_BYTES)


class TensorViews(Record, frozen=True, kw_only=True):
    """The tensors that a kernel reaches by pointer, and the rules that decided what is checked, and of their rows.

    Of tensors of which an extent is checked some are `loaded`, and some `stored`. `instance` is the alignment of rows
    in the instance that the launcher chooses.
    """

    views: tuple[TensorView, ...]
    loaded: bool
    stored: bool
    bounds_rule: str
    rows_rule: str
    instance: int


def tensor_views(resolved: Resolved) -> TensorViews:
    """The tensors that the kernel reaches by pointer."""
    found = viewed_tensors(resolved)
    checked = {tensor.memory.name for tensor in found if any(resolved.facts[tensor, BOUNDS_CHECKED])}
    loaded, stored = (any(tensor.memory.name in checked for tensor in of) for of in touched(resolved))
    return TensorViews(
        views=tuple(tensor_view(tensor, resolved) for tensor in found),
        loaded=loaded,
        stored=stored,
        bounds_rule=resolved.facts.rule(found[0], BOUNDS_CHECKED) if found else "",
        rows_rule=resolved.facts.rule(found[0], ROW_ALIGNMENT) if found else "",
        instance=instance_alignment(resolved),
    )
