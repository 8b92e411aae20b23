"""Arguments and expected results of the kernels in hopper/: for the CPU engine and for a GPU."""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import ml_dtypes
import numpy as np

Array = np.ndarray
TEXTS = ("gemm_relu", "attention", "products", "boxes", "clusters")
K_CONTIGUOUS, MN_CONTIGUOUS, IN_REGISTERS = range(3)
TYPES = (
    np.float16, ml_dtypes.bfloat16, ml_dtypes.float8_e4m3fn, ml_dtypes.float8_e5m2, np.int8, np.uint8, np.float32,
    np.float32,
)  # fmt: skip


@dataclass(frozen=True, kw_only=True)
class Call:
    """One launch of a C function: numbers, then the arrays' pointers, then numbers; the last array is written."""

    name: str
    function: str
    before: tuple[int, ...] = ()
    inputs: tuple[Array, ...]
    output: Array  # its content before; without content if `fresh`
    fresh: bool = True
    after: tuple[object, ...] = ()
    expected: Array
    tolerance: float = 0.0

    def run(self, library: ctypes.CDLL, pointers: list[int]) -> int:
        """Calls the function with these addresses of the inputs and the output."""
        numbers = [ctypes.c_int(n) for n in self.before]
        addresses = [ctypes.c_void_p(p) for p in pointers]
        return int(getattr(library, self.function)(*numbers, *addresses, *self.after))

    def check(self, output: Array) -> None:
        """Raises AssertionError when the output is not what it must be."""
        if self.tolerance == 0:
            np.testing.assert_array_equal(output.astype(np.float64), self.expected, err_msg=self.name)
        else:
            error = np.abs(output.astype(np.float64) - self.expected).max()
            assert error <= self.tolerance * np.abs(self.expected).max(), (self.name, error)


def integers(rng: np.random.Generator, shape: tuple[int, ...], dtype: object = np.float16) -> Array:
    """Small integers: their products and sums are exact."""
    return rng.integers(0 if dtype is np.uint8 else -4, 5, shape).astype(dtype)


def gemm_call(m: int, n: int, k: int) -> Call:
    rng = np.random.default_rng(0)
    a, b = integers(rng, (m, k)), integers(rng, (k, n))
    return Call(
        name=f"gemm_relu {m} {n} {k}", function="gemm_relu", inputs=(a, b), output=np.empty((m, n), np.float16),
        after=(m, n, k, None), expected=np.maximum(a.astype(np.float64) @ b.astype(np.float64), 0),
    )  # fmt: skip


def softmax_attention(q: Array, k: Array, v: Array) -> Array:
    q, k, v = (x.astype(np.float64) for x in (q, k, v))
    scores = np.einsum("bshd,bthd->bhst", q, k) / np.sqrt(q.shape[-1])
    weights = np.exp(scores - scores.max(axis=-1, keepdims=True))
    return np.einsum("bhst,bthd->bshd", weights / weights.sum(axis=-1, keepdims=True), v)


def attention_call(batch: int, seq_len: int, heads: int) -> Call:
    rng = np.random.default_rng(1)
    q, k, v = (rng.standard_normal((batch, seq_len, heads, 128)).astype(np.float16) for _ in range(3))
    return Call(
        name=f"attention {batch} {seq_len} {heads}", function="attention", inputs=(q, k, v), output=np.empty_like(q),
        after=(batch, seq_len, heads, None), expected=softmax_attention(q, k, v), tolerance=2e-3,
    )  # fmt: skip


def product_calls(library: ctypes.CDLL) -> Iterator[Call]:
    """Every case of products.cu on integers."""
    index, count, what = 0, 1, (ctypes.c_int * 8)()
    rng = np.random.default_rng(2)
    while index < count:
        count = library.products_case(index, what)
        m, n, k, a_lies, b_lies, number, overwrites, half_sums = what
        a, b = integers(rng, (m, k), TYPES[number]), integers(rng, (k, n), TYPES[number])
        sums = np.int32 if TYPES[number] in (np.int8, np.uint8) else np.float16 if half_sums else np.float32
        c = rng.integers(-9, 10, (m, n)).astype(sums)
        product = a.astype(np.float64) @ b.astype(np.float64)
        stored_a = a.T if a_lies == MN_CONTIGUOUS else a
        stored_b = b if b_lies == MN_CONTIGUOUS else b.T
        yield Call(
            name=f"product {index}: {tuple(what)}", function="products_run", before=(index,),
            inputs=(np.ascontiguousarray(stored_a), np.ascontiguousarray(stored_b)), output=c, fresh=False,
            expected=product if overwrites else c + product,
        )  # fmt: skip
        index += 1


def slice_with_zeros(tensor: Array, corner: tuple[int, ...], shape: tuple[int, ...]) -> Array:
    """The box of a tensor at coordinates that may be out of bounds: zeros there."""
    box = np.zeros(shape, tensor.dtype)
    inner = [(max(c, 0), min(c + s, e)) for c, s, e in zip(corner, shape, tensor.shape, strict=True)]
    if all(low < high for low, high in inner):
        from_ = tuple(slice(low, high) for low, high in inner)
        to = tuple(slice(low - c, high - c) for (low, high), c in zip(inner, corner, strict=True))
        box[to] = tensor[from_]
    return box


# which, extents, corner, the box's shape in all dimensions; the tile's shape is that without the ones
LOADS = [
    (0, (100, 200), (32, 64), (32, 64)),
    (0, (100, 200), (90, 168), (32, 64)),
    (0, (100, 200), (-5, -8), (32, 64)),
    (0, (100, 200), (200, 0), (32, 64)),
    (1, (100, 200), (90, 168), (32, 64)),
    (2, (100, 200), (90, 152), (32, 64)),
    (3, (100, 200), (-3, 152), (32, 64)),
    (4, (40, 100), (30, 48), (16, 64)),
    (5, (3, 50, 64), (2, 30, 0), (1, 32, 64)),
    (5, (3, 50, 72), (3, 30, 0), (1, 32, 64)),
    (6, (2, 50, 3, 64), (1, 20, 2, 0), (1, 32, 1, 64)),
    (7, (40, 2, 3, 2, 128), (20, 1, 2, 1, 64), (32, 1, 1, 1, 64)),
]
STORES = [
    (0, (100, 200), (32, 64), (64, 128)),
    (0, (100, 200), (0, 128), (64, 128)),
    (1, (150, 72), (64, 8), (128, 64)),
    (2, (64, 48), (0, 0), (64, 48)),
    (3, (80, 40), (32, 16), (64, 24)),
    (4, (70, 36), (8, 4), (64, 32)),
    (5, (2, 70, 3, 64), (1, 10, 2, 0), (1, 64, 1, 64)),
]


def ints(values: tuple[int, ...]) -> ctypes.Array[ctypes.c_int]:
    return (ctypes.c_int * len(values))(*values)


def box_calls() -> Iterator[Call]:
    """Tiles by TMA, in and out, at every kind of place."""
    rng = np.random.default_rng(3)
    for which, extents, corner, shape in LOADS:
        dtype = np.float32 if which == 4 else np.float16
        tensor = rng.integers(1, 1000, extents).astype(dtype)
        expected = slice_with_zeros(tensor, corner, shape)
        yield Call(
            name=f"load {which} {corner}", function="boxes_load", before=(which,), inputs=(tensor,),
            output=np.empty(shape, dtype), after=(ints(extents), ints(corner)), expected=expected.astype(np.float64),
        )  # fmt: skip
    for which, extents, corner, shape in STORES:
        dtype = np.float32 if which == 4 else np.float16
        rows, columns = (s for s in shape if s > 1)
        tile = ((np.arange(rows)[:, None] * 8 + np.arange(columns)) % 1000).reshape(shape)
        before = rng.integers(1, 1000, extents).astype(dtype)
        after = before.copy()
        target = after[tuple(slice(c, c + s) for c, s in zip(corner, shape, strict=True))]
        target[...] = tile[tuple(slice(0, s) for s in target.shape)]
        yield Call(
            name=f"store {which} {corner}", function="boxes_store", before=(which,), inputs=(), output=before,
            fresh=False, after=(ints(extents), ints(corner)), expected=after.astype(np.float64),
        )  # fmt: skip


# extents of clusters and of the grid of each pipeline, x first
RINGS = [((2, 1, 1), (6, 3, 1)), ((2, 2, 2), (4, 2, 4)), ((1, 4, 1), (3, 8, 1))]
# which, mask, blocks of a cluster, the tile's shape and type, iterations
CLUSTER_LOADS = [
    (0, 0b11, 2, (32, 64), np.float16, 5),
    (1, 0b0110, 4, (16, 128), np.float16, 4),
    (2, 0b1011, 4, (16, 32), np.float32, 5),
    (3, 0b0011, 4, (32, 64), np.float16, 3),
    (4, 0b1111, 4, (16, 32), np.float32, 4),
]
# which, blocks of a cluster, the tile's shape and type, the rows and columns that are copied
EXCHANGES = [
    (0, 2, (32, 64), np.float16, slice(None), slice(None)),
    (1, 4, (16, 32), np.float32, slice(None), slice(None)),
    (2, 2, (32, 64), np.float16, slice(4, 9), slice(16, 48)),
    (3, 2, (16, 32), np.float32, slice(4, 11), slice(16, 19)),
]


def ring_call(which: int, cluster: tuple[int, ...], grid: tuple[int, ...]) -> Call:
    """Each block writes what the block of the next rank has."""
    cx, cy, cz = cluster
    x, y, z = np.meshgrid(*(np.arange(extent) for extent in grid), indexing="ij")
    rank = x % cx + cx * (y % cy + cy * (z % cz))
    next_rank = (rank + 1) % (cx * cy * cz)
    neighbour = [x - x % cx + next_rank % cx, y - y % cy + next_rank // cx % cy, z - z % cz + next_rank // (cx * cy)]
    numbers = neighbour[0] + grid[0] * (neighbour[1] + grid[1] * neighbour[2])
    first = (1000 * numbers + 1000000 * rank).transpose(2, 1, 0).reshape(-1, 1)
    return Call(
        name=f"ring {which}", function="clusters_ring", before=(which,), inputs=(),
        output=np.empty((first.size, 128), np.int32), expected=(first + np.arange(128)).astype(np.float64),
    )  # fmt: skip


def cluster_load_call(which: int, mask: int, blocks: int, shape: tuple[int, int], dtype: object, turns: int) -> Call:
    """Two clusters, iteration after iteration: blocks of the mask get the tile of the first of them."""
    rows, columns = turns * shape[0] - 7, 2 * blocks * shape[1] - 8
    tensor = np.random.default_rng(which).integers(1, 1000, (rows, columns)).astype(dtype)
    first = (mask & -mask).bit_length() - 1
    expected = np.zeros((2 * blocks, turns, *shape), dtype)
    for block, turn in np.ndindex(2 * blocks, turns):
        rank = block % blocks
        loader = block - rank + (first if mask >> rank & 1 else rank)
        expected[block, turn] = slice_with_zeros(tensor, (turn * shape[0] - 3, loader * shape[1]), shape)
    return Call(
        name=f"cluster load {which}", function="clusters_loads", before=(which,), inputs=(tensor,),
        output=np.empty_like(expected), after=(rows, columns, turns), expected=expected.astype(np.float64),
    )  # fmt: skip


def exchange_call(
    which: int, blocks: int, shape: tuple[int, int], dtype: object, rows: slice, columns: slice, turns: int = 3
) -> Call:
    """Two clusters: each block gets what the one of the rank before has, in a part of its tile."""
    expected = np.full((2 * blocks, turns, *shape), -1.0)
    index = np.arange(shape[0] * shape[1]).reshape(shape) % 97
    for block, turn in np.ndindex(2 * blocks, turns):
        theirs = index + 100 * ((block % blocks - 1) % blocks) + turn
        expected[block, turn, rows, columns] = theirs[rows, columns]
    return Call(
        name=f"hand over {which}", function="clusters_handed", before=(which,), inputs=(),
        output=np.empty(expected.shape, dtype), after=(turns,), expected=expected,
    )  # fmt: skip


def meeting_call(turns: int = 3) -> Call:
    """The sums of the contributions of the four blocks of each cluster, iteration after iteration."""
    values = np.random.default_rng(5).integers(-99, 100, (2, 4, 128)).astype(np.int32)
    factors = np.arange(1, turns + 1)[None, :, None]
    expected = values.sum(axis=1)[:, None, :] * factors
    return Call(
        name="meeting", function="clusters_meeting", inputs=(values,), output=np.empty(expected.shape, np.int32),
        after=(turns,), expected=expected.astype(np.float64),
    )  # fmt: skip


def cluster_calls() -> Iterator[Call]:
    """Every primitive of clusters."""
    yield from (ring_call(which, *extents) for which, extents in enumerate(RINGS))
    yield meeting_call()
    yield from (cluster_load_call(*case) for case in CLUSTER_LOADS)
    yield from (exchange_call(*case) for case in EXCHANGES)


# M, N, K: whole tiles; partial tiles in each; smaller than a tile; fewer and more iterations than stages; K = 0
GEMM_SIZES = [(128, 256, 64), (256, 512, 256), (136, 264, 72), (1, 8, 8), (130, 8, 200), (5, 520, 448), (128, 256, 0)]
ATTENTION_SIZES = [(1, 128, 1), (2, 200, 3), (1, 300, 2), (1, 1, 1)]
Calls = Callable[[ctypes.CDLL], Iterator[Call]]
CALLS: dict[str, Calls] = {
    "gemm_relu": lambda _: (gemm_call(*size) for size in GEMM_SIZES),
    "attention": lambda _: (attention_call(*size) for size in ATTENTION_SIZES),
    "products": product_calls,
    "boxes": lambda _: box_calls(),
    "clusters": lambda _: cluster_calls(),
}
