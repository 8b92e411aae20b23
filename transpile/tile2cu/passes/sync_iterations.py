"""Loops on a condition that reads what their iterations write: a barrier ends each iteration."""

from msgspec.structs import replace

from tile2cu.analysis.reach import reached_by_all
from tile2cu.analysis.uses import exits
from tile2cu.core.program import Continue, Launch, Sync, While
from tile2cu.core.rebuild import with_instead

_WHY = "RAW: all threads have written what the loop's condition reads"


def with_barrier_behind(launch: Launch, loop: While) -> Launch | None:
    """The launch with a barrier at the end of each iteration of a loop.

    None where an iteration may end elsewhere, or where some threads do not come.
    """
    if not loop.body or isinstance(loop.body[-1], Sync) or not reached_by_all(launch, loop.body[-1]):
        return None
    if any(isinstance(each, Continue) for each in exits(loop.body)):
        return None
    barrier = Sync(span=loop.span, comments=(_WHY,))
    return replace(launch, body=with_instead(launch.body, {id(loop): (replace(loop, body=(*loop.body, barrier)),)}))
