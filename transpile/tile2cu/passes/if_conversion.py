"""If-conversion: branches in pipelined loops that fill a tile from one of two sources become selecting copies."""

from msgspec.structs import replace

from tile2cu.analysis.control import arms
from tile2cu.analysis.uniformity import uniformity_of
from tile2cu.analysis.uses import pipelined_loops, statements
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
    uniformity = uniformity_of(launch)
    branches = [branch for loop in pipelined_loops(launch) for branch in statements(loop.body, If, below=False)]
    found = {id(branch): _chosen(branch) for branch in branches if uniformity.holds(branch.condition)}
    chosen = {branch: copies for branch, copies in found.items() if copies}
    if not chosen:
        return None
    return replace(launch, body=with_instead(launch.body, chosen))


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
    """One copy for each pair of copies in the arms, where both copy from the same tensors to the same tiles alone."""
    (then, _), (orelse, _) = arms(branch)
    if branch.once or len(then) != len(orelse):
        return ()
    both = zip(then, orelse, strict=True)
    pairs = [(one, other) for one, other in both if isinstance(one, Copy) and isinstance(other, Copy)]
    if not pairs or len(pairs) < len(then) or not all(_between_the_same(*pair) for pair in pairs):
        return ()
    first, *others = (replace(one, src=_region(branch.condition, one.src, other.src)) for one, other in pairs)
    about = f"If-conversion: the source that the branch selects  [{IF_CONVERSION}]"
    return (replace(first, comments=(*branch.comments, *first.comments, about)), *others)


def _region(condition: Expr, one: Region, other: Region) -> Region:
    ranges = tuple(
        a
        if a.start == b.start
        else replace(a, start=Call(a.start.dtype, "if_then_else", (condition, a.start, b.start)))
        for a, b in zip(one.ranges, other.ranges, strict=True)
    )
    return replace(one, ranges=ranges, whole=False)
