"""PTX as data: a module's kernels, their parameters, registers and instructions.

Source: PTX ISA 9.0, "Syntax", "State Spaces, Types, and Variables". Supports nvcc's output, not the full language.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace

from tile2cu_runtime.ptx.errors import PtxError

_COMMENT = re.compile(r"//[^\n]*")
_KERNEL = re.compile(r"\.entry\s+([\w$]+)\s*\((.*?)\)([^{;]*)\{", re.DOTALL)
_CLUSTER = re.compile(r"\.reqnctapercluster\s+(\d+)(?:\s*,\s*(\d+))?(?:\s*,\s*(\d+))?")
_PARAMETER = re.compile(r"\.param\s+(?:\.align\s+(\d+)\s+)?\.(\w+)\s+(?:\.ptr[^,]*?)?([\w$]+)(?:\[(\d+)\])?\s*$")
_VARIABLE = re.compile(r"\.(shared|local)\s+(?:\.align\s+(\d+)\s+)?\.(\w+)\s+([\w$]+)(?:\[(\d*)\])?$")
_REGISTERS = re.compile(r"\.reg\s+\.(\w+)\s+(.*)", re.DOTALL)
_LABEL = re.compile(r"\s*([\w$]+):(?!:)")
_GUARD = re.compile(r"@(!?)([%\w$]+)\s+")

BYTES = {"pred": 1} | {f"{kind}{bits}": bits // 8 for kind in "busf" for bits in (8, 16, 32, 64)}
BYTES |= {"f16x2": 4, "bf16": 2, "bf16x2": 4, "tf32": 4}


@dataclass(frozen=True, kw_only=True)
class Instruction:
    """`name` with its modifiers; operands as written, vectors {a, b} as one; `guard` is (register, wanted value)."""

    line: int
    name: str
    operands: tuple[str, ...]
    guard: tuple[str, bool] | None = None

    @property
    def operation(self) -> str:
        return self.name.partition(".")[0]

    @property
    def modifiers(self) -> tuple[str, ...]:
        return tuple(self.name.split(".")[1:])

    def __str__(self) -> str:
        return f"{self.name} {', '.join(self.operands)}".strip()


@dataclass(frozen=True, kw_only=True)
class Variable:
    """A variable in shared or local memory, or a parameter: first byte, and number of bytes."""

    offset: int
    bytes: int


@dataclass(frozen=True, kw_only=True)
class Kernel:
    """A kernel. `registers` are bytes by name, 1 for predicates; dynamic shared memory starts after `shared_bytes`;
    `cluster`: the cluster shape along x, y and z.
    """

    name: str
    parameters: tuple[Variable, ...]
    symbols: Mapping[str, Variable]
    registers: Mapping[str, int]
    instructions: tuple[Instruction, ...]
    labels: Mapping[str, int]
    shared_bytes: int
    local_bytes: int
    cluster: tuple[int, int, int] = (1, 1, 1)

    @functools.cached_property
    def uses_async_proxy(self) -> bool:
        """Whether it has wgmma, or async-proxy copies."""
        return any(each.operation == "wgmma" or each.modifiers[:2] == ("async", "bulk") for each in self.instructions)


def parse(text: str) -> dict[str, Kernel]:
    """The kernels of a module, by name. Errors: PtxError for unsupported syntax."""
    text = _COMMENT.sub("", text)
    kernels: dict[str, Kernel] = {}
    outside = list(_variables(_outside(text)))
    line, counted = 1, 0
    for found in _KERNEL.finditer(text):
        end = _closing(text, found.end())
        line, counted = line + text.count("\n", counted, found.end()), found.end()
        body = _Body(found[1], found[2], outside).read(text[found.end() : end], line)
        cluster = _CLUSTER.search(found[3])
        if cluster:
            x, y, z = (int(each or 1) for each in cluster.groups())
            body = replace(body, cluster=(x, y, z))
        kernels[found[1]] = body
    return kernels


def _outside(text: str) -> str:
    """The declarations before the first kernel: shared memory."""
    found = _KERNEL.search(text)
    return text[: found.start()] if found else text


def _closing(text: str, at: int) -> int:
    depth = 1
    while depth:
        at = next((place for place in range(at, len(text)) if text[place] in "{}"), len(text))
        if at == len(text):
            raise PtxError("a kernel has no closing brace")
        depth += 1 if text[at] == "{" else -1
        at += 1
    return at - 1


def _variables(text: str) -> Iterator[tuple[str, str, int, int]]:
    """Space, name, alignment and bytes of declared variables; 0 bytes for an unsized array."""
    for statement in text.split(";"):
        if found := _VARIABLE.search(statement.strip()):
            open_array = found[5] == ""
            count = 0 if open_array else int(found[5] or 1)
            yield found[1], found[4], int(found[2] or BYTES[found[3]]), count * BYTES[found[3]]


class _Body:
    """Parses one kernel, statement by statement."""

    def __init__(self, name: str, parameters: str, outside: list[tuple[str, str, int, int]]) -> None:
        self._name = name
        self._symbols: dict[str, Variable] = {}
        self._registers: dict[str, int] = {}
        self._instructions: list[Instruction] = []
        self._labels: dict[str, int] = {}
        self._ends = {"shared": 0, "local": 0}
        self._parameters = tuple(self._parameter_list(parameters))
        self._outside = outside
        # Registers and labels of a braced block are local to it: inline assembly repeats their names.
        self._scopes: list[dict[str, str]] = []
        self._scope_starts: list[int] = []  # index of the first instruction
        self._scope_count = 0

    def read(self, text: str, line: int) -> Kernel:
        self._place(declared for declared in self._outside if declared[3])
        for statement, at in _statements(text, line):
            self._statement(statement, at)
        # Dynamic shared memory is last, and all unsized arrays start at the same address.
        for space, name, alignment, size in self._outside:
            if not size:
                self._symbols[name] = Variable(offset=_aligned(self._ends[space], alignment), bytes=0)
        return Kernel(
            name=self._name,
            parameters=self._parameters,
            symbols=self._symbols,
            registers=self._registers,
            instructions=tuple(self._instructions),
            labels=self._labels,
            shared_bytes=_aligned(self._ends["shared"], 1024) if self._ends["shared"] else 0,
            local_bytes=self._ends["local"],
        )

    def _parameter_list(self, text: str) -> Iterator[Variable]:
        end = 0
        for part in filter(None, (part.strip() for part in text.split(","))):
            found = _PARAMETER.search(part)
            if not found:
                raise PtxError(f"parameter {part!r} of {self._name}")
            size = BYTES[found[2]] * int(found[4] or 1)
            end = _aligned(end, int(found[1] or BYTES[found[2]]))
            self._symbols[found[3]] = Variable(offset=end, bytes=size)
            yield self._symbols[found[3]]
            end += size

    def _place(self, declared: Iterator[tuple[str, str, int, int]]) -> None:
        for space, name, alignment, size in declared:
            offset = _aligned(self._ends[space], alignment)
            self._symbols[name] = Variable(offset=offset, bytes=size)
            self._ends[space] = offset + size

    def _statement(self, text: str, line: int) -> None:
        if text == "{":
            self._scopes.append({})
            self._scope_starts.append(len(self._instructions))
        elif text == "}":
            self._scopes.pop()
            self._scope_starts.pop()
        elif text.endswith(":"):
            self._labels[self._label(text[:-1])] = len(self._instructions)
        elif found := _REGISTERS.match(text):
            self._declare(BYTES[found[1]], found[2])
        elif text.startswith(".") and _VARIABLE.search(text):
            self._place(_variables(text))
        elif not text.startswith("."):  # .loc, .pragma and the like have no effect
            self._instructions.append(self._instruction(text, line))

    def _label(self, name: str) -> str:
        """The label's unique name in the kernel; earlier branches to it in its block are renamed, too."""
        if not self._scopes:
            return name
        self._scope_count += 1
        own = self._scopes[-1][name] = f"{name}@{self._scope_count}"
        for at, each in enumerate(self._instructions[self._scope_starts[-1] :], self._scope_starts[-1]):
            if each.operation == "bra":
                operands = tuple(own if part == name else part for part in each.operands)
                self._instructions[at] = replace(each, operands=operands)
        return own

    def _declare(self, size: int, names: str) -> None:
        for name in (part.strip() for part in names.split(",")):
            if found := re.fullmatch(r"(.*)<(\d+)>", name):
                self._registers |= {f"{found[1]}{number}": size for number in range(int(found[2]))}
            elif self._scopes:
                self._scope_count += 1
                self._scopes[-1][name] = f"{name}@{self._scope_count}"
                self._registers[self._scopes[-1][name]] = size
            else:
                self._registers[name] = size

    def _instruction(self, text: str, line: int) -> Instruction:
        guard = None
        if found := _GUARD.match(text):
            guard = (self._named(found[2]), not found[1])
            text = text[found.end() :]
        name, _, rest = text.partition(" ") if " " in text else text.partition("\t")
        operands = tuple(self._renamed(part) for part in _operands(rest.strip()))
        return Instruction(line=line, name=name.strip(), operands=operands, guard=guard)

    def _named(self, name: str) -> str:
        return next((scope[name] for scope in reversed(self._scopes) if name in scope), name)

    def _renamed(self, operand: str) -> str:
        return re.sub(r"%?[A-Za-z_$][\w$]*", lambda found: self._named(found[0]), operand) if self._scopes else operand


def _statements(text: str, line: int) -> Iterator[tuple[str, int]]:
    """Statements with their lines: labels end in a colon, braces are separate, others have no semicolon."""
    start = counted = 0
    for found in re.finditer(r"[;{}:\n]", text):
        at, head = found.start(), text[start : found.start()].strip()
        if found[0] == ";":
            if head:
                begin = start + _indent(text[start:at])
                line, counted = line + text.count("\n", counted, begin), begin
                yield " ".join(head.split()), line
            start = at + 1
        elif found[0] in "{}" and not head:
            yield found[0], line
            start = at + 1
        elif (found[0] == "\n" and head.startswith((".loc", ".pragma", ".file"))) or (
            found[0] == ":" and _LABEL.fullmatch(text[start : at + 1])
        ):
            if found[0] == ":":
                yield head + ":", line
            start = at + 1


def _indent(text: str) -> int:
    return len(text) - len(text.lstrip())


def _operands(text: str) -> Iterator[str]:
    """The parts between commas outside braces and brackets."""
    depth, start = 0, 0
    for at, letter in enumerate(text):
        depth += (letter in "{[(") - (letter in "}])")
        if letter == "," and not depth:
            yield text[start:at].strip()
            start = at + 1
    if last := text[start:].strip():
        yield last


def _aligned(value: int, multiple: int) -> int:
    return -(-value // multiple) * multiple
