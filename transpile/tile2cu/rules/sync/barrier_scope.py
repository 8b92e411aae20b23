"""Which barriers order which tiles and tensors: the user's, those of pipelines, or inserted ones."""

from collections.abc import Iterator

from tile2cu.analysis.accesses import buffers_used, buffers_written, shared, tensors_accessed_again, used_by_itself
from tile2cu.analysis.groups import with_groups
from tile2cu.analysis.overwritten import may_overlap_in_part
from tile2cu.core.decisions import EXPLICIT_SYNC
from tile2cu.core.program import Buffer, Copy, Parallel, Scope
from tile2cu.rules.engine import Context
from tile2cu.rules.schedule.pipeline import ping_pong_of


def ordered_by_user(context: Context) -> frozenset[str]:
    """The tiles that the user allocates and orders; tile2cu orders the others.

    These are also tiles whose mapping to threads a `loop_layout` fixes: the layouts are chosen here, and a thread may
    read elements that another one wrote.
    """
    moved = {tile.name for tile in shared(_laid_out(context))}
    return frozenset(tile.name for launch in context.program.launches for tile in launch.tiles) - moved


def _laid_out(context: Context) -> frozenset[Buffer]:
    """The buffers of copies and loops whose mapping to threads a `loop_layout` fixes."""
    moving = (op for op in context.statements if isinstance(op, Copy | Parallel) and op.laid_out)
    return frozenset().union(*map(buffers_used, moving))


def ping_pong_tile(context: Context) -> frozenset[str]:
    """The tile that alternating warpgroups exchange: it has barriers of its own."""
    alternating = ping_pong_of(context)
    return frozenset() if alternating is None else frozenset((alternating.tile.name,))


def tensors_read_again(context: Context) -> frozenset[Buffer]:
    """The tensors that the launch both writes and reads, or writes again, element by element or tile by tile.

    One statement writes elements again if its boxes of several iterations may overlap in part: other threads do then.
    Where groups of threads have barriers of the user's, or the user writes all of them, those order tensors, too:
    except for tensors whose mapping to threads a `loop_layout` fixes.
    """
    if context.launch.groups > 1:
        return frozenset()
    found = tensors_accessed_again(context.launch.body) | frozenset(_overlapping(context))
    return found & {buffer.memory for buffer in _laid_out(context)} if context.program.own_barriers else found


def _overlapping(context: Context) -> Iterator[Buffer]:
    """The tensors that one statement writes in boxes that may overlap in part in later iterations."""
    for op in context.statements:
        if isinstance(op, Copy | Parallel):
            written = {buffer.memory for buffer in buffers_written(op) if buffer.scope is Scope.GLOBAL}
            if written and may_overlap_in_part(op, op, context.launch.body, context.bounds):
                yield from written


def exchanged_tiles(context: Context) -> frozenset[str]:
    """The tiles that groups exchange by the user's barriers: TMA fills them, or several groups use them."""
    if not context.facts.get(context.launch, EXPLICIT_SYNC):
        return frozenset()
    users: dict[str, set[int | None]] = {}
    for stmt, group in with_groups(context.launch.body):
        for buffer in shared(used_by_itself(stmt)):
            users.setdefault(buffer.name, set()).add(group)
    filled = {op.dst.buffer.name for op in context.statements if isinstance(op, Copy) and op.barrier is not None}
    return frozenset(filled | {name for name, groups in users.items() if len(groups) > 1})
