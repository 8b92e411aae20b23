"""The cost of a launch as instruction counts: no timing, no overlap."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from typing import Any

from tile2cu_runtime.amdgcn.block import Block
from tile2cu_runtime.amdgcn.instruction import Instruction
from tile2cu_runtime.amdgcn.instructions.access import width_of
from tile2cu_runtime.amdgcn.instructions.mfma_layout import cycles, parse_shape
from tile2cu_runtime.amdgcn.lds_banks import BankUse
from tile2cu_runtime.symbols import demangled

# The kinds of instructions in a report, by name prefix; the first match counts.
_KINDS = (
    ("v_mfma_", "mfma"), ("v_smfmac_", "mfma"), ("v_", "vector"), ("s_waitcnt", "wait"), ("s_barrier", "barrier"),
    ("s_load_", "scalar memory"), ("s_buffer_load", "scalar memory"), ("s_", "scalar"), ("ds_", "lds"),
    ("global_", "global"), ("flat_", "global"), ("buffer_", "global"), ("scratch_", "scratch"),
)  # fmt: skip


@dataclass(frozen=True, kw_only=True)
class InstructionCost:
    """One mnemonic, and the number of waves that executed it, in total."""

    name: str
    executed: int


@dataclass(frozen=True, kw_only=True)
class Measured:
    """Address-dependent costs: 64-byte lines of global requests, and busy cycles of the LDS banks."""

    global_lines: int
    lds: BankUse

    def __str__(self) -> str:
        lds = f"LDS banks busy for {self.lds.cycles} cycles, conflict-free {self.lds.ideal}"
        return f"global lines of 64 bytes {self.global_lines}; {lds}"


@dataclass(frozen=True, kw_only=True)
class CostReport:
    """Counts over the whole launch, in wave instructions.

    `mfma_cycles`: cycles in which the matrix cores are busy, summed over the waves. `lds_bytes`, `global_bytes`: by the
    instructions' widths, for all 64 lanes. `direct_to_lds`: global loads to LDS instead of registers. `measured` only
    if requested.
    """

    kernel: str
    waves: int
    instructions: tuple[InstructionCost, ...]
    kinds: tuple[tuple[str, int], ...]
    mfma_cycles: int
    lds_bytes: int
    global_bytes: int
    direct_to_lds: int
    measured: Measured | None

    @property
    def wave_instructions(self) -> int:
        return sum(each.executed for each in self.instructions)

    def count(self, kind: str) -> int:
        """Wave instructions of a kind: mfma, vector, scalar, lds, global, wait, barrier, ..."""
        return dict(self.kinds).get(kind, 0)

    def executed(self, *prefixes: str) -> int:
        """Wave instructions with one of these name prefixes, such as ds_read."""
        return sum(each.executed for each in self.instructions if each.name.startswith(prefixes))

    def as_data(self) -> dict[str, Any]:
        """The report as JSON data."""
        return asdict(self) | {
            "wave_instructions": self.wave_instructions,
            "instructions": {each.name: each.executed for each in self.instructions},
            "kinds": dict(self.kinds),
        }

    def __str__(self) -> str:
        lines = [f"{demangled(self.kernel)}: {self.wave_instructions} wave instructions in {self.waves} waves"]
        lines += [f"  {kind:<14}{count:>12}" for kind, count in self.kinds]
        lines.append(f"  matrix cores busy for {self.mfma_cycles} cycles ({self.mfma_cycles // self.waves} per wave)")
        lines.append(f"  LDS bytes {self.lds_bytes}, global bytes {self.global_bytes}")
        if self.measured:
            lines.append(f"  {self.measured}")
        return "\n".join(lines)


def cost_report(
    kernel: str, target: str, waves: int, executed: Iterable[tuple[Block, int]], measured: Measured | None
) -> CostReport:
    """The report of a launch; `executed` is the number of waves that executed each block."""
    names: Counter[str] = Counter()
    kinds: Counter[str] = Counter()
    totals: Counter[str] = Counter()
    for instruction, count in ((each, count) for block, count in executed for each in block.instructions):
        names[instruction.name] += count
        kind = kind_of(instruction)
        kinds[kind] += count
        if kind == "mfma":
            totals["cycles"] += count * mfma_cycles(instruction, target)
        elif kind in ("lds", "global"):
            totals[kind] += count * 64 * bytes_of(instruction)
            totals["direct"] += count * is_direct_to_lds(instruction)
    return CostReport(
        kernel=kernel,
        waves=waves,
        instructions=tuple(InstructionCost(name=name, executed=count) for name, count in names.most_common()),
        kinds=tuple(kinds.most_common()),
        mfma_cycles=totals["cycles"],
        lds_bytes=totals["lds"],
        global_bytes=totals["global"],
        direct_to_lds=totals["direct"],
        measured=measured,
    )


def kind_of(instruction: Instruction) -> str:
    return kind_of_name(instruction.name)


def kind_of_name(name: str) -> str:
    return next((kind for prefix, kind in _KINDS if name.startswith(prefix)), "other")


def count_kinds(texts: Iterable[str]) -> tuple[tuple[str, int], ...]:
    """Instructions by kind, the most frequent first: as they are in the code, not as executed."""
    return tuple(Counter(kind_of_name(text.partition(" ")[0]) for text in texts).most_common())


_FIRST_NARROW = 2  # cbsz and blgp: 0 and 1 are 8-bit formats


def mfma_cycles(instruction: Instruction, target: str) -> int:
    """Cycles of one MFMA; 0 if it is not in the tables."""
    shape = parse_shape(instruction.name, instruction.operands[1].count)
    formats = instruction.number("cbsz"), instruction.number("blgp")
    return cycles(shape, target, is_narrow=min(formats) >= _FIRST_NARROW) if shape else 0


def is_direct_to_lds(instruction: Instruction) -> bool:
    """Whether a global load writes to LDS: by its name, or by a buffer load's modifier."""
    return "_load_lds_" in instruction.name or ("lds" in instruction.modifiers and "_load_" in instruction.name)


def bytes_of(instruction: Instruction) -> int:
    """The bytes per lane of a memory instruction; 0 for others."""
    name = instruction.name
    if name.startswith("ds_"):
        return lds_bytes_of(name) * (2 if name.startswith(("ds_read2", "ds_write2")) else 1)
    width = width_of(name)
    return width.bytes if width else 4 * ("_atomic_" in name)


def lds_bytes_of(name: str) -> int:
    """The bytes per access of an LDS instruction: ds_read_u16_d16 has 2, ds_add_u32 4."""
    found = re.match(r"ds_(?:read|write)2?(?:st64)?_[biu](\d+)", name)
    return int(found[1]) // 8 if found else 4
