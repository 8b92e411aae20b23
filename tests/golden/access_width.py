"""How wide the accesses of a kernel to a tensor are, from its text alone: the layouts of fragments, and vectors."""

import re
from collections.abc import Iterator

from tests.golden.source_text import KernelText, View, arguments

_ALIAS = re.compile(r"using (\w+) = tl::(\w+)<(.*)>;")
_FRAGMENT = re.compile(r"tl::Fragment<\w*:*:?\w+, (\w+)>\s+([^;]+);")
_COPY = re.compile(r"tl::(?:copy|atomic_|load)\w*(?:<[^;(]*>)?(?=\()")


def widest_copy(kernel: KernelText, view: View) -> int:
    """The bytes of the widest access of copies to the tensor; 0 without copies."""
    return max(_of_copies(kernel, view), default=0)


def widest_access(kernel: KernelText, view: View) -> int:
    """The same, of elementwise loops, too."""
    loops = re.finditer(r"tl::parallel\w*(?:<(\d+)>)?\(", kernel.body)
    vectors = [
        int(found[1] or 1)
        for found in loops
        if re.search(rf"\b{view.name}\(", " ".join(arguments(kernel.body, found.end() - 1)))
    ]
    return max([widest_copy(kernel, view), *(_power_of_two(each * view.element) for each in vectors)], default=0)


def _of_copies(kernel: KernelText, view: View) -> Iterator[int]:
    tiles = {tile: name for name, of in _FRAGMENT.findall(kernel.body) for tile in re.findall(r"\w+", of)}
    for found in _COPY.finditer(kernel.body):
        sides = arguments(kernel.body, found.end())
        if any(re.match(rf"{view.name}\b", side) for side in sides):
            other = next((side for side in sides if not re.match(rf"{view.name}\b", side)), "")
            run = _run(tiles[other], kernel.head) if other in tiles else None
            yield _power_of_two(run * view.element) if run is not None else 16


def _run(name: str, head: str) -> int | None:
    """The consecutive elements of a row that a thread holds, by the documentation of the layouts (docs/tl.md)."""
    kinds = {alias: (kind, rest) for alias, kind, rest in _ALIAS.findall(head)}
    kind, rest = kinds[name]
    if kind == "Slice":
        removed, _, of = rest.partition(", ")
        return 1 if removed != "0" else _run(of, head) if of in kinds else 2
    if kind == "Blocked":
        last = rest.rpartition(">")[2].strip(", ")
        return int(last.split(",")[0]) if last else 1
    return {"MmaAccumulator": 2, "MmaOperandA": 2, "WgmmaAccumulator": 2, "Replicated": 1, "SplitColumns": 1}.get(kind)


def _power_of_two(number: int) -> int:
    return min(16, number & -number)
