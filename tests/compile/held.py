"""Loop-invariant A operands of wgmma in registers: their number in PTX, and the number that ptxas keeps in registers.

ptxas 12.8 to 13.0 may silently assign the registers of a loop-invariant A operand to another value of the loop. PTX
shows which operands are invariant, machine code which registers the loop writes.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

# Machine code names 32-bit registers: how many an instruction writes from its first one on, where that is not one.
_WIDTHS = ((r"^HGMMA\.64x(\d+)", None), (r"\.128\b|\.M88\.4|\.MT88\.4", 4), (r"\.64\b|\.WIDE\b|\.M88\.2|\.MT88\.2", 2))
_NO_RESULT = re.compile(
    r"^(ST|RED|BRA|BAR|SYNCS|UTMA|UBLK|WARP|EXIT|R2UR|MEMBAR|FENCE|DEPBAR|NANOSLEEP|BSYNC|USETMAXREG)"
)


@dataclass(frozen=True)
class Instruction:
    opcode: str
    operands: str
    loops: frozenset[int]  # the loops that contain it, by the index of their last instruction


def held_in_ptx(text: str) -> int:
    """The number of wgmma instructions in a loop whose register operand A the loop does not write."""
    program = _in_loops([line for part in re.split(r";|(?<=:)\n", _code(text)) if (line := part.strip("{} \t\n"))])
    writers: dict[str, list[Instruction]] = {}
    for each in program:
        for register in _written_by_ptx(each):
            writers.setdefault(register, []).append(each)

    def unchanging(register: str, loop: int, depth: int = 8) -> bool:
        inside = [writer for writer in writers.get(register, ()) if loop in writer.loops]
        pure = depth > 0 and len(inside) == 1 and re.match(r"mov|cvt|and|or|shl|shr|lop3|prmt|add", inside[0].opcode)
        return (
            not inside
            or bool(pure)
            and all(unchanging(source, loop, depth - 1) for source in _registers(inside[0].operands)[1:])
        )

    products = [each for each in program if each.opcode.startswith("wgmma.mma_async")]
    first = [(each, re.search(r"\}\s*,\s*\{(.*?)\}", each.operands)) for each in products]
    return sum(
        any(all(unchanging(register, loop) for register in _registers(operand[1])) for loop in each.loops)
        for each, operand in first
        if operand
    )


def held_in_machine_code(text: str) -> int:
    """The same in nvdisasm's output: operands whose registers no instruction of the loop writes."""
    lines = re.findall(r"^(?:\s*/\*[0-9a-f]+\*/\s+)?(@!?U?P\w+ .*?|\.L_x_\d+:|[A-Z].*?)\s*;?\s*$", text, re.MULTILINE)
    program = _in_loops([re.sub(r"`?\(?\.(L_x_\d+)\)?", r"$\1", line) for line in lines])
    found = 0
    for each in program:
        operand = re.match(r"R\d+, R(\d+),", each.operands) if each.opcode.startswith("HGMMA") else None
        if operand:
            registers = set(range(int(operand[1]), int(operand[1]) + 4))
            found += any(
                not any(registers & _written(other) for other in program if loop in other.loops) for loop in each.loops
            )
    return found


def _code(text: str) -> str:
    return re.sub(r"//.*", "", text)


def _in_loops(lines: list[str]) -> list[Instruction]:
    """The natural loops of the flow graph: of a branch back, all from which it is reached not by way of its target."""
    labels = {line[:-1]: at for at, line in enumerate(lines) if re.fullmatch(r"\$L\w+:", line)}
    before: dict[int, list[int]] = {at: [] for at in range(len(lines))}
    back: list[tuple[int, int]] = []
    for at, line in enumerate(lines):
        branch = re.search(r"\b(?:bra|BRA)\b.*?(\$L\w+)", line)
        if branch and branch[1] in labels:
            before[labels[branch[1]]].append(at)
            back += [(at, labels[branch[1]])] if labels[branch[1]] <= at else []
        if at + 1 < len(lines) and not re.match(r"(bra|BRA|ret|EXIT)\b", line):
            before[at + 1].append(at)
    loops = {at: loop for at, target in back if 0 not in (loop := _reaching(at, target, before))}
    parts = [re.sub(r"^@!?%?\w+\s+", "", line).partition(" ") for line in (re.sub(r"\s+", " ", line) for line in lines)]
    return [
        Instruction(opcode, operands, frozenset(end for end, loop in loops.items() if at in loop))
        for at, (opcode, _, operands) in enumerate(parts)
    ]


def _reaching(at: int, start: int, before: dict[int, list[int]]) -> set[int]:
    found, waiting = {start, at}, [at] if at != start else []
    while waiting:
        new = [each for each in before[waiting.pop()] if each not in found]
        found.update(new)
        waiting += new
    return found


def _registers(operands: str) -> list[str]:
    return re.findall(r"%[a-z]+\d+", operands)


def _written_by_ptx(each: Instruction) -> Iterator[str]:
    if not re.match(r"st\.|red\.|bra|bar\.|fence|mbarrier\.(init|arrive)|cp\.", each.opcode):
        first = re.match(r"\{(.*?)\}", each.operands)
        yield from _registers(first[1]) if first else _registers(each.operands)[:1]


def _written(each: Instruction) -> set[int]:
    first = re.search(r"\bR(\d+)", each.operands)
    if _NO_RESULT.match(each.opcode) or not first:
        return set()
    width = 1
    for pattern, registers in _WIDTHS:
        if found := re.search(pattern, each.opcode):
            width = registers or int(found[1]) // 2
            break
    return set(range(int(first[1]), int(first[1]) + width))
