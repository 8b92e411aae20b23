"""How the warps or warpgroups of a block partition a GEMM, as numbers: of the file's tile, or of another one."""

from collections.abc import Sequence

from tile2cu.core.layout import Warps, widest_swizzle_of
from tile2cu.core.program import Gemm, Policy, Scope, Stmt
from tile2cu.targets.table import Target

MOST_COLUMNS, WGMMA_ROWS = 256, 64  # of one wgmma
LEAST_ROWS = 16  # of a warp's part of a GEMM on tensor cores


def policy_of(op: Gemm, statements: Sequence[Stmt]) -> Policy:
    """The user's policy; without one, that which suits the kernel's GEMMs."""
    if op.policy is not Policy.DEFAULT:
        return op.policy
    mmas = (each for each in statements if isinstance(each, Gemm))
    chained = any(each.a.buffer.scope is Scope.FRAGMENT for each in mmas)
    return Policy.FULL_ROW if chained else Policy.SQUARE


def columns_of(target: Target) -> int:
    """The columns of a warp's part of a GEMM are a multiple of these; its rows are one of 16."""
    return 16 if target.mfma else 8


def least_k(op: Gemm, target: Target) -> int | None:
    """The K of which a GEMM on tensor cores has a multiple; None where no instruction takes its types."""
    a, b, c = (region.buffer.dtype for region in (op.a, op.b, op.c))
    if target.mfma:
        return min(
            (row.k for row in target.mfma if (row.operands, row.accumulator, row.size) == ((a, b), c, 16)), default=None
        )
    row = target.instruction(a, c) if a == b else None
    return row.k if row else None


def best_partition(policy: Policy, *, m: int, n: int, count: int, columns: int) -> Warps | None:
    """The partition of a GEMM of `m` x `n` elements that a policy prefers, among `count` warps.

    All parts are equal, of a multiple of 16 rows and of `columns`. None where there is no such partition.
    """
    fits = [
        Warps(rows, count // rows)
        for rows in range(1, count + 1)
        if count % rows == 0 and m % (LEAST_ROWS * rows) == 0 and n % (columns * (count // rows)) == 0
    ]
    if policy is Policy.FULL_ROW:
        return max(fits, key=lambda w: w.m, default=None)
    if policy is Policy.FULL_COL:
        return max(fits, key=lambda w: w.n, default=None)
    return min(fits, key=lambda w: (abs((m / w.m) / (n / w.n) - m / n), w.m), default=None)


def split_among(op: Gemm, groups: int, *, m: int, n: int, row: int) -> Warps | None:
    """How warpgroups partition a GEMM of `m` x `n` elements whose B has rows of `row`; None where no partition fits.

    Gives: warps along M and along N.
    """
    ways = [
        Warps(4 * along_m, groups // along_m)
        for along_m in range(1, groups + 1)
        if groups % along_m == 0 and m % (WGMMA_ROWS * along_m) == 0 and _columns_fit(op, n, groups // along_m, row)
    ]
    prefers = (lambda way: way.n) if op.policy is Policy.FULL_COL else (lambda way: way.m)
    return max(ways, key=prefers, default=None)


def _columns_fit(op: Gemm, n: int, along_n: int, row: int) -> bool:
    """Whether each of the warpgroups along N gets columns that instructions cover, starting where B can be sliced."""
    own = n // along_n
    if n % (8 * along_n) or (own > MOST_COLUMNS and own % MOST_COLUMNS):
        return False
    bytes_ = op.b.buffer.dtype.bytes
    cut = max(widest_swizzle_of(row * bytes_) // bytes_, 1)
    return along_n == 1 or op.transpose_b or own % cut == 0
