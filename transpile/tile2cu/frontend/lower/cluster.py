"""Clusters: blocks that run side by side, wait for one another, and reach one another's shared memory."""

from collections.abc import Callable
from functools import partial
from math import prod

from msgspec.structs import replace

from tile2cu.analysis.sync_calls import SYNC_CLUSTER
from tile2cu.core.dtype import INT32, UINT64
from tile2cu.core.expr import Call, int_const
from tile2cu.core.program import Copy, Region, Scope
from tile2cu.frontend.context import Context
from tile2cu.frontend.fault import Fault
from tile2cu.frontend.lower import barriers
from tile2cu.frontend.lower.copy import operands
from tile2cu.frontend.lower.ranks import mask, rank_of
from tile2cu.frontend.record import Place
from tile2cu.frontend.values import describe


def block_rank(cx: Context) -> object:
    """`T.block_rank_in_cluster()`: the number of the block in its cluster, along x first."""
    cx.recorder.require_kernel("T.block_rank_in_cluster")
    return Call(INT32, "block_rank", ())


def _meeting(name: str, function: str, cx: Context, /) -> None:
    """`T.cluster_sync()` and its halves: a barrier of all threads of the cluster."""
    barriers.record(cx, f"T.{name}", function)


def copy_cluster(
    cx: Context,
    src: object,
    dst: object,
    *,
    dst_block: object = None,
    cluster_mask: object = None,
    remote_barrier: object = None,
    eviction_policy: object = None,
    coalesced_width: object = None,
    annotations: object = None,
    loop_layout: object = None,
) -> None:
    """`T.copy_cluster(src, dst, dst_block=r)`: to another block's tile; with `cluster_mask`, a load for several blocks.

    With `remote_barrier` the copy arrives there in the other block, once, when it is done; without one a barrier of the
    cluster has to follow. A load for several blocks is done when the call returns. The other options are hints.
    """
    name = "T.copy_cluster"
    cx.recorder.require_tile_operation(name)
    if (dst_block is None) == (cluster_mask is None):
        raise Fault("T2C-F023", f"{name} takes either `dst_block`, or `cluster_mask`")
    source, target = operands(cx, name, src, dst)
    if cluster_mask is not None:
        _load_for_blocks(cx, source, target, mask(cx, cluster_mask, name))
        return
    source, target = _of_rows(source), _of_rows(target)
    for region in (source, target):
        if region.buffer.scope is not Scope.SHARED or not region.is_shared_part:
            raise Fault(
                "T2C-F011",
                f"{name} to another block from {describe(source.buffer)} to {describe(target.buffer)} is not supported",
                help="it copies shared tiles, or rows and columns of one: copy there first",
            )
    remote = None if remote_barrier is None else barriers.barrier_of(cx, remote_barrier, f"`remote_barrier` of {name}")
    rank, at = rank_of(cx, dst_block, f"`dst_block` of {name}"), cx.recorder.take()
    cx.recorder.emit(Copy(src=source, dst=target, block=rank, remote=remote, **at.fields))


def _of_rows(region: Region) -> Region:
    """A row of a tile is one row and all its columns."""
    rank = region.buffer.rank
    return replace(region, kept=(rank - 2, rank - 1)) if rank > 1 and region.kept == (rank - 1,) else region


def _load_for_blocks(cx: Context, source: Region, target: Region, blocks: int) -> None:
    if source.buffer.scope is not Scope.GLOBAL or target.buffer.scope is not Scope.SHARED:
        raise Fault(
            "T2C-F011",
            "T.copy_cluster with `cluster_mask` loads from a tensor to a shared tile, not from "
            f"{describe(source.buffer)} to {describe(target.buffer)}",
        )
    at = cx.recorder.take()
    if not blocks:
        cx.recorder.emit(Copy(src=source, dst=target, **at.fields))
        return
    there = cx.recorder.allocate_at(
        Place(at.span), f"{target.buffer.name}_there", (int_const(1),), UINT64, Scope.BARRIER,
        arrivals=(prod(cx.recorder.thread_shape),),
    )  # fmt: skip
    bar = barriers.barrier_of(cx, there, "the barrier of T.copy_cluster")
    cx.recorder.emit(Copy(src=source, dst=target, barrier=bar, blocks=blocks, awaited=True, **at.fields))


FUNCTIONS: dict[str, Callable[..., object]] = {
    "block_rank_in_cluster": block_rank,
    "cluster_sync": partial(_meeting, "cluster_sync", SYNC_CLUSTER),
    "cluster_arrive": partial(_meeting, "cluster_arrive", "cluster_arrive"),
    "cluster_arrive_relaxed": partial(_meeting, "cluster_arrive_relaxed", "cluster_arrive_relaxed"),
    "cluster_wait": partial(_meeting, "cluster_wait", "cluster_wait"),
    "copy_cluster": copy_cluster,
}
