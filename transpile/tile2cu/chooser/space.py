"""The tile parameters of a kernel, found by what they reach, and the settings of them that are worth a prediction.

A parameter is one of a tile's size, of the threads, of the stages or of the parts of a loop if a change of it changes
nothing else: the tensors keep their shapes, no element's value is computed from it, and the work that
`chooser.work` counts with the changed value is that of the program traced anew.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from enum import Enum
from functools import cached_property
from itertools import product

from msgspec import field
from msgspec.structs import replace

from tile2cu.chooser.counts import Counter, Work
from tile2cu.chooser.numbers import Number, Unknown, Values, key_of, number, parameter_key
from tile2cu.chooser.work import (
    cluster_key,
    counters_of,
    loops_of,
    stages_key,
    tensor_bytes,
    threads_key,
)
from tile2cu.core.errors import Tile2CuError
from tile2cu.core.expr import Binary, Call, Expr, Load, Named, Var, children, walk
from tile2cu.core.program import Atomic, AtomicTile, Buffer, Gemm, Launch, Let, Loop, Program, Scope, Store
from tile2cu.core.record import Record

Retrace = Callable[[Mapping[str, int]], Program]


class Kind(Enum):
    """What a parameter decides."""

    M = "rows of a GEMM's tile"
    N = "columns of a GEMM's tile"
    K = "depth of a GEMM's tile"
    CHAINED = "columns of a GEMM's tile that are the depth of the next one's"
    ROWS = "rows of a tile that a block without MMAs has in registers, or loads by stages"
    COLUMNS = "columns of a tile that a block without MMAs loads by stages"
    THREADS = "threads of a block"
    ROW_THREADS = "threads of a block without MMAs"
    STAGES = "stages of a pipelined loop"
    PARTS = "parts that a loop is split into"


VALUES: Mapping[Kind, tuple[int, ...]] = {
    Kind.M: (16, 64, 128, 192, 256),
    Kind.N: (32, 64, 128, 192, 256),  # 96 and 160 have a narrower swizzle: 0.6 to 0.9 of their neighbours
    Kind.K: (64, 128),
    Kind.CHAINED: (64, 128),  # as in attention; others were 0.8 to 1.05 of the better of these two
    Kind.ROWS: (1, 2, 4, 8, 16),
    Kind.COLUMNS: (512, 1024, 2048),
    Kind.THREADS: (128, 256, 384),
    Kind.ROW_THREADS: (32, 64, 128, 256, 512),
    Kind.STAGES: (2, 3, 4, 5, 6, 8),
    Kind.PARTS: (1, 2, 3, 4, 8),
}


_WGMMA_ROWS = 64
OF_BLOCKS = (Kind.THREADS, Kind.ROW_THREADS, Kind.STAGES)  # which change no count of a tile


class Parameter(Record, frozen=True, kw_only=True):
    """A tile parameter with its value in the file; `keys` are those of the values by which its effects are counted."""

    name: str
    default: int
    kind: Kind
    keys: tuple[str, ...]

    @cached_property
    def values(self) -> tuple[int, ...]:
        """The values that are tried, and the file's own; less depth than those means iterations that save nothing."""
        own = () if self.kind is Kind.K and self.default < min(VALUES[Kind.K]) else (self.default,)
        return tuple(sorted({*VALUES[self.kind], *own}))


class Space(Record, frozen=True, kw_only=True):
    """A kernel's tile parameters, and its work for any setting of them; `bytes_of` each launch's tensors.

    `fits`: whether a setting of a tile fits a block, of the tiles for which that was found.
    """

    program: Program
    parameters: tuple[Parameter, ...]
    counters: tuple[Counter, ...]
    bytes_of: tuple[Callable[[Values], tuple[int, int]], ...]
    fits: dict[tuple[int, ...], bool] = field(default_factory=dict)

    @property
    def default(self) -> dict[str, int]:
        return {parameter.name: parameter.default for parameter in self.parameters}

    def tiles(self, sizes: Mapping[str, int]) -> Iterator[tuple[dict[str, int], tuple[Work, ...]]]:
        """Every setting of the parameters that are no threads and stages, with its work, but those that do not fit.

        Sides that only add rows or columns outside of the tensors are left out.
        """
        tiles = [each for each in self.parameters if each.kind not in OF_BLOCKS]
        default, known = self.default, size_values(self.program, sizes)
        for sides in product(*(self._useful(each, sizes) for each in tiles)):
            if not self.fits.get(sides, True):
                continue
            own = {each.name: value for each, value in zip(tiles, sides, strict=True)}
            with suppress(Unknown):
                yield own, _works(self.counters, self._set(known, {**default, **own}))

    def _useful(self, parameter: Parameter, sizes: Mapping[str, int]) -> list[int]:
        """The values of a parameter, but those of a GEMM's sides for which a smaller one gives as many tiles.

        That is, all that it divides has the same quotients. The smaller one has all rows of a wgmma.
        """
        divide, found, seen = self._quotients.get(parameter.name), list[int](), set[tuple[int, ...]]()
        if not divide:
            return list(parameter.values)
        values = self.values(self.default, sizes)
        for value in parameter.values:
            with suppress(Unknown):
                quotients = tuple(each({**values, parameter_key(parameter.name): value}) for each in divide)
                if quotients in seen:
                    continue
                if value % _WGMMA_ROWS == 0:
                    seen.add(quotients)
            found.append(value)
        return found

    @cached_property
    def _quotients(self) -> dict[str, tuple[Number, ...]]:
        """The divisions by a side of a GEMM's tile that decide grids and trip counts, by the parameter."""
        sides = [each.name for each in self.parameters if each.kind in (Kind.M, Kind.N)]
        divisions = [each for launch in self.program.launches for each in _divisions(launch)]
        return {
            name: tuple(number(division) for division, divisor in divisions if name in _names(divisor))
            for name in sides
        }

    def of_tile(
        self, own: Mapping[str, int], stages: Callable[[Iterable[int]], int] | None = None
    ) -> Iterator[dict[str, int]]:
        """Every setting with these values of its tile; with one number of `stages`: the most or the fewest."""
        choices = [
            (own[each.name],)
            if each.kind not in OF_BLOCKS
            else (stages(each.values),)
            if stages and each.kind is Kind.STAGES
            else each.values
            for each in self.parameters
        ]
        for values in product(*choices):
            yield dict(zip(self._names, values, strict=True))

    def with_blocks(self, works: tuple[Work, ...], setting: Mapping[str, int]) -> tuple[Work, ...]:
        """The work of a tile, which `tiles` counted, with a setting's threads and stages."""
        return tuple(
            replace(
                work,
                threads=setting.get(threads, work.threads),
                stages=tuple(map(setting.get, stages, work.stages)),
            )
            for work, (threads, stages) in zip(works, self._of_launches, strict=True)
        )

    @cached_property
    def _names(self) -> tuple[str, ...]:
        return tuple(each.name for each in self.parameters)

    @cached_property
    def _of_launches(self) -> list[tuple[str, tuple[str, ...]]]:
        """Of each launch the parameter that is its threads, and those that are its loops' stages; else empty."""
        named = {key: each.name for each in self.parameters if each.kind in OF_BLOCKS for key in each.keys}
        return [
            (
                named.get(threads_key(place), ""),
                tuple(named.get(stages_key(place, loop), "") for loop, _ in enumerate(loops_of(launch))),
            )
            for place, launch in enumerate(self.program.launches)
        ]

    def works(self, setting: Mapping[str, int], sizes: Mapping[str, int]) -> tuple[Work, ...]:
        """The work of each launch. Raises Unknown where sizes do not determine it."""
        return _works(self.counters, self.values(setting, sizes))

    def values(self, setting: Mapping[str, int], sizes: Mapping[str, int]) -> Values:
        return self._set(size_values(self.program, sizes), setting)

    def _set(self, known: Values, setting: Mapping[str, int]) -> Values:
        """These values with those of a setting."""
        values = dict(known)
        for parameter in self.parameters:
            for key in parameter.keys:
                values[key] = setting[parameter.name]
        for key, computed in self._computed:
            values[key] = computed(values)
        return values

    @cached_property
    def _computed(self) -> list[tuple[str, Number]]:
        """The constants that are computed from parameters."""
        constants = self.program.constants
        return [(parameter_key(each.name), number(each.computed)) for each in constants if each.computed is not None]


def size_values(program: Program, sizes: Mapping[str, int]) -> Values:
    """Run-time sizes and integer arguments by their keys."""
    known = [*program.sizes, *(param for param in program.params if isinstance(param, Var))]
    return {key_of(var): int(sizes[var.name]) for var in known if var.name in sizes}


def space_of(program: Program, defaults: Mapping[str, int], retrace: Retrace, sizes: Mapping[str, int]) -> Space:
    """The space of a program whose parameters have these integer defaults.

    `retrace` gives the program with other values of parameters, and raises Tile2CuError where they are impossible;
    `sizes`, some that a caller may have, are those for which counts are compared.
    """
    counters = counters_of(program)
    found = []
    for name, default in defaults.items():
        parameter = _parameter(program, counters, name, default, retrace, sizes)
        if parameter is not None:
            found.append(parameter)
    return Space(program=program, parameters=tuple(found), counters=counters, bytes_of=_bytes_of(program))


def space_with(program: Program, parameters: tuple[Parameter, ...]) -> Space:
    """The space of a program whose parameters `space_of` has found before."""
    return Space(program=program, parameters=parameters, counters=counters_of(program), bytes_of=_bytes_of(program))


def _bytes_of(program: Program) -> tuple[Callable[[Values], tuple[int, int]], ...]:
    return tuple(tensor_bytes(launch, program) for launch in program.launches)


def _works(counters: Sequence[Counter], values: Values) -> tuple[Work, ...]:
    return tuple(each(values) for each in counters)


def _parameter(
    program: Program,
    counters: Sequence[Counter],
    name: str,
    default: int,
    retrace: Retrace,
    sizes: Mapping[str, int],
) -> Parameter | None:
    """The parameter, if a change of it is one of the schedule alone."""
    for probe in (default * 2, default // 2, default + 1):
        if probe < 1 or probe == default:
            continue
        try:
            changed = retrace({name: probe})
        except Tile2CuError:
            continue
        kind, keys = _effects(program, changed, name, default, probe)
        if kind is None or not _same_interface(program, changed) or _reaches_values(program, name):
            return None
        found = Parameter(name=name, default=default, kind=kind, keys=keys)
        return found if _counts_agree(program, counters, changed, found, probe, sizes) else None
    return None


def _same_interface(program: Program, changed: Program) -> bool:
    """Whether both take the same tensors and scalars, and make as many launches."""

    def of(program: Program) -> list[object]:
        params = [
            (param.name, param.shape, param.strides, param.dtype) if isinstance(param, Buffer) else param
            for param in program.params
        ]
        return [params, program.outputs, len(program.launches), [launch.groups for launch in program.launches]]

    return of(program) == of(changed)


def _effects(
    program: Program, changed: Program, name: str, default: int, probe: int
) -> tuple[Kind | None, tuple[str, ...]]:
    """The kind of a parameter by what differs, and the keys of its values."""
    keys: list[str] = []
    kind: Kind | None = None
    for place, (old, new) in enumerate(zip(program.launches, changed.launches, strict=False)):
        if (old.block_threads, new.block_threads) == (default, probe):
            kind, keys = Kind.THREADS if _multiplies(program) else Kind.ROW_THREADS, [*keys, threads_key(place)]
        for position, (was, now) in enumerate(zip(loops_of(old), loops_of(new), strict=False)):
            if (was.num_stages, now.num_stages) == (default, probe):
                kind, keys = Kind.STAGES, [*keys, stages_key(place, position)]
        for axis, (before, after) in enumerate(zip(old.cluster, new.cluster, strict=False)):
            if (before, after) == (default, probe):
                keys.append(cluster_key(place, axis))
    if kind is not None:
        return (kind, tuple(dict.fromkeys(keys))) if not _is_named(program, name) else (None, ())
    kind = _tile_kind(program, name)
    return kind, (parameter_key(name), *dict.fromkeys(keys))


def _is_named(program: Program, name: str) -> bool:
    return any(constant.name == name for constant in program.constants)


def _tile_kind(program: Program, name: str) -> Kind | None:
    """Whether a parameter is an extent of a GEMM's tile, or a number of parts; it divides a grid or a trip count."""
    if not any(name in _divisors(launch) for launch in program.launches):
        return None
    for launch in program.launches:
        if any(isinstance(extent, Named) and extent.name == name for extent in launch.grid):
            several = len(launch.grid) > 1  # else it is the number of persistent blocks
            return Kind.PARTS if several and not _adds_to_memory(launch) else None
        roles = [role for gemm in launch.statements if isinstance(gemm, Gemm) for role in _roles(gemm, name)]
        if roles:
            return Kind.CHAINED if {Kind.N, Kind.K} <= {*roles} else roles[0]
        if not _multiplies(program) and any(name in _names(loop.stop) for loop in loops_of(launch)):
            return Kind.COLUMNS
        if not _multiplies(program) and any(name in _names(tile.shape[0]) for tile in launch.tiles):
            return Kind.ROWS
    return None


def _multiplies(program: Program) -> bool:
    """Whether a launch has a GEMM."""
    return any(isinstance(stmt, Gemm) for launch in program.launches for stmt in launch.statements)


def _roles(gemm: Gemm, name: str) -> Iterator[Kind]:
    """Which extents of a GEMM's tile a parameter decides."""
    m, n = gemm.c.extents
    k = gemm.a.extents[0 if gemm.transpose_a else 1]
    return (kind for kind, extent in ((Kind.M, m), (Kind.N, n), (Kind.K, k)) if name in _names(extent))


def _adds_to_memory(launch: Launch) -> bool:
    """Whether blocks add to tensors: more parts would add in another order in each run."""
    return any(
        isinstance(stmt, Atomic | AtomicTile)
        and (stmt.buffer if isinstance(stmt, Atomic) else stmt.dst.buffer).scope is Scope.GLOBAL
        for stmt in launch.statements
    )


def _divisors(launch: Launch) -> set[str]:
    """The parameters that divide extents of the grid or trip counts."""
    return {name for _, divisor in _divisions(launch) for name in _names(divisor)}


def _divisions(launch: Launch) -> Iterator[tuple[Expr, Expr]]:
    """The divisions in extents of the grid and in trip counts, each with its divisor."""
    exprs: list[Expr] = [*launch.grid, *(let.value for let in launch.prelude)]
    for stmt in launch.statements:
        if isinstance(stmt, Loop):
            exprs += [stmt.start, stmt.stop]
        elif isinstance(stmt, Let):
            exprs.append(stmt.value)
    for part in (part for expr in exprs for part in walk(expr)):
        match part:
            case Call(function="ceildiv", args=(_, divisor)) | Binary(op="//", rhs=divisor):
                yield part, divisor
            case _:
                pass


def _names(expr: Expr) -> set[str]:
    return {part.name for part in walk(expr) if isinstance(part, Named)}


def _reaches_values(program: Program, name: str) -> bool:
    """Whether an element's value is computed from the parameter, rather than its place."""
    derived = {
        constant.name
        for constant in program.constants
        if constant.computed is not None and name in _names(constant.computed)
    }
    names = {name, *derived}
    return any(
        _computes_with(value, names)
        for launch in program.launches
        for stmt in launch.statements
        if isinstance(stmt, Store | Atomic)
        for value in (stmt.value,)
    )


def _computes_with(expr: Expr, names: set[str]) -> bool:
    """Whether arithmetic on elements has an operand of these names; in conditions and indices they are places."""
    if isinstance(expr, Load):
        return False
    if isinstance(expr, Call) and expr.function == "if_then_else":
        return any(_computes_with(part, names) for part in expr.args[1:])
    if isinstance(expr, Named):
        return expr.name in names
    return any(_computes_with(part, names) for part in children(expr))


def _counts_agree(
    program: Program,
    counters: Sequence[Counter],
    changed: Program,
    parameter: Parameter,
    probe: int,
    sizes: Mapping[str, int],
) -> bool:
    """Whether the counted work with a changed value is that of the program traced with it."""
    space = Space(program=program, parameters=(parameter,), counters=tuple(counters), bytes_of=_bytes_of(program))
    try:
        expected = _works(counters_of(changed), size_values(changed, sizes))
        return space.works({parameter.name: probe}, sizes) == expected
    except Unknown:
        return False
