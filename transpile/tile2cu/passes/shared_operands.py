"""First operands of MMAs that registers only take from shared memory: the MMAs read shared memory themselves."""

from msgspec.structs import replace

from tile2cu.analysis.accesses import viewed
from tile2cu.analysis.dependence import keeps
from tile2cu.analysis.effects import effects
from tile2cu.analysis.uses import statements, users
from tile2cu.core.program import Copy, Gemm, Launch, Policy, Scope, Stmt
from tile2cu.core.rebuild import Body, in_body

SHARED_OPERAND = "rewrite.gemm.shared-operand"
_WARPGROUP = 128


def operands_in_shared(launch: Launch) -> Launch:
    """The launch whose warpgroups share the columns of GEMMs, and read their first operand from shared memory.

        T.copy(S, S_shared)                     T.copy(S, S_shared)
        T.copy(S_shared, S_local)       is      T.gemm(S_shared, B, C, policy=T.GemmWarpPolicy.FullCol)
        T.gemm(S_local, B, C, policy=T.GemmWarpPolicy.FullCol)

    Each warpgroup multiplies all rows, and would load the whole operand to its registers; wgmma reads it from shared
    memory. Nothing else uses the fragment, and the tile does not change between.
    """
    instead: dict[int, Body] = {}

    def change(body: Body, position: int) -> Body | None:
        copy = body[position]
        mma = _reader(copy, body[position + 1 :], launch)
        if mma is not None and isinstance(copy, Copy):
            about = f"From `{copy.src.buffer.name}`: `{mma.a.buffer.name}` would only carry it  [{SHARED_OPERAND}]"
            comments = (*copy.comments, *mma.comments, about)
            instead[id(copy)] = ()
            instead[id(mma)] = (replace(mma, a=replace(mma.a, buffer=copy.src.buffer), comments=comments),)
        return instead.get(id(copy))

    body = in_body(launch.body, change)
    carried = {mma.a.buffer for mma in statements(launch.body, Gemm) if id(mma) in instead}
    tiles = tuple(tile for tile in launch.tiles if tile not in carried)
    return replace(launch, body=body, tiles=tiles) if carried else launch


def share_columns(mma: Gemm, launch: Launch) -> bool:
    """Whether warpgroups of a block each compute some columns of all rows."""
    return mma.policy is Policy.FULL_COL and launch.threads > _WARPGROUP and launch.groups == 1


def _reader(copy: Stmt, behind: Body, launch: Launch) -> Gemm | None:
    """The GEMM that reads a whole shared tile from its copy in a fragment; None where there is another use."""
    if not isinstance(copy, Copy) or not copy.plain or not (copy.src.whole and copy.dst.whole):
        return None
    source, held = copy.src.buffer, copy.dst.buffer
    if (source.scope, held.scope) != (Scope.SHARED, Scope.FRAGMENT) or viewed(launch, held):
        return None
    if source.dtype != held.dtype or source.static_shape != held.static_shape:
        return None
    mma = next((op for op in behind if isinstance(op, Gemm) and op.a.buffer is held), None)
    if mma is None or users(launch.body, held) != [copy, mma] or mma.b.buffer is held or mma.begun:
        return None
    if not share_columns(mma, launch) or not mma.a.whole or mma.transpose_a or mma.metadata is not None:
        return None
    return mma if keeps(behind[: behind.index(mma)], of=effects(copy)) else None
