"""Whose barriers order what: tiles that the user's barriers order, or those of products; tensors that ours do, too."""

from tile2cu.analysis.accesses import buffers_used, shared, tensors_met_again
from tile2cu.core.decisions import EXPLICIT_SYNC
from tile2cu.core.program import Buffer, Copy, If, Loop, Parallel, Stmt, While, group_of
from tile2cu.rules.engine import Context
from tile2cu.rules.pipeline import dealt_of


def ordered_by_user(context: Context) -> frozenset[str]:
    """The tiles that the user allocates and orders; others are for tile2cu to order.

    So are those of which a `loop_layout` says which thread moves what: the layouts are chosen here, and a thread may
    find what another one moved.
    """
    moved = {tile.name for tile in shared(_laid_out(context))}
    return frozenset(tile.name for launch in context.program.launches for tile in launch.tiles) - moved


def _laid_out(context: Context) -> frozenset[Buffer]:
    """What the copies and loops use of which a `loop_layout` says which thread moves what."""
    moving = (op for op in context.statements if isinstance(op, Copy | Parallel) and op.laid_out)
    return frozenset().union(*map(buffers_used, moving))


def dealt_tile(context: Context) -> frozenset[str]:
    """The tile that warpgroups hand to each other where they take turns: that has barriers of its own."""
    dealt = dealt_of(context)
    return frozenset() if dealt is None else frozenset((dealt.tile.name,))


def tensors_read_again(context: Context) -> frozenset[Buffer]:
    """The tensors that the launch both writes and reads, or writes again, element by element or tile by tile.

    Where groups of threads have barriers of the user's, or he writes all of them, those order tensors, too: but for
    tensors of which a `loop_layout` says which thread moves what.
    """
    if context.launch.groups > 1:
        return frozenset()
    found = tensors_met_again(context.launch.body)
    return found & {buffer.memory for buffer in _laid_out(context)} if context.program.own_barriers else found


def handed_over(context: Context) -> frozenset[str]:
    """The tiles that groups hand to one another by the user's barriers: TMA fills them, or several groups use them."""
    if not context.facts.get(context.launch, EXPLICIT_SYNC):
        return frozenset()
    users: dict[str, set[int | None]] = {}

    def note(body: tuple[Stmt, ...], group: int | None) -> None:
        for stmt in body:
            own = group_of(stmt)
            if isinstance(stmt, If) and own is not None:
                note(stmt.then, own)
            elif isinstance(stmt, Loop | While):
                note(stmt.body, group)
            elif isinstance(stmt, If):
                note((*stmt.then, *stmt.orelse), group)
            else:
                for buffer in shared(buffers_used(stmt)):
                    users.setdefault(buffer.name, set()).add(group)

    note(context.launch.body, None)
    filled = {op.dst.buffer.name for op in context.statements if isinstance(op, Copy) and op.barrier is not None}
    return frozenset(filled | {name for name, groups in users.items() if len(groups) > 1})
