"""If-conversion: branches in pipelined loops that fill a tile from one of two sources become selecting copies."""

from dataclasses import replace

from tile2cu.analysis.uniformity import Uniformity
from tile2cu.analysis.uses import pipelined_loops
from tile2cu.core.expr import Call, Expr
from tile2cu.core.program import Copy, If, Launch, Region, Scope
from tile2cu.core.rebuild import Body, with_instead

IF_CONVERSION = "rewrite.copy.if-conversion"


def if_converted(launch: Launch) -> Launch | None:
    """The launch whose pipelined loops copy from selected sources, so that the copies can be prefetched; else None.

    if last:                                        T.copy(X[a if last else b, 0], tile)
        T.copy(X[a, 0], tile)           is
    else:
        T.copy(X[b, 0], tile)
    """
    uniformity = Uniformity(launch)
    branches = [
        op
        for loop in pipelined_loops(launch)
        for op in loop.body
        if isinstance(op, If) and uniformity.holds(op.condition)
    ]
    chosen = {id(op): _chosen(op) for op in branches if _same_copies(op)}
    if not chosen:
        return None
    return replace(launch, body=with_instead(launch.body, chosen))


def _same_copies(branch: If) -> bool:
    """Whether both arms of a branch copy from the same tensors to the same tiles, and nothing else."""
    if branch.once or len(branch.then) != len(branch.orelse):
        return False
    return all(
        isinstance(one, Copy) and isinstance(other, Copy) and _between_the_same(one, other)
        for one, other in zip(branch.then, branch.orelse, strict=True)
    )


def _between_the_same(one: Copy, other: Copy) -> bool:
    """Whether two copies fill all of one tile with boxes of one shape of the same tensor."""
    scopes = (one.src.buffer.scope, one.dst.buffer.scope)
    same_tile = one.dst.buffer is other.dst.buffer and one.dst.whole and other.dst.whole
    same_tensor = one.src.buffer is other.src.buffer and one.src.kept == other.src.kept
    extents, others = ([part.extent for part in copy.src.ranges] for copy in (one, other))
    special = (
        each.barrier is not None or each.begun or each.blocks or each.transposed or each.ends for each in (one, other)
    )
    return (
        scopes == (Scope.GLOBAL, Scope.SHARED) and same_tile and same_tensor and extents == others and not any(special)
    )


def _chosen(branch: If) -> Body:
    """One copy for each pair of copies in the arms."""
    found: list[Copy] = []
    for one, other in zip(branch.then, branch.orelse, strict=True):
        assert isinstance(one, Copy) and isinstance(other, Copy), "both arms copy"
        found.append(replace(one, src=_region(branch.condition, one.src, other.src)))
    about = f"If-conversion: the source that the branch selects  [{IF_CONVERSION}]"
    return (replace(found[0], comments=(*branch.comments, *found[0].comments, about)), *found[1:])


def _region(condition: Expr, one: Region, other: Region) -> Region:
    ranges = tuple(
        a
        if a.start == b.start
        else replace(a, start=Call(a.start.dtype, "if_then_else", (condition, a.start, b.start)))
        for a, b in zip(one.ranges, other.ranges, strict=True)
    )
    return replace(one, ranges=ranges, whole=False)
