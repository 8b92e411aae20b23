"""What a kernel takes of its target: registers, spills, shared memory, occupancy, waves and instructions.

Compiles the emitted source as a build for the GPU does, and reads what the tools state; no GPU is needed.
"""

from __future__ import annotations

import math
import re
import subprocess
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from tile2cu_runtime import cache, hip, paths
from tile2cu_runtime.arguments import no_size
from tile2cu_runtime.chips import Chip, chip_of
from tile2cu_runtime.compile import cubin_command, ignored_by_ptxas, run_compiler
from tile2cu_runtime.compilers import find_nvcc, find_nvdisasm
from tile2cu_runtime.errors import ArgumentError, CompileError, ManifestError
from tile2cu_runtime.occupancy import Occupancy, Waves, occupancy
from tile2cu_runtime.sass import count_sass, read_ptxas
from tile2cu_runtime.shape import parse_extent
from tile2cu_runtime.spec import Launch, Manifest, ScalarArgument
from tile2cu_runtime.symbols import demangled

_CUBIN, _LOG = "kernel.cubin", "ptxas.txt"


@dataclass(frozen=True, kw_only=True)
class Compiled:
    """One kernel as compiled. Bytes are per thread, `shared_static` per block; AMD counts spills in registers.

    `instructions` by class are those in the code, not those executed; empty where no disassembler is installed.
    """

    symbol: str
    registers: int
    stack_bytes: int
    spill_store_bytes: int = 0
    spill_load_bytes: int = 0
    spilled_registers: int = 0
    shared_static: int = 0
    instructions: tuple[tuple[str, int], ...] = ()

    @property
    def spills(self) -> bool:
        return bool(self.spill_store_bytes or self.spill_load_bytes or self.spilled_registers)


@dataclass(frozen=True, kw_only=True)
class KernelResources:
    """A kernel with its launch: `threads` of a block, shared memory in bytes per block. `waves` need the sizes."""

    name: str
    threads: int
    compiled: Compiled
    shared_dynamic: int
    occupancy: Occupancy
    waves: Waves | None

    @property
    def warnings(self) -> Iterator[str]:
        """A spill, and a block of which none fits."""
        compiled = self.compiled
        if compiled.spilled_registers:
            yield f"{self.name} spills {compiled.spilled_registers} registers to scratch memory"
        elif compiled.spills:
            stores, loads = compiled.spill_store_bytes, compiled.spill_load_bytes
            yield f"{self.name} spills registers: {stores} bytes of stores, {loads} bytes of loads per thread"
        if not self.occupancy.blocks_per_sm:
            yield f"{self.name}: no block fits on an SM ({', '.join(self.occupancy.limited_by)})"

    def as_data(self) -> dict[str, Any]:
        """The kernel as JSON takes it."""
        compiled, held = self.compiled, self.occupancy
        waves, described = self.waves, None
        if waves:
            described = {**asdict(waves), "count": round(waves.count, 4), "efficiency": round(waves.efficiency, 4)}
        return {
            "kernel": self.name,
            "symbol": compiled.symbol,
            "threads": self.threads,
            "registers": compiled.registers,
            "stack_bytes": compiled.stack_bytes,
            "spill_store_bytes": compiled.spill_store_bytes,
            "spill_load_bytes": compiled.spill_load_bytes,
            "spilled_registers": compiled.spilled_registers,
            "shared_static": compiled.shared_static,
            "shared_dynamic": self.shared_dynamic,
            "occupancy": {**asdict(held), "limited_by": list(held.limited_by), "fraction": round(held.fraction, 4)},
            "waves": described,
            "instructions": dict(compiled.instructions),
        }

    def in_words(self, of: _Words) -> str:
        """The kernel in lines, in the words of its GPU's vendor."""
        compiled, held = self.compiled, self.occupancy
        spills = (
            f"{compiled.spilled_registers} registers"
            if compiled.spilled_registers
            else f"{compiled.spill_store_bytes} bytes of stores, {compiled.spill_load_bytes} bytes of loads"
        )
        lines = [
            f"{self.name}, {self.threads} threads per {of.block}",
            f"  registers      {compiled.registers} per thread",
            f"  spills         {spills}; stack {compiled.stack_bytes} bytes per thread",
            f"  {of.shared:<13}  {compiled.shared_static:,} bytes static, {self.shared_dynamic:,} dynamic "
            f"per {of.block}",
            f"  occupancy      {_counted(held.blocks_per_sm, of.block)} and {held.warps_per_sm} of "
            f"{held.max_warps_per_sm} {of.warps} per {of.sm} ({held.fraction:.0%}), limited by "
            f"{' and '.join(map(of.limit, held.limited_by))}",
        ]
        if self.waves:
            lines.append(
                f"  {of.rounds:<13}  {self.waves.count:.2f}: {_counted(self.waves.blocks, of.block)} on "
                f"{self.waves.sms} {of.sm}s, {self.waves.efficiency:.0%} of the places are used"
            )
        if compiled.instructions:
            total = sum(count for _, count in compiled.instructions)
            lines.append(f"  instructions   {total} in the code")
            lines += [f"    {kind:<18}{count:>7}" for kind, count in compiled.instructions]
        return "\n".join(lines)


@dataclass(frozen=True, kw_only=True)
class _Words:
    """What a vendor calls a block, its warps, its shared memory, a processor, and the rounds in which blocks run."""

    block: str
    warps: str
    shared: str
    sm: str
    rounds: str

    def limit(self, name: str) -> str:
        """What limits the occupancy: `warps`, `shared memory` and so on."""
        return {"warps": self.warps, "shared memory": self.shared, "blocks": f"{self.block}s"}.get(name, name)


_NVIDIA = _Words(block="block", warps="warps", shared="shared memory", sm="SM", rounds="waves")
_AMD = _Words(block="workgroup", warps="waves", shared="LDS", sm="CU", rounds="rounds")


@dataclass(frozen=True, kw_only=True)
class Resources:
    """All kernels of a source. `warnings`: spills, MMAs computed by FMA, blocks that do not fit, what ptxas ignored,
    missing tools.
    """

    kernel: str
    target: str
    kernels: tuple[KernelResources, ...]
    warnings: tuple[str, ...]

    def as_data(self) -> dict[str, Any]:
        """The report as JSON takes it."""
        return {
            "kernel": self.kernel,
            "target": self.target,
            "kernels": [each.as_data() for each in self.kernels],
            "warnings": list(self.warnings),
        }

    def __str__(self) -> str:
        of = _AMD if self.target.startswith("hip:") else _NVIDIA
        lines = [f"{self.kernel} for {self.target}", *(each.in_words(of) for each in self.kernels)]
        return "\n".join([*lines, *(f"warning: {each}" for each in self.warnings)])


def inspect(manifest: Manifest, folder: Path, sizes: Mapping[str, int] | None = None) -> Resources:
    """The resources of an emitted kernel, whose source is in `folder`; with `sizes`, the waves of its grids.

    Errors: T2C-R010 without a compiler for the target, T2C-R011 if it fails, T2C-R100 for a size that the kernel does
    not have, T2C-R105 where some of the sizes of a grid are missing.
    """
    sizes = dict(sizes or {})
    _check_names(manifest, sizes)
    chip = chip_of(manifest.target)
    compiled, notes = (_cuda if manifest.target.startswith("cuda:") else _hip)(manifest, folder)
    kernels = tuple(_described(manifest, chip, each, sizes) for each in compiled)
    found = [warning for each in kernels for warning in each.warnings]
    return Resources(
        kernel=manifest.kernel, target=manifest.target, kernels=kernels, warnings=(*found, *_fallen(manifest), *notes)
    )


def _check_names(manifest: Manifest, sizes: Mapping[str, int]) -> None:
    known = [*(size.name for size in manifest.sizes)]
    known += [each.name for each in manifest.called if isinstance(each, ScalarArgument)]
    if unknown := sorted(sizes.keys() - set(known)):
        names = ", ".join(known) or "none"
        raise no_size(manifest, unknown[0], names)


def _fallen(manifest: Manifest) -> Iterator[str]:
    """A GEMM that no MMA instruction computes. [rule select.gemm.fma]"""
    for fact in manifest.facts:
        if fact.what == "instruction" and fact.value == "fma":
            where = f"{manifest.source_file}:{fact.line}"
            yield f"the GEMM at {where} is computed by FMA, not by tensor cores (tile2cu explain {fact.rule})"


def _described(manifest: Manifest, chip: Chip, compiled: Compiled, sizes: Mapping[str, int]) -> KernelResources:
    name = readable(compiled.symbol)
    launch = _launch_of(manifest, name)
    held = occupancy(
        chip,
        threads=launch.threads,
        registers=compiled.registers,
        shared_bytes=compiled.shared_static + launch.shared_bytes,
    )
    blocks = _blocks(manifest, launch, chip, sizes)
    waves = (
        None if blocks is None else Waves(blocks=blocks, sms=chip.sms, blocks_per_wave=chip.sms * held.blocks_per_sm)
    )
    return KernelResources(
        name=name,
        threads=launch.threads,
        compiled=compiled,
        shared_dynamic=launch.shared_bytes,
        occupancy=held,
        waves=waves,
    )


def _launch_of(manifest: Manifest, name: str) -> Launch:
    """The launch of a kernel: of several, the one whose namespace the kernel's name has."""
    parts = name.split("::")
    return next((each for each in manifest.launches if not each.kernel or each.kernel in parts), manifest.launches[0])


def _blocks(manifest: Manifest, launch: Launch, chip: Chip, sizes: Mapping[str, int]) -> int | None:
    """The blocks of the grid; None where sizes decide it and none is given.

    Errors: T2C-R105 where some are given and others are missing.
    """
    known = {name: value for name, value in manifest.bindings if isinstance(value, int)} | dict(sizes)
    extents = launch.tiles or launch.grid
    try:
        # The manifest has C++: its quotients are of numbers that are not negative.
        parsed = [parse_extent(re.sub(r"(?<!/)/(?!/)", "//", each.replace("tl::", "")), "grid") for each in extents]
    except ManifestError:
        return None
    if missing := sorted({name for each in parsed for name in each.names} - known.keys()):
        if not sizes:
            return None
        raise ArgumentError(
            "T2C-R105",
            f"the grid of {manifest.kernel} depends on the size `{missing[0]}`",
            argument=missing[0],
            help=f"give {' '.join(f'--size {name}=...' for name in missing)}",
        )
    blocks = math.prod(each.evaluate(known) for each in parsed)
    return min(blocks, chip.sms) if launch.tiles else blocks


# ---- NVIDIA ---------------------------------------------------------------------------------------------------------


def _cuda(manifest: Manifest, folder: Path) -> tuple[list[Compiled], list[str]]:
    architecture = manifest.target.partition(":")[2]
    command = cubin_command(manifest.text_file, architecture=architecture, needs=manifest.needs, output=_CUBIN)

    def make(temporary: Path, place: Path) -> None:
        _copy(manifest, folder, temporary)
        log = run_compiler(command, temporary, f"the emitted source {manifest.text_file}")
        (temporary / _LOG).write_text(log, encoding="utf-8")

    entry = cache.get_or_build("resources", _key(manifest, folder, command, find_nvcc().version), make)
    log = (entry.folder / _LOG).read_text(encoding="utf-8")
    assembled, notes = read_ptxas(log), [f"ptxas: {each}" for each in ignored_by_ptxas(log)]
    try:
        counts = count_sass(disassembled(find_nvdisasm(), entry.folder / _CUBIN))
    except CompileError as error:
        counts = {}
        notes.append(f"instructions are not counted: {error.message} ({error.help})")
    return [
        Compiled(**asdict(each), instructions=tuple(counts[each.symbol].most_common() if each.symbol in counts else ()))
        for each in assembled
    ], notes


def disassembled(nvdisasm: str, cubin: Path) -> str:
    """nvdisasm's listing of a cubin. Errors: T2C-R011 when it fails."""
    answer = subprocess.run([nvdisasm, "-c", str(cubin)], capture_output=True, encoding="utf-8", errors="replace")
    if answer.returncode:
        message = answer.stderr.strip().partition("\n")[0]
        raise CompileError("T2C-R011", f"{nvdisasm} failed: {message}", help="it must be of nvcc's version or later")
    return answer.stdout


# ---- AMD ------------------------------------------------------------------------------------------------------------


def _hip(manifest: Manifest, folder: Path) -> tuple[list[Compiled], list[str]]:
    from tile2cu_runtime.amdgcn.code_object import CodeObject
    from tile2cu_runtime.amdgcn.cost import count_kinds
    from tile2cu_runtime.amdgcn.errors import SimulatorError

    architecture = manifest.target.partition(":")[2]
    commands = hip.code_object_commands(manifest.text_file, architecture=architecture, needs=manifest.needs)

    def make(temporary: Path, place: Path) -> None:
        _copy(manifest, folder, temporary)
        for command in commands:
            run_compiler(command, temporary, f"the emitted source {manifest.text_file}")

    identity = hip.find_clang(architecture).version
    words = tuple(word for command in commands for word in command)
    entry = cache.get_or_build("resources", _key(manifest, folder, words, identity), make)
    code = CodeObject.load(entry.folder / hip.CODE_OBJECT)
    notes: list[str] = []
    found = []
    for name in code.kernel_names:
        kernel = code.kernel(name)
        compiled = Compiled(
            symbol=name,
            registers=kernel.registers,
            stack_bytes=kernel.private_bytes,
            spilled_registers=kernel.spills,
            shared_static=kernel.lds_bytes,
        )
        try:
            compiled = replace(compiled, instructions=count_kinds(code.instructions(name)))
        except SimulatorError as error:
            notes = [f"instructions are not counted: {error}"]
        found.append(compiled)
    return found, notes


def _copy(manifest: Manifest, folder: Path, temporary: Path) -> None:
    for name in (manifest.text_file, manifest.header_file):
        (temporary / name).write_bytes((folder / name).read_bytes())


def _key(manifest: Manifest, folder: Path, command: tuple[str, ...], identity: str) -> str:
    """Of all that decides what the compiler makes."""
    sources = [(folder / name).read_bytes() for name in (manifest.text_file, manifest.header_file)]
    return cache.content_key(identity, cache.tree_key(paths.headers_dir()), *command, *sources)


_ALIGNMENT = re.compile(r"I?N2tl(?:12AnyAlignment|7AlignedILi(\d+)EE)E")


def readable(symbol: str) -> str:
    """A kernel's name as C++ spells it; of its template's arguments the alignment, for which sources have variants."""
    name = demangled(symbol)
    variant = _ALIGNMENT.search(symbol)
    if not variant:
        return name
    alignment = f"Aligned<{variant[1]}>" if variant[1] else "AnyAlignment"
    return name.replace("<>", f"<{alignment}>")


def _counted(number: int, noun: str) -> str:
    return f"{number:,} {noun}" + ("" if number == 1 else "s")
