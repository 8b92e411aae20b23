"""Where a kernel's values can be looked at, what checks the source, and what this kernel may be called wrongly with."""

from collections.abc import Iterator
from typing import TypeGuard

from tile2cu.analysis.indexing import element_indices
from tile2cu.analysis.masked_operands import masked_operands
from tile2cu.analysis.uses import readers, statements, writers
from tile2cu.core.decisions import SCHEDULE
from tile2cu.core.program import AtomicTile, Buffer, Copy, Gemm, Loop, Scope, Stmt
from tile2cu.core.schedule import MmaInFlight, MmaOverlap, PingPong, Pipeline
from tile2cu.emitter.host import draws
from tile2cu.plan.resolved import Resolved
from tile2cu.plan.slabs import ping_pong_of
from tile2cu.plan.tensors import access_of
from tile2cu.styles.base.comments import WIDTH, Place, file_of, listed, table, wrapped
from tile2cu.styles.base.names import ascii_name

_OWNER = "by the warpgroup whose iteration it is"


def _named(stmt: Stmt, places: tuple[Place, ...]) -> str:
    """The shortest of the places that has a statement's line; empty where none has."""
    file, line = file_of(stmt), stmt.span.line
    having = (each for each in places if each.file == file and each.first <= line <= each.last)
    found = min(having, key=lambda each: (each.last - each.first, each.first), default=None)
    return str(found or "")


def debugging(
    launches: tuple[Resolved, ...],
    places: tuple[tuple[Place, ...], ...],
    printing: str,
    printing_own: str,
    checked: str,
) -> tuple[str, ...]:
    """What to look at if a result is wrong, in lines.

    `places` are those that the comments of each kernel name; `printing` is how the style prints a tile, `printing_own`
    what else it states of tiles that one warpgroup has, and `checked` the device of `tile2cu run` that executes it with
    checks.
    """
    rows = [row for resolved, named in zip(launches, places, strict=True) for row in _rows(resolved, named)]
    first = launches[0]
    where = (
        "If a result is wrong, look at tiles where they are complete: find a place by its line in the kernel's "
        f"comments. The section 'registers' has which thread holds which element. {printing}"
    )
    if printing_own and any(ping_pong_of(each) for each in launches):
        where += f" {printing_own}"
    return (
        *(wrapped(where) if rows else ["If a result is wrong:"]),
        *table(tuple(rows), WIDTH - len("// ")),
        *wrapped(_checks(first, checked)),
        *wrapped(f"Likely causes: {'; '.join(_causes(launches))}."),
    )


def _rows(resolved: Resolved, places: tuple[Place, ...]) -> Iterator[tuple[str, str]]:
    """Tiles of a kernel, and where they are complete."""
    own = f"{resolved.namespace}: " if resolved.namespace else ""
    for loop, pipeline in resolved.pipelines:
        if pipeline.buffers:
            names = ", ".join(ascii_name(each.name) for each in dict.fromkeys(pipeline.buffers))
            yield f"  {own}{names}", _loaded(loop, pipeline, resolved)
    yield from ((f"  {own}{names}", where) for names, where in _operands(resolved, places))
    sums: dict[Buffer, list[tuple[str, bool]]] = {}
    started = _in_flight(resolved)
    for op in statements(resolved.launch.body, Gemm):
        if place := _named(op, places):
            sums.setdefault(op.c.buffer.memory, []).append((place, id(op) in started))
    stored: dict[Buffer, list[str]] = {}
    for stmt in resolved.launch.statements:
        if _stores_fragment(stmt) and (place := _named(stmt, places)):
            stored.setdefault(stmt.src.buffer.memory, []).append(place)
    for tile in dict.fromkeys((*sums, *stored)):
        parts = [_computed(tile, sums[tile], resolved)] if tile in sums else []
        parts += [f"in {listed([*dict.fromkeys(stored[tile])])}, right before it is stored"] if tile in stored else []
        yield f"  {own}{ascii_name(tile.name)}", "; ".join(parts)


def _operands(resolved: Resolved, places: tuple[Place, ...]) -> Iterator[tuple[str, str]]:
    """Operands of MMAs that no pipeline loads, such as dequantised ones: those of the same MMAs together."""
    elsewhere = {tile.memory for _, pipeline in resolved.pipelines for tile in pipeline.buffers}
    found = ping_pong_of(resolved)
    if found is not None:
        elsewhere.add(found.tile.memory)
    own = {id(op) for op in found.own_mmas} if found is not None else set()
    read: dict[Buffer, list[tuple[str, bool]]] = {}
    for op in statements(resolved.launch.body, Gemm):
        for tile in (op.a.buffer.memory, op.b.buffer.memory):
            if tile not in elsewhere and (place := _named(op, places)):
                read.setdefault(tile, []).append((place, id(op) in own))
    together: dict[tuple[tuple[str, bool], ...], list[str]] = {}
    for tile, at in read.items():
        together.setdefault(tuple(dict.fromkeys(at)), []).append(ascii_name(tile.name))
    for where_read, names in together.items():
        read_by = f"the MMAs that read {'it' if len(names) == 1 else 'them'}"
        where = f"in {listed([place for place, _ in where_read])}, right before {read_by}"
        yield ", ".join(names), where + f", {_OWNER}" * any(alone for _, alone in where_read)


def _loaded(loop: Loop, pipeline: Pipeline, resolved: Resolved) -> str:
    """After what an iteration sees the tiles that a pipeline loads."""
    found, within = ping_pong_of(resolved), f"in iteration {ascii_name(loop.var.name)}, after"
    if pipeline.producer and found is not None:
        return _alternating(found)
    if pipeline.producer:
        return f"{within} its consumer_wait"
    if pipeline.staged:
        return f"{within} the barrier behind which all threads' parts of its tile are visible"
    return f"{within} the barrier at its start"


def _alternating(found: PingPong) -> str:
    """After what a warpgroup has the tiles of its own iteration."""
    return f"after the wait for the MMAs of {ascii_name(found.own_mmas[0].c.buffer.name)}, {_OWNER}"


def _computed(tile: Buffer, mmas: list[tuple[str, bool]], resolved: Resolved) -> str:
    """After which of the MMAs, by their places and whether they are in flight there, an accumulator is complete."""
    found = ping_pong_of(resolved)
    if found is not None and tile is found.own_mmas[0].c.buffer.memory:
        return _alternating(found)
    text = f"after {listed([*dict.fromkeys(place for place, _ in mmas)])}"
    if any(late for _, late in mmas):
        text += " and the wait for that MMA"
    loop = _summed_over(tile, resolved)
    return text if loop is None else f"{text}; a partial sum before the last iteration of {ascii_name(loop.var.name)}"


def _summed_over(tile: Buffer, resolved: Resolved) -> Loop | None:
    """The innermost loop whose iterations all add to an accumulator."""
    found = None
    for loop in statements(resolved.launch.body, Loop):
        if any(op.c.buffer.memory is tile for op in statements(loop.body, Gemm)):
            found = loop
    if found is None:
        return None
    inside = [*statements(found.body, Stmt)]
    anew = any(stmt in writers((stmt,), tile) and stmt not in readers((stmt,), tile) for stmt in inside)
    return None if anew else found


def _stores_fragment(stmt: Stmt) -> TypeGuard[Copy | AtomicTile]:
    """Whether a statement stores a register tile to global memory."""
    if not isinstance(stmt, Copy | AtomicTile):
        return False
    return stmt.src.buffer.scope is Scope.FRAGMENT and stmt.dst.buffer.scope is Scope.GLOBAL


def _in_flight(resolved: Resolved) -> set[int]:
    """The MMAs, by their ids, that their statement starts and another one awaits."""
    ops = [*statements(resolved.launch.body, Gemm)]
    found = {id(op) for op in ops if resolved.is_in_flight(op)}
    for loop in statements(resolved.launch.body, Loop):
        if isinstance(resolved.facts.get(loop, SCHEDULE), MmaOverlap | MmaInFlight | PingPong):
            found |= {id(op) for op in statements(loop.body, Gemm)}
    return found


def _checks(first: Resolved, checked: str) -> str:
    """What executes the source with checks."""
    program, target = first.program, first.target
    file, sizes = f"{program.name}{target.suffix}", " ".join(f"--size {each.name}=..." for each in program.sizes)
    run = f"`{' '.join(filter(None, ('tile2cu run', file, checked, sizes)))}`"
    if not checked:
        text = f"{run} executes this file on a CPU and reports races, wrong barriers, out-of-bounds and uninitialised "
        text += "accesses by line"
    else:
        text = f"{run} executes the compiled kernel on a simulator"
    text += "; --reference FILE.py:FUNCTION compares the results."
    if target.is_amd:
        return text
    return f"{text} On a GPU: compute-sanitizer --tool memcheck, racecheck, initcheck or synccheck."


def _causes(launches: tuple[Resolved, ...]) -> Iterator[str]:
    """What calls of this kernel can do wrong without an error."""
    program, bodies = launches[0].program, [each.launch.body for each in launches]
    yield "a status other than TL_OK that the caller ignores"
    tensors = [param for param in program.params if isinstance(param, Buffer)]
    if not all(each.strides for each in tensors):
        yield "a tensor that is not contiguous, or is freed before the stream has reached the call"
    if any(access_of(each, launches) != "read" for each in tensors):
        yield "an output that overlaps an input"
    if program.workspaces or draws(launches):
        yield "a workspace that two calls in flight share"
    sources = dict.fromkeys(
        ascii_name(each.source.memory.name) for body in bodies for each in element_indices(body) if not each.within
    )
    if sources:
        yield f"elements of {listed([*sources])} that are out of range"
    masked = dict.fromkeys(ascii_name(tensor.name) for body in bodies for tensor, _ in masked_operands(body))
    if masked:
        yield f"NaN in masked rows of {listed([*masked])}"
    if any(True for body in bodies for _ in statements(body, Gemm)):
        yield "a tolerance that is less than the errors of the types and instructions stated above"
