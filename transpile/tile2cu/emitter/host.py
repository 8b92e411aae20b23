"""The C interface: what a call may be, what it needs, how many blocks it starts, and what it passes on."""

from tile2cu.core.expr import Var, static_value
from tile2cu.core.program import Buffer
from tile2cu.emitter.comments import rule_line
from tile2cu.emitter.contract import access_of
from tile2cu.emitter.expressions import Printer
from tile2cu.emitter.sections import aligned_when, used_sizes, viewed_tensors
from tile2cu.emitter.settled import Settled
from tile2cu.emitter.tma import TensorMap, distinct, host_argument, is_producer, run_time_rows
from tile2cu.emitter.view import Declaration, HostView


def host(settled: Settled, printer: Printer, maps: dict[int, TensorMap]) -> HostView:
    """The view of the launcher and of its queries."""
    names = tuple(printer.names(size.name) for size in settled.program.sizes)
    return HostView(
        title=rule_line("host"),
        params=(*host_params(settled, printer), "void* workspace", "size_t workspace_bytes", "void* stream"),
        defined_params=(*host_params(settled, printer), *_workspace_params(settled), "void* stream"),
        sizes=tuple(f"int {name}" for name in names),
        size_names=names,
        size_types=("int",) * len(names),
        refusals=(*_sizes(names), *_grid_limits(settled, printer), *_rows(settled, printer, maps)),
        arch=settled.target.arch,
        workspace=workspace_bytes(settled, printer),
        checks=(*_pointers(settled, printer), *_choice(settled, printer)),
        grid=", ".join(printer.index(extent) for extent in settled.launch.grid),
        call=_launch(settled, printer, maps),
    )


def host_params(settled: Settled, printer: Printer) -> tuple[str, ...]:
    """The C parameters: tensors and scalars in call order, then sizes; workspace and stream follow."""
    params = [
        f"{_const(param, settled)}void* {printer.names(param.name)}"
        if isinstance(param, Buffer)
        else f"{param.dtype.cpp} {printer.names(param.name)}"
        for param in settled.program.params
    ]
    params += [f"int {printer.names(size.name)}" for size in settled.program.sizes]
    return tuple(params)


def _workspace_params(settled: Settled) -> tuple[str, ...]:
    """As the launcher's definition has them: without names where it has no use for them."""
    if settled.program.workspaces:
        return ("void* workspace", "size_t workspace_bytes")
    return ("void* /*workspace*/", "size_t /*workspace_bytes*/")


def workspace_bytes(settled: Settled, printer: Printer) -> str:
    """The size of the workspace, as a C++ expression over the run-time sizes: its tensors one after the other."""
    parts = [
        f"tl::workspace_bytes<{tensor.dtype.cpp}>({', '.join(printer.index(extent) for extent in tensor.shape)})"
        for tensor in settled.program.workspaces
    ]
    return " + ".join(parts) or "0"


def kernel_params(settled: Settled, printer: Printer, maps: dict[int, TensorMap]) -> tuple[str, ...]:
    """The kernel's parameters: tensor maps, the tensors it reaches by pointer, its scalars, and the sizes it needs."""
    params = [f"const __grid_constant__ tl::TensorMap {view.name}" for view in distinct(maps)]
    params += [
        f"{_const(tensor, settled)}{tensor.dtype.cpp}* __restrict__ {printer.names(tensor.name)}_data"
        for tensor in viewed_tensors(settled)
    ]
    params += [f"{scalar.dtype.cpp} {printer.names(scalar.name)}" for scalar in _scalars(settled)]
    return (*params, *(f"int {printer.names(size.name)}" for size in used_sizes(settled)))


def _scalars(settled: Settled) -> list[Var]:
    return [param for param in settled.program.params if isinstance(param, Var)]


def _const(tensor: Buffer, settled: Settled) -> str:
    return "const " if access_of(tensor, settled) == "read" else ""


def _sizes(names: tuple[str, ...]) -> tuple[Declaration, ...]:
    """The refusal of sizes below zero."""
    return (_refuse([f"{name} < 0" for name in names], "TL_INVALID_SIZE"),) if names else ()


def _grid_limits(settled: Settled, printer: Printer) -> tuple[Declaration, ...]:
    """The refusal of sizes that ask for more blocks than a grid may have along y or z."""
    open_ = [extent for extent in settled.launch.grid[1:] if static_value(extent) is None]
    if not open_:
        return ()
    texts = [f"{printer.index(extent)} > tl::max_grid_yz" for extent in open_]
    return (_refuse(texts, "TL_INVALID_SIZE", "A grid may have 65,535 blocks along y, and along z"),)


def _pointers(settled: Settled, printer: Printer) -> tuple[Declaration, ...]:
    """The refusal of a tensor, or a workspace, that starts at an odd address."""
    names = [printer.names(param.name) for param in settled.program.params if isinstance(param, Buffer)]
    names += ["workspace"] if settled.program.workspaces else []
    return (_refuse([f"!tl::aligned<16>({', '.join(names)})"], "TL_MISALIGNED"),) if names else ()


def _refuse(conditions: list[str], status: str, *comments: str) -> Declaration:
    return Declaration(f"if ({' || '.join(conditions)}) return {status};", comments)


def _rows(settled: Settled, printer: Printer, maps: dict[int, TensorMap]) -> tuple[Declaration, ...]:
    """The refusal of run-time sizes whose rows TMA cannot reach."""
    wanted = run_time_rows(settled, maps)
    if not wanted:
        return ()
    texts = [f"{printer.text(condition.value)} % {condition.of} != 0" for condition in wanted]
    comment = "TMA reaches rows that start at multiples of 16 bytes; the text for cuda:sm_80 takes any"
    return (_refuse(texts, "TL_NOT_SUPPORTED", comment),)


def _choice(settled: Settled, printer: Printer) -> tuple[Declaration, ...]:
    """Which of the kernel's two forms runs, where a run-time size decides how rows start."""
    conditions = aligned_when(settled)
    if not conditions:
        return ()
    tensor = next(t for t in viewed_tensors(settled) if settled.facts.get(t, "row_start_when") is not None)
    rule = settled.facts.rule(tensor, "row_start_when")
    texts = [f"{printer.text(condition.value)} % {condition.of} == 0" for condition in conditions]
    comment = f"Rows that start at multiples of 16 bytes are moved 16 bytes at once  [{rule}]"
    text = f"const auto chosen = {' && '.join(texts)} ? kernel<tl::RowStart<16>> : kernel<tl::AnyRowStart>;"
    return (Declaration(text, (comment,)),)


def _launch(settled: Settled, printer: Printer, maps: dict[int, TensorMap]) -> str:
    arguments = [host_argument(view, printer) for view in distinct(maps)]
    arguments += [
        f"static_cast<{_const(tensor, settled)}{tensor.dtype.cpp}*>({printer.names(tensor.name)})"
        for tensor in viewed_tensors(settled)
    ]
    arguments += [printer.names(scalar.name) for scalar in _scalars(settled)]
    arguments += [printer.names(size.name) for size in used_sizes(settled)]
    shared = "<Shared>" if settled.facts[settled.launch, "ledger"].tiles else ""
    threads = "threads + tl::producer_threads" if is_producer(settled) else "threads"
    kernel = "chosen" if aligned_when(settled) else "kernel"
    return f"tl::launch{shared}({', '.join([kernel, 'grid', threads, 'stream', *arguments])})"
