"""A code object: its kernels' descriptors, their arguments, its instructions.

Source: LLVM, "User Guide for AMDGPU Backend": "Kernel Descriptor", "Code Object Metadata", "Kernel Dispatch".
"""

from __future__ import annotations

import struct
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tile2cu_runtime.amdgcn.disassembly import Listing, disassemble
from tile2cu_runtime.amdgcn.elf import Elf, read_elf
from tile2cu_runtime.amdgcn.errors import SimulatorError
from tile2cu_runtime.amdgcn.msgpack import unpack

if TYPE_CHECKING:
    from tile2cu_runtime.amdgcn.block import Program

# EF_AMDGPU_MACH, the low byte of e_flags. [AMDGPU Backend, "AMDGPU ELF Header e_flags"]
MACHINES = {0x3F: "gfx90a", 0x4C: "gfx942", 0x4F: "gfx950"}
METADATA_NOTE = 32
LDS_BYTES = {"gfx90a": 64 << 10, "gfx942": 64 << 10, "gfx950": 160 << 10}
PRELOAD_HEADER_BYTES = 256


@dataclass(frozen=True, kw_only=True)
class Argument:
    """A kernel argument. `value_kind` as in the metadata: by_value, global_buffer, hidden_block_count_x, ..."""

    offset: int
    size: int
    value_kind: str

    @property
    def is_hidden(self) -> bool:
        return self.value_kind.startswith("hidden_")


@dataclass(frozen=True, kw_only=True)
class Kernel:
    """A kernel's descriptor and metadata. Sizes in bytes, registers in units of one; `spills` are registers, too."""

    name: str
    entry: int
    arguments: tuple[Argument, ...]
    kernarg_bytes: int
    lds_bytes: int
    private_bytes: int
    registers: int
    spills: int
    accumulation_offset: int
    user_scalars: int
    workgroup_id_enabled: tuple[bool, bool, bool]
    properties: int
    preload_words: int
    preload_offset: int


class CodeObject:
    """A loaded .hsaco file. `target` is the architecture, such as gfx942; `decoded` the launched kernels, by name."""

    def __init__(self, path: Path, elf: Elf, target: str) -> None:
        self.path = path
        self.elf = elf
        self.target = target
        self.decoded: dict[str, Program] = {}

    @staticmethod
    def load(path: Path) -> CodeObject:
        """Reads the file. SimulatorError for an unsupported architecture."""
        elf = read_elf(path.read_bytes())
        target = MACHINES.get(elf.flags & 0xFF)
        if target is None:
            raise SimulatorError(
                f"{path.name} is for machine {elf.flags & 0xFF:#x}, not for {sorted(MACHINES.values())}"
            )
        return CodeObject(path, elf, target)

    @cached_property
    def listing(self) -> Listing:
        """All instructions, disassembled once."""
        return disassemble(self.path, self.target, self.elf.symbols)

    @cached_property
    def _metadata(self) -> dict[str, dict[str, Any]]:
        notes = [content for name, kind, content in self.elf.notes if name == "AMDGPU" and kind == METADATA_NOTE]
        kernels = unpack(notes[0])["amdhsa.kernels"] if notes else []
        return {kernel[".name"]: kernel for kernel in kernels}

    @property
    def kernel_names(self) -> tuple[str, ...]:
        return tuple(sorted(self._metadata))

    def kernel(self, name: str) -> Kernel:
        """The kernel with that symbol name."""
        if name not in self._metadata or f"{name}.kd" not in self.elf.symbols:
            raise SimulatorError(f"no kernel {name} in {self.path.name}; it has {', '.join(self.kernel_names)}")
        metadata, address = self._metadata[name], self.elf.symbols[f"{name}.kd"]
        descriptor = self._read(address, 64)
        lds, private, _ = struct.unpack_from("<III", descriptor, 0)
        (entry,) = struct.unpack_from("<q", descriptor, 16)
        resource3, resource1, resource2, properties, preload = struct.unpack_from("<IIIHH", descriptor, 44)
        return Kernel(
            name=name,
            entry=address + entry + (PRELOAD_HEADER_BYTES if preload & 0x7F else 0),
            arguments=tuple(map(_argument, metadata.get(".args", ()))),
            kernarg_bytes=metadata[".kernarg_segment_size"],
            lds_bytes=lds,
            private_bytes=private,
            registers=(1 + (resource1 & 0x3F)) * 8,
            spills=metadata[".vgpr_spill_count"] + metadata[".sgpr_spill_count"],
            accumulation_offset=(1 + (resource3 & 0x3F)) * 4,
            user_scalars=resource2 >> 1 & 0x1F,
            workgroup_id_enabled=(bool(resource2 >> 7 & 1), bool(resource2 >> 8 & 1), bool(resource2 >> 9 & 1)),
            properties=properties,
            preload_words=preload & 0x7F,
            preload_offset=(preload >> 7) * 4,
        )

    def instructions(self, name: str) -> list[str]:
        """The instructions of a kernel as text: from its symbol to the next kernel's."""
        start = self.elf.symbols[name]
        later = [at for each in self.kernel_names if (at := self.elf.symbols[each]) > start]
        return self.listing.texts_between(start, min(later, default=1 << 64))

    def _read(self, address: int, size: int) -> bytes:
        for segment in self.elf.segments:
            at = address - segment.address
            if at >= 0 and at + size <= len(segment.content):
                return segment.content[at : at + size]
        raise SimulatorError(f"{address:#x} is in no segment of {self.path.name}")


def _argument(entry: dict[str, Any]) -> Argument:
    return Argument(offset=entry[".offset"], size=entry[".size"], value_kind=entry[".value_kind"])
