"""NAME_test.cpp: the cases of a kernel's test, and how close the results have to be."""

from collections.abc import Iterator
from itertools import product
from math import lcm, prod

from tile2cu.analysis.accesses import buffers_written, expressions
from tile2cu.analysis.dependence import is_among
from tile2cu.analysis.effects import effects_of
from tile2cu.analysis.sync_calls import syncs_grid
from tile2cu.analysis.uses import all_expressions, declares
from tile2cu.analysis.whole_quotients import whole_multiples
from tile2cu.core.decisions import PERSISTENT, TMA_IF
from tile2cu.core.dtype import FLOAT32, TFLOAT32, DType
from tile2cu.core.expr import Binary, Call, Expr, Unary, Var, static_value, walk
from tile2cu.core.program import Buffer, Declare, Gemm, If, Let, Loop, Parallel, Program, Scope, Stmt, While
from tile2cu.emitter.execution import compiler_of
from tile2cu.emitter.no_reference import require_reference
from tile2cu.emitter.reference import OF_THE_TEST, Reference, constants, element_type, value_type
from tile2cu.emitter.view import TestTensorView, TestView
from tile2cu.plan.grid import grid
from tile2cu.plan.requirements import run_time_columns
from tile2cu.plan.resolved import Resolved
from tile2cu.plan.tensors import access_of
from tile2cu.styles.base.names import Names, global_constants, launchers

# Half a unit in the last place, relative to the value: IEEE 754 binary16 and binary32, bfloat16, 8-bit floats.
# float32 is summed and approximated on the way, and as an operand of a GEMM it has tfloat32's 10 bits.
_ROUNDING = {
    "float64": 2.0**-40, "float32": 2.0**-20, "tfloat32": 2.0**-10, "float16": 2.0**-11, "bfloat16": 2.0**-8,
    "float8_e4m3fn": 2.0**-4, "float8_e5m2": 2.0**-3, "float8_e4m3fnuz": 2.0**-4, "float8_e5m2fnuz": 2.0**-3,
    "float8_e8m0fnu": 2.0**-1, "float4_e2m1fn": 2.0**-2,
}  # fmt: skip
_UNITS = 4
# Where tensors of sizes that are compiled in have more bytes, all blocks take minutes on the CPU engine: so many run.
_MOST_BYTES, _MOST_BLOCKS = 2**22, 16
_OURS = (
    "Array OnDevice Workspace Native Sizes Tensors TensorsOnDevice SmallFloat Int4 put get fill same start run launch "
    "bench main reference reinterpret tolerance require milliseconds device_is_fine is_computed run_few_blocks"
)


def selftest(launches: tuple[Resolved, ...], provenance: tuple[str, ...]) -> TestView:
    """The view of the test. Raises T2C-E030 for kernels that a reference without threads cannot follow."""
    program = launches[0].program
    require_reference(program)
    taken = {*OF_THE_TEST, *_OURS.split(), *launchers(program), *global_constants(program)}
    names = Names(_names(program), reserved=taken)
    most_blocks = _most_blocks(launches) if _is_large(program) and _blocks_are_independent(launches) else 0
    writer = Reference(program, names, few_blocks=most_blocks > 0)
    target = launches[0].target
    sizes = tuple(names(size.name) for size in program.sizes)
    return TestView(
        name=program.name,
        provenance=provenance,
        text=f"{program.name}{target.suffix}",
        on_cpu="" if target.warp_size == 32 else f" -D TL_WARP_SIZE={target.warp_size}",
        compiler=compiler_of(target),
        sizes=sizes,
        constants=tuple(constants(program, names)),
        tolerance=repr(tolerance(program)),
        coarsest=_coarsest(program),
        units=str(_UNITS),
        tensors=tuple(_tensor(param, launches, writer) for param in program.params if isinstance(param, Buffer)),
        scalars=tuple(_scalar(param, names) for param in program.params if isinstance(param, Var)),
        params=tuple(_param(param, names) for param in program.params),
        arguments=tuple(
            f"on_device.{names(p.name)}.data()" if isinstance(p, Buffer) else names(p.name) for p in program.params
        ),
        reference_arguments=tuple(
            f"tensors.{names(p.name)}" if isinstance(p, Buffer) else names(p.name) for p in program.params
        ),
        reference=writer.body(),
        cases=tuple("{" + ", ".join(map(str, case)) + "}" for case in cases(launches)),
        most_blocks=most_blocks,
    )


def _is_large(program: Program) -> bool:
    """Whether tensors whose extents are all compiled in take minutes."""
    size = 0
    for tensor in (param for param in program.params if isinstance(param, Buffer)):
        extents = [static_value(extent) for extent in tensor.shape]
        size += prod(int(extent or 0) for extent in extents) * tensor.dtype.bits // 8
    return size > _MOST_BYTES


def _blocks_are_independent(launches: tuple[Resolved, ...]) -> bool:
    """Whether a block computes the same tiles if others of its launch do not run: none reads what others wrote, and no
    queue hands out the tiles. What blocks of an earlier launch would have written is, where they did not run, what was
    there before.
    """
    one = len(launches) == 1 and not launches[0].program.workspaces
    return all(_is_of_its_own(each) and (one or _reads_no_results(each)) for each in launches)


def _is_of_its_own(resolved: Resolved) -> bool:
    persistent = resolved.facts.get(resolved.launch, PERSISTENT)
    return not syncs_grid(resolved.launch.body) and not (persistent is not None and persistent.queue)


def _reads_no_results(resolved: Resolved) -> bool:
    """Whether a launch, which certainly has blocks, reads no tensor that it writes."""
    launch = resolved.launch
    effects = effects_of(launch.body)
    written = {access.root for access in effects.writes if access.root.scope is Scope.GLOBAL}
    read = {access.root for access in effects.reads}
    return not any(is_among(tensor, read) for tensor in written) and all(
        (static_value(extent) or 0) > 0 for extent in launch.grid
    )


def _most_blocks(launches: tuple[Resolved, ...]) -> int:
    """How many blocks of a launch run: those of a persistent kernel compute several tiles each."""
    return min(map(_most_blocks_of, launches))


def _most_blocks_of(resolved: Resolved) -> int:
    extents = [static_value(extent) for extent in resolved.launch.grid]
    if not grid(resolved).persistent or not all(isinstance(extent, int) for extent in extents):
        return _MOST_BLOCKS
    tiles_of_block = -(-prod(int(extent or 1) for extent in extents) // resolved.target.multiprocessors)
    return max(2, _MOST_BLOCKS // tiles_of_block)


def _tensor(param: Buffer, launches: tuple[Resolved, ...], writer: Reference) -> TestTensorView:
    return TestTensorView(
        name=writer.names(param.name),
        type=f"{element_type(param.dtype)}",
        extents=", ".join(writer.text(extent) for extent in param.shape),
        strides=", ".join(writer.text(stride) for stride in param.strides or ()),
        written=access_of(param, launches) != "read",
    )


def _scalar(param: Var, names: Names) -> str:
    """A scalar argument: one that is neither 0 nor neutral."""
    value = "0.75" if param.dtype.is_float else "true" if param.dtype.name == "bool" else "3"
    return f"constexpr {value_type(param.dtype)} {names(param.name)} = {value};"


def _param(param: Buffer | Var, names: Names) -> str:
    if isinstance(param, Buffer):
        return f"Array<{element_type(param.dtype)}>& {names(param.name)}"
    return f"{value_type(param.dtype)} {names(param.name)}"


def tolerance(program: Program) -> float:
    """The largest error of a float that is no fault, relative to the largest value of its tensor."""
    return _UNITS * _ROUNDING[_coarsest(program)]


def _coarsest(program: Program) -> str:
    """The coarsest intermediate type that a value is rounded to."""
    found = {"float32"}
    for launch in program.launches:
        for stmt in launch.statements:
            found |= {dtype.name for dtype in _rounded_to(stmt) if dtype.name in _ROUNDING}
    return max(sorted(found), key=lambda name: _ROUNDING[name])


def _rounded_to(stmt: Stmt) -> Iterator[DType]:
    if not isinstance(stmt, Loop | If | While | Parallel):
        yield from (buffer.dtype for buffer in buffers_written(stmt))
    if isinstance(stmt, Let | Declare):
        yield stmt.var.dtype
    if isinstance(stmt, Gemm):
        operands = (stmt.a.buffer.dtype, stmt.b.buffer.dtype)
        yield from (TFLOAT32 for dtype in operands if dtype == FLOAT32)
    for expr in expressions(stmt):
        yield from (part.dtype for part in walk(expr) if isinstance(part, Binary | Call | Unary))


def cases(launches: tuple[Resolved, ...]) -> list[tuple[int, ...]]:
    """The sizes to try: one tile, tails, less than a tile, 1, each size 0; and multiples, where they are asked for."""
    program = launches[0].program
    tiles = _tiles(program)
    steps = [tiles.get(size.name, 2) for size in program.sizes]
    indices = range(len(steps))
    tails = tuple(step + 3 + 2 * index if step > 2 else 3 for index, step in enumerate(steps))
    small = tuple(5 + 2 * index if steps[index] > 2 else 2 for index in indices)
    found = [tuple(steps), tails, small, (1,) * len(steps)]
    found += [tuple(0 if other == index else small[other] for other in indices) for index in indices]
    multiples = _multiples(launches)
    if multiples:
        aligned = [
            tuple(-(-value // multiples.get(size.name, 1)) * multiples.get(size.name, 1) for value, size in rows)
            for rows in (list(zip(case, program.sizes, strict=True)) for case in (tails, small, (1,) * len(steps)))
        ]
        found = [*aligned, *found]
    return list(dict.fromkeys(found))


def _tiles(program: Program) -> dict[str, int]:
    """The divisor of a run-time size: the part of a block, or of an iteration of a loop."""
    found: dict[str, int] = {}
    for launch in program.launches:
        for expr in (*launch.grid, *(let.value for let in launch.prelude), *all_expressions(launch.body)):
            for part in walk(expr):
                if isinstance(part, Call) and part.function == "ceildiv" and isinstance(part.args[0], Var):
                    found.setdefault(part.args[0].name, int(static_value(part.args[1]) or 2))
    return found


def _multiples(launches: tuple[Resolved, ...]) -> dict[str, int]:
    """The multiples that only a run can tell of, by the size."""
    found = {}
    for resolved, param in product(launches, launches[0].program.params):
        condition = resolved.facts.get(param, TMA_IF) if isinstance(param, Buffer) else None
        if condition is not None and isinstance(condition.value, Var):
            found[condition.value.name] = condition.of
        if isinstance(param, Buffer) and param.dtype.is_packed and isinstance(param.shape[-1], Var):
            found.setdefault(param.shape[-1].name, param.dtype.fewest_written)
    for condition in (*run_time_columns(launches), *whole_multiples(launches[0].program)):
        size, of = _dividend(condition.value, condition.of)
        if isinstance(size, Var):
            found[size.name] = lcm(of, found.get(size.name, 1))
    return found


def _dividend(value: Expr, of: int) -> tuple[Expr, int]:
    """A value, and a multiple that makes its quotients multiples, too."""
    if isinstance(value, Binary) and value.op == "//" and isinstance(by := static_value(value.rhs), int):
        return _dividend(value.lhs, of * by)
    return value, of


def _names(program: Program) -> list[str]:
    named = (*program.params, *program.sizes, *program.workspaces)
    names = [one.name for one in named]
    names += [constant.name for constant in program.constants]
    for launch in program.launches:
        names += [tile.name for tile in launch.tiles] + [block.name for block in launch.blocks]
        names += [var.name for stmt in launch.statements for var in declares(stmt)]
    return names
