"""What would fit of a kernel whose tiles need more shared memory than the target has: fewer stages, smaller settings.

Fewer stages change no result, and are taken. Smaller tiles are offered: settings are tried in the order of an estimate,
and one is offered only after the kernel was resolved with it, by the rules.
"""

from collections.abc import Callable, Iterator, Mapping
from itertools import product
from math import prod

from msgspec.structs import replace

from tile2cu.analysis.uses import statements
from tile2cu.core.errors import Tile2CuError
from tile2cu.core.expr import Expr, Named, rebuilt, static_value, walk
from tile2cu.core.program import Buffer, Copy, Launch, Loop, LoopKind, Program, Scope, Stmt
from tile2cu.core.rebuild import Body, each_replaced, with_bodies
from tile2cu.core.shared_memory import TooLarge

_SMALLEST = 16  # of a tile's extents: what one matrix instruction takes
_STAGES = "num_stages"
_TRIES = 16
_MOST_STAGES = 32  # that are tried where those that the file asks for, however many, do not fit
Bytes = Callable[[Program], int]
Retrace = Callable[[Mapping[str, int]], tuple[Program, ...]]


def with_fewer_stages(launch: Launch) -> Iterator[Launch]:
    """The launch with ever fewer stages in its pipelined loops, from _MOST_STAGES at most down to one."""
    for stages in range(min(_stages((launch,)) - 1, _MOST_STAGES), 0, -1):
        yield replace(launch, body=_fewer(launch.body, stages))


def with_help(error: TooLarge, program: Program, limit: int, retrace: Retrace, shared_bytes: Bytes) -> TooLarge:
    """The diagnostic that tiles do not fit into `limit` bytes, with the largest setting found to fit as its help.

    `retrace` gives the program with other values of its parameters; `shared_bytes` settles a program and gives the
    bytes of its ledger. Both raise Tile2CuError for settings that are not possible.
    """
    found = _largest(program, limit, retrace, shared_bytes)
    if found is None:
        help = "use smaller tiles or fewer stages"
    else:
        settings = ", ".join(f"{name}={value}" for name, value in found[0].items())
        help = f"the largest setting found to fit is {settings}, with {found[1]:,} bytes"
    return TooLarge(error.budget, error.arch, error.at, help)


def _largest(program: Program, limit: int, retrace: Retrace, shared_bytes: Bytes) -> tuple[dict[str, int], int] | None:
    """The first setting that settles, of those that seem to fit, largest first; with its bytes."""
    for setting in (_settings(program, limit) or _settings(program, limit, tensors=True))[:_TRIES]:
        sizes = {name: value for name, value in setting.items() if name != _STAGES}
        try:
            changed = retrace(sizes)[0] if sizes else program
            return setting, shared_bytes(_with_stages(changed, setting.get(_STAGES)))
        except Tile2CuError:
            continue
    return None


def _settings(program: Program, limit: int, *, tensors: bool = False) -> list[dict[str, int]]:
    """Smaller values of parameters that are extents of shared tiles, each halved up to thrice, and fewer stages.

    An extent of a tensor is what the kernel computes rather than a setting: it stays, but with `tensors`.

    In falling order of the bytes they should need, without those that should need too many. Where bytes are equal,
    the fewer changes come first.
    """
    launches = [[tile for tile in launch.tiles if tile.scope is Scope.SHARED] for launch in program.launches]
    stages = _stages(program.launches)
    kept = set() if tensors else {part.name for part in _of_tensors(program) if isinstance(part, Named)}
    parameters = {constant.name for constant in program.constants if constant.origin} - kept
    parts = (part for tiles in launches for tile in tiles for extent in tile.shape for part in walk(extent))
    extents = {part.name: int(part.value) for part in parts if isinstance(part, Named) and part.name in parameters}
    choices = [[size >> n for n in range(4) if size >> n >= _SMALLEST] or [size] for size in extents.values()]
    ahead = _loaded_ahead(program.launches)
    found: list[tuple[int, int, dict[str, int]]] = []
    for number in range(min(max(stages, 1), _MOST_STAGES), 0, -1):
        for values in product(*choices):
            sizes = dict(zip(extents, values, strict=True))
            setting = {name: value for name, value in sizes.items() if value != extents[name]}
            bytes_ = max(
                sum(_bytes(tile, sizes) * (number if tile in ahead else 1) for tile in tiles) for tiles in launches
            )
            if setting and bytes_ <= limit:
                setting |= {_STAGES: number} if number < stages else {}
                found.append((-bytes_, len(setting), setting))
    return [setting for _, _, setting in sorted(found, key=lambda each: each[:2])]


def _of_tensors(program: Program) -> Iterator[Expr]:
    """The parts of the tensors' extents."""
    tensors = (param for param in program.params if isinstance(param, Buffer))
    return (part for tensor in tensors for extent in tensor.shape for part in walk(extent))


def _stages(launches: tuple[Launch, ...]) -> int:
    """The most stages that a loop asks for."""
    loops = (stmt for launch in launches for stmt in statements(launch.body, Loop))
    return max((loop.num_stages for loop in loops), default=0)


def _loaded_ahead(launches: tuple[Launch, ...]) -> set[Buffer]:
    """The shared tiles that pipelined loops load, which are multi-buffered."""
    loops = (loop for launch in launches for loop in statements(launch.body, Loop) if loop.num_stages > 0)
    copies = (stmt for loop in loops for stmt in statements(loop.body, Copy))
    return {copy.dst.buffer for copy in copies if copy.dst.buffer.scope is Scope.SHARED}


def _bytes(tile: Buffer, sizes: Mapping[str, int]) -> int:
    """What a tile takes if the named sizes were these."""

    def change(part: Expr) -> Expr | None:
        if isinstance(part, Named) and part.name in sizes:
            return Named(part.dtype, part.name, sizes[part.name])
        return None

    return tile.dtype.bytes_of(prod(int(static_value(rebuilt(extent, change)) or 0) for extent in tile.shape))


def _with_stages(program: Program, stages: int | None) -> Program:
    """The program with at most so many stages in each pipelined loop."""
    if stages is None:
        return program
    return replace(
        program, launches=tuple(replace(launch, body=_fewer(launch.body, stages)) for launch in program.launches)
    )


def _fewer(body: Body, stages: int) -> Body:
    def fewer(stmt: Stmt) -> Body:
        stmt = with_bodies(stmt, lambda below: _fewer(below, stages))
        if isinstance(stmt, Loop) and stmt.kind is LoopKind.PIPELINED and stmt.num_stages > stages:
            stmt = replace(stmt, num_stages=stages, stages_asked=stmt.num_stages)
        return (stmt,)

    return each_replaced(body, fewer)
