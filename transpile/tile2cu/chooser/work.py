"""What a block of a launch does, counted from the program: MMAs, bytes of each copy, loop iterations.

`counter` compiles a launch to closures once; a configuration and its sizes are counted in microseconds, without a
trace, a rule or an emitted line. Blocks whose work differs are sampled.
"""

from collections.abc import Callable, Mapping
from math import prod

from tile2cu.analysis.lifetimes import buffers_in
from tile2cu.chooser.counts import Count, Counter, Counts, Work
from tile2cu.chooser.numbers import Values, key_of, number
from tile2cu.chooser.operations import Surroundings
from tile2cu.chooser.statements import body_counter, read_by, variables_of
from tile2cu.core.program import (
    Atomic,
    AtomicTile,
    Buffer,
    Copy,
    Gemm,
    Launch,
    Loop,
    LoopKind,
    Program,
    Scope,
    Stmt,
    Store,
    walk_stmts,
)

_SAMPLES = 8  # blocks of a launch whose work depends on the block


def loops_of(launch: Launch) -> tuple[Loop, ...]:
    """The launch's pipelined loops, in order."""
    loops = (stmt for stmt in launch.statements if isinstance(stmt, Loop))
    return tuple(loop for loop in loops if loop.kind is LoopKind.PIPELINED)


# The keys of what a launch, by its number, has as plain numbers: its threads, the stages of its loops, and the extents
# of its clusters.


def threads_key(launch: int) -> str:
    return f"threads:{launch}"


def stages_key(launch: int, loop: int) -> str:
    return f"stages:{launch}:{loop}"


def cluster_key(launch: int, axis: int) -> str:
    return f"cluster:{launch}:{axis}"


def counters_of(program: Program) -> tuple[Counter, ...]:
    """One for each launch."""
    return tuple(counter(launch, place) for place, launch in enumerate(program.launches))


def tensor_bytes(launch: Launch, program: Program) -> Callable[[Values], tuple[int, int]]:
    """A closure: the bytes of the program's tensors that a launch reads only, and of those that it writes."""
    written = {buffer.name for buffer in _written(launch.body)}
    named = {buffer.name for buffer in buffers_in(launch.body)}
    tensors = [param for param in program.params if isinstance(param, Buffer) and param.name in named]
    sizes = [(tensor.name in written, tensor.dtype.bits, tuple(map(number, tensor.shape))) for tensor in tensors]

    def of(values: Values) -> tuple[int, int]:
        bytes_ = [(out, prod(extent(values) for extent in shape) * bits // 8) for out, bits, shape in sizes]
        return sum(each for out, each in bytes_ if not out), sum(each for out, each in bytes_ if out)

    return of


def moved_bytes(work: Work, reads: int, writes: int) -> int:
    """What DRAM moves of tensors that a launch reads and writes: each once, if its blocks access as much at all."""
    counts = work.longest
    loaded, stored = (work.blocks * each for each in (counts.loaded + counts.prologue, counts.stored))
    return int(min(reads, loaded) + min(writes, stored))


def _written(body: tuple[Stmt, ...]) -> list[Buffer]:
    found: list[Buffer] = []
    for stmt in walk_stmts(body):
        match stmt:
            case Copy() | AtomicTile():
                found.append(stmt.dst.buffer.memory)
            case Store() | Atomic():
                found.append(stmt.buffer.memory)
            case _:
                pass
    return [buffer for buffer in found if buffer.scope is Scope.GLOBAL]


def counter(launch: Launch, place: int = 0) -> Counter:
    """Compiles the launch at `place` in its program. It raises Unknown where a count is not determined."""
    loops = loops_of(launch)
    pipelined = {id(loop): position for position, loop in enumerate(loops)}
    body = body_counter(launch.body, Surroundings(pipelined, read_by(launch.body)))
    grid = tuple(map(number, launch.grid))
    prelude = [(key_of(let.var), number(let.value)) for let in launch.prelude]
    used = variables_of(launch.body)
    blocks = [(axis, key_of(block)) for axis, block in enumerate(launch.blocks)]
    staged = _staged(launch, pipelined)
    tiles = [
        (_bits(tile), tuple(map(number, tile.shape)), tile.scope, staged.get(tile.memory)) for tile in launch.tiles
    ]
    bits = max((gemm.a.buffer.dtype.bits for gemm in launch.statements if isinstance(gemm, Gemm)), default=0)

    def of(values: Values) -> Work:
        values = dict(values)
        for key, value in prelude:
            values[key] = value(values)
        extents = [extent(values) for extent in grid]
        values |= {key: 0 for _, key in blocks}
        differing = [(key, max(extents[axis], 1)) for axis, key in blocks if key in used]
        staged_bytes, fixed, fragments, largest = [0] * len(loops), 0, 0, 0
        for tile_bits, shape, scope, position in tiles:
            elements = prod(extent(values) for extent in shape)
            bytes_ = elements * tile_bits // 8
            if scope is Scope.FRAGMENT:
                fragments, largest = fragments + bytes_, max(largest, elements)
            elif scope is Scope.SHARED and position is not None:
                staged_bytes[position] += bytes_
            elif scope is Scope.SHARED:
                fixed += bytes_
        longest, mean = _longest(body, values, differing) if prod(extents) else (Counts(), 1.0)
        return Work(
            blocks=prod(extents),
            cluster=prod(values.get(cluster_key(place, axis), side) for axis, side in enumerate(launch.cluster)),
            threads=values.get(threads_key(place), launch.block_threads),
            stages=tuple(
                values.get(stages_key(place, position), loop.num_stages) for position, loop in enumerate(loops)
            ),
            staged_bytes=tuple(staged_bytes),
            fixed_bytes=fixed,
            fragment_bytes=fragments,
            tile_elements=largest,
            operand_bits=bits,
            longest=longest,
            mean=mean,
        )

    return of


def _longest(body: Count, values: Values, differing: list[tuple[str, int]]) -> tuple[Counts, float]:
    """The counts of the block that does most, of samples over the axes of the grid in which blocks differ; and the
    mean block's iterations over its.
    """
    longest: Counts | None = None
    iterations: list[int] = []
    for sample in _samples(prod(extent for _, extent in differing)):
        for key, extent in differing:
            values[key], sample = sample % extent, sample // extent
        counts = Counts()
        body(values, counts, 1)
        iterations.append(counts.iterations)
        if longest is None or counts.amount > longest.amount:
            longest = counts
    assert longest is not None, "there is a first sample"
    return longest, sum(iterations) / len(iterations) / max(longest.iterations, 1) if longest.iterations else 1.0


def _samples(blocks: int) -> list[int]:
    """Indices of blocks, evenly over the grid, the first and the last among them; an odd step meets all remainders."""
    if blocks <= _SAMPLES:
        return list(range(max(blocks, 1)))
    return sorted({position * (blocks - 1) // (_SAMPLES - 1) for position in range(_SAMPLES)})


def _staged(launch: Launch, pipelined: Mapping[int, int]) -> dict[Buffer, int]:
    """The shared tiles that pipelined loops load, by the number of the loop: they have a copy per stage."""
    found: dict[Buffer, int] = {}
    for loop in loops_of(launch):
        for stmt in walk_stmts(loop.body):
            if isinstance(stmt, Copy) and stmt.dst.buffer.scope is Scope.SHARED and loop.num_stages > 0:
                found.setdefault(stmt.dst.buffer.memory, pipelined[id(loop)])
    return found


def _bits(tile: Buffer) -> int:
    return 0 if tile.of is not None else tile.dtype.bits
