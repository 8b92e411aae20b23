"""Which values of tile parameters the rules take, in words: of what they must be multiples, and what must fit."""

from collections.abc import Container, Iterator, Set

from tile2cu.analysis.uses import is_per_thread, statements
from tile2cu.core.decisions import INSTRUCTION, PIPELINE, SHARED_BUDGET
from tile2cu.core.expr import Expr, Named, walk
from tile2cu.core.instruction import MmaUnit
from tile2cu.core.program import Buffer, Gemm, Loop, Parallel, Program
from tile2cu.core.record import Record
from tile2cu.core.schedule import Pipeline
from tile2cu.plan.resolved import Resolved
from tile2cu.styles.base.comments import listed
from tile2cu.styles.base.expressions import Printer
from tile2cu.targets.partition import LEAST_ROWS, WGMMA_ROWS, columns_of, least_k


class _Tile(Record, frozen=True, kw_only=True):
    """A GEMM on tensor cores: its extents, and the smallest shape of its types that tensor cores take."""

    m: "_Extent"
    n: "_Extent"
    k: "_Extent"
    shape: tuple[int, int, int]
    on_wgmma: bool


class _Extent(Record, frozen=True):
    """The extent of a tile in words, and the numbers that it has by their names in the user's file."""

    text: str
    numbers: frozenset[str]

    @classmethod
    def of(cls, extent: Expr, printer: Printer) -> "_Extent":
        numbers = frozenset(part.name for part in walk(extent) if isinstance(part, Named))
        return cls(printer.in_words(extent), numbers)

    def __str__(self) -> str:
        return self.text


def _have(names: Set[str], *extents: _Extent) -> bool:
    """Whether one of these extents depends on one of the names."""
    return any(not names.isdisjoint(extent.numbers) for extent in extents)


def legal_values(names: Set[str], launches: tuple[Resolved, ...], printer: Printer) -> str:
    """What values of these parameters must be, with the errors that others are; empty where no rule limits them."""
    tiles = tuple(dict.fromkeys(tile for each in launches for tile in _tiles(each, printer)))
    parts = [*_multiples_of_k(tiles, names), *_partitions(tiles, names, launches[0])]
    parts += [*_threads(launches, names), *_stages(launches, names)]
    parts += _asserted(launches[0].program, names, printer)
    sentences = [f"Legal values: {'; '.join(parts)}."] * bool(parts)
    if any(_have(names, tile.m, tile.n, tile.k) for tile in tiles):
        smallest = listed([*dict.fromkeys(" x ".join(map(str, tile.shape)) for tile in tiles)])
        sentences.append(f"A GEMM with a side below those of {smallest} is exempt: it runs on FMAs.")
    budget, memory = launches[0].facts[launches[0].launch, SHARED_BUDGET], _memory(launches[0])
    if any(each.facts[each.launch, SHARED_BUDGET].total for each in launches):
        sentences.append(f"Tiles must fit {budget.limit:,} bytes of {memory} (else T2C-L020).")
    if free := _free(launches, names):
        size, them = ("sizes", "it") if len(free) == 1 else ("size", "them")
        sentences.append(f"{listed(free)} {size} no tile: only the file's expressions and assertions limit {them}.")
    return " ".join(sentences)


def _tiles(resolved: Resolved, printer: Printer) -> Iterator[_Tile]:
    """The GEMMs of a launch that tensor cores compute."""
    for op in statements(resolved.launch.body, Gemm):
        k, instruction = least_k(op, resolved.target), resolved.facts[op, INSTRUCTION]
        if k is not None and op.metadata is None and instruction.unit is not MmaUnit.FMA:
            of_a = op.a.extents[0 if op.transpose_a else 1]
            m, n, along_k = (_Extent.of(extent, printer) for extent in (*op.c.extents, of_a))
            shape = (LEAST_ROWS, columns_of(resolved.target), k)
            yield _Tile(m=m, n=n, k=along_k, shape=shape, on_wgmma=instruction.unit is MmaUnit.WARPGROUP)


def _multiples_of_k(tiles: tuple[_Tile, ...], names: Set[str]) -> Iterator[str]:
    """The extents along K, by what they are multiples of."""
    for step in dict.fromkeys(tile.shape[2] for tile in tiles):
        found = dict.fromkeys(str(tile.k) for tile in tiles if tile.shape[2] == step and _have(names, tile.k))
        if found:
            yield f"{listed([*found])} in multiples of {step} (else T2C-S002)"


def _partitions(tiles: tuple[_Tile, ...], names: Set[str], first: Resolved) -> Iterator[str]:
    """The tiles of accumulators that warps share."""
    shared = (tile for tile in tiles if first.launch.threads_of in names or _have(names, tile.m, tile.n))
    found = dict.fromkeys(f"{tile.m} x {tile.n}" for tile in shared)
    if found:
        warps, columns = "waves" if first.target.is_amd else "warps", columns_of(first.target)
        rows = f"; wgmma takes {WGMMA_ROWS} rows per warpgroup, mma.sync runs elsewhere"
        yield (
            f"{listed([*found])} in equal parts for all {warps}, each a multiple of {LEAST_ROWS} x {columns} (else "
            f"T2C-L010{rows * any(tile.on_wgmma for tile in tiles)})"
        )


def _threads(launches: tuple[Resolved, ...], names: Container[str]) -> Iterator[str]:
    """The numbers of threads, where one of the parameters is that."""
    named = [each for each in launches if each.launch.threads_of in names]
    target = launches[0].target
    whole = "" if all(is_per_thread(each.launch.body) for each in named) else f" in multiples of {target.warp_size},"
    if whole and target.is_amd:  # passes/whole_warps.py
        whole = f", rounded up to a multiple of {target.warp_size},"
    for name in dict.fromkeys(each.launch.threads_of for each in named):
        yield f"{name}{whole} at most {target.max_threads:,} (else T2C-L021)"


def _stages(launches: tuple[Resolved, ...], names: Container[str]) -> Iterator[str]:
    """The numbers of stages."""
    pipelines: dict[str, Pipeline | None] = {}
    for each in launches:
        for loop in statements(each.launch.body, Loop):
            if loop.stages_of in names:
                pipelines.setdefault(loop.stages_of, each.facts.get(loop, PIPELINE))
    for name, pipeline in pipelines.items():
        if pipeline is not None and pipeline.staged:  # rules/schedule/pipeline.py, staged_pipeline_of
            one = "1 and 2 keep it in LDS while the next one loads to registers"
            more = "3 and more keep a second one there, if it fits"
            yield f"{name} from 0: 0 loads each tile where it is used, {one}, {more}"
        else:
            yield f"{name} from 0, fewer of which are used where more do not fit or do not help"


def _free(launches: tuple[Resolved, ...], names: Container[str]) -> list[str]:
    """The integers of a call of the factory on which no tile, tensor, loop over elements, stage or thread depends."""
    program = launches[0].program
    extents = [extent for each in launches for extent in sized_extents(each)]
    extents += [extent for param in program.params if isinstance(param, Buffer) for extent in param.shape]
    given = (each.name for each in program.constants if each.is_argument and each.dtype.is_int)
    others = (name for name in given if name not in names and not decides_in_python(name, program))
    return [name for name in others if not any(depends(name, extent, program) for extent in extents)]


def sized_extents(resolved: Resolved) -> Iterator[Expr]:
    """The extents of a launch's tiles and of its loops over elements."""
    yield from (extent for tile in resolved.launch.tiles for extent in tile.shape)
    yield from (extent for loop in statements(resolved.launch.body, Parallel) for extent in loop.extents)


def depends(name: str, expr: Expr, program: Program) -> bool:
    """Whether an expression has the constant, or one that is computed from it."""
    computed = {each.name: each.computed for each in program.constants if each.computed is not None}
    names = (part.name for part in walk(expr) if isinstance(part, Named))
    return any(each == name or (each in computed and depends(name, computed[each], program)) for each in names)


def decides_in_python(name: str, program: Program) -> bool:
    """Whether a constant is computed from another in a way that only the file's Python has."""
    return any(each.formula and each.computed is None and name in each.inputs for each in program.constants)


def _asserted(program: Program, names: Container[str], printer: Printer) -> Iterator[str]:
    """What the user's file asserts of the parameters."""
    for each in program.decided:
        if each.asserted and any(isinstance(part, Named) and part.name in names for part in walk(each.condition)):
            yield f"{printer.in_words(each.condition)} (else T2C-F019)"


def _memory(resolved: Resolved) -> str:
    return "LDS" if resolved.target.is_amd else "shared memory"
