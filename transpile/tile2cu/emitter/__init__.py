"""Facts to text. Decides nothing."""

import hashlib
from dataclasses import dataclass

from tile2cu.core.origin import Look, Tool
from tile2cu.core.program import Program, walk_stmts
from tile2cu.emitter.comments import wrapped
from tile2cu.emitter.contract import contract, provenance
from tile2cu.emitter.expressions import Printer
from tile2cu.emitter.host import host, kernel_params
from tile2cu.emitter.layouts import Layouts
from tile2cu.emitter.manifest import manifest
from tile2cu.emitter.names import Names
from tile2cu.emitter.render import render
from tile2cu.emitter.sections import aligned_when, fragments, setup, shared, sizes
from tile2cu.emitter.settled import Settled
from tile2cu.emitter.statements import Statements
from tile2cu.emitter.tma import map_notes, tensor_maps
from tile2cu.emitter.view import KernelView

__all__ = ["Emitted", "Settled", "emit_kernel"]


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


def emit_kernel(settled: Settled, *, tool: Tool, look: Look) -> Emitted:
    """The text, header and manifest of a settled kernel. The same input gives the same bytes."""
    name, suffix = settled.program.name, settled.target.suffix
    printer = Printer(Names(_all_names(settled), kept=_kept_names(settled)), settled.bounds)
    text, header, lines = render(_view(settled, printer, tool, look), look)
    hashes = {f"{name}{suffix}": _sha256(text), f"{name}.h": _sha256(header)}
    described = manifest(settled, printer, tool=tool, look=look, files=hashes, lines=lines)
    return Emitted(name, suffix, {f"{name}{suffix}": text, f"{name}.h": header, f"{name}.json": described})


def _view(settled: Settled, printer: Printer, tool: Tool, look: Look) -> KernelView:
    layouts = Layouts(settled, printer)
    maps = tensor_maps(settled, printer)
    statements = Statements(settled, printer, layouts.names, maps)
    producer, body = statements.producer(), statements.body(settled.launch.body)
    shared_section = shared(settled, printer)
    return KernelView(
        name=settled.program.name,
        namespace=f"{settled.program.name}_kernel",
        provenance=provenance(settled, tool, look),
        contract=contract(settled, printer),
        sizes=sizes(settled, printer),
        shared=shared_section,
        shared_bytes=settled.facts[settled.launch, "ledger"].total,
        shared_limit=settled.facts[settled.launch, "ledger"].limit,
        arch=settled.target.arch,
        layouts=layouts.section(),
        comments=tuple(
            line for text in (*settled.launch.comments, *map_notes(settled, maps)) for line in wrapped(text)
        ),
        template="class RowStart" if aligned_when(settled) else "",
        bounds="threads + tl::producer_threads, 1" if producer else "threads",
        params=kernel_params(settled, printer, maps),
        setup=setup(settled, printer),
        producer=producer,
        fragments=fragments(settled, printer, layouts),
        body=body,
        host=host(settled, printer, maps),
    )


def _all_names(settled: Settled) -> list[str]:
    """Every name of the program, so that ours never meet them."""
    program: Program = settled.program
    names = [param.name for param in program.params] + [size.name for size in program.sizes]
    names += [tile.name for tile in settled.launch.tiles] + [constant.name for constant in program.constants]
    names += [block.name for block in settled.launch.blocks]
    for stmt in walk_stmts(settled.launch.body):
        names += [var.name for var in getattr(stmt, "vars", ())]
        var = getattr(stmt, "var", None)
        names += [var.name] if var is not None else []
    return names


def _kept_names(settled: Settled) -> tuple[str, ...]:
    """`threads`, where the user's own constant says the same as ours."""
    same = any(c.name == "threads" and c.value == settled.launch.threads for c in settled.program.constants)
    return ("threads",) if same else ()


def _sha256(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()
