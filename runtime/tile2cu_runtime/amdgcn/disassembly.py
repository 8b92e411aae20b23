"""Disassembly of a code object: by llvm-objdump if it supports the architecture, else from the assembly."""

from __future__ import annotations

import importlib.util
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from tile2cu_runtime.amdgcn.errors import SimulatorError
from tile2cu_runtime.amdgcn.instruction import Instruction, parse_instruction

# LLVM 20 is the first version that supports gfx950.
OBJDUMPS = {
    "gfx90a": ("llvm-objdump-19", "llvm-objdump-20", "llvm-objdump-21", "llvm-objdump"),
    "gfx942": ("llvm-objdump-19", "llvm-objdump-20", "llvm-objdump-21", "llvm-objdump"),
    "gfx950": ("llvm-objdump-20", "llvm-objdump-21", "llvm-objdump-22"),
}
SYMBOLIZERS = ("llvm-symbolizer-19", "llvm-symbolizer-20", "llvm-symbolizer-21", "llvm-symbolizer")

_OBJDUMP_LINE = re.compile(r"\s+(\S.*?)\s*// ([0-9A-F]{12}): ([0-9A-F ]+)")
_ENCODED_LINE = re.compile(r"\s+(\S.*?)\s*; encoding: \[(.*?)\]")
_BRANCH = re.compile(r"s_c?branch")


@dataclass(frozen=True)
class Line:
    """An instruction as text; address and size in bytes."""

    address: int
    text: str
    size: int


class Listing:
    """The instructions of a code object by address; a line is parsed on first access."""

    def __init__(self, lines: tuple[Line, ...]) -> None:
        self._lines = {line.address: line for line in lines}
        self._parsed: dict[int, Instruction] = {}

    def at(self, address: int) -> Instruction:
        """The instruction at an address. SimulatorError if none begins there."""
        if address not in self._parsed:
            line = self._lines.get(address)
            if line is None:
                raise SimulatorError(f"the kernel jumps to {address:#x}, where no instruction begins")
            self._parsed[address] = parse_instruction(line.text, line.address, line.size)
        return self._parsed[address]

    @cached_property
    def leaders(self) -> frozenset[int]:
        """The targets of direct branches, which begin basic blocks."""
        branches = (address for address, line in self._lines.items() if _BRANCH.match(line.text))
        return frozenset(self.at(address).branch_target() for address in branches)

    def inside_loops(self, prefix: str) -> bool:
        """Whether an instruction with this name prefix is between a backward branch and its target."""
        places = [address for address, line in self._lines.items() if line.text.startswith(prefix)]
        branches = [address for address, line in self._lines.items() if _BRANCH.match(line.text)]
        return any(self.at(end).branch_target() <= place <= end for end in branches for place in places)

    def texts(self) -> list[str]:
        """All instructions, in address order."""
        return [self._lines[address].text for address in sorted(self._lines)]

    def texts_between(self, start: int, end: int) -> list[str]:
        """The instructions whose addresses are in [start, end)."""
        return [self._lines[address].text for address in sorted(self._lines) if start <= address < end]

    def names(self) -> frozenset[str]:
        """All mnemonics."""
        return frozenset(text.partition(" ")[0] for text in self.texts())


def disassemble(path: Path, target: str, symbols: Mapping[str, int]) -> Listing:
    """All instructions of the file.

    For gfx950 without LLVM 20, the assembly (k.s for k.hsaco) must be in the same folder, and the ziglang wheel
    installed: its clang assembles it again and reports the size of each instruction.
    """
    for tool in OBJDUMPS[target]:
        if shutil.which(tool):
            text = _run([tool, "-d", "--no-leading-headers", str(path)])
            return Listing(tuple(_objdump_lines(text)))
    assembly = path.with_suffix(".s")
    if importlib.util.find_spec("ziglang") is None or not assembly.exists():
        raise SimulatorError(
            f"{path.name} is for {target}: needs one of {', '.join(OBJDUMPS[target])}, "
            f"or the ziglang wheel and {assembly.name} beside it"
        )
    return Listing(tuple(_assembled_lines(assembly, target, symbols)))


def zig(*arguments: str) -> str:
    """The output of the ziglang wheel's compiler."""
    return _run([sys.executable, "-m", "ziglang", *arguments])


def _run(command: list[str]) -> str:
    done = subprocess.run(command, capture_output=True, encoding="utf-8", errors="replace")
    if done.returncode:
        raise SimulatorError(f"`{' '.join(command)}` failed: {done.stderr.strip()}")
    return done.stdout


def _objdump_lines(text: str) -> Iterator[Line]:
    for line in text.splitlines():
        if found := _OBJDUMP_LINE.match(line):
            yield Line(int(found[2], 16), found[1], 4 * len(found[3].split()))


def _assembled_lines(assembly: Path, target: str, symbols: Mapping[str, int]) -> Iterator[Line]:
    """The lines of `clang -cc1as -show-encoding`, with labels replaced by the numbers that llvm-objdump prints."""
    options = ["-triple", "amdgcn-amd-amdhsa", "-target-cpu", target, "-filetype", "asm", "-show-encoding"]
    text = zig("clang", "-cc1as", *options, str(assembly), "-o", "-")
    lines: list[Line] = []
    labels: dict[str, int] = {}
    address: int | None = None
    for line in text.splitlines():
        if found := re.match(r"([\w.$]+):", line):
            address = symbols.get(found[1], address)
            if address is not None:
                labels[found[1]] = address
        elif (found := _ENCODED_LINE.match(line)) and address is not None:
            lines.append(Line(address, found[1], len(found[2].split(","))))
            address += lines[-1].size
    return (_with_number(line, labels) for line in lines)


def _with_number(line: Line, labels: Mapping[str, int]) -> Line:
    name, _, label = line.text.partition(" ")
    if not _BRANCH.match(name) or label not in labels:
        return line
    return Line(line.address, f"{name} {(labels[label] - line.address - 4) // 4 & 0xFFFF}", line.size)


def source_frames(path: Path, address: int) -> tuple[tuple[str, int], ...]:
    """File and line of an instruction from the debug information, then of each inlined call."""
    tool = next(filter(shutil.which, SYMBOLIZERS), None)
    if tool is None:
        return ()
    answer = _run([tool, f"--obj={path}", "--functions=none", f"{address:#x}"])
    found = re.findall(r"^(.*):(\d+):\d+$", answer, re.MULTILINE)
    return tuple((file, int(line)) for file, line in found if int(line))
