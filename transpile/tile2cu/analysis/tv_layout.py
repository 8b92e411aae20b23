"""A fragment's layout as CuTe writes it: (thread, value) -> offset in the tile, column-major.

CuTe documentation, "Layout": shape:stride, with the modes of threads and of values in brackets of their own.
"""

from collections.abc import Callable
from functools import lru_cache
from itertools import product

from tile2cu.analysis.elements import element
from tile2cu.core.layout import FragmentLayout

_Mode = tuple[int, int]  # extent and stride


@lru_cache(maxsize=64)
def tv_layout(layout: FragmentLayout) -> str:
    """The layout as a string of CuTe's, such as `((4,8),(2,2)):((32,1),(16,8))`.

    Empty where registers of a thread are beyond the tile's edge, or no such layout gives the same elements.
    """

    def offset(thread: int, value: int) -> int | None:
        at = element(layout, thread, value)
        if at is None:
            return None
        result, stride = 0, 1
        for index, extent in zip(at, layout.shape, strict=True):
            result, stride = result + index * stride, stride * extent
        return result

    threads = _modes(lambda thread: offset(thread, 0), layout.threads_of_block)
    values = _modes(lambda value: offset(0, value), layout.registers)
    if threads is None or values is None:
        return ""
    for thread, value in product(_samples(layout.threads_of_block), _samples(layout.registers)):
        if offset(thread, value) != _at(threads, thread) + _at(values, value):
            return ""
    return f"({_text(threads, 0)},{_text(values, 0)}):({_text(threads, 1)},{_text(values, 1)})"


def _modes(offset: Callable[[int], int | None], count: int) -> list[_Mode] | None:
    """The modes of a function of 0, 1, ..., the fastest first; None where it is no layout."""
    if offset(0) != 0:
        return None
    modes: list[_Mode] = []
    size = 1
    while size < count:
        stride, extent = offset(size), 1
        if stride is None:
            return None
        while size * extent < count and offset(size * extent) == extent * stride:
            extent += 1
        if extent == 1 or count % (size * extent):
            return None
        modes.append((extent, stride))
        size *= extent
    return modes if all(offset(n) == _at(modes, n) for n in range(count)) else None


def _samples(count: int) -> list[int]:
    """Numbers below `count` that are in every mode, alone and together: all would take seconds."""
    return sorted({count - 1, *(1 << bit for bit in range(count.bit_length()) if 1 << bit < count)})


def _at(modes: list[_Mode], index: int) -> int:
    """The offset of a layout at an index."""
    result = 0
    for extent, stride in modes:
        index, at = divmod(index, extent)
        result += at * stride
    return result


def _text(modes: list[_Mode], part: int) -> str:
    """The extents (0) or strides (1) of modes."""
    numbers = [str(mode[part]) for mode in modes] or [("1", "0")[part]]
    return numbers[0] if len(numbers) == 1 else f"({','.join(numbers)})"
