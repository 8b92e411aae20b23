"""LDS loads and stores, and permutations of lanes through the LDS unit. [MI300 ISA, "LDS Instructions"]"""

from __future__ import annotations

import re
from collections.abc import Callable

import numpy as np

from tile2cu_runtime.amdgcn.arrays import I64, LANES, U32, Array
from tile2cu_runtime.amdgcn.cohort import Cohort, Getter, Step, Transfer
from tile2cu_runtime.amdgcn.errors import SimulatorError, UnsupportedInstruction
from tile2cu_runtime.amdgcn.formats import pack_codes, unpack_codes
from tile2cu_runtime.amdgcn.instruction import Instruction
from tile2cu_runtime.amdgcn.instructions.access import Width, active, data_words, extended, landing
from tile2cu_runtime.amdgcn.instructions.registers import Context, across_lanes, word

_READ = re.compile(r"ds_read_([biu])(8|16|32|64|96|128)(_d16)?(_hi)?")
_WRITE = re.compile(r"ds_write_b(8|16|32|64|96|128)(_d16_hi)?")
_TRANSPOSED = re.compile(r"ds_read_b(64_tr_b(?:16|8|4)|96_tr_b6)")
_TWO = re.compile(r"ds_(read|write)2(st64)?_b(32|64)")


def build(instruction: Instruction, context: Context) -> Step:
    """ds_read*, ds_write*, ds_bpermute, ds_permute, ds_swizzle."""
    if found := _READ.fullmatch(instruction.name):
        return _read(instruction, context, Width(int(found[2]) // 8, found[1] == "i", bool(found[3]), bool(found[4])))
    if found := _WRITE.fullmatch(instruction.name):
        return _write(instruction, context, Width(int(found[1]) // 8, high=bool(found[2])))
    if found := _TWO.fullmatch(instruction.name):
        unit = int(found[3]) // 8 * (64 if found[2] else 1)
        offsets = instruction.number("offset0") * unit, instruction.number("offset1") * unit
        two = _read_two if found[1] == "read" else _write_two
        return two(instruction, context, offsets, Width(int(found[3]) // 8))
    if found := _TRANSPOSED.fullmatch(instruction.name):
        lane_bits, _, element_bits = found[1].partition("_tr_b")
        return _read_transposed(instruction, context, Width(int(lane_bits) // 8), int(element_bits))
    if instruction.name in ("ds_bpermute_b32", "ds_permute_b32"):
        return _permute(instruction, context)
    if instruction.name == "ds_swizzle_b32":
        return _swizzle(instruction, context)
    raise UnsupportedInstruction(instruction.text)


def lds_address(instruction: Instruction, context: Context, operand: int) -> Callable[[Cohort, int], Array]:
    """The lanes' byte offsets, from the address register and a constant."""
    register = word(instruction.operands[operand], context)
    return lambda c, offset: across_lanes(c, (register(c) + U32(offset)).astype(I64))


def issue_read(
    c: Cohort, access: Transfer, values: Array, land: Callable[[Cohort, Transfer], None], registers: int
) -> None:
    """Appends a read to lgkmcnt's queue; its registers are written when it is waited for."""
    access.values, access.land, access.registers = values, land, registers
    c.issue(access, c.lgkm)


def _read(instruction: Instruction, context: Context, width: Width) -> Step:
    address, offset = lds_address(instruction, context, 1), instruction.number("offset")
    data = instruction.operands[0]
    land, registers = landing(data, width, context), data.register_bits()

    def step(c: Cohort) -> None:
        lds = c.batch.lds
        access = lds.place(c, instruction, address(c, offset), width.bytes, active(c))
        issue_read(c, access, extended(lds.read(c, access), width), land, registers)

    return step


def _write(instruction: Instruction, context: Context, width: Width) -> Step:
    address, offset = lds_address(instruction, context, 0), instruction.number("offset")
    row = context.row(instruction.operands[1])

    def step(c: Cohort) -> None:
        access = c.batch.lds.place(c, instruction, address(c, offset), width.bytes, active(c))
        c.batch.lds.write(c, access, data_words(c, row, width))
        c.issue(access, c.lgkm)

    return step


def _read_transposed(instruction: Instruction, context: Context, width: Width, bits: int) -> Step:
    """ds_read_b64_tr_b16, _b8 and _b4, ds_read_b96_tr_b6 (gfx950): 16 lanes read a matrix and receive its columns.

    The data in lane order is a matrix with rows of 16 elements, as many rows as elements per lane. Lane l receives
    column l. Addresses of b96 are multiples of 16 bytes.
    Source: AMD Instinct CDNA4 ISA, "DS_READ_B64_TR_B16"; AMD's test of all four on a gfx950, rocRoller's TransposeLoads
    (github.com/ROCm/rocm-libraries), and triton-lang/triton, pull request 8525.
    """
    rows = 8 * width.bytes // bits
    address, offset, data = lds_address(instruction, context, 1), instruction.number("offset"), instruction.operands[0]
    land, registers = landing(data, width, context), data.register_bits()

    def step(c: Cohort) -> None:
        lds = c.batch.lds
        places = address(c, offset)
        if width.bytes == 12 and (places % 16)[c.exec].any():
            raise SimulatorError(f"{instruction.text}: addresses must be multiples of 16 bytes")
        access = lds.place(c, instruction, places, width.bytes, active(c))
        codes = unpack_codes(lds.read(c, access).transpose(1, 2, 0), bits, rows)
        columns = codes.reshape(len(c), 4, rows, 16).swapaxes(2, 3).reshape(len(c), 64, rows)
        issue_read(c, access, pack_codes(columns, bits).transpose(2, 0, 1), land, registers)

    return step


def place_two(
    c: Cohort, instruction: Instruction, address: Callable[[Cohort, int], Array], offsets: tuple[int, int], width: Width
) -> Transfer:
    """Two accesses as one of 128 lanes: lanes 64 to 127 are the same lanes at the second offset."""
    at = np.concatenate([address(c, offset) for offset in offsets], axis=1)
    mask = None if c.full else np.concatenate((c.exec, c.exec), axis=1)
    return c.batch.lds.place(c, instruction, at, width.bytes, mask)


def _read_two(instruction: Instruction, context: Context, offsets: tuple[int, int], width: Width) -> Step:
    address, data = lds_address(instruction, context, 1), instruction.operands[0]
    land, registers = landing(data, Width(2 * width.bytes), context), data.register_bits()

    def step(c: Cohort) -> None:
        access = place_two(c, instruction, address, offsets, width)
        words = c.batch.lds.read(c, access)
        issue_read(c, access, np.concatenate((words[..., :64], words[..., 64:])), land, registers)

    return step


def _write_two(instruction: Instruction, context: Context, offsets: tuple[int, int], width: Width) -> Step:
    address = lds_address(instruction, context, 0)
    rows = [context.row(operand) for operand in instruction.operands[1:3]]

    def step(c: Cohort) -> None:
        access = place_two(c, instruction, address, offsets, width)
        first, second = (data_words(c, row, width) for row in rows)
        c.batch.lds.write(c, access, [np.concatenate(both, axis=1) for both in zip(first, second, strict=True)])
        c.issue(access, c.lgkm)

    return step


# ---- permutations -----------------------------------------------------------------------------------------------


def _lane_step(instruction: Instruction, context: Context, result: Getter) -> Step:
    """An instruction without memory access whose result returns through lgkmcnt."""
    data = instruction.operands[0]
    land, registers = landing(data, Width(4), context), data.register_bits()

    def step(c: Cohort) -> None:
        transfer = Transfer(instruction=instruction, registers=registers, land=land, mask=active(c))
        transfer.values = result(c)[None]
        c.issue(transfer, c.lgkm)

    return step


def _permute(instruction: Instruction, context: Context) -> Step:
    """bpermute reads from the lane that the address selects, permute writes to it; inactive lanes give 0."""
    address, data = word(instruction.operands[1], context), word(instruction.operands[2], context)
    offset, pulls = U32(instruction.number("offset")), instruction.name == "ds_bpermute_b32"

    def result(c: Cohort) -> Array:
        lane = across_lanes(c, ((address(c) + offset) >> U32(2)) & U32(63)).astype(I64)
        values = np.where(c.exec, across_lanes(c, data(c)), U32(0))
        if pulls:
            return np.take_along_axis(values, lane, axis=1)
        pushed = np.zeros((len(c), 64), U32)
        wave, source = np.nonzero(c.exec)
        pushed[wave, lane[wave, source]] = values[wave, source]
        return pushed

    return _lane_step(instruction, context, result)


def _swizzle(instruction: Instruction, context: Context) -> Step:
    data, source = word(instruction.operands[1], context), swizzle_source(instruction.modifiers["offset"])

    def result(c: Cohort) -> Array:
        return np.where(c.exec[:, source], across_lanes(c, data(c))[:, source], U32(0))

    return _lane_step(instruction, context, result)


def swizzle_source(offset: str) -> Array:
    """The source lane of each lane, from `swizzle(...)` or its numeric encoding."""
    if not offset.startswith("swizzle("):
        return _numeric_swizzle(int(offset, 0))
    kind, *arguments = (part.strip(' "') for part in offset[len("swizzle(") : -1].split(","))
    size = int(arguments[0]) if kind != "BITMASK_PERM" else 32
    match kind:
        case "QUAD_PERM":
            result: Array = (LANES & ~3) + np.array([int(lane) for lane in arguments])[LANES & 3]
            return result
        case "SWAP":
            return LANES ^ size
        case "REVERSE":
            return (LANES & ~(size - 1)) + size - 1 - (LANES & (size - 1))
        case "BROADCAST":
            return (LANES & ~(size - 1)) + int(arguments[1])
        case "BITMASK_PERM":
            return _bitmask(arguments[0])
    raise UnsupportedInstruction(f"ds_swizzle {offset}")


def _bitmask(mask: str) -> Array:
    """Five letters for the bits of a lane index, highest first: 0, 1, p (preserved), i (inverted)."""
    source = LANES & ~31
    for letter, bit in zip(mask, (4, 3, 2, 1, 0), strict=True):
        old = LANES >> bit & 1
        source = source + ({"0": 0 * old, "1": 0 * old + 1, "p": old, "i": 1 - old}[letter] << bit)
    return source


def _numeric_swizzle(code: int) -> Array:
    if code & 0x8000:
        result: Array = (LANES & ~3) + np.array([code >> 2 * lane & 3 for lane in range(4)])[LANES & 3]
        return result
    kept, set_, flipped = code & 31, code >> 5 & 31, code >> 10 & 31
    return (LANES & 32) | ((((LANES & 31) & kept) | set_) ^ flipped)
