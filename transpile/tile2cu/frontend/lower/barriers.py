"""Barriers and copies that the user handles: T.alloc_barrier, T.tma_copy, T.ws, named barriers."""

from collections.abc import Callable
from functools import partial
from math import prod

from msgspec.structs import replace

from tile2cu.analysis.sync_calls import (
    START_KERNELS,
    SYNC_GRID,
    TMA_STORE_COMMIT,
    TMA_STORE_WAIT,
    TMA_STORE_WAIT_READ,
    WAIT_FOR_KERNELS,
)
from tile2cu.core.dtype import INT32, UINT64
from tile2cu.core.expr import Address, Call, Expr, Load, int_const
from tile2cu.core.program import Buffer, Copy, Scope
from tile2cu.frontend import builtins
from tile2cu.frontend.context import Context
from tile2cu.frontend.fault import Fault
from tile2cu.frontend.lower.copy import operands
from tile2cu.frontend.lower.effect import perform
from tile2cu.frontend.lower.elementwise import select
from tile2cu.frontend.lower.operand import as_count, as_flag, as_integer, as_number
from tile2cu.frontend.lower.ranks import mask, rank_of
from tile2cu.frontend.values import Allocation, GroupFrame, describe

_GROUP = 128  # threads: T.ws counts warpgroups


def alloc_barrier(cx: Context, arrive_count: object) -> object:
    """`T.alloc_barrier(n)`: a barrier whose phases take n arrivals; `T.alloc_barrier([n, m])`: several."""
    cx.recorder.require_kernel("T.alloc_barrier")
    listed = builtins.items(cx, arrive_count) if isinstance(arrive_count, tuple | list) else [arrive_count]
    counts = tuple(as_count(count, "the arrivals of T.alloc_barrier", least=1) for count in listed)
    if not counts:
        raise Fault("T2C-F023", "T.alloc_barrier of no barriers")
    return Allocation((int_const(len(counts)),), UINT64, Scope.BARRIER, arrivals=counts)


def alloc_cluster_barrier(cx: Context, arrive_count: object) -> object:
    """`T.alloc_cluster_barrier(n)`: a barrier at which threads of other blocks arrive, too."""
    made = alloc_barrier(cx, arrive_count)
    assert isinstance(made, Allocation)
    return replace(made, across=True)


def barrier_of(cx: Context, value: object, what: str) -> Load:
    if isinstance(value, Buffer) and value.scope is Scope.BARRIER:
        return Load(value.dtype, value, (int_const(0),))
    if isinstance(value, Load) and isinstance(value.buffer, Buffer) and value.buffer.scope is Scope.BARRIER:
        return value
    raise Fault("T2C-F023", f"{what} is a barrier of T.alloc_barrier, not {describe(value)}")


def record(cx: Context, name: str, function: str, *arguments: Expr) -> None:
    cx.recorder.require_kernel(name)
    if cx.recorder.parallel:
        raise Fault("T2C-F026", f"{name} cannot be inside T.Parallel")
    perform(cx, Call(INT32, function, arguments))


def barrier_wait(cx: Context, mbarrier: object, parity: object) -> None:
    """`T.barrier_wait(bar, parity)`: until the phase of this parity is over."""
    bar = barrier_of(cx, mbarrier, "the first argument of T.barrier_wait")
    assert isinstance(bar.buffer, Buffer)
    wait = "mbarrier_wait_cluster" if bar.buffer.across else "mbarrier_wait"
    record(cx, "T.barrier_wait", wait, bar, as_integer(parity, "`parity` of T.barrier_wait"))


def barrier_arrive(cx: Context, mbarrier: object, cta_id: object = None) -> None:
    """`T.barrier_arrive(bar)`: an arrival by each thread that comes there; with a rank, at that block's barrier."""
    name, bar = "T.mbarrier_arrive", barrier_of(cx, mbarrier, "the argument of T.barrier_arrive")
    if cta_id is None:
        record(cx, name, "mbarrier_arrive", bar)
        return
    assert isinstance(bar.buffer, Buffer)
    if not bar.buffer.across:
        raise Fault(
            "T2C-F023",
            f"`{bar.buffer.name}` is a barrier of one block, at which no other one arrives",
            help="write T.alloc_cluster_barrier",
        )
    record(cx, name, "mbarrier_arrive", bar, rank_of(cx, cta_id, f"the block of {name}"))


def _expect(name: str, function: str, cx: Context, /, mbarrier: object, tx: object) -> None:
    """`T.mbarrier_expect_tx(bar, bytes)`: the phase also waits for so many bytes."""
    record(cx, name, function, barrier_of(cx, mbarrier, f"the barrier of {name}"), as_integer(tx, f"`tx` of {name}"))


def tma_copy(
    cx: Context,
    src: object,
    dst: object,
    *,
    barrier: object = None,
    cluster_mask: object = None,
    leader_scope_threads: object = None,
    eviction_policy: object = None,
    annotations: object = None,
) -> None:
    """`T.tma_copy(src, dst, barrier=bar)`: TMA begins to load a tile, and announces its bytes at the barrier.

    With `cluster_mask` the first block of the mask loads for all of it; each block announces and waits on its own. From
    a shared tile to a tensor TMA begins to store it, as a group on its own, until T.tma_store_wait. The policy and the
    annotations are hints and dropped.
    """
    cx.recorder.require_tile_operation("T.tma_copy")
    if leader_scope_threads is not None and leader_scope_threads != prod(cx.recorder.thread_shape):
        raise Fault(
            "T2C-F011",
            "copies by TMA of a part of the block's threads each (`leader_scope_threads`) are not supported yet",
            help="one T.tma_copy loads the rows of all warps, at a barrier of all threads",
        )
    source, target = operands(cx, "T.tma_copy", src, dst)
    ends = source.buffer.scope, target.buffer.scope
    if ends == (Scope.SHARED, Scope.GLOBAL):
        if barrier is not None or cluster_mask is not None:
            raise Fault(
                "T2C-F023",
                "T.tma_copy to a tensor takes no `barrier` and no `cluster_mask`",
                help="T.tma_store_wait() waits for it",
            )
        cx.recorder.emit(Copy(src=source, dst=target, begun=True, **cx.recorder.take().fields))
        return
    if ends != (Scope.GLOBAL, Scope.SHARED):
        raise Fault(
            "T2C-F011",
            f"T.tma_copy from {describe(source.buffer)} to {describe(target.buffer)} is not supported yet",
            help="it copies from a tensor to a shared tile, or from there to a tensor; write T.copy",
        )
    bar = barrier_of(cx, barrier, "`barrier` of T.tma_copy")
    blocks = 0 if cluster_mask is None else mask(cx, cluster_mask, "T.tma_copy")
    cx.recorder.emit(Copy(src=source, dst=target, barrier=bar, blocks=blocks, **cx.recorder.take().fields))


def tma_store_arrive(cx: Context) -> None:
    """`T.tma_store_arrive()`: closes a group of stores by TMA, as T.tma_copy does on its own."""
    record(cx, "T.tma_store_arrive", TMA_STORE_COMMIT)


def tma_store_wait(cx: Context, count: object = 0, read: object = True) -> None:
    """`T.tma_store_wait(n)`: until TMA has read all but the last n groups' tiles; with `read=False`, stored them."""
    groups = as_count(count, "the number of T.tma_store_wait")
    function = TMA_STORE_WAIT_READ if as_flag(read, "`read` of T.tma_store_wait") else TMA_STORE_WAIT
    record(cx, "T.tma_store_wait", f"{function}<{groups}>")


def ws(cx: Context, *groups: object) -> object:
    """`with T.ws(g, ...):`: for the threads of warpgroups g, ..., of which each has 128 g to 128 g + 127."""
    cx.recorder.require_kernel("T.ws")
    numbers = [as_count(group, "a group of T.ws") for group in groups]
    threads = prod(cx.recorder.thread_shape)
    if threads % _GROUP or any(number >= threads // _GROUP for number in numbers):
        raise Fault("T2C-F023", f"T.ws counts groups of {_GROUP} threads; the block has {threads} threads")
    if not numbers:
        raise Fault("T2C-F023", "T.ws names no group of threads")
    return GroupFrame(tuple(sorted(set(numbers))))


def fence_proxy_async(cx: Context) -> None:
    """`T.fence_proxy_async()`: what this thread wrote to shared memory is there for TMA and wgmma."""
    record(cx, "T.fence_proxy_async", "fence_async_proxy")


def sync_threads(cx: Context, barrier_id: object, arrive_count: object) -> None:
    """`T.sync_threads(id, n)`: a barrier of n threads."""
    number = as_count(barrier_id, "`barrier_id` of T.sync_threads")
    if arrive_count is None or not 1 <= number <= 12:
        raise Fault(
            "T2C-F023",
            "T.sync_threads of a part of the block takes the number of a barrier, 1 to 12, and a number of threads",
            help="write T.sync_threads() for the whole block",
        )
    count = as_count(arrive_count, "`arrive_count` of T.sync_threads", least=1)
    record(cx, "T.sync_threads", "barrier_sync", int_const(number), int_const(count))


def sync_grid(cx: Context) -> None:
    """`T.sync_grid()`: all blocks of the grid come there before any goes on (frontend/phases.py)."""
    if cx.recorder.in_kernel and cx.recorder.blocks_per_cluster > 1:
        raise Fault("T2C-F011", "T.sync_grid in a kernel of clusters is not supported yet")
    record(cx, "T.sync_grid", SYNC_GRID)


def _about_kernels(name: str, function: str, cx: Context, /) -> None:
    """`T.pdl_sync()`: the kernels before this one are done; `T.pdl_trigger()`: later ones may start."""
    record(cx, name, function)


def named_barrier_arrive(cx: Context, barrier_id: object, thread_count: object) -> None:
    """`T.named_barrier_arrive(id, n)`: counts at a barrier of n threads without waiting."""
    number = as_count(barrier_id, "`barrier_id` of T.named_barrier_arrive", least=1)
    count = as_count(thread_count, "`thread_count` of T.named_barrier_arrive", least=1)
    record(cx, "T.named_barrier_arrive", "barrier_arrive", int_const(number), int_const(count))


def ptx_cp_async(cx: Context, dst: object, src: object, num_elems: object, predicate: object = None) -> None:
    """`T.ptx_cp_async(T.access_ptr(S[i], "w", n), T.access_ptr(A[i], "r", n), n)`: begins to copy n elements.

    Where the predicate does not hold it fills them with zeros.
    """
    name = "T.ptx_cp_async"
    if not isinstance(dst, Address) or not isinstance(src, Address):
        raise Fault("T2C-F023", f"{name} takes two addresses, T.access_ptr(...), and how many elements")
    places = [place.buffer.scope for place in (dst, src) if isinstance(place.buffer, Buffer)]
    if places != [Scope.SHARED, Scope.GLOBAL] or dst.dtype.bytes != src.dtype.bytes:
        raise Fault("T2C-F023", f"{name} copies from a tensor to a shared tile, without converting")
    count = as_count(num_elems, f"`num_elems` of {name}", least=1)
    size = count * dst.dtype.bytes
    if size not in (4, 8, 16):
        raise Fault("T2C-F023", f"{name} copies 4, 8 or 16 bytes, not {size}", help="write T.copy")
    given: Expr = int_const(size)
    if predicate is not None:
        given = select(cx, as_number(predicate, f"`predicate` of {name}"), size, 0)  # type: ignore[assignment]
    ends = (replace(dst, access="w", extent=count), replace(src, access="r", extent=count))
    record(cx, name, f"cp_async<{size}>", *ends, given)


def ptx_commit_group(cx: Context) -> None:
    """`T.ptx_commit_group()`: closes this thread's group of copies."""
    record(cx, "T.ptx_commit_group", "cp_async_commit")


def ptx_wait_group(cx: Context, num: object = 0) -> None:
    """`T.ptx_wait_group(n)`: until at most n of this thread's groups are in flight."""
    record(cx, "T.ptx_wait_group", f"cp_async_wait<{as_count(num, 'the number of T.ptx_wait_group')}>")


def cp_async_barrier_noinc(cx: Context, barrier: object) -> None:
    """`T.cp_async_barrier_noinc(bar)`: an arrival by each thread, when its copies of T.ptx_cp_async are there."""
    name = "T.cp_async_barrier_noinc"
    record(cx, name, "cp_async_arrive", barrier_of(cx, barrier, f"the argument of {name}"))


FUNCTIONS: dict[str, Callable[..., object]] = {
    "alloc_barrier": alloc_barrier,
    "alloc_cluster_barrier": alloc_cluster_barrier,
    "barrier_wait": barrier_wait,
    "mbarrier_wait_parity": barrier_wait,
    "barrier_arrive": barrier_arrive,
    "mbarrier_arrive": barrier_arrive,
    "mbarrier_expect_tx": partial(_expect, "T.mbarrier_expect_tx", "mbarrier_expect"),
    "mbarrier_arrive_expect_tx": partial(_expect, "T.mbarrier_arrive_expect_tx", "mbarrier_arrive_expect"),
    "tma_copy": tma_copy,
    "tma_store_arrive": tma_store_arrive,
    "tma_store_wait": tma_store_wait,
    "ws": ws,
    "fence_proxy_async": fence_proxy_async,
    "named_barrier_arrive": named_barrier_arrive,
    "ptx_cp_async": ptx_cp_async,
    "sync_grid": sync_grid,
    "pdl_sync": partial(_about_kernels, "T.pdl_sync", WAIT_FOR_KERNELS),
    "pdl_trigger": partial(_about_kernels, "T.pdl_trigger", START_KERNELS),
    "ptx_commit_group": ptx_commit_group,
    "ptx_wait_group": ptx_wait_group,
    "cp_async_barrier_noinc": cp_async_barrier_noinc,
}
