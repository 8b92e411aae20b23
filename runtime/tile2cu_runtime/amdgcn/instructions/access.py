"""Common parts of memory instructions: access widths by mnemonic, store data, and the completion of loads."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from tile2cu_runtime.amdgcn.arrays import U32, Array
from tile2cu_runtime.amdgcn.cohort import Cohort, Transfer
from tile2cu_runtime.amdgcn.instruction import Operand
from tile2cu_runtime.amdgcn.instructions.registers import Context

_NAME = re.compile(r"_(ubyte|sbyte|byte|ushort|sshort|short|dwordx4|dwordx3|dwordx2|dword)(_d16)?(_hi)?")
_BYTES = {
    "ubyte": 1, "sbyte": 1, "byte": 1, "ushort": 2, "sshort": 2, "short": 2,
    "dword": 4, "dwordx2": 8, "dwordx3": 12, "dwordx4": 16,
}  # fmt: skip


@dataclass(frozen=True)
class Width:
    """Bytes per lane; whether a narrow load is sign-extended; whether it fills one half of the register, and which."""

    bytes: int
    signed: bool = False
    half: bool = False
    high: bool = False

    @property
    def words(self) -> int:
        return -(-self.bytes // 4)


def width_of(name: str) -> Width | None:
    """The width in names such as `..._dwordx2` and `..._ubyte_d16_hi`."""
    found = _NAME.search(name)
    if not found:
        return None
    return Width(_BYTES[found[1]], found[1] in ("sbyte", "sshort"), bool(found[2]), bool(found[3]))


def active(c: Cohort) -> Array | None:
    """The EXEC mask, or None if all lanes are active."""
    return None if c.full else c.exec


def data_words(c: Cohort, row: int, width: Width) -> list[Array]:
    """The words to store, from the registers that begin at a row."""
    if width.high:
        return [c.vgpr[row] >> U32(16)]
    return [c.vgpr[row + number] for number in range(width.words)]


def extended(words: Array, width: Width) -> Array:
    """Sign extension of narrow loads."""
    if not width.signed:
        return words
    sign = U32(1 << (8 * width.bytes - 1))
    result: Array = (words ^ sign) - sign
    return result


def landing(operand: Operand, width: Width, context: Context) -> Callable[[Cohort, Transfer], None]:
    """Writes a load's words to its registers when it completes."""
    row = context.row(operand)

    def land(c: Cohort, transfer: Transfer) -> None:
        assert transfer.values is not None
        words = transfer.values
        if width.half:
            old = c.vgpr[row]
            low = words[0] & U32(0xFFFF)
            words = ((low << U32(16)) | (old & U32(0xFFFF)) if width.high else low | (old & U32(0xFFFF0000)))[None]
        target = c.vgpr[row : row + len(words)]
        if transfer.mask is None:
            target[...] = words
        else:
            # Two accesses in one instruction: the first half of the mask applies to both.
            np.copyto(target, words, where=transfer.mask[:, :64])

    return land
