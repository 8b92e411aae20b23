"""A line of disassembly as data: mnemonic, operands, modifiers."""

from __future__ import annotations

import re
import struct
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property

from tile2cu_runtime.amdgcn.arrays import MASK64, sign_extend
from tile2cu_runtime.amdgcn.errors import UnsupportedInstruction

# Scalar register names by encoding. [AMD Instinct MI300 ISA, "Scalar Operands", SSRC encodings]
NAMED_SCALARS = {
    "flat_scratch": 102, "flat_scratch_lo": 102, "flat_scratch_hi": 103, "xnack_mask": 104,
    "vcc": 106, "vcc_lo": 106, "vcc_hi": 107, "m0": 124, "exec": 126, "exec_lo": 126, "exec_hi": 127,
}  # fmt: skip
PAIRS = frozenset(("vcc", "exec", "flat_scratch", "xnack_mask"))
FIRST_TRAP_REGISTER = 108
VCC, M0, EXEC = 106, 124, 126

# The high half of flat addresses in the LDS and scratch apertures; any unused values.
SHARED_APERTURE, PRIVATE_APERTURE = 0x10000, 0x20000
SPECIAL_VALUES = {"src_shared_base": SHARED_APERTURE, "src_private_base": PRIVATE_APERTURE}

_ENCODING = re.compile(r"_(e32|e64|dpp|sdwa|e64_dpp)$")
_REGISTER = re.compile(r"(v|a|s|ttmp)(?:(\d+)|\[(\d+)(?::(\d+))?\])$")
_FLOAT = re.compile(r"-?\d+\.\d+(e[-+]?\d+)?$")
_FLOAT_FORMATS = {16: "<e", 32: "<f", 64: "<d"}


@dataclass(frozen=True)
class Operand:
    """A register range, a constant or `off`. `kind`: v, a, s (`index`, `count`), or "" for others."""

    text: str
    kind: str = ""
    index: int = -1
    count: int = 1
    negate: bool = False
    absolute: bool = False
    sign_extend: bool = False

    @property
    def is_register(self) -> bool:
        return bool(self.kind)

    @property
    def is_vector(self) -> bool:
        return self.kind in ("v", "a")

    @property
    def is_scalar(self) -> bool:
        return self.kind == "s"

    def constant(self, float_bits: int = 32) -> int:
        """The bits of an inline constant or literal; one with a decimal point is a float of `float_bits`."""
        if re.fullmatch(r"-?\d+", self.text):
            return int(self.text) & MASK64
        if re.fullmatch(r"0x[0-9a-f]+", self.text):
            return int(self.text, 16)
        if _FLOAT.match(self.text):
            raw = struct.pack(_FLOAT_FORMATS[float_bits], float(self.text))
            return int.from_bytes(raw, "little")
        if self.text in SPECIAL_VALUES:
            return SPECIAL_VALUES[self.text]
        raise UnsupportedInstruction(f"operand {self.text}")

    def register_bits(self) -> int:
        """The registers as a bit set: vector registers from 0, accumulation registers from 256, scalar registers
        from 512.
        """
        if not self.kind:
            return 0
        first = {"v": 0, "a": 256, "s": 512}[self.kind] + self.index
        return ((1 << self.count) - 1) << first


@dataclass(frozen=True, kw_only=True)
class Instruction:
    """`name` without the encoding's suffix; `size` in bytes; `address` as in the code object."""

    address: int
    size: int
    text: str
    name: str
    encoding: str
    operands: tuple[Operand, ...]
    modifiers: Mapping[str, str]

    @cached_property
    def touches(self) -> int:
        """The registers of the operands, as Operand.register_bits."""
        bits = 0
        for operand in self.operands:
            bits |= operand.register_bits()
        return bits

    @property
    def next_address(self) -> int:
        return self.address + self.size

    def number(self, modifier: str, default: int = 0) -> int:
        """The value of `modifier:value`."""
        return int(self.modifiers[modifier], 0) if modifier in self.modifiers else default

    def numbers(self, modifier: str) -> list[int]:
        """The values of `modifier:[a,b,c]`, empty without the modifier."""
        return [int(digits) for digits in re.findall(r"-?\d+", self.modifiers.get(modifier, ""))]

    def branch_target(self) -> int:
        """The target of a direct branch. [MI300 ISA, "SOPP": PC + 4 + SIMM16 * 4]"""
        return self.next_address + 4 * sign_extend(int(self.operands[0].text, 0) & 0xFFFF, 16)


def parse_instruction(text: str, address: int, size: int) -> Instruction:
    """Parses an instruction as llvm-objdump prints it."""
    mnemonic, _, rest = text.partition(" ")
    parts = list(_split_at_commas(rest))
    modifiers: list[str] = []
    if parts and mnemonic not in ("s_waitcnt", "s_waitcnt_depctr"):
        words = parts[-1].split()
        parts[-1], modifiers = words[0], words[1:]
    encoding = _ENCODING.search(mnemonic)
    return Instruction(
        address=address,
        size=size,
        text=text,
        name=_ENCODING.sub("", mnemonic),
        encoding=encoding[1] if encoding else "",
        operands=tuple(map(parse_operand, parts)),
        modifiers=dict(_key_and_value(word) for word in modifiers),
    )


def parse_operand(text: str) -> Operand:
    """Parses `-|v1|`, `sext(v2)`, `s[0:1]`, `vcc`, `0x10`, `1.0`, `off` and similar operands."""
    negate = absolute = sign_extends = False
    if text.startswith("neg("):
        negate, text = True, text[4:-1]
    if text.startswith("-") and not text[1:2].isdigit():
        negate, text = True, text[1:]
    if text.startswith("|"):
        absolute, text = True, text[1:-1]
    if text.startswith("abs("):
        absolute, text = True, text[4:-1]
    if text.startswith("sext("):
        sign_extends, text = True, text[5:-1]
    kind, index, count = _register(text)
    return Operand(text, kind, index, count, negate, absolute, sign_extends)


def _register(text: str) -> tuple[str, int, int]:
    if text in NAMED_SCALARS:
        return "s", NAMED_SCALARS[text], 2 if text in PAIRS else 1
    found = _REGISTER.match(text)
    if not found:
        return "", -1, 1
    first = int(found[2] or found[3])
    count = int(found[4]) - first + 1 if found[4] else 1
    return ("s", first + FIRST_TRAP_REGISTER, count) if found[1] == "ttmp" else (found[1], first, count)


def _split_at_commas(text: str) -> Iterator[str]:
    """The parts between commas that are outside brackets."""
    depth, part = 0, ""
    for character in text.strip():
        depth += (character in "[(") - (character in "])")
        if character == "," and depth == 0:
            yield part.strip()
            part = ""
        else:
            part += character
    if part.strip():
        yield part.strip()


def _key_and_value(word: str) -> tuple[str, str]:
    key, _, value = word.partition(":")
    return key, value
