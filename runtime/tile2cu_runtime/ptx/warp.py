"""Warp-wide instructions: shuffles, votes, ldmatrix, stmatrix and mma.

Source: PTX ISA 9.0, "shfl.sync", "vote.sync", "elect.sync", "ldmatrix", "stmatrix", and "Matrix Fragments for
mma.m16n8k16" and the other shapes.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from tile2cu_runtime.amdgcn.arrays import Array
from tile2cu_runtime.ptx import float8
from tile2cu_runtime.ptx.elementwise import unpacked
from tile2cu_runtime.ptx.errors import PtxError
from tile2cu_runtime.ptx.operands import TYPES, address, elements, source
from tile2cu_runtime.ptx.parse import Instruction, Kernel
from tile2cu_runtime.ptx.state import WARP, Builder, Getter, Step, Threads

LANES = np.arange(WARP)
# The manual's "groupID" and "threadID_in_group".
GROUP, MEMBER = LANES // 4, LANES % 4


def _shuffle(instruction: Instruction, kernel: Kernel) -> Step:
    """shfl.sync: d, and with d|p whether the source lane was in range; out of range a lane keeps its own value."""
    target, *rest = instruction.operands
    value, by, clamp = (source(each, np.uint32, kernel) for each in rest[:3])
    names, mode = target.split("|"), instruction.modifiers[1]

    def step(t: Threads) -> None:
        lane, amount, c = t.lane, by(t).astype(np.int64) & 31, clamp(t).astype(np.int64)
        segment = c >> 8 & 31
        low, high = lane & segment, (lane & segment) | (c & 31 & ~segment)
        match mode:
            case "up":
                of, inside = lane - amount, lane - amount >= high
            case "down":
                of, inside = lane + amount, lane + amount <= high
            case "bfly":
                of, inside = lane ^ amount, (lane ^ amount) <= high
            case _:
                of = low | (amount & ~segment)
                inside = of <= high
        of = np.where(inside, of, lane)
        thread = np.arange(t.count) - lane + of
        if not t.full and (t.mask & ~t.mask[thread]).any():
            raise t.fault(instruction, "the source lane is inactive", int(np.flatnonzero(t.mask & ~t.mask[thread])[0]))
        result = value(t)[thread]
        t.write(names[0].strip(), result)
        if len(names) > 1:
            t.write(names[1].strip(), inside)

    return step


def _vote(instruction: Instruction, kernel: Kernel) -> Step:
    """vote.sync.ballot, .any, .all; inactive lanes do not vote."""
    target, predicate, *_ = instruction.operands
    holds, mode = source(predicate, np.bool_, kernel), instruction.modifiers[1]

    def step(t: Threads) -> None:
        here = t.mask.reshape(-1, WARP)
        votes = holds(t).reshape(-1, WARP) & here
        if mode == "ballot":
            bits = (votes.astype(np.uint64) << LANES.astype(np.uint64)).sum(axis=1)
            t.write(target, np.repeat(bits, WARP).astype(np.uint32))
            return
        found = votes.any(axis=1) if mode == "any" else (votes == here).all(axis=1)
        t.write(target, np.repeat(found, WARP))

    return step


def _active_mask(instruction: Instruction, kernel: Kernel) -> Step:
    def step(t: Threads) -> None:
        bits = (t.mask.reshape(-1, WARP).astype(np.uint64) << LANES.astype(np.uint64)).sum(axis=1)
        t.write(instruction.operands[0], np.repeat(bits, WARP).astype(np.uint32))

    return step


def _elect(instruction: Instruction, kernel: Kernel) -> Step:
    """elect.sync d|p: p is true in one lane of the mask, here the lowest; d is its index."""
    targets, mask = instruction.operands[0].split("|"), source(instruction.operands[1], np.uint32, kernel)

    def step(t: Threads) -> None:
        members = mask(t).astype(np.int64)
        lowest = np.log2(members & -members).astype(np.int64)
        if targets[0].strip() != "_":
            t.write(targets[0].strip(), lowest.astype(np.uint32))
        t.write(targets[1].strip(), t.lane == lowest)

    return step


def members_of(instruction: Instruction, kernel: Kernel) -> Getter | None:
    """The lanes, as bits, that must execute the instruction together; None if it requires none.

    [PTX ISA 9.0, ".sync" and ".aligned" of the instructions]
    """
    match instruction.operation:
        case "ldmatrix" | "stmatrix" | "mma":
            return lambda t: np.full(t.count, 0xFFFFFFFF, np.int64)
        case "shfl" | "vote" | "match" | "elect" if "sync" in instruction.modifiers:
            get = source(instruction.operands[-1], np.uint32, kernel)
        case "bar" | "barrier" if "warp" in instruction.modifiers:
            get = source(instruction.operands[0], np.uint32, kernel)
        case _:
            return None
    return lambda t: get(t).astype(np.int64)


def _meet(instruction: Instruction, kernel: Kernel) -> Step:
    """bar.warp.sync: its lanes have arrived."""

    def step(t: Threads) -> None:
        if t.shadow:
            t.shadow.meet(np.flatnonzero(t.mask))

    return step


# ---- ldmatrix and stmatrix ----------------------------------------------------------------------------------


def _load_matrix(instruction: Instruction, kernel: Kernel) -> Step:
    """ldmatrix.m8n8.x1, .x2, .x4: lane 8 m + r has the address of row r of matrix m; lane l receives of each matrix
    the elements 2 (l % 4) and the next of row l / 4, with .trans of column l / 4.
    """
    targets, place = elements(instruction.operands[0]), address(instruction.operands[1], kernel)
    transposed, count = "trans" in instruction.modifiers, len(targets)

    def step(t: Threads) -> None:
        warps = t.warps(instruction)
        at, mask, full = place(t), t.mask, t.full
        t.mask, t.full = mask & (t.lane < 8 * count), False
        rows = np.ascontiguousarray(t.load(instruction, "shared", at, 16).T).view(np.uint16)
        t.mask, t.full = mask, full
        for number, target in enumerate(targets):
            matrices = rows[warps[:, 8 * number : 8 * number + 8]]
            if transposed:
                matrices = matrices.swapaxes(1, 2)
            pairs = np.ascontiguousarray(matrices).view(np.uint32).reshape(-1)
            values = np.zeros(t.count, np.uint32)
            values[warps.reshape(-1)] = pairs
            t.write(target, values)

    return step


def _store_matrix(instruction: Instruction, kernel: Kernel) -> Step:
    """stmatrix.m8n8: the inverse of ldmatrix."""
    if "m8n8" not in instruction.modifiers or "b16" not in instruction.modifiers:
        raise PtxError(f"line {instruction.line}: the instruction {instruction.name}")
    place, values = address(instruction.operands[0], kernel), elements(instruction.operands[1])
    sources, transposed = [source(each, np.uint32, kernel) for each in values], "trans" in instruction.modifiers

    def step(t: Threads) -> None:
        warps = t.warps(instruction)
        words = np.zeros((4, t.count), np.uint32)
        for number, get in enumerate(sources):
            matrices = np.ascontiguousarray(get(t)[warps]).view(np.uint16).reshape(-1, 8, 8)
            if transposed:
                matrices = matrices.swapaxes(1, 2)
            rows = np.ascontiguousarray(matrices).view(np.uint32)  # (warps, 8 rows, 4 words)
            words[:, warps[:, 8 * number : 8 * number + 8].reshape(-1)] = rows.reshape(-1, 4).T
        mask, full = t.mask, t.full
        t.mask, t.full = mask & (t.lane < 8 * len(sources)), False
        t.store(instruction, "shared", place(t), list(words), 16)
        t.mask, t.full = mask, full

    return step


# ---- mma ----------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Fragment:
    """A fragment layout: row and column of each item, (32 lanes, items)."""

    row: Array
    column: Array


def operand_a(k: int, bits: int) -> Fragment:
    """A (16, k): register r holds 32 / bits consecutive k, of row g + 8 (r % 2)."""
    each = 32 // bits
    registers, item = np.divmod(np.arange(k * 16 // WARP), each)
    row = GROUP[:, None] + 8 * (registers % 2)
    return Fragment(row, MEMBER[:, None] * each + item + 4 * each * (registers // 2))


def operand_b(k: int, bits: int) -> Fragment:
    """B (k, 8): register r holds 32 / bits consecutive k, of column g."""
    each = 32 // bits
    registers, item = np.divmod(np.arange(k * 8 // WARP), each)
    row = MEMBER[:, None] * each + item + 4 * each * registers
    return Fragment(row, np.broadcast_to(GROUP[:, None], row.shape))


def result() -> Fragment:
    """C and D (16, 8): items 0 and 1 in row g, 2 and 3 in row g + 8; columns 2 t and 2 t + 1."""
    item = np.arange(4)
    return Fragment(GROUP[:, None] + 8 * (item // 2), MEMBER[:, None] * 2 + item % 2)


_BITS = {"f16": 16, "bf16": 16, "tf32": 32, "s8": 8, "u8": 8, "s4": 4, "u4": 4, "e4m3": 8, "e5m2": 8}


def _multiply(instruction: Instruction, kernel: Kernel) -> Step:
    """mma.sync.aligned.m16n8k*.row.col.D.A.B.C: accumulates in float64 and rounds once."""
    shape = next((each for each in instruction.modifiers if each.startswith("m16n8k")), "")
    d, a, b, _ = [each for each in instruction.modifiers if each in TYPES or each in _BITS][-4:]
    if not shape or a not in _BITS or b not in _BITS or "row" not in instruction.modifiers:
        raise PtxError(f"line {instruction.line}: the instruction {instruction.name}")
    k = int(shape[len("m16n8k") :])
    registers = [elements(operand) for operand in instruction.operands]
    words = [[source(name, np.uint32, kernel) for name in names] for names in registers]
    sparse = any(each.startswith("sp") for each in instruction.modifiers)
    if sparse and (k * _BITS[a] != 512 or _BITS[a] not in (8, 16) or int(instruction.operands[5], 0) != 0):
        raise PtxError(f"line {instruction.line}: the instruction {instruction.name}")
    k_of_a = k // 2 if sparse else k
    places = (operand_a(k_of_a, _BITS[a]), operand_b(k, _BITS[b]), result())

    def step(t: Threads) -> None:
        warps = t.warps(instruction)
        left = _matrix(t, warps, words[1], a, places[0], (16, k_of_a))
        left = _expanded(left, np.asarray(words[4][0](t))[warps], _BITS[a]) if sparse else left
        right = _matrix(t, warps, words[2], b, places[1], (k, 8))
        sums = left @ right + _matrix(t, warps, words[3], d, places[2], (16, 8))
        found = sums[:, places[2].row, places[2].column]
        for name, value in zip(registers[0], _registers_of(found, d), strict=True):
            values = np.zeros(t.count, np.uint32)
            values[warps.reshape(-1)] = value.reshape(-1)
            t.write(name, values)

    return step


def _expanded(left: Array, metadata: Array, bits: int) -> Array:
    """A (warps, 16, k) from its two stored elements of each four, and their positions, (warps, 32 lanes).

    16-bit elements: lane 4 g + t, t < 2, has 4 bits per four columns from 16 t on: of row g in its lower half, of row g
    + 8 in its upper. 8-bit elements: lane 4 g + t has them for the columns from 32 (t / 2) on, of row g + 8 (t % 2).
    [PTX ISA, "Sparse MMA metadata layout for .m16n8k32 for .f16 / .bf16 type", "... for .m16n8k64 for .u8 / .s8 type"]
    """
    kept = left.shape[2]
    row, two = np.meshgrid(np.arange(16), np.arange(kept), indexing="ij")
    four = two // 2
    if bits == 16:
        member, first = four // 4, row // 8 * 16 + four % 4 * 4
    else:
        member, first = four // 8 * 2 + row // 8, four % 8 * 4
    words = metadata[:, row % 8 * 4 + member]
    place = words >> (first + two % 2 * 2).astype(np.uint32) & 3
    matrix = np.zeros((len(left), 16, 2 * kept), left.dtype)
    np.put_along_axis(matrix, (4 * four + place).astype(np.int64), left, axis=2)
    return matrix


def _matrix(t: Threads, warps: Array, words: list, kind: str, place: Fragment, shape: tuple[int, int]) -> Array:  # type: ignore[type-arg]
    """The matrix of each warp, (warps, rows, columns), float64 or int64."""
    raw = np.stack([np.asarray(get(t))[warps] for get in words], axis=-1)
    flat = np.ascontiguousarray(raw).reshape(-1)
    match kind:
        case "f16" | "bf16":
            items = unpacked(flat, kind + "x2")
        case "tf32":
            items = (flat & np.uint32(0xFFFFE000)).view(np.float32)
        case "f32":
            items = flat.view(np.float32)
        case "e4m3" | "e5m2":
            items = float8.decoded(flat.view(np.uint8), kind)
        case "s4" | "u4":
            codes = (flat[:, None] >> np.arange(0, 32, 4, dtype=np.uint32)).reshape(-1) & 15
            items = (codes ^ 8).astype(np.int64) - 8 if kind == "s4" else codes
        case _:
            items = flat.view(TYPES[kind])
    wide = items.astype(np.float64 if items.dtype.kind == "f" else np.int64).reshape(len(warps), WARP, -1)
    matrix = np.zeros((len(warps), *shape), wide.dtype)
    matrix[:, place.row, place.column] = wide
    return matrix


def _registers_of(items: Array, kind: str) -> list[Array]:
    """Converts (warps, 32, items) to register words."""
    if kind == "f16":
        words = np.ascontiguousarray(items.astype(np.float16)).view(np.uint32)
    elif kind == "s32":
        words = (items & 0xFFFFFFFF).astype(np.uint32)
    else:
        words = np.ascontiguousarray(items.astype(np.float32)).view(np.uint32)
    return list(np.moveaxis(words, -1, 0))


BUILDERS: dict[str, Builder] = {
    "shfl": _shuffle,
    "vote": _vote,
    "activemask": _active_mask,
    "elect": _elect,
    "bar": _meet,
    "barrier": _meet,
    "ldmatrix": _load_matrix,
    "stmatrix": _store_matrix,
    "mma": _multiply,
}
