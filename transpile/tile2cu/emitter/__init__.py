"""Facts to text. Decides nothing."""

import hashlib
import re
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from functools import cache
from itertools import groupby

from msgspec.structs import replace

from tile2cu.analysis.uses import declares, statements
from tile2cu.core.decisions import INSTRUCTION, PERSISTENT, SHARED_BUDGET, STAGES
from tile2cu.core.errors import Tile2CuError, Tile2CuWarning
from tile2cu.core.expr import Var
from tile2cu.core.instruction import MmaUnit
from tile2cu.core.origin import EmitOptions, Tool
from tile2cu.core.program import Gemm, Launch, Let, Program, walk_stmts
from tile2cu.core.record import Record
from tile2cu.core.user_file import Constant, Derived
from tile2cu.emitter.contract import contract, provenance
from tile2cu.emitter.debugging import debugging
from tile2cu.emitter.execution import compiler_of
from tile2cu.emitter.host import grid_sizes, grid_text, host, kargs, kernel_params, scalars, workspace_in_words
from tile2cu.emitter.limits import Written, quotient_limits, size_limits
from tile2cu.emitter.manifest import manifest
from tile2cu.emitter.render import render, render_shims, render_test
from tile2cu.emitter.schedule import declared, is_in, section, with_schedule
from tile2cu.emitter.sections import pasted
from tile2cu.emitter.settings import Held, in_words
from tile2cu.emitter.sizes import common_sizes, derived_sizes, sizes, sizes_with_names
from tile2cu.emitter.tma import block_threads, bounds_notes, is_producer, persistent_in, tensor_maps
from tile2cu.emitter.view import KernelView, LaunchView
from tile2cu.plan.grid import passed_numbers, used_sizes
from tile2cu.plan.grid_schedule import grid_schedule
from tile2cu.plan.groups import independent_groups
from tile2cu.plan.instances import aligned_when
from tile2cu.plan.launch_bounds import Occupancy, occupancy
from tile2cu.plan.requirements import required_multiples
from tile2cu.plan.resolved import Resolved
from tile2cu.plan.tensors import tensors
from tile2cu.plan.user_functions import called, may_use_cuda_half
from tile2cu.styles.base.comments import kernel_line, listed, wrapped
from tile2cu.styles.base.expressions import Printer
from tile2cu.styles.base.names import Names, can_be_c_function, global_constants, launchers
from tile2cu.styles.base.shared import votes_through
from tile2cu.styles.base.style import Style
from tile2cu.styles.base.view import NO_SECTION, KernelParts
from tile2cu.targets import Target

__all__ = ["Emitted", "Resolved", "emit_kernel", "with_namespaces", "walk_stmts"]

_WORD = re.compile(r"[A-Za-z]\w*")


class Emitted(Record, frozen=True):
    """The files of one kernel: name to text. `kernel` names it; `source` is the kernel's own text.

    `warnings` are about the kernel in the Python file; the files do not depend on them.
    """

    kernel: str
    suffix: str  # of the text: ".cu" or ".hip"
    files: dict[str, str]
    warnings: tuple[Tile2CuWarning, ...] = ()

    @property
    def source(self) -> str:
        return self.files[self.kernel + self.suffix]

    @property
    def manifest(self) -> str:
        return self.files[f"{self.kernel}.json"]


@cache
def _style(name: str) -> Style:
    """A style by its name: only the one that is asked for is imported."""
    match name:
        case "cute":
            from tile2cu.styles.cute.style import Cute

            return Cute()
        case "ck":
            from tile2cu.styles.ck.style import Ck

            return Ck()
        case _:
            from tile2cu.styles.tl.style import Tl

            return Tl()


def seen_by(style: str, target: Target) -> Target:
    """The target for which rules decide, of a kernel that this style prints."""
    return _style(style).seen(target)


def emit_kernel(launches: tuple[Resolved, ...], *, tool: Tool, options: EmitOptions) -> Emitted:
    """The source, header and manifest of a kernel's launches. The same input gives the same bytes."""
    style = _style(options.style)
    origin = provenance(launches[0].program, launches[0].target.name, tool, options)
    launches, written = _prepared(launches, style)
    view = _view(written, origin, style)
    name, suffix = launches[0].program.name, launches[0].target.suffix
    text, header, lines = render(view, options, launches[0].program.source.name, suffix)
    files = {f"{name}{suffix}": text, f"{name}.h": header}
    if options.with_test:
        from tile2cu.emitter.selftest import selftest

        files[f"{name}_test.cpp"] = render_test(selftest(launches, origin), options)
    if options.shims:
        from tile2cu.emitter.shims import shim

        files |= render_shims(shim(launches, written[0].printer, origin), options)
    hashes = {file: _sha256(content) for file, content in files.items()}
    own = tuple(each.parts.own_layouts for each in view.launches)
    described = manifest(launches, written[0].printer, own, tool=tool, options=options, files=hashes, lines=lines)
    return Emitted(name, suffix, {**files, f"{name}.json": described})


def _prepared(launches: tuple[Resolved, ...], style: Style) -> tuple[tuple[Resolved, ...], tuple[Written, ...]]:
    """A kernel's launches as a style writes them. Errors: Tile2CuError where it does not support them as a whole."""
    style.check(launches)
    used = _used_names(launches)
    required = required_multiples(launches)
    bounded = tuple((each.launch, each.bounds) for each in launches)
    schedule = None if style.functor else grid_schedule(launches[0].program, bounded)
    launches = tuple(replace(each, required=required, grid_schedule=schedule) for each in _named(launches, used))
    reserved = style.reserved(frozenset(each.name for each in launches[0].program.constants))
    return launches, tuple(_written(resolved, used, reserved, style) for resolved in launches)


def with_namespaces(launches: tuple[Resolved, ...]) -> tuple[Resolved, ...]:
    """The launches with the namespaces that their kernels have in the source."""
    return _named(launches, _used_names(launches))


_NUMBERED = ("tile", "group")  # words that integers have as names where they count such things


def _used_names(launches: tuple[Resolved, ...]) -> list[str]:
    """Every name of a kernel's launches."""
    used = [used for resolved in launches for used in _all_names(resolved)]
    return used + [each.name for resolved in launches for each in derived_sizes(resolved, used)]


def _word(launch: Launch) -> str:
    """The comment of one word above a launch, which is no sentence but its kernel's name."""
    return next((line.strip() for line in reversed(launch.comments) if _WORD.fullmatch(line.strip())), "")


def _named(launches: tuple[Resolved, ...], used: list[str]) -> tuple[Resolved, ...]:
    """The launches with the namespaces of their kernels: a comment of one word above a launch, or its number."""
    if len(launches) == 1:
        return launches
    names = Names(used)
    words = [_word(each.launch) or f"launch_{number}" for number, each in enumerate(launches, 1)]
    return tuple(replace(each, namespace=names.fresh(word)) for each, word in zip(launches, words, strict=True))


def _written(resolved: Resolved, used: list[str], also: frozenset[str], style: Style) -> Written:
    own = {resolved.file_namespace, resolved.function}
    own |= {"Schedule", "schedule"} if resolved.grid_schedule is not None else set()
    reserved = (
        own | called(resolved) | _of_groups(resolved) | _of_producer(resolved) | _of_c_interface(resolved.program)
    )
    also |= global_constants(resolved.program)
    sized: tuple[Constant | Var, ...] = (*resolved.program.constants, *resolved.program.sizes)
    wishes = {each.name: f"{each.name}_size" for each in sized if each.name in also and each.dtype.is_int}
    counted = {let.var.name for let in statements(resolved.launch.body, Let) if let.var.dtype.is_int}
    wishes |= {name: f"{name}_index" for name in _NUMBERED if name in counted & also}
    names = Names(used, kept=_kept_names(resolved), reserved=reserved | also, wishes=wishes)
    printer = Printer(
        names,
        resolved.bounds,
        _first_slots(resolved),
        groups=resolved.launch.groups,
        votes=votes_through(resolved, names),
        types=style.types,
    )
    for named in (*resolved.program.params, *resolved.program.workspaces, *resolved.program.sizes):
        printer.names(named.name)  # the same in all kernels and in the launcher
    return Written(resolved, printer, tensor_maps(resolved, printer), style.multiples(resolved))


def _first_slots(resolved: Resolved) -> dict[str, str]:
    """Outside of the loops that load a tile into stages, it is the first."""
    slotted = (tile for tile in resolved.launch.tiles if resolved.facts.get(tile.memory, STAGES))
    return {tile.name: "0" for tile in slotted}


def _of_groups(resolved: Resolved) -> set[str]:
    """The names that a kernel with groups of threads needs besides."""
    return {"groups", "block_threads"} if resolved.launch.groups > 1 else set()


def _of_producer(resolved: Resolved) -> set[str]:
    """The names that a kernel with a producer needs besides, and a persistent one."""
    names = (
        "tile tiles tile_iter k_base scheduler next_tile scheduled_tiles prologue_barriers prologue_pipeline is_empty"
    )
    names += " active_iterations"
    counted = {"num_iterations"} if is_producer(resolved) else set()
    return set(names.split()) | counted if persistent_in(resolved) is not None else counted


def _of_c_interface(program: Program) -> set[str]:
    """The names of the launcher and of its queries, which a constant of the same name would hide. Raises T2C-E033."""
    if not can_be_c_function(program.name):
        raise Tile2CuError(
            "T2C-E033",
            f"no C function can be called `{program.name}`",
            program.span,
            help="`--name other_name` names what is written",
        )
    return launchers(program)


def _view(written: tuple[Written, ...], origin: tuple[str, ...], style: Style) -> KernelView:
    """The file in a style. Errors: Tile2CuError where the style has no words for a kernel."""
    first, printer = written[0].resolved, written[0].printer
    launches = tuple(each.resolved for each in written)
    heads = contract(
        launches,
        printer,
        _stated_limits(written, style),
        workspace_in_words(launches, printer),
        offset_bits=style.offset_bits,
    )
    with _noted(written) as in_kernels:
        launch_views = tuple(_launch_view(each, style) for each in written)
    with _noted(written) as in_launcher:
        schedule, launcher = section(first.grid_schedule, printer), host(written, style)
    said = in_kernels | in_launcher
    on_host = in_launcher.union(*(each.on_host for each in launch_views)) if style.functor else None

    def held(others: tuple[Resolved, ...]) -> tuple[Held, ...]:
        return tuple(_held(_parts(each, style)[-1]) for each in _prepared(others, style)[1])

    view = KernelView(
        name=first.program.name,
        namespace=first.file_namespace,
        group=independent_groups(launches),
        headers=style.headers(launches),
        cuda_half=first.target.suffix == ".cu" and any(map(may_use_cuda_half, launches)),
        pasted=tuple(pasted(each, first.program.source.name) for each in first.program.user_code),
        provenance=origin,
        contract=heads.source,
        changes=in_words(
            launches,
            tuple(_held(each.parts) for each in launch_views) if style.is_partial else (),
            printer,
            held if style.is_partial else None,
        ),
        summary=heads.header,
        suffix=first.target.suffix,
        sizes=NO_SECTION,
        shared_limit=first.facts[first.launch, SHARED_BUDGET].limit,
        shared_about=_limit_in_words(first),
        arch=first.target.arch,
        functor=style.functor,
        uses=style.uses,
        launches=launch_views,
        schedule=schedule,
        host=launcher,
    )
    named = tuple(
        replace(
            part,
            sizes=sizes(each.resolved, each.printer, said, on_host, part.parts.registers, operands=part.parts.operands),
        )
        for each, part in zip(written, view.launches, strict=True)
    )
    places = tuple(each.parts.places for each in named)
    return replace(
        view,
        sizes=common_sizes(first, printer, said, on_host),
        launches=named,
        legend=_legend(launches, named, style),
        debugging=debugging(launches, places, style.printing, style.printing_own, style.checked_by),
    )


@contextmanager
def _noted(written: tuple[Written, ...]) -> Iterator[set[str]]:
    """The names that the printers note inside, behind it."""
    found: set[str] = set()
    with ExitStack() as printing:
        noted = [printing.enter_context(each.printer.names.noted()) for each in written]
        yield found
    found.update(*noted)


def _besides_tiles(launches: tuple[Resolved, ...]) -> str:
    """What else takes registers in kernels with tiles."""
    units = {each.facts[op, INSTRUCTION].unit for each in launches for op in statements(each.launch.body, Gemm)}
    if units == {MmaUnit.WARPGROUP}:
        return " and temporaries; wgmma reads operands from shared memory and from these"
    return ", temporaries and operands that a gemm loads" if units else " and temporaries"


def _held(parts: KernelParts) -> Held:
    """The registers that a kernel's tiles and operands take."""
    return Held(parts.registers, parts.operands)


def _parts(written: Written, style: Style) -> tuple[tuple[Derived, ...], Printer, KernelParts]:
    """The sizes that a kernel computes from others, a printer that names them, and the kernel that it prints."""
    derived, printer = _with_derived(written)
    return derived, printer, style.parts(written.resolved, printer, written.maps)


def _legend(decided: tuple[Resolved, ...], launches: tuple[LaunchView, ...], style: Style) -> tuple[str, ...]:
    """What the notations in the comments mean."""
    resolved = decided[0]
    file = resolved.program.source.name
    text = f"In comments, [name] is the rule of a decision (`tile2cu explain NAME`), and {file}:N a line of that file."
    if any(launch.parts.tv_layouts for launch in launches):
        text += " A TV layout is CuTe's: (thread, value) -> offset in the tile, column-major."
    if any(launch.parts.registers for launch in launches):
        text += " Registers for tiles are those of fragments and of prefetched tiles, without"
        text += f" addresses{_besides_tiles(decided)}."
    return (*wrapped(_build(resolved, [launch.function for launch in launches], style)), *wrapped(text))


def _build(resolved: Resolved, kernels: list[str], style: Style) -> str:
    """How the source is compiled, and what debuggers and profilers call its kernels."""
    lines = "-g" if resolved.target.is_amd else "-lineinfo"
    used = "-Rpass-analysis=kernel-resource-usage" if resolved.target.is_amd else "-Xptxas -v"
    names = listed(list(dict.fromkeys(kernels)))
    more = style.library
    folders = f"-I the folder{'s' * bool(more)} that contain{'s' * (not more)} {listed(['tl/', *filter(None, [more])])}"
    flags = f" {style.flags}" * bool(style.flags)
    return (
        f"Build: {compiler_of(resolved.target)} -O3{flags}, with {folders}. With {lines} profilers and "
        f"debuggers show these lines; in them the kernel{'s are' if len(kernels) > 1 else ' is'} {names}. {used} "
        "prints registers and spills."
    )


def _limit_in_words(resolved: Resolved) -> str:
    """The shared memory that a block may have."""
    limit = f"{resolved.target.arch} has {resolved.facts[resolved.launch, SHARED_BUDGET].limit:,} bytes"
    return f"{limit} of LDS for a workgroup" if resolved.target.is_amd else f"{limit} of shared memory for a block"


def _stated_limits(written: tuple[Written, ...], style: Style) -> tuple[str, ...]:
    """The limits on sizes that the launcher checks, in words."""
    of_sizes, of_calls = (size_limits(written, of_call=of_call) for of_call in (False, True))
    own = style.limits(tuple(each.resolved for each in written), written[0].printer)
    return tuple(limit.stated for limit in (*of_sizes, *of_calls, *quotient_limits(written), *own) if limit.stated)


def _launch_view(written: Written, style: Style) -> LaunchView:
    resolved, maps = written.resolved, written.maps
    with written.printer.names.noted() as noted:
        derived, printer, parts = _parts(written, style)
        struct = is_in(noted, resolved.grid_schedule, written.printer)
        before = declared(resolved.grid_schedule, written.printer) if struct else ()
        named = (*before, *sizes_with_names(derived, printer, noted))
    params = (*scalars(resolved), *used_sizes(resolved))
    used = [each for each in params if printer.names(each.name) in noted]
    with printer.names.noted() as around:
        view = LaunchView(
            function=resolved.function,
            namespace=resolved.namespace,
            title=kernel_line(resolved.namespace) if resolved.namespace else "",
            sizes=NO_SECTION,
            comments=_above(
                resolved, (_grid_note(written), *bounds_notes(resolved), *_passed(written), *style.map_notes(maps))
            ),
            template="class Alignment" if aligned_when(resolved, written.multiples) else "",
            threads=block_threads(resolved),
            occupancy=_OCCUPANCIES[occupancy(resolved)],
            cluster=", ".join(map(str, resolved.launch.cluster)),
            params=kernel_params(resolved, printer, maps, style),
            parts=replace(parts, setup=(*named, *parts.setup)),
            kargs=kargs(resolved, printer) if style.functor else (),
            scalars=tuple(
                tuple(printer.names(each.name) for each in of_type)
                for _, of_type in groupby(used, key=lambda each: each.dtype)
            ),
            grid=grid_text(resolved, written.printer),
            grid_sizes=grid_sizes(resolved, printer),
        )
    return replace(view, on_host=parts.on_host | around)


def _with_derived(written: Written) -> tuple[tuple[Derived, ...], Printer]:
    """The sizes that the kernel computes from others, and a printer that names them."""
    printer, taken = with_schedule(written), _all_names(written.resolved)
    derived = tuple(each for each in derived_sizes(written.resolved, taken) if each.value not in printer.derived)
    named = {each.value: printer.names.in_comments(each.name) for each in derived}
    return derived, replace(printer, derived={**printer.derived, **named})


def _above(resolved: Resolved, notes: tuple[str, ...]) -> tuple[str, ...]:
    """The comments above a kernel: the user's, and `notes` on what its declaration does not say."""
    own = (line for line in resolved.launch.comments if line.strip() != _word(resolved.launch))
    return tuple(line for text in (*own, *notes) for line in wrapped(text))


def _passed(written: Written) -> Iterator[str]:
    """Why the kernel takes static numbers as arguments."""
    names = [*map(written.printer.names.in_comments, passed_numbers(written.resolved))]
    if names:
        yield (
            f"{listed(names)}: an argument, since with a trip count that it knows ptxas issues other instructions "
            "between the wgmmas of an MMA  [pipeline.loop.mma-in-flight]"
        )


def _grid_note(written: Written) -> str:
    """The extents of the grid, or, in a persistent kernel, of the tiles that its blocks take."""
    printer = with_schedule(written)
    extents = ", ".join(map(printer.in_words, written.resolved.launch.grid))
    persistent = persistent_in(written.resolved)
    if persistent is None:
        return f"grid: ({extents})"
    rule = written.resolved.facts.rule(written.resolved.launch, PERSISTENT)
    return f"grid: at most one block per SM; the blocks loop over `tiles`, x fastest: ({extents})  [{rule}]"


_OCCUPANCIES = {
    None: "",
    Occupancy.WAVES_PER_SIMD: "waves_per_simd_by_registers",
    Occupancy.BLOCKS_PER_SM: "least_blocks",
    Occupancy.ONE_BLOCK: "1",
}


def _all_names(resolved: Resolved) -> list[str]:
    """Every name of a launch and of its program, so that ours never collide with them."""
    program: Program = resolved.program
    names = [param.name for param in (*program.params, *program.workspaces)] + [size.name for size in program.sizes]
    names += [tile.name for tile in resolved.launch.tiles] + [constant.name for constant in program.constants]
    names += [block.name for block in resolved.launch.blocks]
    names += [tensor.name for tensor in tensors(resolved)]
    named = [stmt for body in resolved.named.values() for stmt in body]
    return names + [var.name for stmt in (*resolved.launch.statements, *named) for var in declares(stmt)]


def _kept_names(resolved: Resolved) -> tuple[str, ...]:
    """`threads`, where the user's own constant has the same value as ours."""
    same = any(c.name == "threads" and c.value == resolved.launch.threads for c in resolved.program.constants)
    return ("threads",) if same and not resolved.namespace else ()


def _sha256(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()
