"""The launcher: what it refuses, how many blocks it starts, and what it passes on."""

from tile2cu.core.expr import Var
from tile2cu.core.program import Buffer
from tile2cu.emitter.comments import rule_line
from tile2cu.emitter.contract import access_of
from tile2cu.emitter.expressions import Printer
from tile2cu.emitter.sections import aligned_when, used_sizes, viewed_tensors
from tile2cu.emitter.settled import Settled
from tile2cu.emitter.tma import TensorMap, distinct, host_argument, is_producer, run_time_rows
from tile2cu.emitter.view import Declaration, HostView


def host(settled: Settled, printer: Printer, maps: dict[int, TensorMap]) -> HostView:
    """The view of the launcher."""
    return HostView(
        title=rule_line("host"),
        params=host_params(settled, printer),
        checks=(*_checks(settled, printer), *_rows(settled, printer, maps), *_choice(settled, printer)),
        grid=", ".join(printer.index(extent) for extent in settled.launch.grid),
        call=_launch(settled, printer, maps),
    )


def host_params(settled: Settled, printer: Printer) -> tuple[str, ...]:
    """The C parameters: tensors and scalars in call order, then sizes, then the stream."""
    params = [
        f"{_const(param, settled)}void* {printer.names(param.name)}"
        if isinstance(param, Buffer)
        else f"{param.dtype.cpp} {printer.names(param.name)}"
        for param in settled.program.params
    ]
    params += [f"int {printer.names(size.name)}" for size in settled.program.sizes]
    return (*params, "void* stream")


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


def _checks(settled: Settled, printer: Printer) -> tuple[Declaration, ...]:
    """Refusals: a size below zero, a tensor that starts at an odd address."""
    checks = []
    sizes = [printer.names(size.name) for size in settled.program.sizes]
    if sizes:
        checks.append(Declaration(f"if ({' || '.join(f'{size} < 0' for size in sizes)}) return TL_INVALID_SIZE;"))
    pointers = [printer.names(param.name) for param in settled.program.params if isinstance(param, Buffer)]
    if pointers:
        checks.append(Declaration(f"if (!tl::aligned<16>({', '.join(pointers)})) return TL_MISALIGNED;"))
    return tuple(checks)


def _rows(settled: Settled, printer: Printer, maps: dict[int, TensorMap]) -> tuple[Declaration, ...]:
    """The refusal of run-time sizes whose rows TMA cannot reach."""
    wanted = run_time_rows(settled, maps)
    if not wanted:
        return ()
    texts = [f"{printer.text(condition.value)} % {condition.of} != 0" for condition in wanted]
    comment = "TMA reaches rows that start at multiples of 16 bytes; the text for cuda:sm_80 takes any"
    return (Declaration(f"if ({' || '.join(texts)}) return TL_NOT_SUPPORTED;", (comment,)),)


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
