"""Facts to text. Decides nothing."""

import hashlib
import re
from dataclasses import dataclass, replace

from tile2cu.analysis.sync_calls import syncs_grid
from tile2cu.core.decisions import BARRIER, INSTRUCTION, SETMAXNREG, SHARED_BUDGET, STAGES, WAVES_PER_SIMD
from tile2cu.core.errors import Tile2CuError
from tile2cu.core.expr import Call, negated, walk
from tile2cu.core.instruction import MmaInstruction, MmaUnit
from tile2cu.core.origin import Look, Tool
from tile2cu.core.program import AtomicTile, Copy, Derived, Gemm, Launch, Program, Reduce, Scan, Sync, walk_stmts
from tile2cu.emitter.contract import contract, provenance
from tile2cu.emitter.host import host, kernel_params
from tile2cu.emitter.limits import Written, quotient_limits, size_limits
from tile2cu.emitter.manifest import manifest
from tile2cu.emitter.render import render, render_shims, render_test
from tile2cu.emitter.sections import aligned_when, pasted
from tile2cu.emitter.sizes import common_sizes, derived_sizes, sizes, sizes_with_names
from tile2cu.emitter.tma import asked_blocks, block_threads, is_producer, map_notes, persistent_in, tensor_maps
from tile2cu.emitter.view import HostView, KernelView, LaunchView, words
from tile2cu.plan.grid import kernel_expressions
from tile2cu.plan.kernel import Kernel, kernel
from tile2cu.plan.mma import unit_of
from tile2cu.plan.settled import Settled
from tile2cu.plan.tensors import tensors
from tile2cu.styles.base.comments import kernel_line, wrapped
from tile2cu.styles.base.names import Names, can_be_c_function
from tile2cu.styles.base.view import NO_SECTION, StatementView, text_line
from tile2cu.styles.cute import support as cute_support
from tile2cu.styles.cute.kernel import Cute, in_cute
from tile2cu.styles.cute.vocabulary import RESERVED
from tile2cu.styles.tl.body import Body
from tile2cu.styles.tl.constants import Constants
from tile2cu.styles.tl.expressions import Printer
from tile2cu.styles.tl.layouts import Layouts
from tile2cu.styles.tl.operations import Operations
from tile2cu.styles.tl.registers import declarations
from tile2cu.styles.tl.roles import Roles, work_types
from tile2cu.styles.tl.setup import block_indices, setup
from tile2cu.styles.tl.shared import Shared
from tile2cu.styles.tl.tensor_map import TensorMap

__all__ = ["Emitted", "Settled", "emit_kernel"]

# By the types of sums and operands.
_WGMMA_HEADERS = {
    "float32.float16": "sm90/wgmma_half.h",
    "float16.float16": "sm90/wgmma_half_sums.h",
    "float32.bfloat16": "sm90/wgmma_bfloat16.h",
    "float32.float32": "sm90/wgmma_tfloat32.h",
    "float32.tfloat32": "sm90/wgmma_tfloat32.h",
    "float32.float8_e4m3fn": "sm90/wgmma_float8.h",
    "float32.float8_e5m2": "sm90/wgmma_float8.h",
    "int32.int8": "sm90/wgmma_int8.h",
    "int32.uint8": "sm90/wgmma_int8.h",
}
_WORD = re.compile(r"[A-Za-z]\w*")


@dataclass(frozen=True)
class Emitted:
    """The files of one kernel: name to text. `kernel` names it; `source` is the kernel's own text."""

    kernel: str
    suffix: str  # of the text: ".cu" or ".hip"
    files: dict[str, str]

    @property
    def source(self) -> str:
        return self.files[self.kernel + self.suffix]

    @property
    def manifest(self) -> str:
        return self.files[f"{self.kernel}.json"]


def emit_kernel(launches: tuple[Settled, ...], *, tool: Tool, look: Look) -> Emitted:
    """The text, header and manifest of a kernel's settled launches. The same input gives the same bytes."""
    if look.style == "cute":
        cute_support.check(launches)
    name, suffix = launches[0].program.name, launches[0].target.suffix
    used = [used for settled in launches for used in _all_names(settled)]
    used += [each.name for settled in launches for each in derived_sizes(settled, used)]
    launches = _named(launches, used)
    also = RESERVED if look.style == "cute" else frozenset()
    written = tuple(_written(settled, used, also) for settled in launches)
    origin = provenance(launches[0].program, launches[0].target.name, tool, look)
    view = _view(written, origin, look.style)
    text, header, lines = render(view, look, launches[0].program.source.name, suffix)
    files = {f"{name}{suffix}": text, f"{name}.h": header}
    if look.with_test:
        from tile2cu.emitter.selftest import selftest

        files[f"{name}_test.cpp"] = render_test(selftest(launches, origin), look)
    if look.shims:
        from tile2cu.emitter.shims import shim

        files |= render_shims(shim(launches, written[0].printer, origin), look)
    hashes = {file: _sha256(content) for file, content in files.items()}
    described = manifest(launches, written[0].printer, tool=tool, look=look, files=hashes, lines=lines)
    return Emitted(name, suffix, {**files, f"{name}.json": described})


def _word(launch: Launch) -> str:
    """The comment of one word above a launch, which is no sentence but its kernel's name."""
    return next((line.strip() for line in reversed(launch.comments) if _WORD.fullmatch(line.strip())), "")


def _named(launches: tuple[Settled, ...], used: list[str]) -> tuple[Settled, ...]:
    """The launches with the namespaces of their kernels: a comment of one word above a launch, or its number."""
    if len(launches) == 1:
        return launches
    names = Names(used)
    words = [_word(each.launch) or f"kernel_{number}" for number, each in enumerate(launches, 1)]
    return tuple(replace(each, namespace=names.fresh(word)) for each, word in zip(launches, words, strict=True))


def _written(settled: Settled, used: list[str], also: frozenset[str]) -> Written:
    reserved = _called(settled) | _of_groups(settled) | _of_producer(settled) | _of_c_interface(settled.program)
    names = Names(used, kept=_kept_names(settled), reserved=reserved | also)
    printer = Printer(names, settled.bounds, _first_slots(settled), groups=settled.launch.groups)
    for named in (*settled.program.params, *settled.program.workspaces, *settled.program.sizes):
        printer.names(named.name)  # the same in all kernels and in the launcher
    return Written(settled, printer, tensor_maps(settled, printer))


def _first_slots(settled: Settled) -> dict[str, str]:
    """Outside of the loops that load a tile into slots, it is the first."""
    slotted = (tile for tile in settled.launch.tiles if settled.facts.get(tile.memory, STAGES))
    return {tile.name: "0" for tile in slotted}


def _group(launches: tuple[Settled, ...]) -> str:
    """The threads of a group, or of each, where groups work by themselves; empty where they do not."""
    in_groups = {each.launch.shares or (each.launch.threads,) for each in launches if each.launch.groups > 1}
    found = {
        next((sizes for sizes in in_groups if _is_first_group(each, sizes[0])), ())
        if each.launch.groups == 1
        else each.launch.shares or (each.launch.threads,)
        for each in launches
    }
    if len(found) > 1:
        raise Tile2CuError(
            "T2C-E032",
            "one kernel of the text has groups of threads (T.ws), another has not, or others",
            launches[0].launch.span,
            help="write them as two functions",
        )
    return ", ".join(map(str, found.pop()))


def _is_first_group(settled: Settled, threads: int) -> bool:
    """Whether a kernel's block is one group of that size, or fewer threads that never wait for one another."""
    waits = (Reduce, Scan, Gemm, AtomicTile, Sync, Copy)
    stmts = list(walk_stmts(settled.launch.body))
    alone = not any(isinstance(stmt, waits) or settled.facts.get(stmt, BARRIER) is not None for stmt in stmts)
    return settled.launch.threads == threads or (settled.launch.threads < threads and alone)


def _of_groups(settled: Settled) -> set[str]:
    """The names that a kernel with groups of threads needs besides."""
    return {"groups", "block_threads"} if settled.launch.groups > 1 else set()


def _of_producer(settled: Settled) -> set[str]:
    """The names that a kernel with a producer needs besides, and a persistent one."""
    names = (
        "tile tiles tile_iter k_base scheduler next_tile scheduled_tiles prologue_barriers prologue_pipeline is_empty"
    )
    names += " active_iterations"
    counted = {"num_iterations"} if is_producer(settled) else set()
    return set(names.split()) | counted if persistent_in(settled) is not None else counted


def _of_c_interface(program: Program) -> set[str]:
    """The names of the launcher and of its queries, which a constant of the same name would hide. Raises T2C-E033."""
    if not can_be_c_function(program.name):
        raise Tile2CuError(
            "T2C-E033",
            f"no C function can be called `{program.name}`",
            program.span,
            help="`--name other_name` names what is written",
        )
    return {program.name, f"{program.name}_supports", f"{program.name}_workspace_size"}


def _called(settled: Settled) -> set[str]:
    """The names of the user's own C++ functions that a launch calls."""
    calls = (part for expr in kernel_expressions(settled) for part in walk(expr) if isinstance(part, Call))
    return {call.function.removeprefix("::") for call in calls if call.function[0] == ":"}


def _view(written: tuple[Written, ...], origin: tuple[str, ...], style: str) -> KernelView:
    """The file in a style; the host side is tl's."""
    first, printer = written[0].settled, written[0].printer
    launches = tuple(each.settled for each in written)
    is_cute = style == "cute"
    view = KernelView(
        name=first.program.name,
        namespace=f"{first.program.name}_kernel",
        group=_group(launches),
        headers=("cute.h",) if is_cute else _headers(launches),
        cuda_half=bool(first.program.pasted) and first.target.suffix == ".cu",
        pasted=tuple(pasted(each, first.program.source.name) for each in first.program.pasted),
        provenance=origin,
        contract=contract(launches, printer, _stated_limits(written)),
        sizes=NO_SECTION,
        shared_limit=first.facts[first.launch, SHARED_BUDGET].limit,
        arch=first.target.arch,
        uses="using namespace cute;" if is_cute else "",
        launches=tuple(map(_cute_launch_view if is_cute else _launch_view, written)),
        host=_host_of_cute(written) if is_cute else host(written),
    )
    said = words(view)
    parts = zip(written, view.launches, strict=True)
    named = tuple(replace(part, sizes=sizes(each.settled, each.printer, said)) for each, part in parts)
    return replace(view, sizes=common_sizes(first, printer, said), launches=named)


def _stated_limits(written: tuple[Written, ...]) -> tuple[str, ...]:
    """The limits on sizes that the launcher checks, in words."""
    of_sizes, of_calls = (size_limits(written, of_call=of_call) for of_call in (False, True))
    return tuple(limit.stated for limit in (*of_sizes, *of_calls, *quotient_limits(written)))


def _host_of_cute(written: tuple[Written, ...]) -> HostView:
    """The host side, with CuTe's names of element types where it calls kernels."""
    found = host(written)
    return replace(found, launches=tuple(replace(each, call=in_cute(each.call)) for each in found.launches))


def _cute_launch_view(written: Written) -> LaunchView:
    settled = written.settled
    if settled.program.pasted:
        raise cute_support.unsupported("inline user code", settled.launch.span)
    plan, constants = kernel(settled), Constants.of(settled)
    derived, printer = _with_derived(written)
    cute = Cute(plan, printer, constants, settled.program.source.name, bool(aligned_when(settled)))
    body = cute.views(plan.body)
    view = LaunchView(
        namespace="",
        title="",
        sizes=NO_SECTION,
        shared=cute.struct(),
        shared_bytes=plan.memory.total,
        layouts=cute.registers(),
        comments=_above(settled, written.maps),
        template="class Alignment" if cute.by_instance else "",
        bounds=_bounds(settled, leading=False),
        cluster="",
        params=tuple(map(in_cute, kernel_params(settled, printer, written.maps))),
        setup=(*cute.used_copies(), *cute.setup()),
        producer=(),
        fragments=cute.fragments(),
        body=body,
    )
    return replace(view, setup=(*sizes_with_names(derived, printer, words(view)), *view.setup))


def _with_derived(written: Written) -> tuple[tuple[Derived, ...], Printer]:
    """The sizes that the kernel computes from others, and a printer that names them."""
    derived, printer = derived_sizes(written.settled, _all_names(written.settled)), written.printer
    return derived, replace(printer, derived={each.value: printer.names(each.name) for each in derived})


def _headers(launches: tuple[Settled, ...]) -> tuple[str, ...]:
    """What the text includes of tl: wgmma's instructions of each type are in a header of their own."""
    first = "grid.h" if any(syncs_grid(each.launch.body) for each in launches) else "tl.h"
    types = {
        _types_of(each.facts[op, INSTRUCTION])
        for each in launches
        for op in walk_stmts(each.launch.body)
        if isinstance(op, Gemm) and unit_of(op, each.facts) is MmaUnit.WARPGROUP
    }
    return first, *sorted({_WGMMA_HEADERS[pair] for pair in types})


def _types_of(instruction: MmaInstruction) -> str:
    """The types of an instruction's accumulator and operands, as the table of headers has them."""
    return f"{instruction.accumulator}.{instruction.operands[0]}"


def _launch_view(written: Written) -> LaunchView:
    settled, maps = written.settled, written.maps
    derived, printer = _with_derived(written)
    plan, constants = kernel(settled), Constants.of(settled)
    held, memory = plan.registers, Shared(printer, constants)
    layouts = Layouts(held, printer, 0 if settled.launch.shares else settled.launch.threads)
    body = Body(
        Operations.of(printer, maps),
        constants,
        settled.program.source.name,
        layouts.of_extents,
        layouts.of_tile,
    )
    indices = block_indices(plan.grid, printer) if plan.grid.persistent else ()
    start = _start(plan, body)
    roles = Roles(plan.producer, body, indices) if plan.producer is not None else None
    leading = roles.views() if roles is not None else ()
    done = (*body.views(plan.body), *(replace(body.view(op), line=0, gap=True) for op in plan.each_end))
    end = tuple(replace(body.view(op), gap=True) for op in plan.end)
    view = LaunchView(
        namespace=settled.namespace,
        title=kernel_line(settled.namespace) if settled.namespace else "",
        sizes=NO_SECTION,
        shared=memory.struct(plan.memory),
        shared_bytes=plan.memory.total,
        layouts=layouts.section(),
        comments=_above(settled, maps),
        template="class Alignment" if aligned_when(settled) else "",
        bounds=_bounds(settled, leading=bool(leading)),
        cluster=", ".join(map(str, settled.launch.cluster)),
        params=kernel_params(settled, printer, maps),
        setup=setup(plan, memory, printer),
        producer=leading,
        fragments=declarations(held, printer, layouts),
        body=done if plan.persistent is not None else (*done, *end),
        each_tile=roles.each_tile() if roles is not None else (),
        counted=roles.counted() if roles is not None else "",
        work=work_types(plan.persistent, printer),
        work_type=f"{printer.names('__WorkTile')} {printer.names('__work')}" if plan.persistent is not None else "",
        next_tile=roles.next_tile() if roles is not None else "",
        start=start,
        end=end if plan.persistent is not None else (),
    )
    return replace(view, setup=(*sizes_with_names(derived, printer, words(view)), *view.setup))


def _start(plan: Kernel, body: Body) -> tuple[StatementView, ...]:
    """What all threads do first: those of a block that would write nothing leave."""
    early = plan.early
    if early is None:
        return ()
    about = f"such a block would write nothing  [{early.rule}]"
    text = f"if ({body.printer.text(early.condition)}) return;  // {about}"
    first = body.views(early.before)
    body.printer.holds = negated(early.condition)  # the others have left
    return (*first, text_line(text))


def _above(settled: Settled, maps: dict[int, TensorMap]) -> tuple[str, ...]:
    """The comments above a kernel: the user's, and what its declaration does not say."""
    own = (line for line in settled.launch.comments if line.strip() != _word(settled.launch))
    return tuple(line for text in (*own, *map_notes(settled, maps)) for line in wrapped(text))


def _bounds(settled: Settled, *, leading: bool) -> str:
    """The arguments of __launch_bounds__."""
    threads = block_threads(settled)
    if settled.facts.get(settled.launch, WAVES_PER_SIMD) is not None:
        return f"{threads}, waves_per_simd_by_registers"
    if asked_blocks(settled):
        return f"{threads}, least_blocks"
    alone = leading or settled.facts.get(settled.launch, SETMAXNREG) is not None
    return f"{threads}, 1" if alone else threads


def _all_names(settled: Settled) -> list[str]:
    """Every name of a launch and of its program, so that ours never meet them."""
    program: Program = settled.program
    names = [param.name for param in (*program.params, *program.workspaces)] + [size.name for size in program.sizes]
    names += [tile.name for tile in settled.launch.tiles] + [constant.name for constant in program.constants]
    names += [block.name for block in settled.launch.blocks]
    names += [tensor.name for tensor in tensors(settled)]
    for stmt in walk_stmts(settled.launch.body):
        names += [var.name for var in getattr(stmt, "vars", ())]
        var = getattr(stmt, "var", getattr(stmt, "previous", None))
        names += [var.name] if var is not None else []
    return names


def _kept_names(settled: Settled) -> tuple[str, ...]:
    """`threads`, where the user's own constant says the same as ours."""
    same = any(c.name == "threads" and c.value == settled.launch.threads for c in settled.program.constants)
    return ("threads",) if same and not settled.namespace else ()


def _sha256(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()
