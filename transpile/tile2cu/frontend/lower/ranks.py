"""Which blocks make a cluster, and how a kernel names them."""

from tile2cu.core.expr import Expr, static_value
from tile2cu.frontend import builtins
from tile2cu.frontend.context import Context
from tile2cu.frontend.fault import Fault
from tile2cu.frontend.lower.operand import as_count, as_integer

MOST_BLOCKS = 8  # of a cluster, on every GPU that has them: CUDA C++ Programming Guide, "Thread Block Clusters"


def dims(cx: Context, cluster_dims: object, grid: tuple[Expr, ...]) -> tuple[int, ...]:
    """`cluster_dims` of a kernel as extents along x, y and z; none for clusters of one block."""
    if cluster_dims is None:
        return ()
    listed = builtins.items(cx, cluster_dims) if isinstance(cluster_dims, tuple | list) else [cluster_dims]
    extents = [as_count(extent, "an extent of `cluster_dims`", least=1) for extent in listed]
    if not 1 <= len(extents) <= 3:
        raise Fault("T2C-F025", f"`cluster_dims` has one to three extents, not {len(extents)}")
    x, y, z = (*extents, 1, 1)[:3]
    if x * y * z > MOST_BLOCKS:
        raise Fault("T2C-F025", f"a cluster of {x * y * z} blocks; it has at most {MOST_BLOCKS}")
    along = [static_value(extent) for extent in grid] + [1] * (3 - len(grid))
    for axis, extent, blocks in zip("xyz", (x, y, z), along, strict=True):
        if isinstance(blocks, int) and blocks % extent:
            raise Fault(
                "T2C-F025",
                f"the grid has {blocks} blocks along {axis}, which are no clusters of {extent}",
                help="make the grid's extent a multiple of the cluster's",
            )
    return (x, y, z) if x * y * z > 1 else ()


def mask(cx: Context, cluster_mask: object, name: str) -> int:
    """A mask of blocks of the kernel's cluster; none where a block is alone."""
    found, most = as_count(cluster_mask, f"`cluster_mask` of {name}", least=1), cx.recorder.blocks_per_cluster
    if found >> most:
        raise Fault(
            "T2C-F023",
            f"`cluster_mask` of {name}, {found:#b}, names block {found.bit_length() - 1} of a cluster of {most}",
            help="bit i denotes the block of rank i; `cluster_dims` of T.ClusterKernel states how many there are",
        )
    return found if most > 1 else 0


def rank_of(cx: Context, value: object, what: str) -> Expr:
    """The rank of a block of the kernel's cluster."""
    rank = as_integer(value, what)
    known, most = static_value(rank), cx.recorder.blocks_per_cluster
    if isinstance(known, int) and not 0 <= known < most:
        raise Fault(
            "T2C-F023",
            f"{what} is {known}; the cluster has {most} block{'s' * (most > 1)}",
            help="`cluster_dims` of T.ClusterKernel states how many there are; ranks count from 0",
        )
    return rank
