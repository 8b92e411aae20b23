"""Bulk copies by the async proxy: tensor boxes, and rows of bytes.

A load completes when no thread can proceed otherwise, a store when it is waited for: as late as possible. The source of
a store must be unchanged from the issue until it has been read.

Source: PTX ISA 9.0, "Data Movement and Conversion Instructions: cp.async.bulk", "... cp.async.bulk.tensor", "Tensors:
Swizzling Modes"; swizzles as CUTLASS's Swizzle<b, 4, 3>.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

import numpy as np

from tile2cu_runtime.amdgcn.arrays import Array
from tile2cu_runtime.amdgcn.global_memory import BASE
from tile2cu_runtime.ptx import tensor_map
from tile2cu_runtime.ptx.errors import PtxError
from tile2cu_runtime.ptx.operands import address, elements, source
from tile2cu_runtime.ptx.parse import Instruction, Kernel
from tile2cu_runtime.ptx.shadow import CHUNK
from tile2cu_runtime.ptx.tensor_map import TensorMap

if TYPE_CHECKING:
    from tile2cu_runtime.ptx.state import Step, Threads


def swizzled(at: Array, span: int) -> Array:
    """Byte offsets in shared memory after the swizzle: bits 4 and up, xor-ed with bits 7 and up."""
    result: Array = at ^ ((at >> 7 & (span // CHUNK - 1)) << 4)
    return result


@dataclass(kw_only=True)
class _Transfer:
    """A copy: 16-byte chunks in the blocks' shared memories, and the address of each of their bytes in global
    memory, (chunks, 16); `inside`: the bytes in bounds. A copy between blocks reads the chunks `sources`.
    """

    instruction: Instruction
    thread: int
    chunks: Array
    origin: Array
    inside: Array
    barrier: int = -1
    sources: Array | None = None
    content: Array | None = None  # contents of the source in shared memory at the issue
    adds: bool = False  # a float reduction
    is_read: bool = False

    def read(self, t: Threads) -> Array:
        """The data of a load."""
        if self.sources is not None:
            self.check_unchanged(t, self.sources)
            assert self.content is not None
            return self.content
        content = np.zeros(self.origin.shape, np.uint8)
        content[self.inside] = t.memory.store.bytes[self.origin[self.inside] - BASE]
        return content

    def check_unchanged(self, t: Threads, chunks: Array) -> None:
        """A fault if the source in shared memory has changed since the issue."""
        assert self.content is not None
        if not np.array_equal(t.shared.bytes.reshape(-1, CHUNK)[chunks // CHUNK], self.content):
            what = "shared memory was overwritten before the copy had read it"
            raise t.fault(self.instruction, what, self.thread)


@dataclass
class _Stores:
    """A thread's stores, by group; the last group is open."""

    groups: list[list[_Transfer]] = field(default_factory=lambda: [[]])


class BulkCopies:
    """The bulk copies in flight of some blocks."""

    def __init__(self) -> None:
        self._loads: list[_Transfer] = []
        self._arrivals: list[tuple[Instruction, int, int]] = []  # of cp.async: instruction, mbarrier and thread
        self._stores: dict[int, _Stores] = {}

    # ---- loads ------------------------------------------------------------------------------------------------

    def load(self, t: Threads, transfer: _Transfer) -> None:
        assert t.shadow
        busy = t.shadow.in_flight(transfer.chunks)
        if busy is not None:
            raise t.fault(transfer.instruction, "another copy to the same address is in flight", transfer.thread)
        if found := t.shadow.outstanding(transfer.chunks):
            byte, reader = found[0] % t.shared_stride, int(t.thread[found[1]])
            what = f"no fence.proxy.async after thread {reader} loaded byte {byte} of shared memory"
            raise t.fault(transfer.instruction, what, transfer.thread)
        t.mbarriers.target(t, transfer.instruction, transfer.barrier, transfer.thread)
        t.shadow.begin(transfer.chunks)
        t.shared.bytes.reshape(-1, CHUNK)[transfer.chunks // CHUNK] = 0xFF
        self._loads.append(transfer)

    def arrive_later(self, t: Threads, instruction: Instruction, barrier: int, thread: int) -> None:
        """Registers an arrival at the completion of the thread's cp.async copies."""
        self._arrivals.append((instruction, barrier, thread))

    def land(self, t: Threads) -> bool:
        """Completes the oldest load, or the oldest arrival of cp.async. False if there is none."""
        if self._loads:
            transfer = self._loads.pop(0)
            assert t.shadow
            t.shared.bytes.reshape(-1, CHUNK)[transfer.chunks // CHUNK] = transfer.read(t)
            t.shadow.end(transfer.chunks)
            t.mbarriers.deliver(t, transfer.barrier, transfer.origin.size)
            return True
        if self._arrivals:
            instruction, barrier, thread = self._arrivals.pop(0)
            t.land_all_of(thread)
            t.mbarriers.arrive(t, instruction, barrier, thread)
            return True
        return False

    # ---- stores -----------------------------------------------------------------------------------------------

    def store(self, t: Threads, transfer: _Transfer) -> None:
        check_read(t, transfer.instruction, transfer.chunks, np.array([transfer.thread]))
        transfer.content = t.shared.bytes.reshape(-1, CHUNK)[transfer.chunks // CHUNK]
        self._stores.setdefault(transfer.thread, _Stores()).groups[-1].append(transfer)

    def commit(self, t: Threads) -> None:
        for thread in np.flatnonzero(t.mask).tolist():
            self._stores.setdefault(thread, _Stores()).groups.append([])

    def wait(self, t: Threads, keep: int, *, read_only: bool) -> None:
        """Waits until all except the last `keep` groups are complete, or have read their shared memory."""
        for thread in np.flatnonzero(t.mask).tolist():
            groups = self._stores.setdefault(thread, _Stores()).groups
            done = max(0, len(groups) - 1 - keep)
            for transfer in (each for group in groups[:done] for each in group):
                self._read(t, transfer)
                if not read_only:
                    self._perform(t, transfer)
            if not read_only:
                del groups[:done]

    def _read(self, t: Threads, transfer: _Transfer) -> None:
        if transfer.is_read:
            return
        transfer.is_read = True
        transfer.check_unchanged(t, transfer.chunks)

    def _perform(self, t: Threads, transfer: _Transfer) -> None:
        assert transfer.content is not None
        places, content = transfer.origin[transfer.inside] - BASE, transfer.content[transfer.inside]
        if transfer.adds:
            content = (t.memory.store.bytes[places].view(np.float32) + content.view(np.float32)).view(np.uint8)
        t.memory.store.bytes[places] = content

    def finish(self, t: Threads) -> None:
        """All threads have exited. A fault for copies that still access the blocks' shared memory."""
        for stores in self._stores.values():
            for transfer in (each for group in stores.groups for each in group):
                if not transfer.is_read:
                    what = "the thread exits before the store has read shared memory"
                    raise t.fault(transfer.instruction, what, transfer.thread)
                self._perform(t, transfer)
        for transfer in self._loads:
            raise t.fault(transfer.instruction, "the block exits while the copy is in flight", transfer.thread)


def check_read(t: Threads, instruction: Instruction, chunks: Array, readers: Array) -> None:
    """The async proxy reads these chunks for these threads. A fault if a copy to them is in flight, or a store is
    not followed by a proxy fence.
    """
    assert t.shadow
    thread = int(readers[0])
    busy = t.shadow.in_flight(chunks)
    if busy is not None:
        byte = int(chunks[busy][0]) % t.shared_stride
        raise t.fault(instruction, f"a copy to byte {byte} of shared memory is in flight", thread)
    if found := t.shadow.unfenced(chunks, readers):
        byte, writer = found[0] % t.shared_stride, int(t.thread[found[1]])
        what = f"no fence.proxy.async after thread {writer} stored byte {byte} of shared memory"
        raise t.fault(instruction, what, thread)


# ---- instructions -------------------------------------------------------------------------------------------


def build_bulk(instruction: Instruction, kernel: Kernel) -> Step:
    """cp.async.bulk and cp.async.bulk.tensor; cp.reduce.async.bulk.tensor, a float addition."""
    modifiers = instruction.modifiers
    if "commit_group" in modifiers:
        return lambda t: t.bulk.commit(t)
    if "wait_group" in modifiers:
        keep, read_only = int(instruction.operands[0]), "read" in modifiers
        return lambda t: t.bulk.wait(t, keep, read_only=read_only)
    known = {"async", "bulk", "tensor", "tile", "L2::cache_hint", "bulk_group", "mbarrier::complete_tx::bytes"}
    adds = modifiers[0] == "reduce"
    known |= {"reduce", "add"} if adds else set()
    known |= {"shared::cluster", "shared::cta", "global", "multicast::cluster"} | {f"{rank}d" for rank in range(1, 6)}
    if unknown := [each for each in modifiers if each not in known]:
        raise PtxError(f"line {instruction.line}: {', '.join(unknown)} of {instruction.name}")
    spaces = [each.partition("::")[0] for each in modifiers if each.startswith(("shared", "global"))]
    if "tensor" in modifiers:
        return _tensor(instruction, kernel, is_load=spaces[0] == "shared", adds=adds)
    if spaces == ["shared", "shared"]:
        return _between_blocks(instruction, kernel)
    return _row(instruction, kernel, is_load=spaces[0] == "shared")


def _tensor(instruction: Instruction, kernel: Kernel, *, is_load: bool, adds: bool) -> Step:
    """[shared], [map, {coordinates}], [barrier]; or [map, {coordinates}], [shared]."""
    where, there = instruction.operands[:2] if is_load else instruction.operands[1::-1]
    name, _, coordinates = there.strip("[]").partition(",")
    shared, tensor = address(where, kernel), source(name.strip(), np.uint64, kernel)
    at = [source(each, np.int32, kernel) for each in elements(coordinates.strip())]
    barrier = address(instruction.operands[2], kernel) if is_load else None
    is_multicast = "multicast::cluster" in instruction.modifiers
    to = source(instruction.operands[3] if is_multicast else "0", np.uint16, kernel)

    def step(t: Threads) -> None:
        offsets, maps, corners = shared(t), tensor(t), [each(t) for each in at]
        barriers, masks = barrier(t) if barrier else offsets, to(t)
        for thread in np.flatnonzero(t.mask).tolist():
            found = tensor_map.read(t.parameter(instruction, int(maps[thread]), tensor_map.BYTES, thread))
            if found is None or found.rank != len(corners):
                what = (
                    f"{len(corners)} coordinates for a map of {found.rank}"
                    if found
                    else "no tensor map at this address"
                )
                raise t.fault(instruction, what, thread)
            corner = tuple(int(each[thread]) for each in corners)
            transfer = _box(t, instruction, thread, found, corner, int(offsets[thread]))
            if is_load:
                transfer.barrier = t.mbarriers.place(t, instruction, barriers, thread)
                for each in _to_blocks(t, transfer, int(masks[thread])) if is_multicast else [transfer]:
                    t.bulk.load(t, each)
                continue
            # A negative coordinate of a store is an illegal instruction on an H200.
            if min(corner) < 0:
                raise t.fault(instruction, f"a store to a box at negative coordinates {corner}", thread)
            if adds and not found.is_float:
                raise t.fault(instruction, "a reduction needs a map with float elements", thread)
            transfer.adds = adds
            t.bulk.store(t, transfer)

    return step


def _to_blocks(t: Threads, transfer: _Transfer, mask: int) -> list[_Transfer]:
    """The same load to each block of the mask, at the thread's own destination and mbarrier offsets."""
    own = int(t.number[transfer.thread])
    if mask >> t.in_cluster:
        raise t.fault(transfer.instruction, f"a cluster of {t.in_cluster} blocks, a mask of {mask:#b}", transfer.thread)
    away = [(rank - own % t.in_cluster) * t.shared_stride for rank in range(t.in_cluster) if mask >> rank & 1]
    return [replace(transfer, chunks=transfer.chunks + each, barrier=transfer.barrier + each) for each in away]


def _between_blocks(instruction: Instruction, kernel: Kernel) -> Step:
    """[shared of another block], [own shared], bytes, [mbarrier of that block]."""
    to, of, barrier = (address(instruction.operands[number], kernel) for number in (0, 1, 3))
    count = source(instruction.operands[2], np.uint32, kernel)

    def step(t: Threads) -> None:
        targets, starts, counts, barriers = to(t), of(t), count(t), barrier(t)
        for thread in np.flatnonzero(t.mask).tolist():
            offset, block = t.in_shared(instruction, int(targets[thread]), thread)
            start, size = int(starts[thread]), int(counts[thread])
            inside = min(offset, start) >= 0 and max(offset, start) <= t.shared_bytes - size
            if (offset | start | size) % CHUNK or not inside:
                raise t.fault(instruction, f"{size} bytes at byte {start} of shared memory to byte {offset}", thread)
            chunks = CHUNK * np.arange(size // CHUNK)
            sources = chunks + start + int(t.number[thread]) * t.shared_stride
            check_read(t, instruction, sources, np.array([thread]))
            transfer = _Transfer(
                instruction=instruction,
                thread=thread,
                chunks=chunks + offset + block * t.shared_stride,
                origin=np.zeros((len(chunks), CHUNK), np.int64),
                inside=np.zeros((len(chunks), CHUNK), np.bool_),
                barrier=t.mbarriers.place(t, instruction, barriers, thread),
                sources=sources,
                content=t.shared.bytes.reshape(-1, CHUNK)[sources // CHUNK],
            )
            t.bulk.load(t, transfer)

    return step


def _box(
    t: Threads, instruction: Instruction, thread: int, tensor: TensorMap, corner: tuple[int, ...], offset: int
) -> _Transfer:
    """The box at these coordinates, innermost first; it is contiguous in shared memory, innermost first."""
    rows = int(np.prod(tensor.box[1:], dtype=np.int64))
    size = rows * tensor.row_bytes
    if tensor.span > CHUNK and tensor.row_bytes != tensor.span:
        raise t.fault(instruction, f"rows of {tensor.row_bytes} bytes, a swizzle of {tensor.span}", thread)
    if offset % (128 if tensor.span > CHUNK else CHUNK) or not 0 <= offset <= t.shared_bytes - size:
        raise t.fault(instruction, f"a box of {size} bytes at byte {offset} of shared memory", thread)
    # An H200 rejects a column that is not a multiple of 16 bytes.
    if corner[0] * tensor.element_bytes % CHUNK:
        raise t.fault(instruction, f"column {corner[0]} is not a multiple of 16 bytes", thread)
    number, inside = np.arange(rows), np.ones(rows, np.bool_)
    origin = np.full(rows, tensor.address, np.int64)
    for first, extent, stride, box in list(zip(corner, tensor.extents, tensor.strides, tensor.box, strict=True))[1:]:
        number, index = np.divmod(number, box)
        inside &= (first + index >= 0) & (first + index < extent)
        origin += (first + index) * stride
    byte = np.arange(tensor.row_bytes)
    column = corner[0] + byte // tensor.element_bytes
    origins = (origin[:, None] + corner[0] * tensor.element_bytes + byte).reshape(-1, CHUNK)
    insides = (inside[:, None] & (column >= 0) & (column < tensor.extents[0])).reshape(-1, CHUNK)
    chunks = swizzled(offset + CHUNK * np.arange(size // CHUNK), tensor.span)
    if tensor.fills_with_nan and not insides.all():
        raise t.fault(instruction, "out-of-bounds fill with NaN is unsupported", thread)
    return _checked(t, instruction, thread, chunks, origins, insides)


def _row(instruction: Instruction, kernel: Kernel, *, is_load: bool) -> Step:
    """[shared], [global], bytes, [barrier]; or [global], [shared], bytes."""
    where, there = instruction.operands[:2] if is_load else instruction.operands[1::-1]
    shared, origin = address(where, kernel), address(there, kernel)
    count = source(instruction.operands[2], np.uint32, kernel)
    barrier = address(instruction.operands[3], kernel) if is_load else None

    def step(t: Threads) -> None:
        offsets, origins, counts = shared(t), origin(t), count(t)
        barriers = barrier(t) if barrier else offsets
        for thread in np.flatnonzero(t.mask).tolist():
            offset, start, size = int(offsets[thread]), int(origins[thread]), int(counts[thread])
            if (offset | start | size) % CHUNK or not 0 <= offset <= t.shared_bytes - size:
                raise t.fault(instruction, f"{size} bytes at byte {offset} of shared memory", thread)
            places = (start + np.arange(size)).reshape(-1, CHUNK)
            chunks = offset + CHUNK * np.arange(size // CHUNK)
            transfer = _checked(t, instruction, thread, chunks, places, np.ones(places.shape, np.bool_))
            if is_load:
                transfer.barrier = t.mbarriers.place(t, instruction, barriers, thread)
                t.bulk.load(t, transfer)
            else:
                t.bulk.store(t, transfer)

    return step


def _checked(
    t: Threads, instruction: Instruction, thread: int, chunks: Array, origin: Array, inside: Array
) -> _Transfer:
    """The transfer, after a check that its global bytes are in one buffer."""
    if inside.any():
        low, high = int(origin[inside].min()) - BASE, int(origin[inside].max()) - BASE
        if not t.memory.is_inside(low, high + 1):
            raise t.fault(instruction, f"{t.memory.describe(high)} is out of bounds", thread)
    chunks = chunks + int(t.number[thread]) * t.shared_stride
    return _Transfer(instruction=instruction, thread=thread, chunks=chunks, origin=origin, inside=inside)


def build_arrival(instruction: Instruction, kernel: Kernel) -> Step:
    """cp.async.mbarrier.arrive: an arrival at the completion of this thread's cp.async copies; with .noinc one of
    those that mbarrier.init counts, otherwise an additional one.
    """
    at = address(instruction.operands[0], kernel)

    def step(t: Threads) -> None:
        places = at(t)
        for thread in np.flatnonzero(t.mask).tolist():
            place = t.mbarriers.place(t, instruction, places, thread)
            if "noinc" not in instruction.modifiers:
                t.mbarriers.promise(t, instruction, place, thread)
            t.bulk.arrive_later(t, instruction, place, thread)

    return step
