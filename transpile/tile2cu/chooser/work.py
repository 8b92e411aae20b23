"""What a block of a launch does, counted from the program: MMAs, bytes of each copy, loop iterations.

`counter` compiles a launch to closures once; a configuration and its sizes are counted in microseconds, without a
trace, a rule or an emitted line. Blocks whose work differs are sampled.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, field, fields, replace
from itertools import groupby
from math import prod
from typing import TypeVar

from tile2cu.analysis.accesses import buffers_used, expressions
from tile2cu.analysis.lifetimes import buffers_in
from tile2cu.analysis.uses import declared_in
from tile2cu.chooser.numbers import Number, Unknown, Values, assignments, key_of, number, parameter_key
from tile2cu.core.expr import Binary, Call, Expr, Load, Named, Unary, Var, static_value, walk
from tile2cu.core.program import (
    Atomic,
    AtomicTile,
    Buffer,
    Copy,
    Fill,
    Gemm,
    If,
    Launch,
    Let,
    Loop,
    LoopKind,
    Parallel,
    Program,
    Reduce,
    Region,
    Scope,
    Stmt,
    Store,
    While,
    walk_stmts,
)

_Data = TypeVar("_Data")
_SAMPLES = 8  # blocks of a launch whose work depends on the block
_STORED_BITS = 16  # of an element, up to which results are stored by TMA
_LINE_BITS, _SECTOR_BITS = 128 * 8, 32 * 8  # of the L2
_SPECIAL = 8  # instructions that one of the special function unit takes the time of: it has 16 lanes, not 128
_SPECIAL_FUNCTIONS = frozenset({"exp", "exp2", "log", "log2", "sqrt", "rsqrt", "tanh", "sin", "cos", "pow", "sigmoid"})
_KEPT = 1 << 10  # counts of a loop's body
_ALONE = 4  # first and last iterations of a loop whose work depends on them, counted one by one; others in runs


@dataclass(kw_only=True)
class Counts:
    """The work of one block. Bytes are those inside of the tensors; `mma` has M, N, K of a tile and how many there are.

    `iterations` are those of loops with GEMMs, or else of pipelined loops; `loaded` are the bytes that they load,
    `narrow` those of them in rows of less than a cache line, `straddling` those in `straddling_rows` that begin inside
    of sectors of 32 bytes, as with a pitch of odd multiples of 16, and `filled` the bytes of their boxes outside of the
    tensors, which become zero. `prologue` bytes are loaded outside of loops, `stored` ones stored,
    `stored_wide` those of them that have over 16 bits per element. `exchanged` bytes go to other blocks of the cluster,
    `gathered` ones of each block to the same one. `elementwise` are the operations of loops over elements in those
    iterations, in instructions of a lane.
    """

    mma: dict[tuple[int, int, int], int] = field(default_factory=dict)
    iterations: int = 0
    loaded: float = 0.0
    filled: float = 0.0
    straddling: float = 0.0
    straddling_rows: float = 0.0
    narrow: float = 0.0
    prologue: float = 0.0
    stored: float = 0.0
    stored_wide: float = 0.0
    exchanged: float = 0.0
    gathered: float = 0.0
    elementwise: float = 0.0

    def adding(self) -> Callable[["Counts", int], None]:
        """A function that adds this work to another block's, so many times."""
        mma = tuple(self.mma.items())
        amounts = tuple((name, amount) for name, amount in vars(self).items() if amount and name != "mma")

        def add(other: Counts, times: int) -> None:
            for shape, repeated in mma:
                other.mma[shape] = other.mma.get(shape, 0) + times * repeated
            own = vars(other)
            for name, amount in amounts:
                own[name] += times * amount

        return add

    @property
    def amount(self) -> tuple[float, ...]:
        """By which blocks are compared."""
        return self.iterations, self.loaded, self.stored + self.exchanged + self.gathered


@dataclass(frozen=True, kw_only=True)
class Work:
    """The work of a launch: `blocks` in clusters of `cluster`, the counts of the longest of them.

    `threads` compute. `stages` are those of each pipelined loop, `staged_bytes` the shared memory of one stage of it;
    `fixed_bytes` are those of other shared tiles, without what rules add. `fragment_bytes` are those of tiles in
    registers, of which the largest has `tile_elements`; `operand_bits` are those of the MMAs' operands. The mean block
    has `mean` of the iterations of the longest.
    """

    blocks: int
    cluster: int
    threads: int
    stages: tuple[int, ...]
    staged_bytes: tuple[int, ...]
    fixed_bytes: int
    fragment_bytes: int
    tile_elements: int
    operand_bits: int
    longest: Counts
    mean: float = 1.0

    @property
    def shared_bytes(self) -> int:
        return self.fixed_bytes + sum(max(n, 1) * each for n, each in zip(self.stages, self.staged_bytes, strict=True))

    @property
    def most_stages(self) -> int:
        return max(self.stages, default=1) or 1


def changed(data: _Data, **values: object) -> _Data:
    """As `dataclasses.replace`, in a fifth of its time, which is most of a prediction's: it calls no initialiser."""
    made = object.__new__(type(data))
    vars(made).update(vars(data), **values)
    return made


Count = Callable[[Values, Counts, int], None]
Counter = Callable[[Values], Work]


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
    body = _body(launch.body, _Scope(pipelined, _read_by(launch.body)))
    grid = tuple(map(number, launch.grid))
    prelude = [(key_of(let.var), number(let.value)) for let in launch.prelude]
    used = _variables_of(launch.body)
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


@dataclass(frozen=True)
class _Scope:
    """Where a statement is: `inside` of a loop whose iterations are counted; counts read the keys `read`."""

    pipelined: Mapping[int, int]
    read: Set[str]
    inside: bool = False


def _body(body: tuple[Stmt, ...], scope: _Scope) -> Count:
    parts: list[Count] = []
    for lets, stmts in groupby(body, lambda stmt: isinstance(stmt, Let)):
        if lets:
            parts.append(_lets([stmt for stmt in stmts if isinstance(stmt, Let) and key_of(stmt.var) in scope.read]))
        else:
            parts += (part for stmt in stmts if (part := _statement(stmt, scope)) is not None)

    def count(values: Values, counts: Counts, times: int) -> None:
        for part in parts:
            part(values, counts, times)

    return count


def _statement(stmt: Stmt, scope: _Scope) -> Count | None:
    match stmt:
        case Gemm():
            return _gemm(stmt)
        case Copy():
            return _copy(stmt, scope)
        case AtomicTile() if stmt.dst.buffer.scope is Scope.GLOBAL:
            return _bytes("stored", _inside(stmt.dst), twice=True)
        case Parallel():
            return _both(_parallel(stmt, scope), _elementwise(stmt, scope))
        case Reduce(src=tile) | Fill(dst=Region(buffer=tile)):
            return _elements(tuple(map(number, tile.shape)), 1, scope)
        case If() if _matters(stmt.then) or _matters(stmt.orelse):
            return _branch(number(stmt.condition), *(_remembered(arm, scope) for arm in (stmt.then, stmt.orelse)))
        case Loop() if _matters(stmt.body):
            return _loop(stmt, scope)
        case While() if _matters(stmt.body):
            return _raise
        case _:
            return None


def _raise(values: Values, counts: Counts, times: int) -> None:
    raise Unknown


def _matters(body: tuple[Stmt, ...]) -> bool:
    return any(isinstance(stmt, Gemm | Copy | AtomicTile | Parallel | Reduce | Fill) for stmt in walk_stmts(body))


def _lets(lets: Sequence[Let]) -> Count:
    assign = assignments([(key_of(let.var), let.value) for let in lets])
    return lambda values, counts, times: assign(values)


def _gemm(stmt: Gemm) -> Count:
    m, n = map(number, stmt.c.extents)
    k = number(stmt.a.extents[0 if stmt.transpose_a else 1])
    sparse = 1 if stmt.metadata is None else 2

    def count(values: Values, counts: Counts, times: int) -> None:
        shape = (m(values), n(values), sparse * k(values))
        counts.mma[shape] = counts.mma.get(shape, 0) + times

    return count


def _copy(stmt: Copy, scope: _Scope) -> Count | None:
    if stmt.block is not None:
        return _bytes("exchanged" if static_value(stmt.block) is None else "gathered", _whole(stmt.src))
    if stmt.dst.buffer.scope is Scope.GLOBAL:
        return _stored(stmt.dst)
    if stmt.src.buffer.scope is Scope.GLOBAL:
        return _load(stmt.src) if scope.inside else _bytes("prologue", _inside(stmt.src))
    if stmt.dst.buffer.scope is Scope.FRAGMENT:
        return _elements(tuple(map(number, stmt.dst.extents)), 1, scope)
    return None


def _load(region: Region) -> Count:
    inside, whole, row = _inside(region), _whole(region), number(region.ranges[-1].extent)
    bits = region.buffer.dtype.bits
    pitch = number(region.buffer.shape[-1]) if region.buffer.strides is None else None

    def count(values: Values, counts: Counts, times: int) -> None:
        bytes_ = inside(values)
        counts.loaded += times * bytes_
        counts.filled += times * (whole(values) - bytes_)
        if pitch is not None and pitch(values) * bits % _SECTOR_BITS:
            counts.straddling += times * bytes_
            counts.straddling_rows += times * bytes_ * 8 / max(row(values) * bits, 1)
        if row(values) * bits < _LINE_BITS:
            counts.narrow += times * bytes_

    return count


def _stored(region: Region) -> Count:
    bytes_, wide = _bytes("stored", _inside(region)), _bytes("stored_wide", _inside(region))

    def count(values: Values, counts: Counts, times: int) -> None:
        bytes_(values, counts, times)
        wide(values, counts, times)

    return count if region.buffer.dtype.bits > _STORED_BITS else bytes_


def _bytes(what: str, of: Callable[[Values], float], *, twice: bool = False) -> Count:
    factor = 2 if twice else 1

    def count(values: Values, counts: Counts, times: int) -> None:
        setattr(counts, what, getattr(counts, what) + factor * times * of(values))

    return count


def _whole(region: Region) -> Callable[[Values], float]:
    extents, bits = tuple(map(number, region.extents)), region.buffer.dtype.bits
    return lambda values: prod(extent(values) for extent in extents) * bits / 8


def _inside(region: Region) -> Callable[[Values], float]:
    """The bytes of a box that are inside of the tensor, in the mean of the boxes that tile it."""
    bits = region.buffer.dtype.bits
    sides = [
        (number(part.extent), number(shape)) for part, shape in zip(region.ranges, region.buffer.shape, strict=True)
    ]

    def of(values: Values) -> float:
        total = bits / 8
        for extent, shape in sides:
            box = extent(values)
            if box > 1:
                size = shape(values)
                total *= size / -(-size // box) if size > 0 else 0
        return total

    return of


def _parallel(stmt: Parallel, scope: _Scope) -> Count:
    """Elements of tensors that a loop over elements loads and stores; an index that stays the same is loaded once."""
    extents = {var: number(extent) for var, extent in zip(stmt.vars, stmt.extents, strict=True)}
    accesses: list[tuple[str, int, list[Number]]] = []

    def add(what: str, buffer: Buffer, indices: tuple[Expr, ...]) -> None:
        accesses.append((what, buffer.dtype.bits, [_places(index, extents) for index in indices]))

    for inner in walk_stmts(stmt.body):
        for value in _values_of(inner):
            for load in walk(value):
                if isinstance(load, Load) and isinstance(load.buffer, Buffer) and load.buffer.scope is Scope.GLOBAL:
                    add("loaded" if scope.inside else "prologue", load.buffer, load.indices)
        if isinstance(inner, Store | Atomic) and inner.buffer.scope is Scope.GLOBAL:
            add("stored", inner.buffer, inner.indices)

    def count(values: Values, counts: Counts, times: int) -> None:
        for what, bits, places in accesses:
            bytes_ = prod(each(values) for each in places) * bits / 8
            setattr(counts, what, getattr(counts, what) + times * bytes_)

    return count


def _places(index: Expr, extents: Mapping[Var, Number]) -> Number:
    """How many values an index has over the variables of a loop over elements, as one that grows with each of them."""
    own = {key_of(var): extent for var, extent in extents.items() if var in walk(index)}
    place = number(index)

    def of(values: Values) -> int:
        sides = {key: extent(values) for key, extent in own.items()}
        most = prod(sides.values())
        corners = dict.fromkeys(sides, 0), {key: extent - 1 for key, extent in sides.items()}
        try:
            first, last = (place({**values, **each}) for each in corners)
        except Unknown:
            return most
        return min(abs(last - first) + 1, most)

    return of


def _both(first: Count, second: Count | None) -> Count:
    if second is None:
        return first

    def count(values: Values, counts: Counts, times: int) -> None:
        first(values, counts, times)
        second(values, counts, times)

    return count


def _elementwise(stmt: Parallel, scope: _Scope) -> Count | None:
    """The operations of a loop over elements, of whose arms of a branch all are counted."""
    values = (value for inner in walk_stmts(stmt.body) for value in _values_of(inner))
    operations = sum(map(_instructions, (part for value in values for part in walk(value))))
    return _elements(tuple(map(number, stmt.extents)), max(operations, 1), scope)


def _elements(extents: tuple[Number, ...], operations: int, scope: _Scope) -> Count | None:
    """So many operations for each element, in loops whose iterations are counted."""
    if not scope.inside:
        return None

    def count(values: Values, counts: Counts, times: int) -> None:
        counts.elementwise += times * operations * prod(extent(values) for extent in extents)

    return count


def _instructions(expr: Expr) -> int:
    """Instructions of a lane; the special function unit has an eighth of the lanes of the others."""
    match expr:
        case Binary(op="/"):
            return _SPECIAL
        case Call(function=function):
            return _SPECIAL if function in _SPECIAL_FUNCTIONS else 1
        case Binary() | Unary():
            return 1
        case _:
            return 0


def _values_of(stmt: Stmt) -> tuple[Expr, ...]:
    match stmt:
        case Let() | Store() | Atomic():
            return (stmt.value,)
        case If():
            return (stmt.condition,)
        case _:
            return ()


def _branch(condition: Number, then: Count, orelse: Count) -> Count:
    """The arm that the condition selects; where it depends on memory, the first."""

    def count(values: Values, counts: Counts, times: int) -> None:
        try:
            taken = condition(values)
        except Unknown:
            taken = 1
        (then if taken else orelse)(values, counts, times)

    return count


def _loop(stmt: Loop, scope: _Scope) -> Count:
    has_gemm = any(isinstance(inner, Gemm) for inner in stmt.body)
    counted = has_gemm or id(stmt) in scope.pipelined
    own = replace(scope, inside=scope.inside or counted)
    depends = key_of(stmt.var) in _variables_of(stmt.body)
    body = _body(stmt.body, own) if depends else _remembered(stmt.body, own)
    start, stop, step = number(stmt.start), number(stmt.stop), number(stmt.step)
    key = key_of(stmt.var)

    def count(values: Values, counts: Counts, times: int) -> None:
        trips = range(start(values), stop(values), step(values) or 1)
        if counted:
            counts.iterations += times * len(trips)
        if not depends:
            if len(trips):
                body(values, counts, times * len(trips))
            return
        for at, repeated in _sampled(trips):
            values[key] = at
            body(values, counts, times * repeated)

    return count


def _sampled(trips: range) -> Iterator[tuple[int, int]]:
    """Iterations, each with how many it stands for: the first and the last ones alone, those between in runs."""
    first, last = trips[:_ALONE], trips[_ALONE:][-_ALONE:]
    between = trips[_ALONE : len(trips) - len(last)]
    yield from ((at, 1) for at in first)
    step = -(-len(between) // _ALONE) or 1
    yield from ((between[at], min(step, len(between) - at)) for at in range(0, len(between), step))
    yield from ((at, 1) for at in last)


def _variables_of(body: tuple[Stmt, ...]) -> Set[str]:
    """The keys of the variables on which counts of the body depend, also by way of names for values."""
    exprs: list[Expr] = []
    for stmt in walk_stmts(body):
        match stmt:
            case Loop() if _matters(stmt.body):
                exprs += [stmt.start, stmt.stop, stmt.step]
            case If() if _matters(stmt.then) or _matters(stmt.orelse):
                exprs.append(stmt.condition)
            case _:
                pass
    return _keys_of(exprs, body)


def _read_by(body: tuple[Stmt, ...]) -> Set[str]:
    """The keys that counting the body reads: all but those of the places of boxes."""
    exprs: list[Expr] = []
    for stmt in walk_stmts(body):
        boxes = [box for box in (getattr(stmt, field.name) for field in fields(stmt)) if isinstance(box, Region)]
        exprs += (part.extent for box in boxes for part in box.ranges)
        exprs += (extent for buffer in buffers_used(stmt) for extent in buffer.shape)
        if not boxes and not isinstance(stmt, Let):
            exprs += expressions(stmt)
    return _keys_of(exprs, body)


def _keys_of(exprs: list[Expr], body: tuple[Stmt, ...]) -> Set[str]:
    """The keys of what expressions read, also by way of names for values of the body."""
    named = {key_of(stmt.var): stmt.value for stmt in walk_stmts(body) if isinstance(stmt, Let)}
    found: set[str] = set()
    while exprs:
        for part in walk(exprs.pop()):
            if isinstance(part, Var | Named):
                key = key_of(part) if isinstance(part, Var) else parameter_key(part.name)
                if key not in found:
                    found.add(key)
                    exprs += [named[key]] if key in named else []
    return found


def _remembered(body: tuple[Stmt, ...], scope: _Scope) -> Count:
    """As `_body`, counted once for the same values of what it reads from outside."""
    parts, found = _body(body, scope), dict[tuple[int | None, ...], Callable[[Counts, int], None]]()
    read = sorted(_read_by(body) - {key_of(var) for var in declared_in(body)})

    def count(values: Values, counts: Counts, times: int) -> None:
        key = tuple(map(values.get, read))
        add = found.get(key)
        if add is None:
            if len(found) == _KEPT:
                found.clear()
            once = Counts()
            parts(values, once, 1)
            found[key] = add = once.adding()
        add(counts, times)

    return count


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
