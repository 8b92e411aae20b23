"""The threads of some blocks at once: registers as arrays with one element per thread, and their memories."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np

from tile2cu_runtime.amdgcn.arrays import Array, round_up
from tile2cu_runtime.amdgcn.byte_store import ByteStore
from tile2cu_runtime.amdgcn.global_memory import BASE, GlobalMemory
from tile2cu_runtime.ptx.errors import PtxError
from tile2cu_runtime.ptx.parse import Instruction, Kernel
from tile2cu_runtime.ptx.shadow import Shadow

if TYPE_CHECKING:
    from tile2cu_runtime.ptx.barriers import ClusterBarriers, MemoryBarriers, NamedBarriers
    from tile2cu_runtime.ptx.tma import BulkCopies
    from tile2cu_runtime.ptx.wgmma import Warpgroups

WARP = 32
# Generic addresses of shared and local memory; global memory is elsewhere (global_memory.BASE).
SHARED_WINDOW, LOCAL_WINDOW, PARAMETER_WINDOW = 1 << 56, 2 << 56, 3 << 56
SHARED_ALIGNMENT = 1024
# .shared::cluster addresses have the rank + 1 in these units; below are the block's own addresses.
RANK_UNIT = 1 << 24
_WORDS = {1: np.bool_, 2: np.uint16, 4: np.uint32, 8: np.uint64}


@dataclass(kw_only=True)
class Copy:
    """A cp.async in flight: per thread its addresses, byte counts, and group."""

    target: Array
    source: Array
    bytes: int
    source_bytes: Array
    group: Array
    pending: Array
    instruction: Instruction


@dataclass(kw_only=True)
class Threads:
    """The threads of `blocks` (ids), block after block, clusters by rank; arrays are (threads,). `mask`: the executing
    ones.

    `waiting`: threads that wait at a barrier; `parked`: at a warp-wide or warpgroup-wide instruction, for the others.
    `shadow` exists if the kernel uses the async proxy.
    """

    kernel: Kernel
    blocks: list[tuple[int, int, int]]
    grid: tuple[int, int, int]
    block: tuple[int, int, int]
    parameters: bytes
    memory: GlobalMemory
    shared_bytes: int
    barriers: NamedBarriers
    clusters: ClusterBarriers
    mbarriers: MemoryBarriers
    bulk: BulkCopies
    warpgroups: Warpgroups
    registers: dict[str, Array] = field(default_factory=dict)
    copies: list[Copy] = field(default_factory=list)

    def __post_init__(self) -> None:
        x, y, z = self.block
        self.a_block = x * y * z
        self.count = self.a_block * len(self.blocks)
        self.thread = np.tile(np.arange(self.a_block), len(self.blocks))
        self.number = np.repeat(np.arange(len(self.blocks)), self.a_block)
        self.lane = self.thread % WARP
        self.all = np.arange(self.count)
        x, y, z = self.kernel.cluster
        self.in_cluster = x * y * z
        self.registers = {name: np.zeros(self.count, _WORDS[size]) for name, size in self.kernel.registers.items()}
        # Unwritten memory is NaN. Swizzles apply to addresses: each block's memory is aligned to their period.
        self.shared_stride = round_up(self.shared_bytes, SHARED_ALIGNMENT)
        self.shared = ByteStore(self.shared_stride * len(self.blocks), 0xFF)
        self.shadow: Shadow | None = None
        if self.kernel.uses_async_proxy:
            self.shadow = Shadow(self.shared_stride * len(self.blocks), self.number)
        self.local = ByteStore(self.kernel.local_bytes * self.count, 0xFF)
        self.groups = np.zeros(self.count, np.int64)
        self.pc = np.zeros(self.count, np.int64)
        self.waiting = np.zeros(self.count, np.bool_)
        self.parked = np.zeros(self.count, np.bool_)
        self.exited = np.zeros(self.count, np.bool_)
        self.mask: Array = np.ones(self.count, np.bool_)
        self.full = True

    def special(self, name: str) -> Array:
        """%tid.x and the other special registers."""
        axis = {"x": 0, "y": 1, "z": 2}.get(name[-1], 0)
        x, y, _ = self.block
        place = np.array(self.blocks)[self.number, axis]
        found: dict[str, Array | int] = {
            "tid": (self.thread % x, self.thread // x % y, self.thread // (x * y))[axis],
            "ctaid": place,
            "ntid": self.block[axis],
            "nctaid": self.grid[axis],
            "laneid": self.lane,
            "warpid": self.thread // WARP,
            "cluster_ctarank": self.number % self.in_cluster,
            "cluster_nctarank": self.in_cluster,
            "cluster_ctaid": place % self.kernel.cluster[axis],
            "cluster_nctaid": self.kernel.cluster[axis],
        }
        value = found.get(name[1:].partition(".")[0])
        if value is None:
            raise PtxError(f"the special register {name}")
        return np.broadcast_to(np.asarray(value, np.uint32), self.count)

    # ---- registers ------------------------------------------------------------------------------------------

    def write(self, name: str, values: Array) -> None:
        """Writes the executing threads' values; a value is truncated or zero-extended to the register."""
        register = self.registers[name]
        raw = values
        if register.dtype != np.bool_:
            raw = values.view(f"u{values.dtype.itemsize}") if values.dtype != np.bool_ else values
            raw = raw.astype(register.dtype, copy=False)
        if self.full:
            register[:] = raw
        else:
            np.copyto(register, raw, where=self.mask)

    # ---- memory ---------------------------------------------------------------------------------------------

    def load(self, instruction: Instruction, space: str, address: Array, width: int) -> Array:
        """`width` bytes for each executing thread, (words, threads) of 32 bits; others get arbitrary values."""
        store, at = self.place(instruction, space, address, width)
        if store is self.shared and self.shadow:
            self._check_in_flight(instruction, self.shadow, at)
            chosen = slice(None) if self.full else self.mask
            self.shadow.load(at[chosen], width, self.all[chosen])
        return store.load(at, width)

    def store(self, instruction: Instruction, space: str, address: Array, words: list[Array], width: int) -> None:
        """Stores `width` bytes of each executing thread."""
        store, at = self.place(instruction, space, address, width)
        chosen = slice(None) if self.full else self.mask
        store.store(at[chosen], [word[chosen] for word in words], width)
        if store is self.shared and self.shadow:
            self._check_in_flight(instruction, self.shadow, at)
            self.shadow.store(at[chosen], width, self.all[chosen])

    def _check_in_flight(self, instruction: Instruction, shadow: Shadow, at: Array) -> None:
        busy = shadow.in_flight(at)
        if busy is not None and (busy & self.mask).any():
            thread = int(np.flatnonzero(busy & self.mask)[0])
            byte = int(at[thread]) % self.shared_stride
            raise self.fault(instruction, f"a copy to byte {byte} of shared memory is in flight", thread)

    def in_shared(self, instruction: Instruction, address: int, thread: int) -> tuple[int, int]:
        """A byte of shared memory, and the rank of its block."""
        offsets, blocks = self._in_cluster(instruction, np.full(self.count, address))
        return int(offsets[thread]), int(blocks[thread])

    def _in_cluster(self, instruction: Instruction, address: Array) -> tuple[Array, Array]:
        """The same for all threads. Addresses in other blocks are for instructions on .shared::cluster, or generic."""
        spaces = {each for each in instruction.modifiers if each.startswith("shared")}
        own_only = spaces and "shared::cluster" not in spaces
        if own_only or not (self.mask & (address >= RANK_UNIT)).any():
            return address, self.number
        rank = address // RANK_UNIT - 1
        block = np.where(rank >= 0, self.number // self.in_cluster * self.in_cluster + rank, self.number)
        ended = self.exited.reshape(-1, self.a_block).all(axis=1)
        late = np.flatnonzero(self.mask & ended.take(block, mode="clip"))
        if len(late):
            raise self.fault(instruction, f"the block of rank {int(rank[late[0]])} has exited", int(late[0]))
        return address % RANK_UNIT, block

    def parameter(self, instruction: Instruction, address: int, size: int, thread: int) -> bytes:
        """Bytes of the parameters at a generic address."""
        at = address - PARAMETER_WINDOW
        if not 0 <= at <= len(self.parameters) - size:
            raise self.fault(instruction, f"{size} bytes at {address:#x} are not a parameter", thread)
        return self.parameters[at : at + size]

    def place(self, instruction: Instruction, space: str, address: Array, width: int) -> tuple[ByteStore, Array]:
        """The memory, and each thread's byte in it, for `width` bytes; inactive threads get the address of an active
        one.
        """
        mask = self.mask
        address = address.astype(np.int64)
        if not space:
            space, address = self._resolved(instruction, address, mask)
        if space == "global":
            at, size = address - BASE, 0
            inside = self.memory.inside(at, width)
            offset, store = at, self.memory.store
        else:
            is_shared = space == "shared"
            size, each = self.kernel.local_bytes, self.kernel.local_bytes
            if is_shared:
                size, each = self.shared_bytes, self.shared_stride
            home = self.number if is_shared else self.all
            if is_shared and (self.in_cluster > 1):
                address, home = self._in_cluster(instruction, address)
            inside = (address >= 0) & (address + width <= size)
            offset = address + home * each
            store = self.shared if is_shared else self.local
            at = address
        bad = mask & (~inside | (address % width != 0))
        if bad.any():
            thread = int(np.flatnonzero(bad)[0])
            where = (
                self.memory.describe(int(at[thread])) if space == "global" else f"byte {at[thread]} of {space} memory"
            )
            what = "misaligned" if inside[thread] else "out of bounds"
            raise self.fault(instruction, f"{width} bytes at {where} are {what}", thread)
        return store, offset if self.full else np.where(mask, offset, offset[mask][0])

    def _resolved(self, instruction: Instruction, address: Array, mask: Array) -> tuple[str, Array]:
        """The state space of generic addresses."""
        windows = address[mask] >> 56
        if not (windows == windows[0]).all():
            raise self.fault(instruction, "generic addresses of several state spaces", int(np.flatnonzero(mask)[0]))
        if windows[0] == 0:
            return "global", address
        return ("shared" if windows[0] == SHARED_WINDOW >> 56 else "local"), address & ((1 << 56) - 1)

    def fault(self, instruction: Instruction, what: str, thread: int) -> PtxError:
        block = self.blocks[int(self.number[thread])]
        place, shown = f"block {block}, thread {int(self.thread[thread])}", str(instruction)
        if len(shown) > 160:  # a wgmma has up to 128 registers
            shown = f"{shown[:80]} ... {shown[-60:]}"
        return PtxError(f"{self.kernel.name}, line {instruction.line}, `{shown}`: {what} ({place})")

    # ---- warps and asynchronous copies ----------------------------------------------------------------------

    def warps(self, instruction: Instruction) -> Array:
        """The threads of the executing warps, (warps, 32). A fault if a lane is inactive."""
        lanes = self.mask.reshape(-1, WARP)
        some = lanes.any(axis=1)
        if not lanes[some].all():
            raise self.fault(instruction, "a lane of the warp is inactive", int(np.flatnonzero(self.mask)[0]))
        found: Array = self.all.reshape(-1, WARP)[some]
        return found

    def land_all_of(self, thread: int) -> None:
        """Completes the copies of one thread."""
        mask, full = self.mask, self.full
        self.mask, self.full = self.all == thread, False
        self.groups[thread] += 1
        self.land(0)
        self.mask, self.full = mask, full

    def land(self, keep: int) -> None:
        """Completes the executing threads' copies of all except their `keep` latest groups."""
        for copy in self.copies:
            due = copy.pending & self.mask & (copy.group < self.groups - keep)
            if due.any():
                self._perform(copy, due)
                copy.pending &= ~due
        self.copies = [copy for copy in self.copies if copy.pending.any()]

    def _perform(self, copy: Copy, due: Array) -> None:
        mask, full = self.mask, self.full
        for count in np.unique(copy.source_bytes[due]):
            self.mask, self.full = due & (copy.source_bytes == count), False
            words = [np.zeros(self.count, np.uint32) for _ in range(copy.bytes // 4)]
            if count:
                if count != copy.bytes:
                    words = self._partial(copy, int(count))
                else:
                    words = list(self.load(copy.instruction, "global", copy.source, copy.bytes))
            self.store(copy.instruction, "shared", copy.target, words, copy.bytes)
        self.mask, self.full = mask, full

    def _partial(self, copy: Copy, count: int) -> list[Array]:
        """The first bytes, padded with zeros."""
        raw = np.zeros((self.count, copy.bytes), np.uint8)
        for byte in range(count):
            raw[:, byte] = self.load(copy.instruction, "global", copy.source + byte, 1)[0]
        return list(raw.view(np.uint32).T)


Getter = Callable[[Threads], Array]
Step = Callable[[Threads], None]
Builder = Callable[[Instruction, Kernel], Step]
