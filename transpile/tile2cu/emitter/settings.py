"""Which values a kernel's tile parameters may take instead of those of the file, so that its design stays.

The design is the instruction of each MMA but its N, how warps partition it, swizzles at least as wide, tiles that TMA
stores, the pipelines' stages, and tiles in registers. A value is checked against the conditions of the rules that
decided these, evaluated for it; nothing is traced again.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import pairwise
from math import prod
from pathlib import PurePath

from tile2cu.analysis.uses import statements
from tile2cu.core.decisions import (
    INSTRUCTION,
    LAYOUT,
    PIPELINE,
    REGISTER_SHARES,
    SHARED_BUDGET,
    SHARED_LAYOUT,
    STAGES,
    STORE_STAGING,
    WARP_SPECIALISED,
    WARPS,
)
from tile2cu.core.expr import Expr, Named, int_const, rebuilt, static_value, walk
from tile2cu.core.instruction import MmaUnit
from tile2cu.core.layout import widest_swizzle_of
from tile2cu.core.program import Buffer, Gemm, Loop, Parallel, Program, Scope
from tile2cu.core.schedule import BARRIER_BYTES
from tile2cu.core.user_file import Constant
from tile2cu.plan.registers import tile_registers
from tile2cu.plan.resolved import Resolved
from tile2cu.styles.base.comments import WIDTH, table, wrapped
from tile2cu.styles.base.names import ascii_name
from tile2cu.targets.partition import MOST_COLUMNS, best_partition, columns_of, policy_of, split_among

_STEP, _MOST = 8, 1024  # of an MMA's extents that are tried
_SHOWN = 8  # times the value of another extent, where nothing excludes more
_DOUBLINGS = 12  # of another extent that are tried
_LISTED = 5  # values
_WARPGROUP = 128
Value = Callable[[int], int]  # an extent as a function of a parameter


@dataclass(frozen=True, kw_only=True)
class Setting:
    """A parameter with its value, the values that keep the design while the others stay, and what excludes others.

    It is `open` where nothing excludes larger values than `kept` has.
    """

    name: str
    value: int
    kept: Sequence[int]
    because: tuple[str, ...]
    open: bool = False


@dataclass(frozen=True)
class _Needs:
    """A condition on a parameter, in words: what it asks for, or, with `over`, what a value that breaks it exceeds."""

    about: str
    holds: Callable[[int], bool]
    over: bool = False


def in_words(launches: tuple[Resolved, ...]) -> tuple[str, ...]:
    """How a tile's size, the stages or the threads are changed, and the values that keep the design, in lines."""
    found = settings(launches)
    if not found:
        return ()
    waves = "waves" if launches[0].target.is_amd else "warps"
    mmas = any(True for each in launches for _ in statements(each.launch.body, Gemm))
    staged = (staging for each in launches for staging in each.facts.get(each.launch, STORE_STAGING) or ())
    stored = any(staging.where is None for staging in staged)
    instruction = "the MMA instruction" + " but its N" * _on_wgmma(launches)
    swizzles = "swizzles" if launches[0].target.is_amd else "swizzles at least as wide"
    kept = f"{instruction}, its partition among {waves}, {swizzles}, " if mmas else ""
    kept += "a tile of its own for what TMA stores, " * stored
    other = f" Another number of threads changes the partition among {waves}." if mmas else ""
    text = (
        "To change a tile size, stages or threads, give another -D in the command above. A constant below is not to be "
        "edited alone: layouts, shared memory and launch bounds are computed from it. With the other parameters as "
        f"they are, these values keep {kept}the number of stages and tiles in registers; for others tile2cu emits "
        f"another design, or an error that states what does not fit.{other}"
    )
    rows = tuple((f"  {each.name}", f"{each.value:,}", _values(each)) for each in found)
    return (*wrapped(text), *table(rows, WIDTH - len("// ")))


def _on_wgmma(launches: tuple[Resolved, ...]) -> bool:
    instructions = (each.facts.get(op, INSTRUCTION) for each in launches for op in statements(each.launch.body, Gemm))
    return any(each is not None and each.unit is MmaUnit.WARPGROUP for each in instructions)


def settings(launches: tuple[Resolved, ...]) -> tuple[Setting, ...]:
    """The parameters that are extents of tiles, stages of a loop or threads of a block."""
    found: list[Setting] = []
    for constant in launches[0].program.constants:
        if _is_tile_parameter(constant, launches):
            value, needs = int(constant.value), [each for own in launches for each in _of_extent(constant.name, own)]
            of_mmas = _is_of_mmas(constant.name, launches)
            tried = range(_STEP, _MOST + 1, _STEP)
            found.append(_setting(constant.name, value, tried, needs) if of_mmas else _of_rows(constant, needs))
    loops = (loop for each in launches for loop in statements(each.launch.body, Loop))
    for name in dict.fromkeys(loop.stages_of for loop in loops if loop.stages_of):
        found += _of_stages(name, launches)
    for name in dict.fromkeys(each.launch.threads_of for each in launches if each.launch.threads_of):
        found += _of_threads(name, launches)
    return tuple(each for each in found if each.kept)


def _values(setting: Setting) -> str:
    """The values in words, with what excludes others."""
    kept = setting.kept
    gaps = {after - before for before, after in pairwise(kept)}
    if setting.open:
        text = f"{kept[0]:,} to {kept[-1]:,} at least"
    elif len(kept) == 1:
        text = f"{kept[0]:,} alone"
    elif len(kept) > _LISTED and gaps == {1}:
        text = f"{kept[0]:,} to {kept[-1]:,}"
    elif len(kept) > _LISTED and len(gaps) == 1 and kept[0] in gaps:
        text = f"multiples of {kept[0]} up to {kept[-1]:,}"
    else:
        text = f"{', '.join(f'{each:,}' for each in kept[:-1])} or {kept[-1]:,}"
    return f"{text}: {'; '.join(setting.because)}" if setting.because else text


def _setting(name: str, value: int, tried: range, needs: Sequence[_Needs]) -> Setting:
    """The values that fulfil all needs, with those that exclude others."""
    broken = {each: [need for need in needs if not need.holds(each)] for each in tried}
    kept = [each for each in tried if not broken[each]]
    if value not in kept:
        return Setting(name=name, value=value, kept=(), because=())
    below = [{need.about for need in found} for each, found in broken.items() if found and each < kept[-1]]
    because: list[str] = []
    asked = dict.fromkeys(need.about for need in needs if not need.over)
    for about in sorted(asked, key=lambda about: -sum(about in each for each in below)):
        if any(about in each and not each & {*because} for each in below):
            because.append(about)
    step = min((after - before for before, after in pairwise(kept)), default=kept[0])
    for beside in (kept[0] - tried.step, kept[-1] + step):
        over = [need.about for need in broken.get(beside, ()) if need.over]
        because += [f"{beside:,} is over {about}" for about in over[:1]]
    return Setting(name=name, value=value, kept=kept, because=tuple(because))


def _of_rows(constant: Constant, needs: Sequence[_Needs]) -> Setting:
    """An extent that no MMA has: threads take any, up to a power of two times its own that does not fit any more."""
    value, name = int(constant.value), constant.name
    over = [need for need in needs if need.over]
    ends = (value << doublings for doublings in range(1, _DOUBLINGS))
    end, exceeded = next(((end, need.about) for end in ends for need in over if not need.holds(end)), (0, ""))
    others = [need for need in needs if not need.over]
    kept: Sequence[int] = range(1, end // 2 + 1 if end else _SHOWN * value + 1)
    broken = dict.fromkeys(need.about for need in others if not all(map(need.holds, kept)))
    if broken:
        kept = [each for each in kept if all(need.holds(each) for need in others)]
    because = [*broken]
    because += [f"{end:,} may be over {exceeded}"] if end else []
    return Setting(
        name=name, value=value, kept=kept if value in kept else (), because=tuple(because), open=not end and not broken
    )


def _is_tile_parameter(constant: Constant, launches: tuple[Resolved, ...]) -> bool:
    """Whether an argument is an extent of a tile, of no tensor or cluster, and no constant follows in Python alone."""
    program, name = launches[0].program, constant.name
    if not constant.origin or constant.formula or not constant.dtype.is_int or _decides_in_python(name, program):
        return False
    if any(constant.value in each.launch.cluster for each in launches):
        return False
    tensors = (param for param in program.params if isinstance(param, Buffer))
    if any(_depends(name, extent, program) for tensor in tensors for extent in tensor.shape):
        return False
    tiles = [tile.shape for each in launches for tile in each.launch.tiles]
    loops = [loop.extents for each in launches for loop in statements(each.launch.body, Parallel)]
    return any(_depends(name, extent, program) for extents in (*tiles, *loops) for extent in extents)


def _is_of_mmas(name: str, launches: tuple[Resolved, ...]) -> bool:
    """Whether a parameter decides an extent of an MMA's operands."""
    gemms = (gemm for each in launches for gemm in statements(each.launch.body, Gemm))
    extents = (extent for gemm in gemms for region in gemm.regions for extent in region.extents)
    return any(_depends(name, extent, launches[0].program) for extent in extents)


def _decides_in_python(name: str, program: Program) -> bool:
    """Whether a constant is computed from another in a way that only the file's Python has."""
    return any(each.formula and each.computed is None and name in each.formula for each in program.constants)


def _depends(name: str, expr: Expr, program: Program) -> bool:
    """Whether an expression has the constant, or one that is computed from it."""
    computed = {each.name: each.computed for each in program.constants if each.computed is not None}
    names = (part.name for part in walk(expr) if isinstance(part, Named))
    return any(each == name or (each in computed and _depends(name, computed[each], program)) for each in names)


def _value(expr: Expr, name: str, program: Program) -> Value | None:
    """An expression as a function of a constant; None where it does not depend on it."""
    if isinstance(expr, Named) and expr.name == name:
        return int
    if not _depends(name, expr, program):
        return None
    computed = {each.name: each.computed for each in program.constants if each.computed is not None}

    def at(value: int) -> int:
        def change(part: Expr) -> Expr | None:
            if not isinstance(part, Named):
                return None
            if part.name == name:
                return int_const(value)
            return rebuilt(computed[part.name], change) if part.name in computed else None

        try:
            return int(static_value(rebuilt(expr, change)) or 0)
        except ZeroDivisionError:
            return -1  # a multiple of nothing

    return at


def _value_or(own: int, expr: Expr, name: str, program: Program) -> Value:
    """The same, and the expression's own value where it does not depend on the constant."""
    found = _value(expr, name, program)
    return found if found is not None else lambda _: own


def _now(name: str, program: Program) -> int:
    return next(int(each.value) for each in program.constants if each.name == name)


def _of_extent(name: str, resolved: Resolved) -> Iterator[_Needs]:
    """What a launch's design needs of a tile's extent."""
    program, launch = resolved.program, resolved.launch
    for op in statements(launch.body, Gemm):
        yield from _of_gemm(op, name, resolved)
    for tile in launch.tiles:
        yield from _of_swizzle(tile, name, resolved)
    yield from _of_memory(name, resolved)
    for each in program.decided:
        if _depends(name, each.condition, program):
            place = f"{PurePath(each.span.file).name}:{each.span.line}"
            about = f"the assert at {place}" if each.asserted else f"the branch that {place} decides"
            yield _Needs(about, partial(_is_decided, name, each.condition, program))


def _is_decided(name: str, condition: Expr, program: Program, value: int) -> bool:
    """Whether a condition is with a value of a constant what it is with its own."""
    at = _value(condition, name, program)
    return at is None or at(value) == at(_now(name, program))


def _of_swizzle(tile: Buffer, name: str, resolved: Resolved) -> Iterator[_Needs]:
    """That a shared tile's rows have its swizzle, whose pattern repeats after 8 of them."""
    layout = resolved.facts.get(tile, SHARED_LAYOUT)
    if layout is None or not layout.swizzle or tile.rank < 2:
        return
    rows, columns = (_value(extent, name, resolved.program) for extent in tile.shape[-2:])
    if columns is not None:
        about = f"{layout.swizzle}-byte swizzle of {ascii_name(tile.name)}"
        swizzle, of_row, bytes_of = layout.swizzle, columns, tile.dtype.bytes_of
        most = swizzle if resolved.target.is_amd else 128  # bytes: NVIDIA's MMAs read a wider one as well
        yield _Needs(about, lambda value: swizzle <= widest_swizzle_of(bytes_of(of_row(value))) <= most)
    if rows is not None:
        of_column = rows
        yield _Needs(f"{ascii_name(tile.name)} in groups of 8 rows", lambda value: of_column(value) % 8 == 0)


def _of_gemm(op: Gemm, name: str, resolved: Resolved) -> Iterator[_Needs]:
    """What the instruction of a GEMM and the warps' partition need."""
    instruction, warps = resolved.facts.get(op, INSTRUCTION), resolved.facts.get(op, WARPS)
    if instruction is None or warps is None:
        return
    extents = (*op.c.extents[-2:], op.a.extents[0 if op.transpose_a else 1])
    of_m, of_n, of_k = (_depends(name, extent, resolved.program) for extent in extents)
    m, n, k = (_value_or(own, each, name, resolved.program) for own, each in zip(op.mnk, extents, strict=True))
    noun = "waves" if resolved.target.is_amd else "warps"
    if of_k:
        yield _Needs(f"K in steps of {instruction.k}", lambda value: k(value) % instruction.k == 0)
    if of_m:
        about = f"16 rows for each of {warps.m} {noun}" if warps.m > 1 else "rows in steps of 16"
        yield _Needs(about, lambda value: m(value) % (16 * warps.m) == 0)
    if of_n:
        step = columns_of(resolved.target)
        about = f"{step} columns for each of {warps.n} {noun}" if warps.n > 1 else f"columns in steps of {step}"
        yield _Needs(about, lambda value: n(value) % (step * warps.n) == 0)
    if of_m or of_n:
        yield from _of_partition(op, (m, n), name, resolved)


def _of_partition(op: Gemm, sides: tuple[Value, Value], name: str, resolved: Resolved) -> Iterator[_Needs]:
    """That the rules partition a GEMM with other sides as they do this one."""
    instruction, warps = resolved.facts[op, INSTRUCTION], resolved.facts[op, WARPS]
    m, n = sides
    if instruction.unit is MmaUnit.WARPGROUP:
        yield _Needs("256 columns of one wgmma", lambda value: n(value) // warps.n <= MOST_COLUMNS, over=True)
        row = _value_or(op.b.buffer.static_shape[-1], op.b.buffer.shape[-1], name, resolved.program)
        groups = warps.count // 4
        about = f"{groups} warpgroups, {warps.m // 4} along M"
        yield _Needs(about, lambda value: split_among(op, groups, m=m(value), n=n(value), row=row(value)) == warps)
    elif instruction.unit is MmaUnit.WARP:
        policy, step = policy_of(op, resolved.launch.statements), columns_of(resolved.target)
        about = f"{warps.m} x {warps.n} {'waves' if resolved.target.is_amd else 'warps'}"
        found = partial(best_partition, policy, count=warps.count, columns=step)
        yield _Needs(about, lambda value: found(m=m(value), n=n(value)) == warps)


def _of_memory(name: str, resolved: Resolved) -> Iterator[_Needs]:
    """That tiles fit into shared memory and registers."""
    budget = resolved.facts[resolved.launch, SHARED_BUDGET]
    grown, registers = _growth(name, resolved)
    about = f"{budget.limit:,} bytes of {_memory(resolved)}"
    total = max(budget.total, sum(bytes_ for _, bytes_ in budget.tiles))  # without what tiles of two lifetimes share
    total += sum(tile.dtype.bytes_of(prod(tile.static_shape)) for tile in _moved(resolved))
    total = total if total <= budget.limit else budget.total
    yield _Needs(about, lambda value: total + grown(value) <= budget.limit, over=True)
    now, limit = tile_registers(resolved), register_limit(resolved)
    if now <= limit:
        yield _Needs(f"{limit} registers per thread", lambda value: now + registers(value) <= limit, over=True)


def _moved(resolved: Resolved) -> list[Buffer]:
    """The shared tiles of the file that rules moved to registers, after all of them had to fit."""
    (own,) = [each for each in resolved.program.launches if each.span == resolved.launch.span][:1] or [resolved.launch]
    left = {tile.name for tile in resolved.launch.tiles}
    return [tile for tile in own.tiles if tile.scope is Scope.SHARED and tile.of is None and tile.name not in left]


def _memory(resolved: Resolved) -> str:
    return "LDS" if resolved.target.is_amd else "shared memory"


def register_limit(resolved: Resolved) -> int:
    """The registers that a thread can have for tiles."""
    shares = resolved.facts.get(resolved.launch, REGISTER_SHARES)
    return shares.consumer if shares is not None else resolved.target.max_registers


def _growth(name: str, resolved: Resolved) -> tuple[Value, Value]:
    """The bytes of shared memory and the registers per thread that a value of a parameter takes more than now."""
    program, launch, facts = resolved.program, resolved.launch, resolved.facts
    now = _now(name, program)
    shared: list[tuple[int, Value]] = []
    private: list[tuple[int, Value]] = []
    for tile in (*launch.tiles, *_moved(resolved)):
        size = _size(tile, name, program) if tile.of is None else None
        if size is not None and tile.scope is Scope.SHARED:
            shared.append((tile.dtype.bytes_of(facts.get(tile.memory, STAGES) or 1), size))
            continue
        layout = facts.get(tile, LAYOUT) if tile.scope is Scope.FRAGMENT else None
        # A tile that each thread holds as a whole is small: a larger one is distributed.
        if size is not None and layout is not None and layout.registers < prod(tile.static_shape):
            private.append((layout.registers * tile.dtype.bytes, size))
    for staging in facts.get(launch, STORE_STAGING) or ():
        size = _size(staging.like, name, program)
        if staging.where is None and size is not None:
            shared.append((staging.dtype.bytes, size))

    def bytes_(value: int) -> int:
        return sum(each * (size(value) - size(now)) for each, size in shared)

    def registers(value: int) -> int:
        return -(-sum(each * (size(value) - size(now)) // size(now) for each, size in private) // 4)

    return bytes_, registers


def _size(tile: Buffer, name: str, program: Program) -> Value | None:
    """The elements of a tile as a function of a parameter; None where it does not depend on it."""
    if not any(_depends(name, extent, program) for extent in tile.shape):
        return None
    extents = [_value_or(own, extent, name, program) for own, extent in zip(tile.static_shape, tile.shape, strict=True)]
    return lambda value: prod(each(value) for each in extents)


def _of_stages(name: str, launches: tuple[Resolved, ...]) -> Iterator[Setting]:
    """The stages of the loops that one argument gives, where all have as many as it asks for."""
    most: list[tuple[int, str]] = []
    found: set[int] = set()
    for resolved in launches:
        loops = [loop for loop in statements(resolved.launch.body, Loop) if loop.stages_of == name]
        pipelines = [each for loop in loops if (each := resolved.facts.get(loop, PIPELINE)) is not None]
        budget = resolved.facts[resolved.launch, SHARED_BUDGET]
        found |= {each.stages for each in pipelines} | {loop.num_stages for loop in loops}
        if len(pipelines) < len(loops) or budget.aliased or len(found) > 1:
            return
        tiles = dict.fromkeys(tile.memory for each in pipelines for tile in each.buffers)
        if tiles and budget.tiles:
            (now, *_), costs = found, dict(budget.tiles)
            barriers = 2 * BARRIER_BYTES * sum(len(each.buffers) for each in pipelines if each.producer)
            per_stage = sum(costs.get(tile.name, 0) for tile in tiles) // now + barriers
            if per_stage == 0 or budget.total > budget.limit:
                return
            about = f"{budget.limit:,} bytes of {_memory(resolved)}"
            most.append((now + (budget.limit - budget.total) // per_stage, about))
    if len(found) == 1 and most:
        last, about = min(most)
        because = (f"{last + 1} is over {about}",)
        yield Setting(name=name, value=found.pop(), kept=range(1, last + 1), because=because)


def _of_threads(name: str, launches: tuple[Resolved, ...]) -> Iterator[Setting]:
    """The threads of the launches' blocks."""
    own = [each for each in launches if each.launch.threads_of == name]
    first, several = own[0], any(each.launch.groups > 1 for each in own)
    if several or len({each.launch.threads for each in own}) > 1 or _decides_in_python(name, first.program):
        return
    needs = [each for resolved in own for each in _of_thread_count(resolved)]
    step, most = first.target.warp_size, first.target.max_threads
    yield _setting(name, first.launch.threads, range(step, most + 1, step), needs)


def _of_thread_count(resolved: Resolved) -> Iterator[_Needs]:
    """What a launch's design needs of the number of its threads."""
    launch, target = resolved.launch, resolved.target
    producer = resolved.facts.get(launch, WARP_SPECIALISED)
    if producer is not None and producer.producer:
        about = f"{target.max_threads:,} threads with the producer's"
        yield _Needs(about, lambda threads: threads + target.warp_size <= target.max_threads, over=True)
    for op in statements(launch.body, Gemm):
        yield from _shared_by(op, resolved)
    held, limit = tile_registers(resolved) * launch.threads, target.max_registers
    if held <= limit * launch.threads:
        yield _Needs(f"{limit} registers per thread", lambda threads: held <= limit * threads, over=True)


def _shared_by(op: Gemm, resolved: Resolved) -> Iterator[_Needs]:
    """That the threads of a block can partition a GEMM."""
    instruction, target = resolved.facts.get(op, INSTRUCTION), resolved.target
    if instruction is None or resolved.facts.get(op, WARPS) is None:
        return
    m, n, _ = op.mnk
    if instruction.unit is MmaUnit.WARPGROUP:
        split = partial(split_among, op, m=m, n=n, row=op.b.buffer.static_shape[-1])
        yield _Needs("whole warpgroups", lambda threads: threads % _WARPGROUP == 0)
        about = f"equal parts of {m} x {n} for each warpgroup"
        yield _Needs(about, lambda threads: split(threads // _WARPGROUP) is not None)
    elif instruction.unit is MmaUnit.WARP:
        policy, step = policy_of(op, resolved.launch.statements), columns_of(target)
        found = partial(best_partition, policy, m=m, n=n, columns=step)
        about = f"equal parts of {m} x {n} for each {'wave' if target.is_amd else 'warp'}"
        yield _Needs(about, lambda threads: found(count=threads // target.warp_size) is not None)
