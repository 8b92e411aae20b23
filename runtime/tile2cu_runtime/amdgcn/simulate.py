"""The simulator's entry point: launches a kernel of a code object on NumPy arrays."""

from __future__ import annotations

import itertools
import struct
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from tile2cu_runtime.amdgcn.arguments import Arguments, ArgumentValue, Extent, extent_of
from tile2cu_runtime.amdgcn.arrays import I64, LANES, MASK32, U32, WAVE_SIZE, Array, pair_of_lanes, round_up
from tile2cu_runtime.amdgcn.batch import Batch, poisoned_registers
from tile2cu_runtime.amdgcn.block import Program
from tile2cu_runtime.amdgcn.byte_store import ByteStore
from tile2cu_runtime.amdgcn.code_object import LDS_BYTES, CodeObject, Kernel
from tile2cu_runtime.amdgcn.cohort import Cohort
from tile2cu_runtime.amdgcn.cost import CostReport, Measured, cost_report, lds_bytes_of
from tile2cu_runtime.amdgcn.disassembly import source_frames
from tile2cu_runtime.amdgcn.errors import SimulatorError
from tile2cu_runtime.amdgcn.findings import CodePlace, Recorder, SimulatorFinding
from tile2cu_runtime.amdgcn.global_memory import GlobalMemory
from tile2cu_runtime.amdgcn.instruction import EXEC
from tile2cu_runtime.amdgcn.instructions.registers import Context
from tile2cu_runtime.amdgcn.kernarg import Launch, dispatch_packet, kernarg_bytes, user_scalars
from tile2cu_runtime.amdgcn.lds import Lds
from tile2cu_runtime.amdgcn.lds_banks import BANKS, BankUse
from tile2cu_runtime.amdgcn.machine import Machine

# Waves that are simulated together: enough for long NumPy arrays, few enough that the state fits in cache.
WAVES_AT_ONCE = 64
INSTRUCTION_LIMIT = 500_000_000
RELOCATION_RELATIVE = 13


@dataclass(frozen=True, kw_only=True)
class Result:
    """The result of a launch besides its arrays: findings, cost, and simulation time in seconds."""

    findings: tuple[SimulatorFinding, ...]
    cost: CostReport
    seconds: float

    @property
    def is_clean(self) -> bool:
        return not self.findings


def simulate(
    code_object: Path | CodeObject,
    kernel: str,
    grid: int | Sequence[int],
    block: int | Sequence[int],
    args: Sequence[ArgumentValue],
    *,
    check: bool = True,
    measure: bool = False,
    dynamic_lds: int = 0,
    limit: int = INSTRUCTION_LIMIT,
    names: Sequence[str] = (),
) -> Result:
    """Launches a kernel. Arrays among `args` are global buffers and hold the result afterwards.

    Shapes: `grid` in workgroups, `block` in work-items, up to three extents each; `dynamic_lds` in bytes. Other
    arguments are int, float, NumPy scalars, or bytes for structs by value. `names` are the arguments' names in
    findings.
    Returns: faults of the kernel as findings, not errors. `check` detects missing waits, LDS races and uninitialised
    reads; bounds are always checked. `measure` counts cache lines of global requests and busy cycles of the LDS banks.
    Errors: SimulatorError for unsupported instructions, and for more than `limit` wave instructions.
    """
    loaded = code_object if isinstance(code_object, CodeObject) else CodeObject.load(code_object)
    launch = Launch(grid=extent_of(grid), block=extent_of(block), dynamic_lds=dynamic_lds)
    with np.errstate(all="ignore"):
        return _Simulation(loaded, loaded.kernel(kernel), launch, args, names, check=check, measure=measure).run(limit)


class _Simulation:
    """One launch."""

    def __init__(
        self,
        code: CodeObject,
        kernel: Kernel,
        launch: Launch,
        args: Sequence[ArgumentValue],
        names: Sequence[str],
        *,
        check: bool,
        measure: bool,
    ) -> None:
        self._code, self._kernel, self._launch = code, kernel, launch
        self._check, self._measure = check, measure
        self._lds_bytes = kernel.lds_bytes + launch.dynamic_lds
        if self._lds_bytes > LDS_BYTES[code.target]:
            raise SimulatorError(
                f"{kernel.name} needs {self._lds_bytes} bytes of LDS, {code.target} has {LDS_BYTES[code.target]}"
            )
        self._arguments = Arguments(args, names)
        self._memory = self._load()
        self._program = _decoded(code, kernel)
        self._recorder = Recorder()
        self._global_lines, self._bank_use = 0, BankUse()

    # ---- before -------------------------------------------------------------------------------------------------

    def _load(self) -> GlobalMemory:
        """Memory with the code object, the arguments and their arrays."""
        contents: list[tuple[str, bytes | Array]] = [
            ("the code object", bytes(round_up(self._code.elf.memory_size, 64))),
            ("the kernel arguments", bytes(round_up(self._kernel.kernarg_bytes, 64))),
            ("the dispatch packet", dispatch_packet(self._launch)),
        ]
        memory = GlobalMemory(contents + self._arguments.contents)
        addresses = self._arguments.place(memory.buffers[len(contents) :])
        kernarg = kernarg_bytes(self._kernel, self._arguments, addresses, self._launch)
        memory.write(memory.buffers[1], kernarg)
        self._user_scalars = user_scalars(self._kernel, kernarg, memory.buffers[1].address, memory.buffers[2].address)
        self._load_code(memory)
        return memory

    def _load_code(self, memory: GlobalMemory) -> None:
        image = memory.buffers[0]
        for segment in self._code.elf.segments:
            raw = np.frombuffer(segment.content, np.uint8)
            memory.store.bytes[image.start + segment.address :][: raw.size] = raw
        for relocation in self._code.elf.relocations:
            if relocation.kind != RELOCATION_RELATIVE:
                raise SimulatorError(f"relocation of kind {relocation.kind} in {self._code.path.name}")
            address = np.frombuffer(struct.pack("<Q", image.address + relocation.addend), np.uint8)
            memory.store.bytes[image.start + relocation.address :][:8] = address

    # ---- run ----------------------------------------------------------------------------------------------------

    def run(self, limit: int) -> Result:
        begun = time.perf_counter()
        machine, waves = Machine(self._program, limit), 0
        for workgroups in self._batches():
            batch = self._batch(workgroups)
            start = self._start(batch)
            waves += len(start)
            machine.run(batch, start)
            self._global_lines += batch.global_lines
            self._bank_use += batch.lds.bank_use
        seconds = time.perf_counter() - begun
        self._arguments.write_back(self._memory)
        executed = [(self._program.block(address), count) for address, count in machine.executed.items()]
        measured = Measured(global_lines=self._global_lines, lds=self._bank_use) if self._measure else None
        cost = cost_report(self._kernel.name, self._code.target, waves, executed, measured)
        return Result(findings=self._findings(), cost=cost, seconds=seconds)

    @property
    def _waves_per_group(self) -> int:
        return -(-self._launch.threads // WAVE_SIZE)

    def _batches(self) -> Iterator[list[Extent]]:
        x, y, z = self._launch.grid
        ids = ((i, j, k) for k, j, i in itertools.product(range(z), range(y), range(x)))
        count = max(1, WAVES_AT_ONCE // self._waves_per_group)
        while workgroups := list(itertools.islice(ids, count)):
            yield workgroups

    def _batch(self, workgroups: list[Extent]) -> Batch:
        groups, waves = len(workgroups), self._waves_per_group
        private = self._kernel.private_bytes
        scratch = round_up(private, 16) + 32 if private else 0
        return Batch(
            kernel=self._kernel.name,
            workgroups=workgroups,
            waves_per_group=waves,
            memory=self._memory,
            lds=Lds(
                self._lds_bytes,
                groups,
                waves,
                granule=self._granule(),
                check=self._check,
                banks=BANKS[self._code.target] if self._measure else 0,
            ),
            scratch=ByteStore(scratch * groups * waves * WAVE_SIZE, 0xFF),
            scratch_bytes=scratch,
            recorder=self._recorder,
            place=lambda instruction: CodePlace(pc=instruction.address, instruction=instruction.text),
            check=self._check,
            measure=self._measure,
            code_base=self._memory.buffers[0].address,
        )

    def _granule(self) -> int:
        """The narrowest LDS access of the code object, 1 to 4 bytes: the granularity of the checks."""
        return min((_lds_width(name) for name in self._code.listing.names()), default=4)

    def _start(self, batch: Batch) -> Cohort:
        """The initial state of all waves of a batch."""
        waves = len(batch.workgroups) * self._waves_per_group
        wave = np.arange(waves)
        vgpr = poisoned_registers(max(self._kernel.registers, self._kernel.accumulation_offset), waves)
        thread = (wave % self._waves_per_group)[:, None] * WAVE_SIZE + LANES
        x, y, _ = self._launch.block
        vgpr[0] = (thread % x) | ((thread // x) % y << 10) | (thread // (x * y) << 20)
        sgpr = self._start_scalars(batch, waves)
        sgpr[EXEC], sgpr[EXEC + 1] = pair_of_lanes(thread < self._launch.threads)
        return Cohort(batch, wave.astype(I64), vgpr, sgpr, np.zeros((waves, 1), bool), self._kernel.entry)

    def _start_scalars(self, batch: Batch, waves: int) -> Array:
        sgpr: Array = np.empty((128, waves, 1), U32)
        sgpr[:] = (0xDEAD0000 + np.arange(128, dtype=U32))[:, None, None]
        for index, value in enumerate(self._user_scalars):
            sgpr[index] = value & MASK32
        index = self._kernel.user_scalars
        ids = np.repeat(np.array(batch.workgroups, U32), self._waves_per_group, axis=0)
        for axis, enabled in enumerate(self._kernel.workgroup_id_enabled):
            if enabled:
                sgpr[index] = ids[:, axis : axis + 1]
                index += 1
        return sgpr

    # ---- after --------------------------------------------------------------------------------------------------

    def _findings(self) -> tuple[SimulatorFinding, ...]:
        """The findings with their source lines."""
        return tuple(
            replace(finding, place=self._located(finding.place), other=finding.other and self._located(finding.other))
            for finding in self._recorder.findings()
        )

    def _located(self, place: CodePlace) -> CodePlace:
        return replace(place, frames=source_frames(self._code.path, place.pc))


def _decoded(code: CodeObject, kernel: Kernel) -> Program:
    """The kernel's program, cached between launches."""
    if kernel.name not in code.decoded:
        code.decoded[kernel.name] = Program(code.listing, Context(code.target, kernel.accumulation_offset))
    return code.decoded[kernel.name]


def _lds_width(name: str) -> int:
    """The bytes per access of an LDS instruction, at most 4; 4 for others."""
    if not name.startswith("ds_"):
        return 1 if name.startswith("flat_") and ("byte" in name or "short" in name) else 4
    return min(4, lds_bytes_of(name))
