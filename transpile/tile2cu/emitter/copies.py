"""How a copy reads: between memories of a block, to another block, by TMA."""

from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING

from tile2cu.core.decisions import (
    CALL,
    MULTICAST_MASK,
    SLICE_ALIGNMENT,
    STAGED_BECAUSE,
    STAGING_TILE,
    STORE_OUTSTANDING,
    STREAMING,
    TMA_IF,
)
from tile2cu.core.errors import Tile2CuError
from tile2cu.core.expr import Expr, Var, static_value
from tile2cu.core.program import Buffer, Copy, Region, Scope, Stmt, walk_stmts
from tile2cu.emitter.tma import rings, tells_turns
from tile2cu.styles.base.comments import BODY_WIDTH, wrapped
from tile2cu.styles.base.view import StatementView
from tile2cu.styles.tl.tensor_map import TensorMap, store_dims

if TYPE_CHECKING:
    from tile2cu.emitter.statements import Statements


def copy_view(op: Copy, statements: "Statements") -> StatementView:
    """A copy: one call, and what the reader has to know about it."""
    view = StatementView("call", _call(op, statements), comments=_comments(op, statements))
    return view if statements.facts.get(op, TMA_IF) is None else _else_from_registers(view, op, statements)


def _else_from_registers(by_tma: StatementView, op: Copy, statements: "Statements") -> StatementView:
    """A store by TMA of rows that it may not reach; the launcher knows, and chooses between two forms of the kernel."""
    tile = statements.printer.tile(op.src.buffer)
    src = f"tl::transposed({tile})" if op.transposed else tile
    parts = {"name": "copy", "template": "", "arguments": f"{src}, {operand(op.dst, op.src, statements)}"}
    rule = statements.facts.rule(op, TMA_IF)
    return StatementView(
        "branch",
        {"condition": "tl::tma_reaches<RowStart>", "static": "yes"},
        comments=(f"TMA reaches rows at multiples of 16 bytes; others leave from registers  [{rule}]",),
        body=(
            replace(
                by_tma, comments=tuple(wrapped(" ".join(by_tma.comments), BODY_WIDTH - 2) if by_tma.comments else ())
            ),
        ),
        orelse=(StatementView("call", parts),),
    )


def _call(op: Copy, statements: "Statements") -> Mapping[str, str]:
    view = statements.maps.get(id(op))
    if view is not None:
        return _by_tma(op, view, statements)
    if id(op) in statements.staged:
        arguments = f"{operand(op.src, op.dst, statements, op)}, {statements.staged[id(op)].name}"
        return {"name": "load", "template": "", "arguments": arguments}
    if id(op) in statements.lines:
        return {"name": "store", "template": "", "arguments": f"{statements.lines[id(op)]}, {statements.tile(op.dst)}"}
    if op.row is not None:
        return _rows(op, op.row, statements)
    if op.block is not None:
        return _to_block(op, op.block, statements)
    fragment = Scope.FRAGMENT in (op.src.buffer.scope, op.dst.buffer.scope)
    src, dst = operand(op.src, op.dst, statements, op), operand(op.dst, op.src, statements, op)
    if op.evict and op.src.buffer.scope is Scope.GLOBAL and op.dst.buffer.scope is Scope.FRAGMENT:
        src = f"tl::{op.evict}({src})"
    operands = [src, dst]
    once = statements.facts.get(op, STREAMING)
    if once:
        operands.append(" && ".join(f"{statements.printer.text(extent)} == 1" for extent in once))
    return {
        "name": statements.facts[op, CALL] + ("" if once is None else "_once"),
        "template": "" if fragment else statements.threads,
        "arguments": ", ".join(operands),
    }


def _rows(op: Copy, row: Var, statements: "Statements") -> Mapping[str, str]:
    """A copy of rows, each from a place of its own."""
    printer = statements.printer
    head = f"[&](int {printer.names(row.name)})"
    place = ", ".join(printer.index(part.start) for part in op.src.ranges)
    arguments = [printer.names(op.src.buffer.name), statements.tile(op.dst), f"{head} {{ return tl::at({place}); }}"]
    if op.when is not None:
        arguments.append(f"{head} {{ return {printer.condition(op.when)}; }}")
    return {"name": "copy_rows_async", "template": statements.threads, "arguments": ", ".join(arguments)}


def _to_block(op: Copy, block: Expr, statements: "Statements") -> Mapping[str, str]:
    """A copy to another block of the cluster; with a barrier it arrives there."""
    arguments = [
        statements.printer.index(block),
        operand(op.src, op.dst, statements),
        operand(op.dst, op.src, statements),
    ]
    if op.remote is not None:
        assert isinstance(op.remote.buffer, Buffer)
        arguments.append(statements.printer.element(op.remote.buffer, op.remote.indices))
    return {"name": "copy_to_block", "template": statements.threads, "arguments": ", ".join(arguments)}


def _comments(op: Copy, statements: "Statements") -> tuple[str, ...]:
    """Why the copy is there where the user did not write it, and what a store by TMA does before it returns."""
    if op.reason:
        return (f"{op.reason.replace('`', '')}  [{statements.facts.rule(op, STAGED_BECAUSE)}]",)
    if statements.facts.get(op, STREAMING) is not None:
        return _once_comments(op, statements)
    if statements.facts[op, CALL] == "tma_store":
        return _store_comments(op, statements)
    if statements.facts.get(op, SLICE_ALIGNMENT):
        rule = statements.facts.rule(op, SLICE_ALIGNMENT)
        return (f"RowStart<n>: a part that starts at a multiple of n bytes is moved n bytes at once  [{rule}]",)
    copies = (stmt for stmt in walk_stmts(statements.settled.launch.body) if isinstance(stmt, Copy))
    is_first = op.evict and next(copy for copy in copies if copy.evict == op.evict) is op
    return _EVICTED.get(op.evict, ()) if is_first else ()


# headers/tl/common/tensor.h: both are hints.
_EVICTED = {
    "evict_first": ("evict_first: caches give it up first, as nothing reads it again",),
    "evict_last": ("evict_last: caches keep it longest, as it is soon read again",),
}


def _store_comments(op: Copy, statements: "Statements") -> tuple[str, ...]:
    """What a store by TMA does before it returns; said of the first of several alike."""
    facts = statements.facts

    def kind(stmt: Stmt) -> tuple[bool, bool]:
        return isinstance(stmt, Copy) and stmt.transposed, bool(facts.get(stmt, STORE_OUTSTANDING))

    stores = (stmt for stmt in walk_stmts(statements.settled.launch.body) if facts.get(stmt, CALL) == "tma_store")
    if next(store for store in stores if kind(store) == kind(op)) is not op:
        return ()
    rule = facts.rule(op, CALL)
    if op.transposed:
        return (
            "The warps write the tile transposed, by stmatrix; behind a barrier one thread stores it; returns when "
            f"TMA has read it  [{rule}]",
        )
    until = (
        "TMA reads them while the block goes on"
        if facts.get(op, STORE_OUTSTANDING)
        else "returns when TMA has read them"
    )
    return (
        "Each warp writes its rows to the staging tile and fences them for TMA; one lane stores them; "
        f"{until}  [{rule}]",
    )


def _once_comments(op: Copy, statements: "Statements") -> tuple[str, ...]:
    """What the first of the copies says that read what nothing reads again."""
    copies = [stmt for stmt in walk_stmts(statements.settled.launch.body) if isinstance(stmt, Copy)]
    if next(stmt for stmt in copies if statements.facts.get(stmt, STREAMING) is not None) is not op:
        return ()
    rule = statements.facts.rule(op, STREAMING)
    return (f"copy_async_once: where no other block reads it, L2 gives it up first  [{rule}]",)


def _by_tma(op: Copy, view: TensorMap, statements: "Statements") -> Mapping[str, str]:
    """A load or store through a tensor map: coordinates of all dimensions, outermost first."""
    call = statements.facts[op, CALL]
    region = op.dst if op.begun or call == "tma_store" else op.src
    place = f"tl::at({', '.join(statements.printer.index(part.start) for part in region.ranges)})"
    if call == "tma_store":
        tile = statements.printer.tile(op.src.buffer)
        tile = f"tl::transposed({tile})" if op.transposed else tile
        tiles = f"{tile}, {statements.printer.names(statements.facts[op, STAGING_TILE])}"
        name = "tma_store_start" if statements.facts.get(op, STORE_OUTSTANDING) else call
        return {"name": name, "template": store_dims(view), "arguments": f"{tiles}, {view.name}, {place}"}
    if op.begun:
        return {"name": call, "template": "", "arguments": f"{statements.tile(op.src)}, {view.name}, {place}"}
    if op.barrier is not None:
        assert isinstance(op.barrier.buffer, Buffer)
        barrier = statements.printer.element(op.barrier.buffer, op.barrier.indices)
        arguments = f"{view.name}, {place}, {statements.tile(op.dst)}, {barrier}"
        arguments += f", tl::blocks<{op.blocks:#b}>" if op.blocks else ""
        return {"name": "copy_to_blocks" if op.awaited else "tma_copy", "template": "", "arguments": arguments}
    tile = statements.printer.tile(op.dst.buffer)
    own = [ring for ring in rings(statements.settled, statements.printer) if ring.tile is op.dst.buffer]
    arrival = "full"
    if own:
        told = f", {statements.printer.names('__turn')}" if tells_turns(own[0], statements.settled) else ""
        arrival = f"{own[0].name}.acquire({statements.printer.turn_of(op.dst.buffer)}{told})"
    arguments, shared = f"{view.name}, {place}, {tile}, {arrival}", statements.facts.get(op, MULTICAST_MASK)
    if shared is None:
        return {"name": call, "template": "", "arguments": arguments}
    return {"name": "tma_load_for", "template": "", "arguments": f"tl::blocks<{shared:#b}>, {arguments}"}


def operand(region: Region, other: Region, statements: "Statements", op: Copy | None = None) -> str:
    """A region as an operand of tl::copy: a tile, or a place in a tensor."""
    buffer = region.buffer
    if buffer.scope is not Scope.GLOBAL:
        return statements.tile(region, op)
    kept = _kept_dimensions(region, other)
    starts = [statements.printer.index(part.start) for part in region.ranges]
    view = statements.printer.names(buffer.name)
    for dim, end in enumerate(op.ends if op is not None and region is op.src else ()):
        view = f"tl::up_to<{dim}>({view}, {statements.printer.index(end)})" if end is not None else view
    if len(kept) < len(starts):
        inside = ["tl::all" if dim in kept else start for dim, start in enumerate(starts)]
        view = f"{view}({', '.join(inside)})"
    return f"{view}.tile({', '.join(starts[dim] for dim in kept)})"


def _kept_dimensions(region: Region, other: Region) -> tuple[int, ...]:
    """The tensor's dimensions that the other side's dimensions run along, aligned from the right."""
    own = other.ranges[-2:] if other.buffer.scope is Scope.SHARED else other.ranges  # of a plane, its rows and columns
    wanted = [static_value(part.extent) for part in own] if other.buffer.scope is not Scope.GLOBAL else []
    if not wanted or len(wanted) == len(region.kept):
        return region.kept
    kept: list[int] = []
    dim = len(region.ranges) - 1
    for extent in reversed(wanted):
        while dim >= 0 and static_value(region.ranges[dim].extent) != extent:
            dim -= 1
        kept.insert(0, dim)
        dim -= 1
    if kept and kept[0] < 0:
        raise Tile2CuError(
            "T2C-E003",
            f"`{region.buffer.name}` and `{other.buffer.name}` do not line up",
            region.span,
            help="give both sides the same number of dimensions that are larger than 1",
        )
    return tuple(kept)
