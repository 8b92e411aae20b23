"""Parses an emitted source: its constants, kernels and tensors, and the value of its index expressions.

Nothing here uses tile2cu: what tests compute from it is independent of the transpiler's data.
"""

import functools
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from math import prod
from random import Random
from types import CodeType

_CONSTANTS = re.compile(r"^\s*constexpr int ([^;{}]+);", re.M)
_BRACKET = re.compile(r"[()\[\]{}]")
_NAMED = re.compile(r"\bconst int ([^;{}]+);")
SIZES = {
    **dict.fromkeys(("float", "int", "int32_t", "uint32_t", "tfloat32"), 4),
    **dict.fromkeys(("half", "bfloat16"), 2),
    **dict.fromkeys(("uint8_t", "int8_t", "bool", "float8_e4m3", "float8_e5m2"), 1),
}


class Anything(int):
    """A number that nothing is known of: calls and members of it are such numbers, too."""

    def __call__(self, *_: object) -> "Anything":
        return Anything(self * 7 + 3)

    def __getattr__(self, _: str) -> "Anything":
        return Anything(self * 5 + 1)


class Values(dict[str, object]):
    """Names and what they are in one execution; those that nothing defines get random numbers."""

    def __init__(self, known: dict[str, int], definitions: dict[str, str], random: Random) -> None:
        super().__init__(known)
        self.definitions, self.random = definitions, random

    def __missing__(self, name: str) -> object:
        if name in _FUNCTIONS:
            return _FUNCTIONS[name]
        definition = self.definitions.get(name)
        self[name] = Anything(self.random.randrange(64))  # of a definition that names itself
        if definition is not None:
            self[name] = value(definition, self)
        return self[name]


@dataclass(frozen=True, kw_only=True)
class View:
    """A tensor as a kernel accesses it: the stated row alignment in bytes, None if the launcher checks it."""

    name: str
    alignment: int | None
    element: int
    extents: tuple[str, ...]
    strides: tuple[str, ...]  # of a strided tensor

    def row_strides(self, values: Values) -> list[int]:
        """The distances between rows, along every dimension but the last, in elements."""
        if self.strides:
            return [int(value(stride, values)) for stride in self.strides[:-1]]
        found, stride = [], 1
        for extent in reversed(self.extents[1:]):
            stride *= int(value(extent, values))
            found.append(stride)
        return found


@dataclass(frozen=True, kw_only=True)
class KernelText:
    """One kernel of a source, with the constants that it sees.

    `aligned_if`: when the launcher takes the instance whose rows are aligned to `instance` bytes; 0 without a choice.
    """

    aligned_if: str
    instance: int
    constants: dict[str, int]
    head: str  # what comes before it, from the kernel before on
    parameters: tuple[tuple[str, str], ...]  # (type, name)
    body: str
    definitions: dict[str, str] = field(default_factory=dict)

    def views(self) -> Iterator[View]:
        """The tensors that it reaches by pointer."""
        types = {name: kind for kind, name in self.parameters}
        for found in re.finditer(r"const auto (\w+) =\s+tl::(tensor|strided_tensor)<([\w:<>]+)>\(", self.body):
            first, *extents = arguments(self.body, found.end() - 1)
            kind = re.sub(r"const|__restrict__|[*]|tl::|\s", "", types[first])
            if kind not in SIZES:
                continue
            strides: tuple[str, ...] = ()
            if found[2] == "strided_tensor":
                strides, extents = tuple(arguments(extents[0], extents[0].index("("))), extents[1:]
            start = re.fullmatch(r"tl::Aligned<(\d+)>", found[3])
            if found[3] == "tl::AnyAlignment":
                continue
            yield View(
                name=found[1],
                alignment=int(start[1]) if start else None,
                element=SIZES[kind],
                extents=tuple(re.sub(r"^tl::predicated\((.*)\)$", r"\1", extent) for extent in extents),
                strides=strides,
            )

    def tiles(self, view: View) -> Iterator[str]:
        """The first column of each tile of the tensor that the kernel copies."""
        for found in re.finditer(rf"(?<![\w.]){view.name}(?=\(|\.tile\()", self.body):
            end = found.end()
            kept = True
            if self.body[end] == "(":
                fixed = arguments(self.body, end)
                kept, end = fixed[-1] == "tl::all", closing(self.body, end) + 1
            if kept and self.body.startswith(".tile(", end):
                yield arguments(self.body, end + len(".tile"))[-1]


@dataclass(frozen=True)
class Source:
    """The kernels of an emitted source, and the conditions under which its launcher takes a call."""

    about: str  # the comment above it, as one line
    kernels: tuple[KernelText, ...]
    sizes: tuple[str, ...]  # of a call
    rejected: tuple[str, ...]

    @staticmethod
    @functools.cache
    def of(text: str) -> "Source":
        """Parses a source."""
        device, _, host = text.partition("// ---- host")
        constants: dict[str, int] = {}
        kernels, at = [], 0
        for found in re.finditer(r"\b__global__ [^;{}]*?\b\w+_kernel\(", device):
            head = device[at : found.start()]
            constants = {**constants, **_constants(head, constants)}
            end = closing(device, found.end() - 1)
            at = closing(device, device.index("{", end))
            body = device[end:at]
            parameters = tuple(_split_type(each) for each in arguments(device, found.end() - 1))
            definitions = dict(_assignments(each) for each in _each(_NAMED, body))
            namespace = re.findall(r"^namespace (\w+) {", device[:at], re.M)[-1]
            kernels.append(
                KernelText(
                    aligned_if=_aligned_if(host, namespace),
                    instance=_instance(host, namespace),
                    constants=constants,
                    head=head,
                    parameters=parameters,
                    body=body,
                    definitions=definitions,
                )
            )
        assert kernels
        return Source(
            " ".join(line.removeprefix("//").strip() for line in text[: text.index("#include")].splitlines()),
            tuple(kernels),
            tuple(re.findall(r"int (\w+),", host[host.index("_supports(") : host.index("int device)")])),
            tuple(re.findall(r"if \(([^;{}]*)\)\s+return TL_(?:NOT_SUPPORTED|INVALID_SIZE);", host)),
        )

    def executions(self, kernel: KernelText, count: int, *, aligned: bool = False) -> Iterator[Values]:
        """Calls that the launcher takes: run-time sizes, block indices and iterations at random.

        `aligned`: those for which it launches the instance whose rows are aligned.
        """
        random, left = Random(1), 1000 * count
        sizes = [name for kind, name in kernel.parameters if kind == "int"]
        while count and left:
            left -= 1
            known = {size: random.randrange(1, 20) * random.choice((1, 8, 32, 256)) for size in sizes}
            values = Values({**kernel.constants, **known}, kernel.definitions, random)
            wanted = not aligned or value(kernel.aligned_if, values)
            if wanted and not any(value(each, values) for each in self.rejected):
                count -= 1
                yield values
        assert not count, "the launcher takes too few of the calls that were tried"


def _aligned_if(host: str, namespace: str) -> str:
    """The condition under which the launcher takes the instance of a kernel whose rows are aligned."""
    _, _, launch = host.rpartition(f"using namespace {namespace};")
    found = re.search(r"const auto chosen =\s+(.*?) \?", launch)
    return found[1] if found else ""


def _instance(host: str, namespace: str) -> int:
    """The alignment of rows in that instance."""
    _, _, launch = host.rpartition(f"using namespace {namespace};")
    found = re.search(r"const auto chosen =[^;]*? \?\s+\w+<tl::Aligned<(\d+)>>", launch)
    return int(found[1]) if found else 0


def value(expression: str, values: Values) -> int:
    """What an integer expression of C++ is."""
    return eval(_in_python(expression), {}, values)  # type: ignore[no-any-return]


@functools.cache
def _in_python(expression: str) -> CodeType:
    python = " ".join(expression.split()).replace("tl::", "").replace("/", "//")
    python = re.sub(r"!(?!=)", " not ", python.replace("&&", " and ").replace("||", " or "))
    python = re.sub(r"\bwork\.(?=\w)", "", python)  # members have the names of what fills them
    return compile(_conditionals(python).strip(), expression, "eval")


def _conditionals(text: str) -> str:
    """An expression with `a ? b : c` as Python has it."""
    mark = text.find("?")
    if mark < 0:
        return text
    first, last = _operand(text, mark, -1), _operand(text, mark, 1)
    inside = text[first:last]
    colon = _colon(inside, mark - first)
    condition, then, other = inside[: mark - first], inside[mark - first + 1 : colon], inside[colon + 1 :]
    return _conditionals(f"{text[:first]}(({then}) if ({condition}) else ({other})){text[last:]}")


def _colon(text: str, mark: int) -> int:
    """The colon that belongs to a question mark."""
    open_ = 0
    for at in range(mark, len(text)):
        open_ += (text[at] in "(?") - (text[at] in "):")
        if open_ == 0:
            return at
    raise ValueError(f"no colon in {text}")


def _operand(text: str, start: int, step: int) -> int:
    """Where the brackets around a place, or the argument that it is in, begin (step -1) or end (1)."""
    depth, at = 0, start
    while 0 <= at + step < len(text):
        at += step
        depth += ((text[at] == "(") - (text[at] == ")")) * step
        if depth < 0 or (depth == 0 and text[at] == ","):
            return at if step > 0 else at + 1
    return len(text) if step > 0 else 0


_FUNCTIONS: dict[str, object] = {
    "ceildiv": lambda a, b: -(-a // b),
    "tile_count_fits_int": lambda *extents: prod(extents) <= 1 << 30,
    "fits_int": lambda extent: -(2**31) <= extent < 2**31,
    "int64_t": lambda extent: extent,
    "max_grid_yz": 65535,
    "INT32_MAX": 2**31 - 1,
    "UINT32_MAX": 2**32 - 1,
    "int": int,
    "min": min,
    "max": max,
}


def function(name: str) -> object:
    """A function or constant of the library. Raises KeyError."""
    return _FUNCTIONS[name]


def closing(text: str, opening: int) -> int:
    """Where the bracket that opens at `opening` is closed."""
    depth = 0
    for found in _BRACKET.finditer(text, opening):
        depth += 1 if found[0] in "([{" else -1
        if not depth:
            return found.start()
    raise ValueError("a bracket is not closed")


def arguments(text: str, opening: int) -> list[str]:
    """The arguments in the brackets that open at `opening`."""
    return _parts(text[opening + 1 : closing(text, opening)])


def _parts(text: str) -> list[str]:
    parts, depth, start = [], 0, 0
    for at, letter in enumerate(text):
        depth += (letter in "([{") - (letter in ")]}")
        if letter == "," and not depth:
            parts.append(text[start:at].strip())
            start = at + 1
    return [*parts, text[start:].strip()]


def _each(pattern: re.Pattern[str], text: str) -> Iterator[str]:
    """The declarators of declarations."""
    for found in pattern.finditer(text):
        yield from (part for part in _parts(found[1]) if "=" in part)


def _assignments(declarator: str) -> tuple[str, str]:
    name, _, expression = declarator.partition("=")
    return name.strip(), expression.strip()


def _constants(text: str, known: dict[str, int]) -> dict[str, int]:
    found: dict[str, int] = {}
    for name, expression in map(_assignments, _each(_CONSTANTS, text)):
        found[name] = int(value(expression, Values({**known, **found}, {}, Random(0))))
    return found


def _split_type(parameter: str) -> tuple[str, str]:
    kind, _, name = parameter.rpartition(" ")
    return kind, name
