"""What NVIDIA's tools print of a cubin: ptxas -v per kernel, and nvdisasm's SASS counted by class of instruction."""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass

_ENTRY = re.compile(r"Compiling entry function '(\S+)'")
_SPILLS = re.compile(r"(\d+) bytes stack frame, (\d+) bytes spill stores, (\d+) bytes spill loads")
_REGISTERS = re.compile(r"Used (\d+) registers")
_STATIC = re.compile(r"(\d+) bytes smem")
_FUNCTION = re.compile(r"^\.text\.(\S+):")
_INSTRUCTION = re.compile(r"^\s+/\*[0-9a-f]{4,}\*/\s+(?:@!?U?P\w+\s+)?([A-Z][A-Z0-9_]*)")

# Classes by how a mnemonic begins; the first match counts. [CUDA Binary Utilities, "Instruction Set Reference"]
_CLASSES = (
    (r"(HG|IG|QG|BG|H|I|D|Q|B|OH|OQ|UTCH|UTCQ|UTCO)MMA", "mma"),
    (r"[FDH]FMA", "fma"),
    (r"(FADD|FMUL|DADD|DMUL|HADD|HMUL|FSEL|FMNMX|FSET|HSET|HMNMX|FCHK|DSET)", "float"),
    (r"MUFU", "special function"),
    (r"(UTMA|UBLKCP|UBLKRED|UBLKPF)", "tma"),
    (r"LDGSTS", "async copy"),
    (r"(BAR|SYNCS|WARPSYNC|DEPBAR|LDGDEPBAR|ARRIVES|WARPGROUP|MEMBAR|FENCE|UCGABAR|ERRBAR)", "synchronisation"),
    (r"(SHFL|VOTE|REDUX|MATCH)", "warp"),
    (r"(LDG|LD$)", "global load"),
    (r"(STG|ST$)", "global store"),
    (r"(ATOM|RED)", "atomic"),
    (r"(LDS|LDSM|STS|STSM)", "shared"),
    (r"(LDL|STL)", "local"),
    (r"(BRA|BRX|JMP|EXIT|CALL|RET|BSSY|BSYNC|BREAK|NANOSLEEP|YIELD)", "control"),
    (r"(I2F|F2I|F2F|I2I|F2FP|I2FP|FRND)", "conversion"),
    (r"NOP", "nop"),
)
_CLASS_OF = tuple((re.compile(pattern), name) for pattern, name in _CLASSES)


@dataclass(frozen=True, kw_only=True)
class Assembled:
    """What ptxas says of one kernel: `registers` per thread, bytes per thread, and static shared memory per block."""

    symbol: str
    registers: int
    stack_bytes: int
    spill_store_bytes: int
    spill_load_bytes: int
    shared_static: int


def read_ptxas(text: str) -> tuple[Assembled, ...]:
    """The kernels that `ptxas -v` lists, in its order. Device functions that are called count to no kernel."""
    found: list[Assembled] = []
    for part in re.split(r"(?=ptxas info\s+: Compiling entry function)", text):
        symbol, used = _ENTRY.search(part), _REGISTERS.search(part)
        if not symbol or not used:
            continue
        spills, static = _SPILLS.search(part), _STATIC.search(part)
        stack, stores, loads = map(int, spills.groups()) if spills else (0, 0, 0)
        found.append(
            Assembled(
                symbol=symbol[1],
                registers=int(used[1]),
                stack_bytes=stack,
                spill_store_bytes=stores,
                spill_load_bytes=loads,
                shared_static=int(static[1]) if static else 0,
            )
        )
    return tuple(found)


def count_sass(text: str) -> dict[str, Counter[str]]:
    """Instructions in the text of each function that `nvdisasm -c` prints, by class: not executions."""
    counts: dict[str, Counter[str]] = {}
    current: Counter[str] = Counter()
    for line in text.splitlines():
        if function := _FUNCTION.match(line):
            current = counts.setdefault(function[1], Counter())
        elif instruction := _INSTRUCTION.match(line):
            current[class_of(instruction[1])] += 1
    return counts


def class_of(mnemonic: str) -> str:
    """The class of a SASS mnemonic; what none of the patterns begins with is integer or data movement."""
    return next((name for pattern, name in _CLASS_OF if pattern.match(mnemonic)), "integer and moves")
