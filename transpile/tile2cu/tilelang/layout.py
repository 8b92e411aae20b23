"""`T.Layout` and `T.Fragment` of programs that are run: their functions are evaluated for numbers, to be plotted.

In a kernel such layouts are read from its text. The other names of `tilelang.layout` are symbols.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import cached_property, partial
from itertools import product
from math import prod
from pathlib import Path
from typing import Any

from tile2cu.core.errors import Tile2CuError
from tile2cu.review.layouts import Picture
from tile2cu.review.pictures import held_picture, mapping_picture
from tile2cu.tilelang.symbols import Symbol, others

_MOST = 1 << 16  # elements whose places are computed
_WARP = 32
_CHUNK_BITS = 128  # what a swizzle moves as a whole
Index = tuple[int, ...]


class Layout:
    """Where each element of a tensor of `shape` is stored: `forward_fn` of its coordinates.

    The function is called when a place is asked for. Errors: T2C-C031 for one that needs more than numbers, or a shape
    of more than 65,536 elements.
    """

    def __init__(self, shape: Any, forward_fn: Callable[..., Any]) -> None:
        self._shape, self._forward = tuple(shape), forward_fn

    def get_input_shape(self) -> list[int]:
        """The extents of the elements' coordinates."""
        return list(self._shape)

    def get_output_shape(self) -> list[int]:
        """The extents of the places: one more than the largest coordinate of each dimension."""
        return [1 + max(place[dim] for place in self._places.values()) for dim in range(self._rank)]

    def map_forward_index(self, indices: Sequence[int]) -> list[int]:
        """The place of an element."""
        return list(_as_index(self._forward(*indices)))

    def repeat(self, dim: int, factor: int) -> Layout:
        """The layout tiled along a dimension; the number of the tile is a new first coordinate of the places."""
        dim, extent = dim % len(self._shape), self._shape[dim]
        shape = (*self._shape[:dim], extent * factor, *self._shape[dim + 1 :])

        def forward(*at: int) -> Index:
            within = (*at[:dim], at[dim] % extent, *at[dim + 1 :])
            return (at[dim] // extent, *_as_index(self._forward(*within)))

        return Layout(shape, forward)

    def expand(self, leading_shape: int | Sequence[int]) -> Layout:
        """The layout with leading dimensions that stay as they are."""
        leading = (leading_shape,) if isinstance(leading_shape, int) else tuple(leading_shape)
        count = len(leading)
        return Layout((*leading, *self._shape), lambda *at: (*at[:count], *_as_index(self._forward(*at[count:]))))

    def plot(self, path: str | Path | None = None) -> Picture:
        """The layout as a picture; also written to `path`, if given. Errors: T2C-C005, T2C-C031."""
        picture = Picture(self._svg())
        if path is not None:
            picture.save(path)
        return picture

    def _repr_svg_(self) -> str:
        return self._svg()

    def _svg(self) -> str:
        return mapping_picture("layout", self._shape, self._places, str(self))

    @cached_property
    def _places(self) -> dict[Index, Index]:
        """The place of each element."""
        return {at: _as_index(found) for at, found in _evaluated(self._shape, self._forward)}

    @property
    def _rank(self) -> int:
        return len(next(iter(self._places.values())))

    def __repr__(self) -> str:
        return f"Layout({list(self._shape)} -> {self.get_output_shape()})"


class Fragment(Layout):
    """Which thread holds each element of a fragment, and in which register.

    `forward_fn` gives both; or `forward_thread_fn` and `forward_index_fn` give one each. With `replicate` copies, the
    thread also depends on the number of the copy, the last argument. Errors: as of Layout.
    """

    def __init__(
        self,
        shape: Any,
        forward_fn: Callable[..., Any] | None = None,
        forward_thread_fn: Callable[..., Any] | None = None,
        replicate: int = 1,
        forward_index_fn: Callable[..., Any] | None = None,
    ) -> None:
        def register(*at: int) -> Any:
            if forward_fn is not None:
                return forward_fn(*at, *_copy(0))[1]
            return 0 if forward_index_fn is None else forward_index_fn(*at)

        def thread(copy: int, *at: int) -> Any:
            if forward_fn is not None:
                return forward_fn(*at, *_copy(copy))[0]
            assert forward_thread_fn is not None, "one of the two is given"
            return forward_thread_fn(*at, *_copy(copy))

        def _copy(number: int) -> tuple[int, ...]:
            return (number,) if replicate > 1 else ()

        super().__init__(shape, register)
        self._thread, self._copies = thread, replicate

    def get_thread_size(self) -> int:
        """The number of threads."""
        return 1 + max(thread for held in self._holders.values() for thread, _ in held)

    def map_forward_thread(self, indices: Sequence[int]) -> int:
        """The first thread that holds an element."""
        return self._holders[tuple(indices)][0][0]

    def repeat(  # type: ignore[override]
        self, repeats: Sequence[int], repeat_on_thread: bool = False, lower_dim_first: bool = True
    ) -> Fragment:
        """The fragment tiled: each tile in further registers of the same threads, or on further threads.

        Tiles are numbered along the last dimension first, or along the first with `lower_dim_first=False`.
        """
        old, count = self._shape, tuple(repeats)
        threads, registers = self.get_thread_size(), prod(self.get_output_shape())

        def tile(at: Index) -> int:
            number, dims = 0, range(len(old))
            for dim in dims if lower_dim_first else reversed(dims):
                number = number * count[dim] + at[dim] // old[dim]
            return number

        def within(at: Index) -> Index:
            return tuple(each % extent for each, extent in zip(at, old, strict=True))

        def index(*at: int) -> int:
            (register,) = _as_index(self._forward(*within(at)))
            return register + (0 if repeat_on_thread else registers * tile(at))

        def thread(*arguments: int) -> int:
            at, copy = arguments[: len(old)], arguments[len(old) :]
            return int(self._thread(*(copy or (0,)), *within(at))) + (threads * tile(at) if repeat_on_thread else 0)

        shape = tuple(extent * times for extent, times in zip(old, count, strict=True))
        return Fragment(shape, forward_thread_fn=thread, replicate=self._copies, forward_index_fn=index)

    def replicate(self, replicate: int) -> Fragment:
        """The fragment with so many copies of each element, on further threads."""
        threads, copies, rank = self.get_thread_size(), self._copies, len(self._shape)

        def thread(*arguments: int) -> int:
            at, (copy, *_) = arguments[:rank], (*arguments[rank:], 0)
            return int(self._thread(copy % copies, *at)) + threads * (copy // copies)

        return Fragment(
            self._shape, forward_thread_fn=thread, replicate=copies * replicate, forward_index_fn=self._forward
        )

    def condense_rep_var(self) -> Fragment:
        """The fragment itself: which threads hold copies is computed from all of them."""
        return self

    def _svg(self) -> str:
        return held_picture("fragment", self._shape, self._holders, _WARP, str(self))

    @cached_property
    def _holders(self) -> dict[Index, tuple[tuple[int, int], ...]]:
        """The threads that hold each element, and the register."""
        found: dict[Index, dict[int, int]] = {at: {} for at in self._places}
        extents = self.get_output_shape()
        for copy in range(self._copies):
            for at, thread in _evaluated(self._shape, partial(self._thread, copy)):
                found[at][_as_index(thread)[0]] = _flat(self._places[at], extents)
        return {at: tuple(sorted(held.items())) for at, held in found.items()}

    def __repr__(self) -> str:
        copies = f", {self._copies} copies" if self._copies > 1 else ""
        registers = prod(self.get_output_shape())
        return f"Fragment({list(self._shape)} -> {self.get_thread_size()} threads, {registers} registers each{copies})"


def _swizzled(rows: int, columns: int, element_bits: int, span: int) -> Layout:
    """Chunks of 16 bytes permuted over spans of so many bytes; wider rows are several slabs.

    Source: PTX ISA, "Swizzling Modes".
    """
    wide, chunk = span * 8 // element_bits, _CHUNK_BITS // element_bits
    step = 128 // span  # rows that share a permutation

    def forward(row: int, column: int) -> Index:
        slab, within = divmod(column, wide)
        place = (within // chunk ^ row % 8 // step) * chunk + within % chunk
        return (slab, row, place) if columns > wide else (row, place)

    return Layout((rows, columns), forward)


def make_full_bank_swizzled_layout(rows: int, columns: int, element_bits: int) -> Any:
    """A swizzle over spans of 128 bytes, of a tile whose extents are numbers; of a buffer it is read in its kernel."""
    return _swizzled(rows, columns, element_bits, 128)


def make_half_bank_swizzled_layout(rows: int, columns: int, element_bits: int) -> Any:
    """The same over spans of 64 bytes."""
    return _swizzled(rows, columns, element_bits, 64)


def make_quarter_bank_swizzled_layout(rows: int, columns: int, element_bits: int) -> Any:
    """The same over spans of 32 bytes."""
    return _swizzled(rows, columns, element_bits, 32)


def _as_index(found: Any) -> Index:
    return tuple(int(each) for each in found) if isinstance(found, list | tuple) else (int(found),)


def _flat(place: Index, extents: Sequence[int]) -> int:
    number = 0
    for each, extent in zip(place, extents, strict=True):
        number = number * extent + each
    return number


def _evaluated(shape: Index, function: Callable[..., Any]) -> Iterator[tuple[Index, Any]]:
    """The function of all coordinates. Errors: T2C-C031."""
    if not all(type(extent) is int for extent in shape) or prod(shape) > _MOST:
        text = ", ".join(map(str, shape))
        raise Tile2CuError("T2C-C031", f"a layout of shape ({text}) has no picture", help=f"of up to {_MOST} elements")
    for at in product(*map(range, shape)):
        found = function(*at)
        if any(isinstance(each, Symbol) for each in (found if isinstance(found, list | tuple) else (found,))):
            raise Tile2CuError("T2C-C031", "the layout's function needs more than numbers", help="use + - * // % ^ & |")
        yield at, found


__getattr__ = others(__name__)  # the other layouts of TileLang, which kernels name
