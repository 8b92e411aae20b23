"""What the kernel would be with the values next to those of its tile parameters: the rules decide it with each."""

from collections.abc import Callable, Hashable, Iterator
from pathlib import PurePath
from typing import NamedTuple

from tile2cu.analysis.uses import count, statements
from tile2cu.core.decisions import (
    INSTRUCTION,
    LAYOUT,
    PIPELINE,
    REGISTER_SHARES,
    SCHEDULE,
    SHARED_BUDGET,
    SHARED_LAYOUT,
    STORE_STAGING,
    WARP_SPECIALISED,
    WARPS,
)
from tile2cu.core.errors import Tile2CuError
from tile2cu.core.layout import Blocked
from tile2cu.core.program import Buffer, Gemm, Loop, Parallel, Scope
from tile2cu.core.record import Record
from tile2cu.core.shared_memory import SharedBudget, TooLarge
from tile2cu.core.user_file import Constant
from tile2cu.emitter.legal_values import decides_in_python, depends, legal_values, sized_extents
from tile2cu.plan.groups import independent_groups
from tile2cu.plan.launch_bounds import registers_of_thread
from tile2cu.plan.registers import read_operands, tile_registers
from tile2cu.plan.resolved import Resolved
from tile2cu.styles.base.comments import WIDTH, listed, table, wrapped
from tile2cu.styles.base.expressions import Printer
from tile2cu.targets import Target

_MOST_STATEMENTS = 100  # gemm_hybrid has 65


class Held(NamedTuple):
    """The registers of a thread for a launch's tiles, and those for operands that a GEMM has read."""

    tiles: int
    operands: int


Write = Callable[[tuple[Resolved, ...]], tuple[Held, ...]]


class Setting(Record, frozen=True):
    """A parameter, its value, and the next values that it may have; whether it is one of `stages`, `threads`."""

    name: str
    value: int
    nearby: tuple[int, ...]
    stages: bool
    threads: bool = False


class Design(Record, frozen=True, kw_only=True):
    """What is decided about a kernel: `traits` by what they are called, stages of its pipelines, threads of its blocks,
    and what it takes.

    `shared` are the bytes of shared memory per block, `registers` those per thread for tiles, next to those for
    `operands` that a GEMM has read, of `limit`: of the launch that takes most. `without_producer` is why launches with
    GEMMs have none.
    """

    traits: tuple[tuple[str, Hashable], ...]
    stages: tuple[int, ...]
    threads: tuple[int, ...]
    shared: int
    registers: int
    limit: int
    operands: int = 0
    without_producer: tuple[str, ...] = ()

    @property
    def is_over(self) -> bool:
        """Whether tiles and operands take more than there is."""
        return self.registers + self.operands > self.limit

    @property
    def takes_nothing(self) -> bool:
        """Whether it has neither shared memory nor registers for tiles."""
        return not self.shared and not self.registers

    @classmethod
    def of(cls, launches: tuple[Resolved, ...], held: tuple[Held, ...] = ()) -> "Design":
        """The design of a kernel; a style that counts registers itself gives those of each launch."""
        found: dict[str, list[Hashable]] = {}
        for resolved in launches:
            for name, trait in _traits(resolved):
                found.setdefault(name, []).append(trait)
        counted = held or tuple(Held(tile_registers(each), read_operands(each)) for each in launches)
        of_launches = zip(counted, map(registers_of_thread, launches), strict=True)
        most, limit = max(of_launches, key=lambda each: sum(each[0]) - each[1])
        return cls(
            traits=tuple((name, tuple(traits)) for name, traits in found.items()),
            stages=tuple(pipeline.depth for each in launches for _, pipeline in each.pipelines),
            threads=tuple(each.launch.threads for each in launches),
            shared=max(each.facts[each.launch, SHARED_BUDGET].total for each in launches),
            registers=most.tiles,
            limit=limit,
            operands=most.operands,
            without_producer=tuple(_without_producer(launches)),
        )


def hungriest(launches: tuple[Resolved, ...]) -> Resolved:
    """The launch whose tiles take most registers of those that a thread has."""
    return max(launches, key=lambda each: tile_registers(each) + read_operands(each) - registers_of_thread(each))


def _without_producer(launches: tuple[Resolved, ...]) -> Iterator[str]:
    """Why launches with GEMMs have no producer, where their target has one."""
    for each in launches:
        found = each.facts.get(each.launch, WARP_SPECIALISED)
        if found is not None and not found.producer and any(True for _ in statements(each.launch.body, Gemm)):
            yield found.because


def _traits(resolved: Resolved) -> Iterator[tuple[str, Hashable]]:
    """The decisions about a launch that another value of a parameter may change, by what they are called."""
    launch, facts, amd = resolved.launch, resolved.facts, resolved.target.is_amd
    gemms = [*statements(launch.body, Gemm)]
    instructions = [facts.get(op, INSTRUCTION) for op in gemms]
    yield "MMA instructions", tuple(one and (one.unit, one.k, one.operands, one.accumulator) for one in instructions)
    yield f"partition among {'waves' if amd else 'warps'}", tuple(facts.get(op, WARPS) for op in gemms)
    if not gemms:
        yield "thread layouts", tuple(_thread_layouts(resolved))
    shared = [tile for tile in launch.tiles if tile.scope is Scope.SHARED and tile.of is None]
    layouts = [(tile.name, facts.get(tile, SHARED_LAYOUT)) for tile in shared]
    patterns = [(name, each and (each.swizzle, each.padding > 0, each.rows_interleaved)) for name, each in layouts]
    yield f"tiles or their swizzles in {_memory(resolved.target)}", tuple(patterns)
    loops = [*statements(launch.body, Loop)]
    pipelines = [facts.get(loop, PIPELINE) for loop in loops]
    yield "pipelines", tuple(one and (one.producer, one.staged, one.direct is None) for one in pipelines)
    yield "schedule of the loop", tuple(type(facts.get(loop, SCHEDULE)) for loop in loops)
    staged = facts.get(launch, STORE_STAGING) or ()
    whole = [
        each.layout.extents == (each.like.static_shape[::-1] if each.transposed else each.like.static_shape)
        for each in staged
    ]
    yield "staging of stores", tuple((each.where is None, all_) for each, all_ in zip(staged, whole, strict=True))
    yield "operands in registers", tuple(op.a.buffer.scope is Scope.FRAGMENT for op in gemms)
    yield "specialisation of warps", facts.get(launch, WARP_SPECIALISED) is not None
    yield "register shares", facts.get(launch, REGISTER_SHARES)


def _thread_layouts(resolved: Resolved) -> Iterator[Hashable]:
    """Which threads have which vectors of fragments and loops."""
    launch = resolved.launch
    tiles = (resolved.facts.get(tile, LAYOUT) for tile in launch.tiles if tile.scope is Scope.FRAGMENT)
    loops = (resolved.facts.get(loop, LAYOUT) for loop in statements(launch.body, Parallel))
    for layout in (*tiles, *loops):
        if isinstance(layout, Blocked):
            yield layout.threads, layout.vector, layout.rows


_OTHERS = "The command rejects others, and states why."
_HEADINGS = ("  parameter", "here", "new", "gives")


def in_words(
    launches: tuple[Resolved, ...], held: tuple[Held, ...], printer: Printer, write: Write | None
) -> tuple[str, ...]:
    """How a tile's size, the stages or the threads are changed, and what their next values give, in lines.

    `held` are the registers of each launch. `write` gives these of other launches, and raises Tile2CuError for a kernel
    that the style does not support; None for a style that supports all and counts as the rules do.
    Kernels of more than _MOST_STATEMENTS statements have no such lines: their decisions take seconds.
    """
    first = launches[0]
    if first.decide is None or sum(count(each.launch.body) for each in launches) > _MOST_STATEMENTS:
        return ()
    found = settings(launches)
    if not found:
        return ()
    own = Design.of(launches, held)
    takes = "This kernel takes" if len(launches) == 1 else "These kernels take at most"
    text = (
        "To change a tile size, stages or threads, add -D NAME=VALUE to the command above, or replace the value there. "
        "It is not enough to edit a constant below: literals such as instruction shapes, register counts and bytes "
        f"remain those of its value, and so do comments. {takes} {_taken(own, first.target)}."
    )
    given = [(each, value, _given(each, value, own, launches, write)) for each in found for value in each.nearby]
    legal = legal_values(dict.fromkeys(each.name for each in found).keys(), launches, printer)
    designs = [gives.design for _, _, gives in given]
    if own.takes_nothing and all(gives.text == _taken(own, first.target) for _, _, gives in given):
        return tuple(wrapped(" ".join(filter(None, (text, legal, _OTHERS)))))
    because = not own.without_producer and any(each is not None and each.without_producer for each in designs)
    lines = f"; lines are those of {PurePath(first.launch.span.file).name}" * because
    others = (
        f"{_OTHERS} These values, one changed at a time, give the following; 'other X' means that X changes as "
        f"well{lines}."
    )
    rows = [
        (
            *((f"  {each.name}", f"{each.value:,}") if value == each.nearby[0] else ("", "")),
            f"{value:,}",
            gives.text,
        )
        for each, value, gives in given
    ]
    above = wrapped(" ".join(filter(None, (text, legal, others))))
    return (*above, *table((_HEADINGS, *rows), WIDTH - len("// ")))


class Given(NamedTuple):
    """What a value of a parameter gives, in words; no design where it is too large, or rejected."""

    text: str
    design: Design | None = None


def _given(setting: Setting, value: int, own: Design, launches: tuple[Resolved, ...], write: Write | None) -> Given:
    """What a value of a parameter gives, in words: the resources, and which decisions differ; or the error."""
    decide, target = launches[0].decide, launches[0].target
    assert decide is not None
    try:
        others = decide({setting.name: value})
        independent_groups(others)
        held = write(others) if write is not None else ()
    except TooLarge as error:
        return Given(f"{error.code}: {_needed(error.budget, launches)}")
    except Tile2CuError as error:
        return Given(f"{error.code}: {error.message}")
    design = Design.of(others, held)
    changes = differences(own, design, asked=value if setting.stages else 0, of_threads=setting.threads)
    same = "the same kernel" * (setting.stages and design == own)
    taken = _taken(design, target)
    if (alone := other_than_hungriest(setting.name, others)) is not None:
        place = next(place for place, each in enumerate(others) if each is alone)
        taken = f"{launches[place].namespace}: {_taken(Design.of((alone,), held[place : place + 1]), target)}"
    return Given("; ".join(filter(None, (taken, changes, same))), design)


def other_than_hungriest(name: str, launches: tuple[Resolved, ...]) -> Resolved | None:
    """The launch that a parameter is about, if it is one of several and another one takes the most."""
    found = [each for each in launches if _is_about(name, each)]
    return found[0] if len(found) == 1 < len(launches) and found[0] is not hungriest(launches) else None


def _is_about(name: str, resolved: Resolved) -> bool:
    """Whether tiles, loops, stages or threads of a launch depend on a parameter."""
    launch = resolved.launch
    staged = any(name == loop.stages_of for loop in statements(launch.body, Loop))
    return staged or name == launch.threads_of or _has_extents(name, resolved)


def _has_extents(name: str, resolved: Resolved) -> bool:
    """Whether extents of tiles or elementwise loops of a launch depend on a parameter."""
    return any(depends(name, extent, resolved.program) for extent in sized_extents(resolved))


def _needed(budget: SharedBudget, launches: tuple[Resolved, ...]) -> str:
    """What a budget that is too large has, and which of its tiles take none here, as those that are in registers."""
    target = launches[0].target
    here = {name for each in launches for name, _ in each.facts[each.launch, SHARED_BUDGET].tiles}
    moved = [name for name, _ in budget.tiles if name not in here]
    of = "workgroup" if target.is_amd else "block"
    parts = (
        f"the tiles need {budget.total:,} bytes of {_memory(target)}",
        f"{target.arch} has {budget.limit:,} per {of}",
        ", ".join(f"{name} {bytes_:,}" for name, bytes_ in budget.tiles),
        f"here {listed(moved)} take{'s' * (len(moved) == 1)} none" * bool(moved),
    )
    return "; ".join(filter(None, parts))


def _memory(target: Target) -> str:
    """What a target's manuals call shared memory."""
    return "LDS" if target.is_amd else "shared memory"


def _taken(design: Design, target: Target) -> str:
    """What a kernel takes, in words."""
    noun = _memory(target)
    operands = f" and {design.operands} for operands" * bool(design.operands)
    registers = f"{design.registers} of {design.limit} registers for tiles{operands}"
    if design.is_over:
        over = f"over the limit of {design.limit} per thread: may spill"
        registers = f"{design.registers} registers for tiles{operands}, {over}"
    parts = [f"{design.shared:,} bytes of {noun}"] * bool(design.shared) + [registers] * bool(design.registers)
    return " and ".join(parts) or f"no {noun} and no registers for tiles"


def differences(own: Design, other: Design, *, asked: int = 0, of_threads: bool = False) -> str:
    """Which decisions about a kernel differ, in words; empty where none does. Stages may be the number `asked` for;
    the difference may be one `of_threads`.
    """
    before, now = dict(own.traits), dict(other.traits)
    names = [name for name in before if before[name] != now.get(name)]
    parts = [f"other {listed(names)}"] if names else []
    threads = [now for before, now in zip(own.threads, other.threads, strict=False) if before != now]
    if threads and not of_threads:  # a parameter's default may follow from another one
        parts.append(f"{listed([*map(str, dict.fromkeys(threads))])} threads")
    if set(other.stages) != {asked} if asked else other.stages != own.stages:
        used = listed([*map(str, dict.fromkeys(other.stages))])
        parts.append(f"{used} stage{'s' * (used != '1')} used" if other.stages else "no stages")
    parts += [f"no producer: {because}" for because in other.without_producer if not own.without_producer]
    return "; ".join(parts)


def settings(launches: tuple[Resolved, ...]) -> tuple[Setting, ...]:
    """The parameters that are extents of tiles, stages of a loop or threads of a block, with the next values.

    These are half and twice an extent or a number of threads, and one stage fewer and more.
    """
    target = launches[0].target
    staged = {loop.stages_of for each in launches for loop in statements(each.launch.body, Loop)}
    of_threads = {each.launch.threads_of for each in launches}
    found: dict[str, Setting] = {}
    for constant in launches[0].program.constants:
        if _is_tile_parameter(constant, launches):
            value = int(constant.value)
            nearby = (*((value // 2,) if value % 2 == 0 else ()), 2 * value)
            name = constant.name
            found[name] = Setting(name, value, nearby, name in staged, name in of_threads)
    for each in launches:
        for loop in statements(each.launch.body, Loop):
            if (name := loop.stages_of) and loop.num_stages > 0:
                stages = loop.stages_asked or loop.num_stages
                nearby = tuple(value for value in (stages - 1, stages + 1) if value > 0)
                found.setdefault(name, Setting(name, stages, nearby, stages=True))
        if (name := each.launch.threads_of) and not decides_in_python(name, each.program):
            threads, warp = each.launch.threads, target.warp_size
            nearby = tuple(n for n in (threads // 2, 2 * threads) if n % warp == 0 and warp <= n <= target.max_threads)
            if each.launch.groups == 1 and nearby:
                found.setdefault(name, Setting(name, threads, nearby, name in staged, threads=True))
    return tuple(found.values())


def _is_tile_parameter(constant: Constant, launches: tuple[Resolved, ...]) -> bool:
    """Whether an argument is an extent of a tile, of no tensor or cluster, and no constant follows in Python alone."""
    program, name = launches[0].program, constant.name
    if not constant.is_argument or not constant.dtype.is_int or decides_in_python(name, program):
        return False
    if any(constant.value in each.launch.cluster for each in launches):
        return False
    tensors = (param for param in program.params if isinstance(param, Buffer))
    if any(depends(name, extent, program) for tensor in tensors for extent in tensor.shape):
        return False
    return any(_has_extents(name, each) for each in launches)
