"""The C interface: what a call may be, what it needs, how many blocks it starts, and what it passes on."""

from math import prod

from tile2cu.analysis.accesses import variables
from tile2cu.core.decisions import PERSISTENT, SHARED_BUDGET
from tile2cu.core.expr import Call, Expr, Var, binary, int_const, static_value
from tile2cu.core.program import Buffer, Program
from tile2cu.emitter.limits import Written, idle, no_workspace, quotient_limits, size_limits
from tile2cu.emitter.schedule import declared, is_in, with_schedule
from tile2cu.emitter.tma import block_threads, distinct, persistent_in
from tile2cu.emitter.view import HostLaunch, HostView, Member
from tile2cu.plan.grid import passed_numbers, used_sizes
from tile2cu.plan.instances import aligned_when, rows_aligned_to, rule_of_rows
from tile2cu.plan.launch_form import LaunchForm, is_restrict, launch_form
from tile2cu.plan.requirements import row_multiples, run_time_columns, shared_asked, whole_sizes
from tile2cu.plan.resolved import Resolved
from tile2cu.plan.size_limits import is_of_call
from tile2cu.plan.tensors import POINTER_BYTES, access_of, memories, pointer_alignment, viewed_tensors
from tile2cu.styles.base.comments import BODY_WIDTH, bracketed, listed, rule_line, wrapped
from tile2cu.styles.base.expressions import Printer
from tile2cu.styles.base.style import Style
from tile2cu.styles.base.tensor_map import TensorMap
from tile2cu.styles.base.view import Declaration, Limit
from tile2cu.styles.base.vocabulary import (
    ALIGNED,
    ANY_ALIGNMENT,
    IS_ALIGNED,
    NAMESPACE,
    NON_EMPTY_TILE_COUNTER_INTS,
    PERSISTENT_GRID,
    WORKSPACE,
    WORKSPACE_BYTES,
)

_FORMS = {
    LaunchForm.PLAIN: "launch",
    LaunchForm.COOPERATIVE: "launch_cooperative",
    LaunchForm.DEPENDENT: "launch_pdl",
    LaunchForm.CLUSTERS: "launch_clusters",
}
_LINE = 128  # bytes: tl::workspace_alignment
_TILES_PER_WORD = 31  # headers/tl/common/sm90/tile_scheduler.h, tiles_per_word


def host(launches: tuple[Written, ...], style: Style) -> HostView:
    """The view of the launcher and of its queries."""
    first, program = launches[0], launches[0].resolved.program
    names = tuple(first.printer.names(size.name) for size in program.sizes)
    kernels_only = first.resolved.target.kernels_only_macro
    resolved = tuple(each.resolved for each in launches)
    limits = style.limits(resolved, first.printer)
    params = host_params(resolved, first.printer)
    schedule = declared(first.resolved.grid_schedule, first.printer)
    with first.printer.names.noted() as noted:
        workspace = workspace_bytes(resolved, with_schedule(first))
    has_schedule = is_in(noted, first.resolved.grid_schedule, first.printer)
    return HostView(
        title=rule_line("host; NVRTC compiles the kernels alone" if kernels_only else "host"),
        left_out_by=kernels_only,
        params=(*params, "void* workspace", "size_t workspace_bytes", "void* stream"),
        defined_params=(*params, *_workspace_params(program, resolved), "void* stream"),
        sizes=tuple(f"int {name}" for name in names),
        size_names=names,
        workspace_params=_workspace_sizes(resolved, first.printer, has_schedule=has_schedule),
        refusals=(
            *_sizes(names),
            *_whole_bytes(launches),
            *_limits(size_limits(launches, of_call=False)),
            *_clusters(launches, of_call=False),
            *_whole(launches),
            *_rows(launches),
            *_limits(quotient_limits(launches)),
            *_limits(limits),
        ),
        stream=first.resolved.target.stream,
        workspace=workspace,
        workspace_schedule=(*_limits((no_workspace(launches),), "0"), *(schedule if has_schedule else ())),
        checks=(
            *_limits((idle(launches),), "TL_OK"),
            *_limits(size_limits(launches, of_call=True)),
            *_clusters(launches, of_call=True),
            *_pointers(program, resolved, first.printer),
            *schedule,
            *_take_workspace(program, resolved, with_schedule(first)),
        ),
        launches=tuple(_host_launch(each, number, launches, style) for number, each in enumerate(launches, 1)),
        launching=tuple(wrapped(_launching(resolved))),
        shared=_shared(resolved),
    )


def _shared(launches: tuple[Resolved, ...]) -> str:
    """The shared memory that a device must allow a block, where later devices of the target may allow less."""
    if not (asked := shared_asked(launches)):
        return ""
    most = next(each for each in launches if each.facts[each.launch, SHARED_BUDGET].total == asked)
    return f"sizeof({'::'.join(filter(None, (most.namespace, 'Shared')))})"


def _launching(launches: tuple[Resolved, ...]) -> str:
    """What a call does, and what the status that it returns means."""
    target, several = launches[0].target, len(launches) > 1
    runtime = "HIP" if target.is_amd else "CUDA"
    names = [each.namespace for each in launches]
    launched = (
        f"{', '.join(names[:-1])}, then {names[-1]}, without those whose grids are empty," if several else "the kernel"
    )
    accepted = "all launches were" if several else "the launch was"
    rest = " If one was not, those before it have been launched." if several else ""
    return (
        f"Launches {launched} on `stream`, a {target.stream} of the current device. Returns TL_OK if {accepted} "
        f"accepted; later calls of the {runtime} runtime report errors of execution.{rest}"
    )


def _host_launch(written: Written, number: int, launches: tuple[Written, ...], style: Style) -> HostLaunch:
    resolved, count = written.resolved, len(launches)
    # The grid of a functor is its own function's.
    own_grid = f"Kernel::GridSize({', '.join(grid_sizes(resolved, written.printer))})"
    printer = with_schedule(written)
    place = f"{resolved.program.source.name}:{resolved.launch.span.line}"
    return HostLaunch(
        namespace=resolved.namespace,
        about=f"{place}  launch {number} of {count}" if resolved.namespace else "",
        choice=_choice(written, style),
        grid=own_grid if style.functor else grid_text(resolved, printer),
        tiles=_staying(resolved, printer),
        call=_launch(written, style),
    )


def grid_text(resolved: Resolved, printer: Printer) -> str:
    """The extents of the grid."""
    return ", ".join(printer.index(extent) for extent in resolved.launch.grid)


def grid_sizes(resolved: Resolved, printer: Printer) -> tuple[str, ...]:
    """The sizes and scalars that the extents of the grid are computed from."""
    used = variables(*resolved.launch.grid)
    candidates = (*scalars(resolved), *resolved.program.sizes)
    return tuple(printer.names(each.name) for each in candidates if each in used)


def kargs(resolved: Resolved, printer: Printer) -> tuple[Member, ...]:
    """The members of a functor's arguments: the tensors it reaches, its scalars, and the sizes it needs."""
    members = [
        Member(f"{_const(tensor, (resolved,))}{_stored(tensor, printer)}*", printer.names(tensor.name))
        for tensor in memories(resolved)
    ]
    members += [Member(printer.type(scalar.dtype), printer.names(scalar.name)) for scalar in scalars(resolved)]
    return (*members, *(Member("int", printer.names(size.name)) for size in used_sizes(resolved)))


def _staying(resolved: Resolved, printer: Printer) -> tuple[Declaration, ...]:
    """The tiles of a persistent kernel's grid, its blocks, and what they fetch tiles from."""
    persistent = persistent_in(resolved)
    if persistent is None:
        return ()
    extents = ", ".join(printer.index(extent) for extent in resolved.launch.grid)
    rule = resolved.facts.rule(resolved.launch, PERSISTENT)
    about = f"Persistent kernel: one block per SM loops over output tiles  [{rule}]"
    found = (
        Declaration(f"const dim3 tiles({extents});"),
        Declaration(f"const dim3 grid = {PERSISTENT_GRID}(tiles);", (about,)),
    )
    if not persistent.queue:
        return found
    start = "reset_tile_counter" if persistent.idle is None else "reset_non_empty_tile_counter"
    started = Declaration(f"const tl_status queue = {NAMESPACE}{start}(next_tile, tiles, grid, stream);")
    return (*found, started, Declaration("if (queue != TL_OK) return queue;"))


def host_params(launches: tuple[Resolved, ...], printer: Printer) -> tuple[str, ...]:
    """The C parameters: tensors and scalars in call order, then sizes; workspace and stream follow."""
    program = launches[0].program
    params = [
        f"{_const(param, launches)}void* {printer.names(param.name)}"
        if isinstance(param, Buffer)
        else f"{param.dtype.cpp} {printer.names(param.name)}"
        for param in program.params
    ]
    params += [f"int {printer.names(size.name)}" for size in program.sizes]
    return tuple(params)


def draws(launches: tuple[Resolved, ...]) -> bool:
    """Whether blocks draw tiles from a queue, which counts in the workspace."""
    return any(found.queue for each in launches if (found := persistent_in(each)) is not None)


def noted_grids(launches: tuple[Resolved, ...]) -> tuple[tuple[Expr, ...], ...]:
    """The grids of which a queue notes, behind its counter, which tiles have work."""
    return tuple(
        each.launch.grid
        for each in launches
        if (found := persistent_in(each)) is not None and found.queue and found.idle is not None
    )


def _queue_ints(launches: tuple[Resolved, ...], printer: Printer) -> str:
    """The ints of a queue, which launches share, as one of them runs at a time."""
    noted = [f"{NON_EMPTY_TILE_COUNTER_INTS}({', '.join(map(printer.index, grid))})" for grid in noted_grids(launches)]
    return " + ".join(noted) or "1"


def _workspace_params(program: Program, launches: tuple[Resolved, ...]) -> tuple[str, ...]:
    """As the launcher's definition has them: without names where it has no use for them."""
    if program.workspaces or draws(launches):
        return ("void* workspace", "size_t workspace_bytes")
    return ("void* /*workspace*/", "size_t /*workspace_bytes*/")


def workspace_bytes(launches: tuple[Resolved, ...], printer: Printer) -> str:
    """The size of the workspace, as a C++ expression over the run-time sizes: its tensors one after the other."""
    tensors = launches[0].program.workspaces
    parts = [f"{WORKSPACE_BYTES}{_type_and_extents(tensor, printer)}" for tensor in tensors]
    parts += [f"{WORKSPACE_BYTES}<int>({_queue_ints(launches, printer)})"] * draws(launches)
    return " + ".join(parts) or "0"


def workspace_in_words(launches: tuple[Resolved, ...], printer: Printer) -> str:
    """The size of the workspace: a number of bytes, the most for any sizes or how it follows from them; empty if none.

    headers/tl/common/workspace.h: each tensor takes whole lines.
    """
    program = launches[0].program
    terms, fixed, exact = list[str](), 0, True
    for tensor in program.workspaces:
        bits = tensor.dtype.bits
        most = [number for extent in tensor.shape if (number := _most(extent)) is not None]
        if len(most) == tensor.rank:
            fixed += -(-prod(most) * bits // 8 // _LINE) * _LINE
            exact &= all(static_value(extent) is not None for extent in tensor.shape)
        else:
            factors = map(bracketed, map(printer.in_words, tensor.shape))
            terms.append(f"{' * '.join([f'{bits // 8}' if bits >= 8 else f'1 / {8 // bits}', *factors])}")
    if draws(launches):
        counters = [
            f"ceildiv({' * '.join(map(printer.in_words, grid))}, {_TILES_PER_WORD})" for grid in noted_grids(launches)
        ]
        fixed += 0 if counters else _LINE
        terms += [f"4 * (1 + {each})" for each in counters]
    if not terms and not fixed:
        return ""
    parts = [*terms, *[f"{fixed:,}"] * bool(fixed)]
    about = f", {'each summand ' if len(parts) > 1 else ''}rounded up to a multiple of {_LINE}" if terms else ""
    if not exact:
        about += f" at most; {program.name}_workspace_size returns how many"
    return f"{' + '.join(parts)} bytes{about or ', for any sizes'}"


def _most(extent: Expr) -> int | None:
    """The number that an extent is or, where a condition decides, the larger of both; None for others."""
    if isinstance(extent, Call) and extent.function == "if_then_else":
        arms = [number for arm in extent.args[1:] if (number := _most(arm)) is not None]
        return max(arms) if len(arms) == 2 else None
    value = static_value(extent)
    return None if value is None else int(value)


def _workspace_sizes(launches: tuple[Resolved, ...], printer: Printer, *, has_schedule: bool) -> tuple[str, ...]:
    """The sizes as the workspace's query takes them: named where its size depends on them."""
    program, schedule = launches[0].program, launches[0].grid_schedule
    extents = (*(tensor.shape for tensor in program.workspaces), *noted_grids(launches))
    used = variables(*(extent for each in extents for extent in each))
    if schedule is not None and has_schedule:
        used |= set(schedule.sizes)
    return tuple(f"int {printer.names(size.name)}" if size in used else "int" for size in program.sizes)


def _take_workspace(program: Program, launches: tuple[Resolved, ...], printer: Printer) -> tuple[Declaration, ...]:
    """The tensors of the workspace, in the order in which their bytes were counted."""
    ints = _queue_ints(launches, printer)
    drawn = [Declaration(f"int* const next_tile = tensors.take<int>({ints});")] * draws(launches)
    if not program.workspaces and not drawn:
        return ()
    names = [printer.names(tensor.name) for tensor in program.workspaces]
    taken = [
        Declaration(f"{_stored(tensor, printer)}* const {name} = tensors.take{_type_and_extents(tensor, printer)};")
        for tensor, name in zip(program.workspaces, names, strict=True)
    ]
    return (Declaration(f"{WORKSPACE} tensors(workspace);"), *taken, *drawn)


def _type_and_extents(tensor: Buffer, printer: Printer) -> str:
    *outer, last = tensor.shape
    if tensor.dtype.is_packed:
        last = binary("//", last, int_const(tensor.dtype.fewest_written))
    return f"<{_stored(tensor, printer)}>({', '.join(printer.index(extent) for extent in (*outer, last))})"


def kernel_params(resolved: Resolved, printer: Printer, maps: dict[int, TensorMap], style: Style) -> tuple[str, ...]:
    """The kernel's parameters: tensor maps, the tensors it reaches by pointer, scalars, and the numbers it needs."""
    params = [style.map_parameter(view) for view in distinct(maps)]
    for tensor in memories(resolved):
        const, name = _const(tensor, (resolved,)), f"{printer.names(tensor.name)}_data"
        restrict = "__restrict__ " if is_restrict(tensor, resolved) else ""
        params.append(f"{const}{_stored(tensor, printer)}* {restrict}{name}")
    persistent = persistent_in(resolved)
    params += ["dim3 tiles"] * (persistent is not None) + ["int* next_tile"] * bool(persistent and persistent.queue)
    params += [f"{printer.type(scalar.dtype)} {printer.names(scalar.name)}" for scalar in scalars(resolved)]
    names = (*(size.name for size in used_sizes(resolved)), *passed_numbers(resolved))
    return (*params, *(f"int {printer.names(name)}" for name in names))


def scalars(resolved: Resolved) -> list[Var]:
    """The scalar arguments of the user's function."""
    return [param for param in resolved.program.params if isinstance(param, Var)]


def _stored(tensor: Buffer, printer: Printer) -> str:
    """The type of a tensor's elements in memory."""
    return printer.types.get(tensor.dtype.in_memory, tensor.dtype.in_memory)


def _const(tensor: Buffer, launches: tuple[Resolved, ...]) -> str:
    return "const " if access_of(tensor, launches) == "read" else ""


def _sizes(names: tuple[str, ...]) -> tuple[Declaration, ...]:
    """The check against sizes below zero."""
    return (_refuse([f"{name} < 0" for name in names], "TL_INVALID_SIZE"),) if names else ()


def _whole_bytes(launches: tuple[Written, ...]) -> tuple[Declaration, ...]:
    """The check against run-time sizes whose rows end within a byte."""
    printer = launches[0].printer
    tensors = [tensor for each in launches for tensor in (*memories(each.resolved), *viewed_tensors(each.resolved))]
    texts = [
        f"{printer.text(tensor.shape[-1])} % {tensor.dtype.fewest_written} != 0"
        for tensor in tensors
        if tensor.dtype.is_packed and static_value(tensor.shape[-1]) is None
    ]
    comment = "Two 4-bit elements share a byte: rows must be whole bytes"
    return (_refuse(list(dict.fromkeys(texts)), "TL_NOT_SUPPORTED", comment),) if texts else ()


def _clusters(launches: tuple[Written, ...], *, of_call: bool) -> tuple[Declaration, ...]:
    """The check against run-time sizes whose grid is no whole number of clusters."""
    grids = ((each.resolved.launch.grid, each.resolved.launch.cluster) for each in launches)
    extents = [pair for grid, cluster in grids for pair in zip(grid, cluster, strict=False)]
    printer, program = launches[0].printer, launches[0].resolved.program
    texts = [
        f"{printer.index(blocks)} % {extent} != 0"
        for blocks, extent in extents
        if extent > 1 and static_value(blocks) is None and of_call == is_of_call(blocks, program)
    ]
    comment = "The grid is made of whole clusters"
    return (_refuse(list(dict.fromkeys(texts)), "TL_NOT_SUPPORTED", comment),) if texts else ()


def _pointers(program: Program, launches: tuple[Resolved, ...], printer: Printer) -> tuple[Declaration, ...]:
    """The check against a misaligned tensor or workspace."""
    names: dict[int, list[str]] = {}
    for param in program.params:
        if isinstance(param, Buffer) and (bytes_ := pointer_alignment(param, launches)) > 1:
            names.setdefault(bytes_, []).append(printer.names(param.name))
    if program.workspaces or draws(launches):
        names.setdefault(POINTER_BYTES, []).append("workspace")
    checks = [f"!{IS_ALIGNED}<{bytes_}>({', '.join(of)})" for bytes_, of in sorted(names.items(), reverse=True)]
    return (_refuse(checks, "TL_MISALIGNED"),) if checks else ()


def _limits(limits: tuple[Limit, ...], status: str = "TL_INVALID_SIZE") -> tuple[Declaration, ...]:
    return tuple(
        _refuse(list(limit.conditions), status, *filter(None, (limit.comment,))) for limit in limits if limit.conditions
    )


def _refuse(conditions: list[str], status: str, *comments: str) -> Declaration:
    return Declaration(f"if ({' || '.join(conditions)}) return {status};", comments)


def _whole(launches: tuple[Written, ...]) -> tuple[Declaration, ...]:
    """The check against run-time sizes of which a quotient that is an extent has a remainder."""
    printer, found = launches[0].printer, whole_sizes(launches[0].resolved.program)
    if not found:
        return ()
    names = listed([*dict.fromkeys(printer.names(tensor.name) for each in found for tensor, _ in each.extents)])
    texts = [f"{printer.text(each.size)} % {printer.index(each.divisor)} != 0" for each in found]
    return (_refuse(texts, "TL_NOT_SUPPORTED", f"Extents of {names} are quotients without a remainder"),)


def _rows(launches: tuple[Written, ...]) -> tuple[Declaration, ...]:
    """The check against run-time sizes whose rows, or boxes, TMA cannot address."""
    resolved = tuple(each.resolved for each in launches)
    conditions, columns = row_multiples(resolved), run_time_columns(resolved)
    boxes = " and starts of boxes" if columns else ""
    texts = [f"{launches[0].printer.text(each.value)} % {each.of} != 0" for each in conditions]
    comment = f"TMA needs 16-byte row pitches{boxes}"
    return (_refuse(list(dict.fromkeys(texts)), "TL_NOT_SUPPORTED", comment),) if texts else ()


def _choice(written: Written, style: Style) -> tuple[Declaration, ...]:
    """Which of the kernel's two forms runs, where a run-time size decides how rows start."""
    resolved, printer, more = written.resolved, written.printer, written.multiples
    conditions = aligned_when(resolved, more)
    if not conditions:
        return ()
    texts = [f"{printer.text(condition.value)} % {condition.of} == 0" for condition in conditions]
    bytes_ = rows_aligned_to(resolved, more)
    unknown = [printer.names(each.name) for each in viewed_tensors(resolved) if resolved.row_alignment(each) == 0]
    of = "all tensors" if more or not unknown else listed(unknown)
    comment = (
        f"Accesses of {of} have up to {bytes_} bytes where all of these rows are {bytes_}-byte aligned; else "
        f"{style.unaligned}  [{rule_of_rows(resolved)}]"
    )
    kernel = resolved.function
    otherwise = f"{kernel}<{ANY_ALIGNMENT}>"
    if words := [f"{printer.text(each.value)} % {each.of} == 0" for each in style.word_multiples(resolved)]:
        otherwise = f"{' && '.join(words)} ? {kernel}<{ALIGNED}<4>> : {otherwise}"
    text = f"const auto chosen = {' && '.join(texts)} ? {kernel}<{ALIGNED}<{bytes_}>> : {otherwise};"
    return (Declaration(text, tuple(wrapped(comment, BODY_WIDTH))),)


def _launch(written: Written, style: Style) -> str:
    resolved, printer, maps = written.resolved, written.printer, written.maps
    arguments = [style.map_argument(view, printer) for view in distinct(maps)]
    arguments += [_pointer(tensor, resolved, printer) for tensor in memories(resolved)]
    persistent = persistent_in(resolved)
    arguments += ["tiles"] * (persistent is not None) + ["next_tile"] * bool(persistent and persistent.queue)
    arguments += [printer.names(scalar.name) for scalar in scalars(resolved)]
    arguments += [printer.names(size.name) for size in used_sizes(resolved)]
    arguments += map(printer.names, passed_numbers(resolved))
    shared = "<Shared>" if resolved.facts[resolved.launch, SHARED_BUDGET].tiles else ""
    threads = block_threads(resolved)
    if threads == resolved.program.name:  # the launcher's own name, whose constant identifies it
        threads = "::".join((resolved.file_namespace, *filter(None, (resolved.namespace,)), threads))
    kernel = "chosen" if aligned_when(resolved, written.multiples) else resolved.function
    launch = _FORMS[launch_form(resolved)]
    cluster = [f"dim3({', '.join(map(str, resolved.launch.cluster))})"] if resolved.launch.cluster else []
    if style.functor:  # its shared memory is static
        threads, shared, arguments = "Kernel::kBlockSize", "", [f"Kernel::MakeKargs({', '.join(arguments)})"]
    return f"{NAMESPACE}{launch}{shared}({', '.join([kernel, *cluster, 'grid', threads, 'stream', *arguments])})"


def _pointer(tensor: Buffer, resolved: Resolved, printer: Printer) -> str:
    """A tensor as its kernel takes it; those in the workspace have their type already."""
    name = printer.names(tensor.name)
    if tensor in resolved.program.workspaces:
        return name
    return f"static_cast<{_const(tensor, (resolved,))}{_stored(tensor, printer)}*>({name})"
