"""Layouts that nothing constrains: tiles and loops that only access memory are distributed for coalesced access."""

from collections.abc import Iterator
from math import gcd, prod

from msgspec.structs import replace

from tile2cu.analysis.accesses import Access, element_accesses
from tile2cu.analysis.uses import users
from tile2cu.core.decisions import LAYOUT
from tile2cu.core.expr import quotient_of, static_value, walk
from tile2cu.core.layout import Blocked
from tile2cu.core.memo import kept
from tile2cu.core.program import Buffer, Copy, Launch, Parallel, Reduce, Scope, Stmt
from tile2cu.rules.engine import Context, Decision, Example, Phase, rule
from tile2cu.rules.layout.propagate import bad_index, fragment_accesses, slice_for, uneven, uneven_stores
from tile2cu.rules.vectors.vectorise import is_over_memory, takes_adjacent

_COALESCED_LANES = 8  # of 16 bytes each: the 128 bytes of a cache line
VECTOR_BYTES = 16  # the widest load and store of one thread: PTX ISA, 'ld', .v4.b32
_COALESCING = "CUDA C++ Best Practices Guide, 'Coalesced Access to Global Memory'"


@rule(
    "layout.free.rows-in-warps",
    phase=Phase.FREE,
    on=Launch,
    reads=(LAYOUT,),
    writes=(LAYOUT,),
    source=_COALESCING,
    examples=(
        Example(
            'X_local = T.alloc_fragment((4, 1024), "float32")\n'
            'row_max = T.alloc_fragment((4,), "float32")\n'
            "T.reduce_max(X_local, row_max, dim=1)",
            "X_local",
            "layout",
            "Blocked(extents=(4, 1024), threads=(4, 32), vector=4, block_threads=128, rows=1)",
        ),
        Example(
            'X_local = T.alloc_fragment((4, 1024), "float32")\n'
            'row_max = T.alloc_fragment((4,), "float32")\n'
            "T.copy(Z[0, 0], X_local)\n"
            "T.reduce_max(X_local, row_max, dim=1)",
            "X_local",
            "layout",
            "Blocked(extents=(4, 1024), threads=(4, 32), vector=8, block_threads=128, rows=1)",
        ),
        Example(
            'X_local = T.alloc_fragment((16, 160), "float32")\n'
            'row_max = T.alloc_fragment((16,), "float32")\n'
            "T.reduce_max(X_local, row_max, dim=1)",
            "X_local",
            "layout",
            "Blocked(extents=(16, 160), threads=(16, 8), vector=4, block_threads=128, rows=1)",
        ),
        Example(
            'X_local = T.alloc_fragment((8, 72), "float32")\n'
            'row_max = T.alloc_fragment((8,), "float32")\n'
            "T.reduce_max(X_local, row_max, dim=1)",
            "X_local",
            "layout",
            "Blocked(extents=(8, 72), threads=(4, 32), vector=4, block_threads=128, rows=2)",
        ),
        Example(
            'X_local = T.alloc_fragment((16, 160), "float16")\n'
            'row_max = T.alloc_fragment((16,), "float16")\n'
            "T.reduce_max(X_local, row_max, dim=1)",
            "X_local",
            "layout",
            "Blocked(extents=(16, 160), threads=(8, 20), vector=8, block_threads=160, rows=1)",
            threads=160,
        ),
    ),
)
def rows_in_warps(launch: Launch, context: Context) -> Iterator[Decision]:
    """A tile that is reduced along its rows keeps each row inside one warp when there are rows enough.

    The reduction then needs shuffles only, and no barrier. A thread takes vectors of 16 bytes of memory. Several rows
    share a warp where fewer lanes are idle so: 8 lanes divide 40 vectors, which 32 do not (on an H200 RMSNorm of rows
    of 320 halves had 0.82 of Triton's speed with a warp per row). Rows that do not fill a warp are adjacent in it.
    Where a row's vectors divide the block's threads, rows follow one another thread by thread instead, across warps, if
    a thread then holds less: no lane is idle, the block's loads and stores are contiguous, and groups of lanes exchange
    partial sums in shared memory (RMSNorm of 144 to 320 halves in such threads: 1.01 to 1.03 of the speed of rows in
    warps).

    Gives: the layout of the first such tile that has none yet.
    """
    for op in context.statements:
        if isinstance(op, Reduce) and op.dim == op.src.rank - 1 > 0 and _undecided(op.src, context):
            vector = _vector(op.src.static_shape, _bits_in_memory(op.src, context), _most_in_one(op.src, context))
            yield op.src, LAYOUT, _within_warps(op.src.static_shape, vector, context.of(op.src))
            return


@rule(
    "layout.free.flat",
    phase=Phase.FREE,
    on=Launch,
    reads=(LAYOUT,),
    writes=(LAYOUT,),
    source=_COALESCING,
    examples=(
        Example(
            'X_local = T.alloc_fragment((16, 256), "float16")\nT.clear(X_local)',
            "X_local",
            "layout",
            "Blocked(extents=(16, 256), threads=(4, 32), vector=8, block_threads=128, rows=1)",
        ),
        Example(
            'X_local = T.alloc_fragment((64, 160), "float16")\nT.clear(X_local)',
            "X_local",
            "layout",
            "Blocked(extents=(64, 160), threads=(6, 20), vector=8, block_threads=128, rows=1)",
        ),
        Example(
            'S = T.alloc_shared((1024,), "float32")\n'
            'x = T.alloc_fragment((1024,), "float32")\n'
            "for i in T.Parallel(1024):\n"
            "    x[i] = S[1023 - i]",
            "x",
            "layout",
            "Blocked(extents=(1024,), threads=(128,), vector=1, block_threads=128, rows=1)",
        ),
        Example(
            'state = T.alloc_fragment((128,), "float32")\nT.clear(state)',
            "state",
            "layout",
            "Blocked(extents=(128,), threads=(128,), vector=1, block_threads=128, rows=1)",
        ),
    ),
)
def flat(launch: Launch, context: Context) -> Iterator[Decision]:
    """A tile that nothing else decides is distributed row by row, in vectors of 16 bytes per thread.

    Of a small one threads take fewer bytes, so that no two compute the same element; of one that only loops move to
    memory, which access elements of shared memory one by one or add to tensors atomically, one element. Of the ways to
    divide a row evenly among threads, the one with the fewest registers is taken, that is, with the fewest idle
    threads; of equals the one with the most threads, a power of two of them first.

    Gives: the layout of the largest such tile that has none yet; the first of equals.
    """
    undecided = [tile for tile in launch.tiles if _undecided(tile, context)]
    for tile in sorted(undecided, key=lambda tile: -prod(tile.static_shape))[:1]:
        own = context.of(tile)
        vector = _vector(tile.static_shape, _bits_in_memory(tile, context))
        layout = _fewest_registers(tile.static_shape, vector, own)
        if prod(tile.static_shape) > vector:  # else each thread has all of it, and reduces it alone
            vector = 1 if _takes_adjacent(tile, layout, context) else _shared_out(tile.static_shape, vector, own)
            layout = _fewest_registers(tile.static_shape, vector, own)
        yield tile, LAYOUT, layout


@rule(
    "layout.loop.over-rows",
    phase=Phase.FREE,
    on=Parallel,
    reads=(LAYOUT,),
    writes=(LAYOUT,),
    source=_COALESCING,
    examples=(
        Example(
            'S = T.alloc_shared((16, 256), "float32")\n'
            'row = T.alloc_fragment((16,), "float32")\n'
            "for i, j in T.Parallel(16, 256):\n"
            "    S[i, j] = row[i]",
            3,
            "layout",
            "Blocked(extents=(16, 256), threads=(2, 64), vector=4, block_threads=128, rows=1)",
        ),
    ),
)
def loop_over_rows(op: Parallel, context: Context) -> Iterator[Decision]:
    """A loop over rows of fragments is distributed for memory, and the fragments get its layout.

    Gives: the loop's layout, once no tile of rank 2 is left to decide.
    """
    if context.facts.get(op, LAYOUT) is not None or len(op.vars) != 2:
        return
    tiles = [access.buffer for access in fragment_accesses(op)]
    if any(_undecided(tile, context) for tile in tiles) and not any(
        _undecided(tile, context) and tile.rank > 1 for tile in context.launch.tiles
    ):
        yield op, LAYOUT, _loop_layout(op, context)


@rule(
    "layout.loop.flat",
    phase=Phase.LOOP,
    on=Parallel,
    reads=(LAYOUT,),
    writes=(LAYOUT,),
    source=_COALESCING,
    examples=(
        Example(
            'S = T.alloc_shared((1024,), "float32")\nfor i in T.Parallel(1024):\n    S[i] = 0.0',
            2,
            "layout",
            "Blocked(extents=(1024,), threads=(128,), vector=4, block_threads=128, rows=1)",
        ),
        Example(
            'S = T.alloc_shared((16, 64), "float16")\n'
            'rows = T.alloc_shared((16,), "int32")\n'
            "for i, j in T.Parallel(16, 64):\n"
            "    S[i, j] = Z[rows[i], bx * 64 + j]",
            3,
            "layout",
            "Blocked(extents=(16, 64), threads=(16, 8), vector=8, block_threads=128, rows=1)",
        ),
        Example(
            'S = T.alloc_shared((1024,), "float32")\nfor i in T.Parallel(1024):\n    S[1023 - i] = 0.0',
            2,
            "layout",
            "Blocked(extents=(1024,), threads=(128,), vector=1, block_threads=128, rows=1)",
        ),
        Example(
            'S = T.alloc_shared((256,), "float16")\nfor i in T.Parallel(256):\n    S[i] = 0.0',
            2,
            "layout",
            "Blocked(extents=(256,), threads=(128,), vector=2, block_threads=128, rows=1)",
        ),
    ),
)
def loop_flat(op: Parallel, context: Context) -> Iterator[Decision]:
    """An elementwise loop without fragments is distributed like a tile of its widest element type.

    Integers that are uniform over a row, indices of gathered rows, do not count. A short loop, which would leave half
    of the threads idle, takes fewer bytes per thread: it needs fewer steps, and no branch that its loads would have to
    wait behind. Where it accesses elements of shared memory one by one, or adds to tensors atomically, adjacent lanes
    take adjacent elements, in different banks, or in one line.

    Gives: the loop's layout.
    Errors: T2C-L014 when the loop accesses a fragment with another layout, or gives an element of all threads an
    iteration's value.
    """
    if context.facts.get(op, LAYOUT) is not None:
        return
    layout = _loop_layout(op, context)
    for access in uneven_stores(op):
        raise uneven(access, op)
    for access in fragment_accesses(op):
        if slice_for(access, op, layout) != context.facts.get(access.buffer, LAYOUT):
            raise bad_index(access, op)
    yield op, LAYOUT, layout


def _loop_layout(op: Parallel, context: Context) -> Blocked:
    shape = tuple(int(static_value(extent) or 0) for extent in op.extents)
    widest = max((access.buffer.dtype.bits for access in element_accesses(op.body) if _counts(access, op)), default=32)
    layout = _fewest_registers(shape, _shared_out(shape, _vector(shape, widest), context), context)
    return _fewest_registers(shape, 1, context) if takes_adjacent(op, layout, context) else layout


def _counts(access: Access, op: Parallel) -> bool:
    """Whether an access determines the vector width: an integer that is uniform over a vector does not."""
    return not access.buffer.dtype.is_int or any(op.vars[-1] in walk(index) for index in access.indices)


def _shared_out(shape: tuple[int, ...], vector: int, context: Context) -> int:
    """Elements per thread, reduced until at least half of the threads have elements."""
    while vector > 1 and 2 * prod(shape) <= vector * context.threads:
        vector //= 2
    return vector


def _undecided(tile: Buffer, context: Context) -> bool:
    return tile.scope is Scope.FRAGMENT and tile.of is None and context.facts.get(tile, LAYOUT) is None


def _takes_adjacent(tile: Buffer, layout: Blocked, context: Context) -> bool:
    """Whether only loops that are faster with adjacent lanes on adjacent elements move a tile to memory or from it."""
    used_by = users(context.launch.body, tile)
    loops = [op for op in used_by if isinstance(op, Parallel) and is_over_memory(op)]
    copied = any(isinstance(op, Copy) for op in used_by)
    return bool(loops) and not copied and all(takes_adjacent(op, layout, context) for op in loops)


def _bits_in_memory(tile: Buffer, context: Context) -> int:
    """Bits of an element in memory: of the narrowest tensor that is loaded to the tile, or else stored from it.

    Accumulators in float32 of a float16 matrix are distributed so that the matrix is read 16 bytes at a time.
    """
    together = {tile}
    while True:
        more = {other for group in _met(context.launch) if group & together for other in group} - together
        if not more:
            break
        together |= more
    moved = [access for op in context.statements for access in _moved(op, together)]
    reads = [tensor.dtype.bits for tensor, stored in moved if not stored]
    return min(reads or [tensor.dtype.bits for tensor, _ in moved], default=tile.dtype.bits)


def _moved(op: Stmt, together: set[Buffer]) -> Iterator[tuple[Buffer, bool]]:
    """The tensors that an operation loads to these fragments, or (True) stores from them; and shared tiles of bytes."""
    match op:
        case Copy():
            tensors = [(op.src.buffer, op.dst.buffer, False), (op.dst.buffer, op.src.buffer, True)]
            pairs = [(there, stored) for there, here, stored in tensors if here in together]
            yield from (pair for pair in pairs if pair[0].scope is Scope.GLOBAL or _is_of_bytes(pair[0]))
        case Parallel() if together & {access.buffer for access in fragment_accesses(op)}:
            accesses = [access for access in element_accesses(op.body) if access.buffer.scope is Scope.GLOBAL]
            yield from ((access.buffer, access.is_store) for access in accesses)
        case _:
            pass


def _is_of_bytes(tile: Buffer) -> bool:
    return tile.scope is Scope.SHARED and tile.dtype.bits == 8


@kept
def _met(launch: Launch) -> tuple[frozenset[Buffer], ...]:
    """The fragments that each operation accesses at the same indices, where it accesses any."""
    found: list[frozenset[Buffer]] = []
    for op in launch.statements:
        if isinstance(op, Parallel):
            found.append(frozenset(each.buffer for each in fragment_accesses(op) if each.indices == op.vars))
        if isinstance(op, Copy):
            whole = (region.buffer for region in (op.src, op.dst) if region.whole)
            found.append(frozenset(buffer for buffer in whole if buffer.scope is Scope.FRAGMENT))
    return tuple(filter(None, found))


def _vector(shape: tuple[int, ...], element_bits: int, in_one: int = 1) -> int:
    """Elements per vector: as many as 16 bytes hold, or 16 bytes of packed ones, and that divide the row."""
    most = max(1, 8 * VECTOR_BYTES // element_bits)
    return gcd(max(most, VECTOR_BYTES * in_one) if in_one > 1 else most, shape[-1])


def _most_in_one(tile: Buffer, context: Context) -> int:
    """The most elements of a loop over the tile that share one loaded byte, as 4-bit weights do; else 1."""
    found = [1]
    for op in context.statements:
        if isinstance(op, Parallel) and any(
            access.buffer is tile and access.indices == op.vars for access in fragment_accesses(op)
        ):
            for access in element_accesses(op.body):
                quotient = quotient_of(access.indices[-1], op.vars[-1])
                in_one = 1 if quotient is None else quotient[1]
                if 1 < in_one <= 8 and access.buffer.dtype.name == "uint8" and not access.is_store:
                    found.append(in_one)  # elements that share a byte; the scale of a group would be shared by more
    return max(found)


def _within_warps(shape: tuple[int, ...], vector: int, context: Context) -> Blocked:
    """The layout with a warp per row, or with part of a warp or as many threads as a row has vectors.

    The one with the fewest registers is taken: 4 lanes still read 64 contiguous bytes.
    """
    lanes = context.target.warp_size
    usual = blocked(shape, vector, context, lanes=lanes)
    others = [_over_rows(shape, vector, context, lanes >> halved) for halved in range(1, 4)]
    vectors = shape[-1] // vector
    others += [_over_rows(shape, vector, context, vectors)] if context.threads % vectors == 0 else []
    found = min((usual, *others), key=lambda layout: layout.registers)  # the first of equals
    return replace(found, rows=_neighbouring_rows(found))


def _neighbouring_rows(layout: Blocked) -> int:
    """The adjacent rows per warp: all of its rows where one does not fill it.

    Rows that end in the middle of a line of memory then share it with the warp's next row.
    """
    rows, iterations = layout.threads[0], layout.extents[0] // layout.threads[0]
    short = layout.extents[-1] < layout.vector * layout.threads[-1] and layout.threads[-1] == layout.warp_size
    return iterations if len(layout.shape) == 2 and short and layout.extents[0] == iterations * rows else 1


def _fewest_registers(shape: tuple[int, ...], vector: int, context: Context) -> Blocked:
    """Threads over the tile so that adjacent ones read at least 128 contiguous bytes, with the fewest idle threads."""
    threads, chunks = context.threads, shape[-1] // vector
    usual = blocked(shape, vector, context, lanes=threads)
    others = [
        _over_rows(shape, vector, context, lanes)
        for lanes in range(_COALESCED_LANES, min(threads, chunks) + 1)
        if chunks % lanes == 0
    ]

    def cost(layout: Blocked) -> tuple[int, bool, bool, int]:
        lanes = layout.threads[-1]
        return layout.registers, layout is not usual, lanes & -lanes != lanes, -lanes

    return min((usual, *others), key=cost)


def blocked(shape: tuple[int, ...], vector: int, context: Context, lanes: int) -> Blocked:
    """Threads over the tile: up to `lanes` along a row, more when there are fewer rows than threads left."""
    threads = context.threads
    along_row = min(lanes, _power_of_two_up(-(-shape[-1] // vector)), _largest_power_of_two(threads))
    rows = prod(shape[:-1])
    while threads // along_row > rows and along_row * vector < shape[-1] and 2 * along_row <= threads:
        along_row *= 2
    return _over_rows(shape, vector, context, along_row)


def _over_rows(shape: tuple[int, ...], vector: int, context: Context, along_row: int) -> Blocked:
    """So many threads along a row, the others over the rows."""
    threads = context.threads
    grid = [along_row]
    left = threads // along_row
    for extent in reversed(shape[:-1]):
        grid.insert(0, min(left, _largest_power_of_two(extent)))
        left //= grid[0]
    return Blocked(shape, tuple(grid), vector, threads, warp_size=context.target.warp_size)


def _power_of_two_up(value: int) -> int:
    return 1 << max(0, value - 1).bit_length()


def _largest_power_of_two(value: int) -> int:
    return 1 << (value.bit_length() - 1)
