"""wgmma: warpgroup MMA, and checks of its registers and operands while it is in flight.

A wgmma is computed when it is issued. Until it is waited for, its result must not be read, and neither operands nor
result may be written: registers are tracked by name, operands in shared memory are compared at the wait.

Source: PTX ISA 9.0, "Asynchronous Warpgroup Level Matrix Instructions: wgmma"; for operands in shared memory the
canonical layouts of CUTLASS, include/cute/atom/mma_traits_sm90_gmma.hpp, make_gmma_desc.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np

from tile2cu_runtime.amdgcn.arrays import Array
from tile2cu_runtime.ptx import float8
from tile2cu_runtime.ptx.elementwise import unpacked
from tile2cu_runtime.ptx.errors import PtxError
from tile2cu_runtime.ptx.operands import elements, source
from tile2cu_runtime.ptx.parse import Instruction, Kernel
from tile2cu_runtime.ptx.shadow import CHUNK
from tile2cu_runtime.ptx.tma import check_read, swizzled
from tile2cu_runtime.ptx.warp import operand_a

if TYPE_CHECKING:
    from tile2cu_runtime.ptx.state import Threads

WARPGROUP, ROWS, K_BYTES = 128, 64, 32
_BITS = {"f16": 16, "bf16": 16, "tf32": 32, "e4m3": 8, "e5m2": 8, "s8": 8, "u8": 8}
_NAME = re.compile(
    r"wgmma\.mma_async\.sync\.aligned\.m64n(?P<n>\d+)k(?P<k>\d+)\.(?P<sum>f32(?=\.[fbte])|f16(?=\.f16)|s32(?=\.[su]))"
    r"\.(?P<a>f16|bf16|tf32|e4m3|e5m2|s8|u8)\.(?P<b>f16|bf16|tf32|e4m3|e5m2|s8|u8)"
)
# Reserved bits of a descriptor. [PTX ISA, "Matrix Descriptor Format"]
_RESERVED = 3 << 14 | 3 << 30 | 7 << 46 | 0x3FF << 52


# ---- operands in shared memory ------------------------------------------------------------------------------


def chunks_of(descriptor: int, count: int, *, mn_major: bool) -> Array:
    """Where the 16-byte chunks of `count` x 32 bytes lie in shared memory.

    K-major: (count, 2), chunk by chunk of a row. MN-major, of 16-bit elements: (16, count / 8), each chunk eight
    neighbours along M or N of a row of K. With T elements in 16 bytes and a swizzle's span of W chunks CUTLASS writes
      K-major    ((8,m),(T,2)):((WT,SBO),(1,T)), without a swizzle ((8,m),(T,2)):((T,SBO),(1,LBO))
      MN-major   ((T,W,m),(8,k)):((1,T,LBO),(WT,SBO)), without a swizzle ((T,1,m),(8,k)):((1,T,SBO),(T,LBO)).
    """
    start, leading, stride = (((descriptor >> low) & 0x3FFF) << 4 for low in (0, 16, 32))
    span = {0: CHUNK, 1: 128, 2: 64, 3: 32}[descriptor >> 62]
    if mn_major:
        k, along = np.arange(16)[:, None], np.arange(count // 8)
        within, beyond = along % (span // CHUNK), along // (span // CHUNK)
        far, near = (stride, leading) if span == CHUNK else (leading, stride)
        linear = start + within * CHUNK + beyond * far + k % 8 * span + k // 8 * near
    else:
        row, chunk = np.arange(count)[:, None], np.arange(2)
        linear = start + row // 8 * stride + row % 8 * span + chunk * (leading if span == CHUNK else CHUNK)
    return swizzled(linear, span)


@dataclass(frozen=True, kw_only=True)
class _Shared:
    """An operand in shared memory: its chunks, and their contents at the issue."""

    chunks: Array
    content: Array


def _values(raw: Array, kind: str) -> Array:
    """Little-endian bytes as float64, (rows, bytes)."""
    raw = np.ascontiguousarray(raw)
    match kind:
        case "f16":
            items = raw.view(np.float16)
        case "bf16":
            items = unpacked(raw.view(np.uint16).reshape(-1), kind).reshape(len(raw), -1)
        case "tf32":
            items = (raw.view(np.uint32) & np.uint32(0xFFFFE000)).view(np.float32)
        case "e4m3" | "e5m2":
            return float8.decoded(raw, kind)
        case _:
            items = raw.view(np.int8 if kind == "s8" else np.uint8)
    return items.astype(np.float64)


# ---- what is in flight --------------------------------------------------------------------------------------


@dataclass(kw_only=True)
class _Product:
    instruction: Instruction
    thread: int
    operands: list[_Shared]


@dataclass
class Warpgroup:
    """A warpgroup's wgmmas in flight. Registers are tracked by name, with the index of their group."""

    number: int
    open: list[_Product] = field(default_factory=list)
    groups: list[list[_Product]] = field(default_factory=list)
    results: dict[str, int] = field(default_factory=dict)
    operands: dict[str, int] = field(default_factory=dict)
    written: set[str] = field(default_factory=set)  # written since the last wgmma.fence
    fenced: bool = False
    committed: int = 0

    @property
    def is_busy(self) -> bool:
        return bool(self.results or self.operands)

    def touches(self, names: Iterable[str]) -> bool:
        return not (self.results.keys().isdisjoint(names) and self.operands.keys().isdisjoint(names))

    def access(
        self, t: Threads, instruction: Instruction, reads: frozenset[str], writes: frozenset[str], thread: int
    ) -> None:
        """A register instruction between issue and wait. A plain move only renames a result."""
        if names := writes & (self.results.keys() | self.operands.keys()):
            raise t.fault(instruction, f"{min(names)} is written while a wgmma that uses it is in flight", thread)
        early = reads & self.results.keys()
        if not early:
            return
        if instruction.operation != "mov" or len(writes) != 1:
            raise t.fault(instruction, f"{min(early)} is read before wgmma.wait_group has waited for it", thread)
        for name in writes:
            self.results[name] = self.results[min(early)]


class Warpgroups:
    """The warpgroups of some blocks; a block's last one may be incomplete, and then has no wgmma."""

    def __init__(self, a_block: int, blocks: int) -> None:
        each = -(-a_block // WARPGROUP)
        thread = np.arange(a_block * blocks)
        self.of = thread // a_block * each + thread % a_block // WARPGROUP
        self.all = [Warpgroup(number) for number in range(each * blocks)]

    def complete(self, mask: Array) -> tuple[Array, Array]:
        """The warpgroups whose threads all execute, and these threads, (warpgroups, 128)."""
        counts = np.bincount(self.of[mask], minlength=len(self.all))
        numbers = np.flatnonzero(counts == WARPGROUP)
        first = np.searchsorted(self.of, numbers)
        return numbers, first[:, None] + np.arange(WARPGROUP)

    def active(self, mask: Array) -> list[Warpgroup]:
        """The warpgroups with an executing thread."""
        return [self.all[number] for number in np.flatnonzero(np.bincount(self.of[mask], minlength=len(self.all)))]

    def finish(self, t: Threads) -> None:
        """All threads have exited. A fault for a wgmma that was never waited for."""
        for warpgroup in self.all:
            for product in (each for group in (*warpgroup.groups, warpgroup.open) for each in group):
                raise t.fault(product.instruction, "the wgmma is never waited for", product.thread)


def execute(t: Threads, instruction: Instruction, taken: Array, kernel: Kernel) -> Array:
    """Executes a wgmma instruction in the complete warpgroups, and returns their threads; the others wait."""
    numbers, threads = t.warpgroups.complete(taken)
    match instruction.modifiers[0]:
        case "fence":
            for number in numbers:
                t.warpgroups.all[number].fenced = True
                t.warpgroups.all[number].written.clear()
        case "commit_group":
            for number in numbers:
                _commit(t.warpgroups.all[number])
        case "wait_group":
            for number in numbers:
                _wait(t, t.warpgroups.all[number], int(instruction.operands[0]))
        case "mma_async":
            _multiply(t, instruction, kernel, numbers, threads)
        case _:
            raise PtxError(f"line {instruction.line}: the instruction {instruction.name}")
    done = np.zeros(t.count, np.bool_)
    done[threads.reshape(-1)] = True
    return done


def _commit(warpgroup: Warpgroup) -> None:
    warpgroup.groups.append(warpgroup.open)
    warpgroup.open = []
    warpgroup.committed += 1


def _wait(t: Threads, warpgroup: Warpgroup, keep: int) -> None:
    while len(warpgroup.groups) > keep:
        for product in warpgroup.groups.pop(0):
            for operand in product.operands:
                if not np.array_equal(_content(t, operand.chunks), operand.content):
                    what = "an operand in shared memory was written before wgmma.wait_group"
                    raise t.fault(product.instruction, what, product.thread)
    done = warpgroup.committed - len(warpgroup.groups)
    warpgroup.results = {name: group for name, group in warpgroup.results.items() if group >= done}
    warpgroup.operands = {name: group for name, group in warpgroup.operands.items() if group >= done}
    warpgroup.fenced = warpgroup.fenced and warpgroup.is_busy


def _content(t: Threads, chunks: Array) -> Array:
    content: Array = t.shared.bytes.reshape(-1, CHUNK)[chunks // CHUNK]
    return content


# ---- the product --------------------------------------------------------------------------------------------


def _multiply(t: Threads, instruction: Instruction, kernel: Kernel, numbers: Array, threads: Array) -> None:
    """wgmma.mma_async.sync.aligned.m64nNkK.D.A.B: accumulation is exact and rounded once."""
    form = _Form.of(instruction)
    results, left, right, scale, *rest = instruction.operands
    sums, in_registers = elements(results), elements(left) if left.startswith("{") else []
    signs, transposed = [int(each) for each in rest[:2]], [each == "1" for each in rest[2:]]
    if in_registers:
        transposed = [False, *transposed]
    a_mn, b_mn = (*transposed, False, False)[:2]
    keeps = source(scale, np.bool_, kernel)(t)
    words = np.stack([t.registers[name][threads] for name in sums], axis=1)
    operand_words = [t.registers[name][threads] for name in in_registers]
    for place, number in enumerate(numbers):
        warpgroup, first = t.warpgroups.all[number], int(threads[place, 0])
        _check(t, instruction, warpgroup, {*sums, *in_registers}, first)
        product = _Product(instruction=instruction, thread=first, operands=[])
        if in_registers:
            a = _from_registers(np.stack([each[place] for each in operand_words]), form.a)
        else:
            a = _from_shared(t, product, left, kernel, threads[place], count=ROWS, kind=form.a, mn_major=a_mn)
        b = _from_shared(t, product, right, kernel, threads[place], count=form.n, kind=form.b, mn_major=b_mn)
        for sign in signs:
            a = a * sign
        if len({bool(each) for each in keeps[threads[place]]}) > 1:
            raise t.fault(instruction, "scale-d is not uniform", first)
        words[place] = form.added(words[place], a @ b.T, keeps=bool(keeps[first]))
        warpgroup.open.append(product)
        warpgroup.results |= dict.fromkeys(sums, warpgroup.committed)
        warpgroup.operands |= dict.fromkeys(in_registers, warpgroup.committed)
    for column, name in enumerate(sums):
        t.registers[name][threads] = words[:, column]


def _check(t: Threads, instruction: Instruction, warpgroup: Warpgroup, registers: set[str], thread: int) -> None:
    if not warpgroup.fenced or registers & warpgroup.written:
        name = min(registers & warpgroup.written, default="its registers")
        raise t.fault(instruction, f"no wgmma.fence since {name} may have been written", thread)


@dataclass(frozen=True, kw_only=True)
class _Form:
    """Width and types of a wgmma."""

    n: int
    sum: str
    a: str
    b: str

    @staticmethod
    def of(instruction: Instruction) -> _Form:
        """The form in the instruction's name. Errors: PtxError for unsupported ones."""
        found = _NAME.fullmatch(instruction.name)
        if not found or int(found["k"]) * _BITS[found["a"]] != 8 * K_BYTES or _BITS[found["a"]] != _BITS[found["b"]]:
            raise PtxError(f"line {instruction.line}: the instruction {instruction.name}")
        return _Form(n=int(found["n"]), sum=found["sum"], a=found["a"], b=found["b"])

    def added(self, words: Array, product: Array, *, keeps: bool) -> Array:
        """The registers' words, (n / 2, 128) or for half (n / 4, 128), with the product, (64, n), accumulated or
        stored.

        Element 4 j + 2 h + e of lane 4 g + q of warp w: row 16 w + g + 8 h, column 8 j + 2 q + e. A register is an
        element, or both e for half. ["Register Fragments for wgmma.mma_async.m64nNk16", D]
        """
        terms = product.reshape(4, 2, 8, self.n // 8, 4, 2).transpose(3, 1, 5, 0, 2, 4)  # j h e w g q
        if self.sum == "f16":
            terms = terms.transpose(0, 1, 3, 4, 5, 2)
        old = np.ascontiguousarray(words).view({"f32": np.float32, "f16": np.float16, "s32": np.int32}[self.sum])
        total = old.reshape(terms.shape).astype(np.float64) + terms if keeps else terms
        if self.sum == "s32":  # wraps
            new = (total.astype(np.int64) & 0xFFFFFFFF).astype(np.uint32)
        else:
            new = np.ascontiguousarray(total.astype(old.dtype)).reshape(*words.shape, -1).view(np.uint32)
        result: Array = new.reshape(words.shape)
        return result


def _from_registers(words: Array, kind: str) -> Array:
    """A, 64 x K; each warp holds 16 rows: (registers, 128 threads)."""
    k = 8 * K_BYTES // _BITS[kind]
    place = operand_a(k, _BITS[kind])
    items = _values(np.ascontiguousarray(words.T).view(np.uint8), kind).reshape(4, 32, -1)
    matrix = np.zeros((4, 16, k))
    matrix[:, place.row, place.column] = items
    return matrix.reshape(ROWS, k)


def _from_shared(
    t: Threads,
    product: _Product,
    operand: str,
    kernel: Kernel,
    threads: Array,
    *,
    count: int,
    kind: str,
    mn_major: bool,
) -> Array:
    """An operand of `count` rows, by its descriptor: (count, K)."""
    descriptors = source(operand, np.uint64, kernel)(t)[threads]
    descriptor, instruction = int(descriptors[0]), product.instruction
    if (descriptors != descriptors[0]).any():
        raise t.fault(instruction, "the descriptor is not uniform over the warpgroup", product.thread)
    if descriptor & _RESERVED or descriptor >> 49 & 7:
        raise t.fault(instruction, f"the descriptor {descriptor:#x} has reserved bits set", product.thread)
    if mn_major and _BITS[kind] != 16:
        raise t.fault(instruction, f"{kind} operands must be K-major", product.thread)
    chunks = chunks_of(descriptor, count, mn_major=mn_major)
    if int(chunks.max()) > t.shared_bytes - CHUNK:
        raise t.fault(instruction, f"byte {int(chunks.max())} of shared memory is out of bounds", product.thread)
    shape, chunks = chunks.shape, chunks.reshape(-1) + int(t.number[product.thread]) * t.shared_stride
    check_read(t, instruction, chunks, threads)
    content = _content(t, chunks)
    product.operands.append(_Shared(chunks=chunks, content=content))
    values = _values(content.reshape(shape[0], -1), kind)
    return values.T if mn_major else values
