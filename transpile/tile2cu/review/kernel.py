"""A kernel as it is reviewed: its decisions, source and manifest, and what compilers and runs state about it."""

import json
import re
from collections.abc import Iterator, Mapping
from typing import Any

from msgspec.structs import replace

from tile2cu.core.errors import Tile2CuWarning
from tile2cu.core.origin import EmitOptions, Tool
from tile2cu.core.record import Record
from tile2cu.emitter import Resolved, emit_kernel
from tile2cu.explain import Explained, explained
from tile2cu.lint import warnings_of
from tile2cu.review.bound import Bound
from tile2cu.review.execution import Execution
from tile2cu.tuning.record import TuneFile
from tile2cu_runtime.resources import KernelResources, Resources

_NAMESPACE = re.compile(r"\w+_impl::")

# What the manifest's entries about numerics state.
_NUMERICS = {
    "products": "MMAs accumulate in",
    "reductions": "reductions accumulate in",
    "rounded": "rounded",
    "order": "order of additions",
}


class Kernel(Record, frozen=True, kw_only=True):
    """A kernel for one target: its launches, its files and its manifest. `label` names it among others.

    The rest is what was asked for besides: the compiler's report `compiled`, or why there is none; what bounds a call;
    the results of `tile2cu tune`; and a run on the CPU engine.
    """

    label: str
    launches: tuple[Resolved, ...]
    files: Mapping[str, str]
    source: str
    manifest: dict[str, Any]
    warnings: tuple[Tile2CuWarning, ...]
    compiled: Resources | None = None
    not_compiled: str = ""
    bound: Bound | None = None
    tuned: TuneFile | None = None
    run: Execution | None = None

    @property
    def decisions(self) -> list[Explained]:
        """All decisions, launch by launch."""
        return [place for resolved in self.launches for place in explained(resolved)]

    @property
    def python(self) -> str:
        """The Python file's text."""
        return self.launches[0].program.source.text

    @property
    def manifest_launches(self) -> list[dict[str, Any]]:
        """The launches as the manifest has them."""
        found: list[dict[str, Any]] = self.manifest.get("launches") or [self.manifest["launch"]]
        return found


def reviewed(launches: tuple[Resolved, ...], *, label: str, tool: Tool, options: EmitOptions) -> Kernel:
    """A kernel as it is reviewed. Errors: Tile2CuError where it is not emitted."""
    emitted = emit_kernel(launches, tool=tool, options=options)
    return Kernel(
        label=label,
        launches=launches,
        files=emitted.files,
        source=emitted.source,
        manifest=json.loads(emitted.manifest),
        warnings=warnings_of(launches, emitted.source),
    )


class Figure(Record, frozen=True):
    """A figure by name; `number` is what differences between two kernels are computed from, in `unit`."""

    name: str
    text: str
    number: float | None = None
    unit: str = ""


def decided_figures(kernel: Kernel) -> Iterator[Figure]:
    """What the decisions state about resources, without a compiler."""
    for launch in kernel.manifest_launches:
        of = f" of {launch['kernel']}" if "kernel" in launch else ""
        shared, limit = launch["shared_bytes"], launch["shared_limit"]
        yield Figure(f"grid{of}", " x ".join(map(str, launch["grid"])))
        yield Figure(f"threads per block{of}", str(launch["threads"]), launch["threads"])
        yield Figure(f"shared memory{of}", f"{shared:,} of {limit:,} bytes per block", shared, "bytes")
        registers = launch["tile_registers"]
        yield Figure(f"registers for tiles{of}", f"{registers} per thread", registers)
    for name, words in kernel.manifest["resources"]["fragments"].items():
        yield Figure(f"registers for {name}", f"{words} per thread", words)


def compiled_figures(kernel: Kernel) -> Iterator[tuple[str, tuple[Figure, ...]]]:
    """What each kernel of the source takes as compiled, by its name without the namespace."""
    for each in kernel.compiled.kernels if kernel.compiled is not None else ():
        yield _NAMESPACE.sub("", each.name), tuple(_as_compiled(each))


def _as_compiled(each: KernelResources) -> Iterator[Figure]:
    compiled, held, waves = each.compiled, each.occupancy, each.waves
    yield Figure("registers", f"{compiled.registers} per thread", compiled.registers)
    spilled = compiled.spilled_registers or compiled.spill_store_bytes + compiled.spill_load_bytes
    unit = "registers" if compiled.spilled_registers else "bytes per thread"
    yield Figure("spills", f"{spilled:,} {unit}" if spilled else "none", spilled)
    yield Figure("stack", f"{compiled.stack_bytes:,} bytes per thread", compiled.stack_bytes, "bytes")
    blocks = f"{held.blocks_per_sm} block" + ("" if held.blocks_per_sm == 1 else "s")
    occupancy = f"{blocks} per SM, {held.fraction:.0%} of the warps; limited by {' and '.join(held.limited_by)}"
    yield Figure("occupancy", occupancy, held.blocks_per_sm, "blocks")
    if waves is not None:
        text = f"{waves.count:.2f}: {waves.blocks:,} blocks on {waves.sms} SMs, {waves.efficiency:.0%} of places used"
        yield Figure("waves", text, round(waves.count, 2))


def figures(kernel: Kernel) -> Iterator[Figure]:
    """All of a kernel: those decided and those of the compiled source, and its numerics."""
    yield from decided_figures(kernel)
    compiled = list(compiled_figures(kernel))
    for name, found in compiled:
        of = f" of {name}" if len(compiled) > 1 else ""
        yield from (replace(each, name=f"compiled: {each.name}{of}") for each in found)
    yield from numerics(kernel)


def numerics(kernel: Kernel) -> Iterator[Figure]:
    """In which types is accumulated, what is rounded, and in which order is added."""
    found = kernel.manifest["numerics"]
    for kind, stated in (*found["accumulate"].items(), *((key, found[key]) for key in ("rounded", "order"))):
        if stated:
            yield Figure(_NUMERICS[kind], "; ".join(map(str, stated)))
